"""The whole job: create, load, index, ANALYZE, some queries, drop.

Each run executes all queries. The time of the job with the first k queries is theirs
plus that of the steps before and that of the drop.
"""

import time
from dataclasses import dataclass

from ..common import measure
from ..common.session import use
from .workloads import NARROW, SIDE

NAME = "job"
QUERIES = 10

# Queries of a report on a staging table, repeated in turn.
REPORT = (
    "SELECT grp, count(*), sum(amount), max(id) FROM narrow GROUP BY grp",
    "SELECT kind, count(*), sum(amount) FROM narrow JOIN side ON side.id = narrow.side GROUP BY kind",
    "SELECT * FROM narrow ORDER BY amount DESC, id LIMIT 100",
    "SELECT side, sum(amount) AS total FROM narrow GROUP BY side ORDER BY total DESC, side LIMIT 10",
    "SELECT count(*) FROM narrow WHERE amount % 7 = 3 AND grp < 50",
)


@dataclass(frozen=True)
class JobRun:
    arm: str
    round: int
    before: float       # ms until the first query
    queries: list       # ms of each
    parallel: list      # of each: was the plan parallel?
    drop: float         # ms
    digests: list       # of the answers

    def ms(self, k):
        """The job with the first k queries."""
        return self.before + sum(self.queries[:k]) + self.drop


def timed(conn, sql):
    start = time.perf_counter()
    conn.execute(sql)
    return (time.perf_counter() - start) * 1000


def run(conn, arm, rows, round):
    """Neither table may exist before; neither does afterwards."""
    use(conn, arm)
    before = sum(timed(conn, table.create(arm.persistence, rows)) for table in (NARROW, SIDE))
    runs = [measure.run(conn, arm, REPORT[k % len(REPORT)], NAME, "job", round)
            for k in range(QUERIES)]
    drop = timed(conn, "DROP TABLE narrow, side")
    return JobRun(arm.name, round, before, [r.ms for r in runs],
                  [r.plan == "parallel" for r in runs], drop, [r.digest for r in runs])


def same_answers(jobs):
    return len({tuple(job.digests) for job in jobs}) == 1


def ratios(jobs, k, base):
    """For each round, the time when on by that of base."""
    times = {(job.arm, job.round): job.ms(k) for job in jobs}
    return [ms / times[base, round] for (arm, round), ms in times.items() if arm == "on"]
