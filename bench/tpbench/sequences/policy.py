"""Who decides about flushes, and what would have been best.

A policy is an Arm for each query. Forced policies flush at the first query of some parts:
there, the planner's settings make a flush cost nothing, and elsewhere so much that
nothing is flushed. Nothing is dirtied within a part, so a flush at a later query of it
would cost the same, and fewer queries would gain.
"""

from dataclasses import dataclass
from itertools import product
from statistics import median

from ..choice.policy import COMMON, COSTS
from ..common.session import Arm
from .grid import Sequence

NEVER = 1e9         # cost of a page


def deciding(server, name, costs):
    """The module decides, by these constants."""
    return Arm(name, "TEMP", COMMON | server | dict(zip(COSTS, map(str, costs))))


def forced(server, sequence, flushes):
    """An Arm for each query; flushes says for each part whether it is flushed."""
    arms = {flush: deciding(server, "flush" if flush else "dirty", (0 if flush else NEVER, 0))
            for flush in (True, False)}
    starts = sequence.starts + [sequence.queries]
    return [arms[flush] for part, flush in enumerate(flushes)
            for _ in range(starts[part], starts[part + 1])]


def late(server, sequence, query):
    """The only part is flushed at that query."""
    dirty, flush = (forced(server, sequence, [f])[0] for f in (False, True))
    return [dirty] * query + [flush] * (sequence.queries - query)


def all_forced(sequence):
    return list(product((False, True), repeat=sequence.parts))


@dataclass(frozen=True)
class Run:
    """One run of a sequence."""
    ms: list            # of each query
    flushed: list       # pages
    parallel: list      # did it have workers?

    @property
    def text(self):
        """A letter for each query."""
        return "".join("F" if f else "p" if p else "s" for f, p in zip(self.flushed, self.parallel))


@dataclass(frozen=True)
class Outcome:
    """All runs of a sequence, by policy: a tuple of flushes, the number of the query of a late
    flush, or the name of an Arm that decides."""
    sequence: Sequence
    pages: int
    dirty_pages: int
    runs: dict

    def ms(self, policy, k):
        """The first k queries, median of the runs. Forced policies that do not differ in
        these queries count as one."""
        runs = self.runs[policy]
        if isinstance(policy, tuple):
            begun = sum(start < k for start in self.sequence.starts)
            runs = [run for other, of_other in self.runs.items()
                    if isinstance(other, tuple) and other[:begun] == policy[:begun]
                    for run in of_other]
        return median(sum(run.ms[:k]) for run in runs)

    def best(self, k):
        """The best forced policy for the first k queries, and its time."""
        return min(((policy, self.ms(policy, k)) for policy in self.runs if isinstance(policy, tuple)),
                   key=lambda pair: pair[1])

    def named(self, name):
        """The policy of that name, if it is not one that decides."""
        return {"never flush": (False,) * self.sequence.parts,
                "flush at once": (True,) * self.sequence.parts}.get(name, name)

    def regret(self, name, k):
        """In % of the time of the best."""
        best = self.best(k)[1]
        return 100 * (self.ms(self.named(name), k) - best) / best


FORCED_NAMES = ["never flush", "flush at once"]
