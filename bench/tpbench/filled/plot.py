"""The times as a plot."""

from statistics import median

from .report import ARMS
from .sequence import WORKLOADS

# for color-blind readers, too (Okabe and Ito)
COLOURS = {"off": "#0072B2", "flushed": "#E69F00", "on": "#D55E00", "unlogged": "#009E73"}


def draw_workload(axis, sequences, name):
    for arm in ARMS:
        of_arm = [s for s in sequences if (s.workload, s.arm) == (name, arm)]
        times = [[s.queries[i].ms for s in of_arm] for i in range(len(of_arm[0].queries))]
        centres = [median(t) for t in times]
        axis.errorbar(range(1, len(times) + 1), centres,
                      yerr=[[c - min(t) for c, t in zip(centres, times)],
                            [max(t) - c for c, t in zip(centres, times)]],
                      marker="o", markersize=4, capsize=2, color=COLOURS[arm], label=arm)
    axis.set(xlabel="query after the load", ylabel="ms", ylim=(0, None),
             title=WORKLOADS[name].title)
    axis.set_xticks(range(1, len(times) + 1))
    axis.grid(alpha=0.3)
    axis.legend()


def draw(sequences, title, path):
    """A panel for each workload: the time of each query, median and range of the rounds."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(s.workload for s in sequences))
    figure, axes = pyplot.subplots(1, len(names), figsize=(5 * len(names), 4.5), squeeze=False,
                                   layout="constrained")
    for axis, name in zip(axes[0], names):
        draw_workload(axis, sequences, name)
    figure.suptitle(title, fontsize=8)
    figure.savefig(path, dpi=110)
