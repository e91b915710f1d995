"""Functions that the planner evaluates, and that change what it plans with.

A statement is planned twice, so the second planning sees another state than the first one. What
these functions do has the same effect, and result, as often as they are called, but for one that
fails the second time. All of it is rolled back, so that each mode has the same history.
"""

from .queries import Query

M = "made#RUN#"
FUNCTIONS = [
    "CREATE FUNCTION fz.does(q text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; RETURN 0; END $$",
    "CREATE FUNCTION fz.planned(q text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS"
    " $$ BEGIN RETURN fz.does(q); END $$",
    # for estimates alone
    "CREATE FUNCTION fz.estimated(q text) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS"
    " $$ DECLARE n bigint; BEGIN EXECUTE q INTO n; RETURN 0 * n; END $$",
    # from the second time on
    "CREATE FUNCTION fz.later(q text) RETURNS void LANGUAGE plpgsql AS $$ DECLARE n int := current_setting('fz.calls'); BEGIN"
    " PERFORM set_config('fz.calls', (n + 1)::text, false); IF n > 0 THEN EXECUTE q; END IF; END $$",
    # every second time there is what there is not the other times
    "CREATE FUNCTION fz.toggles(t text, made text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN"
    " EXECUTE CASE WHEN to_regclass(t) IS NULL THEN made ELSE 'DROP TABLE ' || t END; END $$",
]
ROWS = "SELECT g AS id, g * 31 % 100 AS k, repeat('v', g % 50) AS v FROM generate_series(1, {n}) g"
# By name: what the planner does by the function that it evaluates.
ACTIONS = {
    "counts": [f"PERFORM sum(hashtext(m::text)) FROM {M} m", "PERFORM count(*) FROM {t}"],
    "makes": [f"DROP TABLE IF EXISTS {M}_x; CREATE TEMP TABLE {M}_x AS TABLE {M}; CREATE INDEX ON {M}_x (id)",
              f"CREATE TEMP TABLE {M}_x AS SELECT count(*) FROM {M}; DROP TABLE {M}_x"],
    "toggles": [f"SELECT fz.toggles('{M}_x', 'CREATE TEMP TABLE {M}_x AS TABLE {M}')"],
    # (DROP INDEX fails, as what has been planned so far may use it)
    "indexes": [f"CREATE INDEX IF NOT EXISTS {M}_i ON {M} (id)"],
    "fills": [f"DELETE FROM {M}; INSERT INTO {M} {ROWS}", f"TRUNCATE {M}; INSERT INTO {M} {ROWS}"],
    "touches": [f"UPDATE {M} SET k = k", f"UPDATE {M} SET v = v WHERE id % 9 = 2"],
    "flushes": ["SELECT public.pg_flush_local_buffers()", f"SELECT public.pg_evict_local_buffers('{M}')",
                f"UPDATE {M} SET k = k; SELECT public.pg_flush_local_buffers('{M}')"],
    "alters": [f"ALTER TABLE {M} SET (parallel_workers = 3)", f"ANALYZE {M}", f"ALTER TABLE {M} ALTER v SET STORAGE EXTERNAL",
               f"ALTER TABLE {M} ALTER k SET (n_distinct = 1); ANALYZE {M}",
               f"ALTER TABLE {M} SET (parallel_workers = 0)"],
    "sets": ["SET LOCAL max_parallel_workers_per_gather = 0", "SET LOCAL max_parallel_workers_per_gather = 4",
             "SET LOCAL temp_parallel.enabled = off", "SET LOCAL enable_seqscan = off", "SET LOCAL work_mem = '64kB'"],
    "fails again": ["DO $r$ BEGIN RAISE 'called again'; END $r$"],
}


def quoted(sql):
    return "'" + sql.replace("'", "''") + "'"


class Planned:
    def __init__(self, rng, tables, isolation):
        self.rng = rng
        self.tables = tables
        self.isolation = isolation

    def statement(self, call, t):
        """A query, or a change that is run ahead."""
        rng = self.rng
        estimated = f"fz.estimated('SELECT count(*) FROM {M}')"
        return rng.choice([
            f"SELECT count(*) AS x1, sum(m.k) AS x2 FROM {M} m WHERE m.id > {call} AND m.k < 90",
            f"SELECT m.k AS x1, count(*) AS x2 FROM {M} m JOIN {t} r ON r.id = m.id WHERE {call} = 0 GROUP BY 1",
            f"SELECT m.id AS x1, (SELECT count(*) FROM {M} o WHERE o.id < {call} + 50) AS x2 FROM {M} m WHERE m.id % 10 = {call}",
            f"SELECT count(*) AS x1, max(v) AS x2 FROM {M} m WHERE m.id IN (SELECT o.id FROM {M} o WHERE o.k >= {call})",
            f"SELECT count(*) AS x1 FROM (SELECT * FROM {M} ORDER BY id LIMIT 100 + {estimated}) m WHERE m.k >= {call}",
        ])

    def query(self):
        rng = self.rng
        t, n = rng.choice(self.tables).name, rng.choice([100, 1000, 3000])
        kind = rng.choice([*ACTIONS, "fails again"])
        action = rng.choice(ACTIONS[kind]).replace("{t}", t).replace("{n}", str(n))
        if action.startswith("PERFORM"):
            action = f"DO $p$ BEGIN {action}; END $p$"
        # (a snapshot that is older does not see rows that TRUNCATE has removed)
        if kind == "fails again" or kind != "fills" and rng.random() < 0.3:
            action = f"SELECT fz.later({quoted(action)})"
        sql = self.statement(f"fz.planned({quoted(action)})", t)
        read = f"SELECT count(*), sum(k), sum(length(v)) FROM {M}"
        ways = [
            [sql], [sql, sql], [f"SELECT * FROM fz.run({quoted(sql)})"], [f"DECLARE pc CURSOR FOR {sql}", "FETCH 3 FROM pc", "FETCH ALL FROM pc"],
            [f"PREPARE p#RUN# AS {sql}", "EXECUTE p#RUN#", "EXECUTE p#RUN#", "DEALLOCATE p#RUN#"],
            [f"CREATE TEMP TABLE {M}_o AS {sql}", f"SELECT * FROM {M}_o"],
            [f"CREATE TEMP TABLE {M}_o (q text)", f"INSERT INTO {M}_o SELECT q::text FROM ({sql}) q", f"SELECT * FROM {M}_o"],
            [f"UPDATE {M} SET k = k + 1 WHERE id IN (SELECT q.x1 FROM ({sql}) q)", read],
            [f"DELETE FROM {M} WHERE k IN (SELECT q.x1 FROM ({sql}) q)", read],
        ]
        if action.startswith("TRUNCATE"):
            # An account that has grown has a cached plan made again, which here empties the table
            # once more, for an older snapshot.
            ways = [way for way in ways if "DEALLOCATE p#RUN#" not in way]
        statements = [f"CREATE TEMP TABLE {M} WITH (fillfactor = {rng.choice([10, 100])}) AS {ROWS}".replace("{n}", str(n)),
                      *[f"ANALYZE {M}"] * (rng.random() < 0.6), "SELECT set_config('fz.calls', '0', false)", *rng.choice(ways)]
        if not self.isolation:
            statements = ["BEGIN", *statements, "ROLLBACK"]
        return Query("", kind=f"planned, {kind}", statements=statements, calm=True, may_fail=kind == "fails again",
                     tolerated=(("P0001", "called again"),) if kind == "fails again" else ())
