"""bench/planning: how long the planner takes for a query, which is not executed.

All in one session: temporary tables with the module off and on, and unlogged ones. The
first round of each phase does not count: it fills the caches.
"""

import argparse
from collections import Counter

from .common import measure, tpch
from .common.machine import load_average, load_line, machine
from .common.measure import Run, rule, spread
from .common.progress import Progress
from .common.session import DEFAULTS, OFF, ON, UNLOGGED, connect, line, use, value
from .common.slower import descendants, planned

ARMS = (OFF, ON, UNLOGGED)
SCALE = "0.1"   # its tables fit into the pool
# Tables that are joined in a chain: rows of each, and how many. Of 12 and more, the planner does not
# look at all orders (geqo_threshold).
ROWS = {"small": 1000, "large": 150_000}
JOINED = (10, 15, 20)


def arguments():
    parser = argparse.ArgumentParser(prog="bench/planning")
    parser.add_argument("--rounds", type=int, default=24)
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("rounds must be positive")
    return args


def load_joined(conn, persistence):
    for size, rows in ROWS.items():
        for n in range(max(JOINED)):
            conn.execute(f"CREATE {persistence} TABLE {size}{n} AS SELECT g AS id, g * 7919 % {rows} AS next,"
                         f" repeat('x', 30) AS filler FROM generate_series(0, {rows - 1}) g")
            conn.execute(f"CREATE INDEX ON {size}{n} (id)")
            conn.execute(f"ANALYZE {size}{n}")


def joins():
    """Queries by name."""
    return {f"{size} {n}": f"SELECT count(*) FROM {', '.join(f'{size}{i}' for i in range(n))} WHERE "
            + " AND ".join(f"{size}{i}.next = {size}{i + 1}.id" for i in range(n - 1))
            for size in ROWS for n in JOINED}


def plan(conn, arm, sql, name, phase, n):
    use(conn, arm)
    explained = planned(conn, sql)
    gathers = measure.is_parallel(node["Node Type"] for node in descendants(explained["Plan"]))
    return Run(name, phase, arm.name, n, "parallel" if gathers else "serial",
               explained["Planning Time"], 0, "")


def sums(runs):
    """A Run for each round and arm, with the milliseconds of all these queries."""
    ms = Counter()
    for run in runs:
        ms[run.phase, run.arm, run.round] += run.ms
    return [Run("all", *key, "", total, 0, "") for key, total in ms.items()]


def report(runs, phase, title):
    head = f"{'query':10}" + "".join(f"{arm.name + ' ms':>13}" for arm in ARMS) \
        + f"{'on/off':>21}{'on/unlogged':>21}  plan when on"
    print(f"\n{title}\n{head}")
    rule(head)
    for name in dict.fromkeys(run.workload for run in runs):
        if name == "all":
            rule(head)
        print(f"{name:10}"
              + "".join(f"{measure.median_ms(runs, name, phase, arm.name):13.2f}" for arm in ARMS)
              + "".join(f"{spread(measure.ratios(runs, name, phase, 'on', base)):>21}"
                        for base in ("off", "unlogged"))
              + f"  {measure.plans(runs, name, phase, 'on')}".rstrip())


def main():
    args = arguments()
    progress = Progress()
    progress.say(machine())
    directory = tpch.generate(SCALE)
    queries = tpch.queries()
    conn = connect(DEFAULTS)
    # With the module on, as pages can be shared only of a pool that it has made, and without
    # workers that build indexes, as the table's pages would be written for them.
    conn.execute("SET max_parallel_maintenance_workers = 0")
    for arm in (ON, UNLOGGED):
        use(conn, arm)
        progress.say(f"loading {arm.persistence.lower()} tables")
        tpch.load(conn, arm.persistence, directory)
        load_joined(conn, arm.persistence)
    if measure.counters(conn).flushed:
        raise SystemExit("pages have been written")
    conn.execute("RESET max_parallel_maintenance_workers")

    runs, loads = [], []
    for phase in ("dirty", "clean"):
        if phase == "clean":
            conn.execute("SELECT pg_flush_local_buffers()")
        for n in range(-1, args.rounds):
            progress.step(f"{phase} pages, round {n + 1}")
            loads.append(load_average())
            for name, sql in (queries | joins()).items():
                for arm in measure.in_turns(ARMS, n):
                    runs.append(plan(conn, arm, sql, name, phase, n))

    print(f"\n{value(conn, 'SELECT version()')}\nTPC-H scale {SCALE}, and joins of tables of"
          f" {' and '.join(map(str, ROWS.values()))} rows; {line(DEFAULTS)}, the rest"
          f" at its defaults\nmedians of {args.rounds} rounds; a ratio is the median over the rounds,"
          f" in brackets the lowest and the highest\n{load_line(loads)}")
    runs = [run for run in runs if run.round >= 0]
    of_tpch = [run for run in runs if run.workload in queries]
    runs = of_tpch + sums(of_tpch) + [run for run in runs if run.workload not in queries]
    report(runs, "dirty", "Planning, all pages dirty")
    report(runs, "clean", "Planning, after a flush")


if __name__ == "__main__":
    main()
