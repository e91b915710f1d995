"""The answers of a query in the modes, and whether they agree.

An answer is ("rows", rows) or ("error", SQLSTATE, message).
"""

import re

from . import settings

# A pool that is too small for a plan, or a slow query, is not a wrong answer.
TOLERATED = {"53000": "no local buffer left", "57014": "timeout", "53400": "configuration limit",
             "54001": "stack depth"}


# A statement that is wrong in itself: no plan makes it so. (42501 is a policy's.)
WRONG = re.compile("42(?!501)")


# A row that violates a constraint, or the condition of a view. Which of several is found first is
# left open.
VIOLATION = re.compile("23|44000")


def answer(outcomes):
    """The answer of several statements, without plans and counters."""
    rows = []
    for outcome in outcomes:
        if outcome.sqlstate:
            return ("error", outcome.sqlstate, outcome.message)
        if not outcome.sql.startswith("EXPLAIN") and outcome.sql != settings.COUNTERS:
            rows += outcome.rows
    return ("rows", rows)


def refused(mode, query, found):
    """Is it an error that may come instead of an answer?"""
    return mode != settings.OFF and found[0] == "error" and \
        any(found[1] == state and re.search(message, found[2]) for state, message in query.tolerated)


def same(a, b, query):
    if a[0] != b[0]:
        return False
    if a[0] == "error":
        return a[1] == b[1] or bool(VIOLATION.match(a[1]) and VIOLATION.match(b[1]))
    return a[1] == b[1] if query.ordered else sorted(a[1]) == sorted(b[1])


def difference(a, b):
    """A short description of how two answers differ."""
    if a[0] == "error" or b[0] == "error":
        return f"{a if a[0] == 'error' else 'rows'} / {b if b[0] == 'error' else 'rows'}"
    only_a, only_b = sorted(set(a[1]) - set(b[1])), sorted(set(b[1]) - set(a[1]))
    return f"{len(a[1])} and {len(b[1])} rows, only here {only_a[:3]!r:.300}, only there {only_b[:3]!r:.300}"
