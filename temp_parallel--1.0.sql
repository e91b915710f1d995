/* temp_parallel--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION temp_parallel" to load this file. \quit

CREATE FUNCTION pg_flush_local_buffers()
RETURNS bigint
AS 'MODULE_PATHNAME', 'pg_flush_local_buffers'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_flush_local_buffers() IS
'write all dirty local buffers of this session and return the number of pages written';

CREATE FUNCTION pg_allocated_local_buffers()
RETURNS integer
AS 'MODULE_PATHNAME', 'pg_allocated_local_buffers'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_allocated_local_buffers() IS
'number of local buffers of this session that have storage';

-- showing local buffers

CREATE FUNCTION temp_parallel_pages(
	OUT bufferid integer,
	OUT relfilenode oid,
	OUT reltablespace oid,
	OUT reldatabase oid,
	OUT relforknumber smallint,
	OUT relblocknumber bigint,
	OUT isdirty boolean,
	OUT usagecount smallint,
	OUT pins integer,
	OUT "table" regclass,
	OUT relation regclass)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'temp_parallel_pages'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION temp_parallel_pages() IS
'local buffers of this session, for the view pg_local_buffers and for functions that count them';

CREATE FUNCTION pg_dirty_local_buffers()
RETURNS integer
LANGUAGE sql STRICT VOLATILE PARALLEL UNSAFE
RETURN (SELECT count(*) FROM temp_parallel_pages() WHERE isdirty);

COMMENT ON FUNCTION pg_dirty_local_buffers() IS
'number of dirty local buffers of this session';

CREATE VIEW pg_local_buffers AS
SELECT bufferid, relfilenode, reltablespace, reldatabase, relforknumber, relblocknumber, isdirty, usagecount, pins
FROM temp_parallel_pages();

COMMENT ON VIEW pg_local_buffers IS
'local buffers of this session, one row each; nulls where a buffer holds no page';
COMMENT ON COLUMN pg_local_buffers.bufferid IS
'number of the buffer, from 1 to the number of local buffers';
COMMENT ON COLUMN pg_local_buffers.pins IS
'pins that this session holds on the buffer';

GRANT SELECT ON pg_local_buffers TO PUBLIC;

CREATE FUNCTION temp_parallel_summary(
	OUT buffers_used integer,
	OUT buffers_unused integer,
	OUT buffers_dirty integer,
	OUT buffers_pinned integer,
	OUT usagecount_avg float8,
	OUT buffers_allocated integer)
RETURNS record
LANGUAGE sql STRICT VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT count(pins), count(*) - count(pins), count(*) FILTER (WHERE isdirty), count(*) FILTER (WHERE pins > 0),
		   avg(usagecount), @extschema@.pg_allocated_local_buffers()
	  FROM @extschema@.temp_parallel_pages()
$$;

COMMENT ON FUNCTION temp_parallel_summary() IS
'numbers of local buffers of this session that hold a page, hold none, are dirty, are pinned and have storage, and the mean usage count';

-- The numbers of pages say nothing about rows, and the pool belongs to the session, so
-- every role may see them for all tables: SECURITY DEFINER.
CREATE FUNCTION temp_parallel_relations(
	OUT "table" regclass,
	OUT relation regclass,
	OUT kind text,
	OUT fork text,
	OUT allocated integer,
	OUT dirty integer,
	OUT pinned integer)
RETURNS SETOF record
LANGUAGE sql STRICT VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT p."table", p.relation,
		   CASE WHEN c.relnamespace = pg_my_temp_schema() THEN '' WHEN c.oid IS NOT NULL THEN 'TOAST ' END ||
		   CASE c.relkind WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' ELSE 'table' END,
		   (ARRAY['main', 'fsm', 'vm', 'init'])[p.relforknumber + 1],
		   count(*), count(*) FILTER (WHERE p.isdirty), count(*) FILTER (WHERE p.pins > 0)
	  FROM @extschema@.temp_parallel_pages() p LEFT JOIN pg_class c ON c.oid = p.relation
	 WHERE p.relfilenode IS NOT NULL
	 GROUP BY p.relfilenode, p.reltablespace, 1, 2, 3, 4
$$;

COMMENT ON FUNCTION temp_parallel_relations() IS
'pages in local buffers by table, relation (the table itself, an index, its TOAST table or TOAST index) and fork';

CREATE FUNCTION temp_parallel_flush_cost(
	relation regclass,
	OUT dirty_pages integer,
	OUT flush_cost float8,
	OUT account float8)
RETURNS record
AS 'MODULE_PATHNAME', 'temp_parallel_flush_cost'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION temp_parallel_flush_cost(regclass) IS
'dirty pages of a temporary table, its indexes and its TOAST table, planner cost of flushing them, and what the table''s account pays of it';

-- SECURITY DEFINER for the same reason
CREATE FUNCTION temp_parallel_tables(
	OUT relation regclass,
	OUT pages bigint,
	OUT dirty_pages integer,
	OUT flush_cost float8,
	OUT account float8)
RETURNS SETOF record
LANGUAGE sql STRICT VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.oid, pg_relation_size(c.oid) / current_setting('block_size')::bigint, f.dirty_pages,
		   round(f.flush_cost::numeric, 2), round(f.account::numeric, 2)	-- as EXPLAIN shows costs
	  FROM pg_class c, @extschema@.temp_parallel_flush_cost(c.oid::regclass) f
	 WHERE c.relnamespace = pg_my_temp_schema() AND c.relkind = 'r' AND
		   pg_relation_size(c.oid) IS NOT NULL	-- has not been dropped by another session
$$;

COMMENT ON FUNCTION temp_parallel_tables() IS
'temporary tables of this session and what flushing them would cost';

CREATE VIEW temp_parallel_tables AS
	SELECT * FROM temp_parallel_tables();

COMMENT ON VIEW temp_parallel_tables IS
'temporary tables of this session and what flushing them would cost';
COMMENT ON COLUMN temp_parallel_tables.pages IS
'pages of the table itself';
COMMENT ON COLUMN temp_parallel_tables.dirty_pages IS
'dirty local buffers of the table, its indexes and its TOAST table';
COMMENT ON COLUMN temp_parallel_tables.flush_cost IS
'planner cost of writing these pages, and of looking at the local buffers in use';
COMMENT ON COLUMN temp_parallel_tables.account IS
'what workers would have saved so far had the table been clean, and what sharing its pages has cost; the planner subtracts it from the cost of a flush';

GRANT SELECT ON temp_parallel_tables TO PUBLIC;

-- writing, evicting, reading, dirtying

CREATE FUNCTION pg_flush_local_buffers(relation regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'pg_flush_local_buffers_relation'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_flush_local_buffers(regclass) IS
'write the dirty local buffers of a temporary table, its indexes and its TOAST table, and return the number of pages written';

CREATE FUNCTION pg_evict_local_buffers(
	relation regclass DEFAULT NULL,
	OUT buffers_evicted integer,
	OUT buffers_flushed integer,
	OUT buffers_skipped integer)
RETURNS record
AS 'MODULE_PATHNAME', 'pg_evict_local_buffers'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_evict_local_buffers(regclass) IS
'write and evict the local buffers of a temporary table, its indexes and its TOAST table, or of all temporary tables that the caller owns; pinned pages and those of other owners are skipped';

CREATE FUNCTION pg_read_temp_relation(relation regclass, randomize boolean DEFAULT false)
RETURNS bigint
AS 'MODULE_PATHNAME', 'pg_read_temp_relation'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_read_temp_relation(regclass, boolean) IS
'read all blocks of a temporary table into local buffers, in order or in random order, and return their number';

CREATE FUNCTION pg_temp_buffers_dirty(relation regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'pg_temp_buffers_dirty'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_temp_buffers_dirty(regclass) IS
'mark all pages of a temporary table that are in local buffers as dirty and return their number';

-- counters of the session

CREATE FUNCTION temp_parallel_stats(
	OUT flushes bigint,
	OUT pages_flushed bigint,
	OUT flush_time float8,
	OUT workers_launched bigint,
	OUT hints_dropped bigint,
	OUT plans_left_to_leader bigint,
	OUT serial_by_flush bigint,
	OUT processors integer,
	OUT pages_shared bigint,
	OUT not_shared text)
RETURNS record
AS 'MODULE_PATHNAME', 'temp_parallel_stats'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION temp_parallel_stats() IS
'this session''s flushes before launches of workers, the pages and milliseconds they took, workers launched after them, pages whose hints the leader dropped, statements whose parallel plan the leader ran alone, statements that had no workers only because of the flush, the number of processors that the session may use, dirty pages that workers read in this session''s memory instead of the file, and why they cannot, if so';

CREATE FUNCTION temp_parallel_stats_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'temp_parallel_stats_reset'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION temp_parallel_stats_reset() IS
'set the counters of this session to zero';

-- calibrating the cost model
--
-- A flush pays off if workers gain more time than it takes, so its cost must be on the
-- scale on which the planner sees that gain. The planner assumes that workers share all
-- of the CPU cost and none of the I/O cost, and that a page in memory is as expensive as
-- one on disk; the machine may differ. So the gain itself is measured, and compared with
-- the planner's estimate of it: the gain of workers over the leader alone, scanning and
-- aggregating a clean table that is in the leader's pool. The launch of the workers is
-- left out, since it has a cost of its own.
--
--		unit = time gained by workers / cost gained, as the planner estimates
--		write_temp_page_cost = time to write a page / unit
--		buffer_scan_cost = time to look at a buffer / unit
--
-- With these constants the planner switches to workers at the point where they become
-- faster. Each iteration does all steps, so that a temporary slowdown of the machine
-- affects all of them, and the results are medians over the iterations.
--
-- Everything happens in a subtransaction that is rolled back, which undoes the tables,
-- their pages, and settings. Calls name the extension's schema, and pass all arguments
-- with their types, so that they call no function that somebody else has put there.
CREATE FUNCTION temp_parallel_calibrate(
	pages integer DEFAULT NULL,
	iterations integer DEFAULT 30,
	tablespace name DEFAULT NULL,
	max_cv float8 DEFAULT 0.25,
	OUT measured_pages integer,
	OUT measured_iterations integer,
	OUT write_page_us float8,
	OUT read_page_us float8,
	OUT scan_buffer_us float8,
	OUT process_page_us float8,
	OUT gain_page_us float8,
	OUT gain_low float8,
	OUT gain_high float8,
	OUT write_read_ratio float8,
	OUT ratio_low float8,
	OUT ratio_high float8,
	OUT write_cv float8,
	OUT gain_cv float8,
	OUT planner_unit_us float8,
	OUT write_temp_page_cost float8,
	OUT buffer_scan_cost float8,
	OUT set_commands text[],
	OUT alter_system_commands text[])
RETURNS record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = on
SET jit = off
SET parallel_setup_cost = 0
SET parallel_tuple_cost = 0
AS $$
DECLARE
	block_size integer := current_setting('block_size');
	spare integer := 32;	-- buffers, left for pins of others
	room integer := coalesce(nullif((SELECT count(*) FROM @extschema@.temp_parallel_pages()), 0),
							 pg_size_bytes(current_setting('temp_buffers')) / block_size) - spare;
	names text[];			-- of two tables: to measure with, and of one page
	queries text[];
	big regclass;
	page_factor float8;		-- of the tablespace, by which the cost model multiplies the setting
	plan json;
	workers integer;
	planned_gain float8;	-- planner cost per page
	begun timestamptz;
	told timestamptz;
	start timestamptz;
	written bigint;
	rounds integer;
	launched bigint;
	alone float8;			-- microseconds of the query
	parallel float8;		-- the same with workers, less that of the one page
	writes float8[];		-- and so on: the measurements, from -1 on; the first two are to warm up
	reads float8[];
	scans float8[];
	processed float8[];
	gains float8[];
	ratios float8[];
	probability float8;
	tail float8 := 0;
	below integer := 0;		-- values below the 95 % confidence interval of a median
BEGIN
	IF iterations IS NULL OR max_cv IS NULL THEN
		RAISE EXCEPTION '% cannot be null', CASE WHEN iterations IS NULL THEN 'iterations' ELSE 'max_cv' END
			USING ERRCODE = 'null_value_not_allowed', HINT = 'Leave the argument out for its default.';
	ELSIF pages NOT BETWEEN 16 AND room THEN
		RAISE EXCEPTION 'pages must be between 16 and %', room USING ERRCODE = 'invalid_parameter_value',
			DETAIL = format('They have to fit into the session''s local buffers, less %s for other uses.', spare),
			HINT = '"temp_buffers" can be raised before the session''s first use of a temporary table.';
	ELSIF iterations NOT BETWEEN 6 AND 1000 THEN	-- fewer have no 95 % interval
		RAISE EXCEPTION 'iterations must be between 6 and 1000' USING ERRCODE = 'invalid_parameter_value';
	ELSIF max_cv = 'NaN' THEN
		RAISE EXCEPTION 'max_cv cannot be NaN' USING ERRCODE = 'invalid_parameter_value', HINT = '0.25 stands for 25 percent.';
	ELSIF max_cv < 0 THEN
		RAISE EXCEPTION 'max_cv must not be negative' USING ERRCODE = 'invalid_parameter_value', HINT = '0.25 stands for 25 percent.';
	END IF;
	measured_pages := coalesce(pages, least(16384, room));
	measured_iterations := iterations;
	-- timed steps must not write pages of the session's own tables
	PERFORM @extschema@.pg_flush_local_buffers();

	BEGIN
		SET LOCAL temp_parallel.enabled = on;
		SET LOCAL temp_parallel.buffer_scan_cost = 0;
		SET LOCAL temp_parallel.write_temp_page_cost = 1;

		FOR i IN 1 .. 2 LOOP
			FOR n IN 0 .. 2147483646 LOOP
				names[i] := 'pg_temp.temp_parallel_calibrate_' || n;
				EXIT WHEN to_regclass(names[i]) IS NULL;
			END LOOP;
			queries[i] := format('SELECT count(*), sum(number), max(amount) FROM %s WHERE class >= 0', names[i]);
			-- rows are too short for a TOAST table; as many workers as allowed
			EXECUTE format('CREATE TEMPORARY TABLE %s (id bigint, class integer, number integer, amount float8, pad char(55))
							USING heap WITH (parallel_workers = %s) ON COMMIT PRESERVE ROWS %s',
						   names[i], current_setting('max_parallel_workers_per_gather'), 'TABLESPACE ' || quote_ident(tablespace));
			-- rows of 104 bytes, and an item pointer of 4 each, fill a page less its header
			EXECUTE format('INSERT INTO %s SELECT n, n %% 100, n * 7919 %% 1000003, n %% 1000 / 100.0, repeat(''x'', 55)
							FROM (SELECT generate_series(0, %s - 1::bigint) AS n) AS s',
						   names[i], (block_size - 24) / 108 * CASE i WHEN 1 THEN measured_pages ELSE 1 END);
			EXECUTE 'ANALYZE ' || names[i];
		END LOOP;
		big := names[1]::regclass;
		measured_pages := pg_relation_size(big) / block_size;
		page_factor := (SELECT flush_cost / dirty_pages FROM @extschema@.temp_parallel_flush_cost(big));

		SET LOCAL temp_parallel.write_temp_page_cost = 0;
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || queries[1] INTO plan;
		workers := substring(plan::text FROM '"Workers Planned": (\d+)');
		planned_gain := -(plan->0->'Plan'->>'Total Cost')::float8;
		SET LOCAL temp_parallel.enabled = off;
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || queries[1] INTO plan;
		planned_gain := (planned_gain + (plan->0->'Plan'->>'Total Cost')::float8) / measured_pages;
		IF workers IS NULL OR planned_gain <= 0 THEN
			RAISE EXCEPTION 'the planner expects no gain from parallel workers' USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = 'The cost of a flush is measured relative to that gain.',
				HINT = 'Check "max_parallel_workers_per_gather" and the planner''s cost settings.';
		ELSIF pages IS NULL AND measured_pages < 16384 THEN
			RAISE NOTICE 'calibrating with % pages, % iterations', measured_pages, iterations
				USING HINT = 'The measurement is better with 16384 pages. Set "temp_buffers" to ''256MB'' before the session''s first use of a temporary table.';
		ELSE
			RAISE NOTICE 'calibrating with % pages, % iterations', measured_pages, iterations;
		END IF;

		FOR i IN -1 .. iterations LOOP
			IF (SELECT buffers_evicted FROM @extschema@.pg_evict_local_buffers(big)) < measured_pages THEN
				RAISE EXCEPTION 'local buffers do not hold the % pages of the measurement', measured_pages
					USING ERRCODE = 'object_not_in_prerequisite_state',
					HINT = 'Close cursors over temporary tables, ask for fewer pages, or raise "temp_buffers" in a new session.';
			END IF;
			-- from the file, which is in the operating system's cache
			start := clock_timestamp();
			PERFORM @extschema@.pg_read_temp_relation(big, false);
			reads[i] := extract(epoch FROM clock_timestamp() - start) * 1e6 / measured_pages;

			start := clock_timestamp();
			EXECUTE queries[1];
			alone := extract(epoch FROM clock_timestamp() - start) * 1e6;
			processed[i] := alone / measured_pages;

			PERFORM @extschema@.pg_temp_buffers_dirty(big);
			start := clock_timestamp();
			written := @extschema@.pg_flush_local_buffers(big);
			writes[i] := extract(epoch FROM clock_timestamp() - start) * 1e6 / written;

			-- with nothing to write, this looks at each buffer twice, as an execution of a plan
			-- does: for the second look, and for the flush
			rounds := greatest(100000 / @extschema@.pg_allocated_local_buffers(), 1);
			start := clock_timestamp();
			PERFORM count(@extschema@.pg_flush_local_buffers(big)) FROM generate_series(1, rounds);
			scans[i] := extract(epoch FROM clock_timestamp() - start) * 1e6 / rounds / @extschema@.pg_allocated_local_buffers();

			SET LOCAL temp_parallel.enabled = on;
			parallel := 0;
			FOR j IN REVERSE 2 .. 1 LOOP
				launched := (SELECT s.workers_launched FROM @extschema@.temp_parallel_stats() s);
				start := clock_timestamp();
				EXECUTE queries[j];
				parallel := extract(epoch FROM clock_timestamp() - start) * 1e6 - parallel;
				launched := (SELECT s.workers_launched FROM @extschema@.temp_parallel_stats() s) - launched;
				IF launched < workers THEN
					RAISE EXCEPTION 'could not launch the workers of the measurement' USING ERRCODE = 'insufficient_resources',
						DETAIL = format('%s of %s workers were launched.', launched, workers),
						HINT = 'Repeat the calibration while fewer parallel queries run, lower "max_parallel_workers_per_gather", or raise "max_parallel_workers" and "max_worker_processes".';
				END IF;
			END LOOP;
			gains[i] := (alone - parallel) / measured_pages;
			SET LOCAL temp_parallel.enabled = off;

			IF i = 0 THEN
				begun := clock_timestamp();
				told := begun;
			ELSIF i BETWEEN 1 AND iterations - 1 AND clock_timestamp() > told + interval '5 s' THEN
				told := clock_timestamp();
				RAISE NOTICE 'calibrating: % of % iterations done, % s left', i, iterations,
					round(extract(epoch FROM told - begun) * (iterations - i) / i);
			END IF;
		END LOOP;
		RAISE EXCEPTION USING ERRCODE = 'TPCAL';
	EXCEPTION WHEN SQLSTATE 'TPCAL' THEN	-- all is measured
	END;

	-- by order statistics: the median lies below the k-th smallest of n values with the
	-- probability that fewer than k of n tossed coins show heads
	probability := power(0.5::float8, iterations);
	LOOP
		tail := tail + probability;
		EXIT WHEN tail > 0.025;
		probability := probability * (iterations - below) / (below + 1);
		below := below + 1;
	END LOOP;
	below := below - 1;

	-- the standard deviation of a normal distribution is its interquartile range / 1.349
	SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY w), percentile_cont(0.5) WITHIN GROUP (ORDER BY r),
		   percentile_cont(0.5) WITHIN GROUP (ORDER BY s), percentile_cont(0.5) WITHIN GROUP (ORDER BY p),
		   percentile_cont(0.5) WITHIN GROUP (ORDER BY g), percentile_cont(0.5) WITHIN GROUP (ORDER BY w / r),
		   array_agg(g ORDER BY g), array_agg(w / r ORDER BY w / r),
		   (percentile_cont(0.75) WITHIN GROUP (ORDER BY w) - percentile_cont(0.25) WITHIN GROUP (ORDER BY w)) / 1.349,
		   (percentile_cont(0.75) WITHIN GROUP (ORDER BY g) - percentile_cont(0.25) WITHIN GROUP (ORDER BY g)) / 1.349
	  INTO write_page_us, read_page_us, scan_buffer_us, process_page_us, gain_page_us, write_read_ratio,
		   gains, ratios, write_cv, gain_cv
	  FROM unnest(writes[1:], reads[1:], scans[1:], processed[1:], gains[1:]) AS m (w, r, s, p, g);
	write_cv := write_cv / write_page_us;
	gain_cv := coalesce(gain_cv / nullif(abs(gain_page_us), 0), 'infinity');	-- of a loss, too
	gain_low := gains[below + 1];
	gain_high := gains[iterations - below];
	ratio_low := ratios[below + 1];
	ratio_high := ratios[iterations - below];
	planner_unit_us := gain_page_us / planned_gain;

	IF write_cv > max_cv OR gain_cv > max_cv THEN
		RAISE WARNING 'the measurements vary too much to recommend settings' USING
			DETAIL = format('The coefficient of variation is %s %% for writing and %s %% for the gain from workers, while %s %% is allowed.',
							round(write_cv::numeric * 100, 1), round(gain_cv::numeric * 100, 1), round(max_cv::numeric * 100, 1)),
			HINT = 'Repeat the calibration while the machine is less busy, with more pages, or with a larger max_cv.';
	ELSIF gain_low <= 0 THEN
		RAISE WARNING 'parallel workers save no time on this machine according to the measurements' USING
			DETAIL = 'No settings can be recommended.',
			HINT = 'Repeat the calibration while the machine is less busy, or with more pages; check whether parallel queries over unlogged tables are faster than serial ones on this machine.';
	ELSE
		-- three digits, which exceeds the precision of the measurements
		write_temp_page_cost := to_char(write_page_us / planner_unit_us / page_factor, '9.99EEEE');
		buffer_scan_cost := to_char(scan_buffer_us / planner_unit_us, '9.99EEEE');
		set_commands := ARRAY['SET temp_parallel.write_temp_page_cost = ' || write_temp_page_cost,
							  'SET temp_parallel.buffer_scan_cost = ' || buffer_scan_cost];
		-- not one string, as ALTER SYSTEM is refused in one with other commands
		alter_system_commands := ARRAY['ALTER SYSTEM ' || set_commands[1], 'ALTER SYSTEM ' || set_commands[2], 'SELECT pg_reload_conf()'];
	END IF;
END
$$;

COMMENT ON FUNCTION temp_parallel_calibrate(integer, integer, name, float8) IS
'measure on a temporary table of its own, in microseconds, what writing, reading and processing a page and looking at a buffer take and what workers gain, and recommend settings for the cost model; nulls where the measurements vary by more than max_cv, or workers gain nothing';
