--
-- INSERT INTO a temporary table ... SELECT: what the query may contain, and the
-- definition of the target. Workers run the SELECT, or it is refused and EXPLAIN says
-- why; in either case the rows are those that are inserted without the module. If
-- something here differs, rows are wrong or lost, or a statement fails that did not.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
\i sql/include/changes.sql
\i sql/include/nodes.sql
\set run 'SELECT * FROM pg_temp.changes'

CREATE TABLE refused_p (id int, k int, s text) WITH (autovacuum_enabled = off);
INSERT INTO refused_p SELECT i, i % 10, 'p' || i FROM generate_series(1, 1000) i;
ANALYZE refused_p;
CREATE TEMP TABLE t (id int, k int, s text);
INSERT INTO t SELECT * FROM refused_p WHERE id < 300;
ANALYZE t;

-- Functions that run SQL. Volatile ones see the rows inserted so far.
CREATE FUNCTION pg_temp.volatile(i int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED AS
	$$ BEGIN RETURN i + (SELECT count(*) FROM generate_series(1, 0)); END $$;
CREATE FUNCTION pg_temp.volatile_sql(i int) RETURNS int LANGUAGE sql PARALLEL RESTRICTED AS
	$$ SELECT (i + (SELECT count(*) FROM generate_series(1, 0)))::int $$;
CREATE FUNCTION pg_temp.unsafe(i int) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN i; END $$;
CREATE FUNCTION pg_temp.immutable_unsafe(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN i; END $$;
CREATE FUNCTION pg_temp.stable(i int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS
	$$ BEGIN RETURN i + (SELECT count(*) FROM generate_series(1, 0)); END $$;
-- From 17 on, functions may have an exception block in parallel mode.
CREATE FUNCTION pg_temp.caught(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	$$ BEGIN BEGIN RETURN i; EXCEPTION WHEN OTHERS THEN RETURN NULL; END; END $$;
-- a function that calls a volatile one
CREATE FUNCTION pg_temp.calls(i int) RETURNS int LANGUAGE sql STABLE PARALLEL RESTRICTED AS
	$$ SELECT pg_temp.volatile(i) $$;
-- a volatile function of core's is not refused, unless it looks at tables or transactions
CREATE TEMP TABLE plain (id int, k int, s text);
:run ('INSERT INTO plain SELECT id, 1 + floor(random())::int, s FROM refused_p', 'SELECT id FROM plain');
:run ('INSERT INTO plain SELECT id, pg_relation_size(''plain''), repeat(s, 100) FROM refused_p ORDER BY id', 'SELECT count(DISTINCT k) > 9 FROM plain');
-- but workers would compute it before they merge their sorted rows
:run ('INSERT INTO plain SELECT id, 1 + length(clock_timestamp()::text) / 1000, s FROM refused_p ORDER BY id', 'SELECT id FROM plain');
TRUNCATE plain;
:run ('INSERT INTO plain SELECT id, pg_stat_get_xact_tuples_inserted(''plain''::regclass), s FROM refused_p ORDER BY id', 'SELECT id, k - min(k) OVER () FROM plain');

--
-- The query
--
EXPLAIN (COSTS OFF) INSERT INTO plain SELECT pg_temp.volatile(id), k, s FROM refused_p;
:run ('INSERT INTO plain SELECT pg_temp.volatile(id), k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT pg_temp.volatile_sql(id), k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT pg_temp.stable(id), k, s FROM refused_p', 'SELECT * FROM plain');
SELECT answers FROM pg_temp.changes(CASE WHEN current_setting('server_version_num')::int < 170000 THEN 'SELECT 1'
	ELSE 'INSERT INTO plain SELECT pg_temp.caught(id), k, s FROM refused_p' END, 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT pg_temp.calls(id), k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT pg_temp.unsafe(id), k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT id, k, s FROM refused_p WHERE pg_temp.volatile(k) = 3', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT id, k, s FROM refused_p WHERE id IN (SELECT pg_temp.volatile(id) FROM refused_p)', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT id, k, s FROM refused_p FOR UPDATE', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT id, k, s FROM refused_p RETURNING pg_temp.volatile(id)', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT id, k, s FROM refused_p RETURNING pg_temp.unsafe(id)', 'SELECT * FROM plain');
-- a subquery that is evaluated as rows are inserted: workers would not take the locks
:run ('INSERT INTO plain SELECT id, k, s FROM refused_p RETURNING (SELECT count(*) FROM (SELECT FROM refused_p WHERE id < 9 FOR UPDATE) q)', 'SELECT * FROM plain');
-- in a function, where the planner finds them: workers would not take them either
CREATE FUNCTION pg_temp.locking() RETURNS SETOF refused_p LANGUAGE sql STABLE PARALLEL RESTRICTED AS
	$$ SELECT * FROM refused_p WHERE k = 3 FOR UPDATE $$;
:run ('INSERT INTO plain SELECT p.* FROM pg_temp.locking() p JOIN refused_p USING (id)', 'SELECT * FROM plain');
BEGIN;
INSERT INTO plain SELECT p.* FROM pg_temp.locking() p JOIN t USING (id);
SELECT count(*) AS locked FROM refused_p WHERE xmax = pg_current_xact_id()::xid;
ROLLBACK;
DROP FUNCTION pg_temp.locking();
-- the same of a temporary table, in a query
CREATE FUNCTION pg_temp.locking() RETURNS SETOF t LANGUAGE sql STABLE PARALLEL RESTRICTED AS
	$$ SELECT * FROM t WHERE id % 3 = 0 FOR UPDATE $$;
BEGIN;
SELECT count(*) > 0 AS rows FROM pg_temp.locking() p JOIN t USING (id);
SELECT count(*) FILTER (WHERE xmax = pg_current_xact_id()::xid) = count(*) AS locked FROM t WHERE id % 3 = 0;
ROLLBACK;
DROP FUNCTION pg_temp.locking();
-- a domain with a constraint, in a function in which the planner finds it
CREATE DOMAIN pg_temp.counted AS int CHECK (pg_temp.unsafe(VALUE) > 0);
CREATE FUNCTION pg_temp.count_it(int) RETURNS int LANGUAGE sql STABLE PARALLEL RESTRICTED AS
	$$ SELECT ((('{' || $1 || '}')::pg_temp.counted[])[1])::int $$;
:run ('INSERT INTO plain SELECT pg_temp.count_it(id), k, s FROM refused_p', 'SELECT * FROM plain');
DROP FUNCTION pg_temp.count_it(int);
DROP DOMAIN pg_temp.counted;
-- a sequence, which has another value for each row
CREATE SEQUENCE insert_seq;
:run ('INSERT INTO plain SELECT nextval(''insert_seq''), (SELECT last_value FROM insert_seq), s FROM refused_p', 'SELECT s FROM plain');
ALTER TABLE plain ALTER id SET DEFAULT nextval('insert_seq');
:run ('INSERT INTO plain (k, s) SELECT (SELECT last_value FROM insert_seq q WHERE q.last_value > -p.id), NULL FROM refused_p p', 'SELECT id - k FROM plain OFFSET 1');
CREATE FUNCTION pg_temp.numbered() RETURNS TABLE (n bigint) LANGUAGE sql STABLE PARALLEL RESTRICTED AS 'SELECT last_value FROM insert_seq';
:run ('INSERT INTO plain (k, s) SELECT n, NULL FROM refused_p, pg_temp.numbered() WHERE n > -id', 'SELECT count(*) FROM plain');
ALTER TABLE plain ALTER id DROP DEFAULT;
DROP FUNCTION pg_temp.numbered();
DROP SEQUENCE insert_seq;
-- a setting, or the seed of random numbers, which the row before has set
SET my.n = 0;
:run ('INSERT INTO plain SELECT id, current_setting(''my.n'')::int, s FROM refused_p RETURNING set_config(''my.n'', id::text, false)', 'SELECT id, k FROM plain');
ALTER TABLE plain ALTER s SET DEFAULT set_config('my.n', (current_setting('my.n')::int + 1)::text, false);
:run ('INSERT INTO plain (id, k) SELECT id, current_setting(''my.n'')::int FROM refused_p', 'SELECT k - s::int FROM plain');
ALTER TABLE plain ALTER s DROP DEFAULT;
:run ('INSERT INTO plain SELECT id, (random() * 1000)::int, s FROM refused_p RETURNING setseed(0.5)', 'SELECT DISTINCT k FROM plain WHERE id > 1');
ALTER TABLE plain ALTER k SET DEFAULT random() * 1000;
:run ('INSERT INTO plain (id, s) SELECT id, setseed(0.5) || random()::text FROM (SELECT * FROM refused_p ORDER BY id) p', 'SELECT count(*) FROM plain');
ALTER TABLE plain ALTER k DROP DEFAULT;
-- a function of the server that runs a query, which may call any
:run ('INSERT INTO plain SELECT id, k, s FROM refused_p RETURNING (SELECT sum(nentry) FROM ts_stat(''SELECT NULL::tsvector''))', 'SELECT id FROM plain');
-- the default value of an argument, which the planner adds
CREATE FUNCTION pg_temp.with_default(i int, j int DEFAULT pg_temp.volatile(7)) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS
	$$ BEGIN RETURN i + j; END $$;
:run ('INSERT INTO plain SELECT pg_temp.with_default(id), k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT pg_temp.with_default(id, k), k, s FROM refused_p', 'SELECT * FROM plain');
-- an aggregate, and operators by which rows are sorted, that call such functions
CREATE FUNCTION pg_temp.volatile_add(a int, b int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS
	$$ BEGIN RETURN a + b + (SELECT count(*) FROM generate_series(1, 0)); END $$;
CREATE AGGREGATE pg_temp.volatile_sum(int) (sfunc = pg_temp.volatile_add, stype = int, initcond = 0, parallel = safe);
:run ('INSERT INTO plain SELECT k, pg_temp.volatile_sum(id) FROM refused_p GROUP BY k', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT id, pg_temp.volatile_sum(1) OVER (ORDER BY id) FROM refused_p', 'SELECT * FROM plain');
CREATE FUNCTION pg_temp.volatile_less(a int, b int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE AS
	$$ BEGIN RETURN a < b AND (SELECT count(*) FROM generate_series(1, 0)) = 0; END $$;
CREATE FUNCTION pg_temp.volatile_greater(a int, b int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE AS
	$$ BEGIN RETURN a > b AND (SELECT count(*) FROM generate_series(1, 0)) = 0; END $$;
CREATE FUNCTION pg_temp.volatile_compare(a int, b int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS
	$$ BEGIN RETURN CASE WHEN a < b THEN -1 WHEN a > b THEN 1 ELSE 0 END + (SELECT count(*) FROM generate_series(1, 0)); END $$;
CREATE OPERATOR pg_temp.<<< (leftarg = int, rightarg = int, function = pg_temp.volatile_less, commutator = OPERATOR(pg_temp.>>>));
CREATE OPERATOR pg_temp.>>> (leftarg = int, rightarg = int, function = pg_temp.volatile_greater, commutator = OPERATOR(pg_temp.<<<));
CREATE OPERATOR CLASS pg_temp.volatile_ops FOR TYPE int USING btree AS
	OPERATOR 1 pg_temp.<<<, OPERATOR 3 =, OPERATOR 5 pg_temp.>>>, FUNCTION 1 pg_temp.volatile_compare(int, int);
:run ('INSERT INTO plain SELECT id, k, s FROM refused_p ORDER BY id USING OPERATOR(pg_temp.<<<)', 'SELECT * FROM plain');
-- a domain with constraints, whatever these call: no worker checks one
CREATE DOMAIN pg_temp.volatile_domain AS int CHECK (pg_temp.volatile(VALUE) > 0);
:run ('INSERT INTO plain SELECT id::pg_temp.volatile_domain, k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT (array[id]::pg_temp.volatile_domain[])[1], k, s FROM refused_p', 'SELECT * FROM plain');
CREATE DOMAIN pg_temp.over_domain AS pg_temp.volatile_domain;
CREATE TYPE pg_temp.pair AS (a pg_temp.over_domain, b int);
:run ('INSERT INTO plain SELECT (row(id, k)::pg_temp.pair).a, k, s FROM refused_p', 'SELECT * FROM plain');
-- the same, checked by functions that make values of composite types, arrays and ranges
CREATE FUNCTION pg_temp.few() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) < 5 FROM plain); END $$;
CREATE DOMAIN pg_temp.few_domain AS int CHECK (pg_temp.few());
CREATE TYPE pg_temp.few_pair AS (a pg_temp.few_domain, b int);
CREATE TYPE pg_temp.few_range AS RANGE (subtype = pg_temp.few_domain);
:run ('INSERT INTO plain SELECT ((''('' || id || '',1)'')::pg_temp.few_pair).a, k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT ((''{"(1,'' || id || '')"}'')::pg_temp.few_pair[])[1].b, k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT ((''{'' || id || ''}'')::pg_temp.few_domain[])[1], k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT lower((''['' || id || '',)'')::pg_temp.few_range), k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT lower((''{['' || id || '',)}'')::pg_temp.few_multirange), k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT (jsonb_populate_record(NULL::pg_temp.few_pair, jsonb_build_object(''a'', id))).a, k, s FROM refused_p', 'SELECT * FROM plain');
:run ('INSERT INTO plain SELECT j.a, k, s FROM refused_p, jsonb_to_record(jsonb_build_object(''a'', id)) AS j (a pg_temp.few_domain)', 'SELECT * FROM plain');
CREATE DOMAIN pg_temp.unsafe_domain AS int CHECK (pg_temp.unsafe(VALUE) > 0);
:run ('INSERT INTO plain SELECT ((''{'' || id || ''}'')::pg_temp.unsafe_domain[])[1], k, s FROM refused_p', 'SELECT * FROM plain');
CREATE DOMAIN pg_temp.safe_domain AS int CHECK (VALUE > 0);
:run ('INSERT INTO plain SELECT ((''{'' || id || ''}'')::pg_temp.safe_domain[])[1], k, s FROM refused_p', 'SELECT * FROM plain');
-- but one without is no reason
CREATE DOMAIN pg_temp.free_domain AS int;
:run ('INSERT INTO plain SELECT id::pg_temp.free_domain, k, s FROM refused_p', 'SELECT * FROM plain');
-- WITH that modifies data, or is used by RETURNING; ON CONFLICT DO UPDATE
CREATE TEMP TABLE u (id int UNIQUE, k int, s text);
:run ('WITH d AS (DELETE FROM t WHERE k = 1 RETURNING *) INSERT INTO plain SELECT id, k, s FROM refused_p UNION ALL SELECT * FROM d', 'SELECT * FROM plain UNION ALL SELECT * FROM t');
SELECT pg_temp.nodes('WITH d AS (DELETE FROM t WHERE k = 1 RETURNING *) INSERT INTO plain SELECT id, k, s FROM refused_p');
:run ('WITH i AS (INSERT INTO plain SELECT id, k, s FROM refused_p RETURNING *) SELECT * FROM i', 'SELECT * FROM plain');
:run ('INSERT INTO u SELECT id % 100, 1, NULL FROM refused_p ORDER BY id ON CONFLICT (id) DO NOTHING', 'SELECT * FROM u');
INSERT INTO u SELECT i FROM generate_series(1, 500) i;
SELECT pg_temp.nodes('INSERT INTO u SELECT * FROM refused_p ON CONFLICT (id) DO UPDATE SET k = u.k + 1, s = excluded.s');
:run ('INSERT INTO u SELECT * FROM refused_p ON CONFLICT (id) DO UPDATE SET k = u.k + 1, s = excluded.s', 'SELECT * FROM u');
-- of several rows with an id, the first one may be the only one that is changed
:run ('INSERT INTO u SELECT * FROM refused_p ON CONFLICT (id) DO UPDATE SET k = u.k + 1 WHERE excluded.k > u.k', 'SELECT * FROM u');
-- so may be that of an ORDER BY, at which nobody looks
:run ('INSERT INTO u SELECT * FROM refused_p ORDER BY id, k ON CONFLICT (id) DO UPDATE SET k = u.k + 1 WHERE excluded.k > u.k', 'SELECT * FROM u');
-- the first of several rows with an x decides whether there is another one with its y, at once
-- or in the end
CREATE TEMP TABLE xy (x int UNIQUE, y int, v int);
:run ('INSERT INTO xy (x, y) SELECT id % 500, id FROM refused_p ON CONFLICT (x) DO NOTHING', 'SELECT x FROM xy');
ALTER TABLE xy ADD CONSTRAINT y UNIQUE (y) DEFERRABLE;
:run ('INSERT INTO xy (x, y) SELECT id % 500, id FROM refused_p ON CONFLICT (x) DO NOTHING', 'SELECT x, y FROM xy');
ALTER TABLE xy DROP CONSTRAINT y, ADD CONSTRAINT y UNIQUE (y);
:run ('INSERT INTO xy (x, y) SELECT id % 500, id FROM refused_p ON CONFLICT (x) DO NOTHING', 'SELECT x, y FROM xy');
:run ('INSERT INTO xy (x, y) SELECT id % 500, id FROM refused_p WHERE id < 500 ON CONFLICT (x) DO UPDATE SET v = 1', 'SELECT x, y FROM xy');
:run ('INSERT INTO xy (x, y) SELECT id % 500, id FROM refused_p ON CONFLICT DO NOTHING', 'SELECT x FROM xy');
-- the numbers that it gives to rows that conflict may be in the table already, which those of
-- the others must not; the arbiter, too, may be a number
DROP TABLE xy;
CREATE TEMP TABLE xy (id serial PRIMARY KEY, x int UNIQUE, v int);
INSERT INTO xy SELECT i, i FROM generate_series(1, 300) i;
:run ('INSERT INTO xy (x) SELECT id FROM refused_p ON CONFLICT (x) DO UPDATE SET v = 1', 'SELECT x, v FROM xy');
:run ('INSERT INTO xy (x) SELECT id + 1000 FROM refused_p ON CONFLICT (id) DO NOTHING', 'SELECT count(*) FROM xy');
:run ('INSERT INTO xy (x) SELECT id FROM refused_p ORDER BY id ON CONFLICT (x) DO UPDATE SET v = (SELECT count(*) FROM (SELECT FROM refused_p WHERE id < 9 FOR UPDATE) q)', 'SELECT x, v FROM xy');
DROP TABLE xy;
TRUNCATE u;
:run ('WITH q AS (SELECT * FROM refused_p) INSERT INTO plain SELECT id, k, s FROM q LIMIT 5 RETURNING (SELECT count(*) FROM q)', 'SELECT count(*) FROM plain');

--
-- The target is read
--
SELECT pg_temp.nodes('INSERT INTO t SELECT id, k, s FROM t');
:run ('INSERT INTO t SELECT id, k, s FROM t', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT id, k, s FROM refused_p WHERE NOT EXISTS (SELECT FROM t WHERE t.id = refused_p.id)', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT id, (SELECT max(id) FROM t), s FROM refused_p', 'SELECT * FROM t');
:run ('WITH q AS (SELECT * FROM t) INSERT INTO t SELECT p.id, q.k, q.s FROM refused_p p JOIN q USING (id)', 'SELECT * FROM t');
:run ('INSERT INTO t SELECT id, k, s FROM refused_p RETURNING (SELECT count(*) FROM t)', 'SELECT * FROM t');
-- by a view, a function that is inlined, one that is not
CREATE TEMP VIEW v AS SELECT * FROM t WHERE k < 5;
:run ('INSERT INTO t SELECT * FROM v', 'SELECT * FROM t');
:run ('INSERT INTO v SELECT * FROM v', 'SELECT * FROM t');
CREATE FUNCTION pg_temp.inlined() RETURNS SETOF t LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT * FROM t';
SELECT pg_temp.nodes('INSERT INTO t SELECT p.id, f.k, f.s FROM refused_p p JOIN pg_temp.inlined() f USING (id)');
:run ('INSERT INTO t SELECT p.id, f.k, f.s FROM refused_p p JOIN pg_temp.inlined() f USING (id)', 'SELECT * FROM t');
-- a function that reads it
CREATE FUNCTION pg_temp.counted(i int) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS
	$$ BEGIN RETURN (SELECT count(*) FROM t WHERE k = i % 10); END $$;
:run ('INSERT INTO t SELECT id, pg_temp.counted(id), s FROM refused_p WHERE id < 40', 'SELECT * FROM t');
-- as a partition, as the parent of a partition, as a child
CREATE TEMP TABLE pt (id int, k int, s text) PARTITION BY LIST (k);
CREATE TEMP TABLE pt1 PARTITION OF pt FOR VALUES IN (0, 1, 2) PARTITION BY LIST (k);
CREATE TEMP TABLE pt1a PARTITION OF pt1 DEFAULT;
CREATE TEMP TABLE pt2 PARTITION OF pt DEFAULT;
INSERT INTO pt SELECT * FROM refused_p;
ANALYZE pt;
:run ('INSERT INTO pt SELECT id, k, s FROM pt2', 'SELECT * FROM pt');
:run ('INSERT INTO pt SELECT id, k, s FROM pt1a', 'SELECT * FROM pt');
:run ('INSERT INTO pt2 SELECT id, 7, s FROM pt', 'SELECT * FROM pt');
:run ('INSERT INTO pt1 SELECT * FROM pt1a', 'SELECT * FROM pt');
:run ('INSERT INTO pt1a SELECT * FROM pt WHERE k IN (0, 1)', 'SELECT * FROM pt');
-- parts of it that the planner leaves out, too
:run ('INSERT INTO pt1a SELECT id, 1, s FROM pt WHERE k = 7', 'SELECT * FROM pt');
CREATE TEMP TABLE inh () INHERITS (t);
:run ('INSERT INTO inh SELECT id, k, s FROM t', 'SELECT tableoid::regclass, * FROM t');
:run ('INSERT INTO inh SELECT id, k, s FROM ONLY t', 'SELECT tableoid::regclass, * FROM t');
:run ('INSERT INTO t SELECT id, k, s FROM inh', 'SELECT tableoid::regclass, * FROM t');
DROP TABLE inh;
-- by row security, of the target and of the source
CREATE ROLE insert_select_user;
CREATE FUNCTION pg_temp.as_user(statement text, target text) RETURNS TABLE (workers text, n bigint, answers text) LANGUAGE plpgsql AS
	$$ BEGIN SET LOCAL ROLE insert_select_user; RETURN QUERY SELECT * FROM pg_temp.changes(statement, target); RESET ROLE; END $$;
GRANT ALL ON t, plain, refused_p TO insert_select_user;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY reads ON t FOR SELECT TO insert_select_user USING (true);
CREATE POLICY writes ON t FOR INSERT TO insert_select_user WITH CHECK (k <> (SELECT count(*) FROM plain) + 10);
SELECT * FROM pg_temp.as_user('INSERT INTO t SELECT * FROM refused_p', 'SELECT * FROM t');
ALTER POLICY writes ON t WITH CHECK (k <> (SELECT count(*) FROM t t2));
SELECT * FROM pg_temp.as_user('INSERT INTO t SELECT * FROM refused_p', 'SELECT * FROM t');
ALTER POLICY writes ON t WITH CHECK (pg_temp.volatile(k) < 5);
SELECT * FROM pg_temp.as_user('INSERT INTO t SELECT * FROM refused_p WHERE k < 5', 'SELECT * FROM t');
ALTER POLICY writes ON t WITH CHECK (k < 5);
SELECT * FROM pg_temp.as_user('INSERT INTO t SELECT * FROM refused_p WHERE k < 5', 'SELECT * FROM t');
SELECT * FROM pg_temp.as_user('INSERT INTO t SELECT * FROM refused_p', 'SELECT * FROM t');
ALTER TABLE refused_p ENABLE ROW LEVEL SECURITY;
CREATE POLICY reads ON refused_p FOR SELECT TO insert_select_user USING (id <= (SELECT max(id) FROM t));
SELECT * FROM pg_temp.as_user('INSERT INTO t SELECT * FROM refused_p WHERE k < 5', 'SELECT * FROM t');
SELECT * FROM pg_temp.as_user('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain');
ALTER TABLE refused_p DISABLE ROW LEVEL SECURITY;
ALTER TABLE t DISABLE ROW LEVEL SECURITY;
DROP POLICY reads ON refused_p;
DROP POLICY writes ON t;
DROP POLICY reads ON t;
REVOKE ALL ON t, plain, refused_p FROM insert_select_user;
DROP ROLE insert_select_user;

--
-- What the target's definition runs. A trigger for each row depends on the order of rows, and
-- may see that all have been found before.
--
CREATE FUNCTION pg_temp.before() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO t VALUES (-1, 0, TG_LEVEL); RETURN NEW; END $$;
CREATE TRIGGER before_row BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION pg_temp.before();
SELECT pg_temp.nodes('INSERT INTO plain SELECT * FROM refused_p');
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain UNION ALL SELECT * FROM t');
:run ('INSERT INTO plain SELECT * FROM refused_p ORDER BY id', 'SELECT * FROM plain UNION ALL SELECT * FROM t');
ALTER TABLE plain DISABLE TRIGGER before_row;
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain UNION ALL SELECT * FROM t');
DROP TRIGGER before_row ON plain;
CREATE TRIGGER before_statement BEFORE INSERT ON plain EXECUTE FUNCTION pg_temp.before();
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain UNION ALL SELECT * FROM t');
DROP TRIGGER before_statement ON plain;
CREATE TRIGGER of_partition BEFORE INSERT ON pt1a FOR EACH ROW EXECUTE FUNCTION pg_temp.before();
:run ('INSERT INTO pt SELECT * FROM refused_p', 'SELECT * FROM pt UNION ALL SELECT * FROM t');
:run ('INSERT INTO pt2 SELECT id, 7, s FROM refused_p', 'SELECT * FROM pt UNION ALL SELECT * FROM t');
DROP TRIGGER of_partition ON pt1a;
CREATE TRIGGER after_update AFTER UPDATE ON plain FOR EACH ROW WHEN (pg_temp.volatile(NEW.id) = 1) EXECUTE FUNCTION pg_temp.before();
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain');
DROP TRIGGER after_update ON plain;
CREATE TRIGGER condition AFTER INSERT ON plain FOR EACH ROW WHEN (pg_temp.volatile(NEW.id) < 5) EXECUTE FUNCTION pg_temp.before();
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain UNION ALL SELECT * FROM t');
DROP TRIGGER condition ON plain;
-- INSTEAD OF triggers, rules
CREATE FUNCTION pg_temp.instead() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO t VALUES (NEW.id, NEW.k, NEW.s); RETURN NEW; END $$;
CREATE TRIGGER instead INSTEAD OF INSERT ON v FOR EACH ROW EXECUTE FUNCTION pg_temp.instead();
:run ('INSERT INTO v SELECT * FROM refused_p', 'SELECT * FROM t');
DROP TRIGGER instead ON v;
CREATE RULE instead AS ON INSERT TO v DO INSTEAD INSERT INTO plain VALUES (NEW.id, NEW.k, NEW.s);
:run ('INSERT INTO v SELECT * FROM refused_p', 'SELECT * FROM plain UNION ALL SELECT * FROM t');
DROP RULE instead ON v;
CREATE RULE also AS ON INSERT TO plain DO ALSO INSERT INTO t VALUES (NEW.id, NEW.k, 'also');
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain UNION ALL SELECT * FROM t');
DROP RULE also ON plain;
CREATE RULE nothing AS ON INSERT TO plain WHERE NEW.k = 3 DO INSTEAD NOTHING;
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain');
DROP RULE nothing ON plain;
-- constraints
ALTER TABLE plain ADD CONSTRAINT c CHECK (pg_temp.volatile(id) > 0);
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain');
ALTER TABLE plain DROP CONSTRAINT c;
ALTER TABLE plain ADD CONSTRAINT c CHECK (id IS NOT NULL AND length(s) > 0);
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain');
ALTER TABLE plain DROP CONSTRAINT c;
ALTER TABLE plain ADD CONSTRAINT c CHECK (pg_temp.unsafe(id) > 0);
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain');
ALTER TABLE plain DROP CONSTRAINT c;
ALTER TABLE plain ADD CONSTRAINT c CHECK (pg_temp.stable(id) > 0);
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain');
ALTER TABLE plain DROP CONSTRAINT c;
CREATE TEMP TABLE of_domain (d pg_temp.volatile_domain, k int);
:run ('INSERT INTO of_domain SELECT id, k FROM refused_p', 'SELECT * FROM of_domain');
-- defaults and sequences
CREATE TEMP TABLE defaults (id int, k int DEFAULT pg_temp.volatile(7));
:run ('INSERT INTO defaults SELECT id FROM refused_p', 'SELECT * FROM defaults');
:run ('INSERT INTO defaults SELECT id, k FROM refused_p', 'SELECT * FROM defaults');
CREATE TEMP TABLE numbered (n serial, id int);
SELECT pg_temp.nodes('INSERT INTO numbered (id) SELECT id FROM refused_p');
:run ('INSERT INTO numbered (id) SELECT id FROM refused_p', 'SELECT id FROM numbered');
:run ('INSERT INTO numbered SELECT id, id FROM refused_p', 'SELECT * FROM numbered');
CREATE TEMP TABLE identity (n int GENERATED ALWAYS AS IDENTITY, id int);
:run ('INSERT INTO identity (id) SELECT id FROM refused_p', 'SELECT id FROM identity');
:run ('INSERT INTO identity OVERRIDING USER VALUE SELECT id, id FROM refused_p', 'SELECT id FROM identity');
:run ('INSERT INTO identity OVERRIDING SYSTEM VALUE SELECT id, id FROM refused_p', 'SELECT * FROM identity');
-- generated columns, indexes, partition keys: these must be immutable
CREATE TEMP TABLE generated (id int, g int GENERATED ALWAYS AS (pg_temp.immutable_unsafe(id)) STORED);
:run ('INSERT INTO generated SELECT id FROM refused_p', 'SELECT * FROM generated');
CREATE INDEX expression ON plain (pg_temp.immutable_unsafe(id));
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain');
DROP INDEX expression;
CREATE INDEX predicate ON plain (id) WHERE pg_temp.immutable_unsafe(id) > 3;
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain');
DROP INDEX predicate;
CREATE INDEX opclass ON plain (id pg_temp.volatile_ops);
:run ('INSERT INTO plain SELECT * FROM refused_p', 'SELECT * FROM plain');
DROP INDEX opclass;
CREATE TEMP TABLE keyed (id int, k int) PARTITION BY LIST (pg_temp.immutable_unsafe(k));
CREATE TEMP TABLE keyed1 PARTITION OF keyed DEFAULT;
:run ('INSERT INTO keyed SELECT id, k FROM refused_p', 'SELECT * FROM keyed');

--
-- The target is not of heap
--
CREATE ACCESS METHOD refused_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TEMP TABLE other (id int, k int, s text) USING refused_heap;
:run ('INSERT INTO other SELECT * FROM refused_p', 'SELECT * FROM other');
DROP TABLE other;
DROP ACCESS METHOD refused_heap;

--
-- CREATE TABLE AS, which core runs in parallel
--
SELECT current_setting('server_version_num')::int >= 170000 AS exception_blocks \gset
SELECT CASE WHEN :'exception_blocks' THEN 'pg_temp.caught(id)' ELSE 'id' END AS value \gset
SELECT pg_temp.nodes('CREATE TEMP TABLE c AS SELECT id AS value, k, s FROM t');
CREATE TEMP TABLE c AS SELECT :value AS value, k, s FROM t ORDER BY id DESC LIMIT 200;
SELECT count(*), count(value), sum(value) FROM c;
CREATE TEMP TABLE IF NOT EXISTS c AS SELECT * FROM t;
SELECT count(*) FROM c;
DROP TABLE c;
CREATE TEMP TABLE c (value, x) AS SELECT id, s || 1 FROM t WHERE id = 11;
SELECT * FROM c;
DROP TABLE c;

--
-- EXPLAIN in other formats
--
CREATE FUNCTION pg_temp.plan(statement text) RETURNS TABLE (node text, child text, grandchild text) LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
	plan := plan->0->'Plan';
	RETURN QUERY SELECT plan->>'Node Type', plan->'Plans'->0->>'Node Type', plan->'Plans'->0->'Plans'->0->>'Node Type';
END $$;
SELECT * FROM pg_temp.plan('INSERT INTO plain SELECT id, k, s FROM refused_p');
SELECT * FROM pg_temp.plan('INSERT INTO t SELECT id, k, s FROM t');

DROP TABLE refused_p;
