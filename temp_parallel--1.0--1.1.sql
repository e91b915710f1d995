/* temp_parallel--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION temp_parallel UPDATE TO '1.1'" to load this file. \quit

-- counters of all sessions

CREATE FUNCTION temp_parallel_session_counts(
	OUT datid oid,
	OUT pid integer,
	OUT workers_launched bigint,
	OUT pages_flushed bigint,
	OUT pages_shared bigint,
	OUT serial_statements bigint,
	OUT usual_reason text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'temp_parallel_session_counts'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION temp_parallel_session_counts() IS
'what the sessions of the server have done with workers over temporary tables';

CREATE VIEW temp_parallel_activity AS
	SELECT c.datid, d.datname, c.pid, c.workers_launched, c.pages_flushed, c.pages_shared,
		   c.serial_statements, c.usual_reason
	  FROM temp_parallel_session_counts() c
	  LEFT JOIN pg_database d ON d.oid = c.datid;

COMMENT ON VIEW temp_parallel_activity IS
'what the sessions of the server have done with workers over temporary tables';
COMMENT ON COLUMN temp_parallel_activity.pid IS
'process ID, as in pg_stat_activity';
COMMENT ON COLUMN temp_parallel_activity.workers_launched IS
'workers launched to read temporary tables';
COMMENT ON COLUMN temp_parallel_activity.pages_flushed IS
'dirty pages written before workers were launched';
COMMENT ON COLUMN temp_parallel_activity.pages_shared IS
'dirty pages that workers have read in the memory of the session instead';
COMMENT ON COLUMN temp_parallel_activity.serial_statements IS
'statements over temporary tables that had no workers for a reason that EXPLAIN names';
COMMENT ON COLUMN temp_parallel_activity.usual_reason IS
'the most frequent of these reasons';

REVOKE ALL ON FUNCTION temp_parallel_session_counts() FROM PUBLIC;
REVOKE ALL ON temp_parallel_activity FROM PUBLIC;
GRANT EXECUTE ON FUNCTION temp_parallel_session_counts() TO pg_monitor;
GRANT SELECT ON temp_parallel_activity TO pg_monitor;

-- calibration, with the launch of workers

DROP FUNCTION temp_parallel_calibrate(integer, integer, name, float8);

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
	OUT launch_us float8,
	OUT launch_low float8,
	OUT launch_high float8,
	OUT write_temp_page_cost float8,
	OUT buffer_scan_cost float8,
	OUT parallel_setup_cost float8,
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
	queries text[];			-- of each table, all rows and, two later, none of them
	big regclass;
	page_factor float8;		-- of the tablespace, by which the cost model multiplies the setting
	plan json;
	workers integer;
	planned float8[];		-- gains of the two queries of the big table, in planner cost per page
	begun timestamptz;
	told timestamptz;
	start timestamptz;
	written bigint;
	rounds integer;
	launched bigint;
	alone float8[];			-- microseconds of the queries without workers
	parallel float8[];		-- and with
	writes float8[];		-- and so on: the measurements, from -1 on; the first two are to warm up
	reads float8[];
	scans float8[];
	processed float8[];
	gains float8[];
	filter_gains float8[];
	launches float8[];
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
			queries[i + 2] := format('SELECT count(*) FROM %s WHERE class < 0', names[i]);
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
		FOR i IN REVERSE 3 .. 1 BY 2 LOOP
			SET LOCAL temp_parallel.enabled = on;
			EXECUTE 'EXPLAIN (FORMAT JSON) ' || queries[i] INTO plan;
			workers := substring(plan::text FROM '"Workers Planned": ([0-9]+)');
			planned[i] := -(plan->0->'Plan'->>'Total Cost')::float8;
			SET LOCAL temp_parallel.enabled = off;
			EXECUTE 'EXPLAIN (FORMAT JSON) ' || queries[i] INTO plan;
			planned[i] := (planned[i] + (plan->0->'Plan'->>'Total Cost')::float8) / measured_pages;
		END LOOP;
		IF workers IS NULL OR least(planned[1], planned[3]) <= 0 THEN
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

			FOR j IN 1 .. 3 BY 2 LOOP
				start := clock_timestamp();
				EXECUTE queries[j];
				alone[j] := extract(epoch FROM clock_timestamp() - start) * 1e6;
			END LOOP;
			processed[i] := alone[1] / measured_pages;

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
			FOR j IN REVERSE 4 .. 1 LOOP
				launched := (SELECT s.workers_launched FROM @extschema@.temp_parallel_stats() s);
				start := clock_timestamp();
				EXECUTE queries[j];
				parallel[j] := extract(epoch FROM clock_timestamp() - start) * 1e6;
				launched := (SELECT s.workers_launched FROM @extschema@.temp_parallel_stats() s) - launched;
				IF launched < workers THEN
					RAISE EXCEPTION 'could not launch the workers of the measurement' USING ERRCODE = 'insufficient_resources',
						DETAIL = format('%s of %s workers were launched.', launched, workers),
						HINT = 'Repeat the calibration while fewer parallel queries run, lower "max_parallel_workers_per_gather", or raise "max_parallel_workers" and "max_worker_processes".';
				END IF;
			END LOOP;
			-- a page takes the leader less time than the launch
			launches[i] := least(parallel[2], parallel[4]);
			gains[i] := (alone[1] - parallel[1] + parallel[2]) / measured_pages;
			filter_gains[i] := (alone[3] - parallel[3] + parallel[4]) / measured_pages;
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
		   percentile_cont(0.5) WITHIN GROUP (ORDER BY l),
		   array_agg(g ORDER BY g), array_agg(w / r ORDER BY w / r), array_agg(l ORDER BY l), array_agg(f ORDER BY f),
		   (percentile_cont(0.75) WITHIN GROUP (ORDER BY w) - percentile_cont(0.25) WITHIN GROUP (ORDER BY w)) / 1.349,
		   (percentile_cont(0.75) WITHIN GROUP (ORDER BY g) - percentile_cont(0.25) WITHIN GROUP (ORDER BY g)) / 1.349
	  INTO write_page_us, read_page_us, scan_buffer_us, process_page_us, gain_page_us, write_read_ratio,
		   launch_us, gains, ratios, launches, filter_gains, write_cv, gain_cv
	  FROM unnest(writes[1:], reads[1:], scans[1:], processed[1:], gains[1:], filter_gains[1:], launches[1:]) AS m (w, r, s, p, g, f, l);
	write_cv := write_cv / write_page_us;
	gain_cv := coalesce(gain_cv / nullif(abs(gain_page_us), 0), 'infinity');	-- of a loss, too
	gain_low := gains[below + 1];
	gain_high := gains[iterations - below];
	ratio_low := ratios[below + 1];
	ratio_high := ratios[iterations - below];
	launch_low := launches[below + 1];
	launch_high := launches[iterations - below];
	planner_unit_us := gain_page_us / planned[1];

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
		write_temp_page_cost := to_char(write_page_us / planner_unit_us / nullif(page_factor, 0), '9.99EEEE');
		buffer_scan_cost := to_char(scan_buffer_us / planner_unit_us, '9.99EEEE');
		-- Workers save least of what the planner expects where rows are only filtered. With the
		-- worse end of both intervals, so that a query is rather serial than slower.
		IF filter_gains[below + 1] > 0 THEN
			parallel_setup_cost := to_char(launch_high / filter_gains[below + 1] * planned[3], '9.99EEEE');
		END IF;
		SELECT array_agg(format('SET %s = %s', setting, cost)), array_agg(format('ALTER SYSTEM SET %s = %s', setting, cost)) || 'SELECT pg_reload_conf()'::text
		  INTO set_commands, alter_system_commands	-- not one string, as ALTER SYSTEM is refused in one with other commands
		  FROM unnest(ARRAY['temp_parallel.write_temp_page_cost', 'temp_parallel.buffer_scan_cost', 'parallel_setup_cost'],
					  ARRAY[write_temp_page_cost, buffer_scan_cost, parallel_setup_cost]) AS s (setting, cost)
		 WHERE cost IS NOT NULL;
	END IF;
END
$$;

COMMENT ON FUNCTION temp_parallel_calibrate(integer, integer, name, float8) IS
'measure on a temporary table of its own, in microseconds, what writing, reading and processing a page, looking at a buffer and launching workers take and what workers gain, and recommend settings for the cost model; nulls where the measurements vary by more than max_cv, or workers gain nothing';
