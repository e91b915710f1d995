"""bench/share: what a query takes over pages in the leader's memory.

All in one session, over the same rows: a temporary table whose pages are all dirty, by the
leader alone ("off") and by workers that read the pages in the leader's memory
("shared"); the same table after a flush, by workers that read the file ("clean"); and an
unlogged table. The flush before "clean" closes the account, which would have the pages
written in the end.
"""

import os
from statistics import median

from .common import measure
from .common.arguments import rows_and_rounds
from .common.machine import load_average, load_line, machine
from .common.measure import rule, spread
from .common.progress import Progress, TimeLeft
from .common.session import OFF, ON, UNLOGGED, Arm, connect, line, use, value
from .filled.sequence import FILL, ONE_TABLE, TABLE

SETTINGS = {"temp_buffers": os.environ.get("TEMP_BUFFERS", "512MB")}
SHARED = Arm("shared", ON.persistence, ON.settings)
CLEAN = Arm("clean", ON.persistence, ON.settings)
ARMS = (OFF, SHARED, CLEAN, UNLOGGED)

QUERIES = {
    "aggregate": ONE_TABLE,
    "count": "SELECT count(*), sum(amount) FROM sales",
    "filter": "SELECT * FROM sales WHERE amount = 4711",
    "self-join": "SELECT count(*), sum(b.amount) FROM sales a JOIN sales b USING (id)"
                 " WHERE a.day < 20 AND b.region < 5",
}


def run(conn, arm, name, phase, n):
    """Run the query once as this arm, which must read the pages as it is to."""
    use(conn, ON)
    if arm in (OFF, SHARED):
        conn.execute("SELECT pg_temp_buffers_dirty('sales')")
    elif arm == CLEAN:
        conn.execute("SELECT pg_flush_local_buffers('sales')")
    use(conn, arm)
    before = measure.counters(conn)
    done = measure.run(conn, arm, QUERIES[name], name, phase, n)
    did = measure.counters(conn).since(before)
    if (did.shared > 0) != (arm == SHARED) or did.flushed or \
            (did.launched > 0) != (arm in (SHARED, CLEAN)):
        raise SystemExit(f"{name}, {arm.name}: {did}")
    return done


def price(conn, runs):
    """What a page costs more that is shared than one that is clean, in microseconds, and in
    the planner's units. From the query that reads all pages once and does least with them."""
    pages = value(conn, "SELECT relpages FROM pg_class WHERE oid = 'pg_temp.sales'::regclass")
    ms = {arm.name: {r.round: r.ms for r in measure.select(runs, "count", "repeat", arm.name)}
          for arm in (SHARED, CLEAN)}
    us = median(ms["shared"][n] - ms["clean"][n] for n in ms["clean"]) * 1000 / pages
    use(conn, ON)
    unit = value(conn, "SELECT planner_unit_us FROM temp_parallel_calibrate()")
    return us, us / unit


def main():
    args = rows_and_rounds("bench/share", 3_000_000, 11)
    progress = Progress()
    progress.say(machine())
    conn = connect(SETTINGS)
    for arm in (ON, UNLOGGED):
        use(conn, arm)
        progress.say(f"loading {args.rows} rows into a {arm.persistence.lower()} table")
        conn.execute(TABLE.format(name="sales", persistence=arm.persistence))
        conn.execute(FILL.format(name="sales", rows=args.rows))
        conn.execute("ANALYZE sales")

    runs, loads = [], []
    left = TimeLeft((args.rounds + 1) * len(QUERIES))
    for n in range(-1, args.rounds):        # one before that does not count
        for name in QUERIES:
            progress.step(f"round {n + 1} {name}, {left}")
            loads.append(load_average())
            for arm in measure.in_turns(ARMS, n):
                runs.append(run(conn, arm, name, "warm" if n < 0 else "repeat", n))
            left.advance()

    print(f"\n{value(conn, 'SELECT version()')}\n{args.rows} rows of 100 bytes; {line(SETTINGS)}, the"
          f" rest at its defaults\nmedians of {args.rounds} rounds; a ratio is the median over the"
          f" rounds, in brackets the lowest and the highest\n{load_line(loads)}\n")
    head = f"{'query':10}" + "".join(f"{arm.name + ' ms':>13}" for arm in ARMS) \
        + "".join(f"{'shared/' + base.name:>21}" for base in ARMS if base != SHARED)
    print(head)
    rule(head)
    for name in QUERIES:
        print(f"{name:10}"
              + "".join(f"{measure.median_ms(runs, name, 'repeat', arm.name):13.1f}" for arm in ARMS)
              + "".join(f"{spread(measure.ratios(runs, name, 'repeat', 'shared', base.name)):>21}"
                        for base in ARMS if base != SHARED))
    print("\ncount: a page costs {:.3f} us more that is shared than one that is clean,"
          " {:.3f} units of the planner".format(*price(conn, runs)))
    if not all(measure.same_answers(runs, name) for name in QUERIES):
        raise SystemExit("answers differ")


if __name__ == "__main__":
    main()
