"""A type with operator classes of its own, whose functions the query does not show.

Each of these functions may be parallel unsafe or restricted, and then does what fails in a worker or
in parallel mode. Nothing but the query's plan says that it is called.
"""

from .queries import Query

# By name: arguments, result, and the value that it returns.
TWO = "a fz.wrapped, b fz.wrapped"
BODIES = {
    "lt": (TWO, "bool", "a.v < b.v"), "le": (TWO, "bool", "a.v <= b.v"), "eq": (TWO, "bool", "a.v = b.v"),
    "ge": (TWO, "bool", "a.v >= b.v"), "gt": (TWO, "bool", "a.v > b.v"), "cmp": (TWO, "int", "sign(a.v - b.v)"),
    "hash": ("a fz.wrapped", "int", "hashint4(a.v)"),
    "hash64": ("a fz.wrapped, s bigint", "bigint", "hashint4extended(a.v, s)"),
    "in_range": (TWO + ", i int, sub bool, less bool", "bool", "CASE WHEN less THEN a.v <= b.v + CASE WHEN sub THEN -i ELSE i END"
                 " ELSE a.v >= b.v + CASE WHEN sub THEN -i ELSE i END END"),
    # with an int
    "eq_int": ("a fz.wrapped, b int", "bool", "a.v = b"), "eq_of_int": ("a int, b fz.wrapped", "bool", "a = b.v"),
    "cmp_int": ("a fz.wrapped, b int", "int", "sign(a.v - b)"), "cmp_of_int": ("a int, b fz.wrapped", "int", "sign(a - b.v)"),
    "cmp_ints": ("a int, b int", "int", "sign(a - b)"), "hash_int": ("a int", "int", "hashint4(a)"),
    # of an aggregate, of which the label counts
    "smaller": (TWO, "fz.wrapped", "CASE WHEN a.v < b.v THEN a ELSE b END"),
}
# Where nobody looks for such functions, which is documented.
UNSEEN = ("GREATEST", "(a.w, a.id)", "ARRAY[a.w]", "ROW(a.w", "count(DISTINCT", "array_agg")
FAILS = (("25000", "parallel operation"),)
# What one does that is not parallel safe: its labels, and a statement.
ACTIONS = [
    ("IMMUTABLE PARALLEL UNSAFE", "PERFORM set_config('fz.number', '1', false);"),
    ("STABLE PARALLEL UNSAFE", "PERFORM nextval('fz.numbers');"),
    ("VOLATILE PARALLEL UNSAFE", "INSERT INTO wc VALUES (1);"),
    # (workers for each call would take too long)
    ("IMMUTABLE PARALLEL RESTRICTED SET max_parallel_workers_per_gather = 0", "PERFORM FROM wc;"),
    ("VOLATILE PARALLEL RESTRICTED SET max_parallel_workers_per_gather = 0", "PERFORM count(*) FROM wc;"),
]
COSTS = ["100", "100", "1", "1e-9", "1e10"]


def function(name, labels="IMMUTABLE PARALLEL SAFE", action="", cost="100"):
    arguments, result, value = BODIES[name]
    return (f"CREATE OR REPLACE FUNCTION fz.w_{name}({arguments}) RETURNS {result} LANGUAGE plpgsql STRICT {labels} COST {cost}"
            f" AS $$ BEGIN {action} RETURN {value}; END $$")


def operator(name, of, left, right, more=""):
    return f"CREATE OPERATOR fz.{name} (FUNCTION = fz.w_{of}, LEFTARG = {left}, RIGHTARG = {right}{more})"


W, EQUAL = "fz.wrapped", ", HASHES, MERGES, RESTRICT = eqsel, JOIN = eqjoinsel, COMMUTATOR = OPERATOR(fz.=)"
FUNCTIONS = [
    "CREATE TYPE fz.wrapped AS (v int)", *map(function, BODIES),
    operator("<", "lt", W, W, ", RESTRICT = scalarltsel, JOIN = scalarltjoinsel"), operator("<=", "le", W, W),
    operator("=", "eq", W, W, EQUAL), operator(">=", "ge", W, W), operator(">", "gt", W, W),
    operator("=", "eq_int", W, "int", EQUAL), operator("=", "eq_of_int", "int", W, EQUAL),
    "CREATE OPERATOR CLASS fz.wrapped_btree DEFAULT FOR TYPE fz.wrapped USING btree AS OPERATOR 1 fz.<, OPERATOR 2 fz.<=,"
    " OPERATOR 3 fz.=, OPERATOR 4 fz.>=, OPERATOR 5 fz.>, FUNCTION 1 fz.w_cmp(fz.wrapped, fz.wrapped),"
    " FUNCTION 3 (fz.wrapped, int) fz.w_in_range(fz.wrapped, fz.wrapped, int, bool, bool)",
    "ALTER OPERATOR FAMILY fz.wrapped_btree USING btree ADD OPERATOR 3 fz.= (fz.wrapped, int), OPERATOR 3 fz.= (int, fz.wrapped),"
    " FUNCTION 1 (fz.wrapped, int) fz.w_cmp_int(fz.wrapped, int), FUNCTION 1 (int, fz.wrapped) fz.w_cmp_of_int(int, fz.wrapped),"
    " FUNCTION 1 (int, int) fz.w_cmp_ints(int, int), OPERATOR 1 pg_catalog.< (int, int), OPERATOR 3 pg_catalog.= (int, int)",
    "CREATE OPERATOR CLASS fz.wrapped_hash DEFAULT FOR TYPE fz.wrapped USING hash AS OPERATOR 1 fz.=,"
    " FUNCTION 1 fz.w_hash(fz.wrapped), FUNCTION 2 fz.w_hash64(fz.wrapped, bigint)",
    "ALTER OPERATOR FAMILY fz.wrapped_hash USING hash ADD OPERATOR 1 fz.= (fz.wrapped, int), OPERATOR 1 fz.= (int, fz.wrapped),"
    " FUNCTION 1 (int, int) fz.w_hash_int(int)",
    "CREATE OPERATOR CLASS fz.wrapped_brin FOR TYPE fz.wrapped USING brin AS OPERATOR 1 fz.<, OPERATOR 2 fz.<=,"
    " OPERATOR 3 fz.=, OPERATOR 4 fz.>=, OPERATOR 5 fz.>, FUNCTION 1 brin_minmax_opcinfo(internal),"
    " FUNCTION 2 brin_minmax_add_value(internal, internal, internal, internal),"
    " FUNCTION 3 brin_minmax_consistent(internal, internal, internal), FUNCTION 4 brin_minmax_union(internal, internal, internal)",
    "CREATE AGGREGATE fz.least_of(fz.wrapped) (SFUNC = fz.w_smaller, STYPE = fz.wrapped, COMBINEFUNC = fz.w_smaller,"
    " SORTOP = OPERATOR(fz.<), PARALLEL = SAFE)",
]
INDEXES = ["btree (w)", "btree (w, id)", "hash (w)", "brin (w fz.wrapped_brin) WITH (pages_per_range = 2)"]
PARTITIONS = {
    "RANGE": ["FROM (MINVALUE) TO ('(20)')", "FROM ('(20)') TO (MAXVALUE)"],
    "HASH": ["WITH (MODULUS 2, REMAINDER 0)", "WITH (MODULUS 2, REMAINDER 1)"],
}


class Operators:
    def __init__(self, rng, tables):
        self.rng = rng
        self.tables = tables

    def functions(self):
        """The statements that define all functions, some of which are not parallel safe."""
        rng = self.rng
        names = rng.sample(list(BODIES)[:-1], rng.choice([0, 1, 1, 2, 3]))
        if rng.random() < 0.4:
            names.append(rng.choice(["cmp", "hash", "hash64", "in_range"]))
        return [function(name, *(rng.choice(ACTIONS) if name in names else ()), cost=rng.choice(COSTS)) for name in BODIES]

    def table(self, name):
        """The statements that create a table, with rows and indexes."""
        rng = self.rng
        columns, workers = "(w fz.wrapped, id int, k int, part int)", rng.choice(["", "", " WITH (parallel_workers = 2)"])
        method = rng.choice([None, None, None, *PARTITIONS])
        result = [f"CREATE TEMP TABLE {name} {columns}" + (f" PARTITION BY {method} (w)" if method else workers)]
        if method:
            result += [f"CREATE TEMP TABLE {name}_{n} PARTITION OF {name} FOR VALUES {bounds}{workers}"
                       for n, bounds in enumerate(PARTITIONS[method])]
        result.append(f"INSERT INTO {name} SELECT ROW(g * 7919 % {rng.choice([10, 50, 200])})::fz.wrapped, g, g * 31 % 100, g % 4"
                      f" FROM generate_series(1, {rng.choice([60, 200, 500])}) g")
        result += [f"CREATE INDEX ON {name} USING {index}" for index in rng.sample(INDEXES, rng.choice([0, 1, 2]))]
        return result + [f"ANALYZE {name}"] * (rng.random() < 0.6)

    def condition(self, r):
        rng = self.rng
        value = f"ROW({rng.randrange(60)})::fz.wrapped"
        many = ", ".join(f"ROW({rng.randrange(60)})" for _ in range(rng.choice([3, 12])))
        return rng.choice([
            f"{r}.w = {value}", f"{r}.w {rng.choice(['<', '<=', '>', '>='])} {value}", f"{r}.w = {rng.randrange(60)}",
            f"{r}.w = ANY (ARRAY[{many}]::fz.wrapped[])", f"NOT {r}.w = ANY (ARRAY[{many}]::fz.wrapped[])",
            f"({r}.w, {r}.id) {rng.choice(['<', '>='])} ({value}, 50)", f"(GREATEST({r}.w, {value})).v > 20",
            f"{r}.w IN (SELECT s.w FROM wb s WHERE s.id < 50)", f"{r}.w NOT IN (SELECT s.w FROM wb s WHERE s.id < 20)",
            f"{r}.w = (SELECT fz.least_of(s.w) FROM wb s)", f"{r}.k NOT IN (SELECT (s.w).v FROM wb s WHERE s.w > {value} AND s.id < 20)",
            f"EXISTS (SELECT FROM wb s WHERE s.w = {r}.w AND s.id <> {r}.id)",
            f"NOT EXISTS (SELECT FROM wb s WHERE s.w = {r}.w AND s.k > 3)", "true", "true"])

    def parts(self):
        """By kind: a query, and whether its order counts."""
        rng = self.rng
        where = f"WHERE {self.condition('a')}"
        join, on = rng.choice(["JOIN", "LEFT JOIN", "FULL JOIN"]), rng.choice(["a.w = b.w", "a.w = b.w", "a.w = b.k", "b.id = a.w"])
        if rng.random() < 0.1:
            join, on = "JOIN", "ARRAY[a.w] = ARRAY[b.w]"
        part = rng.choice(["PARTITION BY a.part ", "PARTITION BY a.w ", ""])
        frame = rng.choice(["", " RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING", " GROUPS 1 PRECEDING"])
        op = rng.choice(["UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        return {
            "join": (f"SELECT count(*) AS x1, sum(a.id) AS x2, sum(b.id) AS x3 FROM wa a {join} wb b ON {on} {where}", False),
            "sort": (f"SELECT a.id AS x1, (a.w).v AS x2 FROM wa a {where} ORDER BY a.w{rng.choice(['', ' DESC', ' USING <'])}, a.id"
                     f"{rng.choice(['', ' LIMIT 5', ' LIMIT 200'])}", True),
            "group": (f"SELECT a.w AS x1, count(*) AS x2 FROM wa a {where} GROUP BY a.w", False),
            "distinct": (f"SELECT DISTINCT a.w AS x1{rng.choice(['', ', a.part AS x2', ', ROW(a.w, 1) AS x2'])} FROM wa a {where}", False),
            "aggregates": (f"SELECT (fz.least_of(a.w)).v AS x1, count(DISTINCT a.w) AS x2,"
                           f" array_agg(a.k ORDER BY a.w, a.id) AS x3 FROM wa a {where}", False),
            "least": (f"SELECT fz.least_of(a.w) AS x1 FROM wa a {where}", False),
            "window": (f"SELECT a.id AS x1, {rng.choice(['rank()', 'sum(a.k)', 'count(*)'])} OVER ({part}ORDER BY a.w{frame}) AS x2"
                       f" FROM wa a {where}", False),
            "set": (f"SELECT a.w AS x1 FROM wa a {where} {op} SELECT b.w FROM wb b WHERE {self.condition('b')}", False),
            "scan": (f"SELECT count(*) AS x1, sum(a.id) AS x2 FROM wa a {where} AND {self.condition('a')}", False),
        }

    def query(self):
        rng = self.rng
        before = ["DROP TABLE IF EXISTS wa, wb, wc", *map(function, BODIES), "CREATE TEMP TABLE wc (n int)", *self.table("wa"),
                  *self.table("wb")]
        before += self.functions()
        parts = self.parts()
        kind = rng.choice(list(parts))
        sql, ordered = parts[kind]
        if rng.random() < 0.2:
            sql, ordered = f"SELECT r.id AS x1, s.n AS x2 FROM {rng.choice(self.tables).name} r JOIN (SELECT count(*) AS n FROM" \
                           f" ({sql}) q) s ON r.id < s.n", False
        statements = None
        if rng.random() < 0.15:
            index = f"CREATE INDEX wi ON wa USING {rng.choice(INDEXES)}"
            statements = [index, sql, "DROP INDEX wi"]
            kind, ordered = "index build", False
        # (a volatile comparison cannot join that way)
        query = Query(sql, ordered=ordered, kind=f"operators, {kind}", before=before, statements=statements, calm=True,
                      may_fail="FULL JOIN" in sql,
                      off={"max_parallel_workers_per_gather": "0"})
        if any(text in sql for text in UNSEEN):
            query.tolerated = FAILS
        if rng.random() < 0.5:
            query.settings = {f"enable_{name}": rng.choice(["on", "off"]) for name in (
                "hashjoin", "mergejoin", "nestloop", "hashagg", "sort", "seqscan", "bitmapscan", "indexscan")}
        return query
