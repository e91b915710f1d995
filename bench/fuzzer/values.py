"""Out-of-line values that a parallel query gets as parameters.

A source is a small temporary table of wide values of many types, with a permanent copy
like any other. A value from a source, or from a table that has wide columns, becomes a
parameter of a query over another table, temporary or permanent, whose workers detoast
it. Sources need not be in that query, so that nothing has flushed them.
"""

from . import history
from .queries import Query
from .schema import Column, Table, definition

# Types of values that the server does not have; created in every session.
TYPES = [
    "CREATE TYPE fz.pair AS (a int, b text)",
    "CREATE DOMAIN fz.doc AS text CHECK (length(VALUE) > 0)",
    "CREATE DOMAIN fz.dpair AS fz.pair CHECK ((VALUE).a >= 0)",
    "CREATE TYPE fz.textrange AS RANGE (subtype = text)",
]

LONG = "repeat(md5(h::text), (70 + h % 190)::int)"
DENSE = ("(SELECT string_agg(md5((h + i)::text) || '-----------------', '') FROM"
         " generate_series(1, 80 + (h % 120)::int) i)")

# Type; the value as an SQL expression of h, a hash of the row, large enough to be stored
# out of line; the storage; expressions of such a value {p} and of a row {r}, all of
# them integers or NULL.
KINDS = {
    "external": ("text", LONG, "EXTERNAL", [
        "hashtext({p} || {r}.id)", "strpos({p}, ({r}.id % 90)::text)",
        "hashtext(substr({p}, 1 + {r}.id % 2000, 12))", "length({p}) + {r}.id"]),
    "compressed": ("text", DENSE, "EXTENDED", [
        "hashtext({p} || {r}.id)", "strpos({p}, ({r}.id % 90)::text)",
        "hashtext(substr({p}, 1 + {r}.id % 2000, 12))", "({p} > ('a' || {r}.id))::int"]),
    "jsonb": ("jsonb", "(SELECT jsonb_object_agg('key' || i, md5((h + i)::text)) FROM"
              " generate_series(1, 80 + (h % 150)::int) i)", "EXTENDED", [
                  "({p} ? ('key' || {r}.id % 300))::int", "hashtext({p} ->> ('key' || {r}.id % 300))",
                  "hashtext({p}::text || {r}.id)",
                  "({p} @> jsonb_build_object('key1', {r}.id::text))::int"]),
    "bytea": ("bytea", f"convert_to({DENSE}, 'UTF8')", "EXTERNAL", [
        "get_byte({p}, {r}.id % 2000)", "hashtext(encode({p}, 'hex') || {r}.id)"]),
    "text[]": ("text[]", "(SELECT array_agg(md5((h + i)::text)) FROM"
               " generate_series(1, 80 + (h % 100)::int) i)", "EXTENDED", [
                   "hashtext(({p})[1 + {r}.id % 90])", "array_length({p}, 1) + {r}.id",
                   "(md5({r}.id::text) = ANY (({p})::text[]))::int", "hashtext({p}::text || {r}.id)"]),
    "int[]": ("int[]", "(SELECT array_agg((h + i * i) % 5000) FROM"
              " generate_series(1, 700 + (h % 500)::int) i)", "EXTERNAL", [
                  "({p})[1 + {r}.id % 700]", "({r}.id = ANY (({p})::int[]))::int",
                  "({p} @> ARRAY[{r}.id])::int"]),
    "numeric": ("numeric", "repeat((1000 + h % 9000)::text, 3000)::numeric", "EXTERNAL", [
        "mod({p}, {r}.id + 1009)::int", "hashtext({p}::text || {r}.id)"]),
    "range": ("fz.textrange", f"fz.textrange('a' || {DENSE}, 'g' || {DENSE})", "EXTENDED", [
        "({p} @> (chr(96 + {r}.id % 9) || {r}.id))::int", "hashtext(lower({p}) || {r}.id)"]),
    "multirange": ("int4multirange", "(SELECT range_agg(int4range(i * 10, i * 10 + 1 + (h % 7)::int))"
                   " FROM generate_series(1, 600 + (h % 300)::int) i)", "EXTERNAL", [
                       "({p} @> {r}.id)::int", "hashtext({p}::text || {r}.id)"]),
    "composite": ("fz.pair", f"ROW(h % 100, {LONG})::fz.pair", "EXTERNAL", [
        "hashtext(({p}).b || {r}.id)", "({p}).a + {r}.id", "hashtext({p}::text || {r}.id)"]),
    "composites": ("fz.pair[]", f"ARRAY[ROW(h % 100, {DENSE}), ROW(h % 7, 'x')]::fz.pair[]", "EXTENDED", [
        "hashtext((({p})[1 + {r}.id % 2]).b || {r}.id)", "hashtext({p}::text || {r}.id)"]),
    "domain": ("fz.doc", DENSE, "EXTERNAL", [
        "hashtext({p} || {r}.id)", "strpos({p}, ({r}.id % 90)::text)"]),
    "dcomposite": ("fz.dpair", f"ROW(h % 100, {LONG})::fz.pair::fz.dpair", "EXTERNAL", [
        "hashtext(({p}).b || {r}.id)", "hashtext({p}::text || {r}.id)"]),
    "tsvector": ("tsvector", "(SELECT to_tsvector('simple', string_agg('w' || (h + i * 7) % 4000, ' ')) FROM"
                 " generate_series(1, 300 + (h % 200)::int) i)", "EXTENDED", [
                     "({p} @@ ('w' || {r}.id)::tsquery)::int", "length({p}) + {r}.id",
                     "hashtext({p}::text || {r}.id)"]),
}


def create_source(rng, name):
    """A Table that is a source, and the statements that create it."""
    columns = [Column("id", "int", "", 0), Column("part", "int", "", 0),
               Column("k", "int", "(h % 100)::int", 0)]
    statements = []
    for n, kind in enumerate(rng.sample(sorted(KINDS), rng.choice([2, 3, 4]))):
        type_, value, storage, _ = KINDS[kind]
        columns.append(Column(f"v{n}", type_, value, rng.choice([0, 0, 7]), kind))
        statements.append(f"ALTER TABLE {name} ALTER v{n} SET STORAGE {storage}")
    table = Table(name, "source", columns, members=[name], targets=[name])
    index = [f"CREATE INDEX {name}_id ON {name} (id)"] if rng.random() < 0.4 else []
    return table, [f"CREATE UNLOGGED TABLE {table.control} {definition(columns)}",
                   f"CREATE TEMP TABLE {name} {definition(columns)}"] + statements + index


class Value:
    """A value in a table."""

    def __init__(self, rng, table, column, number):
        self.table = table.name
        self.column = column.name
        self.type = column.type
        self.number = number
        self.looks = KINDS[column.wide if column.wide in KINDS else "external"][3]
        # The query that gives it.
        where = f"s.id = {number}"
        self.query = f"SELECT s.{self.column} FROM {self.table} s WHERE {where}"

    def look(self, rng, p, r):
        """An expression over parameter p and row r."""
        return rng.choice(self.looks).format(p=p, r=r)


def variable(value, way):
    """The declaration of a variable of PL/pgSQL, the statements that assign the value,
    and the expression for it."""
    type_, table, column = value.type, value.table, value.column
    declare = f"pv {type_};"
    get = f"SELECT s.{column} INTO pv FROM {table} s WHERE s.id = {value.number};"
    if "pair" in type_ and "[]" not in type_:
        # INTO would assign its fields one by one
        get = f"pv := ({value.query});"
    if way in ("field", "rowtype"):
        return (f"pv {'record' if way == 'field' else table};",
                f"SELECT s.* INTO pv FROM {table} s WHERE s.id = {value.number};", f"pv.{column}")
    if way == "array" and "[]" not in type_:
        return f"{declare} pa {type_}[];", f"{get} pa[2] := pv; pa[1] := pv;", "pa[1]"
    if way == "pair" and type_ == "text":
        return f"{declare} pp fz.pair;", f"{get} pp.b := pv;", "pp.b"
    if way == "assigned":
        return declare, f"pv := ({value.query});", "pv"
    if way in ("for", "nested for"):
        return "pr record;", "", "pr.pv"        # the loop assigns it
    if way in ("argument", "lateral"):
        return "", "", "pv"
    return declare, get, "pv"


class Values:
    def __init__(self, rng, tables, sources, version, isolation):
        self.rng = rng
        self.tables = tables
        self.sources = sources
        self.version = version
        self.isolation = isolation
        self.before = []            # statements that make values new, so that nobody has written them

    def value(self, table=None):
        rng = self.rng
        wide = [t for t in self.tables if any(c.wide in ("external", "compressed", "repeated") for c in t.columns)]
        table = table or (rng.choice(wide) if wide and rng.random() < 0.15 else rng.choice(self.sources))
        columns = [c for c in table.columns if c.wide and c.wide not in ("pad", "sparse")]
        value = Value(rng, table, rng.choice(columns), rng.randrange(1, max(2, table.next_id)))
        if rng.random() < 0.4:
            column = next(c for c in columns if c.name == value.column)
            self.before += history.both(table, f"UPDATE {{t}} SET {column.name} ="
                                        f" {column.sql('id', rng.randrange(10 ** 6))} WHERE id = {value.number}")
        return value

    def big(self, permanent=True):
        """What the query is over: mostly not where the value is from."""
        rng = self.rng
        if rng.random() < 0.06:
            return rng.choice(self.sources).name
        table = rng.choice(self.tables)
        return table.name if not permanent or rng.random() < 0.6 else table.control

    def body(self, given, scalar=False, r="b", big=None):
        """A query whose workers detoast the values: given is a list of (Value, expression). It is over
        the table big, if that is given."""
        rng = self.rng
        some = f"{r}.id % {rng.choice([5, 20, 20, 50])} = {rng.randrange(5)}"
        looks = [value.look(rng, p, r) for value, p in given]
        look = " + ".join(f"coalesce({x}, 7)::bigint" for x in looks)
        # a query over permanent tables with such a parameter is the server's, which fails
        source = f"{big or self.big(all('SELECT' in p for _, p in given))} {r}"
        if rng.random() < 0.15:
            # its table is also in the query
            source += f" JOIN {given[0][0].table} j ON j.id = {r}.id % 9"
        aggregates = [
            f"SELECT count(*) AS x1, sum({look}) AS x2 FROM {source} WHERE {some}",
            f"SELECT count(*) AS x1, sum({r}.id) AS x2 FROM {source} WHERE {some} AND ({look}) % 3 <> 0",
            f"SELECT sum({r}.id) AS x1, max({look}) AS x2 FROM {source} WHERE {some} AND"
            f" ({' AND '.join(f'{p} IS NOT NULL' for _, p in given)} OR {r}.k < 50)",
        ]
        rows = [
            f"SELECT {r}.id AS x1, {look} AS x2 FROM {source} WHERE {some}",
            f"SELECT ({look}) % 5 AS x1, count(*) AS x2 FROM {source} WHERE {some} GROUP BY 1",
        ]
        return rng.choice(aggregates if scalar else aggregates * 2 + rows)

    # ---------- InitPlans ----------

    def initplan(self, value=None, depth=0):
        """(Value, expression): a subquery that runs before the workers are launched."""
        rng = self.rng
        value = value or self.value()
        where = f"s.id = {value.number}"
        if depth < 2 and rng.random() < 0.2:
            # one that depends on another InitPlan
            inner = rng.choice([
                f"(SELECT min(n.id) FROM {value.table} n WHERE n.id >= {value.number})",
                f"1 + (SELECT length(n.x1::text) FROM"
                f" ({self.body([self.initplan(depth=2)], scalar=True, r='d')}) n)"])
            where = f"s.id = {inner}"
        expression = rng.choice([
            f"(SELECT s.{value.column} FROM {value.table} s WHERE {where})",
            f"(SELECT s.{value.column} FROM {value.table} s WHERE {where} ORDER BY s.id LIMIT 1)",
            f"(SELECT s.{value.column} FROM {value.table} s WHERE {where} OFFSET 0)",
            f"(SELECT coalesce(s.{value.column}, s.{value.column}) FROM {value.table} s WHERE {where})",
            f"(SELECT (ARRAY[s.{value.column}])[1] FROM {value.table} s WHERE {where})"
            if "[]" not in value.type else
            f"(SELECT CASE WHEN s.id > 0 THEN s.{value.column} END FROM {value.table} s WHERE {where})",
            f"(SELECT s FROM {value.table} s WHERE {where}).{value.column}",
            f"(ARRAY(SELECT s.{value.column} FROM {value.table} s WHERE {where}))[1]"
            if "[]" not in value.type else
            f"(SELECT s.{value.column} FROM {value.table} s WHERE {where})",
        ])
        return value, expression

    def subqueries(self):
        """InitPlans in different places."""
        rng = self.rng
        given = [self.initplan() for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        choice = rng.random()
        if choice < 0.45:
            return self.body(given)
        if choice < 0.6:
            # One InitPlan for two Gathers: the condition is pushed down to both arms.
            value, p = given[0]
            arms = [f"SELECT b.id % 40 AS id, count(*) AS n, sum(b.k) AS k FROM {self.big()} b GROUP BY 1"
                    for _ in range(rng.choice([2, 3]))]
            return (f"SELECT u.id AS x1, u.n AS x2, u.k AS x3 FROM ({' UNION ALL '.join(arms)}) u"
                    f" WHERE coalesce({value.look(rng, p, 'u')}, 7) % 3 <> 0")
        if choice < 0.7:
            one, two = self.body(given[:1], scalar=True), self.body([self.initplan(given[0][0])], scalar=True)
            return f"{one} UNION ALL {two}"
        if choice < 0.8:
            # Workers are launched again for every outer row, with the same value.
            return (f"SELECT v.x AS x1, q.x1 AS x2, q.x2 AS x3 FROM (VALUES (1), (2), (3)) v(x), LATERAL"
                    f" ({self.body(given, scalar=True)} HAVING count(*) > v.x) q")
        if choice < 0.93:
            # ... with another value, or none.
            value = self.value()
            p = (f"(SELECT s.{value.column} FROM {value.table} s WHERE s.id = v.x + {value.number - 1}"
                 f"{rng.choice(['', ' AND v.x % 2 = 1'])})")
            first = rng.choice(["(VALUES (1), (2), (3), (4)) v(x)",
                                f"(SELECT id % 6 AS x FROM {value.table} LIMIT 4) v"])
            if first.startswith("(SELECT"):
                first = first.replace(" LIMIT", " ORDER BY id LIMIT")
            # Another Gather may read the table between two launches, of which the first one has
            # been left to the leader.
            big = self.big()
            other = rng.choice(["", f" + (SELECT count(*) FROM {big} m JOIN {self.big()} o USING (id))"])
            return (f"SELECT v.x AS x1, q.x1 AS x2, q.x2{other} AS x3 FROM {first}, LATERAL"
                    f" ({self.body([(value, p)], scalar=True, big=big)}) q")
        value, _ = given[0]
        return (f"WITH w AS MATERIALIZED ({value.query}) "
                + self.body([(value, f"(SELECT w.{value.column} FROM w)")]))

    # ---------- functions, triggers and prepared statements ----------

    def plpgsql(self):
        """A function whose variables are the parameters of its queries."""
        rng = self.rng
        value = self.value()
        name = "fz.v#RUN#"
        way = rng.choice(["scalar", "scalar", "field", "rowtype", "array", "pair", "assigned", "for", "for",
                          "nested for", "into table", "using", "cursor", "perform", "argument", "lateral",
                          "block"])
        declare, assign, p = variable(value, way)
        given = [(value, p)]
        if rng.random() < 0.2:
            given.append(self.initplan())
        times = rng.choice([1, 1, 1, 7])        # often enough for a generic plan
        query = f"SELECT q::text FROM ({self.body(given)}) q"
        if way == "block":
            # A DO block, which may end transactions, instead of a function.
            return ["DROP TABLE IF EXISTS vout",
                    f"DO $$ DECLARE {declare} BEGIN {assign} CREATE TEMP TABLE vout AS {query}; END $$",
                    "SELECT * FROM vout", "DROP TABLE vout"]
        cursor, run = self.returning(value, way, query, p)
        if times > 1 and way not in ("for", "nested for"):
            run = f"FOR i IN 1..{times} LOOP {run} END LOOP;"
        argument, call = "", f"SELECT * FROM {name}()"
        if way == "argument":
            argument, call = f"pv {value.type}", f"SELECT * FROM {name}(({value.query}))"
        elif way == "lateral":
            argument = f"pv {value.type}"
            call = (f"SELECT x.id AS x1, y AS x2 FROM {value.table} x, LATERAL {name}(x.{value.column}) y"
                    f" WHERE x.id BETWEEN {value.number} AND {value.number + 2}")
        return [f"CREATE FUNCTION {name}({argument}) RETURNS SETOF text LANGUAGE plpgsql AS $$"
                f" DECLARE {declare}{cursor} BEGIN {assign} {run} END $$",
                call] + [call] * (rng.random() < 0.2) + [f"DROP FUNCTION {name}"]

    def returning(self, value, way, query, p):
        """The declaration of a cursor, if any, and the statements that return the rows of
        query or of a similar one."""
        if way in ("for", "nested for"):
            return "", (f"FOR pr IN SELECT s.id, s.{value.column} AS pv FROM {value.table} s WHERE"
                        f" s.id >= {value.number} ORDER BY s.id LIMIT 3 LOOP RETURN QUERY SELECT q::text FROM"
                        f" ({self.body([(value, p)])}) q; END LOOP;")
        if way == "into table":
            return "", (f"DROP TABLE IF EXISTS vout; CREATE TEMP TABLE vout AS {query};"
                        " RETURN QUERY EXECUTE 'SELECT q FROM vout'; DROP TABLE vout;")
        if way == "using":
            dynamic = self.body([(value, "$1")]).replace("'", "''")
            return "", f"RETURN QUERY EXECUTE 'SELECT q::text FROM ({dynamic}) q' USING {p};"
        if way == "cursor":
            return (f" pc CURSOR (pp {value.type}) FOR {self.body([(value, 'pp')])};",
                    "FOR px IN pc(pv) LOOP RETURN NEXT px::text; END LOOP;")
        if way == "perform":
            return "", f"PERFORM {query[7:]}; RETURN NEXT 'done'; RETURN QUERY {query};"
        return "", f"RETURN QUERY {query};"

    def sql_function(self):
        """Arguments of SQL functions, which the planner may inline."""
        rng = self.rng
        value = self.value()
        name = "fz.v#RUN#"
        options = rng.choice(["STABLE", "STABLE", "STABLE", "STABLE SET search_path = pg_temp, fz, public",
                              "STABLE STRICT", "VOLATILE"])
        given = [(value, "pv")]
        if rng.random() < 0.2:
            given.append(self.initplan())
        rows = rng.random() < 0.85
        body = f"SELECT q::text FROM ({self.body(given, scalar=not rows)}) q"
        create = (f"CREATE FUNCTION {name}(pv {value.type}) RETURNS {'SETOF ' * rows}text LANGUAGE sql {options}"
                  f" AS $${body}$$")
        drop = f"DROP FUNCTION {name}"
        choice = rng.random()
        if choice < 0.3:
            # With a variable as the argument, it is inlined.
            return [create, f"CREATE FUNCTION fz.w#RUN#() RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE"
                            f" pw {value.type}; BEGIN pw := ({value.query}); RETURN QUERY SELECT * FROM {name}(pw);"
                            " END $$",
                    "SELECT * FROM fz.w#RUN#()", "DROP FUNCTION fz.w#RUN#", drop]
        call = f"SELECT * FROM {name}(({value.query}))"
        if choice > 0.75:
            call = rng.choice([
                f"SELECT {name}(({value.query}))",
                f"SELECT x.id AS x1, y AS x2 FROM {value.table} x, LATERAL {name}(x.{value.column}) y"
                f" WHERE x.id BETWEEN {value.number} AND {value.number + 2}",
                f"SELECT x.id AS x1, {name}(x.{value.column}) AS x2 FROM {value.table} x"
                f" WHERE x.id BETWEEN {value.number} AND {value.number + 2}"])
        return [create, call, drop]

    def prepared(self):
        """Arguments of EXECUTE, which cannot be subqueries: results of functions."""
        rng = self.rng
        values = [self.value() for _ in range(rng.choice([1, 1, 2]))]
        getters, types, arguments = [], [], []
        for n, value in enumerate(values):
            language = rng.choice([f"sql AS $$SELECT s.{value.column} FROM {value.table} s WHERE s.id = pn$$",
                                   f"plpgsql AS $$BEGIN RETURN (SELECT s.{value.column} FROM {value.table} s"
                                   " WHERE s.id = pn); END$$",
                                   f"plpgsql AS $$DECLARE pv {value.type}; BEGIN pv := (SELECT s.{value.column}"
                                   f" FROM {value.table} s WHERE s.id = pn); RETURN pv; END$$"])
            getters.append(f"CREATE FUNCTION fz.g{n}_#RUN#(pn int) RETURNS {value.type} LANGUAGE {language}")
            types.append(value.type)
            arguments.append(f"fz.g{n}_#RUN#({{}})")
        body = self.body([(value, f"${n}") for n, value in enumerate(values, 1)])
        result = getters + [f"PREPARE v#RUN# ({', '.join(types)}) AS {body}"]
        for _ in range(rng.choice([1, 2, 6])):
            result.append(f"EXECUTE v#RUN#({', '.join(arguments)})".format(
                *[max(1, v.number + rng.randrange(-1, 2)) for v in values]))
        return result + ["DEALLOCATE v#RUN#"] + [f"DROP FUNCTION fz.g{n}_#RUN#" for n in range(len(values))]

    def trigger(self):
        """NEW and OLD as parameters, in a trigger function that runs a query."""
        rng = self.rng
        value = self.value(rng.choice(self.sources))
        table, column = value.table, value.column
        row, event = rng.choice([("NEW", "UPDATE"), ("OLD", "UPDATE"), ("OLD", "DELETE"), ("NEW", "INSERT")])
        when = rng.choice(["BEFORE", "AFTER"])
        given = [(value, f"{row}.{column}")]
        body = f"SELECT q::text AS q FROM ({self.body(given)}) q"
        dml = {"UPDATE": f"UPDATE {table} SET k = k WHERE id = {value.number}",
               "DELETE": f"DELETE FROM {table} WHERE id = {value.number}",
               "INSERT": f"INSERT INTO {table} SELECT * FROM {table} WHERE id = {value.number}"}[event]
        if event == "UPDATE" and rng.random() < 0.4:
            dml = dml.replace("k = k", f"k = k, {column} = (SELECT s.{column} FROM {table} s"
                                       f" WHERE s.id = {value.number})")
        result = [
            "DROP TABLE IF EXISTS vout", "CREATE TEMP TABLE vout (q text)",
            "CREATE FUNCTION fz.v#RUN#() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE px text; BEGIN"
            f" CREATE TEMP TABLE vnew AS {body}; INSERT INTO vout SELECT q FROM vnew; DROP TABLE vnew;"
            f" RETURN {row if when == 'BEFORE' else 'NULL'}; END $$",
            f"CREATE TRIGGER vt {when} {event} ON {table} FOR EACH ROW EXECUTE FUNCTION fz.v#RUN#()",
            dml, "SELECT q FROM vout"]
        # All of it is rolled back, as the copy does not get it.
        return result if self.isolation else ["BEGIN"] + result + ["ROLLBACK"]

    def bound(self):
        """A parameter of the extended protocol, in an InitPlan that finds the value."""
        value = self.value()
        p = f"(SELECT s.{value.column} FROM {value.table} s WHERE s.id = $1::int)"
        sql = self.body([(value, p)])
        return [f"{sql} \\bind {value.number} \\g"]

    def query(self):
        rng = self.rng
        ways = ["subqueries", "plpgsql", "sql_function", "prepared", "trigger"]
        weights = [40, 28, 12, 12, 8]
        if self.version >= 16:
            ways.append("bound")
            weights.append(8)
        way = rng.choices(ways, weights)[0]
        made = getattr(self, way)()
        # With parallel query, the server itself raises an error where workers detoast a
        # temporary table's value while they read a permanent table.
        query = Query("", kind=f"value, {way}", off={"max_parallel_workers_per_gather": "0"})
        if isinstance(made, str):
            query.sql = made
        else:
            query.statements = made
        query.before = self.before
        if rng.random() < 0.6:
            # so that workers detoast it
            query.settings = {"parallel_leader_participation": "off"}
        return query
