\set ECHO none
--
-- Functions for what EXPLAIN prints about a flush node.
--

-- EXPLAIN (ANALYZE) with what differs from run to run taken out.
CREATE FUNCTION explain_analyze(query text, options text DEFAULT '')
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF, TIMING OFF' ||
		options || ') ' || query
	LOOP
		CONTINUE WHEN line ~ '^ *(Buffers|Worker|Planning:|Sort Method|Heap Fetches)';
		line := regexp_replace(line, 'rows=[0-9.]+ loops=\d+', 'rows=N');
		line := regexp_replace(line, '(Workers Launched:) \d+', '\1 N');
		RETURN NEXT line;
	END LOOP;
END $$;

-- The flush node of a query's plan, which is the first one on the way down the
-- outer children.
CREATE FUNCTION flush_plan(query text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	plan := plan->0->'Plan';
	WHILE plan IS NOT NULL AND
		plan->>'Custom Plan Provider' IS DISTINCT FROM 'TempFlush'
	LOOP
		plan := plan->'Plans'->0;
	END LOOP;
	RETURN plan;
END $$;
\set ECHO all
