"""The ratios as a plot."""

from statistics import median

from ..common.measure import ratios, select

BASES = {"off": "tab:blue", "unlogged": "tab:orange"}
PHASES = {"first": "first run, flush included", "repeat": "repeated runs"}


def whiskers(values):
    centre = median(values)
    return [[centre - min(values)], [max(values) - centre]]


def ratio_axis(axis, label):
    """Round numbers on a logarithmic axis, instead of matplotlib's powers of ten."""
    from matplotlib.ticker import NullLocator, ScalarFormatter

    axis.set_minor_locator(NullLocator())
    axis.set_ticks([0.4, 0.5, 0.7, 1, 1.5, 2])
    axis.set_major_formatter(ScalarFormatter())
    axis.set_label_text(label)


def draw_phase(ax, runs, names, phase):
    for row, name in enumerate(names):
        for shift, (base, colour) in zip((-0.15, 0.15), BASES.items()):
            values = ratios(runs, name, phase, "on", base)
            ax.errorbar(median(values), row + shift, xerr=whiskers(values), fmt="o",
                        markersize=4, color=colour, label=f"on / {base}" if row == 0 else None)
    ax.axvline(1, color="grey", linestyle=":")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_title(PHASES[phase])
    ax.set_xscale("log")
    ratio_axis(ax.xaxis, "time with temp_parallel on by time of the other way")
    ax.legend()


def draw(runs, names, title, path):
    """A panel for each phase that was run."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = []
    for phase in PHASES:
        there = [n for n in names if select(runs, n, phase, "on")]
        if there:
            panels.append(lambda ax, phase=phase, there=there: draw_phase(ax, runs, there, phase))
    figure, axes = pyplot.subplots(1, len(panels), figsize=(5 * len(panels), 8), squeeze=False,
                                   layout="constrained")
    for ax, panel in zip(axes[0], panels):
        panel(ax)
    figure.suptitle(title, fontsize=8)
    figure.savefig(path, dpi=110)
