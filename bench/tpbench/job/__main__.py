"""bench/job: off, on and unlogged in turns, each job in a session of its own."""

import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ..common import measure
from ..common.arguments import rows_and_rounds
from ..common.machine import load_average, load_line, machine
from ..common.measure import Run, rule, spread
from ..common.progress import Progress, TimeLeft
from ..common.session import DEFAULTS, OFF, ON, UNLOGGED, connect, use, value

ARMS = (OFF, ON, UNLOGGED)
SHORT = 20          # ms: a difference of 5 % cannot be told below
AIMS = {"run ahead": {"off": 0.70}, "the whole job": {"off": 0.80, "unlogged": 0.90}}
# The longest of those that have workers in no way: COPY, a window function, an INSERT of all rows.
SERIAL = {"copy, first fill", "delete by row_number", "insert sales, enriched"}

# The same rows before each job.
REFILL = """
TRUNCATE sales_by_day;
INSERT INTO sales_by_day
SELECT date '2026-01-01' + d, region, channel, 0, 0
  FROM generate_series(0, 180) AS d, generate_series(0, 24) AS region,
       generate_series(0, 6) AS channel;
ANALYZE sales_by_day"""
SMALL = """
CREATE TEMP TABLE small AS SELECT i AS id, i % 2 AS k, i AS v FROM generate_series(1, 100) AS i;
CREATE INDEX ON small (id);
ANALYZE small"""

TABLES = ("received", "sales", "totals", "log")
# What each must contain in the end. Which customer has which id depends on the order of rows.
RESULTS = ("received", "sales", "(SELECT customer, lines, amount, largest, last_day FROM totals)",
           "log", "sales_by_day")


@dataclass(frozen=True)
class Statement:
    name: str
    aim: float          # on/off
    ahead: bool
    sql: str


def script(name, **variables):
    text = (Path(__file__).parent / name).read_text()
    for variable, value in variables.items():
        text = text.replace(f":{variable}", value).replace(f":'{variable}'", f"'{value}'")
    return text


def statements(name, **variables):
    _, *parts = re.split(r"^-- (.+) \(at most ([\d.]+)(, run ahead)?\)\n", script(name, **variables),
                         flags=re.MULTILINE)
    return [Statement(title, float(aim), bool(ahead), sql)
            for title, aim, ahead, sql in zip(*(parts[i::4] for i in range(4)))]


def run(conn, arm, statement, n):
    before = measure.counters(conn)
    with conn.cursor() as cur:
        start = time.perf_counter()
        cur.execute(statement.sql)
        ms = (time.perf_counter() - start) * 1000
        answer = measure.digest(cur.pgresult) if cur.description else cur.statusmessage
    plan = "parallel" if measure.counters(conn).since(before).launched else "serial"
    return Run(statement.name, "job", arm.name, n, plan, ms, cur.rowcount, answer)


def run_job(settings, file, arm, n):
    """The statements' runs, and as others those of what the tables contain in the end."""
    with connect(settings) as conn:
        conn.execute(REFILL)
        conn.execute("CHECKPOINT")
        use(conn, arm)
        runs = [run(conn, arm, s, n)
                for s in statements("job.sql", persistence=arm.persistence, file=file)]
        runs += [run(conn, arm, Statement(r, 0, False, "SELECT count(*), sum(hashtextextended("
                                          f"t::text, 0)) FROM {r} AS t"), n) for r in RESULTS]
        conn.execute(f"DROP TABLE {', '.join(TABLES)}")
    return runs


def run_small(rounds, progress):
    progress.say("small statements")
    with connect(DEFAULTS) as conn:
        conn.execute(SMALL)
        runs = []
        for n in range(10 * rounds):
            for arm in measure.in_turns(ARMS[:2], n):
                use(conn, arm)
                runs += [run(conn, arm, s, n) for s in statements("small.sql")]
    return runs


def total(runs, title, names):
    """Of several statements, as the runs of one."""
    sums = {}
    for r in runs:
        if r.workload in names:
            sums[r.arm, r.round] = sums.get((r.arm, r.round), 0) + r.ms
    return [Run(title, "job", arm, n, "", ms, 0, "") for (arm, n), ms in sums.items()]


def print_row(runs, name, arms, aims):
    """aims: {base: ratio}. Returns how many were missed."""
    medians = {arm.name: measure.median_ms(runs, name, "job", arm.name) for arm in arms}
    ratios = {base.name: measure.ratios(runs, name, "job", "on", base.name)
              for base in arms if base != ON}
    met = {base: median(ratios[base]) <= aim for base, aim in aims.items()}
    print(f"{name:32}" + "".join(f"{ms:13.1f}" for ms in medians.values())
          + "".join(f"{spread(values):>21}" for values in ratios.values())
          + f"  {measure.plans(runs, name, 'job', 'on'):15}"
          + ", ".join(f"{aim:.2f} {'met' if met[base] else 'MISSED'}" for base, aim in aims.items()))
    return len(aims) - sum(met.values())


def print_table(runs, known, arms, short=0):
    """Of these statements. Those that take less than short ms have no aim, unless they are run
    ahead. Returns how many aims were missed."""
    head = f"{'':32}" + "".join(f"{arm.name + ' ms':>13}" for arm in arms) \
        + "".join(f"{'on/' + base.name:>21}" for base in arms if base != ON) \
        + f"  {'plan when on':15}aim, on/{', on/'.join(b.name for b in arms if b != ON)}"
    print(head)
    rule(head)
    return sum(print_row(runs, s.name, arms, {"off": s.aim} if s.ahead or measure.median_ms(
        runs, s.name, "job", "off") >= short else {}) for s in known)


def report(runs, title):
    """Returns how many aims were missed."""
    print(f"\n{title}")
    known = statements("job.sql")
    missed = print_table(runs, known, ARMS, SHORT)
    print()
    for name, chosen in (("run ahead", {s.name for s in known if s.ahead}),
                         ("the whole job", {s.name for s in known})):
        missed += print_row(total(runs, name, chosen), name, ARMS, AIMS[name])
    serial, job = (sum(measure.median_ms(runs, name, "job", "on") for name in names)
                   for names in (SERIAL, [s.name for s in known]))
    print(f"{'; '.join(sorted(SERIAL))}: {serial / job:.0%} of the whole job, on")
    return missed


def main():
    args = rows_and_rounds("bench/job", 2_000_000, 5, {"--temp-buffers": ["8MB", "256MB"]})
    progress = Progress()
    progress.say(machine())
    file = f"{tempfile.gettempdir()}/job.csv"
    with connect(DEFAULTS) as conn:
        progress.say(f"making permanent tables, and a file of {args.rows} rows")
        conn.execute(script("tables.sql", rows=str(args.rows), file=file))
        version = value(conn, "SELECT version()")

    results, loads = {size: [] for size in args.temp_buffers}, []
    left = TimeLeft(args.rounds * len(results) * len(ARMS))
    for n in range(args.rounds):
        for size, runs in results.items():
            for arm in measure.in_turns(ARMS, n):
                progress.step(f"round {n + 1} {size} {arm.name}, {left}")
                loads.append(load_average())
                runs += run_job({"temp_buffers": size}, file, arm, n)
                left.advance()
        progress.say(f"round {n + 1} of {args.rounds} done, {left}")
    small = run_small(args.rounds, progress)

    print(f"\n{version}\n{args.rows} rows; settings are at their defaults but for temp_buffers, and"
          f" shared_buffers = {DEFAULTS['temp_buffers']}\nmedians of {args.rounds} rounds; a ratio is"
          f" the median over the rounds, in brackets the lowest and the highest\n{load_line(loads)}")
    missed = sum(report(runs, f"temp_buffers = {size}") for size, runs in results.items())
    print(f"\nsmall statements, medians of {10 * args.rounds} rounds")
    missed += print_table(small, statements("small.sql"), ARMS[:2])
    print(f"\n{missed} aims missed")
    every = small + [r for runs in results.values() for r in runs]
    wrong = {r.workload for r in every if not measure.same_answers(every, r.workload)}
    if wrong:
        sys.exit(f"answers differ: {', '.join(sorted(wrong))}")


if __name__ == "__main__":
    main()
