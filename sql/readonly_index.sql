--
-- The read-only phase: no page of a table's indexes is changed, either. If a
-- cursor was opened before and has found dead rows, their index entries are not
-- marked when the leader of a parallel query fetches from the cursor, rewinds
-- or closes it.
--
-- Marking dirties the index page, and a dirty page may be written at any time
-- to the file that the workers are reading.
--
\pset format unaligned \pset footer off
\set SHOW_CONTEXT never
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';
\i sql/include/cheap_workers.sql

CREATE TEMP TABLE t (id int, k int, p point, pad text);
INSERT INTO t SELECT g, g / 1000, point(g, g), repeat('x', 50) FROM generate_series(0, 9999) g;
CREATE INDEX t_btree ON t (id);
CREATE INDEX t_hash ON t USING hash (k);
CREATE INDEX t_gist ON t USING gist (p);
ANALYZE t;

-- Does something with a cursor. Returns whether an index has dirty pages
-- afterwards.
CREATE FUNCTION pg_temp.use_cursor(c refcursor, what text) RETURNS boolean
LANGUAGE plpgsql PARALLEL RESTRICTED AS $$
BEGIN
	CASE what
		WHEN 'close' THEN CLOSE c;
		WHEN 'next' THEN MOVE FORWARD 1 FROM c;
		WHEN 'move' THEN MOVE FORWARD 800 FROM c;
		WHEN 'set back' THEN MOVE ABSOLUTE 0 FROM c;
	END CASE;
	RETURN (SELECT sum(dirty) > 0 FROM temp_parallel_relations() WHERE kind = 'index');
END $$;

-- Opens a cursor on t, moves it past some dead rows, and calls use_cursor(): by
-- itself, or in a query that has read t in workers.
CREATE FUNCTION pg_temp.marked(what text, in_parallel boolean, condition text)
RETURNS TABLE (rows_of_t bigint, marked boolean) LANGUAGE plpgsql
SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
	c refcursor := 'c';
BEGIN
	OPEN c SCROLL FOR EXECUTE 'SELECT id FROM t WHERE ' || condition;
	MOVE FORWARD 50 FROM c;
	PERFORM set_config('enable_seqscan', 'on', true);
	PERFORM pg_flush_local_buffers();
	IF in_parallel THEN
		RETURN QUERY EXECUTE
			'SELECT n, pg_temp.use_cursor(''c'', $1) FROM (SELECT count(*) AS n FROM t) s' USING what;
	ELSE
		RETURN QUERY SELECT NULL::bigint, pg_temp.use_cursor('c', what);
	END IF;
	IF what <> 'close' THEN
		CLOSE c;
	END IF;
END $$;

-- The plan: the leader calls the function after the workers have read t.
EXPLAIN (COSTS OFF) SELECT n, pg_temp.use_cursor('c', 'close') FROM (SELECT count(*) AS n FROM t) s;

-- btree. Each case first in the leader of a parallel query, then without
-- workers, which shows that there were entries to mark.
DELETE FROM t WHERE id BETWEEN 1000 AND 1020;
SELECT * FROM pg_temp.marked('close', true, 'id BETWEEN 1000 AND 1100');
SELECT * FROM pg_temp.marked('close', false, 'id BETWEEN 1000 AND 1100');
DELETE FROM t WHERE id BETWEEN 2000 AND 2020;
SELECT * FROM pg_temp.marked('move', true, 'id BETWEEN 2000 AND 2900');
DELETE FROM t WHERE id BETWEEN 2021 AND 2040;
SELECT * FROM pg_temp.marked('move', false, 'id BETWEEN 2000 AND 2900');
DELETE FROM t WHERE id BETWEEN 3000 AND 3020;
SELECT * FROM pg_temp.marked('set back', true, 'id BETWEEN 3000 AND 3900');
DELETE FROM t WHERE id BETWEEN 3021 AND 3040;
SELECT * FROM pg_temp.marked('set back', false, 'id BETWEEN 3000 AND 3900');

-- hash
DELETE FROM t WHERE k = 4 AND id % 2 = 0;
SELECT * FROM pg_temp.marked('close', true, 'k = 4');
SELECT * FROM pg_temp.marked('close', false, 'k = 4');
DELETE FROM t WHERE k = 5 AND id % 2 = 0;
SELECT * FROM pg_temp.marked('move', true, 'k = 5');
DELETE FROM t WHERE k = 5 AND id % 3 = 0;
SELECT * FROM pg_temp.marked('move', false, 'k = 5');

-- GiST, which marks entries when it goes to the next page
DELETE FROM t WHERE id BETWEEN 6000 AND 6999 AND id % 2 = 0;
SELECT * FROM pg_temp.marked('move', true, 'p <@ box ''(6000,6000),(6999,6999)''');
DELETE FROM t WHERE id BETWEEN 6000 AND 6999 AND id % 3 = 0;
SELECT * FROM pg_temp.marked('move', false, 'p <@ box ''(6000,6000),(6999,6999)''');

-- The scan returns all rows if it is moved in a parallel query and then goes on.
DELETE FROM t WHERE id BETWEEN 7000 AND 7020;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT id FROM t WHERE id BETWEEN 7000 AND 7830;
FETCH 2 FROM c;
RESET enable_seqscan;
SELECT pg_flush_local_buffers() > 0 AS clean;
SELECT n, pg_temp.use_cursor('c', 'move') AS marked FROM (SELECT count(*) AS n FROM t) s;
FETCH 20 FROM c;
COMMIT;

-- A merge semi-join that has found a match restores its inner scan to the marked
-- position, since the next outer row has the same key.
CREATE TEMP TABLE twice (k int, x int);
INSERT INTO twice VALUES (1, 3998), (1, 3998);
CREATE INDEX twice_k ON twice (k);
CREATE TEMP TABLE m (k int, x int);
INSERT INTO m SELECT g / 2000, g FROM generate_series(0, 9999) g;
CREATE INDEX m_k ON m (k) WITH (deduplicate_items = off);
ANALYZE twice, m;
CREATE FUNCTION pg_temp.marked_by_join(in_parallel boolean) RETURNS TABLE (rows_of_m bigint, marked boolean)
LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_nestloop = off SET enable_bitmapscan = off SET enable_seqscan = off
AS $$
DECLARE
	c refcursor := 'c';
BEGIN
	OPEN c NO SCROLL FOR SELECT * FROM twice WHERE EXISTS (SELECT FROM m WHERE m.k = twice.k AND m.x > twice.x);
	MOVE FORWARD 1 FROM c;
	PERFORM set_config('enable_seqscan', 'on', true);
	PERFORM pg_flush_local_buffers();
	IF in_parallel THEN
		RETURN QUERY SELECT n, pg_temp.use_cursor('c', 'next') FROM (SELECT count(*) AS n FROM m) s;
	ELSE
		RETURN QUERY SELECT NULL::bigint, pg_temp.use_cursor('c', 'next');
	END IF;
	CLOSE c;
END $$;
BEGIN;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_nestloop = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_seqscan = off;
SET LOCAL max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT * FROM twice WHERE EXISTS (SELECT FROM m WHERE m.k = twice.k AND m.x > twice.x);
COMMIT;
DELETE FROM m WHERE x BETWEEN 3950 AND 3998;
SELECT * FROM pg_temp.marked_by_join(true);
SELECT * FROM pg_temp.marked_by_join(false);

-- After an error in the parallel query, the indexes have their own access
-- methods again.
DELETE FROM t WHERE id BETWEEN 8000 AND 8020;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT id FROM t WHERE id BETWEEN 8000 AND 8900;
FETCH 1 FROM c;
SAVEPOINT a;
RESET enable_seqscan;
SELECT count(*) FROM t WHERE 1 / (id - 9900) > 1;
ROLLBACK TO a;
SELECT pg_flush_local_buffers() >= 0 AS clean;
SELECT pg_temp.use_cursor('c', 'close') AS marked;
COMMIT;

DROP TABLE t, twice, m;
DROP EXTENSION temp_parallel;
