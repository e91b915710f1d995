--
-- Access control: privileges on temporary tables of another role, row-level
-- security, views, column privileges and SECURITY DEFINER functions must
-- protect the same rows when workers read the tables, and the functions must
-- not circumvent them.
--
-- (Tables of several roles are in one session because of SET ROLE, membership,
-- or a SECURITY DEFINER function. specs/security_other_session.spec has those
-- of other sessions.)
--
\pset format unaligned \pset footer off
\set SHOW_CONTEXT never
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';
CREATE ROLE regress_tp_alice;
CREATE ROLE regress_tp_bob;
CREATE ROLE regress_tp_monitor IN ROLE pg_monitor;
CREATE SCHEMA tp_security;
GRANT USAGE, CREATE ON SCHEMA tp_security TO PUBLIC;

-- SQLSTATE and message
CREATE FUNCTION tp_security.refused(statement text) RETURNS text LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE statement;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ': ' || SQLERRM;
END
$$;

-- Runs a query with the extension off, on, and on with workers at no cost, with
-- and without the leader's participation. Returns the result or the error, if
-- it is the same each time, and whether workers read a temporary table.
CREATE FUNCTION tp_security.everywhere(query text)
RETURNS TABLE (in_workers boolean, answer text) LANGUAGE plpgsql AS
$$
DECLARE
	mode text;
	line text;
	setting text;
	answers text[];
BEGIN
	in_workers := false;
	PERFORM set_config('max_parallel_workers_per_gather', '2', true);
	FOREACH mode IN ARRAY ARRAY['off', 'on', 'leader', 'workers'] LOOP
		PERFORM set_config('temp_parallel.enabled', CASE mode WHEN 'off' THEN 'off' ELSE 'on' END, true);
		PERFORM set_config('parallel_leader_participation', CASE mode WHEN 'workers' THEN 'off' ELSE 'on' END, true);
		IF mode IN ('leader', 'workers') THEN
			FOREACH setting IN ARRAY ARRAY['min_parallel_table_scan_size', 'min_parallel_index_scan_size',
										   'parallel_setup_cost', 'parallel_tuple_cost',
										   'temp_parallel.write_temp_page_cost',
										   'temp_parallel.buffer_scan_cost'] LOOP
				PERFORM set_config(setting, '0', true);
			END LOOP;
			PERFORM set_config('cpu_tuple_cost', '0.5', true);
		END IF;
		BEGIN
			IF mode = 'workers' THEN
				FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
					in_workers := in_workers OR line LIKE '%TempFlush%';
				END LOOP;
			END IF;
			EXECUTE 'CREATE TEMP TABLE security_answer AS ' || query;
			SELECT string_agg(a::text, ' ' ORDER BY a::text) INTO answer FROM security_answer a;
			DROP TABLE security_answer;
		EXCEPTION WHEN OTHERS THEN
			answer := SQLSTATE || ': ' || SQLERRM;
		END;
		answers := answers || coalesce(answer, 'no rows');
	END LOOP;
	answer := answers[1];
	IF answers <> array_fill(answer, ARRAY[4]) THEN
		answer := 'DIFFERENT: ' || answers::text;
	END IF;
	FOREACH setting IN ARRAY ARRAY['min_parallel_table_scan_size', 'min_parallel_index_scan_size',
								   'parallel_setup_cost', 'parallel_tuple_cost', 'cpu_tuple_cost',
								   'temp_parallel.write_temp_page_cost',
								   'temp_parallel.buffer_scan_cost', 'temp_parallel.enabled',
								   'parallel_leader_participation', 'max_parallel_workers_per_gather'] LOOP
		EXECUTE 'RESET ' || setting;
	END LOOP;
	RETURN NEXT;
END
$$;
\set as_alice 'SET ROLE regress_tp_alice;'
\set as_bob 'SET ROLE regress_tp_bob;'

-- A table of alice with 3000 rows, a third of which belong to bob.
:as_alice
CREATE TEMP TABLE notes (id int PRIMARY KEY, owner name, grp int, note text);
INSERT INTO notes SELECT g, CASE g % 3 WHEN 0 THEN 'regress_tp_bob' ELSE 'regress_tp_alice' END, g % 10,
						 CASE g % 3 WHEN 0 THEN 'public ' ELSE 'secret ' END || g
FROM generate_series(1, 3000) g;
CREATE INDEX notes_grp ON notes (grp);
ANALYZE notes;
CREATE TEMP TABLE groups (grp int, member name);
INSERT INTO groups SELECT g, 'regress_tp_bob' FROM generate_series(0, 4) g;
ANALYZE groups;
-- Raises an error if it is called for a secret row; cheaper than any other
-- condition.
CREATE FUNCTION tp_security.leaky(note text) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE COST 0.0000001 AS
$$ BEGIN IF note LIKE 'secret%' THEN RAISE EXCEPTION 'leaked'; END IF; RETURN true; END $$;
RESET ROLE;
CREATE FUNCTION tp_security.leakproof(note text) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE LEAKPROOF COST 0.0000001 AS
$$ BEGIN IF note LIKE 'secret%' THEN RAISE EXCEPTION 'seen'; END IF; RETURN true; END $$;

--
-- Privileges on the table and on columns
--
SELECT * FROM tp_security.everywhere('SELECT count(*), min(owner), max(note) FROM notes');
:as_bob
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes');
:as_alice
GRANT SELECT (id, grp) ON notes TO regress_tp_bob;
:as_bob
SELECT * FROM tp_security.everywhere('SELECT count(*), sum(id) FROM notes WHERE grp < 5');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes WHERE note IS NULL AND false');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes WHERE tp_security.leaky(note)');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes n WHERE n IS NOT NULL');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes a JOIN notes b USING (owner)');
:as_alice
REVOKE SELECT (id, grp) ON notes FROM regress_tp_bob;

--
-- Views: with security_barrier, the view's condition is evaluated first
--
CREATE TEMP VIEW careless AS SELECT id, note FROM notes WHERE owner = 'regress_tp_bob';
CREATE TEMP VIEW careful WITH (security_barrier) AS SELECT id, note FROM notes WHERE owner = 'regress_tp_bob';
CREATE TEMP VIEW invoker WITH (security_invoker) AS SELECT id, note FROM notes;
GRANT SELECT ON careless, careful, invoker TO regress_tp_bob;
:as_bob
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM careful');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM careful WHERE tp_security.leaky(note)');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM careless WHERE tp_security.leaky(note)');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM careful WHERE tp_security.leakproof(note)');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM careful a JOIN careful b USING (id) WHERE tp_security.leaky(a.note)');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM invoker');
-- and a flush needs the privilege
SELECT tp_security.refused('SELECT pg_flush_local_buffers(''notes''::regclass)');
SELECT tp_security.refused('SELECT pg_flush_local_buffers(''careful''::regclass)');

--
-- Row-level security
--
:as_alice
GRANT SELECT ON notes TO regress_tp_bob;
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
SELECT * FROM tp_security.everywhere('SELECT owner, count(*) FROM notes GROUP BY owner');
:as_bob
-- without a policy, no rows
SELECT * FROM tp_security.everywhere('SELECT owner, count(*) FROM notes GROUP BY owner');
:as_alice
CREATE POLICY own ON notes USING (owner = current_user);
:as_bob
SELECT * FROM tp_security.everywhere('SELECT owner, count(*) FROM notes GROUP BY owner');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes WHERE tp_security.leaky(note)');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes WHERE tp_security.leakproof(note)');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes a JOIN notes b ON a.id = b.id + 3 WHERE tp_security.leaky(b.note)');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes WHERE id = ANY (ARRAY[1, 2, 3, 6, 7]) AND tp_security.leaky(note)');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes WHERE grp IN (SELECT max(grp) FROM notes WHERE tp_security.leaky(note) GROUP BY grp)');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes TABLESAMPLE BERNOULLI (100) WHERE tp_security.leaky(note)');
-- the order of the conditions is the same in workers
BEGIN;
\i sql/include/cheap_workers.sql
RESET cpu_tuple_cost;
EXPLAIN (COSTS OFF) SELECT count(*) FROM notes WHERE tp_security.leaky(note) AND tp_security.leakproof(note);
SET LOCAL temp_parallel.enabled = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM notes WHERE tp_security.leaky(note) AND tp_security.leakproof(note);
ROLLBACK;
-- row_security = off is an error, not a bypass
BEGIN;
SET LOCAL row_security = off;
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes');
ROLLBACK;
-- bypassed by the owner, unless it is forced, and by a superuser
:as_alice
SELECT * FROM tp_security.everywhere('SELECT owner, count(*) FROM notes GROUP BY owner');
ALTER TABLE notes FORCE ROW LEVEL SECURITY;
SELECT * FROM tp_security.everywhere('SELECT owner, count(*) FROM notes GROUP BY owner');
RESET ROLE;
SELECT * FROM tp_security.everywhere('SELECT owner, count(*) FROM notes GROUP BY owner');
-- a policy that reads another temporary table, with and without the privilege
:as_alice
CREATE POLICY by_group ON notes AS RESTRICTIVE
USING (grp IN (SELECT g.grp FROM groups g WHERE member = current_user));
:as_bob
SELECT * FROM tp_security.everywhere('SELECT grp, count(*) FROM notes GROUP BY grp');
:as_alice
GRANT SELECT ON groups TO regress_tp_bob;
:as_bob
SELECT * FROM tp_security.everywhere('SELECT grp, count(*) FROM notes GROUP BY grp');
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes WHERE tp_security.leaky(note)');
:as_alice
DROP POLICY by_group ON notes;

--
-- SECURITY DEFINER: workers, too, use the privileges of the function's owner,
-- and the caller has its own again afterwards
--
CREATE FUNCTION tp_security.alices() RETURNS TABLE (who name, n bigint) LANGUAGE plpgsql SECURITY DEFINER AS
$$ BEGIN RETURN QUERY EXECUTE 'SELECT current_user, count(*) FROM notes WHERE current_user = ''regress_tp_alice'''; END $$;
CREATE FUNCTION tp_security.definer() RETURNS name LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER AS
$$ SELECT current_user $$;
:as_bob
SELECT * FROM tp_security.everywhere('SELECT *, current_user FROM tp_security.alices()');
SELECT * FROM tp_security.everywhere('SELECT owner, count(*) FROM notes WHERE tp_security.definer() < current_user GROUP BY owner');
-- did workers run its query? (EXPLAIN of the caller does not show that)
RESET ROLE;
BEGIN;
\i sql/include/cheap_workers.sql
SELECT workers_launched FROM temp_parallel_stats() \gset
:as_bob
SELECT * FROM tp_security.alices();
SELECT workers_launched > :workers_launched AS in_workers FROM temp_parallel_stats();
-- a cached plan is made again for another role
SET LOCAL plan_cache_mode = force_generic_plan;
PREPARE owners AS SELECT min(owner), max(owner), count(*) FROM notes;
EXECUTE owners;
EXPLAIN (COSTS OFF) EXECUTE owners;
:as_alice
EXECUTE owners;
RESET ROLE;
EXECUTE owners;
DEALLOCATE owners;
-- a plan that the leader runs alone because the cost of its flush has risen
:as_bob
PREPARE owners AS SELECT min(owner), max(owner), count(*) FROM notes WHERE tp_security.leaky(note);
EXECUTE owners;
:as_alice
UPDATE notes SET id = id;
SET LOCAL temp_parallel.write_temp_page_cost = 1e6;
SET LOCAL temp_parallel.share_local_buffers = off;
SELECT plans_left_to_leader FROM temp_parallel_stats() \gset
:as_bob
EXECUTE owners;
SELECT plans_left_to_leader > :plans_left_to_leader AS left_to_leader FROM temp_parallel_stats();
DEALLOCATE owners;
ROLLBACK;

--
-- Settings: the caller's settings must not change the result of another role's
-- function.
--
:as_bob
SELECT name, value, tp_security.everywhere('SELECT * FROM tp_security.alices()')
FROM (VALUES ('temp_parallel.processors', '1'),
			 ('work_mem', '64kB'),
			 ('seq_page_cost', '1e-300'),
			 ('plan_cache_mode', 'force_generic_plan')) s (name, value),
	 LATERAL set_config(name, value, false);
RESET temp_parallel.processors;
RESET work_mem;
RESET plan_cache_mode;
BEGIN;
\i sql/include/cheap_workers.sql
SET LOCAL temp_parallel.write_temp_page_cost = 1.7e308;
SET LOCAL temp_parallel.buffer_scan_cost = 1.7e308;
SELECT * FROM tp_security.alices();
SET LOCAL seq_page_cost = 0;
SELECT * FROM tp_security.alices();
SELECT set_config(name, 'on', true) FROM pg_settings
WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
SELECT * FROM tp_security.alices();
ROLLBACK;
RESET seq_page_cost;

--
-- What the functions show. (t/pgtap/errors.sql has the privileges that they need.)
--
:as_bob
CREATE TEMP TABLE bobs AS SELECT g AS id FROM generate_series(1, 1000) g;

-- A privilege on a parent is not a privilege on its partitions, and vice versa.
:as_alice
CREATE TEMP TABLE parent (id int) PARTITION BY RANGE (id);
CREATE TEMP TABLE child1 PARTITION OF parent FOR VALUES FROM (0) TO (1000);
CREATE TEMP TABLE child2 PARTITION OF parent FOR VALUES FROM (1000) TO (2000);
INSERT INTO parent SELECT g FROM generate_series(0, 1999) g;
GRANT SELECT ON parent, child1 TO regress_tp_bob;
:as_bob
SELECT * FROM tp_security.everywhere('SELECT count(*), sum(id) FROM parent');
SELECT * FROM tp_security.everywhere('SELECT count(*), sum(id) FROM child2');

-- Which pages of a table are in the pool is visible to those who may read the
-- table and to pg_monitor; the number of buffers is visible to all roles.
:as_alice
REVOKE ALL ON notes FROM regress_tp_bob;
SELECT pg_read_temp_relation('notes') > 0 AS read;
CREATE FUNCTION tp_security.seen(OUT pages_of_notes boolean, OUT others boolean, OUT hidden boolean, OUT counted boolean)
LANGUAGE sql AS $$
SELECT count(*) FILTER (WHERE relfilenode = pg_relation_filenode('notes') AND relblocknumber >= 0) > 0,
	   count(*) FILTER (WHERE relfilenode = pg_relation_filenode('bobs') AND relblocknumber >= 0) > 0,
	   count(*) FILTER (WHERE relfilenode IS NULL AND usagecount IS NOT NULL AND
							  num_nonnulls(reltablespace, reldatabase, relforknumber, relblocknumber) = 0) > 0,
	   count(*) FILTER (WHERE isdirty IS NOT NULL) = max(buffers_used)
FROM pg_local_buffers, temp_parallel_summary() $$;
SELECT * FROM tp_security.seen();
:as_bob
SELECT pg_read_temp_relation('bobs') > 0 AS read;
SELECT * FROM tp_security.seen();
SELECT "table", kind, allocated > 0 AS allocated FROM temp_parallel_relations() WHERE "table" = 'notes'::regclass AND kind = 'table' AND fork = 'main';
SELECT relation, pages > 0 AS pages, flush_cost >= 0 AS cost FROM temp_parallel_tables WHERE relation = 'notes'::regclass;
SELECT tp_security.refused('SELECT temp_parallel_flush_cost(''notes'')');
SET ROLE regress_tp_monitor;
SELECT * FROM tp_security.seen();
RESET ROLE;
SELECT * FROM tp_security.seen();

--
-- The extension's objects
--
-- pg_temp and a schema in the search path with objects of the names that
-- temp_parallel_calibrate() uses
:as_bob
CREATE FUNCTION tp_security.gotcha(int, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'gotcha'; END $$;
CREATE FUNCTION pg_temp.gotcha(int, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'gotcha'; END $$;
CREATE OPERATOR tp_security.>= (PROCEDURE = tp_security.gotcha, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR pg_temp.>= (PROCEDURE = pg_temp.gotcha, LEFTARG = int, RIGHTARG = int);
CREATE FUNCTION tp_security.gotcha1(bigint, int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'gotcha'; END $$;
CREATE AGGREGATE tp_security.sum(int) (SFUNC = tp_security.gotcha1, STYPE = bigint);
CREATE DOMAIN tp_security.float8 AS text CHECK (VALUE = 'gotcha');
CREATE DOMAIN pg_temp.float8 AS text CHECK (VALUE = 'gotcha');
CREATE TABLE tp_security.temp_parallel_calibrate_0 ();
CREATE TEMP TABLE temp_parallel_calibrate_0 ();
RESET ROLE;
SET search_path = tp_security, pg_temp, pg_catalog, public;
-- (warnings about this machine's numbers do not matter)
SET client_min_messages = error;
SELECT 1 >= 2;
SELECT measured_pages FROM temp_parallel_calibrate(16, 6, max_cv => 'infinity');
RESET client_min_messages;
RESET search_path;

-- A schema in which another role has created functions and operators: one that the
-- extension would replace is an error, and its view and functions, two of which have the
-- privileges of a superuser, call none that fits their calls as well or better.
DROP EXTENSION temp_parallel;
CREATE SCHEMA regress_tp_hostile AUTHORIZATION regress_tp_bob;
:as_bob
CREATE FUNCTION regress_tp_hostile.temp_parallel_pages() RETURNS int LANGUAGE sql AS 'SELECT 666';
RESET ROLE;
SELECT tp_security.refused('CREATE EXTENSION temp_parallel SCHEMA regress_tp_hostile');
:as_bob
DROP FUNCTION regress_tp_hostile.temp_parallel_pages();
CREATE FUNCTION regress_tp_hostile.temp_parallel_pages(int DEFAULT 0) RETURNS int LANGUAGE sql AS 'SELECT 666';
RESET ROLE;
SELECT tp_security.refused('CREATE EXTENSION temp_parallel SCHEMA regress_tp_hostile');
:as_bob
DROP FUNCTION regress_tp_hostile.temp_parallel_pages(int);
CREATE FUNCTION regress_tp_hostile.temp_parallel_pages(VARIADIC text[]) RETURNS int LANGUAGE sql AS 'SELECT 666';
CREATE DOMAIN regress_tp_hostile.regclass AS text CHECK (VALUE = 'gotcha');
RESET ROLE;
CREATE EXTENSION temp_parallel SCHEMA regress_tp_hostile;
SELECT relname, refobjid::regprocedure
FROM pg_depend JOIN pg_rewrite r ON objid = r.oid JOIN pg_class c ON ev_class = c.oid
WHERE relname = 'pg_local_buffers' AND refclassid = 'pg_proc'::regclass;
CREATE FUNCTION regress_tp_hostile.temp_parallel_flush_cost(oid, OUT int, OUT pg_catalog.float8, OUT pg_catalog.float8) LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'gotcha'; END $$;
CREATE FUNCTION regress_tp_hostile.pg_read_temp_relation(regclass) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'gotcha'; END $$;
CREATE FUNCTION regress_tp_hostile.gotcha(oid, regclass) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'gotcha'; END $$;
CREATE OPERATOR regress_tp_hostile.= (FUNCTION = regress_tp_hostile.gotcha, LEFTARG = oid, RIGHTARG = regclass);
SET search_path = regress_tp_hostile;
SELECT relation::text COLLATE "C", pages > 0 AS pages FROM temp_parallel_tables WHERE relation::text ~ 'notes';
SELECT "table", kind FROM temp_parallel_relations() WHERE "table"::text ~ 'notes' AND kind = 'table' AND fork = 'main';
SELECT buffers_used > 0 AS used FROM temp_parallel_summary();
SET client_min_messages = error;
SELECT measured_pages FROM temp_parallel_calibrate(16, 6, max_cv => 'infinity');
RESET client_min_messages;
RESET search_path;
SELECT DISTINCT proargtypes[0]::regtype FROM pg_proc
WHERE pronamespace = 'regress_tp_hostile'::regnamespace AND proname LIKE 'pg_temp_%';
-- the owner of the schema does not own the extension's objects
:as_bob
SELECT tp_security.refused('DROP FUNCTION regress_tp_hostile.pg_flush_local_buffers()');
SELECT tp_security.refused('ALTER FUNCTION regress_tp_hostile.pg_flush_local_buffers() PARALLEL SAFE');
RESET ROLE;

SELECT count(*) > 0 AS buffers FROM regress_tp_hostile.pg_local_buffers;
SELECT regress_tp_hostile.pg_flush_local_buffers('notes'::regclass) >= 0 AS flushed;
SELECT * FROM tp_security.everywhere('SELECT count(*) FROM notes');
-- Only a superuser can install it, even if others may create objects in the database.
DROP EXTENSION temp_parallel;
BEGIN;
SELECT format('GRANT CREATE ON DATABASE %I TO regress_tp_bob', current_database()) \gexec
:as_bob
SELECT tp_security.refused('CREATE EXTENSION temp_parallel');
ROLLBACK;

SET client_min_messages = warning;
DROP TABLE notes, groups, bobs, parent CASCADE;
DROP SCHEMA regress_tp_hostile, tp_security CASCADE;
DROP OWNED BY regress_tp_alice, regress_tp_bob, regress_tp_monitor;
DROP ROLE regress_tp_alice, regress_tp_bob, regress_tp_monitor;
