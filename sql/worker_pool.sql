--
-- The number of a worker's local buffers, and temp_buffers in a worker.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
SET temp_buffers = '32MB';
\i sql/include/cheap_workers.sql
SET parallel_leader_participation = off;

-- A plan that pins more pages than the 1024 buffers that a worker has at least: one or
-- two of each partition. It runs in the session's pool, and must not fail in a
-- worker's with "no empty local buffer available".
-- Planning scans of many partitions takes long, so what they cost has to be more; compiling
-- them takes minutes.
SET cpu_tuple_cost = 10;
SET jit = off;
CREATE TEMP TABLE h (id int, k int) PARTITION BY HASH (id);
DO $$ BEGIN
	FOR i IN 0..599 LOOP
		EXECUTE format('CREATE TEMP TABLE h%s PARTITION OF h FOR VALUES WITH (MODULUS 600, REMAINDER %s)', i, i);
	END LOOP;
END $$;
CREATE TEMP TABLE t AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 30000) g;
INSERT INTO h SELECT * FROM t;
CREATE INDEX ON h (id);
CREATE INDEX ON t (id);
ANALYZE t;
ANALYZE h;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
SET enable_incremental_sort = off;
CREATE FUNCTION pg_temp.nodes(query text) RETURNS TABLE (node text, n bigint) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	RETURN QUERY SELECT t #>> '{}', count(*) FROM jsonb_path_query(plan, 'strict $.**."Node Type"') t GROUP BY 1 ORDER BY 1;
END $$;
SELECT * FROM pg_temp.nodes('SELECT count(*), sum(t.k) FROM t JOIN h USING (id)');
SELECT count(*), sum(t.k) FROM t JOIN h USING (id);
-- also if the setting has been taken back, which leaves the session its pool
RESET temp_buffers;
SHOW temp_buffers;
SELECT count(*), sum(t.k) FROM t JOIN h USING (id);
SET temp_buffers = '32MB';
-- the same in a subplan, which pins pages as well
SELECT count(*) FROM t WHERE k = 3 AND EXISTS
	(SELECT FROM t x JOIN h USING (id) WHERE x.k = t.k AND x.id < 40);
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_sort;
RESET enable_incremental_sort;

-- Children of an Append that have ended keep a page of the visibility map
-- pinned. One worker runs them all.
CREATE TEMP TABLE i (id int, k int) PARTITION BY HASH (id);
DO $$ BEGIN
	FOR n IN 0..599 LOOP
		EXECUTE format('CREATE TEMP TABLE i%s PARTITION OF i FOR VALUES WITH (MODULUS 600, REMAINDER %s)', n, n);
	END LOOP;
END $$;
INSERT INTO i SELECT * FROM t WHERE id < 15000;
CREATE INDEX ON i (id);
ANALYZE i;
SET max_parallel_workers = 1;
VACUUM h, i;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT * FROM pg_temp.nodes('SELECT count(*) FROM (SELECT FROM h WHERE id > 0 UNION ALL SELECT FROM i WHERE id > 0) x');
SELECT count(*) FROM (SELECT FROM h WHERE id > 0 UNION ALL SELECT FROM i WHERE id > 0) x;
-- from 19 on, a page of the table
SELECT * FROM pg_temp.nodes('SELECT count(*), sum(k) FROM (SELECT k FROM h WHERE id > 0 UNION ALL SELECT k FROM i WHERE id > 0) x');
SELECT count(*), sum(k) FROM (SELECT k FROM h WHERE id > 0 UNION ALL SELECT k FROM i WHERE id > 0) x;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- A join among them keeps more, if it ends in the middle of the scan of one side.
UPDATE h SET k = 1;
SET enable_partitionwise_join = on;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SELECT * FROM pg_temp.nodes('SELECT count(*), sum(h.k) FROM i JOIN h USING (id)');
SELECT count(*), sum(h.k) FROM i JOIN h USING (id);
RESET max_parallel_workers;
RESET enable_partitionwise_join;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;

-- A semi join leaves the inner side in the middle. Each row of o is found in another
-- partition, whose scan then keeps its pages until it is executed again.
CREATE TEMP TABLE p (part int, k int) PARTITION BY LIST (part);
DO $$ BEGIN
	FOR n IN 1..600 LOOP
		EXECUTE format('CREATE TEMP TABLE p%s PARTITION OF p FOR VALUES IN (%s)', n, n);
	END LOOP;
END $$;
INSERT INTO p SELECT n, n FROM generate_series(1, 600) n, generate_series(1, 2);
INSERT INTO p SELECT n, -x FROM generate_series(1, 600) n, generate_series(1, 100) x;
CREATE INDEX ON p USING hash (k);
ANALYZE p;
CREATE TEMP TABLE o AS SELECT n % 600 + 1 AS k, n AS ord, repeat('x', 1000) AS pad FROM generate_series(1, 700) n;
CREATE INDEX ON o (ord);
ANALYZE o;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SET enable_hashagg = off;
SET enable_material = off;
SET enable_parallel_append = off;
\set semi_join 'SELECT count(*) FROM o WHERE ord > 0 AND ord + 0 = ord AND EXISTS (SELECT FROM p WHERE p.k = o.k)'
SELECT * FROM pg_temp.nodes(:'semi_join');
:semi_join;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
RESET enable_hashagg;
RESET enable_material;
RESET enable_parallel_append;

-- A GIN index scan keeps a page pinned for each key that has many rows.
CREATE TEMP TABLE g AS SELECT n AS id, ARRAY(SELECT (n * 7 + i * 3) % 200 FROM generate_series(1, 50) i) AS a FROM generate_series(1, 16000) n;
CREATE INDEX ON g USING gin (a);
ANALYZE g;
SET enable_seqscan = off;
SELECT count(*) FROM g WHERE a && ARRAY(SELECT * FROM generate_series(0, 199)) AND id % 2 = 0;
SELECT count(*) FROM g WHERE a @> '{1,4}' AND id % 2 = 0;
RESET enable_seqscan;

-- A worker that looks rows up all over a table again and again has room for its
-- pages, and reads each of them once. With 1024 buffers it would read one for nearly
-- every row.
CREATE TEMP TABLE wide (id int, k int) WITH (fillfactor = 10);
INSERT INTO wide SELECT * FROM t;
CREATE INDEX ON wide (id);
ANALYZE wide;
CREATE TEMP TABLE lookups AS SELECT g * 7919 % 30000 + 1 AS id FROM generate_series(1, 30000) g;
ANALYZE lookups;
CREATE FUNCTION pg_temp.reads_each_page_once(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT (plan #>> '{0,Plan,Local Read Blocks}')::bigint <=
		sum(pg_table_size(c) + pg_indexes_size(c)) / current_setting('block_size')::bigint
		FROM unnest('{wide, lookups}'::regclass[]) c);
END $$;
SET max_parallel_workers = 1;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;
\set lookups 'SELECT count(*), sum(wide.k) FROM lookups l JOIN wide USING (id)'
EXPLAIN (COSTS OFF) :lookups;
SELECT pg_temp.reads_each_page_once(:'lookups');
-- by a bitmap
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) :lookups;
SELECT pg_temp.reads_each_page_once(:'lookups');
RESET max_parallel_workers;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;
RESET enable_material;
RESET enable_indexscan;

-- In a worker, temp_buffers has the session's value, not the size of the
-- worker's pool. Otherwise, a filter on it would lose rows, and a function
-- could not set it to the value that it already has.
SELECT current_setting('temp_buffers'), count(*) FROM t GROUP BY 1;
SELECT count(*) FROM t WHERE pg_size_bytes(current_setting('temp_buffers')) > 10e6 AND k = 3;
CREATE FUNCTION sets_the_same(int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE SET temp_buffers = '32MB'
	AS 'SELECT $1 + 1';
SELECT sum(sets_the_same(id)) FROM t WHERE k = 3;
-- Another value is the same error as in the leader.
SET check_function_bodies = off;	-- which would set the value
CREATE FUNCTION sets_another(int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE SET temp_buffers = '8MB'
	AS 'SELECT $1 + 1';
\set SHOW_CONTEXT never
SELECT sum(sets_another(id)) FROM t WHERE k = 3;
SET max_parallel_workers_per_gather = 0;
SELECT sum(sets_another(id)) FROM t WHERE k = 3;
SET max_parallel_workers_per_gather = 2;
SELECT count(*) FROM t;

DROP FUNCTION sets_the_same, sets_another;
DROP TABLE h, i, p, o, t, g, wide, lookups;
