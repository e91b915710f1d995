--
-- Counts: of local buffers, what a flush costs, and what temp_parallel_stats() counts. With
-- wrong ones the planner weighs a flush that is not the one it will make.
--
-- pgTAP itself has temporary tables and sequences, which are changed by each of its functions;
-- so a statement takes the figures, and later ones compare them.
--
\ir include/start.psql
SELECT set_config('temp_parallel.write_temp_page_cost', '1.3', true), set_config('temp_parallel.buffer_scan_cost', '0.01', true) \g /dev/null

-- ----------
-- Buffers, and the cost of a flush
-- ----------

-- A row a page, so that the counts are known. All pages of the table are dirty and in the
-- pool, and so are those of its free space map, if it already has one.
CREATE TEMP TABLE t (id int, filler char(5000));
ALTER TABLE t ALTER filler SET STORAGE PLAIN;
INSERT INTO t SELECT g, '' FROM generate_series(1, 500) g;
SELECT pg_dirty_local_buffers() AS dirty, pg_allocated_local_buffers() AS allocated, f.*,
	   pg_relation_size('t') / current_setting('block_size')::int AS pages,
	   sum(r.dirty) FILTER (WHERE relation = 't'::regclass) AS dirty_of_t,
	   sum(r.dirty) FILTER (WHERE relation = 't'::regclass AND fork = 'main') AS dirty_main
FROM temp_parallel_flush_cost('t') f, temp_parallel_relations() r GROUP BY f.* , f.dirty_pages, f.flush_cost, f.account \gset
SELECT is(:pages, 500, 'pages of the table');
SELECT is(:dirty_main, 500, 'all are dirty');
SELECT cmp_ok(:dirty, '>=', :dirty_of_t, 'the session''s dirty pages include them');
SELECT cmp_ok(:allocated, '>=', :dirty, 'dirty ones are allocated');
SELECT is(:dirty_pages, :dirty_of_t, 'dirty pages of a flush');
SELECT is(round(:flush_cost, 2), 1.3 * :dirty_pages + 0.01 * :allocated, 'cost of a flush');
SELECT is(:account, 0, 'nothing has been saved yet');
SET LOCAL temp_parallel.write_temp_page_cost = 2;
SET LOCAL temp_parallel.buffer_scan_cost = 3;
SELECT f.*, pg_allocated_local_buffers() AS allocated FROM temp_parallel_flush_cost('t') f \gset
SELECT is(:flush_cost, 2 * :dirty_pages + 3 * :allocated, 'cost of a flush with other settings');
SET LOCAL temp_parallel.buffer_scan_cost = 0;

-- The cost for a table is that of its own pages only.
CREATE TEMP TABLE other AS SELECT 1 AS x;
SELECT sum(dirty_pages) AS by_table, sum(flush_cost) AS cost, sum(dirty_pages) FILTER (WHERE relation = 'other'::regclass) AS of_other,
	   (SELECT sum(dirty) FROM temp_parallel_relations() WHERE kind <> 'sequence') AS dirty
FROM temp_parallel_tables \gset
SELECT is(:by_table, :dirty, 'the tables'' dirty pages add up');
SELECT is(:cost, 2 * :dirty, 'the tables'' costs add up');
SELECT is(:of_other, 1, 'dirty pages of a small table');

-- A table's pages include those of its indexes, TOAST table and TOAST index.
CREATE TEMP TABLE family (id int, big text);
ALTER TABLE family ALTER big SET STORAGE EXTERNAL;
SELECT is(dirty_pages, 0, 'the metapage of a TOAST index is written at once') FROM temp_parallel_flush_cost('family');
INSERT INTO family VALUES (1, repeat('x', 100000));
SELECT cmp_ok(dirty_pages, '>', 12, 'pages of the TOAST table are counted') FROM temp_parallel_flush_cost('family');
-- (CREATE INDEX does not go through the pool, so no page of the new index is dirty until the
-- next insertion, which dirties a page of the table and one of the index.)
CREATE INDEX ON family (id);
SELECT cmp_ok(pg_flush_local_buffers(), '>', 0::bigint, 'a flush of all tables');
INSERT INTO family VALUES (2, 'small');
SELECT is(dirty_pages, 2, 'a page of the table and one of its index') FROM temp_parallel_flush_cost('family');

-- A flush returns the number of pages written; they are clean and keep their contents.
UPDATE t SET id = id;
SELECT pg_dirty_local_buffers() AS dirty, pg_flush_local_buffers() AS wrote, pg_dirty_local_buffers() AS still,
	   pg_flush_local_buffers() AS again, sum(dirty_pages) AS of_tables, sum(flush_cost) AS cost
FROM temp_parallel_tables \gset
SELECT is(:wrote, :dirty, 'a flush writes all dirty pages');
SELECT is(ARRAY[:still, :again], '{0,0}', 'no page is dirty after a flush');
SELECT pg_flush_local_buffers() \g /dev/null
SELECT sum(dirty_pages) AS of_tables, sum(flush_cost) AS cost FROM temp_parallel_tables \gset
SELECT is(ARRAY[:of_tables, :cost], '{0,0}', 'a flush of clean tables costs nothing');
SELECT results_eq('SELECT count(*), sum(id) FROM t', 'VALUES (500::bigint, 125250::bigint)', 'rows after a flush');
SELECT results_eq('SELECT length(big) FROM family ORDER BY id', ARRAY[100000, 5], 'TOAST values after a flush');
SELECT pg_flush_local_buffers() \g /dev/null
UPDATE t SET id = -id WHERE id = 1;
SELECT cmp_ok(dirty_pages, '>', 0, 'a changed page is dirty again') FROM temp_parallel_flush_cost('t');

-- ----------
-- The session's counters
-- ----------
CREATE TEMP TABLE big (id int, pad text);
INSERT INTO big SELECT i, repeat('x', 107) FROM generate_series(1, 5800) i;
\ir ../../sql/include/cheap_workers.sql
\set ECHO none
-- what the counters have grown by since the last call
CREATE FUNCTION counted(OUT flushes bigint, OUT pages bigint, OUT timed boolean, OUT workers bigint, OUT hints bigint, OUT left_to_leader bigint)
LANGUAGE plpgsql AS $$
BEGIN
	SELECT s.flushes, s.pages_flushed, s.flush_time > 0, s.workers_launched, s.hints_dropped, s.plans_left_to_leader
	  INTO flushes, pages, timed, workers, hints, left_to_leader FROM temp_parallel_stats() s;
	PERFORM temp_parallel_stats_reset();
END $$;

-- a hundred pages, whatever data is aligned to, all dirty, two workers
SELECT pg_evict_local_buffers('big'), pg_read_temp_relation('big') AS read, pg_temp_buffers_dirty('big') AS dirty, counted() \gset
SELECT count(*) FROM big \g /dev/null
SELECT * FROM counted() \gset
SELECT is(ARRAY[:read, :dirty], '{100,100}', 'pages of the table');
SELECT is(ARRAY[:flushes, :pages, :workers], '{1,100,2}', 'one flush of all pages, two workers');
SELECT ok(:'timed', 'the time of a flush is counted');
-- each launch is counted
SET LOCAL enable_material = off;
SELECT counted() \gset
SELECT * FROM (SELECT count(*) FROM big) s RIGHT JOIN (VALUES (1), (2), (3)) v(x) ON true \g /dev/null
SELECT * FROM counted() \gset
SELECT is(ARRAY[:flushes, :pages, :workers], '{3,0,6}', 'three launches');
-- also those of statements that fail, and immediately: an error in a worker; an error in the
-- leader, after three launches
CREATE FUNCTION fails(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;
SELECT counted() \gset
SELECT fails('SELECT count(1 / (id - 5000)) FROM big') \gset
SELECT * FROM counted() \gset
SELECT is(:'fails'::text, '22012', 'an error in a worker');
SELECT is(ARRAY[:flushes, :workers], '{1,2}', 'its launch');
SELECT counted() \gset
SELECT fails('SELECT *, 1 / x FROM (SELECT count(*) FROM big) s RIGHT JOIN (VALUES (1), (2), (0)) v(x) ON true') \gset
SELECT * FROM counted() \gset
SELECT is(:'fails'::text, '22012', 'an error in the leader');
SELECT is(ARRAY[:flushes, :workers], '{3,6}', 'its launches');
SET LOCAL enable_material = on;

-- hint bits that the leader has not kept: it runs a parallel plan alone, over rows that nobody
-- has read before (those of this transaction would get none, those of a subtransaction that was
-- rolled back do), on pages that were written before the flush
ANALYZE big;
SAVEPOINT s;
INSERT INTO big SELECT i, repeat('x', 107) FROM generate_series(1, 5800) i;
ROLLBACK TO s;
SELECT buffers_skipped FROM pg_evict_local_buffers('big') \gset
SET LOCAL max_parallel_workers = 0;
SELECT counted() \gset
SELECT count(*) FROM big \gset
SELECT * FROM counted() \gset
SET LOCAL max_parallel_workers = 8;
SELECT is(:buffers_skipped, 0, 'no page is pinned');
SELECT is(:count, 5800, 'rows of the transaction that was not rolled back');
SELECT is(ARRAY[:flushes, :workers], '{1,0}', 'a flush, no workers');
SELECT cmp_ok(:hints, '>', 0, 'hints are dropped');

-- plans that the second look leaves to the leader
SET LOCAL plan_cache_mode = force_generic_plan;
PREPARE counts AS SELECT count(*) FROM big;
EXECUTE counts \g /dev/null
SELECT pg_temp_buffers_dirty('big') AS dirty \gset
SET LOCAL temp_parallel.write_temp_page_cost = 1000;
SET LOCAL temp_parallel.share_local_buffers = off;
SELECT counted() \gset
EXECUTE counts \gset
SELECT * FROM counted() \gset
SELECT cmp_ok(:dirty, '>=', 100, 'all pages are dirty');
SELECT is(:count, 5800, 'rows');
SELECT is(ARRAY[:flushes, :left_to_leader], '{0,1}', 'a plan is left to the leader');
DEALLOCATE counts;

-- All counters start again at zero, also in a transaction that is rolled back; what is not a
-- counter stays.
SET LOCAL temp_parallel.write_temp_page_cost = 0;
SELECT count(*) FROM big \g /dev/null
SELECT flushes AS before FROM temp_parallel_stats() \gset
SAVEPOINT s;
SELECT temp_parallel_stats_reset() \gset
ROLLBACK TO s;
SELECT ROW(flushes, pages_flushed, flush_time, workers_launched, hints_dropped, plans_left_to_leader,
	   serial_by_flush, pages_shared) AS counters, processors FROM temp_parallel_stats() \gset
SELECT count(*) FROM big \g /dev/null
SELECT flushes, workers_launched AS workers FROM temp_parallel_stats() \gset
SELECT cmp_ok(:before, '>', 0, 'there was something to reset');
SELECT is(:'counters'::text, '(0,0,0,0,0,0,0,0)', 'counters after a reset that is rolled back');
SELECT cmp_ok(:processors, '>', 0, 'processors');
SELECT is(ARRAY[:flushes, :workers], '{1,2}', 'counters after one launch');

SELECT * FROM finish();
ROLLBACK;
