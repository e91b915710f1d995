\set ECHO none
--
-- The start of each test of plan shapes: a function that compares the results of a
-- query, and the settings of cheap_workers.sql.
--

\i sql/include/same.sql

-- Runs a query with its temporary tables read by workers only, by workers and
-- leader, and by core's plan.  In this order, the pages that the previous statement
-- has changed are dirty when the workers are launched.
--   flushed      a TempFlush node is below Gather (with and without the leader)
--   shape_found  each of the given plan lines is below Gather
--   answers      the three results are equal, including their order if the query
--                ends in ORDER BY
-- A plan that is not as expected is printed, and so are rows that differ.
CREATE FUNCTION pg_temp.both_ways(query text, VARIADIC shape text[] DEFAULT '{}')
RETURNS TABLE (flushed boolean, shape_found boolean, n bigint, answers text)
LANGUAGE plpgsql
SET temp_parallel.enabled = on SET parallel_leader_participation = on
AS $$
DECLARE
	mode text;
	line text;
	plan text;
	node text;
	depth int;
	gather int;				-- depth of the Gather above the line
	initplan int;			-- depth of the InitPlan that contains the line
	gather_outside int;		-- depth of the Gather above that InitPlan
	below text[];
	result text;
	results text[] := '{}';
BEGIN
	flushed := true;
	shape_found := true;
	FOREACH mode IN ARRAY ARRAY['workers', 'all', 'core'] LOOP
		PERFORM set_config('temp_parallel.enabled',
						   CASE WHEN mode = 'core' THEN 'off' ELSE 'on' END, true),
				set_config('parallel_leader_participation',
						   CASE WHEN mode = 'workers' THEN 'off' ELSE 'on' END, true);

		IF mode <> 'core' THEN
			plan := '';
			below := '{}';
			gather := NULL;
			initplan := NULL;
			FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
				plan := plan || E'\n' || line;
				depth := length(substring(line FROM '^ *'));
				node := regexp_replace(line, '^ *(->  )?', '');
				IF depth <= initplan THEN
					initplan := NULL;
					gather := gather_outside;
				END IF;
				IF depth <= gather THEN
					gather := NULL;
				END IF;
				IF node LIKE 'InitPlan%' THEN
					initplan := depth;
					gather_outside := gather;
					gather := NULL;
				ELSIF node LIKE 'Gather%' THEN
					gather := depth;
				ELSIF gather IS NOT NULL THEN
					below := below || node;
				END IF;
			END LOOP;
			IF NOT 'Parallel Custom Scan (TempFlush)' = ANY (below) THEN
				flushed := false;
				RAISE NOTICE 'no TempFlush below Gather (%):%', mode, plan;
			END IF;
			IF mode = 'all' AND EXISTS
				(SELECT FROM unnest(shape) s WHERE NOT EXISTS
					(SELECT FROM unnest(below) b WHERE b LIKE s || '%')) THEN
				shape_found := false;
				RAISE NOTICE 'not all of % below Gather:%', shape, plan;
			END IF;
		END IF;

		EXECUTE 'CREATE TABLE both_ways_result AS ' || query;
		SELECT count(*),
			   string_agg(r::text, E'\n'
						  ORDER BY CASE WHEN query ~* 'order by [^()]*$' THEN ctid END,
								   r::text)
		  INTO n, result FROM both_ways_result r;
		results := results || result;
		DROP TABLE both_ways_result;
	END LOOP;
	answers := CASE WHEN pg_temp.same('workers alone', results[1], results[3]) AND
						 pg_temp.same('workers and leader', results[2], results[3])
			   THEN 'same' ELSE 'DIFFERENT' END;
	RETURN NEXT;
END
$$;

\i sql/include/cheap_workers.sql
