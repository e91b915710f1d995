--
-- INSERT INTO a temporary table ... SELECT in parallel, with the smallest pool: the
-- leader reads pages of the source and writes pages of the target, and evicts both.
-- If something here fails, rows are lost, or a page of the source is written while
-- workers read it.
--
\pset format unaligned \pset footer off
SET temp_buffers = 100;
LOAD 'temp_parallel';
CREATE EXTENSION temp_parallel;
\i sql/include/changes.sql
\i sql/include/nodes.sql

-- dead rows, whose hint bits nobody has set; a TOAST table; both in the same pool
CREATE TEMP TABLE source (id int, k int, v text, w text);
ALTER TABLE source ALTER w SET STORAGE EXTERNAL;
INSERT INTO source SELECT i, i % 10, repeat('x', 300) || i, CASE i % 20 WHEN 0 THEN repeat(md5(i::text), 80) END
	FROM generate_series(1, 6000) i;
DELETE FROM source WHERE id % 3 = 0;
ANALYZE source;
CREATE TEMP TABLE target (id int PRIMARY KEY, k int, v text, w text);
ALTER TABLE target ALTER w SET STORAGE EXTERNAL;
CREATE INDEX ON target (md5(v));
CREATE INDEX ON target (k, id);

UPDATE source SET v = v || 'y' WHERE id % 7 = 0;
EXPLAIN (COSTS OFF) INSERT INTO target SELECT * FROM source;
INSERT INTO target SELECT * FROM source;
SELECT count(*), sum(id), sum(length(v)), sum(length(w)), count(DISTINCT md5(w)) FROM target;
SELECT count(*) FROM source JOIN target USING (id, k, v) WHERE source.w IS NOT DISTINCT FROM target.w;
-- what is in the files, not in the pool
SELECT buffers_evicted > 0 AS evicted FROM pg_evict_local_buffers();
SELECT count(*), sum(id), sum(length(v)), sum(length(w)), count(DISTINCT md5(w)) FROM target;
SELECT count(*) FROM source JOIN target USING (id, k, v) WHERE source.w IS NOT DISTINCT FROM target.w;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM target WHERE id BETWEEN 1 AND 3000;
SELECT count(*) FROM target WHERE k = 4 AND id > 1000;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- target and source are partitions of one table, in the same pool
CREATE TEMP TABLE pt (id int, k int, v text) PARTITION BY LIST (k);
CREATE TEMP TABLE pt1 PARTITION OF pt FOR VALUES IN (1);
CREATE TEMP TABLE pt2 PARTITION OF pt FOR VALUES IN (2);
CREATE INDEX ON pt (id);
INSERT INTO pt SELECT i, 1, repeat('y', 500) || i FROM generate_series(1, 6000) i;
UPDATE pt SET v = v || 'z' WHERE id % 2 = 0;
ANALYZE pt1;
SELECT pg_temp.nodes('INSERT INTO pt2 SELECT id, 2, v FROM pt1');
INSERT INTO pt2 SELECT id, 2, v FROM pt1;
SELECT buffers_evicted > 0 AS evicted FROM pg_evict_local_buffers();
SELECT k, count(*), sum(id), count(DISTINCT v), sum(length(v)) FROM pt GROUP BY k ORDER BY k;
SELECT count(*) FROM pt1 JOIN pt2 USING (id, v);

-- the target's pages are on both sides of a segment border (at 1 GB by default); the
-- rest of the first segment is a hole that takes no space
CREATE TEMP TABLE far (id int, v text);
DO $$
BEGIN
	EXECUTE format('COPY (SELECT 1 WHERE false) TO PROGRAM %L',
				   format('truncate -s %s %L', pg_size_bytes(current_setting('segment_size')),
						  current_setting('data_directory') || '/' || pg_relation_filepath('far')));
END $$;
SELECT pg_size_bytes(current_setting('segment_size')) / current_setting('block_size')::int - 1 AS last \gset
SELECT format('(%s,0)', :last) AS last_tid \gset
SELECT pg_temp.nodes('INSERT INTO far SELECT id, v FROM source');
INSERT INTO far SELECT id, v FROM source;
SELECT buffers_evicted > 0 AS evicted FROM pg_evict_local_buffers();
SELECT count(*) FILTER (WHERE page = :last) > 0 AS in_the_first, count(*) FILTER (WHERE page > :last) > 0 AS in_the_second,
	   count(*), sum(id), sum(length(v))
FROM (SELECT (ctid::text::point)[0] AS page, * FROM far WHERE ctid >= :'last_tid') far;
DROP TABLE far;

-- the same statements, off and on
TRUNCATE target, pt2;
SELECT * FROM pg_temp.changes('INSERT INTO target SELECT * FROM source', 'SELECT id, md5(v), md5(w) FROM target');
SELECT * FROM pg_temp.changes('INSERT INTO target SELECT id % 100, k FROM source ON CONFLICT DO NOTHING', 'SELECT id FROM target');
SELECT * FROM pg_temp.changes('INSERT INTO pt2 SELECT id, 2, v FROM pt1', 'SELECT id, md5(v) FROM pt2');
DROP EXTENSION temp_parallel;
