--
-- The SQL functions about the session's own local buffers.
--
CREATE EXTENSION temp_parallel;
SET temp_buffers = '16MB';

-- A session that has not touched a temporary table has no pool: nothing to
-- count, to write or to pay for.
SELECT pg_allocated_local_buffers(), pg_dirty_local_buffers(),
       pg_temp_flush_cost(), pg_flush_local_buffers();

-- A row a page: what is counted can be told beforehand.
CREATE TEMP TABLE t (id int, filler char(5000));
ALTER TABLE t ALTER filler SET STORAGE PLAIN;
INSERT INTO t SELECT g, '' FROM generate_series(1, 500) g;
SELECT pg_relation_size('t') / current_setting('block_size')::int AS pages;

-- All pages of the table are dirty, and so are those of its free space map, if
-- it has one by now; the pool holds them all.
SELECT pg_dirty_local_buffers() >= 500 AS dirty,
       pg_allocated_local_buffers() >= pg_dirty_local_buffers() AS allocated;

-- The formula, with the settings in force.
SELECT pg_temp_flush_cost() = 1.30 * pg_dirty_local_buffers() +
                              0.01 * pg_allocated_local_buffers() AS formula;
SET temp_parallel.write_temp_page_cost = 2;
SET temp_parallel.buffer_scan_cost = 3;
SELECT pg_temp_flush_cost() = 2 * pg_dirty_local_buffers() +
                              3 * pg_allocated_local_buffers() AS formula;
SET temp_parallel.buffer_scan_cost = 0;

-- A table's cost is that of its own pages and nobody else's.
CREATE TEMP TABLE other AS SELECT 1 AS x;
SELECT pg_temp_flush_cost('t') + pg_temp_flush_cost('other') =
       pg_temp_flush_cost() AS adds_up,
       pg_temp_flush_cost('other') / 2 AS pages_of_other;

-- Indexes, TOAST table and its index count with the table they belong to.
CREATE TEMP TABLE family (id int, big text);
ALTER TABLE family ALTER big SET STORAGE EXTERNAL;
SELECT pg_temp_flush_cost('family') / 2 AS toast_index_metapage;
INSERT INTO family VALUES (1, repeat('x', 100000));
SELECT pg_temp_flush_cost('family') / 2 > 12 AS toast_counted;
-- (An index is built past the pool, so that its pages are clean until the next
-- insert: one of the table, one of the index.)
CREATE INDEX ON family (id);
SELECT pg_flush_local_buffers() > 0 AS clean;
INSERT INTO family VALUES (2, 'small');
SELECT pg_temp_flush_cost('family') / 2 AS table_and_index;
UPDATE t SET id = id;

-- Flushing returns the number of pages written, makes them clean, and keeps
-- what they hold.
SELECT pg_dirty_local_buffers() AS dirty \gset
SELECT pg_flush_local_buffers() = :dirty AS wrote_all;
SELECT pg_dirty_local_buffers(), pg_flush_local_buffers(), pg_temp_flush_cost();
SELECT count(*), sum(id) FROM t;
SELECT length(big) FROM family;
UPDATE t SET id = -id WHERE id = 1;
SELECT pg_dirty_local_buffers() > 0 AS dirty_again;

-- EXPLAIN (BUFFERS) counts what the flush writes.
CREATE FUNCTION local_written(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Local Written Blocks';
END $$;
SELECT pg_dirty_local_buffers() AS dirty \gset
SELECT local_written('SELECT pg_flush_local_buffers()') = :dirty AS counted;

-- Anybody may ask about a session of their own.
CREATE ROLE regress_temp_parallel;
SET ROLE regress_temp_parallel;
SELECT pg_dirty_local_buffers(), pg_flush_local_buffers(),
       pg_allocated_local_buffers() > 0 AS allocated;
RESET ROLE;

-- What is no temporary table of this session is an error.
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
