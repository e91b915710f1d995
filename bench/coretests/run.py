"""python3 -m coretests.run MODE: runs each test in a session, and writes the answers to files.

A session's tables disappear with it, and each test has a database of its own, so that
tests do not depend on each other. What a test expects to exist is created by the scripts
that core runs before it, in the same session and in the same way.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

from . import script

# The scripts that a test needs to be run before it, by the objects that it names.
PROVIDERS = [
    ("create_index", r"\b(tenk1|tenk2|onek2?|bprime|fast_emp4000|road|[is]highway)\b"),
    ("create_misc", r"\b\w_star\b|\be_star\b|\btenk2\b|\bhobbies_r\b|\bequipment_r\b"),
    ("create_aggregate", r"\bnew(avg|sum|cnt)\b|\b(oldcnt|sum2|least_agg|my_avg)\b"),
    ("create_function_c", r"\b(reverse_name|trigger_return_old|ttdummy|interpt_pp|int44in|test_canonicalize_path)\b"),
    ("create_type", r"\b(city_budget|widget|int42|text_w_default|get_default_test)\b"),
    ("create_view", r"\b(street|iexit|toyemp)\b"),
    ("point", r"\bpoint_tbl\b"),
    ("create_index_spgist", r"\b(quad_point_tbl|kd_point_tbl|radix_text_tbl)\b"),
]
GEOMETRY = ["point", "lseg", "line", "box", "path", "polygon", "circle"]
TIMES = ["date", "time", "timetz", "timestamp", "timestamptz", "interval"]
BEFORE = {"geometry": GEOMETRY, "horology": TIMES, "multirangetypes": ["rangetypes"],
          "portals_p2": ["create_index"]}

# Tests that have nothing to compare, or cannot be run in this way.
LEFT_OUT = {
    "test_setup": "run before every test",
    "infinite_recurse": "a stack overflow",
    "tablespace": "reconnects, moves files", "temp": "reconnects",
    "event_trigger_login": "reconnects",
    "publication": "no queries", "subscription": "no queries",
    "stats": "counters", "stats_import": "statistics", "numa": "the machine",
    "vacuum_parallel": "no queries", "write_parallel": "not about temporary tables",
    "psql": "psql's own formats", "psql_crosstab": "psql's own formats",
    "psql_pipeline": "psql's own protocol",
    "maintain_every": "no queries", "prepared_xacts": "reconnects",
    "oidjoins": "catalogs", "opr_sanity": "catalogs", "type_sanity": "catalogs",
    "misc_sanity": "catalogs", "sanity_check": "catalogs", "amutils": "catalogs",
    "init_privs": "catalogs", "sysviews": "the machine", "guc": "settings",
    "collate.windows.win1252": "another system", "database": "databases",
}
# What psql is told to print between statements: a statement's number before it,
# with its SQLSTATE after it, and the session's counters then.
MARK = re.compile(rb"^@@(\d+) (\S+)\n|^@@stop\n|^@@flushed (\d+) (\d+)\n", re.M)

BOTH = {"extra_float_digits": "0", "intervalstyle": "postgres_verbose"}
OFF = {"max_parallel_workers_per_gather": "0", "max_parallel_maintenance_workers": "0",
       "temp_parallel.enabled": "off"}
ZERO = {"parallel_setup_cost": "0", "parallel_tuple_cost": "0",
        "min_parallel_table_scan_size": "0", "min_parallel_index_scan_size": "0",
        "max_parallel_workers_per_gather": "4", "temp_parallel.write_temp_page_cost": "0",
        "temp_parallel.buffer_scan_cost": "0",
        # for builds of indexes, also of integers
        "max_parallel_maintenance_workers": "4", "maintenance_work_mem": "192MB",
        "temp_parallel.processors": "8"}
SMALL = {"temp_buffers": "100"}
FORCED = {"debug_parallel_query": "on", "parallel_leader_participation": "off"}
MODES = {
    "off": OFF,
    "shuffled": OFF,                    # with the existing rows in random order
    "zero": ZERO,
    "small": {**ZERO, **SMALL},
    "forced": {**ZERO, **FORCED},       # every parallel-safe plan is run by workers alone
}

# Empty and refill each table. Tables where this fails stay as they are.
SHUFFLE = """DO $$ DECLARE t regclass; BEGIN
FOR t IN SELECT oid FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r' LOOP
    BEGIN
        EXECUTE format('CREATE TEMP TABLE shuffled ON COMMIT DROP AS SELECT * FROM ONLY %s ORDER BY random()', t);
        EXECUTE format('DELETE FROM ONLY %s', t);
        EXECUTE format('INSERT INTO %s SELECT * FROM shuffled', t);
        DROP TABLE shuffled;
    EXCEPTION WHEN OTHERS THEN RAISE WARNING '%: %', t, SQLERRM;
    END;
END LOOP; END $$;"""


def schedule(directory):
    with open(f"{directory}/parallel_schedule", encoding="utf-8") as f:
        return [test for line in f if line.startswith("test:") for test in line.split()[1:]]


def default_tests(directory):
    return [test for test in schedule(directory) if test not in LEFT_OUT]


def read(directory, test):
    with open(f"{directory}/sql/{test}.sql", encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def before(directory, test, text):
    """The scripts to run first, in the order of core's schedule."""
    if test in BEFORE:
        wanted = set(BEFORE[test])
    else:
        wanted = {name for name, pattern in PROVIDERS if re.search(pattern, text, re.I)}
    if "create_view" in wanted:
        wanted.add("create_misc")
    wanted.discard(test)
    return ["test_setup"] + [name for name in schedule(directory) if name in wanted]


def session_input(options, test, statements):
    """The input of psql."""
    directory = options.directory
    # First the statements that change something, without comparing them.
    lines = ["SET temp_parallel.enabled = off;"]
    for name in before(directory, test, read(directory, test)):
        lines += [s.text for s in script.parse(options.psql, read(directory, name))
                  if not s.explains and (not s.is_query() or re.search(r"\\g|\bINTO\b", s.bare, re.I))]
    lines += ["\n\\o", "RESET ALL;", "RESET SESSION AUTHORIZATION;",
              # So that the test's roles may use this session's tables, as it grants.
              "DO $$ BEGIN EXECUTE format('GRANT ALL ON SCHEMA %s TO PUBLIC',"
              " pg_my_temp_schema()::regnamespace); END $$;",
              SHUFFLE if options.mode == "shuffled" else "",
              "\\echo @@stop"]
    counters = ("SELECT flushes AS oracle_flushes, workers_launched AS oracle_workers"
                " FROM public.temp_parallel_stats() \\gset")
    lines += ["\\set oracle_flushes 0", "\\set oracle_workers 0"]
    for number, statement in enumerate(statements):
        lines.append(f"\\echo @@{number} -")
        lines.append(statement.text.strip("\n"))
        lines += ["\\echo @@stop", f"\\echo @@{number} :SQLSTATE", counters,
                  "\\echo @@flushed :oracle_flushes :oracle_workers"]
    return "\n".join(lines) + "\n"


def answers(output):
    """For each statement: output, SQLSTATE, flushes and workers so far."""
    out, number, position = {}, None, 0
    for match in MARK.finditer(output):
        text = output[position:match.start()]
        position = match.end()
        if match.group(2) == b"-":
            number = int(match.group(1))
        elif number is None:
            continue            # the end of a statement that was skipped
        elif match.group(1):
            out[number][1] = match.group(2).decode()
        elif match.group(3):
            out[number][2:] = [int(match.group(3)), int(match.group(4))]
            number = None
        else:
            out[number] = [text.decode("utf-8", "backslashreplace"), "", 0, 0]
    return out


def run_test(options, test):
    database = f"oracle_{test.replace('.', '_')}"
    psql = [options.psql, "-Xq"]
    subprocess.run(psql + ["-d", "template1", "-c", f'CREATE DATABASE "{database}"'], check=True,
                   stdout=subprocess.DEVNULL)
    settings = {**MODES[options.mode], **BOTH}
    if options.major < 16 and "debug_parallel_query" in settings:
        settings["force_parallel_mode"] = settings.pop("debug_parallel_query")
    environment = dict(
        os.environ, PGDATABASE=database, PGTZ="America/Los_Angeles", PGDATESTYLE="Postgres, MDY",
        PGOPTIONS=" ".join(f"-c {name}={value}" for name, value in settings.items()),
        PG_ABS_SRCDIR=options.directory, PG_ABS_BUILDDIR=options.scratch,
        PG_LIBDIR=options.libdir, PG_DLSUFFIX=".so")
    statements = script.parse(options.psql, read(options.directory, test))
    try:
        done = subprocess.run(
            psql + ["-A", "-R", "\x1e", "-F", "\x1f", "-P", "null=\\N"], env=environment,
            input=session_input(options, test, statements).encode("utf-8", "surrogateescape"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=options.timeout, check=False)
        output, ended = done.stdout, done.returncode in (0, 3)
    except subprocess.TimeoutExpired as timeout:
        output, ended = timeout.stdout or b"", False
    subprocess.run(psql + ["-d", "template1", "-c", f'DROP DATABASE "{database}" WITH (FORCE)'],
                   check=False, stdout=subprocess.DEVNULL)
    with open(f"{options.out}/{options.mode}/{test}.out", "wb") as f:
        f.write(output)
    found = answers(output)
    with open(f"{options.out}/{options.mode}/{test}.json", "w", encoding="utf-8") as f:
        json.dump({"ended": ended, "statements": [s.text for s in statements], "answers": found}, f)
    return ended, found


def main():
    parser = argparse.ArgumentParser(prog="coretests.run")
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--tests", nargs="*")
    parser.add_argument("--psql", default="psql")
    parser.add_argument("--major", type=int, required=True, help="version of the server")
    parser.add_argument("--directory", required=True, help="src/test/regress of the sources")
    parser.add_argument("--libdir", required=True, help="directory of their C functions")
    parser.add_argument("--scratch", required=True, help="directory where the server may write")
    parser.add_argument("--out", required=True)
    parser.add_argument("--timeout", type=int, default=900, help="seconds for a test")
    options = parser.parse_args()
    start = time.time() - int(os.environ.get("START", 0))
    tests = options.tests or default_tests(options.directory)
    os.makedirs(f"{options.out}/{options.mode}", exist_ok=True)
    total = 0
    for number, test in enumerate(tests, 1):
        ended, found = run_test(options, test)
        total += len(found)
        print(f"[{time.time() - start:4.0f}s] {options.mode}: {number} of {len(tests)} tests,"
              f" {total} statements, {test}{'' if ended else ' DID NOT END'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
