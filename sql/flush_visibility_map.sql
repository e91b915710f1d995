--
-- The visibility map is flushed.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
SET temp_buffers = '64MB';
\i sql/include/cheap_workers.sql
SET cpu_tuple_cost = 100;

-- If it were not, workers would read the old one from its file, in which all
-- pages are all-visible, and would count the deleted rows, too: 2000.
CREATE TEMP TABLE mapped (id int, pad text) WITH (fillfactor = 10);
INSERT INTO mapped SELECT g, repeat('p', 500) FROM generate_series(1, 2000) g;
CREATE INDEX mapped_id ON mapped (id);
VACUUM ANALYZE mapped;
SELECT buffers_evicted > 0 AS evicted FROM pg_evict_local_buffers();
DELETE FROM mapped WHERE id % 2 = 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM mapped WHERE id > 0;
SELECT count(*) FROM mapped WHERE id > 0;

DROP TABLE mapped;
DROP EXTENSION temp_parallel;
