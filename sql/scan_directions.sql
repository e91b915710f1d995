--
-- Cursors that are fetched forwards and backwards across pages, in a phase in which workers
-- read the same table, and outside of it. The page loops of the read-only routine take over
-- a scan from core's wherever it is, and give it back: if they disagree about where the
-- scan is or where it ends, rows are lost or returned twice.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
CREATE EXTENSION temp_parallel;
\i sql/include/cheap_workers.sql
\i sql/include/nodes.sql
CREATE TEMP TABLE t (id int, k int, s text) WITH (parallel_workers = 2);
INSERT INTO t SELECT g, g % 97, repeat('x', 100) FROM generate_series(1, 6000) g;
DELETE FROM t WHERE id % 11 = 3;
CREATE INDEX t_id ON t (id);
CREATE INDEX t_k ON t (k);
ANALYZE t;

-- Moves the cursor c as told, e.g. {57,-3,1}: so many rows forwards or backwards; 0: to the end,
-- NULL: back to the beginning. Returns what it has fetched last in each move.
CREATE FUNCTION pg_temp.walk(steps int[]) RETURNS text LANGUAGE plpgsql PARALLEL RESTRICTED AS $$
DECLARE
	c refcursor := 'c';
	step int;
	row_id int;
	result text := '';
BEGIN
	FOREACH step IN ARRAY steps LOOP
		row_id := NULL;
		IF step IS NULL THEN
			MOVE BACKWARD ALL IN c;
		ELSIF step = 0 THEN
			MOVE FORWARD ALL IN c;
		ELSE
			FOR i IN 1 .. abs(step) LOOP
				IF step > 0 THEN
					FETCH NEXT FROM c INTO row_id;
				ELSE
					FETCH PRIOR FROM c INTO row_id;
				END IF;
			END LOOP;
		END IF;
		result := result || ' ' || coalesce(row_id::text, '-');
	END LOOP;
	RETURN result;
END $$;

-- Walks by a statement that has workers over the table.
CREATE FUNCTION pg_temp.in_phase(steps int[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
BEGIN
	SELECT workers_launched INTO before FROM temp_parallel_stats();
	RETURN QUERY SELECT pg_temp.walk(steps) FROM (SELECT count(*) AS n FROM t OFFSET 0) q WHERE n > 5000;
	IF (SELECT workers_launched = before FROM temp_parallel_stats()) THEN
		RETURN NEXT 'no workers';
	END IF;
END $$;

-- The cursor for query, planned with these settings off, is walked by each of walks in turn:
-- the first in a phase or not, then every second one, or all like the first.
CREATE FUNCTION pg_temp.walked(query text, switched_off text[], in_phase boolean, changing boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c refcursor := 'c';
	walk text;
	result text := '';
BEGIN
	PERFORM set_config(s, 'off', true) FROM unnest(switched_off) s;
	OPEN c SCROLL FOR EXECUTE query;
	PERFORM set_config(s, 'on', true) FROM unnest(switched_off) s;
	FOREACH walk IN ARRAY ARRAY[
		-- across a page, back and forth, at its first and its last row
		'{57}', '{1,-1,1,-1,1,-1,1,-1,1,-1,1,-1,1,-1,1,-1,1,-1,1,-1,1,-1,1,-1,1,-1,1,-1,1,-1,1,-1}',
		'{3,-7,12,-20,31,-2}', '{61,-61,61,-61,61,-61,61}', '{120,-119,118,-117,116}',
		-- over the end and back, over the beginning and back
		'{0,-1,-1,1,1,1,-1}', '{-70,70,1,-1}', '{0,-1,-60}', '{NULL,1,60,-3}', '{-80,1,-1,1,1}', '{200,-5}',
		'{NULL,0}', '{-1,-300}', '{7}', '{NULL,2}', '{0}', '{-2}'] LOOP
		IF in_phase THEN
			result := result || (SELECT string_agg(w, ', ') FROM pg_temp.in_phase(walk::int[]) w) || E'\n';
		ELSE
			result := result || pg_temp.walk(walk::int[]) || E'\n';
		END IF;
		in_phase := in_phase <> changing;
	END LOOP;
	CLOSE c;
	RETURN result;
END $$;

-- Are the walks over query the same as over its rows in a tuplestore, for which no scan is walked?
-- In some minor releases core's own walks over a TID range are wrong: there, those in
-- phases alone may be as core's, and others may be neither.
CREATE FUNCTION pg_temp.same(query text, VARIADIC switched_off text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	expected text;
	core text;
	got text;
BEGIN
	PERFORM set_config('temp_parallel.enabled', 'off', true);
	expected := pg_temp.walked(format('WITH q AS MATERIALIZED (%s) SELECT * FROM q', query), switched_off, false, false);
	core := pg_temp.walked(query, switched_off, false, false);
	PERFORM set_config('temp_parallel.enabled', 'on', true);
	IF core <> expected AND query !~ 'ctid >' THEN
		RETURN 'wrong without the module';
	END IF;
	got := pg_temp.walked(query, switched_off, true, false);
	IF got = expected AND core = expected THEN
		got := pg_temp.walked(query, switched_off, false, true);
	END IF;
	IF got = expected AND core = expected THEN
		got := pg_temp.walked(query, switched_off, true, true);
	END IF;
	IF got NOT IN (expected, core) THEN
		RETURN format(E'expected:\n%s---\n%s', expected, got);
	END IF;
	RETURN 'the same' || CASE WHEN expected ~ '\d' THEN '' ELSE ', no rows' END;
END $$;

-- The plan for query with these settings off.
CREATE FUNCTION pg_temp.plan(query text, VARIADIC switched_off text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config(s, 'off', true) FROM unnest(switched_off) s;
	result := pg_temp.nodes('DECLARE e SCROLL CURSOR FOR ' || query);
	PERFORM set_config(s, 'on', true) FROM unnest(switched_off) s;
	RETURN result;
END $$;
\set walk 'SELECT query, pg_temp.plan(query, VARIADIC off), pg_temp.same(query, VARIADIC off) AS answers FROM (VALUES'

-- a sequential scan
:walk ($q$SELECT id FROM t$q$, '{enable_material}'::text[])) v (query, off);

-- one with a condition
:walk ($q$SELECT id FROM t WHERE k < 40$q$, '{enable_indexscan,enable_bitmapscan}'::text[])) v (query, off);

-- a TID range, which begins and ends within a page, and has more blocks than are walked
:walk ($q$SELECT id FROM t WHERE ctid > '(20,5)' AND ctid < '(60,9)'$q$, '{enable_seqscan}'::text[])) v (query, off);

-- one that is shorter than the walks
:walk ($q$SELECT id FROM t WHERE ctid >= '(97,1)' AND ctid <= '(99,1)'$q$, '{enable_seqscan}'::text[])) v (query, off);

-- one to the end of the table, and over it
:walk ($q$SELECT id FROM t WHERE ctid > '(99,50)' AND ctid < '(4000,1)'$q$, '{enable_seqscan}'::text[])) v (query, off);

-- one of one block
:walk ($q$SELECT id FROM t WHERE ctid >= '(50,3)' AND ctid <= '(50,30)'$q$, '{enable_seqscan}'::text[])) v (query, off);

-- an empty one
:walk ($q$SELECT id FROM t WHERE ctid > '(50,3)' AND ctid < '(40,30)'$q$, '{enable_seqscan}'::text[])) v (query, off);

-- TIDs
:walk ($q$SELECT id FROM t WHERE ctid = ANY ('{"(0,1)","(0,2)","(40,7)","(40,9)","(90,1)","(90,5)","(98,3)"}')$q$, '{enable_seqscan}'::text[])) v (query, off);

-- an index scan
:walk ($q$SELECT id FROM t WHERE id BETWEEN 1000 AND 5000 AND k < 90 ORDER BY id$q$, '{enable_seqscan,enable_bitmapscan,enable_sort}'::text[])) v (query, off);

-- an index-only scan
:walk ($q$SELECT id FROM t WHERE id > 2000 ORDER BY id$q$, '{enable_seqscan,enable_bitmapscan,enable_sort}'::text[])) v (query, off);

-- a bitmap scan, which core cannot run backwards: its rows are kept
:walk ($q$SELECT id FROM t WHERE k BETWEEN 20 AND 60$q$, '{enable_seqscan,enable_indexscan}'::text[])) v (query, off);

-- the same of a sample
:walk ($q$SELECT id FROM t TABLESAMPLE BERNOULLI (50) REPEATABLE (1)$q$, '{enable_material}'::text[])) v (query, off);

DROP TABLE t;
DROP EXTENSION temp_parallel;
