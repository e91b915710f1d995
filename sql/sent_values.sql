--
-- Values that the leader sends to workers as parameters, and that are TOAST
-- pointers into a temporary table that was not flushed because the workers do
-- not scan it: cfg. A worker that followed such a pointer would find pages that
-- have never been written ("missing chunk number 0", "unexpected zero page"),
-- or older rows. So then no workers are launched.
--
\pset format unaligned \pset footer off
LOAD 'temp_parallel';
CREATE EXTENSION temp_parallel;
\i sql/include/cheap_workers.sql
\i sql/include/explain_flush.sql
SET parallel_leader_participation = off;

CREATE TEMP TABLE many AS SELECT g AS id FROM generate_series(1, 100000) g;
ANALYZE many;
CREATE TEMP TABLE facts AS SELECT g AS id, g % 10 AS k FROM generate_series(1, 2000) g;
CREATE TABLE permanent_facts AS SELECT * FROM facts;
ALTER TABLE permanent_facts SET (parallel_workers = 2);
ANALYZE facts;
ANALYZE permanent_facts;
CREATE DOMAIN wide_text AS text CHECK (value <> '');
CREATE TEMP TABLE cfg (id int PRIMARY KEY, doc jsonb, txt text, dom wide_text, list text[], range numrange);
ALTER TABLE cfg SET (parallel_workers = 0);	-- else an InitPlan's own Gather would flush it
ALTER TABLE cfg ALTER txt SET STORAGE external, ALTER dom SET STORAGE external,
	ALTER list SET STORAGE external, ALTER range SET STORAGE external;
INSERT INTO cfg SELECT n, (SELECT jsonb_object_agg('key' || g, md5(g::text)) FROM generate_series(1, n * 100) g),
	repeat('t' || n, 5000), repeat('d' || n, 5000), ARRAY[repeat('l' || n, 5000), 'short'],
	numrange(0, ('1' || repeat(n::text, 20000))::numeric) FROM generate_series(1, 5) n;
CREATE FUNCTION txt_of(int) RETURNS text LANGUAGE sql STABLE AS 'SELECT txt FROM cfg WHERE id = $1';

-- Runs a query over facts (which @ stands for), and INSERT ... SELECT of it over
-- permanent_facts, with workers allowed and without.
--   launched  workers have been launched
--   answers   the four results are equal
CREATE TEMP TABLE inserted (answer text);
CREATE FUNCTION sent(command text) RETURNS TABLE (launched bool, answers text) LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	results text[] := '{}';
	before bigint;
BEGIN
	SELECT s.workers_launched INTO before FROM temp_parallel_stats() s;
	FOR n IN 0..3 LOOP
		PERFORM set_config('max_parallel_workers_per_gather', (2 * (n % 2))::text, true);
		IF n < 2 THEN
			EXECUTE replace(command, '@', 'facts') INTO answer;
		ELSE
			TRUNCATE inserted;
			EXECUTE format('INSERT INTO inserted SELECT a FROM (%s) s (a)', replace(command, '@', 'permanent_facts'));
			SELECT i.answer INTO answer FROM inserted i;
		END IF;
		results := results || coalesce(answer, 'null');
	END LOOP;
	SELECT s.workers_launched > before INTO launched FROM temp_parallel_stats() s;
	answers := CASE WHEN results[1] = ALL (results) THEN 'same: ' || left(results[1], 60) ELSE results::text END;
	RETURN NEXT;
END $$;

-- The Gather nodes of a query's plan, and the tables that are flushed for them.
CREATE FUNCTION gathers(query text, OUT gathers bigint, OUT flushed text) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) ' || query INTO plan;
	SELECT count(*) INTO gathers FROM jsonb_path_query(plan, 'strict $.**."Node Type"') t WHERE t::text LIKE '"Gather%';
	SELECT string_agg(t::text, ' ') INTO flushed FROM jsonb_path_query(plan, 'strict $.**."Flushed Tables"') t;
END $$;

-- The output of an InitPlan, evaluated by the leader. Its table, cfg, is not
-- flushed.
SELECT * FROM gathers('SELECT count(*) FROM facts WHERE (SELECT doc FROM cfg WHERE cfg.id = 1) ? (''key'' || id)');
SELECT * FROM sent('SELECT count(*) FROM @ WHERE (SELECT doc FROM cfg WHERE cfg.id = 1) ? (''key'' || id)');
-- the same where the workers read a permanent table, with which a query fails
-- without the module
SELECT count(*) FROM permanent_facts WHERE (SELECT doc FROM cfg WHERE cfg.id = 1) ? ('key' || id);
-- of two InitPlans; of a nested one; of one with two columns
SELECT * FROM sent('SELECT count(*) FROM @ WHERE (SELECT doc FROM cfg WHERE cfg.id = 2) ? (''key'' || id)
	AND NOT (SELECT doc FROM cfg WHERE cfg.id = 1) ? (''key'' || id)');
SELECT * FROM sent('SELECT count(*) FROM @ WHERE (SELECT doc FROM cfg
	WHERE cfg.id = (SELECT length(txt) - 9998 FROM cfg WHERE txt = (SELECT min(txt) FROM cfg))) ? (''key'' || id)');
SELECT * FROM sent('SELECT count(*) FROM @ WHERE (''t1'' || k, ''d'') < (SELECT txt, dom FROM cfg WHERE cfg.id = 1)');
-- an array and a row built from columns
SELECT * FROM sent('SELECT count(*) FROM @ WHERE length((ARRAY(SELECT txt FROM cfg ORDER BY cfg.id))[k]) > 0');
SELECT * FROM sent('SELECT sum(length(((SELECT c FROM cfg c WHERE c.id = 1)).txt)) FROM @ WHERE k = 3');
-- other types
SELECT * FROM sent('SELECT sum(length((SELECT dom FROM cfg WHERE cfg.id = 3))) FROM @ WHERE k = 3');
SELECT * FROM sent('SELECT sum(length((SELECT list FROM cfg WHERE cfg.id = 3)[1 + k % 2])) FROM @');
SELECT * FROM sent('SELECT count(*) FROM @ WHERE range_contains_elem((SELECT range FROM cfg WHERE cfg.id = 3), id::numeric)');

-- One InitPlan for two Gathers.
SELECT * FROM gathers('SELECT sum(n) FROM
	(SELECT k, count(*) AS n FROM facts GROUP BY k UNION ALL SELECT id % 7, count(*) FROM facts GROUP BY 1) s
	WHERE (SELECT doc FROM cfg WHERE id = 1) ? (''key'' || k)');
SELECT * FROM sent('SELECT sum(n) FROM
	(SELECT k, count(*) AS n FROM @ GROUP BY k UNION ALL SELECT id % 7, count(*) FROM @ GROUP BY 1) s
	WHERE (SELECT doc FROM cfg WHERE id = 1) ? (''key'' || k)');

-- Workers launched again, with the same value and with one that changes.
SELECT * FROM sent('SELECT array_agg(s.n) FROM (VALUES (1), (2), (3)) v (x), LATERAL
	(SELECT count(*) AS n FROM @ WHERE (SELECT doc FROM cfg WHERE cfg.id = 1) ? (''key'' || id) HAVING count(*) > v.x) s');
SELECT * FROM sent('SELECT array_agg(n) FROM (SELECT (SELECT count(*) FROM @
	WHERE (SELECT doc FROM cfg WHERE cfg.id = v.x) ? (''key'' || id)) AS n FROM (VALUES (1), (5), (9), (2)) v (x)) s');

-- PL/pgSQL variables: a scalar, a domain, fields of records and rows, a whole
-- row, array elements, expanded arrays, and the record of a loop.
CREATE FUNCTION by_plpgsql(tab text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format($f$
CREATE OR REPLACE FUNCTION in_%1$s() RETURNS SETOF text LANGUAGE plpgsql AS $b$
DECLARE
	scalar text := txt_of(1);
	document jsonb;
	domain wide_text;
	rec record;
	whole cfg%%ROWTYPE;
	parts text[];
	n bigint;
BEGIN
	SELECT doc, dom INTO document, domain FROM cfg WHERE id = 2;
	SELECT sum(length(scalar)) INTO n FROM %1$s WHERE k = 3;
	RETURN NEXT 'scalar ' || n;
	SELECT count(*) INTO n FROM %1$s WHERE document ? ('key' || id);
	RETURN NEXT 'document ' || n;
	SELECT sum(length(domain)) INTO n FROM %1$s WHERE k = 3;
	RETURN NEXT 'domain ' || n;
	SELECT * INTO rec FROM cfg WHERE id = 3;
	SELECT sum(length(rec.txt)) INTO n FROM %1$s WHERE k = 3;
	RETURN NEXT 'field ' || n;
	SELECT * INTO whole FROM cfg WHERE id = 4;
	SELECT sum(length((whole).txt) + length(whole.dom)) INTO n FROM %1$s WHERE k = 3;
	RETURN NEXT 'whole row ' || n;
	SELECT list INTO parts FROM cfg WHERE id = 2;
	SELECT sum(length(parts[1 + k %% 2])) INTO n FROM %1$s;
	RETURN NEXT 'array ' || n;
	parts[3] := scalar;
	SELECT sum(length(parts[3])) INTO n FROM %1$s WHERE k = 3;
	RETURN NEXT 'expanded array ' || n;
	FOR rec IN SELECT * FROM cfg ORDER BY id LOOP
		SELECT sum(length(rec.txt)) + count(rec.doc ? ('key' || id)) INTO n FROM %1$s WHERE k = 3;
		RETURN NEXT 'loop ' || n;
	END LOOP;
	EXECUTE 'SELECT sum(length($1)) FROM %1$s WHERE k = 3' INTO n USING scalar;
	RETURN NEXT 'using ' || n;
	RETURN QUERY SELECT 'return query ' || sum(length(scalar)) FROM %1$s WHERE k = 3;
	RETURN QUERY EXECUTE 'SELECT ''execute '' || sum(length($1)) FROM %1$s WHERE k = 3' USING scalar;
END $b$ $f$, tab);
	RETURN QUERY EXECUTE format('SELECT * FROM in_%s()', tab);
END $$;
SELECT * FROM sent('SELECT string_agg(x, '', '') FROM by_plpgsql(''@'') x');
SET plan_cache_mode = force_generic_plan;
SELECT * FROM by_plpgsql('facts');
SELECT * FROM sent('SELECT md5(string_agg(x, '', '')) FROM by_plpgsql(''@'') x');

-- Parameters of EXECUTE, with a generic and with a custom plan.
PREPARE by_execute(text) AS SELECT count(*), sum(length($1)) FROM facts WHERE k = 3;
EXPLAIN (COSTS OFF) EXECUTE by_execute(txt_of(2));
EXECUTE by_execute(txt_of(2));
SELECT explain_analyze('EXECUTE by_execute(txt_of(2))');
-- the next value is small, and workers are launched
SELECT explain_analyze('EXECUTE by_execute(''small'')');
SET plan_cache_mode = force_custom_plan;
EXECUTE by_execute(txt_of(2));
-- INSERT of a SELECT over permanent tables, which core runs without workers: the
-- flush node has no table
SET plan_cache_mode = force_generic_plan;
PREPARE insert_by_execute(text) AS INSERT INTO inserted SELECT id FROM permanent_facts WHERE k = length($1) % 7 AND id < 40;
EXPLAIN (COSTS OFF) EXECUTE insert_by_execute(txt_of(2));
SELECT explain_analyze('EXECUTE insert_by_execute(''small'')');
EXECUTE insert_by_execute(txt_of(2));
SELECT * FROM inserted ORDER BY 1;
-- one without parameters has none
EXPLAIN (COSTS OFF) INSERT INTO inserted SELECT id FROM permanent_facts WHERE k = 3;
RESET plan_cache_mode;

-- A value that the leader would put into the shared hash table of a parallel hash
-- join, which workers read. The values
-- are short, as each row of the hash table has one, and TOASTed because of another
-- column.
CREATE TEMP TABLE short (id int, txt text, pad text) WITH (parallel_workers = 0, toast_tuple_target = 128);
ALTER TABLE short ALTER txt SET STORAGE external, ALTER pad SET STORAGE external;
INSERT INTO short SELECT n, repeat('s' || n, 100), repeat('p', 3000) FROM generate_series(2, 4) n;
CREATE FUNCTION short_of(int) RETURNS text LANGUAGE sql STABLE AS 'SELECT txt FROM short WHERE id = $1';
SELECT reltoastrelid::regclass AS toast FROM pg_class WHERE oid = 'short'::regclass \gset
SELECT count(DISTINCT chunk_id) AS toasted FROM :toast;
SET parallel_leader_participation = on;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET plan_cache_mode = force_generic_plan;
PREPARE by_hash(text) AS SELECT count(h.v), sum(length(h.v || f.id))
	FROM many f LEFT JOIN (SELECT id, $1 AS v FROM many) h USING (id);
EXPLAIN (COSTS OFF) EXECUTE by_hash(short_of(2));
EXECUTE by_hash(short_of(2));
CREATE FUNCTION by_hash() RETURNS TABLE (n bigint, length bigint) LANGUAGE plpgsql AS $$
DECLARE
	v text := short_of(3);
BEGIN
	RETURN QUERY SELECT count(h.v), sum(length(h.v || f.id))
		FROM many f LEFT JOIN (SELECT id, v FROM many) h USING (id);
END $$;
SELECT * FROM by_hash();
SELECT * FROM sent('SELECT sum(length(h.v || f.id))
	FROM many f LEFT JOIN (SELECT id, (SELECT txt FROM short WHERE short.id = 4) AS v FROM many) h USING (id)');
RESET enable_mergejoin;
RESET enable_nestloop;
RESET plan_cache_mode;
SET parallel_leader_participation = off;

-- Arguments of SQL functions, of which one is inlined. (The last SELECT of a
-- SQL function cannot use workers, as it fetches one row at a time.)
CREATE FUNCTION tell(n bigint) RETURNS void LANGUAGE plpgsql PARALLEL RESTRICTED AS
	$$ BEGIN RAISE NOTICE '%', n; END $$;
CREATE FUNCTION by_sql(text, jsonb) RETURNS void LANGUAGE sql VOLATILE AS $$
	SELECT tell(sum(length($1))) FROM facts WHERE k = 3;
	SELECT tell(count(*)) FROM facts WHERE $2 ? ('key' || id);
	SELECT $$;
SELECT by_sql(txt, doc) FROM cfg ORDER BY id;
CREATE FUNCTION by_inlined(text) RETURNS TABLE (n bigint) LANGUAGE sql STABLE
	AS 'SELECT count(*) FROM facts WHERE strpos($1, ''t'' || (k + 1)) > 0';
SELECT cfg.id, i.n FROM cfg, by_inlined(txt) i ORDER BY 1;

-- The old and new row of a trigger.
CREATE FUNCTION by_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	o bigint;
BEGIN
	SELECT sum(length(NEW.txt)) INTO n FROM facts WHERE k = 3;
	SELECT sum(length(OLD.txt)) INTO o FROM permanent_facts WHERE k = 3;
	RAISE NOTICE 'new %, old %', n, o;
	RETURN NULL;
END $$;
CREATE TRIGGER after AFTER UPDATE ON cfg FOR EACH ROW EXECUTE FUNCTION by_trigger();
UPDATE cfg SET txt = txt || 'new' WHERE id = 1;
UPDATE cfg SET id = 0 WHERE id = 1;
UPDATE cfg SET id = 1 WHERE id = 0;
DROP TRIGGER after ON cfg;

-- The argument of a cursor, whose query has no workers, with a query that has
-- workers between two fetches.
CREATE FUNCTION by_cursor() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR (v text) FOR SELECT id, length(v) AS l FROM facts WHERE k = 3 ORDER BY id;
	r record;
	n bigint;
	v text := txt_of(3);
BEGIN
	OPEN c (v);
	FETCH c INTO r;
	SELECT sum(length(v)) INTO n FROM facts WHERE k = 3;
	RETURN NEXT r::text || ' ' || n;
	FETCH c INTO r;
	RETURN NEXT r::text;
END $$;
SELECT * FROM by_cursor();

-- Rows in the place of rows that were flushed, deleted and vacuumed: a worker
-- would read the old ones from the file.
SELECT pg_flush_local_buffers() > 0 AS flushed;
DELETE FROM cfg;
VACUUM (TRUNCATE OFF) cfg;
INSERT INTO cfg (id, txt) SELECT n, repeat('n' || n, 5000) FROM generate_series(1, 5) n;
SELECT * FROM sent('SELECT count(*) FROM @ WHERE (SELECT txt FROM cfg WHERE cfg.id = 1) LIKE ''n1n1%'' AND k = 3');
SELECT * FROM sent('SELECT string_agg(x, '', '') FROM by_plpgsql(''@'') x WHERE x NOT LIKE ''array%''');

-- A variable whose TOASTed value no longer exists, which is not an error unless
-- it is used. (The planner would use it for a custom plan.)
SET plan_cache_mode = force_generic_plan;
CREATE TEMP TABLE gone (txt text);
ALTER TABLE gone ALTER txt SET STORAGE external;
CREATE FUNCTION by_gone(command text) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
	v text;
BEGIN
	INSERT INTO gone VALUES (repeat('g', 5000));
	SELECT txt INTO v FROM gone;
	EXECUTE command;
	RETURN QUERY SELECT count(*) FROM facts WHERE k >= 0 OR length(v) = 7;
END $$;
SELECT * FROM by_gone('TRUNCATE gone');
SELECT * FROM by_gone('DROP TABLE gone');
RESET plan_cache_mode;

DROP FUNCTION explain_analyze, flush_plan, by_gone, by_hash, by_cursor, by_trigger, by_inlined, by_sql, tell, by_plpgsql, in_facts, in_permanent_facts,
	gathers, sent, txt_of, short_of;
DROP TABLE cfg, short, facts, many, permanent_facts, inserted;
DROP DOMAIN wide_text;
DROP EXTENSION temp_parallel;
