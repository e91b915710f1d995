--
-- Reads leave nothing behind: from the flush until the workers are gone no page
-- of the tables that they read is written by anyone.
--
-- Without the guard of readonly_heap.c a worker that evicts a page it has set
-- hint bits on fails with "could not open file", and the leader writes such a
-- page into the very file that workers are reading. Both need a pool that is
-- smaller than what one call of a scan passes over: hence the smallest pools
-- there are, and long runs of deleted rows. Nothing here is vacuumed or
-- analyzed, as that would set the hints beforehand.
--
-- who of leader and workers meets an error first is open
\set SHOW_CONTEXT never
CREATE EXTENSION temp_parallel;
SET temp_buffers = 100;
SET temp_parallel.worker_temp_buffers = 100;
\i sql/include/cheap_workers.sql
SET work_mem = '64kB';

-- Runs a query with the extension on, and then off. Says whether the answers are
-- the same, whether the table was read below Gather, and how many pages were
-- written by anything but the flush.
CREATE FUNCTION read_both(query text, OUT same_answer bool, OUT in_workers bool, OUT written int)
LANGUAGE plpgsql AS $$
DECLARE
	digest text := 'SELECT md5(string_agg(q::text, '','' ORDER BY q::text)) FROM (' || query || ') q';
	expected text;
	answer text;
	plan jsonb;
	flushed int;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
	SELECT sum((node->>'Flush Written Buffers')::int) INTO flushed
	  FROM jsonb_path_query(plan, 'strict $.** ? (@."Custom Plan Provider" == "TempFlush")') node;
	in_workers := flushed IS NOT NULL;
	written := (plan->0->'Plan'->>'Local Written Blocks')::int - flushed;
	EXECUTE digest INTO answer;
	PERFORM set_config('temp_parallel.enabled', 'off', true);
	EXECUTE digest INTO expected;
	PERFORM set_config('temp_parallel.enabled', 'on', true);
	same_answer := answer = expected;
END $$;

-- Before each case: row versions, all over the table, that are committed but
-- have no hints yet.
\set change 'UPDATE t SET k = k WHERE id % 30 = 0;'

CREATE TEMP TABLE t (id int, k int, pad text) WITH (fillfactor = 90);
INSERT INTO t SELECT g, g % 10, repeat('x', 100) FROM generate_series(1, 100000) g;
CREATE INDEX t_id ON t (id);
CREATE INDEX t_k ON t (k);
DELETE FROM t WHERE id BETWEEN 20000 AND 80000;

-- Sequential scan: one call passes a thousand pages of dead rows.
:change
SELECT * FROM read_both('SELECT count(*), sum(id), sum(k) FROM t');
:change
SELECT * FROM read_both('SELECT id, k FROM t WHERE id % 50 = 0');

-- Self-joins: leader and workers are on the same pages twice.
:change
SELECT * FROM read_both('SELECT count(*), sum(a.id) FROM t a JOIN t b USING (id)');

-- Index scan, index-only scan (dead rows: the index may not be marked either),
-- and an index lookup under a nested loop.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
:change
SELECT * FROM read_both('SELECT count(*), sum(k) FROM t WHERE id BETWEEN 10000 AND 90000');
:change
SELECT * FROM read_both('SELECT count(id) FROM t WHERE id > 15000');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
:change
SELECT * FROM read_both('SELECT count(*), sum(b.k) FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.id > 70000');
RESET enable_hashjoin;
RESET enable_mergejoin;

-- Bitmap heap scan, exact and lossy.
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
:change
SELECT * FROM read_both('SELECT count(*), sum(id) FROM t WHERE k IN (3, 7)');
SET work_mem = '4MB';
:change
SELECT * FROM read_both('SELECT count(*), sum(id) FROM t WHERE k IN (3, 7)');
SET work_mem = '64kB';
RESET enable_seqscan;
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- TOASTed values, of rows that have been updated since.
CREATE TEMP TABLE toasted (id int, big text);
ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT g, repeat(g::text, 3000) FROM generate_series(1, 300) g;
UPDATE toasted SET big = big || 'y' WHERE id % 3 = 0;
DELETE FROM toasted WHERE id % 7 = 0;
SELECT pg_flush_local_buffers() > 0 AS clean;
UPDATE toasted SET big = big || 'z' WHERE id % 5 = 0;
SELECT * FROM read_both('SELECT count(*), sum(length(big)), md5(string_agg(md5(big), '''' ORDER BY id)) FROM toasted');

-- Rescans: workers are launched anew for every row outside.
SET enable_material = off;
:change
SELECT * FROM read_both('SELECT x, n FROM (VALUES (1), (2), (3)) v (x), LATERAL (SELECT count(*) AS n FROM t HAVING count(*) > x) s');
RESET enable_material;

-- What the leader has dropped were hints and nothing else: a change that comes
-- after a parallel read is there after its page has been evicted.
UPDATE t SET k = -1 WHERE id = 12345;
DELETE FROM t WHERE id = 12346;
INSERT INTO t VALUES (0, -2, 'new');
SELECT count(*) FROM t;
UPDATE t SET k = -3 WHERE id = 12347;
CREATE TEMP TABLE evictor AS SELECT g, repeat('e', 1000) FROM generate_series(1, 2000) g;
SELECT id, k FROM t WHERE id BETWEEN 12344 AND 12348 OR id = 0 ORDER BY id;
SET temp_parallel.enabled = off;
SELECT id, k FROM t WHERE id BETWEEN 12344 AND 12348 OR id = 0 ORDER BY id;
RESET temp_parallel.enabled;

-- After a parallel read, and after one that failed, heap's own access method is
-- back: an index build refuses any other. REINDEX, as CREATE INDEX rebuilds the
-- descriptor first.
SELECT count(*), sum(k) FROM t WHERE id <= 10;
REINDEX TABLE t;
SELECT count(*) FROM t WHERE 1 / (id - 90000) > 1;
BEGIN;
SAVEPOINT a;
SELECT count(*) FROM t WHERE 1 / (id - 90000) > 1;
ROLLBACK TO a;
REINDEX TABLE t;
COMMIT;
DO $$
BEGIN
	PERFORM count(*) FROM t WHERE 1 / (id - 90000) > 1;
EXCEPTION WHEN division_by_zero THEN
	REINDEX TABLE t;
END $$;
VACUUM t;
CLUSTER t USING t_id;
:change
SELECT * FROM read_both('SELECT count(*), sum(id), sum(k) FROM t');

-- A row locked by a function that is wrongly marked, in the middle of a parallel
-- read: core lets it pass as far as the access method, which refuses.
CREATE FUNCTION locks(i int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED AS
$$ BEGIN PERFORM 1 FROM t WHERE id = i FOR UPDATE; RETURN i; END $$;
BEGIN;
UPDATE t SET k = k WHERE id = 1;		-- a transaction id is there already
SELECT locks(n::int % 10 + 1) FROM (SELECT count(*) AS n FROM t) s;
ROLLBACK;
SELECT count(*) FROM t;

-- In parallel mode, but before the flush, the leader reads pages that carry a
-- change. That is no hint to be dropped: else the flush would not write them,
-- the workers would read what was there before, and the change would be lost.
-- With each way to read; the table fits into the pool, lest eviction writes it,
-- and the leader, which has the change in its pool, leaves the second half of the
-- query to the workers.
SET parallel_leader_participation = off;
CREATE FUNCTION in_leader(i int) RETURNS bool LANGUAGE plpgsql PARALLEL RESTRICTED AS
$$ BEGIN RETURN true; END $$;
CREATE TEMP TABLE small (id int, k int) WITH (fillfactor = 40);
INSERT INTO small SELECT g, 0 FROM generate_series(1, 5000) g;
CREATE INDEX small_id ON small (id);
ANALYZE small;
\set change 'UPDATE small SET k = k + 1; SELECT pg_dirty_local_buffers() > 50 AS dirty;'
\set workers 'UNION ALL SELECT ''workers'', count(*), sum(k) FROM small'

EXPLAIN (COSTS OFF)
SELECT 'leader', count(*), sum(k) FROM small WHERE in_leader(id) :workers;
:change
SELECT 'leader', count(*), sum(k) FROM small WHERE in_leader(id) :workers;
:change
SELECT 'leader', count(*), sum(k) FROM small TABLESAMPLE system (100) WHERE in_leader(id) :workers;
:change
SELECT 'leader', count(*), sum(k) FROM small TABLESAMPLE bernoulli (100) WHERE in_leader(id) :workers;
:change
EXPLAIN (COSTS OFF)
SELECT 'leader', count(*), sum(k) FROM small WHERE ctid < '(2,0)' AND in_leader(id) :workers;
SELECT 'leader', count(*), sum(k) FROM small WHERE ctid < '(2,0)' AND in_leader(id) :workers;
:change
EXPLAIN (COSTS OFF)
SELECT 'leader', count(*), sum(k) FROM small WHERE id < 50 AND in_leader(id) :workers;
SELECT 'leader', count(*), sum(k) FROM small WHERE id < 50 AND in_leader(id) :workers;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
:change
EXPLAIN (COSTS OFF)
SELECT 'leader', count(*), sum(k) FROM small WHERE id < 50 AND in_leader(id) :workers;
SELECT 'leader', count(*), sum(k) FROM small WHERE id < 50 AND in_leader(id) :workers;
RESET enable_indexscan;
RESET enable_indexonlyscan;
:change
EXPLAIN (COSTS OFF)
SELECT 'leader', count(*), sum(k) FROM small WHERE ctid = '(2,1)' AND in_leader(id) :workers;
SELECT 'leader', count(*), sum(k) FROM small WHERE ctid = '(2,1)' AND in_leader(id) :workers;
RESET parallel_leader_participation;
TRUNCATE evictor;
INSERT INTO evictor SELECT g, repeat('e', 1000) FROM generate_series(1, 2000) g;
SET temp_parallel.enabled = off;
SELECT count(*), sum(k) FROM small;
RESET temp_parallel.enabled;

DROP FUNCTION read_both, locks, in_leader;
DROP TABLE t, toasted, evictor, small;
DROP EXTENSION temp_parallel;
