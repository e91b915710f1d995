"""The sequences, and the state of the local buffers during them."""

from dataclasses import dataclass
from itertools import product

from ..choice import grid
from ..common.session import value

SIDE_PART = 2       # the joined table has 1 / SIDE_PART of the rows


@dataclass(frozen=True)
class Sequence:
    point: grid.Point       # of the queries; its fraction of dirty pages is that at the start
    queries: int
    parts: int
    again: float            # fraction of the pages that is dirtied between parts

    @property
    def starts(self):
        """Of each part, the number of its first query."""
        return [self.queries * part // self.parts for part in range(self.parts)]

    @property
    def name(self):
        return self.point.name + (f", {self.again:g} again in {self.parts} parts"
                                  if self.parts > 1 else "")


def prepare(conn, sequence):
    """Read all pages into the pool, and dirty those that are dirty at the start. No account
    is left, as all is flushed before. Nothing is evicted: buffers would be allocated for what
    is read again, and the flush looks at all of them."""
    conn.execute("SELECT pg_flush_local_buffers(), pg_read_temp_relation('main'),"
                 " pg_read_temp_relation('side')")
    if sequence.point.dirty == 1:
        conn.execute("SELECT pg_temp_buffers_dirty('main')")
    else:
        dirty_first(conn, sequence.point.dirty)
    if sequence.point.kind == "join" and sequence.point.dirty > 0:
        conn.execute("SELECT pg_temp_buffers_dirty('side')")


def dirty_first(conn, part):
    """Dirty the first pages of the main table, as an update does. It would move the rows,
    and each run would find another table; a lock leaves them where they are."""
    pages = round(grid.pages(conn) * part)
    conn.execute(f"SELECT count(*) FROM (SELECT FROM main WHERE ctid < '({pages},0)' FOR UPDATE) m")


def sequences(conn, args):
    """All sequences, grouped by table; and the tables that do not fit into the pool."""
    pool = value(conn, "SELECT setting::int FROM pg_settings WHERE name = 'temp_buffers'")
    result, too_large = [], []
    for rows, width in product(args.rows, args.widths):
        table = grid.Table(rows, width, SIDE_PART)
        side = grid.Table(rows // SIDE_PART, "narrow")
        if table.estimated_pages() + side.estimated_pages() > grid.POOL_PART * pool:
            too_large.append(table)
            continue
        result += [Sequence(grid.Point(table, kind, selectivity, dirty), max(args.queries), parts,
                            args.again)
                   for kind, selectivity, dirty, parts in product(
                       args.kinds, args.selectivities, args.dirty, args.parts)]
    return result, too_large
