"""The tables, and the CSV file."""

import csv
from dataclasses import asdict, fields
from statistics import geometric_mean, median

from ..common.measure import Run, median_ms, plans, ratios, rule, same_answers, select, spread

SLOWER, MUCH_SLOWER = 1.05, 1.15
LEAST_MS = 20


def versus(runs, names, title, phase):
    """Medians of one phase; with a ratio below 1, the extension is faster."""
    names = [n for n in names if select(runs, n, phase, "off")]
    if not names:
        return
    head = (f"{'workload':16}{'off ms':>10}{'on ms':>10}{'unlogged ms':>13}"
            f"{'on/off':>21}{'on/unlogged':>21}  {'answers':11}plan when on")
    print(f"\n{title}\n{head}")
    rule(head)
    for name in names:
        off, on, unlogged = (median_ms(runs, name, phase, a) for a in ("off", "on", "unlogged"))
        to_off, to_unlogged = (ratios(runs, name, phase, "on", b) for b in ("off", "unlogged"))
        print(f"{name:16}{off:10.1f}{on:10.1f}{unlogged:13.1f}"
              f"{spread(to_off):>21}{spread(to_unlogged):>21}"
              f"  {'equal' if same_answers(runs, name) else 'DIFFERENT':11}"
              f"{plans(runs, name, phase, 'on')}")
    rule(head)
    of_tpch = [n for n in names if n.startswith("q")]
    for label, group in (("all", names), ("TPC-H", of_tpch)):
        if len(group) > 1 and (label == "all" or len(group) < len(names)):
            totals(runs, group, label, phase)


def totals(runs, names, label, phase):
    off, on, unlogged = (sum(median_ms(runs, n, phase, a) for n in names)
                         for a in ("off", "on", "unlogged"))
    print(f"{'total, ' + label:16}{off:10.1f}{on:10.1f}{unlogged:13.1f}"
          f"{on / off:6.2f}{on / unlogged:21.2f}")
    means = [geometric_mean(median(ratios(runs, n, phase, "on", b)) for n in names)
             for b in ("off", "unlogged")]
    print(f"{'mean, ' + label:49}{means[0]:6.2f}{means[1]:21.2f}   geometric, of the ratios")


def by_temp_buffers(results, names):
    """Ratios of repeated runs for each value of temp_buffers; queries that are slower when
    on are marked, unless they are so short that only noise is seen."""
    head = f"{'on / off':16}" + "".join(f"{b:>19}" for b in results)
    print(f"\nRepeated runs by temp_buffers; * slower when on by more than {SLOWER - 1:.0%}, **"
          f" {MUCH_SLOWER - 1:.0%},\nof those that take over {LEAST_MS} ms when off\n{head}")
    rule(head)
    for name in names:
        cells = []
        for runs in results.values():
            ratio = median(ratios(runs, name, "repeat", "on", "off"))
            off = median_ms(runs, name, "repeat", "off")
            mark = "" if off <= LEAST_MS or ratio <= SLOWER else "*" if ratio <= MUCH_SLOWER else "**"
            cells.append(f"{ratio:.2f}{mark:2} {off:7.0f} ms")
        print(f"{name:16}" + "".join(f"{cell:>19}" for cell in cells))
    rule(head)
    for base in ("off", "unlogged"):
        print(f"{'sum on/' + base:16}" + "".join(
            f"{total(runs, names, 'on') / total(runs, names, base):8.2f}"
            f"{total(runs, names, base):8.0f} ms" for runs in results.values()))


def total(runs, names, arm):
    return sum(median_ms(runs, name, "repeat", arm) for name in names)


def write_csv(results, path):
    """results: runs by temp_buffers"""
    with open(path, "w", newline="") as out:
        writer = csv.DictWriter(out, ["temp_buffers"] + [f.name for f in fields(Run)])
        writer.writeheader()
        for temp_buffers, runs in results.items():
            writer.writerows({"temp_buffers": temp_buffers} | row
                             for row in map(asdict, runs))
