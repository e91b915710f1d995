--
-- The planner's number of dirty pages, which it counts again only if the pool
-- has changed. After anything that can change the pool, a plan must have been
-- made with the current number: an older one could lead to the wrong plan or
-- the wrong cost.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
\i sql/include/cheap_workers.sql
SET cpu_tuple_cost = 1000;
SET enable_indexonlyscan = off;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET temp_parallel.write_temp_page_cost = 1;

\i sql/include/explain_flush.sql

CREATE TEMP TABLE t (id int, pad text) WITH (parallel_workers = 2);
CREATE INDEX t_id ON t (id);

-- Are there dirty pages, and does the plan have their number?
CREATE FUNCTION counted(OUT dirty bool, OUT right_number bool) LANGUAGE plpgsql AS $$
DECLARE
	planned float8 := flush_plan('SELECT count(*), sum(id) FROM t')->>'Planned Dirtied Buffers';
	actual float8;
BEGIN
	actual := (SELECT coalesce(sum(r.dirty), 0) FROM temp_parallel_relations() r
				WHERE r."table" = 't'::regclass AND r.kind <> 'index');
	dirty := actual > 0;
	right_number := planned = actual;
END $$;

INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i;
SELECT * FROM counted();
SELECT * FROM counted();

-- written by the function, and by the flush before workers are launched
SELECT pg_flush_local_buffers('t') > 50 AS written;
SELECT * FROM counted();
UPDATE t SET id = id WHERE id = 4711;
SELECT * FROM counted();
SET temp_parallel.share_local_buffers = off;
SELECT count(*) FROM t;
RESET temp_parallel.share_local_buffers;
SELECT * FROM counted();

-- dirtied again by hint bits, by a row lock, by a change that is rolled back
BEGIN;
UPDATE t SET id = id WHERE id = 1;
SELECT pg_flush_local_buffers('t') > 0 AS written;
SELECT * FROM counted();
COMMIT;
SET temp_parallel.enabled = off;
SELECT count(*) FROM t;
RESET temp_parallel.enabled;
SELECT * FROM counted();
SELECT pg_flush_local_buffers('t') > 0 AS written;
SELECT * FROM counted();
SELECT id FROM t WHERE id = 2 FOR UPDATE;
SELECT * FROM counted();
BEGIN;
DELETE FROM t WHERE id > 4000;
SELECT * FROM counted();
ROLLBACK;
SELECT * FROM counted();

-- evicted, read again, marked dirty by pg_temp_buffers_dirty()
SELECT buffers_skipped FROM pg_evict_local_buffers('t');
SELECT * FROM counted();
SELECT pg_read_temp_relation('t') > 50 AS read;
SELECT * FROM counted();
SELECT pg_temp_buffers_dirty('t') > 50 AS dirtied;
SELECT * FROM counted();

-- dropped without being written: by VACUUM, which truncates the file; with an
-- index; by TRUNCATE, which truncates in place a file that its own transaction
-- has created
DELETE FROM t WHERE id > 1000;
SELECT * FROM counted();
VACUUM t;
SELECT * FROM counted();
DROP INDEX t_id;
SELECT * FROM counted();
VACUUM FULL t;
SELECT * FROM counted();
TRUNCATE t;
INSERT INTO t VALUES (1, 'x');
SELECT * FROM counted();
BEGIN;
DROP TABLE t;
CREATE TEMP TABLE t (id int, pad text) WITH (parallel_workers = 2);
INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i;
SELECT * FROM counted();
TRUNCATE t;
INSERT INTO t VALUES (1, 'x');
SELECT * FROM counted();
COMMIT;
SELECT * FROM counted();

-- ON COMMIT DELETE ROWS truncates in place
DROP TABLE t;
CREATE TEMP TABLE t (id int, pad text) WITH (parallel_workers = 2) ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i;
SELECT * FROM counted();
COMMIT;
BEGIN;
INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 100) i;
SELECT * FROM counted();
COMMIT;

-- evicted by another table's pages
DROP TABLE t;
CREATE TEMP TABLE t (id int, pad text) WITH (parallel_workers = 2);
INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i;
SELECT * FROM counted();
CREATE TEMP TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 10000);
SELECT right_number FROM counted();

-- A large pool is counted again only if the pages that have changed cost more than
-- an eighth of its search, here 7 or 8, so that small statements between small changes
-- do not wait for it.
\c
SET temp_buffers = '64MB';
\i sql/include/cheap_workers.sql
SET cpu_tuple_cost = 1000;
SET temp_parallel.write_temp_page_cost = 1;
SET temp_parallel.buffer_scan_cost = 0.01;
CREATE TEMP TABLE t (id int, pad text) WITH (parallel_workers = 2, fillfactor = 50);
INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 18000) i;
SELECT pg_flush_local_buffers('t') > 5000 AS written;
SELECT * FROM counted();
UPDATE t SET id = -1 WHERE ctid = '(1,1)';
SELECT * FROM counted();
UPDATE t SET id = -1 WHERE ctid = ANY (SELECT format('(%s,1)', i)::tid FROM generate_series(11, 20) i);
SELECT * FROM counted();

DROP TABLE t;
DROP FUNCTION counted, explain_analyze, flush_plan;
DROP EXTENSION temp_parallel;
