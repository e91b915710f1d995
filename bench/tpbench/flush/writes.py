"""bench/flush_writes: a flush compared with plain writes of the same pages.

All ways are measured alternately, another one first in each round, and each time is
compared with that of the plain writes of the same round. The table has narrow rows,
185 per page, which are the most expensive ones for a flush: it looks at each row.
"""

import argparse
import os
import subprocess
import time
from statistics import median

from ..common import measure
from ..common.progress import Progress, TimeLeft
from ..common.session import connect, value

TABLE = "flush_writes_table"

# The plain writes that a flush is compared with, and their pages per system call: as
# many as the server writes, see smgrwrite_blocks().
PLAIN = {"plain, a page a call": 1, "plain, 16 pages a call": 16}
IN_ORDER, IN_RANDOM_ORDER, NO_HINTS = (
    "flush, pool in order", "flush, pool in random order", "flush, rows without hints")
WAYS = [*PLAIN, IN_ORDER, IN_RANDOM_ORDER, NO_HINTS]


class Table:
    def __init__(self, conn, pages):
        self.conn, self.pages = conn, pages
        conn.execute(f"CREATE TEMP TABLE {TABLE} (id int, k int, v int)")
        self.fill()

    def fill(self):
        """Insert as many rows as fill the pages, in a transaction that commits."""
        self.conn.execute(f"TRUNCATE {TABLE}")
        self.conn.execute(f"INSERT INTO {TABLE} SELECT i, i % 10, i"
                          f" FROM generate_series(1, 185 * {self.pages}) i")

    def path(self):
        return value(self.conn, "SELECT current_setting('data_directory') || '/'"
                                f" || pg_relation_filepath('{TABLE}')")

    def plain(self, call):
        out = subprocess.run([os.environ["PLAIN_WRITES"], self.path(), str(self.pages), str(call)],
                             check=True, capture_output=True, text=True).stdout
        return float(out)

    def flush(self, randomize):
        """Evict the table, which sets no hint bits, read it again, dirty all pages, and then
        time the flush."""
        self.conn.execute(f"SELECT pg_evict_local_buffers('{TABLE}')")
        read, = self.conn.execute(f"SELECT pg_read_temp_relation('{TABLE}', {randomize})").fetchone()
        self.conn.execute(f"SELECT pg_temp_buffers_dirty('{TABLE}')")
        start = time.perf_counter()
        written = value(self.conn, f"SELECT pg_flush_local_buffers('{TABLE}')")
        us = (time.perf_counter() - start) * 1e6
        if not self.pages <= written < self.pages * 1.01 + 16:
            raise SystemExit(f"{written} of {self.pages} pages were written, {read} read")
        return us * self.pages / written

    def measure(self, way):
        if way in PLAIN:
            return self.plain(PLAIN[way])
        if way == NO_HINTS:
            self.fill()
        return self.flush("true" if way == IN_RANDOM_ORDER else "false")


def arguments():
    parser = argparse.ArgumentParser(prog="bench/flush_writes")
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    if not 16 <= args.pages <= 131072 or args.rounds < 1:
        parser.error("pages or rounds are out of range")
    return args


def ratios(rounds, way, base):
    """Median and range of the time of one way by that of another."""
    all_of_them = sorted(r[way] / r[base] for r in rounds)
    return median(all_of_them), all_of_them[0], all_of_them[-1]


def main():
    args = arguments()
    progress = Progress()
    conn = connect({"temp_buffers": os.environ["TEMP_BUFFERS"], "jit": "off"})
    progress.say(f"filling {args.pages} pages")
    table = Table(conn, args.pages)

    rounds = []
    left = TimeLeft((args.rounds + 1) * len(WAYS))
    for n in range(args.rounds + 1):
        times = {}
        for way in measure.rotated(WAYS, n):
            progress.step(f"round {n} {way}, {left}")
            times[way] = table.measure(way)
            left.advance()
        if n > 0:       # the first one warms up
            rounds.append(times)

    checksums = value(conn, "SHOW data_checksums")
    print(f"\n{value(conn, 'SELECT version()')}\n{args.pages} pages, data_checksums = {checksums};"
          f" medians of {args.rounds} rounds, in parentheses their range\n")
    head = f"{'':28}{'us a page':>10}" + "".join(f"{'/ ' + base:>32}" for base in PLAIN)
    print(head + "\n" + "-" * len(head))
    for way in WAYS:
        cells = "".join("{:>14.2f} ({:.2f} .. {:.2f})".format(*ratios(rounds, way, base)).rjust(32)
                        for base in PLAIN)
        print(f"{way:28}{median(r[way] for r in rounds) / args.pages:10.2f}{cells}")
    print("\npool in random order / in order: {:.3f} ({:.3f} .. {:.3f})".format(
        *ratios(rounds, IN_RANDOM_ORDER, IN_ORDER)))


if __name__ == "__main__":
    main()
