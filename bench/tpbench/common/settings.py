"""The settings that all arms of a measurement share."""

import os

SETTINGS = {
    # Too small for TPC-H at scale 1, as in real life.
    "temp_buffers": os.environ.get("TEMP_BUFFERS", "512MB"),
    "work_mem": "64MB",
    # Each process compiles for itself, which may take longer than the query: that
    # would be a measurement of LLVM.
    "jit": "off",
}


def line(settings=SETTINGS):
    return ", ".join(f"{name} = {value}" for name, value in settings.items())
