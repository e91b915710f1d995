"""The ten steps, over a temporary table and, as a control, over a permanent one. Each must
have written, read and found exactly the pages expected, or the run is rejected."""

import glob
import os
from pathlib import Path

from ..common.session import value

STEPS = "fill write dry_write evict read dry_read evict_again random_read dirty random_write".split()
BLOCK = 8192
# A row a page: 450 bytes do not fit beside another where 90 % stay free, and need no TOAST.
CREATE = "CREATE {kind} TABLE {name} (filler char(450)) WITH (fillfactor = 10)"
# CREATE TABLE AS may extend a table by more pages than it fills.
FILL = "INSERT INTO {name} SELECT '' FROM generate_series(1, {pages})"


class Steps:
    """times: {step: ms}; written: pages of the first flush, those of the maps among them;
    allocated: buffers that it looked at; pool: buffers that the last one did."""
    kind, counted = "TEMP", "Local"

    def __init__(self, conn, variant, pages):
        self.conn, self.variant, self.pages = conn, variant, pages
        self.pool = value(conn, "SELECT setting::int FROM pg_settings WHERE name = 'temp_buffers'")
        self.times = {}

    def expect(self, step, what, count, wanted):
        if count != wanted:
            raise SystemExit(f"rejected: {self.variant}, {self.pages} pages, {step}: {what} {count}"
                             f" pages, not {wanted}")

    def timed(self, step, sql, **expected):
        [report] = value(self.conn, f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}")
        for what, wanted in expected.items():
            self.expect(step, what.lower(), report["Plan"][f"{self.counted} {what} Blocks"], wanted)
        self.times[step] = report["Execution Time"]

    def fill(self, step="fill", name="measured", pages=None):
        pages = pages or self.pages
        self.conn.execute(CREATE.format(kind=self.kind, name=name))
        self.timed(step, FILL.format(name=name, pages=pages))
        self.expect(step, f"{name} has", value(self.conn, f"SELECT pg_relation_size('{name}') / {BLOCK}"),
                    pages)

    def evict(self, step):
        self.fill(step, "other", self.pool)
        self.conn.execute("DROP TABLE other")
        # The clock sweep has passed over pages that were used.
        left = value(self.conn, "SELECT buffers_flushed + buffers_skipped FROM pg_evict_local_buffers()")
        self.expect(step, "dirty or pinned were", left, 0)
        if self.variant == "cold":
            path = value(self.conn, "SELECT current_setting('data_directory') || '/'"
                                    " || pg_relation_filepath('measured')")
            for name in [path, *glob.glob(path + "[._]*")]:
                with open(name, "r+b") as file:
                    os.fdatasync(file)
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def read(self, step, randomize):
        io = Path(f"/proc/{self.conn.info.backend_pid}/io")     # read_bytes: not from the system's cache
        before = int(io.read_text().split()[9])
        self.timed(step, f"SELECT pg_read_temp_relation('measured', {randomize})",
                   Hit=0, Read=self.pages, Written=0)
        stored = min((int(io.read_text().split()[9]) - before) // BLOCK, self.pages)
        # A few may be the catalogs', or have left the system's cache in a minute without a read.
        self.expect(step, "from storage were", stored if stored > max(8, self.pages // 1000) else 0,
                    self.pages if self.variant == "cold" else 0)

    def run(self):
        flush = "SELECT pg_flush_local_buffers()"
        self.fill()
        dirty, self.written, self.allocated = self.conn.execute(
            "SELECT count(*) FILTER (WHERE relforknumber = 0), count(*), pg_allocated_local_buffers()"
            " FROM pg_local_buffers WHERE isdirty").fetchone()
        self.expect("fill", "dirty, in a pool with room to spare, are", dirty, self.pages)
        self.timed("write", flush, Hit=0, Read=0, Written=self.written)
        self.timed("dry_write", flush, Hit=0, Read=0, Written=0)
        self.evict("evict")
        self.read("read", "false")
        self.timed("dry_read", "SELECT pg_read_temp_relation('measured', false)",
                   Hit=self.pages, Read=0, Written=0)
        self.evict("evict_again")
        self.read("random_read", "true")
        self.timed("dirty", "SELECT pg_temp_buffers_dirty('measured')",
                   Read=0, Dirtied=self.pages, Written=0)
        self.timed("random_write", flush, Hit=0, Read=0, Written=self.pages)
        after = value(self.conn, "SELECT pg_allocated_local_buffers()")
        self.expect("random_write", "allocated are", after, self.pool)
        self.conn.execute("DROP TABLE measured")


class Permanent(Steps):
    """A write is the eviction of dirty pages, a dry write that of clean ones. pg_prewarm()
    reads one page a call, as temporary tables are read."""
    kind, counted = "", "Shared"

    def evict(self, step, written=0, order="relblocknumber"):
        buffers = value(self.conn, f"""
            SELECT array_agg(bufferid ORDER BY {order}) FROM pg_buffercache
            WHERE relfilenode = pg_relation_filenode('measured') AND relforknumber = 0
            AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())""")
        self.expect(step, "in shared buffers are", len(buffers), self.pages)
        self.timed(step, f"SELECT count(pg_buffercache_evict(b)) FROM unnest(ARRAY{buffers}) b",
                   Read=0, Written=written)

    def read(self, step, order, read):
        self.conn.execute("CHECKPOINT")     # the pages of catalogs, which a read may evict
        self.timed(step, f"""SELECT sum(pg_prewarm('measured', 'buffer', 'main', b, b)) FROM (SELECT b
                   FROM generate_series(0, {self.pages - 1}) b ORDER BY {order}) b""", Read=read, Written=0)

    def run(self):
        self.conn.execute("CHECKPOINT")     # the next one is a day away
        self.fill()
        self.written = self.allocated = self.pool = self.pages
        self.evict("write", self.pages)
        self.read("read", "b", self.pages)      # replaced by the next one
        self.evict("dry_write")
        self.times["evict"] = self.times["dry_write"]
        self.read("read", "b", self.pages)
        self.read("dry_read", "b", 0)
        self.evict("evict_again")
        self.read("random_read", "random()", self.pages)
        # A row lock is stored in the page.
        self.timed("dirty", "SELECT count(*) FROM (SELECT FROM measured FOR UPDATE) locked",
                   Read=0, Dirtied=self.pages)
        self.evict("random_write", self.pages, "bufferid")
        self.conn.execute("DROP TABLE measured")
