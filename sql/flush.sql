--
-- Custom Scan (TempFlush): what it writes, when, and what EXPLAIN says of it.
--
CREATE EXTENSION temp_parallel;
SET temp_buffers = '64MB';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 0;
-- Dear rows make a parallel plan pay whatever is to be flushed.
SET cpu_tuple_cost = 100;

CREATE TEMP TABLE t (id int, filler char(5000));
ALTER TABLE t ALTER filler SET STORAGE PLAIN;
INSERT INTO t SELECT g, '' FROM generate_series(1, 500) g;
CREATE TEMP TABLE other (LIKE t INCLUDING STORAGE);
INSERT INTO other SELECT * FROM t;
ANALYZE t;
ANALYZE other;
SELECT pg_flush_local_buffers() >= 1000 AS clean;

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

-- The dirty pages of the table that workers read are written, all of them, and
-- not those of any other table.
UPDATE t SET id = id WHERE id <= 10;
UPDATE other SET id = id WHERE id <= 20;
SELECT pg_dirty_local_buffers() AS dirty \gset
SET temp_parallel.write_temp_page_cost = 1;
SELECT pg_temp_flush_cost('t') AS t, pg_temp_flush_cost('other') AS other \gset dirty_
SELECT :dirty_t >= 10 AS t, :dirty_other >= 20 AS other,
       :dirty_t + :dirty_other = :dirty AS both;
SET temp_parallel.write_temp_page_cost = 0;
SELECT regexp_replace(line, 'written=' || :dirty_t || '$', 'written=(all dirty pages of t)')
  FROM explain_analyze('SELECT count(*), sum(id) FROM t') line;
SELECT pg_dirty_local_buffers() = :dirty_other AS other_is_still_dirty;

-- A second query finds nothing to write.
SELECT explain_analyze('SELECT count(*), sum(id) FROM t');

-- A cursor, or a fetch of some rows, does not enter parallel mode, and writes
-- nothing, although the plan could.
UPDATE t SET id = id WHERE id <= 10;
SELECT pg_dirty_local_buffers() AS dirty \gset
BEGIN;
DECLARE c CURSOR FOR SELECT count(*), sum(id) FROM t;
FETCH ALL FROM c;
COMMIT;
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT id FROM t LOOP
		EXIT;
	END LOOP;
END $$;
-- EXPLAIN without ANALYZE does not either.
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM t;
SELECT pg_dirty_local_buffers() = :dirty AS nothing_written;

-- Neither does a statement whose parallel plan has no temporary table.
CREATE TABLE permanent AS SELECT * FROM t;
ANALYZE permanent;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM permanent;
SELECT count(*), sum(id) FROM permanent;
SELECT pg_dirty_local_buffers() = :dirty AS nothing_written;
DROP TABLE permanent;

-- The planner's numbers.
SELECT pg_flush_local_buffers() > 0 AS clean;
UPDATE t SET id = id WHERE id <= 10;
SET temp_parallel.write_temp_page_cost = 7;
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
SELECT (plan->>'Planned Flush Cost')::float8 =
       7 * (plan->>'Planned Dirtied Buffers')::int AS cost,
       (plan->>'Planned Flush Cost')::float8 = pg_temp_flush_cost('t') AS same,
       (plan->>'Planned Allocated Buffers')::int = pg_allocated_local_buffers() AS allocated,
       (plan->>'Planned Dirtied Buffers')::int >= 10 AS dirtied
  FROM flush_plan('SELECT count(*) FROM t') plan;

-- A table joined with itself is flushed, and charged, once.
SELECT (plan->>'Planned Flush Cost')::float8 = pg_temp_flush_cost('t') AS once
  FROM flush_plan('SELECT count(*) FROM t a JOIN t b USING (id)') plan;
-- Two tables are charged together, looking at the pool once.
SET temp_parallel.buffer_scan_cost = 1;
SELECT (plan->>'Planned Flush Cost')::float8 =
       pg_temp_flush_cost('t') + pg_temp_flush_cost('other')
       - pg_allocated_local_buffers() AS together
  FROM flush_plan('SELECT count(*) FROM t JOIN other USING (id)') plan;
RESET temp_parallel.buffer_scan_cost;
SET temp_parallel.write_temp_page_cost = 0;

-- A tablespace with its own seq_page_cost is charged in that proportion.
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_temp_parallel_slow LOCATION '' WITH (seq_page_cost = 3);
CREATE TEMP TABLE slow (LIKE t INCLUDING STORAGE) TABLESPACE regress_temp_parallel_slow;
INSERT INTO slow SELECT * FROM t;
ANALYZE slow;
SET temp_parallel.buffer_scan_cost = 0;
SET temp_parallel.write_temp_page_cost = 1;
SELECT pg_temp_flush_cost('slow') AS slow \gset cost_
SET seq_page_cost = 3;
SELECT pg_temp_flush_cost('slow') * 3 = :cost_slow AS three_times;
RESET seq_page_cost;
SET temp_parallel.write_temp_page_cost = 0;
SELECT count(*) AS flushed FROM explain_analyze('SELECT count(*), sum(id) FROM slow') line
 WHERE line ~ 'TempFlush';
SELECT count(*), sum(id) FROM slow;
DROP TABLE slow;
DROP TABLESPACE regress_temp_parallel_slow;

-- EXPLAIN's other formats name the same things.
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
-- VERBOSE names the tables.
SELECT line FROM explain_analyze('SELECT count(*) FROM t', ', VERBOSE') line WHERE line ~ 'Flushed Tables';

-- Of its indexes, those that the workers scan are written, and those that they do
-- not scan are left dirty: a table may have many, and most queries use none.
CREATE TEMP TABLE indexed (id int, k int, filler text);
CREATE INDEX indexed_id ON indexed (id);
CREATE INDEX indexed_k ON indexed (k);
CREATE INDEX indexed_hash ON indexed USING hash (k);
INSERT INTO indexed SELECT g, g % 1000, repeat('x', 100) FROM generate_series(1, 10000) g;
ANALYZE indexed;
CREATE VIEW dirty_relations AS
	SELECT relation FROM pg_local_buffers_relations()
	 WHERE "table" = 'indexed'::regclass GROUP BY relation HAVING sum(dirty) > 0 ORDER BY relation::text;
-- Is Gather charged with what its flush node is going to write?
CREATE FUNCTION charged(query text, OUT as_planned bool) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	as_planned := jsonb_path_query_first(plan, 'strict $.** ? (@."Node Type" == "Gather")')->'Startup Cost' =
		jsonb_path_query_first(plan, 'strict $.** ? (@."Custom Plan Provider" == "TempFlush")')->'Startup Cost';
END $$;
SELECT * FROM dirty_relations;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT explain_analyze('SELECT count(filler) FROM indexed WHERE id > 5000', ', VERBOSE')
INTERSECT SELECT '              Flushed Indexes: indexed_id';
SELECT count(filler) FROM indexed WHERE id > 5000;
SELECT * FROM dirty_relations;
RESET enable_seqscan;
-- None: the plan is not charged for them, and they stay dirty.
UPDATE indexed SET k = k + 1;
SET temp_parallel.write_temp_page_cost = 1;
SELECT (plan->>'Planned Flush Cost')::float8 = sum(dirty) AS without_indexes
  FROM flush_plan('SELECT sum(k) FROM indexed') plan,
	   pg_local_buffers_relations() WHERE "table" = 'indexed'::regclass AND kind <> 'index'
 GROUP BY plan->>'Planned Flush Cost';
SELECT * FROM charged('SELECT sum(k) FROM indexed');
SET temp_parallel.write_temp_page_cost = 0;
SELECT sum(k) FROM indexed;
SELECT * FROM dirty_relations;
-- By bitmap scans, two of them.
SET enable_seqscan = off;
SET enable_indexscan = off;
RESET enable_bitmapscan;
SET temp_parallel.write_temp_page_cost = 1;
SELECT * FROM charged('SELECT count(filler) FROM indexed WHERE id < 200 OR k < 7');
SET temp_parallel.write_temp_page_cost = 0;
SELECT line FROM explain_analyze('SELECT count(filler) FROM indexed WHERE id < 200 OR k < 7', ', VERBOSE') line
 WHERE line ~ 'Flushed Indexes|Bitmap.* Scan';
SELECT count(filler) FROM indexed WHERE id < 200 OR k < 7;
SELECT * FROM dirty_relations;
-- On the inner side of a join, which is charged for the index.
UPDATE indexed SET id = id + 1;
RESET enable_seqscan;
RESET enable_indexscan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET temp_parallel.write_temp_page_cost = 1;
EXPLAIN (COSTS OFF) SELECT count(indexed.filler) FROM other JOIN indexed USING (id);
SELECT (plan->>'Planned Flush Cost')::float8 = sum(dirty) AS with_index
  FROM flush_plan('SELECT count(indexed.filler) FROM other JOIN indexed USING (id)') plan,
	   pg_local_buffers_relations()
 WHERE kind <> 'index' AND "table" IN ('indexed'::regclass, 'other'::regclass) OR relation = 'indexed_id'::regclass
 GROUP BY plan->>'Planned Flush Cost';
SELECT * FROM charged('SELECT count(indexed.filler) FROM other JOIN indexed USING (id)');
SET temp_parallel.write_temp_page_cost = 0;
SELECT count(indexed.filler) FROM other JOIN indexed USING (id);
SELECT * FROM dirty_relations;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- A Gather that is started again launches workers, and so flushes, again. (The
-- subquery is correlated above its Gather only.)
CREATE TEMP TABLE outside AS SELECT g AS x FROM generate_series(1, 3) g;
ANALYZE outside;
SET enable_material = off;
SET enable_memoize = off;
SELECT explain_analyze('SELECT x, n FROM outside, LATERAL (SELECT count(*) AS n FROM t HAVING count(*) > x) s');
SELECT x, n FROM outside, LATERAL (SELECT count(*) AS n FROM t HAVING count(*) > x) s ORDER BY x;

-- The visibility map belongs to what is written. Were it left out, workers would
-- find the old one in its file, by which the deleted rows are there: 2000.
CREATE TEMP TABLE mapped (id int, pad text) WITH (fillfactor = 10);
INSERT INTO mapped SELECT g, repeat('p', 500) FROM generate_series(1, 2000) g;
CREATE INDEX mapped_id ON mapped (id);
VACUUM ANALYZE mapped;
SELECT buffers_evicted > 0 AS evicted FROM pg_evict_local_buffers();
DELETE FROM mapped WHERE id % 2 = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_index_scan_size = 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET parallel_leader_participation = off;
SET temp_parallel.write_temp_page_cost = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM mapped WHERE id > 0;
SELECT count(*) FROM mapped WHERE id > 0;
DROP FUNCTION explain_analyze, flush_plan, format_lines, charged;
DROP VIEW dirty_relations;
DROP TABLE t, other, outside, mapped, indexed;
DROP EXTENSION temp_parallel;
