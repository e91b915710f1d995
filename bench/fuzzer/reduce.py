"""A failure as a script: written to a file, and shortened by trying.

Statements are removed if the failure is reproduced without them, large parts of the
history first, for a limited time.
"""

import time

from . import answers, settings
from .session import Session, SessionLost, TooSlow, terminated, wait_for_server


def replay(options, script, queries):
    """Run script, then each of queries. Returns the answers, or a word for what happened."""
    session = Session(options)
    try:
        for sql in script:
            session.put(sql)
        session.sync()
        result = []
        for values, statements, savepoint in queries:
            session.run(settings.statement(values))
            if savepoint:
                session.run("SAVEPOINT q")
            kind, *answer = answers.answer([session.run(sql) for sql in statements])
            if savepoint:
                session.run("ROLLBACK TO SAVEPOINT q")
            result.append(sorted(answer[0]) if kind == "rows" else ["error " + answer[0]])
        return result
    except SessionLost:
        return "lost"
    except TooSlow:
        return "slow"
    finally:
        session.close()


def symptom(options, script, queries):
    """What goes wrong, as a string to compare, or None."""
    found = replay(options, script, queries)
    if found == "lost":
        wait_for_server(options)
    if found in ("lost", "slow"):
        return "lost" if found == "lost" else None
    if len(found) == 2 and found[0] != found[1]:
        errors = [a[0] for a in found if a and a[0].startswith("error ")]
        if any(e in ("error 25P02", "error 42P01", "error 42703") for e in errors):
            return None
        return "differ " + " ".join(errors)
    if len(found) == 1 and found[0] and found[0][0].startswith("error "):
        if found[0][0] in ("error 25P02", "error 42P01", "error 42703"):
            return None
        return found[0][0]
    return None


def reduce(options, script, queries, seconds):
    """A shorter script with the same symptom, and the symptom."""
    end = time.monotonic() + seconds
    wanted = symptom(options, script, queries)
    if wanted is None:
        return script, None
    script = list(script)
    size = max(len(script) // 2, 1)
    while time.monotonic() < end:
        position, shorter = len(script) - size, False
        while time.monotonic() < end:
            position = max(position, 0)
            candidate = script[:position] + script[position + size:]
            if len(candidate) < len(script) and symptom(options, candidate, queries) == wanted:
                script, shorter = candidate, True
            if position == 0:
                break
            position -= size
        if size == 1 and not shorter:
            break
        size = max(size // 2, 1)
    # Then settings that do not matter.
    for n, (values, statements, savepoint) in enumerate(queries):
        for name in sorted(values):
            if time.monotonic() >= end:
                break
            fewer = {k: v for k, v in values.items() if k != name}
            candidate = list(queries)
            candidate[n] = (fewer, statements, savepoint)
            if fewer and symptom(options, script, candidate) == wanted:
                queries[n], values = candidate[n], fewer
    return script, wanted


def write(path, head, script, queries):
    with open(path, "w", encoding="utf-8") as f:
        for line in head:
            f.write("-- " + line.replace("\n", " ") + "\n")
        f.write("\\set ON_ERROR_STOP 0\n\\pset null '(null)'\n")
        for sql in script:
            f.write(terminated(sql))
        for values, statements, savepoint in queries:
            f.write("\n\\echo ----------\n" + settings.statement(values) + ";\n")
            if savepoint:
                f.write("SAVEPOINT q;\n")
            for sql in statements:
                f.write(terminated(sql))
            if savepoint:
                f.write("ROLLBACK TO SAVEPOINT q;\n")
