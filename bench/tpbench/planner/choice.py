"""bench/planner_choice: time lost by the planner's choices, over a grid."""

import sys
from statistics import median

from ..common import measure
from ..common.session import apply, use
from . import grid, policy, report
from .run import Bench, options, parse


def arguments():
    parser = options("bench/planner_choice", rows=[200_000, 600_000, 2_000_000],
                     widths=list(grid.WIDTHS), dirty=[0, 0.25, 1], selectivities=[0.01, 1])
    parser.add_argument("--pairs", type=int, default=5)
    return parse(parser, lambda args: args.pairs < 1,
                 "rows must be at least 10, pairs at least 1, fractions from 0 to 1")


def time_point(conn, point, arms, pairs, each):
    """The median time of the query by arm. Runs are made in pairs, after one that does
    not count; pages are dirtied before each run, as the flush cleans them."""
    runs = {arm.name: [] for arm in arms}
    for n in range(-1, pairs):
        for arm in measure.in_turns(arms, n):
            grid.make_dirty(conn, point)
            run = measure.run(conn, arm, point.sql, point.name, "repeat", n)
            if run.plan != arm.name:
                sys.exit(f"{point.name}: the plan is {run.plan} although {arm.name} was requested")
            if n >= 0:
                runs[arm.name].append(run)
            each()
    if len({run.digest for of_arm in runs.values() for run in of_arm}) != 1:
        sys.exit(f"{point.name}: answers differ")
    return {name: median(run.ms for run in of_arm) for name, of_arm in runs.items()}


def shape(plan):
    """A plan without its indentation, for comparing a forced and a chosen one."""
    return [line.strip() for line in plan]


class Choices(Bench):
    noun = "points"

    def __init__(self, args):
        super().__init__(args, side_part=10)
        self.rungs = policy.ladder(self.costs["calibrated"])

    def runs(self, point):
        return 2 * (self.args.pairs + 1)

    def choices(self, conn, point, timed):
        """Which plan each policy and each step of the ladder chooses in the pool's current
        state. timed: the plans that were timed, by whether they are parallel."""
        parallel, same = {"never parallel": False, "always parallel": True}, {}
        for arm in self.deciding:
            plan = measure.explain(conn, arm, point.sql)
            parallel[arm.name] = measure.is_parallel(plan)
            same[arm.name] = shape(plan) == shape(timed[parallel[arm.name]])
        use(conn, self.deciding[0])
        for costs in self.rungs:
            apply(conn, policy.settings_of(costs))
            plan = [line for line, in conn.execute(f"EXPLAIN (COSTS OFF) {point.sql}")]
            parallel[costs] = measure.is_parallel(plan)
        return parallel, same

    def measure(self, conn, point, each):
        """Nothing if the point is too small for a parallel plan."""
        # with rows at no cost, an INSERT would be forced that nobody gets
        arms = [policy.forced(self.server, *([self.server["parallel_tuple_cost"]]
                                             if point.kind == "insert" else [])), policy.FORBIDDEN]
        if point.kind == "insert" and \
                not measure.is_parallel(measure.explain(conn, arms[0], point.sql)):
            self.progress.say(f"left out, as no plan is parallel: {point.name}")
            return []
        times = time_point(conn, point, arms, self.args.pairs, each)
        timed = {arm.name == "parallel": measure.explain(conn, arm, point.sql) for arm in arms}
        dirty_pages = grid.make_dirty(conn, point)
        return [policy.QueryOutcome(point, grid.pages(conn), dirty_pages, times["serial"],
                                    times["parallel"], *self.choices(conn, point, timed))]

    def write_csv(self, outcomes):
        report.write_choices(outcomes, list(self.costs), self.rungs, self.args.csv)


def main():
    bench = Choices(arguments())
    outcomes = bench.run(f"{bench.args.pairs} pairs each")
    report.choices(outcomes, list(bench.costs), bench.rungs)
    if bench.args.plot:
        report.plot_choices(outcomes, bench.costs, bench.rungs, bench.title, bench.args.plot)


if __name__ == "__main__":
    main()
