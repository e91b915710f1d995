"""SET temp_buffers after statements that may use a local buffer, or not.

The statements run in two new sessions, with the module on and off. Each must succeed or
fail in both, and the tables have the same rows in the end.
"""

STATEMENTS = [
    "CREATE TEMP TABLE b AS SELECT g AS id, repeat('b', 50) AS v FROM generate_series(1, {n}) g WITH NO DATA",
    "CREATE TEMP TABLE b AS SELECT g AS id, repeat('b', 50) AS v FROM generate_series(1, {n}) g",
    "CREATE TEMP TABLE IF NOT EXISTS a AS SELECT g FROM generate_series(1, {n}) g",
    "CREATE TEMP TABLE a AS SELECT g FROM generate_series(1, {n}) g",
    "CREATE TEMP TABLE c AS SELECT 1 / ({n} - g) AS id FROM generate_series({n}, {n} + 1) g",
    "CREATE TABLE pg_temp.d AS EXECUTE rows({n})",
    "CREATE TEMP TABLE d AS EXECUTE rows({n}) WITH NO DATA",
    "SELECT g AS id INTO TEMP e FROM generate_series(1, {n}) g",
    "EXPLAIN (ANALYZE) CREATE TEMP TABLE f AS SELECT 1 AS id WHERE {n} > 0",
    "EXPLAIN CREATE TEMP TABLE f AS SELECT 1 AS id",
    "UPDATE a SET v = v || 'u' WHERE id % 3 = 0",
    "DELETE FROM a WHERE id % 7 = 0",
    "EXPLAIN (ANALYZE) DELETE FROM a WHERE id % 5 = 0",
    "WITH d AS (DELETE FROM a WHERE id % 11 = 0 RETURNING id) SELECT count(*) FROM d",
    "INSERT INTO a SELECT g, repeat('a', 100) FROM generate_series(1, {n}) g",
    "INSERT INTO a SELECT 1 / (g - {n}), 'x' FROM generate_series(1, {n}) g",
    "INSERT INTO a VALUES ('none', 'x')",
    "EXECUTE filled({n})",
    "MERGE INTO a USING (SELECT g FROM generate_series(1, {n}) g) s ON a.id = s.g"
    " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.g, 'm')",
    "COPY a FROM '/nonexistent/file'",
    "COPY a FROM PROGRAM 'seq 1 {n} | sed s/$/:x/' (DELIMITER ':')",
    "COPY a FROM PROGRAM 'echo none'",
    "COPY a (missing) FROM PROGRAM 'echo 1'",
    "COPY a TO PROGRAM 'cat >/dev/null'",
    "DO $$ BEGIN INSERT INTO a SELECT generate_series(1, {n}), 'd'; EXCEPTION WHEN OTHERS THEN NULL; END $$",
    "DO $$ BEGIN INSERT INTO a SELECT generate_series(1, {n}), 'd'; RAISE division_by_zero;"
    " EXCEPTION WHEN division_by_zero THEN NULL; END $$",
    "CREATE INDEX ON a (id)",
    "CREATE INDEX ON a USING hash (id)",
    "ALTER TABLE a ALTER v SET DEFAULT 'x'",
    "ALTER TABLE a ADD w int DEFAULT {n}",
    "SELECT count(*) FROM a",
    "DECLARE q CURSOR WITH HOLD FOR SELECT * FROM a",
    "TRUNCATE a",
    "VACUUM a",
    "ANALYZE a",
    "CLUSTER",
    "SELECT pg_temp.set_and_fill({n})",
]
SETTINGS = [
    "SET temp_buffers = {size}", "SET temp_buffers = {size}", "SET temp_buffers = {size}",
    "SET LOCAL temp_buffers = {size}", "RESET temp_buffers", "SET temp_buffers = DEFAULT",
    "SELECT set_config('temp_buffers', '{size}', {local})", "DISCARD PLANS",
    "INSERT INTO a SELECT length(set_config('temp_buffers', '{size}', {local})), 'x' FROM generate_series(1, {n})",
]
BLOCKS = ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s"]
SETUP = [
    "SET client_min_messages = error",
    "SET parallel_setup_cost = 0",
    "SET parallel_tuple_cost = 0",
    "SET min_parallel_table_scan_size = 0",
    "SET temp_parallel.enabled = {enabled}",
    "CREATE TEMP TABLE a (id int, v text)",
    "CREATE FUNCTION pg_temp.set_and_fill(n int) RETURNS void LANGUAGE plpgsql SET temp_buffers = 200"
    " AS $$ BEGIN INSERT INTO a SELECT generate_series(1, n), 'f'; END $$",
    "PREPARE rows(int) AS SELECT g AS id FROM generate_series(1, $1) g",
    "PREPARE filled(int) AS INSERT INTO a SELECT g, 'p' FROM generate_series(1, $1) g",
]
END = [
    "COMMIT",
    "SHOW temp_buffers",
    "INSERT INTO a SELECT g, repeat('z', 100) FROM generate_series(1, 20000) g",
    "UPDATE a SET v = v || 'e' WHERE id % 2 = 0",
    "SELECT count(*), sum(id), sum(hashtext(v)) FROM a",
    "SHOW temp_buffers",
]


def statements(rng):
    """A random sequence of statements, each with a change of the setting after it."""
    result = []
    for _ in range(rng.choice([1, 2, 4, 8])):
        menu = rng.choices([STATEMENTS, BLOCKS], [80, 20])[0]
        for sql in [rng.choice(menu), rng.choice(SETTINGS)]:
            for name, value in [("n", rng.choice([0, 0, 0, 1, 3000])),
                                ("size", rng.choice([100, 256, 300, 1000, 1024, 5000])),
                                ("local", rng.choice(["true", "false"]))]:
                sql = sql.replace("{" + name + "}", str(value))
            result.append(sql)
    return result


def outcomes(session, enabled, middle):
    """Run the statements, and return what each of them did."""
    queued = [session.put(sql.replace("{enabled}", enabled), must=True) for sql in SETUP]
    queued += [session.put(sql) for sql in middle + END]
    session.sync()
    return [(o.sql, o.sqlstate, o.rows if not o.sql.startswith("EXPLAIN") else []) for o in queued[len(SETUP):]]
