"""bench/worker_pool: how many local buffers a worker needs.

The same parallel plans run with several values of worker_temp_buffers, alternating;
each time is compared with that at the default size in the same round. Then launches
are timed, to see whether workers start later if the session's own pool is large.
"""

import argparse
from statistics import median

from .common import measure
from .common.progress import Progress, TimeLeft
from .common.session import Arm, ON, apply, connect, use, value
from .common.settings import SETTINGS, line

# Plans that are run by workers alone.
FORCED = {"parallel_leader_participation": "off", "parallel_setup_cost": "0",
          "parallel_tuple_cost": "0", "min_parallel_table_scan_size": "0",
          "min_parallel_index_scan_size": "0", "max_parallel_workers_per_gather": "2",
          "temp_parallel.write_temp_page_cost": "0", "temp_parallel.buffer_scan_cost": "0"}

# Each with the settings that make its plan.
WORKLOADS = {
    "launch": ("SELECT count(*) FROM tiny", {}),
    "scan": ("SELECT grp, count(*), sum(amount) FROM big GROUP BY grp", {}),
    "index scan": ("SELECT count(*), sum(amount) FROM big WHERE id % 2 = 0 AND id > 0",
                   {"enable_seqscan": "off", "enable_bitmapscan": "off"}),
    "lookups": ("SELECT sum(b.amount) FROM big a JOIN big b ON b.id = a.amount WHERE a.grp < 5",
                {"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_memoize": "off"}),
}

# Sizes of the session's own pool, and the rounds for them: a launch takes some milliseconds.
SESSION_POOLS = ("8MB", "1GB")
LAUNCHES = 100


def arguments():
    parser = argparse.ArgumentParser(prog="bench/worker_pool")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")],
                        default=[100, 256, 1024, 4096, 16384])
    args = parser.parse_args()
    if args.rows < 1000 or args.rounds < 1 or min(args.sizes) < 100:
        parser.error("rows, rounds or sizes are too small")
    return args


def load(conn, rows):
    use(conn, ON)
    conn.execute(f"""
        CREATE TEMP TABLE tiny AS SELECT generate_series(1, 20000) AS id;
        CREATE TEMP TABLE big AS
        SELECT i AS id, i % 100 AS grp, i * 104729 % {rows} AS amount
        FROM generate_series(1::bigint, {rows}) AS i;
        CREATE INDEX ON big (id);
        ANALYZE tiny;
        ANALYZE big;
        SELECT pg_flush_local_buffers();
    """)


def fill_pool(conn, pool):
    """Fill the pool with a table that has one row per page."""
    conn.execute("CREATE TEMP TABLE filler (pad text)")
    conn.execute("ALTER TABLE filler ALTER pad SET STORAGE PLAIN")
    conn.execute("INSERT INTO filler SELECT repeat('x', 7000) FROM generate_series(1,"
                 " pg_size_bytes(%s) / current_setting('block_size')::bigint)", (pool,))
    conn.execute("SELECT pg_flush_local_buffers()")


def launches(conns):
    """The times of a launch with the session's larger pool by those with the smaller one,
    and the median of the latter in ms."""
    sql = WORKLOADS["launch"][0]
    small, large = arms = [Arm(pool, "TEMP", {}) for pool in SESSION_POOLS]
    runs = []
    for n in range(-1, LAUNCHES):
        for arm in measure.rotated(arms, n):
            runs.append(measure.run(conns[arm.name], arm, sql, "launch",
                                    "warm" if n < 0 else "repeat", n))
    if any(run.plan != "parallel" for run in runs):
        raise SystemExit("launch: the plan is not parallel")
    return (measure.ratios(runs, "launch", "repeat", large.name, small.name),
            measure.median_ms(runs, "launch", "repeat", small.name))


def report_launches(progress):
    """Time launches with both sizes of the session's own pool, while it is nearly empty and
    when all of it is in use."""
    small, large = SESSION_POOLS
    conns = {pool: connect(SETTINGS | FORCED | {"temp_buffers": pool}) for pool in SESSION_POOLS}
    for conn in conns.values():
        load(conn, 1000)
    print(f"\ntime of a launch with temp_buffers = {large} by that with {small},"
          f" median of {LAUNCHES} rounds")
    for state in ("nearly empty", "in use"):
        if state == "in use":
            progress.say("filling the pools")
            for pool, conn in conns.items():
                fill_pool(conn, pool)
        ratios, base = launches(conns)
        print(f"{state:12}{median(ratios):9.3f}  ({base:.1f} ms)")


def main():
    args = arguments()
    progress = Progress()
    conn = connect(SETTINGS | FORCED)
    default = int(value(conn, "SELECT boot_val FROM pg_settings"
                              " WHERE name = 'temp_parallel.worker_temp_buffers'"))
    sizes = sorted(set(args.sizes) | {default})
    arms = [Arm(str(size), "TEMP", {"temp_parallel.worker_temp_buffers": str(size)})
            for size in sizes]
    progress.say(f"loading {args.rows} rows")
    load(conn, args.rows)

    runs = []
    left = TimeLeft((args.rounds + 1) * len(WORKLOADS) * len(arms))
    for n in range(args.rounds + 1):
        for name, (sql, settings) in WORKLOADS.items():
            apply(conn, settings)
            for arm in measure.rotated(arms, n):
                progress.step(f"round {n} {name} {arm.name}, {left}")
                run = measure.run(conn, arm, sql, name, "warm" if n == 0 else "repeat", n)
                if run.plan != "parallel":
                    raise SystemExit(f"{name}: the plan is not parallel")
                runs.append(run)
                left.advance()
            for setting in settings:
                conn.execute(f"RESET {setting}")

    print(f"\n{value(conn, 'SELECT version()')}\n{args.rows} rows; {line()}"
          f"\ntimes relative to those at the default of {default} pages:"
          f" medians of {args.rounds} rounds; in parentheses the median at the default\n")
    head = f"{'workload':12}" + "".join(f"{size:>9}" for size in sizes) + f"{'':>14}"
    print(head + "\n" + "-" * len(head))
    for name in WORKLOADS:
        ratios = [median(measure.ratios(runs, name, "repeat", arm.name, str(default)))
                  for arm in arms]
        base = median(r.ms for r in measure.select(runs, name, "repeat", str(default)))
        print(f"{name:12}" + "".join(f"{ratio:9.2f}" for ratio in ratios) + f"  ({base:.1f} ms)")
    if not all(measure.same_answers(runs, name) for name in WORKLOADS):
        raise SystemExit("answers differ")

    report_launches(progress)


if __name__ == "__main__":
    main()
