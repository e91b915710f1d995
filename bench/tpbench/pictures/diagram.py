"""Who reads which page where, as a drawing."""

from matplotlib import pyplot
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from .plots import WIDTH, save

CLEAN, DIRTY, INK = "#cfe3f2", "#D55E00", "#333333"
# pages of the table: which are in the pool, and which of these are dirty
POOLED, CHANGED = (0, 1, 2, 3, 4), (3, 4)


def box(axis, x, y, width, height, title):
    axis.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.12",
                                  facecolor="white", edgecolor="#888888"))
    axis.text(x + 0.12, y + height - 0.16, title, va="top", fontsize=9, color=INK)


def pages(axis, x, y, numbers, dirty=(), stale=()):
    """Where each is: the number of the page, colored if it is changed; grey where it is old."""
    places = {}
    for place, number in enumerate(numbers):
        colour = DIRTY if number in dirty else "#dddddd" if number in stale else CLEAN
        axis.add_patch(Rectangle((x + 0.42 * place, y), 0.36, 0.46, facecolor=colour,
                                 edgecolor="#777777", linewidth=0.7))
        axis.text(x + 0.42 * place + 0.18, y + 0.23, str(number + 1), ha="center", va="center",
                  fontsize=8, color="white" if number in dirty else "#666666" if number in stale else INK)
        places[number] = (x + 0.42 * place + 0.18, y)
    return places


def arrow(axis, start, end, text, at, colour=INK, bend=0):
    axis.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=11, color=colour,
                                   linewidth=1.4, connectionstyle=f"arc3,rad={bend}",
                                   shrinkA=2, shrinkB=2))
    axis.text(*at, text, fontsize=8.5, color=colour, ha="left", va="center")


def panel(axis, title, shared):
    axis.set(xlim=(-0.05, 9.25), ylim=(0, 4.85), aspect="equal")
    axis.axis("off")
    axis.text(0, 4.7, title, fontsize=10.5, weight="bold", va="center")
    box(axis, 0, 2.75, 4.2, 1.6, "leader: its local buffers")
    in_pool = pages(axis, 0.3, 2.95, POOLED, dirty=CHANGED if shared else ())
    box(axis, 0, 0.1, 4.2, 1.6, "the table's file")
    in_file = pages(axis, 0.3, 0.3, range(8), stale=CHANGED if shared else ())
    box(axis, 6.2, 0.1, 3.0, 4.25, "workers: own local buffers")
    for worker, (y, own) in enumerate(((2.55, (3, 0, 6)), (0.75, (4, 1, 7)))):
        axis.text(6.5, y + 0.75, f"worker {worker + 1}", fontsize=8.5, color=INK)
        pages(axis, 6.5, y, own, dirty=CHANGED if shared else ())
    if shared:
        arrow(axis, (4.2, 3.3), (6.2, 3.3), "dirty pages,\nmapped", (4.4, 3.72), DIRTY)
    else:
        for number in CHANGED:
            arrow(axis, in_pool[number], (in_file[number][0], 0.78), "", (0, 0), DIRTY)
        axis.text(2.3, 2.2, "1. written", fontsize=8.5, color=DIRTY, va="center")
    arrow(axis, (4.2, 0.9), (6.2, 0.9), "all other pages,\ncopied" if shared else "2. all pages,\ncopied",
          (4.4, 1.35))
    arrow(axis, (0.6, 1.7), (0.6, 2.75), "read", (0.72, 2.2))


def draw(path):
    figure, axes = pyplot.subplots(2, 1, figsize=(WIDTH, 6.9), layout="constrained")
    panel(axes[0], "Shared: workers read dirty pages in the leader's memory", True)
    panel(axes[1], "Written: the leader writes them first", False)
    save(figure, path)
