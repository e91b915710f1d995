"""Why a query takes longer with workers than without: from both plans as executed."""

import json

from .session import value

SHARE = 0.1     # of the query's time: what takes less explains nothing
ROWS = 50_000   # through all Gathers: sending a row may take longer than reading it
SHORT = 50      # ms: starting workers is a part of such a query's time


def explained(conn, sql, options):
    """The plan of the query, as the session's settings say."""
    text = value(conn, f"EXPLAIN ({options}, FORMAT JSON) {sql}")
    return (json.loads(text) if isinstance(text, str) else text)[0]


def executed(conn, sql):
    return explained(conn, sql, "ANALYZE, BUFFERS")


def planned(conn, sql):
    return explained(conn, sql, "SUMMARY")


def descendants(node):
    yield node
    for child in node.get("Plans", ()):
        yield from descendants(child)


def shape(node):
    """What two plans have in common if they do the same work in the same order."""
    return [node["Node Type"], node.get("Relation Name"), node.get("Index Name"),
            [shape(child) for child in node.get("Plans", ())]]


def longer_planning(off, on, total):
    """The milliseconds by which planning took longer when on, if that matters."""
    longer = on["Planning Time"] - off["Planning Time"]
    return longer if longer > SHARE * total else 0


def is_chance(off, on, total):
    """Is a difference between the times of these plans, about total ms, chance? off and on
    are results of planned() or executed(). It is if both do the same work."""
    return shape(off["Plan"]) == shape(on["Plan"]) and not longer_planning(off, on, total)


def label(node):
    """The node's type, and the tables below it."""
    tables = sorted({n["Relation Name"] for n in descendants(node) if "Relation Name" in n})
    return node["Node Type"] + (f" over {', '.join(tables)}" if tables else "")


def repeated(node, processes):
    """The topmost nodes that each process executes from the beginning to the end.

    Nothing below such a node is divided among the processes; one that is executed more
    often than there are processes is the inner side of a nested loop, whose rows are."""
    if node["Actual Loops"] > processes:
        return
    if not any(n["Parallel Aware"] for n in descendants(node)):
        if node["Actual Loops"] > 1:
            yield node
        return
    for child in node.get("Plans", ()):
        yield from repeated(child, processes)


def of_gather(gather, total):
    """What the plan below one Gather shows; total is the time of the query in ms."""
    launched = gather["Workers Launched"]
    if any(n.get("Leader") == "alone" for n in descendants(gather)):
        yield "the leader runs it alone, as each process would do most of the work"
    elif launched < gather["Workers Planned"]:
        yield f"only {launched} of {gather['Workers Planned']} workers could be started"
    for flush in (n for n in descendants(gather) if "Flush Time" in n):
        if flush["Flush Time"] > SHARE * total:
            yield (f"writing {flush['Flush Written Buffers']} dirty pages for the workers took"
                   f" {flush['Flush Time']:.0f} ms")
    parts = sorted((node for child in gather["Plans"] for node in repeated(child, launched + 1)),
                   key=lambda node: -node["Actual Total Time"])
    if sum(node["Actual Total Time"] for node in parts) > SHARE * total:
        yield (f"each of {parts[0]['Actual Loops']:.0f} processes executes all of "
               + ", and of ".join(f"{label(n)} ({n['Actual Total Time']:.0f} ms)" for n in parts[:3]))


def reasons(off, on):
    """Sentences without a full stop; off and on are results of executed()."""
    plan_off, plan_on, total = off["Plan"], on["Plan"], on["Execution Time"]
    gathers = [n for n in descendants(plan_on) if n["Node Type"].startswith("Gather")]
    found = []
    if not gathers and shape(plan_off) == shape(plan_on):
        found.append("the plan is the same as without the module")
        longer = longer_planning(off, on, total)
        if longer:
            found.append(f"planning took {longer:.1f} ms longer, as the plan with workers was"
                         " considered, too")
        return found
    for gather in gathers:
        found += of_gather(gather, total)
    rows = sum(gather["Actual Rows"] * gather["Actual Loops"] for gather in gathers)
    if rows > ROWS:
        found.append(f"the leader collected {rows:.0f} rows, most of them from workers")
    read_off, read_on = plan_off["Local Read Blocks"], plan_on["Local Read Blocks"]
    if read_on > read_off * (1 + SHARE):
        found.append(f"{read_on} pages were read from the operating system, as workers have"
                     f" buffers of their own, rather than {read_off}")
    if off["Execution Time"] < SHORT:
        found.append("the query is short: starting workers takes some milliseconds")
    found.append(f"the planner expected {plan_on['Total Cost'] / plan_off['Total Cost']:.2f}"
                 " of the time without workers")
    return found
