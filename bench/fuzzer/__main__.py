"""python3 -m fuzzer: runs episodes until the time or the number of queries is reached."""

import argparse
import os
import re
import subprocess
import sys
import time

from . import calls, reduce
from .episode import Episode
from .report import Counts, Failure
from .session import Session, wait_for_server
from .statements import PREPARE, SCROLLED

# What must not be in a server's log. The comparison judges errors.
SUSPECT = re.compile(
    r"TRAP:|PANIC:|FATAL:  (?!terminating (?!.*temp_parallel)|the database|connection|sorry)|was terminated by signal"
    r"|WARNING:|could not (open|read|write|seek|fsync|extend)|invalid page|page verification"
    r"|resource was not closed|leak|still referenced")
HARMLESS = re.compile(r"terminating connection because of crash|there is (no|already a) transaction"
                      r"|SET LOCAL can only be used in transaction blocks|/nonexistent/file"
                      r"|is still referenced from table")
# An index of a temporary table without its first page.
EMPTIED = re.compile(r'could not read blocks? \S+ in file "[^"]*/t\d+_\d+": read only 0 of ')


def arguments():
    parser = argparse.ArgumentParser(prog="fuzzer")
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--episode", type=int, help="only this episode")
    parser.add_argument("--first", type=int, default=1, help="episode to start with")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--queries", type=int)
    parser.add_argument("--kind", help="mostly queries whose kind matches this pattern")
    parser.add_argument("--psql", default="psql")
    parser.add_argument("--database", default="postgres")
    parser.add_argument("--log", help="the server's log")
    parser.add_argument("--out", default=".", help="directory for the scripts of failures")
    parser.add_argument("--timeout", type=int, default=20, help="seconds for a statement")
    parser.add_argument("--reduce", type=float, default=120, help="seconds for shortening a failure's script")
    parser.add_argument("--failures", type=int, default=1, help="stop after so many")
    parser.add_argument("--strict", action="store_true",
                        help="a timeout, or a pool that is too small, is a failure")
    parser.add_argument("--progress", type=float, default=60, help="seconds between lines of progress")
    options = parser.parse_args()
    if options.seconds is None and options.queries is None and options.episode is None:
        options.seconds = 60
    return options


class Log:
    """The server's log, read from where the last call stopped."""

    def __init__(self, path):
        self.path = path
        self.position = os.path.getsize(path) if path else 0

    def suspects(self, episode):
        """New lines that should not be there, of the episode that has ended."""
        if not self.path:
            return []
        with open(self.path, encoding="utf-8", errors="replace") as f:
            f.seek(self.position)
            text = f.read()
            self.position = f.tell()
        return [line for line in text.splitlines()
                if SUSPECT.search(line) and not HARMLESS.search(line)
                and not any(f'could not open file "{path}' in line for path in episode.gone)
                and not (episode.emptied and EMPTIED.search(line))]


def prepare(options):
    session = Session(options)
    options.version = int(session.run("SHOW server_version_num").rows[0]) // 10000
    options.cassert = session.run("SHOW debug_assertions").rows == ["on"]
    for sql in PREPARE:
        session.run(sql)
    for name in calls.EXTENSIONS:
        session.run(f"CREATE EXTENSION IF NOT EXISTS {name}")
    last, *_, scrolled = [session.run(sql).rows for sql in SCROLLED]
    options.ranges = scrolled == last
    options.contrib = set(session.run("SELECT extname FROM pg_extension").rows) & set(calls.EXTENSIONS)
    outcome = session.run("SELECT count(*) FROM pg_tablespace t, pg_extension e"
                          " WHERE spcname = 'fuzz_ts' AND extname = 'temp_parallel'")
    session.close()
    if outcome.rows != ["1"]:
        raise SystemExit("could not create the tablespace fuzz_ts and the extension")


def report(counts, started):
    share = 100.0 * counts.flushed / max(counts.zero, 1)
    launched = 100.0 * counts.launched / max(counts.zero, 1)
    fresh = 100.0 * counts.fresh / max(counts.comparisons, 1)
    print(f"[{time.monotonic() - started:5.0f}s] {counts.queries} queries compared"
          f" in {counts.comparisons} comparisons ({counts.in_transaction} in a transaction with changes, {counts.reader} under row security,"
          f" {counts.errors} errors as expected, zero-cost first {fresh:.0f} %);"
          f" at no cost flushed {share:.0f} % and with workers {launched:.0f} %,"
          f" when on {100.0 * counts.on_flushed / max(counts.comparisons, 1):.0f} %;"
          f" {counts.flushes} flushes of {counts.pages} pages, {counts.shared_pages} pages shared in {counts.shared} runs,"
          f" {counts.workers} workers,"
          f" {counts.hints} hints dropped; {counts.checks} tables compared with their copy,"
          f" {counts.cancels} cancelled, {counts.dropped} tables dropped by others,"
          f" {counts.episodes} episodes, {counts.neighbours} with a neighbour"
          + (f"; tolerated {counts.tolerated}" if counts.tolerated else ""), flush=True)
    return share


def failed(options, number, done, failure, suspects):
    """Print a failure, and write a script that reproduces it."""
    what = " ".join([str(failure)] + suspects[:5])
    replay = f"--seed {options.seed} --episode {number}"
    print(f"FAILURE, {replay}, after {done} queries: {what}", flush=True)
    script = failure.script
    queries = failure.queries or []
    name = re.sub(r"\W", "_", f"{options.seed}-{number}")
    path = os.path.join(options.out, f"fuzz-{name}.sql")
    head = [f"bench/fuzz {replay}, PostgreSQL {options.version}", what]
    reduce.write(path, head + ["not shortened"], script, queries)
    wait_for_server(options)
    if options.reduce > 0:
        if queries or "session ended" in what:
            short, symptom = reduce.reduce(options, script, queries, options.reduce)
            head.append(f"symptom: {symptom}; {len(short)} of {len(script)} statements left"
                        if symptom else "not reproduced by a replay")
            reduce.write(path, head, short, queries)
    print(f"script: {path}", flush=True)


def main():
    options = arguments()
    options.errors = subprocess.DEVNULL
    prepare(options)
    missing = sorted(set(calls.EXTENSIONS) - options.contrib)
    print(f"seed {options.seed}, PostgreSQL {options.version}"
          + (f", without {', '.join(missing)}" if missing else ""), flush=True)
    counts, log = Counts(), Log(options.log)
    started = shown = time.monotonic()
    failures, number = 0, (options.episode or options.first) - 1
    while True:
        number += 1
        try:
            current = Episode(options, number, counts)
            current.run()
            suspects = log.suspects(current)
            if suspects:
                raise Failure("in the server's log", [])
        except Failure as failure:
            failures += 1
            if not str(failure).startswith("in the"):
                suspects = log.suspects(current)
            failed(options, number, counts.queries, failure, suspects)
            log.suspects(current)
            if failures >= options.failures:
                break
        now = time.monotonic()
        if options.episode is not None or \
                (options.seconds is not None and now - started >= options.seconds) or \
                (options.queries is not None and counts.queries >= options.queries):
            break
        if now - shown >= options.progress:
            report(counts, started)
            shown = now

    share = report(counts, started)
    for kind, (number, launched) in sorted(counts.kinds.items()):
        print(f"{kind}: {number}, with workers at no cost {launched}"
              + "".join(f", refused in mode {mode} {counts.refused[kind, mode]}"
                        for mode in ("on", "zero") if (kind, mode) in counts.refused))
    if counts.zero >= 100 and share < 40 and not options.kind:
        print("FAILURE: too few plans with a flush")
        failures += 1
    print(f"{counts.queries} queries, {failures} failures", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
