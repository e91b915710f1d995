"""bench/versus: off, on and unlogged over the same rows, alternating."""

import argparse
import sys
from pathlib import Path

from ..common import measure, tpch
from ..common.arguments import listed
from ..common.progress import Progress, TimeLeft
from ..common.session import DEFAULTS, OFF, ON, SETTINGS, UNLOGGED, calibrated, connect, line, use, value
from . import plot, report, workloads

ARMS = (OFF, ON, UNLOGGED)


def arguments():
    parser = argparse.ArgumentParser(prog="bench/versus")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first-rounds", type=int, default=3)
    parser.add_argument("--temp-buffers", type=listed(str))
    parser.add_argument("--defaults", action="store_true")
    parser.add_argument("--calibrated", action="store_true")
    parser.add_argument("--only", type=lambda text: set(text.split(",")))
    parser.add_argument("--csv")
    parser.add_argument("--plot")
    args = parser.parse_args()
    if not 0 < args.scale <= 1 or args.rows < 1000 or args.rounds < 1 \
            or args.first_rounds < 0:
        parser.error("the scale must be above 0 and at most 1, rows at least 1000,"
                     " rounds positive")
    return args


def choose(all_of_them, only):
    if only is None:
        return all_of_them
    if "tpch" in only:
        only = only - {"tpch"} | {w.name for w in all_of_them if w.is_tpch}
    unknown = only - {w.name for w in all_of_them}
    if unknown:
        sys.exit(f"no such workload: {', '.join(sorted(unknown))}")
    return [w for w in all_of_them if w.name in only]


def load(conn, args, chosen, directory, progress):
    """Load the tables of the chosen workloads. The pool is made with the module off, as
    without it: so dirty pages are not shared, but written."""
    synthetic = not all(w.is_tpch for w in chosen)
    if synthetic:
        workloads.create_permanent(conn, args.rows)
    for arm in (OFF, UNLOGGED):
        use(conn, arm)
        progress.say(f"loading {arm.persistence.lower()} tables")
        if synthetic:
            workloads.create(conn, arm.persistence, args.rows)
        if any(w.is_tpch for w in chosen):
            tpch.load(conn, arm.persistence, directory)


def first_runs(conn, chosen, rounds, progress):
    runs = []
    progress.say("first runs, each after refilling the table")
    first = [w for w in chosen if w.refill]
    left = TimeLeft(len(first) * rounds * len(ARMS))
    for workload in first:
        for n in range(rounds):
            for arm in measure.in_turns(ARMS, n):
                progress.step(f"first run of {workload.name} {arm.name}, {left}")
                use(conn, arm)
                workload.refill(conn)
                runs.append(measure.run(conn, arm, workload.sql, workload.name, "first", n))
                left.advance()
    return runs


def repeated_runs(conn, chosen, rounds, progress):
    # Repeated runs are of tables without dirty pages. Otherwise a query whose flush is
    # too expensive for the planner would never run in parallel.
    written = value(conn, "SELECT pg_flush_local_buffers()")
    progress.say(f"pg_flush_local_buffers() wrote {written} pages")

    # One run of each does not count: it fills the caches, and its time weights the
    # estimate of the time left.
    progress.say("warming up")
    weight = {}
    for workload in chosen:
        for arm in ARMS:
            progress.step(f"warming up {workload.name} {arm.name}")
            weight[workload.name, arm.name] = measure.run(
                conn, arm, workload.sql, workload.name, "warm", 0).ms

    runs = []
    progress.say(f"{rounds} rounds")
    left = TimeLeft(sum(weight.values()) * rounds)
    for n in range(rounds):
        for workload in chosen:
            for arm in measure.in_turns(ARMS, n):
                progress.step(f"round {n + 1} {workload.name} {arm.name}, {left}")
                runs.append(measure.run(conn, arm, workload.sql, workload.name, "repeat", n))
                left.advance(weight[workload.name, arm.name])
        progress.say(f"round {n + 1} of {rounds} done, {left}")
    return runs


def all_runs(conn, args, chosen, directory, progress):
    """The Runs of one session. Leaves no tables to the next one."""
    load(conn, args, chosen, directory, progress)
    runs = first_runs(conn, chosen, args.first_rounds, progress)
    runs += repeated_runs(conn, chosen, args.rounds, progress)
    conn.execute("SET client_min_messages = warning")
    conn.execute(f"DROP TABLE IF EXISTS {workloads.PERMANENT.name}; DROP SCHEMA unlogged CASCADE")
    return runs


def plot_path(path, temp_buffers, several):
    """Each value of temp_buffers has its own plot."""
    path = Path(path)
    return path.with_stem(f"{path.stem}_{temp_buffers}") if several else path


def main():
    args = arguments()
    progress = Progress()
    progress.say(f"TPC-H data of scale {args.scale:g}")
    directory = tpch.generate(f"{args.scale:g}")
    chosen = choose(workloads.synthetic(args.rows) + workloads.tpc_h(directory), args.only)
    names = [w.name for w in chosen]
    shared = (DEFAULTS if args.defaults else SETTINGS) | (calibrated() if args.calibrated else {})
    several = args.temp_buffers or [SETTINGS["temp_buffers"]]
    # A wrong path fails before the long work.
    for path in [args.csv] + [args.plot and plot_path(args.plot, b, args.temp_buffers) for b in several]:
        if path:
            open(path, "a").close()

    results = {}
    wrong = set()
    for temp_buffers in several:
        settings = shared | {"temp_buffers": temp_buffers}
        with connect(settings) as conn:
            version = value(conn, "SELECT version()")
            runs = results[temp_buffers] = all_runs(conn, args, chosen, directory, progress)
        title = f"{version}\nTPC-H scale {args.scale:g}, {args.rows} narrow rows; {line(settings)}"
        print(f"\n{title}\nmedians; a ratio is the median over the rounds, in brackets the lowest and"
              " the highest")
        report.versus(runs, names, "First run after the table was filled, flush included", "first")
        report.versus(runs, names, "Repeated runs", "repeat")
        if args.plot:
            plot.draw(runs, names, title, plot_path(args.plot, temp_buffers, args.temp_buffers))
        wrong |= {n for n in names if not measure.same_answers(runs, n)}
    if args.temp_buffers:
        report.by_temp_buffers(results, names)
    if args.csv:
        report.write_csv(results, args.csv)
    if wrong:
        sys.exit(f"answers differ: {', '.join(sorted(wrong))}")


if __name__ == "__main__":
    main()
