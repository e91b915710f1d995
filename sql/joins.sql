--
-- Joins: temporary tables on either side of each join method
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/shapes.sql

SET temp_buffers = '2MB';
-- for a Gather above the join rather than above each table
SET parallel_setup_cost = 100;


CREATE TEMP TABLE a (id int, k int, v int, pad text);
INSERT INTO a SELECT i, i % 500, i, repeat('a', 50) FROM generate_series(1, 3000) i;
CREATE INDEX a_id ON a (id);
CREATE INDEX a_k ON a (k);
CREATE TEMP TABLE b (id int, k int, v int);
INSERT INTO b SELECT i, i % 400, i FROM generate_series(1, 1000) i;
INSERT INTO b VALUES (NULL, NULL, 0);
CREATE INDEX b_id ON b (id);
ANALYZE a, b;
CREATE TABLE joins_p (id int, k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO joins_p SELECT i * 2, i % 300, i FROM generate_series(1, 2000) i;
CREATE INDEX joins_p_id ON joins_p (id);
ANALYZE joins_p;

-- Before each query, every page of both tables is changed and the change
-- committed: if a page were not flushed, workers would return other rows, or
-- fail.
\set check 'ANALYZE a, b; UPDATE a SET v = v + 1; UPDATE b SET v = v + 1; SELECT * FROM pg_temp.both_ways'

--
-- Hash joins
--
SET enable_nestloop = off;
SET enable_mergejoin = off;

-- each worker builds a hash table of its own, from all of b
SET enable_parallel_hash = off;
ALTER TABLE b SET (parallel_workers = 0);
ALTER TABLE joins_p SET (parallel_workers = 0);
:check ('SELECT a.id, a.v, b.v AS bv FROM a JOIN b USING (id)', 'Hash Join', 'Parallel Seq Scan on a', 'Seq Scan on b');
EXPLAIN (COSTS OFF) SELECT a.id, a.v, b.v FROM a JOIN b USING (id);
-- with a permanent table, as the inner and as the outer side
:check ('SELECT a.id, a.v, p.v AS pv FROM a JOIN joins_p p USING (id)', 'Parallel Seq Scan on a', 'Seq Scan on joins_p');
ALTER TABLE joins_p RESET (parallel_workers);
SET parallel_tuple_cost = 0.1;
:check ('SELECT p.id, p.v, b.v AS bv FROM joins_p p JOIN b USING (id) WHERE b.k < 50', 'Hash Join', 'Parallel Seq Scan on joins_p', 'Seq Scan on b');
SET parallel_tuple_cost = 0;
ALTER TABLE b RESET (parallel_workers);
RESET enable_parallel_hash;

-- the workers build a shared hash table
:check ('SELECT a.id, a.v, b.v AS bv FROM a JOIN b USING (id)', 'Parallel Hash Join', 'Parallel Seq Scan on a', 'Parallel Seq Scan on b');
:check ('SELECT p.id, p.v, b.v AS bv FROM joins_p p JOIN b USING (id)', 'Parallel Hash Join', 'Parallel Seq Scan on joins_p', 'Parallel Seq Scan on b');
EXPLAIN (COSTS OFF) SELECT a.id, a.v, b.v FROM a JOIN b USING (id);
-- in several batches, by temporary files
SET work_mem = '64kB';
:check ('SELECT x.id, x.v, x.pad, y.pad AS ypad FROM a x JOIN a y USING (id)', 'Parallel Hash Join');
RESET work_mem;

-- a self-join, with one flush
:check ('SELECT x.id, x.v, y.v AS yv FROM a x JOIN a y ON x.id = y.k', 'Parallel Hash Join');
-- three and four tables
:check ('SELECT a.id, a.v, b.v AS bv, p.v AS pv FROM a JOIN b USING (id) JOIN joins_p p USING (id)', 'Parallel Hash Join', 'Parallel Seq Scan on a');
:check ('SELECT a.id, a2.v, b.v AS bv, p.v AS pv FROM a JOIN b USING (id) JOIN joins_p p USING (id) JOIN a a2 ON a2.id = b.k', 'Parallel Hash Join');

-- outer joins; a row with NULLs has no match; a full join is above Gather in
-- 15, and below from 17 on
:check ('SELECT a.id, a.v, b.v AS bv FROM a LEFT JOIN b USING (id)', 'Parallel Hash Left Join');
:check ('SELECT b.id, b.v, a.v AS av FROM b LEFT JOIN a ON a.id = b.id AND a.id > 500', 'Parallel Seq Scan on b');
:check ('SELECT a.id, a.v, b.id AS bid, b.v AS bv FROM a FULL JOIN b ON a.id = b.id');
:check ('SELECT p.id, p.v, b.id AS bid, b.v AS bv FROM joins_p p FULL JOIN b ON p.id = b.id');

-- semi and anti joins
:check ('SELECT id, v FROM a WHERE id IN (SELECT k FROM b)', 'Hash');
:check ('SELECT id, v FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k AND b.v % 2 = 0)', 'Parallel Hash Semi Join');
:check ('SELECT id, v FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.id = a.id AND b.v % 2 = 0)', 'Hash');
:check ('SELECT id, v FROM joins_p p WHERE NOT EXISTS (SELECT FROM b WHERE b.id = p.id)', 'Parallel Seq Scan on joins_p');
:check ('SELECT id, v FROM b WHERE NOT EXISTS (SELECT FROM joins_p p WHERE p.id = b.id)', 'Parallel Seq Scan on b');

--
-- Nested loops
--
RESET enable_nestloop;
SET enable_hashjoin = off;

-- an index scan for each outer row; on the same table; on a permanent table
SET enable_bitmapscan = off;
SET enable_memoize = off;
:check ('SELECT p.id, p.v, a.v AS av FROM joins_p p JOIN a USING (id)', 'Nested Loop', 'Parallel Seq Scan on joins_p', 'Index Scan using a_id on a');
:check ('SELECT b.id, b.v, a.v AS av FROM b JOIN a USING (id)', 'Parallel Seq Scan on b', 'Index Scan using a_id on a');
:check ('SELECT x.id, y.id AS yid, x.v + y.v AS s FROM a x JOIN a y ON y.id = x.k WHERE x.v % 3 = 0', 'Index Scan using a_id on a');
:check ('SELECT b.id, b.v, p.v AS pv FROM b LEFT JOIN joins_p p USING (id)', 'Parallel Seq Scan on b', 'Index Scan using joins_p_id on joins_p');
EXPLAIN (COSTS OFF) SELECT p.id, p.v, a.v FROM joins_p p JOIN a USING (id);
-- an outer join; an anti join
:check ('SELECT p.id, p.v, a.v AS av FROM joins_p p LEFT JOIN a USING (id)', 'Nested Loop Left Join', 'Index Scan using a_id on a');
:check ('SELECT p.id, p.v FROM joins_p p WHERE NOT EXISTS (SELECT FROM a WHERE a.id = p.id)', 'Nested Loop Anti Join', 'Index Only Scan using a_id on a');
-- a bitmap scan for each outer row
RESET enable_bitmapscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
:check ('SELECT p.id, a.v AS av FROM joins_p p JOIN a ON a.k = p.k WHERE p.id < 500', 'Nested Loop', 'Bitmap Heap Scan on a', 'Bitmap Index Scan on a_k');
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET enable_memoize;
-- with Memoize
:check ('SELECT p.id, a.v AS av FROM joins_p p JOIN a ON a.id = p.k', 'Nested Loop', 'Memoize', 'Index Scan using a_id on a');
-- the whole table for each outer row; from 18 on, with Materialize
ALTER TABLE b SET (parallel_workers = 0);
SET client_min_messages = warning;
SELECT n, answers FROM pg_temp.both_ways('SELECT p.id, b.id AS bid, b.v FROM joins_p p LEFT JOIN b ON b.id * 4 < p.id - 3980');
RESET client_min_messages;
ALTER TABLE b RESET (parallel_workers);

--
-- Merge joins: each worker sorts all of the inner side, or reads it in order
--
SET enable_nestloop = off;
SET enable_mergejoin = on;
:check ('SELECT a.id, a.v, b.v AS bv FROM a JOIN b USING (id)', 'Merge Join');
:check ('SELECT p.id, p.v, b.v AS bv FROM joins_p p JOIN b USING (k)', 'Merge Join');
:check ('SELECT a.id, a.v, b.v AS bv FROM a JOIN b USING (id) ORDER BY a.id', 'Merge Join');
RESET enable_nestloop;
RESET enable_hashjoin;

--
-- Partitionwise joins
--
CREATE TEMP TABLE pa (id int, v int) PARTITION BY RANGE (id);
CREATE TEMP TABLE pa1 PARTITION OF pa FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TEMP TABLE pa2 PARTITION OF pa FOR VALUES FROM (1000) TO (MAXVALUE);
CREATE TEMP TABLE pb (id int, v int) PARTITION BY RANGE (id);
CREATE TEMP TABLE pb1 PARTITION OF pb FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TEMP TABLE pb2 PARTITION OF pb FOR VALUES FROM (1000) TO (MAXVALUE);
INSERT INTO pa SELECT i, i FROM generate_series(1, 2000) i;
INSERT INTO pb SELECT i * 2, i FROM generate_series(1, 1000) i;
ANALYZE pa, pb;
\set check_p 'UPDATE pa SET v = v + 1; UPDATE pb SET v = v + 1; SELECT * FROM pg_temp.both_ways'
:check_p ('SELECT pa.id, pa.v, pb.v AS bv FROM pa JOIN pb USING (id)', 'Parallel Append', 'Parallel Hash Join');
SET enable_partitionwise_join = on;
:check_p ('SELECT pa.id, pa.v, pb.v AS bv FROM pa JOIN pb USING (id)', 'Parallel Append', 'Parallel Hash Join');
EXPLAIN (COSTS OFF) SELECT pa.id, pa.v, pb.v FROM pa JOIN pb USING (id);
:check_p ('SELECT pa.id, pa.v, pb.v AS bv FROM pa LEFT JOIN pb USING (id)', 'Parallel Append');
-- one pair left
:check_p ('SELECT pa.id, pa.v, pb.v AS bv FROM pa JOIN pb USING (id) WHERE pa.id < 500', 'Parallel Hash Join');
RESET enable_partitionwise_join;

-- the genetic join search; what index scans cost depends on where the updates have put rows
SET geqo_threshold = 2;
SET enable_indexscan = off;
:check ('SELECT a.id, a.v, b.v AS bv, p.v AS pv FROM a JOIN b USING (id) JOIN joins_p p USING (id)', 'Parallel Seq Scan');
RESET enable_indexscan;
RESET geqo_threshold;

DROP TABLE joins_p;
