"""bench/planner_choice: time lost by the planner's choices, over a grid."""

import argparse
import sys
from statistics import mean, median

from ..common import measure
from ..common.arguments import listed, require_writable
from ..common.machine import busy, machine
from ..common.progress import Progress, TimeLeft
from ..common.session import SETTINGS, apply, connect, line, use, value
from . import grid, policy, report


def arguments():
    parser = argparse.ArgumentParser(prog="bench/planner_choice")
    parser.add_argument("--rows", type=listed(int), default=[200_000, 600_000, 2_000_000])
    parser.add_argument("--widths", type=listed(str), default=list(grid.WIDTHS))
    parser.add_argument("--dirty", type=listed(float), default=[0, 0.25, 1])
    parser.add_argument("--selectivities", type=listed(float), default=[0.01, 1])
    parser.add_argument("--kinds", type=listed(str), default=list(grid.KINDS))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--csv")
    parser.add_argument("--plot")
    args = parser.parse_args()
    for name, known in (("widths", grid.WIDTHS), ("kinds", grid.KINDS)):
        unknown = set(getattr(args, name)) - set(known)
        if unknown:
            parser.error(f"no such {name}: {', '.join(sorted(unknown))}")
    if min(args.rows) < grid.SIDE_PART or args.pairs < 1 or \
            not all(0 <= part <= 1 for part in args.dirty) or \
            not all(0 < part <= 1 for part in args.selectivities):
        parser.error("rows must be at least 10, pairs at least 1, fractions from 0 to 1")
    return args


def time_point(conn, point, arms, pairs, each):
    """The median time of the query by arm. Runs are made in pairs, after one that does
    not count; pages are dirtied before each run, as the flush cleans them."""
    runs = {arm.name: [] for arm in arms}
    for n in range(-1, pairs):
        for arm in measure.in_turns(arms, n):
            grid.make_dirty(conn, point.dirty)
            run = measure.run(conn, arm, point.sql, point.name, "repeat", n)
            if run.plan != arm.name:
                sys.exit(f"{point.name}: the plan is {run.plan} although {arm.name} was requested")
            if n >= 0:
                runs[arm.name].append(run)
            each()
    if len({run.digest for of_arm in runs.values() for run in of_arm}) != 1:
        sys.exit(f"{point.name}: answers differ")
    return {name: median(run.ms for run in of_arm) for name, of_arm in runs.items()}


class Bench:
    """Measures the points of a grid."""

    def __init__(self, conn, args, server, costs, progress):
        self.conn, self.args, self.costs, self.progress = conn, args, costs, progress
        self.policies = [policy.choosing(server, *item) for item in costs.items()]
        self.arms = [policy.forced(server), policy.FORBIDDEN]
        # with rows at no cost, one would be forced that nobody gets
        self.arms_of_insert = [policy.forced(server, server["parallel_tuple_cost"]),
                               policy.FORBIDDEN]
        self.rungs = policy.ladder(costs["calibrated"])
        self.others = []        # the load by other processes, before each table

    def measure(self, point, each):
        """The Outcome of a point, or None if it is too small for a parallel plan."""
        conn = self.conn
        arms = self.arms_of_insert if point.kind == "insert" else self.arms
        if point.kind == "insert" and \
                not measure.is_parallel(measure.explain(conn, arms[0], point.sql)):
            return None
        times = time_point(conn, point, arms, self.args.pairs, each)
        timed = {arm.name == "parallel": measure.explain(conn, arm, point.sql) for arm in arms}
        dirty_pages = grid.make_dirty(conn, point.dirty)
        parallel, same, steps = policy.choices(conn, point, self.policies, self.rungs, timed)
        return policy.Outcome(
            point=point, pages=grid.pages(conn), dirty_pages=dirty_pages,
            serial_ms=times["serial"], parallel_ms=times["parallel"],
            parallel=parallel, same_plan=same, steps=steps)

    def fill(self, table):
        self.others.append(busy())
        use(self.conn, policy.FORBIDDEN)
        table.create(self.conn)

    def run(self, points):
        """The Outcomes of the points, which are grouped by table."""
        # Weighted by pages: a point of a large table takes longer than one of a small table.
        left = TimeLeft(sum(p.table.estimated_pages() for p in points)
                        * (self.args.pairs + 1) * len(self.arms))
        outcomes = []
        for n, point in enumerate(points):
            if n == 0 or points[n - 1].table != point.table:
                self.progress.step(f"filling {point.table.name}, {left}")
                self.fill(point.table)

            def each():
                left.advance(point.table.estimated_pages())
                self.progress.step(f"{point.name}, {left}")

            outcome = self.measure(point, each)
            if outcome is None:
                self.progress.say(f"left out, as no plan is parallel: {point.name}")
            else:
                outcomes.append(outcome)
            if n + 1 == len(points) or points[n + 1].table != point.table:
                self.progress.say(f"{point.table.name} done, {n + 1} of {len(points)} points, {left}")
                if self.args.csv:
                    report.write_csv(outcomes, list(self.costs), self.rungs, self.args.csv)
        return outcomes


def main():
    args = arguments()
    progress = Progress()
    require_writable(args.csv, args.plot)

    conn = connect(SETTINGS)
    apply(conn, {"client_min_messages": "warning"})
    server = policy.server_settings(conn)
    progress.say(machine())
    costs = policy.model_constants(conn, progress)
    points, too_large = grid.points(conn, args.rows, args.widths, args.kinds,
                                    args.selectivities, args.dirty)
    for table in too_large:
        progress.say(f"left out, as they do not fit into temp_buffers: {table.name}")
    progress.say(f"{len(points)} points, {args.pairs} pairs each; {line()}")
    bench = Bench(conn, args, server, costs, progress)
    outcomes = bench.run(points)

    title = f"{value(conn, 'SELECT version()').split(' on ')[0]}; {machine()}; {line()}"
    print(f"\n{title}\nother processes took {mean(bench.others):.0%} of the processors' time between"
          f" the tables (at most {max(bench.others):.0%}); above a few percent, workers had less to gain")
    report.summary(outcomes, list(costs), bench.rungs)
    report.by_dimension(outcomes, list(costs))
    if args.plot:
        report.plot(outcomes, costs, bench.rungs, title, args.plot)


if __name__ == "__main__":
    main()
