--
-- Statements that have no workers because of their form, whatever they compute: EXPLAIN says so.
-- If it did not, nobody would know what to write instead.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';
\i sql/include/cheap_workers.sql
CREATE TEMP TABLE t AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 20000) g;
CREATE TEMP TABLE x (a bigint, b bigint);
CREATE TEMP TABLE y (a bigint);
CREATE TEMP TABLE few AS SELECT 1 AS id;
ANALYZE t, few;
-- The reasons that EXPLAIN gives for statement, one for each query that it is rewritten to.
CREATE FUNCTION pg_temp.reason(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
		IF line ~ '^(No Workers|Not Run Ahead|Not Analyzed):' THEN
			RETURN NEXT line;
		ELSIF line ~ 'Workers Planned' THEN
			RETURN NEXT 'workers';
		END IF;
	END LOOP;
END $$;

-- INSERT: subqueries in VALUES, in one row and in several. Written as a SELECT, they have workers.
SELECT pg_temp.reason('INSERT INTO x VALUES ((SELECT count(*) FROM t))');
SELECT pg_temp.reason('INSERT INTO x VALUES ((SELECT count(*) FROM t)), ((SELECT sum(id) FROM t))');
SELECT pg_temp.reason('INSERT INTO x SELECT count(*) FROM t');
SELECT pg_temp.reason('INSERT INTO x VALUES (generate_series(1, 3), (SELECT count(*) FROM t))');
-- A SELECT that workers would not make faster is not VALUES.
SET parallel_setup_cost = 1e9;
SELECT pg_temp.reason('INSERT INTO x SELECT (SELECT count(*) FROM t)');
SET parallel_setup_cost = 0;
-- without a table that is large enough, and without a subquery, there is nothing to say
SET min_parallel_table_scan_size = '1MB';
SELECT pg_temp.reason('INSERT INTO x VALUES ((SELECT count(*) FROM few))');
SET min_parallel_table_scan_size = 0;
SELECT pg_temp.reason('INSERT INTO x VALUES (1), (2)');

-- The INSERT that a rule also makes: of a SELECT, or joined to VALUES, it is like another.
CREATE RULE also AS ON INSERT TO x DO ALSO INSERT INTO y VALUES (NEW.a);
SELECT pg_temp.reason('INSERT INTO x SELECT k, sum(id) FROM t GROUP BY k');
CREATE OR REPLACE RULE also AS ON INSERT TO x DO ALSO INSERT INTO y VALUES ((SELECT count(*) FROM t));
SELECT pg_temp.reason('INSERT INTO x VALUES (1)');
CREATE OR REPLACE RULE also AS ON INSERT TO x DO ALSO INSERT INTO y SELECT t.id FROM t WHERE t.id = NEW.a;
SELECT pg_temp.reason('INSERT INTO x VALUES (1)');
CREATE OR REPLACE RULE also AS ON INSERT TO x DO ALSO INSERT INTO y VALUES (NEW.a), (NEW.b);
SELECT pg_temp.reason('INSERT INTO x SELECT k, sum(id) FROM t GROUP BY k');
SELECT pg_temp.reason('INSERT INTO x VALUES (1, 2), (3, 4)');
DROP RULE also ON x;

-- SELECT: row locks, of temporary and of permanent tables, and WITH that modifies data
SELECT pg_temp.reason('SELECT * FROM t FOR UPDATE');
SELECT pg_temp.reason('SELECT count(*) FROM (SELECT 1 FROM t FOR KEY SHARE) s');
SELECT pg_temp.reason('WITH w AS (INSERT INTO y VALUES (1) RETURNING a) SELECT count(*) FROM t, w');
-- of a small table alone, there is nothing to say
SET min_parallel_table_scan_size = '1MB';
SELECT pg_temp.reason('SELECT * FROM few FOR UPDATE');
SET min_parallel_table_scan_size = 0;

-- the module is off, or INSERT has no workers
SET temp_parallel.run_ahead = off;
SELECT pg_temp.reason('INSERT INTO x VALUES ((SELECT count(*) FROM t))');
RESET temp_parallel.run_ahead;
SET temp_parallel.enabled = off;
SELECT pg_temp.reason('SELECT * FROM t FOR UPDATE');
DROP TABLE t, x, y, few;
DROP EXTENSION temp_parallel;
