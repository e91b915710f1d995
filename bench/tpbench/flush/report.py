"""Tables and plots."""

import numpy as np
from matplotlib import pyplot
from scipy.stats import variation

from .rows import constants, estimate, net, original, per_page
from .steps import STEPS

RATIOS = {"write / read": ("write", "read"), "random / in order": ("random_write", "write"),
          "random read / in order": ("random_read", "read"), "scan / write": ("dry_write", "write")}
RED, ORANGE, BLUE, SKY, GREEN, PINK = "#D55E00 #E69F00 #0072B2 #56B4E9 #009E73 #CC79A7".split()
LINES = {"write": (RED, "-"), "random_write": (ORANGE, "-"), "read": (BLUE, "-"),
         "random_read": (SKY, "-"), "dry_write": (RED, ":"), "dry_read": (BLUE, ":")}
VARIANTS = {"warm": BLUE, "cold": GREEN, "tmpfs": ORANGE, "permanent": PINK}


def shown(found, digits=2):
    middle, low, high = (f"{number:.{digits}f}" for number in found)
    return middle if found[1] == found[2] else f"{middle} [{low}, {high}]"


def table(title, head, lines):
    widths = [max(map(len, column)) for column in zip(head, *lines)]
    print(f"\n{title}\n")
    for line in (head, ["-" * width for width in widths], *lines):
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))


def tables(about, variants):
    others = [s["others"].mean() for sizes in variants.values() for s in sizes.values()]
    print("\n" + "\n".join(about) + "\nshare of the processors that others used between runs: median"
          f" {np.median(others):.0%}, at most {max(others):.0%} at one size")
    fits = [("the original", original(), "write")] + [
        (f"{variant}, {step.replace('_', ' ')}", sizes, step) for variant, sizes in variants.items()
        if variant != "permanent" for step in ("write", "random_write")]
    table("flush = a x dirtied + b x allocated, in reads in order (and a time for each call)",
          ["", "a", "b"], [["the formula", "1.30", "0.01"]] + [
              [name, shown(a), shown(b, 4)] for name, sizes, step in fits
              for a, b in [constants(sizes, step)]])
    for variant, sizes in variants.items():
        table(f"{variant}: medians in ms, coefficients of variation in %",
              ["pages", "runs", "others", *STEPS],
              [[str(pages), str(len(s["read"])), f"{s['others'].mean():.0%}"]
               + [f"{np.median(s[step]):.3f} {100 * variation(s[step]):3.0f}" for step in STEPS]
               for pages, s in sizes.items()])
    for variant, sizes in [*variants.items(), ("the original", original())]:
        ratios = {name: of for name, of in RATIOS.items() if variant in VARIANTS or "random" not in name}
        table(f"{variant}: us a page, and ratios within a run; medians, 95 % intervals",
              ["pages", "write", "read", *ratios, "write / read, less dry runs"],
              [[str(pages)] + [shown(estimate(per_page(s, step))) for step in ("write", "read")]
               + [shown(estimate(per_page(s, a) / per_page(s, b)), 4 if a == "dry_write" else 2)
                  for a, b in ratios.values()]
               + [shown(estimate(net(s, "write / read")))] for pages, s in sizes.items()])
    print("\nOutliers, over 3 interquartile ranges outside the quartiles; they are in all numbers above")
    for variant, pages, s in ((v, pages, s) for v, sizes in variants.items() for pages, s in sizes.items()):
        for step in STEPS:
            low, middle, high = np.percentile(s[step], (25, 50, 75))
            reach = max(3 * (high - low), 0.002)    # more than EXPLAIN rounds off
            if found := [f"{ms:.3f} (run {n})" for n, ms in enumerate(s[step])
                         if not low - reach <= ms <= high + reach]:
                print(f"{variant}, {pages}, {step}: median {middle:.3f} ms;", *found)


def curves(name, row, variants):
    """(label, colour, style of the line, sizes, values of a size)"""
    if name == "variants":
        yield from ((v, VARIANTS[v], "-", sizes, lambda s: net(s, ("write", "read", "write / read")[row]))
                    for v, sizes in variants.items())
    for step, (colour, style) in LINES.items() if name == "per_page" else ():
        for label, sizes in (("", variants["warm"]), (", the original", original())):
            if step in next(iter(sizes.values())) and (not label or "dry" not in step):
                yield (step.replace("_", " ") + label, colour, "" if label else style, sizes,
                       lambda s: per_page(s, step))
    for step in ("write", "random_write", "random_read") if name == "ratio" else ():
        yield (f"{step} / read".replace("_", " "), LINES[step][0], "-", variants["warm"],
               lambda s: per_page(s, step) / per_page(s, "read"))
    if name == "ratio" or row == 2:
        yield ("write / read, the original", "black", "", original(), lambda s: net(s, "write / read")
               if row else per_page(s, "write") / per_page(s, "read"))


def draw(axis, name, row, variants):
    for label, colour, style, sizes, values in curves(name, row, variants):
        found = np.array([estimate(values(s)) for s in sizes.values()]).T
        axis.errorbar(list(sizes), found[0], yerr=np.abs(found[1:] - found[0]), capsize=2,
                      markersize=3 if style else 6, marker="o" if style else "x", linestyle=style,
                      linewidth=1.2, color=colour, label=label)
        if label.startswith("write / read"):
            axis.axhline(1.3, color="black", linestyle="--", label="1.30, the formula")
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1024:g}k" if x >= 1024 else f"{x:g}")
    axis.set_yscale("linear" if name == "ratio" else "log")
    axis.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    axis.yaxis.set_minor_formatter(lambda y, _: f"{y:g}" if f"{y:e}"[0] in "25" else "")
    axis.grid(alpha=0.3, which="both")


def plots(results, out):
    for name, title, labels in (
            ("per_page", "From the system's cache", ["us a page (dry write: a buffer)"]),
            ("ratio", "In reads in order from the system's cache", ["times a read in order"]),
            ("variants", "Less dry runs", ["us a page written", "us a page read", "write / read"])):
        figure, axes = pyplot.subplots(len(labels), len(results), squeeze=False, sharex=True,
                                       figsize=(2 + 4.2 * len(results), 1.2 + 3.6 * len(labels)),
                                       sharey="row", layout="constrained")
        for column, (version, (_, variants)) in zip(axes.T, results.items()):
            for row, axis in enumerate(column):
                draw(axis, name, row, variants)
            column[0].set_title(f"PostgreSQL {version}")
            column[-1].set_xlabel("pages of 8 kB in the table")
        for axis, label in zip(axes[:, 0], labels):
            axis.set_ylabel(label)
        legend = {label: handle for axis in axes.flat
                  for handle, label in zip(*axis.get_legend_handles_labels())}
        figure.legend(legend.values(), legend, loc="outside lower center", ncols=4, fontsize=9)
        figure.suptitle(title)
        figure.savefig(out / f"flush_cost_{name}.png", dpi=100, metadata={"Software": None})
