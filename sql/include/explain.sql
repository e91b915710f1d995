\set ECHO none
--
-- pg_temp.explain(query): EXPLAIN (COSTS OFF), without what server versions call
-- by different names (19: subplans, subqueries without an alias) or leave out
-- (before 19: what a Result replaces).
--
CREATE FUNCTION pg_temp.explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		CONTINUE WHEN line ~ '^ *Replaces:';
		RETURN NEXT regexp_replace(line, '(SubPlan|Subquery Scan on) .*', '\1 ...');
	END LOOP;
END $$;
\set ECHO all
