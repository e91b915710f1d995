"""The tables, the CSV file and the plot."""

import csv
from statistics import mean, median

from ..common.measure import rule

TARGET = 25         # % of regret
WORST = 8           # sequences that are listed


def points(outcomes, lengths):
    return [(outcome, k) for outcome in outcomes for k in lengths]


def total_regret(chosen, name):
    best = sum(o.best(k)[1] for o, k in chosen)
    return 100 * (sum(o.ms(o.named(name), k) for o, k in chosen) - best) / best


def summary(outcomes, lengths, names):
    chosen = points(outcomes, lengths)
    head = f"{'policy':24}{'time ms':>10}{'total':>9}{'median':>9}{'mean':>9}{'max':>9}" \
        f"{f'over {TARGET} %':>11}  worst"
    print(f"\n{len(outcomes)} sequences, of which the first {', '.join(map(str, lengths))} queries"
          f" count; the best decisions take {sum(o.best(k)[1] for o, k in chosen):.0f} ms\n{head}")
    rule(head)
    for name in names:
        regrets = [(o.regret(name, k), o, k) for o, k in chosen]
        values = [r for r, _, _ in regrets]
        worst, where, k = max(regrets, key=lambda r: r[0])
        print(f"{name:24}{sum(o.ms(o.named(name), k) for o, k in chosen):10.0f}"
              f"{total_regret(chosen, name):8.1f}%{median(values):8.1f}%{mean(values):8.1f}%{worst:8.1f}%"
              f"{sum(r > TARGET for r in values):11}  k = {k}: {where.sequence.name}")
    print("\nregret: time lost in % of what the best decisions take; total, of the sums of times")


def by_dimension(outcomes, lengths, names):
    """Where the regret comes from."""
    dimensions = {
        "queries": lambda o, k: k,
        "rows": lambda o, k: o.sequence.point.table.rows,
        "width": lambda o, k: o.sequence.point.table.width,
        "kind": lambda o, k: o.sequence.point.kind,
        "selectivity": lambda o, k: o.sequence.point.selectivity,
        "dirty": lambda o, k: o.sequence.point.dirty,
        "parts": lambda o, k: o.sequence.parts,
    }
    print(f"\n{'':22}{'best ms':>10}" + "".join(f"{name:>20}" for name in names)
          + "   total and largest regret")
    for title, key in dimensions.items():
        for part in sorted({key(*p) for p in points(outcomes, lengths)}):
            chosen = [p for p in points(outcomes, lengths) if key(*p) == part]
            print(f"{title:12}{part!s:>10}{sum(o.best(k)[1] for o, k in chosen):10.0f}" + "".join(
                f"{total_regret(chosen, name):10.1f}%{max(o.regret(name, k) for o, k in chosen):8.1f}%"
                for name in names))


def plans(outcome, name, k):
    """Those of the queries, in all runs, without repetitions."""
    return "/".join(sorted({run.text[:k] for run in outcome.runs[outcome.named(name)]}))


def decisions(policy):
    """One letter for each part: flushed at its first query or not."""
    return "".join("F" if flush else "-" for flush in policy)


def worst(outcomes, lengths, names):
    for name in names:
        found = sorted(points(outcomes, lengths), key=lambda p: -p[0].regret(name, p[1]))[:WORST]
        print(f"\nworst of {name}; s: serial, F: flush, p: parallel without a flush")
        for o, k in found:
            best, best_ms = o.best(k)
            print(f"{o.regret(name, k):6.1f}%  {o.ms(o.named(name), k):.0f} ms {plans(o, name, k)},"
                  f" best {best_ms:.0f} ms {plans(o, best, k)}: {o.sequence.name}")


def late_flushes(outcomes, k):
    """Is a flush at a later query ever better than the best?"""
    gains = [(100 * (o.best(k)[1] / o.ms(policy, k) - 1), policy, o)
             for o in outcomes for policy in o.runs if isinstance(policy, int)]
    if gains:
        gain, query, o = max(gains, key=lambda g: g[0])
        print(f"\nof {len(gains)} flushes at a later query, {sum(g > 5 for g, _, _ in gains)} were better"
              f" by more than 5 % than the best of those at the first or never; most: {gain:.1f} %,"
              f" query {query + 1}, {o.sequence.name}")


def write_csv(outcomes, lengths, names, path):
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["kind", "rows", "width", "pages", "selectivity", "dirty", "dirty_pages",
                         "parts", "queries", "best", "best_ms"]
                        + [f"{name}_{what}".replace(" ", "_") for name in names
                           for what in ("ms", "regret", "plans")])
        for o, k in points(outcomes, lengths):
            point = o.sequence.point
            best, best_ms = o.best(k)
            row = [point.kind, point.table.rows, point.table.width, o.pages, point.selectivity,
                   point.dirty, o.dirty_pages, o.sequence.parts, k, decisions(best), f"{best_ms:.3f}"]
            for name in names:
                row += [f"{o.ms(o.named(name), k):.3f}", f"{o.regret(name, k):.2f}", plans(o, name, k)]
            writer.writerow(row)


# for color-blind readers, too (Okabe and Ito)
COLOURS = {"default": "#D55E00", "calibrated": "#009E73", "never flush": "#999999", "flush at once": "#E69F00"}


def draw_distribution(axis, outcomes, lengths, names):
    """How many of the sequences have at most that regret."""
    for name in names:
        values = sorted(o.regret(name, k) for o, k in points(outcomes, lengths))
        axis.step(values, [100 * (i + 1) / len(values) for i in range(len(values))], where="post",
                  color=COLOURS[name],
                  label=f"{name}: {total_regret(points(outcomes, lengths), name):.0f} % in total")
    axis.axvline(TARGET, color="grey", linestyle=":")
    axis.set(xlabel="regret, % of the time of the best decisions", ylabel="% of the sequences",
             title="Sequences with at most that regret")
    axis.legend()


def draw_lengths(axis, outcomes, lengths, names):
    """The regrets by length of the sequence."""
    for i, name in enumerate(names):
        for n, k in enumerate(lengths):
            at = n + 0.16 * (i - (len(names) - 1) / 2)
            values = [o.regret(name, k) for o in outcomes]
            axis.plot([at] * len(values), values, "o", markersize=3, alpha=0.4, color=COLOURS[name])
            axis.plot(at, median(values), "_", markersize=14, markeredgewidth=2, color=COLOURS[name],
                      label=name if n == 0 else None)
    axis.axhline(TARGET, color="grey", linestyle=":")
    axis.set_xticks(range(len(lengths)), map(str, lengths))
    axis.set(xlabel="queries", ylabel="regret, %", title="By length of the sequence; bars: medians")
    axis.legend()


def plot(outcomes, lengths, names, title, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
    draw_distribution(left, outcomes, lengths, names)
    draw_lengths(right, outcomes, lengths, names)
    figure.suptitle(title, fontsize=9)
    figure.savefig(path, dpi=110)
