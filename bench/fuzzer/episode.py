"""An episode: one session, its tables, their histories, and queries.

All that it does follows from its seed. A failure is raised as Failure, with
the statements that lead to it.
"""

import copy
import random

from . import history, schema, settings
from .queries import Generator
from .session import Session, SessionLost

# Run once per database.
PREPARE = [
    "SET allow_in_place_tablespaces = on",
    "CREATE TABLESPACE fuzz_ts LOCATION ''",
    "CREATE EXTENSION IF NOT EXISTS temp_parallel",
]

# The start of every session.
FUNCTIONS = [
    "CREATE FUNCTION fz.run(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY"
    " EXECUTE 'SELECT q::text FROM (' || q || ') q'; END $$",
    "CREATE FUNCTION fz.loop(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE r record;"
    " BEGIN FOR r IN EXECUTE q LOOP RETURN NEXT r::text; END LOOP; END $$",
    # A plan that runs without workers, with parallel ones in the middle of it.
    "CREATE FUNCTION fz.nested(q text, q2 text) RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE"
    " r record; n int := 0; s text; BEGIN FOR r IN EXECUTE q LOOP n := n + 1; RETURN NEXT r::text;"
    " IF n < 400 AND n % 80 = 1 THEN EXECUTE 'SELECT sum(hashtext(q::text)) FROM (' || q2 || ') q'"
    " INTO s; RETURN NEXT s; END IF; END LOOP; END $$",
    # The end of a phase by an error that is caught.
    "CREATE FUNCTION fz.caught(q text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE s text; BEGIN"
    " BEGIN EXECUTE q INTO s; EXCEPTION WHEN division_by_zero THEN s := 'caught'; END; EXECUTE q"
    " INTO s; RETURN s; EXCEPTION WHEN division_by_zero THEN RETURN 'caught'; END $$",
    "CREATE FUNCTION fz.counted(t text, p int) RETURNS text LANGUAGE plpgsql STABLE PARALLEL"
    " RESTRICTED AS $$ DECLARE n bigint; BEGIN EXECUTE format('SELECT sum(id) FROM %I WHERE"
    " part = $1 AND id < 700', t) INTO n USING p; RETURN n::text; END $$",
]

# A pool that is too small for a plan is no wrong answer, nor is a slow query.
TOLERATED = {"53000": "no local buffer left", "57014": "timeout", "53400": "configuration limit",
             "54001": "stack depth"}


class Failure(Exception):
    """What went wrong, and how to see it again."""

    def __init__(self, what, script, queries=None):
        super().__init__(what)
        self.script = script        # statements before
        self.queries = queries      # [(settings, [statements])], first one suspect


class Counts:
    def __init__(self):
        self.episodes = 0
        self.queries = 0
        self.zero = 0               # queries in zero-cost mode ...
        self.flushed = 0            # ... that flushed before a launch
        self.launched = 0           # ... and got workers
        self.on_flushed = 0
        self.fresh = 0              # zero-cost mode came first
        self.in_transaction = 0
        self.checks = 0             # tables compared with their copy
        self.errors = 0             # the same in all modes
        self.tolerated = {}


class Episode:
    def __init__(self, options, number, counts):
        self.options = options
        self.rng = random.Random(f"{options.seed}/{number}")
        self.number = number
        self.counts = counts
        self.tables = []
        self.saved = None           # tables as of BEGIN
        self.isolation = None       # of the open transaction
        self.prepared = []
        self.serial = 0
        self.session = None

    # ---------- statements ----------

    def must(self, sql):
        outcome = self.session.run(sql)
        if outcome.sqlstate:
            raise Failure(f"{outcome.sqlstate} {outcome.message}: {sql}", self.session.script)
        return outcome

    def set(self, values):
        self.must(settings.statement(values))

    # ---------- set-up ----------

    def start(self):
        rng = self.rng
        self.session = Session(self.options.psql, self.options.database, self.options.errors)
        self.temp_buffers = rng.choices([100, 128, 300, 1000, 8192, 65536],
                                        [40, 10, 15, 15, 10, 10])[0]
        for sql in ["SET client_min_messages = warning",
                    "DROP SCHEMA IF EXISTS fz, ctl CASCADE",
                    "CREATE SCHEMA fz", "CREATE SCHEMA ctl",
                    "SET search_path = pg_temp, fz, public",
                    f"SET temp_buffers = {self.temp_buffers}",
                    f"SET statement_timeout = '{self.options.timeout}s'",
                    "SET jit = off", "SET timezone = 'UTC'", "SET extra_float_digits = 1"]:
            self.must(sql)
        if rng.random() < 0.2:
            self.must("SET temp_tablespaces = 'fuzz_ts'")
        for sql in FUNCTIONS:
            self.must(sql)
        for n in range(rng.choice([1, 2, 2, 3])):
            table, statements = schema.create_table(rng, f"t{n}", True)
            self.tables.append(table)
            before = [schema.create_index(rng, table) for _ in range(rng.choice([0, 1, 2]))]
            rows = history.insert(rng, table, rng.choice([400, 1500, 3000]))
            after = [schema.create_index(rng, table) for _ in range(rng.choice([0, 1, 3]))]
            for sql in statements + before + rows + after:
                self.must(sql)

    # ---------- transactions ----------

    def begin(self):
        self.isolation = self.rng.choice(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
        self.saved = copy.deepcopy(self.tables)
        self.must(f"BEGIN ISOLATION LEVEL {self.isolation}")

    def finish(self, commit):
        self.must("COMMIT" if commit else "ROLLBACK")
        self.isolation = None
        if not commit:
            self.tables = self.saved
            self.deallocate()

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
                saved = copy.deepcopy(self.tables)
                self.must("SAVEPOINT s")
                if rng.random() < 0.1:
                    self.must(f"DROP TABLE {rng.choice(self.tables).name} CASCADE")
                    self.must("ROLLBACK TO SAVEPOINT s")
                    self.deallocate()
            for _ in range(1 if saved is None else rng.choice([1, 2])):
                menu = history.ANYWHERE if self.isolation else history.OUTSIDE
                before = [c.type for t in self.tables for c in t.columns]
                for sql in history.change(rng, rng.choice(self.tables), menu):
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
                self.must("ROLLBACK TO SAVEPOINT s")
                self.tables = saved
                self.deallocate()

    # ---------- queries ----------

    def forms(self, query):
        """For each mode the statements that run query, in a random form."""
        rng = self.rng
        sql = query.sql
        form = rng.choices(["plain", "create", "run", "loop", "cursor", "explain", "insert",
                            "nested", "interleaved"],
                           [68, 8, 6, 3, 3, 3, 3, 3, 3])[0]
        if query.parameters:
            return self.prepare(query)
        if query.may_fail:
            form = rng.choice(["plain", "run", "caught", "index"])
        quoted = "'" + sql.replace("'", "''") + "'"
        other = None
        if form in ("nested", "interleaved"):
            # one row, so that the order of rows does not matter
            other = Generator(rng, self.tables)
            other.serial = 50
            other = other.aggregates().sql
        self.serial += 1
        n = self.serial
        result = {}
        for mode in (settings.OFF, settings.ON, settings.ZERO):
            if form == "create":
                result[mode] = [f"CREATE TEMP TABLE out_{mode}{n} AS {sql}",
                                f"SELECT * FROM out_{mode}{n}", f"DROP TABLE out_{mode}{n}"]
                query.ordered = False
            elif form == "insert":
                result[mode] = [f"CREATE TEMP TABLE out_{mode}{n} AS SELECT * FROM ({sql}) q LIMIT 0",
                                f"INSERT INTO out_{mode}{n} {sql}",
                                f"SELECT * FROM out_{mode}{n}", f"DROP TABLE out_{mode}{n}"]
                query.ordered = False
            elif form == "nested":
                result[mode] = ["SELECT s, count(*) FROM fz.nested(" + quoted + ", '" +
                                other.replace("'", "''") + "') s GROUP BY 1"]
            elif form == "interleaved" and self.isolation:
                result[mode] = [f"DECLARE c SCROLL CURSOR FOR {sql}", "FETCH 7 FROM c", other,
                                "FETCH 30 FROM c", other, "FETCH ALL FROM c",
                                "FETCH BACKWARD ALL FROM c", "CLOSE c"]
            elif form == "index":
                # An index build refuses any access method but heap's own.
                table = next(t for t in self.tables if f"FROM {t.name} WHERE" in sql)
                result[mode] = [f"DO $$ BEGIN PERFORM fz.caught({quoted}); CREATE INDEX out_{n} ON"
                                f" {table.members[-1]} (k); DROP INDEX out_{n}; END $$", sql]
            elif form in ("run", "loop", "caught"):
                result[mode] = [f"SELECT * FROM fz.{form}({quoted})"]
            elif form == "cursor" and self.isolation:
                result[mode] = [f"DECLARE c CURSOR FOR {sql}", "FETCH 3 FROM c", "FETCH ALL FROM c",
                                "CLOSE c"]
            elif form == "explain":
                result[mode] = [f"EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF,"
                                f" BUFFERS) {sql}", sql]
            else:
                result[mode] = [sql]
        self.explained = form == "explain"
        return result

    def prepare(self, query):
        self.serial += 1
        names = {m: f"p{self.serial}_{m}" for m in (settings.OFF, settings.ON, settings.ZERO)}
        result = {mode: [f"PREPARE {name}(int) AS {query.sql}"] +
                  self.executions(names, mode, self.serial)
                  for mode, name in names.items()}
        self.prepared.append((names, query))
        return result

    def executions(self, names, mode, salt):
        rng = random.Random(f"{self.options.seed}/{salt}")
        return [f"EXECUTE {names[mode]}({rng.randrange(60)})" for _ in range(rng.choice([1, 2, 7]))]

    def queries(self, n):
        rng = self.rng
        generator = Generator(rng, self.tables)
        for _ in range(n):
            self.explained = self.cached = False
            if self.prepared and rng.random() < 0.15:
                names, query = rng.choice(self.prepared)
                salt = rng.random()
                forms = {m: self.executions(names, m, salt) for m in names}
                if rng.random() < 0.3:
                    # a plan of one mode, executed in another
                    forms[settings.OFF], forms[settings.ZERO] = forms[settings.ZERO], forms[settings.OFF]
                # cached plans know nothing of the mode that they run in
                self.cached = True
            else:
                query = generator.query(parameters=rng.random() < 0.25)
                forms = self.forms(query)
            if not self.compare(query, forms):
                return

    def compare(self, query, forms):
        """Run the query in all modes. False if the transaction is gone."""
        rng, counts = self.rng, self.counts
        if rng.random() < 0.65:
            order = [settings.ZERO] + rng.sample([settings.OFF, settings.ON], 2)
        else:
            order = rng.sample([settings.OFF, settings.ON, settings.ZERO], 3)
        common = settings.random_settings(rng, self.options.version)
        # Descriptors rebuilt at every chance, as another session's DDL makes them.
        storm = self.options.cassert and rng.random() < 0.02
        cheap = rng.random() < 0.7
        savepoint = self.isolation and (query.may_fail or rng.random() < 0.4)

        counts.queries += 1
        counts.fresh += order[0] == settings.ZERO
        counts.in_transaction += bool(self.isolation)
        answers, runs = {}, {}
        start = len(self.session.script)
        for mode in order:
            values = dict(common, **settings.of_mode(mode, cheap))
            if self.options.cassert:
                values["debug_discard_caches"] = str(int(storm and mode == settings.ZERO))
            runs[mode] = (values, forms[mode], savepoint)
            self.set(values)
            before = self.flushes()
            if savepoint:
                self.must("SAVEPOINT q")
            answer = self.answer(forms[mode])
            if savepoint:
                self.must("ROLLBACK TO SAVEPOINT q")
            answers[mode] = answer
            if answer[0] == "error" and answer[1] in TOLERATED:
                if self.options.strict:
                    values = dict(common, **settings.of_mode(settings.OFF, cheap))
                    raise Failure(f"{mode}: {answer[1]} {answer[2]}", self.session.script[:start],
                                  [runs[mode], (values, forms[settings.OFF], savepoint)])
                return self.tolerate(mode, answer, savepoint)
            if not self.cached and (self.isolation is None or savepoint or answer[0] != "error"):
                self.count(mode, before)
            if answer[0] == "error" and not query.may_fail:
                break

        first = answers[order[0]]
        if first[0] == "error" and not query.may_fail:
            raise Failure(f"{order[0]}: {first[1]} {first[2]}", self.session.script[:start],
                          [runs[order[0]]])
        for mode in order[1:]:
            if mode in answers and not self.same(answers[mode], first, query):
                bad = mode if mode != settings.OFF else order[0]
                raise Failure(
                    f"{mode} and {order[0]} differ: {self.difference(answers[mode], first)}",
                    self.session.script[:start],
                    [runs[bad], runs.get(settings.OFF, runs[order[0]])] if settings.OFF in (mode, order[0])
                    else [runs[order[0]], runs[mode]])
        counts.errors += first[0] == "error"
        return True

    def answer(self, statements):
        """('rows', rows) or ('error', sqlstate, message) of statements in turn."""
        rows = []
        for n, sql in enumerate(statements):
            outcome = self.session.run(sql)
            if outcome.sqlstate:
                return ("error", outcome.sqlstate, outcome.message)
            if not (self.explained and n == 0):
                rows += outcome.rows
        return ("rows", rows)

    @staticmethod
    def same(a, b, query):
        if a[0] != b[0]:
            return False
        if a[0] == "error":
            return a[1] == b[1]
        return a[1] == b[1] if query.ordered else sorted(a[1]) == sorted(b[1])

    @staticmethod
    def difference(a, b):
        if a[0] == "error" or b[0] == "error":
            return f"{a[:1] + a[1:] if a[0] == 'error' else 'rows'} / {b if b[0] == 'error' else 'rows'}"
        only_a, only_b = sorted(set(a[1]) - set(b[1])), sorted(set(b[1]) - set(a[1]))
        return f"{len(a[1])} and {len(b[1])} rows, only here {only_a[:3]!r:.300}, only there {only_b[:3]!r:.300}"

    def tolerate(self, mode, answer, savepoint):
        key = f"{mode}: {TOLERATED[answer[1]]}"
        self.counts.tolerated[key] = self.counts.tolerated.get(key, 0) + 1
        # Once in a while is no failure, but a plan that hangs would be.
        print(f"tolerated, --seed {self.options.seed} --episode {self.number}: {key}:"
              f" {self.session.script[-2 if savepoint else -1]}", flush=True)
        if not self.isolation:
            return True
        self.must("ROLLBACK")
        self.isolation = None
        self.tables = self.saved
        self.deallocate()
        return False

    def flushes(self):
        """The session's counts of flushes and of workers; None if it cannot be asked."""
        outcome = self.session.ask("SELECT flushes, workers_launched FROM public.temp_parallel_stats()")
        if outcome.sqlstate:
            return None
        return [int(x) for x in outcome.rows[0].split("\x1f")]

    def count(self, mode, before):
        after = self.flushes()
        if mode == settings.OFF and after != before:
            raise Failure("a flush although the extension is off", self.session.script)
        if mode == settings.ON:
            self.counts.on_flushed += after[0] > before[0]
        if mode == settings.ZERO:
            self.counts.zero += 1
            self.counts.flushed += after[0] > before[0]
            self.counts.launched += after[1] > before[1]

    # ---------- is everything still there? ----------

    def check(self):
        """Every table equals its copy, also after its pages have left the pool."""
        rng = self.rng
        self.set(settings.of_mode(rng.choice([settings.OFF, settings.ZERO]), False))
        self.must("SET max_parallel_workers_per_gather = 2")
        if self.temp_buffers <= 1000 and rng.random() < 0.7:
            self.must("CREATE TEMP TABLE evictor AS SELECT g, repeat('e', 1000) AS e FROM"
                      f" generate_series(1, {self.temp_buffers * 8}) g")
            self.must("DROP TABLE evictor")
        elif rng.random() < 0.7:
            self.must("SELECT public.pg_evict_local_buffers()")
        for table in self.tables:
            self.counts.checks += 1
            columns = ", ".join(c.name for c in table.columns)
            digest = ("SELECT count(*), sum(hashtextextended(q::text, 0)::numeric) FROM"
                      f" (SELECT {columns} FROM %s) q")
            here = self.must(digest % table.name).rows
            copy_ = self.must(digest % table.control).rows
            if here != copy_:
                raise Failure(f"table {table.name} is not what it should be: {here} and {copy_}",
                              self.session.script, [])

    # ---------- all of it ----------

    def run(self):
        rng = self.rng
        try:
            self.start()
            for _ in range(rng.randint(4, 10)):
                self.burst()
        except SessionLost as lost:
            raise Failure(str(lost), self.session.script) from None
        finally:
            self.session.close()
        self.counts.episodes += 1

    def burst(self):
        rng = self.rng
        if rng.random() < 0.55:
            self.begin()
            self.changes(rng.choice([0, 1, 2, 4]))
            if self.isolation:
                self.queries(rng.choice([0, 1, 2, 3]))
            if self.isolation and rng.random() < 0.3:
                self.changes(1)
                self.queries(1)
            if self.isolation and rng.random() < 0.1:
                self.check()
            if self.isolation:
                self.finish(commit=rng.random() < 0.75)
        else:
            self.changes(rng.choice([1, 2, 4]))
        for _ in range(rng.choice([1, 2, 4])):
            # Half of the queries meet row versions that nobody has looked at.
            if rng.random() < 0.5:
                for sql in history.touch(rng, rng.choice(self.tables)):
                    self.must(sql)
            self.queries(1)
        if rng.random() < 0.5:
            self.check()
