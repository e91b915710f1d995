"""Values of options."""


def listed(kind):
    """The type of an option with a list of values, which commas separate."""
    return lambda text: [kind(item) for item in text.split(",")]


def require_writable(*paths):
    """Those of the paths that are given can be written: a wrong one fails before the work."""
    for path in paths:
        if path:
            open(path, "a").close()
