"""Prepared statements, executed again and again while their tables change.

Tables grow, are emptied and altered, get and lose indexes; plans are generic or custom ones,
as the settings say. All of it is rolled back, so that each mode has the same history.
"""

import copy

from . import history
from .queries import Generator, Query, depends_on_places

OUT, NAME = "e#RUN#", "p#RUN#"


def grow(rng, table):
    return history.insert(rng, table, rng.choice([100, 500]))


# No function of the extension, as what these return depends on the mode.
CHANGES = [(grow, 20), (history.truncate, 10), (history.update, 10), (history.delete, 10), (history.touch, 5),
           (history.add_column, 5), (history.alter_type, 8), (history.alter_storage, 4), (history.make_index, 20),
           (history.drop_index, 15), (history.reindex, 3), (history.analyze, 20)]

# Statements before, the statement that is prepared, and how it is executed: {sql} is the query,
# {execute} the execution, {n} a number.
WAYS = {
    "select": ([], "{sql}", ["{execute}"]),
    "create": ([], "{sql}", [f"CREATE TEMP TABLE {OUT} AS {{execute}}", f"SELECT * FROM {OUT}", f"DROP TABLE {OUT}"]),
    "insert": ([f"CREATE TEMP TABLE {OUT} (h int, v text)"],
               f"INSERT INTO {OUT} SELECT hashtext(q::text), left(q::text, 50) FROM ({{sql}}) q",
               ["{execute}", f"SELECT count(*), sum(h) FROM {OUT}"]),
    "update": ([f"CREATE TEMP TABLE {OUT} AS SELECT g AS h, 0 AS v FROM generate_series(0, 999) g"],
               f"UPDATE {OUT} SET v = v + 1 WHERE h IN (SELECT abs(hashtext(q::text) % 1000) FROM ({{sql}}) q)",
               ["{execute}", f"SELECT sum(v), sum(v * h) FROM {OUT}"]),
    "nested": ([], "{sql}", ["SELECT * FROM fz.loop('{execute}')"]),
    "loop": ([], None, [f"SELECT * FROM fz.{NAME}({{n}})"]),
}


class Prepared:
    def __init__(self, rng, tables, isolation):
        self.rng = rng
        self.tables = copy.deepcopy(tables)
        self.isolation = isolation
        self.generator = Generator(rng, self.tables)

    def sql(self):
        while True:
            query = self.generator.query(parameters=True)
            if not (query.kind or query.may_fail or depends_on_places(query.sql)):
                return query.sql

    def changes(self):
        """Statements that change tables, of which at most a few become large."""
        rng = self.rng
        result = []
        for _ in range(rng.choice([1, 1, 2])):
            result += history.change(rng, rng.choice(self.tables), CHANGES)
        return result

    def query(self):
        rng, sql = self.rng, self.sql()
        way = rng.choice([*WAYS, "select", "select"])
        before, statement, executions = WAYS[way]
        statements = list(before)
        if statement:
            statements.append(f"PREPARE {NAME}(int) AS " + statement.format(sql=sql))
        else:
            statements.append(f"CREATE FUNCTION fz.{NAME}(int) RETURNS SETOF text LANGUAGE plpgsql AS $f$ DECLARE ps text; BEGIN"
                              f" FOR ps IN SELECT q::text FROM ({sql}) q LOOP RETURN NEXT ps; END LOOP; END $f$")
        for _ in range(rng.choice([2, 3])):
            for _ in range(rng.choice([1, 1, 2, 6])):
                n = rng.randrange(60)
                statements += [text.format(execute=f"EXECUTE {NAME}({n})", n=n) for text in executions]
            statements += self.changes()
        statements += [f"DEALLOCATE {NAME}"] * bool(statement)
        if not self.isolation:
            statements = ["BEGIN", *statements, "ROLLBACK"]
        return Query("", kind=f"prepared, {way}", statements=statements, may_fail=True, calm=True)
