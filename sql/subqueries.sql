--
-- Subqueries: temporary tables in each place where a query can have a subquery
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/shapes.sql

SET temp_buffers = '2MB';

CREATE TEMP TABLE t (id int, g int, v int);
INSERT INTO t SELECT i, i % 10, i FROM generate_series(1, 3000) i;
CREATE INDEX t_id ON t (id);
CREATE TEMP TABLE u (id int, g int, v int);
INSERT INTO u SELECT i * 3, i % 10, i FROM generate_series(1, 300) i;
ANALYZE t, u;
CREATE TABLE subqueries_p (id int, g int, v int) WITH (autovacuum_enabled = off);
INSERT INTO subqueries_p SELECT i * 2, i % 10, i FROM generate_series(1, 3000) i;
ANALYZE subqueries_p;

-- Before each query, every page of both tables is changed and the change
-- committed: if a page were not flushed, workers would return other rows, or
-- fail.
\set check 'UPDATE t SET v = v + 1; UPDATE u SET v = v + 1; SELECT * FROM pg_temp.both_ways'

--
-- In FROM
--
-- pulled up; with an aggregate; with a window function; with OFFSET 0, which
-- keeps it from being pulled up
:check ('SELECT x.id, x.w FROM (SELECT id, v * 2 AS w FROM t WHERE g = 3) x WHERE x.w > 100', 'Parallel');
:check ('SELECT x.g, x.s FROM (SELECT g, sum(v) AS s FROM t GROUP BY g) x WHERE x.s % 2 = 0', 'Partial');
:check ('SELECT max(r) FROM (SELECT rank() OVER (ORDER BY v) AS r FROM t) x', 'Parallel');
:check ('SELECT count(*) FROM (SELECT id, v FROM t OFFSET 0) x', 'Parallel Seq Scan on t');
:check ('SELECT p.id, x.s FROM subqueries_p p JOIN (SELECT g, sum(v) AS s FROM u GROUP BY g) x USING (g)', 'Parallel Seq Scan');
-- a view
CREATE TEMP VIEW t_view AS SELECT g, count(*) AS c FROM t GROUP BY g;
:check ('SELECT * FROM t_view', 'Partial');
CREATE TEMP VIEW t_barrier WITH (security_barrier) AS SELECT id, v FROM t WHERE g < 5;
:check ('SELECT * FROM t_barrier WHERE v % 2 = 0', 'Parallel Seq Scan on t');

--
-- InitPlan
--
-- temporary tables above the InitPlan, in it, in both
:check ('SELECT id, v FROM t WHERE v > (SELECT avg(v) FROM subqueries_p)', 'Parallel Seq Scan on t');
:check ('SELECT id, v FROM t WHERE v > (SELECT avg(v) FROM u)', 'Parallel Seq Scan on t');
:check ('SELECT id, (SELECT max(v) FROM t) AS m FROM t WHERE g = (SELECT min(g) FROM u)', 'Parallel Seq Scan on t');
SELECT * FROM pg_temp.both_ways('SELECT id, v FROM subqueries_p WHERE v > (SELECT sum(v) / 4000 FROM t)');
:check ('SELECT count(*) FROM t WHERE EXISTS (SELECT FROM u WHERE g = 4)', 'Parallel Seq Scan on t');

--
-- SubPlan
--
-- tables without partial paths, so that there is no Gather in the subplan
ALTER TABLE u SET (parallel_workers = 0);
CREATE TEMP TABLE w (id int, g int, v int) WITH (parallel_workers = 0);
INSERT INTO w SELECT * FROM t;
-- hashed, in workers that scan a permanent table; a temporary one; in the
-- target list; in an aggregate
:check ('SELECT id, v FROM subqueries_p WHERE id NOT IN (SELECT id FROM u)', 'Parallel Seq Scan on subqueries_p', 'SubPlan', 'Seq Scan on u');
:check ('SELECT id, v FROM t WHERE id NOT IN (SELECT id FROM u)', 'Parallel Seq Scan on t', 'SubPlan', 'Seq Scan on u');
:check ('SELECT id, v FROM t WHERE g = 3 OR id IN (SELECT id FROM u)', 'Parallel Seq Scan on t', 'SubPlan', 'Seq Scan on u');
:check ('SELECT id, id IN (SELECT id FROM u) AS i FROM subqueries_p', 'Parallel Seq Scan on subqueries_p', 'SubPlan', 'Seq Scan on u');
:check ('SELECT count(*) FILTER (WHERE id IN (SELECT id FROM u)) FROM subqueries_p', 'Parallel Seq Scan on subqueries_p', 'Seq Scan on u');
:check ('SELECT id IN (SELECT id FROM u) AS i, count(*), sum(v) FROM subqueries_p GROUP BY 1', 'Parallel Seq Scan on subqueries_p', 'Seq Scan on u');
-- not hashed: with Materialize
:check ('SELECT id, v FROM subqueries_p WHERE id < ALL (SELECT id * 10 FROM u WHERE v > 100)', 'Parallel Seq Scan on subqueries_p', 'SubPlan', 'Seq Scan on u');
-- on two levels
:check ('SELECT id, v FROM subqueries_p WHERE id NOT IN (SELECT id FROM u WHERE v NOT IN (SELECT id FROM w WHERE g = 1))', 'Parallel Seq Scan on subqueries_p', 'Seq Scan on u', 'Seq Scan on w');
-- in a member of a UNION ALL
:check ('SELECT id, v FROM subqueries_p WHERE id NOT IN (SELECT id FROM u) UNION ALL SELECT id, v FROM t', 'Parallel Append', 'Parallel Seq Scan on subqueries_p', 'Seq Scan on u', 'Parallel Seq Scan on t');

-- A SubPlan that workers initialize but do not run, and whose table is not
-- flushed: BRIN reads a page when its scan is initialized.
CREATE TEMP TABLE r (id int) WITH (parallel_workers = 0);
INSERT INTO r SELECT i FROM generate_series(1, 3000) i;
CREATE INDEX r_brin ON r USING brin (id) WITH (pages_per_range = 1);
ANALYZE r;
EXPLAIN (COSTS OFF) SELECT id FROM r WHERE r.id BETWEEN 1 AND 10;
SELECT s.n - 2990 IN (SELECT id FROM r WHERE r.id BETWEEN 1 AND 10) AS found FROM (SELECT count(*) AS n FROM subqueries_p) s;
SELECT s.n - 2990 IN (SELECT id FROM r WHERE r.id BETWEEN 1 AND 10) AS found FROM (SELECT count(*) AS n FROM t) s;
SELECT count(*) FROM subqueries_p WHERE id < (SELECT max(id) FROM r WHERE r.id BETWEEN 1 AND 10);
SELECT count(*) FROM t WHERE id < (SELECT max(id) FROM r WHERE r.id BETWEEN 1 AND 10);
DROP TABLE r;

-- two Gathers, a SubPlan below one of them
:check ('SELECT (SELECT count(*) FROM t WHERE id NOT IN (SELECT id FROM u)) AS n, count(*), sum(v) FROM subqueries_p', 'Parallel Seq Scan on t', 'Parallel Seq Scan on subqueries_p', 'Seq Scan on u');
ALTER TABLE u RESET (parallel_workers);

-- correlated: core runs it in the leader only
SET client_min_messages = warning;
SELECT n, answers FROM pg_temp.both_ways('SELECT id, (SELECT max(u.v) FROM u WHERE u.g = p.g AND u.id <> p.id) AS m FROM subqueries_p p WHERE id < 200');
SELECT n, answers FROM pg_temp.both_ways('SELECT id FROM t WHERE v > (SELECT avg(u.v) FROM u WHERE u.g = t.g)');
RESET client_min_messages;

--
-- EXISTS, IN and ANY, planned as joins
--
:check ('SELECT id, v FROM t WHERE EXISTS (SELECT FROM u WHERE u.id = t.id)', 'Parallel');
:check ('SELECT id, v FROM t WHERE NOT EXISTS (SELECT FROM u WHERE u.id = t.id)', 'Parallel');
:check ('SELECT id, v FROM t WHERE id IN (SELECT id FROM u WHERE v > 50)', 'Parallel');
:check ('SELECT id, v FROM subqueries_p WHERE id = ANY (SELECT id FROM t WHERE g = 2)', 'Parallel');
:check ('SELECT id, v FROM subqueries_p p WHERE EXISTS (SELECT FROM u WHERE u.id = p.id AND u.g = p.g)', 'Parallel');

--
-- CTE
--
-- inlined; materialized, so that only the leader can scan it; referenced twice;
-- recursive
:check ('WITH c AS (SELECT id, v FROM t WHERE g < 5) SELECT count(*), sum(v) FROM c', 'Partial Aggregate');
:check ('WITH c AS MATERIALIZED (SELECT id, v FROM t WHERE g < 5) SELECT count(*), sum(v) FROM c', 'Parallel Seq Scan on t');
:check ('WITH c AS (SELECT g, sum(v) AS s FROM t GROUP BY g) SELECT x.g, y.s FROM c x JOIN c y ON x.g = y.g + 1', 'Partial');
SET client_min_messages = warning;
SELECT n, answers FROM pg_temp.both_ways('WITH RECURSIVE c AS (SELECT id FROM u WHERE id < 10 UNION ALL SELECT u.id FROM u JOIN c ON u.id = c.id * 2) SELECT * FROM c');
RESET client_min_messages;
-- In the target list of a recursive term, the executor adds the subplans to the
-- node's state when it returns its first row (EXPLAIN does not show them). The
-- leader must find the flush node below their Gather nevertheless.
SET parallel_leader_participation = off;
CREATE TABLE subqueries_on AS WITH RECURSIVE w (id, n) AS (SELECT min(id), 1 FROM t
	UNION ALL SELECT (SELECT max(t.id) FROM t WHERE t.id % 7 < w.id AND t.g <> (SELECT count(*) % 5 FROM t)), n + 1 FROM w WHERE n < 6) SELECT * FROM w;
RESET parallel_leader_participation;
SET temp_parallel.enabled = off;
CREATE TABLE subqueries_off AS WITH RECURSIVE w (id, n) AS (SELECT min(id), 1 FROM t
	UNION ALL SELECT (SELECT max(t.id) FROM t WHERE t.id % 7 < w.id AND t.g <> (SELECT count(*) % 5 FROM t)), n + 1 FROM w WHERE n < 6) SELECT * FROM w;
RESET temp_parallel.enabled;
TABLE subqueries_off;
TABLE subqueries_on EXCEPT TABLE subqueries_off;
TABLE subqueries_off EXCEPT TABLE subqueries_on;
DROP TABLE subqueries_on, subqueries_off;

--
-- Alternatives of which the planner counts the correlated one, and takes the other: plans that
-- differ in it cost the same, and workers would be left out
--
CREATE TEMP TABLE unindexed AS TABLE t;
ANALYZE unindexed;
:check ('SELECT id FROM u WHERE g = 5 OR EXISTS (SELECT FROM unindexed x WHERE x.id = u.id AND x.g = 7)', 'Parallel Seq Scan on unindexed x');
DROP TABLE unindexed;

--
-- LATERAL
--
SET parallel_setup_cost = 100;
SET enable_memoize = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_bitmapscan = off;
:check ('SELECT p.id, x.w FROM subqueries_p p, LATERAL (SELECT t.v + p.v AS w FROM t WHERE t.id = p.id) x', 'Index Scan using t_id on t');
:check ('SELECT t.id, x.i FROM t, LATERAL generate_series(1, t.g) x(i)', 'Parallel Seq Scan on t', 'Function Scan on generate_series');
:check ('SELECT t.id, x.y FROM t, LATERAL (VALUES (t.v), (t.g)) x(y)', 'Parallel Seq Scan on t', 'Values Scan');
-- correlated, and not pulled up
SET client_min_messages = warning;
SELECT n, answers FROM pg_temp.both_ways('SELECT p.id, x.w FROM subqueries_p p, LATERAL (SELECT t.v + p.v AS w FROM t WHERE t.id = p.id OFFSET 0) x');
SELECT n, answers FROM pg_temp.both_ways('SELECT p.id, x.v FROM subqueries_p p, LATERAL (SELECT v FROM t WHERE t.id > p.id ORDER BY id LIMIT 2) x WHERE p.id < 300');
RESET client_min_messages;

DROP TABLE subqueries_p;
