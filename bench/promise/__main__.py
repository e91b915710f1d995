"""python3 -m promise: runs sequences of statements, and checks the bound for each."""

import argparse
import random
import sys
from itertools import combinations

from .sequence import TABLES, WIDTHS, Broken, Query, Runner, Settings, Table

# The planner takes two costs that differ by one percent for equal.
BOUND = 2 * 1.01


def queries(tables):
    """Queries over these tables, of which there are one to three."""
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
                f"SELECT count(*) FROM {names[0]} a JOIN {names[0]} b USING (id)"]
    return [Query(frozenset(tables), statement) for statement in sql]


def random_change(rng, table):
    change = rng.choices([table.load, table.update, table.load_in_vain, table.truncate, table.create],
                         [4, 3, 1, 1, 1])[0]
    return change(rng.choice([5, 25, 100]))


def random_sequence(runner, rng):
    """What comes next may depend on whether something was flushed, as if an adversary had
    written the sequence."""
    workers = rng.choice([2, 4, 32])
    runner.begin(Settings(seq_page_cost=rng.choice([0, 0, 0.3, 2]), prepared=rng.random() < 0.3,
                          page_cost=8 * (1 - 1 / workers) * 10 ** rng.uniform(-0.3, 1)))
    tables = [Table(t, workers, rng.choice(list(WIDTHS))) for t in range(TABLES)]
    for table in tables:
        runner.change(table.create(rng.choice([5, 25, 100, 200])))
    adverse = rng.random() < 0.5
    changes = rng.choice([0.05, 0.2, 0.4])
    known = [q for n in range(TABLES) for c in combinations(range(TABLES), n + 1) for q in queries(c)]
    chosen = rng.sample(known, rng.choice([1, 2, 4, len(known)]))
    for _ in range(rng.randint(5, 25)):
        if rng.random() < changes:
            runner.change(random_change(rng, rng.choice(tables)))
            continue
        query = rng.choice(chosen)
        if runner.query(query) and adverse:
            runner.change(random_change(rng, tables[rng.choice(sorted(query.tables))]))


def reloaded_when_flushed(runner):
    """A table is queried until it is flushed, and then filled anew: close to the bound."""
    runner.begin(Settings(page_cost=8 * 12.3))
    for _ in range(3):
        runner.change(Table(0, 64).create(200))
        while not runner.query(queries([0])[1]):
            pass


def queried_often(runner, investment=True):
    """A table is filled once, and queried often."""
    runner.begin(Settings(page_cost=8 * 3, investment=investment))
    runner.change(Table(0, 64).create(100))
    for _ in range(30):
        runner.query(queries([0])[1])


def one_clean_one_dirty(runner):
    """Workers read one table, which is clean; what they would save with another one that is
    dirty counts too."""
    runner.begin(Settings(page_cost=8 * 3))
    runner.change(Table(0, 64).create(100))
    runner.change(Table(1, 64).create(100))
    while not runner.query(queries([0])[0]):
        pass
    for _ in range(30):
        runner.query(queries([0, 1])[0])


def unlike_tables(runner):
    """Nearly all that workers save is with one of two tables, and the other one, which is large,
    must not have the credit."""
    runner.begin(Settings(page_cost=28 * 12))
    runner.change(Table(0, 64, 1).create(200))
    runner.change(Table(1, 64, 28).create(25))
    for _ in range(60):
        runner.query(queries([0, 1])[0])


def main():
    parser = argparse.ArgumentParser(prog="promise")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="sequence to start with")
    parser.add_argument("--psql", default="psql")
    parser.add_argument("--database", default="postgres")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for a statement")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.errors = sys.stderr

    runner = Runner(options)
    worst, violations = 0, 0

    def run(name, sequence, bound=BOUND):
        nonlocal worst, violations
        try:
            sequence()
        except Broken as e:
            print("\n".join(runner.log))
            raise SystemExit(f"{name}: {e}")
        ratio = runner.ratio()
        if ratio > bound or options.verbose:
            print(f"{name}: ratio {ratio:.3f}, {runner.settings}", *runner.log, "", sep="\n  ")
        violations += ratio > bound
        return ratio

    for sequence in reloaded_when_flushed, queried_often, one_clean_one_dirty, unlike_tables:
        name = sequence.__name__.replace("_", " ")
        print(f"{name}: {run(name, lambda: sequence(runner)):.3f}")
    off = run("off", lambda: queried_often(runner, False), bound=float("inf"))
    print(f"queried often, without accounts: {off:.3f}")
    for number in range(options.first, options.first + options.sequences):
        rng = random.Random(f"{options.seed} {number}")
        worst = max(worst, run(f"seed {options.seed}, sequence {number}",
                               lambda: random_sequence(runner, rng)))
    print(f"{options.sequences} random sequences, {violations} violations, worst ratio {worst:.3f}")
    runner.close()
    return 1 if violations else 0


sys.exit(main())
