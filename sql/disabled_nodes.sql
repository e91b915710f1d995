--
-- Disabled nodes, which EXPLAIN marks from 18 on. A flush node must neither
-- hide the mark of a node nor make EXPLAIN mark the nodes above it.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/cheap_workers.sql

CREATE TEMP TABLE t (id int, v int);
INSERT INTO t SELECT i, i % 100 FROM generate_series(1, 3000) i;
ANALYZE t;
CREATE TABLE disabled_nodes_p (id int, v int) WITH (autovacuum_enabled = off);
INSERT INTO disabled_nodes_p SELECT i, i % 100 FROM generate_series(1, 3000) i;
ANALYZE disabled_nodes_p;

-- Compares the plans of a query, in which @ stands for the table, over the
-- temporary table t and over its permanent twin. They must not differ except
-- for the flush node; if they do, they are printed.
CREATE FUNCTION pg_temp.same_nodes_disabled(query text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
	line text;
	flushed boolean := false;
	temp_plan text := '';
	twin_plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(query, '@', 't') LOOP
		IF line LIKE '%(TempFlush)%' THEN
			flushed := true;
		ELSE
			temp_plan := temp_plan || ltrim(line) || E'\n';
		END IF;
	END LOOP;
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(query, '@', 'disabled_nodes_p') LOOP
		twin_plan := twin_plan || ltrim(replace(line, 'disabled_nodes_p', 't')) || E'\n';
	END LOOP;
	IF temp_plan = twin_plan AND
		(flushed OR current_setting('server_version_num')::int < 180000) THEN
		RETURN true;
	END IF;
	RAISE NOTICE E'% is not\n%', temp_plan, twin_plan;
	RETURN false;
END
$$;

-- one disabled node, the child of the flush node; two; another one above it; in
-- each child of an Append; below a Subquery Scan
SET enable_seqscan = off;
SELECT pg_temp.same_nodes_disabled('SELECT count(*) FROM @');
SELECT pg_temp.same_nodes_disabled('SELECT * FROM @ a JOIN @ b USING (id)');
SET enable_sort = off;
SELECT pg_temp.same_nodes_disabled('SELECT * FROM @ ORDER BY v');
SELECT pg_temp.same_nodes_disabled('SELECT v, count(*) FROM @ GROUP BY v ORDER BY v');
RESET enable_sort;
SELECT pg_temp.same_nodes_disabled('SELECT id FROM @ UNION ALL SELECT v FROM @');
SELECT pg_temp.same_nodes_disabled('SELECT n FROM (SELECT id + v AS n FROM @ OFFSET 0) s WHERE n > 5');

-- workers execute such a plan
SELECT pg_temp.same_nodes_disabled('SELECT count(*), sum(v) FROM @');
SELECT count(*), sum(v) FROM t;
PREPARE q AS SELECT count(*), sum(v) FROM t;
SET plan_cache_mode = force_generic_plan;
EXECUTE q;
EXECUTE q;
RESET plan_cache_mode;

RESET enable_seqscan;

DROP TABLE disabled_nodes_p;
