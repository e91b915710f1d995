--
-- What EXPLAIN prints about a flush node in formats other than text, and with
-- VERBOSE.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
SET temp_buffers = '64MB';
\i sql/include/cheap_workers.sql
\i sql/include/row_a_page.sql
\i sql/include/explain_flush.sql

UPDATE t SET id = id WHERE id <= 10;

-- EXPLAIN's other formats have the same properties.
SELECT string_agg(key, ', ' ORDER BY key COLLATE "C") AS json
  FROM json_object_keys(flush_plan('SELECT count(*) FROM t')) key
 WHERE key ~ 'Flush|Planned';
CREATE FUNCTION format_lines(format text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	output text;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT ' || format || ') SELECT count(*) FROM t' INTO output;
	RETURN QUERY SELECT regexp_replace(trim(line), '[0-9.]+', 'N')
		FROM string_to_table(output, E'\n') line WHERE line ~ 'Flush|Planned-|Planned [DA]';
END $$;
SELECT format_lines('yaml');
SELECT format_lines('xml');
-- VERBOSE lists the tables.
SELECT line FROM explain_analyze('SELECT count(*) FROM t', ', VERBOSE') line WHERE line ~ 'Flushed Tables';

-- A cost may be infinite, for which JSON has no number.
UPDATE t SET id = id WHERE id <= 10;
SET temp_parallel.share_local_buffers = off;
SET temp_parallel.write_temp_page_cost = 1e308;
DO $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT count(*) FROM t' INTO plan;
	PERFORM plan::jsonb;
END $$;
RESET temp_parallel.write_temp_page_cost;

DROP FUNCTION explain_analyze, flush_plan, format_lines;
DROP TABLE t, other;
DROP EXTENSION temp_parallel;
