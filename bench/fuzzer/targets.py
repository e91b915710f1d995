"""Tables that a statement changes by what it reads: temporary and permanent ones.

Each has the columns id, which is unique, part, k and v, and is filled from a table of
the episode. #RUN# in a name differs between runs.
"""

from dataclasses import dataclass, replace

T = "w#RUN#"
COLUMNS = "(id int, part int, k int, v text)"
# Of a child: in another order, and with a column that is dropped.
OTHER_COLUMNS = "(v text, gone int, k int, part int, id int)"
NEVER = 99


@dataclass(frozen=True)
class Target:
    create: tuple
    finish: tuple = ()          # statements once it has its rows
    name: str = T               # what is changed: the table, or a view on it
    read: tuple = (T,)          # what is compared in the end
    compared: str = "*"         # its columns
    unique: bool = True         # may it have a unique index on id alone?
    role: str = ""              # who changes it, if it is not the superuser
    permanent: bool = False
    merges_since: int = 15      # the first version that allows MERGE


def trigger(when, events, each, function="fz.log_row", more=""):
    name = f"{when}_{each}_{events}".replace(" ", "_").lower()
    return (f"CREATE TRIGGER {name} {when} {events} ON {T}{more} FOR EACH {each}"
            f" EXECUTE FUNCTION {function}('{T}_log')")


LOG = f"CREATE TEMP TABLE {T}_log (what text)"
STATEMENT_TRIGGERS = (
    trigger("AFTER", "INSERT", "STATEMENT", "fz.log_statement", " REFERENCING NEW TABLE AS added"),
    trigger("AFTER", "UPDATE", "STATEMENT", "fz.log_statement",
            " REFERENCING OLD TABLE AS removed NEW TABLE AS added"),
    trigger("AFTER", "DELETE", "STATEMENT", "fz.log_statement", " REFERENCING OLD TABLE AS removed"),
    trigger("BEFORE", "INSERT OR UPDATE OR DELETE", "STATEMENT"))
PARTITIONS = (
    f"CREATE TEMP TABLE {T} {COLUMNS} PARTITION BY LIST (part)",
    f"CREATE TEMP TABLE {T}_0 PARTITION OF {T} FOR VALUES IN (0, 1)",
    f"CREATE TEMP TABLE {T}_1 {OTHER_COLUMNS}",
    f"ALTER TABLE {T}_1 DROP gone",
    f"ALTER TABLE {T} ATTACH PARTITION {T}_1 FOR VALUES IN (2)",
    f"CREATE TEMP TABLE {T}_2 PARTITION OF {T} DEFAULT")
PARTS = (T, f"{T}_0", f"{T}_1")


def moved(child, where):
    return (f"WITH d AS (DELETE FROM ONLY {T} WHERE {where} RETURNING id, part, k, v)"
            f" INSERT INTO {child} (id, part, k, v) SELECT * FROM d")


TARGETS = {
    "plain": Target((f"CREATE TEMP TABLE {T} {COLUMNS}",)),
    "partitioned": Target(PARTITIONS, read=PARTS, unique=False),
    "subpartitioned": Target((
        f"CREATE TEMP TABLE {T} {COLUMNS} PARTITION BY RANGE (id)",
        f"CREATE TEMP TABLE {T}_0 PARTITION OF {T} FOR VALUES FROM (MINVALUE) TO (150)",
        f"CREATE TEMP TABLE {T}_1 PARTITION OF {T} FOR VALUES FROM (150) TO (MAXVALUE) PARTITION BY HASH (id)",
        f"CREATE TEMP TABLE {T}_2 PARTITION OF {T}_1 FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        f"CREATE TEMP TABLE {T}_3 PARTITION OF {T}_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1)"), read=PARTS),
    "inherited": Target((
        f"CREATE TEMP TABLE {T} {COLUMNS}", f"CREATE TEMP TABLE {T}_0 (x int DEFAULT 7) INHERITS ({T})",
        f"CREATE TEMP TABLE {T}_1 {OTHER_COLUMNS}", f"ALTER TABLE {T}_1 DROP gone, ADD more text DEFAULT 'm'",
        f"ALTER TABLE {T}_1 INHERIT {T}"),
        (moved(f"{T}_0", "id % 3 = 0"), moved(f"{T}_1", "id % 3 = 1")), read=PARTS, unique=False),
    # Some of its rows, or all, are in a temporary table.
    "permanent parent": Target((
        f"CREATE UNLOGGED TABLE fz.{T} {COLUMNS}", f"CREATE TEMP TABLE {T}_0 () INHERITS (fz.{T})"),
        (moved(f"{T}_0", "id % 4 <> 0"),), read=PARTS[:2], unique=False),
    "temporary children": Target((
        f"CREATE UNLOGGED TABLE fz.{T} {COLUMNS}", f"CREATE TEMP TABLE {T}_0 () INHERITS (fz.{T})",
        f"CREATE TEMP TABLE {T}_1 {OTHER_COLUMNS}", f"ALTER TABLE {T}_1 INHERIT fz.{T}"),
        (moved(f"{T}_0", "id % 4 <> 0"), moved(f"{T}_1", "true")), read=PARTS, unique=False),
    "row triggers": Target(
        (f"CREATE TEMP TABLE {T} {COLUMNS}", LOG),
        (trigger("BEFORE", "INSERT", "ROW", "fz.changes_row"),
         trigger("AFTER", "INSERT OR UPDATE OR DELETE", "ROW")), read=(T, f"{T}_log")),
    "triggers before rows": Target(
        (f"CREATE TEMP TABLE {T} {COLUMNS}", LOG),
        (trigger("BEFORE", "INSERT OR UPDATE OR DELETE", "ROW", "fz.changes_row"),), read=(T, f"{T}_log")),
    "statement triggers": Target(
        (f"CREATE TEMP TABLE {T} {COLUMNS}", LOG), STATEMENT_TRIGGERS, read=(T, f"{T}_log")),
    # The server's MERGE records the row that it has inserted before in the transition table of
    # its UPDATE, or crashes (18.6, without the extension).
    "partitioned, triggers": Target(
        (*PARTITIONS, LOG), (*STATEMENT_TRIGGERS, trigger("AFTER", "INSERT OR UPDATE OR DELETE", "ROW")),
        read=(*PARTS, f"{T}_log"), unique=False, merges_since=NEVER),
    "keys": Target((
        f"CREATE TEMP TABLE {T} (id int PRIMARY KEY, part int, k int, v text)",
        f"CREATE TEMP TABLE {T}_c (id int REFERENCES {T} ON DELETE CASCADE ON UPDATE CASCADE,"
        f" other int REFERENCES {T} ON DELETE SET NULL ON UPDATE CASCADE)"),
        (f"INSERT INTO {T}_c SELECT a.id, b.id FROM {T} a LEFT JOIN {T} b ON b.id = a.id + 1 WHERE a.id % 2 = 0",
         f"CREATE INDEX ON {T}_c (id)"), read=(T, f"{T}_c")),
    # A violation is an error.
    "restricting keys": Target((
        f"CREATE TEMP TABLE {T} (id int PRIMARY KEY, part int, k int, v text)",
        f"CREATE TEMP TABLE {T}_c (id int REFERENCES {T} INITIALLY DEFERRED, other int REFERENCES {T})"),
        (f"INSERT INTO {T}_c SELECT id, id FROM {T} WHERE id % 50 = 1",), read=(T, f"{T}_c")),
    "referring": Target((
        f"CREATE TEMP TABLE {T}_r (part int PRIMARY KEY)", f"INSERT INTO {T}_r SELECT generate_series(-3, 4)",
        f"CREATE TEMP TABLE {T} (id int, part int REFERENCES {T}_r, k int, v text)")),
    # The order of the rows decides which number each gets.
    "numbered": Target(
        (f"CREATE TEMP TABLE {T} (id int, part int, k int, v text, n int GENERATED BY DEFAULT AS IDENTITY,"
         " s serial, g int GENERATED ALWAYS AS (k * 2) STORED, d text DEFAULT 'd')",),
        compared="id, part, k, v, g, d"),
    "checked": Target(
        (f"CREATE TEMP TABLE {T} (id int, part int CHECK (part < 5), k int, v text NOT NULL)",)),
    "view": Target(
        (f"CREATE TEMP TABLE {T} {COLUMNS}",
         f"CREATE TEMP VIEW {T}_v AS SELECT * FROM {T} WHERE part IS DISTINCT FROM 3"),
        name=f"{T}_v", merges_since=17),
    "view with check": Target(
        (f"CREATE TEMP TABLE {T} {COLUMNS}", f"CREATE TEMP VIEW {T}_v AS SELECT * FROM {T} WHERE"
         " part IS DISTINCT FROM 3 AND k IS DISTINCT FROM 77 WITH CASCADED CHECK OPTION"),
        name=f"{T}_v", merges_since=17),
    "policies": Target(
        (f"CREATE TEMP TABLE {T} {COLUMNS}", f"ALTER TABLE {T} ENABLE ROW LEVEL SECURITY",
         f"GRANT ALL ON {T} TO fuzz_reader",
         f"CREATE POLICY p ON {T} USING (part <> 1 OR k > 50) WITH CHECK (k IS DISTINCT FROM 88)"),
        role="fuzz_reader"),
}

FIRST = (f"CREATE TEMP TABLE {T}_0 PARTITION OF {T} FOR VALUES FROM (MINVALUE) TO (1)",
         f"CREATE TEMP TABLE {T}_1 PARTITION OF {T} FOR VALUES FROM (1) TO (MAXVALUE)")
UNIQUE = f"CREATE TEMP TABLE {T} (id int UNIQUE, part int, k int UNIQUE, v text)"
ROWS = f"INSERT INTO {T} SELECT g, 0, g, 'v' FROM generate_series(1, 2000) g"
# What costs something, and is true.
TRUE = "sqrt(id) + sqrt(id + 1) + sqrt(id + 2) + sqrt(k * k) >= 0"


def source(values, n):
    """The statements that create a table of g's from 0 on."""
    return f"CREATE TEMP TABLE {T}_s AS SELECT {values} FROM generate_series(0, {n - 1}) g", f"ANALYZE {T}_s"


# Targets with their rows, and statements that succeed if rows are changed in the order in which
# the server finds them without workers.
IN_ORDER = [
    # A row moves to a partition when another one with its k has left that.
    (Target((f"CREATE TEMP TABLE {T} {COLUMNS} PARTITION BY RANGE (part)", *FIRST,
             f"INSERT INTO {T} SELECT g, g % 2, g / 2, 'v' FROM generate_series(0, 1999) g",
             f"CREATE UNIQUE INDEX ON {T}_0 (k)")),
     f"UPDATE {T} t SET part = 1 - part"),
    # A unique index of a partition alone.
    (Target((f"CREATE TEMP TABLE {T} (id int PRIMARY KEY, part int, k int, v text) PARTITION BY RANGE (id)", *FIRST,
             f"INSERT INTO {T} SELECT g, 0, g, 'v' FROM generate_series(1, 1000) g",
             f"CREATE UNIQUE INDEX ON {T}_1 (k)", f"CREATE TEMP TABLE {T}_s AS SELECT * FROM {T} ORDER BY id",
             f"ANALYZE {T}_s")),
     f"INSERT INTO {T} AS t SELECT id, part, -k, v FROM {T}_s s WHERE k % 7 <> 3 OR v = 'v'"
     " ON CONFLICT (id) DO UPDATE SET k = t.k - 1"),
    # The row with some k is deleted before another one is inserted.
    (Target((f"CREATE TEMP TABLE {T} (id int, part int, k int UNIQUE, v text)",
             f"INSERT INTO {T} SELECT g, 0, g, repeat('v', 50) FROM generate_series(1, 1500) g",
             f"CREATE TEMP TABLE {T}_s AS SELECT CASE g % 2 WHEN 1 THEN (g + 1) / 2 ELSE 100000 + g END AS id,"
             " (g + 1) / 2 AS k FROM generate_series(1, 3000) g", f"ANALYZE {T}, {T}_s")),
     f"MERGE INTO {T} t USING {T}_s s ON t.id = s.id WHEN MATCHED THEN DELETE"
     " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, s.k, 'new')"),
    # The trigger finds no other row, as these have been deleted before.
    (Target((f"CREATE TEMP TABLE {T} {COLUMNS}",
             f"INSERT INTO {T} SELECT g, g % 5, g + 500, 'v' FROM generate_series(1, 1000) g",
             f"CREATE INDEX ON {T} (k)", f"CREATE TRIGGER d BEFORE DELETE ON {T} FOR EACH ROW"
             " EXECUTE FUNCTION fz.deletes_others()")),
     f"DELETE FROM {T} t WHERE part <> 3 OR v = 'v'"),
    # Of two rows with an id, the second one is larger than what is there, if nothing orders them.
    *((Target((UNIQUE.replace("k int UNIQUE", "k int"), f"INSERT INTO {T} SELECT g, 0, 4 FROM generate_series(0, 2999) g",
               *source("g / 600 * 300 + g % 300 AS id, CASE WHEN g % 600 < 300 THEN 3 ELSE 5 END AS k", 6000))),
       f"INSERT INTO {T} AS t SELECT id, 0, k FROM {T}_s WHERE {TRUE}{order}"
       " ON CONFLICT (id) DO UPDATE SET k = excluded.k WHERE excluded.k > t.k") for order in ("", " ORDER BY 2")),
    # The second of three rows is not inserted, as the first one has its id; the third one has its k.
    (Target((UNIQUE, *source(
        "CASE WHEN g % 900 < 600 THEN g / 900 * 300 + g % 300 ELSE 900000 + g / 900 * 300 + g % 300 END AS id,"
        " CASE WHEN g % 900 < 300 THEN g / 900 * 300 + g % 300 ELSE 900000 + g / 900 * 300 + g % 300 END AS k", 9000))),
     f"INSERT INTO {T} AS t SELECT id, 0, k FROM {T}_s WHERE {TRUE} ON CONFLICT (id) DO NOTHING"),
    # The rows that conflict use up the numbers that are in the table.
    (Target((f"CREATE TEMP TABLE {T} (id serial PRIMARY KEY, part int, k int UNIQUE, v text)",
             f"INSERT INTO {T} SELECT g, 0, g FROM generate_series(1, 2000) g", *source("0 AS id, g + 1 AS k", 6000))),
     f"INSERT INTO {T} AS t (part, k) SELECT 1, k FROM {T}_s WHERE {TRUE} ON CONFLICT (k) DO UPDATE SET part = 2"),
    # A trigger repeats the change in a table with a unique index.
    (Target((UNIQUE, ROWS, f"CREATE TEMP VIEW {T}_v AS SELECT * FROM {T}", f"CREATE TRIGGER r INSTEAD OF UPDATE ON {T}_v"
             f" FOR EACH ROW EXECUTE FUNCTION fz.repeats_update('{T}')")),
     f"UPDATE {T}_v t SET k = k - 1 WHERE {TRUE}"),
    (Target((f"CREATE TEMP TABLE {T} {COLUMNS}", ROWS, UNIQUE.replace(T, f"{T}_c"), f"INSERT INTO {T}_c TABLE {T}",
             f"CREATE TRIGGER r AFTER UPDATE ON {T} FOR EACH ROW EXECUTE FUNCTION fz.repeats_update('{T}_c')"),
            read=(T, f"{T}_c")),
     f"UPDATE {T} t SET k = k - 1 WHERE {TRUE}"),
    # A constraint looks for other rows.
    (Target((UNIQUE.replace("k int UNIQUE", "k int"), ROWS, f"CREATE INDEX ON {T} (k)",
             f"ALTER TABLE {T} ADD CHECK (fz.is_free('{T}', k)) NOT VALID")),
     f"UPDATE {T} t SET k = k - 1 WHERE {TRUE}"),
    # A trigger looks for the row before.
    *((Target((UNIQUE, *source("g AS id, g AS k", 1500),
               f"CREATE TRIGGER p BEFORE INSERT ON {T} FOR EACH ROW EXECUTE FUNCTION fz.needs_previous()")), sql)
      for sql in (f"INSERT INTO {T} AS t SELECT id, 0, k FROM {T}_s WHERE {TRUE}",
                  f"MERGE INTO {T} t USING (SELECT * FROM {T}_s WHERE {TRUE}) s ON false"
                  " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, s.k)")),
    # A default does.
    (Target((f"CREATE TEMP TABLE {T} (id int PRIMARY KEY, part int DEFAULT fz.largest('{T}'), k int, v text)",
             *source("g AS id, g AS k", 5000))),
     f"INSERT INTO {T} AS t (id, k) SELECT id, k FROM {T}_s WHERE {TRUE}"),
    # The value in a sequence is that of the row before.
    (Target((f"CREATE TEMP TABLE {T} (id int DEFAULT nextval('fz.numbers'), part int, k int, v text)",
             *source("g AS id, g AS k", 1500), "SELECT setval('fz.numbers', 1000)")),
     f"INSERT INTO {T} AS t (part, k) SELECT 0, (SELECT last_value FROM fz.numbers n WHERE n.last_value > -s.id)"
     f" FROM {T}_s s WHERE {TRUE}"),
    # A setting has been set by the row before, by a default, a domain's constraint, or a default argument.
    *((Target((UNIQUE.replace("v text", column), *source("g AS id, g AS k", 1500),
               "SELECT set_config('fz.number', '0', false)")),
       f"INSERT INTO {T} AS t (id, part, k) SELECT id, 0, current_setting('fz.number')::int FROM {T}_s WHERE {TRUE}")
      for column in ("v text DEFAULT set_config('fz.number', (current_setting('fz.number')::int + 1)::text, false)",
                     "v fz.counting DEFAULT 'v'", "v text DEFAULT 'v' CHECK (v::fz.counting > '')",
                     "v text DEFAULT fz.counts()", "v text DEFAULT 'v' CHECK (fz.counts() > '')")),
    # The time at which a row is inserted grows in the order of the rows.
    (Target((f"CREATE TEMP TABLE {T} (id int, part int, k int, at timestamptz)",
             *source("g * 7919 % 10000 AS id, g AS k", 10000), f"CREATE TEMP VIEW {T}_v AS SELECT count(*)"
             f" FROM (SELECT at < lag(at) OVER (ORDER BY id) AS late FROM {T}) r WHERE late"), read=(f"{T}_v",)),
     f"INSERT INTO {T} AS t SELECT id, 0, k, clock_timestamp() FROM {T}_s WHERE {TRUE} ORDER BY id"),
    # A row in another table has been deleted for one key before the other one forbids to delete what it references.
    (Target((f"CREATE TEMP TABLE {T} (id int PRIMARY KEY, part int, k int, v text)", ROWS,
             f"CREATE TEMP TABLE {T}_e (src int REFERENCES {T} ON DELETE CASCADE, dst int REFERENCES {T})",
             f"INSERT INTO {T}_e SELECT g, g + 1 FROM generate_series(1, 1900) g",
             f"CREATE INDEX ON {T}_e (src)", f"CREATE INDEX ON {T}_e (dst)"), read=(T, f"{T}_e")),
     f"DELETE FROM {T} t WHERE {TRUE}"),
]


def may_be_permanent(target):
    return not any("CREATE UNLOGGED" in sql for sql in target.create)


def made_permanent(rng, target):
    """The same table as a permanent or an unlogged one."""
    unlogged = rng.random() < 0.5 and not any("PARTITION BY" in sql for sql in target.create)

    def changed(sql):
        return (sql.replace("CREATE TEMP TABLE ", f"CREATE {'UNLOGGED ' * unlogged}TABLE fz.")
                .replace("CREATE TEMP VIEW ", "CREATE VIEW fz."))
    return replace(target, create=tuple(changed(sql) for sql in target.create), permanent=True)


def filled(rng, target, table, ordered):
    """The statements that create the target with rows of a table of the episode; ordered: in the
    order of id, which is unique, and on many pages."""
    plain = f"CREATE TEMP TABLE {T} {COLUMNS}"
    result = [sql + " WITH (fillfactor = 10)" * (ordered and sql == plain) for sql in target.create]
    result.append(f"INSERT INTO {T} (id, part, k, v) SELECT q.id, q.part, q.k, 'v' || q.id % 30"
                  f" FROM {table.name} q WHERE q.id % {rng.choice([2, 3, 10])} <> 1"
                  + " ORDER BY q.id" * ordered)
    result += target.finish
    if target.unique and (ordered or rng.random() < 0.3):
        result.append(f"CREATE UNIQUE INDEX ON {T} (id)")
    if rng.random() < 0.3:
        result.append(f"CREATE INDEX ON {T} ({rng.choice(['k', 'part, v', 'v'])})")
    if rng.random() < 0.3:
        result.append(f"ANALYZE {T}")
    return result


def digest(source, columns="*"):
    return ("SELECT count(*), sum(hashtextextended(q::text, 0)::numeric) FROM"
            f" (SELECT {columns} FROM {source}) q")


def contents(target):
    """The statements that read what is compared in the end."""
    result = [digest(name, target.compared if name == T else "*") for name in target.read]
    if target.compared != "*":
        result.append(f"SELECT count(*) - count(DISTINCT n), count(*) - count(DISTINCT s) FROM {T}")
    return result


def dropped(target):
    """The statements that drop the target and what belongs to it."""
    created = "".join(target.create)
    return [f"DROP TABLE {T} CASCADE"] + [
        f"DROP TABLE {name}" for name in (f"{T}_c", f"{T}_e", f"{T}_r", f"{T}_s", f"{T}_log")
        if f"TABLE {name} " in created]
