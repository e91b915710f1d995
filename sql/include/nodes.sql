\set ECHO none
--
-- pg_temp.nodes(statement): the nodes of its plan in one line, from the top, with what this
-- module says about the whole of it.
--
CREATE FUNCTION pg_temp.nodes(plan jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN concat_ws(' ',
		substring(plan->>'Parent Relationship' FROM '\w+Plan'),
		plan->>'Operation',
		CASE WHEN (plan->>'Parallel Aware')::bool THEN 'Parallel' END,
		nullif(plan->>'Partial Mode', 'Simple'),
		nullif(plan->>'Strategy', 'Plain'),
		coalesce(plan->>'Custom Plan Provider', plan->>'Node Type'),
		'using ' || (plan->>'Index Name'),
		'on ' || coalesce(plan->>'Relation Name', plan->>'CTE Name'),
		'(workers: ' || (plan->>'Workers Planned') || ')',
		'(leader ' || (plan->>'Leader') || ', processes: ' || (plan->>'Processes') || ')') ||
		coalesce((SELECT CASE count(*) WHEN 1 THEN ' > ' || max(n) ELSE ' > (' || string_agg(n, ', ') || ')' END
				  FROM (SELECT pg_temp.nodes(child) AS n FROM jsonb_array_elements(plan->'Plans') child) q
				  HAVING count(*) > 0), '');
END $$;
CREATE FUNCTION pg_temp.nodes(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	line text;
	result text;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF) ' || statement INTO plan;
	result := pg_temp.nodes(plan->0->'Plan');
	-- before 18, only in text
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		result := concat_ws('; ', result, substring(line FROM '^(?:No|Not) .*: .*'));
	END LOOP;
	RETURN result;
END $$;
\set ECHO all
