--
-- The read-only phase and the visibility map.
--
-- A row that is deleted from a page clears the page's bit in the visibility map
-- only if the page's header says that all rows are visible.  From 19 on, a read
-- that prunes a page may set both.  If the header's part of that were dropped, as
-- hints are, and the map's part kept, an index-only scan would later count
-- deleted rows, and the next read of the page would warn.
--
\pset format unaligned \pset footer off
SELECT count(*) = 0 AS missing FROM pg_available_extensions WHERE name = 'pg_visibility' \gset
\if :missing
	\echo skipped: this server has no pg_visibility
	\quit
\endif
CREATE EXTENSION temp_parallel;
CREATE EXTENSION pg_visibility;
SET temp_buffers = 100;
\i sql/include/cheap_workers.sql

-- Pages that are full enough to be pruned, none marked all-visible: on most of them,
-- a row has been updated to the same page, and all rows are visible after pruning; on
-- the others, a row has been deleted.
CREATE FUNCTION fill() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE IF EXISTS t;
	CREATE TEMP TABLE t (id int, k int, pad text) WITH (fillfactor = 90);
	INSERT INTO t SELECT g, g % 10, repeat('x', 100) FROM generate_series(1, 10000) g;
	CREATE INDEX t_id ON t (id);
	CREATE INDEX t_k ON t (k);
END $$;
\set prepare 'SELECT fill(); ANALYZE t; UPDATE t SET pad = pad WHERE id % 30 = 0; DELETE FROM t WHERE id % 70 = 0 AND id > 8000;'

-- Runs a query, with workers and by the leader in the workers' place.
CREATE FUNCTION read_parallel(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
	flushes bool := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		flushes := flushes OR line LIKE '%(TempFlush)%';
	END LOOP;
	PERFORM set_config('max_parallel_workers', '0', true);
	EXECUTE query;
	PERFORM set_config('max_parallel_workers', '8', true);
	EXECUTE query;
	RETURN flushes;
END $$;

-- After the pages have left the pool: pages of which only the map says that all
-- rows are visible, and rows that are not although the map says so.
CREATE FUNCTION wrong_in_map(OUT pages bigint, OUT rows bigint) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_evict_local_buffers();
	SELECT count(*) INTO pages FROM pg_visibility('t') WHERE all_visible AND NOT pd_all_visible;
	SELECT (SELECT count(*) FROM pg_check_visible('t')) +
		(SELECT count(*) FROM pg_check_frozen('t')) INTO rows;
END $$;

-- More rows are deleted. The number of the others, by an index-only scan, with
-- workers and without, and by a sequential scan.
CREATE FUNCTION count_rows(OUT by_workers bigint, OUT by_index bigint, OUT by_table bigint)
LANGUAGE plpgsql SET enable_bitmapscan = off AS $$
BEGIN
	DELETE FROM t WHERE id % 30 = 0;
	PERFORM set_config('enable_seqscan', 'off', true);
	EXECUTE 'SELECT count(*) FROM t WHERE id > 0' INTO by_workers;
	PERFORM set_config('temp_parallel.enabled', 'off', true);
	EXECUTE 'SELECT count(*) FROM t WHERE id > 0' INTO by_index;
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexonlyscan', 'off', true);
	EXECUTE 'SELECT count(*) FROM t' INTO by_table;
	PERFORM set_config('enable_indexonlyscan', 'on', true), set_config('temp_parallel.enabled', 'on', true);
END $$;

\set check 'SELECT * FROM wrong_in_map(), count_rows();'

-- sequential scan
:prepare
SELECT read_parallel('SELECT sum(k) FROM t');
:check
-- TID range and sample scans, with and without page-at-a-time mode
:prepare
SELECT read_parallel($$SELECT sum(b.k) FROM t a JOIN t b ON a.k = b.id WHERE b.ctid BETWEEN '(1,1)' AND '(100,1)'$$);
:check
:prepare
SELECT read_parallel('SELECT sum(b.k) FROM t a JOIN t b TABLESAMPLE SYSTEM (90) REPEATABLE (1) ON a.k = b.id');
:check
:prepare
SELECT read_parallel('SELECT sum(b.k) FROM t a JOIN t b TABLESAMPLE BERNOULLI (90) REPEATABLE (1) ON a.k = b.id');
:check
-- index scan, index-only scan, and an index scan below a nested loop
SET enable_seqscan = off;
SET enable_bitmapscan = off;
:prepare
SELECT read_parallel('SELECT sum(k) FROM t WHERE id > 0');
:check
:prepare
SELECT read_parallel('SELECT sum(id) FROM t WHERE id > 0');
:check
SET enable_hashjoin = off;
SET enable_mergejoin = off;
:prepare
SELECT read_parallel('SELECT sum(b.k) FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.id > 0');
:check
RESET enable_hashjoin;
RESET enable_mergejoin;
-- bitmap scan, exact and lossy
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
:prepare
SELECT read_parallel('SELECT sum(id) FROM t WHERE k IN (3, 7)');
:check
SET work_mem = '64kB';
:prepare
SELECT read_parallel('SELECT sum(id) FROM t WHERE k IN (3, 7)');
:check
RESET work_mem;
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET enable_seqscan;

-- Reads without workers before and after, which may set the map; changes, VACUUM.
:prepare
SET temp_parallel.enabled = off;
SELECT count(*) FROM t;
SET temp_parallel.enabled = on;
SELECT read_parallel('SELECT sum(k) FROM t');
UPDATE t SET pad = pad WHERE id % 100 = 1;
SELECT read_parallel('SELECT sum(k) FROM t WHERE id > 0');
SET temp_parallel.enabled = off;
SELECT count(*) FROM t WHERE pad IS NOT NULL;
SET temp_parallel.enabled = on;
VACUUM t;
DELETE FROM t WHERE id % 100 = 2;
SELECT read_parallel('SELECT sum(k) FROM t');
:check
VACUUM (FREEZE) t;
UPDATE t SET pad = pad WHERE id % 100 = 3;
SELECT read_parallel('SELECT sum(k) FROM t WHERE id > 0');
:check

-- A TOAST table is read through its index.
CREATE TEMP TABLE wide (id int, v text);
ALTER TABLE wide ALTER v SET STORAGE EXTERNAL;
INSERT INTO wide SELECT g, repeat(chr(65 + g % 26), 4000) FROM generate_series(1, 500) g;
DELETE FROM wide WHERE id % 5 = 0;
SELECT reltoastrelid::regclass AS toast FROM pg_class WHERE oid = 'wide'::regclass \gset
SELECT read_parallel('SELECT sum(length(v || id)) FROM wide');
SELECT pg_evict_local_buffers() IS NOT NULL AS evicted;
SELECT count(*) AS wrong FROM pg_visibility(:'toast') WHERE all_visible AND NOT pd_all_visible;
SELECT count(*) AS wrong FROM pg_check_visible(:'toast');

DROP TABLE t, wide;
DROP FUNCTION fill, read_parallel, wrong_in_map, count_rows;
DROP EXTENSION pg_visibility, temp_parallel;
