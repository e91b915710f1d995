"""Queries whose rows are fetched in portions, or of which a part is fetched.

By cursors, loops, SELECT INTO, expressions and functions of one row; with changes between
the portions, which the rest must not see. Every query orders its rows, so that all
runs fetch the same ones first.
"""

import random

from . import history
from .queries import Generator, Query, depends_on_places
from .settings import COUNTERS

F = "fz.p#RUN#"
VARIABLES = "pr record; ps text; pn int := 0; pm bigint; pa text[];"

# Statements of a function; {sql} is an ordered query, {one} one of a single row, {inner}
# another ordered one, {change} changes a table, {n} and {m} are small numbers. Workers of
# RETURN QUERY and EXECUTE are counted as well.
BODIES = {
    "loop, exit": "FOR pr IN {sql} LOOP pn := pn + 1; RETURN NEXT pr::text; EXIT WHEN pn >= {n}; END LOOP;",
    "loop, return": "FOR pr IN {sql} LOOP RETURN NEXT pr::text; {change}; RETURN; END LOOP; RETURN NEXT 'none';",
    "loop, nested":
        "FOR pr IN {sql} LOOP pn := pn + 1; pm := 0; FOR ps IN SELECT q::text FROM ({inner}) q LOOP pm := pm + 1;"
        " RETURN NEXT ps; EXIT WHEN pm >= {m}; END LOOP; RETURN NEXT pr::text; EXIT WHEN pn >= 3; END LOOP;",
    "loop, changes":
        "FOR pr IN {sql} LOOP pn := pn + 1; RETURN NEXT pr::text; IF pn <= 3 * {m} THEN {change};"
        " RETURN QUERY SELECT q::text FROM ({one}) q; END IF; END LOOP;",
    "loop, subtransactions":
        "FOR pr IN {sql} LOOP pn := pn + 1; RETURN NEXT pr::text; BEGIN IF pn < 4 THEN {change}; END IF;"
        " SELECT q::text INTO ps FROM ({one}) q; IF pn % {n} = 1 THEN RAISE division_by_zero; END IF;"
        " EXCEPTION WHEN division_by_zero THEN RETURN NEXT ps; END; EXIT WHEN pn >= 6; END LOOP;",
    # The error is in a row that may not be fetched.
    "loop, error":
        "FOR pr IN SELECT q.k, count(*), 100 / (q.k - 20 * {m}) FROM {table} q GROUP BY q.k ORDER BY q.k LOOP pn := pn + 1;"
        " RETURN NEXT pr::text; EXIT WHEN pn >= {n}; END LOOP; FOR pr IN SELECT 1 / (q.id - 200) FROM {table} q"
        " WHERE q.id > 30 LOOP EXIT; END LOOP;",
    "loop, execute":
        "FOR pr IN EXECUTE {quoted} LOOP pn := pn + 1; RETURN NEXT pr::text; EXIT WHEN pn >= {n}; END LOOP;",
    "loop, cursor":
        "FOR pr IN pc LOOP pn := pn + 1; RETURN NEXT pr::text; IF pn = {n} THEN {change}; END IF; END LOOP;",
    "cursor, plpgsql":
        "OPEN pc; FETCH pc INTO pr; RETURN NEXT pr::text; {change}; MOVE {n} FROM pc; FETCH NEXT FROM pc INTO pr;"
        " RETURN NEXT pr::text; FETCH RELATIVE {m} FROM pc INTO pr; LOOP FETCH pc INTO pr; EXIT WHEN NOT FOUND;"
        " RETURN NEXT pr::text; END LOOP; CLOSE pc;",
    "cursor, plpgsql scroll":
        "OPEN pd SCROLL FOR {sql}; FETCH LAST FROM pd INTO pr; RETURN NEXT pr::text; {change};"
        " FETCH PRIOR FROM pd INTO pr; RETURN NEXT pr::text; FETCH FIRST FROM pd INTO pr; RETURN NEXT pr::text;"
        " FETCH ABSOLUTE {n} FROM pd INTO pr; RETURN NEXT pr::text; FETCH RELATIVE -{m} FROM pd INTO pr;"
        " RETURN NEXT pr::text; CLOSE pd;",
    "select into": "SELECT q::text INTO ps FROM ({one}) q; RETURN NEXT ps; SELECT q::text INTO ps FROM ({sql}) q; RETURN NEXT ps;",
    "select into, strict":
        "BEGIN SELECT q::text INTO STRICT ps FROM ({sql}) q; EXCEPTION WHEN no_data_found THEN ps := 'none';"
        " WHEN too_many_rows THEN ps := 'many'; END; RETURN NEXT ps; SELECT * INTO STRICT pr FROM ({one}) q; RETURN NEXT pr::text;",
    "select into, repeated":
        "FOR pi IN 1 .. 4 LOOP SELECT q::text INTO ps FROM ({sql}) q OFFSET pi; RETURN NEXT ps; IF pi = {m} THEN {change};"
        " END IF; END LOOP;",
    "select into, execute": "EXECUTE {quoted} INTO pr; RETURN NEXT pr::text; EXECUTE {quoted_one} INTO STRICT pr; RETURN NEXT pr::text;",
    "assigned": "ps := (SELECT q::text FROM ({one}) q); RETURN NEXT ps; {change}; ps := (SELECT q::text FROM ({sql}) q LIMIT 1); RETURN NEXT ps;",
    "assigned, array": "pa := ARRAY(SELECT q::text FROM ({sql}) q); RETURN NEXT pa[{n}]; RETURN NEXT cardinality(pa)::text;",
    # May fail: it is more than one row.
    "assigned, rows": "ps := (SELECT q::text FROM ({sql}) q); RETURN NEXT ps;",
    "condition":
        "IF (SELECT count(*) FROM ({sql}) q) > {n} THEN RETURN NEXT 'more'; END IF; IF EXISTS (SELECT FROM ({sql}) q) THEN"
        " RETURN NEXT 'some'; END IF; PERFORM 1 FROM ({inner}) q; RETURN NEXT FOUND::text; WHILE (SELECT count(*) FROM"
        " ({one}) q) > pn LOOP pn := pn + 1; END LOOP; RETURN QUERY SELECT q::text FROM ({one}) q;",
}
SQL_BODIES = [
    "SELECT q::text FROM ({sql}) q",
    "SELECT q::text FROM ({one}) q",
    "{change}; SELECT q::text FROM ({sql}) q",
    "SELECT q::text FROM ({sql}) q OFFSET {n}",
]


class Portions:
    def __init__(self, rng, tables, isolation, ranges):
        self.rng = rng
        self.tables = tables
        self.isolation = isolation
        self.ranges = ranges        # can the server scroll in a TID range?
        self.generator = Generator(rng, tables)

    # ---------- what is fetched ----------

    def settled(self, make):
        """A query whose rows do not depend on where they are stored, which changes."""
        while True:
            query = make()
            if not depends_on_places(query.sql):
                return query

    def ordered(self):
        sql = self.plainly_ordered()
        # Not drawn from rng, so that a seed draws the same episode as before.
        aside = random.Random(sql)
        if aside.random() >= 0.15:
            return sql
        name = aside.choice(self.tables).name
        return aside.choice([
            f"SELECT q.*, fz.deep(length(q::text)) AS y FROM ({sql}) q",
            f"SELECT q.* FROM ({sql}) q WHERE fz.deep(hashtext(q::text)) % 5 <> 1",
            f"SELECT fz.deep(a.k) AS x1, count(*) AS x2 FROM {name} a GROUP BY 1 ORDER BY 1",
            f"SELECT a.id AS x1, fz.deep(a.k) AS x2 FROM {name} a WHERE fz.deep(a.part) % 3 <> 1 ORDER BY fz.deep(a.k), a.id"])

    def plainly_ordered(self):
        generator, rng = self.generator, self.rng
        choice = rng.random()
        if choice < 0.5:
            # most of the others have few rows
            a, b = rng.choice(self.tables).name, rng.choice(self.tables).name
            return rng.choice([
                f"SELECT a.id AS x1, md5(a::text) AS x2 FROM {a} a ORDER BY a.id",
                f"SELECT a.k AS x1, count(*) AS x2, sum(a.id) AS x3 FROM {a} a GROUP BY a.k ORDER BY a.k",
                f"SELECT a.id AS x1, b.k AS x2 FROM {a} a JOIN {b} b ON a.id = b.id ORDER BY a.id DESC, b.k",
                f"SELECT a.part AS x1, b.k AS x2, count(*) AS x3 FROM {a} a JOIN {b} b ON a.id = b.id GROUP BY 1, 2 ORDER BY 1, 2",
                f"SELECT DISTINCT a.k % 9 AS x1, a.part AS x2 FROM {a} a WHERE a.id IN (SELECT b.id FROM {b} b) ORDER BY 2, 1"])
        if choice < 0.75:
            return self.settled(generator.top).sql
        make = rng.choice([generator.grouped, generator.grouped, generator.rows, generator.window, generator.set_operation])
        return f"SELECT q.* FROM ({self.settled(make).sql}) q ORDER BY q::text"

    def one(self):
        return self.settled(self.generator.aggregates).sql

    def change(self):
        rng = self.rng
        table = rng.choice(self.tables).name
        return rng.choice([
            f"UPDATE {table} SET k = 5 WHERE id % 5 = {rng.randrange(5)}",
            f"DELETE FROM {table} WHERE id % 3 = {rng.randrange(3)}",
            f"DELETE FROM {table}",
            f"INSERT INTO {table} (id, part, k) SELECT -id, part, id % 9 FROM {table} WHERE id > 0 AND id % 4 = {rng.randrange(4)}",
            f"SET LOCAL work_mem = '{rng.choice(['64kB', '1MB'])}'",
            "SET LOCAL enable_hashagg = off",
            "SET LOCAL temp_parallel.enabled = off",
        ])

    def fields(self):
        sql, one = self.ordered(), self.one()
        return {"sql": sql, "one": one, "inner": self.ordered(), "change": self.change(),
                "table": self.rng.choice(self.tables).name,
                "quoted": "'" + sql.replace("'", "''") + "'", "quoted_one": "'" + one.replace("'", "''") + "'",
                "n": self.rng.choice([1, 2, 5, 30]), "m": self.rng.choice([1, 3])}

    # ---------- functions ----------

    def plpgsql(self, kind, body):
        fields = self.fields()
        cursor = f" pc CURSOR FOR {fields['sql']}; pd refcursor;" if "cursor" in kind else ""
        result = [f"CREATE FUNCTION {F}() RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE {VARIABLES}{cursor}"
                  f" BEGIN {body.format(**fields)} END $$"]
        return result + [COUNTERS] + [f"SELECT * FROM {F}()"] * self.rng.choice([1, 1, 2]) + [COUNTERS]

    def sql_function(self):
        """Of one row: the first one of its query."""
        rng = self.rng
        body = rng.choice(SQL_BODIES).format(**self.fields())
        many = rng.random() < 0.4
        atomic = rng.random() < 0.3 and "SET LOCAL" not in body
        body = f"BEGIN ATOMIC {body}; END" if atomic else f"AS $${body}$$"
        table = rng.choice(self.tables).name
        calls = [f"SELECT {F}()", f"SELECT * FROM {F}()", f"SELECT id, {F}() FROM {table} WHERE id < 4 ORDER BY id",
                 f"SELECT {F}() || 'x' LIMIT 2"]
        if many:
            calls = [f"SELECT {F}() LIMIT 3", f"SELECT * FROM {F}() LIMIT 3", f"SELECT * FROM {F}() f OFFSET 2"]
        return [f"CREATE FUNCTION {F}() RETURNS {'SETOF ' * many}text LANGUAGE sql {body}",
                COUNTERS, rng.choice(calls), COUNTERS]

    # ---------- cursors ----------

    def declare(self, options, sql=None, name="c"):
        return f"DECLARE {name} {options}CURSOR FOR {sql or self.ordered()}"

    def fetched(self):
        """Forward only: whether a cursor without SCROLL can move backward, as for the same row
        again, depends on the plan, which changes as the table grows."""
        rng = self.rng
        return [self.declare(rng.choice(["", "", "NO SCROLL ", "INSENSITIVE "])), f"FETCH {rng.choice([1, 3])} FROM c",
                self.change(), self.one(), f"FETCH {rng.choice([1, 8, 100])} FROM c", self.change(),
                f"MOVE {rng.choice([0, 2])} FROM c", self.one(), "FETCH ALL FROM c", "FETCH NEXT FROM c", "CLOSE c"]

    def scrolled(self):
        rng = self.rng
        result = [self.declare("SCROLL ")]
        for _ in range(rng.choice([3, 6, 9])):
            result.append(rng.choice(["FETCH", "FETCH", "FETCH", "MOVE"]) + " " + rng.choice([
                "NEXT", "PRIOR", "FIRST", "LAST", "0", "5", "FORWARD 20", "BACKWARD 3", "BACKWARD ALL", "ALL",
                f"ABSOLUTE {rng.choice([0, 3, 50, -2])}", f"RELATIVE {rng.choice([0, 4, -3])}"]) + " FROM c")
            if rng.random() < 0.3:
                result.append(self.change())
        return result

    def held(self):
        """COMMIT stores what has not been fetched."""
        rng = self.rng
        declare = self.declare(rng.choice(["", "SCROLL ", "NO SCROLL "])).replace("CURSOR", "CURSOR WITH HOLD", 1)
        return ["BEGIN", declare] + [f"FETCH {rng.choice([1, 4])} FROM c"] * rng.choice([0, 1]) + [
            "COMMIT", "FETCH 2 FROM c", "BEGIN", self.change(), "FETCH 3 FROM c", "ROLLBACK", "FETCH ALL FROM c", "CLOSE c"]

    def subtransaction(self):
        plain, change = self.declare(""), self.change()
        return self.rng.choice([
            [plain, "FETCH 2 FROM c", "SAVEPOINT z", "FETCH 3 FROM c", change, "ROLLBACK TO SAVEPOINT z",
             "FETCH 4 FROM c", change, "FETCH ALL FROM c"],
            [plain, "SAVEPOINT z", "FETCH 3 FROM c", "ROLLBACK TO SAVEPOINT z", change, "FETCH ALL FROM c"],
            ["SAVEPOINT z", self.declare("SCROLL "), "FETCH 3 FROM c", "RELEASE SAVEPOINT z", change,
             "FETCH ALL FROM c", "FETCH BACKWARD 3 FROM c"],
            # It does not exist any more.
            ["SAVEPOINT z", plain, "FETCH 3 FROM c", "ROLLBACK TO SAVEPOINT z", "FETCH ALL FROM c"],
            [change, plain, "SAVEPOINT z", self.change(), "ROLLBACK TO SAVEPOINT z", "FETCH ALL FROM c"],
        ])

    def left_open(self):
        """Cursors that nobody closes, over a table that is to be dropped."""
        rng = self.rng
        table = rng.choice(self.tables)
        sql = f"SELECT q.k, count(*), sum(q.id) FROM {table.name} q GROUP BY q.k ORDER BY q.k"
        ddl = f"{rng.choice(['TRUNCATE', 'DROP TABLE'])} {rng.choice([table.name] + table.members)}"
        return [self.declare("", sql), f"FETCH {rng.choice([0, 2])} FROM c", self.declare("SCROLL ", name="d"),
                "FETCH 2 FROM d", f"SELECT fz.state('{ddl}')", self.one(), "FETCH 5 FROM d", "FETCH 3 FROM c",
                "FETCH PRIOR FROM d"]

    def volatile(self):
        """A function that sees what has changed since the last portion."""
        rng = self.rng
        table = rng.choice(self.tables).name
        sql = rng.choice([
            f"SELECT q.*, fz.seen('{table}') AS y FROM ({self.ordered()}) q",
            f"SELECT q.k, count(*), fz.seen('{table}') FROM {table} q GROUP BY q.k ORDER BY q.k"])
        return [self.declare("", sql), "FETCH 2 FROM c", f"DELETE FROM {table} WHERE id % 2 = 0", "FETCH 2 FROM c",
                f"DELETE FROM {table}", "FETCH ALL FROM c"]

    def setting(self):
        """A stable function of core, whose result changes between two portions."""
        return ["SET LOCAL fz.target = '1'", self.declare("", self.of_groups("current_setting('fz.target')")),
                "FETCH 2 FROM c", "SET LOCAL fz.target = '20'", "FETCH 4 FROM c"]

    def of_groups(self, value):
        """A query in which value, of type text, is in different places of what is made of groups."""
        rng = self.rng
        return (f"SELECT q.k, count(*), {rng.choice([value, f'sum(q.id) || {value}'])} FROM {rng.choice(self.tables).name} q"
                f" GROUP BY q.k {rng.choice(['', f' HAVING count(*) > length({value})'])} ORDER BY q.k")

    def role(self):
        """Another role, other privileges or another function at the first row."""
        rng = self.rng
        table = rng.choice(self.tables).name
        declare = self.declare(rng.choice(["", "SCROLL "]), self.of_groups("current_user::text"))
        changed = [["SET LOCAL ROLE fuzz_reader"],
                   [f"GRANT SELECT ON {table} TO fuzz_reader", f"REVOKE SELECT ON {table} FROM fuzz_reader", "SET LOCAL ROLE fuzz_reader"]]
        return [declare, *rng.choice(changed), f"FETCH {rng.choice([0, 2])} FROM c", "SET LOCAL ROLE none", "FETCH 4 FROM c"]

    def current_of(self):
        rng = self.rng
        table = rng.choice(self.tables)
        sql = (f"SELECT q.id, q.k FROM {table.name} q WHERE q.id = (SELECT min(o.id) FROM {table.name} o WHERE"
               f" o.id > {rng.randrange(max(2, table.next_id))})" + rng.choice(["", " FOR UPDATE", " ORDER BY q.k"]))
        change = rng.choice([f"UPDATE {table.name} SET k = -1", f"DELETE FROM {table.name}"])
        return [self.declare("", sql), "FETCH 1 FROM c", f"{change} WHERE CURRENT OF c",
                "FETCH 1 FROM c", f"SELECT count(*), sum(id), sum(k) FROM {table.name}"]

    def committing(self):
        """A loop that commits."""
        rng = self.rng
        change, out = history.touch(rng, rng.choice(self.tables))[0], "p#RUN#"
        return [f"CREATE TEMP TABLE {out} (q text)",
                f"DO $$ DECLARE {VARIABLES} BEGIN FOR pr IN {self.ordered()} LOOP pn := pn + 1; INSERT INTO {out}"
                f" VALUES (pn || pr::text); IF pn % 20 = 1 AND pn < 200 THEN {change}; COMMIT; END IF; END LOOP; END $$",
                f"SELECT * FROM {out}", f"DROP TABLE {out}"]

    def sample(self, rng):
        """A sample that each process must not take for itself. One of permanent tables, of which core's
        workers do so if it is not fetched in portions; a temporary one is read elsewhere."""
        big, small, table = (rng.choice(self.tables) for _ in range(3))
        sql = ("SELECT coalesce(max(y.c), 1) FROM (SELECT count(DISTINCT x.n) AS c FROM (SELECT a.id, a.part, count(*) AS n"
               f" FROM {big.control} a JOIN {small.control} s TABLESAMPLE BERNOULLI ({rng.choice([10, 50])}) ON a.part = s.part"
               f" WHERE a.id >= (SELECT coalesce(min(t.id), 0) FROM {table.name} t) GROUP BY 1, 2) x GROUP BY x.part) y")
        return [self.declare("", sql), "FETCH 2 FROM c"]

    def walked(self, rng):
        """A cursor of each kind of scan, moved to and fro by statements with workers over the same
        table, and by others. In the order of the scan, which does not depend on the mode."""
        table = rng.choice(self.tables)
        t = rng.choice(table.members)
        scans = [
            ("seqscan", f"{t} q WHERE q.id % 5 <> 1", "index bitmap indexonly tid"),
            ("index", f"{rng.choice([t, table.name])} q WHERE q.id > 3 AND q.k % 7 <> 2 ORDER BY q.id", "seq bitmap indexonly"),
            ("index only", f"{t} q WHERE q.id > 3 ORDER BY q.id", "seq bitmap"),
            ("bitmap", f"{t} q WHERE q.k BETWEEN 3 AND 60", "seq index indexonly"),
            ("tid", f"{t} q WHERE q.ctid = ANY (ARRAY(SELECT o.ctid FROM {t} o WHERE o.id % 7 = 3))", "seq"),
            ("sample", f"{t} q TABLESAMPLE {rng.choice(['BERNOULLI', 'SYSTEM'])} (60) REPEATABLE (3)", "")]
        if self.ranges:
            scans += [("tid range", f"{t} q WHERE q.ctid >= '({rng.choice([0, 0, 1, 3])},{rng.choice([0, 2])})'"
                                    f" AND q.ctid <= '({rng.choice([0, 1, 4, 9, 40, 5000])},{rng.choice([0, 5, 200])})'", "seq")] * 4
        kind, sql, off = rng.choice(scans)
        scroll = rng.random() < 0.8
        off = ", ".join(f"enable_{s}{'' if s.endswith('scan') else 'scan'}" for s in off.split())
        result = [f"SELECT fz.open('SELECT q.id FROM {sql.replace(chr(39), chr(39) * 2)}', '{{{off}}}', {scroll})"]
        for _ in range(rng.choice([3, 6, 10])):
            steps = [rng.choice([1, 1, 3, 8, 60, 150]) for _ in range(rng.choice([1, 2, 6]))]
            if scroll:
                steps = [rng.choice([step, -step]) for step in steps] + rng.choice([[], [1, -1] * 4, [0], [0, -1, -1, 1, 1]])
            walk = "fz.walk('{" + ", ".join(map(str, steps)) + "}')"
            result.append(rng.choice([
                f"SELECT {walk}, n FROM (SELECT count(*) AS n FROM {table.name} OFFSET 0) r",
                f"SELECT {walk}, n FROM (SELECT count(*) AS n FROM {t} OFFSET 0) r",
                f"SELECT {walk} FROM {t} r WHERE r.id % 150 = 3",
                f"SELECT {walk}"]))
        return kind, result + ["CLOSE c"]

    # Kinds, and whether they end transactions.
    CURSORS = {"cursor, fetched": (fetched, False), "cursor, scrolled": (scrolled, False), "cursor, held": (held, True),
               "cursor, subtransaction": (subtransaction, False), "cursor, left open": (left_open, False),
               "cursor, volatile": (volatile, False), "cursor, setting": (setting, False), "cursor, role": (role, False),
               "cursor, current of": (current_of, False), "loop, commit": (committing, True)}

    @staticmethod
    def counted(statements):
        """With COUNTERS around what opens the cursor and asks for the first row."""
        first = next(n for n, sql in enumerate(statements) if sql.startswith(("FETCH", "MOVE", "COMMIT", "DO")))
        return [COUNTERS] + statements[:first + 1] + [COUNTERS] + statements[first + 1:]

    def query(self):
        rng = self.rng
        cursors = [kind for kind, (_, ends) in self.CURSORS.items() if not ends or not self.isolation]
        kind = rng.choices([rng.choice(sorted(BODIES)), "sql function", rng.choice(cursors)], [50, 8, 42])[0]
        maker, ends = self.CURSORS.get(kind, (None, False))
        if maker:
            statements = self.counted(maker(self))
        elif kind == "sql function":
            statements = self.sql_function()
        else:
            statements = self.plpgsql(kind, BODIES[kind])
        # Not drawn from rng, so that a seed draws the same episode as before.
        aside = random.Random(repr(statements))
        if aside.random() < 0.06:
            kind, ends, statements = "cursor, sample", False, self.counted(self.sample(aside))
        elif aside.random() < 0.12:
            kind, statements = self.walked(aside)
            kind, ends, statements = f"cursor, walked, {kind}", False, [COUNTERS] + statements + [COUNTERS]
        if not self.isolation and not ends:
            statements = ["BEGIN"] + statements + ["ROLLBACK"]
        name = kind + ", deep" * any("fz.deep" in sql for sql in statements)
        query = Query("", kind=name, statements=statements, may_fail=True, undone=not ends,
                      calm=any(word in sql for sql in statements for word in ("FUNCTION", "DO $$", "fz.")),
                      ordered=kind != "loop, commit")
        if kind == "cursor, sample":
            query.settings = {"enable_nestloop": "off", "enable_mergejoin": "off", "enable_hashjoin": "on", "work_mem": "64MB"}
        if kind in ("loop, error", "cursor, setting", "cursor, role"):
            # so that without workers groups are always made at the same time: as they are asked
            # for, or below a sort
            query.settings = {"enable_hashagg": "off"}
            if kind != "loop, error" and rng.random() < 0.5:
                query.settings = {"enable_hashagg": "on", "enable_sort": "on", "enable_indexscan": "off", "enable_indexonlyscan": "off",
                                  "cpu_tuple_cost": "0.01"}
        return query
