--
-- Which indexes of a table are flushed, and charged for.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
SET temp_buffers = '64MB';
\i sql/include/cheap_workers.sql
-- With costly rows a parallel plan is the cheapest, whatever its flush costs.
SET cpu_tuple_cost = 100;
\i sql/include/row_a_page.sql
\i sql/include/explain_flush.sql

-- The indexes that the workers scan are written. The other ones stay dirty: a
-- table may have many, and most queries use none.
CREATE TEMP TABLE indexed (id int, k int, filler text);
CREATE INDEX indexed_id ON indexed (id);
CREATE INDEX indexed_k ON indexed (k);
CREATE INDEX indexed_hash ON indexed USING hash (k);
INSERT INTO indexed SELECT g, g % 1000, repeat('x', 100) FROM generate_series(1, 10000) g;
ANALYZE indexed;
CREATE TEMP VIEW dirty_relations AS
	SELECT relation FROM temp_parallel_relations()
	 WHERE "table" = 'indexed'::regclass GROUP BY relation HAVING sum(dirty) > 0 ORDER BY relation::text;
-- Is Gather charged for what its flush node is going to write?
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
-- No index is scanned: the plan is not charged for them, and they stay dirty.
UPDATE indexed SET k = k + 1;
SET temp_parallel.write_temp_page_cost = 1;
SELECT (plan->>'Planned Flush Cost')::float8 = sum(dirty) AS without_indexes
  FROM flush_plan('SELECT sum(k) FROM indexed') plan,
	   temp_parallel_relations() WHERE "table" = 'indexed'::regclass AND kind <> 'index'
 GROUP BY plan->>'Planned Flush Cost';
SELECT * FROM charged('SELECT sum(k) FROM indexed');
SET temp_parallel.write_temp_page_cost = 0;
SELECT sum(k) FROM indexed;
SELECT * FROM dirty_relations;
-- Two bitmap index scans.
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
-- An index scan on the inner side of a join, which is charged for the index.
UPDATE indexed SET id = id + 1;
RESET enable_seqscan;
RESET enable_indexscan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET temp_parallel.write_temp_page_cost = 1;
EXPLAIN (COSTS OFF) SELECT count(indexed.filler) FROM other JOIN indexed USING (id);
SELECT (plan->>'Planned Flush Cost')::float8 = sum(dirty) AS with_index
  FROM flush_plan('SELECT count(indexed.filler) FROM other JOIN indexed USING (id)') plan,
	   temp_parallel_relations()
 WHERE kind <> 'index' AND "table" IN ('indexed'::regclass, 'other'::regclass) OR relation = 'indexed_id'::regclass
 GROUP BY plan->>'Planned Flush Cost';
SELECT * FROM charged('SELECT count(indexed.filler) FROM other JOIN indexed USING (id)');
SET temp_parallel.write_temp_page_cost = 0;
SELECT count(indexed.filler) FROM other JOIN indexed USING (id);
SELECT * FROM dirty_relations;
RESET enable_hashjoin;
RESET enable_mergejoin;

DROP FUNCTION explain_analyze, flush_plan, charged;
DROP VIEW dirty_relations;
DROP TABLE t, other, indexed;
DROP EXTENSION temp_parallel;
