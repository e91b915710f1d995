--
-- temp_parallel_calibrate(): what it returns, which calls it rejects, and that it
-- leaves nothing behind. Its numbers depend on the machine and are not shown.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';
SET temp_buffers = '2MB';
\set SHOW_CONTEXT never

\i sql/include/refused.sql

-- Wait until sessions that have just ended have removed their files.
DO $$ BEGIN
	FOR i IN 1..100 LOOP
		PERFORM pg_stat_clear_snapshot();
		EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND
							  backend_type = 'client backend' AND pid <> pg_backend_pid());
		PERFORM pg_sleep(0.1);
	END LOOP;
END $$;

-- Catalog entries, files, local buffers and settings that it could leave behind.
CREATE VIEW left_behind AS
WITH temp_relations AS
	(SELECT relfilenode FROM pg_class WHERE relpersistence = 't')
SELECT 'relation' AS what, relname::text AS name FROM pg_class
WHERE relname LIKE 'temp\_parallel\_calibrate%' AND relname <> 'temp_parallel_calibrate_0'
UNION ALL
SELECT 'file', file FROM pg_database, pg_ls_dir('base/' || oid) file
WHERE datname = current_database() AND file ~ '^t[0-9]+_' AND
	  substring(file, '_([0-9]+)')::oid NOT IN (TABLE temp_relations)
UNION ALL
SELECT 'page', relfilenode::text FROM pg_local_buffers
WHERE relfilenode IS NOT NULL AND relfilenode NOT IN (TABLE temp_relations)
UNION ALL
SELECT 'setting', name FROM pg_settings
WHERE name IN ('search_path', 'enable_seqscan', 'jit', 'temp_parallel.enabled',
			   'temp_parallel.write_temp_page_cost', 'parallel_setup_cost') AND
	  source = 'session';

-- A notice says what it does, unless client_min_messages suppresses it. (Without
-- workers there is only the notice and an error, on any machine.)
SET max_parallel_workers = 0;
\set VERBOSITY terse
SELECT temp_parallel_calibrate(16, 6);
SET client_min_messages = warning;
SELECT temp_parallel_calibrate(16, 6);
\set VERBOSITY default
-- If the pool has no room for the default number of pages, with a hint.
SET client_min_messages = notice;
SET max_parallel_workers_per_gather = 2;
SELECT temp_parallel_calibrate();
RESET max_parallel_workers_per_gather;
RESET max_parallel_workers;

-- Whether workers save time with so few pages depends on the machine.
SET client_min_messages = error;

-- Nothing is left behind, and the session has no temporary schema.
SELECT * FROM left_behind;
SELECT pg_my_temp_schema() AS temp_schema, pg_dirty_local_buffers() AS dirty;

-- All columns have plausible values.
SELECT measured_pages, measured_iterations,
	   write_page_us > 0 AS write, read_page_us > 0 AS read,
	   scan_buffer_us > 0 AS scan, process_page_us > 0 AS process,
	   sign(planner_unit_us) = sign(gain_page_us) AS unit,
	   ratio_low > 0 AND ratio_low <= write_read_ratio AND write_read_ratio <= ratio_high AS ratio,
	   gain_low <= gain_page_us AND gain_page_us <= gain_high AS gain,
	   write_cv >= 0 AND gain_cv >= 0 AS cv,
	   scan_buffer_us < write_page_us AS scan_is_cheaper,
	   launch_low > 0 AND launch_low <= launch_us AND launch_us <= launch_high AS launch,
	   coalesce(write_temp_page_cost > 0, gain_low <= 0) AS write_temp_page_cost,
	   coalesce(buffer_scan_cost > 0, gain_low <= 0) AS buffer_scan_cost
FROM temp_parallel_calibrate(200, 10, max_cv => 'infinity');

-- The default number of pages: as many as fit into the pool, up to a limit.
SELECT measured_pages, measured_iterations FROM temp_parallel_calibrate(max_cv => 'infinity');

-- Too much variation, which any is if none is allowed: no recommendation, and a
-- warning with the numbers in its detail, whether workers gain or lose time.
SET client_min_messages = warning;
\set VERBOSITY terse
SELECT write_page_us > 0 AS write, write_temp_page_cost, buffer_scan_cost, parallel_setup_cost,
	   set_commands, alter_system_commands
FROM temp_parallel_calibrate(16, 6, max_cv => 0);
\set VERBOSITY default
SET client_min_messages = error;

-- The session's own tables keep their contents, whether on disk or only in local
-- buffers, and a table of the same name does not matter.
CREATE TEMP TABLE temp_parallel_calibrate_0 AS SELECT i AS id FROM generate_series(1, 20000) i;
CREATE TEMP TABLE mine AS SELECT i AS id FROM generate_series(1, 50000) i;
BEGIN;
UPDATE mine SET id = -id;
SELECT measured_pages FROM temp_parallel_calibrate(iterations => 6, max_cv => 'infinity');
SELECT count(*), sum(id) FROM mine;
ROLLBACK;
SELECT count(*), sum(id) FROM mine;
SELECT count(*), sum(id) FROM temp_parallel_calibrate_0;
SELECT * FROM left_behind;

-- Canceled before it starts and in the middle, and other errors.
SELECT pg_cancel_backend(pg_backend_pid()), temp_parallel_calibrate();
SET statement_timeout = '200ms';
\set VERBOSITY sqlstate
SELECT temp_parallel_calibrate(iterations => 1000);
\set VERBOSITY default
SET client_min_messages = warning;
DO $$
BEGIN
	PERFORM 1 FROM mine;
	PERFORM temp_parallel_calibrate(iterations => 1000);
EXCEPTION WHEN query_canceled THEN
	RAISE WARNING 'canceled';
END
$$;
RESET statement_timeout;
SET client_min_messages = error;
SET seq_page_cost = 0;
SET cpu_tuple_cost = 0;
SET cpu_operator_cost = 0;
SELECT refused('SELECT temp_parallel_calibrate(16, 6)');
RESET seq_page_cost;
RESET cpu_tuple_cost;
RESET cpu_operator_cost;
SET max_parallel_workers_per_gather = 0;
SELECT refused('SELECT temp_parallel_calibrate(16, 6)');
RESET max_parallel_workers_per_gather;
SET max_parallel_workers = 0;
SELECT refused('SELECT temp_parallel_calibrate(16, 6)');
RESET max_parallel_workers;
SELECT refused('SELECT temp_parallel_calibrate(16, 6, ''no_such_tablespace'')');
SELECT refused('SELECT temp_parallel_calibrate(16, 6, ''pg_global'')');
BEGIN READ ONLY;
SELECT refused('SELECT temp_parallel_calibrate(16, 6)');
ROLLBACK;
-- more pages pinned than the pool has to spare
BEGIN;
CREATE TEMP TABLE pinned AS SELECT i AS id FROM generate_series(1, 5) i;
DO $$
BEGIN
	FOR i IN 1 .. 60 LOOP
		EXECUTE format('CREATE TEMP TABLE pinned_%s ON COMMIT DROP AS SELECT * FROM generate_series(1, 5) i', i);
		EXECUTE format('DECLARE c%s CURSOR FOR SELECT * FROM pinned_%s', i, i);
		EXECUTE format('FETCH 1 FROM c%s', i);
	END LOOP;
END
$$;
SELECT buffers_pinned > 32 AS pinned FROM temp_parallel_summary();
SELECT refused('SELECT temp_parallel_calibrate(iterations => 6)');
ROLLBACK;
SELECT * FROM left_behind;
SELECT count(*), sum(id) FROM mine;

-- Arguments.
SELECT refused('SELECT temp_parallel_calibrate(15)');
SELECT refused('SELECT temp_parallel_calibrate(225)');
SELECT refused('SELECT temp_parallel_calibrate(-1)');
SELECT refused('SELECT temp_parallel_calibrate(16, 5)');
SELECT refused('SELECT temp_parallel_calibrate(16, 1001)');
SELECT refused('SELECT temp_parallel_calibrate(16, NULL)');
SELECT refused('SELECT temp_parallel_calibrate(16, 6, max_cv => -1)');
SELECT refused('SELECT temp_parallel_calibrate(16, 6, max_cv => ''nan'')');
SELECT refused('SELECT temp_parallel_calibrate(16, 6, max_cv => NULL)');

-- Costs by which workers save so little of a query that only filters rows that it has none.
SET seq_page_cost = 60;
SELECT refused('SELECT temp_parallel_calibrate(200, 6)');
RESET seq_page_cost;

-- Anybody may call it, with CREATE on the tablespace.
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_tp_calibrate LOCATION '';
CREATE ROLE regress_tp_calibrate;
SET ROLE regress_tp_calibrate;
SELECT measured_pages FROM temp_parallel_calibrate(16, 6, max_cv => 'infinity');
SELECT refused('SELECT temp_parallel_calibrate(16, 6, ''regress_tp_calibrate'')');
RESET ROLE;
-- If it is marked otherwise, it fails in a worker, and in the leader beside one.
-- No backslash, which would depend on standard_conforming_strings.
SELECT proparallel, provolatile, obj_description(oid, 'pg_proc') IS NOT NULL AS described, position(chr(92) IN prosrc) AS backslash
FROM pg_proc WHERE proname = 'temp_parallel_calibrate';
BEGIN;
ALTER FUNCTION temp_parallel_calibrate PARALLEL SAFE;
SELECT set_config(name, 'on', true) FROM pg_settings
WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
SELECT refused('SELECT temp_parallel_calibrate(16, 6)');
ROLLBACK;
BEGIN;
ALTER FUNCTION temp_parallel_calibrate PARALLEL RESTRICTED;
\i sql/include/cheap_workers.sql
SELECT refused('SELECT count(*), temp_parallel_calibrate(16, 6) FROM mine');
ROLLBACK;
SELECT * FROM left_behind;

-- In a pool with more pages, workers save time on every machine that has two processors.
\c -
LOAD 'temp_parallel';
SET temp_buffers = '16MB';
SET client_min_messages = error;

-- The commands set the recommended values. There is no recommendation if
-- workers save no time; a busy machine gets several attempts.
DO $$
DECLARE
	c record;
	command text;
BEGIN
	FOR i IN 1 .. 5 LOOP
		SELECT * INTO c FROM temp_parallel_calibrate(iterations => 6, max_cv => 'infinity');
		EXIT WHEN c.set_commands IS NOT NULL;
		IF c.gain_low > 0 OR c.alter_system_commands IS NOT NULL THEN
			RAISE EXCEPTION 'gained % without a recommendation', c.gain_low;
		END IF;
	END LOOP;
	IF c.set_commands IS NULL THEN
		RETURN;
	END IF;
	FOREACH command IN ARRAY c.set_commands LOOP
		EXECUTE command;
	END LOOP;
	IF current_setting('temp_parallel.write_temp_page_cost')::float8 <> c.write_temp_page_cost OR
	   current_setting('temp_parallel.buffer_scan_cost')::float8 <> c.buffer_scan_cost OR
	   current_setting('parallel_setup_cost')::float8 <> coalesce(c.parallel_setup_cost, 1000) OR
	   c.write_temp_page_cost <= 0 OR c.buffer_scan_cost <= 0 OR c.parallel_setup_cost <= 0 THEN
		RAISE EXCEPTION 'not what was recommended: %', c;
	END IF;
	-- parallel_setup_cost is not recommended if workers save no time where rows are filtered
	IF regexp_replace(c.alter_system_commands::text, '= [-+.e0-9]+', '= N', 'g')::text[] <>
	   array_remove(ARRAY['ALTER SYSTEM SET temp_parallel.write_temp_page_cost = N',
						  'ALTER SYSTEM SET temp_parallel.buffer_scan_cost = N',
						  CASE WHEN c.parallel_setup_cost IS NOT NULL THEN 'ALTER SYSTEM SET parallel_setup_cost = N' END,
						  'SELECT pg_reload_conf()'], NULL) THEN
		RAISE EXCEPTION '%', c.alter_system_commands;
	END IF;
END
$$;
RESET temp_parallel.write_temp_page_cost;
RESET temp_parallel.buffer_scan_cost;
RESET parallel_setup_cost;

-- The recommended cost is divided by the tablespace's own seq_page_cost, by which the cost
-- model multiplies it.
GRANT CREATE ON TABLESPACE regress_tp_calibrate TO regress_tp_calibrate;
ALTER TABLESPACE regress_tp_calibrate SET (seq_page_cost = 10);
SET ROLE regress_tp_calibrate;
DO $$
DECLARE
	c record;
BEGIN
	FOR i IN 1 .. 5 LOOP
		SELECT * INTO c FROM temp_parallel_calibrate(NULL, 6, 'regress_tp_calibrate', 'infinity');
		EXIT WHEN c.set_commands IS NOT NULL;
	END LOOP;
	IF c.write_temp_page_cost / (c.write_page_us / c.planner_unit_us / 10) NOT BETWEEN 0.99 AND 1.01 THEN
		RAISE EXCEPTION 'not in proportion: %', c;
	END IF;
END
$$;
-- one where reading costs nothing has no recommendation
RESET ROLE;
ALTER TABLESPACE regress_tp_calibrate SET (seq_page_cost = 0);
SELECT write_temp_page_cost FROM temp_parallel_calibrate(200, 6, 'regress_tp_calibrate', 'infinity');
-- the tablespace is empty again
DROP TABLESPACE regress_tp_calibrate;
DROP ROLE regress_tp_calibrate;

DROP VIEW left_behind;
DROP FUNCTION refused;
DROP EXTENSION temp_parallel;
