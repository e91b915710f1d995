\set ECHO none
--
-- The settings of cheap_workers.sql, with which workers read dirty pages in the leader's
-- memory, and functions for that.
--
\i sql/include/same.sql
\i sql/include/cheap_workers.sql
\set ECHO none
-- writing a page costs more than sharing it, whatever has been shared before
SET temp_parallel.write_temp_page_cost = 10;

-- Runs a query, by workers and leader and by workers alone, and compares the answer with
-- that of the leader alone; rows that differ are printed. Pages of table t are dirty before. What its execution shared
-- and flushed is that of the first run.
CREATE FUNCTION pg_temp.shared(query text)
RETURNS TABLE (shared boolean, flushed boolean, launched boolean, answer text, same boolean)
LANGUAGE plpgsql
SET temp_parallel.enabled = on SET parallel_leader_participation = on
AS $$
DECLARE
	before record;
	after record;
	alone text;
	expected text;
BEGIN
	query := 'SELECT string_agg(r::text, E''\n'' ORDER BY r::text) FROM (' || query || ') r';
	PERFORM pg_temp_buffers_dirty('t');
	SELECT * INTO before FROM temp_parallel_stats();
	EXECUTE query INTO answer;
	SELECT * INTO after FROM temp_parallel_stats();
	shared := after.pages_shared > before.pages_shared;
	flushed := after.pages_flushed > before.pages_flushed;
	launched := after.workers_launched > before.workers_launched;
	SET LOCAL parallel_leader_participation = off;
	EXECUTE query INTO alone;
	SET LOCAL temp_parallel.enabled = off;
	EXECUTE query INTO expected;
	same := pg_temp.same('workers and leader', answer, expected) AND pg_temp.same('workers alone', alone, expected);
	answer := CASE WHEN length(answer) > 60 THEN md5(answer) ELSE answer END;
	RETURN NEXT;
END
$$;
-- What EXPLAIN ANALYZE prints of it.
CREATE FUNCTION pg_temp.explained(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Shared: |Flushed: |Flush Skipped: ' THEN
			RETURN NEXT regexp_replace(btrim(line), '=[1-9]\d*', '=N');
		END IF;
	END LOOP;
END $$;
\set ECHO all
