--
-- CREATE TABLE AS over temporary tables: rows are inserted as they come, as without
-- workers, and functions see the new table grow. If something here differs, a table has
-- other rows than without the module, or a statement fails that does not without it.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/cheap_workers.sql

-- Runs a statement that creates the table "made" with the module off, and on, and
-- compares what the query then returns.
--   workers  were any launched, or the reason that EXPLAIN gives
CREATE FUNCTION pg_temp.creates(statement text, query text)
RETURNS TABLE (workers text, answer text, answers text)
LANGUAGE plpgsql SET temp_parallel.enabled = on AS
$$
DECLARE
	mode text;
	line text;
	results text[] := '{}';
BEGIN
	workers := 'none';
	FOREACH mode IN ARRAY ARRAY['off', 'on', 'explain'] LOOP
		BEGIN
			PERFORM set_config('temp_parallel.enabled',
							   CASE mode WHEN 'off' THEN 'off' ELSE 'on' END, true);
			DISCARD PLANS;
			IF mode = 'explain' THEN
				FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' ||
					statement
				LOOP
					IF line ~ 'Workers Launched: [1-9]' THEN
						workers := 'launched';
					ELSIF line ~ 'Flush Skipped' THEN
						workers := substring(line FROM 'Flush Skipped: (.*)');
					END IF;
				END LOOP;
			ELSE
				EXECUTE statement;
			END IF;
			EXECUTE query INTO answer;
			RAISE EXCEPTION USING ERRCODE = 'UNDO1';
		EXCEPTION
			WHEN SQLSTATE 'UNDO1' THEN NULL;
			WHEN OTHERS THEN answer := SQLSTATE || ' ' || SQLERRM;
		END;
		results := results || coalesce(answer, 'NULL');
	END LOOP;
	answers := CASE WHEN results[1] = ALL (results) THEN 'same' ELSE results::text END;
	RETURN NEXT;
END
$$;

CREATE TEMP TABLE a AS SELECT g AS id, repeat('x', 200) AS s FROM generate_series(1, 20000) g;
ANALYZE a;

-- Rows are inserted in parallel mode: nothing looks.
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS SELECT id, s FROM a WHERE id % 3 = 0',
	'SELECT (count(*), sum(id), min(s) = max(s)) FROM made');
-- Also into a table that other sessions see.
SELECT * FROM pg_temp.creates('CREATE TABLE made AS SELECT id, s FROM a WHERE id % 3 = 0',
	'SELECT (count(*), sum(id)) FROM made');
-- Volatile functions of core that do not look at tables.
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS SELECT id, random() AS r, clock_timestamp() AS t FROM a',
	'SELECT (count(*), sum(id)) FROM made');

-- The size of the new table: all of it would be 0, if its rows were inserted later.
SELECT * FROM pg_temp.creates(
	$$ CREATE TEMP TABLE made AS SELECT id, s, pg_relation_size(to_regclass('made' || left(s, 0))) AS n FROM a $$,
	'SELECT count(DISTINCT n) > 9 FROM made');
-- The number of its rows.
CREATE FUNCTION pg_temp.nrows(safe boolean) RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED AS
	$$ DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM made' INTO n; RETURN n; END $$;
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS SELECT id, pg_temp.nrows(true) AS n FROM a WHERE id % 1000 = 0',
	'SELECT (count(*), min(n), max(n)) FROM made');
-- In a qualification.
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS SELECT id FROM a WHERE id % 1000 = 0 AND pg_temp.nrows(true) < 5',
	'SELECT (count(*), sum(id)) FROM made');
-- In a subquery, and in a function that is inlined.
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS SELECT id, (SELECT pg_temp.nrows(id > 0)) AS n FROM a WHERE id % 1000 = 0',
	'SELECT (count(*), min(n), max(n)) FROM made');
CREATE FUNCTION pg_temp.inlined(i int) RETURNS bigint LANGUAGE sql PARALLEL RESTRICTED AS
	$$ SELECT i + pg_temp.nrows(true) $$;
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS SELECT id, pg_temp.inlined(id) AS n FROM a WHERE id % 1000 = 0',
	'SELECT (count(*), sum(n)) FROM made');
-- In the constraint of a domain inside another type.
CREATE FUNCTION pg_temp.room() RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE AS
	$$ BEGIN RETURN to_regclass('made') IS NULL OR pg_temp.nrows(true) < 5; END $$;
CREATE DOMAIN pg_temp.few AS int CHECK (VALUE >= 0 AND pg_temp.room());
CREATE TYPE pg_temp.holder AS (few pg_temp.few);
SELECT * FROM pg_temp.creates($$ CREATE TEMP TABLE made AS
	SELECT (('(' || id || ')')::pg_temp.holder).few AS n FROM a WHERE id % 1000 = 0 $$,
	'SELECT count(*) FROM made');
-- In an aggregate.
CREATE FUNCTION pg_temp.add(bigint, int) RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED AS
	$$ BEGIN RETURN $1 + pg_temp.nrows(true); END $$;
CREATE AGGREGATE pg_temp.added(int) (SFUNC = pg_temp.add, STYPE = bigint, INITCOND = 0, PARALLEL = RESTRICTED);
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS SELECT id / 5000 AS k, pg_temp.added(id) AS n FROM a WHERE id % 100 = 0 GROUP BY 1',
	'SELECT (count(*), count(DISTINCT n) > 0) FROM made');

-- A prepared statement is planned before anyone knows that its rows are inserted.
PREPARE looks AS SELECT id, pg_temp.nrows(true) AS n FROM a WHERE id % 1000 = 0;
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS EXECUTE looks',
	'SELECT (count(*), min(n), max(n)) FROM made');
PREPARE plain AS SELECT id FROM a WHERE id % 1000 = 0;
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS EXECUTE plain',
	'SELECT (count(*), sum(id)) FROM made');

-- SELECT INTO is the same statement.
SELECT id, pg_temp.nrows(true) AS n INTO TEMP made FROM a WHERE id % 1000 = 0;
SELECT count(*), min(n), max(n) FROM made;
DROP TABLE made;

-- From 17 on, the end of an exception block fails while rows are inserted in parallel
-- mode, the block catches that, and the function returns NULL.
CREATE FUNCTION pg_temp.caught(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS
	$$ BEGIN BEGIN RETURN i; EXCEPTION WHEN OTHERS THEN RETURN NULL; END; END $$;
SELECT * FROM pg_temp.creates(CASE WHEN current_setting('server_version_num')::int < 170000
		THEN 'CREATE TEMP TABLE made AS SELECT id FROM a'
		ELSE 'CREATE TEMP TABLE made AS SELECT pg_temp.caught(id) AS id FROM a' END,
	'SELECT (count(*), count(id), sum(id)) FROM made');

-- A function that is not volatile, but calls one that runs a statement: while rows are inserted as
-- they come, that would fail, as it begins a command in parallel mode.
CREATE TEMP TABLE rate AS SELECT g AS k, g / 10.0 AS r FROM generate_series(0, 99) g;
CREATE FUNCTION pg_temp.helper(i int) RETURNS numeric LANGUAGE plpgsql AS
	$$ DECLARE v numeric; BEGIN SELECT r INTO v FROM rate WHERE k = i; RETURN v; END $$;
CREATE FUNCTION pg_temp.get_rate(i int) RETURNS numeric LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS
	$$ BEGIN RETURN pg_temp.helper(i); END $$;
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS SELECT id, pg_temp.get_rate(id % 100) AS r FROM a WHERE id % 50 < 3',
	'SELECT (count(*), sum(r)) FROM made');
PREPARE rates AS SELECT id, pg_temp.get_rate(id % 100) AS r FROM a WHERE id % 50 < 3;
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS EXECUTE rates', 'SELECT (count(*), sum(r)) FROM made');
-- A materialized view, which reads a temporary table by a function that is inlined: when it is made,
-- and when it is filled again.
CREATE FUNCTION rows_of_a() RETURNS TABLE (id int) LANGUAGE sql STABLE PARALLEL SAFE AS
	$$ SELECT id FROM pg_temp.a WHERE id % 50 < 3 $$;
CREATE FUNCTION rate(i int) RETURNS numeric LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS
	$$ BEGIN RETURN pg_temp.helper(i); END $$;
SELECT * FROM pg_temp.creates('CREATE MATERIALIZED VIEW made AS SELECT id, rate(id % 100) AS r FROM rows_of_a()',
	'SELECT (count(*), sum(r)) FROM made');
CREATE EXTENSION temp_parallel;
CREATE MATERIALIZED VIEW again AS SELECT id, rate(id % 100) AS r FROM rows_of_a() WITH NO DATA;
SELECT workers_launched AS before FROM temp_parallel_stats() \gset
REFRESH MATERIALIZED VIEW again;
SELECT count(*), sum(r) FROM again;
SELECT workers_launched > :before AS launched FROM temp_parallel_stats();
DROP MATERIALIZED VIEW again;
DROP FUNCTION rows_of_a, rate;
DROP EXTENSION temp_parallel;

--
-- temp_file_limit: what works without the module works with it
--
CREATE TEMP TABLE target (id int, s text);
CREATE FUNCTION pg_temp.stable(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS
	$$ BEGIN RETURN i; END $$;
SET work_mem = '64kB';
-- Inserted as they come, so the limit does not matter.
SET temp_file_limit = '1MB';
SELECT * FROM pg_temp.creates('CREATE TEMP TABLE made AS SELECT id, s FROM a WHERE s <> $$$$',
	'SELECT (count(*), sum(id)) FROM made');
-- Kept, as functions are called: there are no workers.
SELECT answers FROM pg_temp.creates('CREATE TEMP TABLE made AS SELECT pg_temp.stable(id) AS id, s FROM a WHERE s <> $$$$',
	'SELECT (count(*), sum(id)) FROM made');
-- The rows of an INSERT are kept: none, either.
EXPLAIN (COSTS OFF) INSERT INTO target SELECT id, s FROM a WHERE s <> '';
INSERT INTO target SELECT id, s FROM a WHERE s <> '';
SELECT count(*), sum(id) FROM target;
-- As many as fit.
EXPLAIN (COSTS OFF) INSERT INTO target SELECT id, s FROM a WHERE id < 1000;
-- Memory does not count.
SET work_mem = '64MB';
EXPLAIN (COSTS OFF) INSERT INTO target SELECT id, s FROM a WHERE s <> '';
RESET temp_file_limit;

-- The cost of keeping rows, spilled pages included, is part of the choice: with it, workers
-- save too little here. Memory costs less.
SET parallel_tuple_cost = 0.2;
EXPLAIN (COSTS OFF) INSERT INTO target SELECT id, s FROM a WHERE s <> '';
SET work_mem = '64kB';
EXPLAIN (COSTS OFF) INSERT INTO target SELECT id, s FROM a WHERE s <> '';
