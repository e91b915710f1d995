"""The plots of bench/flush_cost: time per page by size, and write / read."""

import matplotlib

matplotlib.use("Agg")   # needs no display

from matplotlib import pyplot  # noqa: E402  after choosing the backend
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

from . import summary  # noqa: E402
from .results import VARIANTS, WRITE_COST  # noqa: E402

STEPS = {       # colours for color-blind readers, too (Okabe and Ito)
    "write": ("write", "#D55E00", "-"),
    "random_write": ("write, read in random order before", "#E69F00", "-"),
    "read": ("read", "#0072B2", "-"),
    "random_read": ("read in random order", "#56B4E9", "-"),
    "dry_write": ("dry write", "#D55E00", ":"),
    "dry_read": ("dry read", "#0072B2", ":"),
}
COLOURS = {"plain": "#0072B2", "cold": "#009E73", "tmpfs": "#E69F00", "permanent": "#CC79A7"}


def short(pages):
    return f"{pages / 1024:g}k" if pages >= 1024 else f"{pages:g}"


def sizes_on(axis, sizes):
    axis.set_xscale("log", base=2)
    axis.set_xticks(sorted({s.pages for s in sizes}))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda pages, _: short(pages)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("pages of 8 kB in the table")
    axis.grid(alpha=0.3)


def with_interval(axis, sizes, values, **style):
    found = [summary.estimate(values(s)) for s in sizes]
    axis.errorbar([s.pages for s in sizes], [e.median for e in found],
                  yerr=[[e.median - e.low for e in found], [e.high - e.median for e in found]],
                  capsize=3, marker="o", markersize=3.5, linewidth=1.3, **style)


def save(figure, path):
    # Without the name and version of the software, so that the same rows give the same
    # file.
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)


def per_page(results, path, title):
    columns = min(2, len(results))
    rows = -(-len(results) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(6.2 * columns, 4 * rows + 0.8),
                                   squeeze=False, sharey=True, layout="constrained")
    for axis in axes.flat[len(results):]:
        axis.set_visible(False)
    for axis, (variant, sizes) in zip(axes.flat, results.items()):
        for step, (label, colour, line) in STEPS.items():
            with_interval(axis, sizes, lambda s, step=step: [max(t, 1e-3) for t in s.micros(step)],
                          label=label, color=colour, linestyle=line)
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        sizes_on(axis, sizes)
        axis.tick_params(labelleft=True)
        axis.set_ylabel("µs per page")
        axis.set_title(f"{variant}: {VARIANTS[variant]}", fontsize=9)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    figure.suptitle(f"Time per page, medians with 95 % intervals\n{title}", fontsize=10)
    save(figure, path)


def ratio(results, path, title):
    figure, axes = pyplot.subplots(1, 2, figsize=(12, 4.8), sharey=True, layout="constrained")
    everything = [s for sizes in results.values() for s in sizes]
    for axis, step, what in ((axes[0], "write", "write / sequential read"),
                             (axes[1], "random_write",
                              "write of a randomly filled pool / sequential read")):
        for variant, sizes in results.items():
            with_interval(axis, sizes, lambda s, step=step: s.ratios(step), label=variant,
                          color=COLOURS[variant])
        axis.axhline(WRITE_COST, color="black", linestyle="--", linewidth=1,
                     label=f"{WRITE_COST:.2f}, the formula")
        axis.axhline(1, color="grey", linewidth=0.8)
        sizes_on(axis, everything)
        axis.tick_params(labelleft=True)
        axis.set_title(what, fontsize=10)
    # Both share the axis, and this ends its autoscaling: so only after both are drawn.
    axes[0].set_ylim(bottom=0)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
    figure.suptitle("Time of writing a page / reading one sequentially: medians of the runs' ratios,"
                    f" with 95 % intervals\n{title}", fontsize=10)
    save(figure, path)
