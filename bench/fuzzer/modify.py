"""UPDATE, DELETE, MERGE and INSERT of what a query gives.

A target row matches at most one row of the query, as otherwise it is up to the plan
which of them changes it. What is compared is the tables' contents, the rows of
RETURNING, and errors. The targets are those of targets.py, and the episode's own tables;
all runs find the same contents, as each creates its target, or is rolled back.
"""

import random
import re
from dataclasses import replace

from . import targets
from .history import some_rows
from .queries import Generator, Query
from .settings import COUNTERS
from .targets import T, Target

UPDATES = ["update", "update from", "update self-join", "update sublink"]
DELETES = ["delete using", "delete sublink", "delete duplicates"]
VERBS = UPDATES + DELETES + ["update shift", "merge", "insert"]


def as_role(role, statements):
    """The statements, run by a role, which cannot create functions."""
    own = [sql for sql in statements if sql.startswith(("CREATE FUNCTION", "DROP FUNCTION"))]
    return own[:1] + [f"SET ROLE {role}"] + [sql for sql in statements if sql not in own] + ["RESET ROLE"] + own[1:]


class Modify:
    def __init__(self, rng, tables, sources, version, isolation):
        self.rng = rng
        self.tables = tables
        self.sources = sources
        self.version = version
        self.isolation = isolation
        self.generator = Generator(rng, tables)
        self.target = None
        self.own = None         # the episode's own table, if that is the target
        self.repeated = False   # the statement is run several times
        self.cte = None         # WITH, if what rows() has returned needs it

    # ---------- what is read ----------

    def rows(self):
        """A FROM item s with rows of (key, n, e), whose key is unique and not null."""
        rng, generator = self.rng, self.generator
        choice = rng.random()
        if choice < 0.1:
            return f"(SELECT g * {rng.choice([1, 3])} AS key, g % 50 AS n, 'g' || g AS e FROM generate_series(1, 300) g) s"
        if choice < 0.17:
            # The planner pulls what reads the CTE up, into RETURNING or the actions of MERGE, and
            # the query has read a part of it.
            table = rng.choice(self.tables)
            self.cte = f"WITH c AS {rng.choice(['', 'MATERIALIZED '])}(SELECT id, k FROM {table.name} WHERE id % 10 = 1)"
            return (f"(SELECT q.id AS key, (SELECT count(*)::int FROM c WHERE c.id >= 0 * q.id) AS n, q.part::text AS e"
                    f" FROM {table.name} q WHERE (SELECT c.id FROM c LIMIT 1) > -1) s")
        if choice < 0.25:
            return f"(SELECT q.id + 1 AS key, q.k AS n, q.{self.text()} AS e FROM {self.target.name} q) s"
        if choice < 0.35:
            table = rng.choice(self.tables)
            return (f"(SELECT DISTINCT ON (q.k) coalesce(q.k, -1) AS key, q.id AS n, q.part::text AS e"
                    f" FROM {table.name} q ORDER BY q.k, q.id) s")
        if choice < 0.6:
            while True:
                sql, rel = generator.source()
                if "UNION ALL" not in sql:
                    break
            return (f"(SELECT {rel.alias}.id AS key, {rel.alias}.k AS n, {self.value(rel)} AS e FROM {sql}"
                    f" WHERE {generator.qual(rel)}) s")
        body, rels = generator.join()
        rel = rels[0]
        key = rng.choice(["id", "id", "k"])
        return (f"(SELECT {rel.alias}.{key} AS key, count(*) AS n, max({self.value(rng.choice(rels))}) AS e"
                f" {body} AND {rel.alias}.{key} IS NOT NULL GROUP BY 1) s")

    def value(self, rel):
        """An expression of type text, now and then a wide one."""
        wide = [c for c in rel.columns if c.wide]
        if wide and self.rng.random() < 0.4:
            return rel.col(self.rng.choice(wide))
        return f"({self.generator.expression(rel)})::text"

    def text(self):
        """A column of the target that is as good as any other."""
        return "v" if self.own is None else "part::text"

    def sublink(self):
        """A condition on a row t of the target."""
        rows = self.rows()
        return self.rng.choice([
            f"t.id IN (SELECT s.key FROM {rows})",
            f"t.id % 20 = 3 AND t.id NOT IN (SELECT s.key FROM {rows} WHERE s.key % 5 = 1)",
            f"EXISTS (SELECT 1 FROM {rows} WHERE s.key = t.id AND s.n > 3)",
            f"NOT EXISTS (SELECT 1 FROM {rows} WHERE s.key = t.id)",
            f"t.id IN (SELECT s.key FROM {rows} ORDER BY s.key LIMIT {self.rng.choice([5, 100])})",
            f"t.k > (SELECT avg(s.n) FROM {rows})",
            f"t.id = ANY (ARRAY(SELECT s.key FROM {rows}))",
            f"t.ctid = ANY (ARRAY(SELECT q.ctid FROM {self.target.name} q JOIN {rows} ON s.key = q.id))"
            if self.single() else
            f"t.k < (SELECT max(s.key) FROM {rows})",
        ])

    def single(self):
        """Are all rows in one table?"""
        if self.own is not None:
            return self.own.members == [self.own.name]
        return self.target.name == T and not any("_0" in sql for sql in self.target.create)

    # ---------- the statements ----------

    def sets(self, n, e):
        """The SET clause, given expressions of types int and text."""
        rng = self.rng
        menu = [f"k = {n}", f"k = coalesce(t.k, 0) + {n}", "part = (t.part + 1) % 4", f"part = {n} % 4"]
        if self.own is None:
            menu += [f"v = {e}", f"v = t.v || left({e}, 9)", f"(k, v) = ROW({n}, 'r')"]
            menu += ["id = -t.id"] * (not self.repeated)
        else:
            menu += [f"{c.name} = {c.sql('t.id', rng.randrange(10 ** 6))}" for c in self.own.columns[3:5]]
        result, assigned = [], set()
        for item in rng.sample(menu, rng.choice([1, 1, 2, 3])):
            names = set(re.findall(r"\w+", item.split(" = ")[0]))
            if not names & assigned:
                assigned |= names
                result.append(item)
        return ", ".join(result)

    def condition(self):
        return self.rng.choice(["", "", " AND t.k < 70", " AND t.part <> 2", f" AND {self.some()}"])

    def some(self):
        if self.own is not None:
            return "(" + re.sub(r"\b(id|part)\b", r"t.\1", some_rows(self.rng, self.own)) + ")"
        return f"t.id % {self.rng.choice([2, 7, 30])} = 1"

    def update(self):
        return f"UPDATE {self.target.name} t SET {self.sets('t.part', 't.part::text')} WHERE {self.some()}{self.condition()}"

    def update_from(self):
        rng, rows = self.rng, self.rows()
        if rng.random() < 0.2:
            return (f"WITH w AS (SELECT * FROM {rows}) UPDATE {self.target.name} t"
                    f" SET {self.sets('s.n', 's.e')} FROM w s WHERE t.id = s.key{self.condition()}")
        return (f"UPDATE {self.target.name} t SET {self.sets('s.n', 's.e')} FROM {rows} WHERE t.id = s.key"
                f"{rng.choice(['', ' AND s.n > 3'])}{self.condition()}")

    def update_self_join(self):
        """Values are passed as they are stored, out of line as well."""
        rng, name = self.rng, self.target.name
        sets = self.sets("o.k", f"o.{self.text()}")
        if self.own is not None and rng.random() < 0.7:
            column = rng.choice(self.own.columns[3:])
            sets = f"{column.name} = o.{column.name}"
        join = rng.choice([f"{name} o WHERE o.id = t.id + {rng.choice([1, 5])}",
                           f"{name} o LEFT JOIN {self.rows()} ON s.key = o.id WHERE o.id = t.id"])
        return f"UPDATE {name} t SET {sets} FROM {join}{self.condition()}"

    def update_sublink(self):
        rng, name = self.rng, self.target.name
        if rng.random() < 0.4:
            return f"UPDATE {name} t SET {self.sets('t.id % 90', 't.part::text')} WHERE {self.sublink()}{self.condition()}"
        sets = rng.choice([f"k = (SELECT max(s.n) FROM {self.rows()} WHERE s.key = t.id)",
                           f"k = (SELECT count(*) FROM {self.rows()})",
                           f"(k, part) = (SELECT s.n, s.key % 4 FROM {self.rows()} WHERE s.key = t.id)"])
        return f"UPDATE {name} t SET {sets} WHERE t.id % 80 = 3"

    def update_shift(self):
        """Of unique keys, each by one to that of the row before: no two are ever the same if rows
        are changed in that order."""
        return f"UPDATE {self.target.name} t SET id = t.id - 1{self.rng.choice(['', ', k = t.part'])}"

    def delete_using(self):
        return f"DELETE FROM {self.target.name} t USING {self.rows()} WHERE t.id = s.key{self.condition()}"

    def delete_sublink(self):
        return f"DELETE FROM {self.target.name} t WHERE {self.sublink()}{self.condition()}"

    def delete_duplicates(self):
        """Rows with the same values, of which one is kept: the first or last one, in the order of
        ids, or of their places in an own table, which all runs find in the same order."""
        name = self.target.name
        keys = self.rng.choice([["part"], ["k"], ["part", "k"]])
        same = " AND ".join(f"a.{key} = t.{key}" for key in keys)
        where = [f"t.id < a.id AND {same}"]
        exists = [f"EXISTS (SELECT 1 FROM {name} a WHERE a.id < t.id AND {same})",
                  f"t.id NOT IN (SELECT max(a.id) FROM {name} a GROUP BY {', '.join('a.' + k for k in keys)})",
                  f"t.id IN (SELECT d.id FROM (SELECT a.id, row_number() OVER (PARTITION BY {', '.join(keys)}"
                  " ORDER BY a.id) AS r"
                  f" FROM {name} a) d WHERE d.r > 1)"]
        if self.own is not None and self.own.plain() and not self.repeated:
            where += [f"t.ctid < a.ctid AND {same}"] * 2
            exists += [f"t.ctid NOT IN (SELECT min(a.ctid) FROM {name} a GROUP BY {', '.join('a.' + k for k in keys)})"] * 3
        if self.rng.random() < 0.4:
            return f"DELETE FROM {name} t USING {name} a WHERE {self.rng.choice(where)}"
        return f"DELETE FROM {name} t WHERE {self.rng.choice(exists)}"

    def merge(self):
        rng = self.rng
        insert = "INSERT (id, part, k) VALUES (s.key, s.key % 4, s.n)"
        if self.own is None:
            insert = "INSERT (id, part, k, v) VALUES (s.key, s.key % 4, s.n, coalesce(s.e, 'none'))"
        clauses = []
        for when, own in [("MATCHED", f"UPDATE SET {self.sets('s.n', 's.e')}"), ("NOT MATCHED", insert)] + [
                ("NOT MATCHED BY SOURCE", f"UPDATE SET {self.sets('t.part', 't.part::text')}")] * (self.version >= 17):
            actions = [own, own, "DO NOTHING"] + ["DELETE"] * (when != "NOT MATCHED")
            row = "s.n" if when == "NOT MATCHED" else "t.part"
            for condition in [f" AND {row} % 3 = 1", ""][rng.choice([0, 1]):rng.choice([1, 2, 2])]:
                clauses.append(f" WHEN {when}{condition} THEN {rng.choice(actions)}")
        return (f"MERGE INTO {self.target.name} t USING {self.rows()} ON t.id = s.key"
                + "".join(clauses or [" WHEN MATCHED THEN DELETE"]))

    def insert(self):
        rng = self.rng
        columns, values = "id, part, k", "s.key, s.key % 4, s.n"
        # Keys that the target has only where that is the point.
        conflict = rng.random() < 0.4 and self.target.unique and self.target.name == T
        if not conflict:
            values = values.replace("s.key", "s.key + 100000", 1)
        if self.own is None:
            columns, values = columns + ", v", values + ", " + rng.choice(["s.e", "coalesce(s.e, 'e')", "'x' || s.n"])
        sql = f"INSERT INTO {self.target.name} AS t ({columns}) SELECT {values} FROM {self.rows()}"
        if rng.random() < 0.2:
            sql += " ORDER BY s.key"
        if conflict:
            self.target = replace(self.target, finish=(*self.target.finish, f"CREATE UNIQUE INDEX ON {T} (id)"))
            sql += rng.choice([" ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO NOTHING",
                               " ON CONFLICT (id) DO UPDATE SET k = excluded.k, v = t.v || left(excluded.v, 5)",
                               " ON CONFLICT (id) DO UPDATE SET k = t.k + 1 WHERE t.part <> 2"])
        return sql

    def returning(self, verb):
        rng = self.rng
        if verb == "merge" and self.version < 17 or rng.random() < 0.5:
            return ""
        items = ["t.id", "t.k", "t.part", f"t.{self.text()}", f"(SELECT count(*) FROM {rng.choice(self.tables).name})",
                 f"(SELECT count(*) FROM (SELECT FROM {rng.choice(self.tables).name} FOR SHARE) l)"]
        if verb == "merge":
            items += ["merge_action()", "s.n"]
        if verb in ("update from", "delete using"):
            items += ["s.key", "s.e"]
        if self.version >= 18:
            items += ["old.k", "new.k", "old.id", "new.part"]
        return " RETURNING " + ", ".join(rng.sample(items, rng.choice([1, 2, 4])))

    def deep(self, sql):
        """The same with calls of a function that calls another one, which begins a command: in the
        source, conditions, values and RETURNING. Not drawn from rng, so that a seed draws the same
        episode as before."""
        aside = random.Random(sql)
        if aside.random() >= 0.15:
            return sql
        share = aside.choice([0.3, 1])
        return re.sub(r"(?<![\w.])(?:s\.n|t\.k|t\.part)\b|[\w.]+(?:\(\*\))?(?= AS n\b)",
                      lambda found: f"fz.deep(({found[0]})::int)" if aside.random() < share else found[0], sql)

    # ---------- how they are run ----------

    def run(self, verb, sql, returning):
        """The statements that run it."""
        rng = self.rng
        whole = sql + returning
        ways = ["plain"] * 5 + ["prepared", "prepared", "function", "function", "sql function", "caught", "explain"]
        if self.isolation:
            ways += ["rolled back"] * 2
        if returning:
            ways += ["with", "loop"] + ["copy"] * (not self.target.role)
        way = rng.choice(ways)
        times = rng.choice([1, 2, 7]) if self.repeated else 1
        name = "fz.m#RUN#"
        if way == "prepared":
            return ([f"PREPARE m#RUN# AS {whole}"] + ["EXECUTE m#RUN#"] * times + ["DEALLOCATE m#RUN#"])
        if way == "function":
            body = (f"RETURN QUERY WITH r AS ({whole}) SELECT r::text FROM r" if returning and verb != "merge" else
                    f"{sql}; GET DIAGNOSTICS pn = ROW_COUNT; RETURN NEXT pn")
            return [f"CREATE FUNCTION {name}() RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE pn bigint;"
                    f" BEGIN {body}; END $$"] + [f"SELECT * FROM {name}()"] * times + [f"DROP FUNCTION {name}"]
        if way == "loop":
            return [f"CREATE FUNCTION {name}() RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE pr record;"
                    f" BEGIN FOR pr IN {whole} LOOP RETURN NEXT pr::text; END LOOP; END $$",
                    f"SELECT * FROM {name}()", f"DROP FUNCTION {name}"]
        if way == "sql function":
            return [f"CREATE FUNCTION {name}() RETURNS void LANGUAGE sql AS $${sql}$$"] + [
                f"SELECT {name}()"] * times + [f"DROP FUNCTION {name}"]
        if way == "caught":
            return [f"DO $$ BEGIN BEGIN {sql}; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END;"
                    f" {sql}; END $$"]
        if way == "rolled back":
            return ["SAVEPOINT z", whole, "ROLLBACK TO SAVEPOINT z", whole]
        if way == "explain":
            return [f"EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) {whole}"]
        if way == "with" and (verb != "merge" or self.version >= 17):
            return [f"WITH r AS ({whole}) SELECT count(*), sum(hashtext(r::text)) FROM r"]
        if way == "copy" and (verb != "merge" or self.version >= 17):
            # (psql does not see an error after the first row that it gets)
            return [f"COPY ({whole}) TO '/dev/null'"]
        return [whole] * times

    def choose(self):
        """Sets the target, and returns its name and the statements that create it."""
        rng = self.rng
        if rng.random() < 0.3:
            self.own = rng.choice(self.tables + self.sources)
            columns = ", ".join(c.name for c in self.own.columns)
            self.target = Target((), name=self.own.name, read=(self.own.name,), compared=columns,
                                 unique=len(self.own.members) == 1)
            return f"own {self.own.kind}"
        name = rng.choice(sorted(targets.TARGETS))
        self.target = targets.TARGETS[name]
        if rng.random() < 0.3 and targets.may_be_permanent(self.target):
            self.target = targets.made_permanent(rng, self.target)
            name += ", permanent"
        return name

    def in_order(self):
        """A statement that succeeds in one order of rows, with a target of its own."""
        target, sql = self.rng.choice(targets.IN_ORDER)
        self.target, self.repeated = target, False
        undone = bool(self.isolation) or self.rng.random() < 0.3
        statements = [*target.create, COUNTERS, *self.run("in order", sql, ""), COUNTERS, *targets.contents(target)]
        if not undone:
            statements += targets.dropped(target)
        elif not self.isolation:
            statements = ["BEGIN", *statements, "ROLLBACK"]
        return Query("", kind="in order", target="in order", statements=statements, may_fail=True, calm=True,
                     undone=undone and "PREPARE" not in "".join(statements))

    def query(self):
        rng = self.rng
        if rng.random() < 0.08:
            return self.in_order()
        name = self.choose()
        verbs = VERBS + ["merge"] * 3
        if self.target.permanent:
            verbs = VERBS + ["insert"] * 20
        if self.version < self.target.merges_since:
            verbs = [v for v in verbs if v != "merge"]
        verb = rng.choice(verbs)
        if verb == "update shift" and not (self.own is None and self.target.unique and self.single()):
            verb = "update"
        # A row that MERGE does not see is inserted again.
        hidden = verb == "merge" and (self.target.role or "VIEW" in "".join(self.target.create))
        self.repeated = verb != "insert" and not hidden and rng.random() < 0.5
        self.cte = None
        sql = getattr(self, verb.replace(" ", "_").replace("-", "_"))()
        if self.own is not None and "TABLESAMPLE" in sql:
            self.repeated = False       # where the first run puts rows decides what is sampled then
        if self.cte:
            sql = sql.replace("WITH", self.cte + ",", 1) if sql.startswith("WITH") else f"{self.cte} {sql}"
        run = self.run(verb, self.deep(sql), self.deep(self.returning(verb)))
        if self.target.role:
            run = as_role(self.target.role, run)
        statements = [COUNTERS] + run + [COUNTERS]
        if self.own is None:
            create = targets.filled(rng, self.target, rng.choice(self.tables), verb == "update shift")
            statements = create + statements + targets.contents(self.target)
        else:
            statements += [targets.digest(self.own.name, self.target.compared)]
        undone = bool(self.isolation) or self.own is not None or rng.random() < 0.3
        if not undone:
            statements += targets.dropped(self.target)
        elif not self.isolation:
            begin = "BEGIN"
            if self.own is not None and not any(sql.startswith("CREATE") for sql in run):
                begin = rng.choice(["BEGIN", "BEGIN READ ONLY", "BEGIN ISOLATION LEVEL SERIALIZABLE"])
            statements = [begin] + statements + ["ROLLBACK"]
        kind = "insert into permanent" if verb == "insert" and self.target.permanent else verb
        kind += ", deep" * any("fz.deep" in sql for sql in run)
        calm = any(word in sql for sql in statements for word in ("FUNCTION", "TRIGGER", "REFERENCES", "fz.deep"))
        return Query("", kind=kind, target=name, statements=statements, may_fail=True, calm=calm,
                     undone=undone and not any(sql.startswith("PREPARE") for sql in run))
