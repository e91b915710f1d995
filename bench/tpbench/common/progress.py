"""Lines on the terminal that show the progress of a run."""

import os
import sys
import time


class Progress:
    """Lines in the form of script/lib.sh, with its clock: $START, if set, is the number
    of seconds that had passed when this process was started."""

    def __init__(self):
        self.start = time.monotonic() - float(os.environ.get("START", 0))
        self.transient = sys.stdout.isatty()

    def elapsed(self):
        return time.monotonic() - self.start

    def say(self, text):
        self.clear()
        print(f"[{self.elapsed():4.0f}s] {text}", flush=True)

    def step(self, text):
        """A line that the next one overwrites; only on a terminal."""
        if self.transient:
            print(f"\r\033[K[{self.elapsed():4.0f}s] {text}", end="", flush=True)

    def clear(self):
        if self.transient:
            print("\r\033[K", end="", flush=True)


class TimeLeft:
    """Estimates the time left from the steps done, each with a weight (for example, how
    long the same step took before)."""

    def __init__(self, total):
        self.total = total
        self.done = 0
        self.start = time.monotonic()

    def advance(self, weight=1):
        self.done += weight

    def __str__(self):
        if not self.done:
            return "?"
        spent = time.monotonic() - self.start
        return f"{spent * max(self.total - self.done, 0) / self.done:.0f} s left"
