"""The tables, the CSV file and the plot."""

import csv

from .policy import regret

CLEAR = 1.05        # a choice is clearly better if the other one takes this many times as long
TARGET = 5          # % of regret


def policies(outcomes, names, rungs):
    """Name and chooser of each policy: the planner's, and some for comparison."""
    best = min(range(len(rungs)), key=lambda i: regret(outcomes, lambda o: o.steps[i]))
    planner = [(name, lambda o, name=name: o.parallel[name]) for name in names]
    return planner + [
        ("never parallel", lambda o: False),
        ("always parallel", lambda o: True),
        (f"best write cost, {rungs[best][0]:.2g}", lambda o: o.steps[best]),
    ]


def summary(outcomes, names, rungs):
    head = f"{'policy':24}{'parallel':>9}{'time ms':>10}{'lost ms':>9}{'regret':>9}" \
        f"{'wrong':>7}{'clearly':>9}  worst"
    print(f"\n{len(outcomes)} points, the better choice takes"
          f" {sum(o.best_ms for o in outcomes):.0f} ms\n{head}\n" + "-" * len(head))
    for name, chosen in policies(outcomes, names, rungs):
        time = sum(o.ms(chosen(o)) for o in outcomes)
        lost = [(o.ms(chosen(o)) - o.best_ms, o) for o in outcomes]
        worst, where = max(lost, key=lambda pair: pair[0])
        print(f"{name:24}{sum(chosen(o) for o in outcomes):9}{time:10.0f}"
              f"{sum(ms for ms, _ in lost):9.0f}{regret(outcomes, chosen):8.1f}%"
              f"{sum(ms > 0 for ms, _ in lost):7}"
              f"{sum(o.ms(chosen(o)) > CLEAR * o.best_ms for o in outcomes):9}"
              f"  {worst:.0f} ms: {where.point.name}")
    other = ", ".join(f"{name} {sum(not o.same_plan[name] for o in outcomes)}" for name in names)
    print("\nregret: time lost in % of what the better choices take. wrong: points with a loss;"
          f"\nclearly: with a loss of more than {CLEAR - 1:.0%}. Chosen plans that are neither of the two"
          f" that were timed: {other}")


def by_dimension(outcomes, names):
    """Where the regret comes from."""
    dimensions = {
        "rows": lambda o: o.point.table.rows,
        "width": lambda o: o.point.table.width,
        "kind": lambda o: o.point.kind,
        "selectivity": lambda o: o.point.selectivity,
        "dirty": lambda o: o.point.dirty,
    }
    print(f"\n{'':22}{'best ms':>10}" + "".join(f"{name:>12}" for name in names)
          + "   regret in % of the time of these points")
    for title, key in dimensions.items():
        for part in sorted({key(o) for o in outcomes}):
            chosen = [o for o in outcomes if key(o) == part]
            print(f"{title:12}{part!s:>10}{sum(o.best_ms for o in chosen):10.0f}" + "".join(
                f"{regret(chosen, lambda o: o.parallel[name]):11.1f}%" for name in names))


def break_even(outcome, rungs):
    """The highest write cost on the ladder with which the plan is parallel."""
    return max((costs[0] for costs, parallel in zip(rungs, outcome.steps) if parallel),
               default=0)


def write_csv(outcomes, names, rungs, path):
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["kind", "rows", "width", "pages", "selectivity", "dirty", "dirty_pages",
                         "serial_ms", "parallel_ms", "break_even_write_cost"]
                        + [f"{name}_{what}" for name in names
                           for what in ("choice", "lost_ms", "timed_plan")])
        for o in outcomes:
            row = [o.point.kind, o.point.table.rows, o.point.table.width, o.pages,
                   o.point.selectivity, o.point.dirty, o.dirty_pages,
                   f"{o.serial_ms:.3f}", f"{o.parallel_ms:.3f}", f"{break_even(o, rungs):.4g}"]
            for name in names:
                row += ["parallel" if o.parallel[name] else "serial", f"{o.lost_ms(name):.3f}",
                        "yes" if o.same_plan[name] else "no"]
            writer.writerow(row)


COLOURS = {"default": "tab:red", "calibrated": "tab:green"}
MARKERS = {"scan": "o", "join": "^", "insert": "s"}


def draw_regret(axis, outcomes, costs, rungs):
    """The regret by write cost."""
    axis.plot([c[0] for c in rungs],
              [regret(outcomes, lambda o: o.steps[i]) for i in range(len(rungs))], color="tab:blue")
    for name, (write, _) in costs.items():
        at = regret(outcomes, lambda o: o.parallel[name])
        axis.axvline(write, color=COLOURS[name], linestyle="--",
                     label=f"{name}: {write:g}, regret {at:.1f} %")
    axis.axhline(TARGET, color="grey", linestyle=":", label=f"target, {TARGET} %")
    axis.set(xscale="log", xlabel="temp_parallel.write_temp_page_cost",
             ylabel="regret, % of the time of the better choices", ylim=(0, None),
             title="Time lost by the planner's choices")
    axis.legend()


def draw_points(axis, outcomes, costs, rungs):
    """Each point of the grid: what workers gain, and up to which write cost the planner
    uses them. Returns the points, for the legend of their colours."""
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
    for name, (write, _) in costs.items():
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
    return next(iter(shown.values()))


def plot(outcomes, costs, rungs, title, path):
    """Left, the regret; right, the points of the grid."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
    draw_regret(left, outcomes, costs, rungs)
    coloured = draw_points(right, outcomes, costs, rungs)
    figure.colorbar(coloured, ax=right, label="fraction of the pages that is dirty")
    figure.suptitle(title, fontsize=9)
    figure.savefig(path, dpi=110)
