--
-- Aggregates, sorting and LIMIT: what workers do with the rows that they read
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/shapes.sql

SET temp_buffers = '2MB';

CREATE TEMP TABLE t (id int, g int, h int, v int, s text);
INSERT INTO t SELECT i, i % 10, i % 7, i, 's' || i % 50 FROM generate_series(1, 5000) i;
CREATE INDEX t_id ON t (id);
ANALYZE t;

-- Before each query, every page is changed and the change committed: if a page
-- were not flushed, workers would return other rows, or fail.
\set check 'UPDATE t SET v = v + 1; SELECT * FROM pg_temp.both_ways'

--
-- Partial aggregation in workers
--
:check ('SELECT count(*), sum(v), min(v), max(s), avg(v) FROM t', 'Partial Aggregate', 'Parallel Seq Scan on t');
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM t;
:check ('SELECT count(v) FILTER (WHERE g > 3), bool_and(v > 0), stddev(v::numeric) FROM t', 'Partial Aggregate');
-- no rows
:check ('SELECT count(*), sum(v) FROM t WHERE v + id < 0', 'Partial Aggregate');

-- groups, hashed in the workers; sorted in the workers
SET enable_sort = off;
:check ('SELECT g, h, count(*), sum(v) FROM t GROUP BY g, h', 'Partial HashAggregate');
RESET enable_sort;
SET enable_hashagg = off;
:check ('SELECT g, h, count(*), sum(v) FROM t GROUP BY g, h', 'Partial GroupAggregate', 'Sort');
RESET enable_hashagg;
:check ('SELECT g, sum(v) FROM t GROUP BY g HAVING sum(v) % 2 = 0', 'Partial');
:check ('SELECT s, sum(v) AS sv FROM t GROUP BY s ORDER BY sv DESC', 'Partial');

-- aggregates that cannot be partial: the workers only scan
:check ('SELECT count(DISTINCT s), sum(DISTINCT h) FROM t', 'Parallel Seq Scan on t');
:check ('SELECT g, count(DISTINCT v % 100) FROM t GROUP BY g', 'Parallel Seq Scan on t');
:check ('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM t', 'Parallel Seq Scan on t');

-- DISTINCT
:check ('SELECT DISTINCT g, v % 2 AS x FROM t', 'Parallel Seq Scan on t');
:check ('SELECT DISTINCT ON (g) g, v FROM t ORDER BY g, v DESC', 'Parallel Seq Scan on t');

-- grouping sets
:check ('SELECT g, h, count(*), sum(v) FROM t GROUP BY GROUPING SETS ((g), (h), ())', 'Parallel Seq Scan on t');
:check ('SELECT g, h, sum(v) FROM t GROUP BY ROLLUP (g, h)', 'Parallel Seq Scan on t');
:check ('SELECT g, h, sum(v) FROM t GROUP BY CUBE (g, h)', 'Parallel Seq Scan on t');

-- window functions, above Gather
:check ('SELECT id, g, sum(v) OVER (PARTITION BY g ORDER BY id) FROM t', 'Parallel');
:check ('SELECT * FROM (SELECT id, g, v, rank() OVER (PARTITION BY g ORDER BY v DESC) AS r FROM t) w WHERE r < 4', 'Parallel');

-- an aggregate of aggregates; grouping by an expression
:check ('SELECT max(c) FROM (SELECT g, count(*) AS c FROM t GROUP BY g) x', 'Partial');
:check ('SELECT g * 2 AS d, upper(max(s)) FROM t GROUP BY g * 2', 'Partial');

--
-- Partitionwise aggregation
--
CREATE TEMP TABLE pt (id int, g int, h int, v int) PARTITION BY LIST (g);
CREATE TEMP TABLE pt0 PARTITION OF pt FOR VALUES IN (0, 1, 2, 3, 4);
CREATE TEMP TABLE pt1 PARTITION OF pt DEFAULT;
INSERT INTO pt SELECT i, i % 10, i % 3, i FROM generate_series(1, 5000) i;
ANALYZE pt;
\set check_p 'UPDATE pt SET v = v + 1; SELECT * FROM pg_temp.both_ways'
:check_p ('SELECT g, count(*), sum(v) FROM pt GROUP BY g', 'Partial', 'Parallel Append');
SET enable_partitionwise_aggregate = on;
:check_p ('SELECT g, count(*), sum(v) FROM pt GROUP BY g', 'Parallel Seq Scan on pt0');
:check_p ('SELECT h, count(*), sum(v) FROM pt GROUP BY h', 'Parallel Append', 'Partial');
:check_p ('SELECT count(*), sum(v) FROM pt', 'Parallel Append', 'Partial Aggregate');
RESET enable_partitionwise_aggregate;

--
-- Sorting: Gather Merge
--
-- by a sort; by an index; by an index and an incremental sort
:check ('SELECT id, v FROM t ORDER BY v, id', 'Sort', 'Parallel Seq Scan on t');
EXPLAIN (COSTS OFF) SELECT id, v FROM t ORDER BY v, id;
SET enable_seqscan = off;
SET enable_sort = off;
:check ('SELECT id, v FROM t ORDER BY id', 'Parallel Index Scan using t_id on t');
RESET enable_sort;
SET enable_incremental_sort = on;
:check ('SELECT id, v FROM t WHERE id < 4000 ORDER BY id, v', 'Parallel Index Scan using t_id on t');
RESET enable_seqscan;
-- partitions
:check_p ('SELECT id, v FROM pt ORDER BY v DESC, id', 'Sort', 'Parallel Append');

-- LIMIT
:check ('SELECT id, v FROM t ORDER BY v DESC, id LIMIT 10', 'Sort');
:check ('SELECT id, v FROM t ORDER BY v DESC, id LIMIT 10 OFFSET 100', 'Sort');
:check ('SELECT g, sum(v) AS sv FROM t GROUP BY g ORDER BY sv LIMIT 3', 'Partial');
EXPLAIN (COSTS OFF) SELECT id, v FROM t ORDER BY v DESC LIMIT 10;

-- The bound of a LIMIT reaches the sorts in the workers, which keep 10 rows
-- instead of all.  Any sort method other than top-N means that the bound has
-- not passed the flush node.  A worker that gets fewer than 10 rows would use
-- quicksort, so one worker gets all the rows: a plan for a leader and a worker
-- is run without the leader.
CREATE FUNCTION pg_temp.sort_methods(query text) RETURNS SETOF text LANGUAGE plpgsql
SET max_parallel_workers_per_gather = 1 SET parallel_leader_participation = on
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
	line text;
BEGIN
	EXECUTE 'PREPARE sorted AS ' || query;
	EXECUTE 'EXPLAIN EXECUTE sorted';
	PERFORM set_config('parallel_leader_participation', 'off', true);
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE sorted' LOOP
		IF line ~ 'Sort Method' THEN
			RETURN NEXT regexp_replace(line, '^.*Sort Method: *| *Memory:.*| *Disk:.*', '', 'g');
		ELSIF line ~ 'Gather|Limit|Sort  |Join|TempFlush|Scan|Append|Workers Launched' THEN
			RETURN NEXT regexp_replace(line, '^ *(->  )?| *\(actual.*', '', 'g');
		END IF;
	END LOOP;
	DEALLOCATE sorted;
END
$$;
UPDATE t SET v = v + 1;
SELECT pg_temp.sort_methods('SELECT id, v FROM t ORDER BY v DESC LIMIT 10');
-- through a projection above the sort
SELECT pg_temp.sort_methods('SELECT id, md5(s) FROM t ORDER BY v DESC LIMIT 10');
-- through a subquery; above partitions
SELECT pg_temp.sort_methods('SELECT id, v FROM (SELECT id, v + 1 AS v FROM t WHERE g < 8) x ORDER BY v DESC LIMIT 10');
SELECT pg_temp.sort_methods('SELECT id, v FROM pt ORDER BY v DESC LIMIT 10');
-- above a join
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT pg_temp.sort_methods('SELECT x.id, y.v FROM t x JOIN t y USING (id) ORDER BY y.v DESC, x.id LIMIT 10');
-- without LIMIT, another method
SELECT pg_temp.sort_methods('SELECT id, v FROM t ORDER BY v DESC');
