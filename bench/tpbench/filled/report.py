"""The tables, and the CSV file."""

import csv
from collections import Counter
from statistics import median

from ..common.report import rule, spread
from .sequence import WORKLOADS, ratios, same_answers

# Of the time with temp_parallel off, by the number of queries.
AIMS = {1: 1.02, 3: 0.95, 10: 0.72}


def arms_of(sequences):
    return [a for a in ("off", "on", "unlogged") if any(s.arm == a for s in sequences)]


def plans(sequences):
    """The plan of each query, in most rounds."""
    most = [Counter(s.queries[i].plan for s in sequences).most_common(1)[0][0]
            for i in range(len(sequences[0].queries))]
    parts = []
    for plan in most:
        if parts and parts[-1][0] == plan:
            parts[-1][1] += 1
        else:
            parts.append([plan, 1])
    return ", ".join(plan if n == 1 else f"{plan} x{n}" for plan, n in parts)


def totals(sequences, name):
    """The totals of the first queries of a workload. Returns how many aims were missed."""
    chosen = [s for s in sequences if s.workload == name]
    arms = arms_of(chosen)
    bases = [a for a in arms if a != "on"] if "on" in arms else []
    head = f"{'queries':8}" + "".join(f"{arm + ' ms':>13}" for arm in arms) \
        + "".join(f"{'on/' + base:>21}" for base in bases) + "   aim, on/off"
    print(f"\n{WORKLOADS[name].title}, answers {'equal' if same_answers(chosen, name) else 'DIFFERENT'}"
          f"\n{head}")
    rule(head)
    missed = 0
    for k in range(1, len(chosen[0].queries) + 1):
        line = f"{k:<8}" + "".join(
            f"{median(s.ms(k) for s in chosen if s.arm == arm):13.1f}" for arm in arms)
        line += "".join(f"{spread(ratios(chosen, name, k, base)):>21}" for base in bases)
        if k in AIMS and "off" in bases:
            met = median(ratios(chosen, name, k, "off")) <= AIMS[k]
            missed += not met
            line += f"   {AIMS[k]:.2f} {'met' if met else 'MISSED'}"
        print(line)
    rule(head)
    for arm in arms:
        of_arm = [s for s in chosen if s.arm == arm]
        print(f"{arm:9}load {median(s.fill_ms for s in of_arm):.0f} ms;"
              f" plans: {plans(of_arm)}")
    return missed


def write_csv(sequences, path):
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["workload", "arm", "round", "query", "plan", "ms", "pages_flushed", "digest"])
        for s in sequences:
            writer.writerow([s.workload, s.arm, s.round, 0, "fill", f"{s.fill_ms:.3f}", "", ""])
            writer.writerows([s.workload, s.arm, s.round, n + 1, q.plan, f"{q.ms:.3f}", q.flushed,
                              q.digest] for n, q in enumerate(s.queries))
