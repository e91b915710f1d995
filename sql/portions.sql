--
-- Queries over temporary tables whose rows are fetched in portions: in PL/pgSQL, by
-- cursors and by SQL functions. If something here fails, rows are lost or come
-- from another moment, or an error is raised that is not raised without workers.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
SET compute_query_id = off;	-- EXPLAIN VERBOSE prints it
LOAD 'temp_parallel';
\i sql/include/portions.sql
\i sql/include/nodes.sql
\set run 'SELECT * FROM pg_temp.portions'
SET temp_parallel.run_ahead = on;

-- 60 groups of 50 rows, but the last one has 7
CREATE TEMP TABLE t (id int, k int, v int, s text);
INSERT INTO t SELECT i, i % 60, i * 7919 % 10007, 's' || i FROM generate_series(1, 3000) i;
DELETE FROM t WHERE k = 59 AND id > 7 * 60;
CREATE TEMP TABLE few (id int, k int);
INSERT INTO few SELECT i, i % 5 FROM generate_series(1, 500) i;
CREATE TABLE portions_p (id int, k int) WITH (autovacuum_enabled = off);
INSERT INTO portions_p SELECT i, i % 60 FROM generate_series(1, 500) i;
ANALYZE t, few, portions_p;
CREATE TEMP TABLE log (line text);

--
-- What is run ahead
--
-- one row, whatever is above
SELECT * FROM pg_temp.plan('SELECT sum(v) FROM t HAVING count(*) > 7');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT (SELECT sum(v) FROM t), (SELECT max(s) FROM t)');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT generate_series(1, count(*)) FROM t LIMIT 3');
-- groups; what is computed of them is not
SELECT * FROM pg_temp.plan('SELECT k, 100 / (count(*) - 7), grouping(k) FROM t GROUP BY k HAVING sum(v) > 10', options => 'COSTS OFF, VERBOSE');
SET enable_hashagg = off;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT k, sum(v) FROM t GROUP BY k');
-- arguments, which core evaluates as it returns groups, would be
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT k, sum(100 / v) FROM t GROUP BY k');
RESET enable_hashagg;
-- final functions may fail: for a fraction above 1, infinite intervals, keys that are not unique
CREATE TEMP TABLE fractions AS SELECT k::float8 AS f, v::float8 FROM t;
ANALYZE fractions;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT f, percentile_cont(f) WITHIN GROUP (ORDER BY v) FROM fractions GROUP BY f');
DROP TABLE fractions;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT k, avg(v * interval ''1s'') FROM t GROUP BY k');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT k, jsonb_agg(v) FROM t GROUP BY k');
-- what is computed above a sort is computed as rows are asked for, also by Gather Merge: this
-- function fails for the second row
CREATE FUNCTION pg_temp.inverse(i int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS 'BEGIN RETURN 1000 / i; END';
CREATE FUNCTION pg_temp.first_inverse() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	a int;
	b int;
BEGIN
	SELECT id, pg_temp.inverse(id - 2) INTO a, b FROM t WHERE sqrt(id) + sqrt(id + 1) + sqrt(id + 2) > 0 ORDER BY id LIMIT 10;
	RETURN concat(a, ' ', b);
END $$;
SET parallel_tuple_cost = 0.1;
SELECT pg_temp.first_inverse();
SET parallel_tuple_cost = 0;
-- a sort, with LIMIT, below Unique and WindowAgg
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT * FROM t ORDER BY v');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT * FROM t ORDER BY v LIMIT 5');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, v');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT id, row_number() OVER (ORDER BY v) FROM t');
-- joins below, with a permanent table
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT p.k, sum(v) FROM t JOIN portions_p p USING (id) GROUP BY p.k');
-- a cursor is SCROLL if it is without workers
SELECT pg_temp.nodes('DECLARE c SCROLL CURSOR FOR SELECT k, count(*) FROM t GROUP BY k');

--
-- What is not
--
-- scans and joins return their first row soon, the last one early
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT * FROM t WHERE k = 7');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT * FROM t JOIN few USING (id)');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT id FROM t UNION ALL SELECT id FROM few');
-- with many groups, the first one is found sooner without workers
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT v, count(*) FROM t GROUP BY v');
-- volatile functions, of core, too, unless there is one row; not parallel safe
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT k, count(*), random() FROM t GROUP BY k');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT max(clock_timestamp()) > now() FROM t');
CREATE FUNCTION pg_temp.counts(i int) RETURNS int LANGUAGE sql VOLATILE PARALLEL SAFE AS
	'INSERT INTO log VALUES (i) RETURNING 1';
CREATE FUNCTION pg_temp.unsafe(i int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN i; END';
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT sum(pg_temp.counts(v)) FROM t');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT sum(pg_temp.unsafe(v)) FROM t');
-- what stops early: workers would read on, where an error may be that is not met without them
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT EXISTS (SELECT FROM t WHERE 100 / v > 1)');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT (SELECT id FROM t WHERE v > 5 LIMIT 1)');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT sum(v) FROM t WHERE EXISTS (SELECT FROM t WHERE v = 7)') ~ 'RunAhead' AS run_ahead;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT sum(id) FROM (SELECT id FROM t WHERE EXISTS (SELECT FROM t WHERE 100 / v > 1) OFFSET 0) s') ~ 'RunAhead' AS run_ahead;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT sum(x) FROM (SELECT 100 / v AS x FROM t WHERE v > 2 LIMIT 1000) s') ~ 'RunAhead' AS run_ahead;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT sum(v) FROM t WHERE v > (SELECT count(*) FROM t WHERE EXISTS (SELECT FROM t WHERE 100 / v > 1))') ~ 'RunAhead' AS run_ahead;
-- without workers, it reads no more
CREATE TEMP TABLE one AS SELECT 1 AS id;
ALTER TABLE one SET (parallel_workers = 0);
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT sum(v) FROM t WHERE EXISTS (SELECT FROM one)') ~ 'RunAhead' AS run_ahead;
DROP TABLE one;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT (SELECT max(v) FROM t)');
-- rows that may exceed temp_file_limit
SET temp_file_limit = '64kB';
SET work_mem = 64;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT * FROM t ORDER BY v');
RESET temp_file_limit;
RESET work_mem;
-- locked rows, other settings
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT * FROM t ORDER BY v FOR UPDATE');
SET temp_parallel.run_ahead = modify;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT sum(v) FROM t');
SET temp_parallel.run_ahead = on;
SET parallel_setup_cost = 1000000;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT sum(v) FROM t');
SET parallel_setup_cost = 0;

--
-- PL/pgSQL: one row
--
:run ('DECLARE n bigint; BEGIN SELECT sum(v) INTO n FROM t; RETURN NEXT n; END');
:run ('DECLARE n bigint; BEGIN SELECT sum(v) INTO STRICT n FROM t HAVING count(*) < 0; RETURN NEXT n; END');
:run ('DECLARE n bigint; BEGIN n := (SELECT sum(v) FROM t); RETURN NEXT n; END');
:run ('DECLARE n bigint := (SELECT sum(v) FROM t); BEGIN RETURN NEXT n + (SELECT count(*) FROM few); END');
:run ('BEGIN IF (SELECT count(*) FROM t) > 7 THEN RETURN NEXT ''more''; END IF; END');
:run ('DECLARE n bigint; BEGIN FOR i IN 1..5 LOOP SELECT sum(v) INTO n FROM t WHERE k = i; RETURN NEXT n; DELETE FROM t WHERE k = i + 1; END LOOP; END');
:run ('DECLARE n bigint; BEGIN EXECUTE ''SELECT sum(v) FROM t WHERE k < $1'' INTO n USING 7; RETURN NEXT n; END');
:run ('DECLARE n bigint; BEGIN SELECT generate_series(3, count(*)) INTO n FROM t LIMIT 1; RETURN NEXT n; END');
-- a volatile function that writes
:run ('DECLARE n bigint; BEGIN SELECT pg_temp.counts(sum(v)::int) INTO n FROM t; n := (SELECT pg_temp.counts(sum(v)::int) FROM t); RETURN NEXT n; RETURN NEXT count(*) FROM log; END');
-- not one: only by the first-row rule
:run ('DECLARE n bigint; m bigint; BEGIN SELECT k, sum(v) INTO n, m FROM t GROUP BY k ORDER BY sum(v) DESC, k; RETURN NEXT n || '' '' || m; END');
:run ('DECLARE r record; BEGIN SELECT * INTO r FROM t ORDER BY v, id; RETURN NEXT r::text; END');
:run ('DECLARE r record; BEGIN SELECT * INTO STRICT r FROM t ORDER BY v, id; RETURN NEXT r::text; END');
:run ('DECLARE r record; BEGIN SELECT * INTO STRICT r FROM t WHERE k = 60 ORDER BY v, id; RETURN NEXT r::text; END');
:run ('DECLARE n bigint; m bigint; BEGIN SELECT v, count(*) INTO n, m FROM t GROUP BY v; RETURN NEXT m; END');
:run ('DECLARE r record; BEGIN SELECT * INTO r FROM t WHERE k = 7; RETURN NEXT r IS NULL; END');
:run ('DECLARE n bigint; BEGIN n := (SELECT v FROM t ORDER BY v); RETURN NEXT n; END');

--
-- PL/pgSQL: loops, and what their bodies do
--
:run ('DECLARE r record; BEGIN FOR r IN SELECT k, count(*), sum(v) FROM t GROUP BY k LOOP RETURN NEXT r::text; END LOOP; END', true);
:run ('DECLARE r record; BEGIN FOR r IN SELECT id, v FROM t ORDER BY v, id LOOP RETURN NEXT r::text; END LOOP; END');
:run ('DECLARE r record; BEGIN FOR r IN SELECT id, v FROM t ORDER BY v, id LOOP RETURN NEXT r::text; EXIT; END LOOP; END');
:run ('DECLARE r record; BEGIN FOR r IN SELECT id, row_number() OVER (PARTITION BY k ORDER BY v, id) n FROM t LOOP RETURN NEXT r::text; EXIT WHEN r.n = 3; END LOOP; END');
-- changes of the table that is read
:run ('DECLARE r record; BEGIN FOR r IN SELECT k, count(*) c FROM t GROUP BY k ORDER BY k LOOP
	INSERT INTO t SELECT i, r.k + 1, i FROM generate_series(1, 9) i; DELETE FROM t WHERE k = r.k + 2;
	RETURN NEXT r::text; END LOOP;
	FOR r IN SELECT k, count(*) FROM t GROUP BY k ORDER BY k LOOP RETURN NEXT r::text; END LOOP; END');
-- workers of its own, another loop
:run ('DECLARE r record; n bigint; BEGIN FOR r IN SELECT k, count(*) c FROM t GROUP BY k ORDER BY k LOOP
	SELECT sum(v) INTO n FROM t WHERE k < r.k; PERFORM sum(v) FROM t; UPDATE few SET k = k + n WHERE id = r.k;
	RETURN NEXT r || '' '' || n; END LOOP; END');
:run ('DECLARE r record; q record; BEGIN FOR r IN SELECT k, count(*) c FROM t GROUP BY k ORDER BY k LOOP
	FOR q IN SELECT few.k, sum(t.v) FROM t JOIN few USING (id) WHERE t.k <= r.k GROUP BY few.k ORDER BY few.k LOOP RETURN NEXT r || '' '' || q; END LOOP; END LOOP; END');
-- settings that change between fetches
SET my.setting = 'first';
:run ('DECLARE r record; BEGIN FOR r IN SELECT k, to_char(to_timestamp(sum(v)), ''HH24'') h, current_setting(''my.setting'', true) FROM t GROUP BY k ORDER BY k, count(*) LOOP
	PERFORM set_config(''my.setting'', r.k::text, true), set_config(''timezone'', CASE WHEN r.k > 5 THEN ''UTC'' ELSE ''Asia/Tokyo'' END, true);
	RETURN NEXT r::text; END LOOP; END', true);
-- exception blocks around, within, and errors in workers
:run ('DECLARE r record; BEGIN FOR r IN SELECT k, count(*) c FROM t GROUP BY k ORDER BY k LOOP
	BEGIN INSERT INTO few VALUES (r.k, 1 / (r.k % 2)); EXCEPTION WHEN division_by_zero THEN RETURN NEXT r::text; END; END LOOP; END');
:run ('DECLARE n bigint; BEGIN FOR i IN 1..3 LOOP BEGIN SELECT sum(100 / (v % 5)) INTO n FROM t; EXCEPTION WHEN division_by_zero THEN RETURN NEXT SQLERRM; END; END LOOP;
	SELECT sum(v) INTO n FROM t; RETURN NEXT n; END');
:run ('DECLARE n bigint; BEGIN BEGIN SELECT sum(v) INTO n FROM t; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN RETURN NEXT n; END; INSERT INTO t VALUES (1, 1, 1); SELECT sum(v) INTO n FROM t; RETURN NEXT n; END');
-- errors of rows that are not fetched: of a group, or HAVING
SET enable_hashagg = off;
\set fails 'DECLARE r record; BEGIN FOR r IN SELECT k, 100 / (count(*) - 7) q FROM t GROUP BY k LOOP RETURN NEXT r::text; EXIT WHEN r.k = 3; END LOOP; RETURN NEXT 2; FOR r IN SELECT k, 100 / (count(*) - 7) q FROM t GROUP BY k LOOP RETURN NEXT r::text; END LOOP; EXCEPTION WHEN division_by_zero THEN RETURN NEXT 1; END'
:run (:'fails');
:run (replace(:'fails', 'GROUP BY k', 'GROUP BY k HAVING 100 / (count(*) - 7) > 0'));
-- or of what the aggregation reads
:run (replace(:'fails', '100 / (count(*) - 7)', 'sum(100 / (k - 59))'));
-- or of a sorted row, by a function that is expensive
CREATE FUNCTION pg_temp.fails(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000 AS 'BEGIN RETURN 100 / (i - 59); END';
:run ('DECLARE r record; c CURSOR FOR SELECT k, pg_temp.fails(k) q FROM t ORDER BY k, v; BEGIN FOR r IN c LOOP RETURN NEXT r::text; EXIT; END LOOP; RETURN NEXT 2; FOR r IN c LOOP RETURN NEXT r::text; END LOOP; EXCEPTION WHEN division_by_zero THEN RETURN NEXT 1; END');
RESET enable_hashagg;
-- which core computes before it sorts, too
:run ('DECLARE r record; BEGIN FOR r IN SELECT k, 100 / (count(*) - 7) q FROM t GROUP BY k ORDER BY count(*) DESC LOOP RETURN NEXT r::text; EXIT; END LOOP; END');

--
-- PL/pgSQL: other ways
--
:run ('BEGIN RETURN QUERY SELECT k || '' '' || count(*) FROM t GROUP BY k; END', true);
:run ('DECLARE c CURSOR (n int) FOR SELECT k, count(*) FROM t WHERE k < n GROUP BY k ORDER BY k; r record; BEGIN OPEN c (9);
	LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; RETURN NEXT r::text; INSERT INTO t VALUES (0, r.k + 1, 0); END LOOP; CLOSE c;
	OPEN c (3); MOVE FORWARD 2 FROM c; FETCH c INTO r; RETURN NEXT r::text; END');
:run ('DECLARE c SCROLL CURSOR FOR SELECT id, v FROM t ORDER BY v, id; r record; BEGIN OPEN c;
	FETCH LAST FROM c INTO r; RETURN NEXT r::text; FETCH PRIOR FROM c INTO r; RETURN NEXT r::text; FETCH ABSOLUTE 5 FROM c INTO r; RETURN NEXT r::text; FETCH FIRST FROM c INTO r; RETURN NEXT r::text;
	FETCH PRIOR FROM c INTO r; RETURN NEXT r::text; FETCH RELATIVE 2 FROM c INTO r; RETURN NEXT r::text; FETCH ABSOLUTE -2 FROM c INTO r; RETURN NEXT r::text; END');
-- workers only go forward
SET enable_mergejoin = off;
SET enable_nestloop = off;
:run ('DECLARE c SCROLL CURSOR FOR SELECT few.k, sum(v) FROM t JOIN few USING (id) GROUP BY few.k ORDER BY sum(v); r record; BEGIN OPEN c;
	FETCH ABSOLUTE 3 FROM c INTO r; RETURN NEXT r::text; FETCH PRIOR FROM c INTO r; RETURN NEXT r::text; END');
RESET enable_mergejoin;
RESET enable_nestloop;
:run ('DECLARE c refcursor; r record; BEGIN OPEN c FOR SELECT k, max(s) FROM t GROUP BY k ORDER BY k; FETCH c INTO r; RETURN NEXT r::text;
	BEGIN FETCH c INTO r; RETURN NEXT r::text; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; FETCH c INTO r; RETURN NEXT r::text; END');
-- first fetched in a subtransaction that is rolled back
:run ('DECLARE c refcursor; r record; BEGIN OPEN c FOR SELECT k, max(s) FROM t GROUP BY k ORDER BY k;
	BEGIN FETCH c INTO r; INSERT INTO t VALUES (1, 0, 1, ''z''); RETURN NEXT r::text; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; FETCH c INTO r; RETURN NEXT r::text; END');
-- the table is dropped or emptied before, and between
:run ('DECLARE c refcursor; r record; BEGIN OPEN c FOR SELECT k, max(s) FROM t GROUP BY k ORDER BY k; DROP TABLE t; FETCH c INTO r; RETURN NEXT r::text; END');
:run ('DECLARE c refcursor; r record; BEGIN OPEN c FOR SELECT k, max(s) FROM t GROUP BY k ORDER BY k; FETCH c INTO r; TRUNCATE t; FETCH c INTO r; RETURN NEXT r::text; END');
:run ('DECLARE c refcursor; r record; BEGIN OPEN c FOR SELECT k, max(s) FROM t GROUP BY k ORDER BY k; FETCH c INTO r; DELETE FROM t; FETCH c INTO r; RETURN NEXT r::text; CLOSE c; DROP TABLE t; END');
-- a cursor of SQL: FETCH 0, changes between fetches, WHERE CURRENT OF
:run ('DECLARE r record; n int; BEGIN EXECUTE ''DECLARE c CURSOR FOR SELECT k, count(*) FROM t GROUP BY k ORDER BY k''; INSERT INTO t VALUES (0, 0, 0);
	EXECUTE ''FETCH 0 FROM c''; EXECUTE ''FETCH 2 FROM c''; GET DIAGNOSTICS n = ROW_COUNT; RETURN NEXT n; INSERT INTO t SELECT 0, 3 FROM generate_series(1, 5);
	FOR r IN EXECUTE ''FETCH 2 FROM c'' LOOP RETURN NEXT r::text; END LOOP; FOR r IN EXECUTE ''FETCH ALL FROM c'' LOOP RETURN NEXT r::text; END LOOP; END');
:run ('DECLARE r record; BEGIN EXECUTE ''DECLARE c CURSOR FOR SELECT * FROM t ORDER BY v, id''; EXECUTE ''FETCH 1 FROM c'' INTO r; DELETE FROM t WHERE CURRENT OF c; RETURN NEXT r::text; END');
:run ('DECLARE r record; BEGIN FOR r IN SELECT * FROM t WHERE k = 3 LOOP EXIT WHEN r.id > 100; END LOOP; EXECUTE ''DECLARE c CURSOR FOR SELECT * FROM t''; EXECUTE ''FETCH 1 FROM c'' INTO r; DELETE FROM t WHERE CURRENT OF c; RETURN NEXT r::text; RETURN NEXT count(*) FROM t; END');
-- CTEs and subqueries that are used above and below
:run ('DECLARE r record; BEGIN FOR r IN WITH w AS MATERIALIZED (SELECT k, v FROM t WHERE v > 100) SELECT k, count(*), (SELECT count(*) FROM w) + k FROM (SELECT * FROM w LIMIT 50) q GROUP BY k ORDER BY k LOOP RETURN NEXT r::text; END LOOP; END');
:run ('DECLARE r record; BEGIN FOR r IN WITH w AS MATERIALIZED (SELECT k, v FROM t WHERE v > 100) SELECT a.k, count(*) FROM w a JOIN w b USING (k) GROUP BY a.k LOOP RETURN NEXT r::text; END LOOP; END', true);
:run ('DECLARE n bigint; BEGIN WITH w AS MATERIALIZED (SELECT k, v FROM t WHERE v % 50 = 7) SELECT count(*) + (SELECT count(*) FROM w) INTO n FROM (SELECT * FROM w LIMIT 50) q; RETURN NEXT n; END');
:run ('DECLARE r record; BEGIN FOR r IN SELECT k, count(*), (SELECT sum(v) FROM t) + k FROM t GROUP BY k HAVING sum(v) < (SELECT sum(v) FROM t) LOOP RETURN NEXT r::text; END LOOP; END', true);
:run ('DECLARE r record; BEGIN FOR r IN SELECT k, count(*), (SELECT count(*) FROM few WHERE few.k = t.k) FROM t GROUP BY k LOOP RETURN NEXT r::text; END LOOP; END', true);
:run ('DECLARE r record; BEGIN FOR r IN SELECT count(*) FROM t HAVING 3 IN (SELECT k FROM few) LOOP RETURN NEXT r::text; END LOOP; END');

--
-- SQL functions
--
CREATE FUNCTION pg_temp.total(n int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT sum(v) FROM t WHERE k < n';
CREATE FUNCTION pg_temp.totals() RETURNS SETOF text LANGUAGE sql AS 'SELECT k || '' '' || sum(v) FROM t GROUP BY k ORDER BY k';
CREATE FUNCTION pg_temp.sums() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT sum(v) FROM t GROUP BY k ORDER BY sum(v)';
CREATE FUNCTION pg_temp.times() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT sum(v) FROM t GROUP BY k HAVING max(clock_timestamp()) > now() ORDER BY sum(v)';
CREATE FUNCTION pg_temp.highest() RETURNS text LANGUAGE sql AS 'INSERT INTO t VALUES (0, 0, 1000000, ''highest''); SELECT s FROM t ORDER BY v DESC';
:run ('BEGIN RETURN NEXT pg_temp.total(7); FOR i IN 1..3 LOOP RETURN NEXT pg_temp.total(i); END LOOP; END');
:run ('BEGIN RETURN QUERY SELECT pg_temp.total(id) || '' '' || id FROM few WHERE id < 10; END', true);
:run ('BEGIN RETURN QUERY SELECT pg_temp.totals(); END');
:run ('BEGIN RETURN QUERY SELECT pg_temp.sums()::text; END');
:run ('BEGIN RETURN QUERY SELECT pg_temp.times()::text; END');
:run ('DECLARE r record; BEGIN FOR r IN SELECT pg_temp.sums() LOOP RETURN NEXT r::text; EXIT; END LOOP; END');
:run ('BEGIN RETURN NEXT pg_temp.highest(); RETURN NEXT count(*) FROM t; END');


--
-- Within other statements: parallel ones, and triggers of those that change the table
--
CREATE FUNCTION pg_temp.nested(i int) RETURNS text LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
DECLARE
	n bigint;
	r record;
BEGIN
	SELECT sum(v) INTO n FROM t WHERE k = i;
	FOR r IN SELECT k, count(*) c FROM few GROUP BY k ORDER BY k LOOP
		n := n * r.c;
	END LOOP;
	RETURN n + (SELECT max(v) FROM t);
END $$;
:run ('BEGIN RETURN QUERY SELECT k || '' '' || pg_temp.nested(k) FROM t WHERE k < 9 GROUP BY k; END', true);
:run ('DECLARE r record; BEGIN FOR r IN SELECT k, pg_temp.nested(k) FROM t WHERE k < 9 GROUP BY k ORDER BY k LOOP RETURN NEXT r::text; END LOOP; END');
CREATE FUNCTION pg_temp.on_insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	r record;
BEGIN
	SELECT sum(v) INTO n FROM t;
	FOR r IN SELECT k, count(*) c FROM t WHERE k < 3 GROUP BY k ORDER BY k LOOP
		n := n * 3 + r.c;
	END LOOP;
	NEW.s := n;
	RETURN NEW;
END $$;
CREATE TRIGGER on_insert BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION pg_temp.on_insert();
:run ('BEGIN INSERT INTO t SELECT i, i, i FROM generate_series(1, 5) i; RETURN QUERY SELECT s FROM t WHERE id < 6; END', true);
:run ('BEGIN INSERT INTO t SELECT id, k, v FROM t WHERE id < 6; RETURN QUERY SELECT s FROM t WHERE id < 6; END', true);
DROP TRIGGER on_insert ON t;
-- a value without a name for its type
:run ('DECLARE r record; BEGIN FOR r IN SELECT row(id, v) x FROM t ORDER BY v, id LOOP RETURN NEXT r.x::text; END LOOP; END');

--
-- Resources
--
SET work_mem = 64;
:run ('DECLARE r record; BEGIN FOR r IN SELECT id, v, s, repeat(s, 5) FROM t ORDER BY v, id LOOP RETURN NEXT r::text; END LOOP; END');
:run ('DECLARE c SCROLL CURSOR FOR SELECT id, v, s, repeat(s, 5) FROM t ORDER BY v, id; r record; BEGIN OPEN c; FETCH LAST FROM c INTO r; RETURN NEXT r::text; FOR i IN 1..200 LOOP FETCH PRIOR FROM c INTO r; RETURN NEXT r::text; END LOOP; END');
RESET work_mem;

--
-- Plans that are made for portions and run to the end, and the other way round
--
SET plan_cache_mode = force_generic_plan;
PREPARE total (int) AS SELECT sum(v) FROM t WHERE k < $1;
:run ('DECLARE n bigint; BEGIN FOR i IN 5..7 LOOP EXECUTE ''EXECUTE total('' || i || '')'' INTO n; RETURN NEXT n; END LOOP; END');
:run ('DECLARE n bigint; r record; BEGIN FOR i IN 1..3 LOOP
	FOR r IN SELECT k, sum(v) FROM t WHERE k < i GROUP BY k ORDER BY k LOOP RETURN NEXT r::text; INSERT INTO t VALUES (0, 0, 1); EXIT WHEN i = 2; END LOOP;
	SELECT sum(v) INTO n FROM t WHERE k < i; RETURN NEXT n; n := (SELECT count(*) FROM t WHERE k < i); RETURN NEXT n; END LOOP; END');
RESET plan_cache_mode;
-- in a STABLE function, which does not increment the command counter, called by statements
-- that have used it: the leader could not end an exception block, which catches that, too
-- (before 17, no process can in parallel mode), or run a command
DO $do$ BEGIN EXECUTE 'CREATE FUNCTION pg_temp.cast_safely(text) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$ BEGIN BEGIN RETURN $1::int; '
	|| CASE WHEN current_setting('server_version_num')::int >= 170000 THEN 'EXCEPTION WHEN OTHERS THEN RETURN 0; ' ELSE '' END || 'END; END $$'; END $do$;
CREATE FUNCTION pg_temp.command(int) RETURNS int LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$ BEGIN PERFORM FROM generate_series(1, 1); RETURN $1; END $$;
CREATE FUNCTION pg_temp.total(kind text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE n bigint;
BEGIN
	CASE kind
		WHEN 'into' THEN SELECT sum(pg_temp.cast_safely(v::text)) INTO n FROM t;
		WHEN 'value' THEN n := (SELECT sum(pg_temp.cast_safely(v::text)) FROM t);
		WHEN 'execute' THEN EXECUTE 'SELECT sum(pg_temp.cast_safely(v::text)) FROM t' INTO n;
		WHEN 'command' THEN EXECUTE 'SELECT sum(pg_temp.command(v)) FROM t' INTO n;
	END CASE;
	RETURN n;
END $$;
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT sum(pg_temp.cast_safely(v::text)) FROM t');
CREATE TEMP TABLE totals AS SELECT kind, pg_temp.total(kind) AS by_query, 0 AS by_insert, 0 AS by_update FROM unnest('{into,value,execute,command}'::text[]) kind;
INSERT INTO totals SELECT kind, by_query, pg_temp.total(kind), 0 FROM totals;
UPDATE totals SET by_update = pg_temp.total(kind);
SELECT * FROM totals ORDER BY kind, by_insert;
DROP TABLE totals;
-- without workers, after planning
:run ('DECLARE n bigint; r record; BEGIN FOR i IN 1..2 LOOP FOR r IN SELECT k, sum(v) FROM t GROUP BY k ORDER BY k LOOP RETURN NEXT r::text; END LOOP;
	SELECT sum(v) INTO n FROM t; RETURN NEXT n; SET LOCAL max_parallel_workers = 0; END LOOP; END');

--
-- In a session: cursors that outlive their transaction, and savepoints; first by core
--
\set SHOW_CONTEXT never
CREATE ROLE portions_user;
CREATE FUNCTION pg_temp.final(bigint) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$ BEGIN RETURN current_setting('portions.least'); END $$;
CREATE AGGREGATE pg_temp.reads_setting(int) (sfunc = int4_sum, stype = bigint, finalfunc = pg_temp.final, combinefunc = int8pl, initcond = '0', parallel = safe);
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT k, pg_temp.reads_setting(v) FROM t GROUP BY k');
SELECT pg_temp.nodes('DECLARE c CURSOR FOR SELECT k, sum(v) / (k - 5) FROM t GROUP BY k HAVING count(*) > 7 ORDER BY k');
SET temp_parallel.enabled = off;
\i sql/include/portions_session.sql
SET temp_parallel.enabled = on;
\set ECHO none
\i sql/include/portions_session.sql
\set ECHO all

DROP TABLE portions_p;
DROP OWNED BY portions_user;
DROP ROLE portions_user;
DROP EXTENSION temp_parallel;
