"""Random queries whose answer does not depend on the plan.

No volatile functions, no sums whose rounding depends on the order, LIMIT only with a
total order. Every column of an answer has a name (x1, x2, ...).
"""

import random
from dataclasses import dataclass, field

from .schema import NUMBERS, SORTABLE


@dataclass
class Query:
    sql: str
    ordered: bool = False       # the order of the rows is part of the answer
    may_fail: bool = False
    parameters: int = 0
    kind: str = ""              # name for counting, if it has one
    target: str = ""            # the same of the kind of table that it changes, if it does
    before: list = ()           # statements to run once, before all runs
    # Statements that run it, instead of those of a form. #RUN# in a name differs
    # between runs.
    statements: list = None
    undone: bool = False        # whatever statements have done, a rollback undoes it
    calm: bool = False          # it starts too many statements for caches that are always invalid
    settings: dict = field(default_factory=dict)    # in all modes
    off: dict = field(default_factory=dict)         # in the off mode
    # Errors that may come instead of an answer, except in the off mode: (SQLSTATE,
    # pattern of the message).
    tolerated: tuple = ()
    roomy: bool = False         # local buffers suffice in all modes if they do when off

    def names(self):
        """The names under which it is counted."""
        return [self.kind] * bool(self.kind) + [f"target, {self.target}"] * bool(self.target)


def depends_on_places(sql):
    """Does its answer depend on where rows are stored?"""
    return "TABLESAMPLE" in sql or "ctid" in sql


class Rel:
    """A table under an alias."""

    def __init__(self, alias, columns):
        self.alias = alias
        self.columns = columns

    def col(self, column):
        return f"{self.alias}.{column.name}"

    def of_type(self, types):
        return [c for c in self.columns if c.type in types and not c.wide]


# By type, a condition on column c, given a Generator and a comparison operator.
QUALS = {
    "int": lambda g, c, op: g.rng.choice([
        f"{c} {op} {g.constant(100)}",
        f"{c} % 10 = {g.constant(10)}",
        f"{c} IN (3, 17, 42, {g.rng.randrange(100)})"]),
    "bigint": lambda g, c, op: f"{c} {op} {g.constant(5000)}",
    "numeric(20,2)": lambda g, c, op: f"{c} {op} {g.rng.randrange(10000) / 100}",
    "text": lambda g, c, op: g.rng.choice([
        f"{c} {op} 't{g.rng.randrange(60)}'",
        f"{c} LIKE 't{g.rng.randrange(9)}%'",
        f"lower({c}) = 't{g.rng.randrange(60)}'"]),
    "varchar(20)": lambda g, c, op: f"{c} {op} 'v{g.rng.randrange(1000)}'",
    "bool": lambda g, c, op: g.rng.choice([c, f"NOT {c}", f"{c} IS NOT TRUE"]),
    "date": lambda g, c, op: f"{c} {op} DATE '2000-01-01' + {g.rng.randrange(1000)}",
    "float8": lambda g, c, op: f"{c} {op} {g.rng.randrange(1000) / 8}",
    "int[]": lambda g, c, op: g.rng.choice([
        f"{c} @> ARRAY[{g.rng.randrange(10)}]",
        f"{c} && ARRAY[{g.rng.randrange(10)}, 8]",
        f"{g.rng.randrange(10)} = ANY ({c})"]),
    "jsonb": lambda g, c, op: g.rng.choice([
        f"{c} @> '{{\"a\": {g.rng.randrange(20)}}}'",
        f"{c} ->> 'b' = 'v{g.rng.randrange(5)}'",
        f"{c} ? 'a'"]),
    "point": lambda g, c, op: g.rng.choice([
        f"{c} <@ box '(({g.rng.randrange(50)},{g.rng.randrange(20)}),(90,30))'",
        f"{c} ~= point({g.rng.randrange(100)}, {g.rng.randrange(37)})",
        f"{c} << point({g.rng.randrange(100)}, 5)"]),
    "int4range": lambda g, c, op: g.rng.choice([
        f"{c} && int4range({g.rng.randrange(50)}, 60)",
        f"{c} @> {g.rng.randrange(90)}",
        f"{c} << int4range({g.rng.randrange(90)}, 95)"]),
    "inet": lambda g, c, op: g.rng.choice([
        f"{c} << '10.{g.rng.randrange(4)}.0.0/16'",
        f"{c} {op} '10.1.{g.rng.randrange(200)}.1'"]),
    "tsvector": lambda g, c, op: f"{c} @@ 'w{g.rng.randrange(9)} & x{g.rng.randrange(31)}'",
    "timestamptz": lambda g, c, op: f"{c} {op} TIMESTAMPTZ '2020-01-05 UTC'",
}


class Generator:
    def __init__(self, rng, tables):
        self.rng = rng
        self.tables = tables
        self.parameters = False         # may conditions refer to $1?
        self.used_parameter = False
        self.serial = 0

    # ---------- tables ----------

    def alias(self):
        self.serial += 1
        return f"r{self.serial}"

    def source(self, temp=None):
        """A FROM item, and its Rel."""
        rng, alias = self.rng, self.alias()
        table = rng.choice(self.tables)
        if temp is None:
            temp = rng.random() < 0.85
        name = table.name if temp else table.control
        choice = rng.random()
        if choice < 0.06:
            other = rng.choice(self.tables)
            shared = [c for c in table.columns
                      if any(c.name == o.name and c.type == o.type and c.wide == o.wide
                             for o in other.columns)]
            names = ", ".join(c.name for c in shared)
            sql = (f"(SELECT {names} FROM {name} WHERE {self.bare_qual(shared)} UNION ALL SELECT"
                   f" {names} FROM {rng.choice([other.name, other.control])}"
                   f" WHERE {self.bare_qual(shared)}) {alias}")
            return sql, Rel(alias, shared)
        if choice < 0.10:
            method = rng.choice(["BERNOULLI", "SYSTEM"])
            sql = (f"{name} {alias} TABLESAMPLE {method} ({rng.choice([5, 30, 80])})"
                   f" REPEATABLE ({rng.randrange(99)})")
            return sql, Rel(alias, table.columns)
        if choice < 0.14:
            limit = rng.choice([10, 200])
            sql = f"(SELECT * FROM {name} ORDER BY id LIMIT {limit}) {alias}"
            return sql, Rel(alias, table.columns)
        if choice < 0.16 and table.kind in ("inherit", "permanent"):
            return f"ONLY {name} {alias}", Rel(alias, table.columns)
        if choice < 0.26 and temp and table.views:
            return f"{rng.choice(table.views)} {alias}", Rel(alias, table.columns[:3])
        if choice < 0.20 and temp and len(table.members) > 1:
            return f"{rng.choice(table.members)} {alias}", Rel(alias, table.columns)
        return f"{name} {alias}", Rel(alias, table.columns)

    # ---------- conditions ----------

    def bare_qual(self, columns):
        rel = Rel("", columns)
        rel.col = lambda column: column.name
        return self.qual(rel)

    def constant(self, limit):
        if self.parameters and self.rng.random() < 0.5:
            self.used_parameter = True
            return "$1"
        return str(self.rng.randrange(limit))

    def qual(self, rel):
        rng = self.rng
        quals = [self.simple_qual(rel) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        if not quals:
            return "true"
        result = rng.choice([" AND ", " AND ", " OR "]).join(quals)
        return f"({result})" if rng.random() < 0.9 else f"NOT coalesce(({result}), false)"

    def simple_qual(self, rel):
        rng = self.rng
        column = rng.choice(rel.columns)
        name = rel.col(column)
        if column.name in ("id", "part") and rng.random() < 0.08:
            # partitions are pruned at run time
            other = rng.choice(self.tables)
            return (f"{name} = (SELECT {rng.choice(['min', 'max'])}(p.{column.name}) FROM {other.name} p"
                    f" WHERE p.k < {rng.randrange(100)})")
        if column.name == "id":
            low = rng.randrange(1200)
            return rng.choice([
                f"{name} BETWEEN {low} AND {low + rng.choice([5, 100, 700])}",
                f"{name} % {rng.choice([2, 5, 50])} = {self.constant(5)}",
                f"{name} > {self.constant(800)}", f"{name} < {low}", f"{name} = {low}",
                f"{name} IN ({low}, {low // 2}, {low // 3}, {low // 5})",
            ])
        if rng.random() < 0.1:
            return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
        if column.wide:
            return rng.choice([f"length({name}) > {rng.choice([10, 200, 2500])}",
                               f"{name} < '{rng.choice('csx')}'",
                               f"md5({name}) < '{rng.choice('3579bdf')}'",
                               f"{name} LIKE '%{rng.randrange(99)}%'"])
        compare = rng.choice(["=", "=", "<", ">", "<=", ">=", "<>"])
        return QUALS[column.type](self, name, compare)

    # ---------- expressions ----------

    def expression(self, rel):
        """An expression of a printable and sortable type, without errors for any row."""
        rng = self.rng
        column = rng.choice(rel.columns)
        name = rel.col(column)
        if column.wide:
            return rng.choice([f"md5({name})", f"length({name})", f"substr({name}, 30, 8)",
                               f"left({name}, 5)"])
        if column.type in ("point", "tsvector"):
            return f"{name}::text"
        if column.type in NUMBERS and rng.random() < 0.2:
            return f"{name} + {rng.randrange(9)}"
        if rng.random() < 0.04:
            return f"md5({rel.alias}::text)"
        return name

    def aggregate(self, rel):
        rng = self.rng
        options = ["count(*)", f"count({self.expression(rel)})", f"min({rel.alias}.id)",
                   f"max({rel.alias}.id)"]
        numbers = rel.of_type(NUMBERS)
        for _ in range(3):
            name = rel.col(rng.choice(numbers))
            options += [f"sum({name})", f"sum({name})", f"count(DISTINCT {name})", f"max({name})"]
        wide = [c for c in rel.columns if c.wide]
        if wide:
            name = rel.col(rng.choice(wide))
            options += [f"sum(length({name}))", f"min(md5({name}))", f"max({name} || 'z')"] * 2
            options += [f"sum(hashtext({name}))"] * 3
        options += [f"bit_xor(hashtext(({self.expression(rel)})::text))",
                    f"bool_or({self.simple_qual(rel)})",
                    f"count(*) FILTER (WHERE {self.simple_qual(rel)})",
                    f"sum(hashtextextended({rel.alias}::text, 0)::numeric)"]
        return rng.choice(options)

    def named(self, expressions):
        return ", ".join(f"{e} AS x{n}" for n, e in enumerate(expressions, 1))

    # ---------- FROM clauses ----------

    def join(self, n=None):
        """The FROM and WHERE clauses of a join, and its Rels."""
        rng = self.rng
        sql, first = self.source(temp=True)
        rels = [first]
        where = [self.qual(first)]
        low = False
        for _ in range(n if n is not None else rng.choice([0, 0, 0, 1, 1, 1, 2, 3])):
            right_sql, right = self.source()
            left = rng.choice(rels)
            choice = rng.random()
            if choice < 0.6 or low:
                condition = f"{left.alias}.id = {right.alias}.id"
                if rng.random() < 0.15:
                    condition = f"{left.alias}.id + {rng.randrange(50)} = {right.alias}.id"
            else:
                low = True
                pairs = [(a, b) for a in left.of_type(SORTABLE) for b in right.of_type(SORTABLE)
                         if a.type == b.type and a.type != "bool" and a.name != "part"]
                a, b = rng.choice(pairs)
                condition = (f"{left.col(a)} = {right.col(b)}")
                where.append(f"{left.alias}.id % 20 = {rng.randrange(20)}")
            kind = rng.choices(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"], [55, 25, 10, 10])[0]
            if kind in ("JOIN", "LEFT JOIN") and rng.random() < 0.25:
                condition += f" AND {self.simple_qual(right)}"
            if rng.random() < 0.5 and kind == "JOIN":
                where.append(self.qual(right))
            sql += f" {kind} {right_sql} ON {condition}"
            rels.append(right)
        if rng.random() < 0.3:
            where.append(self.sublink(rng.choice(rels)))
        return f"FROM {sql} WHERE {' AND '.join(where)}", rels

    def sublink(self, rel):
        """A condition with a subquery."""
        rng = self.rng
        sql, inner = self.source(temp=rng.random() < 0.9)
        keys = rng.choice([(f"{rel.alias}.id", f"{inner.alias}.id"),
                           (f"{rel.alias}.k", f"{inner.alias}.k")])
        other = self.qual(inner)
        correlated = f"{keys[0]} = {keys[1]}"
        return rng.choice([
            f"EXISTS (SELECT 1 FROM {sql} WHERE {correlated} AND {other})",
            f"NOT EXISTS (SELECT 1 FROM {sql} WHERE {correlated} AND {other})",
            f"{keys[0]} IN (SELECT {keys[1]} FROM {sql} WHERE {other})",
            f"{keys[0]} NOT IN (SELECT {keys[1]} FROM {sql} WHERE {other} AND {keys[1]} % 20 = 3)",
            f"{rel.alias}.k > (SELECT avg({inner.alias}.k) FROM {sql} WHERE {other})",
            f"{rel.alias}.id % 90 < 2 AND {rel.alias}.k >= ALL (SELECT {inner.alias}.k FROM {sql} WHERE {inner.alias}.id < 40)",
            f"{rel.alias}.id % 30 = 2 AND {rel.alias}.id < (SELECT max({inner.alias}.id) FROM {sql} WHERE"
            f" {inner.alias}.id < {rel.alias}.id + 5 AND {inner.alias}.id > {rel.alias}.id - 5)",
            f"{rel.alias}.id % 30 < 2 AND ({rel.alias}.id < 1500 OR EXISTS (SELECT 1 FROM {sql} WHERE {correlated}"
            f" AND {inner.alias}.id < 300))",
        ])

    # ---------- kinds of queries ----------

    def rows(self):
        body, rels = self.join()
        items = [self.expression(self.rng.choice(rels)) for _ in range(self.rng.randint(1, 4))]
        return Query(f"SELECT {self.named(items)} {body}")

    def aggregates(self):
        body, rels = self.join()
        items = [self.aggregate(self.rng.choice(rels)) for _ in range(self.rng.randint(1, 4))]
        return Query(f"SELECT {self.named(items)} {body}")

    def grouped(self):
        rng = self.rng
        body, rels = self.join()
        rel = rng.choice(rels)
        usable = rel.of_type(SORTABLE)
        keys = [rel.col(c) for c in rng.sample(usable, min(len(usable), rng.choice([1, 1, 2, 3])))]
        items = keys + [self.aggregate(rng.choice(rels)) for _ in range(rng.randint(1, 3))]
        group = ", ".join(keys)
        choice = rng.random()
        if choice < 0.15:
            group = f"ROLLUP ({group})"
        elif choice < 0.25:
            group = f"CUBE ({group})"
        elif choice < 0.35:
            group = f"GROUPING SETS (({group}), ({keys[0]}), ())"
        having = f" HAVING count(*) > {rng.choice([1, 3, 20])}" if rng.random() < 0.3 else ""
        return Query(f"SELECT {self.named(items)} {body} GROUP BY {group}{having}")

    def distinct(self):
        rng = self.rng
        body, rels = self.join(rng.choice([0, 1]))
        rel = rels[0]
        if rng.random() < 0.5:
            items = [self.expression(rel) for _ in range(rng.randint(1, 2))]
            return Query(f"SELECT DISTINCT {self.named(items)} {body}")
        body, rel, ids = self.unique_body()
        key = rel.col(rng.choice(rel.of_type(SORTABLE)))
        return Query(f"SELECT DISTINCT ON ({key}) {key} AS x1, {ids[0]} AS x2 {body}"
                     f" ORDER BY {key}, {', '.join(ids)}", ordered=True)

    def unique_body(self):
        """FROM and WHERE clauses whose rows differ in their ids."""
        rng = self.rng
        while True:
            body, rels = self.join(rng.choice([0, 0, 1, 2]))
            if "UNION ALL" not in body:
                return body, rels[0], [f"{r.alias}.id" for r in rels]

    def top(self):
        rng = self.rng
        body, rel, ids = self.unique_body()
        keys = [rel.col(rng.choice(rel.of_type(SORTABLE))) + rng.choice(["", " DESC", " NULLS FIRST"])
                for _ in range(rng.choice([0, 1, 1, 2]))]
        points = [c for c in rel.columns if c.type == "point"]
        if points and rng.random() < 0.5:
            keys = [f"{rel.col(rng.choice(points))} <-> point({rng.randrange(100)}, 9)"]
        ids = [i + (" DESC" if not keys and rng.random() < 0.3 else "") for i in ids]
        items = [self.expression(rel) for _ in range(2)] + [ids[0].split()[0]]
        limit = rng.choice(["", f" LIMIT {rng.choice([1, 10, 500])}",
                            f" LIMIT {rng.choice([1, 10])} OFFSET {rng.choice([0, 5, 1000])}"])
        return Query(f"SELECT {self.named(items)} {body} ORDER BY {', '.join(keys + ids)}{limit}",
                     ordered=True)

    def window(self):
        rng = self.rng
        body, rel, ids = self.unique_body()
        part = rel.col(rng.choice(rel.of_type(SORTABLE)))
        over = f"OVER (PARTITION BY {part} ORDER BY {', '.join(ids)}"
        frame = rng.choice(["", " ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING",
                            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"])
        function = rng.choice(["row_number()", "rank()", f"sum({rel.alias}.k)",
                               f"lag({self.expression(rel)})", f"count({self.expression(rel)})",
                               f"last_value({rel.alias}.id)"])
        return Query(f"SELECT {ids[0]} AS x1, {function} {over}{frame}) AS x2 {body}")

    def set_operation(self):
        rng = self.rng
        op = rng.choice(["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        parts = []
        for _ in range(rng.choice([2, 2, 3])):
            body, rels = self.join(rng.choice([0, 0, 1]))
            rel = rng.choice(rels)
            parts.append(f"SELECT {rel.alias}.k AS x1, {rel.alias}.id % {rng.choice([7, 100])} AS x2 {body}")
        sql = f" {op} ".join(parts)
        if rng.random() < 0.5:
            sql = f"SELECT count(*) AS x1, sum(s.x1) AS x2, sum(s.x2) AS x3 FROM ({sql}) s"
        return Query(sql)

    def cte(self):
        rng = self.rng
        body, rels = self.join(rng.choice([0, 1]))
        rel = rels[0]
        how = rng.choice(["", "MATERIALIZED ", "NOT MATERIALIZED "])
        sql, other = self.source(temp=True)
        choice = rng.random()
        define = f"WITH w AS {how}(SELECT {rel.alias}.id, {rel.alias}.k, {self.expression(rel)} AS e {body})"
        if choice < 0.4:
            return Query(f"{define} SELECT count(*) AS x1, sum(w.k) AS x2 FROM w JOIN {sql}"
                         f" ON w.id = {other.alias}.id WHERE {self.qual(other)}")
        if choice < 0.8:
            return Query(f"{define} SELECT a.id AS x1, b.k AS x2, a.e AS x3 FROM w a JOIN w b ON a.id = b.id"
                         f" WHERE a.k < (SELECT max(k) FROM w)")
        return Query(f"WITH RECURSIVE w(id, n) AS (SELECT min({other.alias}.id), 1 FROM {sql}"
                     f" UNION ALL SELECT (SELECT min({rel.alias}.id) FROM"
                     f" {rng.choice(self.tables).name} {rel.alias} WHERE {rel.alias}.id > w.id), n + 1"
                     f" FROM w WHERE n < 6) SELECT id AS x1, n AS x2 FROM w")

    def lateral(self):
        rng = self.rng
        sql, outer = self.source(temp=True)
        inner_sql, inner = self.source(temp=True)
        if "UNION ALL" in inner_sql:
            inner_sql, inner = self.tables[0].name + " lat", Rel("lat", self.tables[0].columns)
        sub = rng.choice([
            f"SELECT count(*) AS n, max({inner.alias}.k) AS m FROM {inner_sql} WHERE"
            f" {inner.alias}.id BETWEEN {outer.alias}.id AND {outer.alias}.id + 20",
            f"SELECT {inner.alias}.id AS n, {self.expression(inner)} AS m FROM {inner_sql} WHERE"
            f" {inner.alias}.k = {outer.alias}.k ORDER BY {inner.alias}.id LIMIT 2",
        ])
        return Query(f"SELECT {outer.alias}.id AS x1, l.n AS x2, l.m AS x3 FROM {sql},"
                     f" LATERAL ({sub}) l WHERE {outer.alias}.id % 60 = {rng.randrange(60)}"
                     f" AND {self.qual(outer)}")

    def values_lateral(self):
        """Workers are launched again for every outer row."""
        body, rels = self.join(self.rng.choice([0, 1]))
        items = [self.aggregate(rels[0]), self.aggregate(rels[0])]
        return Query("SELECT v.x AS x1, s.x1 AS x2, s.x2 AS x3 FROM (VALUES (1), (2), (3)) v(x),"
                     f" LATERAL (SELECT {self.named(items)} {body} HAVING count(*) > v.x) s")

    def scalar(self):
        """Subqueries in the target list."""
        rng = self.rng
        body, rels = self.join(rng.choice([0, 1]))
        rel = rels[0]
        sql, inner = self.source(temp=True)
        sub = rng.choice([
            f"(SELECT count(*) FROM {sql} WHERE {inner.alias}.id = {rel.alias}.id)",
            f"(SELECT {self.aggregate(inner)} FROM {sql} WHERE {self.qual(inner)})",
            f"({rel.alias}.id IN (SELECT {inner.alias}.id FROM {sql} WHERE {self.qual(inner)}))",
        ])
        return Query(f"SELECT {rel.alias}.id AS x1, {sub} AS x2 {body} AND {rel.alias}.id % 30 < 2")

    def nested(self):
        """An aggregate over a subquery with its own grouping or limit."""
        rng = self.rng
        body, rels = self.join(rng.choice([0, 1]))
        rel = rels[0]
        sql, other = self.source()
        return Query(f"SELECT count(*) AS x1, sum(s.n) AS x2, max(s.m) AS x3 FROM (SELECT {rel.alias}.k"
                     f" AS k, count(*) AS n, max({rel.alias}.id) AS m {body} GROUP BY 1) s"
                     f" {rng.choice(['JOIN', 'LEFT JOIN'])} {sql} ON s.k = {other.alias}.k")

    def functions(self):
        """Functions that run their own queries in the leader."""
        rng = self.rng
        sql, rel = self.source(temp=True)
        table = rng.choice(self.tables)
        call = f"fz.counted('{table.name}', {rel.alias}.part)"
        return Query(rng.choice([
            f"SELECT {rel.alias}.part AS x1, {call} AS x2, count(*) AS x3 FROM {sql}"
            f" WHERE {rel.alias}.id % 50 = 1 GROUP BY 1, 2",
            f"SELECT s.p AS x1, fz.counted('{table.name}', s.p) AS x2, s.n AS x3 FROM (SELECT"
            f" {rel.alias}.part AS p, count(*) AS n FROM {sql} WHERE {self.qual(rel)} GROUP BY 1) s",
            f"SELECT {rel.alias}.id AS x1, {call} AS x2 FROM {sql} WHERE {self.qual(rel)}"
            f" AND {rel.alias}.id % 100 < 2",
        ]))

    def tids(self):
        rng = self.rng
        table = rng.choice(self.tables)
        name = rng.choice(table.members)
        block = rng.randrange(60)
        where = rng.choice([f"ctid >= '({block},0)' AND ctid < '({block + 40},5)'",
                            f"ctid = ANY (ARRAY['({block},1)', '({block},2)', '(0,1)']::tid[])",
                            f"ctid > '({block},3)'"])
        return Query(f"SELECT count(*) AS x1, sum(id) AS x2 FROM {name} WHERE {where}")

    def failing(self):
        """A plain scan that raises an error if a certain row exists."""
        rng = self.rng
        table = rng.choice(self.tables)
        return Query(f"SELECT count(*) AS x1 FROM {table.name} WHERE "
                     f"1000 / (id - {rng.randrange(800)}) > {rng.randrange(3)}", may_fail=True)

    def toasted(self):
        rng = self.rng
        wide = [(t, c) for t in self.tables for c in t.columns if c.wide]
        if not wide:
            return self.aggregates()
        table, column = rng.choice(wide)
        name = column.name
        return Query(rng.choice([
            f"SELECT id AS x1, md5({name}) AS x2 FROM {table.name}",
            f"SELECT count(*) AS x1, sum(hashtext({name})) AS x2 FROM {table.name} WHERE id % 3 = 0",
            f"SELECT a.id AS x1, a.{name} = b.{name} AS x2 FROM {table.name} a JOIN"
            f" {table.control} b USING (id)",
            f"SELECT {name} AS x1, count(*) AS x2 FROM {table.name} WHERE id % 10 < 3 GROUP BY 1",
            f"SELECT id AS x1, {name} AS x2 FROM {table.name} WHERE id % 10 = 1 ORDER BY {name}, id",
            f"SELECT max({name}) AS x1, min({name}) AS x2 FROM {table.name}",
            f"SELECT a.id AS x1, substr(a.{name}, 900, 20) AS x2 FROM {table.name} a"
            f" WHERE a.{name} > (SELECT min({name}) FROM {table.name})",
        ]))

    def index_only(self):
        """Columns of an index: the visibility map decides whether rows are visible."""
        rng = self.rng
        indexes = [(t, i) for t in self.tables for i in t.indexes if i.method == "btree"]
        if not indexes:
            return self.aggregates()
        table, index = rng.choice(indexes)
        rel = Rel("a", [c for c in table.columns if c.name in index.columns])
        name = rel.col(rng.choice(rel.columns))
        return Query(f"SELECT count(*) AS x1, count(DISTINCT {name}) AS x2,"
                     f" bit_xor(hashtext({name}::text)) AS x3 FROM {table.name} a WHERE"
                     f" {rng.choice([self.simple_qual(rel), f'{name} IS NOT NULL', 'true'])}")

    def setting(self):
        """The value of temp_buffers in a worker, which must be the session's."""
        rng = self.rng
        body, rels = self.join(rng.choice([0, 0, 1]))
        rel = rels[0]
        function = f"fz.{rng.choice(['pool', 'pool_sql'])}({rel.alias}.id)"
        return Query(rng.choice([
            f"SELECT current_setting('temp_buffers') AS x1, count(*) AS x2 {body} GROUP BY 1",
            f"SELECT count(*) AS x1, sum({rel.alias}.k) AS x2 {body} AND"
            f" pg_size_bytes(current_setting('temp_buffers')) > {rng.choice([10 ** 5, 10 ** 6, 10 ** 7])}",
            f"SELECT {rel.alias}.id AS x1, current_setting('temp_buffers') AS x2 {body}",
            f"SELECT min({function}) AS x1, max({function}) AS x2 {body} AND {rel.alias}.id % 20 = 3",
            f"SELECT {function} AS x1, count(*) AS x2 {body} AND {rel.alias}.id % 20 = 3 GROUP BY 1"]),
            kind="setting")

    def bounds(self):
        """Workers are launched again with another LIMIT or OFFSET above their sort.

        The server itself gives wrong answers there over permanent tables."""
        rng = self.rng
        tables = [t.name for t in self.tables if t.kind != "permanent"]
        if not tables:
            return self.top()
        table, outer = rng.choice(tables), rng.choice(tables)
        table = next(t for t in self.tables if t.name == table)
        rel = Rel("t", table.columns)
        key = rng.choice(["", "", rel.col(rng.choice(rel.of_type(SORTABLE))) + rng.choice([", ", " DESC, "])])
        order = f"{table.name} t WHERE {rng.choice(['true', 't.k IS NOT NULL', f't.k < {rng.randrange(20, 99)}'])}" \
                f" ORDER BY {key}t.id"
        changing = f"(o.id {rng.choice(['', '* 3 ', '+ 5 '])}% {rng.choice([3, 8, 40])})"
        if rng.random() < 0.5:
            sub = rng.choice([
                f"(SELECT t.id FROM {order} LIMIT 1 OFFSET {changing})",
                f"(SELECT sum(s.id * s.n) FROM (SELECT t.id, row_number() OVER () AS n FROM"
                f" (SELECT t.id FROM {order} LIMIT {changing}) t) s)"])
            sql = f"SELECT o.id AS x1, {sub} AS x2 FROM {outer} o WHERE o.id % 60 < 2 ORDER BY 1"
        else:
            numbers = ", ".join(f"({rng.randrange(12)}, {n})" for n in range(rng.choice([3, 6])))
            sql = (f"SELECT o.n AS x1, q.id AS x2 FROM (VALUES {numbers}) o(id, n), LATERAL"
                   f" (SELECT t.id FROM {order} LIMIT {rng.choice(['2', 'o.id', '20'])} OFFSET {changing}) q"
                   " ORDER BY 1, 2")
        query = Query(sql, ordered=True, kind="bounds")
        if rng.random() < 0.7:
            query.settings = {"enable_gathermerge": "on", "enable_incremental_sort": "off", "enable_sort": "on",
                              "parallel_leader_participation": "off", "max_parallel_workers_per_gather": "3"}
        return query

    def partitions(self, many):
        """A scan of hundreds of partitions, all of them open at the same time."""
        rng = self.rng
        sql, other = self.source(temp=True)
        a, m = other.alias, many.name
        if rng.random() < 0.6:
            # a table with an index on id
            sql, a = self.tables[0].name + " a", "a"
        low = rng.randrange(300)
        query = Query(rng.choice([
            f"SELECT count(*) AS x1, sum({a}.k) AS x2 FROM {sql} JOIN {m} b ON {a}.id = b.id",
            f"SELECT {a}.id AS x1, b.c0 AS x2 FROM {sql} JOIN {m} b ON {a}.id = b.id WHERE b.k > 5",
            f"SELECT count(*) AS x1, sum(a.k) AS x2 FROM {m} a JOIN {m} b ON a.id = b.id WHERE b.k <> 7",
            f"SELECT b.id AS x1, b.k AS x2 FROM {m} b ORDER BY b.id LIMIT {rng.choice([5, 300])} OFFSET {low}",
            f"SELECT b.id AS x1, row_number() OVER (ORDER BY b.id) AS x2 FROM {m} b WHERE b.id > {low}",
            f"SELECT b.id AS x1, count(*) AS x2 FROM {m} b WHERE b.k < 80 GROUP BY b.id",
            f"SELECT b.k AS x1, count(*) AS x2, max(b.c0) AS x3 FROM {m} b GROUP BY b.k",
            f"SELECT min(b.id) AS x1, max(b.id) AS x2, count(*) AS x3 FROM {m} b WHERE b.id <> {low}",
        ]), kind="many partitions", roomy=True)
        query.ordered = " ORDER BY b.id LIMIT" in query.sql
        if rng.random() < 0.7:
            query.settings = {name: "off" for name in ("enable_hashjoin", "enable_nestloop", "enable_sort",
                                                       "enable_incremental_sort", "enable_hashagg")}
            query.settings.update(enable_mergejoin="on", enable_indexscan="on", enable_indexonlyscan="on")
        # Scans that are left in the middle: each outer row is found in another partition. Not
        # drawn from rng, so that a seed draws the same episode as before.
        if random.Random(query.sql).random() < 0.3:
            query.ordered = False
            query.sql = (f"SELECT count(*) AS x1 FROM {sql} WHERE {a}.id + 0 = {a}.id AND"
                         f" EXISTS (SELECT 1 FROM {m} b WHERE b.id = {a}.id)")
            query.settings = {name: "off" for name in (
                "enable_hashjoin", "enable_mergejoin", "enable_memoize", "enable_material", "enable_seqscan",
                "enable_bitmapscan", "enable_sort", "enable_hashagg", "enable_partition_pruning")}
            query.settings.update(enable_nestloop="on", enable_indexscan="on", enable_indexonlyscan="on")
        return query

    def varying(self):
        """Values and samples of which each process must not have its own.

        One row has one value, and all rows of a part are found, or none of them."""
        rng = self.rng
        big, table = rng.choice(self.tables), rng.choice(self.tables)
        small = table.name if rng.random() < 0.6 else table.control
        value = rng.choice(["gen_random_uuid()", "gen_random_uuid()", "clock_timestamp()"])
        sample = f"{small} s TABLESAMPLE {rng.choice(['BERNOULLI', 'SYSTEM'])} ({rng.choice([1, 10, 50])})"
        rows = rng.choice([
            f"SELECT s.id, s.part, {value} AS u FROM {small} s WHERE s.id % 20 = {rng.randrange(20)}",
            f"SELECT 7 AS id, 1 AS part, {value} AS u"])
        texts = [
            f"SELECT count(*) AS x1, sum(x.n) AS x2 FROM (SELECT s.id, count(DISTINCT s.u) AS n FROM {big.name} a"
            f" JOIN ({rows}) s ON a.part = s.part GROUP BY s.id) x",
            "SELECT coalesce(max(y.c), 1) AS x1 FROM (SELECT count(DISTINCT x.n) AS c FROM (SELECT s.id, s.part, count(*)"
            f" AS n FROM {big.name} a JOIN {sample} ON a.part = s.part GROUP BY s.id, s.part) x GROUP BY x.part) y"]
        # It hashes a subquery for each partition.
        if big.kind == "plain":
            texts.append(
                f"SELECT count(*) AS x1 FROM (SELECT a.part FROM {big.name} a WHERE a.part NOT IN (SELECT s.part FROM"
                f" {sample}) GROUP BY 1 HAVING count(*) <> (SELECT count(*) FROM {big.name} b WHERE b.part = a.part)) x")
        # The server runs the inner side of a nested loop again for each outer row, and a subquery
        # that it does not hash.
        return Query(rng.choice(texts), kind="varying", settings={"enable_nestloop": "off", "enable_mergejoin": "off",
                                                    "enable_hashjoin": "on", "work_mem": "64MB"})

    def defaults(self):
        """A default argument, or a domain that is only named, that must not be evaluated in parallel mode.

        The server does so over permanent tables."""
        rng = self.rng
        tables = [t for t in self.tables if t.kind != "permanent"]
        if not tables:
            return self.aggregates()
        table = rng.choice(tables)
        rows = f"FROM {table.name} r WHERE {self.qual(Rel('r', table.columns))}"
        own = random.Random(rows)
        if own.random() < 0.3:
            name = own.choice(["fz.number", "number", "Number"])
            return Query(f"SELECT count(*) AS x1 {rows} AND pg_input_is_valid(r.id::text, '{name}')", kind="named domain",
                         off={"max_parallel_workers_per_gather": "0"})
        return Query(rng.choice([
            f"SELECT count(*) AS x1, sum(fz.numbered(r.id)) AS x2 {rows}",
            f"SELECT r.id AS x1 {rows} AND fz.numbered(r.id) % 7 = {rng.randrange(7)}",
            f"SELECT fz.numbered(r.id) AS x1, count(*) AS x2 {rows} GROUP BY 1"]),
            kind="default arguments", off={"max_parallel_workers_per_gather": "0"})

    def client_encoding(self):
        """Text that aggregates pass on, for a client with another encoding than the database's.

        What the server does so over permanent tables is wrong."""
        rng = self.rng
        tables = [t for t in self.tables if t.kind != "permanent"]
        if not tables:
            return self.aggregates()
        table = rng.choice(tables)
        if rng.random() < 0.2:
            # some of them cannot be sent to another process and read there
            element = rng.choice(["plainto_tsquery('english', CASE r.id % 9 WHEN 0 THEN '' ELSE 'cat' END)",
                                  "circle(point(r.id, r.part), r.part - 1)", "makeaclitem(10, 10, 'SELECT', r.id % 2 = 0)", "r"])
            return Query(f"SELECT a.part AS x1, cardinality(a.l) AS x2 FROM (SELECT r.part, array_agg({element}) AS l"
                         f" FROM {table.name} r GROUP BY r.part) a", kind="elements of arrays",
                         # with partitionwise aggregation, the server itself makes arrays in parts, in one process
                         settings={"cpu_operator_cost": "0.5", "enable_partitionwise_aggregate": "off"})
        arrays = (f"SELECT r.part, array_agg(chr(233) || r.id) AS l FROM {table.name} r"
                  f" WHERE {self.qual(Rel('r', table.columns))} GROUP BY r.part")
        return Query(rng.choice([
            f"SELECT a.part AS x1, count(*) AS x2, sum(length(u.e)) AS x3 FROM ({arrays}) a, unnest(a.l) u (e) GROUP BY 1",
            f"SELECT count(*) AS x1, sum(octet_length(a.l::text)) AS x2 FROM ({arrays}) a",
            f"SELECT r.part AS x1, count(*) AS x2 FROM {table.name} r WHERE textsend(chr(233) || left(r.part::text, 0)) = '\\xe9'"
            " GROUP BY 1"]), kind="client's encoding", settings={"client_encoding": "latin1", "cpu_operator_cost": "0.5"})

    def several(self):
        """Several Gathers: in what set operations, joins, CTEs and InitPlans read."""
        rng = self.rng

        def part():
            body, rels = self.join(rng.choice([0, 1, 1]))
            a, b = rng.choice(rels).alias, rng.choice(rels).alias
            return f"SELECT {a}.part AS p, count(*) AS n, sum({b}.k) AS s {body} GROUP BY 1"

        def value():
            return f"(SELECT {rng.choice(['count(*)', 'max(v.n)', 'min(v.p)', 'sum(v.s)'])} FROM ({part()}) v)"
        name, low = rng.choice(self.tables).name, rng.choice([0, 5, 500])
        joined = f"a {rng.choice(['JOIN', 'LEFT JOIN', 'FULL JOIN'])} b USING (p) LEFT JOIN c USING (p)"
        columns = "p AS x1, a.n AS x2, b.s AS x3, c.n AS x4"
        cte = ", ".join(f"{n} AS {rng.choice(['', 'MATERIALIZED ', 'NOT MATERIALIZED '])}({part()})" for n in "abc")
        op = rng.choice(["UNION ALL", "UNION ALL", "UNION", "EXCEPT ALL", "INTERSECT"])
        sets = f" {op} ".join(part() for _ in range(rng.choice([2, 3, 5])))
        return Query(rng.choice([
            sets.replace("AS p", "AS x1").replace("AS n", "AS x2").replace("AS s", "AS x3"),
            f"SELECT u.p AS x1, sum(u.n) AS x2, count(*) AS x3 FROM ({sets}) u WHERE u.n > {value()} - {low} GROUP BY 1",
            f"SELECT {columns} FROM ({part()}) a FULL JOIN ({part()}) b USING (p) LEFT JOIN ({part()}) c USING (p)",
            f"WITH {cte} SELECT {columns} FROM {joined}",
            f"WITH {cte} SELECT {columns} FROM {joined} WHERE a.n > (SELECT min(n) FROM c) - {low} AND p <> {value()}",
            f"SELECT r.part AS x1, count(*) AS x2, {value()} AS x3, {value()} AS x4 FROM {name} r"
            f" WHERE r.id > {value()} - {low} AND r.k < {value()} GROUP BY 1",
            f"SELECT {value()} AS x1, {value()} AS x2, {value()} AS x3",
        ]), kind="several Gathers", calm=True)

    def many_joins(self):
        """Six to twelve tables."""
        rng = self.rng
        body, rels = self.join(rng.choice([5, 6, 7, 8, 11]))
        items = [self.aggregate(rng.choice(rels)) for _ in range(3)]
        sql = f"SELECT {self.named(items)} {body}" if rng.random() < 0.5 else \
            f"SELECT {self.named([rels[-1].alias + '.part'] + items)} {body} GROUP BY 1"
        query = Query(sql, kind="many joins", calm=True)
        if len(rels) < 11 and rng.random() < 0.7:
            # planning takes long
            query.settings = {"join_collapse_limit": "12", "geqo_threshold": "12"}
        return query

    def folded(self):
        """Functions that the planner evaluates, and that run SQL themselves."""
        rng = self.rng
        body, rels = self.join(rng.choice([0, 1, 2]))
        rel = rels[0]

        def call():
            name = rng.choice(self.tables).name
            text = rng.choice([f"SELECT count(*) FROM {name}", f"SELECT sum(id) FROM {name} WHERE k < {rng.randrange(90)}",
                               f"SELECT fz.touched('{name}')", f"SELECT fz.touched('{name}')", self.failing().sql,
                               f"SELECT count(*) FROM {name} WHERE k > 1 / 0",
                               f"SELECT sum(hashtext(q::text)) FROM ({self.aggregates().sql}) q"])
            return "fz.folded('" + text.replace("'", "''") + "')"
        sql = rng.choice([
            f"SELECT count(*) AS x1, sum({rel.alias}.k) AS x2, {call()} AS x3 {body} AND {rel.alias}.id > {call()} % 300",
            f"SELECT {rel.alias}.id AS x1, {call()} AS x2 {body} AND {rel.alias}.id % 10 = {call()} % 10",
            f"SELECT {rel.alias}.part AS x1, count(*) AS x2 {body} AND {call()} >= 0 GROUP BY 1"
            f" HAVING count(*) <> {call()}",
            f"SELECT count(*) AS x1, (SELECT {self.aggregate(rel)} {body} AND {call()} >= {rel.alias}.id - 9) AS x2"
            f" FROM {rng.choice(self.tables).name} o WHERE o.id < {call()} % 500"])
        if "fz.touched" in sql and depends_on_places(sql):
            return self.folded()
        return Query(sql, kind="folded", calm=True)

    KINDS = [("setting", 3), ("bounds", 2.5), ("rows", 14), ("aggregates", 16), ("grouped", 12), ("distinct", 5), ("top", 10),
             ("window", 4), ("set_operation", 6), ("cte", 4), ("lateral", 3), ("values_lateral", 3),
             ("scalar", 4), ("nested", 4), ("functions", 3), ("tids", 2), ("failing", 2),
             ("toasted", 8), ("index_only", 8)]

    def query(self, parameters=False):
        self.serial = 0
        self.parameters, self.used_parameter = parameters, False
        kind = self.rng.choices([k for k, _ in self.KINDS], [w for _, w in self.KINDS])[0]
        query = getattr(self, kind)()
        query.parameters = int(self.used_parameter)
        self.parameters = False
        # Not drawn from rng, so that a seed draws the same episode as before.
        aside = random.Random(query.sql)
        if not parameters and aside.random() < 0.06:
            rng, self.rng = self.rng, aside
            query = aside.choice([self.varying, self.varying, self.defaults, self.client_encoding])()
            self.rng = rng
        elif not parameters and aside.random() < 0.06:
            rng, self.rng = self.rng, aside
            query = aside.choice([self.several, self.many_joins, self.folded])()
            self.rng = rng
        return query
