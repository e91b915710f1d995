"""Tables for people, and CSV for programs."""

import csv
from dataclasses import asdict, fields
from statistics import geometric_mean

from .measure import Run, median_ms, median_ratio, plans, same_answers, select


def rule(text):
    print("-" * len(text))


def versus(runs, names, title, phase):
    """Medians of one phase; a ratio below 1 is for the extension."""
    names = [n for n in names if select(runs, n, phase, "off")]
    if not names:
        return
    head = (f"{'workload':10}{'off ms':>10}{'on ms':>10}{'unlogged ms':>13}"
            f"{'on/off':>9}{'on/unlogged':>13}  {'answers':11}plan when on")
    print(f"\n{title}\n{head}")
    rule(head)
    ratios = []
    for name in names:
        off, on, unlogged = (median_ms(runs, name, phase, a) for a in ("off", "on", "unlogged"))
        to_off, to_unlogged = (median_ratio(runs, name, phase, "on", b)
                               for b in ("off", "unlogged"))
        ratios.append((to_off, to_unlogged))
        print(f"{name:10}{off:10.1f}{on:10.1f}{unlogged:13.1f}{to_off:9.2f}{to_unlogged:13.2f}"
              f"  {'equal' if same_answers(runs, name) else 'DIFFERENT':11}"
              f"{plans(runs, name, phase, 'on')}")
    rule(head)
    means = [geometric_mean(column) for column in zip(*ratios)]
    print(f"{'geometric mean of the ratios':43}{means[0]:9.2f}{means[1]:13.2f}")


def write_csv(runs, path):
    with open(path, "w", newline="") as out:
        writer = csv.DictWriter(out, [f.name for f in fields(Run)])
        writer.writeheader()
        writer.writerows(asdict(r) for r in runs)
