--
-- Custom Scan (TempFlush): which tables it writes, and when.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
SET temp_buffers = '64MB';
\i sql/include/cheap_workers.sql
-- the changes between the queries have no workers
SET temp_parallel.run_ahead = off;
-- With costly rows a parallel plan is the cheapest, whatever its flush costs.
SET cpu_tuple_cost = 100;
\i sql/include/row_a_page.sql
\i sql/include/explain_flush.sql

-- All dirty pages of the table that the workers read are written, and no page of
-- another table.
UPDATE t SET id = id WHERE id <= 10;
UPDATE other SET id = id WHERE id <= 20;
SELECT pg_dirty_local_buffers() AS dirty \gset
SET temp_parallel.write_temp_page_cost = 1;
SELECT (temp_parallel_flush_cost('t')).flush_cost AS t, (temp_parallel_flush_cost('other')).flush_cost AS other \gset dirty_
SELECT :dirty_t >= 10 AS t, :dirty_other >= 20 AS other,
       :dirty_t + :dirty_other = :dirty AS both;
SET temp_parallel.write_temp_page_cost = 0;
SELECT regexp_replace(line, 'written=' || :dirty_t || '$', 'written=(all dirty pages of t)')
  FROM explain_analyze('SELECT count(*), sum(id) FROM t') line;
SELECT pg_dirty_local_buffers() = :dirty_other AS other_is_still_dirty;

-- A second query has nothing to write.
SELECT explain_analyze('SELECT count(*), sum(id) FROM t');

-- A cursor, and a loop that fetches only some rows, do not enter parallel mode,
-- and so write nothing even if the plan has a flush node.
UPDATE t SET id = id WHERE id <= 10;
SELECT pg_dirty_local_buffers() AS dirty \gset
BEGIN;
DECLARE c CURSOR FOR SELECT count(*), sum(id) FROM t;
FETCH ALL FROM c;
COMMIT;
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT id FROM t LOOP
		EXIT;
	END LOOP;
END $$;
-- Nor does EXPLAIN without ANALYZE.
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM t;
SELECT pg_dirty_local_buffers() = :dirty AS nothing_written;

-- Nor does a statement whose parallel plan reads no temporary table.
CREATE TABLE permanent AS SELECT * FROM t;
ANALYZE permanent;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM permanent;
SELECT count(*), sum(id) FROM permanent;
SELECT pg_dirty_local_buffers() = :dirty AS nothing_written;
DROP TABLE permanent;

-- A Gather that is rescanned flushes and launches workers again. (The subquery is
-- correlated only above its Gather.)
CREATE TEMP TABLE outside AS SELECT g AS x FROM generate_series(1, 3) g;
ANALYZE outside;
SET enable_material = off;
SET enable_memoize = off;
SELECT explain_analyze('SELECT x, n FROM outside, LATERAL (SELECT count(*) AS n FROM t HAVING count(*) > x) s');
SELECT x, n FROM outside, LATERAL (SELECT count(*) AS n FROM t HAVING count(*) > x) s ORDER BY x;

DROP FUNCTION explain_analyze, flush_plan;
DROP TABLE t, other, outside;
DROP EXTENSION temp_parallel;
