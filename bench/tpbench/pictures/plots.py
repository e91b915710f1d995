"""The plots of the results. Narrow enough for a telephone: panels are one below the other."""

from statistics import median

import matplotlib
from matplotlib import pyplot
from matplotlib.ticker import NullLocator, ScalarFormatter

from .tables import ALL, README, TIMES_OF, select

matplotlib.use("Agg")
matplotlib.rcParams.update({"svg.hashsalt": "temp_parallel", "font.size": 10,
                            "axes.spines.top": False, "axes.spines.right": False})

# for color-blind readers, too (Okabe and Ito)
COLOURS = {"off": "#0072B2", "flushed": "#E69F00", "on": "#D55E00", "unlogged": "#009E73"}
WIDTH = 6.4


def save(figure, path):
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def versions(results):
    """Of the servers that were measured, as text."""
    found = sorted({r.version for r in results})
    return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def speed(results, path):
    """What README begins with: three bars for each of three reports."""
    rows = README[:3]
    figure, axis = pyplot.subplots(figsize=(WIDTH, 3.4), layout="constrained")
    for row, (_, what) in enumerate(rows):
        result = next(r for r in select(results, *what) if r.version == TIMES_OF)
        for place, (name, label) in enumerate((("off", "without temp_parallel"), ("on", "with it"),
                                               ("unlogged", "unlogged table"))):
            ms = getattr(result, name)
            axis.barh(row + 0.27 * (place - 1), ms / result.off, 0.25, color=COLOURS[name],
                      label=label if row == 0 else None)
            axis.text(ms / result.off + 0.01, row + 0.27 * (place - 1), f"{ms / 1000:.2f} s",
                      va="center", fontsize=9)
    axis.set_yticks(range(len(rows)), ["first report after\na load, one table",
                                       "first report after\na load, join of two",
                                       "TPC-H, scale 1,\nall 22 queries"])
    axis.invert_yaxis()
    axis.set(xlim=(0, 1.12), xticks=[0, 0.25, 0.5, 0.75, 1])
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axis.tick_params(left=False)
    axis.set_xlabel(f"time relative to that without it; PostgreSQL {TIMES_OF}, 2 processors")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    save(figure, path)


def ratio_axis(axis, ticks):
    """Round numbers on a logarithmic axis."""
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(ticks)
    axis.set_major_formatter(ScalarFormatter())


def ratios(results, path):
    """A line for each row of the table, a dot for each version."""
    figure, axis = pyplot.subplots(figsize=(WIDTH, 7.6), layout="constrained")
    for row, (_, what) in enumerate(ALL):
        found = select(results, *what)
        for shift, name, label in ((-0.16, "off", "on / off"), (0.16, "unlogged", "on / unlogged")):
            values = [getattr(r, f"on_by_{name}") for r in found]
            values = [v for v in values if v is not None]
            axis.plot(values, [row + shift] * len(values), "o", markersize=4, alpha=0.7,
                      color=COLOURS[name], label=label if row == 0 else None)
        if row % 2:
            axis.axhspan(row - 0.5, row + 0.5, color="#f3f3f3", zorder=0)
    axis.axvline(1, color="grey", linewidth=1)
    axis.set_yticks(range(len(ALL)), [label.replace("`", "") for label, _ in ALL], fontsize=9)
    axis.set_ylim(len(ALL) - 0.5, -0.5)
    axis.set_xscale("log")
    ratio_axis(axis.xaxis, [0.4, 0.5, 0.6, 0.8, 1, 1.3, 1.7])
    axis.set_xlabel("time with workers, by that of the other way")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    save(figure, path)


def when_workers_pay(results, path):
    """Each query of TPC-H by the time that it takes without workers."""
    figure, axis = pyplot.subplots(figsize=(WIDTH, 4.2), layout="constrained")
    for output, colour, label in (("tpch_small", "#56B4E9", "scale 0.1"), ("tpch", "#0072B2", "scale 1")):
        found = select(results, output, r"q\d\d", "512MB", "Repeated runs")
        queries = [[r for r in found if r.name == name] for name in sorted({r.name for r in found})]
        axis.plot([median(r.off for r in q) for q in queries],
                  [median(r.on_by_off for r in q) for q in queries],
                  "o", color=colour, label=f"TPC-H, {label}")
        for q in queries:
            if (ratio := median(r.on_by_off for r in q)) > 1.05:
                axis.annotate(q[0].name, (median(r.off for r in q), ratio), (5, 3),
                              textcoords="offset points", fontsize=8)
    axis.axhline(1, color="grey", linewidth=1)
    axis.set_xscale("log")
    ratio_axis(axis.xaxis, [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000])
    axis.set(ylim=(0.3, None), ylabel="on / off",
             xlabel=f"ms without workers; medians of PostgreSQL {versions(results)}")
    axis.grid(alpha=0.3)
    axis.legend()
    save(figure, path)


def shared_or_written(results, path):
    """The first queries after a load, all taken together, by how many they are."""
    parts = ("one table", "join of two tables")
    figure, axes = pyplot.subplots(len(parts), 1, figsize=(WIDTH, 5.6), sharex=True,
                                   layout="constrained")
    for axis, part in zip(axes, parts):
        found = select(results, "fill_and_query", r"\d+", None, part)
        numbers = sorted({int(r.name) for r in found})
        for name, label in (("flushed", "written first"), ("on", "shared"),
                            ("unlogged", "unlogged table")):
            by_number = [[getattr(r, name) / r.off for r in found if int(r.name) == n] for n in numbers]
            axis.plot(numbers, [median(v) for v in by_number], marker="o", markersize=4,
                      color=COLOURS[name], label=label if axis is axes[0] else None)
            axis.fill_between(numbers, [min(v) for v in by_number], [max(v) for v in by_number],
                              color=COLOURS[name], alpha=0.15, linewidth=0)
        axis.axhline(1, color="grey", linewidth=1)
        axis.set(ylim=(0.3, 1.15), ylabel="time / off", title=part)
        axis.set_xticks(numbers)
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel(f"queries after the load; median and range of PostgreSQL {versions(results)}")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    save(figure, path)
