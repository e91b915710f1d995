"""bench/fill_and_query: sessions that fill tables and then run the same report."""

import argparse
import sys

from ..common import measure
from ..common.arguments import listed, require_writable
from ..common.machine import load_average, load_line, machine
from ..common.progress import Progress, TimeLeft
from ..common.session import DEFAULTS, FLUSHED, OFF, ON, UNLOGGED, connect, value
from . import plot, report, sequence

ARMS = (OFF, FLUSHED, ON, UNLOGGED)
# For the reader, as they are not set.
SHOWN = ("temp_buffers", "shared_buffers", "work_mem", "max_parallel_workers_per_gather", "jit")


def arguments():
    parser = argparse.ArgumentParser(prog="bench/fill_and_query")
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--queries", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=listed(str), default=list(sequence.WORKLOADS))
    parser.add_argument("--csv")
    parser.add_argument("--plot")
    args = parser.parse_args()
    unknown = set(args.only) - set(sequence.WORKLOADS)
    if unknown:
        parser.error(f"--only: {', '.join(sorted(unknown))}?")
    if args.rows < 1 or args.queries < 1 or args.rounds < 1:
        parser.error("rows, queries and rounds must be positive")
    return args


def measured(args, progress):
    """All sequences, and the load averages before them."""
    sequences, loads = [], []
    left = TimeLeft(args.rounds * len(ARMS) * len(args.only))
    for n in range(args.rounds):
        for name in args.only:
            for arm in measure.in_turns(ARMS, n):
                progress.step(f"round {n + 1} {name} {arm.name}, {left}")
                loads.append(load_average())
                sequences.append(sequence.run(DEFAULTS, arm, name, n, args.rows, args.queries))
                left.advance()
        progress.say(f"round {n + 1} of {args.rounds} done, {left}")
    return sequences, loads


def main():
    args = arguments()
    progress = Progress()
    require_writable(args.csv, args.plot)
    with connect(DEFAULTS) as conn:
        settings = ", ".join(f"{name} = {value(conn, f'SHOW {name}')}" for name in SHOWN)
        version = value(conn, "SELECT version()").split(" on ")[0]
    progress.say(machine())
    sequences, loads = measured(args, progress)

    title = f"{version}; {machine()}\n{args.rows} rows of 100 bytes in each table," \
        f" analyzed; {settings}"
    print(f"\n{title}\ntotals of the first queries after the load, which is not included: medians of"
          f" {args.rounds} rounds;\na ratio is the median over the rounds, in brackets the lowest and"
          f" the highest\n{load_line(loads)}")
    missed = sum(report.totals(sequences, name) for name in args.only)
    if missed:
        print(f"\n{missed} aims missed")
    if args.csv:
        report.write_csv(sequences, args.csv)
    if args.plot:
        plot.draw(sequences, title, args.plot)

    wrong = [name for name in args.only if not sequence.same_answers(sequences, name)]
    if wrong:
        sys.exit(f"answers differ: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
