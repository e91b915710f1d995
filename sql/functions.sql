--
-- SQL functions: the number of local buffers, a flush, and its cost.
--
CREATE EXTENSION temp_parallel;
SET temp_buffers = '16MB';

-- A session that has not used a temporary table has no pool: no buffers, no tables,
-- and a flush that writes nothing.
SELECT pg_allocated_local_buffers(), pg_dirty_local_buffers(), pg_flush_local_buffers();
SELECT * FROM temp_parallel_tables;

-- A row a page, so that the counts are known.
CREATE TEMP TABLE t (id int, filler char(5000));
ALTER TABLE t ALTER filler SET STORAGE PLAIN;
INSERT INTO t SELECT g, '' FROM generate_series(1, 500) g;
SELECT pg_relation_size('t') / current_setting('block_size')::int AS pages;

-- All pages of the table are dirty and in the pool, and so are those of its
-- free space map, if it already has one.
SELECT pg_dirty_local_buffers() >= 500 AS dirty,
       pg_allocated_local_buffers() >= pg_dirty_local_buffers() AS allocated;

-- The cost is computed with the current settings.
SELECT round(flush_cost::numeric, 2) = 1.30 * pg_dirty_local_buffers() +
                                       0.01 * pg_allocated_local_buffers() AS formula
  FROM temp_parallel_flush_cost('t');
SET temp_parallel.write_temp_page_cost = 2;
SET temp_parallel.buffer_scan_cost = 3;
SELECT flush_cost = 2 * pg_dirty_local_buffers() + 3 * pg_allocated_local_buffers() AS formula,
       dirty_pages = pg_dirty_local_buffers() AS dirty, account
  FROM temp_parallel_flush_cost('t');
SET temp_parallel.buffer_scan_cost = 0;

-- The cost for a table is that of its own pages only.
CREATE TEMP TABLE other AS SELECT 1 AS x;
SELECT sum(dirty_pages) = pg_dirty_local_buffers() AS adds_up,
       sum(flush_cost) = 2 * pg_dirty_local_buffers() AS costs_add_up,
       sum(flush_cost) FILTER (WHERE relation = 'other'::regclass) / 2 AS pages_of_other
  FROM temp_parallel_tables;

-- A table's pages include those of its indexes, TOAST table and TOAST index.
CREATE TEMP TABLE family (id int, big text);
ALTER TABLE family ALTER big SET STORAGE EXTERNAL;
SELECT (temp_parallel_flush_cost('family')).flush_cost / 2 AS toast_index_metapage;
INSERT INTO family VALUES (1, repeat('x', 100000));
SELECT (temp_parallel_flush_cost('family')).flush_cost / 2 > 12 AS toast_counted;
-- (CREATE INDEX does not go through the pool, so no page of the new index is
-- dirty until the next insertion, which dirties a page of the table and one of
-- the index.)
CREATE INDEX ON family (id);
SELECT pg_flush_local_buffers() > 0 AS clean;
INSERT INTO family VALUES (2, 'small');
SELECT (temp_parallel_flush_cost('family')).flush_cost / 2 AS table_and_index;
UPDATE t SET id = id;

-- A flush returns the number of pages written; they are clean and keep their
-- contents.
SELECT pg_dirty_local_buffers() AS dirty \gset
SELECT pg_flush_local_buffers() = :dirty AS wrote_all;
SELECT pg_dirty_local_buffers(), pg_flush_local_buffers();
SELECT sum(dirty_pages) AS dirty, sum(flush_cost) AS cost FROM temp_parallel_tables;
SELECT count(*), sum(id) FROM t;
SELECT length(big) FROM family;
UPDATE t SET id = -id WHERE id = 1;
SELECT pg_dirty_local_buffers() > 0 AS dirty_again;

-- EXPLAIN (BUFFERS) counts the pages that a flush writes.
CREATE FUNCTION local_written(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Local Written Blocks';
END $$;
SELECT pg_dirty_local_buffers() AS dirty \gset
SELECT local_written('SELECT pg_flush_local_buffers()') = :dirty AS counted;

-- Any role may call them.
CREATE ROLE regress_temp_parallel;
SET ROLE regress_temp_parallel;
SELECT pg_dirty_local_buffers(), pg_flush_local_buffers(),
       pg_allocated_local_buffers() > 0 AS allocated;
RESET ROLE;

-- Anything else than a temporary table of this session is an error.
\set VERBOSITY sqlstate
SELECT temp_parallel_flush_cost('pg_class');
SELECT temp_parallel_flush_cost(0);
CREATE TEMP VIEW v AS SELECT 1 AS x;
SELECT temp_parallel_flush_cost('v');
CREATE TEMP SEQUENCE s;
SELECT temp_parallel_flush_cost('s');
CREATE TEMP TABLE parted (id int) PARTITION BY LIST (id);
SELECT temp_parallel_flush_cost('parted');
SELECT temp_parallel_flush_cost('family_id_idx');
\set VERBOSITY default
SELECT temp_parallel_flush_cost('pg_class');
SELECT temp_parallel_flush_cost('v');

DROP ROLE regress_temp_parallel;
DROP FUNCTION local_written;
DROP EXTENSION temp_parallel;
