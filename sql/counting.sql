--
-- The planner counts the dirty pages anew only when the pool has changed. After
-- whatever may change it, the plan must have been made with the number that there
-- are: with an older one it would be the wrong plan, or have the wrong price.
--
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

-- Are there dirty pages, and is it their number that is in the plan?
CREATE FUNCTION counted(OUT dirty bool, OUT right_number bool) LANGUAGE plpgsql AS $$
DECLARE
	planned float8 := flush_plan('SELECT count(*), sum(id) FROM t')->>'Planned Flush Cost';
	actual float8;
BEGIN
	actual := (SELECT coalesce(sum(r.dirty), 0) FROM pg_local_buffers_relations() r
				WHERE r."table" = 't'::regclass AND r.kind <> 'index');
	dirty := actual > 0;
	right_number := planned = actual;
END $$;

INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i;
SELECT * FROM counted();
SELECT * FROM counted();

-- written, by a flush and by one before workers start
SELECT pg_flush_local_buffers('t') > 50 AS written;
SELECT * FROM counted();
UPDATE t SET id = id WHERE id = 4711;
SELECT * FROM counted();
SELECT count(*) FROM t;
SELECT * FROM counted();

-- dirty again by a hint that a reader sets, by a row lock, by a change that is
-- rolled back
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

-- put out of the pool, read again, made dirty by the instrument
SELECT buffers_skipped FROM pg_evict_local_buffers('t');
SELECT * FROM counted();
SELECT pg_read_temp_relation('t') > 50 AS read;
SELECT * FROM counted();
SELECT pg_temp_buffers_dirty('t') > 50 AS dirtied;
SELECT * FROM counted();

-- dropped without being written: the end of the file by VACUUM, all of it by
-- TRUNCATE, in place when the transaction has made the file, an index
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

-- ON COMMIT DELETE ROWS empties the same file
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

-- another table's pages take the place of these
DROP TABLE t;
CREATE TEMP TABLE t (id int, pad text) WITH (parallel_workers = 2);
INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i;
SELECT * FROM counted();
CREATE TEMP TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 10000);
SELECT right_number FROM counted();

DROP TABLE t, filler;
DROP FUNCTION counted, explain_analyze, flush_plan;
DROP EXTENSION temp_parallel;
