--
-- MERGE into a temporary table: workers find the rows, or that is refused and EXPLAIN
-- says why; in either case the table is afterwards as without the module, and so is what
-- is returned. If something here differs, rows are wrong or lost, or a statement fails
-- that did not.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/changes.sql
\i sql/include/nodes.sql
\set run 'SELECT * FROM pg_temp.changes'
-- What only versions since a certain one can run: says so if it is not as expected.
CREATE PROCEDURE pg_temp.from_version(since int, expected text, statement text, target text) LANGUAGE plpgsql AS $$
DECLARE
	got text;
BEGIN
	IF current_setting('server_version_num')::int >= since * 10000 THEN
		SELECT concat_ws(' ', workers, n, answers) INTO got FROM pg_temp.changes(statement, target);
		IF got IS DISTINCT FROM expected THEN
			RAISE WARNING '% instead of %: %', got, expected, statement;
		END IF;
	END IF;
END $$;

CREATE TABLE merge_p (id int PRIMARY KEY, k int, s text) WITH (autovacuum_enabled = off);
INSERT INTO merge_p SELECT i, i % 10, 'p' || i FROM generate_series(500, 2000) i;
ANALYZE merge_p;
CREATE TEMP TABLE t (id int UNIQUE DEFERRABLE, k int, s text DEFAULT 'default', n serial);
INSERT INTO t SELECT i, i % 7, 't' || i FROM generate_series(1, 1500) i;
CREATE TEMP TABLE u (id int, k int, s text);
INSERT INTO u SELECT i, i % 5, 'u' || i FROM generate_series(1, 2400, 3) i;
ANALYZE t, u;

EXPLAIN (COSTS OFF) MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET k = u.k WHEN NOT MATCHED THEN INSERT (id, k) VALUES (u.id, u.k);

-- The actions. The default of n, which advances a sequence, is evaluated by the action.
:run ('MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET k = u.k', 'TABLE t');
:run ('MERGE INTO t USING u ON t.id = u.id WHEN NOT MATCHED THEN INSERT (id, k) VALUES (u.id, u.k)', 'SELECT id, k, s FROM t');
:run ('MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND t.k = 3 THEN DELETE WHEN MATCHED AND u.k > 2 THEN UPDATE SET s = u.s || t.s, k = DEFAULT WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED AND u.id % 2 = 0 THEN INSERT DEFAULT VALUES WHEN NOT MATCHED THEN INSERT (id, s) VALUES (-u.id, u.s)', 'SELECT id, k, s FROM t');
:run ('MERGE INTO t USING (SELECT p.id, max(u.s) AS s FROM merge_p p JOIN u ON u.k = p.k % 5 WHERE u.id < 200 GROUP BY p.id) q ON q.id = t.id WHEN MATCHED THEN UPDATE SET s = q.s WHEN NOT MATCHED THEN INSERT (id, s) VALUES (q.id, q.s)', 'SELECT id, k, s FROM t');
-- the source is the target
:run ('MERGE INTO t USING t b ON t.id = b.id + 1 WHEN MATCHED THEN UPDATE SET k = b.k + 100 WHEN NOT MATCHED THEN INSERT (id) VALUES (5000)', 'SELECT id, k, s FROM t');
-- subqueries in conditions and actions
:run ('MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND t.k < (SELECT avg(k) FROM u) THEN UPDATE SET k = (SELECT count(*) FROM u b WHERE b.k = t.k) WHEN MATCHED AND EXISTS (SELECT FROM merge_p p WHERE p.id = t.id) THEN DELETE', 'SELECT id, k, s FROM t');
:run ('WITH g AS MATERIALIZED (SELECT k, min(id) AS id FROM u GROUP BY k) MERGE INTO t USING g ON g.id = t.id WHEN MATCHED THEN UPDATE SET k = -1', 'TABLE t');
:run ('WITH g AS (SELECT * FROM u) MERGE INTO t USING g ON g.id = t.id WHEN MATCHED AND t.k < (SELECT max(k) FROM g) THEN DELETE', 'TABLE t');
:run ('WITH g AS MATERIALIZED (SELECT id, k FROM t WHERE k >= 0) MERGE INTO u USING (SELECT id, (SELECT count(*) FROM g WHERE g.id >= 0 * t.id) AS m FROM t WHERE (SELECT g.k FROM g LIMIT 1) >= 0 AND id < 10) q ON q.id = u.id WHEN MATCHED THEN UPDATE SET k = q.m', 'TABLE u');
-- errors: a row that is changed twice, and one that is inserted twice
:run ('MERGE INTO t USING (SELECT id % 100 AS id FROM u) q ON q.id = t.id WHEN MATCHED THEN UPDATE SET k = 0', 'TABLE t');
SELECT workers, n, answers, 1 AS unique_violation FROM pg_temp.changes('MERGE INTO t USING (SELECT 3000 AS id FROM u WHERE id < 5) q ON q.id = t.id WHEN NOT MATCHED THEN INSERT (id) VALUES (q.id)', 'TABLE t');
-- which rows the statement has changed so far is in the rows
:run ('MERGE INTO t USING t b ON t.id = b.id + 1 WHEN MATCHED THEN UPDATE SET k = CASE WHEN b.xmax::text = ''0'' THEN 0 ELSE 1 END', 'SELECT id FROM t');
-- a function that may see the rows changed so far
CREATE FUNCTION pg_temp.volatile(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN i; END $$;
:run ('MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND pg_temp.volatile(t.k) = 3 THEN UPDATE SET k = pg_temp.volatile(u.k)', 'TABLE t');
:run ('MERGE INTO t USING u ON t.id = pg_temp.volatile(u.id) WHEN MATCHED THEN DELETE', 'TABLE t');

-- partitions, and rows that move between them; triggers
CREATE TEMP TABLE parts (id int, k int, s text) PARTITION BY LIST (k);
CREATE TEMP TABLE parts_0 PARTITION OF parts FOR VALUES IN (0, 1, 2);
CREATE TEMP TABLE parts_1 (s text, gone int, k int, id int);
ALTER TABLE parts_1 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_1 DEFAULT;
CREATE TEMP TABLE log (what text, id int);
CREATE FUNCTION pg_temp.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO log VALUES (TG_OP, coalesce(NEW.id, OLD.id));
	RETURN coalesce(NEW, OLD);
END $$;
INSERT INTO parts SELECT id, k, s FROM t;
ANALYZE parts;
:run ('MERGE INTO parts USING u ON parts.id = u.id WHEN MATCHED AND u.k = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET k = u.k, s = u.s WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.k, u.s)', 'SELECT tableoid::regclass::text, id, k, s FROM parts');
-- one that is called for each row may change others
CREATE TRIGGER n AFTER INSERT OR UPDATE OR DELETE ON parts FOR EACH ROW EXECUTE FUNCTION pg_temp.note();
:run ('MERGE INTO parts USING u ON parts.id = u.id WHEN MATCHED AND u.k = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET k = u.k, s = u.s WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.k, u.s)', 'SELECT tableoid::regclass::text, id, k, s FROM parts UNION ALL SELECT what, id, 0, NULL FROM log');
DROP TRIGGER n ON parts;
CREATE TRIGGER b BEFORE INSERT ON parts_1 FOR EACH ROW EXECUTE FUNCTION pg_temp.note();
:run ('MERGE INTO parts USING u ON parts.id = u.id WHEN MATCHED AND u.k = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET k = u.k, s = u.s WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.k, u.s)', 'SELECT tableoid::regclass::text, id, k, s FROM parts UNION ALL SELECT what, id, 0, NULL FROM log');
:run ('MERGE INTO parts USING u ON parts.id = u.id WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.k, u.s)', 'SELECT tableoid::regclass::text, id, k, s FROM parts UNION ALL SELECT what, id, 0, NULL FROM log');
:run ('MERGE INTO parts USING u ON parts.id = u.id WHEN MATCHED THEN UPDATE SET s = u.s', 'SELECT tableoid::regclass::text, id, k, s FROM parts UNION ALL SELECT what, id, 0, NULL FROM log');

-- a row may be deleted before or after another one with the same unique value is inserted
CREATE TEMP TABLE seats (id int, seat int UNIQUE);
INSERT INTO seats SELECT id, id FROM t ORDER BY id;
:run ('MERGE INTO seats USING (SELECT CASE n WHEN 1 THEN id ELSE -id END AS id, id AS seat FROM u, generate_series(1, 2) n ORDER BY u.id, n) s ON seats.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 100000 + s.id)', 'TABLE seats');
:run ('MERGE INTO seats USING u ON seats.id = u.id WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT VALUES (u.id, -u.id)', 'TABLE seats');
DROP TABLE seats;

-- permanent targets
SELECT pg_temp.nodes('MERGE INTO merge_p p USING u ON p.id = u.id WHEN MATCHED THEN DELETE');
:run ('MERGE INTO merge_p p USING u ON p.id = u.id WHEN MATCHED THEN DELETE', 'TABLE merge_p');

-- NOT MATCHED BY SOURCE and RETURNING, and from 18 on, old and new
CALL pg_temp.from_version(17, 'launched 1728 same', 'MERGE INTO t USING u ON t.id = u.id AND t.k <> 6 WHEN NOT MATCHED BY SOURCE AND t.k = 5 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = ''alone'' WHEN MATCHED THEN UPDATE SET k = u.k WHEN NOT MATCHED BY TARGET THEN INSERT (id) VALUES (u.id + 10000)', 'SELECT id, k, s FROM t');
CALL pg_temp.from_version(17, 'subquery is evaluated as rows are changed 333 same', 'MERGE INTO t USING u ON t.id = u.id AND EXISTS (SELECT FROM merge_p p WHERE p.id = u.id) WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED THEN UPDATE SET k = u.k RETURNING merge_action(), t.id, t.k, u.s', 'SELECT id, k, s FROM t');
CALL pg_temp.from_version(17, 'subquery is evaluated as rows are changed 500 same', 'WITH g AS (SELECT * FROM u) MERGE INTO t USING u ON t.id = u.id AND EXISTS (SELECT FROM g WHERE g.id = u.id) WHEN NOT MATCHED BY SOURCE THEN DELETE', 'TABLE t');
CALL pg_temp.from_version(18, 'launched 1428 same', 'MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND t.k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET k = u.k RETURNING merge_action(), old.k, new.k, old.s', 'SELECT id, k, s FROM t');
CALL pg_temp.from_version(18, 'launched 1500 same', 'UPDATE t SET k = u.k + old_k.k FROM u, t old_k WHERE u.id = t.id AND old_k.id = t.id RETURNING old.id, old.k, new.k', 'TABLE t');

DROP TABLE merge_p;
