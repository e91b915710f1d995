--
-- The read-only phase: from the flush until the workers have exited, nobody
-- writes a page of the tables that they read.
--
-- Without readonly_heap.c, a worker that evicts a page on which it has set hint
-- bits fails with "could not open file", and the leader writes such a page to
-- the file that workers are reading. Either happens only if the pool is smaller
-- than the number of pages that one call of a scan reads: hence the smallest
-- pools, and long runs of deleted rows. No VACUUM or ANALYZE here: it would set
-- the hint bits.
--
-- Either the leader or a worker may raise an error first.
\pset format unaligned \pset footer off
\set SHOW_CONTEXT never
CREATE EXTENSION temp_parallel;
SET temp_buffers = 100;
\i sql/include/cheap_workers.sql
-- the changes between the queries have no workers
SET temp_parallel.run_ahead = off;
\i sql/include/same.sql
\i sql/include/nodes.sql
SET work_mem = '64kB';

-- Runs a query with the extension on, and then off. Returns whether the results
-- are the same, whether a table was flushed for workers, and how many pages
-- were written other than by the flush.
CREATE FUNCTION read_both(query text, OUT same_answer bool, OUT in_workers bool, OUT written int)
LANGUAGE plpgsql AS $$
DECLARE
	rows text := 'SELECT string_agg(q::text, chr(10) ORDER BY q::text) FROM (' || query || ') q';
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
	EXECUTE rows INTO answer;
	PERFORM set_config('temp_parallel.enabled', 'off', true);
	EXECUTE rows INTO expected;
	PERFORM set_config('temp_parallel.enabled', 'on', true);
	same_answer := pg_temp.same('with workers', answer, expected);
END $$;

-- Before each case: committed row versions without hint bits, all over the table.
\set change 'UPDATE t SET k = k WHERE id % 30 = 0;'

CREATE TEMP TABLE t (id int, k int, pad text) WITH (fillfactor = 90);
INSERT INTO t SELECT g, g % 10, repeat('x', 100) FROM generate_series(1, 100000) g;
CREATE INDEX t_id ON t (id);
CREATE INDEX t_k ON t (k);
DELETE FROM t WHERE id BETWEEN 20000 AND 80000;

-- Sequential scan: one call skips a thousand pages of dead rows.
:change
SELECT * FROM read_both('SELECT count(*), sum(id), sum(k) FROM t');
:change
SELECT * FROM read_both('SELECT id, k FROM t WHERE id % 50 = 0');

-- A self-join: leader and workers read the same pages twice.
:change
SELECT * FROM read_both('SELECT count(*), sum(a.id) FROM t a JOIN t b USING (id)');

-- An index scan, an index-only scan (with dead rows, whose index entries must
-- not be marked, either), and an index scan below a nested loop.
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

-- Bitmap heap scan, lossy and exact.
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

-- TOASTed values of updated rows.
CREATE TEMP TABLE toasted (id int, big text);
ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT g, repeat(g::text, 3000) FROM generate_series(1, 300) g;
UPDATE toasted SET big = big || 'y' WHERE id % 3 = 0;
DELETE FROM toasted WHERE id % 7 = 0;
SELECT pg_flush_local_buffers() > 0 AS clean;
UPDATE toasted SET big = big || 'z' WHERE id % 5 = 0;
SELECT * FROM read_both('SELECT count(*), sum(length(big)), md5(string_agg(md5(big), '''' ORDER BY id)) FROM toasted');

-- Rescans: workers are launched again for each outer row.
SET enable_material = off;
:change
SELECT * FROM read_both('SELECT x, n FROM (VALUES (1), (2), (3)) v (x), LATERAL (SELECT count(*) AS n FROM t HAVING count(*) > x) s');
RESET enable_material;

-- The leader discards hint bits and nothing else: changes made after a parallel
-- query are still there when their pages have been evicted.
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

-- After a parallel query, even if it has failed, the relation descriptor has
-- heap's own access method again: an index build fails with any other one. This
-- takes REINDEX, as CREATE INDEX rebuilds the descriptor first.
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

-- A row lock in a function that is wrongly marked, during a parallel query.
-- Core does not reject it, so the access method must.
CREATE FUNCTION locks(i int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED AS
$$ BEGIN PERFORM 1 FROM t WHERE id = i FOR UPDATE; RETURN i; END $$;
BEGIN;
UPDATE t SET k = k WHERE id = 1;		-- assigns a transaction ID
SELECT locks(n::int % 10 + 1) FROM (SELECT count(*) AS n FROM t) s;
ROLLBACK;
SELECT count(*) FROM t;

-- In parallel mode, but before the flush, the leader reads pages that are dirty
-- because of a change. They must stay dirty: otherwise the flush would not
-- write them, the workers would read the old rows, and the change would be
-- lost. One case for each kind of scan. The table fits into the pool, so that
-- no eviction writes it. The first half of the query runs in the leader, whose
-- pool has the change, the second half only in workers.
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
SELECT pg_temp.nodes($$SELECT 'leader', count(*), sum(k) FROM small WHERE ctid < '(2,0)' AND in_leader(id) $$ || :'workers');
SELECT 'leader', count(*), sum(k) FROM small WHERE ctid < '(2,0)' AND in_leader(id) :workers;
:change
SELECT pg_temp.nodes($$SELECT 'leader', count(*), sum(k) FROM small WHERE id < 50 AND in_leader(id) $$ || :'workers');
SELECT 'leader', count(*), sum(k) FROM small WHERE id < 50 AND in_leader(id) :workers;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
:change
SELECT pg_temp.nodes($$SELECT 'leader', count(*), sum(k) FROM small WHERE id < 50 AND in_leader(id) $$ || :'workers');
SELECT 'leader', count(*), sum(k) FROM small WHERE id < 50 AND in_leader(id) :workers;
RESET enable_indexscan;
RESET enable_indexonlyscan;
:change
SELECT pg_temp.nodes($$SELECT 'leader', count(*), sum(k) FROM small WHERE ctid = '(2,1)' AND in_leader(id) $$ || :'workers');
SELECT 'leader', count(*), sum(k) FROM small WHERE ctid = '(2,1)' AND in_leader(id) :workers;
-- Of a TID range that begins after the last row of a page, heap must not look for the first
-- row itself: it would prune the next page, which then is dirty while workers read.
CREATE TEMP TABLE pruned (id int, k int);
INSERT INTO pruned SELECT g, 0 FROM generate_series(1, 5000) g;
ANALYZE pruned;
UPDATE pruned SET k = 1 WHERE id BETWEEN 227 AND 400;
SELECT pg_flush_local_buffers('pruned') > 0 AS written;
EXPLAIN (COSTS OFF)
SELECT 'workers', count(*), sum(k) FROM pruned
UNION ALL SELECT 'leader', count(*), sum(k) FROM pruned WHERE ctid > '(0,1000)' AND ctid < '(2,0)' AND in_leader(id);
SELECT 'workers', count(*), sum(k) FROM pruned
UNION ALL SELECT 'leader', count(*), sum(k) FROM pruned WHERE ctid > '(0,1000)' AND ctid < '(2,0)' AND in_leader(id);
SELECT pg_flush_local_buffers('pruned') AS written;
RESET parallel_leader_participation;
TRUNCATE evictor;
INSERT INTO evictor SELECT g, repeat('e', 1000) FROM generate_series(1, 2000) g;
SET temp_parallel.enabled = off;
SELECT count(*), sum(k) FROM small;
RESET temp_parallel.enabled;

DROP FUNCTION read_both, locks, in_leader;
DROP TABLE t, toasted, evictor, small;
DROP EXTENSION temp_parallel;
