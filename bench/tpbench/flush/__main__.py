import argparse
import csv
import os
from pathlib import Path

from ..common.arguments import listed
from ..common.machine import busy, machine
from ..common.progress import Progress, TimeLeft
from ..common.session import connect, value
from . import report, rows
from .steps import STEPS, Permanent, Steps


def arguments():
    parser = argparse.ArgumentParser(prog="bench/flush_cost")
    for option, kind, default in (
            ("--variants", listed(str), list(report.VARIANTS)), ("--iterations", int, 30),
            ("--sizes", listed(int), [2 ** n for n in range(7, 19)]), ("--passes", int, 3),
            ("--out", Path, Path("flush_cost.out")), ("--tmpfs", str, None)):
        parser.add_argument(option, type=kind, default=default)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if set(args.variants) - set(report.VARIANTS) or not 2 <= args.passes * 2 <= args.iterations:
        parser.error(f"variants are {', '.join(report.VARIANTS)}; each pass has two iterations or more")
    return args


def measure(variant, pages, iterations, say):
    with connect({"temp_buffers": str(pages * 11 // 10 + 64), "jit": "off",
                  # The pool is in the session's own memory, as without the module.
                  "temp_parallel.share_local_buffers": "off",
                  "temp_tablespaces": "flush_cost" if variant == "tmpfs" else ""}) as conn:
        steps = (Permanent if variant == "permanent" else Steps)(conn, variant, pages)
        steps.run()     # warms up
        others = f"{busy():.3f}"
        for n in iterations:
            say(f"run {n}")
            steps.run()
            yield (variant, pages, n, others, steps.written, steps.allocated, steps.pool,
                   *(steps.times[step] for step in STEPS))


def run(args, progress):
    """Returns the file of the rows."""
    with connect({}) as conn:
        if args.tmpfs:
            owner = os.stat(value(conn, "SHOW data_directory"))
            os.chown(args.tmpfs, owner.st_uid, owner.st_gid)
            conn.execute(f"CREATE TABLESPACE flush_cost LOCATION '{args.tmpfs}'")
        if conn.info.server_version >= 170000:
            conn.execute("CREATE EXTENSION pg_buffercache; CREATE EXTENSION pg_prewarm")
        lacking = {"permanent": conn.info.server_version < 170000, "tmpfs": not args.tmpfs}
        variants = [variant for variant in args.variants if not lacking.get(variant)]
        progress.say(f"measuring {', '.join(variants)}")
        about = [value(conn, "SELECT version()"), machine(), f"{args.iterations} runs in {args.passes}"
                 f" passes, page checksums {value(conn, 'SHOW data_checksums')}"]
        path = args.out / f"flush_cost_{conn.info.server_version // 10000}.csv"
    done, left = [], TimeLeft(args.passes * len(variants) * sum(args.sizes))
    for n in range(args.passes):
        numbers = range(args.iterations * n // args.passes, args.iterations * (n + 1) // args.passes)
        for variant, pages in ((variant, pages) for variant in variants for pages in args.sizes):
            what = f"pass {n + 1} of {args.passes}, {variant}, {pages} pages"
            done += measure(variant, pages, numbers, lambda at: progress.step(f"{what}, {at}, {left}"))
            left.advance(pages)
            progress.say(f"{what}: {len(numbers)} runs, {left}")
            with open(path, "w", newline="") as out:
                out.writelines(f"# {line}\n" for line in about)
                csv.writer(out, lineterminator="\n").writerows([rows.COLUMNS, *done])
    return path


def main():
    args, progress = arguments(), Progress()
    args.out.mkdir(parents=True, exist_ok=True)
    measured = None if args.report else run(args, progress)
    results = {path: rows.load(path) for path in sorted(args.out.glob("flush_cost_*.csv"))}
    if not results:
        raise SystemExit(f"there are no rows in {args.out}")
    for path in results if args.report else [measured]:
        report.tables(*results[path])
    report.plots({path.stem[len("flush_cost_"):]: found for path, found in results.items()}, args.out)


main()
