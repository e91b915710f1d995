"""Who decides about workers and flushes, by which constants, and the regret of that.

A policy of a query is an Arm, one of a sequence an Arm for each query. Forced policies of
sequences flush at the first query of some parts: there, the planner's settings make a flush
cost nothing, and elsewhere so much that nothing is flushed. Nothing is dirtied within a part, so
a flush at a later query of it would cost the same, and fewer queries would gain.
"""

import sys
from dataclasses import dataclass
from itertools import product
from statistics import median

from ..common.session import COSTS, Arm, value
from .grid import Point

TRIES = 5       # calibrations, as the machine may be busy
NEVER = 1e9     # cost of a page
COMMON = {"temp_parallel.enabled": "on", "search_path": "pg_temp, public",
          # dirty pages are written, as these constants are about that
          "temp_parallel.share_local_buffers": "off"}
PLANNER = ("max_parallel_workers_per_gather", "parallel_setup_cost", "parallel_tuple_cost")

FORBIDDEN = Arm("serial", "TEMP", COMMON | {"max_parallel_workers_per_gather": "0"})


def settings_of(costs):
    """costs may be only the first of COSTS."""
    return dict(zip(COSTS, map(str, costs)))


def forced(server, parallel_tuple_cost="0"):
    """The parallel plan, at no cost, with the server's own number of workers."""
    return choosing(server | {"parallel_setup_cost": "0", "parallel_tuple_cost": parallel_tuple_cost},
                    "parallel", (0, 0))


def choosing(server, name, costs):
    """The module decides, with the server's own settings and these constants."""
    return Arm(name, "TEMP", COMMON | server | settings_of(costs))


def forced_sequence(server, point, flushes):
    """An Arm for each query; flushes says for each part whether it is flushed."""
    arms = {flush: choosing(server, "flush" if flush else "dirty", (0 if flush else NEVER, 0))
            for flush in (True, False)}
    starts = point.starts + [point.queries]
    return [arms[flush] for part, flush in enumerate(flushes)
            for _ in range(starts[part], starts[part + 1])]


def late(server, point, query):
    """The only part is flushed at that query."""
    dirty, flush = (forced_sequence(server, point, [f])[0] for f in (False, True))
    return [dirty] * query + [flush] * (point.queries - query)


def all_forced(point):
    return list(product((False, True), repeat=point.parts))


def server_settings(conn):
    return {name: value(conn, f"SELECT current_setting('{name}')") for name in PLANNER}


def default_costs(conn):
    return tuple(float(value(conn, f"SELECT boot_val FROM pg_settings WHERE name = '{name}'"))
                 for name in COSTS)


def calibrate(conn, progress):
    """The recommended constants of the cost model."""
    for _ in range(TRIES):
        result = conn.execute(
            "SELECT write_temp_page_cost, buffer_scan_cost, parallel_setup_cost, write_page_us, read_page_us,"
            " process_page_us, gain_page_us, planner_unit_us, write_cv, gain_cv"
            " FROM temp_parallel_calibrate()").fetchone()
        *costs, write_us, read_us, process_us, gain_us, unit_us, write_cv, gain_cv = result
        progress.say(f"calibrated: a page takes {write_us:.2f} us to write, {read_us:.2f} to read,"
                     f" {process_us:.2f} to process, of which workers gain {gain_us:.2f};"
                     f" a unit of the planner is {unit_us:.2f} us"
                     f" (coefficient of variation: writing {write_cv:.0%}, gain {gain_cv:.0%})")
        if None not in costs:
            return tuple(costs)
    sys.exit("the machine is too busy to calibrate")


def model_constants(conn, progress, calibrated=None):
    """The constants of the cost model by name; calibrated: those of an earlier run."""
    constants = {"default": default_costs(conn),
                 "calibrated": calibrated or calibrate(conn, progress)}
    for name, costs in constants.items():
        progress.say(f"{name}: " + ", ".join(f"{cost} = {value:g}" for cost, value in zip(COSTS, costs)))
    return constants


def ladder(costs, steps=60, least=0.005, most=50):
    """Costs of a page from far too low to far too high, and of a buffer in the same proportion as costs."""
    factor = (most / least) ** (1 / (steps - 1))
    return [(least * factor ** i, least * factor ** i * costs[1] / costs[0])
            for i in range(steps)]


@dataclass(frozen=True)
class Outcome:
    """What was measured. Subclasses say how long a policy takes, ms(), and the best, best_ms."""

    point: Point
    pages: int
    dirty_pages: int

    def lost_ms(self, policy):
        return self.ms(policy) - self.best_ms

    def regret(self, policy):
        """In % of the time of the best."""
        return 100 * self.lost_ms(policy) / self.best_ms


def total_regret(outcomes, policy):
    """Of the sums of times."""
    return 100 * sum(o.lost_ms(policy) for o in outcomes) / sum(o.best_ms for o in outcomes)


@dataclass(frozen=True)
class QueryOutcome(Outcome):
    serial_ms: float        # medians
    parallel_ms: float
    parallel: dict          # by policy, or step of the ladder: is its plan parallel?
    same_plan: dict         # by policy: is its plan one of the two that were timed?

    @property
    def best_ms(self):
        return min(self.serial_ms, self.parallel_ms)

    def ms(self, policy):
        return self.parallel_ms if self.parallel[policy] else self.serial_ms


@dataclass(frozen=True)
class Run:
    """One run of a sequence."""

    ms: list            # of each query
    flushed: list       # pages
    parallel: list      # did it have workers?

    def text(self, k):
        """A letter for each of the first k queries."""
        return "".join("F" if f else "p" if p else "s"
                       for f, p in zip(self.flushed[:k], self.parallel[:k]))


@dataclass(frozen=True)
class SequenceOutcome(Outcome):
    runs: dict          # by policy: a tuple of flushes, the number of the query of a late flush,
                        # or the name of an Arm that decides
    queries: int        # the first of the sequence, which count

    def policy(self, name):
        """The forced policy of that name, if there is one."""
        return {"never flush": (False,) * self.point.parts,
                "flush at once": (True,) * self.point.parts}.get(name, name)

    def ms(self, policy):
        """Median of the runs. Forced policies that do not differ in these queries count as one."""
        policy = self.policy(policy)
        runs = self.runs[policy]
        if isinstance(policy, tuple):
            begun = sum(start < self.queries for start in self.point.starts)
            runs = [run for other, of_other in self.runs.items()
                    if isinstance(other, tuple) and other[:begun] == policy[:begun]
                    for run in of_other]
        return median(sum(run.ms[:self.queries]) for run in runs)

    @property
    def best(self):
        """The best forced policy."""
        return min((policy for policy in self.runs if isinstance(policy, tuple)), key=self.ms)

    @property
    def best_ms(self):
        return self.ms(self.best)

    def plans(self, policy):
        """Those of the queries, in all runs, without repetitions."""
        return "/".join(sorted({run.text(self.queries) for run in self.runs[self.policy(policy)]}))
