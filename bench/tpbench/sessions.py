"""bench/sessions: the throughput of several sessions at once.

Each way (arm) has sessions of its own, one for each client, which stay connected, so that only the first
round, which does not count, finds them new. The memory is looked at in that round, so that
looking does not take time from the others.
"""

import hashlib
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psycopg

from .common import measure
from .common.arguments import rows_and_rounds
from .common.machine import busy, machine
from .common.measure import rule
from .common.progress import Progress, TimeLeft
from .common.session import OFF, ON, Arm, connect, line, use, value
from .filled.sequence import FILL, TABLE
from .flush.rows import estimate

# With a number that is set, also while other processes use the processors.
ALWAYS = Arm("always", ON.persistence, ON.settings | {"temp_parallel.processors": str(len(os.sched_getaffinity(0)))})
# A limit on what this session may launch, which the planner does not look at.
NONE_FREE = Arm("none free", ON.persistence, ON.settings | {"max_parallel_workers": "0"})
ARMS = (OFF, ON, ALWAYS, NONE_FREE)
JOBS = 12       # of all clients together, but at least one of each

NAMES = {"name": "sales", "persistence": "TEMP"}
JOB = (
    TABLE,
    FILL,
    "ANALYZE sales",
    "CREATE TEMP TABLE totals AS SELECT region, quantity, count(*) AS lines, sum(amount) AS amount,"
    " avg(amount * quantity) AS value, min(day) AS first_day, max(day) AS last_day,"
    " max(length(note)) AS longest, max(amount) AS largest, sum(customer) AS customers,"
    " 0::bigint AS recent FROM sales GROUP BY region, quantity",
    "UPDATE totals AS t SET recent = s.recent, largest = s.largest FROM (SELECT region, quantity,"
    " count(*) AS recent, max(amount) AS largest, avg(amount * 2) AS value, min(customer) AS first,"
    " max(customer) AS last, max(length(note)) AS longest FROM sales WHERE day > 30"
    " GROUP BY region, quantity) AS s WHERE s.region = t.region AND s.quantity = t.quantity"
    " AND s.first < s.last AND s.value > 0 AND s.longest > 0",
    "ANALYZE totals",
    "SELECT * FROM totals",
    "SELECT s.region, count(*), sum(s.amount), max(t.largest), max(t.recent) FROM sales AS s JOIN totals AS t"
    " USING (region, quantity) WHERE s.amount < t.largest / 2 GROUP BY s.region",
    "CREATE INDEX ON sales (customer)",
    "SELECT * FROM sales WHERE customer = 4711",
    "DROP TABLE sales, totals",
)


@dataclass(frozen=True)
class Cell:
    """What the clients of one arm did in one round."""

    clients: int
    arm: str
    round: int
    rate: float         # jobs in a second
    launched: float     # workers for a job
    cpu: float          # seconds of processor time of the server for a job
    files: float        # temporary files for a job
    bytes: float        # in them
    memory: int         # kB at most, in the round that does not count
    errors: list
    digests: set


def job(conn, rows):
    """A digest of all its answers."""
    answers = hashlib.sha256()
    for statement in JOB:
        with conn.cursor() as cur:
            cur.execute(statement.format(rows=rows, **NAMES))
            if cur.description:
                answers.update(measure.digest(cur.pgresult).encode())
    return answers.hexdigest()


def client(conn, jobs, rows):
    """The digests of its jobs, and the errors."""
    digests, errors = set(), []
    for _ in range(jobs):
        try:
            digests.add(job(conn, rows))
        except psycopg.Error as error:
            errors.append(str(error).strip())
            if not conn.closed:
                conn.execute("DISCARD TEMP")
    return digests, errors


def watch(ended, postmaster, idle, peak):
    """Appends kB of the server's processes but for idle sessions to peak, until ended; what
    several have, like shared_buffers, is divided among them (Pss)."""
    while not ended.wait(0.05):
        peak.append(0)
        for pid in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split():
            try:
                if int(pid) not in idle:
                    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
                    peak[-1] += int(text.split("\nPss:")[1].split()[0])
            except (OSError, IndexError):       # it has ended
                pass


def stat(pid, *fields):
    """The sum of those fields of /proc/PID/stat, numbered as in proc(5)."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()
    return sum(int(words[field - 3]) for field in fields)


def processor_time(postmaster):
    """Seconds of all processes of the server so far; of those that have ended, the postmaster knows."""
    ticks = stat(postmaster, 14, 15, 16, 17)
    for pid in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split():
        try:
            ticks += stat(pid, 14, 15)
        except FileNotFoundError:       # it has ended since
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


def totals(monitor, conns, postmaster):
    """What the sessions and their workers have done so far: workers, processor time, temporary files,
    bytes."""
    launched = 0
    for conn in conns:
        conn.execute("SELECT pg_stat_force_next_flush()")
        launched += measure.counters(conn).launched
    return launched, processor_time(postmaster), *monitor.execute("SELECT temp_files, temp_bytes FROM pg_stat_database"
                                      " WHERE datname = current_database()").fetchone()


def run(monitor, sessions, clients, arm, n, rows):
    conns = sessions[arm.name][:clients]
    jobs = max(JOBS // clients, 1)
    idle = {c.info.backend_pid for every in sessions.values() for c in every if c not in conns}
    postmaster = stat(conns[0].info.backend_pid, 4)
    peak, ended = [0], threading.Event()
    watcher = threading.Thread(target=watch, args=(ended, postmaster, idle, peak))
    if n < 0:
        watcher.start()
    before = totals(monitor, conns, postmaster)
    with ThreadPoolExecutor(clients) as pool:
        start = time.perf_counter()
        done = list(pool.map(lambda conn: client(conn, jobs, rows), conns))
        seconds = time.perf_counter() - start
    if n < 0:
        ended.set()
        watcher.join()
    did = [(now - then) / (jobs * clients) for now, then in zip(totals(monitor, conns, postmaster), before)]
    errors = [error for _, found in done for error in found]
    # on: several sessions leave no processors to workers
    if not errors and (did[0] > 0) != (arm in (ON, ALWAYS)) and (arm is not ON or clients == 1):
        raise SystemExit(f"{clients} clients, {arm.name}: {did[0]} workers for a job")
    return Cell(clients, arm.name, n, jobs * clients / seconds, *did, max(peak),
                errors, set().union(*(digests for digests, _ in done)))


def report(cells, numbers):
    def of(clients, arm, field):
        """By round; those that count, but for memory."""
        return [getattr(c, field) for c in sorted(cells, key=lambda c: c.round)
                if (c.clients, c.arm) == (clients, arm.name) and (c.round < 0) == (field == "memory")]

    head = f"{'clients':7}" + "".join(f"{arm.name + ' jobs/s':>18}" for arm in ARMS) \
        + "".join(f"{arm.name + ' / off':>21}" for arm in ARMS[1:]) + f"{'workers/job':>13}"
    print(head)
    rule(head)
    for clients in numbers:
        rates = [of(clients, arm, "rate") for arm in ARMS]
        ratios = ([x / off for x, off in zip(these, rates[0])] for these in rates[1:])
        print(f"{clients:7}" + "".join(f"{median(these):18.2f}" for these in rates)
              + "".join("{:8.3f} [{:.3f}, {:.3f}]".format(*estimate(r)) for r in ratios)
              + f"{median(of(clients, ON, 'launched')):13.1f}")
    head = f"{'clients':7}" + "".join(f"{arm.name + ' CPU s/job':>21}" for arm in ARMS) \
        + "".join(f"{arm.name + ' / off':>21}" for arm in ARMS[1:])
    print(f"\n{head}")
    rule(head)
    for clients in numbers:
        times = [of(clients, arm, "cpu") for arm in ARMS]
        ratios = ([x / off for x, off in zip(these, times[0])] for these in times[1:])
        print(f"{clients:7}" + "".join(f"{median(these):21.3f}" for these in times)
              + "".join("{:8.3f} [{:.3f}, {:.3f}]".format(*estimate(r)) for r in ratios))
    head = f"{'clients':7}" + "".join(f"{arm.name + ' ' + what:>18}" for what in ("MB", "files", "file MB")
                                      for arm in ARMS)
    print(f"\n{head}")
    rule(head)
    for clients in numbers:
        print(f"{clients:7}" + "".join(f"{median(of(clients, arm, field)) / unit:18.{places}f}"
                                       for field, unit, places in (("memory", 1024, 0), ("files", 1, 1),
                                                                   ("bytes", 1 << 20, 1)) for arm in ARMS))


def measure_size(args, size, progress):
    """Returns the cells."""
    numbers = [int(n) for n in args.clients]
    settings = {"temp_buffers": size, "jit": "off"}
    monitor = connect(settings)
    sessions = {arm.name: [connect(settings) for _ in range(max(numbers))] for arm in ARMS}
    for arm in ARMS:
        for conn in sessions[arm.name]:
            use(conn, arm)
    cells, others = [], []
    left = TimeLeft((args.rounds + 1) * len(ARMS) * sum(max(n, JOBS) for n in numbers))
    for n in range(-1, args.rounds):
        for clients in numbers:
            for arm in measure.in_turns(ARMS, n):
                progress.step(f"{size}, round {n + 1} of {args.rounds}, {clients} clients, {arm.name}, {left}")
                others.append(busy(0.2))
                cells.append(run(monitor, sessions, clients, arm, n, args.rows))
                left.advance(max(clients, JOBS))
        progress.say(f"{size}, round {n + 1} of {args.rounds} done, {left}")
    print(f"\n{value(monitor, 'SELECT version()')}\n{args.rows} rows; {line(settings)}, the rest at its defaults\n"
          f"medians of {args.rounds} rounds, of ratios with their 95 % bootstrap intervals; MB: of the server's"
          " processes,\nat most; files: temporary ones for a job, which the tables are not\n"
          f"others used {median(others):.0%} of the processors before a run, at most {max(others):.0%}\n")
    report(cells, numbers)
    for conn in (monitor, *(conn for conns in sessions.values() for conn in conns)):
        conn.close()
    return cells


def main():
    args = rows_and_rounds("bench/sessions", 150_000, 8, {"--clients": "1 2 4 8 16 32".split(),
                                                          "--temp-buffers": ["8MB"]})
    progress = Progress()
    progress.say(machine())
    cells = [cell for size in args.temp_buffers for cell in measure_size(args, size, progress)]
    errors = [e for cell in cells for e in cell.errors]
    print(f"\n{len(errors)} errors")
    if errors:
        sys.exit("\n".join(sorted(set(errors))))
    if len(set().union(*(cell.digests for cell in cells))) != 1:
        sys.exit("answers differ")


if __name__ == "__main__":
    main()
