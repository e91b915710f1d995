"""The tables of README.md and doc/performance.md, each put where the page has its mark."""

import re

TIMES_OF = "18"


def select(results, output, name, buffers=None, part=""):
    """By regular expressions for the whole name and the pools; all pools if there is none."""
    found = [r for r in results if r.output == output and r.part == part
             and re.fullmatch(name, r.name) and (not buffers or re.fullmatch(buffers, r.buffers))]
    if not found:
        raise SystemExit(f"no results: {output}, {name}, {buffers}, {part}")
    return found


# What is in the tables and the plot of ratios: label, and what select() takes. Times are those of
# the first one that it finds.
TPCH = [(f"TPC-H, scale {scale}, {buffers}", (output, "total, all", buffers, "Repeated runs"))
        for scale, output in (("1", "tpch"), ("0.1", "tpch_small"))
        for buffers in ("512MB", "64MB", "8MB")]
LOAD = [(f"after a load, {part}: {label}", ("fill_and_query", number, None, part))
        for part in ("one table", "join of two tables")
        for label, number in (("the first query", "1"), ("ten queries", "10"))]
SCANS = [(f"scan of {label} rows, {when}", ("scans", name, None, part))
         for when, part in (("repeated", "Repeated runs"), ("just filled, not shared", "First run"))
         for label, name in (("narrow", "scan"), ("wide", "wide"))]
INSERTS = [("INSERT of an aggregate", ("insert_select", "aggregate, .*")),
           ("INSERT of a join, 100,000 rows", ("insert_select", "join, .*")),
           ("INSERT of a filter, 10,000 rows", ("insert_select", "filter, 1 %, .*"))]
JOB = [(f"{label}, {buffers}", ("job", name, buffers)) for buffers in ("8MB", "256MB")
       for label, name in (("a job", "the whole job"), ("its statements to run ahead", "run ahead"))]
INDEXES = [(f"index on {label}", ("index_build", f"{re.escape(name)}, (fresh|clean)"))
           for label, name in (("integers", "int"), ("text", "text"), ("text, ICU", "text, ICU"),
                               ("two columns", "two columns"), ("`md5(text)`", "md5(text)"))]
ALL = LOAD + TPCH + SCANS + JOB + INSERTS + INDEXES
README = [("first report after a load, one table", ("fill_and_query", "1", None, "one table")),
          ("first report after a load, join of two", ("fill_and_query", "1", None, "join of two tables")),
          ("TPC-H, scale 1, all 22 queries", ("tpch", "total, all", None, "Repeated runs")),
          ("a job: COPY, MERGE, UPDATE, PL/pgSQL", ("job", "the whole job")),
          ("index on text", INDEXES[1][1]),
          ("INSERT of 10,000 rows by a filter", INSERTS[2][1])]
# the job's statements that are to be run ahead, as they are called there, with 256MB
JOB_STATEMENTS = [(f"of the job: {label}", ("job", name, "256MB")) for label, name in (
    ("deletion of copies by `ctid`", "delete copies by ctid"), ("INSERT of totals", "insert totals"),
    ("MERGE of totals", "merge totals"),
    ("UPDATE of totals from an aggregate", "update totals from aggregate"),
    ("UPDATE of all rows from an aggregate", "update sales from aggregate"), ("report", "report"),
    ("PL/pgSQL: `SELECT INTO`", r"PL/pgSQL: SELECT INTO"),
    ("PL/pgSQL: `n := (SELECT ...)`", "PL/pgSQL: assignment"),
    ("PL/pgSQL: loop over groups", "PL/pgSQL: FOR over GROUP BY"),
    ("INSERT ... ON CONFLICT into a permanent table", "insert on conflict, permanent"))]


def span(values):
    return " to ".join(dict.fromkeys(f"{f(values):.2f}" for f in (min, max)))


def seconds(ms):
    return "" if ms is None else f"{ms / 1000:.{2 if ms > 100 else 3}f}"


def table(results, rows):
    yield "| | off, s | on, s | unlogged, s | on / off | on / unlogged |"
    yield "| --- |" + " ---: |" * 5
    for label, what in rows:
        found = select(results, *what)
        times = next(r for r in found if r.version == TIMES_OF)
        of_unlogged = [r.on_by_unlogged for r in found if r.on_by_unlogged is not None]
        row = (label, seconds(times.off), seconds(times.on), seconds(times.unlogged),
               span([r.on_by_off for r in found]), span(of_unlogged) if of_unlogged else "")
        yield "| " + " | ".join(row) + " |"


def write(results, top):
    """Replaces the table that follows the mark, a comment of HTML."""
    for page, rows in (("README.md", README), ("doc/performance.md", ALL + JOB_STATEMENTS)):
        path = top / page
        text, found = re.subn(r"(<!-- bench/pictures -->\n\n)(?:(?:\|.*\n)+\n)?",
                              lambda m: m[1] + "\n".join(table(results, rows)) + "\n\n",
                              path.read_text())
        if found != 1:
            raise SystemExit(f"{page} does not have the mark once")
        path.write_text(text)
