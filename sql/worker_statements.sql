--
-- Statements that are run in a worker, by functions wrongly marked PARALLEL SAFE.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\set SHOW_CONTEXT never
\i sql/include/cheap_workers.sql
SET parallel_leader_participation = off;

CREATE TEMP TABLE t AS SELECT g AS id FROM generate_series(1, 1000) g;
CREATE TEMP TABLE other AS SELECT g AS id FROM generate_series(1, 1000) g;
CREATE INDEX ON other (id);
ANALYZE t;
ANALYZE other;

-- A temporary table cannot be read: core's own error and SQLSTATE, although the
-- worker has local buffers.
CREATE FUNCTION reads_other(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT count(*) FROM other WHERE id = i); END $$;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE reads_other(id) = 1;
SELECT count(*) FROM t WHERE reads_other(id) = 1;
\set VERBOSITY sqlstate
SELECT count(*) FROM t WHERE reads_other(id) = 1;

-- A domain with a constraint that is not parallel safe, in what a cast or a function makes: core
-- does not look for it, and the user has marked nothing wrongly. No worker is launched, and
-- the constraint may write.
CREATE TEMP TABLE log (n int);
INSERT INTO log VALUES (0);
CREATE FUNCTION notes() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN UPDATE log SET n = n + 1; RETURN true; END $$;
CREATE DOMAIN noted AS int CHECK (notes());
CREATE TYPE noted_pair AS (a noted, b int);
-- notes() is not to have workers for its UPDATE
SET temp_parallel.run_ahead = insert;
CREATE EXTENSION temp_parallel;
SELECT workers_launched FROM temp_parallel_stats() \gset before_
SELECT sum((('(' || id || ',1)')::noted_pair).a) FROM t;
SELECT sum((jsonb_populate_record(NULL::noted_pair, jsonb_build_object('a', id))).a) FROM t;
SELECT sum(a) FROM (SELECT max(id)::noted AS a FROM t GROUP BY id % 2) s;
SELECT count(*) FROM t WHERE id IN (SELECT unnest(('{' || o.id || '}')::noted[]) FROM other o);
CREATE TEMP TABLE has_noted AS SELECT id, 1::noted AS n FROM t WHERE id <= 10;
SELECT workers_launched - :before_workers_launched AS launched FROM temp_parallel_stats();
SELECT n FROM log;
-- Nor is there parallel mode without workers.
SELECT set_config(name, 'on', false) AS debugging FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
SELECT sum((('(' || id || ',1)')::noted_pair).a) FROM t;
SELECT set_config(name, 'off', false) AS debugging FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
-- in a row of which the query does not name the type
SELECT count(jsonb_populate_record(ROW(h.n, t.id), jsonb_build_object('f1', t.id))) FROM t JOIN has_noted h USING (id);
-- a type that is only named, where the server has such functions
DO $$
DECLARE
	test text;
	n bigint;
BEGIN
	FOREACH test IN ARRAY ARRAY['pg_input_is_valid(id::text, ''noted'')',
		'jsonb_populate_record_valid(NULL::noted_pair, jsonb_build_object(''a'', id))'] LOOP
		IF to_regproc(split_part(test, '(', 1)) IS NOT NULL THEN
			EXECUTE format('SELECT count(*) FROM t WHERE %s', test) INTO n;
			ASSERT n = (SELECT count(*) FROM other), test;
		END IF;
	END LOOP;
END $$;
DROP TABLE has_noted;
SELECT workers_launched FROM temp_parallel_stats() \gset before_
-- what the constraint calls is not looked at, as that may be in other functions
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
SELECT sum((('{' || id || '}')::positive[])[1]) FROM t;
SELECT workers_launched - :before_workers_launched AS launched FROM temp_parallel_stats();
-- nor are the columns of a type: they may get one while a plan is cached
CREATE TYPE plain_pair AS (a int, b int);
SELECT sum((('(' || id || ',1)')::plain_pair).a) FROM t;
SELECT workers_launched - :before_workers_launched AS launched FROM temp_parallel_stats();
-- a cast to a domain without constraints, a value from a table, and a function whose label is for
-- the type that it returns do not keep workers away
CREATE DOMAIN free AS int;
SELECT sum(id::free) FROM t;
SELECT workers_launched - :before_workers_launched AS launched FROM temp_parallel_stats();
CREATE FUNCTION makes_pair(i int) RETURNS plain_pair LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$ BEGIN RETURN ROW(i, 1)::plain_pair; END $$;
SELECT sum((makes_pair(id)).a) FROM t;
SELECT workers_launched - :before_workers_launched AS launched FROM temp_parallel_stats();
CREATE TEMP TABLE checked AS SELECT id::positive AS p FROM t;
SELECT max(p) FROM checked;
SELECT workers_launched - :before_workers_launched AS launched FROM temp_parallel_stats();
-- A plan is made anew if the domain gets a constraint.
PREPARE free AS SELECT sum(id::free) FROM t;
EXECUTE free;
SELECT workers_launched - :before_workers_launched AS launched FROM temp_parallel_stats();
ALTER DOMAIN free ADD CHECK (notes());
EXECUTE free;
SELECT workers_launched - :before_workers_launched AS launched FROM temp_parallel_stats();
DEALLOCATE free;
DROP TABLE checked;
DROP EXTENSION temp_parallel;
DROP FUNCTION makes_pair(int);
DROP TYPE noted_pair, plain_pair;
DROP DOMAIN noted, positive, free;
DROP FUNCTION notes();

-- Not even the table that the worker is scanning.
CREATE FUNCTION reads_t(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM t' INTO n; RETURN n; END $$;
SELECT count(*) FROM t WHERE reads_t(id) = 1;

-- A sequence, and a view over the table.
CREATE TEMP SEQUENCE s;
CREATE FUNCTION reads_sequence(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT last_value FROM s); END $$;
SELECT count(*) FROM t WHERE reads_sequence(id) = 1;
-- The functions that show a sequence's state return NULL for another session's.
CREATE FUNCTION shows_sequence(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN coalesce(pg_sequence_last_value('s'), 0); END $$;
SELECT nextval('s');
SELECT count(*) FROM t WHERE shows_sequence(id) >= 0;
SELECT nextval('s');
-- Its size is right.
CREATE FUNCTION shows_size(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN pg_relation_size('s') / current_setting('block_size')::int; END $$;
SELECT count(*), sum(shows_size(id)) FROM t;
CREATE TEMP VIEW v AS SELECT id FROM other;
CREATE FUNCTION reads_view(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT count(*) FROM v WHERE id = i); END $$;
SELECT count(*) FROM t WHERE reads_view(id) = 1;

-- A temporary table that inherits from a permanent one, which is all that the
-- function names. The planner silently leaves out those of other sessions.
CREATE TABLE parent (id int);
CREATE FUNCTION reads_parent(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT count(*) FROM parent WHERE id = i); END $$;
CREATE FUNCTION reads_parent_sql(i int) RETURNS bigint LANGUAGE sql PARALLEL SAFE SET work_mem = '4MB' AS
$$ SELECT count(*) FROM (SELECT id FROM parent UNION ALL SELECT 0) x WHERE id = i $$;
SELECT count(*) FROM t WHERE reads_parent(id) = 0;
CREATE TABLE middle () INHERITS (parent);
CREATE TEMP TABLE child () INHERITS (middle);
INSERT INTO child SELECT * FROM t;
SELECT count(*) FROM t WHERE reads_parent(id) = 0;
SELECT count(*) FROM t WHERE reads_parent_sql(id) = 0;
-- a function that the planner inlines names it
CREATE FUNCTION parents() RETURNS SETOF parent LANGUAGE sql STABLE AS 'SELECT * FROM parent';
CREATE FUNCTION reads_parents(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT count(*) FROM parents() WHERE id = i); END $$;
SELECT count(*) FROM t WHERE reads_parents(id) = 0;
CREATE OR REPLACE FUNCTION reads_parent(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT count(*) FROM ONLY parent WHERE id = i); END $$;
SELECT count(*) FROM t WHERE reads_parent(id) = 0;
DROP TABLE child, middle;
SELECT count(*) FROM t WHERE reads_parent_sql(id) = 0;
SELECT count(*) FROM t WHERE reads_parents(id) = 0;
DROP FUNCTION reads_parent, reads_parent_sql, reads_parents, parents;
DROP TABLE parent;

-- A partitioned table, of which the planner expects the partitions to be the session's, too.
CREATE TEMP TABLE parted (id int) PARTITION BY LIST (id);
CREATE TEMP TABLE part PARTITION OF parted DEFAULT;
CREATE FUNCTION reads_parted(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT count(*) FROM parted WHERE id = i); END $$;
SELECT count(*) FROM t WHERE reads_parted(id) = 0;
CREATE FUNCTION pg_temp.all_parts() RETURNS SETOF parted LANGUAGE sql STABLE AS 'SELECT * FROM parted';
CREATE OR REPLACE FUNCTION reads_parted(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT count(*) FROM pg_temp.all_parts() WHERE id = i); END $$;
SELECT count(*) FROM t WHERE reads_parted(id) = 0;
DROP FUNCTION reads_parted, pg_temp.all_parts;
DROP TABLE parted;

-- COPY of a table, which does not go through the planner; and of a query.
CREATE FUNCTION copies(i int, what text) RETURNS bool LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN EXECUTE format('COPY %s TO %L', what, '/dev/null'); RETURN true; END $$;
SELECT count(*) FROM t WHERE copies(id, 'other');
SELECT count(*) FROM t WHERE copies(id, 't');
SELECT count(*) FROM t WHERE copies(id, '(SELECT * FROM other)');
\set VERBOSITY terse
SELECT count(*) FROM t WHERE copies(id, 'other');
-- of a permanent table, it works
SELECT count(*) FROM t WHERE copies(id, 'pg_am') AND id < 5;
-- EXPLAIN, cursors
CREATE FUNCTION explains(i int) RETURNS bool LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN EXECUTE 'EXPLAIN ANALYZE SELECT * FROM other'; RETURN true; END $$;
SELECT count(*) FROM t WHERE explains(id);
CREATE FUNCTION fetches(i int) RETURNS bool LANGUAGE plpgsql PARALLEL SAFE AS
$$ DECLARE c CURSOR FOR SELECT * FROM other; r record; BEGIN OPEN c; FETCH c INTO r; CLOSE c; RETURN true; END $$;
SELECT count(*) FROM t WHERE fetches(id);
\set VERBOSITY default

-- Nor is it read by comparisons: core lets workers sort by an operator whatever the label of
-- its function, which may read other tables, or hide the worker's error. There must be no
-- worker, and the order is that of the table.
CREATE TEMP TABLE positions WITH (parallel_workers = 0) AS SELECT g AS id, 9 - g AS pos FROM generate_series(0, 9) g;
CREATE FUNCTION cmp(a int, b int) RETURNS int LANGUAGE plpgsql STABLE AS
$$ BEGIN RETURN (SELECT btint4cmp(x.pos, y.pos) FROM positions x, positions y WHERE x.id = a AND y.id = b);
EXCEPTION WHEN OTHERS THEN RETURN btint4cmp(a, b); END $$;
CREATE FUNCTION lt(int, int) RETURNS bool LANGUAGE sql PARALLEL SAFE AS 'SELECT cmp($1, $2) < 0';
CREATE FUNCTION eq(int, int) RETURNS bool LANGUAGE sql PARALLEL SAFE AS 'SELECT cmp($1, $2) = 0';
CREATE FUNCTION gt(int, int) RETURNS bool LANGUAGE sql PARALLEL SAFE AS 'SELECT cmp($1, $2) > 0';
CREATE OPERATOR <<< (LEFTARG = int, RIGHTARG = int, FUNCTION = lt, COMMUTATOR = >>>);
CREATE OPERATOR >>> (LEFTARG = int, RIGHTARG = int, FUNCTION = gt, COMMUTATOR = <<<);
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = eq, COMMUTATOR = ===);
CREATE OPERATOR CLASS by_position FOR TYPE int USING btree AS
	OPERATOR 1 <<<, OPERATOR 3 ===, OPERATOR 5 >>>, FUNCTION 1 cmp(int, int);
EXPLAIN (COSTS OFF) SELECT id % 10 AS digit FROM t ORDER BY id % 10 USING <<<;
SELECT digit, min(n), max(n)
  FROM (SELECT digit, row_number() OVER () AS n FROM (SELECT id % 10 AS digit FROM t ORDER BY id % 10 USING <<<) a) b
 GROUP BY digit ORDER BY min(n) LIMIT 3;
-- also below a node that calls other user code
CREATE FUNCTION same(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RETURN $1; END';
EXPLAIN (COSTS OFF)
INSERT INTO positions SELECT 10, same(digit) FROM (SELECT id % 10 AS digit FROM t ORDER BY id % 10 USING <<< LIMIT 100) s;

-- A permanent table can be read.
CREATE FUNCTION reads_catalog(i int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
$$ BEGIN RETURN (SELECT count(*) FROM pg_class WHERE relname = 'pg_class'); END $$;
SELECT count(*) FROM t WHERE reads_catalog(id) = 1;

-- A worker that scans no temporary table has no local buffers: core's own check
-- raises the error.
CREATE TABLE permanent AS SELECT g AS id FROM generate_series(1, 1000) g;
ALTER TABLE permanent SET (parallel_workers = 2);
ANALYZE permanent;
SELECT count(*) FROM permanent WHERE reads_other(id) = 1;

-- In the leader the same function works.
SET max_parallel_workers_per_gather = 0;
SELECT reads_other(id) FROM t WHERE id = 7;
SELECT count(*) FROM t WHERE reads_other(id) = 1;
RESET max_parallel_workers_per_gather;

-- The session can use the table.
SELECT count(*), sum(id) FROM t;

DROP FUNCTION copies, explains, fetches, reads_other, reads_t, reads_sequence, shows_sequence,
	shows_size, reads_view, reads_catalog;
SET client_min_messages = warning;
DROP OPERATOR FAMILY by_position USING btree CASCADE;
DROP FUNCTION cmp, lt, gt, eq, same CASCADE;
RESET client_min_messages;
DROP TABLE permanent, t, positions;
DROP TABLE other CASCADE;
DROP SEQUENCE s;
