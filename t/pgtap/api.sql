--
-- The extension's objects: every function and view, with types, volatility, parallel safety,
-- and what a role without privileges may do. A function that were not VOLATILE, or allowed in
-- workers, would be called where the session's local buffers are not; SECURITY DEFINER on
-- another one would give away a superuser's privileges.
--
\ir include/start.psql
SELECT extnamespace::regnamespace AS schema FROM pg_extension WHERE extname = 'temp_parallel' \gset
CREATE ROLE regress_tp_pgtap;

CREATE TEMP TABLE api (name name, args name[], out_args text, returns text, lang name, strict bool, definer bool);
INSERT INTO api VALUES
	('pg_flush_local_buffers', '{}', NULL, 'bigint', 'c', true, false),
	('pg_flush_local_buffers', '{regclass}', NULL, 'bigint', 'c', false, false),
	('pg_allocated_local_buffers', '{}', NULL, 'integer', 'c', true, false),
	('pg_dirty_local_buffers', '{}', NULL, 'integer', 'sql', true, false),
	('pg_evict_local_buffers', '{regclass}',
	 'buffers_evicted integer, buffers_flushed integer, buffers_skipped integer', 'record', 'c', false, false),
	('pg_read_temp_relation', '{regclass,boolean}', NULL, 'bigint', 'c', false, false),
	('pg_temp_buffers_dirty', '{regclass}', NULL, 'bigint', 'c', false, false),
	('temp_parallel_pages', '{}',
	 'bufferid integer, relfilenode oid, reltablespace oid, reldatabase oid, relforknumber smallint, '
	 'relblocknumber bigint, isdirty boolean, usagecount smallint, pins integer, "table" regclass, relation regclass',
	 'setof record', 'c', true, false),
	('temp_parallel_summary', '{}',
	 'buffers_used integer, buffers_unused integer, buffers_dirty integer, buffers_pinned integer, '
	 'usagecount_avg double precision, buffers_allocated integer', 'record', 'sql', true, false),
	('temp_parallel_relations', '{}',
	 '"table" regclass, relation regclass, kind text, fork text, allocated integer, dirty integer, pinned integer',
	 'setof record', 'sql', true, true),
	('temp_parallel_flush_cost', '{regclass}',
	 'dirty_pages integer, flush_cost double precision, account double precision', 'record', 'c', false, false),
	('temp_parallel_tables', '{}',
	 'relation regclass, pages bigint, dirty_pages integer, flush_cost double precision, account double precision',
	 'setof record', 'sql', true, true),
	('temp_parallel_stats', '{}',
	 'flushes bigint, pages_flushed bigint, flush_time double precision, workers_launched bigint, '
	 'hints_dropped bigint, plans_left_to_leader bigint, serial_by_flush bigint, processors integer, '
	 'pages_shared bigint, not_shared text', 'record', 'c', true, false),
	('temp_parallel_stats_reset', '{}', NULL, 'void', 'c', true, false),
	('temp_parallel_session_counts', '{}',
	 'datid oid, pid integer, workers_launched bigint, pages_flushed bigint, pages_shared bigint, '
	 'serial_statements bigint, usual_reason text', 'setof record', 'c', true, false),
	('temp_parallel_calibrate', '{integer,integer,name,"double precision"}',
	 'measured_pages integer, measured_iterations integer, write_page_us double precision, '
	 'read_page_us double precision, scan_buffer_us double precision, process_page_us double precision, '
	 'gain_page_us double precision, gain_low double precision, gain_high double precision, '
	 'write_read_ratio double precision, ratio_low double precision, ratio_high double precision, '
	 'write_cv double precision, gain_cv double precision, planner_unit_us double precision, '
	 'launch_us double precision, launch_low double precision, launch_high double precision, '
	 'write_temp_page_cost double precision, buffer_scan_cost double precision, parallel_setup_cost double precision, '
	 'set_commands text[], alter_system_commands text[]', 'record', 'plpgsql', false, false);

-- These and no others; a type only of each view's rows.
CREATE TEMP VIEW members AS
SELECT classid, objid FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND
	  refobjid = (SELECT oid FROM pg_extension WHERE extname = 'temp_parallel');
SELECT set_eq(
	$$ SELECT proname, oidvectortypes(proargtypes) FROM members JOIN pg_proc ON objid = pg_proc.oid AND classid = 'pg_proc'::regclass $$,
	$$ SELECT name, array_to_string(args, ', ') FROM api $$, 'functions');
SELECT set_eq(
	$$ SELECT relname FROM members JOIN pg_class ON objid = pg_class.oid AND classid = 'pg_class'::regclass $$,
	ARRAY['pg_local_buffers', 'temp_parallel_activity', 'temp_parallel_tables']::name[], 'relations');
SELECT is_empty(
	$$ SELECT pg_describe_object(classid, objid, 0) FROM members
		WHERE classid NOT IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass, 'pg_rewrite'::regclass) $$,
	'nothing else');

SELECT has_function(:'schema', name, args) FROM api;
SELECT function_returns(:'schema', name, args, returns) FROM api;
SELECT function_lang_is(:'schema', name, args, lang) FROM api;
SELECT volatility_is(:'schema', name, args, 'volatile') FROM api;
SELECT CASE WHEN strict THEN is_strict(:'schema', name, args) ELSE isnt_strict(:'schema', name, args) END FROM api;
SELECT CASE WHEN definer THEN is_definer(:'schema', name, args) ELSE isnt_definer(:'schema', name, args) END FROM api;
-- other sessions' counters are for monitoring
SELECT function_privs_are(:'schema', name, args, 'regress_tp_pgtap',
	CASE WHEN name = 'temp_parallel_session_counts' THEN '{}'::text[] ELSE ARRAY['EXECUTE'] END) FROM api;
SELECT is(proparallel, 'u', p.oid::regprocedure || ' is PARALLEL UNSAFE')
FROM members JOIN pg_proc p ON objid = p.oid AND classid = 'pg_proc'::regclass ORDER BY objid;
SELECT isnt(obj_description(objid, classid::regclass::name), NULL, pg_describe_object(classid, objid, 0) || ' has a comment')
FROM members WHERE classid IN ('pg_proc'::regclass, 'pg_class'::regclass) ORDER BY objid;
SELECT is(s.out_args, a.out_args, p.oid::regprocedure || ': columns')
FROM api a JOIN pg_proc p ON proname = name AND oidvectortypes(proargtypes) = array_to_string(args, ', ') AND pronamespace = :'schema'::regnamespace,
	LATERAL (SELECT string_agg(substr(arg, 5), ', ' ORDER BY n) AS out_args
			   FROM string_to_table(pg_get_function_arguments(p.oid), ', ') WITH ORDINALITY s (arg, n)
			  WHERE arg LIKE 'OUT %') s;
-- What runs with another role's privileges, or by name, does not depend on the caller's
-- search_path.
SELECT set_has(
	$$ SELECT name FROM api JOIN pg_proc ON proname = name WHERE 'search_path=pg_catalog, pg_temp' = ANY (proconfig) $$,
	$$ SELECT name FROM api WHERE definer OR name IN ('temp_parallel_summary', 'temp_parallel_calibrate') $$,
	'functions with a search_path of their own');
-- arguments that may be left out
SELECT is(pg_get_function_arguments(p::regprocedure), arguments, p || ': defaults')
FROM (VALUES ('pg_read_temp_relation(regclass,boolean)', 'relation regclass, randomize boolean DEFAULT false'),
			 ('pg_temp_buffers_dirty(regclass)', 'relation regclass')) v (p, arguments);
SELECT lives_ok('SELECT pg_evict_local_buffers()', 'pg_evict_local_buffers() without a table');

SELECT has_view(:'schema', v, v || ' is a view') FROM unnest(ARRAY['pg_local_buffers', 'temp_parallel_activity', 'temp_parallel_tables']::name[]) v;
SELECT columns_are(:'schema', 'pg_local_buffers', ARRAY['bufferid', 'relfilenode', 'reltablespace', 'reldatabase',
	'relforknumber', 'relblocknumber', 'isdirty', 'usagecount', 'pins']::name[]);
SELECT columns_are(:'schema', 'temp_parallel_activity', ARRAY['datid', 'datname', 'pid', 'workers_launched', 'pages_flushed',
	'pages_shared', 'serial_statements', 'usual_reason']::name[]);
SELECT columns_are(:'schema', 'temp_parallel_tables', ARRAY['relation', 'pages', 'dirty_pages', 'flush_cost', 'account']::name[]);
SELECT col_type_is(:'schema', v, c, t, format('%s.%s is %s', v, c, t))
FROM (VALUES
	('pg_local_buffers'::name, 'bufferid'::name, 'integer'), ('pg_local_buffers', 'relfilenode', 'oid'),
	('pg_local_buffers', 'reltablespace', 'oid'), ('pg_local_buffers', 'reldatabase', 'oid'),
	('pg_local_buffers', 'relforknumber', 'smallint'), ('pg_local_buffers', 'relblocknumber', 'bigint'),
	('pg_local_buffers', 'isdirty', 'boolean'), ('pg_local_buffers', 'usagecount', 'smallint'),
	('pg_local_buffers', 'pins', 'integer'),
	('temp_parallel_tables', 'relation', 'regclass'), ('temp_parallel_tables', 'pages', 'bigint'),
	('temp_parallel_tables', 'dirty_pages', 'integer'), ('temp_parallel_tables', 'flush_cost', 'double precision'),
	('temp_parallel_tables', 'account', 'double precision')) c (v, c, t);
SELECT table_privs_are(:'schema', v, 'regress_tp_pgtap', ARRAY['SELECT'])
FROM unnest(ARRAY['pg_local_buffers', 'temp_parallel_tables']::name[]) v;
SELECT table_privs_are(:'schema', 'temp_parallel_activity', r, privileges)
FROM (VALUES ('regress_tp_pgtap'::name, '{}'::text[]), ('pg_monitor', ARRAY['SELECT'])) v (r, privileges);

-- It cannot be moved to another schema, as its functions name theirs.
SELECT throws_ok('ALTER EXTENSION temp_parallel SET SCHEMA regress_tp_pgtap', '0A000',
				 'extension "temp_parallel" does not support SET SCHEMA', 'SET SCHEMA');

SELECT * FROM finish();
ROLLBACK;
