--
-- A pool some of whose buffers were in use before its memory could be shared: their dirty
-- pages are written, the others are shared. And a pool that is too small.
--
\pset format unaligned \pset footer off
SELECT version() ~ '32-bit' AS narrow \gset
\if :narrow
	\echo skipped: no pages are shared where addresses have 32 bits
	\quit
\endif
SET temp_buffers = '12MB';
LOAD 'temp_parallel';
CREATE EXTENSION temp_parallel;
\i sql/include/sharing.sql
SET temp_parallel.share_local_buffers = off;
CREATE TEMP TABLE t AS SELECT i AS id, repeat('x', 500) AS v FROM generate_series(1, 1000) i;
SET temp_parallel.share_local_buffers = on;
INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1001, 3000) i;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(id), sum(length(v)) FROM t');
UPDATE t SET v = v || id;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(id), sum(length(v)) FROM t');
SELECT buffers_evicted > 0 AS evicted FROM pg_evict_local_buffers();
SELECT count(*), sum(id), sum(length(v)) FROM t;

\c -
SET temp_buffers = '1MB';
LOAD 'temp_parallel';
\i sql/include/sharing.sql
CREATE TEMP TABLE t AS SELECT i AS id, repeat('x', 500) AS v FROM generate_series(1, 1000) i;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(id), sum(length(v)) FROM t');

-- A function that the leader calls finds as many free buffers as without sharing, in a pool
-- of the default size.
\c -
LOAD 'temp_parallel';
\i sql/include/sharing.sql
CREATE TEMP TABLE u AS SELECT i AS id, repeat('x', 1000) AS v FROM generate_series(1, 6000) i;
CREATE TEMP TABLE t AS SELECT i AS id, repeat('x', 1000) AS v FROM generate_series(1, 7000) i;
CREATE FUNCTION pg_temp.cursors() RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED AS $$
DECLARE
	c refcursor;
	n bigint;
	s bigint := 0;
BEGIN
	FOR block IN 0 .. 399 LOOP
		c := 'cursor' || block;
		OPEN c FOR EXECUTE format('SELECT id FROM u WHERE ctid = %L', format('(%s,1)', block));
		FETCH c INTO n;
		s := s + n;
	END LOOP;
	FOR block IN 0 .. 399 LOOP
		c := 'cursor' || block;
		CLOSE c;
	END LOOP;
	RETURN s;
END $$;
SELECT * FROM pg_temp.shared('SELECT id, CASE WHEN id = 1001 THEN pg_temp.cursors() END FROM t WHERE id % 1000 = 1');
SELECT pg_temp_buffers_dirty('t') IS NOT NULL AS dirtied;
-- (how many pages are in the pool, and written, depends on how fast workers were)
SELECT * FROM pg_temp.explained('SELECT count(*) FROM t') WHERE explained LIKE '%Shared%';
DROP EXTENSION temp_parallel;
