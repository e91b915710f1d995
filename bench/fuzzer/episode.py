"""An episode: a session, its tables, their histories, and queries.

Everything it does follows from its seed. A failure is raised as Failure, with the
statements that led to it.
"""

import copy
import random
from dataclasses import dataclass, field

from . import answers, calls, forms, history, pool, schema, settings, values
from .queries import Generator, Query
from .session import SEPARATOR, Session, SessionLost, TooSlow

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
    # Little may be kept, in memory and in files.
    "CREATE FUNCTION fz.limited(q text) RETURNS text LANGUAGE plpgsql SET work_mem = '64kB'"
    " SET temp_file_limit = '100kB' AS $$ BEGIN EXECUTE q; RETURN NULL; END $$",
    # The rows of CREATE TABLE AS are kept if it calls such a function, from 17 on.
    "CREATE FUNCTION fz.same(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS"
    " $$ BEGIN RETURN i; END $$",
    # Triggers of targets of INSERT ... SELECT.
    "CREATE FUNCTION fz.before_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " IF NEW.h % 5 = 0 THEN RETURN NULL; END IF; NEW.v := NEW.v || '!'; RETURN NEW; END $$",
    "CREATE FUNCTION fz.after_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " EXECUTE format('DELETE FROM %I WHERE h = $1', TG_TABLE_NAME) USING NEW.h; RETURN NULL; END $$",
    "CREATE FUNCTION fz.after_statement() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " IF pg_trigger_depth() < 2 THEN EXECUTE format('INSERT INTO %I SELECT h + 1, v FROM added', TG_TABLE_NAME);"
    " END IF; RETURN NULL; END $$",
    "CREATE DOMAIN fz.few AS int CHECK"
    " (pg_stat_get_xact_tuples_inserted(current_setting('fz.target')::regclass) < 20)",
    "CREATE TYPE fz.holder AS (few fz.few)",
    "CREATE FUNCTION fz.counted(t text, p int) RETURNS text LANGUAGE plpgsql STABLE PARALLEL"
    " RESTRICTED AS $$ DECLARE n bigint; BEGIN EXECUTE format('SELECT sum(id) FROM %I WHERE"
    " part = $1 AND id < 700', t) INTO n USING p; RETURN n::text; END $$",
] + calls.FUNCTIONS + values.TYPES
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


class Failure(Exception):
    """What went wrong, and how to reproduce it."""

    def __init__(self, what, script, queries=None):
        super().__init__(what)
        self.script = script        # the statements before
        self.queries = queries      # [(settings, statements, savepoint)], the suspect first


class Counts:
    def __init__(self):
        self.episodes = 0
        self.queries = 0            # with an answer in all modes
        self.comparisons = 0        # of all modes; one for all executions of a prepared statement
        self.zero = 0               # runs at no cost ...
        self.flushed = 0            # ... that flushed before a launch
        self.launched = 0           # ... and got workers
        self.on_flushed = 0
        self.fresh = 0              # comparisons that began at no cost
        self.in_transaction = 0
        self.checks = 0             # tables compared with their copy
        self.errors = 0             # the same one in all modes
        self.workers = 0            # launched by all Gathers over temporary tables
        self.flushes = 0
        self.pages = 0              # that the flushes wrote
        self.shared = 0             # runs in which workers read pages in the leader's memory ...
        self.shared_pages = 0       # ... and how many
        self.hints = 0              # dropped by the leader
        self.cancels = 0            # statements canceled on purpose
        self.pools = 0              # sequences with SET temp_buffers
        self.neighbours = 0         # episodes with another session's DDL
        self.reader = 0             # queries under row-level security
        self.dropped = 0            # tables dropped by another session
        self.kinds = {}             # by kind: number of queries, and of those with workers at no cost
        self.refused = {}           # by kind and mode: errors that may come instead of an answer
        self.tolerated = {}


@dataclass
class Comparison:
    """A query and its runs in the modes."""

    query: Query
    statements: dict        # that run it, by mode
    order: list             # of the modes
    common: dict            # settings of all modes
    reader: bool            # by a role with policies
    storm: bool             # caches are invalidated at every opportunity
    cheap: bool             # tables of this size can be parallel when on
    savepoint: bool         # run after a savepoint, and roll back to it
    start: int = 0          # number of the session's statements before it
    replays: dict = field(default_factory=dict)     # settings, statements and savepoint, by mode
    counters: dict = field(default_factory=dict)    # Outcomes: before each mode, and "after"
    answers: dict = field(default_factory=dict)     # by mode

    @property
    def label(self):
        return f" [{self.query.kind}]" if self.query.kind else ""


class Episode:
    def __init__(self, options, number, counts):
        self.options = options
        self.rng = random.Random(f"{options.seed}/{number}")
        self.number = number
        self.counts = counts
        self.tables = []
        self.saved = None           # the tables as of BEGIN
        self.isolation = None       # of the open transaction
        self.prepared = []
        self.serial = 0
        self.session = None
        self.neighbour = None
        self.current = {}           # settings known to be in effect
        self.secured = False        # do the tables have policies?
        self.sources = []           # tables of wide values
        self.many = None            # a table with hundreds of partitions
        self.gone = []              # files that the server's log may report as missing

    # ---------- statements ----------

    def must(self, sql):
        """Queue a statement that must not fail."""
        return self.session.put(sql, must=True)

    def sync(self):
        """Run what is queued."""
        self.judge(self.session.sync())

    def judge(self, bad):
        if bad:
            raise Failure(f"{bad.sqlstate} {bad.message}: {bad.sql}", self.session.script)

    def set(self, values):
        """Queue settings. The row of the Outcome ends with the session's counters."""
        values = {n: v for n, v in values.items() if self.current.get(n) != v or n == "role"}
        self.current.update(values)
        return self.must(settings.statement(values, ", s.flushes, s.workers_launched, s.hints_dropped,"
                                            " s.pages_flushed, s.pages_shared FROM public.temp_parallel_stats() s"))

    @staticmethod
    def counters(outcome):
        """The session's counters; None in a failed transaction."""
        if outcome.sqlstate:
            return None
        return [int(x) for x in outcome.rows[0].split(SEPARATOR)[-5:]]

    def rollback(self, sql):
        """Queue a statement that may undo settings."""
        self.must(sql)
        self.current = {}

    # ---------- set-up ----------

    def start(self):
        rng = self.rng
        self.session = Session(self.options)
        self.temp_buffers = rng.choices([100, 128, 300, 1000, 8192, 65536],
                                        [25, 5, 20, 20, 15, 15])[0]
        crowded = rng.random() < 0.04
        if crowded:
            self.temp_buffers = rng.choice([8192, 65536])
        for sql in ["SET client_min_messages = error",
                    LAST_EPISODE_ENDS,
                    "DROP SCHEMA IF EXISTS fz, ctl CASCADE",
                    "CREATE SCHEMA fz", "CREATE SCHEMA ctl",
                    "SET search_path = pg_temp, fz, public",
                    f"SET temp_buffers = {self.temp_buffers}"]:
            self.must(sql)
        self.set(settings.SESSION)
        if rng.random() < 0.2:
            self.must("SET temp_tablespaces = 'fuzz_ts'")
        for sql in FUNCTIONS:
            self.must(sql)
        for sql in POOL_FUNCTIONS:
            self.must(sql.format(pool=self.temp_buffers))
        self.secured = rng.random() < 0.25
        for n in range(rng.choice([1, 2, 2, 3])):
            on_commit = "DELETE ROWS" if n > 0 and rng.random() < 0.15 else ""
            self.new_table(f"t{n}", on_commit)
        for n in range(rng.choice([1, 1, 2])):
            table, statements = values.create_source(rng, f"s{n}")
            self.sources.append(table)
            for sql in statements + history.insert(rng, table, rng.choice([3, 8, 15])):
                self.must(sql)
        if crowded:
            self.many, statements, rows = schema.create_many(rng, "m")
            statements += history.insert(rng, self.many, rows)
            if self.tables[0].kind not in ("inherit", "permanent"):
                statements.append(schema.create_index_on_id(self.tables[0]))
            for sql in statements:
                self.must(sql)
        if rng.random() < 0.1 and self.temp_buffers > 1024:
            # The server does not check whether the pool has that size. (From 18 on, a smaller pool
            # has not enough buffers for what the server reads ahead then.)
            self.must("RESET temp_buffers")
            for sql in POOL_FUNCTIONS:
                self.must(sql.replace("CREATE", "CREATE OR REPLACE").replace(" SET temp_buffers = {pool}", ""))
        self.sync()
        if rng.random() < 0.1:
            self.counts.neighbours += 1
            self.neighbour = Session(self.options, 10 ** 9)
            self.neighbour.put(NEIGHBOUR.format(pid=self.session.pid, control=self.tables[0].control))
            self.neighbour.send()

    def compare_pools(self):
        """SET temp_buffers in sessions of its own."""
        rng = random.Random(f"{self.options.seed}/{self.number}/pool")
        statements = pool.statements(rng)
        results = {}
        for enabled in ("off", "on"):
            session = Session(self.options)
            results[enabled] = pool.outcomes(session, enabled, statements)
            script = session.script
            session.close()
        for off, on in zip(results["off"], results["on"]):
            if off != on:
                raise Failure(f"off {off}, on {on}", script)
        self.counts.pools += 1

    def new_table(self, name, on_commit):
        rng = self.rng
        table, statements = schema.create_table(rng, name, on_commit)
        if self.secured:
            statements += schema.policies(rng, table, self.tables)
        if not on_commit:
            statements += schema.views(rng, table, self.tables)
        self.tables.append(table)
        before = [schema.create_index(rng, table) for _ in range(rng.choice([0, 1, 2]))]
        rows = []
        if self.isolation or on_commit != "DELETE ROWS":
            rows = history.insert(rng, table, rng.choice([100, 200, 400, 800]))
        after = [schema.create_index(rng, table) for _ in range(rng.choice([0, 1, 3]))]
        for sql in statements + before + rows + after:
            self.must(sql)

    # ---------- transactions ----------

    def state(self):
        """What a rollback restores."""
        return copy.deepcopy((self.tables, self.sources, self.many))

    def restore(self, saved):
        self.tables, self.sources, self.many = saved

    def begin(self):
        rng = self.rng
        self.isolation = rng.choices(["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ",
                                      "SERIALIZABLE"], [5, 35, 30, 30])[0]
        self.saved = self.state()
        self.must(f"BEGIN ISOLATION LEVEL {self.isolation}")
        if rng.random() < 0.1:
            self.serial += 1
            self.new_table(f"d{self.serial}", "DROP")
        for table in self.tables:
            if table.on_commit == "DELETE ROWS":
                for sql in history.insert(rng, table, rng.choice([100, 500])):
                    self.must(sql)

    def finish(self, commit):
        if commit:
            # The server changes the temporary tables itself.
            for table in self.tables:
                if table.on_commit == "DELETE ROWS":
                    self.must(f"DELETE FROM {table.control}")
                elif table.on_commit == "DROP":
                    self.must(f"DROP TABLE {table.control}")
            self.must("COMMIT")
        else:
            self.rollback("ROLLBACK")
        self.isolation = None
        if not commit or any(t.on_commit == "DROP" for t in self.tables):
            self.deallocate()
        if not commit:
            self.restore(self.saved)
        self.tables = [t for t in self.tables if t.on_commit != "DROP"]

    def deallocate(self):
        if self.prepared:
            self.must("DEALLOCATE ALL")
            self.prepared = []

    # ---------- history ----------

    def changes(self, n):
        rng = self.rng
        for _ in range(n):
            saved = None
            if self.isolation and rng.random() < 0.3:
                saved = self.state()
                self.must("SAVEPOINT s")
                if rng.random() < 0.1:
                    self.must(f"DROP TABLE {rng.choice(self.tables).name} CASCADE")
                    self.rollback("ROLLBACK TO SAVEPOINT s")
                    self.deallocate()
            if rng.random() < 0.35:
                self.change_source()
            if self.many and rng.random() < 0.3:
                for sql in history.change(rng, self.many, history.DATA):
                    self.must(sql)
            for _ in range(1 if saved is None else rng.choice([1, 2])):
                menu = history.ANYWHERE if self.isolation else history.OUTSIDE
                before = [c.type for t in self.tables for c in t.columns]
                tables = [t for t in self.tables if self.isolation or not t.on_commit]
                for sql in history.change(rng, rng.choice(tables), menu):
                    self.must(sql)
                if before != [c.type for t in self.tables for c in t.columns]:
                    self.deallocate()
            if saved is None:
                continue
            if rng.random() < 0.3:
                self.queries(1)
            if rng.random() < 0.5:
                self.must("RELEASE SAVEPOINT s")
            else:
                self.rollback("ROLLBACK TO SAVEPOINT s")
                self.restore(saved)
                self.deallocate()

    def change_source(self):
        menu = history.SOURCE if self.isolation else history.SOURCE_OUTSIDE
        for sql in history.change(self.rng, self.rng.choice(self.sources), menu):
            self.must(sql)

    def dropped(self):
        """Another session drops a table of which this one has dirty pages in its pool."""
        rng = self.rng
        self.counts.dropped += 1
        for sql in ["CREATE TEMP TABLE victim (id int, v text)",
                    f"ALTER TABLE victim ALTER v SET STORAGE {rng.choice(['PLAIN', 'EXTERNAL', 'EXTENDED'])}",
                    "INSERT INTO victim SELECT g, repeat('v', 3000) FROM generate_series"
                    f"(1, {rng.choice([3, 30, self.temp_buffers // 2 if self.temp_buffers < 2000 else 300])}) g"]:
            self.must(sql)
        if rng.random() < 0.5:
            self.must("CREATE INDEX ON victim (id)")
        if rng.random() < 0.3:
            self.must("VACUUM victim")
        if rng.random() < 0.3:
            self.must("SELECT public.pg_flush_local_buffers('victim')")
            self.must("UPDATE victim SET id = -id WHERE id % 3 = 0")
        files = self.must("SELECT pg_relation_filepath(c.oid) FROM pg_class c WHERE 'victim'::regclass IN"
                          " (c.oid, (SELECT indrelid FROM pg_index WHERE indexrelid = c.oid)) OR c.oid ="
                          " (SELECT reltoastrelid FROM pg_class WHERE oid = 'victim'::regclass) OR c.oid IN"
                          " (SELECT indexrelid FROM pg_index JOIN pg_class p ON indrelid = p.reltoastrelid"
                          " WHERE p.oid = 'victim'::regclass)")
        drop = self.must(DROPPED.format(psql=self.options.psql, database=self.options.database))
        self.sync()
        self.gone += files.rows
        if drop.rows or not files.rows:
            raise Failure(f"the neighbour's DROP TABLE: {drop.rows}", self.session.script)
        self.use_after_drop()

    def use_after_drop(self):
        """Statements may fail because the dropped table's files are missing, until a flush."""
        rng = self.rng
        if rng.random() < 0.5:
            self.set(dict(settings.of_mode(rng.choice([settings.ON, settings.ZERO]), False), role="none"))
            for _ in range(rng.choice([1, 2])):
                self.session.put(Generator(rng, self.tables).aggregates().sql)
        self.must("SELECT public.pg_flush_local_buffers() > 0")
        if rng.random() < 0.5:
            self.must("SELECT public.pg_evict_local_buffers()")
        if self.temp_buffers <= 1000:
            self.must(f"CREATE TEMP TABLE evictor AS SELECT g, repeat('e', 5000) AS e FROM"
                      f" generate_series(1, {self.temp_buffers + 100}) g")
            self.must("DROP TABLE evictor")
        self.sync()

    # ---------- queries ----------

    def forms(self, query):
        """For each mode the statements that run the query, in a random form."""
        name = forms.draw(self.rng, query)
        if query.parameters:
            return self.prepare(query)
        if query.statements:
            return self.own_statements(query)
        form, other = self.applicable(name, query)
        if (name in forms.INSERTS or name in forms.CREATES) and not query.kind:
            query.kind = name
        self.serial += 1
        fields = {"sql": query.sql, "quoted": forms.quoted(query.sql), "n": self.serial}
        if form.has("other") or form.has("quoted_other"):
            fields.update(other=other, quoted_other=forms.quoted(other))
        if form.has("table"):
            fields["table"] = self.rng.choice(self.tables).name
        if form.has("member"):
            read = [t for t in self.tables if f"FROM {t.name} WHERE" in query.sql]
            fields["member"] = (read or self.tables)[0].members[-1]
        self.explained = form.explains
        self.own_role = self.own_role or form.own_role
        self.own_savepoint = self.own_savepoint or form.own_savepoint
        query.ordered = query.ordered and form.keeps_order
        return {mode: [text.format(out=f"out_{mode}{self.serial}", **fields) for text in form.statements]
                for mode in settings.MODES}

    def applicable(self, name, query):
        """The form of that name, or the plain one if it does not apply; and the other query
        that the form needs, or None."""
        form, other = forms.FORMS[name], None
        if form.has("other") or form.has("quoted_other"):
            # It gives one row, so that the order of rows does not matter.
            generator = Generator(self.rng, self.tables)
            generator.serial = 50       # for aliases that the query does not have
            other = generator.aggregates().sql
            # The changes move rows differently in each mode.
            if name == "changed" and any(word in query.sql + other for word in ("TABLESAMPLE", "ctid")):
                return forms.PLAIN, None
        if form.in_block not in (None, bool(self.isolation)):
            return forms.PLAIN, None
        return form, other

    def own_statements(self, query):
        """For each mode the query's own statements."""
        self.serial += 1
        return {mode: [sql.replace("#RUN#", f"{self.serial}_{mode}") for sql in query.statements]
                for mode in settings.MODES}

    def prepare(self, query):
        self.serial += 1
        names = {m: f"p{self.serial}_{m}" for m in settings.MODES}
        result = {mode: [f"PREPARE {name}(int) AS {query.sql}"] +
                  self.executions(names, mode, self.serial)
                  for mode, name in names.items()}
        self.prepared.append((names, query))
        return result

    def executions(self, names, mode, salt):
        rng = random.Random(f"{self.options.seed}/{salt}")
        return [f"EXECUTE {names[mode]}({rng.randrange(60)})" for _ in range(rng.choice([1, 2, 2, 6]))]

    def queries(self, n):
        generator = Generator(self.rng, self.tables)
        for _ in range(n):
            self.explained = self.cached = self.own_role = self.own_savepoint = False
            if self.prepared and self.rng.random() < 0.15:
                query, statements = self.execute_again()
            else:
                query = self.query(generator)
                for sql in query.before:
                    self.must(sql)
                statements = self.forms(query)
            if not self.compare(query, statements):
                return

    def execute_again(self):
        """A query that has been prepared before, and for each mode its executions."""
        names, query = self.rng.choice(self.prepared)
        salt = self.rng.random()
        statements = {m: self.executions(names, m, salt) for m in names}
        if self.rng.random() < 0.3:
            # execute the plan of one mode in another one
            statements[settings.OFF], statements[settings.ZERO] = \
                statements[settings.ZERO], statements[settings.OFF]
        # A cached plan does not depend on the mode in which it is executed.
        self.cached = True
        return query, statements

    def query(self, generator):
        """The next query. Sets own_role and own_savepoint."""
        rng = self.rng
        choice = rng.random()
        if self.many and choice < 0.4:
            return generator.partitions(self.many)
        if choice < (0.52 if self.many else 0.12):
            if rng.random() < 0.4:
                self.change_source()
            query = values.Values(rng, self.tables, self.sources, self.options.version, self.isolation).query()
        elif choice < (0.58 if self.many else 0.18):
            maker = calls.Calls(rng, self.tables, self.sources, self.options.contrib, self.isolation,
                                self.temp_buffers)
            query = rng.choice([maker.mislabelled, maker.in_leader])()
        else:
            return generator.query(parameters=rng.random() < 0.25)
        # Sources have no policies, and errors must not abort the transaction.
        self.own_role = self.own_savepoint = True
        return query

    def compare(self, query, statements):
        """Run the query in all modes, and compare the answers. Returns False if the transaction
        had to be rolled back."""
        run = self.conditions(query, statements)
        # Canceling the DELETE ROWS of a COMMIT leaves an index without pages, in the server
        # itself (18.6).
        commit_empties = not self.isolation and any(t.on_commit == "DELETE ROWS" for t in self.tables)
        if self.rng.random() < 0.04 and not query.may_fail and not query.parameters \
                and not query.statements and not commit_empties:
            self.cancelled(run.common, statements[settings.ZERO])

        bad = self.run_modes(run)
        failed = self.judge_errors(run)
        if failed:
            return self.tolerate(failed, run.answers[failed])
        self.judge(bad)
        self.judge_answers(run)
        self.note(run)
        return True

    def conditions(self, query, statements):
        """The random conditions under which the query is run."""
        rng = self.rng
        if rng.random() < 0.65:
            order = [settings.ZERO] + rng.sample([settings.OFF, settings.ON], 2)
        else:
            order = rng.sample(settings.MODES, 3)
        common = settings.random_settings(rng, self.options.version)
        reader = self.secured and not self.own_role and rng.random() < 0.5
        common["role"] = "fuzz_reader" if reader else "none"
        storm = self.options.cassert and rng.random() < 0.03 and not self.many
        cheap = rng.random() < 0.3
        savepoint = bool(self.isolation) and (query.may_fail or self.own_savepoint or rng.random() < 0.4)
        return Comparison(query, statements, order, common, reader, storm, cheap, savepoint)

    def mode_settings(self, run, mode):
        values = {**run.common, **settings.of_mode(mode, run.cheap), **run.query.settings}
        if mode == settings.OFF:
            values.update(run.query.off)
        elif mode == settings.ZERO and values["temp_parallel.share_local_buffers"] == "auto":
            # What costs little to write is not shared, or not for long.
            values["temp_parallel.write_temp_page_cost"] = "1"
        if self.options.cassert:
            values["debug_discard_caches"] = str(int(run.storm and mode == settings.ZERO))
        return values

    def run_modes(self, run):
        """Run the query in all modes. Returns the first Outcome that must not fail but did, or
        None."""
        # Statements that were queued before do not belong to this query.
        run.start, queued = len(self.session.script), len(self.session.waiting)
        outcomes = {}
        for mode in run.order:
            values = self.mode_settings(run, mode)
            run.replays[mode] = (values, run.statements[mode], run.savepoint)
            run.counters[mode] = self.set(values)
            if run.savepoint:
                self.must("SAVEPOINT q")
            outcomes[mode] = [self.session.put(sql) for sql in run.statements[mode]]
            if run.savepoint:
                self.must("ROLLBACK TO SAVEPOINT q")
        calm = {"role": "none", "jit": "off"}
        if run.storm:
            calm["debug_discard_caches"] = "0"
        run.counters["after"] = self.set(calm)
        earlier = [outcome for _, outcome in self.session.waiting[:queued]]
        bad = self.session.sync()
        if any(bad is outcome for outcome in earlier):
            self.judge(bad)
        run.answers = {mode: answers.answer(outcomes[mode], self.explained) for mode in run.order}
        return bad

    def judge_errors(self, run):
        """Raise an error that is a failure. Returns a mode with a tolerated error, so that
        there is nothing to compare, or None. Modes that refused the query are removed from
        run.order."""
        query = run.query
        for mode in list(run.order):
            answer = run.answers[mode]
            if answer[0] != "error":
                continue
            if answers.refused(mode, query, answer):
                key = query.kind, mode
                self.counts.refused[key] = self.counts.refused.get(key, 0) + 1
                run.order.remove(mode)
                continue
            if query.may_fail and answer[1] not in answers.TOLERATED:
                continue
            what = f"{mode}: {answer[1]} {answer[2]}{run.label}"
            small = query.roomy and answer[1] == "53000" and run.answers[settings.OFF][1] != "53000"
            if answer[1] not in answers.TOLERATED or small:
                raise self.failure(what, run, mode)
            if self.options.strict:
                raise self.failure(what, run, mode, settings.OFF)
            return mode
        return None

    def judge_answers(self, run):
        """Raise a Failure if two modes gave different answers."""
        base = run.order[0]
        for mode in run.order[1:]:
            if answers.same(run.answers[mode], run.answers[base], run.query):
                continue
            difference = answers.difference(run.answers[mode], run.answers[base])
            what = f"{mode} and {base} differ: {difference}{run.label}"
            suspect, other = (mode, base) if base == settings.OFF else (base, mode)
            raise self.failure(what, run, suspect, other)

    def failure(self, what, run, *modes):
        """A Failure that is reproduced in these modes, the suspect first."""
        return Failure(what, self.session.script[:run.start], [run.replays[mode] for mode in modes])

    def note(self, run):
        """Count a query whose answers agree."""
        counts, query = self.counts, run.query
        # A prepared statement is a query for each set of parameters.
        counts.queries += max(1, sum(sql.startswith("EXECUTE ") for sql in run.statements[settings.ZERO]))
        if query.kind:
            counts.kinds.setdefault(query.kind, [0, 0])[0] += 1
        counts.comparisons += 1
        counts.fresh += run.order[0] == settings.ZERO
        counts.in_transaction += bool(self.isolation)
        counts.reader += run.reader
        counts.errors += run.answers[run.order[0]][0] == "error"
        # A cached plan does not depend on the mode. Without the mode that refused the query,
        # the counters of the others do not follow each other.
        if not self.cached and len(run.order) == len(settings.MODES):
            for mode, end in zip(run.order, run.order[1:] + ["after"]):
                self.count(mode, self.counters(run.counters[mode]), self.counters(run.counters[end]),
                           query.kind)

    def cancelled(self, common, statements):
        """Run the query with a timeout that may cancel it anywhere."""
        check = self.rng.random() < 0.3     # drawn now, as the query may fail
        self.set(dict(common, **settings.of_mode(settings.ZERO, True)))
        if self.isolation:
            self.must("SAVEPOINT q")
        self.session.put(f"SET statement_timeout = {self.rng.choice([2, 3, 5, 8, 15])}")
        outcomes = [self.session.put(sql) for sql in statements]
        # Several times, as the timeout may cancel these as well.
        if self.isolation:
            for _ in range(3):
                self.session.put("ROLLBACK TO SAVEPOINT q")
            self.rollback("ROLLBACK TO SAVEPOINT q")
        else:
            for sql in ["ROLLBACK", "RESET statement_timeout"] * 3:
                self.session.put(sql)
            self.rollback("ROLLBACK")
            self.must("RESET statement_timeout")
            self.must("CLOSE ALL")
            for sql in statements:
                if sql.startswith("DROP TABLE out_"):
                    self.must(sql.replace("TABLE", "TABLE IF EXISTS"))
        for sql in statements:
            if sql.startswith("DEALLOCATE out_"):
                self.must(f"DO $$ BEGIN {sql}; EXCEPTION WHEN invalid_sql_statement_name THEN END $$")
        self.set({"role": "none"})
        self.sync()
        answer = answers.answer(outcomes, self.explained)
        if answer[0] == "error":
            if answer[1] not in answers.TOLERATED:
                raise Failure(f"cancel: {answer[1]} {answer[2]}", self.session.script)
            self.counts.cancels += answer[1] == "57014"
        if check:
            self.check()

    def tolerate(self, mode, answer):
        key = f"{mode}: {answers.TOLERATED[answer[1]]}"
        self.counts.tolerated[key] = self.counts.tolerated.get(key, 0) + 1
        if not self.isolation:
            return True
        self.rollback("ROLLBACK")
        self.sync()
        self.isolation = None
        self.restore(self.saved)
        self.deallocate()
        return False

    def count(self, mode, before, after, kind):
        if before is None or after is None:
            return
        flushes, workers, hints, pages, shared = (b - a for a, b in zip(before, after))
        counts = self.counts
        if mode == settings.OFF and flushes:
            raise Failure("a flush although the extension is off", self.session.script)
        counts.flushes += flushes
        counts.workers += workers
        counts.hints += hints
        counts.pages += pages
        counts.shared += shared > 0
        counts.shared_pages += shared
        if mode == settings.ON:
            counts.on_flushed += flushes > 0
        if mode == settings.ZERO:
            counts.zero += 1
            counts.flushed += flushes > 0
            counts.launched += workers > 0
            if kind:
                counts.kinds[kind][1] += workers > 0

    # ---------- tables and their copies ----------

    def check(self):
        """Compare every table with its copy, often after evicting its pages."""
        rng = self.rng
        self.set(dict(settings.of_mode(rng.choice([settings.OFF, settings.ZERO]), False),
                      role="none", max_parallel_workers_per_gather="2"))
        if self.temp_buffers <= 300 and rng.random() < 0.7:
            self.must("CREATE TEMP TABLE evictor AS SELECT g, repeat('e', 1000) AS e FROM"
                      f" generate_series(1, {self.temp_buffers * 8}) g")
            self.must("DROP TABLE evictor")
        elif rng.random() < 0.7:
            self.must("SELECT public.pg_evict_local_buffers()")
        maps = []
        if "pg_visibility" in self.options.contrib:
            maps = [(name, self.must("SELECT count(*) FROM pg_visibility('" + name + "')"
                                     " WHERE all_visible AND NOT pd_all_visible"))
                    for table in self.tables for name in table.members]
        digests = []
        for table in self.tables + self.sources + ([self.many] if self.many else []):
            columns = ", ".join(c.name for c in table.columns)
            digest = ("SELECT count(*), sum(hashtextextended(q::text, 0)::numeric) FROM"
                      f" (SELECT {columns} FROM %s) q")
            digests.append((table, self.must(digest % table.name), self.must(digest % table.control)))
        self.sync()
        for name, wrong in maps:
            if wrong.rows != ["0"]:
                raise Failure(f"pages of {name} that only the visibility map says are all-visible: {wrong.rows}",
                              self.session.script, [])
        for table, here, copy_ in digests:
            self.counts.checks += 1
            if here.rows != copy_.rows:
                raise Failure(f"table {table.name} differs from its copy: {here.rows} and {copy_.rows}",
                              self.session.script, [])

    # ---------- the whole episode ----------

    def run(self):
        rng = self.rng
        try:
            self.compare_pools()
            self.start()
            # Queries over hundreds of partitions take long.
            for _ in range(rng.randint(5, 10) if not self.many else rng.randint(2, 3)):
                self.burst()
            self.sync()
        except SessionLost as lost:
            raise Failure(str(lost), self.session.script) from None
        except TooSlow as slow:
            if self.options.strict:
                raise Failure(f"too slow: {slow}", self.session.script) from None
            key = "cancelled, too slow"
            self.counts.tolerated[key] = self.counts.tolerated.get(key, 0) + 1
            # Once in a while is no failure; often would mean that something hangs.
            print(f"tolerated, --seed {self.options.seed} --episode {self.number}: {key}: {slow}",
                  flush=True)
        finally:
            for session in (self.session, self.neighbour):
                if session:
                    session.close()
        self.counts.episodes += 1

    def burst(self):
        rng = self.rng
        if rng.random() < 0.55:
            self.begin()
            self.changes(rng.choice([0, 1, 2, 4]))
            if self.isolation:
                self.queries(rng.choice([0, 4, 8, 12]))
            if self.isolation and rng.random() < 0.3:
                self.changes(1)
                self.queries(2)
            if self.isolation and rng.random() < 0.1:
                self.check()
            if self.isolation:
                self.finish(commit=rng.random() < 0.75)
        else:
            self.changes(rng.choice([1, 2, 4]))
        if rng.random() < 0.04:
            self.dropped()
        for _ in range(rng.choice([2, 4, 8])):
            # Half of the queries read row versions without hint bits.
            if rng.random() < 0.5:
                for sql in history.touch(rng, rng.choice(self.tables)):
                    self.must(sql)
            self.queries(1)
        if rng.random() < 0.35:
            self.check()
