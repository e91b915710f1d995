"""Random tables: a temporary one, and a permanent copy with the same history.

Every value is computed from the row's id, so that the same statement has the same
effect on both.
"""

import re
from dataclasses import dataclass, field

# Values as SQL expressions of h, a non-negative bigint hash of the row. Floats are
# multiples of 1/8, so that their sums are exact.
VALUES = {
    "int": "(h % 100)::int",
    "bigint": "h % 5000",
    "numeric(20,2)": "((h % 10000)::numeric / 100)::numeric(20,2)",
    "text": "'t' || (h % 60)",
    "varchar(20)": "'v' || (h % 1000)",
    "bool": "h % 3 = 0",
    "date": "DATE '2000-01-01' + (h % 1000)::int",
    "float8": "(h % 1000)::float8 / 8",
    "int[]": "ARRAY[h % 10, h % 7, h % 11]::int[]",
    "jsonb": "jsonb_build_object('a', h % 20, 'b', 'v' || (h % 5))",
    "point": "point(h % 100, h % 37)",
    "int4range": "int4range((h % 90)::int, (h % 90 + h % 9)::int)",
    "inet": "('10.' || (h % 4) || '.' || (h % 200) || '.1')::inet",
    "tsvector": "to_tsvector('simple', 'w' || (h % 9) || ' x' || (h % 31))",
    "timestamptz": "TIMESTAMPTZ '2020-01-01 UTC' + (h % 10000) * INTERVAL '1 minute'",
}

# Wide values, all of type text: in line, out of line, out of line and compressed.
WIDE = {
    "pad": "repeat('x', (h % 400)::int)",
    "external": "CASE WHEN h % 5 = 0 THEN repeat(md5(h::text), (70 + h % 60)::int)"
                " ELSE 's' || h END",
    "compressed": "CASE WHEN h % 7 = 0 THEN (SELECT string_agg(md5((h + i)::text), '')"
                  " FROM generate_series(1, 100 + (h % 40)::int) i)"
                  " ELSE 'c' || h END",
    "repeated": "repeat('abcdefgh', (h % 900)::int)",
}

SORTABLE = {"int", "bigint", "numeric(20,2)", "text", "varchar(20)", "bool", "date",
            "float8", "int[]", "jsonb", "inet", "timestamptz", "int4range"}
NUMBERS = {"int", "bigint", "numeric(20,2)", "float8"}
METHODS = {
    "hash": ["int", "bigint", "numeric(20,2)", "text", "varchar(20)", "date", "float8",
             "int[]", "jsonb", "inet", "int4range", "timestamptz"],
    "gin": ["int[]", "jsonb", "tsvector"],
    "gist": ["point", "int4range", "tsvector"],
    "spgist": ["point", "text", "int4range", "inet"],
    "brin": ["int", "bigint", "numeric(20,2)", "text", "date", "float8", "timestamptz",
             "int4range", "inet"],
}
WIDER = {"int": ["bigint", "numeric(20,2)"], "bigint": ["numeric(20,2)"],
         "varchar(20)": ["text"]}


@dataclass
class Column:
    name: str
    type: str
    value: str          # of h
    nulls: int          # one in so many rows; 0: none
    wide: str = ""

    def sql(self, row, salt):
        """The value in the row with id row, which is an SQL expression."""
        h = f"(hashint8({row}::bigint + {salt})::bigint & 2147483647)"
        value = re.sub(r"\bh\b", h, self.value)
        if self.nulls:
            return f"CASE WHEN hashint8({row}::bigint - {salt}) % {self.nulls} = 0 THEN NULL ELSE {value} END"
        return value


@dataclass
class Index:
    name: str
    columns: list
    method: str
    partial: bool


@dataclass
class Table:
    name: str
    kind: str
    columns: list
    members: list = field(default_factory=list)     # temporary tables that hold rows
    targets: list = field(default_factory=list)     # tables that rows may be inserted into
    indexes: list = field(default_factory=list)
    next_id: int = 1
    serial: int = 0             # for names
    fraction: int = 100         # fillfactor
    builders: str = ""          # a storage parameter with which workers build its indexes
    on_commit: str = ""         # of a plain table: "", "DROP" or "DELETE ROWS"
    sparse: bool = False        # a page or more for two rows
    views: list = field(default_factory=list)       # on the first three columns

    @property
    def control(self):
        return "ctl." + self.name

    def of_type(self, types):
        return [c for c in self.columns if c.type in types and not c.wide]

    def plain(self):
        return self.kind == "plain"


def random_column(rng, name):
    if rng.random() < 0.3:
        wide = rng.choice(sorted(WIDE))
        return Column(name, "text", WIDE[wide], rng.choice([0, 0, 9]), wide)
    kind = rng.choice(sorted(VALUES))
    return Column(name, kind, VALUES[kind], rng.choice([0, 0, 5, 30]))


# Kinds of partitioned tables: the key, and the bounds of the partitions.
PARTITIONED = {
    "list": ("LIST (part)", ["FOR VALUES IN (0, 1)", "FOR VALUES IN (2)", "DEFAULT"]),
    "range": ("RANGE (id)", ["FOR VALUES FROM (MINVALUE) TO (200)", "FOR VALUES FROM (200) TO (600)",
                             "FOR VALUES FROM (600) TO (MAXVALUE)"]),
    "sub": ("RANGE (id)", ["FOR VALUES FROM (MINVALUE) TO (300)"]),
}
# The partition of "sub" that is partitioned itself.
SUBPARTITIONED = ("FOR VALUES FROM (300) TO (MAXVALUE)", "LIST (part)", ["FOR VALUES IN (0, 3)", "DEFAULT"])


def definition(columns):
    return "(" + ", ".join(f"{c.name} {c.type}" for c in columns) + ")"


def create_table(rng, name, on_commit=""):
    """A Table, and the statements that create it."""
    columns = [Column("id", "int", "", 0), Column("part", "int", "", 0)]
    columns += [Column("k", "int", VALUES["int"], rng.choice([0, 0, 11]))]
    for n in range(rng.randint(2, 7)):
        columns.append(random_column(rng, f"c{n}"))
    sparse = rng.random() < 0.35
    if sparse:
        columns.append(Column("pad", "text", "repeat('p', (1000 + h % 500)::int)", 0, "sparse"))
    kind = rng.choices(["plain", "list", "range", "hash", "sub", "inherit", "permanent"],
                       [50, 8, 8, 8, 6, 10, 10])[0]
    if on_commit:
        kind = "plain"
    table = Table(name, kind, columns, on_commit=on_commit, sparse=sparse)
    space = " TABLESPACE fuzz_ts" if rng.random() < 0.3 else ""
    # Low values give many pages with few rows; it is rows that cost time. A sparse table
    # does not fit into a small pool.
    table.fraction = rng.choice([100, 70, 30, 10, 10, 10])
    if sparse:
        table.fraction = 10
    if rng.random() < 0.3:
        table.builders = f", parallel_workers = {rng.choice([1, 2, 2, 3])}"

    statements = [f"CREATE UNLOGGED TABLE {table.control} {definition(columns)}"]
    if kind == "plain":
        ends = f" ON COMMIT {on_commit}" if on_commit else ""
        statements.append(f"CREATE TEMP TABLE {name} {definition(columns)}"
                          f" WITH (fillfactor = {table.fraction}{table.builders}){ends}{space}")
        table.members = [name]
    elif kind in ("inherit", "permanent"):
        statements += inheritance(rng, table, space)
    else:
        statements += partitions(rng, table, space)
    table.targets = table.targets or [name]

    for column in columns:
        storage = {"external": "EXTERNAL", "sparse": "PLAIN"}.get(column.wide)
        if storage:
            statements.append(f"ALTER TABLE {name} ALTER {column.name} SET STORAGE {storage}")
    return table, statements + [rows_function(name)]


def rows_function(name):
    """The statement that creates a function which the planner inlines."""
    return (f"CREATE FUNCTION pg_temp.rows_of_{name}() RETURNS TABLE (id int, part int, k int) LANGUAGE sql"
            f" STABLE PARALLEL SAFE AS 'SELECT id, part, k FROM {name}'")


def partitions(rng, table, space):
    """The statements that create a partitioned table; table gets its partitions."""
    name, statements = table.name, []

    def partition(parent, bounds):
        child = f"{name}_{table.serial}"
        table.serial += 1
        table.members.append(child)
        statements.append(f"CREATE TEMP TABLE {child} PARTITION OF {parent} {bounds}"
                          f" WITH (fillfactor = {table.fraction}{table.builders}){space}")

    if table.kind == "hash":
        count = rng.randint(2, 4)
        key, all_bounds = "HASH (id)", [f"FOR VALUES WITH (MODULUS {count}, REMAINDER {n})" for n in range(count)]
    else:
        key, all_bounds = PARTITIONED[table.kind]
    statements.append(f"CREATE TEMP TABLE {name} {definition(table.columns)} PARTITION BY {key}")
    for bounds in all_bounds:
        partition(name, bounds)
    if table.kind == "sub":
        own_bounds, key, all_bounds = SUBPARTITIONED
        statements.append(f"CREATE TEMP TABLE {name}_s PARTITION OF {name} {own_bounds} PARTITION BY {key}")
        for bounds in all_bounds:
            partition(f"{name}_s", bounds)
    return statements


def inheritance(rng, table, space):
    """The statements that create a table with children; table gets these."""
    name = table.name
    if table.kind == "inherit":
        statements = [f"CREATE TEMP TABLE {name} {definition(table.columns)}{space}"]
        table.members.append(name)
    else:
        statements = [f"CREATE UNLOGGED TABLE fz.{name} {definition(table.columns)}"]
    table.targets = [name]
    for n in range(rng.randint(1, 3)):
        child = f"{name}_{n}"
        parent = rng.choice(table.targets if table.kind == "inherit" else [name])
        statements.append(f"CREATE TEMP TABLE {child} () INHERITS ({parent})"
                          f" WITH (fillfactor = {table.fraction}{table.builders}){space}")
        table.members.append(child)
        table.targets.append(child)
    table.serial = 9
    return statements


def create_many(rng, name):
    """A Table with an index and hundreds of partitions, without TOAST tables; the statements
    that create it; a number of rows for it."""
    columns = [Column("id", "int", "", 0), Column("part", "int", "", 0),
               Column("k", "int", VALUES["int"], 0), Column("c0", "varchar(20)", VALUES["varchar(20)"], 9)]
    count = rng.choice([150, 200, 400])
    table = Table(name, "many", columns, [f"{name}_{n}" for n in range(count)], [name])
    method, bounds = rng.choice([("HASH", f"WITH (MODULUS {count}, REMAINDER %1$s)"),
                                 ("RANGE", "FROM (%2$s) TO (%3$s)")])
    rows = 3 * count
    return table, [
        f"CREATE UNLOGGED TABLE {table.control} {definition(columns)}",
        f"CREATE TEMP TABLE {name} {definition(columns)} PARTITION BY {method} (id)",
        f"DO $$ BEGIN FOR i IN 0..{count - 1} LOOP EXECUTE format('CREATE TEMP TABLE {name}_%1$s PARTITION OF"
        f" {name} FOR VALUES {bounds}', i, CASE WHEN i = 0 THEN 'MINVALUE' ELSE (i * 3)::text END,"
        f" CASE WHEN i = {count - 1} THEN 'MAXVALUE' ELSE (i * 3 + 3)::text END); END LOOP; END $$",
        f"CREATE INDEX {name}_i ON {name} (id)", rows_function(name)], rows


def policies(rng, table, others):
    """Policies for the table and its copy."""
    using = [f"part <> {rng.randrange(4)}", "id % 5 <> length(current_user) % 5",
             "k IS NULL OR k >= 10 OR pg_has_role('fuzz_reader', 'USAGE') AND id % 2 = 0"]
    if others:
        using.append(f"id % 11 <> (SELECT count(*) % 11 FROM {rng.choice(others).name})")
    condition = rng.choice(using)
    return [sql for name in (table.name, table.control) for sql in
            (f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY",
             f"CREATE POLICY p ON {name} FOR SELECT USING ({condition})")]


def views(rng, table, others):
    """Temporary views on the table, with each id at most once."""
    name = table.name
    statements = []
    for options, where in rng.sample([
            ("", "part < 3"),
            (" WITH (security_barrier)", f"id % 7 <> {rng.randrange(7)}"),
            (" WITH (security_invoker)", "k IS NOT NULL"),
            ("", f"EXISTS (SELECT 1 FROM {rng.choice(others or [table]).name} o WHERE o.id = v.id AND o.part < 3)"),
            ("", f"k > (SELECT avg(k) FROM {name})")], rng.choice([0, 1, 2])):
        view = f"{name}_v{len(table.views)}"
        table.views.append(view)
        statements.append(f"CREATE TEMP VIEW {view}{options} AS SELECT id, part, k FROM {name} v WHERE {where}")
    return statements


def create_index(rng, table):
    """The statement that creates a random index, which table gets."""
    method = rng.choices(["btree", "hash", "gin", "gist", "spgist", "brin"],
                         [45, 10, 12, 11, 11, 11])[0]
    unique, include = "", ""
    if method == "btree":
        columns, unique, include, options = btree_columns(rng, table)
    else:
        usable = table.of_type(METHODS[method])
        # The server keeps the numbers of an SP-GiST index's pages that it has truncated
        # at a COMMIT, and fails to read them (15 as well as 18).
        if not usable or (method == "spgist" and table.on_commit == "DELETE ROWS"):
            return create_index_on_id(table)
        columns, options = other_columns(rng, usable, method)
    keys = [index_key(rng, c) if method == "btree" and not unique else c.name for c in columns]
    where = ""
    if not unique and rng.random() < 0.15:
        where = rng.choice([" WHERE part < 2", " WHERE id % 3 = 0", " WHERE k IS NOT NULL"])
    target = table.name
    if table.kind in ("inherit", "permanent"):
        target = rng.choice(table.members)
    table.serial += 1
    name = f"{table.name}_i{table.serial}"
    used = [c.name for c in columns] + (["k"] if " k " in where else [])
    table.indexes.append(Index(name, used, method, bool(where)))
    return (f"CREATE {unique}INDEX {name} ON {target} USING {method}"
            f" ({', '.join(keys)}){include}{options}{where}")


def btree_columns(rng, table):
    """Columns for a btree index, and its UNIQUE, INCLUDE and WITH clauses."""
    unique, include, options = "", "", ""
    usable = table.of_type(SORTABLE)
    columns = rng.sample(usable, min(len(usable), rng.choice([1, 1, 1, 2, 3])))
    if table.plain() and rng.random() < 0.15:
        columns, unique = [table.columns[0]], "UNIQUE "
    elif rng.random() < 0.1:
        include = " INCLUDE (part)"
    if rng.random() < 0.3:
        options = f" WITH (fillfactor = {rng.choice([50, 70, 100])})"
    return columns, unique, include, options


def other_columns(rng, usable, method):
    """Columns for an index of another method, and its WITH clause."""
    columns = [rng.choice(usable)]
    if method == "gin":
        return columns, f" WITH (fastupdate = {rng.choice(['on', 'off'])})"
    if method != "brin":
        return columns, ""
    options = f" WITH (pages_per_range = {rng.choice([1, 4, 16])})"
    if rng.random() < 0.3:
        columns = rng.sample(usable, min(2, len(usable)))
    return columns, options


def index_key(rng, column):
    """A column or an expression of it, with an order."""
    if column.type == "int" and rng.random() < 0.15:
        return f"({column.name} % 10)"
    if column.type == "text" and rng.random() < 0.2:
        return f"lower({column.name})"
    if rng.random() < 0.15:
        return column.name + rng.choice([" DESC", " NULLS FIRST", " DESC NULLS LAST"])
    return column.name


def create_index_on_id(table):
    table.serial += 1
    name = f"{table.name}_i{table.serial}"
    table.indexes.append(Index(name, ["id"], "btree", False))
    target = table.members[-1] if table.kind in ("inherit", "permanent") else table.name
    return f"CREATE INDEX {name} ON {target} (id)"
