--
-- Workers read dirty pages in the leader's memory. If they read another page there, or
-- the file instead, answers are wrong; if the leader used a buffer for another page in the
-- meantime, workers could even crash; if it forgot that a page is dirty, rows would be
-- lost.
--
\pset format unaligned \pset footer off
SELECT version() ~ '32-bit' AS narrow \gset
\if :narrow
	\echo skipped: no pages are shared where addresses have 32 bits
	\quit
\endif
LOAD 'temp_parallel';
CREATE EXTENSION temp_parallel;
-- Tables may be created before temp_buffers is set; the pool is shared when they are filled.
CREATE TEMP TABLE t (id int, k int, v text, w text);
ALTER TABLE t ALTER w SET STORAGE EXTERNAL;
SET temp_buffers = '16MB';
\i sql/include/sharing.sql
\i sql/include/nodes.sql
\set shared 'SELECT shared, flushed, launched, same FROM pg_temp.shared'
INSERT INTO t SELECT i, i % 10, repeat('x', 100) || i, CASE i % 20 WHEN 0 THEN repeat(md5(i::text), 80) END
	FROM generate_series(1, 20000) i;
ANALYZE t;
SELECT not_shared FROM temp_parallel_stats();

-- Nothing is written, and the pages stay dirty.
EXPLAIN (COSTS OFF) SELECT count(*), sum(id), sum(length(v)) FROM t;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(id), sum(length(v)) FROM t');
SELECT count(*) FILTER (WHERE isdirty) > 300 AS dirty, max(pins) AS pins FROM pg_local_buffers;
-- EXPLAIN says so
SELECT * FROM pg_temp.explained('SELECT count(*) FROM t WHERE k = 3');

-- Every kind of read: TOAST, samples, TID ranges, bitmaps, index and index-only scans.
CREATE INDEX t_id ON t (id);
UPDATE t SET v = v || 'y' WHERE id % 7 = 0;
:shared ('SELECT id, md5(w) FROM t WHERE w IS NOT NULL');
:shared ('SELECT count(*), sum(a.k) FROM t a JOIN t b TABLESAMPLE SYSTEM (50) REPEATABLE (1) USING (id)');
:shared ('SELECT count(*), sum(k) FROM t WHERE ctid BETWEEN ''(10,1)'' AND ''(200,3)''');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT pg_temp.nodes('SELECT sum(k) FROM t WHERE id > 100');
:shared ('SELECT sum(k) FROM t WHERE id > 100');
:shared ('SELECT count(id) FROM t WHERE id > 100');
RESET enable_bitmapscan;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT pg_temp.nodes('SELECT sum(k) FROM t WHERE id BETWEEN 5000 AND 9000');
:shared ('SELECT sum(k) FROM t WHERE id BETWEEN 5000 AND 9000');
CREATE INDEX t_k ON t USING hash (k);
:shared ('SELECT sum(id) FROM t WHERE k = 4');
CREATE INDEX t_gist ON t USING gist (point(id, k));
CREATE TEMP TABLE areas AS SELECT box(point(i, 0), point(i + 500, 5)) AS area FROM generate_series(1, 20000, 1000) i;
SELECT pg_flush_local_buffers() > 0 AS flushed;
RESET enable_seqscan;
SELECT pg_temp.nodes('SELECT count(*), sum(id) FROM areas JOIN t ON point(id, k) <@ area');
:shared ('SELECT count(*), sum(id) FROM areas JOIN t ON point(id, k) <@ area');
SET enable_seqscan = off;
-- of a GIN scan it is not known how many pages it pins, so these are written
CREATE INDEX t_gin ON t USING gin (to_tsvector('simple', id::text));
:shared ('SELECT sum(id) FROM t WHERE to_tsvector(''simple'', id::text) @@ ''77 | 7777''');
DROP INDEX t_gin;
-- BRIN and SP-GiST read a page of the index when the plan is initialized
DROP INDEX t_id;
CREATE INDEX t_brin ON t USING brin (id);
SELECT pg_temp.nodes('SELECT sum(k) FROM t WHERE id BETWEEN 5000 AND 9000');
:shared ('SELECT sum(k) FROM t WHERE id BETWEEN 5000 AND 9000');
CREATE INDEX t_spgist ON t USING spgist (v);
RESET enable_seqscan;
SET enable_indexscan = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT pg_temp.nodes('SELECT count(b.id) FROM t a JOIN t b ON b.v = a.v WHERE a.k = 1');
:shared ('SELECT count(b.id) FROM t a JOIN t b ON b.v = a.v WHERE a.k = 1');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- Two Gathers over one table: what the first has listed is listed for the second, too.
\set two 'SELECT * FROM (SELECT k, sum(id) FROM t GROUP BY k) a JOIN (SELECT k, count(*) AS n FROM t GROUP BY k) b USING (k)'
SELECT pg_temp.nodes(:'two');
BEGIN;
UPDATE t SET k = 10 - k WHERE id % 7 = 5;
:shared (:'two');
SELECT * FROM pg_temp.explained(:'two');
-- The rent of the first Gather has paid for the flush when the second one is launched, but
-- the workers of the first may still be reading.
SELECT pg_flush_local_buffers() > 0 AS account_closed;
SET LOCAL temp_parallel.write_temp_page_cost = 0.08;
:shared (:'two');
ROLLBACK;
-- a Gather that is executed three times
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
\set again 'SELECT x, count(s.id) FROM generate_series(1, 3) x LEFT JOIN (SELECT id FROM t OFFSET 0) s ON s.id = x GROUP BY 1'
SELECT pg_temp.nodes(:'again');
:shared (:'again');
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- A function that the leader calls runs a statement with workers of its own: these get the
-- pages that other workers are reading, too, even if that function does not let pages be
-- shared. If they were written, the file could get a wrong checksum from the hints of the
-- other workers, and these workers fail.
CREATE FUNCTION pg_temp.inner() RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED
	SET temp_parallel.share_local_buffers = off AS 'BEGIN RETURN (SELECT sum(length(v)) FROM t); END';
\set nested 'SELECT id, CASE WHEN id = 1001 THEN pg_temp.inner() END FROM t WHERE id % 1000 = 1'
SELECT pg_temp.nodes(:'nested');
BEGIN;
UPDATE t SET v = v || 'n' WHERE id % 7 = 3;
:shared (:'nested');
SELECT pg_temp_buffers_dirty('t') IS NOT NULL AS dirtied;
SELECT * FROM pg_temp.explained(:'nested');
ROLLBACK;

-- INSERT and CREATE TABLE AS, whose SELECT workers run.
CREATE TEMP TABLE target (id int, v text, w text);
SELECT pg_temp_buffers_dirty('t') IS NOT NULL AS dirtied;
SELECT * FROM pg_temp.explained('INSERT INTO target SELECT id, v, w FROM t WHERE k < 5');
SELECT count(*), sum(id), sum(length(v)), sum(length(w)) FROM target;
SELECT count(*) FROM (SELECT id, v, w FROM t WHERE k < 5 EXCEPT ALL SELECT * FROM target) s;
DROP TABLE target;
SELECT pg_temp_buffers_dirty('t') IS NOT NULL AS dirtied;
SELECT * FROM pg_temp.explained('CREATE TEMP TABLE target AS SELECT id, v, w FROM t WHERE k < 5');
SELECT count(*), sum(id), sum(length(v)), sum(length(w)) FROM target;
DROP TABLE target;

-- Changes afterwards are seen, by the leader and by workers; and pages outlive eviction.
DELETE FROM t WHERE id % 3 = 0;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(id) FROM t');
BEGIN;
DELETE FROM t WHERE id % 3 = 1;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(id) FROM t');
ROLLBACK;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(id) FROM t');
SELECT buffers_evicted > 0 AS evicted FROM pg_evict_local_buffers();
SELECT * FROM pg_temp.explained('SELECT count(*), sum(id) FROM t');
SELECT count(*), sum(id) FROM t;

-- An error in a worker, in a subtransaction, in PL/pgSQL: no page stays pinned.
UPDATE t SET v = v || 'z';
\set VERBOSITY sqlstate
SELECT sum(1 / (id - 7777)) FROM t;
SELECT count(*) AS pinned FROM pg_local_buffers WHERE pins > 0;
BEGIN;
SAVEPOINT a;
SELECT sum(1 / (id - 7777)) FROM t;
ROLLBACK TO a;
SELECT count(*) AS pinned FROM pg_local_buffers WHERE pins > 0;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(id) FROM t');
COMMIT;
\set VERBOSITY default
DO $$
BEGIN
	PERFORM sum(1 / (id - 7777)) FROM t;
EXCEPTION WHEN division_by_zero THEN
	RAISE NOTICE 'caught; pinned: %', (SELECT count(*) FROM pg_local_buffers WHERE pins > 0);
END $$;

-- More dirty pages than may be pinned: the others are written.
DROP INDEX t_k, t_gist, t_brin, t_spgist;
INSERT INTO t SELECT i, i % 10, repeat('x', 700) || i FROM generate_series(1, 25000) i;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(id), sum(length(v)) FROM t');
SELECT count(*) AS pinned FROM pg_local_buffers WHERE pins > 0;
SELECT count(*), sum(id), sum(length(v)) FROM t;
SELECT pg_temp_buffers_dirty('t') > 1536 AS dirtied;
SELECT pages_shared FROM temp_parallel_stats() \gset before_
SELECT count(*) > 0 AS read FROM t;
SELECT pages_shared - :before_pages_shared BETWEEN 1 AND 1536 AS quarter_left FROM temp_parallel_stats();
-- As many are expected as are then read: if fewer were read, the flush would cost more than
-- what the plan was chosen by. Half of this pool is left for functions of users; not for what
-- an INSERT does after its SELECT.
CREATE FUNCTION pg_temp.planned(query text, OUT planned int, OUT shared bool) LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
	PERFORM pg_temp_buffers_dirty('t');
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	planned := jsonb_path_query_first(plan, '$.**."Planned Pages Shared"');
	shared := planned - jsonb_path_query_first(plan, '$.**."Pages Shared"')::int BETWEEN 0 AND 20;
END $$;
CREATE FUNCTION pg_temp.mine(bigint) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS 'BEGIN RETURN $1; END';
CREATE TEMP TABLE target (n bigint);
SELECT * FROM pg_temp.planned('SELECT count(*) FROM t');
SELECT * FROM pg_temp.planned('SELECT pg_temp.mine(count(*)) FROM t');
SELECT * FROM pg_temp.planned('INSERT INTO target SELECT count(*) FROM t');
SELECT * FROM pg_temp.planned('INSERT INTO target SELECT pg_temp.mine(count(*)) FROM t');
DROP TABLE target;
DELETE FROM t WHERE length(v) >= 700;
VACUUM t;

-- The setting.
SET temp_parallel.share_local_buffers = off;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(k) FROM t');
SET temp_parallel.share_local_buffers = on;
SELECT * FROM pg_temp.shared('SELECT count(*), sum(k) FROM t');

-- Sharing is the rent, a flush the purchase: in the end the pages are written, once.
SELECT pg_flush_local_buffers() > 0 AS account_closed;
SET temp_parallel.write_temp_page_cost = 0.5;
SELECT pg_temp_buffers_dirty('t') IS NOT NULL AS dirtied;
SELECT pages_shared, pages_flushed, workers_launched FROM temp_parallel_stats() \gset before_
SELECT count(*) AS dirty FROM pg_local_buffers JOIN pg_class USING (relfilenode) WHERE isdirty AND oid = 't'::regclass \gset
DO $$
BEGIN
	FOR i IN 1..30 LOOP
		EXECUTE 'SELECT count(*), sum(k) FROM t WHERE k <> ' || i;
	END LOOP;
END $$;
SELECT pages_shared - :before_pages_shared > :dirty AS shared_again,
	pages_flushed - :before_pages_flushed BETWEEN 1 AND :dirty AS written_once,
	workers_launched - :before_workers_launched AS workers
	FROM temp_parallel_stats();
SELECT count(*) AS dirty FROM pg_local_buffers JOIN pg_class USING (relfilenode) WHERE isdirty AND oid = 't'::regclass;

-- A launch that sends a TOAST pointer has no workers, and lists and writes nothing. Before the
-- next one of the same Gather, which gets a short value, another Gather lists the pages. In what
-- the first one has allocated is no room for them, as it expected to write them: workers would
-- miss them, or find others.
CREATE TEMP TABLE doc (id int, txt text);
ALTER TABLE doc ALTER txt SET STORAGE external;
INSERT INTO doc VALUES (1, repeat('y', 9000)), (2, '5');
CREATE TEMP TABLE large AS SELECT i AS id, repeat('x', 100) AS v FROM generate_series(1, 20000) i;
CREATE TEMP TABLE small AS SELECT i AS id, i % 10 || '' AS x FROM generate_series(1, 2000) i;
ANALYZE doc, large, small;
SET temp_parallel.write_temp_page_cost = 0.08;
SELECT count(*) FROM small;	-- leaves less to pay for a flush than for sharing again
\set skipped 'SELECT d.id, (SELECT count(*) FROM small WHERE x = (SELECT txt FROM doc WHERE id = d.id)), (SELECT count(*) FROM small JOIN large USING (id)) + d.id FROM generate_series(1, 2) d (id)'
SELECT * FROM pg_temp.explained(:'skipped');
SELECT pg_temp_buffers_dirty('small') > 0 AND pg_temp_buffers_dirty('large') > 0 AND pg_flush_local_buffers() > 0 AS accounts_closed;
SELECT pg_temp_buffers_dirty('small') > 0 AND pg_temp_buffers_dirty('large') > 0 AS dirtied;
SELECT count(*) FROM small;
:shared (:'skipped');
DROP TABLE doc, large, small;

DROP TABLE t;
DROP EXTENSION temp_parallel;
