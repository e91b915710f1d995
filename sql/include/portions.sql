\set ECHO none
--
-- A function that runs a body of PL/pgSQL which fetches rows in portions: by workers
-- only, by workers and leader, and by core; one that explains a cursor; and the settings
-- of cheap_workers.sql.
--

\i sql/include/same.sql

-- Runs body, that of a function that returns texts, in three ways, undoes each, and
-- compares what it returns, in that order or, if it returns rows in any order,
-- sorted; or its error.
--   workers  were any launched?
--   n        rows that it returns
--   answers  the same in the three ways? Rows that differ are printed.
CREATE FUNCTION pg_temp.portions(body text, any_order boolean DEFAULT false)
RETURNS TABLE (workers text, n bigint, answers text)
LANGUAGE plpgsql
SET temp_parallel.enabled = on SET temp_parallel.run_ahead = on
SET parallel_leader_participation = on
AS $$
DECLARE
	mode text;
	before bigint;
	result text;
	results text[] := '{}';
BEGIN
	FOREACH mode IN ARRAY ARRAY['workers', 'all', 'core'] LOOP
		PERFORM set_config('temp_parallel.enabled',
						   CASE WHEN mode = 'core' THEN 'off' ELSE 'on' END, true),
				set_config('parallel_leader_participation',
						   CASE WHEN mode = 'workers' THEN 'off' ELSE 'on' END, true);
		SELECT workers_launched INTO before FROM temp_parallel_stats();
		BEGIN
			EXECUTE format('CREATE FUNCTION pg_temp.body() RETURNS SETOF text LANGUAGE plpgsql AS %L', body);
			EXECUTE format('SELECT count(*), string_agg(r, E''\n'' ORDER BY %s) FROM pg_temp.body() WITH ORDINALITY b(r, i)',
						   CASE WHEN any_order THEN 'r' ELSE 'i' END) INTO n, result;
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
		IF mode = 'all' THEN
			SELECT CASE WHEN workers_launched > before THEN 'launched' ELSE 'none' END
			  INTO workers FROM temp_parallel_stats();
		END IF;
		results := results || coalesce(result, 'nothing');
	END LOOP;
	answers := CASE WHEN pg_temp.same('workers alone', results[1], results[3]) AND
						 pg_temp.same('workers and leader', results[2], results[3])
			   THEN 'same' ELSE 'DIFFERENT' END;
	RETURN NEXT;
END
$$;

-- EXPLAIN of a cursor for query, without what server versions name in different ways.
CREATE FUNCTION pg_temp.plan(query text, cursor text DEFAULT 'CURSOR', options text DEFAULT 'COSTS OFF')
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) DECLARE c %s FOR %s', options, cursor, query) LOOP
		CONTINUE WHEN line ~ '^ *(Replaces|Window):';
		RETURN NEXT regexp_replace(line, '(InitPlan) .*', '\1 ...');
	END LOOP;
END $$;

\i sql/include/cheap_workers.sql
