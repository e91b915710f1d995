--
-- The server's own instruments as controls. A temporary table's pages are in pg_local_buffers
-- and none in pg_buffercache, an unlogged table's the other way round, and pgstattuple counts
-- as many; the view has pg_buffercache's column names and types, so that a query on one runs
-- on the other.
--
\pset format unaligned \pset footer off
SELECT count(*) < 2 AS missing FROM pg_available_extensions WHERE name IN ('pg_buffercache', 'pgstattuple') \gset
\if :missing
	\echo skipped: this server has no pg_buffercache or no pgstattuple
	\quit
\endif
CREATE EXTENSION temp_parallel;
CREATE EXTENSION pg_buffercache;
CREATE EXTENSION pgstattuple;

CREATE TEMP TABLE temporary (id int, pad char(5000));	-- a row a page
ALTER TABLE temporary ALTER pad SET STORAGE PLAIN;
INSERT INTO temporary SELECT g, '' FROM generate_series(1, 128) g;
CREATE UNLOGGED TABLE other_counters (LIKE temporary INCLUDING STORAGE);
INSERT INTO other_counters SELECT g, '' FROM generate_series(1, 128) g;

SELECT relname, pg_relpages(oid::regclass) AS pages,
	   (SELECT count(*) FROM pg_local_buffers WHERE relfilenode = pg_relation_filenode(c.oid) AND relforknumber = 0) AS local,
	   (SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode(c.oid) AND relforknumber = 0) AS shared
FROM pg_class c WHERE relname IN ('temporary', 'other_counters') ORDER BY relname COLLATE "C";
-- the same blocks of both
SELECT count(*), min(relblocknumber), max(relblocknumber)
FROM pg_local_buffers l JOIN pg_buffercache s USING (relforknumber, relblocknumber, reldatabase)
WHERE l.relfilenode = pg_relation_filenode('temporary') AND s.relfilenode = pg_relation_filenode('other_counters') AND relforknumber = 0;
-- pgstattuple, which reads all pages, brings back those that were evicted, and finds all rows
SELECT buffers_evicted >= 128 AS evicted FROM pg_evict_local_buffers('temporary');
SELECT tuple_count FROM pgstattuple('temporary');
SELECT count(*) FROM pg_local_buffers WHERE relfilenode = pg_relation_filenode('temporary') AND relforknumber = 0;

-- Columns of pg_local_buffers: all but pins, which are the session's own, are those of
-- pg_buffercache.
SELECT l.attname, format_type(l.atttypid, l.atttypmod) AS type, format_type(s.atttypid, s.atttypmod) AS in_pg_buffercache
FROM pg_attribute l LEFT JOIN pg_attribute s ON s.attrelid = 'pg_buffercache'::regclass AND s.attname = l.attname
WHERE l.attrelid = 'pg_local_buffers'::regclass AND l.attnum > 0 ORDER BY l.attnum;

-- pgstattuple_approx() sets hints in the leader's buffers, which then are dirty, while a Gather
-- launches workers again. It lists as many pages as at first, for which it has room; the others
-- are written.
\c -
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
SET temp_buffers = '16MB';
\i sql/include/sharing.sql
BEGIN;
CREATE TEMP TABLE t AS SELECT i AS id, repeat('x', 100) AS v FROM generate_series(1, 10000) i;
SELECT pg_flush_local_buffers('t') > 0 AS flushed_without_hints;
COMMIT;
SET parallel_leader_participation = off;	-- as the leader would set hints in its buffers
UPDATE t SET v = v WHERE id = 1;
\set again 'SELECT i, CASE i WHEN 2 THEN (SELECT table_len > 0 FROM pgstattuple_approx(''t'')) END, (SELECT count(*) + i FROM t) FROM generate_series(1, 4) i'
:again;
SELECT pg_flush_local_buffers('t') <= 2 AS written;

DROP TABLE other_counters, t;
DROP EXTENSION pgstattuple;
DROP EXTENSION pg_buffercache;
DROP EXTENSION temp_parallel;
