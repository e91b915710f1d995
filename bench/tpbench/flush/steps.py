"""The ten steps of bench/flush_cost, over a temporary table and, as a control,
over a permanent one.

Every measurement is an EXPLAIN (ANALYZE, BUFFERS) of one call, and its counts must be
those of the step: each page written once; each page read and none hit; or none read
and all hit. Otherwise the time is that of something else, and Refused is raised.
"""

import ctypes
import glob
import math
import mmap
import os

from ..common.session import value
from .buffers import explain

STEPS = ("write", "dry_write", "read", "dry_read", "random_read", "dirty", "random_write")
TABLE, FILLER, PAGE = "flush_cost_table", "flush_cost_filler", "flush_cost_page"
BLOCK = 8192


class Refused(Exception):
    """What was measured is not what should have been measured."""


def expect(step, what, counted, wanted, because=""):
    if counted != wanted:
        raise Refused(f"{step}: {what} {counted} pages, not {wanted}{because}")


def prepare(conn):
    """Create the model of all tables: a page holds one row, and nothing is TOASTed. LIKE
    copies the storage; CREATE TABLE cannot set it before 16."""
    conn.execute(f"DROP TABLE IF EXISTS {PAGE};"
                 f"CREATE TABLE {PAGE} (filler text);"
                 f"ALTER TABLE {PAGE} ALTER filler SET STORAGE PLAIN")


def cached(file):
    """How many pages of a file the kernel has in its cache. To read with RWF_NOWAIT would be
    shorter, but makes it read ahead."""
    size = os.fstat(file.fileno()).st_size
    if size == 0:
        return 0
    resident = (ctypes.c_ubyte * math.ceil(size / mmap.PAGESIZE))()
    with mmap.mmap(file.fileno(), size) as memory:
        start = ctypes.c_char.from_buffer(memory)
        if ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(start)),
                                     ctypes.c_size_t(size), resident) != 0:
            raise OSError(f"mincore failed for {file.name}")
        del start
    return math.ceil(sum(page & 1 for page in resident) * mmap.PAGESIZE / BLOCK)


def leave_kernel_cache(conn):
    """Write the table's files, and advise the kernel that they are not needed in its cache
    any more, as dd oflag=nocache,fdatasync does. Returns the number of their pages, and how
    many of these it still has."""
    path = value(conn, "SELECT current_setting('data_directory') || '/' ||"
                       f" pg_relation_filepath('{TABLE}')")
    pages = still_cached = 0
    for name in [path, *glob.glob(path + "[._]*")]:
        with open(name, "r+b", buffering=0) as file:
            os.fdatasync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            pages += os.fstat(file.fileno()).st_size // BLOCK
            still_cached += cached(file)
    return pages, still_cached


class Steps:
    """What the two kinds of table share. Tables have a row per page, and are filled by
    INSERT: CREATE TABLE AS may extend a table by more pages than it fills."""

    persistence = kind = ""

    def __init__(self, conn, pages, pool):
        self.conn, self.pages, self.pool = conn, pages, pool

    def fill(self, table, pages):
        self.conn.execute(f"CREATE {self.persistence} TABLE {table} (LIKE {PAGE} INCLUDING STORAGE);"
                          f"INSERT INTO {table} SELECT repeat('x', 7000)"
                          f" FROM generate_series(1, {pages})")

    def explain(self, sql):
        return explain(self.conn, sql, self.kind)

    def create(self):
        self.fill(TABLE, self.pages)
        expect("create", "the table has",
               value(self.conn, f"SELECT pg_relation_size('{TABLE}')"
                                " / current_setting('block_size')::int"), self.pages)

    def drop(self, table):
        self.conn.execute(f"DROP TABLE {table}")

    def expect_read(self, step, found):
        expect(step, "found", found.hit, 0)
        expect(step, "read", found.read, self.pages)

    def expect_hit(self, step, found):
        why = f": the pool of {self.pool} does not hold the table and its maps"
        expect(step, "read", found.read, 0, why)
        expect(step, "found", found.hit, self.pages, why)


class Temporary(Steps):
    persistence, kind = "TEMP", "Local"

    def __init__(self, conn, pages, pool, cold):
        super().__init__(conn, pages, pool)
        self.cold = cold

    def evict(self):
        """Fill the pool with another table and drop that, so that all buffers are allocated;
        then evict the pages that are left, as the clock sweep passes over a page as often
        as it was used. Returns how many these were and, if the table is to leave the
        kernel's cache as well, how many pages are still there."""
        self.fill(FILLER, self.pool)
        self.drop(FILLER)
        evicted, flushed, skipped = self.conn.execute(
            f"SELECT * FROM pg_evict_local_buffers('{TABLE}')").fetchone()
        expect("evict", "pinned were", skipped, 0)
        expect("evict", "dirty were", flushed, 0)
        still_cached = None
        if self.cold:
            pages, still_cached = leave_kernel_cache(self.conn)
            if still_cached * 2 > pages:
                raise Refused(f"the kernel keeps {still_cached} of {pages} pages in its cache in"
                              " spite of the advice: no cold reads on this file system")
        return {"left_by_filler": evicted, "still_cached": still_cached}

    def run(self):
        """Yields (step, what was measured, notes)."""
        flush = "SELECT pg_flush_local_buffers()"
        self.create()
        dirty = value(self.conn, "SELECT pg_dirty_local_buffers()")
        if dirty < self.pages:
            raise Refused(f"create: {dirty} of {self.pages} pages are dirty, as the pool of"
                          f" {self.pool} does not hold the table and its maps")
        found = self.explain(flush)
        expect("write", "written were", found.written, dirty)
        yield "write", found, {}
        found = self.explain(flush)
        expect("dry_write", "written were", found.written, 0)
        yield "dry_write", found, {}

        notes = self.evict()
        read = f"SELECT pg_read_temp_relation('{TABLE}', false)"
        found = self.explain(read)
        self.expect_read("read", found)
        yield "read", found, notes
        found = self.explain(read)
        self.expect_hit("dry_read", found)
        yield "dry_read", found, {}

        notes = self.evict()
        found = self.explain(f"SELECT pg_read_temp_relation('{TABLE}', true)")
        self.expect_read("random_read", found)
        yield "random_read", found, notes
        found = self.explain(f"SELECT pg_temp_buffers_dirty('{TABLE}')")
        expect("dirty", "dirtied were", found.dirtied, self.pages)
        yield "dirty", found, {}
        found = self.explain(flush)
        expect("random_write", "written were", found.written, self.pages)
        yield "random_write", found, {}
        self.drop(TABLE)

    def allocated(self):
        return value(self.conn, "SELECT pg_allocated_local_buffers()")


class Permanent(Steps):
    """The control: the same in shared buffers. pg_buffercache_evict() evicts a page and
    writes it if it is dirty, so a dry write is the eviction of a clean page.
    pg_prewarm() reads the pages, one per call, because pg_read_temp_relation() cannot
    read several at once either; the dry runs show what the calls cost."""

    persistence, kind = "", "Shared"
    extensions = ("pg_buffercache", "pg_prewarm")

    def allocated(self):
        return self.pool

    def buffers(self, order):
        return value(self.conn, f"""
            SELECT array_agg(bufferid ORDER BY {order})::text FROM pg_buffercache
            WHERE relfilenode = pg_relation_filenode('{TABLE}') AND relforknumber = 0
            AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())""")

    def evict(self, order):
        ids = self.buffers(order)
        found = self.explain(f"SELECT count(pg_buffercache_evict(b)) FROM unnest('{ids}'::int[]) b")
        if self.buffers(order) is not None:
            raise Refused("evict: pages stayed in shared buffers")
        return found

    def read(self, order):
        blocks = value(self.conn, "SELECT array_agg(b ORDER BY %s)::text"
                                  " FROM generate_series(0, %d) b" % (order, self.pages - 1))
        return self.explain(f"SELECT sum(pg_prewarm('{TABLE}', 'buffer', 'main', b, b))"
                            f" FROM unnest('{blocks}'::bigint[]) b")

    def run(self):
        # No checkpoint may come in between: the next one is a day away.
        self.conn.execute("CHECKPOINT")
        self.create()
        found = self.evict("relblocknumber")
        expect("write", "written were", found.written, self.pages)
        yield "write", found, {}
        self.read("b")
        found = self.evict("relblocknumber")
        expect("dry_write", "written were", found.written, 0)
        yield "dry_write", found, {}

        found = self.read("b")
        expect("read", "read were", found.read, self.pages)
        yield "read", found, {}
        found = self.read("b")
        expect("dry_read", "read were", found.read, 0,
               f": {self.pool} shared buffers do not hold the table")
        yield "dry_read", found, {}

        self.evict("relblocknumber")
        found = self.read("random()")
        expect("random_read", "read were", found.read, self.pages)
        yield "random_read", found, {}
        # A row lock is stored in the tuple, and so in the page.
        found = self.explain(f"SELECT count(*) FROM (SELECT FROM {TABLE} FOR UPDATE) AS locked")
        expect("dirty", "read were", found.read, 0)
        yield "dirty", found, {}
        found = self.evict("bufferid")
        expect("random_write", "written were", found.written, self.pages)
        yield "random_write", found, {}
        self.drop(TABLE)


def pool_size(pages, percent):
    """Buffers for a temporary table and its maps, where a page of the free space map
    covers 4000 pages and one of the visibility map 32000, and for what the server
    itself keeps pinned."""
    return max(100, math.ceil(pages * percent / 100) + 64)
