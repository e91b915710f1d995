"""EXPLAIN (ANALYZE, BUFFERS) as numbers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Explained:
    ms: float       # of the execution, without planning
    hit: int
    read: int
    dirtied: int
    written: int


def explain(conn, sql, kind="Local"):
    """Run the query; kind says which buffers are counted, Local or Shared."""
    [[report]] = conn.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}").fetchone()
    plan = report["Plan"]
    return Explained(report["Execution Time"],
                     *(plan[f"{kind} {what} Blocks"]
                       for what in ("Hit", "Read", "Dirtied", "Written")))
