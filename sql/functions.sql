--
-- SQL functions: the number of local buffers, a flush, and its cost.
--
CREATE EXTENSION temp_parallel;
SET temp_buffers = '16MB';

-- A session that has not used a temporary table has no pool: no buffers, and a
-- flush that writes nothing and costs nothing.
SELECT pg_allocated_local_buffers(), pg_dirty_local_buffers(),
       pg_temp_flush_cost(), pg_flush_local_buffers();

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
SELECT pg_temp_flush_cost() = 1.30 * pg_dirty_local_buffers() +
                              0.01 * pg_allocated_local_buffers() AS formula;
SET temp_parallel.write_temp_page_cost = 2;
SET temp_parallel.buffer_scan_cost = 3;
SELECT pg_temp_flush_cost() = 2 * pg_dirty_local_buffers() +
                              3 * pg_allocated_local_buffers() AS formula;
SET temp_parallel.buffer_scan_cost = 0;

-- The cost for a table is that of its own pages only.
CREATE TEMP TABLE other AS SELECT 1 AS x;
SELECT pg_temp_flush_cost('t') + pg_temp_flush_cost('other') =
       pg_temp_flush_cost() AS adds_up,
       pg_temp_flush_cost('other') / 2 AS pages_of_other;

-- A table's pages include those of its indexes, TOAST table and TOAST index.
CREATE TEMP TABLE family (id int, big text);
ALTER TABLE family ALTER big SET STORAGE EXTERNAL;
SELECT pg_temp_flush_cost('family') / 2 AS toast_index_metapage;
INSERT INTO family VALUES (1, repeat('x', 100000));
SELECT pg_temp_flush_cost('family') / 2 > 12 AS toast_counted;
-- (CREATE INDEX does not go through the pool, so no page of the new index is
-- dirty until the next insertion, which dirties a page of the table and one of
-- the index.)
CREATE INDEX ON family (id);
SELECT pg_flush_local_buffers() > 0 AS clean;
INSERT INTO family VALUES (2, 'small');
SELECT pg_temp_flush_cost('family') / 2 AS table_and_index;
UPDATE t SET id = id;

-- A flush returns the number of pages written; they are clean and keep their
-- contents.
SELECT pg_dirty_local_buffers() AS dirty \gset
SELECT pg_flush_local_buffers() = :dirty AS wrote_all;
SELECT pg_dirty_local_buffers(), pg_flush_local_buffers(), pg_temp_flush_cost();
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
SELECT pg_temp_flush_cost('pg_class');
SELECT pg_temp_flush_cost(0);
CREATE TEMP VIEW v AS SELECT 1 AS x;
SELECT pg_temp_flush_cost('v');
CREATE TEMP SEQUENCE s;
SELECT pg_temp_flush_cost('s');
CREATE TEMP TABLE parted (id int) PARTITION BY LIST (id);
SELECT pg_temp_flush_cost('parted');
SELECT pg_temp_flush_cost('family_id_idx');
\set VERBOSITY default
SELECT pg_temp_flush_cost('pg_class');
SELECT pg_temp_flush_cost('v');

DROP ROLE regress_temp_parallel;
DROP FUNCTION local_written;
DROP EXTENSION temp_parallel;
