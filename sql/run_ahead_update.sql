--
-- UPDATE and DELETE of temporary tables: workers find the rows, or that is refused and
-- EXPLAIN says why; in either case the tables are afterwards as without the module, and
-- so is what is returned. If something here differs, rows are wrong or lost, or a
-- statement fails that did not.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
CREATE EXTENSION temp_parallel;
\i sql/include/changes.sql
\i sql/include/nodes.sql
\set run 'SELECT * FROM pg_temp.changes'

CREATE TABLE ahead_p (id int PRIMARY KEY, k int, s text) WITH (autovacuum_enabled = off);
INSERT INTO ahead_p SELECT i, i % 10, 'p' || i FROM generate_series(1, 1000) i;
ANALYZE ahead_p;
CREATE TEMP TABLE t (id int, k int, s text);
INSERT INTO t SELECT i, i % 7, 't' || i FROM generate_series(1, 1500) i;
CREATE TEMP TABLE u (id int, k int, s text);
INSERT INTO u SELECT i, i % 5, 'u' || i FROM generate_series(1, 1200, 3) i;
ANALYZE t, u;
CREATE TEMP SEQUENCE ahead_seq;

EXPLAIN (COSTS OFF) UPDATE t SET s = s || '!' WHERE k = 3;
SELECT pg_temp.nodes('DELETE FROM t USING u WHERE t.id = u.id AND u.k = 2');

--
-- Where the rows come from
--
:run ('UPDATE t SET s = s || ''!'' WHERE k = 3 RETURNING id, s', 'TABLE t');
:run ('UPDATE t SET k = p.k, s = p.s FROM ahead_p p WHERE p.id = t.id RETURNING t.id, t.k, p.s', 'TABLE t');
:run ('UPDATE t SET k = g.n FROM (SELECT k, count(*) AS n FROM u GROUP BY k) g WHERE g.k = t.k', 'TABLE t');
-- the target is read twice, and sees itself as it was
:run ('UPDATE t SET k = b.k + 100 FROM t b WHERE b.id = t.id + 1', 'TABLE t');
:run ('UPDATE t SET (k, s) = (SELECT max(k), min(s) FROM u) WHERE id % 2 = 0', 'TABLE t');
:run ('UPDATE t SET k = (SELECT count(*) FROM u WHERE u.k = t.k) WHERE id = 7', 'TABLE t');
:run ('WITH g AS MATERIALIZED (SELECT k, sum(id) AS n FROM u GROUP BY k) UPDATE t SET k = g.n FROM g WHERE g.k = t.k', 'TABLE t');
:run ('DELETE FROM t WHERE k = 3 RETURNING id, k, s', 'TABLE t');
:run ('DELETE FROM t', 'TABLE t');
:run ('DELETE FROM t USING ahead_p p, u WHERE p.id = t.id AND u.id = p.id RETURNING t.id, p.s, u.s', 'TABLE t');
:run ('DELETE FROM t WHERE id IN (SELECT id FROM u) AND NOT EXISTS (SELECT FROM ahead_p p WHERE p.id = t.id AND p.k = 3)', 'TABLE t');
-- copies of rows
CREATE TEMP TABLE copies AS SELECT id % 300 AS id, id % 3 AS k, s FROM t;
ANALYZE copies;
:run ('DELETE FROM copies WHERE ctid NOT IN (SELECT min(ctid) FROM copies GROUP BY id, k)', 'SELECT id, k FROM copies');
:run ('DELETE FROM copies a USING copies b WHERE a.id = b.id AND a.ctid > b.ctid', 'SELECT * FROM copies');
:run ('DELETE FROM copies USING (SELECT ctid AS c, row_number() OVER (PARTITION BY id ORDER BY s) AS n FROM copies) r WHERE r.c = copies.ctid AND r.n > 1 RETURNING copies.id, r.n', 'TABLE copies');
-- columns of a unique index, which is checked for each row as it is changed: the next row may
-- have the value that is to be free when that one is changed
CREATE TEMP TABLE shift (id int, pos int, k int);
INSERT INTO shift SELECT id, id, k FROM t ORDER BY id;
ANALYZE shift;
CREATE UNIQUE INDEX shift_pos ON shift (pos) INCLUDE (k);
:run ('UPDATE shift SET pos = pos - 1', 'TABLE shift');
:run ('UPDATE shift SET id = id - 1, k = 0', 'TABLE shift');
DROP INDEX shift_pos;
CREATE UNIQUE INDEX shift_pos ON shift ((pos + 1)) WHERE k >= 0;
:run ('UPDATE shift SET pos = pos - 1', 'TABLE shift');
:run ('UPDATE shift SET k = k + 1', 'TABLE shift');
DROP INDEX shift_pos;
ALTER TABLE shift ADD EXCLUDE USING btree (pos WITH =);
:run ('UPDATE shift SET pos = pos - 1 FROM u WHERE shift.id >= u.id AND u.id = 1', 'TABLE shift');
ALTER TABLE shift DROP CONSTRAINT shift_pos_excl, ADD UNIQUE (pos) DEFERRABLE;
:run ('UPDATE shift SET pos = pos - 1', 'TABLE shift');
ALTER TABLE shift DROP CONSTRAINT shift_pos_key, ADD g int GENERATED ALWAYS AS (pos * 2) STORED, ADD UNIQUE (g);
:run ('UPDATE shift SET pos = pos - 1', 'TABLE shift');
-- of one partition
CREATE TEMP TABLE halves (id int, pos int) PARTITION BY RANGE (id);
CREATE TEMP TABLE half_1 PARTITION OF halves FOR VALUES FROM (MINVALUE) TO (700);
CREATE TEMP TABLE half_2 (pos int, id int);
ALTER TABLE halves ATTACH PARTITION half_2 FOR VALUES FROM (700) TO (MAXVALUE);
INSERT INTO halves SELECT id, id FROM t ORDER BY id;
ANALYZE halves;
:run ('UPDATE halves SET pos = pos - 1', 'TABLE halves');
CREATE UNIQUE INDEX ON half_2 (pos);
:run ('UPDATE halves SET pos = pos - 1', 'TABLE halves');
-- of the partition to which a row moves, when another one with its value has left that
CREATE TEMP TABLE sides (k int, pos int, pad text) PARTITION BY LIST (k);
CREATE TEMP TABLE side_1 PARTITION OF sides FOR VALUES IN (1);
CREATE TEMP TABLE side_2 (pad text, k int, pos int);
ALTER TABLE sides ATTACH PARTITION side_2 FOR VALUES IN (2);
INSERT INTO sides SELECT 1 + i % 2, i / 2, 'x' FROM generate_series(0, 3999) i;
ANALYZE sides;
:run ('UPDATE sides SET k = 3 - k', 'SELECT k, pos, pad FROM sides');
CREATE UNIQUE INDEX side_pos ON side_1 (pos);
:run ('UPDATE sides SET k = 3 - k', 'SELECT k, pos, pad FROM sides');
:run ('UPDATE sides SET k = 1 WHERE k = 2 AND pos > 5000', 'SELECT k, pos, pad FROM sides');
DROP TABLE sides;
-- an index on the whole row
ALTER TABLE shift DROP g;
SET client_min_messages = warning;
CREATE FUNCTION whole(shift) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1.pos';
RESET client_min_messages;
CREATE UNIQUE INDEX shift_pos ON shift (whole(shift));
:run ('UPDATE shift SET pos = pos - 1', 'TABLE shift');
DROP INDEX shift_pos;
-- ON CONFLICT
CREATE UNIQUE INDEX ON shift (id);
:run ('INSERT INTO shift (id, pos) SELECT id, 0 FROM t ON CONFLICT (id) DO UPDATE SET pos = shift.pos - 1', 'TABLE shift');
CREATE UNIQUE INDEX shift_pos ON shift (pos);
:run ('INSERT INTO shift (id, pos) SELECT id, 0 FROM t ON CONFLICT (id) DO UPDATE SET pos = shift.pos - 1', 'TABLE shift');
-- the same, of a partition
ALTER TABLE halves ADD PRIMARY KEY (id);
:run ('INSERT INTO halves SELECT id, -id FROM t ON CONFLICT (id) DO UPDATE SET pos = halves.pos - 1', 'SELECT id, pos FROM halves');
DROP TABLE halves, shift CASCADE;
-- the space of dead rows is used again, as the page of each row that is changed is pruned before:
-- a table must not grow more by updates than without workers
CREATE TEMP TABLE often (id int, k int, v int, pad text);
CREATE TEMP TABLE often_core (LIKE often);
INSERT INTO often SELECT i, i % 10, 0, repeat('x', 100) FROM generate_series(1, 3000) i;
INSERT INTO often_core TABLE often ORDER BY id;
ANALYZE often, often_core;
SELECT pg_temp.nodes('UPDATE often SET v = v + 1 WHERE k = 3');
DO $$ BEGIN FOR i IN 1..20 LOOP UPDATE often SET v = v + 1 WHERE k = 3; COMMIT; END LOOP; END $$;
MERGE INTO often USING u ON often.id = u.id AND u.k = 3 WHEN MATCHED THEN UPDATE SET v = often.v;
SET temp_parallel.run_ahead = off;
DO $$ BEGIN FOR i IN 1..20 LOOP UPDATE often_core SET v = v + 1 WHERE k = 3; COMMIT; END LOOP; END $$;
MERGE INTO often_core USING u ON often_core.id = u.id AND u.k = 3 WHEN MATCHED THEN UPDATE SET v = often_core.v;
RESET temp_parallel.run_ahead;
SELECT pg_relation_size('often') <= 1.1 * pg_relation_size('often_core') AS not_larger,
	   (SELECT sum(v) FROM often), (SELECT count(*) FROM (TABLE often EXCEPT TABLE often_core) d) AS differ;
DROP TABLE often, often_core;
-- a statement is cancelled while rows are changed, too, which takes many seconds here
CREATE TEMP TABLE slow (id int, k int, slow text GENERATED ALWAYS AS (CASE k WHEN 0 THEN md5(rpad(id::text, 5000000)) END) STORED);
INSERT INTO slow SELECT id, 1 FROM t WHERE id < 400;
ANALYZE slow;
SET statement_timeout = '1s';
UPDATE slow SET k = 0;
RESET statement_timeout;
SELECT count(*) FROM slow WHERE k = 1;
DROP TABLE slow;
-- more columns than a row that is kept can have
SELECT string_agg(format('c%s int DEFAULT 1', i), ', ') AS columns, string_agg(format('c%s = w.c%s + 1', i, i), ', ') AS sets
FROM generate_series(1, 900) i \gset
CREATE TEMP TABLE columns (id int, :columns);
INSERT INTO columns SELECT generate_series(1, 300);
ANALYZE columns;
SELECT 'UPDATE columns SET ' || :'sets' || ' FROM columns w WHERE w.id = columns.id + 1 RETURNING w.*' AS wide \gset
-- (planning it takes long, so what it costs has to be more)
BEGIN;
SET LOCAL cpu_tuple_cost = 100;
:run (:'wide', 'SELECT id, c900 FROM columns');
COMMIT;
DROP TABLE columns;
-- no row, and a target that is empty
:run ('UPDATE t SET k = 0 WHERE id < 0 RETURNING id, k', 'TABLE t');
:run ('DELETE FROM u WHERE false', 'TABLE u');

--
-- The target
--
-- partitions, and rows that move between them
CREATE TEMP TABLE parts (id int, k int, s text) PARTITION BY LIST (k);
CREATE TEMP TABLE parts_0 PARTITION OF parts FOR VALUES IN (0, 1, 2);
CREATE TEMP TABLE parts_1 PARTITION OF parts FOR VALUES IN (3, 4) PARTITION BY RANGE (id);
CREATE TEMP TABLE parts_1a PARTITION OF parts_1 FOR VALUES FROM (0) TO (700);
CREATE TEMP TABLE parts_1b (s text, gone int, k int, id int);
ALTER TABLE parts_1b DROP COLUMN gone;
ALTER TABLE parts_1 ATTACH PARTITION parts_1b FOR VALUES FROM (700) TO (9999);
CREATE TEMP TABLE parts_2 PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT * FROM t;
ANALYZE parts;
:run ('UPDATE parts SET k = (k + 1) % 6 WHERE id % 3 = 0 RETURNING tableoid::regclass, id, k, s', 'SELECT tableoid::regclass, * FROM parts');
:run ('UPDATE parts SET s = u.s, id = parts.id + 1 FROM u WHERE u.id = parts.id RETURNING parts.id, parts.s', 'SELECT tableoid::regclass, * FROM parts');
:run ('DELETE FROM parts USING u WHERE u.id = parts.id RETURNING parts.id, parts.tableoid::regclass', 'SELECT tableoid::regclass, * FROM parts');
-- inheritance
CREATE TEMP TABLE parent (id int, k int, s text);
CREATE TEMP TABLE child (more text) INHERITS (parent);
INSERT INTO parent SELECT * FROM t WHERE id < 500;
INSERT INTO child SELECT *, 'more' FROM t WHERE id >= 500;
ANALYZE parent, child;
:run ('UPDATE parent SET s = ''new'' FROM u WHERE u.id = parent.id', 'SELECT tableoid::regclass, * FROM parent');
:run ('DELETE FROM parent WHERE k IN (SELECT k FROM u WHERE id < 5) RETURNING parent.tableoid::regclass, id', 'SELECT tableoid::regclass, * FROM parent');
:run ('DELETE FROM ONLY parent WHERE k = 2', 'SELECT tableoid::regclass, * FROM parent');
-- updatable views, with a condition that is checked and one that hides rows
CREATE TEMP VIEW partly AS SELECT id, k, s FROM t WHERE k < 4 WITH CHECK OPTION;
:run ('UPDATE partly SET s = s || u.k FROM u WHERE u.id = partly.id RETURNING partly.id, partly.s', 'TABLE t');
:run ('UPDATE partly SET k = k + 3', 'TABLE t');
CREATE TEMP VIEW barrier WITH (security_barrier) AS SELECT * FROM t WHERE id % 2 = 0;
:run ('DELETE FROM barrier WHERE s LIKE ''t1%''', 'TABLE t');
-- an INSTEAD OF trigger
CREATE TEMP VIEW instead AS SELECT * FROM t;
CREATE FUNCTION pg_temp.instead() RETURNS trigger LANGUAGE plpgsql SET temp_parallel.run_ahead = off AS $$
BEGIN
	UPDATE t SET s = 'instead ' || NEW.s WHERE id = OLD.id;
	RETURN NEW;
END $$;
CREATE TRIGGER i INSTEAD OF UPDATE ON instead FOR EACH ROW EXECUTE FUNCTION pg_temp.instead();
:run ('UPDATE instead SET s = u.s FROM u WHERE u.id = instead.id', 'TABLE t');

-- triggers, with transition tables, that write elsewhere
CREATE TEMP TABLE log (what text, n bigint);
CREATE TEMP TABLE watched (LIKE t);
CREATE FUNCTION pg_temp.after_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO log VALUES (TG_OP, OLD.id);
	RETURN NULL;
END $$;
CREATE FUNCTION pg_temp.after_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO log SELECT TG_OP || ' statement', sum(id) FROM before;
	RETURN NULL;
END $$;
CREATE TRIGGER su AFTER UPDATE ON watched REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.after_statement();
CREATE TRIGGER sd AFTER DELETE ON watched REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.after_statement();
INSERT INTO watched SELECT * FROM t;
ANALYZE watched;
\set watched 'SELECT s, id FROM watched UNION ALL SELECT what, n FROM log'
:run ('UPDATE watched SET k = u.k FROM u WHERE u.id = watched.id RETURNING watched.id, watched.s', :'watched');
:run ('DELETE FROM watched USING u WHERE u.id = watched.id RETURNING watched.id', :'watched');
-- one that is called for each row may fail by which rows have been changed before
CREATE TRIGGER a AFTER UPDATE OR DELETE ON watched FOR EACH ROW EXECUTE FUNCTION pg_temp.after_row();
:run ('UPDATE watched SET k = u.k FROM u WHERE u.id = watched.id RETURNING watched.id, watched.s', :'watched');
:run ('DELETE FROM watched USING u WHERE u.id = watched.id RETURNING watched.id', :'watched');
-- One that is called before a row is changed may change other rows. If the statement has
-- reached these before, it succeeds; if not, it fails. Here children come before their parents.
CREATE TEMP TABLE tree (id int, parent int, pad text);
INSERT INTO tree SELECT i, i + 1000, 'x' FROM generate_series(1, 2000) i;
CREATE INDEX ON tree (parent);
ANALYZE tree;
CREATE FUNCTION pg_temp.children() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'DELETE' THEN
		DELETE FROM tree WHERE parent = OLD.id;
		RETURN OLD;
	END IF;
	UPDATE tree SET pad = 'child' WHERE parent = OLD.id AND pad = 'x';
	RETURN NEW;
END $$;
CREATE TRIGGER c BEFORE DELETE ON tree FOR EACH ROW EXECUTE FUNCTION pg_temp.children();
:run ('DELETE FROM tree WHERE id % 2 = 0', 'TABLE tree');
:run ('UPDATE tree SET pad = k FROM u WHERE u.id = tree.id', 'TABLE tree');
DROP TRIGGER c ON tree;
CREATE TRIGGER c BEFORE UPDATE ON tree FOR EACH ROW EXECUTE FUNCTION pg_temp.children();
:run ('UPDATE tree SET pad = k FROM u WHERE u.id = tree.id', 'TABLE tree');
:run ('DELETE FROM tree WHERE id % 2 = 0', 'TABLE tree');
-- of one partition; of one to which rows move
CREATE TEMP TABLE trees (id int, k int) PARTITION BY LIST (k);
CREATE TEMP TABLE trees_0 PARTITION OF trees FOR VALUES IN (0);
CREATE TEMP TABLE trees_1 PARTITION OF trees FOR VALUES IN (1);
INSERT INTO trees SELECT i, i % 2 FROM generate_series(1, 2000) i;
ANALYZE trees;
CREATE FUNCTION pg_temp.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN coalesce(NEW, OLD); END';
CREATE TRIGGER n BEFORE INSERT ON trees_0 FOR EACH ROW EXECUTE FUNCTION pg_temp.nothing();
:run ('UPDATE trees SET id = -id WHERE id % 3 = 0', 'TABLE trees');
:run ('DELETE FROM trees WHERE id % 3 = 0', 'TABLE trees');
:run ('UPDATE trees SET k = 1 - k WHERE id % 3 = 0', 'TABLE trees');
DROP TRIGGER n ON trees_0;
CREATE TRIGGER n BEFORE DELETE ON trees_1 FOR EACH ROW EXECUTE FUNCTION pg_temp.nothing();
:run ('DELETE FROM trees WHERE id % 3 = 0', 'TABLE trees');

-- foreign keys between temporary tables, and those that are checked at the end; what one does to
-- rows that reference a deleted one, another one may forbid, or a trigger see
CREATE TEMP TABLE referenced (id int PRIMARY KEY, k int);
INSERT INTO referenced SELECT i, i % 10 FROM generate_series(1, 1000) i;
CREATE TEMP TABLE cascaded (id int REFERENCES referenced ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TEMP TABLE emptied (id int REFERENCES referenced ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED, n int);
INSERT INTO cascaded SELECT i % 1000 + 1 FROM generate_series(1, 1500) i;
INSERT INTO emptied SELECT i, i FROM generate_series(1, 1000, 2) i;
ANALYZE referenced, cascaded, emptied;
\set referenced 'SELECT ''r'', id, k FROM referenced UNION ALL SELECT ''c'', id, 0 FROM cascaded UNION ALL SELECT ''e'', id, n FROM emptied'
:run ('DELETE FROM referenced WHERE k = 3', :'referenced');
:run ('UPDATE referenced SET id = id + 5000 WHERE id % 2 = 0 AND k = 4', :'referenced');
:run ('UPDATE emptied SET id = id + 1 WHERE id > 900', :'referenced');
ALTER TABLE cascaded DROP CONSTRAINT cascaded_id_fkey;
:run ('DELETE FROM referenced WHERE k = 3', :'referenced');
ALTER TABLE emptied DROP CONSTRAINT emptied_id_fkey;
ALTER TABLE emptied ADD FOREIGN KEY (id) REFERENCES referenced;
:run ('DELETE FROM referenced WHERE k = 4', :'referenced');
:run ('DELETE FROM referenced WHERE k = 3', :'referenced');

-- generated columns, constraints, unique indexes (also as rows are changed one by one)
CREATE TEMP TABLE checked (id int UNIQUE, k int CHECK (k < 100), twice int GENERATED ALWAYS AS (k * 2) STORED, e int, EXCLUDE USING btree (e WITH =));
INSERT INTO checked (id, k, e) SELECT id, k, id FROM t;
ANALYZE checked;
:run ('UPDATE checked SET k = u.k + 20 FROM u WHERE u.id = checked.id RETURNING checked.id, twice', 'TABLE checked');
:run ('UPDATE checked SET k = u.id FROM u WHERE u.id = checked.id AND u.id < 110', 'TABLE checked');
:run ('UPDATE checked SET id = -id, e = -e', 'TABLE checked');
:run ('UPDATE checked SET e = 0 WHERE id IN (5, 6)', 'TABLE checked');

-- row security
CREATE ROLE run_ahead_user;
CREATE TEMP TABLE secured AS SELECT * FROM t;
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE POLICY reads ON secured FOR SELECT TO run_ahead_user USING (k <> 2);
CREATE POLICY writes ON secured FOR UPDATE TO run_ahead_user USING (k <> 3) WITH CHECK (k < 50);
CREATE POLICY deletes ON secured FOR DELETE TO run_ahead_user USING (id > (SELECT avg(id) FROM u));
GRANT ALL ON secured, u, t TO run_ahead_user;
ANALYZE secured;
CREATE FUNCTION pg_temp.as_user(statement text, target text) RETURNS TABLE (workers text, n bigint, answers text) LANGUAGE plpgsql AS
	$$ BEGIN SET LOCAL ROLE run_ahead_user; RETURN QUERY SELECT * FROM pg_temp.changes(statement, target); RESET ROLE; END $$;
SELECT * FROM pg_temp.as_user('UPDATE secured SET s = ''mine'' FROM u WHERE u.id = secured.id RETURNING secured.id, secured.s', 'TABLE secured');
SELECT * FROM pg_temp.as_user('UPDATE secured SET k = 60', 'TABLE secured');
SELECT * FROM pg_temp.as_user('DELETE FROM secured WHERE s <> ''''', 'TABLE secured');
ALTER POLICY writes ON secured WITH CHECK (id IN (SELECT id FROM u) OR k < 50);
SELECT * FROM pg_temp.as_user('UPDATE secured SET s = ''mine'' WHERE k < 9', 'TABLE secured');
REVOKE ALL ON secured, u, t FROM run_ahead_user;
DROP TABLE secured;
DROP ROLE run_ahead_user;

-- large values: one that is kept is read by the statement, not copied
CREATE TEMP TABLE wide (id int, k int, v text, w text);
ALTER TABLE wide ALTER v SET STORAGE external;
INSERT INTO wide SELECT id, k, repeat(s, 1000), s FROM t WHERE id < 400;
ANALYZE wide;
:run ('UPDATE wide SET w = md5(v) WHERE k > 2 RETURNING id, w, md5(v)', 'SELECT id, k, md5(v), w FROM wide');
:run ('UPDATE wide SET v = b.v FROM wide b WHERE b.id = wide.id + 1', 'SELECT id, k, md5(v), w FROM wide');
:run ('DELETE FROM wide WHERE md5(v) < ''8''', 'SELECT id, md5(v) FROM wide');

--
-- Where the statement is
--
-- prepared, with a generic plan and without, and its plan made again
PREPARE changes_k (int) AS UPDATE t SET s = 'changed ' || $1 WHERE k = $1;
SET plan_cache_mode = force_generic_plan;
SELECT pg_temp.nodes('EXECUTE changes_k (3)');
EXECUTE changes_k (3);
EXECUTE changes_k (4);
ALTER TABLE t ADD more int DEFAULT 5;
EXECUTE changes_k (5);
RESET plan_cache_mode;
EXECUTE changes_k (6);
SELECT k, s, count(*) FROM t WHERE s LIKE 'changed%' GROUP BY 1, 2 ORDER BY 1;
DEALLOCATE changes_k;
ALTER TABLE t DROP more;
-- functions, savepoints and exception blocks
CREATE FUNCTION pg_temp.in_block(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	done int;
	all_done int := 0;
BEGIN
	FOR i IN 1 .. n LOOP
		BEGIN
			UPDATE t SET k = t.k + 100 FROM u WHERE u.id = t.id;
			GET DIAGNOSTICS done = ROW_COUNT;
			IF i % 2 = 0 THEN
				RAISE division_by_zero;
			END IF;
			all_done := all_done + done;
		EXCEPTION WHEN division_by_zero THEN
			NULL;
		END;
	END LOOP;
	RETURN all_done;
END $$;
SELECT workers_launched FROM public.temp_parallel_stats() \gset before_
SELECT pg_temp.in_block(5);
SELECT sum(k), count(*) FROM t;
BEGIN;
SAVEPOINT a;
DELETE FROM t USING u WHERE u.id = t.id;
ROLLBACK TO a;
DELETE FROM t WHERE k = 1;
SELECT sum(k), count(*) FROM t;
ROLLBACK;
SELECT workers_launched > :before_workers_launched AS launched FROM public.temp_parallel_stats();
-- a statement whose query looks at what another one of the same function has just changed
BEGIN;
UPDATE u SET k = 50 WHERE k = 4;
:run ('UPDATE t SET k = u.k FROM u WHERE u.id = t.id', 'TABLE t');
ROLLBACK;

--
-- What is refused
--
CREATE FUNCTION pg_temp.volatile(i int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED AS $$ BEGIN RETURN i; END $$;
:run ('UPDATE t SET k = pg_temp.volatile(k)', 'TABLE t');
:run ('UPDATE t SET k = nextval(''ahead_seq'') WHERE k = 3', 'SELECT id FROM t');
:run ('DELETE FROM t WHERE pg_temp.volatile(k) = 3', 'TABLE t');
-- a function that may see the rows changed so far, in RETURNING and in a CHECK constraint
:run ('UPDATE t SET k = 3 WHERE k = 2 RETURNING id, pg_temp.volatile(k)', 'TABLE t');
ALTER TABLE t ADD CONSTRAINT looks CHECK (pg_temp.volatile(k) IS NOT NULL);
:run ('UPDATE t SET k = 3 WHERE k = 2', 'TABLE t');
:run ('DELETE FROM t WHERE k = 2', 'TABLE t');
ALTER TABLE t DROP CONSTRAINT looks;
-- one that only an aggregate, a default argument or a domain's constraint calls
CREATE FUNCTION pg_temp.by_default(i int, v int DEFAULT pg_temp.volatile(1)) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN i + v; END $$;
CREATE FUNCTION pg_temp.add_volatile(int, int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN $1 + $2; END $$;
CREATE AGGREGATE pg_temp.sum_volatile(int) (SFUNC = pg_temp.add_volatile, STYPE = int, INITCOND = 0);
CREATE DOMAIN pg_temp.looking AS int CHECK (pg_temp.volatile(VALUE) IS NOT NULL);
:run ('UPDATE t SET k = 3 WHERE k = 2 RETURNING id, pg_temp.by_default(k)', 'TABLE t');
:run ('UPDATE t SET k = 3 WHERE k = 2 RETURNING id, (SELECT pg_temp.sum_volatile(u.id) FROM u WHERE u.id < t.k)', 'TABLE t');
ALTER TABLE t ADD CONSTRAINT looks CHECK (pg_temp.by_default(k) IS NOT NULL);
:run ('UPDATE t SET k = 3 WHERE k = 2', 'TABLE t');
ALTER TABLE t DROP CONSTRAINT looks, ADD CONSTRAINT looks CHECK (k::pg_temp.looking IS NOT NULL);
:run ('UPDATE t SET k = 3 WHERE k = 2', 'TABLE t');
ALTER TABLE t DROP CONSTRAINT looks;
CREATE TEMP TABLE generated (id int, k int, g pg_temp.looking GENERATED ALWAYS AS (k) STORED);
INSERT INTO generated SELECT id, k FROM t;
ANALYZE generated;
:run ('UPDATE generated SET k = 3 WHERE k = 2', 'TABLE generated');
-- which rows the statement has changed so far is in the rows
:run ('UPDATE t SET k = CASE WHEN b.xmax::text = ''0'' THEN 0 ELSE 1 END FROM t b WHERE b.id = t.id - 1', 'SELECT id FROM t');
:run ('UPDATE t SET k = 0 FROM t b WHERE b.id = t.id - 1 RETURNING t.id, b.xmax::text = ''0''', 'TABLE t');
CREATE FUNCTION pg_temp.versions() RETURNS TABLE (id int, x xid) LANGUAGE sql STABLE PARALLEL RESTRICTED AS 'SELECT id, xmax FROM pg_temp.t';
:run ('UPDATE t SET k = CASE WHEN b.x::text = ''0'' THEN 0 ELSE 1 END FROM pg_temp.versions() b WHERE b.id = t.id - 1', 'SELECT id FROM t');
CREATE TEMP TABLE loaded (id int);
:run ('INSERT INTO loaded SELECT id FROM t WHERE xmin::text <> ''0''', 'TABLE loaded');
:run ('UPDATE t SET k = 3 WHERE k = 2 RETURNING id, t.xmax::text = ''0''', 'TABLE t');
:run ('WITH d AS (DELETE FROM u WHERE k = 1 RETURNING *) UPDATE t SET k = d.k FROM d WHERE d.id = t.id', 'TABLE t');
:run ('WITH g AS (SELECT * FROM u) DELETE FROM t USING g WHERE g.id = t.id RETURNING t.id, (SELECT count(*) FROM g)', 'TABLE t');
-- the planner pulls what reads the CTE up into RETURNING; otherwise it would be read on there, with its workers ended
:run ('WITH g AS MATERIALIZED (SELECT id, k FROM t WHERE k >= 0) DELETE FROM u USING (SELECT id, (SELECT count(*) FROM g WHERE g.id >= 0 * t.id) AS m FROM t) q WHERE q.id = u.id AND (SELECT g.k FROM g LIMIT 1) >= 0 AND u.id < 10 RETURNING u.id, q.m', 'TABLE u');
SELECT pg_temp.nodes('WITH g AS MATERIALIZED (SELECT id, k FROM t WHERE k >= 0) UPDATE u SET k = 1 FROM (SELECT id, (SELECT count(*) FROM g WHERE g.id >= 0 * t.id) AS m FROM t) q WHERE q.id = u.id RETURNING q.m');
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t WHERE id = 10;
FETCH 1 FROM c;
SELECT pg_temp.nodes('UPDATE t SET k = 200 WHERE CURRENT OF c');
UPDATE t SET k = 200 WHERE CURRENT OF c RETURNING id;
ROLLBACK;
-- permanent tables, also with a temporary child
SELECT pg_temp.nodes('UPDATE ahead_p SET k = u.k FROM u WHERE u.id = ahead_p.id');
:run ('UPDATE ahead_p SET k = u.k FROM u WHERE u.id = ahead_p.id', 'TABLE ahead_p');
:run ('UPDATE ahead_p SET k = k + 1', 'TABLE ahead_p');
CREATE TEMP TABLE p_child () INHERITS (ahead_p);
INSERT INTO p_child SELECT id + 1000, k, s FROM t;
:run ('DELETE FROM ahead_p WHERE k = 3', 'SELECT tableoid::regclass, * FROM ahead_p');
DROP TABLE p_child;
-- what is turned off
SET temp_parallel.run_ahead = insert;
SELECT pg_temp.nodes($$UPDATE t SET s = s || '!' WHERE k = 3$$);
RESET temp_parallel.run_ahead;

DROP TABLE ahead_p;
DROP EXTENSION temp_parallel;
