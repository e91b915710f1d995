"""bench/planner_sequences: time lost by decisions to flush, over sequences of queries."""

import sys

from ..common import measure
from ..common.arguments import listed
from ..common.machine import load_line
from . import grid, policy, report
from .run import Bench, options, parse


def arguments():
    parser = options("bench/planner_sequences", rows=[250_000, 500_000], widths=["medium", "wide"],
                     dirty=[0.25, 1], selectivities=[0.5])
    parser.add_argument("--queries", type=listed(int), default=[1, 3, 10])
    parser.add_argument("--parts", type=listed(int), default=[1, 2])
    parser.add_argument("--again", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every-query", action="store_true")
    parser.add_argument("--calibrated", type=listed(float))
    return parse(parser, lambda args: args.rounds < 1 or min(args.queries + args.parts) < 1
                 or max(args.parts) > max(args.queries) or not 0 <= args.again <= 1
                 or len(args.calibrated or policy.COSTS) != len(policy.COSTS),
                 "rows must be at least 10, rounds, queries and parts at least 1, parts at most"
                 " queries, fractions between 0 and 1, calibrated three numbers")


def run(conn, point, arms, digests):
    """Run the sequence once; arms has one for each query."""
    grid.begin_sequence(conn, point)
    ms, flushed, parallel = [], [], []
    before = measure.counters(conn)
    for n, arm in enumerate(arms):
        if n in point.starts[1:]:
            grid.dirty_first(conn, point.again)
        done = measure.run(conn, arm, point.sql, point.name, "sequence", n)
        after = measure.counters(conn)
        digests.add(done.digest)
        ms.append(done.ms)
        flushed.append(after.flushed - before.flushed)
        parallel.append(after.launched > before.launched)
        before = after
    return policy.Run(ms, flushed, parallel)


class Sequences(Bench):
    noun = "sequences"

    def __init__(self, args):
        super().__init__(args, side_part=2, calibrated=args.calibrated, parts=args.parts,
                         queries=max(args.queries), again=args.again)
        self.names = list(self.costs) + ["never flush", "flush at once"]

    def policies(self, point):
        """An Arm for each query, by policy."""
        result = {flushes: policy.forced_sequence(self.server, point, flushes)
                  for flushes in policy.all_forced(point)}
        result |= {arm.name: [arm] * point.queries for arm in self.deciding}
        if self.args.every_query and point.parts == 1:
            result |= {query: policy.late(self.server, point, query)
                       for query in range(1, point.queries)}
        return result

    def runs(self, point):
        return len(self.policies(point)) * self.args.rounds

    def measure(self, conn, point, each):
        """All runs, after one that does not count."""
        digests = set()
        policies = self.policies(point)
        runs = {name: [] for name in policies}
        run(conn, point, policies[(False,) * point.parts], digests)
        for n in range(self.args.rounds):
            for name in measure.in_turns(list(policies), n):
                runs[name].append(run(conn, point, policies[name], digests))
                each()
        if len(digests) != 1:
            sys.exit(f"{point.name}: answers differ")
        grid.begin_sequence(conn, point)
        return [policy.SequenceOutcome(point, grid.pages(conn), grid.dirty_pages(conn), runs, k)
                for k in self.args.queries]

    def write_csv(self, outcomes):
        report.write_sequences(outcomes, self.names, self.args.csv)


def main():
    bench = Sequences(arguments())
    outcomes = bench.run(f"{bench.args.rounds} rounds")
    print(load_line(bench.loads))
    report.sequences(outcomes, bench.names, list(bench.costs))
    if bench.args.plot:
        report.plot_sequences(outcomes, bench.names, bench.title, bench.args.plot)


if __name__ == "__main__":
    main()
