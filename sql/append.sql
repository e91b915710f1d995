--
-- Append: partitions, inheritance and set operations with temporary tables
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
SET compute_query_id = off;	-- EXPLAIN VERBOSE prints it
\i sql/include/shapes.sql
\i sql/include/explain.sql

SET temp_buffers = '2MB';

CREATE TEMP TABLE a (id int, v int, s text);
INSERT INTO a SELECT i, i, 'a' || i % 20 FROM generate_series(1, 3000) i;
CREATE TEMP TABLE b (id int, v int, s text);
INSERT INTO b SELECT i, i, 'b' || i % 30 FROM generate_series(2001, 5000) i;
ANALYZE a, b;
CREATE TABLE append_p (id int, v int, s text) WITH (autovacuum_enabled = off);
INSERT INTO append_p SELECT i, i, 'p' || i % 10 FROM generate_series(4001, 6000) i;
ANALYZE append_p;

--
-- Partitions on two levels
--
CREATE TEMP TABLE pt (id int, g int, v int, s text) PARTITION BY RANGE (id);
CREATE TEMP TABLE pt1 PARTITION OF pt FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TEMP TABLE pt2 PARTITION OF pt FOR VALUES FROM (1000) TO (3000) PARTITION BY LIST (g);
CREATE TEMP TABLE pt2a PARTITION OF pt2 FOR VALUES IN (0, 1);
CREATE TEMP TABLE pt2b PARTITION OF pt2 DEFAULT;
-- columns in another order
CREATE TEMP TABLE pt3 (s text, v int, id int, g int);
ALTER TABLE pt ATTACH PARTITION pt3 FOR VALUES FROM (3000) TO (5000);
CREATE TEMP TABLE pt4 PARTITION OF pt DEFAULT;
INSERT INTO pt SELECT i, i % 5, i, 's' || i % 40 FROM generate_series(1, 6000) i;
CREATE INDEX ON pt (id);
ANALYZE pt;
\set check 'UPDATE pt SET v = v + 1; SELECT * FROM pg_temp.both_ways'
:check ('SELECT * FROM pt', 'Parallel Append', 'Parallel Seq Scan on pt1', 'Parallel Seq Scan on pt2a', 'Parallel Seq Scan on pt2b', 'Parallel Seq Scan on pt3', 'Parallel Seq Scan on pt4');
:check ('SELECT s, sum(v) FROM pt GROUP BY s', 'Partial', 'Parallel Append');
:check ('SELECT tableoid::regclass::text AS t, id, v FROM pt WHERE v % 3 = 0', 'Parallel Append');
:check ('SELECT pt FROM pt', 'Parallel Append');
:check ('SELECT id, v FROM pt ORDER BY id', 'Sort', 'Parallel');
-- pruned by the planner: to some partitions, to one, to none (which needs no
-- Gather)
:check ('SELECT id, v FROM pt WHERE id BETWEEN 900 AND 1100', 'Parallel Append');
:check ('SELECT id, v FROM pt2 WHERE g = 1 AND v % 2 = 0', 'Parallel Seq Scan on pt2a');
SELECT pg_temp.explain('SELECT * FROM pt2 WHERE g = 1 AND g = 2');
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(*) FROM pt;
-- a partitioned child as the table of the query; a leaf
:check ('SELECT id, v FROM pt2', 'Parallel Append');
:check ('SELECT id, v FROM pt3', 'Parallel Seq Scan on pt3');
-- an Append that is not parallel-aware
SET enable_parallel_append = off;
:check ('SELECT * FROM pt', 'Append', 'Parallel Seq Scan on pt1', 'Parallel Seq Scan on pt4');
RESET enable_parallel_append;
-- partitions without a partial path, each of which is read by a single process
ALTER TABLE pt1 SET (parallel_workers = 0);
ALTER TABLE pt2a SET (parallel_workers = 0);
:check ('SELECT * FROM pt', 'Parallel Append', 'Seq Scan on pt1', 'Seq Scan on pt2a', 'Parallel Seq Scan on pt4');
ALTER TABLE pt1 RESET (parallel_workers);
ALTER TABLE pt2a RESET (parallel_workers);
-- index scans of children
SET enable_seqscan = off;
:check ('SELECT id, v FROM pt WHERE id BETWEEN 500 AND 4500', 'Parallel');
RESET enable_seqscan;

-- run-time pruning: by a parameter of the statement, by the result of a subquery,
-- and, in the worker, for each outer row
SET plan_cache_mode = force_generic_plan;
PREPARE pruned(int) AS SELECT count(*), sum(v) FROM pt WHERE id < $1;
EXPLAIN (COSTS OFF) EXECUTE pruned(1500);
UPDATE pt SET v = v + 1;
EXECUTE pruned(1500);
EXECUTE pruned(0);
EXECUTE pruned(7000);
DEALLOCATE pruned;
RESET plan_cache_mode;
:check ('SELECT id, v FROM pt WHERE id < (SELECT min(id) + 500 FROM append_p)', 'Parallel Append');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET parallel_setup_cost = 100;
:check ('SELECT p.id, pt.v FROM append_p p JOIN pt ON pt.id = p.id - 2000', 'Nested Loop', 'Append', 'Index Scan using pt3_id_idx on pt3');
SET parallel_setup_cost = 0;
RESET enable_hashjoin;
RESET enable_mergejoin;

--
-- Inheritance
--
CREATE TEMP TABLE parent (id int, v int);
CREATE TEMP TABLE child (extra text) INHERITS (parent);
CREATE TEMP TABLE grandchild () INHERITS (child);
INSERT INTO parent SELECT i, i FROM generate_series(1, 2000) i;
INSERT INTO child SELECT i, i, 'c' FROM generate_series(1, 2000) i;
INSERT INTO grandchild SELECT i, i, 'g' FROM generate_series(1, 2000) i;
ANALYZE parent, child, grandchild;
\set check_i 'UPDATE parent SET v = v + 1; SELECT * FROM pg_temp.both_ways'
:check_i ('SELECT id, v FROM parent', 'Parallel Append', 'Parallel Seq Scan on parent', 'Parallel Seq Scan on child', 'Parallel Seq Scan on grandchild');
:check_i ('SELECT * FROM ONLY parent', 'Parallel Seq Scan on parent');
:check_i ('SELECT sum(v), max(extra) FROM child', 'Parallel Append');
EXPLAIN (COSTS OFF) SELECT id, v FROM parent;

-- a temporary child of a permanent table, which in core keeps the whole tree
-- serial
CREATE TABLE append_parent (id int, v int) WITH (autovacuum_enabled = off);
CREATE TABLE append_child () INHERITS (append_parent) WITH (autovacuum_enabled = off);
CREATE TEMP TABLE temp_child () INHERITS (append_parent);
INSERT INTO append_parent SELECT i, i FROM generate_series(1, 2000) i;
INSERT INTO append_child SELECT i, i FROM generate_series(1, 2000) i;
INSERT INTO temp_child SELECT i, i FROM generate_series(1, 2000) i;
ANALYZE append_parent, append_child, temp_child;
\set check_c 'UPDATE temp_child SET v = v + 1; SELECT * FROM pg_temp.both_ways'
:check_c ('SELECT id, v FROM append_parent', 'Parallel Append', 'Parallel Seq Scan on append_parent', 'Parallel Seq Scan on append_child', 'Parallel Seq Scan on temp_child');
EXPLAIN (COSTS OFF, VERBOSE) SELECT count(*) FROM append_parent;
DROP TABLE append_parent CASCADE;

--
-- UNION ALL
--
\set check 'UPDATE a SET v = v + 1; UPDATE b SET v = v + 1; SELECT * FROM pg_temp.both_ways'
-- flattened into one append relation: of temporary tables; with a permanent one
:check ('SELECT id, v FROM a UNION ALL SELECT id, v FROM b', 'Parallel Append', 'Parallel Seq Scan on a', 'Parallel Seq Scan on b');
:check ('SELECT id, v FROM a UNION ALL SELECT id, v FROM append_p', 'Parallel Append', 'Parallel Seq Scan on a', 'Parallel Seq Scan on append_p');
:check ('SELECT id, v FROM append_p UNION ALL SELECT id, v FROM b', 'Parallel Append', 'Parallel Seq Scan on b', 'Parallel Seq Scan on append_p');
EXPLAIN (COSTS OFF) SELECT id, v FROM a UNION ALL SELECT id, v FROM b;
-- below an aggregate, a join, a sort
:check ('SELECT count(*), sum(v) FROM (SELECT id, v FROM a UNION ALL SELECT id, v FROM append_p UNION ALL SELECT id, v FROM b) u', 'Parallel Append', 'Parallel Seq Scan on a', 'Parallel Seq Scan on b', 'Parallel Seq Scan on append_p');
:check ('SELECT u.id, u.v, a.v AS av FROM (SELECT id, v FROM b UNION ALL SELECT id, v FROM append_p) u JOIN a ON a.id = u.id - 2000', 'Parallel');
:check ('SELECT id, v FROM a UNION ALL SELECT id, v FROM b ORDER BY v, id', 'Parallel');
-- of partitioned and inherited tables
:check ('SELECT id, v FROM pt UNION ALL SELECT id, v FROM parent', 'Parallel');
-- with VALUES, constants and functions
:check ('SELECT id, v FROM a UNION ALL VALUES (1, 2), (3, 4)');
:check ('SELECT id, v FROM a UNION ALL SELECT 1, 2', 'Parallel Append');
:check ('SELECT id, v FROM a UNION ALL SELECT i, i FROM generate_series(1, 10) i', 'Parallel Append');
-- not flattened: of different types; with a member that has an aggregate, a
-- join, a DISTINCT or a LIMIT
:check ('SELECT id, v FROM a UNION ALL SELECT id, v::bigint FROM b', 'Parallel');
:check ('SELECT s, sum(v) AS v FROM a GROUP BY s UNION ALL SELECT s, v FROM b', 'Parallel');
:check ('SELECT a.id, b.v FROM a JOIN b USING (id) UNION ALL SELECT id, v FROM append_p', 'Parallel');
:check ('SELECT DISTINCT s FROM a UNION ALL SELECT s FROM b', 'Parallel');
:check ('SELECT * FROM (SELECT id, v FROM a ORDER BY id LIMIT 10) x UNION ALL SELECT id, v FROM b', 'Parallel Seq Scan on a');
-- with a member that is parallel restricted: whether or not workers read the
-- other one, the result is right
CREATE FUNCTION pg_temp.restricted(x int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED AS 'BEGIN RETURN x; END';
SET client_min_messages = warning;
SELECT n, answers FROM pg_temp.both_ways('SELECT id, pg_temp.restricted(v) AS v FROM a UNION ALL SELECT id, v FROM b');
RESET client_min_messages;
-- with a member that is provably empty
:check ('SELECT id, v FROM a UNION ALL SELECT id, v FROM b WHERE false', 'Parallel Seq Scan on a');

--
-- Other set operations
--
:check ('SELECT id, v FROM a UNION SELECT id, v FROM b', 'Parallel');
:check ('SELECT s FROM a UNION SELECT s FROM append_p UNION SELECT s FROM b', 'Parallel');
:check ('SELECT id FROM a EXCEPT SELECT id FROM b', 'Parallel');
:check ('SELECT id FROM a EXCEPT ALL SELECT id FROM append_p', 'Parallel Seq Scan on a');
:check ('SELECT id FROM a INTERSECT SELECT id FROM b', 'Parallel');
:check ('SELECT id FROM append_p INTERSECT ALL SELECT id FROM b', 'Parallel');

DROP TABLE append_p;
