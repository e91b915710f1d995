"""What bench/versus runs: a query, and how its table is filled anew."""

from dataclasses import dataclass
from typing import Callable, Optional

from . import tpch

# Narrow rows: much to compute per page, the best case for more processes. The
# multiplications scatter the values without a random generator.
FILL = """
    INSERT INTO narrow
    SELECT i, i * 7919 % {sides}, i % 100, i * 104729 % 1000003
    FROM generate_series(1::bigint, {rows}) AS i;
    ANALYZE narrow;
"""
SIDE_PART = 10      # the joined table has this part of the rows


@dataclass(frozen=True)
class Workload:
    name: str
    sql: str
    # Fills the main table anew, given a connection; None if its first run is
    # not measured.
    refill: Optional[Callable] = None


def create(conn, persistence, rows):
    sides = rows // SIDE_PART
    conn.execute(f"""
        CREATE {persistence} TABLE narrow (id bigint, side integer, grp integer, amount integer);
        CREATE {persistence} TABLE side (id integer, kind integer);
        INSERT INTO side SELECT i, i % 25 FROM generate_series(0, {sides - 1}) AS i;
        ANALYZE side;
    """ + FILL.format(rows=rows, sides=sides))


def narrow(rows):
    def refill(conn):
        conn.execute("TRUNCATE narrow;" + FILL.format(rows=rows, sides=rows // SIDE_PART))

    return [
        Workload("scan", "SELECT grp, count(*), sum(amount), max(id) FROM narrow GROUP BY grp",
                 refill),
        Workload("join", "SELECT kind, count(*), sum(amount) FROM narrow"
                         " JOIN side ON side.id = narrow.side GROUP BY kind", refill),
        Workload("top", "SELECT * FROM narrow ORDER BY amount DESC, id LIMIT 100", refill),
    ]


def tpc_h(directory):
    # One first run stands for all: it is the load that takes long.
    refills = {"q01": lambda conn: tpch.reload(conn, "lineitem", directory)}
    return [Workload(name, sql, refills.get(name)) for name, sql in tpch.queries().items()]
