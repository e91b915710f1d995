"""bench/versus: off, on and unlogged over the same rows, in turns."""

import argparse
import sys

from . import measure, report, tpch, workloads
from .progress import Progress, TimeLeft
from .session import OFF, ON, UNLOGGED, connect, use, value
from .settings import SETTINGS, line

ARMS = (OFF, ON, UNLOGGED)


def arguments():
    parser = argparse.ArgumentParser(prog="bench/versus")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first-rounds", type=int, default=3)
    parser.add_argument("--only", type=lambda text: set(text.split(",")))
    parser.add_argument("--csv")
    args = parser.parse_args()
    if not 0 < args.scale <= 1 or args.rounds < 1 or args.first_rounds < 0:
        parser.error("the scale is above 0 and at most 1, rounds are positive")
    return args


def choose(all_of_them, only):
    if only is None:
        return all_of_them
    unknown = only - {w.name for w in all_of_them}
    if unknown:
        sys.exit(f"no such workload: {', '.join(sorted(unknown))}")
    return [w for w in all_of_them if w.name in only]


def main():
    args = arguments()
    progress = Progress()
    progress.say(f"TPC-H data of scale {args.scale:g}")
    directory = tpch.generate(f"{args.scale:g}")
    chosen = choose(workloads.narrow(args.rows) + workloads.tpc_h(directory), args.only)
    # Written once before the long work, so that a wrong path is known by then.
    if args.csv:
        report.write_csv([], args.csv)

    conn = connect(SETTINGS)
    for arm in (OFF, UNLOGGED):
        use(conn, arm)
        progress.say(f"loading {arm.persistence.lower()} tables")
        workloads.create(conn, arm.persistence, args.rows)
        tpch.load(conn, arm.persistence, directory)

    runs = []
    progress.say("first runs, each after filling the table anew")
    first = [w for w in chosen if w.refill]
    left = TimeLeft(len(first) * args.first_rounds * len(ARMS))
    for workload in first:
        for n in range(args.first_rounds):
            for arm in measure.rotated(ARMS, n):
                progress.step(f"first run of {workload.name} {arm.name}, {left}")
                use(conn, arm)
                workload.refill(conn)
                runs.append(measure.run(conn, arm, workload.sql, workload.name, "first", n))
                left.advance()

    # Repeated runs are of tables that were written once. Without this, a query
    # for which the planner finds the flush too dear finds it so each time.
    written = value(conn, "SELECT pg_flush_local_buffers()")
    progress.say(f"pg_flush_local_buffers() wrote {written} pages")

    # One run of each that does not count: it fills the caches, and tells how
    # long the others will take.
    progress.say("warming up")
    weight = {}
    for workload in chosen:
        for arm in ARMS:
            progress.step(f"warming up {workload.name} {arm.name}")
            weight[workload.name, arm.name] = measure.run(
                conn, arm, workload.sql, workload.name, "warm", 0).ms

    progress.say(f"{args.rounds} rounds")
    left = TimeLeft(sum(weight.values()) * args.rounds)
    for n in range(args.rounds):
        for workload in chosen:
            for arm in measure.rotated(ARMS, n):
                progress.step(f"round {n + 1} {workload.name} {arm.name}, {left}")
                runs.append(measure.run(conn, arm, workload.sql, workload.name, "repeat", n))
                left.advance(weight[workload.name, arm.name])
        progress.say(f"round {n + 1} of {args.rounds} done, {left}")

    if args.csv:
        report.write_csv(runs, args.csv)
    print(f"\n{value(conn, 'SELECT version()')}\nTPC-H scale {args.scale:g}, {args.rows} narrow rows;"
          f" {line()}\nmedians; a ratio is the median over the rounds")
    names = [w.name for w in chosen]
    report.versus(runs, names, "First run after the table was filled, flush included", "first")
    report.versus(runs, names, "Repeated runs", "repeat")
    wrong = [n for n in names if not measure.same_answers(runs, n)]
    if wrong:
        sys.exit(f"answers differ: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
