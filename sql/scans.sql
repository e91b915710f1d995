--
-- Scans: each kind of scan in a worker, over tables with each kind of contents
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
SET compute_query_id = off;	-- EXPLAIN VERBOSE prints it
\i sql/include/shapes.sql
-- rows are where the leader has put them
SET temp_parallel.run_ahead = off;

-- fewer buffers than the tables have pages, so that pages are evicted
SET temp_buffers = '2MB';

CREATE TEMP TABLE t (id int, v int, pad text);
INSERT INTO t SELECT i, i % 100, repeat('x', 55) FROM generate_series(1, 3000) i;
CREATE INDEX t_id ON t (id);
CREATE INDEX t_v ON t (v);
ANALYZE t;
CREATE TABLE scans_p (id int, v int) WITH (autovacuum_enabled = off);
INSERT INTO scans_p SELECT i, i % 100 FROM generate_series(1, 3000) i;
ANALYZE scans_p;

-- Before each query, every page of t is changed and the change committed: if a
-- page were not flushed, workers would return other rows, or fail.
\set check 'UPDATE t SET id = id + 1; SELECT * FROM pg_temp.both_ways'

--
-- Parallel-aware scans
--

-- a parallel sequential scan; with a qual, reordered and computed columns
:check ('SELECT * FROM t', 'Parallel Seq Scan on t');
:check ('SELECT v, id * 2 AS x FROM t WHERE v % 10 = 3', 'Parallel Seq Scan on t');
EXPLAIN (COSTS OFF) SELECT v, id * 2 AS x FROM t WHERE v % 10 = 3;
-- VERBOSE prints the tables and the output of the flush node
EXPLAIN (COSTS OFF, VERBOSE) SELECT v, id * 2 AS x FROM t WHERE v % 10 = 3;

-- no columns; a whole-row variable; system columns
:check ('SELECT count(*) FROM t', 'Parallel Seq Scan on t');
:check ('SELECT t FROM t', 'Parallel Seq Scan on t');
:check ('SELECT ctid AS c, xmin::text::bigint AS x, tableoid AS o, id FROM t', 'Parallel Seq Scan on t');

-- a parallel index scan: forward, backward, and with an array of keys
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
:check ('SELECT id, v FROM t WHERE id BETWEEN 500 AND 2000', 'Parallel Index Scan using t_id on t');
:check ('SELECT id, v FROM t WHERE id BETWEEN 500 AND 2000 ORDER BY id', 'Parallel Index Scan using t_id on t');
:check ('SELECT id, v FROM t WHERE id > 50 ORDER BY id DESC', 'Parallel Index Scan Backward using t_id on t');
ALTER TABLE t SET (parallel_workers = 2);
:check ('SELECT id, v FROM t WHERE v IN (1, 7, 20, 21, 22, 30, 33, 35, 40, 50, 70, 99)', 'Parallel Index Scan using t_v on t');
ALTER TABLE t RESET (parallel_workers);
EXPLAIN (COSTS OFF) SELECT id, v FROM t WHERE id BETWEEN 500 AND 2000;
RESET enable_indexonlyscan;

-- a parallel index-only scan, when no page is all-visible, all are, and some
-- are; for the latter two, workers read the visibility map
:check ('SELECT id FROM t WHERE id BETWEEN 500 AND 2000', 'Parallel Index Only Scan using t_id on t');
VACUUM t;
SELECT * FROM pg_temp.both_ways('SELECT id FROM t WHERE id BETWEEN 500 AND 2000', 'Parallel Index Only Scan using t_id on t');
DELETE FROM t WHERE id % 10 = 0 AND id < 1500;
SELECT * FROM pg_temp.both_ways('SELECT id FROM t WHERE id BETWEEN 500 AND 2000', 'Parallel Index Only Scan using t_id on t');
RESET enable_bitmapscan;

-- a parallel bitmap heap scan; with two indexes
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
:check ('SELECT id, v FROM t WHERE id BETWEEN 500 AND 2000', 'Parallel Bitmap Heap Scan on t', 'Bitmap Index Scan on t_id');
:check ('SELECT id, v FROM t WHERE id < 500 OR v IN (3, 5)', 'Parallel Bitmap Heap Scan on t', 'BitmapOr');
:check ('SELECT count(*) FROM t WHERE id < 2500', 'Parallel Bitmap Heap Scan on t');
EXPLAIN (COSTS OFF) SELECT id, v FROM t WHERE id BETWEEN 500 AND 2000;

-- a lossy bitmap, which does not fit into work_mem: all tuples of a page are
-- rechecked
CREATE TEMP TABLE wide (id int, v int, pad text);
ALTER TABLE wide ALTER pad SET STORAGE PLAIN;
INSERT INTO wide SELECT i, i, repeat('x', 5000) FROM generate_series(1, 2000) i;
CREATE INDEX ON wide (id);
ANALYZE wide;
UPDATE wide SET v = v + 1 WHERE id % 3 = 0;
SET work_mem = '64kB';
SELECT * FROM pg_temp.both_ways('SELECT id, v FROM wide WHERE id BETWEEN 100 AND 1900', 'Parallel Bitmap Heap Scan on wide');
DELETE FROM wide WHERE id % 3 = 1;
SELECT * FROM pg_temp.both_ways('SELECT id, v FROM wide WHERE id BETWEEN 100 AND 1900', 'Parallel Bitmap Heap Scan on wide');
RESET work_mem;
DROP TABLE wide;

-- indexes of other access methods, read by whichever worker makes the bitmap
CREATE TEMP TABLE am (id int, a int[], b box, h int, n name);
INSERT INTO am SELECT i, ARRAY[i, i % 50], box(point(i, i), point(i + 5, i + 5)), i % 500, 'n' || i % 300
  FROM generate_series(1, 3000) i;
CREATE INDEX am_gin ON am USING gin (a);
CREATE INDEX am_gist ON am USING gist (b);
CREATE INDEX am_spgist ON am USING spgist ((n::text));
CREATE INDEX am_hash ON am USING hash (h);
CREATE INDEX am_brin ON am USING brin (id) WITH (pages_per_range = 2);
ANALYZE am;
\set check_am 'UPDATE am SET id = id + 1; SELECT * FROM pg_temp.both_ways'
:check_am ('SELECT id FROM am WHERE a @> ARRAY[7]', 'Parallel Bitmap Heap Scan on am', 'Bitmap Index Scan on am_gin');
:check_am ('SELECT id FROM am WHERE b && box(''(100,100),(900,900)'')', 'Parallel Bitmap Heap Scan on am', 'Bitmap Index Scan on am_gist');
:check_am ('SELECT id FROM am WHERE n::text ^@ ''n1''', 'Parallel Bitmap Heap Scan on am', 'Bitmap Index Scan on am_spgist');
:check_am ('SELECT id FROM am WHERE h = 77', 'Parallel Bitmap Heap Scan on am', 'Bitmap Index Scan on am_hash');
:check_am ('SELECT id FROM am WHERE id BETWEEN 1000 AND 1200', 'Parallel Bitmap Heap Scan on am', 'Bitmap Index Scan on am_brin');
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- index scans on the inner side of a nested loop: hash and GiST would mark dead
-- entries in their pages, too
DELETE FROM am WHERE id % 3 = 0;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
RESET enable_seqscan;
SELECT * FROM pg_temp.both_ways('SELECT p.id, am.id AS x FROM scans_p p JOIN am ON am.h = p.v WHERE p.id <= 300', 'Parallel Seq Scan on scans_p', 'Index Scan using am_hash on am');
SELECT * FROM pg_temp.both_ways('SELECT p.id, am.id AS x FROM scans_p p JOIN am ON am.b && box(point(p.id, p.id), point(p.id, p.id)) WHERE p.id <= 300', 'Parallel Seq Scan on scans_p', 'Index Scan using am_gist on am');
-- again: what the first scan has found dead is still skipped
SELECT * FROM pg_temp.both_ways('SELECT p.id, am.id AS x FROM scans_p p JOIN am ON am.b && box(point(p.id, p.id), point(p.id, p.id)) WHERE p.id <= 300', 'Parallel Seq Scan on scans_p', 'Index Scan using am_gist on am');
RESET enable_bitmapscan;
RESET enable_material;
RESET enable_memoize;
RESET enable_mergejoin;
DROP TABLE am;

--
-- Scans that are not parallel-aware: each worker reads the whole table
--

-- TABLESAMPLE returns the same rows in each worker
SET enable_nestloop = off;
RESET enable_hashjoin;
:check ('SELECT p.id, t.id AS x FROM scans_p p JOIN t TABLESAMPLE bernoulli (5) REPEATABLE (1) USING (v)', 'Parallel Seq Scan on scans_p', 'Sample Scan on t');
:check ('SELECT p.id, t.id AS x FROM scans_p p JOIN t TABLESAMPLE bernoulli (95) REPEATABLE (2) USING (v) WHERE p.id < 100', 'Parallel Seq Scan on scans_p', 'Sample Scan on t');
:check ('SELECT p.id, t.id AS x FROM scans_p p JOIN t TABLESAMPLE system (20) REPEATABLE (3) USING (v) WHERE p.id < 100', 'Parallel Seq Scan on scans_p', 'Sample Scan on t');
:check ('SELECT p.id, t.id AS x FROM scans_p p JOIN t TABLESAMPLE system (95) REPEATABLE (4) USING (v) WHERE p.id < 100', 'Parallel Seq Scan on scans_p', 'Sample Scan on t');
RESET enable_nestloop;

-- a TID range scan; a TID scan
SET enable_mergejoin = off;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET enable_nestloop = off;
ALTER TABLE t SET (parallel_workers = 0);
:check ('SELECT p.id, t.id AS x FROM scans_p p LEFT JOIN t ON t.v = p.v AND t.ctid >= ''(10,5)'' AND t.ctid < ''(55,3)''', 'Parallel Seq Scan on scans_p', 'Tid Range Scan on t');
ALTER TABLE t RESET (parallel_workers);
RESET enable_nestloop;
SET enable_hashjoin = off;
:check ('SELECT p.id, t.id AS x FROM scans_p p LEFT JOIN t ON t.ctid = (''('' || p.id % 40 || '',7)'')::tid', 'Parallel Seq Scan on scans_p', 'Tid Scan on t');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_indexscan;
RESET enable_bitmapscan;

--
-- Contents of the table
--

-- TOASTed values, plain, compressed, and compressed inline; with updates, so
-- that the TOAST table has dead rows, too
CREATE TEMP TABLE toasted (id int, ext text, comp text, inl text);
ALTER TABLE toasted ALTER ext SET STORAGE EXTERNAL, ALTER inl SET STORAGE MAIN;
INSERT INTO toasted
  SELECT i, repeat(md5(i::text), 150),
		 (SELECT string_agg(md5((i * j)::text), repeat('z', 20)) FROM generate_series(1, 200) j),
		 repeat('abc' || i, 400)
  FROM generate_series(1, 200) i;
UPDATE toasted SET ext = ext || 'changed' WHERE id % 2 = 0;
UPDATE toasted SET comp = 'changed' || comp WHERE id % 3 = 0;
DELETE FROM toasted WHERE id % 7 = 0;
SELECT * FROM pg_temp.both_ways('SELECT id, length(ext) AS e, length(comp) AS c, length(inl) AS i, md5(ext || comp || inl) AS m FROM toasted WHERE ext LIKE ''%changed''', 'Parallel Seq Scan on toasted');
-- a slice of a value, which reads only some of its chunks; values detoasted by
-- the leader
SELECT * FROM pg_temp.both_ways('SELECT id, substr(ext, 3000, 100) AS s FROM toasted', 'Parallel Seq Scan on toasted');
SELECT * FROM pg_temp.both_ways('SELECT * FROM toasted', 'Parallel Seq Scan on toasted');
DROP TABLE toasted;

-- a table in another tablespace than its index, and the other way round
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_temp_parallel LOCATION '';
CREATE TEMP TABLE elsewhere TABLESPACE regress_temp_parallel
  AS SELECT i AS id, repeat('e', 50) || i AS pad FROM generate_series(1, 3000) i;
CREATE INDEX elsewhere_id ON elsewhere (id) TABLESPACE pg_default;
ANALYZE elsewhere;
SELECT * FROM pg_temp.both_ways('SELECT * FROM elsewhere WHERE id % 2 = 0', 'Parallel Seq Scan on elsewhere');
SET enable_seqscan = off;
SET enable_indexscan = off;
UPDATE elsewhere SET id = id + 1;
SELECT * FROM pg_temp.both_ways('SELECT * FROM elsewhere WHERE id > 2500', 'Parallel Bitmap Heap Scan on elsewhere');
ALTER INDEX elsewhere_id SET TABLESPACE regress_temp_parallel;
ALTER TABLE elsewhere SET TABLESPACE pg_default;
UPDATE elsewhere SET id = id + 1;
SELECT * FROM pg_temp.both_ways('SELECT * FROM elsewhere WHERE id > 2500', 'Parallel Bitmap Heap Scan on elsewhere');
RESET enable_seqscan;
RESET enable_indexscan;
DROP TABLE elsewhere;
DROP TABLESPACE regress_temp_parallel;

-- many types, with NULLs; a dropped column, a column added with a default
-- (which is not stored in the rows), a generated one; temporary types
CREATE TYPE pg_temp.mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN pg_temp.pos AS int CHECK (VALUE > 0);
CREATE TYPE pg_temp.pair AS (a int, b text);
CREATE TEMP TABLE types (i2 int2, i8 int8, gone int, num numeric, f8 float8, b boolean, c char(5), vc varchar,
  by bytea, ts timestamptz, iv interval, u uuid, j jsonb, ia int[], r int4range, ip inet, pt point,
  m pg_temp.mood, p pg_temp.pos, pr pg_temp.pair, col text COLLATE "C", gen int GENERATED ALWAYS AS (i2 * 2) STORED);
INSERT INTO types
  SELECT i, i * 10000000000, i, i / 7.0, i / 8.0, i % 2 = 0, i, 'v' || i, decode(md5(i::text), 'hex'),
		 '2026-01-01 00:00 UTC'::timestamptz + i * interval '1 hour', i * interval '1 minute', md5(i::text)::uuid,
		 jsonb_build_object('k', i, 'n', null), ARRAY[i, NULL, -i], int4range(i, i + 5), '10.0.0.0'::inet + i, point(i, -i),
		 (ARRAY['sad', 'ok', 'happy'])[1 + i % 3]::pg_temp.mood, i, (i, 'p' || i)::pg_temp.pair, 'C' || i
  FROM generate_series(1, 1000) i;
INSERT INTO types (i2) SELECT NULL FROM generate_series(1, 500);
ALTER TABLE types DROP gone;
ALTER TABLE types ADD late text DEFAULT 'late';
INSERT INTO types (i2, late) SELECT i, 'early' FROM generate_series(1, 100) i;
ANALYZE types;
SELECT * FROM pg_temp.both_ways('SELECT * FROM types', 'Parallel Seq Scan on types');
SELECT * FROM pg_temp.both_ways('SELECT types, (pr).b AS x FROM types WHERE late = ''late'' AND m >= ''ok''', 'Parallel Seq Scan on types');
SELECT * FROM pg_temp.both_ways('SELECT gen, j -> ''k'' AS k, upper(r) AS u FROM types WHERE p IS NOT NULL AND col > ''C5''', 'Parallel Seq Scan on types');
SELECT * FROM pg_temp.both_ways('SELECT late FROM types WHERE num IS NULL', 'Parallel Seq Scan on types');
DROP TABLE types;

-- a partial index on an expression; a covering index
DROP INDEX t_id;
CREATE INDEX t_expr ON t ((id % 1000), v) WHERE v < 90;
ANALYZE t;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
:check ('SELECT id, v FROM t WHERE id % 1000 < 700 AND v < 90', 'Parallel Index Scan using t_expr on t');
DROP INDEX t_expr;
CREATE INDEX t_cover ON t (id) INCLUDE (v);
:check ('SELECT id, v FROM t WHERE id < 1500', 'Parallel Index Only Scan using t_cover on t');
RESET enable_seqscan;
RESET enable_bitmapscan;

-- dead index entries, on more pages than a worker has buffers: it must not mark
-- them, since it could not write the pages when they are evicted
CREATE TEMP TABLE dead (id int, pad text);
INSERT INTO dead SELECT i, 'd' FROM generate_series(1, 120000) i;
CREATE INDEX dead_id ON dead (id);
ANALYZE dead;
DELETE FROM dead WHERE id % 2000 <> 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT * FROM pg_temp.both_ways('SELECT id, pad FROM dead WHERE id > 0', 'Parallel Index Scan using dead_id on dead');
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE dead;

-- all rows dead
DELETE FROM t;
SELECT * FROM pg_temp.both_ways('SELECT * FROM t', 'Parallel Seq Scan on t');

-- empty files
TRUNCATE t;
ALTER TABLE t SET (parallel_workers = 2);
SELECT * FROM pg_temp.both_ways('SELECT * FROM t', 'Parallel Seq Scan on t');
SELECT * FROM pg_temp.both_ways('SELECT count(*) FROM t', 'Parallel Seq Scan on t');

-- the storage parameter parallel_workers
INSERT INTO t SELECT i, i % 100, repeat('x', 55) FROM generate_series(1, 3000) i;
ANALYZE t;
ALTER TABLE t SET (parallel_workers = 1);
EXPLAIN (COSTS OFF) SELECT * FROM t;
ALTER TABLE t SET (parallel_workers = 0);
EXPLAIN (COSTS OFF) SELECT * FROM t;
ALTER TABLE t RESET (parallel_workers);

-- a function that is not parallel safe keeps the query serial
CREATE FUNCTION pg_temp.unsafe(x int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN x; END';
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE pg_temp.unsafe(id) = 5;

DROP TABLE scans_p;
