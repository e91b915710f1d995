"""python3 -m coretests.compare MODE...: compares the answers of each mode with those of "off"."""

import argparse
import collections
import difflib
import json
import os
import re
import sys

from . import run, script

RECORD, FIELD = "\x1e", "\x1f"
OPEN_ANSWERS = os.path.join(os.path.dirname(__file__), "open_answers.txt")


def load_open_answers():
    """By test: what may differ, and a part of the statement."""
    out = collections.defaultdict(list)
    with open(OPEN_ANSWERS, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                test, may_differ, part, _ = (x.strip() for x in line.split(" | "))
                if may_differ not in ("rows", "any", "fails"):
                    raise ValueError(line)
                out[test].append((may_differ, part))
    return out


def items(text):
    """Rows, headers and messages of an answer, in order."""
    # Without the process that raised an error, and the number of the temporary schema.
    text = re.sub(r"^(CONTEXT:  )?parallel worker\n", "", text, flags=re.M)
    text = re.sub(r"\bpg_temp_\d+", "pg_temp", text)
    pieces = text.split(RECORD)
    out = []
    for number, piece in enumerate(pieces):
        # Messages come before the first row and after the last one.
        if number in (0, len(pieces) - 1):
            out += piece.strip("\n").split("\n")
        else:
            out.append(piece)
    return out


def key_columns(statement, answer):
    """The columns that the query orders by; None if the answer does not have all of them."""
    header = next((item.split(FIELD) for item in answer if FIELD in item), answer[:1])
    names = [name.lower() for name in header]
    columns = []
    for key in statement.ordered:
        name = key.split(".")[-1].strip('"')
        if key.isdigit() and int(key) <= len(names):
            columns.append(int(key) - 1)
        elif names.count(name) == 1:
            columns.append(names.index(name))
        else:
            return None
    return columns


def same_order(statement, one, other):
    """Are the rows in the same order, except for rows with equal keys?"""
    if statement.ordered is None:
        return True
    columns = key_columns(statement, one)
    if columns is None:
        return False

    def keys(answer):
        return [[fields[c] for c in columns if c < len(fields)]
                for fields in (item.split(FIELD) for item in answer)]
    return keys(one) == keys(other)


def judge(statement, off, on, open_answers):
    """How two answers agree: "same", "plan", "open" or "mismatch"."""
    if off[1] != on[1]:
        fails = any(kind == "fails" and part in statement.words for kind, part in open_answers)
        return "open" if fails else "mismatch"
    if statement.explains:
        return "plan"
    one, other = items(off[0]), items(on[0])
    if one == other:
        return "same"
    if collections.Counter(one) == collections.Counter(other) and same_order(statement, one, other):
        return "same"
    for may_differ, part in open_answers:
        if part in statement.words and (may_differ == "any" or len(one) == len(other)):
            return "open"
    return "mismatch"


def show(kind, test, mode, statement, off, on):
    print(f"----- {kind}: {test}, {mode}, SQLSTATE {off[1]} and {on[1]}")
    print(statement.bare)
    diff = difflib.unified_diff(items(off[0]), items(on[0]), "off", mode, lineterm="", n=1)
    for _, line in zip(range(40), diff):
        print(line.replace(FIELD, "|"))
    print(flush=True)


def load(options, mode, test):
    """The statements of a test, their answers by number, and whether the session ended normally."""
    with open(f"{options.out}/{mode}/{test}.json", encoding="utf-8") as f:
        found = json.load(f)
    return found["statements"], {int(k): v for k, v in found["answers"].items()}, found["ended"]


def compare_test(options, mode, test, open_answers, counts):
    (statements, off, off_ended), (_, on, on_ended) = (load(options, m, test) for m in ("off", mode))
    counts["tests"] += 1
    if not (off_ended and on_ended):
        print(f"----- {test}, {mode}: the session did not end normally", flush=True)
        counts["mismatch"] += 1
    flushes = workers = 0
    for number, statement in enumerate(script.Statement(text) for text in statements):
        a, b = off.get(number), on.get(number)
        if a is None and b is None:
            continue            # not run: after \quit, between \if and \endif
        if a is None or b is None:
            if off_ended and on_ended:
                raise ValueError(f"{test}, {mode}: only one of two runs has statement {number}")
            continue
        kind = judge(statement, a, b, open_answers[test])
        counts[kind] += 1
        counts["statements"] += 1
        counts["queries"] += statement.is_query()
        counts["errors"] += a[1] not in ("00000", "")
        if b[2] > flushes:
            counts["parallel"] += 1
            counts["parallel_plan"] += kind == "plan"
            counts["parallel_open"] += kind == "open"
        # In an aborted transaction the counters cannot be queried.
        flushes, workers = max(flushes, b[2]), max(workers, b[3])
        if kind == "mismatch" or (kind == "open" and options.verbose):
            show(kind, test, mode, statement, a, b)
    counts["flushes"] += flushes
    counts["workers"] += workers


def main():
    parser = argparse.ArgumentParser(prog="coretests.compare")
    parser.add_argument("modes", nargs="+")
    parser.add_argument("--directory", required=True, help="src/test/regress of the sources")
    parser.add_argument("--out", required=True, help="directory of the answers")
    parser.add_argument("--verbose", action="store_true", help="also show answers that are left open")
    parser.add_argument("--tests", nargs="*")
    options = parser.parse_args()
    open_answers = load_open_answers()
    failed = False
    lines = []
    for mode in options.modes:
        counts = collections.Counter()
        for test in options.tests or run.default_tests(options.directory):
            compare_test(options, mode, test, open_answers, counts)
        lines.append(
            f"{mode}: {counts['tests']} tests, {counts['statements']} statements ({counts['queries']} queries,"
            f" {counts['errors']} errors): {counts['same']} the same, {counts['plan']} about plans,"
            f" {counts['open']} left open by SQL, {counts['mismatch']} mismatches\n"
            f"{mode}: {counts['parallel']} statements flushed temporary tables for workers"
            f" ({counts['parallel_plan']} about plans, {counts['parallel_open']} left open):"
            f" {counts['flushes']} flushes, {counts['workers']} workers")
        if counts["parallel"] == 0 and mode != "shuffled":
            lines.append(f"{mode}: nothing ran in parallel")
            failed = True
        failed = failed or counts["mismatch"] > 0
    print("\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
