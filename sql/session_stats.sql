--
-- temp_parallel_stats(): the session's counters.
--
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';
SET temp_buffers = '8MB';
\i sql/include/cheap_workers.sql

CREATE TEMP TABLE big (id int, pad text);
INSERT INTO big SELECT i, repeat('x', 107) FROM generate_series(1, 5800) i;
-- a hundred pages, whatever data is aligned to, all dirty, two workers
SELECT buffers_skipped FROM pg_evict_local_buffers('big');
SELECT pg_read_temp_relation('big'), pg_temp_buffers_dirty('big');
SELECT * FROM temp_parallel_stats() \gset s_
SELECT count(*) FROM big;
SELECT flushes - :s_flushes AS flushes, pages_flushed - :s_pages_flushed AS pages,
	   flush_time > :s_flush_time AS time,
	   workers_launched - :s_workers_launched AS workers
FROM temp_parallel_stats();
-- each launch is counted
SELECT * FROM temp_parallel_stats() \gset s_
SET enable_material = off;
SELECT * FROM (SELECT count(*) FROM big) s RIGHT JOIN (VALUES (1), (2), (3)) v(x) ON true;
RESET enable_material;
SELECT flushes - :s_flushes AS flushes, pages_flushed - :s_pages_flushed AS pages,
	   workers_launched - :s_workers_launched AS workers
FROM temp_parallel_stats();
-- also those of statements that fail, and immediately: an error in a worker; an
-- error in the leader, after three launches
SELECT * FROM temp_parallel_stats() \gset s_
\set SHOW_CONTEXT never
SELECT count(1 / (id - 5000)) FROM big;
\set SHOW_CONTEXT errors
SELECT flushes - :s_flushes AS flushes, workers_launched - :s_workers_launched AS workers
FROM temp_parallel_stats();
SELECT * FROM temp_parallel_stats() \gset s_
SET enable_material = off;
SELECT *, 1 / x FROM (SELECT count(*) FROM big) s RIGHT JOIN (VALUES (1), (2), (0)) v(x) ON true;
RESET enable_material;
SELECT flushes - :s_flushes AS flushes, workers_launched - :s_workers_launched AS workers
FROM temp_parallel_stats();
-- hint bits that the leader has not kept: it runs a parallel plan alone, over
-- rows that nobody has read before, on pages that were written before the flush
TRUNCATE big;
INSERT INTO big SELECT i, repeat('x', 107) FROM generate_series(1, 5800) i;
ANALYZE big;
TRUNCATE big;
INSERT INTO big SELECT i, repeat('x', 107) FROM generate_series(1, 5800) i;
SELECT buffers_skipped FROM pg_evict_local_buffers('big');
SELECT * FROM temp_parallel_stats() \gset s_
SET max_parallel_workers = 0;
SELECT count(*) FROM big;
RESET max_parallel_workers;
SELECT flushes - :s_flushes AS flushes,
	   workers_launched - :s_workers_launched AS workers,
	   hints_dropped - :s_hints_dropped > 0 AS hints
FROM temp_parallel_stats();
-- plans that the second look leaves to the leader
SET plan_cache_mode = force_generic_plan;
PREPARE counted AS SELECT count(*) FROM big;
EXECUTE counted;
SELECT pg_temp_buffers_dirty('big') >= 100 AS dirty;
SET temp_parallel.write_temp_page_cost = 1000;
SET temp_parallel.share_local_buffers = off;
SELECT * FROM temp_parallel_stats() \gset s_
EXPLAIN (COSTS OFF) EXECUTE counted;
EXECUTE counted;
SELECT flushes - :s_flushes AS flushes,
	   plans_left_to_leader - :s_plans_left_to_leader AS left_to_leader
FROM temp_parallel_stats();

-- All counters start again at zero, also in a transaction that is rolled back; what is not a
-- counter stays.
SELECT processors > 0 AS processors, flushes > 0 AS flushed FROM temp_parallel_stats();
BEGIN;
SELECT temp_parallel_stats_reset();
ROLLBACK;
SELECT flushes, pages_flushed, flush_time, workers_launched, hints_dropped,
	   plans_left_to_leader, serial_by_flush, pages_shared, processors > 0 AS processors
FROM temp_parallel_stats();
RESET temp_parallel.write_temp_page_cost;
SELECT count(*) FROM big;
SELECT flushes, workers_launched FROM temp_parallel_stats();
-- for every role, as the counters are the session's own
CREATE ROLE regress_temp_parallel_reset;
SET ROLE regress_temp_parallel_reset;
SELECT temp_parallel_stats_reset();
RESET ROLE;
DROP ROLE regress_temp_parallel_reset;

DROP TABLE big;
DROP EXTENSION temp_parallel;
