--
-- Settings: their effect on plans. (t/pgtap/settings.sql has defaults, bounds and privileges.)
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';

SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET temp_buffers = '64MB';
CREATE TEMP TABLE t AS SELECT g AS id FROM generate_series(1, 200000) g;
ANALYZE t;

SET temp_parallel.share_local_buffers = off;
-- Every page is dirty. With the default costs, a flush is not worth it for a
-- table of this size ...
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;

-- ... if it costs nothing, it is ...
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;

-- ... unless scanning the pool has a high cost ...
SET temp_parallel.buffer_scan_cost = 100;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;

-- ... or the extension is off.
SET temp_parallel.buffer_scan_cost = 0;
SET temp_parallel.enabled = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
RESET temp_parallel.enabled;

-- max_parallel_workers_per_gather = 0 works as for any table.
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
SET max_parallel_workers_per_gather = 2;

-- With the value "regress", which hides Gather nodes in EXPLAIN, the output is
-- the same as without the extension: otherwise there would be a flush node.
BEGIN;
SELECT set_config(name, 'regress', true) FROM pg_settings
WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
SELECT set_config(name, 'on', true) FROM pg_settings
WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
ROLLBACK;

-- The planner may evaluate a function that runs statements: these are planned for
-- themselves, here without workers, and the calling one as before, also after an error.
SET temp_parallel.write_temp_page_cost = 1;
\set SHOW_CONTEXT never
CREATE EXTENSION temp_parallel;
SET temp_parallel.write_temp_page_cost = 0.01;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
UPDATE t SET id = id;
CREATE TEMP TABLE few AS SELECT id FROM t WHERE id <= 2000;
CREATE FUNCTION pg_temp.evaluated(divisor int) RETURNS int STABLE PARALLEL SAFE LANGUAGE plpgsql
SET parallel_setup_cost = 1e10 AS $$
DECLARE
	launched bigint := (SELECT workers_launched FROM temp_parallel_stats());
BEGIN
	PERFORM count(*) FROM few;
	RAISE NOTICE '% workers', (SELECT workers_launched FROM temp_parallel_stats()) - launched;
	RETURN 1 / divisor;
END $$;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t HAVING max(id) > pg_temp.evaluated(1);
EXPLAIN (COSTS OFF) SELECT count(*) FROM t HAVING max(id) > pg_temp.evaluated(0);
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;

-- One that turns workers off, when core has made the first of the two plans: the second one
-- would have a Gather without workers.
CREATE FUNCTION pg_temp.turns_off() RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('max_parallel_workers_per_gather', '0', false);
	RETURN 1;
END $$;
CREATE TEMP TABLE parts (id int, k int) PARTITION BY RANGE (id);
CREATE TEMP TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TEMP TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (50000);
INSERT INTO parts SELECT g, g % 100 FROM generate_series(1, 40000) g;
ANALYZE parts;
EXPLAIN (COSTS OFF) UPDATE parts SET k = k + 1 WHERE k = 1;
EXPLAIN (COSTS OFF) UPDATE parts SET k = k + 1 WHERE k = pg_temp.turns_off();
RESET max_parallel_workers_per_gather;

DROP EXTENSION temp_parallel;
DROP TABLE t, few, parts;
