"""The times of all runs, as they are kept, and statistics of them."""

import csv
from collections import defaultdict

import numpy as np
import scipy

from .steps import STEPS

COLUMNS = ("variant", "pages", "iteration", "others", "written", "allocated", "pool", *STEPS)
# Milliseconds of the original, of 2 January 2026: medians of 30, in a pool of 110 %.
ORIGINAL = {
    512: (0.54, .002, 0.58, .016), 1024: (1.07, .003, 1.13, .028), 2048: (3.02, .004, 2.42, .054),
    4096: (6.36, .007, 4.81, .107), 8192: (12.34, .013, 9.79, .21), 16384: (24.63, .026, 19.35, .421),
    32768: (49.6, .051, 38.72, .838), 65536: (98.93, .102, 77.46, 1.681),
    131072: (283.15, .204, 180.06, 3.353), 262144: (728.18, .413, 373.46, 6.725)}


def original():
    """As an element of what load() returns, of one iteration."""
    columns = "pages written allocated write dry_write read dry_read".split()
    return {pages: dict(zip(columns, np.array([[pages, pages, 1.1 * pages, *times]]).T))
            for pages, times in ORIGINAL.items()}


def load(path):
    """The lines about the machine, and {variant: {pages: {column: array of the iterations}}}."""
    lines = path.read_text().splitlines()
    found = defaultdict(lambda: defaultdict(list))
    for row in csv.DictReader(line for line in lines if line[0] != "#"):
        found[row["variant"]][int(row["pages"])].append([float(row[c]) for c in COLUMNS[1:]])
    return [line[2:] for line in lines if line[0] == "#"], {
        variant: {pages: dict(zip(COLUMNS[1:], np.array(runs).T)) for pages, runs in sizes.items()}
        for variant, sizes in found.items()}


def per_page(size, step):
    """Microseconds a page; of a dry write, a buffer that it looks at."""
    column = {"write": "written", "dry_write": "allocated"}.get(step, "pages")
    return 1000 * size[step] / size[column]


def net(size, step):
    """The same of a write or a read, less that with nothing to do."""
    if step == "write / read":
        return net(size, "write") / net(size, "read")
    return 1000 * np.maximum(size[step] - size["dry_" + step], 1e-6) / size["pages"]


def estimate(values):
    """The median and its 95 % bootstrap interval. The same rows give the same."""
    if len(values) < 2:
        return np.median(values).repeat(3)
    drawn = scipy.stats.bootstrap([values], np.median, n_resamples=1999, method="percentile", rng=1)
    return np.array([np.median(values), *drawn.confidence_interval])


def constants(sizes, step="write"):
    """By which a dirtied page and an allocated buffer add to the time of a flush, in reads in
    order: [(value, low, high), ...]. A call's own time is a third term of each."""
    dirtied, pool = ("written", "allocated") if step == "write" else ("pages", "pool")

    def fit(terms, times):      # the sum of the squares of relative errors is least
        return scipy.optimize.nnls(np.array(terms).T / np.array(times)[:, None], np.ones(len(times)))[0]

    def of(chosen):
        middle = {column: [np.median(size[column][chosen]) for size in sizes.values()]
                  for column in {"pages", "read", "dry_write", "allocated", step, dirtied, pool}}
        one, none = [1] * len(sizes), [0] * len(sizes)
        read = fit([one, middle["pages"]], middle["read"])[1]
        return fit([one + one, middle[dirtied] + none, middle[pool] + middle["allocated"]],
                   middle[step] + middle["dry_write"])[1:] / read

    n, rng = min(len(size["read"]) for size in sizes.values()), np.random.default_rng(1)
    drawn = [of(rng.integers(0, n, n)) for _ in range(500)]
    return list(zip(of(np.arange(n)), *np.percentile(drawn, (2.5, 97.5), axis=0)))
