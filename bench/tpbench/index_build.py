"""bench/index_build: CREATE INDEX with and without workers.

A fresh table is filled anew before each build, and not read before; a clean one has been
read and written. Neither is timed.
"""

import time

from .common import measure
from .common.arguments import rows_and_rounds
from .common.machine import load_average, load_line, machine
from .common.measure import Run, rule, spread
from .common.progress import Progress, TimeLeft
from .common.session import OFF, ON, UNLOGGED, connect, line, use, value

ARMS = (OFF, ON, UNLOGGED)

# Without the column's collation the database's is used, which is not C.
INDEXES = {
    "int": "(a)",
    "text": "(s)",
    "text, ICU": '(s COLLATE "und-x-icu")',
    "two columns": "(b, a)",
    "md5(text)": "(md5(s))",
}


def fill(conn, rows):
    """The tables of all arms, with the same rows."""
    for kind, name in (("TEMP", "pg_temp.rows"), ("UNLOGGED", "unlogged.rows")):
        conn.execute(f"DROP TABLE IF EXISTS {name}")
        conn.execute(f"""
            CREATE {kind} TABLE {name} AS
            SELECT (i * 7919 % {rows})::int AS a, (i % 1000)::int AS b,
                   md5(i::text) AS s
            FROM generate_series(1::bigint, {rows}) AS i""")


def clean(conn):
    for arm in ARMS:
        use(conn, arm)
        conn.execute("SET temp_parallel.enabled = off")
        conn.execute("SELECT count(*) FROM rows WHERE a < 0")
    conn.execute("SELECT pg_flush_local_buffers()")
    conn.execute("CHECKPOINT")


def run(conn, arm, name, phase, n):
    """Build the index once as this arm."""
    use(conn, arm)
    before = value(conn, "SELECT flushes FROM temp_parallel_stats()")
    start = time.perf_counter()
    conn.execute(f"CREATE INDEX built ON rows {INDEXES[name]}")
    ms = (time.perf_counter() - start) * 1000
    size = value(conn, "SELECT pg_relation_size('built') / 8192")
    prepared = value(conn, "SELECT flushes FROM temp_parallel_stats()") - before
    conn.execute("DROP INDEX built")
    plan = "parallel" if prepared or arm is UNLOGGED else "serial"
    return Run(name, phase, arm.name, n, plan, ms, size, "")


def measure_pool(args, pool, progress):
    settings = {"temp_buffers": pool}
    conn = connect(settings)
    runs, loads = [], []
    names = [name for name in INDEXES if "ICU" not in name or
             value(conn, "SELECT count(*) FROM pg_collation WHERE collname = 'und-x-icu'")]
    left = TimeLeft((args.rounds + 1) * len(names) * 2)
    for n in range(-1, args.rounds):        # one before that does not count
        for name in names:
            for phase in ("fresh", "clean"):
                progress.step(f"{pool}, round {n + 1} {name}, {phase}, {left}")
                loads.append(load_average())
                if phase == "clean":
                    clean(conn)
                for arm in measure.in_turns(ARMS, n):
                    if phase == "fresh":
                        fill(conn, args.rows)
                    one = run(conn, arm, name, phase, n)
                    if n >= 0:
                        runs.append(one)
                left.advance()
    print(f"\n{args.rows} rows; {line(settings)}, the rest at its defaults\nmedians of"
          f" {args.rounds} rounds; a ratio is the median over the rounds, in brackets the lowest"
          f" and the highest\n{load_line(loads)}\n")
    head = (f"{'CREATE INDEX':22}{'off ms':>10}{'on ms':>10}{'unlogged':>10}{'on/off':>21}"
            f"{'on/unlogged':>21}  when on")
    print(head)
    rule(head)
    for phase in ("fresh", "clean"):
        for name in names:
            off, on, unlogged = (measure.median_ms(runs, name, phase, arm.name) for arm in ARMS)
            print(f"{name + ', ' + phase:22}{off:10.1f}{on:10.1f}{unlogged:10.1f}"
                  f"{spread(measure.ratios(runs, name, phase, 'on', 'off')):>21}"
                  f"{spread(measure.ratios(runs, name, phase, 'on', 'unlogged')):>21}"
                  f"  {measure.plans(runs, name, phase, 'on')}")
    conn.close()


def main():
    args = rows_and_rounds("bench/index_build", 2_000_000, 5, {"--pools": ["8MB", "512MB"]})
    progress = Progress()
    progress.say(machine())
    conn = connect({})
    print(f"\n{value(conn, 'SELECT version()')}")
    conn.close()
    for pool in args.pools:
        measure_pool(args, pool, progress)


if __name__ == "__main__":
    main()
