"""The tables, the CSV files and the plots."""

import csv
from statistics import mean, median

from ..common.measure import rule
from .policy import total_regret

CLEAR = 1.05            # a choice is clearly better if the other one takes this many times as long
TARGET = 5              # % of regret of choices
TARGET_SEQUENCE = 25    # of sequences
WORST = 8               # sequences that are listed

# for color-blind readers, too (Okabe and Ito)
COLOURS = {"default": "#D55E00", "calibrated": "#009E73", "never flush": "#999999", "flush at once": "#E69F00"}
MARKERS = {"scan": "o", "join": "^", "insert": "s"}

DIMENSIONS = {
    "rows": lambda o: o.point.table.rows,
    "width": lambda o: o.point.table.width,
    "kind": lambda o: o.point.kind,
    "selectivity": lambda o: o.point.selectivity,
    "dirty": lambda o: o.point.dirty,
}


def best_ms(outcomes):
    return sum(o.best_ms for o in outcomes)


def by_dimension(outcomes, dimensions, heads, note, cells):
    """Where the regret comes from; cells: what is printed of a part of the outcomes."""
    print(f"\n{'':22}{'best ms':>10}{heads}   {note}")
    for title, key in dimensions.items():
        for part in sorted({key(o) for o in outcomes}):
            chosen = [o for o in outcomes if key(o) == part]
            print(f"{title:12}{part!s:>10}{best_ms(chosen):10.0f}{cells(chosen)}")


def write_csv(path, outcomes, columns, values):
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["kind", "rows", "width", "pages", "selectivity", "dirty", "dirty_pages"] + columns)
        for o in outcomes:
            point = o.point
            writer.writerow([point.kind, point.table.rows, point.table.width, o.pages,
                             point.selectivity, point.dirty, o.dirty_pages] + values(o))


def plot(title, path, left, right):
    """Two axes, each drawn by a function."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
    left(axes[0])
    right(axes[1])
    figure.suptitle(title, fontsize=9)
    figure.savefig(path, dpi=110)


# ----------
# Choices of plans for single queries
# ----------

def choices(outcomes, names, rungs):
    head = f"{'policy':24}{'parallel':>9}{'time ms':>10}{'lost ms':>9}{'regret':>9}" \
        f"{'wrong':>7}{'clearly':>9}  worst"
    print(f"\n{len(outcomes)} points, the better choice takes {best_ms(outcomes):.0f} ms\n{head}")
    rule(head)
    best = min(rungs, key=lambda costs: total_regret(outcomes, costs))
    for policy in names + ["never parallel", "always parallel", best]:
        name = f"best write cost, {best[0]:.2g}" if policy == best else policy
        lost = [o.lost_ms(policy) for o in outcomes]
        where = max(outcomes, key=lambda o: o.lost_ms(policy))
        print(f"{name:24}{sum(o.parallel[policy] for o in outcomes):9}"
              f"{sum(o.ms(policy) for o in outcomes):10.0f}"
              f"{sum(lost):9.0f}{total_regret(outcomes, policy):8.1f}%{sum(ms > 0 for ms in lost):7}"
              f"{sum(o.ms(policy) > CLEAR * o.best_ms for o in outcomes):9}"
              f"  {max(lost):.0f} ms: {where.point.name}")
    other = ", ".join(f"{name} {sum(not o.same_plan[name] for o in outcomes)}" for name in names)
    print("\nregret: time lost in % of what the better choices take. wrong: points with a loss;"
          f"\nclearly: with a loss of more than {CLEAR - 1:.0%}. Chosen plans that are neither of the two"
          f" that were timed: {other}")
    by_dimension(outcomes, DIMENSIONS, "".join(f"{name:>12}" for name in names),
                 "regret in % of the time of these points",
                 lambda part: "".join(f"{total_regret(part, name):11.1f}%" for name in names))


def break_even(outcome, rungs):
    """The highest write cost on the ladder with which the plan is parallel."""
    return max((costs[0] for costs in rungs if outcome.parallel[costs]), default=0)


def write_choices(outcomes, names, rungs, path):
    write_csv(path, outcomes, ["serial_ms", "parallel_ms", "break_even_write_cost"]
              + [f"{name}_{what}" for name in names for what in ("choice", "lost_ms", "timed_plan")],
              lambda o: [f"{o.serial_ms:.3f}", f"{o.parallel_ms:.3f}", f"{break_even(o, rungs):.4g}"]
              + [cell for name in names for cell in (
                  "parallel" if o.parallel[name] else "serial", f"{o.lost_ms(name):.3f}",
                  "yes" if o.same_plan[name] else "no")])


def draw_regret(axis, outcomes, costs, rungs):
    """The regret by write cost."""
    axis.plot([c[0] for c in rungs], [total_regret(outcomes, c) for c in rungs], color="tab:blue")
    for name, (write, *_) in costs.items():
        axis.axvline(write, color=COLOURS[name], linestyle="--",
                     label=f"{name}: {write:g}, regret {total_regret(outcomes, name):.1f} %")
    axis.axhline(TARGET, color="grey", linestyle=":", label=f"target, {TARGET} %")
    axis.set(xscale="log", xlabel="temp_parallel.write_temp_page_cost",
             ylabel="regret, % of the time of the better choices", ylim=(0, None),
             title="Time lost by the planner's choices")
    axis.legend()


def draw_points(axis, outcomes, costs, rungs):
    """Each point of the grid: what workers gain, and up to which write cost the planner
    uses them."""
    from matplotlib import pyplot
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    least, most = rungs[0][0], rungs[-1][0]
    low, high = least / 2, most * 2
    shown = {}
    for kind, marker in MARKERS.items():
        for o in outcomes:
            if o.point.kind != kind:
                continue
            at = break_even(o, rungs)
            at = low if at == 0 else high if at == most else at
            shown[kind] = axis.scatter(
                o.serial_ms / o.parallel_ms, at, marker=marker, alpha=0.7, edgecolor="black",
                linewidth=0.5, s=20 + o.serial_ms / 4, c=[o.point.dirty], cmap="viridis",
                vmin=0, vmax=1)
    for name, (write, *_) in costs.items():
        axis.axhline(write, color=COLOURS[name], linestyle="--", label=name)
    axis.axvline(1, color="grey", linestyle=":")
    axis.set(xscale="log", yscale="log", ylim=(low / 2, high * 2),
             xlabel="serial time / parallel time, flush included",
             ylabel="write cost up to which the planner goes parallel",
             title="Right of 1 and above the line, or left and below: the right choice\n"
                   "(top edge: always parallel, bottom: never; larger: slower)")
    axis.xaxis.set_major_locator(FixedLocator([0.4, 0.5, 0.6, 0.8, 1, 1.2, 1.4, 1.6, 2]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(ScalarFormatter())
    handles = [pyplot.Line2D([], [], color="grey", marker=MARKERS[k], linestyle="", label=k)
               for k in shown]
    axis.legend(handles=handles + axis.get_legend_handles_labels()[0], loc="lower right")
    axis.figure.colorbar(next(iter(shown.values())), ax=axis, label="fraction of the pages that is dirty")


def plot_choices(outcomes, costs, rungs, title, path):
    plot(title, path, lambda axis: draw_regret(axis, outcomes, costs, rungs),
         lambda axis: draw_points(axis, outcomes, costs, rungs))


# ----------
# Decisions to flush over sequences
# ----------

def sequences(outcomes, names, deciding):
    lengths = list(dict.fromkeys(o.queries for o in outcomes))
    head = f"{'policy':24}{'time ms':>10}{'total':>9}{'median':>9}{'mean':>9}{'max':>9}" \
        f"{f'over {TARGET_SEQUENCE} %':>11}  worst"
    print(f"\n{len(outcomes) // len(lengths)} sequences, of which the first {', '.join(map(str, lengths))}"
          f" queries count; the best decisions take {best_ms(outcomes):.0f} ms\n{head}")
    rule(head)
    for name in names:
        values = [o.regret(name) for o in outcomes]
        where = max(outcomes, key=lambda o: o.regret(name))
        print(f"{name:24}{sum(o.ms(name) for o in outcomes):10.0f}{total_regret(outcomes, name):8.1f}%"
              f"{median(values):8.1f}%{mean(values):8.1f}%{max(values):8.1f}%"
              f"{sum(r > TARGET_SEQUENCE for r in values):11}  k = {where.queries}: {where.point.name}")
    print("\nregret: time lost in % of what the best decisions take; total, of the sums of times")
    by_dimension(outcomes, {"queries": lambda o: o.queries} | DIMENSIONS | {"parts": lambda o: o.point.parts},
                 "".join(f"{name:>20}" for name in names), "total and largest regret",
                 lambda part: "".join(
                     f"{total_regret(part, name):10.1f}%{max(o.regret(name) for o in part):8.1f}%"
                     for name in names))
    for name in deciding:
        print(f"\nworst of {name}; s: serial, F: flush, p: parallel without a flush")
        for o in sorted(outcomes, key=lambda o: -o.regret(name))[:WORST]:
            print(f"{o.regret(name):6.1f}%  {o.ms(name):.0f} ms {o.plans(name)},"
                  f" best {o.best_ms:.0f} ms {o.plans(o.best)}: {o.point.name}")
    late_flushes([o for o in outcomes if o.queries == max(lengths)])


def late_flushes(outcomes):
    """Is a flush at a later query ever better than the best?"""
    gains = [(100 * (o.best_ms / o.ms(policy) - 1), policy, o)
             for o in outcomes for policy in o.runs if isinstance(policy, int)]
    if gains:
        gain, query, o = max(gains, key=lambda g: g[0])
        print(f"\nof {len(gains)} flushes at a later query, {sum(g > 5 for g, _, _ in gains)} were better"
              f" by more than 5 % than the best of those at the first or never; most: {gain:.1f} %,"
              f" query {query + 1}, {o.point.name}")


def write_sequences(outcomes, names, path):
    write_csv(path, outcomes, ["parts", "queries", "best", "best_ms"]
              + [f"{name}_{what}".replace(" ", "_") for name in names for what in ("ms", "regret", "plans")],
              # one letter for each part: flushed at its first query or not
              lambda o: [o.point.parts, o.queries, "".join("F" if flush else "-" for flush in o.best),
                         f"{o.best_ms:.3f}"]
              + [cell for name in names for cell in (
                  f"{o.ms(name):.3f}", f"{o.regret(name):.2f}", o.plans(name))])


def draw_distribution(axis, outcomes, names):
    """How many of the sequences have at most that regret."""
    for name in names:
        values = sorted(o.regret(name) for o in outcomes)
        axis.step(values, [100 * (i + 1) / len(values) for i in range(len(values))], where="post",
                  color=COLOURS[name], label=f"{name}: {total_regret(outcomes, name):.0f} % in total")
    axis.axvline(TARGET_SEQUENCE, color="grey", linestyle=":")
    axis.set(xlabel="regret, % of the time of the best decisions", ylabel="% of the sequences",
             title="Sequences with at most that regret")
    axis.legend()


def draw_lengths(axis, outcomes, names):
    """The regrets by length of the sequence."""
    lengths = list(dict.fromkeys(o.queries for o in outcomes))
    for i, name in enumerate(names):
        for n, k in enumerate(lengths):
            at = n + 0.16 * (i - (len(names) - 1) / 2)
            values = [o.regret(name) for o in outcomes if o.queries == k]
            axis.plot([at] * len(values), values, "o", markersize=3, alpha=0.4, color=COLOURS[name])
            axis.plot(at, median(values), "_", markersize=14, markeredgewidth=2, color=COLOURS[name],
                      label=name if n == 0 else None)
    axis.axhline(TARGET_SEQUENCE, color="grey", linestyle=":")
    axis.set_xticks(range(len(lengths)), map(str, lengths))
    axis.set(xlabel="queries", ylabel="regret, %", title="By length of the sequence; bars: medians")
    axis.legend()


def plot_sequences(outcomes, names, title, path):
    plot(title, path, lambda axis: draw_distribution(axis, outcomes, names),
         lambda axis: draw_lengths(axis, outcomes, names))
