"""script/demo: TPC-H over temporary tables, temp_parallel off and on."""

import argparse
import os
import re
import sys
import textwrap
from statistics import geometric_mean

from .common import measure, slower, tpch
from .common.progress import Progress
from .common.session import OFF, ON, SETTINGS, connect, line, use, value

SHOWN = "q01"       # the query whose plan is shown
FIRST = "lineitem"  # the only table that it reads
# Run before it each time, so that there are dirty pages: those of the load may have
# been evicted by then. Changes no answer.
CHANGE = ("UPDATE lineitem SET l_tax = l_tax"
          " WHERE l_orderkey <= (SELECT max(l_orderkey) / 20 FROM lineitem)")
WIDTH = 100         # columns
ARMS = (OFF, ON)


def arguments():
    parser = argparse.ArgumentParser(prog="script/demo")
    parser.add_argument("--scale", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queries", type=lambda text: text.split(","))
    args = parser.parse_args()
    unknown = set(args.queries or ()) - set(tpch.queries())
    if unknown:
        parser.error(f"no such query: {', '.join(sorted(unknown))}")
    if args.scale <= 0 or args.rounds < 1:
        parser.error("scale and rounds must be above 0")
    return args


def load(conn, directory, progress, first):
    """Load all tables, the one that the query `first` reads before the others, and time that."""
    use(conn, OFF)
    tpch.create(conn, OFF.persistence)
    for table in sorted(tpch.TABLES, key=lambda table: table != FIRST):
        progress.step(f"loading {table}")
        use(conn, OFF)
        tpch.copy(conn, table, directory)
        if table == FIRST:
            progress.step(f"ANALYZE {table}")
            conn.execute(f"ANALYZE {table}")
            first_result(conn, first, progress)
            progress.say("now all tables, with indexes")
    progress.step("creating indexes, ANALYZE")
    tpch.index(conn)
    size = value(conn, "SELECT pg_size_pretty(sum(pg_total_relation_size(oid))) FROM pg_class"
                       " WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'")
    rows = value(conn, "SELECT sum(reltuples)::bigint FROM pg_class"
                       " WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'")
    progress.say(f"loaded {rows / 1e6:.1f} million rows, {size} with indexes")


def first_result(conn, sql, progress):
    """Time the query that is shown once off and once on, so that there is a result soon."""
    progress.step(f"{SHOWN}: the first run, which is not timed")
    use(conn, OFF)
    conn.execute(sql)
    runs = []
    for arm in ARMS:
        progress.step(f"{SHOWN} {arm.name}")
        runs.append(measure.run(conn, arm, sql, SHOWN, "first", 0))
    off, on = runs
    progress.say(f"first result, {SHOWN} over {FIRST}: {off.ms:.0f} ms off, {on.ms:.0f} ms on ({on.plan}),"
                 f" {off.ms / on.ms:.2f}x, answers {'equal' if off.digest == on.digest else 'DIFFERENT'}")


def colour(code, text):
    return f"\033[{code}m{text}\033[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ \
        else text


def show_plan(plan):
    """Print a plan in WIDTH columns: actual values are on a line of their own if they do
    not fit beside the estimates."""
    for text in plan:
        shown = [text]
        if len(text) > WIDTH - 2 and " (actual" in text:
            estimate, actual = text.split(" (actual", 1)
            indent = len(text) - len(text.lstrip(" ->"))
            shown = [estimate, " " * (indent + 4) + "(actual" + actual]
        for part in shown:
            if len(part) > WIDTH - 2:
                part = part[:WIDTH - 5] + "..."
            marked = "Gather" in part or "TempFlush" in part or "Parallel" in part
            print("  " + (colour("1", part) if marked else part))


def say(text, indent="  "):
    """Print a sentence in lines of at most WIDTH columns."""
    print(textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent))


def dirty_by_relation(conn):
    return conn.execute("SELECT relation::text, sum(dirty) FROM temp_parallel_relations()"
                        " GROUP BY 1 HAVING sum(dirty) > 0 ORDER BY 2 DESC").fetchall()


def explain_dirty(plan, dirty, before, after):
    """Why the number of dirty pages falls by more than the flush writes."""
    found = re.search(r"Flushed: written=(\d+)", "\n".join(plan))
    if not found or int(found[1]) >= before:
        return
    written = int(found[1])
    others = [f"{name} ({pages})" for name, pages in dirty if name != "lineitem"]
    rest = f"{before - written - after} of them" if after else "They"
    say(f"The flush wrote {written} of these {before} pages: those of lineitem, which the workers"
        f" read. The other {before - written} belong to what this plan does not read:"
        f" {', '.join(others)}. {rest} were written during the scan, one by one, when it needed"
        " their buffers.")


def first_runs(conn, sql):
    """Run the query that is shown just after a change to its table, off and then on."""
    dirty = "SELECT pg_dirty_local_buffers()"
    print(f"\n{SHOWN.upper()}, each time right after\n  {CHANGE}\n\n{sql.strip()}\n")
    for arm, title in ((OFF, "Before: temp_parallel.enabled = off"),
                       (ON, "After: temp_parallel.enabled = on; dirty pages are written first")):
        use(conn, arm)
        conn.execute(CHANGE)
        before, relations = value(conn, dirty), dirty_by_relation(conn)
        plan = measure.explain(conn, arm, sql, "ANALYZE, TIMING OFF, BUFFERS OFF")
        print(colour("4", title))
        show_plan(plan)
        after = value(conn, dirty)
        print(f"  Dirty local buffers before and after: {before} -> {after}")
        if arm is OFF and after > before:
            say("Reading the changed rows marks them as committed, which makes their pages dirty.")
        elif arm is ON and not measure.is_parallel(plan):
            say("The planner estimates that writing these pages costs more than workers save.")
        elif arm is ON:
            explain_dirty(plan, relations, before, after)
        print()


def same_work(conn, sql, ms):
    """Are the plans off and on the same, so that their times differ only by chance?"""
    plans = []
    for arm in ARMS:
        use(conn, arm)
        plans.append(slower.planned(conn, sql))
    return slower.is_chance(*plans, ms)


def compare(conn, queries, rounds, progress):
    """Run the queries. Returns the runs, and off/on of those with another plan when on."""
    runs = []
    head = (f"{'query':8}{'off ms':>10}{'on ms':>10}{'off/on':>9}  {'answers':12}{'rows':>8}"
            "  plan when on")
    progress.say(f"each query {rounds} times off and on, alternating; the median is shown")
    print(f"\n{head}\n" + "-" * len(head))
    ratios = {}
    for name, sql in queries.items():
        for n in range(rounds):
            for arm in measure.in_turns(ARMS, n):
                progress.step(f"{name} {arm.name}, round {n + 1}")
                runs.append(measure.run(conn, arm, sql, name, "repeat", n))
        progress.clear()
        off, on = (measure.median_ms(runs, name, "repeat", arm.name) for arm in ARMS)
        plan = measure.plans(runs, name, "repeat", ON.name)
        if plan == "serial" and same_work(conn, sql, off):
            plan, ratio = "serial, the same as off", f"{'':9}"
        else:
            ratios[name] = off / on
            ratio = f"{ratios[name]:8.2f}x"
        equal = measure.same_answers(runs, name)
        answers = f"{'equal' if equal else 'DIFFERENT':12}"
        print(f"{name:8}{off:10.1f}{on:10.1f}{ratio}  "
              f"{answers if equal else colour('31', answers)}{runs[-1].rows:8}  {plan}", flush=True)
    print("-" * len(head))
    if ratios:
        off, on = (total_ms(runs, ratios, arm) for arm in ARMS)
        print(f"{'total':8}{off:10.1f}{on:10.1f}{off / on:8.2f}x"
              + ("  of those with another plan" if len(ratios) < len(queries) else ""))
    return runs, ratios


def total_ms(runs, names, arm):
    return sum(measure.median_ms(runs, name, "repeat", arm.name) for name in names)


def summarize(queries, runs, ratios, workers):
    same = len(queries) - len(ratios)
    print(f"\n{len(queries)} queries over temporary tables, {os.cpu_count()} processors,"
          f" up to {workers} workers per query:")
    if same:
        say(f"{same} with the same plan off and on: their times differ by chance, and count neither"
            " in the mean nor in the total.")
    if ratios:
        best, least = (choose(ratios, key=ratios.get) for choose in (max, min))
        gained = [name for name in ratios if ratios[name] > 1]
        part = total_ms(runs, gained, OFF) / total_ms(runs, queries, OFF)
        say(f"{len(ratios)} with another plan: typical gain"
            f" {geometric_mean(ratios.values()):.2f}x (geometric mean), best {ratios[best]:.2f}x"
            f" ({best}), least {ratios[least]:.2f}x ({least}).")
        say(f"{len(gained)} took less time when on: {100 * part:.0f} % of the time of all"
            f" {len(queries)} when off.")


def explain_slower(conn, queries, runs, ratios, progress):
    """Why each query took longer when on that did."""
    slow = sorted((name for name in ratios if ratios[name] < 1), key=ratios.get)
    if not slow:
        return
    print("\nSlower when on:")
    for name in slow:
        off, on = ([r.ms for r in measure.select(runs, name, "repeat", arm.name)] for arm in ARMS)
        found = [f"{min(on):.0f} to {max(on):.0f} ms instead of {min(off):.0f} to {max(off):.0f}"]
        if min(on) <= max(off):
            found[0] += ", which may be chance"
        progress.step(f"{name}: looking for the reason")
        plans = []
        for arm in ARMS:
            use(conn, arm)
            plans.append(slower.executed(conn, queries[name]))
        progress.clear()
        say(f"{name}: " + "; ".join(found + slower.reasons(*plans)) + ".")


def main():
    args = arguments()
    progress = Progress()
    progress.say(f"TPC-H data of scale {args.scale:g}")
    directory = tpch.generate(f"{args.scale:g}")
    conn = connect(SETTINGS)
    queries = tpch.queries()
    load(conn, directory, progress, queries[SHOWN])
    progress.say(f"settings: {line()}")

    first_runs(conn, queries[SHOWN])
    chosen = {name: queries[name] for name in args.queries or queries}
    runs, ratios = compare(conn, chosen, args.rounds, progress)

    wrong = [name for name in chosen if not measure.same_answers(runs, name)]
    summarize(chosen, runs, ratios, value(conn, "SHOW max_parallel_workers_per_gather"))
    explain_slower(conn, chosen, runs, ratios, progress)
    if wrong:
        sys.exit(f"  ANSWERS DIFFER: {', '.join(wrong)}")
    print(f"  all {len(runs)} runs gave the same answers as temp_parallel.enabled = off")
    progress.say("done; the throw-away server is being removed")


if __name__ == "__main__":
    main()
