--
-- INSERT ... SELECT from a temporary table into a permanent one, and default values that
-- are not parallel safe: workers run the SELECT, or it is refused and EXPLAIN says why;
-- in either case the target is afterwards as without the module, and so is what is
-- returned. If something here differs, rows are wrong or lost, or a statement fails that
-- did not.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
CREATE EXTENSION temp_parallel;
SET compute_query_id = off;	-- EXPLAIN VERBOSE prints it
\i sql/include/changes.sql
\i sql/include/nodes.sql
\set run 'SELECT * FROM pg_temp.changes'

CREATE TABLE final_p (id int PRIMARY KEY, k int CHECK (k < 100), s text) WITH (autovacuum_enabled = off);
INSERT INTO final_p SELECT i, i % 10, 'p' || i FROM generate_series(1, 1000) i;
ANALYZE final_p;
CREATE TEMP TABLE t (id int, k int, s text);
INSERT INTO t SELECT i, i % 7, 't' || i FROM generate_series(500, 2000) i;
ANALYZE t;

--
-- Permanent targets
--
EXPLAIN (COSTS OFF) INSERT INTO final_p SELECT * FROM t WHERE id > 1000;
:run ('INSERT INTO final_p SELECT * FROM t WHERE id > 1000 RETURNING id, s', 'TABLE final_p');
:run ('INSERT INTO final_p SELECT t.id, p.k, t.s FROM t JOIN final_p p ON p.id = t.id - 1000 WHERE t.id > 1000', 'TABLE final_p');
:run ('INSERT INTO final_p SELECT * FROM t', 'TABLE final_p');
:run ('INSERT INTO final_p SELECT * FROM t ON CONFLICT DO NOTHING RETURNING id', 'TABLE final_p');
:run ('INSERT INTO final_p SELECT * FROM t ORDER BY id, k, s ON CONFLICT (id) DO UPDATE SET s = excluded.s || final_p.s RETURNING id, s', 'TABLE final_p');
:run ('INSERT INTO final_p SELECT id, k + 95, s FROM t WHERE id > 1000', 'TABLE final_p');
-- a statement without temporary tables is left alone
SELECT pg_temp.nodes('INSERT INTO final_p SELECT id + 1000, k, s FROM final_p');
:run ('INSERT INTO final_p SELECT id + 1000, k, s FROM final_p', 'TABLE final_p');
-- a permanent table with a temporary child is one with a temporary table
CREATE TEMP TABLE final_child () INHERITS (final_p);
INSERT INTO final_child SELECT id + 3000, k, s FROM t;
ANALYZE final_child;
:run ('INSERT INTO final_p SELECT id + 10000, k, s FROM final_p', 'SELECT tableoid::regclass, * FROM final_p');
DROP TABLE final_child;

-- partitions, unlogged tables, foreign keys, triggers
CREATE TABLE final_parts (id int, k int, s text) PARTITION BY LIST (k);
CREATE TABLE final_parts_0 PARTITION OF final_parts FOR VALUES IN (0, 1, 2);
CREATE UNLOGGED TABLE final_parts_1 (s text, gone int, k int, id int REFERENCES final_p);
ALTER TABLE final_parts_1 DROP COLUMN gone;
ALTER TABLE final_parts ATTACH PARTITION final_parts_1 DEFAULT;
CREATE TABLE final_log (what text, id int);
CREATE FUNCTION final_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO final_log VALUES (TG_OP, NEW.id);
	NEW.s := NEW.s || '!';
	RETURN CASE WHEN NEW.id % 11 = 0 THEN NULL ELSE NEW END;
END $$;
\set parts 'SELECT tableoid::regclass::text, id, k, s FROM final_parts UNION ALL SELECT what, id, 0, NULL FROM final_log'
:run ('INSERT INTO final_parts SELECT * FROM t WHERE id < 900 RETURNING tableoid::regclass, id', :'parts');
-- no such row in the table that is referred to
SELECT workers, answers FROM pg_temp.changes('INSERT INTO final_parts SELECT * FROM t WHERE id = 1001', :'parts');
CREATE TRIGGER n BEFORE INSERT ON final_parts FOR EACH ROW EXECUTE FUNCTION final_note();
:run ('INSERT INTO final_parts SELECT * FROM t WHERE id < 900 RETURNING tableoid::regclass, id', :'parts');

-- isolation levels, READ ONLY, functions, WITH
BEGIN ISOLATION LEVEL SERIALIZABLE;
:run ('INSERT INTO final_p SELECT * FROM t WHERE id > 1000', 'TABLE final_p');
COMMIT;
BEGIN READ ONLY;
INSERT INTO final_p SELECT * FROM t WHERE id > 1000;
ROLLBACK;
:run ('WITH g AS MATERIALIZED (SELECT k, max(id) AS id FROM t GROUP BY k) INSERT INTO final_p SELECT id + 2000, k, NULL FROM g', 'TABLE final_p');
:run ('WITH d AS (DELETE FROM t WHERE k = 1 RETURNING *) INSERT INTO final_p SELECT id + 2000, k, s FROM d', 'TABLE final_p');

--
-- Defaults that are not parallel safe
--
CREATE SEQUENCE final_seq;
CREATE TABLE final_serial (id serial, t_id int, n int GENERATED ALWAYS AS IDENTITY, at timestamptz DEFAULT clock_timestamp(), q bigint DEFAULT nextval('final_seq') * 10);
CREATE TEMP TABLE numbered (LIKE final_serial INCLUDING ALL);
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO numbered (t_id) SELECT id FROM t;
SELECT pg_temp.nodes('INSERT INTO final_serial (t_id) SELECT id FROM t');
-- The numbers are those of the rows in the order in which they are inserted.
CREATE FUNCTION pg_temp.numbers(target text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	EXECUTE format('SELECT count(*) AS n, max(id) - min(id) AS ids, count(DISTINCT n) AS numbers, (max(q) - min(q)) / 10 AS q, sum(t_id) AS t, count(*) FILTER (WHERE at > now()) AS later FROM %s', target) INTO r;
	RETURN r;
END $$;
:run ('INSERT INTO numbered (t_id) SELECT id FROM t', 'SELECT pg_temp.numbers(''numbered'')');
:run ('INSERT INTO final_serial (t_id) SELECT id FROM t', 'SELECT pg_temp.numbers(''final_serial'')');
INSERT INTO final_serial (t_id) SELECT id FROM t ORDER BY id DESC;
SELECT count(*), count(*) FILTER (WHERE t_id < before AND n > n_before AND q > q_before)
	FROM (SELECT *, lag(t_id) OVER w AS before, lag(n) OVER w AS n_before, lag(q) OVER w AS q_before FROM final_serial WINDOW w AS (ORDER BY id)) s;
TRUNCATE final_serial;
:run ('INSERT INTO numbered (t_id) SELECT k FROM t GROUP BY k', 'SELECT pg_temp.numbers(''numbered'')');
:run ('INSERT INTO numbered (t_id) SELECT k FROM t ORDER BY id DESC LIMIT 100 OFFSET 5', 'SELECT pg_temp.numbers(''numbered'')');
:run ('INSERT INTO numbered (t_id) SELECT id FROM t UNION SELECT id FROM final_p', 'SELECT pg_temp.numbers(''numbered'')');
:run ('INSERT INTO numbered (id, t_id, q) SELECT k, id, 0 FROM t', 'SELECT id, t_id, q FROM numbered');
:run ('INSERT INTO numbered (n, t_id) OVERRIDING SYSTEM VALUE SELECT id, id FROM t', 'SELECT n, t_id FROM numbered');
-- a volatile function that the query itself calls is refused, a default is called as rows are inserted
CREATE TEMP TABLE counted (id int, before bigint);
CREATE FUNCTION pg_temp.rows() RETURNS bigint LANGUAGE sql SET max_parallel_workers_per_gather = 0 AS 'SELECT count(*) FROM counted';
ALTER TABLE counted ALTER before SET DEFAULT pg_temp.rows();
:run ('INSERT INTO counted (id) SELECT id FROM t', 'SELECT min(before), max(before), count(DISTINCT before) FROM counted');
:run ('INSERT INTO counted SELECT id, pg_temp.rows() FROM t', 'SELECT min(before), max(before), count(DISTINCT before) FROM counted');
-- a stable one that looks at what a volatile one does
CREATE TEMP TABLE looked_at (n serial, id int, before bigint);
CREATE FUNCTION pg_temp.numbered_so_far() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS
	$$ BEGIN RETURN (SELECT last_value FROM looked_at_n_seq); END $$;
ALTER TABLE looked_at ALTER before SET DEFAULT pg_temp.numbered_so_far();
:run ('INSERT INTO looked_at (id) SELECT id FROM t', 'SELECT count(DISTINCT before), max(n - before) FROM looked_at');
-- a domain of which each value is checked
CREATE DOMAIN pg_temp.checked AS int DEFAULT 5 CHECK (VALUE < (now() > '1900-01-01')::int + 5);
CREATE TEMP TABLE domains (id int, d pg_temp.checked);
:run ('INSERT INTO domains (id) SELECT id FROM t', 'TABLE domains');
ALTER TABLE domains ALTER d SET DEFAULT 6;
:run ('INSERT INTO domains (id) SELECT id FROM t', 'TABLE domains');
-- and for one without a default, to which the planner adds NULL
ALTER DOMAIN pg_temp.checked DROP DEFAULT;
ALTER TABLE domains ALTER d DROP DEFAULT;
:run ('INSERT INTO domains (id) SELECT id FROM t', 'TABLE domains');
SELECT pg_temp.nodes('INSERT INTO domains (id) SELECT id FROM t');
:run ('INSERT INTO domains SELECT id FROM t RETURNING id::text::pg_temp.checked', 'TABLE domains');
-- prepared: the plan is made again when a default, its function or a sequence is another one
SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION pg_temp.rows STABLE;
PREPARE fills AS INSERT INTO counted (id) SELECT id FROM t WHERE k = 3;
EXECUTE fills;
CREATE OR REPLACE FUNCTION pg_temp.rows() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT -1::bigint';
EXECUTE fills;
ALTER TABLE counted ALTER before SET DEFAULT -2;
EXECUTE fills;
ALTER TABLE counted ALTER before SET DEFAULT nextval('final_seq') * 0 - 3;
EXECUTE fills;
-- one that is inlined, so that the plan has what it calls
CREATE FUNCTION pg_temp.inner() RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT extract(year FROM now())::bigint * 0 - 4 $$;
CREATE FUNCTION pg_temp.inlined() RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT pg_temp.inner() $$;
ALTER TABLE counted ALTER before SET DEFAULT pg_temp.inlined();
EXECUTE fills;
CREATE OR REPLACE FUNCTION pg_temp.inner() RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT extract(year FROM now())::bigint * 0 - 5 $$;
EXECUTE fills;
SELECT pg_temp.nodes('EXECUTE fills');
SELECT before, count(*) FROM counted WHERE before < 0 GROUP BY before ORDER BY before;
ALTER TABLE counted ALTER before DROP DEFAULT;
SET client_min_messages = warning;
DROP SEQUENCE final_seq CASCADE;
RESET client_min_messages;
EXECUTE fills;
SELECT count(*) FROM counted WHERE before IS NULL;
DEALLOCATE fills;
-- and when a function of an aggregate becomes volatile, or a domain gets a constraint
SELECT workers_launched AS before FROM temp_parallel_stats() \gset
\set launched 'SELECT workers_launched > :before AS any, workers_launched AS before FROM temp_parallel_stats() \\gset \\echo :any'
CREATE TEMP TABLE sums (n bigint);
CREATE FUNCTION pg_temp.add(bigint, bigint) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$ BEGIN RETURN $2; END $$;
CREATE AGGREGATE pg_temp.total(bigint) (sfunc = pg_temp.add, stype = bigint, parallel = restricted, initcond = '0');
SET enable_hashagg = off;
PREPARE sums AS INSERT INTO sums SELECT pg_temp.total(id) FROM t WHERE id % 7 = 0 GROUP BY id;
EXECUTE sums;
:launched
-- not TRUNCATE, for which the plan would be made again, too
DELETE FROM sums;
SELECT workers_launched AS before FROM temp_parallel_stats() \gset
CREATE OR REPLACE FUNCTION pg_temp.add(bigint, bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED SET max_parallel_workers = 0 AS
	$$ BEGIN RETURN (SELECT count(*) FROM sums); END $$;
EXECUTE sums;
:launched
SELECT count(DISTINCT n) FROM sums;
RESET enable_hashagg;
SELECT workers_launched AS before FROM temp_parallel_stats() \gset
CREATE FUNCTION pg_temp.restricted() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN -1; END $$;
CREATE DOMAIN pg_temp.checked_later AS int;
PREPARE casts AS INSERT INTO sums SELECT id::pg_temp.checked_later FROM t;
PREPARE returns AS INSERT INTO sums SELECT id FROM t WHERE id = 1 RETURNING n::int::pg_temp.checked_later;
EXECUTE casts;
:launched
EXECUTE returns;
:launched
ALTER DOMAIN pg_temp.checked_later ADD CHECK (pg_temp.restricted() < VALUE);
EXECUTE casts;
:launched
EXECUTE returns;
:launched
DEALLOCATE ALL;
RESET plan_cache_mode;

DROP TABLE numbered;
DROP TABLE final_parts, final_p, final_log, final_serial;
DROP FUNCTION final_note();
DROP EXTENSION temp_parallel;
