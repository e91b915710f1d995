--
-- Volatile functions and samples, of which each process of a parallel plan would have another
-- result, and functions that workers cannot run, which core overlooks. Core runs the same
-- queries of permanent tables in workers, with other answers.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/cheap_workers.sql
\i sql/include/explain.sql
SET enable_nestloop = off;
SET enable_mergejoin = off;
CREATE EXTENSION temp_parallel;
\i sql/include/launched.sql

CREATE TEMP TABLE big AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 6000) g;
CREATE TEMP TABLE small WITH (parallel_workers = 0) AS SELECT g AS k FROM generate_series(0, 9) g;
CREATE TEMP TABLE results (k int, u text);
ANALYZE big, small, results;

--
-- The inner side of a join is read by each process, but is to have one value for each row.
--
SELECT pg_temp.launched() AS launched;
SELECT count(DISTINCT u) FROM big JOIN (SELECT k, gen_random_uuid() AS u FROM small) s USING (k);
SELECT count(DISTINCT t) FROM big JOIN (VALUES (1, clock_timestamp())) v (k, t) USING (k);
-- a condition that the planner moves to the table: all rows of a k, or none
SELECT count(*) FROM (SELECT k, count(*) FROM big JOIN (SELECT k FROM small WHERE gen_random_uuid()::text > k::text) s USING (k)
	GROUP BY k HAVING count(*) <> 600) x;
SELECT count(*) FROM (SELECT k, count(*) FROM big JOIN small TABLESAMPLE BERNOULLI (50) USING (k)
	GROUP BY k HAVING count(*) <> 600) x;
-- of a user, as of the server
CREATE FUNCTION pg_temp.mine(int) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN gen_random_uuid(); END';
SELECT count(DISTINCT u) FROM big JOIN (SELECT k, pg_temp.mine(k) AS u FROM small) s USING (k);
-- a permanent table
CREATE TABLE small_p WITH (parallel_workers = 0) AS SELECT k FROM small;
SELECT count(DISTINCT u) FROM big JOIN (SELECT k, gen_random_uuid() AS u FROM small_p) s USING (k);
DROP TABLE small_p;
-- Subqueries, too.
SELECT count(*) FROM (SELECT k, count(*) FROM big WHERE k NOT IN (SELECT k FROM small TABLESAMPLE BERNOULLI (50))
	GROUP BY k HAVING count(*) <> 600) x;
SELECT count(*) FROM (SELECT k, count(*) FROM big WHERE k::text NOT IN (SELECT left(gen_random_uuid()::text, 1) FROM small)
	GROUP BY k HAVING count(*) <> 600) x;
-- a sequence, which another session may change meanwhile
CREATE SEQUENCE counter;
SET min_parallel_table_scan_size = '16kB';
SELECT count(*) FROM big WHERE k NOT IN (SELECT last_value FROM counter);
SET min_parallel_table_scan_size = 0;
DROP SEQUENCE counter;
SELECT pg_temp.launched() AS launched;
-- EXPLAIN says why.
SELECT line FROM pg_temp.explain('SELECT count(*) FROM big WHERE k NOT IN (SELECT k FROM small TABLESAMPLE BERNOULLI (50))') line
 WHERE line ~ 'No Workers';
-- The plan for workers has a nested loop here, of which the leader would read the inner side
-- again for each row.
SET enable_nestloop = on;
SELECT count(DISTINCT u) FROM big CROSS JOIN (VALUES (gen_random_uuid()), (gen_random_uuid())) v (u);
SELECT count(DISTINCT u) FROM big LEFT JOIN (SELECT gen_random_uuid() AS u) s ON id > 5;
SET enable_nestloop = off;
SELECT pg_temp.launched() >= 0 AS counted;

--
-- Statements that workers find rows for, of which the server would store such values.
--
INSERT INTO results SELECT k, u FROM big JOIN (SELECT k, gen_random_uuid() AS u FROM small) s USING (k) WHERE id % 3 = 0;
SELECT count(*), count(DISTINCT u) FROM results;
SELECT pg_temp.explain('INSERT INTO results SELECT k, u FROM big JOIN (SELECT k, gen_random_uuid() AS u FROM small) s USING (k) WHERE id % 3 = 0');
UPDATE results SET u = s.u FROM (SELECT k, gen_random_uuid() AS u FROM small) s WHERE s.k = results.k;
SELECT count(*), count(DISTINCT u) FROM results;
DELETE FROM results WHERE k NOT IN (SELECT k FROM small TABLESAMPLE BERNOULLI (50));
SELECT count(*) FROM (SELECT k, count(*) FROM results GROUP BY k HAVING count(*) <> 200) x;
CREATE TEMP TABLE made AS SELECT k, u FROM big JOIN (SELECT k, gen_random_uuid() AS u FROM small) s USING (k);
SELECT count(*), count(DISTINCT u) FROM made;
DO $$
DECLARE
	n int;
BEGIN
	SELECT count(DISTINCT u) INTO n FROM big JOIN (SELECT k, gen_random_uuid() AS u FROM small) s USING (k);
	RAISE NOTICE '%', n;
END $$;
DROP TABLE made;

SELECT pg_temp.launched() AS launched;

--
-- Core runs a query without workers if its rows are fetched in portions. So those of permanent
-- tables must not vary either: there is one sample, and so one number for all groups.
--
CREATE TABLE big_p AS TABLE big;
-- (so many rows that no sample is empty)
CREATE TABLE small_p WITH (parallel_workers = 0) AS SELECT g AS k FROM generate_series(0, 39) g;
ANALYZE big_p, small_p;
SET enable_nestloop = on;
SET cpu_operator_cost = 0.5;
\set numbers 'SELECT n, count(*) FROM (SELECT b.id, count(*) AS n FROM big_p b, small_p TABLESAMPLE BERNOULLI (50) WHERE b.id >= (SELECT min(id) FROM big) GROUP BY b.id) g GROUP BY n'
BEGIN;
DECLARE c CURSOR FOR :numbers;
MOVE ALL FROM c;
SELECT line FROM pg_temp.explain($$DECLARE c CURSOR FOR $$ || :'numbers') line WHERE line ~ 'Not Run Ahead';
COMMIT;
-- core asks the planner for all rows, and the executor for some
CREATE FUNCTION pg_temp.numbers() RETURNS SETOF record LANGUAGE sql VOLATILE AS :'numbers';
SELECT count(*) FROM (SELECT pg_temp.numbers() OFFSET 0) f;
RESET cpu_operator_cost;
SET enable_nestloop = off;
DROP TABLE big_p, small_p;
SELECT pg_temp.launched() >= 0 AS counted;

--
-- What is evaluated once for each row, by whichever process, has workers.
--
SELECT pg_temp.launched() AS launched;
SELECT count(DISTINCT gen_random_uuid()) FROM big;
SELECT pg_temp.launched() AS launched;
SELECT count(*) FROM big WHERE gen_random_uuid()::text > '';
SELECT pg_temp.launched() AS launched;
-- workers share the inner side
CREATE TEMP TABLE large AS SELECT g AS id FROM generate_series(1, 6000) g;
ANALYZE large;
SELECT count(DISTINCT u) FROM big JOIN (SELECT id, gen_random_uuid() AS u FROM large) s USING (id);
SELECT pg_temp.launched() AS launched;
DROP TABLE large;
-- the same sample in each process
SELECT count(*) FROM (SELECT k, count(*) FROM big JOIN small TABLESAMPLE BERNOULLI (50) REPEATABLE (7) USING (k)
	GROUP BY k HAVING count(*) <> 600) x;
SELECT pg_temp.launched() AS launched;

--
-- Functions that are not parallel safe, where core does not look. Without workers, each succeeds.
--
CREATE FUNCTION pg_temp.reads_small() RETURNS float8 LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS
$$ BEGIN RETURN (SELECT count(*) FROM small); END $$;
SELECT count(*) > 0 AS answered FROM big JOIN small TABLESAMPLE BERNOULLI (99) REPEATABLE (pg_temp.reads_small()) USING (k);
-- a default argument that writes
CREATE TEMP SEQUENCE s;
CREATE FUNCTION pg_temp.counts(i int, n bigint DEFAULT nextval('s')) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
$$ BEGIN RETURN i + 0 * n; END $$;
SELECT sum(pg_temp.counts(id)) FROM big;
SELECT count(*) FROM big WHERE pg_temp.counts(id) > 100;
INSERT INTO results SELECT pg_temp.counts(id), '' FROM big WHERE k = 1;
SELECT last_value >= 12600 AS counted FROM s;
-- one that is restricted
CREATE FUNCTION pg_temp.with_small(i int, n float8 DEFAULT pg_temp.reads_small()) RETURNS float8
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$ BEGIN RETURN i * n; END $$;
SELECT count(*) FROM big WHERE pg_temp.with_small(id) > 100;
-- to what a worker would reset a setting
SELECT count(*) FROM big WHERE k::text NOT IN (SELECT reset_val FROM pg_settings WHERE name = 'work_mem');
SELECT pg_temp.launched() AS launched;
-- the domain of a column that MERGE leaves out
CREATE FUNCTION pg_temp.notes(int) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	PERFORM nextval('s');
	RETURN true;
END $$;
CREATE DOMAIN noted AS int CHECK (pg_temp.notes(VALUE));
CREATE TEMP TABLE target (k int, n noted);
SELECT pg_temp.explain('MERGE INTO target t USING big ON big.k = t.k WHEN NOT MATCHED THEN INSERT (k) VALUES (big.k)');
DROP TABLE target;
DROP DOMAIN noted;
-- values that are computed after the rows have been sorted
CREATE FUNCTION pg_temp.clock(i int, t text DEFAULT clock_timestamp()::text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT t';
SELECT pg_temp.explain('INSERT INTO results SELECT id, pg_temp.clock(id) FROM big WHERE k = 1 ORDER BY id');

DROP TABLE big, small, results;
DROP EXTENSION temp_parallel;
