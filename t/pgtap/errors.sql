--
-- Errors of the functions that take a table: each function with each kind of object, and the
-- privileges. A function that accepted one that is not a temporary table would look for, write
-- or mark pages that are not in local buffers; one that asked for fewer privileges would tell
-- or change what belongs to another role.
--
\ir include/start.psql
CREATE FUNCTION hint(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	hint text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
	RETURN hint;
END $$;

CREATE TABLE permanent (id int PRIMARY KEY);
CREATE VIEW a_view AS SELECT * FROM permanent;
CREATE MATERIALIZED VIEW stored AS SELECT * FROM permanent;
CREATE UNLOGGED TABLE unlogged (id int);
CREATE TYPE composite AS (id int);
CREATE FOREIGN DATA WRAPPER regress_tp_pgtap;
CREATE SERVER regress_tp_pgtap FOREIGN DATA WRAPPER regress_tp_pgtap;
CREATE FOREIGN TABLE remote (id int) SERVER regress_tp_pgtap;
CREATE TEMP TABLE mine (id int PRIMARY KEY, big text);
CREATE TEMP VIEW temp_view AS SELECT * FROM mine;
CREATE TEMP TABLE parted (id int) PARTITION BY LIST (id);
CREATE INDEX parted_id ON parted (id);
CREATE TEMP SEQUENCE temp_seq;
INSERT INTO mine SELECT i, 'mine' FROM generate_series(1, 100) i;
CREATE TEMP TABLE dropped (id int);
SELECT 'dropped'::regclass::oid AS dropped \gset
DROP TABLE dropped;

CREATE TEMP TABLE calls (no int, call text);
INSERT INTO calls VALUES
	(1, 'pg_read_temp_relation(%s)'),
	(2, 'pg_read_temp_relation(%s, true)'),
	(3, 'pg_temp_buffers_dirty(%s)'),
	(4, 'pg_flush_local_buffers(%s::regclass)'),
	(5, 'pg_evict_local_buffers(%s)'),
	(6, 'temp_parallel_flush_cost(%s)');

-- Every kind of object that has a regclass, names and OIDs that have none, and NULL.
CREATE TEMP TABLE objects (no serial, object text, code text, message text, hint text);
\set not_temporary '''Only temporary tables are in local buffers.'''
\set not_a_table '''Name a temporary table; its indexes and its TOAST table are included.'''
\set name_one '''Name a temporary table of this session.'''
INSERT INTO objects (object, code, message, hint) VALUES
	('''permanent''', '42809', '"permanent" is not a temporary table', :not_temporary),
	('''unlogged''', '42809', '"unlogged" is not a temporary table', :not_temporary),
	('''pg_catalog.pg_class''', '42809', '"pg_class" is not a temporary table', :not_temporary),
	('''a_view''', '42809', '"a_view" is not a table', :not_a_table),
	('''temp_view''', '42809', '"temp_view" is not a table', :not_a_table),
	('''stored''', '42809', '"stored" is not a table', :not_a_table),
	('''remote''', '42809', '"remote" is not a table', :not_a_table),
	('''composite''', '42809', '"composite" is not a table', :not_a_table),
	('''permanent_pkey''', '42809', '"permanent_pkey" is not a table', :not_a_table),
	('''mine_pkey''', '42809', '"mine_pkey" is not a table', :not_a_table),
	('''parted_id''', '42809', '"parted_id" is not a table', :not_a_table),
	('''temp_seq''', '42809', '"temp_seq" is not a table', :not_a_table),
	('''parted''', '42809', '"parted" is a partitioned table', 'Name its partitions, which have the pages.'),
	('''no_such_table''', '42P01', 'relation "no_such_table" does not exist', ''),
	('0', '42P01', 'relation with OID 0 does not exist', :name_one),
	('4000000000::oid', '42P01', 'relation with OID 4000000000 does not exist', :name_one),
	(:'dropped' || '::oid', '42P01', 'relation with OID ' || :'dropped' || ' does not exist', :name_one),
	('NULL', '22004', 'relation cannot be null', :name_one);
INSERT INTO objects (object, code, message, hint)
SELECT c.oid || '::oid', '42809', format('"%s" is not a table', c.relname), :not_a_table
FROM pg_class t, pg_class c
WHERE t.oid = 'mine'::regclass AND
	  c.oid IN (t.reltoastrelid, (SELECT indexrelid FROM pg_index WHERE indrelid = t.reltoastrelid));
SELECT is(count(*), 2::bigint, 'there are a TOAST table and its index') FROM objects WHERE message LIKE '%pg_toast%';

SELECT throws_ok('SELECT ' || format(call, object), code::char(5), message, format(call, object))
FROM objects, calls WHERE format(call, object) <> 'pg_evict_local_buffers(NULL)' ORDER BY objects.no, calls.no;
SELECT is(hint('SELECT ' || format(call, object)), hint, 'hint: ' || format(call, object))
FROM objects, calls WHERE format(call, object) <> 'pg_evict_local_buffers(NULL)' ORDER BY objects.no, calls.no;
SELECT lives_ok('SELECT pg_evict_local_buffers(NULL)', 'pg_evict_local_buffers(NULL) means all tables');
SELECT lives_ok('SELECT ' || format(call, '''mine'''), format(call, '''mine''')) FROM calls ORDER BY no;
SELECT throws_ok('SELECT pg_read_temp_relation(''mine'', NULL)', '22004', 'randomize cannot be null', 'randomize');
SELECT is(hint('SELECT pg_read_temp_relation(''mine'', NULL)'),
		  'Pass false to read the blocks in order, true to read them in random order.', 'randomize: hint');

-- Privileges: SELECT to read, to write the pages and to know their number, ownership to change
-- what is buffered. Superuser is not required for one's own tables, and a privilege on columns
-- is not enough.
CREATE ROLE regress_tp_reader;
CREATE ROLE regress_tp_owner;
GRANT SELECT ON calls TO PUBLIC;
CREATE FUNCTION privileges(tab text, may_read boolean, is_owner boolean) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT CASE WHEN is_owner OR may_read AND reads THEN lives_ok(statement, what)
		   WHEN reads THEN throws_ok(statement, '42501', 'permission denied for table ' || tab, what)
		   ELSE throws_ok(statement, '42501', 'must be owner of table ' || tab, what) END
	FROM (SELECT no, 'SELECT ' || format(call, quote_literal(tab)) AS statement,
				 call !~ 'evict|dirty' AS reads,
				 current_user || ': ' || format(call, quote_literal(tab)) AS what FROM calls) c
	UNION ALL
	SELECT is(hint('SELECT ' || format(call, quote_literal(tab))),
			  CASE WHEN is_owner OR may_read AND call !~ 'evict|dirty' THEN 'no error'
			  WHEN call ~ 'evict|dirty' THEN 'Only the owner of a temporary table may evict its pages or mark them dirty.'
			  ELSE 'This needs the SELECT privilege on the table.' END, 'hint: ' || call)
	FROM calls
$$;
SET LOCAL ROLE regress_tp_reader;
SELECT privileges('mine', false, false);
RESET ROLE;
GRANT SELECT (id) ON mine TO regress_tp_reader;
SET LOCAL ROLE regress_tp_reader;
SELECT privileges('mine', false, false);
RESET ROLE;
GRANT SELECT ON mine TO regress_tp_reader;
SET LOCAL ROLE regress_tp_reader;
SELECT privileges('mine', true, false);
RESET ROLE;
-- Policies do not matter, as the functions return numbers of pages, not rows.
ALTER TABLE mine ENABLE ROW LEVEL SECURITY;
SET LOCAL ROLE regress_tp_reader;
SELECT privileges('mine', true, false);
CREATE TEMP TABLE theirs (id int PRIMARY KEY, big text);
INSERT INTO theirs SELECT i, 'theirs' FROM generate_series(1, 100) i;
SELECT privileges('theirs', true, true);
-- any role may call these
SELECT lives_ok('SELECT * FROM ' || call, 'any role: ' || call)
FROM unnest(ARRAY['pg_local_buffers', 'temp_parallel_tables', 'temp_parallel_pages()', 'temp_parallel_summary()',
	'temp_parallel_relations()', 'temp_parallel_tables()', 'temp_parallel_stats()', 'temp_parallel_stats_reset()',
	'pg_allocated_local_buffers()', 'pg_dirty_local_buffers()', 'pg_flush_local_buffers()']) call;
SELECT cmp_ok(buffers_used, '>', 0, 'any role sees that buffers are used') FROM temp_parallel_summary();
-- without a table, only the pages of the role's own tables are evicted
SELECT pg_read_temp_relation('mine'), pg_read_temp_relation('theirs') \g /dev/null
SELECT buffers_evicted, buffers_skipped FROM pg_evict_local_buffers() \gset
SELECT cmp_ok(:buffers_evicted, '>', 0, 'its own pages are evicted');
SELECT cmp_ok(:buffers_skipped, '>', 0, 'those of others are skipped');
SELECT is_empty('SELECT FROM temp_parallel_relations() WHERE "table" = ''theirs''::regclass', 'its own are no longer there');
SELECT isnt_empty('SELECT FROM temp_parallel_relations() WHERE "table" = ''mine''::regclass', 'those of others are');
RESET ROLE;

-- A SECURITY DEFINER function can do what its owner may do, and no more: to evict all tables
-- leaves those of its caller.
GRANT CREATE ON SCHEMA regress_tp_pgtap TO regress_tp_owner;
SET LOCAL ROLE regress_tp_owner;
CREATE TEMP TABLE owned AS SELECT g AS id FROM generate_series(1, 1000) g;
CREATE FUNCTION as_owner(statement text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS
$$ BEGIN EXECUTE statement; END $$;
SET LOCAL ROLE regress_tp_reader;
SELECT lives_ok($$ SELECT as_owner('SELECT pg_evict_local_buffers(''owned'')') $$, 'definer: evicts its own');
SELECT throws_ok($$ SELECT as_owner('SELECT pg_evict_local_buffers(''theirs'')') $$,
				 '42501', 'must be owner of table theirs', 'definer: does not evict its caller''s');
SELECT throws_ok($$ SELECT as_owner('SELECT pg_read_temp_relation(''theirs'')') $$,
				 '42501', 'permission denied for table theirs', 'definer: does not read its caller''s');
SELECT pg_read_temp_relation('theirs') \g /dev/null
SELECT lives_ok($$ SELECT as_owner('SELECT pg_evict_local_buffers()') $$, 'definer: evicts all of its own');
SELECT isnt_empty('SELECT FROM temp_parallel_relations() WHERE "table" = ''theirs''::regclass', 'its caller''s stay');
RESET ROLE;
SELECT is_empty('SELECT FROM temp_parallel_relations() WHERE "table" = ''owned''::regclass', 'the owner''s are gone');

-- A privilege on a parent is not a privilege on its partitions, and vice versa.
SET LOCAL ROLE regress_tp_owner;
CREATE TEMP TABLE parent (id int) PARTITION BY RANGE (id);
CREATE TEMP TABLE child1 PARTITION OF parent FOR VALUES FROM (0) TO (1000);
CREATE TEMP TABLE child2 PARTITION OF parent FOR VALUES FROM (1000) TO (2000);
GRANT SELECT ON parent, child1 TO regress_tp_reader;
SET LOCAL ROLE regress_tp_reader;
SELECT throws_ok('SELECT pg_read_temp_relation(''parent'')', '42809', '"parent" is a partitioned table', 'parent: read');
SELECT throws_ok('SELECT pg_evict_local_buffers(''parent'')', '42809', '"parent" is a partitioned table', 'parent: evict');
SELECT privileges('child1', true, false);
SELECT privileges('child2', false, false);
RESET ROLE;

-- temp_parallel_calibrate() creates a temporary table: this needs the privilege, and must
-- fail in a security-restricted operation, such as building an index.
CREATE TABLE trap (id int);
INSERT INTO trap VALUES (1);
CREATE FUNCTION calibrates(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS
$$ BEGIN PERFORM temp_parallel_calibrate(16, 6); RETURN $1; END $$;
SELECT format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()) \gexec
SELECT throws_ok('CREATE INDEX ON trap (calibrates(id))', '42501',
				 'cannot create temporary table within security-restricted operation', 'calibrate in an index build');
SET LOCAL ROLE regress_tp_reader;
SELECT throws_matching('SELECT temp_parallel_calibrate(16, 6)', '^permission denied for schema pg_temp_\d+$',
					   'calibrate without the privilege TEMPORARY');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
