"""Values of options."""


def listed(kind):
    """The type of an option with a list of values, which commas separate."""
    return lambda text: [kind(item) for item in text.split(",")]
