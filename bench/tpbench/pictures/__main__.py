"""Makes the pictures and tables of the pages from doc/data."""

import argparse
import shutil
from pathlib import Path

from . import diagram, plots, results, tables

# of the outputs, what pages show or bench/flush_cost makes plots of: where it goes
COPIED = {"flush_cost_??.csv": "doc/data", "planner_*_18.png": "doc/pictures"}


def main():
    parser = argparse.ArgumentParser(prog="bench/pictures")
    parser.add_argument("--collect", metavar="DIR")
    args = parser.parse_args()
    top = Path(__file__).resolve().parents[3]
    data = top / "doc/data/results.csv"
    if args.collect:
        results.collect(args.collect, data)
        for pattern, place in COPIED.items():
            for found in Path(args.collect).glob(pattern):
                shutil.copy(found, top / place)
    found = results.read(data)
    tables.write(found, top)
    pictures = top / "doc/pictures"
    pictures.mkdir(exist_ok=True)
    for draw in (plots.speed, plots.ratios, plots.when_workers_pay, plots.shared_or_written):
        draw(found, pictures / f"{draw.__name__}.svg")
    diagram.draw(pictures / "pages.svg")


main()
