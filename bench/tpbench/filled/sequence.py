"""What a session does: fill tables, run the same report several times, drop them."""

import time
from dataclasses import dataclass

from ..common import measure
from ..common.session import UNLOGGED, connect, use

# With its header and line pointer a row takes 100 bytes. Values are scattered by
# multiplication, without a random generator.
TABLE = """
CREATE {persistence} TABLE {name} (
    id bigint, amount bigint, day integer, region integer, customer integer, quantity integer,
    note text)
"""
FILL = """
INSERT INTO {name}
SELECT i, i * 104729 % 1000003, i * 31 % 365, i * 17 % 25, i * 7919 % 100003, i % 11, repeat('x', 39)
FROM generate_series(1::bigint, {rows}) AS i
"""

ONE_TABLE = """
SELECT region, count(*), sum(amount), avg(quantity) FROM sales
 WHERE day BETWEEN 100 AND 299 GROUP BY region
"""
TWO_TABLES = """
SELECT s.region, count(*), sum(s.amount), sum(o.amount) FROM sales s JOIN orders o USING (id)
 WHERE s.day BETWEEN 100 AND 199 AND o.day BETWEEN 100 AND 199 GROUP BY s.region
"""

@dataclass(frozen=True)
class Workload:
    title: str
    tables: tuple
    sql: str


WORKLOADS = {
    "table": Workload("one table", ("sales",), ONE_TABLE),
    "join": Workload("join of two tables", ("sales", "orders"), TWO_TABLES),
}


@dataclass(frozen=True)
class Query:
    ms: float
    plan: str           # "parallel" or "serial"; with temporary tables "flush" if it wrote pages,
                        # "share" if workers read pages in the leader's memory
    shared: int         # pages
    flushed: int        # pages
    digest: str


@dataclass(frozen=True)
class Sequence:
    workload: str
    arm: str
    round: int
    loads: list         # ms of each table, not part of the queries' ratios
    queries: list

    def ms(self, k, skipped=0):
        """The first k queries, without the first skipped ones of them."""
        return sum(query.ms for query in self.queries[skipped:k])


def fill(conn, arm, workload, rows):
    """The time of each table, in ms."""
    loads = []
    for name in workload.tables:
        start = time.perf_counter()
        conn.execute(TABLE.format(name=name, persistence=arm.persistence))
        conn.execute(FILL.format(name=name, rows=rows))
        conn.execute(f"ANALYZE {name}")
        loads.append((time.perf_counter() - start) * 1000)
    return loads


def kind(did, parallel):
    if not did.launched and not parallel:
        return "serial"
    return "+".join(["share"] * bool(did.shared) + ["flush"] * bool(did.flushed)) or "parallel"


def statements(conn, arm, sql, queries):
    result = []
    parallel = arm == UNLOGGED and measure.is_parallel(measure.explain(conn, arm, sql))
    for _ in range(queries):
        before = measure.counters(conn)
        with conn.cursor() as cur:
            start = time.perf_counter()
            cur.execute(sql)
            ms = (time.perf_counter() - start) * 1000
            digest = measure.digest(cur.pgresult)
        did = measure.counters(conn).since(before)
        result.append(Query(ms, kind(did, parallel), did.shared, did.flushed, digest))
    return result


def run(settings, arm, name, round, rows, queries):
    """Run a workload in a session of its own. Dropping the tables leaves the next session
    nothing to wait for."""
    workload = WORKLOADS[name]
    with connect(settings) as conn:
        use(conn, arm)
        loads = fill(conn, arm, workload, rows)
        done = statements(conn, arm, workload.sql, queries)
        conn.execute(f"DROP TABLE {', '.join(workload.tables)}")
    return Sequence(name, arm.name, round, loads, done)


def same_answers(sequences, workload):
    return len({q.digest for s in sequences if s.workload == workload for q in s.queries}) == 1


def ratios(sequences, base, ms):
    """For each round, ms(Sequence) when on by that of base."""
    times = {(s.arm, s.round): ms(s) for s in sequences}
    return [ms / times[base, round] for (arm, round), ms in times.items() if arm == "on"]
