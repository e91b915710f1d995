"""Makes the pictures and tables of the pages from doc/data."""

import argparse
from pathlib import Path

from . import diagram, plots, results, tables


def main():
    parser = argparse.ArgumentParser(prog="bench/pictures")
    parser.add_argument("--collect", metavar="DIR")
    args = parser.parse_args()
    top = Path(__file__).resolve().parents[3]
    data = top / "doc/data/results.csv"
    if args.collect:
        results.collect(args.collect, data)
    found = results.read(data)
    tables.write(found, top)
    pictures = top / "doc/pictures"
    pictures.mkdir(exist_ok=True)
    for draw in (plots.speed, plots.ratios, plots.when_workers_pay, plots.shared_or_written):
        draw(found, pictures / f"{draw.__name__}.svg")
    diagram.draw(pictures / "pages.svg")


main()
