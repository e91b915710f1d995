"""bench/revisions: the module of two revisions, in two servers, over the same rows."""

import argparse
import os
import re
import sys
from dataclasses import dataclass
from statistics import median

import psycopg

from .common import measure, tpch
from .common.machine import load_average, load_line, machine
from .common.measure import rule, spread
from .common.progress import Progress, TimeLeft
from .common.session import OFF, ON, UNLOGGED, connect, line, use, value
from .filled.sequence import FILL, ONE_TABLE, TABLE

SETTINGS = {"temp_buffers": os.environ.get("TEMP_BUFFERS", "512MB")}

STATEMENTS = {
    "aggregate": ONE_TABLE,
    "join": "SELECT s.region, count(*), sum(s.amount), sum(r.amount) FROM sales s JOIN returns r"
            " USING (id) WHERE s.day BETWEEN 100 AND 199 AND r.day BETWEEN 100 AND 199 GROUP BY 1",
    "filter": "SELECT * FROM sales WHERE amount = 4711",
    "insert select": "INSERT INTO target SELECT customer, sum(amount) FROM sales GROUP BY 1",
    "update": "UPDATE sales SET quantity = id % 11 WHERE day = 7",
}

# Statements that do little, so that planning is what they take.
PLANNED = {
    "lookup": "SELECT amount FROM sales WHERE id = 4711",
    "join of 2": "SELECT count(*) FROM sales s JOIN returns r USING (id) WHERE s.id < 10",
    "join of 6": "SELECT count(*) FROM sales a JOIN returns b USING (id) JOIN sales c USING (id)"
                 " JOIN returns d USING (id) JOIN sales e USING (id) JOIN returns f USING (id)"
                 " WHERE a.id < 10",
    "insert": "INSERT INTO target VALUES (1, 1)",
}


@dataclass(frozen=True)
class Side:
    """A revision's module, or none, over one kind of table."""

    name: str
    conn: psycopg.Connection
    arm: object


def arguments():
    parser = argparse.ArgumentParser(prog="bench/revisions")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("old")
    args = parser.parse_args()
    if not 0 <= args.scale <= 1 or args.rows < 1000 or args.rounds < 1:
        parser.error("the scale must be at most 1, rows at least 1000, rounds positive")
    return args


def connect_old():
    new, os.environ["PGHOST"] = os.environ["PGHOST"], os.environ["OLD_PGHOST"]
    try:
        return connect(SETTINGS)
    finally:
        os.environ["PGHOST"] = new


def fill(side, name, rows):
    use(side.conn, side.arm)
    schema = "unlogged" if side.arm == UNLOGGED else "pg_temp"
    side.conn.execute(f"DROP TABLE IF EXISTS {schema}.{name}")
    side.conn.execute(TABLE.format(name=name, persistence=side.arm.persistence))
    side.conn.execute(FILL.format(name=name, rows=rows))
    side.conn.execute(f"CREATE INDEX ON {name} (id)")
    side.conn.execute(f"ANALYZE {name}")


def load(side, args, directory, progress):
    progress.say(f"loading {side.arm.persistence.lower()} tables of {side.name}")
    use(side.conn, side.arm)
    side.conn.execute(f"CREATE {side.arm.persistence} TABLE target (k bigint, n numeric)")
    for name in ("sales", "returns"):
        fill(side, name, args.rows)
    if directory:
        tpch.load(side.conn, side.arm.persistence, directory)


def planning_ms(side, sql):
    plan = measure.explain(side.conn, side.arm, sql, "SUMMARY")
    return float(re.search(r"Planning Time: ([0-9.]+)", "\n".join(plan))[1])


def run(side, name, sql, n):
    done = measure.run(side.conn, side.arm, sql, name, "repeat", n)
    return done.ms, done.digest


def measure_all(sides, args, directory, progress):
    """{name: {side: [ms of each round]}}, and the names of the statements whose answers differ."""
    statements = STATEMENTS | (tpch.queries() if directory else {})
    times = {}
    wrong = set()
    loads = []
    left = TimeLeft((args.rounds + 1) * (len(statements) + len(PLANNED) + 1))

    def note(name, side, ms, n):
        if n >= 0:          # one round before that does not count
            times.setdefault(name, {}).setdefault(side.name, []).append(ms)

    for n in range(-1, args.rounds):
        loads.append(load_average())
        for side in measure.rotated(sides, n):
            progress.step(f"round {n + 1} first query of {side.name}, {left}")
            fill(side, "sales", args.rows)
            note("first query", side, run(side, "first", ONE_TABLE, n)[0], n)
        left.advance()
        for name, sql in statements.items():
            digests = set()
            for side in measure.rotated(sides, n):
                progress.step(f"round {n + 1} {name} of {side.name}, {left}")
                ms, digest = run(side, name, sql, n)
                note(name, side, ms, n)
                digests.add(digest)
            wrong |= {name} if len(digests) > 1 else set()
            left.advance()
        for name, sql in PLANNED.items():
            for side in measure.rotated(sides, n):
                ms = median(planning_ms(side, sql) for _ in range(21))
                note("plan: " + name, side, ms, n)
            left.advance()
    return times, wrong, loads


def print_table(times, old):
    names = ("old", "on", "off", "unlogged")
    head = f"{'':22}" + "".join(f"{name + ' ms':>13}" for name in names) \
        + "".join(f"{'on/' + base:>21}" for base in ("old", "off", "unlogged"))
    print(f"old is {old}\n{head}")
    rule(head)

    def row(title, by_side):
        print(f"{title:22}" + "".join(f"{median(by_side[name]):13.2f}" for name in names)
              + "".join(f"{spread([a / b for a, b in zip(by_side['on'], by_side[base])]):>21}"
                        for base in ("old", "off", "unlogged")))

    for name, by_side in times.items():
        row(name, by_side)
    queries = [by_side for name, by_side in times.items() if re.fullmatch(r"q\d\d", name)]
    if queries:
        row("q01 to q22", {name: [sum(each) for each in zip(*(q[name] for q in queries))]
                           for name in names})


def main():
    args = arguments()
    progress = Progress()
    progress.say(machine())
    directory = tpch.generate(f"{args.scale:g}") if args.scale else None
    new, old = connect(SETTINGS), connect_old()
    sides = (Side("old", old, ON), Side("on", new, ON), Side("off", new, OFF),
             Side("unlogged", new, UNLOGGED))
    for side in sides:
        if side.arm != OFF:     # the tables of "on"
            load(side, args, directory, progress)
    times, wrong, loads = measure_all(sides, args, directory, progress)
    print(f"\n{value(new, 'SELECT version()')}\nTPC-H scale {args.scale:g}, {args.rows} rows of 100"
          f" bytes; {line(SETTINGS)}, the rest at its defaults\nmedians of {args.rounds} rounds; a"
          f" ratio is the median over the rounds, in brackets the lowest and the highest\n"
          f"{load_line(loads)}\n")
    print_table(times, args.old)
    if wrong:
        sys.exit(f"answers differ: {', '.join(sorted(wrong))}")


if __name__ == "__main__":
    main()
