"""The forms in which a query is run: by itself, in a function, by a cursor, ..."""

import random
import re
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
        "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS) {sql}", "{sql}")),
    "chosen": Form(0, ("SELECT fz.chosen({quoted})", "{sql}")),
    # An EXPLAIN inside another one's execution; the second form's inner one may fail.
    "explain in explain": Form(0, (
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM fz.loop('EXPLAIN (ANALYZE) ' || {quoted})",
        "{sql}")),
    "caught in explain": Form(0, (
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT fz.caught('EXPLAIN (ANALYZE) ' || {quoted})",
        "SELECT * FROM fz.caught({quoted})")),
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

# INSERT ... SELECT into temporary tables of all kinds. Their target has a hash of each
# row of the query and, where it is wide, the row itself.
ROWS = "SELECT hashtext(q::text), q::text FROM ({sql}) q"
WIDE = "SELECT hashtext(q::text), repeat(q::text || ';', 60) FROM ({sql}) q"


def inserting(create, statements, **kinds):
    """A form that creates a target, fills it and reads it."""
    return Form(0, (*("CREATE TEMP TABLE {out} " + create).split("; "), *statements,
                    "SELECT * FROM {out}", "DROP TABLE {out}"), keeps_order=False, **kinds)


INSERTS = {
    "insert indexed": inserting(
        "(h int, v text); CREATE INDEX ON {out} (h); CREATE INDEX ON {out} USING hash (v)",
        (f"INSERT INTO {{out}} {ROWS}", f"INSERT INTO {{out}} {ROWS}")),
    "insert toast": inserting(
        "(h int PRIMARY KEY, v text); ALTER TABLE {out} ALTER v SET STORAGE EXTERNAL",
        (f"INSERT INTO {{out}} {WIDE} ON CONFLICT DO NOTHING", "UPDATE {out} SET v = md5(v)")),
    "insert partitioned": inserting(
        "(h int, v text) PARTITION BY HASH (h);"
        " CREATE TEMP TABLE {out}_0 PARTITION OF {out} FOR VALUES WITH (modulus 2, remainder 0);"
        " CREATE TEMP TABLE {out}_1 PARTITION OF {out} FOR VALUES WITH (modulus 2, remainder 1)",
        (f"INSERT INTO {{out}} {ROWS}", "SELECT h FROM {out}_0")),
    # Another partition gets no row, and no lock.
    "insert into partition": Form(0, (
        "TRUNCATE fz.standing_0", "INSERT INTO fz.standing SELECT 0, q::text FROM ({sql}) q",
        "SELECT v FROM fz.standing_0"), keeps_order=False, own_role=True),
    "insert on conflict": inserting(
        "(h int UNIQUE)",
        ("INSERT INTO {out} SELECT hashtext(q::text) % 40 FROM ({sql}) q ON CONFLICT DO NOTHING RETURNING h",
         "INSERT INTO {out} SELECT hashtext(q::text) % 50 FROM ({sql}) q ON CONFLICT (h) DO NOTHING")),
    # The trigger adds and deletes rows.
    "insert trigger": inserting(
        "(h int, v text);"
        " CREATE TRIGGER each AFTER INSERT ON {out} FOR EACH ROW WHEN (NEW.h % 4 = 0) EXECUTE FUNCTION fz.after_row();"
        " CREATE TRIGGER statement AFTER INSERT ON {out} REFERENCING NEW TABLE AS added"
        " EXECUTE FUNCTION fz.after_statement()",
        (f"INSERT INTO {{out}} {ROWS}",)),
    "insert before trigger": inserting(
        "(h int, v text);"
        " CREATE TRIGGER before BEFORE INSERT ON {out} FOR EACH ROW EXECUTE FUNCTION fz.before_row()",
        (f"INSERT INTO {{out}} {ROWS}",)),
    "insert update": inserting(
        "(h int UNIQUE, n int DEFAULT 0)",
        ("INSERT INTO {out} SELECT DISTINCT hashtext(q::text) % 40 FROM ({sql}) q",
         "INSERT INTO {out} SELECT DISTINCT hashtext(q::text) % 50 FROM ({sql}) q"
         " ON CONFLICT (h) DO UPDATE SET n = {out}.n + 1 WHERE {out}.h > 3 RETURNING h, n")),
    "insert from itself": inserting(
        "(h int, v text)",
        (f"INSERT INTO {{out}} {ROWS}",
         "INSERT INTO {out} SELECT h + 1, count(*) OVER (PARTITION BY h) FROM {out} WHERE h NOT IN"
         " (SELECT hashtext(q::text) + 1 FROM ({sql}) q)",
         "INSERT INTO {out} SELECT max(h), v FROM {out} GROUP BY v RETURNING *, (SELECT count(*) FROM {out})")),
    # Rows that are locked have an xmax.
    "insert locking": inserting(
        "(h int, v text)",
        (f"INSERT INTO {{out}} {ROWS}",
         f"INSERT INTO {{out}} {ROWS} RETURNING (SELECT count(*) FROM (SELECT FROM {{out}} FOR UPDATE) s)",
         "SELECT count(*) FROM {out} WHERE xmax::text <> '0'")),
    # The planner inlines the function.
    "insert locking by function": inserting(
        "(h int, v text)",
        (f"INSERT INTO {{out}} {ROWS}",
         "CREATE OR REPLACE FUNCTION pg_temp.{out}_f() RETURNS TABLE (h int, v text) LANGUAGE sql STABLE PARALLEL SAFE"
         " AS 'SELECT * FROM {out} WHERE h % 2 = 0 FOR UPDATE'",
         "INSERT INTO {out} SELECT q.* FROM pg_temp.{out}_f() q JOIN {out} o USING (h)",
         "SELECT count(*) FROM {out} WHERE xmax::text <> '0'")),
    "insert returning": inserting(
        "(h int CHECK (h IS NOT NULL), v text, n int GENERATED ALWAYS AS (length(v)) STORED, d text DEFAULT 'd')",
        (f"INSERT INTO {{out}} (h, v) {ROWS} RETURNING h, n, d, v",)),
    # The first INSERT fails, in a subtransaction, by its last row.
    "insert caught": inserting(
        "(h int UNIQUE)",
        ("DO $$ BEGIN BEGIN INSERT INTO {out} SELECT hashtext(q::text) FROM ({sql}) q UNION ALL"
         " SELECT hashtext(q::text) FROM ({sql}) q; EXCEPTION WHEN unique_violation THEN END;"
         " INSERT INTO {out} SELECT hashtext(q::text) FROM ({sql}) q ON CONFLICT DO NOTHING; END $$",)),
    # What sees how many rows there are so far, in the query and in a domain inside a type.
    "insert counted": inserting(
        "(h int)",
        ("INSERT INTO {out} SELECT pg_stat_get_xact_tuples_inserted('{out}'::regclass) FROM ({sql}) q",)),
    "insert checked": inserting(
        "(h int)",
        ("SET fz.target = {out}",
         "DO $$ BEGIN INSERT INTO {out} SELECT (('(' || length(q::text) || ')')::fz.holder).few FROM ({sql}) q;"
         " EXCEPTION WHEN check_violation THEN END $$",)),
    # The queries are run by functions that the statements call.
    "insert of totals": inserting(
        "(h bigint, n bigint)",
        ("INSERT INTO {out} VALUES (fz.total({quoted}, 'cast_safely(q::text)'), fz.total({quoted}, 'command(1)'))",
         "UPDATE {out} SET h = h + fz.total({quoted}, 'cast_safely(q::text)')")),
    # Each kind of statement calls a function that calls another, which begins a command.
    "insert deep": inserting(
        "(h int, v text)",
        (f"INSERT INTO {{out}} SELECT fz.deep(h), v FROM ({ROWS}) r (h, v)",
         "INSERT INTO {out} SELECT count(*), s.x FROM (SELECT fz.deep(length(q::text)) AS x FROM ({sql}) q) s GROUP BY 2",
         "UPDATE {out} SET h = fz.deep(h) WHERE fz.deep(h) % 3 = 0",
         "DELETE FROM {out} WHERE fz.deep(h) % 7 = 0",
         "SELECT fz.deep(n::int) FROM (SELECT count(*) AS n FROM ({sql}) q OFFSET 0) s")),
    "insert prepared": inserting(
        "(h int, v text)",
        (f"PREPARE {{out}}_p AS INSERT INTO {{out}} {ROWS}", "EXECUTE {out}_p", "EXECUTE {out}_p",
         "DEALLOCATE {out}_p")),
}
# Where workers read only permanent tables, or none, the server itself inserts the rows of a new
# table in parallel mode, in which functions cannot begin a command. So these forms read a temporary
# table alone, and workers are not forced.
UNFORCED = ("SELECT set_config(name, 'off', false) FROM pg_settings"
            " WHERE name IN ('force_parallel_mode', 'debug_parallel_query')")


def rows_of(kind, where=""):
    """A function by which a materialized view reads a temporary table."""
    return (f"CREATE OR REPLACE FUNCTION fz.{{out}}_f() RETURNS TABLE (id int, h int) LANGUAGE sql {kind}"
            f" AS 'SELECT id, hashtext(t::text) FROM pg_temp.{{member}} t{where}'")


# CREATE TABLE AS that sees how many rows the new table has so far, directly and by a
# statement that was prepared as a query; and with a limit on what may be kept.
COUNT = ("SELECT pg_stat_get_xact_tuples_inserted(to_regclass('{out}' || left(q::text, 0))) AS n"
         " FROM ({sql}) q")
CREATES = {
    "create counted": Form(0, (
        f"CREATE TEMP TABLE {{out}} AS {COUNT}", "SELECT * FROM {out}", "DROP TABLE {out}"),
        keeps_order=False),
    "create prepared": Form(0, (
        f"PREPARE {{out}}_p AS {COUNT}", f"CREATE TEMP TABLE {{out}} AS EXECUTE {{out}}_p",
        "SELECT * FROM {out}", "DROP TABLE {out}", "DEALLOCATE {out}_p"),
        keeps_order=False),
    "create into": Form(0, (
        "SELECT q.* INTO TEMP {out} FROM ({sql}) q", "SELECT * FROM {out}", "DROP TABLE {out}"),
        keeps_order=False),
    "create deep": Form(0, (
        UNFORCED,
        "CREATE TEMP TABLE {out} AS SELECT fz.deep(hashtext(t::text)) AS h FROM {member} t",
        "SELECT h, count(*) FROM {out} GROUP BY 1", "DROP TABLE {out}",
        "PREPARE {out}_p AS SELECT fz.deep(hashtext(t::text)) AS h, count(*) AS n FROM {member} t GROUP BY 1",
        "CREATE TEMP TABLE {out} AS EXECUTE {out}_p", "SELECT * FROM {out}", "DROP TABLE {out}",
        "DEALLOCATE {out}_p",
        "SELECT t.id % 50 AS n, sum(fz.deep(t.id)) AS h INTO TEMP {out} FROM {member} t"
        " WHERE fz.deep(t.k) % 7 <> 2 GROUP BY 1", "SELECT * FROM {out}", "DROP TABLE {out}"),
        keeps_order=False, own_role=True),
    # By a function that is inlined, one that is not, and with a comparison of temporary tables.
    "create refreshed": Form(0, (
        UNFORCED,
        "DROP MATERIALIZED VIEW IF EXISTS fz.{out}", rows_of("STABLE PARALLEL SAFE"),
        "CREATE MATERIALIZED VIEW fz.{out} AS SELECT id, fz.deep(h) AS h FROM fz.{out}_f()", "SELECT * FROM fz.{out}",
        "CREATE UNIQUE INDEX ON fz.{out} (id)", rows_of("VOLATILE PARALLEL RESTRICTED", " WHERE id % 3 <> 1"),
        "REFRESH MATERIALIZED VIEW fz.{out}", "SELECT * FROM fz.{out}", rows_of("STABLE PARALLEL SAFE", " WHERE id % 5 <> 1"),
        "REFRESH MATERIALIZED VIEW CONCURRENTLY fz.{out}", "SELECT * FROM fz.{out}",
        "REFRESH MATERIALIZED VIEW fz.{out}", "SELECT * FROM fz.{out}",
        "DROP MATERIALIZED VIEW fz.{out}", "DROP FUNCTION fz.{out}_f"),
        keeps_order=False, own_role=True),
    # Without ANALYZE, the number of rows may be underestimated, which is documented.
    "create limited": Form(0, (
        "ANALYZE {member}",
        "SELECT fz.limited('CREATE TEMP TABLE {out} AS SELECT id, fz.same(hashtext(t::text)) AS h"
        " FROM {member} t, generate_series(1, 40)')",
        "SELECT fz.limited('INSERT INTO {out} SELECT id, hashtext(t::text) FROM {member} t, generate_series(1, 40)')",
        "SELECT h, count(*), sum(id) FROM {out} GROUP BY 1", "DROP TABLE {out}"),
        keeps_order=False, own_role=True),
}
FORMS.update(INSERTS)
FORMS.update(CREATES)
# Those that are counted as a kind.
COUNTED = (*INSERTS, *CREATES, "chosen")

# How many of these become one of the forms above; drawn as described at NESTED.
REPLACED = {"insert": 0.9, "create": 0.5, "plain": 0.05}

# The forms of a query that may be refused, and those of one that may fail.
REFUSABLE = ["plain", "plain", "plain", "run"]
FAILING = ["plain", "run", "caught", "index"]

# Half of these become the other form. Not drawn from the episode's generator, so that a
# seed draws the same episode as before there were these forms.
NESTED = {"explain": "explain in explain", "caught": "caught in explain", "run": "chosen"}


def quoted(sql):
    return "'" + sql.replace("'", "''") + "'"


def of_kind(pattern):
    """Names of forms that are counted as a kind and match the pattern."""
    return [name for name in COUNTED if pattern and re.search(pattern, name)]


def draw(rng, query, wanted=None):
    """The name of a form for the query, of a kind that is wanted if it can be."""
    name = rng.choices(list(FORMS), [form.weight for form in FORMS.values()])[0]
    if of_kind(wanted) and not (query.tolerated or query.may_fail or query.kind):
        return rng.choice(of_kind(wanted))
    if query.tolerated:
        return rng.choice(REFUSABLE)
    if query.may_fail:
        name = rng.choice(FAILING)
    elif random.Random(query.sql + name).random() < REPLACED.get(name, 0):
        return random.Random(query.sql).choice(list(CREATES if name == "create" else INSERTS))
    if name in NESTED and random.Random(query.sql).random() < 0.5:
        return NESTED[name]
    return name
