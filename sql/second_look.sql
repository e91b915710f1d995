--
-- The second look: at execution, a cached plan's flush may cost more than when
-- the plan was made.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
SET temp_buffers = '64MB';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 10;
SET plan_cache_mode = force_generic_plan;
-- Each statement saves little of what the flush costs; for accounts, see account.sql.
SET temp_parallel.write_temp_page_cost = 10;
SET temp_parallel.share_local_buffers = off;

CREATE TEMP TABLE t AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 100000) g;
ANALYZE t;
SELECT pg_flush_local_buffers() > 0 AS clean;

-- Runs q(5). Returns whether workers were launched, and what EXPLAIN prints
-- about it.
CREATE FUNCTION run_q() RETURNS TABLE (workers_launched bool, skipped text, dirty_before int, dirty_after int)
LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	dirty_before := pg_dirty_local_buffers();
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE q(5)' INTO plan;
	dirty_after := pg_dirty_local_buffers();
	plan := plan->0->'Plan'->'Plans'->0;
	workers_launched := (plan->>'Workers Launched')::int > 0;
	skipped := plan->'Plans'->0->>'Flush Skipped';
	RETURN NEXT;
END $$;

-- The plan is made while the pool is clean, and is parallel.
PREPARE q(int) AS SELECT count(*), sum(id) FROM t WHERE k < $1;
EXPLAIN (COSTS OFF) EXECUTE q(5);
SELECT * FROM run_q();
EXECUTE q(5);

-- With every page dirty, the plan with its flush would cost more than the
-- leader alone. So the leader runs it alone, writes nothing, and the result is
-- the same. (From 19 on, its reads may make a page of the visibility map dirty.)
UPDATE t SET id = id;
SELECT workers_launched, skipped, dirty_before > 0 AS dirty, dirty_before <= dirty_after AS nothing_written
  FROM run_q();
EXECUTE q(5);

-- The cached plan is unchanged: with a clean pool, it runs with workers again.
SELECT pg_flush_local_buffers() > 0 AS clean;
SELECT workers_launched, skipped FROM run_q();

-- A flush of a few pages is worth its cost.
INSERT INTO t SELECT g, 1 FROM generate_series(1, 100) g;
SELECT workers_launched, skipped, dirty_before > 0 AS dirty, dirty_after FROM run_q();

-- So is a flush of any number of pages if it costs nothing.
UPDATE t SET id = id;
SET temp_parallel.write_temp_page_cost = 0;
SELECT workers_launched, skipped, dirty_before > 0 AS dirty, dirty_after FROM run_q();
SET temp_parallel.write_temp_page_cost = 500;

-- A statement in a SQL function runs in a memory context that lives until the
-- end of the calling statement. The second look must not leave anything
-- allocated there, whether or not it leaves the plan to the leader: otherwise,
-- a statement that calls the function often runs out of memory. (The
-- function's last statement is fetched in portions, and run ahead.)
CREATE FUNCTION counts(below int) RETURNS bigint LANGUAGE sql AS
$$ SELECT count(*) FROM t WHERE k < below; SELECT count(*) FROM t WHERE k < below $$;
CREATE FUNCTION memory() RETURNS numeric LANGUAGE plpgsql AS
$$ BEGIN RETURN (SELECT sum(used_bytes) FROM pg_backend_memory_contexts); END $$;
CREATE FUNCTION make_dirty() RETURNS void LANGUAGE plpgsql AS
$$ BEGIN UPDATE t SET id = id; END $$;
VACUUM (FULL, ANALYZE) t;
SELECT pg_flush_local_buffers() >= 0 AS clean;
SELECT workers_launched, plans_left_to_leader AS left FROM temp_parallel_stats() \gset before_
SELECT sum(n), sum(CASE g WHEN 20 THEN -bytes WHEN 40 THEN bytes END) < 30000 AS nothing_kept
  FROM (SELECT g, counts(5) AS n, CASE WHEN g IN (10, 20, 40) THEN memory() END AS bytes
		  FROM generate_series(1, 40) g) s;
SELECT workers_launched > :before_workers_launched AS launched, plans_left_to_leader - :before_left AS left_to_leader
  FROM temp_parallel_stats();
SELECT workers_launched, plans_left_to_leader AS left FROM temp_parallel_stats() \gset before_
SELECT sum(n), sum(CASE g WHEN 20 THEN -bytes WHEN 40 THEN bytes END) < 30000 AS nothing_kept
  FROM (SELECT g, counts(5) AS n, CASE WHEN g = 1 THEN make_dirty() END, CASE WHEN g IN (10, 20, 40) THEN memory() END AS bytes
		  FROM generate_series(1, 40) g) s;
SELECT plans_left_to_leader - :before_left AS left_to_leader FROM temp_parallel_stats();
DROP FUNCTION counts, memory, make_dirty;

-- A Gather without a flush node is not affected: it gets its workers, whatever
-- is dirty.
CREATE TABLE permanent AS SELECT g AS id FROM generate_series(1, 100000) g;
ANALYZE permanent;
PREPARE p AS SELECT count(*) FROM permanent;
EXECUTE p;
SELECT pg_dirty_local_buffers() > 0 AS dirty, plans_left_to_leader AS left FROM temp_parallel_stats() \gset before_
EXECUTE p;
SELECT :'before_dirty' AS dirty, plans_left_to_leader - :before_left AS left_to_leader FROM temp_parallel_stats();
DROP TABLE permanent;

-- A plan that was made when the pages were already dirty is executed as
-- planned: its cost includes the flush.
DEALLOCATE q;
UPDATE t SET id = id;
SET temp_parallel.write_temp_page_cost = 1;
SET cpu_tuple_cost = 1;
PREPARE q(int) AS SELECT count(*), sum(id) FROM t WHERE k < $1;
SELECT workers_launched, skipped, dirty_before > 0 AS dirty, dirty_after FROM run_q();

-- Turned off, the module has no workers, also in plans that were made before: otherwise
-- sessions with prepared statements could not be kept from what it does.
SET temp_parallel.enabled = off;
SELECT workers_launched, skipped FROM run_q();
RESET temp_parallel.enabled;
SELECT workers_launched, skipped FROM run_q();

DROP FUNCTION run_q;
DROP TABLE t;
DROP EXTENSION temp_parallel;
