"""What an episode reports: a failure, and counts of what it has done."""


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
        self.neighbours = 0         # episodes with another session's DDL
        self.reader = 0             # queries under row-level security
        self.dropped = 0            # tables dropped by another session
        self.kinds = {}             # by kind: number of queries, and of those with workers at no cost
        self.refused = {}           # by kind and mode: errors that may come instead of an answer
        self.tolerated = {}
