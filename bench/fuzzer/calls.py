"""Functions that read tables which are not in the query's plan.

Some run in workers although they must not: they are wrongly marked PARALLEL SAFE.
Others run in the leader while workers read the same table. When off, they give an
answer; with parallel query they give the same one or an error of REFUSED, which is
counted.
"""

import random

from . import history
from .queries import Query

# Errors that the extension may cause instead of an answer.
REFUSED = (
    ("25000", "cannot access temporary tables during a parallel operation"
              # a volatile function's own statement, within a statement that writes
              "|cannot start commands during a parallel operation"),
    ("0A000", "only heap AM is supported|cannot access temporary (tables|indexes) of other sessions"),
)

FUNCTIONS = [
    "CREATE FUNCTION fz.inside(q text, i int) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS"
    " $$ DECLARE s text; BEGIN EXECUTE q INTO s; RETURN s; END $$",
    "CREATE FUNCTION fz.leader(q text, i int) RETURNS text LANGUAGE plpgsql PARALLEL RESTRICTED AS"
    " $$ DECLARE s text; BEGIN EXECUTE q INTO s; RETURN s; END $$",
    # It writes pages for workers of its own, except those that others read in its memory.
    "CREATE FUNCTION fz.unshared(q text, i int) RETURNS text LANGUAGE plpgsql PARALLEL RESTRICTED"
    " SET temp_parallel.share_local_buffers = off AS $$ DECLARE s text; BEGIN EXECUTE q INTO s; RETURN s; END $$",
    # Needs hundreds of local buffers at once.
    "CREATE FUNCTION fz.cursors(t text, i int) RETURNS text LANGUAGE plpgsql PARALLEL RESTRICTED AS $$ DECLARE"
    " c refcursor; opened refcursor[] := '{}'; s bigint := 0; n bigint; BEGIN FOR block IN 0 .. 399 LOOP"
    " c := NULL; OPEN c FOR EXECUTE format('SELECT id FROM %s WHERE ctid >= %L', t, format('(%s,0)', block));"
    " opened := opened || c; FETCH c INTO n; EXIT WHEN n IS NULL; s := s + n; END LOOP;"
    " FOREACH c IN ARRAY opened LOOP CLOSE c; END LOOP; RETURN s; END $$",
    # The number of rows, found in other ways than by an SQL statement.
    "CREATE FUNCTION fz.copied(q text, i int) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS $$ DECLARE n bigint;"
    " BEGIN EXECUTE 'COPY ' || q || ' TO ''/dev/null'''; GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END $$",
    "CREATE FUNCTION fz.explained(q text, i int) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS $$ DECLARE s text;"
    " BEGIN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM ' || q ||"
    " ' LIMIT 1000000' INTO s; RETURN substring(s FROM 'rows=([0-9]+)'); END $$",
    "CREATE FUNCTION fz.moved(q text, i int) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS $$ DECLARE c refcursor;"
    " n bigint; BEGIN OPEN c FOR EXECUTE 'SELECT id FROM ' || q; MOVE FORWARD ALL FROM c; GET DIAGNOSTICS n = ROW_COUNT;"
    " CLOSE c; RETURN n; END $$",
]

# From contrib: extension, and a query over a table {t} or a btree index {i} that gives
# one row with one column, which does not depend on anything that a reader may change.
CONTRIB = [
    ("pgstattuple", "SELECT tuple_count + table_len FROM pgstattuple('{t}')"),
    ("pgstattuple", "SELECT 1000 * tree_level + leaf_pages + internal_pages FROM pgstatindex('{i}')"),
    ("pgstattuple", "SELECT pg_relpages('{t}')"),
    # (from 19 on, a reader may set the visibility map, with the page's flag, and then
    # records the page's free space)
    ("pg_freespacemap", "SELECT count(avail) FROM pg_freespace('{t}')"),
    ("pg_visibility", "SELECT count(*) FILTER (WHERE all_visible AND NOT pd_all_visible) FROM pg_visibility('{t}')"),
    ("pageinspect", "SELECT sum((page_header(get_raw_page('{t}', 'main', b))).pagesize) FROM"
                    " generate_series(0, least(20, pg_relation_size('{t}') / 8192 - 1)) b"),
    ("amcheck", "SELECT bt_index_check('{i}')::text"),
    ("amcheck", "SELECT bt_index_check('{i}', true)::text"),
    ("amcheck", "SELECT count(*) FROM verify_heapam('{t}')"),
    ("pg_prewarm", "SELECT pg_prewarm('{t}', 'buffer')"),
    ("pg_prewarm", "SELECT pg_prewarm('{t}', 'read')"),
    ("pgrowlocks", "SELECT count(*) FROM pgrowlocks('{t}')"),
]
EXTENSIONS = sorted({extension for extension, _ in CONTRIB})

# Direct calls of such functions. All of them are marked PARALLEL SAFE.
DIRECT = [
    ("pgstattuple", "(pgstattuple('{t}')).tuple_count"),
    ("pgstattuple", "(pgstatindex('{i}')).leaf_pages"),
    ("pgstattuple", "pg_relpages('{t}')"),
    ("pg_freespacemap", "pg_freespace('{t}', {r}.id % 9) IS NULL"),
    ("pg_visibility", "(pg_visibility_map('{t}', {r}.id % 9)).all_visible IS NULL"),
    ("pg_prewarm", "pg_prewarm('{t}', 'buffer')"),
]


class Calls:
    def __init__(self, rng, tables, sources, contrib, isolation, temp_buffers):
        self.rng = rng
        self.tables = tables
        self.sources = sources
        self.isolation = isolation
        self.contrib = contrib      # those of EXTENSIONS that the server has
        self.temp_buffers = temp_buffers

    def target(self, table):
        """{t} and {i}: a table with rows, and a btree index on it or None."""
        rng = self.rng
        indexes = [i.name for i in table.indexes
                   if i.method == "btree" and table.kind in ("plain", "inherit", "permanent")]
        return rng.choice(table.members), rng.choice(indexes) if indexes else None

    def contribs(self, menu, table, i):
        """The entries of menu that the server has and that i allows; those that look at rows
        several times. Not for a table that the next COMMIT truncates: several of them
        return its size, which is another one then, also without the extension."""
        if table.on_commit == "DELETE ROWS" and not self.isolation:
            return []
        return [text for extension, text in menu
                if extension in self.contrib and (i or "{i}" not in text)
                for _ in range(4 if "tuple_count" in text else 1)]

    def query(self, kind, sql):
        # Workers without the extension refuse these, too.
        settings = {"parallel_leader_participation": "off"} if self.rng.random() < 0.75 else {}
        # A plan that a function of contrib has cached may have workers in the off mode, too.
        return Query(sql, may_fail=True, kind=kind, tolerated=REFUSED, settings=settings,
                     off={"max_parallel_workers_per_gather": "0", "max_parallel_workers": "0"})

    def mislabelled(self):
        """A call in a worker, for a table of the query or another one."""
        rng = self.rng
        table = rng.choice(self.tables)
        read = rng.choice([table] + self.tables * 2 + self.sources)
        t, i = self.target(read)
        # A permanent table with temporary children, which the function does not name; a table
        # that only a function names that is inlined. Not drawn from rng, so that a seed draws
        # the same episode as before.
        aside = random.Random(f"{t} {read.next_id}")
        if read.kind == "permanent" and aside.random() < 0.5:
            t = read.name
        rows = f"pg_temp.rows_of_{read.name}()" if read in self.tables and aside.random() < 0.5 else t
        own = [f"fz.inside('SELECT count(*) FROM {rows}', r.id)",
               f"fz.inside('SELECT sum(k) FROM {rows} WHERE id < 300', r.id)",
               f"fz.inside('SELECT sum(hashtext(q::text)) FROM {rows} q', r.id)",
               f"fz.copied('{t}', r.id)", f"fz.copied('{t}', r.id)", f"fz.copied('(SELECT id FROM {rows})', r.id)",
               f"fz.explained('{rows}', r.id)", f"fz.moved('{rows}', r.id)"]
        wrapped = ["fz.inside('" + text.replace("'", "''") + "', r.id)"
                   for text in self.contribs(CONTRIB, read, i)]
        direct = self.contribs(DIRECT, read, i)
        call = rng.choice(rng.choices([own, wrapped or own, direct or own], [50, 25, 25])[0])
        call = call.format(t=t, i=i, r="r")
        name = table.name if rng.random() < 0.8 else table.control
        some = f"r.id % {rng.choice([30, 100])} = {rng.randrange(5)}"
        kind = "mislabelled, " + (
            call[3:].split("(")[0] if call.startswith(("fz.c", "fz.e", "fz.m")) else
            "SELECT" if call in own else "contrib")
        query = self.query(kind, rng.choice([
            f"SELECT count(*) AS x1 FROM {name} r WHERE {some} AND length(({call})::text) > r.id % 3",
            f"SELECT count(*) AS x1 FROM {name} r WHERE {some} AND hashtext(({call})::text) % 5 <> 0",
            f"SELECT count(*) AS x1, sum(hashtext(({call})::text)) AS x2 FROM {name} r WHERE {some}",
            f"SELECT r.id AS x1, ({call})::text AS x2 FROM {name} r WHERE {some}"]))
        # So that there are dirty pages.
        if rng.random() < 0.7 and read.next_id < 2000 and (read.on_commit != "DELETE ROWS" or self.isolation):
            query.before = rng.choice([history.insert, history.insert, history.touch, history.update])(rng, read)
        return query

    def in_leader(self):
        """A call in the leader, while workers read the same table."""
        rng = self.rng
        table = rng.choice(self.tables)
        t, i = self.target(table)
        contribs = self.contribs(CONTRIB, table, i)
        if contribs and "pgstattuple" in self.contrib and random.Random(f"{t} {table.next_id}").random() < 0.15:
            # Pages become dirty in the leader between two launches of a Gather: of those that were
            # written before their rows had committed, most are clean, and get hints.
            query = self.query("in the leader, between launches", "SELECT i AS x1, CASE WHEN i % 2 = 0 THEN"
                               f" (SELECT table_len FROM pgstattuple_approx('{t}')) END AS x2,"
                               f" (SELECT count(*) + i FROM {t} r) AS x3 FROM generate_series(1, 4) i")
            query.before = [f"DO $$ BEGIN UPDATE {table.name} SET k = k; PERFORM public.pg_flush_local_buffers();"
                            f" UPDATE {table.name} SET k = k WHERE id % 97 = 3; END $$"]
            query.tolerated += (("58P01", "could not open file"),)
            return query
        texts = contribs + [
            "SELECT count(*) || ' ' || coalesce(sum(id), 0) FROM {t}"] * 6
        if self.temp_buffers >= 1000:
            texts += ["SELECT fz.cursors('{t}', 0)"] * 2
        text = rng.choice(texts)
        kind = "in the leader, contrib" if text in contribs else "in the leader"
        text = text.format(t=t, i=i)
        call = f"fz.{rng.choice(['leader', 'leader', 'unshared'])}('" + text.replace("'", "''") + "', {})"
        name = rng.choice([table.name, t])
        return self.query(kind, rng.choice([
            f"SELECT {call.format(1)} AS x1, count(*) AS x2, sum(r.k) AS x3 FROM {name} r",
            f"SELECT count(*) AS x1 FROM {name} r WHERE length(({text})::text) < r.id",
            f"SELECT r.part AS x1, {call.format('r.part')} AS x2 FROM {name} r GROUP BY r.part",
            f"SELECT r.id AS x1, {call.format('r.id')} AS x2 FROM {name} r WHERE r.id % 150 = 3",
            f"SELECT count(*) AS x1, max(l.x) AS x2 FROM {name} r LEFT JOIN LATERAL ({text} LIMIT 1) l(x) ON true"
            f" WHERE r.id % 150 = 3"]))
