"""An episode: a session, its tables, their histories, and queries.

Everything it does follows from its seed. A failure is raised as Failure, with the
statements that led to it.
"""

import random
import re

from . import calls, forms, history, modify, operators, planned, portions, prepared, schema, settings, values
from .comparison import Comparer
from .queries import Generator, depends_on_places
from .report import Failure
from .session import Session, SessionLost, TooSlow
from .statements import DROPPED, FUNCTIONS, LAST_EPISODE_ENDS, NEIGHBOUR, POOL_FUNCTIONS


class Episode(Comparer):
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
        # Not drawn from rng, so that a seed draws the same episode as before.
        aside = random.Random(f"{self.options.seed}/{self.number}")
        for name in ("run", "loop", "nested") if aside.random() < 0.2 else ():
            self.must(f"ALTER FUNCTION fz.{name} COST {aside.choice(['1e-9', '1e10'])} ROWS {aside.choice(['1', '1e9'])}")
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
        if rng.random() < (0.5 if crowded else 0.1) and self.temp_buffers > 1024 and \
                not (self.options.cassert and self.options.version >= 18):
            # The server does not check whether the pool has that size. (From 18 on, a smaller pool
            # has not enough buffers for what the server reads ahead then, and an assertion fails
            # if more pages are pinned than the setting allows.)
            self.must("RESET temp_buffers")
            for sql in POOL_FUNCTIONS:
                self.must(sql.replace("CREATE", "CREATE OR REPLACE").replace(" SET temp_buffers = {pool}", ""))
        self.sync()
        if rng.random() < 0.1:
            self.counts.neighbours += 1
            self.neighbour = Session(self.options, 10 ** 9)
            self.neighbour.put(NEIGHBOUR.format(pid=self.session.pid, control=self.tables[0].control))
            self.neighbour.send()

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
            if not self.isolation:
                continue        # a tolerated error rolled the transaction back
            if rng.random() < 0.5:
                self.must("RELEASE SAVEPOINT s")
            else:
                self.rollback("ROLLBACK TO SAVEPOINT s")
                self.restore(saved)
                self.deallocate()

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
        name = forms.draw(self.rng, query, self.options.kind)
        if query.parameters:
            return self.prepare(query)
        if query.statements:
            return self.own_statements(query)
        form, other = self.applicable(name, query)
        if name in forms.COUNTED and not query.kind:
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
            if (name == "changed" or query.kind == "folded") and depends_on_places(query.sql + other):
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
            self.cached = self.own_role = self.own_savepoint = False
            if self.prepared and self.rng.random() < 0.15:
                query, statements = self.execute_again()
            else:
                query = self.query_of_kind(generator)
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

    def query_of_kind(self, generator):
        """The next query; of a kind that is wanted, if there is such a one in some tries."""
        wanted = self.options.kind
        for _ in range(300 if wanted else 1):
            query = self.query(generator)
            if wanted and (any(re.search(wanted, name) for name in query.names())
                           or forms.of_kind(wanted) and not (query.kind or query.may_fail)):
                break
        return query

    def query(self, generator):
        """The next query. Sets own_role and own_savepoint."""
        rng = self.rng
        choice = rng.random()
        if self.many and choice < 0.4:
            return generator.partitions(self.many)
        # Not drawn from rng, so that a seed draws the same episode as before.
        aside = random.Random(repr(choice))
        if aside.random() < 0.03 and not self.many:
            self.own_role = self.own_savepoint = True
            return prepared.Prepared(aside, self.tables, self.isolation).query()
        if aside.random() < 0.03 and not self.many:
            self.own_role = self.own_savepoint = True
            return operators.Operators(aside, self.tables).query()
        if aside.random() < 0.03 and not self.many:
            self.own_role = self.own_savepoint = True
            return planned.Planned(aside, self.tables, self.isolation).query()
        if choice < (0.52 if self.many else 0.12):
            if rng.random() < 0.4:
                self.change_source()
            query = values.Values(rng, self.tables, self.sources, self.options.version, self.isolation).query()
        elif choice < (0.58 if self.many else 0.18):
            maker = calls.Calls(rng, self.tables, self.sources, self.options.contrib, self.isolation,
                                self.temp_buffers)
            query = rng.choice([maker.mislabelled, maker.in_leader])()
        elif choice < (0.66 if self.many else 0.26):
            query = modify.Modify(rng, self.tables, self.sources, self.options.version, self.isolation).query()
        elif choice < (0.74 if self.many else 0.36):
            query = portions.Portions(rng, self.tables, self.isolation, self.options.ranges).query()
        else:
            return generator.query(parameters=rng.random() < 0.25)
        # Sources have no policies, and errors must not abort the transaction.
        self.own_role = self.own_savepoint = True
        return query

    # ---------- the whole episode ----------

    def run(self):
        rng = self.rng
        try:
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
            # heap_truncate() of core is not transaction-safe: canceled in COMMIT, it leaves empty indexes.
            self.emptied = any(table.on_commit == "DELETE ROWS" for table in self.tables)
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
