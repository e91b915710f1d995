"""A query is run in all modes, and the answers are compared."""

import random
from dataclasses import dataclass, field

from . import answers, settings
from .queries import Query
from .report import Failure
from .tables import Tables


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
    inside: list = ()       # Outcomes of COUNTERS among the statements at no cost
    locks: dict = field(default_factory=dict)       # Outcomes of LOCKS before the savepoint's end
    answers: dict = field(default_factory=dict)     # by mode

    @property
    def label(self):
        return f" [{', '.join(self.query.names())}]" if self.query.kind else ""


class Comparer(Tables):
    """Before compare(), the caller sets cached (the plan may be that of another mode),
    own_role and own_savepoint (the query is for no other role, and needs a savepoint)."""

    def compare(self, query, statements):
        """Run the query in all modes, and compare the answers. Returns False if the transaction
        had to be rolled back."""
        run = self.conditions(query, statements)
        # Canceling the DELETE ROWS of a COMMIT leaves an index without pages, in the server
        # itself (18.6).
        commit_empties = not self.isolation and any(t.on_commit == "DELETE ROWS" for t in self.tables)
        if self.rng.random() < 0.04 and not commit_empties and \
                (query.undone or not (query.may_fail or query.parameters or query.statements)):
            self.cancelled(query, run.common, statements[settings.ZERO])

        bad = self.run_modes(run)
        failed = self.judge_errors(run)
        if failed:
            return self.tolerate(failed, run.answers[failed])
        self.judge(bad)
        self.judge_answers(run)
        self.judge_locks(run)
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
        storm = self.options.cassert and rng.random() < 0.03 and not self.many and not query.calm
        cheap = rng.random() < 0.3
        savepoint = bool(self.isolation) and (query.may_fail or self.own_savepoint or rng.random() < 0.4)
        return Comparison(query, statements, order, common, reader, storm, cheap, savepoint)

    def mode_settings(self, run, mode):
        values = {**run.common, **settings.of_mode(mode, run.cheap), **run.query.settings}
        if mode == settings.OFF:
            values.update(run.query.off)
        elif mode == settings.ZERO and values["temp_parallel.share_local_buffers"] == "on":
            # What costs little to write is not shared, or not for long. Not drawn from rng, as in
            # random_settings().
            values["temp_parallel.write_temp_page_cost"] = random.Random(repr(values)).choice(["1", "1", "0.1"])
        elif mode == settings.ZERO and random.Random(repr(values)).random() < 0.1:
            # Tables that are dirty are left to the leader, if there are clean ones.
            values["temp_parallel.write_temp_page_cost"] = random.Random(run.query.sql).choice(["1", "1e300"])
        elif mode == settings.ON and random.Random(repr(values)).random() < 0.05:
            values["temp_parallel.write_temp_page_cost"] = random.Random(run.query.sql).choice(["0", "1e300", "1e308"])
        if mode == settings.ZERO and values["temp_parallel.processors"] == "0" and \
                random.Random(repr(values) + "busy").random() < 0.5:
            # Some launches of a statement are left to the leader, if other processes run just then.
            values["parallel_setup_cost"] = "10"
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
                run.locks[mode] = self.session.put(settings.LOCKS)
                self.must("ROLLBACK TO SAVEPOINT q")
        calm = {"role": "none", "jit": "off"}
        if run.storm:
            calm["debug_discard_caches"] = "0"
        run.counters["after"] = self.set(calm)
        earlier = [outcome for _, outcome in self.session.waiting[:queued]]
        # Many of the queries with debug_discard_caches would take minutes.
        bad = self.session.sync(4 if run.storm else None)
        if any(bad is outcome for outcome in earlier):
            self.judge(bad)
        run.answers = {mode: answers.answer(outcomes[mode]) for mode in run.order}
        run.inside = [o for o in outcomes[settings.ZERO] if o.sql == settings.COUNTERS]
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
            if query.may_fail and answer[1] not in answers.TOLERATED and not answers.WRONG.match(answer[1]):
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

    def judge_locks(self, run):
        """Raise a Failure if a mode locks what the off mode does not."""
        # The execution of a cached plan locks fewer indexes than its planning, of which a
        # subtransaction that is rolled back leaves no lock. A function that the planner calls
        # twice locks more.
        if settings.OFF not in run.order or not run.savepoint or self.cached or run.locks[settings.OFF].sqlstate \
                or "subtransaction" in run.query.kind or run.query.kind.startswith("planned"):
            return
        for mode in run.order:
            more = sorted(set(run.locks[mode].rows) - set(run.locks[settings.OFF].rows))
            if more:
                raise self.failure(f"{mode} locks more: {more}{run.label}", run, mode, settings.OFF)

    def failure(self, what, run, *modes):
        """A Failure that is reproduced in these modes, the suspect first."""
        return Failure(what, self.session.script[:run.start], [run.replays[mode] for mode in modes])

    def note(self, run):
        """Count a query whose answers agree."""
        counts, query = self.counts, run.query
        # A prepared statement is a query for each set of parameters.
        counts.queries += max(1, sum(sql.startswith("EXECUTE ") for sql in run.statements[settings.ZERO]))
        launched = self.count_run(run)
        for name in query.names():
            kind = counts.kinds.setdefault(name, [0, 0])
            kind[0] += 1
            kind[1] += launched
        counts.comparisons += 1
        counts.fresh += run.order[0] == settings.ZERO
        counts.in_transaction += bool(self.isolation)
        counts.reader += run.reader
        counts.errors += run.answers[run.order[0]][0] == "error"

    def count_run(self, run):
        """Count what the runs did. Returns whether that at no cost had workers for what the
        query's kind is about."""
        launched = False
        # A cached plan does not depend on the mode. Without the mode that refused the query,
        # the counters of the others do not follow each other.
        if not self.cached and len(run.order) == len(settings.MODES):
            for mode, end in zip(run.order, run.order[1:] + ["after"]):
                workers = self.count(run, mode, self.counters(run.counters[mode]), self.counters(run.counters[end]))
                launched = launched or mode == settings.ZERO and workers > 0
        if run.inside:
            inside = [self.counters(outcome) for outcome in run.inside]
            launched = None not in inside and inside[1][1] > inside[0][1]
        return launched

    def count(self, run, mode, before, after):
        """Count what one run did. Returns the number of workers."""
        if before is None or after is None:
            return 0
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
        if mode == settings.ZERO and run.replays[mode][0]["parallel_setup_cost"] == "0":
            counts.zero += 1
            counts.flushed += flushes > 0
            counts.launched += workers > 0
        return workers

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

    def cancelled(self, query, common, statements):
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
        answer = answers.answer(outcomes)
        if answer[0] == "error":
            if answer[1] not in answers.TOLERATED and (not query.may_fail or answers.WRONG.match(answer[1])):
                raise Failure(f"cancel: {answer[1]} {answer[2]}", self.session.script)
            self.counts.cancels += answer[1] == "57014"
        if check:
            self.check()
