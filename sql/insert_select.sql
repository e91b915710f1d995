--
-- INSERT INTO a temporary table ... SELECT, with the SELECT in parallel.  If
-- something here fails, rows are lost, inserted twice or wrong, or workers read
-- what the leader is writing.
--
\pset format unaligned \pset footer off
CREATE EXTENSION temp_parallel;
LOAD 'temp_parallel';
\i sql/include/changes.sql
\i sql/include/nodes.sql
\set run 'SELECT * FROM pg_temp.changes'

CREATE TABLE insert_p (id int, k int, s text) WITH (autovacuum_enabled = off);
INSERT INTO insert_p SELECT i, i % 10, 'p' || i FROM generate_series(1, 3000) i;
CREATE TEMP TABLE a (id int, k int, s text);
INSERT INTO a SELECT i, i % 10, 'a' || i FROM generate_series(1, 3000) i;
ANALYZE insert_p, a;
CREATE TEMP TABLE t (id int, k bigint, s text DEFAULT 'none');

--
-- What is parallel
--
-- over a permanent table alone, without a flush
EXPLAIN (COSTS OFF) INSERT INTO t SELECT id, k, s FROM insert_p WHERE k = 3;
:run ('INSERT INTO t SELECT id, k, s FROM insert_p WHERE k = 3', 'SELECT * FROM t');
-- over a temporary table
EXPLAIN (COSTS OFF) INSERT INTO t SELECT id, k, s FROM a WHERE k = 3;
:run ('INSERT INTO t SELECT id, k, s FROM a WHERE k = 3', 'SELECT * FROM t');
-- aggregates, joins, LIMIT, subqueries
EXPLAIN (COSTS OFF) INSERT INTO t SELECT k, count(*), NULL::text FROM insert_p GROUP BY k;
:run ('INSERT INTO t SELECT k, count(*) FROM insert_p GROUP BY k', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT id, insert_p.k, a.s FROM insert_p JOIN a USING (id) WHERE a.k < 5', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT id, k, s FROM a ORDER BY id DESC LIMIT 7', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT id, (SELECT sum(id) FROM a WHERE k = 1), s FROM insert_p WHERE k = 3', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT id, k, s FROM insert_p p WHERE EXISTS (SELECT FROM a WHERE a.id = p.id AND a.k = 2)', 'SELECT * FROM t');
-- set operations, which the planner has looked at before it knows that workers
-- are allowed
SELECT pg_temp.nodes('INSERT INTO t SELECT id, k, s FROM a WHERE k = 3 UNION ALL SELECT id, k, s FROM insert_p WHERE k = 4');
:run ('INSERT INTO t SELECT id, k, s FROM a WHERE k = 3 UNION ALL SELECT id, k, s FROM insert_p WHERE k = 4', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT k, count(*) FROM a GROUP BY k UNION ALL SELECT k, sum(id) FROM insert_p GROUP BY k', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT id, k, s FROM (SELECT * FROM a WHERE k = 3 UNION ALL SELECT * FROM insert_p WHERE k = 4) q WHERE id % 2 = 0', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT k, id FROM a UNION SELECT k, id FROM insert_p', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT k, id FROM a INTERSECT SELECT k, id FROM insert_p WHERE id < 100', 'SELECT * FROM t');
-- WITH, above and below INSERT
:run ('WITH q AS (SELECT k, count(*) AS n FROM insert_p GROUP BY k) INSERT INTO t SELECT * FROM q', 'SELECT * FROM t');
:run ('INSERT INTO t WITH q AS MATERIALIZED (SELECT k, count(*) AS n FROM a GROUP BY k) SELECT * FROM q UNION ALL SELECT k, -n FROM q', 'SELECT * FROM t');
-- column lists and defaults
:run ('INSERT INTO t (k, id) SELECT k, id FROM a', 'SELECT * FROM t');
-- into the leader's own list of what it inserts: RETURNING, in order
BEGIN;
INSERT INTO t SELECT id, k, s FROM a WHERE id < 6 ORDER BY id RETURNING id * 2 AS twice, s, tableoid::regclass AS t, ctid IS NULL AS nowhere;
ROLLBACK;
-- through a view
CREATE TEMP VIEW v AS SELECT id, k, s FROM t WHERE k < 5 WITH CHECK OPTION;
:run ('INSERT INTO v SELECT id, k, s FROM a WHERE k = 3', 'SELECT * FROM t');
:run ('INSERT INTO v SELECT id, k, s FROM a WHERE k IN (3, 7)', 'SELECT * FROM t');
DROP VIEW v;

-- the settings
SET temp_parallel.run_ahead = off;
SELECT pg_temp.nodes('INSERT INTO t SELECT id, k, s FROM insert_p WHERE k = 3');
RESET temp_parallel.run_ahead;
SET temp_parallel.enabled = off;
SELECT pg_temp.nodes('INSERT INTO t SELECT id, k, s FROM insert_p WHERE k = 3');
RESET temp_parallel.enabled;
-- not an INSERT ... SELECT
SELECT pg_temp.nodes($$INSERT INTO t VALUES (1, 2, 'three'), (4, 5, 'six')$$);
SELECT pg_temp.nodes($$INSERT INTO t SELECT 1, 2, 'three'$$);

--
-- Targets of all kinds
--
-- TOAST values, made by workers, read by them from a temporary table, inserted by
-- the leader
CREATE TEMP TABLE wide (id int, v text);
ALTER TABLE wide ALTER v SET STORAGE EXTERNAL;
INSERT INTO wide SELECT i, repeat(md5(i::text), 100) FROM generate_series(1, 200) i;
ANALYZE wide;
CREATE TEMP TABLE toasted (id int, v text);
ALTER TABLE toasted ALTER v SET STORAGE EXTERNAL;
:run ('INSERT INTO toasted SELECT id, v FROM wide', 'SELECT id, md5(v) FROM toasted');
:run ('INSERT INTO toasted SELECT id, repeat(s, 1000) FROM insert_p WHERE k = 3', 'SELECT id, md5(v) FROM toasted');
-- partitions, among them a source that is a partition of another table
CREATE TEMP TABLE pt (id int, k int, s text) PARTITION BY LIST (k);
CREATE TEMP TABLE pt1 PARTITION OF pt FOR VALUES IN (0, 1, 2) PARTITION BY RANGE (id);
CREATE TEMP TABLE pt1a PARTITION OF pt1 FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TEMP TABLE pt1b (s text, id int, k int);
ALTER TABLE pt1 ATTACH PARTITION pt1b DEFAULT;
CREATE TEMP TABLE pt2 PARTITION OF pt FOR VALUES IN (3, 4);
CREATE TEMP TABLE pt3 PARTITION OF pt DEFAULT;
:run ('INSERT INTO pt SELECT * FROM a', 'SELECT tableoid::regclass, * FROM pt');
:run ('INSERT INTO pt1 SELECT * FROM a WHERE k < 3', 'SELECT tableoid::regclass, * FROM pt');
:run ('INSERT INTO pt1 SELECT * FROM a', 'SELECT tableoid::regclass, * FROM pt');
-- one partition from another: only the source is flushed
INSERT INTO pt SELECT * FROM a;
ANALYZE pt;
CREATE INDEX ON pt2 (id);
:run ('INSERT INTO pt2 SELECT id, 4, s FROM pt3 WHERE k = 7', 'SELECT * FROM pt2');
-- indexes, unique ones among them, ON CONFLICT DO NOTHING
CREATE TEMP TABLE u (id int UNIQUE, k int, s text);
CREATE INDEX ON u (k);
CREATE INDEX ON u USING hash (s);
CREATE INDEX ON u USING brin (id);
CREATE INDEX ON u USING gin (to_tsvector('simple', s));
:run ('INSERT INTO u SELECT * FROM a', 'SELECT * FROM u');
:run ('INSERT INTO u SELECT id % 100, 0 FROM insert_p ON CONFLICT DO NOTHING', 'SELECT * FROM u');
:run ('INSERT INTO u SELECT id % 100, 0 FROM insert_p ON CONFLICT (id) DO NOTHING', 'SELECT * FROM u');
-- a unique violation, after which the target is used again
:run ('INSERT INTO u SELECT id % 2999, k, s FROM insert_p', 'SELECT * FROM u');
INSERT INTO u SELECT id % 2999, k, s FROM insert_p;
SELECT count(*) FROM u;
INSERT INTO u SELECT * FROM insert_p;
SELECT count(*), sum(id), min(s), max(s) FROM u;
SET enable_seqscan = off;
SELECT count(*) FROM u WHERE id BETWEEN 100 AND 199;
RESET enable_seqscan;
-- CHECK, NOT NULL, generated column, identity with a value: what core's functions
-- compute
CREATE TEMP TABLE checked (id int NOT NULL CHECK (id > 0), d int CHECK (d < 2000),
	g int GENERATED ALWAYS AS (id * 2) STORED, i int GENERATED BY DEFAULT AS IDENTITY);
:run ('INSERT INTO checked (id, d, i) SELECT id, id, id FROM a WHERE id < 2000', 'SELECT * FROM checked');
:run ('INSERT INTO checked (id, d, i) SELECT id, id, id FROM a', 'SELECT * FROM checked');
:run ('INSERT INTO checked (id, d, i) SELECT 5 - id, 1, id FROM a WHERE id < 7 ORDER BY id', 'SELECT * FROM checked');
:run ('INSERT INTO checked (id, d, i) OVERRIDING SYSTEM VALUE SELECT id, k, k FROM a', 'SELECT * FROM checked');
-- ON COMMIT DELETE ROWS
CREATE TEMP TABLE scratch (id int, k int, s text) ON COMMIT DELETE ROWS;
:run ('INSERT INTO scratch SELECT * FROM a', 'SELECT * FROM scratch');

--
-- AFTER triggers run when parallel mode has ended, and may do anything; but one for each row
-- depends on the order of rows
--
CREATE TABLE insert_log (what text, n bigint);
CREATE FUNCTION pg_temp.log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_LEVEL = 'ROW' THEN
		INSERT INTO insert_log SELECT 'row ' || NEW.id, count(*) FROM t;
	ELSE
		INSERT INTO insert_log SELECT 'statement', count(*) + (SELECT count(*) FROM a) FROM new_rows;
		CREATE TEMP TABLE made_by_trigger ON COMMIT DROP AS SELECT k, count(*) FROM a GROUP BY k;
		DROP TABLE made_by_trigger;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER statement AFTER INSERT ON t REFERENCING NEW TABLE AS new_rows EXECUTE FUNCTION pg_temp.log();
:run ('INSERT INTO t SELECT id, k, s FROM a WHERE k = 3', 'SELECT * FROM insert_log UNION ALL SELECT s, id FROM t');
CREATE TRIGGER each_row AFTER INSERT ON t FOR EACH ROW WHEN (NEW.id % 100 = 3) EXECUTE FUNCTION pg_temp.log();
:run ('INSERT INTO t SELECT id, k, s FROM a WHERE k = 3', 'SELECT * FROM insert_log UNION ALL SELECT s, id FROM t');
DROP TRIGGER each_row ON t;
DROP TRIGGER statement ON t;
-- foreign keys, to another table and to the target itself, and deferred constraints
CREATE TEMP TABLE parent (id int PRIMARY KEY);
INSERT INTO parent SELECT generate_series(1, 2500);
CREATE TEMP TABLE child (id int UNIQUE, k int REFERENCES parent,
	up int REFERENCES child (id) DEFERRABLE INITIALLY DEFERRED);
:run ('INSERT INTO child SELECT id, 1 + id % 2500, 3001 - id FROM insert_p', 'SELECT * FROM child');
:run ('INSERT INTO child SELECT id, id, NULL FROM insert_p', 'SELECT * FROM child');
:run ('INSERT INTO child SELECT id, 1, id + 1 FROM insert_p', 'SELECT * FROM child');
CREATE TEMP TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED);
:run ('INSERT INTO late SELECT id FROM insert_p', 'SELECT * FROM late');
:run ('INSERT INTO late SELECT id % 2999 FROM insert_p', 'SELECT * FROM late');

--
-- Functions, prepared statements, transactions
--
CREATE FUNCTION pg_temp.fill(x int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
	INSERT INTO t SELECT id, k, s FROM a WHERE k = x;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;
-- called by a SELECT that is run for each row; the statistics are of all calls
SELECT flushes, workers_launched FROM temp_parallel_stats() \gset before_
BEGIN;
SELECT k, pg_temp.fill(k) FROM generate_series(0, 3) k ORDER BY k;
SELECT count(*), count(DISTINCT xmin::text), sum(id) FROM t;
-- PL/pgSQL stops after the second row, without parallel mode
DO $$
DECLARE x int; r record;
BEGIN
	INSERT INTO t SELECT max(id), 0 FROM a RETURNING id INTO x;
	FOR r IN INSERT INTO t SELECT max(id), 0 FROM a RETURNING id LOOP x := x + r.id; END LOOP;
	RAISE NOTICE '%', x;
END $$;
CREATE FUNCTION pg_temp.fill_sql() RETURNS SETOF int LANGUAGE sql AS 'INSERT INTO t SELECT id, k, s FROM a WHERE k = 5 AND id < 40 ORDER BY id RETURNING id';
SELECT * FROM pg_temp.fill_sql();
ROLLBACK;
SELECT flushes > :before_flushes AS flushed, workers_launched > :before_workers_launched AS launched FROM temp_parallel_stats();
-- a flush that does not pay yet: the statement adds to the account of its source
SET temp_parallel.write_temp_page_cost = 200;
SET temp_parallel.share_local_buffers = off;
UPDATE a SET s = s || 'x' WHERE k = 5;
EXPLAIN (COSTS OFF) INSERT INTO t SELECT max(id), max(k)::bigint, NULL::text FROM a;
SELECT serial_by_flush FROM temp_parallel_stats() \gset before_
INSERT INTO t SELECT max(id), max(k)::bigint, NULL::text FROM a;
SELECT serial_by_flush - :before_serial_by_flush AS serial FROM temp_parallel_stats();
SELECT account > 0 AS has_account FROM temp_parallel_tables WHERE relation = 'a'::regclass;
RESET temp_parallel.share_local_buffers;
SET temp_parallel.write_temp_page_cost = 0;
TRUNCATE t;
-- a generic plan, over tables that change; it is made again for a new trigger
SET plan_cache_mode = force_generic_plan;
PREPARE fill(int) AS INSERT INTO u SELECT id, k, s FROM a WHERE k = $1 ON CONFLICT DO NOTHING;
TRUNCATE u;
SELECT pg_temp.nodes('EXECUTE fill(1)');
EXECUTE fill(1);
UPDATE a SET id = -id WHERE k = 2;
EXECUTE fill(2);
EXECUTE fill(1);
SELECT k, count(*), sum(id) FROM u GROUP BY k ORDER BY k;
CREATE FUNCTION pg_temp.before() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.s := 'by trigger'; RETURN NEW; END $$;
CREATE TRIGGER before_row BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION pg_temp.before();
EXECUTE fill(3);
SELECT k, count(*), sum(id), max(s) FROM u GROUP BY k ORDER BY k;
DROP TRIGGER before_row ON u;
-- or for one of a partition
PREPARE route AS INSERT INTO pt SELECT id, 3, s FROM insert_p WHERE k = 1;
EXECUTE route;
CREATE TRIGGER before_row BEFORE INSERT ON pt2 FOR EACH ROW EXECUTE FUNCTION pg_temp.before();
SELECT workers = 'launched' AS workers, n, answers FROM pg_temp.changes('EXECUTE route', 'SELECT s FROM pt2 WHERE s = ''by trigger''');
EXECUTE route;
SELECT s = 'by trigger' AS by_trigger, count(*) FROM pt2 WHERE k = 3 AND s !~ 'a' GROUP BY 1 ORDER BY 1;
DROP TRIGGER before_row ON pt2;
-- or for a function of a constraint that is volatile now
CREATE FUNCTION pg_temp.checks(i int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN true; END $$;
ALTER TABLE pt2 ADD CONSTRAINT checks CHECK (pg_temp.checks(id));
DEALLOCATE route;
PREPARE route AS INSERT INTO pt SELECT id, 3, s FROM insert_p WHERE k = 1;
SELECT workers = 'launched' AS workers, n, answers FROM pg_temp.changes('EXECUTE route', 'TABLE pt2');
CREATE OR REPLACE FUNCTION pg_temp.checks(i int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN true; END $$;
SELECT workers = 'launched' AS workers, n, answers FROM pg_temp.changes('EXECUTE route', 'TABLE pt2');
ALTER TABLE pt2 DROP CONSTRAINT checks;
DEALLOCATE ALL;
RESET plan_cache_mode;
-- savepoints: each row belongs to the subtransaction that inserted it
BEGIN;
INSERT INTO t SELECT id, k, s FROM insert_p WHERE k = 1;
SAVEPOINT one;
INSERT INTO t SELECT id, k, s FROM insert_p WHERE k = 2;
ROLLBACK TO one;
SAVEPOINT two;
INSERT INTO t SELECT id, k, s FROM insert_p WHERE k = 3;
RELEASE two;
SELECT k, count(*), sum(id) FROM t GROUP BY k ORDER BY k;
-- the rows just inserted are a source
INSERT INTO u SELECT id + 10000, k, s FROM t;
SELECT count(*) FROM u WHERE id > 10000;
DECLARE c CURSOR FOR SELECT count(*) FROM t;
INSERT INTO t SELECT id, k, s FROM insert_p WHERE k = 4;
FETCH c;
SELECT count(*) FROM t;
COMMIT;
SELECT k, count(*), sum(id) FROM t GROUP BY k ORDER BY k;
-- in a read-only transaction, in which temporary tables may be written; at other
-- isolation levels
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
:run ('INSERT INTO t SELECT id, k, s FROM insert_p WHERE k = 3', 'SELECT * FROM t');
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
:run ('INSERT INTO u SELECT abs(id) % 50 - 10000 FROM a ON CONFLICT DO NOTHING', 'SELECT * FROM u');
COMMIT;
-- no workers to be had
SET max_parallel_workers = 0;
INSERT INTO t SELECT id, k, s FROM a WHERE k = 9;
SELECT count(*) FROM t WHERE k = 9;
RESET max_parallel_workers;
-- CREATE TABLE AS is as before
CREATE TEMP TABLE made AS SELECT * FROM a WHERE k = 3;
SELECT count(*) FROM made;

DROP TABLE insert_p, insert_log;
DROP EXTENSION temp_parallel;
