--
-- A table larger than a segment (1 GB by default): dirty pages at the end of a
-- segment and at the beginning of the next one must be written by separate
-- calls. The rest of the first segment is a hole that takes no space.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
\i sql/include/cheap_workers.sql

CREATE TEMP TABLE t (id int, pad text);
DO $$
BEGIN
	EXECUTE format('COPY (SELECT 1 WHERE false) TO PROGRAM %L',
				   format('truncate -s %s %L', pg_size_bytes(current_setting('segment_size')),
						  current_setting('data_directory') || '/' || pg_relation_filepath('t')));
END $$;
INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 100) g;

SELECT count(DISTINCT relblocknumber) > 10 AS many,
	   bool_or(relblocknumber < blocks) AS in_the_first,
	   bool_or(relblocknumber >= blocks) AS in_the_second
FROM pg_local_buffers,
	 (SELECT pg_size_bytes(current_setting('segment_size')) / current_setting('block_size')::int) s (blocks)
WHERE relfilenode = pg_relation_filenode('t') AND relforknumber = 0 AND isdirty;
SELECT pg_flush_local_buffers('t') > 10 AS written;

-- The workers, and then the session itself, read the pages of both segments.
UPDATE t SET id = id + 1000;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM t;
SELECT count(*), sum(id) FROM t;
SELECT buffers_evicted > 0 AS evicted FROM pg_evict_local_buffers('t');
SELECT count(*), min(id), max(id) FROM t WHERE ctid >= format('(%s,0)',
	pg_size_bytes(current_setting('segment_size')) / current_setting('block_size')::int - 1)::tid;

DROP TABLE t;
DROP EXTENSION temp_parallel;
