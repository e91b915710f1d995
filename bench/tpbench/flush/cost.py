"""bench/flush_cost: writing compared with reading temporary tables, by size."""

import argparse
import json
import os
import sys
from pathlib import Path

from ..common.progress import Progress, TimeLeft
from ..common.session import connect, value
from . import machine, plots, report, samples
from .results import VARIANTS, by_size
from .samples import Sample
from .steps import STEPS, Permanent, Refused, Temporary, pool_size, prepare

TABLESPACE = "flush_cost_tmpfs"
# For estimating the time left: an iteration's duration, in pages of the plain variant.
OVERHEAD, SLOWER = 500, {"cold": 4, "permanent": 4}
# Room for the table, the one that evicts it, and a reserve.
TMPFS_PAGES = 2.5


def arguments():
    parser = argparse.ArgumentParser(prog="bench/flush_cost")
    parser.add_argument("--variants", type=lambda text: text.split(","), default=["plain"])
    parser.add_argument("--min-pages", type=int, default=128)
    parser.add_argument("--max-pages", type=int, required=True)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--pool", type=int, default=102)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tmpfs")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    unknown = set(args.variants) - set(VARIANTS)
    if unknown:
        parser.error(f"no such variant: {', '.join(sorted(unknown))}; there are"
                     f" {', '.join(VARIANTS)}")
    if min(args.iterations, args.passes, args.pool) < 1 or args.warm_up < 0:
        parser.error("iterations, passes and the pool must be above 0, warm-ups at least 0")
    if not 1 <= args.min_pages <= args.max_pages:
        parser.error("the smallest size must be above 0 and at most the largest one")
    return args


def weight(variant, pages):
    return (pages + OVERHEAD) * SLOWER.get(variant, 1)


def sizes(first, last):
    while first <= last:
        yield first
        first *= 2


class Bench:
    def __init__(self, args, progress):
        self.args, self.progress = args, progress
        args.out.mkdir(parents=True, exist_ok=True)
        self.csv = args.out / "flush_cost.csv"
        self.about = args.out / "about.json"
        self.rows = samples.load(self.csv, STEPS)

    def described(self):
        """The machine that the rows come from, and the commands that made them."""
        if not self.about.exists():
            sys.exit(f"{self.about}, which says where the rows beside it come from, does not exist")
        return json.loads(self.about.read_text())

    def recognize(self, conn):
        """Refuse rows that were measured on another machine or with another server: they
        must not be mixed with new ones."""
        here = machine.describe(conn)
        command = os.environ.get("COMMAND", "bench/flush_cost")
        about = self.described() if self.rows else {"machine": here, "commands": []}
        if self.rows:
            for name, text in here.items():
                if about["machine"].get(name) != text:
                    sys.exit(f"{self.csv} was measured elsewhere ({name}:"
                             f" {about['machine'].get(name)}, here {text}); give another --out")
        if command not in about["commands"]:
            about["commands"].append(command)
        self.about.write_text(json.dumps(about, indent=2) + "\n")
        samples.write(self.csv, self.rows)

    def available(self, conn, variant):
        """Prepare for this variant. Returns why it cannot be measured here, or None."""
        if variant == "permanent":
            if conn.info.server_version < 170000:
                return "not available: pg_buffercache_evict() requires PostgreSQL 17"
            for name in Permanent.extensions:
                conn.execute(f"CREATE EXTENSION IF NOT EXISTS {name}")
        elif variant == "tmpfs":
            if not self.args.tmpfs:
                return "not available: no directory on a tmpfs"
            conn.execute(f"CREATE TABLESPACE {TABLESPACE} LOCATION '{self.args.tmpfs}'")
        return None

    def fits(self, variant, pages):
        if variant != "tmpfs":
            return True
        there = os.statvfs(self.args.tmpfs)
        return pages * TMPFS_PAGES * 8192 <= there.f_bavail * there.f_frsize

    def variants(self, conn):
        """Those that can be measured here. Prints the reason for the others."""
        for variant in self.args.variants:
            reason = self.available(conn, variant)
            if reason:
                self.progress.say(f"{variant}: {reason}")
            else:
                yield variant

    def plan(self, conn):
        """What remains to be done: [(variant, pages, numbers of the iterations)].

        In passes, each over all variants and sizes, so that a busy minute of another
        process does not make one size look slow.
        """
        missing = {}
        for variant in self.variants(conn):
            for pages in sizes(self.args.min_pages, self.args.max_pages):
                if not self.fits(variant, pages):
                    self.progress.say(f"{variant}: {pages} pages do not fit")
                    continue
                have = samples.iterations(self.rows, variant, pages)
                missing[variant, pages] = [i for i in range(1, self.args.iterations + 1)
                                           if i not in have]
        todo = []
        for n in range(self.args.passes):
            for (variant, pages), numbers in missing.items():
                first, last = (len(numbers) * k // self.args.passes for k in (n, n + 1))
                if numbers[first:last]:
                    todo.append((variant, pages, numbers[first:last]))
        return todo

    def steps(self, conn, variant, pages):
        if variant == "permanent":
            return Permanent(conn, pages, int(value(
                conn, "SELECT setting FROM pg_settings WHERE name = 'shared_buffers'")))
        return Temporary(conn, pages, int(value(
            conn, "SELECT setting FROM pg_settings WHERE name = 'temp_buffers'")),
            variant == "cold")

    def connect(self, variant, pages):
        """A session for each size: temp_buffers cannot change after the first use."""
        settings = {"jit": "off", "temp_buffers": str(pool_size(pages, self.args.pool))}
        if variant == "tmpfs":
            settings["temp_tablespaces"] = TABLESPACE
        return connect(settings)

    def measure(self, variant, pages, missing, left):
        with self.connect(variant, pages) as conn:
            steps = self.steps(conn, variant, pages)
            what = f"{variant}, {pages} pages"
            for n in range(self.args.warm_up):
                self.progress.step(f"{what}, warming up, {left}")
                for _ in steps.run():
                    pass
                left.advance(weight(variant, pages))
            for n in missing:
                self.progress.step(f"{what}, run {n} of {self.args.iterations}, {left}")
                load = os.getloadavg()[0]
                done = [Sample(variant, pages, steps.pool, n, load, step, found.ms, found.hit,
                               found.read, found.dirtied, found.written, **notes)
                        for step, found, notes in steps.run()]
                # The cost of a scan is per allocated buffer.
                if steps.allocated() != steps.pool:
                    raise Refused(f"{steps.allocated()} of {steps.pool} buffers are allocated")
                samples.append(self.csv, done)
                self.rows += done
                left.advance(weight(variant, pages))

    def run(self):
        with connect({}) as conn:
            self.recognize(conn)
            prepare(conn)
            todo = self.plan(conn)
        left = TimeLeft(sum(weight(variant, pages) * (len(missing) + self.args.warm_up)
                            for variant, pages, missing in todo))
        if not todo:
            self.progress.say("nothing remains to be measured")
        for variant, pages, missing in todo:
            try:
                self.measure(variant, pages, missing, left)
            except Refused as reason:
                self.progress.clear()
                sys.exit(f"refused: {variant}, {pages} pages: {reason}")
            self.progress.say(f"{variant}, {pages} pages: {len(missing)} runs, {left}")

    def report(self):
        if not self.rows:
            sys.exit(f"there are no measurements in {self.csv}")
        about = self.described()
        results = by_size(self.rows)
        text = report.markdown(about, results)
        (self.args.out / "report.md").write_text(text)
        title = (f"{about['machine']['Server'].split(' (')[0]}, {about['machine']['Processor']},"
                 f" {about['machine']['Storage'].split(' (')[0]}")
        plots.per_page(results, self.args.out / "flush_cost_per_page.png", title)
        plots.ratio(results, self.args.out / "flush_cost_ratio.png", title)
        print(f"\n{text}")
        self.progress.say(f"rows, tables and plots are in {self.args.out}")


def main():
    args = arguments()
    bench = Bench(args, Progress())
    if not args.report:
        bench.run()
    bench.report()


if __name__ == "__main__":
    main()
