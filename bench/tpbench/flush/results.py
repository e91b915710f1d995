"""The samples by variant, size and step, and what follows from them: times per page,
and times relative to a sequential read."""

from collections import defaultdict

from . import summary

# The defaults of write_temp_page_cost and buffer_scan_cost.
WRITE_COST, SCAN_COST = 1.30, 0.01
# From this size on, the fixed cost of a call is small compared with its pages.
OVERALL_FROM = 1024

VARIANTS = {
    "plain": "temporary table, reads from the system's cache",
    "cold": "temporary table, evicted from the system's cache before it is read",
    "tmpfs": "temporary table in a tablespace on tmpfs",
    "permanent": "control: permanent table, evicted by pg_buffercache_evict()",
}


class Size:
    """The iterations of one variant at one size, in order."""

    def __init__(self, variant, pages, samples):
        self.variant, self.pages = variant, pages
        by_step = defaultdict(dict)
        for s in samples:
            by_step[s.step][s.iteration] = s
        self.order = sorted(by_step["write"])
        self.steps = {step: [found[i] for i in self.order] for step, found in by_step.items()}
        self.loads = [s.load for s in self.steps["write"]]

    def ms(self, step):
        return [s.ms for s in self.steps[step]]

    def _each(self, step):
        """Milliseconds per page; per buffer of the pool where the pool is scanned and nothing
        is written. A flush also writes pages of the free space map. What a read writes
        (in the control, a page of another table) does not count."""
        def count(s):
            if step in ("write", "random_write"):
                return s.written
            if step == "dry_write" and self.variant != "permanent":
                return s.pool
            return s.pages
        return [s.ms / count(s) for s in self.steps[step]]

    def micros(self, step):
        return [1000 * ms for ms in self._each(step)]

    def ratios(self, step, base="read"):
        """By iteration, so that a slow second of the machine affects both."""
        return [a / b for a, b in zip(self._each(step), self._each(base))]

    def net_ratios(self):
        """Write / read, each less its dry run."""
        net = (self._each(s) for s in ("write", "dry_write", "read", "dry_read"))
        return [(w - dw) / max(r - dr, 1e-9) for w, dw, r, dr in zip(*net)]

    def outliers(self, step):
        return [(self.order[i], self.ms(step)[i]) for i in summary.outliers(self.ms(step))]

    def noted(self, name):
        return [getattr(s, name) for step in ("read", "random_read") for s in self.steps[step]
                if getattr(s, name) is not None]


def by_size(samples):
    """{variant: [Size, ...]}, in the order of VARIANTS and by size."""
    groups = defaultdict(list)
    for s in samples:
        groups[s.variant, s.pages].append(s)
    results = {}
    for variant in VARIANTS:
        sizes = [Size(variant, pages, found) for (v, pages), found in sorted(groups.items())
                 if v == variant]
        if sizes:
            results[variant] = sizes
    return results


def overall(sizes, ratios):
    """One number for a variant, over the larger sizes if there are any."""
    chosen = [s for s in sizes if s.pages >= OVERALL_FROM] or sizes
    return summary.estimate_over([ratios(s) for s in chosen])
