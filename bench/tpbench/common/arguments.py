"""Options and their values."""

import argparse


def listed(kind):
    """The type of an option with a list of values, which commas separate."""
    return lambda text: [kind(item) for item in text.split(",")]


def require_writable(*paths):
    """Those of the paths that are given can be written: a wrong one fails before the work."""
    for path in paths:
        if path:
            open(path, "a").close()


def rows_and_rounds(program, rows, rounds, lists={}, flags=()):
    """The arguments of a program with these two options, and lists: {option: [value, ...]};
    with their defaults, and with flags."""
    parser = argparse.ArgumentParser(prog=program)
    for option, default in lists.items():
        parser.add_argument(option, type=listed(str), default=default)
    for option in flags:
        parser.add_argument(option, action="store_true")
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--rounds", type=int, default=rounds)
    args = parser.parse_args()
    if args.rows < 1000 or args.rounds < 1:
        parser.error("rows or rounds are too small")
    return args
