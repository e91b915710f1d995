--
-- A nested loop that looks rows up in more pages than a worker may have local buffers.
-- The planner assumes that a page that has been read once is in a cache. If the
-- copies of these pages were not counted, the plan would be slower than the one without
-- workers.
--
\pset format unaligned \pset footer off
SET temp_buffers = 100;
LOAD 'temp_parallel';
CREATE EXTENSION temp_parallel;
\i sql/include/cheap_workers.sql
CREATE TEMP TABLE t (id int PRIMARY KEY, k int, pad text);
INSERT INTO t SELECT g, g % 10, repeat('x', 200) FROM generate_series(1, 30000) g;
CREATE TEMP TABLE lookups AS SELECT g * 7919 % 30000 + 1 AS id FROM generate_series(1, 6000) g;
ANALYZE t;
ANALYZE lookups;
-- the cost of reading pages counts, not that of processing rows
SET cpu_tuple_cost = 0.01;
SET parallel_tuple_cost = 0.1;
SET random_page_cost = 1;
SET enable_parallel_hash = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
\set query 'SELECT count(*), sum(t.k) FROM lookups LEFT JOIN t USING (id)'

EXPLAIN (COSTS OFF) :query;
:query;
-- RESET makes temp_buffers larger than t, but not the pool
RESET temp_buffers;
EXPLAIN (COSTS OFF) :query;
-- the leader alone would look up as many
SET enable_hashjoin = off;
EXPLAIN (COSTS OFF) :query;
:query;
-- by a bitmap
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) :query;
RESET enable_hashjoin;
EXPLAIN (COSTS OFF) :query;

DROP TABLE t, lookups;
DROP EXTENSION temp_parallel;
