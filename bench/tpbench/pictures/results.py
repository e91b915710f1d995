"""The results of all benchmarks in one file, taken from their outputs."""

import csv
import re
from collections import namedtuple
from pathlib import Path

FIELDS = ("output", "version", "buffers", "part", "name", "off", "flushed", "on", "unlogged",
          "on/off", "on/unlogged")
Result = namedtuple("Result", [f.replace("/", "_by_") for f in FIELDS])
# columns of the outputs that have another name there
COLUMNS = {"shared": "on", "shared/off": "on/off", "shared/unlogged": "on/unlogged",
           "without": "off", "with": "on", "ratio": "on/off"}
PART = re.compile("(First run|Repeated runs|one table|join of two tables|small statements)")
OUTPUTS = ("tpch", "tpch_small", "scans", "fill_and_query", "insert_select", "job", "index_build",
           "share", "share_large", "instructions")


def cells(line):
    return re.split(r"\s{2,}", re.sub(r"\[.*?\]", "", line).strip())


def of_output(text, output, version):
    """A row for each line of a table with the times off and on."""
    buffers = part = ""
    columns = None
    for line in text.splitlines():
        if found := re.search(r"temp_buffers = (\w+)", line):
            buffers, columns = found[1], None
        if found := PART.match(line):
            part, columns = found[1], None
        head = [c.removesuffix(" ms") for c in cells(line)]
        if "off" in head or "without" in head:
            first = "rows" if "rows" in head else "off" if "off" in head else "without"
            columns = head[head.index(first):]
        elif columns and len(row := cells(line)) > 2:
            values = {COLUMNS.get(c, c): v for c, v in zip(columns, row[1:])}
            if "on" in values:
                yield Result(output, version, buffers, part, row[0],
                             *(values.get(f, "") for f in FIELDS[5:]))


def wanted(result):
    """The single queries of TPC-H are those with the largest pool."""
    return (not result.output.startswith("tpch") or result.name.startswith("total")
            or result.buffers == "512MB") and not result.name.startswith("mean")


def collect(directory, path):
    """Writes the file."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        for output in OUTPUTS:
            for found in sorted(Path(directory).glob(f"{output}_[0-9][0-9].txt")):
                writer.writerows(filter(wanted, of_output(found.read_text(), output,
                                                          found.stem[-2:])))


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [Result(*row[:5], *(float(v) if v else None for v in row[5:])) for row in rows]
