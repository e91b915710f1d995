--
-- Workers that are launched again with another bound on the number of rows.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/cheap_workers.sql
\i sql/include/explain.sql
SET parallel_leader_participation = off;

CREATE TEMP TABLE t (id int PRIMARY KEY, k int);
INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 5000) g;
CREATE TEMP TABLE o AS SELECT g AS id FROM generate_series(1, 8) g;
ANALYZE t;
ANALYZE o;

-- An OFFSET that grows. Core passes the bound of the first launch to the
-- workers of later ones, too, where a top-N sort would keep too few rows: from
-- the second row on, the result would be wrong.
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT pg_temp.explain($$
SELECT o.id, (SELECT id FROM t WHERE k = 3 ORDER BY id LIMIT 1 OFFSET o.id) FROM o ORDER BY 1
$$);
SELECT o.id, (SELECT id FROM t WHERE k = 3 ORDER BY id LIMIT 1 OFFSET o.id) FROM o ORDER BY 1;

-- A LIMIT that grows, shrinks, and is NULL.
SELECT v.n, s.* FROM (VALUES (1, 2::bigint), (2, 7), (3, NULL), (4, 3), (5, 0), (6, 400)) v (n, l),
	LATERAL (SELECT count(*), sum(id), max(id) FROM (SELECT id FROM t WHERE k = 3 ORDER BY id LIMIT v.l) x) s ORDER BY 1;

-- Without a sort, a worker returns as many rows as the bound says.
SELECT v.n, s.count FROM (VALUES (1, 1), (2, 3000), (3, 4999), (4, 2)) v (n, l),
	LATERAL (SELECT count(*) FROM (SELECT id FROM t LIMIT v.l) x) s ORDER BY 1;
SELECT v.n, s.count FROM (VALUES (1, 1), (2, 300), (3, 480), (4, 2)) v (n, l),
	LATERAL (SELECT count(*) FROM (SELECT id FROM t WHERE k = 3 LIMIT v.l) x) s ORDER BY 1;

DROP TABLE t, o;
