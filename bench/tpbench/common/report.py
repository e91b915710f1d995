"""Parts of tables."""

from statistics import median


def rule(text):
    print("-" * len(text))


def spread(values):
    """Median, lowest and highest."""
    return f"{median(values):6.2f} [{min(values):.2f}, {max(values):.2f}]"
