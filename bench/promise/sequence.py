"""Runs a sequence of statements, and determines its cost and the lowest possible cost."""

import json
import re
from dataclasses import dataclass

from fuzzer.session import Session

from .hindsight import Hindsight, subsets

TABLES = 3
NEVER = "1e308"                # cost of writing a page that excludes a flush

EVERY_SESSION = """
SET client_min_messages = warning
CREATE EXTENSION IF NOT EXISTS temp_parallel
SET temp_buffers = '64MB'
SET jit = off
SET max_parallel_workers = 1
SET max_parallel_workers_per_gather = 64
SET min_parallel_table_scan_size = 0
SET parallel_tuple_cost = 0
SET plan_cache_mode = force_generic_plan
SET cpu_tuple_cost = 1
SET cpu_operator_cost = 0.1
SET temp_parallel.buffer_scan_cost = 0
SET temp_parallel.share_local_buffers = off
SET temp_parallel.run_ahead = off
SET temp_parallel.processors = 65
""".strip().split("\n")

DIRTY = """
SELECT relblocknumber * 4 + relforknumber FROM pg_local_buffers
 WHERE isdirty AND relfilenode = pg_relation_filenode('pg_temp.t%d')
""".replace("\n", " ").strip()

STATE = """
SELECT s.flushes, s.pages_flushed,
       ARRAY(SELECT coalesce(sum(dirty_pages), 0) FROM generate_series(0, %d) t
             LEFT JOIN temp_parallel_tables ON relation = to_regclass('pg_temp.t' || t)
             GROUP BY t ORDER BY t)
  FROM temp_parallel_stats() s
""".replace("\n", " ").strip() % (TABLES - 1)


class Broken(Exception):
    """A statement failed, or dirty pages or costs are not as this program expects."""


@dataclass
class Change:
    """Statements that dirty pages of a table."""
    table: int
    sql: list
    is_new: bool = False        # none of the table's former pages remain


@dataclass
class Query:
    tables: frozenset
    sql: str


@dataclass
class Settings:
    page_cost: float = 1.0
    seq_page_cost: float = 0.0
    setup_cost: float = 0.0
    prepared: bool = False      # queries have cached plans


# The width of a row's last column, by the number of rows on a page.
WIDTHS = {1: 7000, 8: 900, 28: 250}


@dataclass
class Table:
    number: int
    workers: int
    per_page: int = 8
    fillfactor: int = 100       # with 45, updates find room on the page

    def insert(self, pages):
        return (f"INSERT INTO t{self.number} SELECT g, g % 10, repeat('x', {WIDTHS[self.per_page]})"
                f" FROM generate_series(1, {pages * self.per_page}) g")

    def create(self, pages):
        name = f"t{self.number}"
        return Change(self.number, [
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE TEMP TABLE {name} (id int, grp int, pad text)"
            f" WITH (parallel_workers = {self.workers}, fillfactor = {self.fillfactor})",
            f"ALTER TABLE {name} ALTER pad SET STORAGE PLAIN",
            self.insert(pages), f"ANALYZE {name}"], is_new=True)

    def truncate(self, pages):
        return Change(self.number, [f"TRUNCATE t{self.number}", self.insert(pages)], is_new=True)

    def load(self, pages):
        return Change(self.number, [self.insert(pages)])

    def load_in_vain(self, pages):
        return Change(self.number, ["BEGIN", self.insert(pages), "ROLLBACK"])

    def update(self, pages):
        return Change(self.number, [f"UPDATE t{self.number} SET grp = (grp + 1) % 10"
                                    f" WHERE id <= {pages * self.per_page}"])


def sync(session):
    bad = session.sync()
    if bad:
        raise Broken(f"{bad.sql}: {bad.message}")


def ask(session, sql):
    outcome = session.put(sql, must=True)
    sync(session)
    return outcome.rows


def plan_cost(rows):
    """The cost of a plan, as EXPLAIN (FORMAT JSON) shows it, without charges for flushes."""
    def charges(plan):
        own = sum(charges(child) for child in plan.get("Plans", []))
        if plan.get("Custom Plan Provider") == "TempFlush":
            own += plan["Total Cost"] - plan["Plans"][0]["Total Cost"]
        return own
    plan = json.loads("\n".join(rows))[0]["Plan"]
    return plan["Total Cost"] - charges(plan)


def read_by_workers(rows):
    """The tables below the Gathers of a plan."""
    def tables(plan, below_gather):
        if below_gather and re.match("t[0-9]$", plan.get("Relation Name", "")):
            yield int(plan["Relation Name"][1:])
        for child in plan.get("Plans", []):
            yield from tables(child, below_gather or plan["Node Type"].startswith("Gather"))
    return frozenset(tables(json.loads("\n".join(rows))[0]["Plan"], False))


class Runner:
    """Two sessions. The first runs the statements. The second makes the same changes, and
    plans each query for each set of clean tables."""

    def __init__(self, options):
        self.real, self.other = Session(options), Session(options)
        for session in self.real, self.other:
            for sql in EVERY_SESSION:
                ask(session, sql)

    def close(self):
        self.real.close()
        self.other.close()

    def begin(self, settings):
        """Start a sequence without tables."""
        self.settings = settings
        for session in self.real, self.other:
            for table in range(TABLES):
                ask(session, f"DROP TABLE IF EXISTS t{table}")
            ask(session, f"SET seq_page_cost = {settings.seq_page_cost}")
            ask(session, f"SET parallel_setup_cost = {settings.setup_cost}")
            ask(session, f"SET random_page_cost = {settings.seq_page_cost}")
        ask(self.real, f"SET temp_parallel.write_temp_page_cost = {settings.page_cost}")
        ask(self.other, f"SET temp_parallel.write_temp_page_cost = {NEVER}")
        ask(self.real, "DEALLOCATE ALL")
        self.prepared = {}          # names by statement
        self.known = {}             # costs by statement and versions of the tables
        self.versions = [0] * TABLES
        self.hindsight = Hindsight(TABLES, settings.page_cost)
        self.cost = 0.0
        self.written = 0            # pages, by flushes
        self.dirty = [0] * TABLES
        self.log = []
        self.flushes, self.pages, dirty = self.state()

    def state(self):
        flushes, pages, dirty = ask(self.real, STATE)[0].split("\x1f")
        return int(flushes), int(pages), [int(n) for n in dirty.strip("{}").split(",")]

    def check_dirty(self, dirty, what):
        expected = [mask.bit_count() for mask in self.dirty]
        if dirty != expected:
            raise Broken(f"dirty pages are {dirty}, not {expected}, after {what}")

    def change(self, change):
        """Run a change. The serial scan sets hint bits and prunes, so later reads dirty nothing."""
        table = change.table
        sql = (change.sql + ["SET temp_parallel.enabled = off", f"SELECT count(*) FROM t{table}",
                             "RESET temp_parallel.enabled"])
        self.other.put("SELECT pg_flush_local_buffers()", must=True)
        for statement in sql:
            self.other.put(statement, must=True)
            self.real.put(statement, must=True)
        sync(self.real)
        dirtied = sum(1 << int(bit) for bit in ask(self.other, DIRTY % table))
        self.versions[table] += 1
        self.dirty[table] = dirtied if change.is_new else self.dirty[table] | dirtied
        self.hindsight.change(table, dirtied, change.is_new)
        self.flushes, self.pages, dirty = self.state()
        self.log.append(f"{'; '.join(change.sql)} -- {dirtied.bit_count()} pages")
        self.check_dirty(dirty, change.sql)

    def flush(self):
        """Run pg_flush_local_buffers(), whose cost is that of the pages that it writes."""
        written = int(ask(self.real, "SELECT pg_flush_local_buffers()")[0])
        self.cost += written * self.settings.page_cost
        self.dirty = [0] * TABLES
        self.hindsight.flush()
        self.flushes, self.pages, dirty = self.state()
        self.log.append("SELECT pg_flush_local_buffers()")
        self.check_dirty(dirty, "pg_flush_local_buffers()")

    def costs(self, query):
        """The cost of the query's best plan, by the tables that workers can read."""
        key = (query.sql, *self.versions)
        if key not in self.known:
            self.known[key] = self.ask_for_costs(query)
        return self.known[key]

    def ask_for_costs(self, query):
        plans = {}
        for clean in subsets(query.tables):
            self.other.put("SELECT pg_flush_local_buffers()", must=True)
            for table in query.tables - clean:
                self.other.put(f"SELECT pg_temp_buffers_dirty('t{table}')", must=True)
            plans[clean] = self.other.put(f"EXPLAIN (FORMAT JSON) {query.sql}", must=True)
        sync(self.other)
        costs = {clean: plan_cost(outcome.rows) for clean, outcome in plans.items()}
        return {clean: min(costs[less] for less in subsets(clean)) for clean in costs}

    def query(self, query):
        """Run a query. Returns whether it flushed anything."""
        costs = self.costs(query)
        sql = query.sql
        if self.settings.prepared:
            if sql not in self.prepared:
                self.prepared[sql] = f"q{len(self.prepared)}"
                ask(self.real, f"PREPARE {self.prepared[sql]} AS {sql}")
            sql = f"EXECUTE {self.prepared[sql]}"
        plan = self.real.put(f"EXPLAIN (FORMAT JSON) {sql}", must=True)
        self.real.put(sql, must=True)
        sync(self.real)
        flushes, pages, dirty = self.state()
        for table in query.tables:
            if dirty[table] == 0:
                self.dirty[table] = 0
        self.check_dirty(dirty, query.sql)

        clean = frozenset(t for t in query.tables if not self.dirty[t])
        if self.settings.prepared:
            # the plan's own cost may be that of earlier contents
            cost = costs[read_by_workers(plan.rows) if flushes > self.flushes else frozenset()]
        else:
            cost = plan_cost(plan.rows)
            if cost < costs[clean] - 0.1:
                raise Broken(f"cost {cost} of {query.sql} is less than {costs[clean]}")
        written = pages - self.pages
        self.cost += cost + written * self.settings.page_cost
        self.hindsight.query(costs)
        self.log.append(f"{query.sql} -- cost {cost:.0f} ({', '.join(f'{c:.0f}' for c in costs.values())}),"
                        f" flush {written * self.settings.page_cost:.0f},"
                        f" ratio {self.ratio():.3f}")
        self.flushes, self.pages = flushes, pages
        self.written += written
        return written > 0

    def ratio(self):
        return self.cost / max(self.hindsight.cost(), 0.01)
