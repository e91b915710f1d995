"""A session: one psql, fed with statements and read without waiting for each.

What it was fed is the script that replays the session. Statements are put into
a queue and sent together, as waiting for the answer to each would take longer
than most of them.
"""

import os
import re
import select
import subprocess
from dataclasses import dataclass, field

SEPARATOR = "\x1f"
COMPLETE = re.compile(r"( \\g|\n\\! [^\n]*)\Z")


def terminated(sql):
    """A statement as psql wants it: one that ends in a command of psql's own is complete."""
    return sql + ("" if COMPLETE.search(sql) else ";") + "\n"


class SessionLost(Exception):
    """The server, or psql, is gone in the middle of a statement."""


class TooSlow(Exception):
    """A statement has been cancelled, as it had taken too long."""


@dataclass
class Outcome:
    """What a statement gave: rows as psql prints them, or an error."""

    sql: str
    must: bool = False          # an error is a failure
    rows: list = field(default_factory=list)
    sqlstate: str = ""          # empty: no error
    message: str = ""


class Session:
    """seconds: for a statement, before it is cancelled.

    They are counted by the waiting process, a second at a time, so that a
    machine or a session that is stopped for a while does not use them up.
    """

    def __init__(self, options, seconds=None):
        self.script = []
        self.number = 0
        self.waiting = []       # Outcomes not there yet
        self.unsent = b""
        self.unread = b""
        self.options = options
        self.seconds = seconds or options.timeout
        self.process = subprocess.Popen(
            [options.psql, "-XqAt", "-d", options.database],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=options.errors, bufsize=0)
        os.set_blocking(self.process.stdin.fileno(), False)
        self.unsent = b"\\pset null '(null)'\n\\pset fieldsep '\\x1f'\n"
        self.pid = "".join(self.ask("SELECT pg_backend_pid()").rows)

    def put(self, sql, must=False):
        """Queue a statement. Its Outcome is filled in by sync()."""
        self.script.append(sql)
        return self._put(sql, must)

    def _put(self, sql, must):
        outcome = Outcome(sql, must)
        self.number += 1
        self.waiting.append((b"@@%d@@ " % self.number, outcome))
        # psql flushes what it has printed after each of its own commands
        self.unsent += (f"{terminated(sql)}\\echo @@{self.number}@@ :ERROR :SQLSTATE"
                        " :LAST_ERROR_MESSAGE\n").encode()
        return outcome

    def send(self):
        """Send what is queued, and wait for nothing."""
        while self.unsent:
            select.select([], [self.process.stdin], [])
            self.unsent = self.unsent[os.write(self.process.stdin.fileno(), self.unsent):]

    def run(self, sql):
        """Run one statement; never raises for an SQL error."""
        outcome = self.put(sql)
        self.sync()
        return outcome

    def ask(self, sql):
        """The same, for a statement that is no part of the replay."""
        outcome = self._put(sql, False)
        self.sync()
        return outcome

    def sync(self):
        """Wait for all answers. The first Outcome that must not fail but did, or None."""
        bad, done, ticks, cancelled = None, 0, 0, False
        into, out = self.process.stdin.fileno(), self.process.stdout.fileno()
        while done < len(self.waiting):
            readable, writable, _ = select.select([out], [into] if self.unsent else [], [], 1)
            if writable:
                try:
                    self.unsent = self.unsent[os.write(into, self.unsent):]
                except BlockingIOError:
                    pass
                except BrokenPipeError:
                    raise self._lost(done) from None
            if readable:
                ticks = 0
                data = os.read(out, 1 << 18)
                if not data:
                    raise self._lost(done)
                self.unread += data
                while done < len(self.waiting) and self._take(*self.waiting[done]):
                    outcome = self.waiting[done][1]
                    if bad is None and outcome.must and outcome.sqlstate:
                        bad = outcome
                    done += 1
            elif not writable:
                ticks += 1
                if ticks == self.seconds:
                    cancelled = True
                    self._cancel()
                elif ticks >= self.seconds + 60:
                    self.process.kill()
        if cancelled:
            slow = [o.sql for _, o in self.waiting if o.sqlstate == "57014"]
            self.waiting = []
            raise TooSlow(" ".join(slow))
        self.waiting = []
        return bad

    def _take(self, mark, outcome):
        """The answer to a statement out of what has been read, if it is all there."""
        if self.unread.startswith(mark):
            start = 0
        else:
            start = self.unread.find(b"\n" + mark) + 1
            if start == 0:
                return False
        end = self.unread.find(b"\n", start)
        if end < 0:
            return False
        if start > 0:
            outcome.rows = self.unread[:start - 1].decode(errors="replace").split("\n")
        _, error, sqlstate, *message = self.unread[start:end].decode(errors="replace").split(" ", 3)
        if error == "true":
            outcome.sqlstate, outcome.message = sqlstate, message[0] if message else ""
        self.unread = self.unread[end + 1:]
        return True

    def _lost(self, done):
        sql = self.waiting[done][1].sql
        self.waiting = []
        return SessionLost(f"the session ended during: {sql}")

    def _cancel(self):
        subprocess.run([self.options.psql, "-Xqc", f"SELECT pg_cancel_backend({self.pid})",
                        "-d", self.options.database], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=self.options.errors, check=False)

    def close(self):
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
