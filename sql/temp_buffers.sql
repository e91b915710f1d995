--
-- temp_buffers may be set until a statement that may fill a temporary table, as that makes
-- the pool ready to be shared. Without the module, until one has. If other statements settled the
-- size of the pool, SET would fail where it works without the module.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE n AS SELECT 1 AS a WITH NO DATA;
SET temp_buffers = 301;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) CREATE TEMP TABLE e AS SELECT 1 AS a WITH NO DATA;
SET temp_buffers = 302;
EXPLAIN (COSTS OFF) INSERT INTO n VALUES (1);
SET temp_buffers = 303;
UPDATE n SET a = 1;
SET temp_buffers = 304;
DELETE FROM n;
SET temp_buffers = 305;
TRUNCATE n;
VACUUM n;
ANALYZE n;
SET temp_buffers = 306;
SELECT count(*) FROM n;
SET temp_buffers = 307;
SHOW temp_buffers;
-- These could fill a table.
INSERT INTO n SELECT 1 WHERE false;
SET temp_buffers = 308;
SHOW temp_buffers;
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE n AS SELECT 1 AS a WHERE false;
SET temp_buffers = 308;
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE n (a int);
COPY n FROM stdin;
\.
SET temp_buffers = 308;

-- The pool is as large as the setting when it was made ready: more pages than the default
-- pool of 1024 buffers holds.
\set fill 'SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0; INSERT INTO t SELECT i, repeat(''x'', 1000) FROM generate_series(1, 10500) i; SELECT count(*), sum(id) FROM t; SELECT pg_allocated_local_buffers() AS buffers, pages_shared > 0 OR not_shared = ''addresses have 32 bits'' AS shared, nullif(not_shared, ''addresses have 32 bits'') AS not_shared FROM temp_parallel_stats()'
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
SET temp_buffers = 1400;
:fill;
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
SET temp_buffers = 100;
:fill;
-- A larger one for the time of a transaction stays, as without the module.
\c -
LOAD 'temp_parallel';
CREATE TEMP TABLE t (id int, v text);
BEGIN;
SET temp_buffers = 1400;
INSERT INTO t VALUES (0, '');
ROLLBACK;
SHOW temp_buffers;
:fill;

-- Bytes of a pool of 4 GB and 2 MB, counted with 32 bits, are 2 MB: buffers beyond that would
-- be in other memory.
\c -
LOAD 'temp_parallel';
SET temp_buffers = '4098MB';
CREATE TEMP TABLE t AS SELECT i AS id, repeat('x', 1000) AS v FROM generate_series(1, 3000) i;
SELECT count(*), sum(id), sum(length(v)) FROM t;

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
EXPLAIN (COSTS OFF) CREATE TEMP TABLE not_created AS SELECT 1;
SELECT count(*) AS descriptors FROM pg_local_buffers;

-- A function with a SET clause, in workers: it fails as in the leader.
CREATE FUNCTION pg_temp_with_setting(int) RETURNS int LANGUAGE sql STABLE PARALLEL SAFE SET temp_buffers = 6000
	AS 'SELECT $1';
\i sql/include/cheap_workers.sql
INSERT INTO n VALUES (1);
\set VERBOSITY terse
SELECT sum(pg_temp_with_setting(a)) FROM (SELECT a FROM permanent UNION ALL SELECT a FROM n) q;
\set VERBOSITY default
-- What a worker shows is the session's setting, not the size of its own pool.
SELECT DISTINCT current_setting('temp_buffers') FROM (SELECT a FROM permanent UNION ALL SELECT a FROM n) q;
SELECT workers_launched > 0 AS launched FROM temp_parallel_stats();
DROP FUNCTION pg_temp_with_setting;
DROP TABLE permanent;
DROP EXTENSION temp_parallel;
