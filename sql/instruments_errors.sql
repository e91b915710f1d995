--
-- The instruments: errors that nothing catches, and in parallel mode. (t/pgtap/errors.sql has
-- each function with each kind of object, and privileges.)
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';

\i sql/include/refused.sql

CREATE TABLE permanent (id int);
CREATE VIEW a_view AS SELECT * FROM permanent;
CREATE TEMP TABLE mine (id int PRIMARY KEY, big text);
INSERT INTO mine SELECT i, 'mine' FROM generate_series(1, 100) i;

CREATE TEMP TABLE functions (no int, call text);
INSERT INTO functions VALUES
	(1, 'pg_read_temp_relation(%s, false)'),
	(2, 'pg_temp_buffers_dirty(%s)'),
	(3, 'pg_flush_local_buffers(%s::regclass)'),
	(4, 'pg_evict_local_buffers(%s)'),
	(5, 'temp_parallel_flush_cost(%s)');

\set VERBOSITY sqlstate
SELECT pg_temp_buffers_dirty('permanent');
SELECT pg_temp_buffers_dirty('a_view');
SELECT pg_temp_buffers_dirty(NULL);
SELECT pg_temp_buffers_dirty(4000000000::oid);
\set VERBOSITY default

--
-- In parallel mode nothing may be written, and a worker does not have the
-- session's local buffers.  The planner keeps the functions out of workers by
-- their markings; if they are marked otherwise, they fail in a worker.
--
BEGIN;
SELECT format('ALTER FUNCTION %s PARALLEL SAFE', p.oid::regprocedure)
FROM pg_depend d JOIN pg_proc p ON d.objid = p.oid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND
	  d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'temp_parallel')
ORDER BY p.oid::regprocedure::text COLLATE "C" \gexec
SELECT set_config(name, 'on', true) FROM pg_settings
WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
SELECT call, refused('SELECT ' || format(call, quote_literal('mine'))) FROM functions ORDER BY no;
SELECT call, refused('SELECT * FROM ' || call)
FROM unnest(ARRAY['pg_local_buffers', 'temp_parallel_summary()',
				  'temp_parallel_relations()', 'temp_parallel_stats()', 'temp_parallel_tables',
				  'pg_allocated_local_buffers()', 'pg_dirty_local_buffers()',
				  'pg_flush_local_buffers()', 'pg_evict_local_buffers()', 'temp_parallel_activity']) call;
ROLLBACK;

-- in the leader of a parallel query, of those in C only those that write fail
BEGIN;
\i sql/include/cheap_workers.sql
SELECT format('ALTER FUNCTION %s PARALLEL RESTRICTED', p.oid::regprocedure)
FROM pg_depend d JOIN pg_proc p ON d.objid = p.oid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND p.proparallel = 'u' AND
	  d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'temp_parallel')
ORDER BY p.oid::regprocedure::text COLLATE "C" \gexec
SELECT flushes FROM temp_parallel_stats() \gset
SELECT count(*), (temp_parallel_flush_cost('mine')).flush_cost >= 0 AS cost, pg_dirty_local_buffers() >= 0 AS dirty,
	   (SELECT count(*) > 0 FROM temp_parallel_pages()) AS pages
FROM mine;
SELECT flushes - :flushes AS flushes FROM temp_parallel_stats();
SELECT call, refused('SELECT count(*), ' || format(call, quote_literal('mine')) || ' FROM mine')
FROM functions WHERE call NOT LIKE 'temp_parallel_flush_cost%' ORDER BY no;
SELECT call, refused('SELECT count(*), ' || call || ' FROM mine')
FROM unnest(ARRAY['pg_flush_local_buffers()', 'pg_evict_local_buffers()']) call;
-- after these errors the table is readable and no buffer is pinned
SELECT count(*) FROM mine;
SELECT buffers_pinned FROM temp_parallel_summary();
ROLLBACK;

DROP FUNCTION refused;
DROP VIEW a_view;
DROP TABLE permanent, mine, functions;
DROP EXTENSION temp_parallel;
