--
-- What EXPLAIN says of a plan without workers where the reason is neither the dirty pages
-- (account.sql) nor the statement: missing statistics, the search of the pool, and costs
-- that are almost the same.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';
SET temp_buffers = '64MB';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = '800kB';
SET parallel_setup_cost = 1000;
SET jit = off;

-- Never analyzed, and large enough for workers.
CREATE TEMP TABLE t AS SELECT i AS id, repeat('x', 90) AS pad FROM generate_series(1, 20000) i;
CREATE TEMP TABLE small AS SELECT * FROM t WHERE id <= 1000;
CREATE TEMP TABLE empty (LIKE t);
SELECT pg_flush_local_buffers() > 0 AS clean;
EXPLAIN (COSTS OFF) SELECT * FROM t;
EXPLAIN (COSTS OFF) SELECT * FROM t, small, empty;
EXPLAIN (COSTS OFF) SELECT * FROM small, empty;
-- a statement that reads the table it changes, and one that does not read it
EXPLAIN (COSTS OFF) DELETE FROM t;
EXPLAIN (COSTS OFF) INSERT INTO t SELECT * FROM small;
-- workers are not considered, or there are some
SET temp_parallel.enabled = off;
EXPLAIN (COSTS OFF) SELECT * FROM t;
RESET temp_parallel.enabled;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT * FROM t;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
-- it is the flush
SET temp_parallel.write_temp_page_cost = 1e6;
SET temp_parallel.share_local_buffers = off;
UPDATE t SET id = id WHERE id <= 10;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
SELECT pg_flush_local_buffers() > 0 AS clean;
ANALYZE t;
EXPLAIN (COSTS OFF) SELECT * FROM t;

-- No page is dirty, so that the search of the pool alone costs more than workers save.
-- It is no reason to flush: no account grows, and no statement is counted.
CREATE FUNCTION refused(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	cost float8;
	saving float8;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		IF line ~ 'Gather|Not Parallel' THEN
			RETURN NEXT regexp_replace(line, ' *\(.*| *-> *', '', 'g');
		ELSIF line ~ 'Flush Refused' THEN
			cost := substring(line FROM 'cost=([0-9.]+)');
			saving := substring(line FROM 'saving=([0-9.]+)');
			RETURN NEXT regexp_replace(substring(line FROM 'dirtied=\d+'), '=[1-9]\d*', ' > 0') || CASE WHEN saving > 0 THEN
				CASE WHEN cost > saving THEN ', cost more' ELSE ', cost less' END END;
		ELSIF line ~ 'Share Refused' THEN
			cost := substring(line FROM 'cost=([0-9.]+)');
			RETURN NEXT 'to share: ' || CASE WHEN cost > saving THEN 'more' ELSE 'less' END;
		END IF;
	END LOOP;
END $$;
RESET temp_parallel.write_temp_page_cost;
SELECT pg_flush_local_buffers() >= 0 AS clean;
SELECT refused('SELECT count(*) FROM t');
SELECT temp_parallel_stats_reset();
SET temp_parallel.buffer_scan_cost = 10;
SELECT refused('SELECT count(*) FROM t');
SELECT count(*) FROM t;
SELECT account FROM temp_parallel_tables WHERE relation = 't'::regclass;
SELECT serial_by_flush, workers_launched FROM temp_parallel_stats();
-- without it, the same plan has workers
SET temp_parallel.buffer_scan_cost = 0;
SELECT refused('SELECT count(*) FROM t');
-- workers save nothing: it is not the search
SET parallel_setup_cost = 1e6;
SET temp_parallel.buffer_scan_cost = 10;
SELECT refused('SELECT count(*) FROM t');

-- Where sharing the pages is cheaper, what that costs is what has to be less than the saving.
CREATE FUNCTION saving_of(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	line text;
	saving float8;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		saving := coalesce(saving, substring(line FROM 'saving=([0-9.]+)')::float8);
	END LOOP;
	RETURN saving;
END $$;
SET parallel_setup_cost = 10;
SET temp_parallel.buffer_scan_cost = 0;
SELECT pg_flush_local_buffers() >= 0 AS clean, pg_temp_buffers_dirty('t') > 0 AS dirty;
SET temp_parallel.write_temp_page_cost = 1000;
SELECT current_setting('parallel_setup_cost')::float8 - 8 + saving_of('SELECT count(*) FROM t') AS setup_cost \gset
SET parallel_setup_cost = :setup_cost;
SELECT refused('SELECT count(*) FROM t');
SET temp_parallel.share_local_buffers = on;
-- (no pages are shared where addresses have 32 bits)
SELECT refused('SELECT count(*) FROM t') UNION ALL SELECT 'to share: more' WHERE version() ~ '32-bit';
SET temp_parallel.share_local_buffers = off;
SET parallel_setup_cost = 10;

-- Workers that save less than that anyway are not lost by the flush: before 18, disabled
-- joins cost so much that nothing else counts.
SET temp_parallel.write_temp_page_cost = 1;
SELECT pg_flush_local_buffers() >= 0 AS clean;
UPDATE small SET id = id WHERE id = 1;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT refused('SELECT t.pad FROM small FULL JOIN t USING (id)');

-- A statement that takes long to plan and not to execute is not planned twice, and EXPLAIN says
-- so, unless it is told that workers start for nothing. Here the planner calls a function that
-- takes much longer than the table is worth.
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
CREATE FUNCTION slow() RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	FOR i IN 1..15000000 LOOP
	END LOOP;
	RETURN 0;
END $$;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE id > 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE id > slow();
SET parallel_setup_cost = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE id > slow();
DROP FUNCTION slow;

DROP FUNCTION refused, saving_of;
DROP TABLE t, small, empty;
DROP EXTENSION temp_parallel;
