"""Options that both programs have, and the way over the grid."""

import argparse
import sys
from itertools import groupby
from statistics import mean

from ..common.arguments import listed, require_writable
from ..common.machine import busy, load_average, machine
from ..common.progress import Progress, TimeLeft
from ..common.session import SETTINGS, apply, connect, line, use, value
from . import grid, policy


def options(program, rows, widths, dirty, selectivities):
    """A parser with these defaults."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--rows", type=listed(int), default=rows)
    parser.add_argument("--widths", type=listed(str), default=widths)
    parser.add_argument("--dirty", type=listed(float), default=dirty)
    parser.add_argument("--selectivities", type=listed(float), default=selectivities)
    parser.add_argument("--kinds", type=listed(str), default=list(grid.KINDS))
    parser.add_argument("--csv")
    parser.add_argument("--plot")
    return parser


def parse(parser, wrong, rules):
    """The arguments, unless they are wrong(), or break the other rules."""
    args = parser.parse_args()
    for name, known in (("widths", grid.WIDTHS), ("kinds", grid.KINDS)):
        unknown = set(getattr(args, name)) - set(known)
        if unknown:
            parser.error(f"no such {name}: {', '.join(sorted(unknown))}")
    if min(args.rows) < 10 or not all(0 <= part <= 1 for part in args.dirty) or \
            not all(0 < part <= 1 for part in args.selectivities) or wrong(args):
        parser.error(rules)
    return args


def session():
    conn = connect(SETTINGS)
    apply(conn, {"client_min_messages": "warning"})
    return conn


class Bench:
    """Measures the points of a grid, with a session for each table: the buffers that others have
    used would count for its flushes as well. A program adds measure(conn, point, each), the
    Outcomes of a point, which calls each() after each run; runs(point), how many these are;
    write_csv(outcomes); and noun, what the points are."""

    def __init__(self, args, side_part, calibrated=None, **sequence):
        require_writable(args.csv, args.plot)
        self.args, self.progress = args, Progress()
        self.progress.say(machine())
        with session() as conn:
            self.server = policy.server_settings(conn)
            self.costs = policy.model_constants(conn, self.progress, calibrated)
            self.points, too_large = grid.points(conn, args, side_part, **sequence)
            self.title = f"{value(conn, 'SELECT version()').split(' on ')[0]}; {machine()}; {line()}"
        for table in too_large:
            self.progress.say(f"left out, as they do not fit into temp_buffers: {table.name}")
        if not self.points:
            sys.exit("nothing fits into temp_buffers")
        self.deciding = [policy.choosing(self.server, *item) for item in self.costs.items()]
        self.others = []        # the load by other processes, after each table
        self.loads = []

    def run(self, repeated):
        """The Outcomes; repeated: what to say of it."""
        self.progress.say(f"{len(self.points)} {self.noun}, {repeated}; {line()}")
        # A point of a large table takes longer than one of a small table.
        weight = {p: (p.table.rows + 30 * p.table.estimated_pages()) * (3 if p.kind == "join" else 1)
                  for p in self.points}
        left = TimeLeft(sum(weight[p] * self.runs(p) for p in self.points))
        outcomes = []
        for table, group in groupby(self.points, lambda point: point.table):
            self.progress.step(f"filling {table.name}, {left}")
            with session() as conn:
                use(conn, self.deciding[0])
                table.create(conn)
                for point in group:
                    def each():
                        left.advance(weight[point])
                        self.progress.step(f"{point.name}, {left}")

                    self.loads.append(load_average())
                    outcomes += self.measure(conn, point, each)
                self.others.append(busy())      # before the session ends, which takes a while
            self.progress.say(f"{table.name} done, {len(self.loads)} of {len(self.points)} {self.noun}, {left}")
            if self.args.csv:
                self.write_csv(outcomes)
        print(f"\n{self.title}\nother processes took {mean(self.others):.0%} of the processors' time between"
              f" the tables (at most {max(self.others):.0%}); above a few percent, workers had less to gain")
        return outcomes
