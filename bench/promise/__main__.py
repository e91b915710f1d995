"""python3 -m promise: runs sequences of statements, and checks the bound for each."""

import argparse
import random
import sys
import time
from itertools import combinations

from .sequence import TABLES, WIDTHS, Broken, Query, Runner, Settings, Table

# add_path() treats paths whose costs differ by less than one percent as equal.
BOUND = 2 * 1.01

# A column that costs far more than to read its row.
COMPUTED = " + ".join(["sin(grp)"] * 60)


def queries(tables):
    """Queries over all of these tables, one to three."""
    names = [f"t{t}" for t in tables]
    counts = [f"(SELECT sum(grp) FROM {name})" for name in names]
    sql = [f"SELECT {' + '.join(counts)}",
           "SELECT count(*) FROM (" + " UNION ALL ".join(f"SELECT * FROM {n}" for n in names) + ") u"]
    if len(names) > 1:
        joined = names[0] + "".join(f" JOIN {name} USING (id)" for name in names[1:])
        sql += [f"SELECT count(*) FROM {joined}",
                f"SELECT count(*) FROM {joined} WHERE {names[0]}.grp = 3",
                f"SELECT count(*) FROM {names[0]} WHERE EXISTS"
                f" (SELECT FROM {names[1]} WHERE {names[1]}.id = {names[0]}.id)"]
        if len(names) > 2:
            sql.pop()
    else:
        sql += [f"SELECT grp, count(*) FROM {names[0]} GROUP BY 1",
                f"SELECT count(*) FROM {names[0]} WHERE grp = 3",
                f"SELECT count(*) FROM {names[0]} a JOIN {names[0]} b USING (id)",
                f"SELECT {COMPUTED} FROM {names[0]}",
                f"SELECT {COMPUTED}, id FROM {names[0]} ORDER BY id LIMIT 20",
                f"SELECT {COMPUTED}, count(*) FROM {names[0]} GROUP BY 1"]
    return [Query(frozenset(tables), statement) for statement in sql]


def random_change(rng, table, pages=None):
    """pages: if given, the size that the table keeps. A cached plan has the costs of the size
    for which it was made, as without temp_parallel, which is not tested here."""
    if pages:
        change = rng.choices([table.update, table.truncate, table.create], [6, 2, 1])[0]
        return change(pages)
    change = rng.choices([table.load, table.update, table.load_in_vain, table.truncate, table.create],
                         [4, 3, 1, 1, 1])[0]
    return change(rng.choice([5, 25, 100]))


def random_sequence(runner, rng):
    """In half of the sequences, an adversary changes a table as soon as a query has flushed
    something."""
    workers = rng.choice([2, 4, 32])
    prepared = rng.random() < 0.3
    runner.begin(Settings(seq_page_cost=rng.choice([0, 0, 0.3, 2]), prepared=prepared,
                          setup_cost=rng.choice([0, 0, 0, 100, 400]),
                          page_cost=8 * (1 - 1 / workers) * 10 ** rng.uniform(-0.3, 1)))
    if prepared:
        tables = [Table(t, workers, rng.choice([8, 28]), 45) for t in range(TABLES)]
    else:
        tables = [Table(t, workers, rng.choice(list(WIDTHS))) for t in range(TABLES)]
    pages = [rng.choice([5, 25, 100, 200]) for _ in tables]
    for table in tables:
        runner.change(table.create(pages[table.number]))
    adverse = rng.random() < 0.5
    changes = rng.choice([0.05, 0.2, 0.4])
    known = [q for n in range(TABLES) for c in combinations(range(TABLES), n + 1) for q in queries(c)]
    chosen = rng.sample(known, rng.choice([1, 2, 4, len(known)]))

    def change(table):
        runner.change(random_change(rng, table, prepared and pages[table.number]))

    for _ in range(rng.randint(5, 25)):
        if rng.random() < changes:
            change(rng.choice(tables))
            continue
        query = rng.choice(chosen)
        if runner.query(query) and adverse:
            change(tables[rng.choice(sorted(query.tables))])


def reloaded_when_flushed(runner):
    """A table is queried until it is flushed, and then created again: close to the bound."""
    runner.begin(Settings(page_cost=8 * 12.3))
    for _ in range(3):
        runner.change(Table(0, 64).create(200))
        while not runner.query(queries([0])[1]):
            pass


def emptied_before_it_pays(runner):
    """A table is emptied just before its account pays for the flush, filled again, and
    emptied as soon as it is flushed: what was lost with the former rows has paid for that."""
    runner.begin(Settings(page_cost=8 * 12.3))
    table = Table(0, 64)
    runner.change(table.create(200))
    for n in (10, 100, 10, 100, 10, 100):
        for _ in range(n):
            if runner.query(queries([0])[1]):
                break
        runner.change(table.truncate(200))


def queried_often(runner):
    """A table is filled once, and queried often."""
    runner.begin(Settings(page_cost=8 * 3))
    runner.change(Table(0, 64).create(100))
    for _ in range(30):
        runner.query(queries([0])[1])


def one_clean_one_dirty(runner):
    """Workers read one table, which is clean; what they would save by reading another one,
    which is dirty, is added to its account."""
    runner.begin(Settings(page_cost=8 * 3))
    runner.change(Table(0, 64).create(100))
    runner.change(Table(1, 64).create(100))
    while not runner.query(queries([0])[0]):
        pass
    for _ in range(30):
        runner.query(queries([0, 1])[0])


def unlike_tables(runner, query=0):
    """Nearly all that workers save is with one of two tables. It must not be added to the
    account of the other one, which has more pages."""
    runner.begin(Settings(page_cost=28 * 12))
    runner.change(Table(0, 64, 1).create(200))
    runner.change(Table(1, 64, 28).create(25))
    for _ in range(60):
        runner.query(queries([0, 1])[query])


def unlike_tables_joined(runner):
    unlike_tables(runner, 2)


def many_cached_plans(runner):
    """Each of several cached plans saves too little to be made again by itself, and then
    another statement has the table flushed."""
    runner.begin(Settings(page_cost=8 * 12.3, prepared=True))
    cached = [Query(frozenset([0]), f"SELECT count(*) + {n} FROM t0") for n in range(11)]
    other = Query(frozenset([0]), f"SELECT sum({' + '.join(['grp'] * 14)}) FROM t0")
    runner.change(Table(0, 64).create(200))
    for query in cached + [other] + cached:
        runner.query(query)


def cached_plan_and_flush(runner):
    """A plan without workers is cached, and then the user flushes the table."""
    runner.begin(Settings(page_cost=8 * 3, prepared=True))
    runner.change(Table(0, 64).create(100))
    query = queries([0])[1]
    runner.query(query)
    runner.flush()
    for _ in range(30):
        runner.query(query)


def several_gathers(runner):
    """Each of three tables has a Gather of its own. What all of them save must be added to
    the accounts, not only the largest part."""
    runner.begin(Settings(page_cost=8 * 12.3))
    for table in range(3):
        runner.change(Table(table, 64).create(100))
    for _ in range(60):
        runner.query(queries([0, 1, 2])[0])


def paid_in_part(runner):
    """A cached plan with workers is left to the leader, where the account of one of its
    tables pays for that. What is lost is all that workers save, not only what they save
    beyond a plan that gathers that table alone."""
    runner.begin(Settings(page_cost=7.4, prepared=True))
    big, small = Table(0, 32, fillfactor=45), Table(1, 32, fillfactor=45)
    runner.change(big.create(100))
    runner.change(small.create(25))
    for changed, queried in ((None, 3), (big, 3), (small, 12)):
        if changed:
            runner.change(changed.update(100 if changed is big else 25))
        for _ in range(queried):
            runner.query(queries([0, 1])[3])


def computed_columns(runner, column=f"{COMPUTED} FROM t0"):
    """Nearly all that workers save is in computing a column."""
    runner.begin(Settings(page_cost=8 * 60))
    runner.change(Table(0, 64).create(100))
    for _ in range(60):
        runner.query(Query(frozenset([0]), f"SELECT {column}"))


def computed_columns_grouped(runner):
    computed_columns(runner, f"{COMPUTED}, count(*) FROM t0 GROUP BY 1")


def computed_columns_of_window(runner):
    computed_columns(runner, f"{COMPUTED}, rank() OVER (ORDER BY {COMPUTED}) FROM t0 LIMIT 50")


def limited(rows):
    return Query(frozenset([0]), f"SELECT id FROM t0 WHERE id > 0 LIMIT {rows}")


def half_is_read(runner):
    """A LIMIT leaves half of the table, and of the saving, which is added to the account."""
    runner.begin(Settings(page_cost=8 * 3))
    runner.change(Table(0, 64).create(100))
    for _ in range(40):
        runner.query(limited(400))


def little_is_read(runner):
    """A LIMIT leaves a hundredth of it: no more may be added to the account, or the flush is
    much too early for an adversary who creates the table again then."""
    runner.begin(Settings(page_cost=8 * 3))
    for _ in range(3):
        runner.change(Table(0, 64).create(100))
        for _ in range(20):
            if runner.query(limited(8)):
                break


def main():
    parser = argparse.ArgumentParser(prog="promise")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=1, help="random sequence to start with")
    parser.add_argument("--sequences", type=int, default=100, help="number of random sequences")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after that time")
    parser.add_argument("--psql", default="psql")
    parser.add_argument("--database", default="postgres")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for a statement")
    parser.add_argument("--verbose", action="store_true", help="show every sequence")
    options = parser.parse_args()
    options.errors = sys.stderr

    runner = Runner(options)
    violations = 0

    def run(name, sequence):
        nonlocal violations
        try:
            sequence()
        except Broken as e:
            print(name, *runner.log, e, sep="\n  ")
            sys.exit(2)
        ratio = runner.ratio()
        if ratio > BOUND or options.verbose:
            print(f"{name}: {runner.settings}", *runner.log, sep="\n  ")
        violations += ratio > BOUND
        return ratio

    for sequence in (reloaded_when_flushed, emptied_before_it_pays, queried_often,
                     one_clean_one_dirty, unlike_tables, unlike_tables_joined,
                     many_cached_plans, cached_plan_and_flush, several_gathers, paid_in_part,
                     computed_columns, computed_columns_grouped, computed_columns_of_window,
                     half_is_read, little_is_read):
        name = sequence.__name__.replace("_", " ")
        print(f"{name}: ratio {run(name, lambda: sequence(runner)):.3f}")

    end = time.monotonic() + options.seconds
    ratios, flushes = [], 0
    for number in range(options.first, options.first + options.sequences):
        rng = random.Random(f"{options.seed} {number}")
        ratios.append(run(f"seed {options.seed}, sequence {number}",
                          lambda: random_sequence(runner, rng)))
        flushes += runner.written > 0
        if time.monotonic() > end:
            break
    print(f"{len(ratios)} random sequences, {flushes} with flushes, {violations} violations,"
          f" worst ratio {max(ratios, default=1):.3f}")
    runner.close()
    return 1 if violations else 0


sys.exit(main())
