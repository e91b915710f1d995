"""Running a query: its time and a digest of its answer. Parts of tables of results."""

import hashlib
import time
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from .session import use


@dataclass(frozen=True)
class Run:
    workload: str
    phase: str      # "first" after the tables were refilled, or "repeat"
    arm: str
    round: int
    plan: str       # "parallel" or "serial"
    ms: float
    rows: int
    digest: str


def digest(result):
    """A digest of all rows in text form, independent of their order.

    Rows that are equal in ORDER BY may come in any order, so rows are sorted here.
    """
    return digest_rows([result.get_value(i, j) for j in range(result.nfields)]
                       for i in range(result.ntuples))


def digest_rows(rows):
    return hashlib.sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest()


def run(conn, arm, sql, workload, phase, round):
    """Run the query once as this arm; the time is that of the execution alone."""
    plan = "parallel" if is_parallel(explain(conn, arm, sql)) else "serial"
    with conn.cursor() as cur:
        start = time.perf_counter()
        cur.execute(sql)
        ms = (time.perf_counter() - start) * 1000
        return Run(workload, phase, arm.name, round, plan, ms, cur.pgresult.ntuples,
                   digest(cur.pgresult))


def in_turns(arms, round):
    """The arms in the order of this round. That of an odd round is the reverse of the one
    before, so that in an even number of rounds each arm runs as often before as after each
    other one, and profits as often from the caches that the other has filled."""
    shift = round // 2 % len(arms)
    order = arms[shift:] + arms[:shift]
    return order[::-1] if round % 2 else order


def explain(conn, arm, sql, options="COSTS OFF"):
    use(conn, arm)
    return [line for line, in conn.execute(f"EXPLAIN ({options}) {sql}")]


def is_parallel(plan):
    return any("Gather" in line for line in plan)


class Counters(NamedTuple):
    """What the session has done so far."""

    shared: int     # pages
    flushed: int    # pages
    launched: int   # workers over temporary tables

    def since(self, earlier):
        return Counters(*(now - then for now, then in zip(self, earlier)))


def counters(conn):
    return Counters(*conn.execute("SELECT pages_shared, pages_flushed, workers_launched"
                                  " FROM temp_parallel_stats()").fetchone())


def select(runs, workload, phase, arm):
    return [r for r in runs if (r.workload, r.phase, r.arm) == (workload, phase, arm)]


def median_ms(runs, workload, phase, arm):
    return median(r.ms for r in select(runs, workload, phase, arm))


def ratios(runs, workload, phase, arm, base):
    """For each round, this arm's time by the base's, so that a slow minute of the
    machine affects both."""
    times = {r.round: r.ms for r in select(runs, workload, phase, base)}
    return [r.ms / times[r.round] for r in select(runs, workload, phase, arm)]


def plans(runs, workload, phase, arm):
    """The kinds of plan that were run: one word, or both if they changed."""
    return "/".join(sorted({r.plan for r in select(runs, workload, phase, arm)}))


def same_answers(runs, workload):
    return len({r.digest for r in runs if r.workload == workload}) == 1


def rule(text):
    print("-" * len(text))


def spread(values):
    """Median, lowest and highest."""
    return f"{median(values):6.2f} [{min(values):.2f}, {max(values):.2f}]"
