"""The TPC-H tables and queries in bench/tpch."""

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parents[2] / "tpch"
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


def generate(scale):
    """Generate the data, unless the cache has them, and return their directory."""
    made = subprocess.run([HERE / "generate", str(scale)], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return Path(made.stdout.strip())


def create(conn, persistence):
    # The only psql variable in that file.
    conn.execute((HERE / "schema.sql").read_text().replace(":persistence", persistence))


def copy(conn, table, directory):
    with open(directory / f"{table}.csv", "rb") as data, conn.cursor() as cur:
        with cur.copy(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)") as sink:
            while chunk := data.read(1 << 20):
                sink.write(chunk)


def index(conn):
    conn.execute((HERE / "indexes.sql").read_text())


def load(conn, persistence, directory):
    create(conn, persistence)
    for table in TABLES:
        copy(conn, table, directory)
    index(conn)


def reload(conn, table, directory):
    """Load the same rows again, so that all pages of the table are dirty."""
    conn.execute(f"TRUNCATE {table}")
    copy(conn, table, directory)
    conn.execute(f"ANALYZE {table}")


def queries():
    """The 22 queries by name: {"q01": text, ...}"""
    return {f.stem: f.read_text() for f in sorted(HERE.glob("q[0-9][0-9].sql"))}
