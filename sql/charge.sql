--
-- Every plan whose workers read temporary tables pays for the flush, whatever its
-- Gathers are over.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_tuple_cost = 0.001;
SET jit = off;

CREATE FUNCTION pg_temp.expensive(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT
PARALLEL SAFE COST 10000 AS 'BEGIN RETURN x; END';
CREATE FUNCTION pg_temp.restricted(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT
PARALLEL RESTRICTED AS 'BEGIN RETURN x; END';
CREATE TEMP TABLE t (id int, v int, pad text);
INSERT INTO t SELECT i, i % 100, i || repeat('x', 80) FROM generate_series(1, 20000) i;
CREATE INDEX t_id ON t (id);
CREATE INDEX t_v ON t (v);
CREATE TEMP TABLE u (id int, v int, pad text);
INSERT INTO u SELECT * FROM t WHERE id % 4 = 0;
CREATE INDEX u_id ON u (id);
CREATE TEMP TABLE pt (id int, v int, pad text) PARTITION BY RANGE (id);
CREATE TEMP TABLE pt1 PARTITION OF pt FOR VALUES FROM (1) TO (10001);
CREATE TEMP TABLE pt2 PARTITION OF pt DEFAULT;
INSERT INTO pt SELECT * FROM t;
CREATE INDEX pt_id ON pt (id);
ANALYZE t, u, pt;

-- In these queries, @ stands for a number of rows.
CREATE TEMP TABLE query (n serial, query text);
INSERT INTO query (query) VALUES
	('SELECT * FROM t WHERE id <= @'),
	('SELECT count(*), sum(v) FROM t WHERE id <= @'),
	('SELECT * FROM t WHERE id <= @ AND pg_temp.expensive(v) > 0'),
	('SELECT id, pg_temp.expensive(v) FROM t WHERE id <= @'),
	('SELECT sum(pg_temp.expensive(v)) FROM t WHERE id <= @'),
	('SELECT v, count(*) FROM t WHERE id <= @ GROUP BY v HAVING sum(pg_temp.expensive(v)) > 0'),
	('SELECT * FROM t WHERE id <= @ ORDER BY pad'),
	('SELECT * FROM t WHERE id <= @ ORDER BY pg_temp.expensive(v), pad LIMIT 5'),
	('SELECT * FROM t WHERE id <= @ AND pg_temp.expensive(v) < 0 ORDER BY id LIMIT 5'),
	('SELECT v, count(*) FROM t WHERE id <= @ GROUP BY v'),
	('SELECT pad, count(*) FROM t WHERE id <= @ GROUP BY pad ORDER BY 2'),
	('SELECT DISTINCT pad FROM t WHERE id <= @'),
	('SELECT count(DISTINCT pad) FROM t WHERE id <= @'),
	('SELECT v, rank() OVER (ORDER BY pg_temp.expensive(v)) FROM t WHERE id <= @'),
	('SELECT generate_series(1, v), pg_temp.expensive(v) FROM t WHERE id <= @'),
	('SELECT pg_temp.expensive(generate_series(1, v)) FROM t WHERE id <= @'),
	('SELECT count(*) FROM t JOIN u USING (id) WHERE t.id <= @'),
	('SELECT * FROM t JOIN u USING (v) WHERE t.id <= @ AND u.id <= @'),
	('SELECT * FROM t JOIN u ON t.id = u.v WHERE u.id <= @ AND pg_temp.expensive(t.v + u.v) > 1'),
	('SELECT * FROM t LEFT JOIN u USING (id) WHERE t.id <= @ ORDER BY u.pad, t.pad'),
	('SELECT * FROM t WHERE id <= @ AND EXISTS (SELECT FROM u WHERE u.v = t.v AND pg_temp.expensive(u.id) > 7)'),
	('SELECT * FROM t WHERE id <= @ AND v > (SELECT avg(pg_temp.expensive(v)) FROM u WHERE id <= @)'),
	-- (19rc1 fails to plan expensive expressions in the target list of a SubPlan, over
	-- permanent tables too)
	('SELECT * FROM t WHERE id <= @ AND v NOT IN (SELECT v FROM u WHERE id <= @ AND pg_temp.expensive(v) > 0)'),
	('SELECT * FROM (SELECT id, sum(v) AS s FROM t WHERE id <= @ GROUP BY id LIMIT 1000) a JOIN u USING (id)'),
	('SELECT * FROM t WHERE id <= @ ORDER BY v'),
	-- joins in the leader only
	('SELECT * FROM t JOIN u ON t.id = u.id AND pg_temp.restricted(t.v + u.v) >= 0 WHERE t.id <= @ AND pg_temp.expensive(t.v) > 0'),
	('SELECT * FROM t JOIN u ON t.pad = u.pad AND pg_temp.restricted(t.v + u.v) >= 0 WHERE t.id <= @ ORDER BY t.pad'),
	('SELECT count(*), sum(v) FROM pt WHERE id <= @'),
	('SELECT * FROM pt WHERE id <= @ ORDER BY pad'),
	('SELECT pad FROM t WHERE id <= @ UNION SELECT pad FROM u WHERE id <= @'),
	('SELECT pg_temp.expensive(v) FROM t WHERE id <= @ UNION ALL SELECT v FROM u WHERE id <= @'),
	('SELECT v FROM t WHERE id <= @ UNION ALL (SELECT v FROM u WHERE id <= @ UNION SELECT pg_temp.expensive(id) FROM pt WHERE id <= @)'),
	('SELECT v FROM t WHERE id <= @ EXCEPT SELECT pg_temp.expensive(v) FROM u WHERE id <= @');

CREATE FUNCTION pg_temp.is_parallel(query text, setup_cost float8, page_cost float8)
RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
	answer bool := false;
BEGIN
	PERFORM set_config('parallel_setup_cost', setup_cost::text, true),
			set_config('temp_parallel.write_temp_page_cost', page_cost::text, true),
			set_config('temp_parallel.buffer_scan_cost', page_cost::text, true);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		answer := answer OR line LIKE '%Gather%';
	END LOOP;
	RETURN answer;
END $$;

-- Each query with few rows and with all, and two values of parallel_setup_cost. If a flush
-- costs nothing, workers run each query; if it costs more than anything else, none. A plan whose
-- flush, or the flush of one of its tables, is not counted would have workers nevertheless.
CREATE TEMP TABLE planned AS
SELECT n, query, nrows, setup_cost,
	   pg_temp.is_parallel(replace(query, '@', nrows::text), setup_cost, 0) AS free,
	   pg_temp.is_parallel(replace(query, '@', nrows::text), setup_cost, 1e9) AS prohibitive
  FROM query, unnest(ARRAY[100, 20000]) AS nrows, unnest(ARRAY[0, 100]) AS setup_cost;
SELECT query, nrows, setup_cost FROM planned WHERE prohibitive ORDER BY n, nrows, setup_cost;
SELECT query AS never_parallel FROM planned GROUP BY n, query HAVING NOT bool_or(free) ORDER BY n;

-- Workers aggregate partitions completely.
SET enable_partitionwise_aggregate = on;
SELECT pg_temp.is_parallel(q, 700, 0) AS free, pg_temp.is_parallel(q, 700, 1e9) AS prohibitive
  FROM (VALUES ('SELECT id FROM pt WHERE id <= 100 OR id > 19900 GROUP BY id HAVING pg_temp.expensive(count(*)::int) > 0 ORDER BY id')) AS query (q);
RESET enable_partitionwise_aggregate;
