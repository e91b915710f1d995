--
-- The instruments: functions that show, fill, flush and evict local buffers.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';
SET temp_buffers = '8MB';

-- The part of EXPLAIN (ANALYZE, BUFFERS) that is about local buffers; the rest
-- differs between versions.
CREATE FUNCTION explain_local(statement text) RETURNS SETOF text
LANGUAGE plpgsql AS
$$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE
		'EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || statement
	LOOP
		line := substring(line FROM 'local [a-z0-9 =]+');
		IF line IS NOT NULL THEN
			RETURN NEXT line;
		END IF;
	END LOOP;
END
$$;

-- no pool yet
SELECT count(*) FROM pg_local_buffers;
SELECT * FROM temp_parallel_summary();
SELECT count(*) FROM temp_parallel_relations();
SELECT * FROM temp_parallel_tables;
SELECT * FROM pg_evict_local_buffers();
SELECT pg_flush_local_buffers(), pg_allocated_local_buffers(), pg_dirty_local_buffers();

-- 100 pages of 58 rows, whatever data is aligned to
CREATE TEMP TABLE test (id int, pad text);
INSERT INTO test SELECT i, repeat('x', 107) FROM generate_series(1, 5800) i;
SELECT pg_relation_size('test') / current_setting('block_size')::int AS pages;

-- the views agree with each other
SELECT count(*) AS rows,
	   count(relfilenode) >= 100 AS used,
	   count(*) FILTER (WHERE isdirty) >= 100 AS dirty,
	   count(*) FILTER (WHERE pins > 0) AS pinned,
	   min(bufferid), max(bufferid)
FROM pg_local_buffers;
SELECT s.buffers_used = count(b.relfilenode) AS used,
	   s.buffers_unused = count(*) - count(b.relfilenode) AS unused,
	   s.buffers_dirty = count(*) FILTER (WHERE isdirty) AS dirty,
	   s.buffers_pinned = count(*) FILTER (WHERE pins > 0) AS pinned,
	   abs(s.usagecount_avg - avg(usagecount)) < 1e-6 AS usagecount,
	   s.buffers_allocated = pg_allocated_local_buffers() AS allocated,
	   s.buffers_dirty = pg_dirty_local_buffers() AS dirtied
FROM pg_local_buffers b, temp_parallel_summary() s
GROUP BY s.*, s.buffers_used, s.buffers_unused, s.buffers_dirty,
		 s.buffers_pinned, s.usagecount_avg, s.buffers_allocated;
SELECT c.relname, b.relforknumber, b.reltablespace = d.dattablespace AS tablespace,
	   b.reldatabase = d.oid AS database,
	   count(*), min(relblocknumber), max(relblocknumber)
FROM pg_local_buffers b
	 JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid)
	 JOIN pg_database d ON d.datname = current_database()
WHERE c.relname = 'test' AND b.relforknumber = 0
GROUP BY 1, 2, 3, 4;

-- a flush writes; the second one has nothing to write
SELECT pg_dirty_local_buffers() AS dirty \gset
SELECT explain_local('SELECT pg_flush_local_buffers()') = 'local written=' || :dirty AS written;
SELECT explain_local('SELECT pg_flush_local_buffers()');
-- evict, read in order, read again
SELECT buffers_evicted >= 100 AS evicted, buffers_flushed, buffers_skipped
FROM pg_evict_local_buffers('test');
SELECT explain_local('SELECT pg_read_temp_relation(''test'', false)');
SELECT explain_local('SELECT pg_read_temp_relation(''test'', false)');
-- evict, read in random order, mark as dirty, flush
SELECT buffers_evicted FROM pg_evict_local_buffers('test');
SELECT explain_local('SELECT pg_read_temp_relation(''test'', true)');
SELECT count(DISTINCT relblocknumber),
	   array_agg(relblocknumber ORDER BY bufferid) <>
	   array_agg(relblocknumber ORDER BY relblocknumber) AS shuffled
FROM pg_local_buffers WHERE relfilenode = pg_relation_filenode('test');
SELECT explain_local('SELECT pg_temp_buffers_dirty(''test'')');
SELECT explain_local('SELECT pg_temp_buffers_dirty(''test'')');
SELECT explain_local('SELECT pg_flush_local_buffers()');
-- their results; "randomize" may be omitted
SELECT pg_read_temp_relation('test'), pg_temp_buffers_dirty('test'),
	   pg_flush_local_buffers('test'), pg_flush_local_buffers('test'),
	   pg_dirty_local_buffers();
-- only pages in the pool are marked, none is read
SELECT buffers_evicted FROM pg_evict_local_buffers('test');
SELECT pg_temp_buffers_dirty('test');
SELECT count(*) FROM test WHERE ctid = '(42,1)';
SELECT pg_temp_buffers_dirty('test'), pg_flush_local_buffers();

-- names of indexes, TOAST tables and sequences
CREATE TEMP TABLE wide (id int PRIMARY KEY, big text);
ALTER TABLE wide ALTER big SET STORAGE EXTERNAL;
INSERT INTO wide SELECT i, repeat('y', 4000) FROM generate_series(1, 50) i;
CREATE TEMP SEQUENCE seq;
SELECT nextval('seq');
SELECT "table", regexp_replace(relation::text, '[0-9]+', 'N', 'g') AS relation, kind,
	   allocated > 0 AS allocated, dirty > 0 AS dirty, pinned
FROM temp_parallel_relations()
WHERE fork = 'main'
ORDER BY "table"::text, kind COLLATE "C", relation::text;
SELECT sum(allocated) = (SELECT buffers_used FROM temp_parallel_summary()) AS allocated,
	   sum(dirty) = pg_dirty_local_buffers() AS dirty
FROM temp_parallel_relations();
-- forks
VACUUM wide;
SELECT fork, allocated > 0 AS allocated FROM temp_parallel_relations()
WHERE relation = 'wide'::regclass ORDER BY fork;
-- a flush of a table includes its indexes, TOAST table and TOAST index, and no
-- other table
SELECT pg_temp_buffers_dirty('test') > 0 AS dirty;
SELECT pg_flush_local_buffers('wide') > 0 AS flushed;
SELECT "table", sum(dirty) > 0 AS dirty FROM temp_parallel_relations()
WHERE "table" IN ('test'::regclass, 'wide'::regclass) GROUP BY 1 ORDER BY "table"::text;
-- pages of a file that a rollback would restore have no name
BEGIN;
TRUNCATE test;
SELECT count(*) FROM temp_parallel_relations() WHERE relation IS NULL;
ROLLBACK;
SELECT count(*) FROM temp_parallel_relations() WHERE relation IS NULL;

-- no row is lost: an eviction writes dirty pages first
UPDATE test SET id = -id WHERE id % 3 = 0;
DELETE FROM test WHERE id % 5 = 0;
UPDATE wide SET big = repeat('z', 5000) WHERE id % 2 = 0;
CREATE TABLE instruments_test AS TABLE test;
CREATE TABLE instruments_wide AS TABLE wide;
\set lost_or_new '(SELECT ''lost'' AS what, l.* FROM (TABLE instruments_test EXCEPT ALL TABLE test) l) UNION ALL (SELECT ''new'', n.* FROM (TABLE test EXCEPT ALL TABLE instruments_test) n);'
SELECT sum(dirty) AS dirty FROM temp_parallel_relations()
WHERE "table" = 'test'::regclass \gset
SELECT buffers_evicted > 0 AS evicted, buffers_flushed = :dirty AS flushed,
	   buffers_skipped
FROM pg_evict_local_buffers('test');
SELECT count(*) FROM temp_parallel_relations() WHERE "table" = 'test'::regclass;
SELECT count(*) > 0 AS others FROM temp_parallel_relations() WHERE "table" = 'wide'::regclass;
SELECT buffers_evicted > 0 AS evicted, buffers_flushed > 0 AS flushed, buffers_skipped
FROM pg_evict_local_buffers();
SELECT buffers_used, buffers_dirty, buffers_pinned, usagecount_avg,
	   buffers_allocated > 0 AS allocated
FROM temp_parallel_summary();
:lost_or_new
TABLE instruments_wide EXCEPT ALL TABLE wide;
TABLE wide EXCEPT ALL TABLE instruments_wide;
SET enable_seqscan = off;
SELECT count(*) FROM wide WHERE id BETWEEN 10 AND 19;
RESET enable_seqscan;
-- also pages left by a transaction that was rolled back
BEGIN;
INSERT INTO test SELECT 0, 'rolled back' FROM generate_series(1, 1000);
SELECT buffers_skipped FROM pg_evict_local_buffers();
ROLLBACK;
SELECT buffers_skipped FROM pg_evict_local_buffers('test');
:lost_or_new

-- pinned pages are not evicted, and the scans that pin them go on
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM test;
FETCH FORWARD 10 FROM c \g /dev/null
UPDATE test SET pad = 'changed' WHERE id = 1;
SELECT buffers_pinned > 0 AS pinned FROM temp_parallel_summary();
SELECT buffers_skipped > 0 AS skipped, buffers_skipped = s.buffers_pinned AS pinned
FROM temp_parallel_summary() s, pg_evict_local_buffers('test');
-- they can still be looked up
SELECT count(*) > 0 AS stayed, bool_and(pins > 0) AS pinned FROM pg_local_buffers
WHERE relfilenode = pg_relation_filenode('test');
SELECT explain_local('SELECT FROM test WHERE ctid = ''(0,1)''');
MOVE FORWARD ALL FROM c;
COMMIT;
SELECT buffers_evicted > 0 AS evicted, buffers_skipped FROM pg_evict_local_buffers('test');
SELECT count(*), count(*) FILTER (WHERE pad = 'changed') AS changed FROM test;

-- a table larger than the pool
INSERT INTO test SELECT i, repeat('x', 107) FROM generate_series(1, 58 * 1200) i;
SELECT count(*) FROM test;
SELECT pg_read_temp_relation('test', true) = pg_relation_size('test') / current_setting('block_size')::int AS read;
SELECT buffers_used <= 1024 AS used FROM temp_parallel_summary();
SELECT buffers_evicted BETWEEN 900 AND 1024 AS evicted FROM pg_evict_local_buffers('test');
SELECT count(*) FROM test;

-- an empty table
CREATE TEMP TABLE empty ();
SELECT pg_read_temp_relation('empty', true), pg_read_temp_relation('empty', false),
	   pg_temp_buffers_dirty('empty'), pg_flush_local_buffers('empty');
SELECT * FROM pg_evict_local_buffers('empty');

-- a cancel request takes effect before the first page
DO $$ BEGIN PERFORM pg_flush_local_buffers(); PERFORM pg_evict_local_buffers(); END $$;
SELECT pg_cancel_backend(pg_backend_pid()), pg_read_temp_relation('test', false);
SELECT buffers_used FROM temp_parallel_summary();
SELECT pg_read_temp_relation('wide') > 0 AS read;
SELECT pg_cancel_backend(pg_backend_pid()), pg_temp_buffers_dirty('wide');
SELECT pg_dirty_local_buffers();
SELECT pg_temp_buffers_dirty('wide') > 0 AS dirty;
SELECT pg_cancel_backend(pg_backend_pid()), pg_flush_local_buffers();
SELECT pg_dirty_local_buffers() > 0 AS dirty;
SELECT pg_cancel_backend(pg_backend_pid()), pg_evict_local_buffers('wide');
SELECT pg_dirty_local_buffers() > 0 AS dirty;

DROP TABLE instruments_test, instruments_wide;
DROP FUNCTION explain_local;
DROP EXTENSION temp_parallel;
