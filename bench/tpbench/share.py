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
from .flush.rows import estimate

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

FEW = 20_000    # rows, for which two workers are launched
# Of the session that does that, which is otherwise not worth it.
LAUNCH = {"jit": "off", "parallel_setup_cost": "0", "parallel_tuple_cost": "0"}


def run(conn, arm, name, phase, n, table="sales"):
    """Run the query once as this arm, which must read the pages as it is to."""
    use(conn, ON)
    if arm in (OFF, SHARED):
        conn.execute(f"SELECT pg_temp_buffers_dirty('{table}')")
    elif arm == CLEAN:
        conn.execute(f"SELECT pg_flush_local_buffers('{table}')")
    use(conn, arm)
    before = measure.counters(conn)
    done = measure.run(conn, arm, QUERIES[name].replace("sales", table), name, phase, n)
    did = measure.counters(conn).since(before)
    if (did.shared > 0) != (arm == SHARED) or did.flushed or \
            (did.launched > 0) != (arm in (SHARED, CLEAN)):
        raise SystemExit(f"{name}, {arm.name}: {did}")
    return done


def launches(rounds, progress):
    """Runs of a small query, of which most is the launch of two workers; in a session that
    has compiled none."""
    with connect(SETTINGS | LAUNCH) as conn:
        for arm in (ON, UNLOGGED):
            use(conn, arm)
            conn.execute(TABLE.format(name="few", persistence=arm.persistence))
            conn.execute(FILL.format(name="few", rows=FEW))
            conn.execute("ALTER TABLE few SET (parallel_workers = 2)")
            conn.execute("ANALYZE few")
        left, runs = TimeLeft(rounds), []
        for n in range(rounds):
            progress.step(f"launch {n + 1}, {left}")
            runs += [run(conn, arm, "count", "launch", n, "few") for arm in measure.in_turns(ARMS[1:], n)]
            left.advance()
    return runs


def differences(runs, name, phase, arm, base):
    """For each round, in ms."""
    times = {r.round: r.ms for r in measure.select(runs, name, phase, base.name)}
    return [r.ms - times[r.round] for r in measure.select(runs, name, phase, arm.name)]


def price(conn, runs):
    """What a page costs more that is shared than one that is clean, in microseconds, and in
    the planner's units. From the query that reads all pages once and does least with them."""
    pages = value(conn, "SELECT relpages FROM pg_class WHERE oid = 'pg_temp.sales'::regclass")
    us = median(differences(runs, "count", "repeat", SHARED, CLEAN)) * 1000 / pages
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

    launched = launches(50 * args.rounds, progress)

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
    print(f"launch of two workers, for a count of {FEW} rows: "
          + ", ".join(f"{arm.name} {measure.median_ms(launched, 'count', 'launch', arm.name):.2f} ms"
                      for arm in ARMS[1:])
          + f"\nmedians of {50 * args.rounds}; that of the differences, with its 95 % bootstrap interval: "
          + ", ".join("{} - unlogged {:.2f} ms [{:.2f}, {:.2f}]".format(arm.name, *estimate(differences(
              launched, "count", "launch", arm, UNLOGGED))) for arm in (SHARED, CLEAN)))
    if not (all(measure.same_answers(runs, name) for name in QUERIES) and measure.same_answers(launched, "count")):
        raise SystemExit("answers differ")


if __name__ == "__main__":
    main()
