"""A session: a psql process whose input and output are pipes.

Its input is the script that replays the session. Statements are queued and sent
together, as waiting for each answer would take longer than most statements.
"""

import os
import re
import select
import subprocess
import time
from dataclasses import dataclass, field

SEPARATOR = "\x1f"
COMPLETE = re.compile(r"( \\g|\n\\! [^\n]*)\Z")


def terminated(sql):
    """A statement as psql expects it; one that ends in a psql command is complete."""
    return sql + ("" if COMPLETE.search(sql) else ";") + "\n"


class SessionLost(Exception):
    """The server or psql ended during a statement."""


class TooSlow(Exception):
    """A statement was canceled because it took too long."""


@dataclass
class Outcome:
    """The result of a statement: rows as psql prints them, or an error."""

    sql: str
    must: bool = False          # an error is a failure
    rows: list = field(default_factory=list)
    sqlstate: str = ""          # empty: no error
    message: str = ""


class Session:
    """seconds: the time for a statement before it is canceled.

    The waiting process counts them one at a time, so that time in which the machine
    or the process is stopped does not count.
    """

    def __init__(self, options, seconds=None):
        self.script = []
        self.number = 0
        self.waiting = []       # marks and Outcomes that have not been read yet
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
        # psql flushes its output after each of its own commands
        self.unsent += (f"{terminated(sql)}\\echo @@{self.number}@@ :ERROR :SQLSTATE"
                        " :LAST_ERROR_MESSAGE\n").encode()
        return outcome

    def send(self):
        """Send what is queued, without waiting for answers."""
        while self.unsent:
            select.select([], [self.process.stdin], [])
            self.unsent = self.unsent[os.write(self.process.stdin.fileno(), self.unsent):]

    def run(self, sql):
        """Run one statement; an SQL error is not raised."""
        outcome = self.put(sql)
        self.sync()
        return outcome

    def ask(self, sql):
        """The same for a statement that is not part of the replay."""
        outcome = self._put(sql, False)
        self.sync()
        return outcome

    def sync(self, seconds=None):
        """Wait for all answers, each at most that long. Returns the first Outcome that must not
        fail but did, or None."""
        seconds = seconds or self.seconds
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
                if ticks == seconds:
                    cancelled = True
                    self._cancel()
                elif ticks >= seconds + 60:
                    self.process.kill()
        if cancelled:
            slow = [o.sql for _, o in self.waiting if o.sqlstate == "57014"]
            self.waiting = []
            raise TooSlow(" ".join(slow))
        self.waiting = []
        return bad

    def _take(self, mark, outcome):
        """Take the answer to a statement from what has been read. Returns whether it was
        complete."""
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


def wait_for_server(options):
    """Wait for crash recovery."""
    for _ in range(60):
        try:
            Session(options).close()
            return
        except SessionLost:
            time.sleep(1)
    raise SystemExit("the server does not come up again")
