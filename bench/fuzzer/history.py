"""Random changes to a table, and the same changes to its permanent copy.

Every function returns statements, and updates the Table accordingly.
"""

import random

from . import schema


def both(table, statement):
    """statement, with {t} for the table, for the table and for its copy."""
    return [statement.format(t=table.name), statement.format(t=table.control)]


def insert(rng, table, rows=None):
    rows = rows or rng.choice([1, 3, 8] if table.kind == "source" else [1, 20, 100, 300])
    if table.sparse:
        rows = 1 + rows // 3
    first, last, salt = table.next_id, table.next_id + rows - 1, rng.randint(0, 10 ** 6)
    table.next_id = last + 1 + rng.choice([0, 0, 100])
    values = ["g", "g % 4"] + [c.sql("g", salt) for c in table.columns[2:]]
    names = ", ".join(c.name for c in table.columns)
    select = f"SELECT {', '.join(values)} FROM generate_series({first}, {last}) g"
    return [f"INSERT INTO {rng.choice(table.targets)} ({names}) {select}",
            f"INSERT INTO {table.control} ({names}) {select}"]


def some_rows(rng, table):
    """A condition for a range of rows, or for rows all over the table."""
    n = max(table.next_id, 2)
    start = rng.randrange(n)
    return rng.choice([
        f"id BETWEEN {start} AND {start + n * rng.choice([1, 3, 6]) // 10}",
        f"id % {rng.choice([2, 7, 30, 100])} = 0",
        f"id > {start} AND part = {rng.randrange(4)}",
        f"id = {start}",
    ])


def update(rng, table):
    columns = rng.sample(table.columns[2:], min(len(table.columns) - 2, rng.choice([1, 1, 2])))
    salt = rng.randint(0, 10 ** 6)
    sets = [f"{c.name} = {c.sql('id', salt)}" for c in columns]
    if rng.random() < 0.25:
        sets = ["k = k"]
    elif rng.random() < 0.15:
        sets.append("part = (part + 1) % 4")
    return both(table, f"UPDATE {{t}} SET {', '.join(sets)} WHERE {some_rows(rng, table)}")


def delete(rng, table):
    return both(table, f"DELETE FROM {{t}} WHERE {some_rows(rng, table)}")


def truncate(rng, table):
    return both(table, "TRUNCATE {t}")


def touch(rng, table):
    """New row versions with the same values, which the copy does not need."""
    return [f"UPDATE {table.name} SET k = k WHERE id % {rng.choice([3, 10, 30])} = {rng.randrange(3)}"]


def subtransactions(rng, table):
    """Subtransactions, sometimes more than a snapshot holds; some are rolled back."""
    salt, n = rng.randint(0, 999), rng.choice([10, 10, 70])
    body = ("FOR i IN 1..{n} LOOP BEGIN UPDATE {t} SET k = (id + i) % 90 WHERE id % {n} = i"
            " AND id % {m} = 0; IF i % 3 = 0 THEN RAISE division_by_zero; END IF;"
            " EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP;")
    return [f"DO $$ BEGIN {body.format(t=t, n=n, m=1 + salt % 3)} END $$"
            for t in (table.name, table.control)]


def add_column(rng, table):
    table.serial += 1
    column = schema.random_column(rng, f"n{table.serial}")
    default = ""
    if rng.random() < 0.5:
        column.nulls = 0
        default = f" DEFAULT {column.sql('7', 1)}"
        if "SELECT" in default:
            default = " DEFAULT 'd'"
    table.columns.append(column)
    return both(table, f"ALTER TABLE {{t}} ADD COLUMN {column.name} {column.type}{default}")


def drop_column(rng, table):
    if len(table.columns) < 5:
        return []
    column = table.columns.pop(rng.randrange(3, len(table.columns)))
    table.indexes = [i for i in table.indexes if column.name not in i.columns]
    return both(table, f"ALTER TABLE {{t}} DROP COLUMN {column.name}")


def alter_type(rng, table):
    columns = [c for c in table.columns[3:] if c.type in schema.WIDER]
    if not columns:
        return []
    column = rng.choice(columns)
    if any(column.name in i.columns and i.method != "btree" for i in table.indexes):
        return []
    column.type = rng.choice(schema.WIDER[column.type])
    column.value = f"({column.value})::{column.type}"
    return both(table, f"ALTER TABLE {{t}} ALTER {column.name} TYPE {column.type}")


def reuse(rng, table, vacuumed=True):
    """Delete rows and insert them again with the same ids, mostly into the space of the
    dead ones."""
    start = rng.randrange(1, max(2, table.next_id))
    end, salt = start + rng.choice([0, 3, 30]), rng.randint(0, 10 ** 6)
    end = min(end, max(start, table.next_id - 1))
    table.next_id = max(table.next_id, end + 1)
    values = ", ".join(["g", "g % 4"] + [c.sql("g", salt) for c in table.columns[2:]])
    result = [f"SELECT public.pg_flush_local_buffers('{table.name}')"] * (rng.random() < 0.4)
    result += both(table, f"DELETE FROM {{t}} WHERE id BETWEEN {start} AND {end}")
    if vacuumed and rng.random() < 0.8:
        result.append(f"VACUUM {rng.choice(['', '(TRUNCATE OFF) ', '(FREEZE, TRUNCATE OFF) '])}{table.name}")
    return result + both(table, f"INSERT INTO {{t}} SELECT {values} FROM generate_series({start}, {end}) g")


def remake(rng, table):
    return reuse(rng, table, vacuumed=False)


def alter_storage(rng, table):
    member = rng.choice(table.members)
    wide = [c for c in table.columns if c.wide]
    choice = rng.random()
    if wide and choice < 0.4:
        storage = rng.choice(["EXTERNAL", "EXTENDED", "MAIN"])
        return [f"ALTER TABLE {table.name} ALTER {rng.choice(wide).name} SET STORAGE {storage}"]
    if choice < 0.7:
        return [f"ALTER TABLE {member} SET (fillfactor = {rng.choice([10, 30, 100])})"]
    return [f"ALTER TABLE {member} SET (parallel_workers = {rng.choice([1, 2, 4])})"]


def set_tablespace(rng, table):
    return [f"ALTER TABLE {rng.choice(table.members)} SET TABLESPACE "
            f"{rng.choice(['fuzz_ts', 'pg_default'])}"]


def make_index(rng, table):
    if len(table.indexes) > 5:
        return drop_index(rng, table)
    return [schema.create_index(rng, table)]


def drop_index(rng, table):
    if not table.indexes:
        return []
    return [f"DROP INDEX {table.indexes.pop(rng.randrange(len(table.indexes))).name}"]


def reindex(rng, table):
    if table.indexes and table.plain() and rng.random() < 0.5:
        return [f"REINDEX INDEX {rng.choice(table.indexes).name}"]
    return [f"REINDEX TABLE {rng.choice(table.members)}"]


def cluster(rng, table):
    usable = [i for i in table.indexes if i.method == "btree" and not i.partial]
    if not table.plain() or not usable:
        return []
    return [f"CLUSTER {table.name} USING {rng.choice(usable).name}"]


def vacuum(rng, table):
    option = rng.choice(["", "", "", "(FREEZE) ", "(FULL) ", "(ANALYZE) ", "(INDEX_CLEANUP OFF) ",
                         "(TRUNCATE OFF) ", "(DISABLE_PAGE_SKIPPING) "])
    result = [f"VACUUM {option}{rng.choice(table.members + [table.name])}"]
    # Writes the visibility map to its file, which later changes do not reach.
    if rng.random() < 0.5:
        result.append("SELECT public.pg_evict_local_buffers()")
    return result


def analyze(rng, table):
    return [f"ANALYZE {table.name}"]


def misjudged(rng, table):
    """Statistics that are far from the truth, or become so."""
    member, column = rng.choice(table.members), rng.choice(table.columns).name
    return rng.choice([
        lambda: [f"UPDATE pg_class SET reltuples = {rng.choice([1, 100000])}, relpages = {rng.choice([1, 1, 100000])}"
                 f" WHERE oid = '{member}'::regclass"],
        lambda: [f"ALTER TABLE {member} ALTER {column} SET (n_distinct = {rng.choice([1, -1, 1000000])})", f"ANALYZE {member}"],
        lambda: [f"ALTER TABLE {member} SET (parallel_workers = {rng.choice([0, 0, 1, 30])})"],
        lambda: [f"ANALYZE {table.name}"] + both(table, "DELETE FROM {t} WHERE id % 100 <> 7"),
        lambda: both(table, "TRUNCATE {t}") + [f"ANALYZE {table.name}"] + insert(rng, table),
    ])()


def instruments(rng, table):
    """The extension's functions that write, evict, read and dirty pages."""
    member = rng.choice(table.members)
    return [rng.choice([
        "SELECT public.pg_flush_local_buffers()",
        f"SELECT public.pg_flush_local_buffers('{member}')",
        f"SELECT public.pg_evict_local_buffers('{member}')",
        f"SELECT public.pg_read_temp_relation('{member}', true)",
        f"SELECT public.pg_temp_buffers_dirty('{member}')",
    ])]


ANYWHERE = [(instruments, 2), (insert, 22), (update, 30), (delete, 16), (touch, 8), (subtransactions, 3),
            (truncate, 1.5), (add_column, 2), (drop_column, 1), (alter_type, 1.5),
            (alter_storage, 2), (make_index, 6), (drop_index, 1.5),
            (reindex, 2), (analyze, 2)]
# Two of these are not used in a transaction block, where the server itself fails, with
# permanent tables as well. When a new tablespace is rolled back, index entries remain
# for rows of the removed file: 15 as well as 18 then fail to read blocks that do not
# exist. And CLUSTER loses rows that the same transaction has inserted or updated and
# that a subtransaction, which was rolled back, updated again: it takes the dead new
# version as proof that the old one is dead (18.6).
OUTSIDE = ANYWHERE + [(vacuum, 12), (set_tablespace, 1.5), (cluster, 1.5)]
# For small tables of wide values, inside and outside a transaction.
SOURCE = [(instruments, 6), (insert, 15), (update, 25), (delete, 8), (touch, 8), (remake, 15)]
SOURCE_OUTSIDE = SOURCE[:-1] + [(reuse, 50)]
DATA = [(insert, 30), (update, 40), (delete, 20), (touch, 5), (subtransactions, 3)]


def change(rng, table, menu):
    """A random change from menu."""
    # Tables stay small, so that most of the time is spent on queries.
    if table.next_id > (25 if table.kind == "source" else 400 if table.sparse else 1200) and rng.random() < 0.8:
        menu = [entry for entry in menu if entry[0] is not insert]
    op = rng.choices([m[0] for m in menu], [m[1] for m in menu])[0]
    result = op(rng, table)
    if op is truncate and rng.random() < 0.9:
        result += insert(rng, table)
    # Not drawn from rng, so that a seed draws the same episode as before.
    aside = random.Random(repr(result))
    if result and menu is not SOURCE and aside.random() < 0.05:
        result += misjudged(aside, table)
    return result
