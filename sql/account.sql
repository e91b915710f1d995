--
-- Accounts: the charge for a flush is its cost less what workers would have saved so
-- far if its tables had been clean.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';
SET temp_buffers = '64MB';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 10;
-- a flush costs as much as workers save in two to three of the queries below
SET temp_parallel.write_temp_page_cost = 5;
SET temp_parallel.buffer_scan_cost = 0;
SET jit = off;
-- whatever else uses the processors
SET temp_parallel.processors = 8;
-- pages are written; for accounts of pages that workers read in memory, see share.sql
SET temp_parallel.share_local_buffers = off;

CREATE FUNCTION account(relation regclass) RETURNS float8 LANGUAGE sql AS
$$ SELECT coalesce(sum(account), 0) FROM temp_parallel_tables t WHERE t.relation = $1 $$;

-- Runs a query a number of times. For each run: were workers launched, did the table's
-- account grow, is it empty now, and is each account between 0 and its table's cost?
CREATE FUNCTION run(query text, times int DEFAULT 1, relation text DEFAULT 't')
RETURNS TABLE (workers bool, grew bool, empty bool, bounded bool) LANGUAGE plpgsql AS $$
DECLARE
	launched bigint;
	before float8;
	after float8;
BEGIN
	FOR i IN 1 .. times LOOP
		launched := (SELECT workers_launched FROM temp_parallel_stats());
		before := account(relation::regclass);
		EXECUTE query;
		after := account(relation::regclass);
		RETURN QUERY SELECT workers_launched > launched, after > before, after = 0,
			(SELECT bool_and(account BETWEEN 0 AND flush_cost + 0.001) FROM temp_parallel_tables)
			FROM temp_parallel_stats();
	END LOOP;
END $$;

-- What workers would save according to EXPLAIN.
CREATE FUNCTION saving(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		IF line ~ 'Flush Refused' THEN
			RETURN substring(line FROM 'saving=([0-9.]+)')::float8;
		END IF;
	END LOOP;
	RETURN NULL;
END $$;

-- Makes all pages of tables dirty, in local buffers, and their accounts empty.
CREATE FUNCTION make_dirty(VARIADIC relations text[] DEFAULT '{t}') RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	relation text;
BEGIN
	FOREACH relation IN ARRAY relations LOOP
		PERFORM pg_read_temp_relation(relation), pg_flush_local_buffers(relation);
		IF pg_temp_buffers_dirty(relation) < pg_relation_size(relation) / current_setting('block_size')::int THEN
			RAISE 'not all of % is in the pool', relation;
		END IF;
	END LOOP;
	RETURN true;
END $$;

CREATE TEMP TABLE t AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 50000) g;
CREATE TEMP TABLE u AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 25000) g;
VACUUM (ANALYZE) t, u;	-- truncates empty pages, which 17 and later add

-- A table that has just been filled is first read without workers, and with workers as
-- soon as its account pays for the flush. Otherwise, it would never be read by workers.
SELECT serial_by_flush AS serial FROM temp_parallel_stats() \gset before_
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5', 5);
-- Each statement that had no workers because of the flush is counted once.
SELECT serial_by_flush - :before_serial AS serial FROM temp_parallel_stats();

-- After a flush, the account starts from zero for pages dirtied later. Otherwise, a
-- table that is often updated would be flushed for every query.
SELECT make_dirty() \gset
SELECT flush_cost > 0 AS dirty, account FROM temp_parallel_tables WHERE relation = 't'::regclass;
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5', 2);
-- The account never exceeds the cost of the flush, also when that falls.
SELECT pg_flush_local_buffers('t') > 0 AS clean, account('t');
SELECT make_dirty() \gset
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5');
SET temp_parallel.write_temp_page_cost = 0.1;
SELECT account = flush_cost AS full, account > 0 AS funds FROM temp_parallel_tables WHERE relation = 't'::regclass;
SET temp_parallel.write_temp_page_cost = 5;

-- The plan of an INSERT with workers has to be better by 15 % than that without them,
-- but for what is charged. If that counted, a statement that is refused because of it would
-- not add to the account, and the table never be read by workers.
CREATE TEMP TABLE sums (k int, n bigint);
SELECT set_config('temp_parallel.write_temp_page_cost', cost::text, false) AS cost, make_dirty(),
	   (SELECT bool_or(workers) FROM run('INSERT INTO sums SELECT k, sum(id) FROM t'
										 || ' WHERE k < 5 GROUP BY k -- ' || cost, 10)) AS workers
  FROM generate_series(2, 6, 0.5) cost;
DROP TABLE sums;
SET temp_parallel.write_temp_page_cost = 5;
SELECT make_dirty() \gset

-- Each function that writes a table's pages closes its account, and no other.
-- Otherwise, pages that are dirtied next would be flushed too early.
CREATE FUNCTION accounts() RETURNS TABLE (relation regclass, empty bool) LANGUAGE sql AS
$$ SELECT relation, account = 0 FROM temp_parallel_tables ORDER BY relation::text COLLATE "C" $$;
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5');
SELECT * FROM run('SELECT count(*), sum(id) FROM u WHERE k < 5', 1, 'u');
SELECT pg_flush_local_buffers('t') > 0 AS written;
SELECT * FROM accounts();
SELECT make_dirty() \gset
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5');
SELECT buffers_flushed > 0 AS written FROM pg_evict_local_buffers('t');
SELECT * FROM accounts();
SELECT make_dirty() \gset
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5');
SELECT pg_flush_local_buffers() > 0 AS written;
SELECT * FROM accounts();

-- EXPLAIN changes no account. Otherwise, looking at a plan would change it.
SELECT make_dirty('t', 'u') \gset
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM t WHERE k < 5;
SELECT * FROM run('EXPLAIN SELECT count(*), sum(id) FROM t WHERE k < 5', 4);
-- With ANALYZE the statement is executed, and adds to the account.
SELECT * FROM run('EXPLAIN ANALYZE SELECT count(*), sum(id) FROM t WHERE k < 5', 4);
-- EXPLAIN of a plan that has workers does not show a refused flush.
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM t WHERE k < 5;

-- Each execution of a cached plan adds to the account, and the plan is made again when
-- a flush has become worth it. Otherwise, prepared statements would never have workers.
SELECT make_dirty() \gset
SET plan_cache_mode = force_generic_plan;
PREPARE q(int) AS SELECT count(*), sum(id) FROM t WHERE k < $1;
SELECT * FROM run('EXECUTE q(5)', 5);
SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 'q';
-- The same for the plans of PL/pgSQL, also where rows are fetched in portions, if all is read
-- before the first row. Another such query would have no workers whatever is flushed, and adds
-- nothing.
CREATE FUNCTION loop(sort text, n int) RETURNS TABLE (workers bool, empty bool) LANGUAGE plpgsql AS $$
DECLARE
	launched bigint := (SELECT workers_launched FROM temp_parallel_stats());
	r record;
	aggregated CURSOR FOR SELECT k, count(*), sum(id) FROM t GROUP BY k ORDER BY k;
	plain CURSOR FOR SELECT id FROM t WHERE k < 5;
BEGIN
	FOR i IN 1 .. n LOOP
		CASE sort
			WHEN 'perform' THEN PERFORM count(*), sum(id) FROM t WHERE k < 5;
			WHEN 'row' THEN SELECT count(*), sum(id) INTO r FROM t WHERE k < 5;
			WHEN 'loop' THEN
				FOR r IN SELECT k, count(*), sum(id) FROM t GROUP BY k ORDER BY k LOOP
				END LOOP;
			WHEN 'first row' THEN
				OPEN aggregated;
				FETCH aggregated INTO r;
				CLOSE aggregated;
			WHEN 'plain' THEN
				OPEN plain;
				FETCH plain INTO r;
				MOVE FORWARD ALL FROM plain;
				CLOSE plain;
			WHEN 'into' THEN
				SELECT id INTO r FROM t WHERE k < 5;
		END CASE;
		workers := (SELECT workers_launched FROM temp_parallel_stats()) > launched;
		empty := account('t') = 0;
		RETURN NEXT;
	END LOOP;
END $$;
SELECT make_dirty() \gset
SELECT * FROM loop('perform', 5);
SELECT make_dirty() \gset
SELECT * FROM loop('row', 4);
SELECT make_dirty() \gset
SELECT * FROM loop('loop', 4);
SELECT make_dirty() \gset
SELECT * FROM loop('first row', 4);
SELECT make_dirty() \gset
SELECT * FROM loop('plain', 2);
SELECT * FROM loop('into', 2);

-- A cached plan that the second look leaves to the leader adds to it, too. Otherwise, a plan
-- that was made while the table was clean would never have workers again.
SELECT make_dirty() \gset
SELECT plans_left_to_leader AS left, serial_by_flush AS serial FROM temp_parallel_stats() \gset before_
SELECT * FROM run('EXECUTE q(5)', 4);
SELECT plans_left_to_leader - :before_left AS left_to_leader FROM temp_parallel_stats();

-- So does one whose table has grown since it was made, although its costs are those of
-- the smaller table.
SELECT pg_flush_local_buffers('t') > 0 AS clean;
CREATE TEMP TABLE growing AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 25000) g;
VACUUM (ANALYZE) growing;
SET plan_cache_mode = force_generic_plan;
PREPARE grown(int) AS SELECT count(*), sum(id) FROM growing WHERE k < $1;
SELECT pg_flush_local_buffers('growing') > 0 AS clean;
SELECT * FROM run('EXECUTE grown(5)', 1, 'growing');
UPDATE growing SET k = k;
UPDATE growing SET k = k;
SELECT bool_or(workers) AS workers, bool_or(grew) AS grew FROM run('EXECUTE grown(5)', 25, 'growing');
DROP TABLE growing;

-- One that scans nothing does not add to the account.
PREPARE never(int) AS SELECT count(*) FROM t WHERE $1 = 3;
SELECT pg_flush_local_buffers('t') >= 0 AS clean;
EXPLAIN (COSTS OFF) EXECUTE never(4);
SELECT make_dirty() \gset
SELECT bool_or(workers) AS workers, bool_or(grew) AS grew FROM run('EXECUTE never(4)', 3);
SELECT bool_or(workers) AS workers, bool_or(grew) AS grew FROM run('EXECUTE never(3)', 3);
RESET plan_cache_mode;

-- A statement that does not run to its end does not add to the account, as it is not
-- known what workers would have saved: one that fails at its last row, ...
SELECT make_dirty() \gset
SELECT serial_by_flush AS serial FROM temp_parallel_stats() \gset before_
SELECT saving('SELECT count(1 / (id - 50000)) FROM t') > 0 AS saving;
SELECT count(1 / (id - 50000)) FROM t;
SELECT account('t');
-- ... one of which only the first row is fetched, by SELECT INTO, ...
CREATE FUNCTION first_row() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	first int;
BEGIN
	SELECT id INTO first FROM t WHERE k < 1 AND id % 1000 = 0;
	RETURN first % 1000;
END $$;
SELECT saving('SELECT id FROM t WHERE k < 1 AND id % 1000 = 0') > 0 AS saving;
SELECT first_row();
SELECT account('t');
-- A cursor of which all rows are fetched at once does: it would be run ahead.
BEGIN;
DECLARE c CURSOR FOR SELECT count(*), sum(id) FROM t WHERE k < 5;
FETCH ALL FROM c;
COMMIT;
SELECT account('t') > 0 AS grew;
-- Nor does one that EXPLAIN ANALYZE does not execute.
SELECT * FROM run('EXPLAIN ANALYZE CREATE TEMP TABLE v AS SELECT count(*), sum(id) FROM t WHERE k < 5 WITH NO DATA');
DROP TABLE v;
-- A statement in a transaction that is rolled back does: it has taken its time.
BEGIN;
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5');
ROLLBACK;
SELECT account('t') > 0 AS funds, serial_by_flush - :before_serial AS serial FROM temp_parallel_stats();
SELECT make_dirty() \gset

-- A plan that has no workers for another reason has no saving, and EXPLAIN shows no
-- refused flush. The reason is a function that workers may not run, ...
CREATE FUNCTION five() RETURNS int LANGUAGE plpgsql PARALLEL UNSAFE AS 'BEGIN RETURN 5; END';
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM t WHERE k < five();
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < five()');
ALTER FUNCTION five() PARALLEL RESTRICTED;
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < five()');
DROP FUNCTION five;
-- ... workers whose launch costs more than they save, ...
SET parallel_setup_cost = 100000;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM t WHERE k < 5;
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5');
SET parallel_setup_cost = 10;
-- ... or a setting.
SET temp_parallel.enabled = off;
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5');
RESET temp_parallel.enabled;

-- An EXPLAIN that fails inside another one does not change the state of that.
-- Otherwise, the outer one would crash, or show the refused flush of the inner one.
CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ANALYZE SELECT sum(1 / (k - k)) FROM t' LOOP
	END LOOP;
EXCEPTION WHEN division_by_zero THEN
	PERFORM repeat('y', 100000);
	RETURN 1;
END $$;
CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
		RETURN NEXT regexp_replace(line, '[0-9.]+', 'N', 'g');
	END LOOP;
END $$;
SELECT pg_flush_local_buffers('u') >= 0 AS clean;
SELECT make_dirty() \gset
SELECT line FROM explain('SELECT fails() FROM u LIMIT 1') line;
SELECT line FROM explain('SELECT fails() FROM u LIMIT 1') line;
DROP FUNCTION fails, explain;
SELECT make_dirty('u') \gset

-- The saving of a join is divided among its tables. Otherwise, it would count twice.
SELECT saving('SELECT count(*), sum(t.id) FROM t JOIN u USING (id)') AS saving \gset
SELECT * FROM run('SELECT count(*), sum(t.id) FROM t JOIN u USING (id)');
SELECT abs(sum(account) - :saving) < 0.1 AS whole, min(account) > 0 AS shared FROM temp_parallel_tables;
-- One flush closes both accounts. Otherwise, they would pay for two flushes.
SET temp_parallel.write_temp_page_cost = 8;
SELECT * FROM run('SELECT count(*), sum(t.id) FROM t JOIN u USING (id)', 4);
SELECT * FROM accounts();
SET temp_parallel.write_temp_page_cost = 5;

-- Tables that the query does not name have accounts, too: partitions, a child of a
-- permanent table, and what an inlined function reads.
CREATE TEMP TABLE parted (id int, k int) PARTITION BY RANGE (id);
CREATE TEMP TABLE low PARTITION OF parted FOR VALUES FROM (1) TO (25001);
CREATE TEMP TABLE high PARTITION OF parted DEFAULT;
INSERT INTO parted SELECT * FROM t;
CREATE TABLE parent (id int, k int);
CREATE TEMP TABLE child () INHERITS (parent);
INSERT INTO child SELECT * FROM t;
VACUUM (ANALYZE) parted, low, high, parent, child;
CREATE FUNCTION pg_temp.inlined() RETURNS SETOF t LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT * FROM t';
SELECT make_dirty('t', 'low', 'high', 'child') \gset
SELECT bool_or(workers) AS workers, bool_or(grew) AS grew FROM run('SELECT count(*), sum(id) FROM parted WHERE k < 5', 6, 'low');
SELECT bool_or(workers) AS workers, bool_or(grew) AS grew FROM run('SELECT count(*), sum(id) FROM parent WHERE k < 5', 6, 'child');
SELECT bool_or(workers) AS workers, bool_or(grew) AS grew FROM run('SELECT count(*), sum(id) FROM pg_temp.inlined() WHERE k < 5', 6);
DROP FUNCTION pg_temp.inlined;
DROP TABLE parted, parent, child;

-- Workers may read two tables of three, and only the accounts of these grow. If the flush of
-- the third was counted, too, there would never be workers.
CREATE FUNCTION leader_only(int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED COST 0.1 AS 'BEGIN RETURN $1; END';
CREATE TEMP TABLE few AS SELECT g AS id FROM generate_series(1, 10) g;
VACUUM (ANALYZE) few;
SELECT make_dirty('t', 'u', 'few') \gset
SET geqo_threshold = 2;
SELECT * FROM run('SELECT count(*) FROM t JOIN u USING (id) JOIN few USING (id) WHERE leader_only(t.k) < 5', 6, 'u');
RESET geqo_threshold;
SELECT relation, dirty_pages = 0 AS flushed FROM temp_parallel_tables ORDER BY relation::text COLLATE "C";
DROP TABLE few;
DROP FUNCTION leader_only;

-- A table that is only in a subquery that is never executed gets nothing, the other one its share.
SELECT make_dirty('t', 'u') \gset
SELECT * FROM run('SELECT count(*), sum(CASE WHEN k < 0 THEN (SELECT max(id) FROM u WHERE k < 5) ELSE id END) FROM t WHERE k < 5', 2);
SELECT account('u');
SELECT * FROM run('SELECT count(*), sum(CASE WHEN k < 0 THEN (SELECT max(id) FROM u WHERE k < 5) ELSE id END) FROM t WHERE k < 5', 2);

-- Nor does one with a bitmap heap scan, for which 15 begins the table scan early.
CREATE INDEX u_k ON u (k);
SELECT make_dirty('t', 'u') \gset
SET enable_seqscan = off;
SELECT saving('SELECT sum(CASE WHEN k < 0 THEN (SELECT max(id) FROM u WHERE k = 5) ELSE id END) FROM t WHERE k < 5') > 0 AS saving;
SELECT * FROM run('SELECT sum(CASE WHEN k < 0 THEN (SELECT max(id) FROM u WHERE k = 5) ELSE id END) FROM t WHERE k < 5', 1, 'u');
RESET enable_seqscan;
DROP INDEX u_k;

-- The search of the pool is charged to each statement with workers, even if that
-- writes nothing. So accounts do not pay for it. Otherwise, a table would be flushed,
-- and then still be read without workers.
SELECT make_dirty() \gset
SET temp_parallel.buffer_scan_cost = 3;
SELECT bool_or(workers) AS workers, bool_or(grew) AS grew FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5', 20);
SELECT dirty_pages > 0 AS dirty FROM temp_parallel_tables WHERE relation = 't'::regclass;
-- They pay for the writes.
SET temp_parallel.buffer_scan_cost = 0.1;
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5', 4);
SET temp_parallel.buffer_scan_cost = 0;

-- The account belongs to the table, whatever becomes of its rows. No more of it counts
-- than its pages cost to write: none as long as it is empty. If it ended with the rows, a
-- table that is filled, queried a few times and emptied, again and again, would never have
-- workers.
SELECT make_dirty() \gset
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5');
BEGIN;
TRUNCATE t;
SELECT account('t');
ROLLBACK;
SELECT account('t') > 0 AS funds;
TRUNCATE t;
SELECT account('t');
INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 50000) g;
SELECT account('t') > 0 AS funds;
SELECT pg_flush_local_buffers('t') > 0 AS flushed;
SELECT account('t');
-- a new file for each fill, and the same one
CREATE FUNCTION workers_of_fills(empty text) RETURNS SETOF boolean LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
BEGIN
	FOR i IN 1 .. 6 LOOP
		INSERT INTO v SELECT g, g % 10 FROM generate_series(1, 50000) g;
		ANALYZE v;
		SELECT workers_launched INTO before FROM temp_parallel_stats();
		EXECUTE 'SELECT count(*), sum(id) FROM v WHERE k < 5';
		RETURN NEXT workers_launched > before FROM temp_parallel_stats();
		EXECUTE empty;
	END LOOP;
END $$;
CREATE TEMP TABLE v (id int, k int);
SELECT array_agg(w) FROM workers_of_fills('TRUNCATE v') w;
DROP TABLE v;
BEGIN;
CREATE TEMP TABLE v (id int, k int);
SELECT array_agg(w) FROM workers_of_fills('TRUNCATE v') w;
DROP TABLE v;
COMMIT;
DROP FUNCTION workers_of_fills;

-- If workers are forced on a plan that costs more with them even if the table is clean,
-- the saving is negative. The account does not fall below zero.
CREATE TEMP TABLE v AS SELECT g AS id FROM generate_series(1, 1000) g;
ANALYZE v;
SELECT pg_flush_local_buffers('v') > 0 AS clean;
SELECT set_config(name, 'on', false) FROM pg_settings
WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
SET parallel_setup_cost = 1000;
SET plan_cache_mode = force_generic_plan;
PREPARE forced AS SELECT count(*) FROM v;
EXECUTE forced;
SELECT make_dirty('v') \gset
SELECT bool_and(bounded) AS bounded FROM run('EXECUTE forced', 3, 'v');
SELECT set_config(name, 'off', false) FROM pg_settings
WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
RESET plan_cache_mode;
SET parallel_setup_cost = 10;
DROP TABLE v;

-- Neither dropped tables nor those whose creation is rolled back leave more than a few
-- accounts behind: otherwise, a session that makes many tables would run out of memory.
CREATE PROCEDURE many_tables(n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		CREATE TEMP TABLE short AS SELECT g AS id FROM generate_series(1, 1000) g;
		EXECUTE 'SELECT count(*) FROM short';
		IF account('short') <= 0 THEN
			RAISE 'no account';
		END IF;
		IF i % 2 = 0 THEN
			ROLLBACK;
		ELSE
			DROP TABLE short;
			COMMIT;
		END IF;
	END LOOP;
END $$;
CREATE FUNCTION memory() RETURNS bigint LANGUAGE sql AS
$$ SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'accounts of temporary tables' $$;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET cpu_tuple_cost = 0.5;
SET temp_parallel.write_temp_page_cost = 1000;
CALL many_tables(300);
SELECT memory() AS before \gset
CALL many_tables(600);
SELECT memory() - :before AS more;
SET parallel_setup_cost = 10;
RESET parallel_tuple_cost;
RESET cpu_tuple_cost;
SET temp_parallel.write_temp_page_cost = 5;

-- A statement has workers for the table that is clean, and the other one's account grows, also if
-- the plan depends on a function that RETURNING calls, which is kept beside what is lost.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET temp_parallel.write_temp_page_cost = 20;
CREATE TEMP TABLE clean AS SELECT g AS id, g % 1000 AS k FROM generate_series(1, 200000) g;
CREATE TEMP TABLE dirty AS TABLE clean;
CREATE TEMP TABLE filled (id int, n bigint);
CREATE FUNCTION pg_temp.returned(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
ANALYZE clean, dirty;
SELECT pg_flush_local_buffers('clean') > 0;
\set insert 'INSERT INTO filled SELECT k % 3, count(*) FROM clean WHERE sqrt(id) + sqrt(k) + sqrt(id + 1) > 1 AND (SELECT count(*) FROM dirty WHERE k > 3) > 5 GROUP BY 1 RETURNING '
SELECT workers, grew, bounded FROM run(:'insert' || 'id', 1, 'dirty');
SELECT workers, grew, bounded FROM run(:'insert' || 'pg_temp.returned(id)', 1, 'dirty');
RESET parallel_tuple_cost;
SET parallel_setup_cost = 10;
SET temp_parallel.write_temp_page_cost = 5;

-- DISCARD TEMP drops all tables.
SELECT make_dirty() \gset
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5');
DISCARD TEMP;
SELECT count(*) FROM temp_parallel_tables;

-- The view shows the session's tables to every role, as the other instruments
-- count pages by table: a role without privileges on the table may look.
CREATE TEMP TABLE t AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 50000) g;
ANALYZE t;
SELECT * FROM run('SELECT count(*), sum(id) FROM t WHERE k < 5');
CREATE ROLE regress_temp_parallel_account;
SET ROLE regress_temp_parallel_account;
SELECT count(*) FROM t;
SELECT buffers_flushed FROM pg_evict_local_buffers();
SELECT relation, pages > 0 AS pages, dirty_pages > 0 AS dirty, flush_cost > 0 AS cost, account > 0 AS funds
  FROM temp_parallel_tables;
RESET ROLE;
DROP ROLE regress_temp_parallel_account;

-- A table that is expensive to flush is left to the leader where workers read others, which are
-- clean. Its account gets what workers would save in it alone, and pays in the end.
CREATE TEMP TABLE clean AS SELECT g AS id, g % 100 AS k FROM generate_series(1, 100000) g;
CREATE TEMP TABLE dirty AS SELECT g AS id, g % 100 AS k, repeat('x', 300) AS pad FROM generate_series(1, 20000) g;
ANALYZE clean, dirty;
SELECT pg_flush_local_buffers('clean') > 0 AS flushed;
\set both 'SELECT * FROM (SELECT sum(k) FROM clean WHERE id % 10 = 0) a, (SELECT sum(k) FROM dirty WHERE id % 10 = 0) b'
EXPLAIN (COSTS OFF) :both;
SELECT serial_by_flush AS before_serial FROM temp_parallel_stats() \gset
SELECT * FROM run(:'both', 1, 'dirty');
SELECT account('clean') AS clean, serial_by_flush - :before_serial AS serial FROM temp_parallel_stats();
-- no more than its own query alone would have added
SELECT account('dirty') AS with_clean \gset
SELECT temp_parallel_stats_reset();
CREATE TEMP TABLE alone AS TABLE dirty;
ANALYZE alone;
SELECT * FROM run('SELECT sum(k) FROM alone WHERE id % 10 = 0', 1, 'alone');
SELECT :with_clean BETWEEN 0.5 * account('alone') AND 1.5 * account('alone') AS alike;
SELECT bool_or(empty) AS flushed_in_the_end FROM run(:'both', 100, 'dirty');
-- Where another table, which is cheap to flush, is dirty, too, each account gets what workers would
-- save in its table, and the cheap one is flushed first. Otherwise, it would wait for both.
CREATE TEMP TABLE cheap AS SELECT g AS id, g % 100 AS k FROM generate_series(1, 40000) g;
DROP TABLE clean, dirty;
CREATE TEMP TABLE dirty AS SELECT g AS id, g % 100 AS k, repeat('x', 600) AS pad FROM generate_series(1, 20000) g;
ANALYZE cheap, dirty;
SET temp_parallel.write_temp_page_cost = 20;
\set both 'SELECT * FROM (SELECT sum(k) FROM cheap WHERE id % 10 = 0) a, (SELECT sum(k) FROM dirty WHERE id % 10 = 0) b'
EXPLAIN (COSTS OFF) :both;
SELECT * FROM run(:'both', 1, 'dirty');
SELECT account('cheap') > account('dirty') AS cheap_first, account('dirty') > 0 AS dirty FROM temp_parallel_stats();
SELECT bool_or(workers) AS workers, bool_or(empty) AS flushed FROM run(:'both', 30, 'cheap');
SELECT relation, dirty_pages > 0 AS dirty, account > 0 AS funds FROM temp_parallel_tables
 WHERE relation IN ('cheap'::regclass, 'dirty'::regclass) ORDER BY relation::text;

-- A partition that is left to the leader leaves all to it, and what is lost goes to the accounts of
-- those that are scanned: the expensive one is not. Otherwise, none would ever be flushed.
CREATE TEMP TABLE parted (id int, k int, pad text) PARTITION BY LIST (k);
CREATE TEMP TABLE parted0 PARTITION OF parted FOR VALUES IN (0);
CREATE TEMP TABLE parted1 PARTITION OF parted FOR VALUES IN (1);
CREATE TEMP TABLE parted2 PARTITION OF parted FOR VALUES IN (2);
CREATE TEMP TABLE parted3 PARTITION OF parted FOR VALUES IN (3);
INSERT INTO parted SELECT g, 0, repeat('x', 60) FROM generate_series(1, 40000) g;
INSERT INTO parted SELECT g, 1 + g % 3, repeat('x', 60) FROM generate_series(1, 45000) g;
ANALYZE parted;
SELECT pg_flush_local_buffers('cheap') >= 0 AS clean;
SET temp_parallel.write_temp_page_cost = 1;
\set pruned 'SELECT (SELECT sum(k) FROM parted WHERE k > (SELECT 0)), (SELECT sum(k) FROM cheap)'
SELECT bool_or(grew) AS grew FROM run(:'pruned', 5, 'parted1');
SELECT bool_or(dirty_pages > 0) AS dirty FROM temp_parallel_tables WHERE relation::text LIKE 'parted%';
-- The pruned one gets what the others no longer need, also where it alone costs more than workers
-- save. Otherwise, all would be left to the leader for ever.
UPDATE parted SET pad = pad;
SET temp_parallel.write_temp_page_cost = 4;
SELECT bool_or(workers) AS workers FROM run('SELECT sum(k) FROM parted WHERE k > (SELECT 0)', 40, 'parted1');
SELECT bool_or(dirty_pages > 0) AS dirty FROM temp_parallel_tables WHERE relation::text LIKE 'parted%';
DROP TABLE parted;

-- Cached plans. What is lost beside a plan that searches the pool itself does not depend on what
-- that cost when the plan was made, ...
SET plan_cache_mode = force_generic_plan;
SET temp_parallel.write_temp_page_cost = 20;
CREATE TEMP TABLE one AS SELECT g AS id, g % 100 AS k FROM generate_series(1, 100000) g;
CREATE TEMP TABLE two AS TABLE one;
CREATE FUNCTION gains(query text) RETURNS float8 LANGUAGE sql
	SET temp_parallel.write_temp_page_cost = 1e9 SET temp_parallel.buffer_scan_cost = 0 AS
$$ SELECT saving(query) $$;
ANALYZE one, two;
SELECT count(*) FROM one;
SELECT count(*) FROM two;
SELECT pg_flush_local_buffers('two') > 0 AS clean;
SELECT pg_allocated_local_buffers() AS allocated, gains('SELECT sum(k) FROM one') AS gains, account('one') AS before \gset
SELECT set_config('temp_parallel.buffer_scan_cost', (0.5 * :gains / :allocated)::text, false) <> '' AS set;
PREPARE beside AS SELECT * FROM (SELECT sum(k) FROM one) a, (SELECT sum(k) FROM two) b;
SELECT * FROM run('EXECUTE beside', 1, 'one');
SET temp_parallel.buffer_scan_cost = 0;
SELECT * FROM run('EXECUTE beside', 1, 'one');
SELECT account('one') - :before BETWEEN 1.8 * :gains AND 2.2 * :gains AS twice_what_is_lost;
-- ... and a plan is made again once the flush pays for all of its tables, though not yet for those
-- that are cheaper to flush alone.
SELECT pg_flush_local_buffers() > 0 AS clean;
UPDATE one SET k = k WHERE id <= 20000;
UPDATE two SET k = k WHERE id <= 8500;
ANALYZE one, two;
SELECT pg_allocated_local_buffers() AS allocated, gains('SELECT sum(k) FROM one') AS gains, dirty_pages
  FROM temp_parallel_tables WHERE relation = 'one'::regclass \gset
SELECT set_config('temp_parallel.buffer_scan_cost', (0.99 * :gains / :allocated)::text, false) <> '' AS set,
	   set_config('temp_parallel.write_temp_page_cost', (0.98 * :gains / :dirty_pages)::text, false) <> '' AS set;
PREPARE together AS SELECT * FROM (SELECT sum(k) FROM one) a, (SELECT sum(k) FROM two) b;
SELECT workers FROM run('EXECUTE together', 3, 'one');
SET temp_parallel.buffer_scan_cost = 0;
RESET plan_cache_mode;
DROP TABLE one, two;
DROP FUNCTION gains;

-- Where workers do not pay for the search of the pool, they lose nothing, neither in all tables nor
-- in those that are cheap to flush.
SELECT make_dirty('cheap', 'dirty') \gset
UPDATE cheap SET k = k;
UPDATE dirty SET k = k;
SELECT account AS before FROM temp_parallel_tables WHERE relation = 'dirty'::regclass \gset
SET temp_parallel.buffer_scan_cost = 1000;
SELECT bool_or(grew) AS grew, bool_or(workers) AS workers FROM run(:'both', 2, 'dirty');
SET temp_parallel.buffer_scan_cost = 0;

-- Costs that are nearly infinite do not fill an account.
SET temp_parallel.write_temp_page_cost = 1e302;
SELECT saving('SELECT sum(k) FROM dirty') AS saving \gset
SELECT * FROM run('SELECT sum(k) FROM dirty', 1, 'dirty');
SELECT account('dirty') - :before <= 1.1 * :saving AS bounded;

-- A statement that has workers for a permanent table is not counted among those without.
CREATE TABLE permanent AS SELECT g AS id, g % 100 AS k FROM generate_series(1, 300000) g;
CREATE TEMP TABLE target (n bigint);
ANALYZE permanent;
SELECT serial_by_flush AS serial FROM temp_parallel_stats() \gset before_
SELECT pg_flush_local_buffers('cheap') > 0 AS clean;
SET temp_parallel.write_temp_page_cost = 20;
SELECT grew FROM run('INSERT INTO target SELECT (SELECT sum(d.k) FROM dirty d JOIN cheap c USING (id)) + count(*) FROM permanent', 1, 'dirty');
SELECT serial_by_flush - :before_serial AS serial FROM temp_parallel_stats();

DROP TABLE t, cheap, dirty, alone, permanent, target;
DROP PROCEDURE many_tables;
DROP FUNCTION account, accounts, run, saving, loop, make_dirty, first_row, memory;
DROP EXTENSION temp_parallel;
