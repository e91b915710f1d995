"""bench/insert_select: INSERT ... SELECT with and without workers.

The target is emptied before each run, which is not timed. What it contains afterwards is
compared.
"""

import time
from statistics import median

from .common import measure
from .common.arguments import rows_and_rounds
from .common.machine import load_average, load_line, machine
from .common.measure import Run, rule, spread
from .common.progress import Progress, TimeLeft
from .common.session import DEFAULTS, Arm, calibrated, connect, line, value

OFF = Arm("off", "TEMP", {"temp_parallel.run_ahead": "off"})
# Each worker of a session that has compiled a query loads LLVM when it starts: 20 ms.
SETTINGS = DEFAULTS | {"jit": "off"}
ON = Arm("on", "TEMP", {"temp_parallel.run_ahead": "on"})
ARMS = (OFF, ON)

# {rows} and {half} are tables; each statement is run over permanent and temporary ones.
STATEMENTS = {
    "aggregate": "SELECT grp, count(*), sum(amount) FROM {rows} GROUP BY grp",
    "two columns": "SELECT grp, amount % 7, sum(amount) FROM {rows} GROUP BY 1, 2",
    "filter, 1 %": "SELECT id, grp, amount FROM {half} WHERE grp = 7",
    "filter, 10 %": "SELECT id, grp, amount FROM {half} WHERE grp < 10",
    "filter, 50 %": "SELECT id, grp, amount FROM {half} WHERE grp < 50",
    "join": "SELECT h.id, h.grp, r.amount FROM {half} h JOIN {rows} r ON r.id = h.amount"
            " WHERE h.grp < 10",
}


def load(conn, rows):
    for kind, prefix in (("", "p"), ("TEMP ", "t")):
        for name, n in (("rows", rows), ("half", rows // 2)):
            table = f"{prefix}_{name}"
            conn.execute(f"""
                CREATE {kind}TABLE {table} AS
                SELECT i AS id, (i % 100)::int AS grp, i * 104729 % {rows} AS amount
                FROM generate_series(1::bigint, {n}) AS i""")
            conn.execute(f"VACUUM ANALYZE {table}")
    conn.execute("CREATE TEMP TABLE target (a bigint, b bigint, c bigint)")
    conn.execute("SELECT pg_flush_local_buffers()")


def run(conn, arm, sql, name, phase, n):
    """Run the INSERT once as this arm."""
    conn.execute("TRUNCATE target")
    plan = "parallel" if measure.is_parallel(measure.explain(conn, arm, sql)) else "serial"
    start = time.perf_counter()
    rows = conn.execute(sql).rowcount
    ms = (time.perf_counter() - start) * 1000
    sums = conn.execute("SELECT count(*), sum(a), sum(b), sum(c) FROM target").fetchone()
    return Run(name, phase, arm.name, n, plan, ms, rows, repr(sums))


def main():
    args = rows_and_rounds("bench/insert_select", 2_000_000, 7, flags=["--calibrated"])
    progress = Progress()
    progress.say(machine())
    settings = SETTINGS | (calibrated() if args.calibrated else {})
    conn = connect(settings)
    progress.say(f"loading {args.rows} rows")
    load(conn, args.rows)
    statements = {
        f"{name}, {kind}": "INSERT INTO target "
        + sql.format(rows=f"{prefix}_rows", half=f"{prefix}_half")
        for kind, prefix in (("permanent", "p"), ("temporary", "t"))
        for name, sql in STATEMENTS.items()}

    runs, loads = [], []
    left = TimeLeft((args.rounds + 1) * len(statements))
    for n in range(-1, args.rounds):        # one before that does not count
        for name, sql in statements.items():
            progress.step(f"round {n + 1} {name}, {left}")
            loads.append(load_average())
            for arm in measure.in_turns(ARMS, n):
                runs.append(run(conn, arm, sql, name, "warm" if n < 0 else "repeat", n))
            left.advance()

    print(f"\n{value(conn, 'SELECT version()')}\n{args.rows} rows; {line(settings)}, the rest at"
          f" its defaults\nmedians of {args.rounds} rounds; a ratio is the median over the rounds,"
          f" in brackets the lowest and the highest\n{load_line(loads)}\n")
    head = f"{'INSERT ... SELECT':26}{'rows':>9}{'off ms':>10}{'on ms':>10}{'on/off':>21}  plan when on"
    print(head)
    rule(head)
    for name in statements:
        ratios = measure.ratios(runs, name, "repeat", "on", "off")
        off, on = (measure.median_ms(runs, name, "repeat", arm.name) for arm in ARMS)
        rows = median(r.rows for r in measure.select(runs, name, "repeat", "on"))
        print(f"{name:26}{rows:9}{off:10.1f}{on:10.1f}{spread(ratios):>21}"
              f"  {measure.plans(runs, name, 'repeat', 'on')}")
    if not all(measure.same_answers(runs, name) for name in statements):
        raise SystemExit("answers differ")


if __name__ == "__main__":
    main()
