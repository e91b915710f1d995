--
-- Statements: which kinds of statement read temporary tables in workers
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/cheap_workers.sql

-- The number of dirty pages of a table.  A flush for workers makes it 0.
CREATE FUNCTION pg_temp.flush_cost(regclass, OUT dirty_pages int, OUT flush_cost float8, OUT account float8)
AS 'temp_parallel', 'temp_parallel_flush_cost' LANGUAGE C;
CREATE FUNCTION pg_temp.dirty(regclass) RETURNS int LANGUAGE sql
AS 'SELECT dirty_pages FROM pg_temp.flush_cost($1)';

CREATE TEMP TABLE t (id int, g int, v int);
INSERT INTO t SELECT i, i % 10, i FROM generate_series(1, 3000) i;
ANALYZE t;
CREATE TABLE statements_p (id int, v int) WITH (autovacuum_enabled = off);
INSERT INTO statements_p SELECT i, i FROM generate_series(1, 2000) i;
ANALYZE statements_p;

-- Every page is changed before each statement.  Was the table flushed after it?
\set change 'UPDATE t SET v = v + 1;'
\set flushed 'SELECT pg_temp.dirty(''t'') = 0 AS flushed;'
:change
:flushed

--
-- Statements that core runs in parallel
--
-- SELECT; the second one has nothing to write
SELECT count(*), sum(v) FROM t;
:flushed
SELECT pg_temp.dirty('t');
SELECT count(*), sum(v) FROM t;

-- EXPLAIN alone writes nothing
:change
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
:flushed

-- CREATE TABLE AS and SELECT INTO; the new table is not flushed
CREATE TABLE statements_ctas AS SELECT id, v FROM t WHERE g < 5;
:flushed
SELECT count(*), sum(v) FROM statements_ctas;
DROP TABLE statements_ctas;
:change
CREATE UNLOGGED TABLE statements_ctas AS SELECT id, v FROM t WHERE g < 5;
:flushed
SELECT count(*), sum(v) FROM statements_ctas;
DROP TABLE statements_ctas;
:change
CREATE TEMP TABLE ctas AS SELECT id, v FROM t WHERE g < 5;
:flushed
SELECT pg_temp.dirty('ctas') > 0 AS ctas_dirty;
SELECT count(*), sum(v) FROM ctas;
DROP TABLE ctas;
:change
SELECT id, v INTO statements_into FROM t WHERE g < 5;
:flushed
SELECT count(*), sum(v) FROM statements_into;
DROP TABLE statements_into;
:change
SELECT id, v INTO TEMP tinto FROM t WHERE g < 5;
:flushed
SELECT count(*), sum(v) FROM tinto;
DROP TABLE tinto;
:change
CREATE TABLE statements_ctas AS SELECT id, v FROM t WITH NO DATA;
:flushed
DROP TABLE statements_ctas;
EXPLAIN (COSTS OFF) CREATE TABLE statements_ctas AS SELECT id, v FROM t;

-- as in core, a materialized view cannot use a temporary table
\set VERBOSITY sqlstate
CREATE MATERIALIZED VIEW statements_mv AS SELECT * FROM t;
\set VERBOSITY default

-- COPY of a query
COPY (SELECT g, count(*), sum(v) FROM t GROUP BY g ORDER BY g) TO STDOUT;
:flushed
:change
COPY (SELECT * FROM t ORDER BY v LIMIT 2) TO STDOUT;
:flushed

-- a prepared statement: with a custom plan, with a generic one
PREPARE q(int) AS SELECT count(*), sum(v) FROM t WHERE v % 10 < $1;
:change
EXECUTE q(5);
:flushed
SET plan_cache_mode = force_generic_plan;
:change
EXECUTE q(5);
:flushed
EXPLAIN (COSTS OFF) EXECUTE q(5);
EXECUTE q(7);
-- the cached plan is run over the empty table, and over the old one after
-- ROLLBACK
BEGIN;
TRUNCATE t;
EXECUTE q(7);
ROLLBACK;
EXECUTE q(7);
-- the cached plan is run after rows were inserted and deleted
INSERT INTO t SELECT i, i % 10, i FROM generate_series(1, 100) i;
EXECUTE q(100);
:flushed
DELETE FROM t WHERE ctid IN (SELECT max(ctid) FROM t GROUP BY id HAVING count(*) > 1);
EXECUTE q(100);
:flushed
-- CREATE TABLE AS EXECUTE
:change
CREATE TEMP TABLE ctas AS EXECUTE q(5);
:flushed
TABLE ctas;
DROP TABLE ctas;
-- the extension is off
SET temp_parallel.enabled = off;
:change
EXPLAIN (COSTS OFF) SELECT count(*) FROM t;
SELECT count(*) FROM t;
:flushed
RESET temp_parallel.enabled;
DEALLOCATE q;
RESET plan_cache_mode;
-- the table of a cached plan is replaced by another one
PREPARE q AS SELECT count(*), sum(v) FROM t;
EXECUTE q;
ALTER TABLE t RENAME TO told;
CREATE TEMP TABLE t AS SELECT id, g, v FROM told WHERE id <= 1000;
ANALYZE t;
EXECUTE q;
:flushed
DROP TABLE t;
ALTER TABLE told RENAME TO t;
EXECUTE q;
DEALLOCATE q;

-- statements of functions that read all rows
CREATE FUNCTION pg_temp.plpgsql_assign() RETURNS bigint LANGUAGE plpgsql AS
$$ DECLARE s bigint; BEGIN s := (SELECT sum(v) FROM t WHERE g < 8); RETURN s; END $$;
CREATE FUNCTION pg_temp.plpgsql_perform() RETURNS boolean LANGUAGE plpgsql AS
$$ BEGIN PERFORM id, v FROM t WHERE g < 8; RETURN FOUND; END $$;
CREATE FUNCTION pg_temp.plpgsql_query() RETURNS SETOF int LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY SELECT v FROM t WHERE g < 8; END $$;
CREATE FUNCTION pg_temp.plpgsql_query_execute() RETURNS SETOF int LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY EXECUTE 'SELECT v FROM t WHERE g < $1' USING 8; END $$;
CREATE FUNCTION pg_temp.sql_function() RETURNS SETOF int LANGUAGE sql VOLATILE AS
$$ SELECT v FROM t WHERE g < 8 $$;
:change
SELECT pg_temp.plpgsql_perform();
:flushed
:change
SELECT count(*), sum(q) FROM pg_temp.plpgsql_query() q;
:flushed
:change
SELECT count(*), sum(q) FROM pg_temp.plpgsql_query_execute() q;
:flushed
-- whether these two use workers differs between server versions
:change
SELECT pg_temp.plpgsql_assign();
SELECT count(*), sum(q) FROM pg_temp.sql_function() q;

-- a loop that changes the table and reads it in parallel
:change
DO $$
DECLARE s bigint; first bigint;
BEGIN
	SELECT sum(v) INTO first FROM t;
	FOR i IN 1 .. 20 LOOP
		UPDATE t SET v = v + 1 WHERE id % 20 = i % 20;
		DELETE FROM t WHERE id = 3000 - i;
		INSERT INTO t VALUES (3000 - i, 0, 3000 - i);
		SELECT sum(v), count(*) INTO s FROM t;
	END LOOP;
	RAISE INFO '% more than before', s - first;
END $$;
SET temp_parallel.enabled = off;
SELECT count(*), sum(v), sum(g) FROM t;
RESET temp_parallel.enabled;
SELECT count(*), sum(v), sum(g) FROM t;

-- a query that reads t in workers and whose leader calls a function with
-- another such query
CREATE FUNCTION pg_temp.nested(x int) RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED AS
$$ DECLARE s bigint; BEGIN SELECT sum(v) INTO s FROM t WHERE g = x; RETURN s; END $$;
:change
SELECT g, sum(v), pg_temp.nested(g) FROM t GROUP BY g ORDER BY g;
:flushed

--
-- Statements that core does not run in parallel: nothing is written for them
--
:change
BEGIN;
-- a cursor
DECLARE c CURSOR FOR SELECT id, v FROM t;
MOVE 2 IN c;
EXPLAIN (COSTS OFF) DECLARE c2 CURSOR FOR SELECT id, v FROM t;
CLOSE c;
-- row locks
SELECT count(*) FROM (SELECT id FROM t FOR UPDATE) x;
EXPLAIN (COSTS OFF) SELECT id FROM t FOR SHARE;
:flushed
COMMIT;
-- writing statements; a SELECT with one inside
:change
EXPLAIN (COSTS OFF) INSERT INTO statements_p SELECT id, v FROM t;
INSERT INTO statements_p SELECT id, v FROM t;
UPDATE statements_p SET v = t.v FROM t WHERE t.id = statements_p.id;
DELETE FROM statements_p USING t WHERE t.id = statements_p.id AND t.id > 1000;
WITH d AS (DELETE FROM statements_p WHERE id = 1 RETURNING id) SELECT count(*) > 0 AS deleted FROM t JOIN d USING (id);
:flushed
-- PL/pgSQL fetches some of the rows, at most two for INTO: that of one row is run
-- ahead
CREATE FUNCTION pg_temp.plpgsql_into() RETURNS bigint LANGUAGE plpgsql AS
$$ DECLARE s bigint; BEGIN SELECT sum(v) INTO s FROM t WHERE g < 8; RETURN s; END $$;
SELECT pg_temp.plpgsql_into();
:flushed
-- 50 for a loop
:change
CREATE FUNCTION pg_temp.plpgsql_loop() RETURNS bigint LANGUAGE plpgsql AS
$$ DECLARE r record; s bigint := 0; BEGIN FOR r IN SELECT v FROM t WHERE g < 8 LOOP s := s + r.v; END LOOP; RETURN s; END $$;
SELECT pg_temp.plpgsql_loop() > 0 AS looped;
:flushed
-- a serial plan, as no workers are allowed
SET max_parallel_workers_per_gather = 0;
SELECT count(*) FROM t;
:flushed
SET max_parallel_workers_per_gather = 2;

-- a parallel plan that gets no workers: flushed, and run by the leader alone
SET max_parallel_workers = 0;
SELECT count(*), sum(v) FROM t;
:flushed
RESET max_parallel_workers;

-- A statement that is nested deeply is planned as without the module, or refused with
-- core's error for the depth of the stack.  Otherwise a walk over the plan could take
-- time exponential in its depth, or a crash.
CREATE TEMP TABLE deep AS SELECT i AS id FROM generate_series(1, 3) i;
ANALYZE deep;
CREATE FUNCTION pg_temp.nested(depth int, enabled text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM set_config('temp_parallel.enabled', enabled, true);
	EXECUTE 'SELECT count(*) FROM (SELECT id FROM deep' ||
			repeat(' EXCEPT ALL SELECT -id FROM deep', depth) || ') s' INTO answer;
	RETURN answer;
EXCEPTION WHEN statement_too_complex THEN
	RETURN SQLERRM;
END $$;
SET max_stack_depth = '500kB';
SET statement_timeout = '2min';
SELECT depth, pg_temp.nested(depth, 'on'), pg_temp.nested(depth, 'off') FROM (VALUES (20), (2000)) v (depth);
SELECT * FROM (VALUES (80), (160)) v (depth), LATERAL
	(SELECT pg_temp.nested(depth, 'on') AS with_module, pg_temp.nested(depth, 'off') AS without OFFSET 0) n
WHERE with_module <> without;
RESET statement_timeout;
RESET max_stack_depth;

DROP TABLE statements_p;
