"""The forms in which a query is run: by itself, in a function, by a cursor, ..."""

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """Statements that run a query.

    Their fields: {sql} is the query, {other} another one that gives a single row;
    {quoted} and {quoted_other} are the same as string constants. {out} is a name that
    no other run has, {n} the number in it. {table} is a random table, {member} a
    temporary table that the query reads.
    """

    weight: float           # 0: only in the lists below
    statements: tuple
    # True: only in a transaction block; False: only outside of one. Otherwise the plain
    # form is used instead.
    in_block: bool = None
    keeps_order: bool = True        # are the rows in the query's order?
    explains: bool = False          # the first statement's rows are not part of the answer
    own_role: bool = False          # not by the role with policies
    own_savepoint: bool = False     # its changes must be rolled back

    def has(self, field):
        return any("{" + field + "}" in statement for statement in self.statements)


FORMS = {
    "plain": Form(68, ("{sql}",)),
    "create": Form(8, (
        "CREATE TEMP TABLE {out} AS {sql}", "SELECT * FROM {out}", "DROP TABLE {out}"),
        keeps_order=False),
    "run": Form(6, ("SELECT * FROM fz.run({quoted})",)),
    "loop": Form(3, ("SELECT * FROM fz.loop({quoted})",)),
    "cursor": Form(3, (
        "DECLARE c CURSOR FOR {sql}", "FETCH 3 FROM c", "FETCH ALL FROM c", "CLOSE c"),
        in_block=True),
    "explain": Form(3, (
        "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS) {sql}", "{sql}"),
        explains=True),
    # An EXPLAIN inside another one's execution; the second form's inner one may fail.
    "explain in explain": Form(0, (
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM fz.loop('EXPLAIN (ANALYZE) ' || {quoted})",
        "{sql}"),
        explains=True),
    "caught in explain": Form(0, (
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT fz.caught('EXPLAIN (ANALYZE) ' || {quoted})",
        "SELECT * FROM fz.caught({quoted})"),
        explains=True),
    "insert": Form(3, (
        "CREATE TEMP TABLE {out} AS SELECT * FROM ({sql}) q LIMIT 0", "INSERT INTO {out} {sql}",
        "SELECT * FROM {out}", "DROP TABLE {out}"),
        keeps_order=False),
    "nested": Form(3, ("SELECT s, count(*) FROM fz.nested({quoted}, {quoted_other}) s GROUP BY 1",)),
    "interleaved": Form(3, (
        "DECLARE c SCROLL CURSOR FOR {sql}", "FETCH 7 FROM c", "{other}", "FETCH 30 FROM c", "{other}",
        "FETCH ALL FROM c", "FETCH BACKWARD ALL FROM c", "CLOSE c"),
        in_block=True),
    # The portal keeps its snapshot when the table changes.
    "changed": Form(3, (
        "DECLARE c CURSOR FOR {sql}", "FETCH 4 FROM c", "UPDATE {table} SET k = 5 WHERE id % 5 = 0",
        "{other}", "DELETE FROM {table} WHERE id % 2 = 0", "FETCH 9 FROM c", "{other}",
        "FETCH ALL FROM c", "CLOSE c"),
        in_block=True, own_role=True, own_savepoint=True),
    "held": Form(2, (
        "BEGIN", "DECLARE c CURSOR WITH HOLD FOR {sql}", "FETCH 4 FROM c", "COMMIT",
        "FETCH ALL FROM c", "CLOSE c"),
        in_block=False),
    "caught": Form(0, ("SELECT * FROM fz.caught({quoted})",)),
    # An index build refuses any access method but heap's own.
    "index": Form(0, (
        "DO $$ BEGIN PERFORM fz.caught({quoted}); CREATE INDEX out_{n} ON {member} (k);"
        " DROP INDEX out_{n}; END $$", "{sql}"),
        own_role=True),
}
PLAIN = FORMS["plain"]

# The forms of a query that may be refused, and those of one that may fail.
REFUSABLE = ["plain", "plain", "plain", "run"]
FAILING = ["plain", "run", "caught", "index"]

# Half of these become the other form. Not drawn from the episode's generator, so that a
# seed draws the same episode as before there were these forms.
NESTED = {"explain": "explain in explain", "caught": "caught in explain"}


def quoted(sql):
    return "'" + sql.replace("'", "''") + "'"


def draw(rng, query):
    """The name of a form for the query."""
    name = rng.choices(list(FORMS), [form.weight for form in FORMS.values()])[0]
    if query.tolerated:
        return rng.choice(REFUSABLE)
    if query.may_fail:
        name = rng.choice(FAILING)
    if name in NESTED and random.Random(query.sql).random() < 0.5:
        return NESTED[name]
    return name
