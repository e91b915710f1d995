"""bench/planner_sequences: time lost by decisions to flush, over sequences of queries."""

import argparse
import sys
from statistics import mean

from ..choice.grid import WIDTHS, KINDS, pages
from ..choice.policy import model_constants, server_settings
from ..common import measure
from ..common.arguments import listed, require_writable
from ..common.machine import busy, load_average, load_line, machine
from ..common.progress import Progress, TimeLeft
from ..common.session import SETTINGS, apply, connect, line, use, value
from . import grid, policy, report


def arguments():
    parser = argparse.ArgumentParser(prog="bench/planner_sequences")
    parser.add_argument("--rows", type=listed(int), default=[250_000, 500_000])
    parser.add_argument("--widths", type=listed(str), default=["medium", "wide"])
    parser.add_argument("--dirty", type=listed(float), default=[0.25, 1])
    parser.add_argument("--kinds", type=listed(str), default=list(KINDS))
    parser.add_argument("--selectivities", type=listed(float), default=[0.5])
    parser.add_argument("--queries", type=listed(int), default=[1, 3, 10])
    parser.add_argument("--parts", type=listed(int), default=[1, 2])
    parser.add_argument("--again", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every-query", action="store_true")
    parser.add_argument("--calibrated", type=listed(float))
    parser.add_argument("--csv")
    parser.add_argument("--plot")
    args = parser.parse_args()
    for name, known in (("widths", WIDTHS), ("kinds", KINDS)):
        unknown = set(getattr(args, name)) - set(known)
        if unknown:
            parser.error(f"no such {name}: {', '.join(sorted(unknown))}")
    if min(args.rows) < 10 or args.rounds < 1 or min(args.queries + args.parts) < 1 \
            or max(args.parts) > max(args.queries) \
            or len(args.calibrated or (0, 0)) != 2 \
            or not all(0 <= part <= 1 for part in args.dirty + args.selectivities + [args.again]):
        parser.error("rows must be at least 10, rounds, queries and parts at least 1, parts at most"
                     " queries, fractions between 0 and 1, calibrated two numbers")
    return args


def run(conn, sequence, arms, digests):
    """Run the sequence once; arms has one for each query."""
    grid.prepare(conn, sequence)
    ms, flushed, parallel = [], [], []
    before = measure.counters(conn)
    for n, arm in enumerate(arms):
        if n in sequence.starts[1:]:
            grid.dirty_first(conn, sequence.again)
        done = measure.run(conn, arm, sequence.point.sql, sequence.name, "sequence", n)
        after = measure.counters(conn)
        digests.add(done.digest)
        ms.append(done.ms)
        flushed.append(after.flushed - before.flushed)
        parallel.append(after.launched > before.launched)
        before = after
    return policy.Run(ms, flushed, parallel)


def weight(sequence):
    """In proportion to the time that the sequence takes, roughly."""
    table = sequence.point.table
    return (table.rows + 30 * table.estimated_pages()) * (3 if sequence.point.kind == "join" else 1)


def session():
    conn = connect(SETTINGS)
    apply(conn, {"client_min_messages": "warning"})
    return conn


class Bench:
    """Measures sequences, with a session for each table: the buffers that others have used
    would count for its flushes as well."""

    def __init__(self, args, server, costs, progress):
        self.args, self.server, self.progress = args, server, progress
        self.deciding = [policy.deciding(server, *item) for item in costs.items()]
        self.names = [arm.name for arm in self.deciding] + policy.FORCED_NAMES
        self.others = []        # the load by other processes, after each table
        self.loads = []

    def policies(self, sequence):
        """An Arm for each query, by policy."""
        result = {flushes: policy.forced(self.server, sequence, flushes)
                  for flushes in policy.all_forced(sequence)}
        result |= {arm.name: [arm] * sequence.queries for arm in self.deciding}
        if self.args.every_query and sequence.parts == 1:
            result |= {query: policy.late(self.server, sequence, query)
                       for query in range(1, sequence.queries)}
        return result

    def measure(self, conn, sequence, each):
        """All runs, after one that does not count."""
        digests = set()
        policies = self.policies(sequence)
        runs = {name: [] for name in policies}
        run(conn, sequence, policies[(False,) * sequence.parts], digests)
        for n in range(self.args.rounds):
            for name in measure.in_turns(list(policies), n):
                runs[name].append(run(conn, sequence, policies[name], digests))
                each()
        if len(digests) != 1:
            sys.exit(f"{sequence.name}: answers differ")
        grid.prepare(conn, sequence)
        return policy.Outcome(sequence, pages(conn), value(conn, "SELECT pg_dirty_local_buffers()"),
                              runs)

    def run(self, sequences):
        """The Outcomes of the sequences, which are grouped by table."""
        left = TimeLeft(sum(weight(s) * len(self.policies(s)) for s in sequences) * self.args.rounds)
        outcomes = []
        for n, sequence in enumerate(sequences):
            table = sequence.point.table
            if n == 0 or sequences[n - 1].point.table != table:
                self.progress.step(f"filling {table.name}, {left}")
                conn = session()
                use(conn, self.deciding[0])
                table.create(conn)
            self.loads.append(load_average())

            def each():
                left.advance(weight(sequence))
                self.progress.step(f"{sequence.name}, {left}")

            outcomes.append(self.measure(conn, sequence, each))
            if n + 1 == len(sequences) or sequences[n + 1].point.table != table:
                self.others.append(busy())      # before the session ends, which takes a while
                conn.close()
                self.progress.say(f"{table.name} done, {n + 1} of {len(sequences)} sequences, {left}")
                if self.args.csv:
                    report.write_csv(outcomes, self.args.queries, self.names, self.args.csv)
        return outcomes


def main():
    args = arguments()
    progress = Progress()
    require_writable(args.csv, args.plot)

    conn = session()
    server = server_settings(conn)
    progress.say(machine())
    costs = model_constants(conn, progress, args.calibrated)
    sequences, too_large = grid.sequences(conn, args)
    for table in too_large:
        progress.say(f"left out, as they do not fit into temp_buffers: {table.name}")
    if not sequences:
        sys.exit("nothing fits into temp_buffers")
    progress.say(f"{len(sequences)} sequences, {args.rounds} rounds; {line()}")
    bench = Bench(args, server, costs, progress)
    outcomes = bench.run(sequences)

    title = f"{value(conn, 'SELECT version()').split(' on ')[0]}; {machine()}; {line()}"
    print(f"\n{title}\nother processes took {mean(bench.others):.0%} of the processors' time between"
          f" the tables (at most {max(bench.others):.0%}); above a few percent, workers had less to"
          f" gain\n{load_line(bench.loads)}")
    report.summary(outcomes, args.queries, bench.names)
    report.by_dimension(outcomes, args.queries, bench.names)
    report.worst(outcomes, args.queries, list(costs))
    report.late_flushes(outcomes, max(args.queries))
    if args.plot:
        report.plot(outcomes, args.queries, bench.names, title, args.plot)


if __name__ == "__main__":
    main()
