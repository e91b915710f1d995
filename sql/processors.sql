--
-- Fewer processors than processes. If each process below a Gather repeats a large
-- part of the work, no more processes run the plan than there are processors, and
-- the leader only gathers; if it is nearly all of the work, the leader is alone.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
\i sql/include/cheap_workers.sql
\i sql/include/same.sql
\i sql/include/nodes.sql
-- Rows are expensive to pass on, so that one Gather at the top is best.
SET parallel_tuple_cost = 5;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET enable_parallel_hash = off;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;

CREATE TEMP TABLE t (id int, k int, v int);
INSERT INTO t SELECT g, g % 10, g % 100 FROM generate_series(1, 10000) g;
CREATE TEMP TABLE o AS SELECT g AS id FROM generate_series(1, 4) g;
CREATE TEMP TABLE h AS SELECT * FROM t WHERE id <= 4000;
CREATE TABLE p AS TABLE t;
ANALYZE t;
ANALYZE h;
ANALYZE o;
ANALYZE p;

-- How a query runs: the number of workers launched; the number of processes that ran
-- the outermost leaf of the plan; and what EXPLAIN shows about the leader, about how many
-- processes may run the plan, and why none was launched.
CREATE FUNCTION run(query text, OUT workers int, OUT processes int, OUT leader text, OUT at_most int, OUT skipped text)
LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	plan := plan->0->'Plan';
	WHILE plan IS NOT NULL LOOP
		workers := coalesce((plan->>'Workers Launched')::int, workers);
		processes := plan->>'Actual Loops';
		leader := coalesce(plan->>'Leader', leader);
		at_most := coalesce((plan->>'Processes')::int, at_most);
		skipped := coalesce(plan->>'Flush Skipped', skipped);
		plan := plan->'Plans'->0;
	END LOOP;
END $$;

-- Does a query return the same rows as without workers? Those that differ are printed.
CREATE FUNCTION same_rows(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	with_workers text;
	without text;
BEGIN
	query := format('SELECT string_agg(q::text, chr(10)) FROM (%s) q', query);
	SET LOCAL temp_parallel.enabled = on;
	EXECUTE query INTO with_workers;
	SET LOCAL temp_parallel.enabled = off;
	EXECUTE query INTO without;
	SET LOCAL temp_parallel.enabled = on;
	RETURN pg_temp.same('with workers', with_workers, without);
END $$;

-- Each process builds its own hash table over the aggregate.
\set repeated 'SELECT count(*), sum(a.m) FROM t JOIN (SELECT id, max(v) AS m FROM h GROUP BY id) a USING (id)'
PREPARE repeated AS :repeated;

-- With as many processors as processes, or more, nothing changes.
SET temp_parallel.processors = 16;
SELECT pg_temp.nodes(:'repeated');
SELECT * FROM run(:'repeated');
:repeated;
SET temp_parallel.processors = 3;
SELECT * FROM run(:'repeated');

-- On two processors, two workers run the plan without the leader.
SET temp_parallel.processors = 2;
EXPLAIN (COSTS OFF) :repeated;
SELECT * FROM run(:'repeated');
:repeated;

-- On one, the leader is alone: a worker would be no faster.
SET temp_parallel.processors = 1;
SELECT * FROM run(:'repeated');
:repeated;

-- So it is on two if nearly all work is repeated, as two processes at once do that more
-- slowly than one, and nothing is flushed; on more, if less of it is.
\set mostly 'SELECT count(*), sum(a.m) FROM t JOIN (SELECT id, max(v) AS m FROM t GROUP BY id) a USING (id)'
SET temp_parallel.processors = 2;
SELECT pg_temp.nodes(:'mostly');
UPDATE t SET v = v WHERE id = 1;
SELECT pg_dirty_local_buffers() AS before \gset
SELECT * FROM run(:'mostly');
:mostly;
SELECT :before - pg_dirty_local_buffers() AS written;
SET temp_parallel.processors = 3;
SELECT * FROM run(:'mostly');

-- The leader participates if fewer workers than processors are launched, and does
-- everything if none are. If it only gathered, a processor would be idle, or the query
-- would return nothing. Each process sleeps a while: if the first worker ended before the
-- leader asks for the second, there would be room for that.
SET temp_parallel.processors = 2;
SET max_parallel_workers = 1;
CREATE FUNCTION sleeps(int) RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE AS 'BEGIN PERFORM pg_sleep(0.2); RETURN true; END';
\set slow 'SELECT count(*), sum(a.m) FROM t JOIN (SELECT id, max(v) AS m FROM h WHERE id > 1 OR sleeps(id) GROUP BY id) a USING (id)'
SELECT * FROM run(:'slow');
:slow;
SET max_parallel_workers = 0;
SELECT * FROM run(:'repeated');
:repeated;
RESET max_parallel_workers;

-- A plan for four workers and the leader launches as many workers as there are
-- processors. A cached plan keeps the number of processors for which it was made.
ALTER TABLE t SET (parallel_workers = 4);
SET max_parallel_workers_per_gather = 4;
SET plan_cache_mode = force_generic_plan;
SELECT pg_temp.nodes('EXECUTE repeated');
SELECT * FROM run('EXECUTE repeated');
SET temp_parallel.processors = 3;
SELECT * FROM run('EXECUTE repeated');
SELECT * FROM run(:'repeated');
SET temp_parallel.processors = 5;
SELECT * FROM run(:'repeated');
SET max_parallel_workers_per_gather = 2;
ALTER TABLE t RESET (parallel_workers);
RESET plan_cache_mode;

-- With parallel_leader_participation off, only workers count as processes.
SET parallel_leader_participation = off;
SET temp_parallel.processors = 2;
SELECT * FROM run(:'repeated');
RESET parallel_leader_participation;

-- Nothing changes if little work is repeated, if all processes build a hash table
-- together, and for permanent tables.
SELECT * FROM run('SELECT count(*) FROM t');
SELECT * FROM run('SELECT count(*) FROM t JOIN o USING (id)');
SET enable_parallel_hash = on;
SELECT workers, leader FROM run('SELECT count(*) FROM t JOIN t u USING (id)');
SET enable_parallel_hash = off;
SELECT * FROM run('SELECT count(*), sum(a.m) FROM p JOIN (SELECT id, max(v) AS m FROM p GROUP BY id) a USING (id)');

-- What EXPLAIN shows with costs, and in a format other than text.
SET temp_parallel.processors = 2;
CREATE FUNCTION plan(query text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan';
END $$;
SELECT regexp_replace(line, '[0-9.]+', 'N', 'g') AS line
  FROM json_each_text(plan(:'repeated')->'Plans'->0->'Plans'->0) AS e (name, value),
	   concat_ws(': ', name, value) AS line
 WHERE name IN ('Leader', 'Processes');

-- A value of a temporary table that is sent to workers does not change how many of
-- them read permanent tables.
SELECT jsonb_path_query(plan, 'strict $.**."Workers Planned"') AS workers, jsonb_path_exists(plan, 'strict $.**."Processes"') AS limited
  FROM to_jsonb(plan('SELECT count(*), sum(a.m) FROM p JOIN (SELECT id, max(v) AS m FROM p GROUP BY id) a USING (id) WHERE p.v < (SELECT 10 * max(id) FROM o)')) AS plan;

-- Other plans, which return the same rows if the leader only gathers. If it ran a part
-- of the plan, or missed rows of workers, rows would be returned twice, or be missing.
SET temp_parallel.processors = 2;
\set inner '(SELECT id, max(v) AS m FROM h GROUP BY id) a USING (id)'
CREATE FUNCTION check_shape(query text, OUT workers int, OUT leader text, OUT same bool)
LANGUAGE plpgsql AS $$
BEGIN
	SELECT r.workers, r.leader INTO workers, leader FROM run(query) r;
	same := same_rows(query);
END $$;
SELECT * FROM check_shape('SELECT k, count(*), sum(m) FROM t JOIN ' || :'inner' || ' GROUP BY k ORDER BY k');
-- Gather Merge, with all rows and with a bounded sort
SELECT * FROM check_shape('SELECT t.*, m FROM t JOIN ' || :'inner' || ' WHERE t.v + m = 14 ORDER BY id');
SELECT * FROM check_shape('SELECT t.*, m FROM t JOIN ' || :'inner' || ' ORDER BY id LIMIT 20');
-- stopped early
SELECT * FROM check_shape('SELECT count(*) FROM (SELECT FROM t JOIN ' || :'inner' || ' WHERE t.v + m = 14 LIMIT 45) q');
-- launched repeatedly
SELECT * FROM check_shape('SELECT o.id, (SELECT t.id FROM t JOIN ' || :'inner' ||
	' WHERE t.v + m = 14 ORDER BY t.id LIMIT 1 OFFSET o.id) FROM o');
-- a hash table built by all processes together, and one built by each process
SET enable_parallel_hash = on;
SELECT pg_temp.nodes('SELECT count(*), sum(a.m), sum(u.v) FROM t JOIN t u USING (id) JOIN ' || :'inner');
SELECT * FROM check_shape('SELECT count(*), sum(a.m), sum(u.v) FROM t JOIN t u USING (id) JOIN ' || :'inner');
SET enable_parallel_hash = off;
-- the inner side of a merge join, which each process sorts
SET enable_mergejoin = on;
SET enable_hashjoin = off;
SELECT pg_temp.nodes(:'repeated');
SELECT * FROM check_shape(:'repeated');
SET enable_mergejoin = off;
SET enable_hashjoin = on;
-- a part that one process runs alone is not repeated
CREATE TEMP TABLE s WITH (parallel_workers = 0) AS TABLE t;
ANALYZE s;
\set once 'SELECT count(*) FROM (SELECT id FROM t UNION ALL SELECT s.id FROM s JOIN (SELECT id, max(v) AS m FROM s GROUP BY id) a USING (id)) q'
SELECT pg_temp.nodes(:'once');
SELECT * FROM check_shape(:'once');

-- A statement that is executed for a limited number of rows launches no workers, so
-- the leader does everything.
DO $$
DECLARE
	n bigint;
BEGIN
	SELECT count(*) INTO n FROM t JOIN (SELECT id, max(v) AS m FROM h GROUP BY id) a USING (id);
	RAISE NOTICE '% rows', n;
END $$;

-- After an error in a worker, statements run as before.
\set VERBOSITY terse
SELECT count(*), sum(1 / (t.v - a.m)) FROM t JOIN :inner;
\set VERBOSITY default
SELECT * FROM check_shape(:'repeated');

DROP TABLE t, o, h, s, p;
DROP EXTENSION temp_parallel;
