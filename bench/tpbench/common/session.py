"""A connection, and the arms that are compared over it.

A temporary table exists in one session only, so all arms of a comparison run in the
same session and differ in a few settings.
"""

import os
from dataclasses import dataclass

import psycopg

# The settings that all arms of a measurement share, if not the defaults.
SETTINGS = {
    # Too small for TPC-H at scale 1, as in real life.
    "temp_buffers": os.environ.get("TEMP_BUFFERS", "512MB"),
    "work_mem": "64MB",
    # Each process compiles for itself, which may take longer than the query: that
    # would be a measurement of LLVM.
    "jit": "off",
}
# The same with all others at their defaults.
DEFAULTS = {"temp_buffers": SETTINGS["temp_buffers"]}


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: settings, and the kind of table it reads."""

    name: str
    persistence: str
    settings: dict


# Unlogged tables are found first only if pg_temp is listed after their schema.
OFF = Arm("off", "TEMP", {"temp_parallel.enabled": "off", "search_path": "pg_temp, public"})
ON = Arm("on", "TEMP", {"temp_parallel.enabled": "on", "search_path": "pg_temp, public",
                        "temp_parallel.share_local_buffers": "on"})
FLUSHED = Arm("flushed", "TEMP", ON.settings | {"temp_parallel.share_local_buffers": "off"})
UNLOGGED = Arm("unlogged", "UNLOGGED",
               {"temp_parallel.enabled": "off", "search_path": "unlogged, public, pg_temp"})


# what temp_parallel_calibrate() recommends
COSTS = ("temp_parallel.write_temp_page_cost", "temp_parallel.buffer_scan_cost", "parallel_setup_cost")


def line(settings=SETTINGS):
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


def connect(settings):
    """Connect as libpq's environment variables say, and load the extension."""
    conn = psycopg.connect(autocommit=True, prepare_threshold=None)
    conn.execute("CREATE SCHEMA IF NOT EXISTS unlogged")
    conn.execute("LOAD 'temp_parallel'")
    conn.execute("CREATE EXTENSION IF NOT EXISTS temp_parallel")
    apply(conn, settings)
    return conn


def calibrated():
    """The settings that temp_parallel_calibrate() recommends on this machine."""
    for _ in range(5):
        with connect({"temp_buffers": "256MB"}) as conn:
            costs = conn.execute("SELECT write_temp_page_cost, buffer_scan_cost, parallel_setup_cost"
                                 " FROM temp_parallel_calibrate()").fetchone()
        if None not in costs:
            return {name: str(cost) for name, cost in zip(COSTS, costs)}
    raise SystemExit("the machine is too busy to be calibrated")


def apply(conn, settings):
    for name, value in settings.items():
        conn.execute("SELECT set_config(%s, %s, false)", (name, value))


def use(conn, arm):
    apply(conn, arm.settings)


def value(conn, sql):
    """The only value of the only row."""
    return conn.execute(sql).fetchone()[0]
