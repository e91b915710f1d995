"""A session: one psql, fed statement by statement.

What it was fed is the script that replays the session.
"""

import subprocess
import threading
from dataclasses import dataclass, field

SEPARATOR = "\x1f"
HANG = 180          # seconds; every statement has a shorter timeout of its own


class SessionLost(Exception):
    """The server, or psql, is gone in the middle of a statement."""


@dataclass
class Outcome:
    """What a statement gave: rows as psql prints them, or an error."""

    rows: list = field(default_factory=list)
    sqlstate: str = ""          # empty: no error
    message: str = ""


class Session:
    def __init__(self, psql, database, errors):
        self.script = []
        self.number = 0
        # Line by line, as psql would otherwise keep the end of an answer.
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", psql, "-XqAt", "-d", database],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            encoding="utf-8", errors="replace")
        self._send("\\pset null '(null)'")
        self._send("\\pset fieldsep '\\x1f'")

    def _send(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise SessionLost("psql does not read any more") from None

    def run(self, sql):
        """Run one statement; never raises for an SQL error."""
        self.script.append(sql)
        return self.ask(sql)

    def ask(self, sql):
        """The same, for a statement that is no part of the replay."""
        self.number += 1
        mark = f"@@{self.number}@@"
        self._send(sql + ";")
        self._send(f"\\echo {mark} :ERROR :SQLSTATE :LAST_ERROR_MESSAGE")
        watchdog = threading.Timer(HANG, self.process.kill)
        watchdog.start()
        outcome = Outcome()
        try:
            for line in self.process.stdout:
                line = line.rstrip("\n")
                if line.startswith(mark):
                    _, error, sqlstate, *message = line.split(" ", 3)
                    if error == "true":
                        outcome.sqlstate = sqlstate
                        outcome.message = message[0] if message else ""
                    return outcome
                outcome.rows.append(line)
        finally:
            watchdog.cancel()
        raise SessionLost(f"the session ended during: {sql}")

    def close(self):
        try:
            self.process.stdin.close()
            self.process.stdout.close()
        except OSError:
            pass
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
