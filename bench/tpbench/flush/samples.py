"""The raw rows of bench/flush_cost, one per measured step, in a CSV file that grows
by complete iterations, so that a run can be resumed."""

import csv
import os
from dataclasses import asdict, dataclass, fields
from typing import Optional


@dataclass(frozen=True)
class Sample:
    variant: str
    pages: int          # of the table
    pool: int           # buffers of the pool
    iteration: int      # from 1; warm-ups are not kept
    load: float         # the machine's load average of the minute before
    step: str
    ms: float
    hit: int
    read: int
    dirtied: int
    written: int
    # Before a read: pages that were left in the pool after filling it with another
    # table, and, for cold reads, pages still in the kernel's cache after the advice to
    # drop them.
    left_by_filler: Optional[int] = None
    still_cached: Optional[int] = None


COLUMNS = [f.name for f in fields(Sample)]


def parse(row):
    def number(text):
        return None if text == "" else int(text)

    return Sample(row["variant"], int(row["pages"]), int(row["pool"]), int(row["iteration"]),
                  float(row["load"]), row["step"], float(row["ms"]),
                  *(number(row[name]) for name in COLUMNS[COLUMNS.index("ms") + 1:]))


def load(path, steps):
    """The samples of all complete iterations. What an interrupted write left behind is
    removed from the file, too."""
    if not path.exists():
        return []
    with open(path, newline="") as source:
        rows = [row for row in csv.DictReader(source) if None not in row.values()]
    samples = []
    for row in rows:
        try:
            samples.append(parse(row))
        except (KeyError, ValueError):
            raise SystemExit(f"{path} was not written by this program: {row}")
    found = {}
    for s in samples:
        found.setdefault((s.variant, s.pages, s.iteration), set()).add(s.step)
    whole = [s for s in samples
             if found[s.variant, s.pages, s.iteration] == set(steps)]
    write(path, whole)
    return whole


def write(path, samples):
    """Replace the file by these samples, atomically."""
    scratch = path.with_suffix(".tmp")
    with open(scratch, "w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        writer.writerows(asdict(s) for s in samples)
    os.replace(scratch, path)


def append(path, samples):
    with open(path, "a", newline="") as out:
        csv.DictWriter(out, COLUMNS).writerows(asdict(s) for s in samples)


def iterations(samples, variant, pages):
    """The numbers of the iterations that exist."""
    return {s.iteration for s in samples if (s.variant, s.pages) == (variant, pages)}
