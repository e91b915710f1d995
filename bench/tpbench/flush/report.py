"""The tables of bench/flush_cost, in Markdown."""

from . import summary
from .results import OVERALL_FROM, SCAN_COST, VARIANTS, WRITE_COST, overall
from .steps import STEPS

SCAN = 4    # digits of the cost per buffer


def table(head, rows):
    """A table with numbers aligned to the right, padded for reading on a terminal."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells):
        return "| " + " | ".join(c.rjust(w) for c, w in zip(cells, widths)) + " |"

    return [line(head), "| " + " | ".join("-" * (w - 1) + ":" for w in widths) + " |",
            *map(line, rows), ""]


def megabytes(pages):
    return f"{pages / 128:g} MB"


def times(sizes):
    """Milliseconds for the whole table."""
    def cell(size, step):
        values = size.ms(step)
        return f"{summary.np.median(values):.3f}", f"{summary.variation(values):.0f} %"

    head = ["pages", "size", "runs"]
    for title in ("write", "dry write", "read", "dry read", "random read", "random write"):
        head += [title, "CV"]
    rows = []
    for size in sizes:
        row = [str(size.pages), megabytes(size.pages), str(len(size.order))]
        for step in ("write", "dry_write", "read", "dry_read", "random_read", "random_write"):
            row += cell(size, step)
        rows.append(row)
    return ["Medians in ms, and the coefficient of variation of the runs:", "", *table(head, rows)]


def costs(sizes):
    """What a cost model needs: costs relative to a sequential read."""
    permanent = sizes[0].variant == "permanent"
    head = ["pages", "write µs/page", "read µs/page", "write / read", "less dry runs",
            "random write / read", "clean page evicted / read" if permanent
            else "buffer scanned / read"]
    rows = [[str(size.pages),
             f"{summary.estimate(size.micros('write')):.2f}",
             f"{summary.estimate(size.micros('read')):.2f}",
             f"{summary.estimate(size.ratios('write')):.2f}",
             f"{summary.estimate(size.net_ratios()):.2f}",
             f"{summary.estimate(size.ratios('random_write')):.2f}",
             f"{summary.estimate(size.ratios('dry_write')):.{SCAN}f}"] for size in sizes]
    return ["Per page, medians with their 95 % bootstrap intervals; ratios are taken within each"
            " run:", "", *table(head, rows)]


def outliers(sizes):
    rows = []
    for size in sizes:
        for step in STEPS:
            found = size.outliers(step)
            if found:
                rows.append([str(size.pages), step.replace("_", " "),
                             f"{summary.np.median(size.ms(step)):.3f}",
                             ", ".join(f"{ms:.3f} (run {i})" for i, ms in found)])
    measured = sum(len(size.order) * len(STEPS) for size in sizes)
    count = sum(len(size.outliers(step)) for size in sizes for step in STEPS)
    text = (f"Outliers: {count} of {measured} measurements lie more than {summary.FENCE}"
            " interquartile ranges outside the quartiles. All numbers above include them.")
    if not rows:
        return [text, ""]
    return [text, "", *table(["pages", "step", "median ms", "ms"], rows)]


def notes(sizes):
    """How busy the machine was, and what the preparation of the reads found."""
    loads = [load for size in sizes for load in size.loads]
    lines = [f"Load average of the minute before a run: median {summary.np.median(loads):.1f}, at"
             f" most {max(loads):.1f}; the benchmark itself accounts for 1."]
    left = [n / size.pages for size in sizes for n in size.noted("left_by_filler")]
    if left:
        some = sum(n > 0 for n in left)
        lines.append(f"Filling the pool with another table left pages of the first one in it"
                     f" {some} times out of {len(left)}, at most {max(left):.0%} of them;"
                     " pg_evict_local_buffers() evicted these.")
    cached = [n / size.pages for size in sizes for n in size.noted("still_cached")]
    if cached:
        lines.append(f"After the advice to drop a table from its cache, the kernel still had at most"
                     f" {max(cached):.1%} of its pages.")
    return [line for text in lines for line in (text, "")]


def conclusions(results):
    """The two constants as measured, one line for each variant."""
    head = ["variant", "sizes", "write / read", "less dry runs", "random write / read",
            "random read / read", "buffer scanned / read"]
    rows = []
    for variant, sizes in results.items():
        chosen = [s for s in sizes if s.pages >= OVERALL_FROM] or sizes
        rows.append([variant, f"{chosen[0].pages} to {chosen[-1].pages}",
                     *(f"{overall(sizes, ratios):.2f}" for ratios in (
                         lambda s: s.ratios("write"), lambda s: s.net_ratios(),
                         lambda s: s.ratios("random_write"), lambda s: s.ratios("random_read"))),
                     "" if variant == "permanent" else
                     f"{overall(sizes, lambda s: s.ratios('dry_write')):.{SCAN}f}"])
    return [f"Geometric means over the sizes from {OVERALL_FROM} pages up, with 95 % bootstrap"
            f" intervals. The formula has {WRITE_COST:.2f} for a write (here write / read) and"
            f" {SCAN_COST:.2f} for an allocated buffer (here buffer scanned / read).", "",
            *table(head, rows)]


def markdown(about, results):
    lines = ["## Machine", "", *(f"- {name}: {text}" for name, text in about["machine"].items()),
             *(f"- Command: `{command}`" for command in about["commands"]), "",
             "## In short", "", *conclusions(results)]
    for variant, sizes in results.items():
        lines += [f"## {variant}: {VARIANTS[variant]}", "", *times(sizes), *costs(sizes),
                  *notes(sizes), *outliers(sizes)]
    return "\n".join(lines).rstrip() + "\n"
