"""bench/planning: how long the planner takes for a query, which is not executed.

All in one session: temporary tables with the module off and on, and unlogged ones. The
first round of each phase does not count: it fills the caches.
"""

import argparse
from collections import Counter
from statistics import median

from .common import measure, tpch
from .common.machine import load_average, load_line, machine
from .common.measure import Run, rule, spread
from .common.progress import Progress
from .common.session import DEFAULTS, OFF, ON, UNLOGGED, connect, line, use, value
from .common.slower import descendants, planned

ARMS = (OFF, ON, UNLOGGED)


def arguments():
    parser = argparse.ArgumentParser(prog="bench/planning")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=24)
    args = parser.parse_args()
    if not 0 < args.scale <= 1 or args.rounds < 1:
        parser.error("the scale must be above 0 and at most 1, rounds positive")
    return args


def plan(conn, arm, sql, name, phase, n):
    use(conn, arm)
    explained = planned(conn, sql)
    gathers = measure.is_parallel(node["Node Type"] for node in descendants(explained["Plan"]))
    return Run(name, phase, arm.name, n, "parallel" if gathers else "serial",
               explained["Planning Time"], 0, "")


def totals(runs, arm):
    """For each round, the milliseconds of all queries."""
    rounds = Counter()
    for run in runs:
        if run.arm == arm:
            rounds[run.round] += run.ms
    return rounds


def report(runs, phase, title):
    runs = [run for run in runs if run.phase == phase and run.round >= 0]
    head = f"{'query':10}" + "".join(f"{arm.name + ' ms':>13}" for arm in ARMS) \
        + f"{'on/off':>21}{'on/unlogged':>21}  plan when on"
    print(f"\n{title}\n{head}")
    rule(head)
    names = sorted({run.workload for run in runs})
    for name in names:
        print(f"{name:10}"
              + "".join(f"{measure.median_ms(runs, name, phase, arm.name):13.2f}" for arm in ARMS)
              + "".join(f"{spread(measure.ratios(runs, name, phase, 'on', base)):>21}"
                        for base in ("off", "unlogged"))
              + f"  {measure.plans(runs, name, phase, 'on')}")
    rule(head)
    sums = {arm.name: totals(runs, arm.name) for arm in ARMS}
    print(f"{'all':10}" + "".join(f"{median(sums[arm.name].values()):13.2f}" for arm in ARMS)
          + "".join(f"{spread([sums['on'][n] / sums[base][n] for n in sums['on']]):>21}"
                    for base in ("off", "unlogged")))


def main():
    args = arguments()
    progress = Progress()
    progress.say(machine())
    directory = tpch.generate(f"{args.scale:g}")
    queries = tpch.queries()
    conn = connect(DEFAULTS)
    # With the module on, as pages can be shared only of a pool that it has made.
    for arm in (ON, UNLOGGED):
        use(conn, arm)
        progress.say(f"loading {arm.persistence.lower()} tables")
        tpch.load(conn, arm.persistence, directory)

    runs, loads = [], []
    for phase in ("dirty", "clean"):
        if phase == "clean":
            conn.execute("SELECT pg_flush_local_buffers()")
        for n in range(-1, args.rounds):
            progress.step(f"{phase} pages, round {n + 1}")
            loads.append(load_average())
            for name, sql in queries.items():
                for arm in measure.in_turns(ARMS, n):
                    runs.append(plan(conn, arm, sql, name, phase, n))

    print(f"\n{value(conn, 'SELECT version()')}\nTPC-H scale {args.scale:g}; {line(DEFAULTS)}, the rest"
          f" at its defaults\nmedians of {args.rounds} rounds; a ratio is the median over the rounds,"
          f" in brackets the lowest and the highest\n{load_line(loads)}")
    report(runs, "dirty", "Planning, all pages dirty")
    report(runs, "clean", "Planning, after a flush")


if __name__ == "__main__":
    main()
