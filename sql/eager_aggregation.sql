--
-- Over clean temporary tables, the planner makes the plans that it makes over
-- permanent tables, with flush nodes.  Here for grouped joins: from 19 on, it may
-- aggregate rows before it joins them (eager aggregation), in workers, too.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
\i sql/include/cheap_workers.sql
\i sql/include/same.sql
SET temp_buffers = '64MB';

-- The same tables in two schemas, permanent and temporary.
CREATE SCHEMA eager;
CREATE FUNCTION pg_temp.create_tables(kind text, schema text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	name text;
BEGIN
	EXECUTE replace(replace($sql$
		CREATE @kind TABLE @schema.dim (id int PRIMARY KEY, name text);
		INSERT INTO @schema.dim SELECT g, 'n' || g % 7 FROM generate_series(1, 100) g;
		CREATE @kind TABLE @schema.fact (id int, dim int, v int);
		INSERT INTO @schema.fact SELECT g, 1 + g % 100, g FROM generate_series(1, 20000) g;
		CREATE INDEX fact_dim ON @schema.fact (dim);
		CREATE @kind TABLE @schema.other (dim int, w int);
		INSERT INTO @schema.other SELECT 1 + g % 100, g FROM generate_series(1, 2000) g;
		CREATE @kind TABLE @schema.parts (dim int, v int) PARTITION BY RANGE (dim);
		CREATE @kind TABLE @schema.parts1 PARTITION OF @schema.parts FOR VALUES FROM (1) TO (51);
		CREATE @kind TABLE @schema.parts2 PARTITION OF @schema.parts FOR VALUES FROM (51) TO (101);
		INSERT INTO @schema.parts SELECT 1 + g % 100, g FROM generate_series(1, 20000) g;
		CREATE @kind TABLE @schema.keys (id int, name text) PARTITION BY RANGE (id);
		CREATE @kind TABLE @schema.keys1 PARTITION OF @schema.keys FOR VALUES FROM (1) TO (51);
		CREATE @kind TABLE @schema.keys2 PARTITION OF @schema.keys FOR VALUES FROM (51) TO (101);
		INSERT INTO @schema.keys SELECT g, 'n' || g % 7 FROM generate_series(1, 100) g;
		$sql$, '@kind', kind), '@schema', schema);
END $$;
SELECT pg_temp.create_tables('', 'eager'), pg_temp.create_tables('TEMP', 'pg_temp');
VACUUM (ANALYZE) eager.dim, eager.fact, eager.other, eager.parts, eager.keys;
VACUUM (ANALYZE) pg_temp.dim, pg_temp.fact, pg_temp.other, pg_temp.parts, pg_temp.keys;

-- A query's plan over the tables in a schema, without flush nodes; and whether rows
-- are aggregated below a join.
CREATE FUNCTION pg_temp.plan(query text, schema text, OUT nodes text[], OUT eager bool)
LANGUAGE plpgsql AS $$
DECLARE
	line text;
	depth int;
	join_depth int;
BEGIN
	PERFORM set_config('search_path', schema || ', pg_temp', true);
	eager := false;
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		CONTINUE WHEN line ~ 'TempFlush';
		nodes := nodes || ltrim(line, ' ->');
		depth := length(substring(line FROM '^ *'));
		IF depth <= join_depth THEN
			join_depth := NULL;
		END IF;
		IF line ~ '->.* (Join|Nested Loop)' OR line ~ '^(Hash|Merge) Join|^Nested Loop' THEN
			join_depth := least(join_depth, depth);
		END IF;
		eager := eager OR (join_depth IS NOT NULL AND line ~ 'Partial .*Aggregate');
	END LOOP;
END $$;

-- Is the plan the same over both, with workers? Are rows of a table aggregated before
-- a join, as can be expected of this server? Is the answer the same? (Rows that differ
-- are printed.)
CREATE FUNCTION pg_temp.compare(query text, OUT same_plan bool, OUT in_workers bool,
	OUT eager_as_expected bool, OUT same_answer bool) LANGUAGE plpgsql AS $$
DECLARE
	rows text := 'SELECT string_agg(q::text, chr(10) ORDER BY q::text) FROM (' || query || ') q';
	permanent text[];
	temp text[];
	eager bool;
	expected text;
	answer text;
BEGIN
	SELECT nodes INTO permanent FROM pg_temp.plan(query, 'eager');
	SELECT p.nodes, p.eager INTO temp, eager FROM pg_temp.plan(query, 'pg_temp') p;
	same_plan := permanent = temp;
	in_workers := array_to_string(temp, ' ') ~ 'Gather';
	eager_as_expected := eager = (current_setting('server_version_num')::int >= 190000);
	IF NOT same_plan OR NOT in_workers OR NOT eager_as_expected THEN
		RAISE NOTICE E'permanent:\n%\ntemporary:\n%', array_to_string(permanent, E'\n'), array_to_string(temp, E'\n');
	END IF;
	PERFORM set_config('search_path', 'eager, pg_temp', true);
	EXECUTE rows INTO expected;
	PERFORM set_config('search_path', 'pg_temp', true);
	EXECUTE rows INTO answer;
	same_answer := pg_temp.same('temporary', answer, expected);
END $$;
\set check 'SELECT * FROM pg_temp.compare'

SELECT pg_flush_local_buffers() IS NOT NULL AS clean;
-- two tables; three; groups that are no join keys
:check ('SELECT f.dim, sum(f.v), count(*) FROM fact f JOIN dim d ON d.id = f.dim GROUP BY f.dim');
:check ('SELECT d.name, sum(f.v), avg(f.v) FROM fact f JOIN dim d ON d.id = f.dim GROUP BY d.name');
:check ('SELECT o.w, sum(f.v), max(f.id) FROM fact f JOIN other o ON o.dim = f.dim GROUP BY o.w');
:check ('SELECT d.name, o.w, sum(f.v) FROM fact f JOIN dim d ON d.id = f.dim JOIN other o ON o.dim = d.id GROUP BY d.name, o.w');
SET enable_hashagg = off;
:check ('SELECT f.dim, sum(f.v), count(*) FROM fact f JOIN dim d ON d.id = f.dim GROUP BY f.dim');
RESET enable_hashagg;
-- the genetic join search
SET geqo_threshold = 2;
:check ('SELECT d.name, o.w, sum(f.v) FROM fact f JOIN dim d ON d.id = f.dim JOIN other o ON o.dim = d.id GROUP BY d.name, o.w');
RESET geqo_threshold;
-- partitions; joined, and grouped, one by one
:check ('SELECT p.dim, sum(p.v) FROM parts p JOIN dim d ON d.id = p.dim GROUP BY p.dim');
SET enable_partitionwise_join = on;
:check ('SELECT p.dim, sum(p.v) FROM parts p JOIN keys k ON k.id = p.dim GROUP BY p.dim');
:check ('SELECT k.name, sum(p.v) FROM parts p JOIN keys k ON k.id = p.dim GROUP BY k.name');
SET enable_partitionwise_aggregate = on;
:check ('SELECT p.dim, sum(p.v) FROM parts p JOIN keys k ON k.id = p.dim GROUP BY p.dim');
:check ('SELECT k.name, sum(p.v) FROM parts p JOIN keys k ON k.id = p.dim GROUP BY k.name');

DROP TABLE eager.dim, eager.fact, eager.other, eager.parts, eager.keys;
DROP SCHEMA eager;
DROP EXTENSION temp_parallel;
