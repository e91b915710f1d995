--
-- temp_buffers may be set until a temporary table's page is in the pool, as without the
-- module, whatever statements were run; each of these could fill a table, so the pool was made
-- ready to be shared. If that settled its size, SET would fail where it works without the module;
-- if SET changed the size of a pool that is in use, rows would be lost.
--
CREATE EXTENSION temp_parallel;
CREATE FUNCTION pg_temp_rows(n int) RETURNS SETOF int LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT generate_series(1, n); END';
-- 1500 pages, more than the default pool holds, which workers then read.
\set fill 'SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0; INSERT INTO t SELECT i, repeat(''x'', 1000) FROM generate_series(1, 10500) i; SELECT count(*), sum(id) FROM t; SELECT pg_allocated_local_buffers() AS buffers, pages_shared > 0 AS shared, not_shared FROM temp_parallel_stats()'

-- A larger and a smaller pool than the default one of 1024 buffers, and too small to be shared.
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
UPDATE t SET v = 'x';
SET temp_buffers = 1400;
DELETE FROM t;
:fill;
SET temp_buffers = 1600;

\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
UPDATE t SET v = 'x';
SET temp_buffers = 1400;
DELETE FROM t;
SET temp_buffers = 512;
:fill;
SET temp_buffers = 1024;

\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
UPDATE t SET v = 'x';
SET temp_buffers = 100;
UPDATE t SET v = 'x';
SET temp_buffers = 1200;
:fill;

\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
UPDATE t SET v = 'x';
SET temp_buffers = 100;
:fill;

-- Rolled back, reset, and set for the time of a function and by one.
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
BEGIN;
SET temp_buffers = 1400;
UPDATE t SET v = 'x';
ROLLBACK;
SHOW temp_buffers;
:fill;

\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
UPDATE t SET v = 'x';
BEGIN;
SET LOCAL temp_buffers = 1400;
SAVEPOINT a;
SET LOCAL temp_buffers = 300;
UPDATE t SET v = 'x';
ROLLBACK TO a;
SHOW temp_buffers;
COMMIT;
SHOW temp_buffers;
SET temp_buffers = 400;
RESET temp_buffers;
:fill;

\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
CREATE FUNCTION pg_temp.in_function() RETURNS void LANGUAGE plpgsql SET temp_buffers = 300 AS 'BEGIN UPDATE t SET v = ''x''; END';
SELECT FROM pg_temp.in_function();
:fill;
SELECT FROM pg_temp.in_function();

\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
-- in the middle of the statement that fills the table, before its first page
INSERT INTO t SELECT i, repeat('x', 1000) || CASE i WHEN 1 THEN set_config('temp_buffers', '1400', false) ELSE '' END
	FROM generate_series(1, 10500) i;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*), sum(id) FROM t;
SELECT pg_allocated_local_buffers() AS buffers, pages_shared > 0 AS shared, not_shared FROM temp_parallel_stats();

-- Statements that fill nothing.
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE n AS SELECT 1 AS a WITH NO DATA;
SET temp_buffers = 300;
SELECT 1 AS a INTO TEMP s WHERE false;
SET temp_buffers = 301;
CREATE TEMP TABLE IF NOT EXISTS n AS SELECT 1 AS a;
SET temp_buffers = 302;
CREATE TEMP TABLE n AS SELECT 1 AS a;
SET temp_buffers = 303;
CREATE TEMP TABLE e AS SELECT 1 / 0 AS a;
SET temp_buffers = 304;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) CREATE TEMP TABLE e AS SELECT 1 AS a WITH NO DATA;
SET temp_buffers = 305;
PREPARE p(int) AS SELECT generate_series(1, $1) AS a;
CREATE TEMP TABLE e AS EXECUTE p(10) WITH NO DATA;
SET temp_buffers = 306;
COPY n FROM '/nonexistent/file';
SET temp_buffers = 307;
COPY n FROM PROGRAM 'exit 3';
SET temp_buffers = 308;
COPY n (missing) FROM PROGRAM 'echo 1';
SET temp_buffers = 309;
COPY n FROM STDIN;
not a number
\.
SET temp_buffers = 310;
COPY n FROM STDIN;
\.
SET temp_buffers = 311;
UPDATE n SET a = 1;
SET temp_buffers = 312;
DELETE FROM n;
SET temp_buffers = 313;
DO 'BEGIN EXECUTE ''EXPLAIN (ANALYZE) DELETE FROM n''; END';
SET temp_buffers = 314;
INSERT INTO n SELECT generate_series(1, 0);
SET temp_buffers = 315;
INSERT INTO n VALUES ('not a number');
SET temp_buffers = 316;
PREPARE i(int) AS INSERT INTO n SELECT generate_series(1, $1);
EXECUTE i(0);
SET temp_buffers = 317;
WITH d AS (DELETE FROM n RETURNING a) SELECT count(*) FROM d;
SET temp_buffers = 318;
DO 'BEGIN INSERT INTO n SELECT pg_temp_rows(0); UPDATE n SET a = 1; END';
SET temp_buffers = 319;
BEGIN;
SAVEPOINT a;
INSERT INTO n SELECT 1 / 0;
ROLLBACK TO a;
COMMIT;
SET temp_buffers = 320;
SELECT count(*) FROM n;
SET temp_buffers = 321;
VACUUM n;
ANALYZE n;
TRUNCATE n;
SET temp_buffers = 322;
SHOW temp_buffers;

-- Statements after which the pool is in use, also if they fail in the end.
INSERT INTO n VALUES (1);
SET temp_buffers = 323;
SHOW temp_buffers;
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t AS SELECT 1 / (2 - i) FROM generate_series(1, 3) i;
SET temp_buffers = 323;
SELECT pg_allocated_local_buffers() AS buffers;
\c -
LOAD 'temp_parallel';
DO 'BEGIN EXECUTE ''EXPLAIN (ANALYZE) CREATE TEMP TABLE t AS SELECT 1 AS a''; END';
SET temp_buffers = 323;
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (a int);
BEGIN;
INSERT INTO t SELECT generate_series(1, 1000);
ROLLBACK;
SET temp_buffers = 323;
-- the pages have been dropped, but the pool was in use
TRUNCATE t;
SET temp_buffers = 323;
SELECT buffers_evicted FROM pg_evict_local_buffers();
SET temp_buffers = 323;

-- A statement that writes no temporary table leaves the pool alone: it would have no
-- descriptors without the module.
\c -
LOAD 'temp_parallel';
CREATE TABLE permanent AS SELECT g AS a FROM generate_series(1, 3000) g;
ANALYZE permanent;
CREATE TEMP TABLE n (a int);
UPDATE permanent SET a = a WHERE a < 5;
COPY permanent FROM stdin;
\.
SELECT count(*) AS descriptors FROM pg_local_buffers;

-- A function with a SET clause, in workers: as in the leader, it fails only if a local
-- buffer has been used. The empty temporary table lets workers have a pool.
CREATE FUNCTION pg_temp_with_setting(int) RETURNS int LANGUAGE sql STABLE PARALLEL SAFE SET temp_buffers = 6000
	AS 'SELECT $1';
\i sql/include/cheap_workers.sql
SELECT sum(pg_temp_with_setting(a)) FROM (SELECT a FROM permanent UNION ALL SELECT a FROM n) q;
SELECT pages_flushed, workers_launched > 0 AS launched FROM temp_parallel_stats();
INSERT INTO n VALUES (1);
\set VERBOSITY terse
SELECT sum(pg_temp_with_setting(a)) FROM (SELECT a FROM permanent UNION ALL SELECT a FROM n) q;
\set VERBOSITY default
DROP FUNCTION pg_temp_with_setting;
DROP TABLE permanent;
DROP FUNCTION pg_temp_rows;
DROP EXTENSION temp_parallel;
