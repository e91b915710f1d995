"""Policies for choosing between parallel and serial plans, and their regret."""

import sys
from dataclasses import dataclass

from ..common import measure
from ..common.session import Arm, apply, use
from .grid import Point

TRIES = 5       # calibrations, as the machine may be busy
COMMON = {"temp_parallel.enabled": "on", "search_path": "pg_temp, public",
          # dirty pages are written, as these constants are about that
          "temp_parallel.share_local_buffers": "off"}
COSTS = ("temp_parallel.write_temp_page_cost", "temp_parallel.buffer_scan_cost")
PLANNER = ("max_parallel_workers_per_gather", "parallel_setup_cost", "parallel_tuple_cost")

FORBIDDEN = Arm("serial", "TEMP", COMMON | {"max_parallel_workers_per_gather": "0"})


def forced(server, parallel_tuple_cost="0"):
    """The parallel plan, at no cost, with the server's own number of workers."""
    return Arm("parallel", "TEMP", COMMON | {
        "max_parallel_workers_per_gather": server["max_parallel_workers_per_gather"],
        "parallel_setup_cost": "0", "parallel_tuple_cost": parallel_tuple_cost} | dict.fromkeys(COSTS, "0"))


def choosing(server, name, costs):
    """The planner with the server's own settings and these constants."""
    return Arm(name, "TEMP", COMMON | server | dict(zip(COSTS, map(str, costs))))


def server_settings(conn):
    return {name: conn.execute("SELECT current_setting(%s)", (name,)).fetchone()[0]
            for name in PLANNER}


def default_costs(conn):
    return tuple(float(conn.execute("SELECT boot_val FROM pg_settings WHERE name = %s",
                                    (name,)).fetchone()[0]) for name in COSTS)


def calibrate(conn, progress):
    """The recommended constants of the cost model."""
    for _ in range(TRIES):
        result = conn.execute(
            "SELECT write_temp_page_cost, buffer_scan_cost, write_page_us, read_page_us,"
            " process_page_us, gain_page_us, planner_unit_us, write_cv, gain_cv"
            " FROM temp_parallel_calibrate()").fetchone()
        write, scan, write_us, read_us, process_us, gain_us, unit_us, write_cv, gain_cv = result
        progress.say(f"calibrated: a page takes {write_us:.2f} us to write, {read_us:.2f} to read,"
                     f" {process_us:.2f} to process, of which workers gain {gain_us:.2f};"
                     f" a unit of the planner is {unit_us:.2f} us"
                     f" (coefficient of variation: writing {write_cv:.0%}, gain {gain_cv:.0%})")
        if write is not None:
            return write, scan
    sys.exit("the machine is too busy to calibrate")


def model_constants(conn, progress, calibrated=None):
    """The constants of the cost model by name; calibrated: those of an earlier run."""
    constants = {"default": default_costs(conn),
                 "calibrated": calibrated or calibrate(conn, progress)}
    for name, (write, scan) in constants.items():
        progress.say(f"{name}: write_temp_page_cost = {write:g}, buffer_scan_cost = {scan:g}")
    return constants


def ladder(costs, steps=60, least=0.005, most=50):
    """Constants from far too low to far too high, in the same proportion as costs."""
    factor = (most / least) ** (1 / (steps - 1))
    return [(least * factor ** i, least * factor ** i * costs[1] / costs[0])
            for i in range(steps)]


def shape(plan):
    """A plan without its indentation, for comparing a forced and a chosen one."""
    return [line.strip() for line in plan]


@dataclass(frozen=True)
class Outcome:
    """The measurements of a point of the grid."""

    point: Point
    pages: int
    dirty_pages: int
    serial_ms: float        # medians
    parallel_ms: float
    parallel: dict          # by policy: is its plan parallel?
    same_plan: dict         # by policy: is its plan one of the two that were timed?
    steps: list             # by step of the ladder: is the plan parallel?

    @property
    def best_ms(self):
        return min(self.serial_ms, self.parallel_ms)

    def ms(self, parallel):
        return self.parallel_ms if parallel else self.serial_ms

    def lost_ms(self, policy):
        return self.ms(self.parallel[policy]) - self.best_ms


def choices(conn, point, arms, rungs, timed):
    """Which plan each policy and each step of the ladder chooses in the pool's current
    state. timed: the plans that were timed, by whether they are parallel."""
    parallel, same = {}, {}
    for arm in arms:
        plan = measure.explain(conn, arm, point.sql)
        parallel[arm.name] = measure.is_parallel(plan)
        same[arm.name] = shape(plan) == shape(timed[parallel[arm.name]])
    use(conn, arms[0])
    steps = []
    for costs in rungs:
        apply(conn, dict(zip(COSTS, map(str, costs))))
        plan = [line for line, in conn.execute(f"EXPLAIN (COSTS OFF) {point.sql}")]
        steps.append(measure.is_parallel(plan))
    return parallel, same, steps


def regret(outcomes, chosen):
    """Time lost in % of the total of the better choices; chosen() says whether the plan
    of an outcome is parallel."""
    best = sum(o.best_ms for o in outcomes)
    return 100 * sum(o.ms(chosen(o)) - o.best_ms for o in outcomes) / best
