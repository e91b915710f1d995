"""The grid: its tables, its points, and the state of the local buffers."""

import sys
from dataclasses import dataclass
from itertools import product

from ..common.session import value

# Bytes of padding in a row, besides 28 bytes of numbers and the tuple header.
WIDTHS = {"narrow": 0, "medium": 66, "wide": 446}
KINDS = ("scan", "join", "insert")
PICKS = 1000        # selectivities are in thousandths
POOL_PART = 0.9     # fraction of the pool that tables may fill


@dataclass(frozen=True)
class Table:
    rows: int
    width: str
    side_part: int      # the joined table, which is narrow, has 1 / side_part of the rows

    def create(self, conn):
        """Create the table: vacuumed, so that no scan sets hint bits, and in the pool."""
        conn.execute(f"""
            DROP TABLE IF EXISTS main, side, kept;
            CREATE TEMP TABLE main (id bigint, side integer, pick integer, amount integer,
                                    pad text);
            INSERT INTO main
            SELECT i, i * 7919 % {self.rows // self.side_part}, i * 104729 % {PICKS}, i % 1003,
                   repeat('x', {WIDTHS[self.width]})
            FROM generate_series(1::bigint, {self.rows}) AS i;
            CREATE TEMP TABLE kept (side integer, amount bigint, n bigint);
            CREATE TEMP TABLE side (id integer, kind integer);
            INSERT INTO side SELECT i, i % 25 FROM generate_series(0, {self.rows // self.side_part - 1}) i
        """)
        conn.execute("VACUUM (ANALYZE) main")
        conn.execute("VACUUM (ANALYZE) side")

    @property
    def name(self):
        return f"{self.rows} {self.width} rows"

    def estimated_pages(self):
        row = 24 + 24 + max(WIDTHS[self.width], 4) + 4
        return self.rows * row / 8100

    def fits(self, pool):
        side = Table(self.rows // self.side_part, "narrow", self.side_part)
        return self.estimated_pages() + side.estimated_pages() <= POOL_PART * pool


@dataclass(frozen=True)
class Point:
    """A query, or a sequence: the query several times, in parts between which pages are
    dirtied again."""
    table: Table
    kind: str
    selectivity: float
    dirty: float        # fraction of the pages at the start
    parts: int = 1
    queries: int = 1
    again: float = 0    # fraction of the pages

    @property
    def sql(self):
        limit = round(self.selectivity * PICKS)
        if self.kind == "scan":
            return f"SELECT count(*), sum(amount), max(id) FROM main WHERE pick < {limit}"
        if self.kind == "insert":
            # the planner expects 0.5 % of the rows, whatever the divisor
            return ("INSERT INTO kept SELECT side, sum(amount), count(*) FROM main"
                    f" WHERE pick % {round(1 / self.selectivity)} = 0 GROUP BY side")
        return ("SELECT count(*), sum(amount), max(kind) FROM main"
                f" JOIN side ON side.id = main.side WHERE pick < {limit}")

    @property
    def starts(self):
        """Of each part, the number of its first query."""
        return [self.queries * part // self.parts for part in range(self.parts)]

    @property
    def name(self):
        return f"{self.kind} of {self.table.name}, {self.selectivity:g} of them," \
            f" {self.dirty:g} dirty" \
            + (f", {self.again:g} again in {self.parts} parts" if self.parts > 1 else "")


def points(conn, args, side_part, parts=(1,), **sequence):
    """All points, grouped by table; and the tables that do not fit into the pool."""
    pool = value(conn, "SELECT setting::int FROM pg_settings WHERE name = 'temp_buffers'")
    tables = [Table(*t, side_part) for t in product(args.rows, args.widths)]
    return ([Point(t, *rest, **sequence) for t in tables if t.fits(pool)
             for rest in product(args.kinds, args.selectivities, args.dirty, parts)],
            [t for t in tables if not t.fits(pool)])


def pages(conn):
    return value(conn, "SELECT pg_relation_size('main') / current_setting('block_size')::int")


def dirty_pages(conn):
    return value(conn, "SELECT pg_dirty_local_buffers()")


def make_dirty(conn, point):
    """Before one query: read all pages into the pool, and dirty the first part of them, as an
    append or an update of old rows does. Returns the number of dirty pages in the pool."""
    conn.execute("SELECT pg_flush_local_buffers(), set_config('max_parallel_workers_per_gather',"
                 " '0', false)")
    conn.execute("TRUNCATE kept")
    dirty = round(pages(conn) * point.dirty)
    if 0 < point.dirty < 1:
        conn.execute("SELECT pg_evict_local_buffers('main')")
        # a TID range scan reads only these pages
        conn.execute(f"SELECT count(*) FROM main WHERE ctid < '({dirty},0)'")
    if point.dirty > 0:
        conn.execute("SELECT pg_temp_buffers_dirty('main')")
    conn.execute("SELECT pg_read_temp_relation('main'), pg_read_temp_relation('side')")
    found = dirty_pages(conn)
    # more by the table's two maps
    if not dirty <= found <= dirty + 20:
        sys.exit(f"{found} pages are dirty rather than {dirty}")
    return found


def begin_sequence(conn, point):
    """Read all pages into the pool, and dirty those that are dirty at the start. No account
    is left, as all is flushed before. Nothing is evicted: buffers would be allocated for what
    is read again, and the flush looks at all of them."""
    conn.execute("SELECT pg_flush_local_buffers(), pg_read_temp_relation('main'),"
                 " pg_read_temp_relation('side')")
    if point.dirty == 1:
        conn.execute("SELECT pg_temp_buffers_dirty('main')")
    else:
        dirty_first(conn, point.dirty)
    if point.kind == "join" and point.dirty > 0:
        conn.execute("SELECT pg_temp_buffers_dirty('side')")


def dirty_first(conn, part):
    """Dirty the first pages of the main table, as an update does. It would move the rows,
    and each run would find another table; a lock leaves them where they are."""
    number = round(pages(conn) * part)
    conn.execute(f"SELECT count(*) FROM (SELECT FROM main WHERE ctid < '({number},0)' FOR UPDATE) m")
