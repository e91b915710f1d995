--
-- The second look: a cached plan is older than the pool's state.
--
CREATE EXTENSION temp_parallel;
SET temp_buffers = '64MB';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 10;
SET plan_cache_mode = force_generic_plan;

CREATE TEMP TABLE t AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 100000) g;
ANALYZE t;
SELECT pg_flush_local_buffers() > 0 AS clean;

-- Whether the statement q(5) ran with workers, and whether EXPLAIN says so.
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

-- Made while the pool is clean, the plan is parallel.
PREPARE q(int) AS SELECT count(*), sum(id) FROM t WHERE k < $1;
EXPLAIN (COSTS OFF) EXECUTE q(5);
SELECT * FROM run_q();
EXECUTE q(5);

-- Every page dirty: the same plan would cost more than the leader alone, which
-- runs it, writes nothing and gives the same answer.
UPDATE t SET id = id;
SELECT workers_launched, skipped, dirty_before > 0 AS dirty, dirty_before = dirty_after AS nothing_written
  FROM run_q();
EXECUTE q(5);

-- The cached plan is not changed: clean again, it runs with workers again.
SELECT pg_flush_local_buffers() > 0 AS clean;
SELECT workers_launched, skipped FROM run_q();

-- A few dirty pages are worth it.
INSERT INTO t SELECT g, 1 FROM generate_series(1, 100) g;
SELECT workers_launched, skipped, dirty_before > 0 AS dirty, dirty_after FROM run_q();

-- So is any number of pages that cost nothing to write.
UPDATE t SET id = id;
SET temp_parallel.write_temp_page_cost = 0;
SELECT workers_launched, skipped, dirty_before > 0 AS dirty, dirty_after FROM run_q();
RESET temp_parallel.write_temp_page_cost;

-- A plan that was made while the pages were dirty already runs as planned: the
-- planner has weighed them.
DEALLOCATE q;
UPDATE t SET id = id;
SET cpu_tuple_cost = 1;
PREPARE q(int) AS SELECT count(*), sum(id) FROM t WHERE k < $1;
SELECT workers_launched, skipped, dirty_before > 0 AS dirty, dirty_after FROM run_q();

DROP FUNCTION run_q;
DROP TABLE t;
DROP EXTENSION temp_parallel;
