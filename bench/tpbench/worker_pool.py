"""bench/worker_pool: do workers start later if the session's own pool is large?"""

from statistics import median

from .common import measure
from .common.progress import Progress
from .common.session import Arm, ON, connect, use, value
from .common.settings import SETTINGS, line

# Plans that are run by workers alone.
FORCED = {"parallel_leader_participation": "off", "parallel_setup_cost": "0",
          "parallel_tuple_cost": "0", "min_parallel_table_scan_size": "0",
          "min_parallel_index_scan_size": "0", "max_parallel_workers_per_gather": "2",
          "temp_parallel.write_temp_page_cost": "0", "temp_parallel.buffer_scan_cost": "0"}

# Sizes of the session's own pool, and the rounds for them: a launch takes some milliseconds.
SESSION_POOLS = ("8MB", "1GB")
LAUNCHES = 100


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
    small, large = arms = [Arm(pool, "TEMP", {}) for pool in SESSION_POOLS]
    runs = []
    for n in range(-1, LAUNCHES):
        for arm in measure.rotated(arms, n):
            runs.append(measure.run(conns[arm.name], arm, "SELECT count(*) FROM tiny", "launch",
                                    "warm" if n < 0 else "repeat", n))
    if any(run.plan != "parallel" for run in runs):
        raise SystemExit("launch: the plan is not parallel")
    return (measure.ratios(runs, "launch", "repeat", large.name, small.name),
            measure.median_ms(runs, "launch", "repeat", small.name))


def main():
    """Time launches with both sizes of the session's own pool, while it is nearly empty and
    when all of it is in use."""
    progress = Progress()
    small, large = SESSION_POOLS
    conns = {pool: connect(SETTINGS | FORCED | {"temp_buffers": pool}) for pool in SESSION_POOLS}
    for conn in conns.values():
        use(conn, ON)
        conn.execute("CREATE TEMP TABLE tiny AS SELECT generate_series(1, 20000) AS id")
        conn.execute("ANALYZE tiny")
        conn.execute("SELECT pg_flush_local_buffers()")
    print(f"\n{value(conn, 'SELECT version()')}\n{line()}"
          f"\ntime of a launch with temp_buffers = {large} by that with {small},"
          f" median of {LAUNCHES} rounds")
    for state in ("nearly empty", "in use"):
        if state == "in use":
            progress.say("filling the pools")
            for pool, conn in conns.items():
                fill_pool(conn, pool)
        ratios, base = launches(conns)
        print(f"{state:12}{median(ratios):9.3f}  ({base:.1f} ms)")


if __name__ == "__main__":
    main()
