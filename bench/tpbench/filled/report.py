"""The tables, and the CSV file."""

import csv
from collections import Counter
from statistics import median

from ..common.measure import rule, spread
from .sequence import WORKLOADS, ratios, same_answers

ARMS = ("off", "flushed", "on", "unlogged")
BASES = ("off", "flushed", "unlogged")     # with which on is compared

# Of the time with temp_parallel off, by the number of queries.
AIMS = {1: 0.70, 10: 0.72}

# What is compared, with which arm, how long it may take in comparison, and its time in ms.
FURTHER = (
    ("first query", "unlogged", 1.00, lambda s: s.ms(1)),
    ("queries from the fourth on", "flushed", 1.05, lambda s: s.ms(len(s.queries), 3)),
    ("load of the first table", "off", 1.10, lambda s: s.loads[0]),
    ("load of the second table", "off", 1.03, lambda s: s.loads[1]),
)


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
    head = f"{'queries':8}" + "".join(f"{arm + ' ms':>13}" for arm in ARMS) \
        + "".join(f"{'on/' + base:>21}" for base in BASES) + "   aim, on/off"
    print(f"\n{WORKLOADS[name].title}, answers {'equal' if same_answers(chosen, name) else 'DIFFERENT'}"
          f"\n{head}")
    rule(head)
    missed = 0
    for k in range(1, len(chosen[0].queries) + 1):
        line = f"{k:<8}" + "".join(
            f"{median(s.ms(k) for s in chosen if s.arm == arm):13.1f}" for arm in ARMS)
        line += "".join(f"{spread(ratios(chosen, base, lambda s: s.ms(k))):>21}" for base in BASES)
        if k in AIMS:
            met = median(ratios(chosen, "off", lambda s: s.ms(k))) <= AIMS[k]
            missed += not met
            line += f"   {AIMS[k]:.2f} {'met' if met else 'MISSED'}"
        print(line)
    rule(head)
    for arm in ARMS:
        of_arm = [s for s in chosen if s.arm == arm]
        print(f"{arm:9}load {median(sum(s.loads) for s in of_arm):.0f} ms;"
              f" plans: {plans(of_arm)}")
    return missed + further(chosen)


def further(sequences):
    """What else has an aim. Returns how many were missed."""
    missed = 0
    tables, queries = len(sequences[0].loads), len(sequences[0].queries)
    for what, base, aim, ms in FURTHER:
        if "second" in what and tables < 2 or "fourth" in what and queries < 4:
            continue
        values = ratios(sequences, base, ms)
        met = median(values) <= aim
        missed += not met
        print(f"{what + ', on/' + base:40}{spread(values):>21}   {aim:.2f} {'met' if met else 'MISSED'}")
    return missed


def write_csv(sequences, path):
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["workload", "arm", "round", "query", "plan", "ms", "pages_shared", "pages_flushed",
                         "digest"])
        for s in sequences:
            writer.writerows([s.workload, s.arm, s.round, 0, "load", f"{ms:.3f}", "", "", ""]
                             for ms in s.loads)
            writer.writerows([s.workload, s.arm, s.round, n + 1, q.plan, f"{q.ms:.3f}", q.shared,
                              q.flushed, q.digest] for n, q in enumerate(s.queries))
