\set echo :ECHO
\set ECHO none
--
-- pg_temp.same(who, answer, expected): are two answers, each with a row a line, the same,
-- in the same order? If not, the rows that are in only one of them are printed.
--
CREATE FUNCTION pg_temp.same(who text, answer text, expected text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	IF answer IS NOT DISTINCT FROM expected THEN
		RETURN true;
	END IF;
	FOR line IN
		WITH answered AS (SELECT string_to_table(answer, E'\n') AS line),
			awaited AS (SELECT string_to_table(expected, E'\n') AS line)
		(SELECT format('only %s: %s', who, a.line) FROM (TABLE answered EXCEPT ALL TABLE awaited) a ORDER BY 1 LIMIT 10)
		UNION ALL
		(SELECT format('not %s: %s', who, a.line) FROM (TABLE awaited EXCEPT ALL TABLE answered) a ORDER BY 1 LIMIT 10)
	LOOP
		RAISE WARNING '%', left(line, 500);
	END LOOP;
	IF NOT FOUND THEN
		RAISE WARNING '% in another order: %', who, left(answer, 500);
	END IF;
	RETURN false;
END $$;
\set ECHO :echo
