--
-- Hint bits: a flush sets them on the pages that it writes, so that not every
-- worker has to look up the status of the rows' transactions. It must not set a
-- bit that a scan of the page would not set.
--
\pset format unaligned \pset footer off
SELECT count(*) = 0 AS missing FROM pg_available_extensions WHERE name = 'pageinspect' \gset
\if :missing
	\echo skipped: this server has no pageinspect
	\quit
\endif
CREATE EXTENSION temp_parallel;
CREATE EXTENSION pageinspect;
SET max_parallel_workers_per_gather = 0;

-- The hint bits of the rows on page 0 of a table.
CREATE FUNCTION hints(rel text) RETURNS TABLE (lp int, xmin text, xmax text)
LANGUAGE sql AS $$
	SELECT lp,
		   CASE t_infomask & x'0300'::int
				WHEN 0 THEN '' WHEN x'0100'::int THEN 'committed'
				WHEN x'0200'::int THEN 'aborted' ELSE 'frozen' END,
		   concat_ws(' ',
					 CASE WHEN t_infomask & x'1000'::int <> 0 THEN 'multixact' END,
					 CASE WHEN t_infomask & x'0080'::int <> 0 THEN 'lock' END,
					 CASE t_infomask & x'0c00'::int
						  WHEN 0 THEN NULL WHEN x'0400'::int THEN 'committed'
						  WHEN x'0800'::int THEN 'none' ELSE 'both' END)
	FROM heap_page_items(get_raw_page(rel, 0)) WHERE lp_flags = 1;
$$;

-- Four tables with the same rows.
\set t flushed
\i sql/include/hint_rows.sql
\set t flushed_with_all
\i sql/include/hint_rows.sql
\set t flushed_for_workers
\i sql/include/hint_rows.sql
\set t core
\i sql/include/hint_rows.sql

-- Before, only the hint bits that were set by the changes themselves.
SELECT * FROM hints('core');

-- A scan sets most of them, but none for locks and multixacts.
SELECT count(*) FROM core;
SELECT * FROM hints('core');

-- A flush sets the same ones: of a table, and below, of the whole pool.
SELECT pg_flush_local_buffers('flushed') > 0 AS written;
SELECT f AS flushed, c AS core FROM hints('flushed') f FULL JOIN hints('core') c USING (lp)
 WHERE f IS DISTINCT FROM c;

-- So does the flush before workers are launched.
ALTER TABLE flushed_for_workers SET (parallel_workers = 2);
\i sql/include/cheap_workers.sql
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id), sum(v) FROM flushed_for_workers;
SELECT count(*), sum(id), sum(v) FROM flushed_for_workers;
SELECT f AS flushed, c AS core FROM hints('flushed_for_workers') f FULL JOIN hints('core') c USING (lp)
 WHERE f IS DISTINCT FROM c;
RESET ALL;
SET max_parallel_workers_per_gather = 0;

SELECT pg_flush_local_buffers() > 0 AS written;
SELECT f AS flushed, c AS core FROM hints('flushed_with_all') f FULL JOIN hints('core') c USING (lp)
 WHERE f IS DISTINCT FROM c;

-- The pages on disk have these hint bits and a valid checksum. A scan has none
-- to add and leaves the pages clean.
SELECT buffers_skipped FROM pg_evict_local_buffers();
SELECT count(*), sum(id), sum(v) FROM core;
SELECT count(*), sum(id), sum(v) FROM flushed;
SELECT count(*), sum(id), sum(v) FROM flushed_for_workers;
SELECT count(*), sum(id), sum(v) FROM flushed_with_all;
SELECT pg_dirty_local_buffers() AS dirty;

-- No hint bit is set for a transaction in progress or its subtransactions,
-- except for those that have been rolled back.
CREATE TEMP TABLE t (id int, v int);
INSERT INTO t VALUES (1, 0), (2, 0), (3, 0);
BEGIN;
INSERT INTO t VALUES (4, 0);
SAVEPOINT a;
INSERT INTO t VALUES (5, 0);
DELETE FROM t WHERE ctid = '(0,1)';
SAVEPOINT b;
INSERT INTO t VALUES (6, 0);
DELETE FROM t WHERE ctid = '(0,2)';
ROLLBACK TO b;
SAVEPOINT c;
INSERT INTO t VALUES (7, 0);
DELETE FROM t WHERE ctid = '(0,3)';
SELECT pg_flush_local_buffers() > 0 AS written;
SELECT * FROM hints('t');
SELECT array_agg(id) FROM t;
ROLLBACK TO a;
SELECT array_agg(id) FROM t;
ROLLBACK;
SELECT array_agg(id) FROM t;

-- A cursor that was opened before the flush returns the rows of its own snapshot.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t;
FETCH 1 FROM c;
DELETE FROM t WHERE ctid = '(0,2)';
INSERT INTO t VALUES (8, 0);
SELECT pg_flush_local_buffers() > 0 AS written;
FETCH ALL FROM c;
COMMIT;
SELECT array_agg(id) FROM t;

-- A file created in the current transaction has no rows of another transaction.
BEGIN;
CREATE TEMP TABLE new AS SELECT 1 AS id;
TRUNCATE t;
INSERT INTO t VALUES (1, 0);
SELECT pg_flush_local_buffers() > 0 AS written;
SELECT * FROM hints('new');
SELECT * FROM hints('t');
COMMIT;
SELECT id FROM new;
SELECT id FROM t;

-- TOAST tables are heaps, too.
CREATE TEMP TABLE toasted (big text);
ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL;
INSERT INTO toasted VALUES (repeat('x', 4000));
SELECT pg_flush_local_buffers('toasted') > 0 AS written;
SELECT DISTINCT h.xmin
FROM pg_class c, hints(c.reltoastrelid::regclass::text) h WHERE c.oid = 'toasted'::regclass;

-- Pages of indexes, sequences and tables of other access methods are not
-- changed by a flush, except for the checksum.
CREATE TEMP TABLE indexed (id serial PRIMARY KEY, k int);
INSERT INTO indexed (k) SELECT i % 10 FROM generate_series(1, 1000) i;
CREATE INDEX indexed_hash ON indexed USING hash (k);
CREATE ACCESS METHOD regress_temp_parallel_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TEMP TABLE other USING regress_temp_parallel_heap AS SELECT 1 AS id;
CREATE TEMP TABLE pages AS
SELECT c.oid::regclass AS rel, block, get_raw_page(c.oid::regclass::text, block::int) AS page
FROM pg_class c, generate_series(0, pg_relation_size(c.oid) / current_setting('block_size')::int - 1) block
WHERE c.oid IN ('indexed_pkey'::regclass, 'indexed_hash'::regclass, 'indexed_id_seq'::regclass, 'other'::regclass);
SELECT pg_flush_local_buffers() > 0 AS written;
-- without pd_lsn and pd_checksum
SELECT rel, array_agg(block) FILTER (WHERE substring(page, 11) <> substring(get_raw_page(rel::text, block::int), 11)) AS changed
FROM pages GROUP BY rel ORDER BY rel::text;

-- A clean page is not written for its hint bits.
SELECT pg_flush_local_buffers() >= 0 AS clean;
CREATE TEMP TABLE evicted AS SELECT 1 AS id;
SELECT buffers_evicted, buffers_flushed FROM pg_evict_local_buffers('evicted');
SELECT * FROM hints('evicted');
SELECT pg_flush_local_buffers('evicted') AS written;
SELECT * FROM hints('evicted');

DROP TABLE flushed, flushed_with_all, flushed_for_workers, core, t, new, toasted, indexed, other, pages, evicted;
DROP ACCESS METHOD regress_temp_parallel_heap;
DROP FUNCTION hints;
DROP EXTENSION pageinspect;
DROP EXTENSION temp_parallel;
