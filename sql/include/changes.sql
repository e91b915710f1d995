\set ECHO none
--
-- A function that runs a statement that changes tables with its rows found by
-- workers only, by workers and leader, and serially; and the settings of
-- cheap_workers.sql.
--

\i sql/include/same.sql

-- Runs a statement in three ways, undoes each, and compares what is in the tables
-- of target, a query, afterwards, and what the statement returns.
--   workers  were any launched, or the reason that EXPLAIN gives
--   n        rows that target then has
--   answers  the same in the three ways? Rows that differ are printed.
CREATE FUNCTION pg_temp.changes(statement text, target text)
RETURNS TABLE (workers text, n bigint, answers text)
LANGUAGE plpgsql
SET temp_parallel.run_ahead = on SET parallel_leader_participation = on
AS $$
DECLARE
	mode text;
	line text;
	result text;
	results text[] := '{}';
	lines text[];
	returned text[] := '{}';
BEGIN
	workers := 'none';
	FOREACH mode IN ARRAY ARRAY['workers', 'all', 'core'] LOOP
		PERFORM set_config('temp_parallel.run_ahead',
						   CASE WHEN mode = 'core' THEN 'off' ELSE 'on' END, true),
				set_config('parallel_leader_participation',
						   CASE WHEN mode = 'workers' THEN 'off' ELSE 'on' END, true);
		lines := '{}';
		BEGIN
			IF mode = 'all' THEN
				FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' ||
					statement
				LOOP
					IF line ~ 'Workers Launched: [1-9]' THEN
						workers := 'launched';
					ELSIF line ~ 'Not Run Ahead' THEN
						workers := substring(line FROM 'Not Run Ahead: (.*)');
					END IF;
				END LOOP;
			ELSIF statement ~ '^[^W].*RETURNING [^*]' THEN
				FOR line IN EXECUTE regexp_replace(statement, 'RETURNING (.*)', 'RETURNING ROW(\1)::text') LOOP
					lines := lines || line;
				END LOOP;
			ELSE
				EXECUTE statement;
			END IF;
			-- deferred constraints, which belong to the outcome
			SET CONSTRAINTS ALL IMMEDIATE;
			EXECUTE 'SELECT count(*), string_agg(r::text, E''\n'' ORDER BY r::text) FROM (' ||
				target || ') r' INTO n, result;
			RAISE EXCEPTION USING ERRCODE = 'UNDO1';
		EXCEPTION
			WHEN SQLSTATE 'UNDO1' THEN NULL;
			WHEN OTHERS THEN
				n := NULL;
				result := SQLSTATE || ' ' || SQLERRM;
				IF mode = 'core' THEN
					RAISE NOTICE '%', result;
				END IF;
		END;
		results := results || coalesce(result, 'nothing');
		returned := returned || coalesce((SELECT string_agg(r, E'\n' ORDER BY r) FROM unnest(lines) r), 'nothing');
	END LOOP;
	answers := CASE WHEN pg_temp.same('workers alone', results[1], results[3]) AND
						 pg_temp.same('workers and leader', results[2], results[3]) AND
						 pg_temp.same('returned', returned[1], returned[3])
			   THEN 'same' ELSE 'DIFFERENT' END;
	RETURN NEXT;
END
$$;

\i sql/include/cheap_workers.sql
