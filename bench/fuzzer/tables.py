"""A session and its tables, each with a copy that has the same history."""

import copy
import random

from . import history, schema, settings
from .report import Failure
from .session import SEPARATOR


class Tables:
    """Statements are queued, and run by sync(). A rollback restores what is known of tables."""

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
        self.emptied = False        # or indexes as empty

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
        return self.must(settings.statement(values, ", " + settings.COUNTED))

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

    # ---------- tables and transactions ----------

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

    def change_source(self):
        menu = history.SOURCE if self.isolation else history.SOURCE_OUTSIDE
        for sql in history.change(self.rng, self.rng.choice(self.sources), menu):
            self.must(sql)

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
