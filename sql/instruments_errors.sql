--
-- The instruments: errors and privileges.
--
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';

\i sql/include/refused.sql

CREATE TABLE permanent (id int PRIMARY KEY);
CREATE VIEW a_view AS SELECT * FROM permanent;
CREATE UNLOGGED TABLE unlogged (id int);
CREATE TEMP TABLE mine (id int PRIMARY KEY, big text);
CREATE TEMP VIEW temp_view AS SELECT * FROM mine;
CREATE TEMP TABLE parted (id int) PARTITION BY LIST (id);
CREATE TEMP SEQUENCE temp_seq;
INSERT INTO mine SELECT i, 'mine' FROM generate_series(1, 100) i;

CREATE TEMP TABLE functions (no int, call text);
INSERT INTO functions VALUES
	(1, 'pg_read_temp_relation(%s, false)'),
	(2, 'pg_temp_buffers_dirty(%s)'),
	(3, 'pg_flush_local_buffers(%s::regclass)'),
	(4, 'pg_evict_local_buffers(%s)'),
	(5, 'temp_parallel_flush_cost(%s)');

-- all functions check their table in the same way and order
SELECT call, refused('SELECT ' || format(call, quote_literal('mine'))) FROM functions ORDER BY no;
SELECT call, refused('SELECT ' || format(call, quote_literal('permanent'))) FROM functions ORDER BY no;
SELECT call, refused('SELECT ' || format(call, 'NULL')) FROM functions ORDER BY no;
SELECT call, refused('SELECT ' || format(call, '4000000000::oid')) FROM functions ORDER BY no;
SELECT name, refused(format('SELECT pg_read_temp_relation(%L, false)', name))
FROM unnest(ARRAY['a_view', 'temp_view', 'permanent_pkey', 'mine_pkey', 'parted',
				  'temp_seq', 'unlogged', 'pg_catalog.pg_class', 'no_such_table']) name;
SELECT refused(format('SELECT pg_read_temp_relation(%L, false)', reltoastrelid::regclass))
	   LIKE '42809: %' AS toast
FROM pg_class WHERE oid = 'mine'::regclass;
SELECT refused('SELECT pg_read_temp_relation(''mine'', NULL)');
-- dropped in this transaction
BEGIN;
CREATE TEMP TABLE dropped (id int);
SELECT 'dropped'::regclass::oid AS oid \gset
DROP TABLE dropped;
SELECT regexp_replace(refused('SELECT pg_evict_local_buffers(' || :oid || '::oid)'), '[0-9]+ does', 'N does');
ROLLBACK;

-- the same as uncaught errors
\set VERBOSITY sqlstate
SELECT pg_temp_buffers_dirty('permanent');
SELECT pg_temp_buffers_dirty('a_view');
SELECT pg_temp_buffers_dirty(NULL);
SELECT pg_temp_buffers_dirty(4000000000::oid);
\set VERBOSITY default

--
-- Privileges: SELECT to read, ownership to change what is buffered. Superuser
-- is not required for one's own tables.
--
CREATE ROLE regress_tp_instruments;
GRANT SELECT ON functions TO regress_tp_instruments;
SET ROLE regress_tp_instruments;
SELECT call, refused('SELECT ' || format(call, quote_literal('mine'))) FROM functions ORDER BY no;
RESET ROLE;
GRANT SELECT ON mine TO regress_tp_instruments;
SET ROLE regress_tp_instruments;
SELECT call, refused('SELECT ' || format(call, quote_literal('mine'))) FROM functions ORDER BY no;
CREATE TEMP TABLE theirs (id int PRIMARY KEY, big text);
INSERT INTO theirs SELECT i, 'theirs' FROM generate_series(1, 100) i;
SELECT call, refused('SELECT ' || format(call, quote_literal('theirs'))) FROM functions ORDER BY no;
-- any role may call these
SELECT count(*) > 0 AS buffers FROM pg_local_buffers;
SELECT buffers_used > 0 AS used FROM temp_parallel_summary();
SELECT count(*) > 0 AS relations FROM temp_parallel_relations();
SELECT flushes >= 0 AS stats FROM temp_parallel_stats();
SELECT pg_flush_local_buffers() >= 0 AS flushed;
-- without a table, only the pages of the role's own tables are evicted
SELECT pg_read_temp_relation('mine') > 0 AS mine, pg_read_temp_relation('theirs') > 0 AS theirs;
SELECT buffers_evicted > 0 AS evicted, buffers_skipped > 0 AS skipped
FROM pg_evict_local_buffers();
SELECT count(*) FROM temp_parallel_relations() WHERE "table" = 'theirs'::regclass;
SELECT count(*) > 0 AS stayed FROM temp_parallel_relations() WHERE "table" = 'mine'::regclass;
RESET ROLE;

--
-- In parallel mode nothing may be written, and a worker does not have the
-- session's local buffers.  The planner keeps the functions out of workers by
-- their markings.
--
SELECT p.oid::regprocedure AS function, provolatile, proisstrict, proparallel
FROM pg_depend d JOIN pg_proc p ON d.objid = p.oid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND
	  d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'temp_parallel')
ORDER BY p.oid::regprocedure::text COLLATE "C";
-- if they are marked otherwise, they fail in a worker
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
				  'pg_flush_local_buffers()', 'pg_evict_local_buffers()']) call;
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

-- every function has a comment
SELECT p.oid::regprocedure FROM pg_depend d JOIN pg_proc p ON d.objid = p.oid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND
	  d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'temp_parallel') AND
	  obj_description(p.oid, 'pg_proc') IS NULL;

DROP FUNCTION refused;
DROP VIEW temp_view;
DROP VIEW a_view;
DROP TABLE permanent, unlogged, mine, theirs, parted, functions;
DROP ROLE regress_tp_instruments;
DROP EXTENSION temp_parallel;
