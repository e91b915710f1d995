"""The workloads: a query each, and how its table is refilled."""

from dataclasses import dataclass
from typing import Callable, Optional

from ..common import tpch

SIDE_PART = 10      # joined tables have 1 / SIDE_PART of the rows
WIDE_PART = 10      # the table of wide rows
TOAST_PART = 100    # the table of TOASTed rows
TOAST_BYTES = 4096
LOOKUPS = 20_000    # by an index, in one query


@dataclass(frozen=True)
class Table:
    """How a table is created; {rows} is the number of rows of the narrow one. Values are
    scattered by multiplication, without a random generator."""

    name: str
    columns: str
    rows: str
    index: Optional[str] = None
    options: Optional[str] = None

    def fill(self, rows):
        return f"INSERT INTO {self.name} {self.rows.format(rows=rows, sides=rows // SIDE_PART)};" \
            f" ANALYZE {self.name};"

    def create(self, persistence, rows):
        statements = [f"CREATE {persistence} TABLE {self.name} ({self.columns})"]
        if self.options:
            statements.append(f"ALTER TABLE {self.name} {self.options}")
        statements.append(self.fill(rows))
        if self.index:
            statements.append(f"CREATE INDEX ON {self.name} ({self.index})")
        return "; ".join(statements)


# Narrow rows: much to compute per page. Wide rows: little. Most of the TOASTed rows
# is in the TOAST table.
NARROW = Table(
    "narrow", "id bigint, side integer, grp integer, amount integer",
    "SELECT i, i * 7919 % {sides}, i % 100, i * 104729 % 1000003"
    " FROM generate_series(1::bigint, {rows}) AS i", "id")
SIDE = Table(
    "side", "id integer, kind integer",
    "SELECT i, i % 25 FROM generate_series(0, {sides} - 1) AS i")
WIDE = Table(
    "wide", "id bigint, grp integer, amount integer, pad text",
    "SELECT i, i % 100, i * 104729 % 1000003, repeat('x', 500)"
    f" FROM generate_series(1::bigint, {{rows}} / {WIDE_PART}) AS i")
TOASTED = Table(
    "toasted", "id bigint, doc text",
    f"SELECT i, repeat(md5(i::text), {TOAST_BYTES} / 32)"
    f" FROM generate_series(1::bigint, {{rows}} / {TOAST_PART}) AS i",
    options="ALTER doc SET STORAGE EXTERNAL")
TABLES = (NARROW, SIDE, WIDE, TOASTED)

# The only permanent table, the same for all arms.
PERMANENT = Table("public.reference", "id integer, kind integer", SIDE.rows)


@dataclass(frozen=True)
class Workload:
    name: str
    sql: str
    # Refills the main table, given a connection; None if the first run is not
    # measured.
    refill: Optional[Callable] = None
    is_tpch: bool = False


def create(conn, persistence, rows):
    for table in TABLES:
        conn.execute(table.create(persistence, rows))


def create_permanent(conn, rows):
    conn.execute(PERMANENT.create("", rows))
    conn.execute(f"VACUUM {PERMANENT.name}")


def synthetic(rows):
    def refill(table):
        return lambda conn: conn.execute(f"TRUNCATE {table.name}; {table.fill(rows)}")

    narrow = refill(NARROW)
    return [
        Workload("scan", "SELECT grp, count(*), sum(amount), max(id) FROM narrow GROUP BY grp",
                 narrow),
        Workload("wide", "SELECT grp, count(*), sum(amount), max(length(pad)) FROM wide"
                         " GROUP BY grp", refill(WIDE)),
        Workload("toast", "SELECT count(*), sum(hashtext(doc)::bigint) FROM toasted",
                 refill(TOASTED)),
        Workload("join", "SELECT kind, count(*), sum(amount) FROM narrow"
                         " JOIN side ON side.id = narrow.side GROUP BY kind", narrow),
        Workload("permanent", "SELECT kind, count(*), sum(amount) FROM narrow"
                              " JOIN reference r ON r.id = narrow.side GROUP BY kind", narrow),
        Workload("range", "SELECT grp, count(*), sum(amount) FROM narrow"
                          f" WHERE id BETWEEN {rows // 2} AND {rows // 2 + rows // 10}"
                          " GROUP BY grp", narrow),
        Workload("point", "SELECT sum((SELECT amount FROM narrow WHERE id = k * 7))"
                          f" FROM generate_series(1, {LOOKUPS}) AS k"),
        Workload("top", "SELECT * FROM narrow ORDER BY amount DESC, id LIMIT 100", narrow),
    ]


def tpc_h(directory):
    # The first run of a single query is measured, as the load takes long.
    refills = {"q01": lambda conn: tpch.reload(conn, "lineitem", directory)}
    return [Workload(name, sql, refills.get(name), True) for name, sql in tpch.queries().items()]
