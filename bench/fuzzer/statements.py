"""SQL that every episode runs: objects for its queries, and what other sessions do."""

from . import calls, operators, planned, values

# Run once per database.
PREPARE = [
    "SET allow_in_place_tablespaces = on",
    "CREATE TABLESPACE fuzz_ts LOCATION ''",
    "CREATE EXTENSION IF NOT EXISTS temp_parallel",
    # For queries under row-level security, which does not apply to a superuser.
    "CREATE ROLE fuzz_reader",
    "GRANT CREATE ON TABLESPACE fuzz_ts TO fuzz_reader",
    "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO fuzz_reader",
    "ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO fuzz_reader",
]

# The 49th row of a TID range, and where a cursor is that has been moved to and fro over a page of it.
# Some minor releases, as 15.18, end the scan early.
SCROLLED = [
    "SELECT ctid FROM pg_proc WHERE ctid < '(3,0)' ORDER BY ctid OFFSET 48 LIMIT 1",
    "BEGIN",
    "SET LOCAL enable_seqscan = off",
    "DECLARE c SCROLL CURSOR FOR SELECT ctid FROM pg_proc WHERE ctid < '(3,0)'",
    "MOVE 50 FROM c", *["MOVE BACKWARD 20 FROM c", "MOVE 20 FROM c"] * 3, "FETCH PRIOR FROM c",
]

# The start of every session.
FUNCTIONS = [
    "CREATE FUNCTION fz.run(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY"
    " EXECUTE 'SELECT q::text FROM (' || q || ') q'; END $$",
    "CREATE FUNCTION fz.loop(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE r record;"
    " BEGIN FOR r IN EXECUTE q LOOP RETURN NEXT r::text; END LOOP; END $$",
    # A plan that runs without workers, and parallel ones while it runs.
    "CREATE FUNCTION fz.nested(q text, q2 text) RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE"
    " r record; n int := 0; s text; BEGIN FOR r IN EXECUTE q LOOP n := n + 1; RETURN NEXT r::text;"
    " IF n < 400 AND n % 80 = 1 THEN EXECUTE 'SELECT sum(hashtext(q::text)) FROM (' || q2 || ') q'"
    " INTO s; RETURN NEXT s; END IF; END LOOP; END $$",
    # A read-only phase that ends with an error, which is caught.
    "CREATE FUNCTION fz.caught(q text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE s text; BEGIN"
    " BEGIN EXECUTE q INTO s; EXCEPTION WHEN division_by_zero THEN s := 'caught'; END; EXECUTE q"
    " INTO s; RETURN s; EXCEPTION WHEN division_by_zero THEN RETURN 'caught'; END $$",
    # A query in a function that does not increment the command counter, with a function
    # that the leader cannot run if a statement further out has used it: from 17 on one with
    # an exception block, which fails in workers before.
    "DO $do$ BEGIN EXECUTE 'CREATE FUNCTION fz.cast_safely(t text) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE"
    " AS $$ BEGIN BEGIN RETURN hashtext(t) % 1000; ' || CASE WHEN current_setting('server_version_num')::int >= 170000"
    " THEN 'EXCEPTION WHEN OTHERS THEN RETURN 0; ' ELSE '' END || 'END; END $$'; END $do$",
    "CREATE FUNCTION fz.command(i int) RETURNS int LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS"
    " $$ BEGIN PERFORM FROM pg_class WHERE oid = 1259; RETURN i; END $$",
    "CREATE FUNCTION fz.total(q text, f text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$ DECLARE n bigint; BEGIN"
    " EXECUTE format('SELECT sum(fz.%s) FROM (%s) q', f, q) INTO n; RETURN n; END $$",
    # Does the plan cost more than the server's own, or has more disabled nodes (from 18 on)? Each subplan
    # counts its own; costs of lookups in a small pool are not in the plan.
    "CREATE FUNCTION fz.chosen(q text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE p json; plans text := ''; costs float8[];"
    " disabled int[]; BEGIN IF current_setting('temp_parallel.enabled') = 'off' OR pg_size_bytes(current_setting('temp_buffers'))"
    " < 67108864 OR EXISTS (SELECT FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query') AND"
    " setting <> 'off') THEN RETURN 'cheaper'; END IF; FOR i IN 1 .. 2 LOOP EXECUTE 'EXPLAIN (FORMAT JSON) ' || q INTO p;"
    " PERFORM set_config('temp_parallel.enabled', CASE i WHEN 1 THEN 'off' ELSE 'on' END, false); plans := plans || p;"
    " costs[i] := p->0->'Plan'->>'Total Cost'; disabled[i] := length(p::text) - length(replace(p::text, '\"Disabled\": true', ''));"
    " END LOOP; RETURN CASE WHEN disabled[1] + disabled[2] > 0 AND plans LIKE '%Subplan Name%' OR disabled[1] < disabled[2]"
    " OR disabled[1] = disabled[2] AND costs[1] <= costs[2] * 1.000001 + 0.01 THEN 'cheaper' ELSE"
    " concat_ws(' ', costs[1], costs[2], disabled[1], disabled[2]) END; END $$",
    # Little may be kept, in memory and in files.
    "CREATE FUNCTION fz.limited(q text) RETURNS text LANGUAGE plpgsql SET work_mem = '64kB'"
    " SET temp_file_limit = '100kB' AS $$ BEGIN EXECUTE q; RETURN NULL; END $$",
    # The rows of CREATE TABLE AS are kept if it calls such a function.
    "CREATE FUNCTION fz.same(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS"
    " $$ BEGIN RETURN i; END $$",
    # One that calls another, which runs a statement, and so begins a command. Cheap, as workers cannot run it.
    "CREATE FUNCTION fz.deeper(i int) RETURNS int LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED AS"
    " $$ DECLARE n int; BEGIN SELECT relnatts INTO n FROM pg_class WHERE oid = 1259; RETURN i % 100 + n; END $$",
    "CREATE FUNCTION fz.deep(i int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED COST 1 AS"
    " $$ BEGIN RETURN fz.deeper(i); END $$",
    # One that the planner evaluates, which runs a query then, makes pages dirty, or catches an error.
    "CREATE FUNCTION fz.folded(q text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS"
    " $$ DECLARE n bigint; BEGIN EXECUTE q INTO n; RETURN n; EXCEPTION WHEN division_by_zero THEN RETURN 7; END $$",
    "CREATE FUNCTION fz.touched(t text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS"
    " $$ BEGIN EXECUTE format('UPDATE %I SET k = k WHERE id %% 10 = 3', t); RETURN 0; END $$",
    # Triggers of targets of INSERT ... SELECT.
    "CREATE FUNCTION fz.before_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " IF NEW.h % 5 = 0 THEN RETURN NULL; END IF; NEW.v := NEW.v || '!'; RETURN NEW; END $$",
    "CREATE FUNCTION fz.after_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " EXECUTE format('DELETE FROM %I WHERE h = $1', TG_TABLE_NAME) USING NEW.h; RETURN NULL; END $$",
    "CREATE FUNCTION fz.after_statement() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " IF pg_trigger_depth() < 2 THEN EXECUTE format('INSERT INTO %I SELECT h + 1, v FROM added', TG_TABLE_NAME);"
    " END IF; RETURN NULL; END $$",
    # A cursor whose plan has no workers and, with these settings off, the scan that is wanted; its
    # rows' ids, in steps of so many forwards or backwards, or 0: to the end.
    "CREATE FUNCTION fz.open(q text, switched_off text[], scroll bool) RETURNS void LANGUAGE plpgsql"
    " SET max_parallel_workers_per_gather = 0 AS $$ DECLARE c refcursor := 'c'; s text; were text[] := '{}'; BEGIN"
    " FOREACH s IN ARRAY switched_off LOOP were := were || current_setting(s); PERFORM set_config(s, 'off', true); END LOOP;"
    " IF scroll THEN OPEN c SCROLL FOR EXECUTE q; ELSE OPEN c NO SCROLL FOR EXECUTE q; END IF;"
    " FOR i IN 1 .. cardinality(were) LOOP PERFORM set_config(switched_off[i], were[i], true); END LOOP; END $$",
    "CREATE FUNCTION fz.walk(steps int[]) RETURNS text LANGUAGE plpgsql PARALLEL RESTRICTED AS $$ DECLARE c refcursor := 'c';"
    " step int; n int; h text := ''; BEGIN FOREACH step IN ARRAY steps LOOP"
    " IF step = 0 THEN MOVE FORWARD ALL IN c; END IF; FOR i IN 1 .. abs(step) LOOP"
    " IF step > 0 THEN FETCH NEXT FROM c INTO n; ELSE FETCH PRIOR FROM c INTO n; END IF;"
    " h := md5(h || coalesce(n, -1)); END LOOP; END LOOP; RETURN concat_ws(' ', n, h); END $$",
    # An error as a row; what a statement sees by itself.
    "CREATE FUNCTION fz.state(q text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; RETURN 'done';"
    " EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$",
    "CREATE FUNCTION fz.seen(t text) RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED"
    " SET max_parallel_workers_per_gather = 0 AS $$ DECLARE n bigint;"
    " BEGIN EXECUTE format('SELECT count(*) FROM %I', t) INTO n; RETURN n; END $$",
    # Triggers of the targets of targets.py; their argument is a table that records them.
    "CREATE FUNCTION fz.log_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " EXECUTE format('INSERT INTO %I VALUES ($1)', TG_ARGV[0]) USING CASE TG_LEVEL WHEN 'ROW' THEN"
    " concat_ws(' ', TG_WHEN, TG_OP, OLD.id, OLD.k, NEW.id, NEW.k, md5(NEW.v)) ELSE concat_ws(' ', TG_WHEN, TG_OP) END;"
    " RETURN NULL; END $$",
    "CREATE FUNCTION fz.changes_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " EXECUTE format('INSERT INTO %I VALUES ($1)', TG_ARGV[0]) USING concat_ws(' ', TG_WHEN, TG_OP, OLD.id, NEW.id);"
    " IF TG_OP = 'DELETE' THEN RETURN CASE WHEN OLD.id % 11 <> 3 THEN OLD END; END IF;"
    " NEW.v := NEW.v || '!'; RETURN CASE WHEN NEW.id % 11 <> 4 THEN NEW END; END $$",
    "CREATE FUNCTION fz.deletes_others() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " EXECUTE format('DELETE FROM %I WHERE k = $1', TG_TABLE_NAME) USING OLD.id; RETURN OLD; END $$",
    "CREATE FUNCTION fz.needs_previous() RETURNS trigger LANGUAGE plpgsql"
    " SET max_parallel_workers_per_gather = 0 AS $$ DECLARE n int; BEGIN"
    " EXECUTE format('SELECT count(*) FROM %I WHERE id = $1 - 1', TG_TABLE_NAME) INTO n USING NEW.id;"
    " IF n = 0 AND NEW.id > 1 THEN RAISE 'no row before'; END IF; RETURN NEW; END $$",
    "CREATE FUNCTION fz.repeats_update() RETURNS trigger LANGUAGE plpgsql"
    " SET max_parallel_workers_per_gather = 0 AS $$ BEGIN"
    " EXECUTE format('UPDATE %I SET k = $1 WHERE id = $2', TG_ARGV[0]) USING NEW.k, OLD.id; RETURN NEW; END $$",
    "CREATE SEQUENCE fz.numbers",
    "GRANT USAGE ON SEQUENCE fz.numbers TO fuzz_reader",
    "CREATE TABLE fz.standing (h int, v text) PARTITION BY LIST (h)",
    "CREATE TABLE fz.standing_0 PARTITION OF fz.standing FOR VALUES IN (0)",
    "CREATE TABLE fz.standing_1 PARTITION OF fz.standing FOR VALUES IN (1)",
    "CREATE FUNCTION fz.largest(t text) RETURNS int LANGUAGE plpgsql"
    " SET max_parallel_workers_per_gather = 0 AS $$ DECLARE n int; BEGIN"
    " EXECUTE format('SELECT max(id) FROM %I', t) INTO n; RETURN n; END $$",
    "CREATE FUNCTION fz.is_free(t text, k int) RETURNS boolean LANGUAGE plpgsql"
    " SET max_parallel_workers_per_gather = 0 AS $$ DECLARE n int; BEGIN"
    " EXECUTE format('SELECT count(*) FROM %I WHERE k = $1', t) INTO n USING k; RETURN n = 0; END $$",
    "CREATE FUNCTION fz.log_statement() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE s text := TG_OP; BEGIN"
    " IF TG_OP <> 'INSERT' THEN s := s || (SELECT count(*) || ' ' || sum(hashtext(r::text)) FROM removed r); END IF;"
    " IF TG_OP <> 'DELETE' THEN s := s || (SELECT count(*) || ' ' || sum(hashtext(a::text)) FROM added a); END IF;"
    " EXECUTE format('INSERT INTO %I VALUES ($1)', TG_ARGV[0]) USING s; RETURN NULL; END $$",
    "CREATE DOMAIN fz.few AS int CHECK"
    " (pg_stat_get_xact_tuples_inserted(current_setting('fz.target')::regclass) < 20)",
    "CREATE TYPE fz.holder AS (few fz.few)",
    "CREATE DOMAIN fz.counting AS text CHECK"
    " (set_config('fz.number', (current_setting('fz.number')::int + 1)::text, false) > '')",
    "CREATE FUNCTION fz.counts(s text DEFAULT set_config('fz.number', (current_setting('fz.number')::int + 1)::text,"
    " false)) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN s; END $$",
    # The planner adds the argument when it has looked for functions that are not parallel safe.
    "CREATE FUNCTION fz.numbered(i int, n bigint DEFAULT nextval('fz.numbers')) RETURNS int LANGUAGE plpgsql"
    " IMMUTABLE PARALLEL SAFE AS $$ BEGIN RETURN i + 0 * n; END $$",
    # before 16
    "DO $do$ BEGIN IF to_regproc('pg_catalog.pg_input_is_valid') IS NULL THEN CREATE FUNCTION fz.pg_input_is_valid(text, text)"
    " RETURNS bool LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT true'; END IF; END $do$",
    'CREATE TYPE fz."Number" AS (a int)',
    "CREATE DOMAIN fz.number AS int CHECK (nextval('fz.numbers') > VALUE - 1000000)",
    "CREATE FUNCTION fz.counted(t text, p int) RETURNS text LANGUAGE plpgsql STABLE PARALLEL"
    " RESTRICTED AS $$ DECLARE n bigint; BEGIN EXECUTE format('SELECT sum(id) FROM %I WHERE"
    " part = $1 AND id < 700', t) INTO n USING p; RETURN n::text; END $$",
] + calls.FUNCTIONS + values.TYPES + operators.FUNCTIONS + planned.FUNCTIONS
# With the session's own value, which a worker must be able to set as well.
POOL_FUNCTIONS = [
    "CREATE FUNCTION fz.pool(i int) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE SET temp_buffers = {pool}"
    " AS $$ BEGIN RETURN current_setting('temp_buffers'); END $$",
    "CREATE FUNCTION fz.pool_sql(i int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE SET temp_buffers = {pool}"
    " AS 'SELECT i % 5'",
]

# A superuser in another session drops a table of this one, which keeps the pages in its
# pool. By a psql command, so that it is part of the session's script.
DROPPED = """SELECT pg_my_temp_schema()::regnamespace AS fuzz_schema \\gset
\\setenv FUZZ_SCHEMA :fuzz_schema
\\! {psql} -XqAt -d {database} -c "DROP TABLE $FUZZ_SCHEMA.victim" || echo failed"""

# Another session, whose DDL makes this one rebuild its relation descriptors and plans as
# long as it lives; now and then so much DDL that all of them are invalidated.
NEIGHBOUR = """
DO $$ DECLARE i int := 0; BEGIN
SET lock_timeout = '200ms';
WHILE EXISTS (SELECT FROM pg_stat_activity WHERE pid = {pid}) LOOP
  i := i + 1;
  BEGIN
    CASE i % 5
      WHEN 0 THEN EXECUTE format('ALTER TABLE {control} SET (fillfactor = %s)', 50 + i % 50);
      WHEN 1 THEN CREATE TABLE fuzz_neighbour (a int PRIMARY KEY, b text); DROP TABLE fuzz_neighbour;
      WHEN 2 THEN ANALYZE {control};
      WHEN 3 THEN EXECUTE format('ALTER FUNCTION fz.counted COST %s', 100 + i % 50);
      ELSE CREATE OR REPLACE VIEW public.fuzz_neighbour_view AS SELECT 1 AS a;
    END CASE;
    FOR j IN 1..CASE WHEN i % 40 = 7 THEN 80 ELSE 0 END LOOP
      CREATE TABLE fuzz_neighbour (a int PRIMARY KEY, b text); DROP TABLE fuzz_neighbour;
    END LOOP;
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  COMMIT;
  PERFORM pg_sleep(0.1);
END LOOP; END $$"""

# The sessions of the last episode may not have noticed yet that their clients are gone.
LAST_EPISODE_ENDS = """DO $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		PERFORM pg_stat_clear_snapshot();
		EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity
							  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid());
		PERFORM pg_sleep(0.1);
	END LOOP;
END $$"""
