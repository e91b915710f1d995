--
-- What the planner charges for a flush.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
SET temp_buffers = '64MB';
\i sql/include/cheap_workers.sql
-- With costly rows a parallel plan is the cheapest, whatever its flush costs.
SET cpu_tuple_cost = 100;
\i sql/include/row_a_page.sql
\i sql/include/explain_flush.sql

-- The cost is computed with the current settings.
UPDATE t SET id = id WHERE id <= 10;
SET temp_parallel.write_temp_page_cost = 7;
SELECT (plan->>'Planned Flush Cost')::float8 =
       7 * (plan->>'Planned Dirtied Buffers')::int AS cost,
       (plan->>'Planned Flush Cost')::float8 = (temp_parallel_flush_cost('t')).flush_cost AS same,
       (plan->>'Planned Allocated Buffers')::int = pg_allocated_local_buffers() AS allocated,
       (plan->>'Planned Dirtied Buffers')::int >= 10 AS dirtied
  FROM flush_plan('SELECT count(*) FROM t') plan;

-- A table joined with itself is flushed, and charged, once.
SELECT (plan->>'Planned Flush Cost')::float8 = (temp_parallel_flush_cost('t')).flush_cost AS once
  FROM flush_plan('SELECT count(*) FROM t a JOIN t b USING (id)') plan;
-- Two tables are charged together, with one scan of the pool.
SET temp_parallel.buffer_scan_cost = 1;
SELECT (plan->>'Planned Flush Cost')::float8 =
       (temp_parallel_flush_cost('t')).flush_cost + (temp_parallel_flush_cost('other')).flush_cost
       - pg_allocated_local_buffers() AS together
  FROM flush_plan('SELECT count(*) FROM t JOIN other USING (id)') plan;
RESET temp_parallel.buffer_scan_cost;
SET temp_parallel.write_temp_page_cost = 0;

-- The cost is proportional to the tablespace's own seq_page_cost.
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_temp_parallel_slow LOCATION '' WITH (seq_page_cost = 3);
CREATE TEMP TABLE slow (LIKE t INCLUDING STORAGE) TABLESPACE regress_temp_parallel_slow;
INSERT INTO slow SELECT * FROM t;
ANALYZE slow;
SET temp_parallel.buffer_scan_cost = 0;
SET temp_parallel.write_temp_page_cost = 1;
SELECT (temp_parallel_flush_cost('slow')).flush_cost AS slow \gset cost_
SET seq_page_cost = 3;
SELECT (temp_parallel_flush_cost('slow')).flush_cost * 3 = :cost_slow AS three_times;
RESET seq_page_cost;
SET temp_parallel.write_temp_page_cost = 0;
SELECT count(*) AS flushed FROM explain_analyze('SELECT count(*), sum(id) FROM slow') line
 WHERE line ~ 'TempFlush';
SELECT count(*), sum(id) FROM slow;
DROP TABLE slow;
DROP TABLESPACE regress_temp_parallel_slow;

-- What a flush costs is in the costs of the node and of each node above it, also in a subplan.
SET temp_parallel.write_temp_page_cost = 0.01;
UPDATE t SET id = id WHERE id < 100;
UPDATE other SET id = id WHERE id < 100;
CREATE FUNCTION costs_less_than_child(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN QUERY SELECT node->>'Node Type' FROM jsonb_path_query(plan, 'strict $.** ? (@.Plans.type() == "array")') node,
		jsonb_array_elements(node->'Plans') child
	WHERE child->>'Parent Relationship' = 'Outer' AND node->>'Node Type' <> 'Limit' AND
		((child->>'Startup Cost')::float8 > (node->>'Startup Cost')::float8 OR
		 (child->>'Total Cost')::float8 > (node->>'Total Cost')::float8 OR
		 (node->>'Custom Plan Provider' = 'TempFlush' AND child->>'Startup Cost' = node->>'Startup Cost'));
END $$;
SELECT costs_less_than_child('SELECT count(*) FROM t');
SELECT costs_less_than_child('SELECT count(*) FROM other WHERE id NOT IN (SELECT id FROM t)');
SELECT costs_less_than_child('SELECT count(*) FROM other WHERE id > (SELECT avg(id) FROM t)');
DROP FUNCTION costs_less_than_child;
-- However much it costs, that is the reason.
SET temp_parallel.share_local_buffers = off;
SET temp_parallel.write_temp_page_cost = 1e308;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
SET temp_parallel.write_temp_page_cost = 0;
SET temp_parallel.buffer_scan_cost = 1e308;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
RESET temp_parallel.buffer_scan_cost;
RESET temp_parallel.share_local_buffers;

DROP FUNCTION explain_analyze, flush_plan;
DROP TABLE t, other;
DROP EXTENSION temp_parallel;
