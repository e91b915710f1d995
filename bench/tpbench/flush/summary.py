"""Robust statistics over repeated measurements. Nothing is left out: outliers are
reported, not discarded."""

from dataclasses import dataclass

import numpy as np

RESAMPLES = 4000
RESOLUTION = 0.005      # ms; below that, EXPLAIN's rounding decides
FENCE = 3               # interquartile ranges from the quartiles: "far out" (Tukey)


@dataclass(frozen=True)
class Estimate:
    """A median and its 95 % bootstrap interval."""

    median: float
    low: float
    high: float

    def __format__(self, spec):
        return f"{self.median:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


def resampled_medians(values):
    """Medians of samples drawn from the values with replacement, from a fixed seed: the
    same rows give the same report."""
    values = np.asarray(values)
    chosen = np.random.default_rng(1).integers(0, len(values), (RESAMPLES, len(values)))
    return np.median(values[chosen], axis=1)


def interval(medians, centre):
    low, high = np.percentile(medians, (2.5, 97.5))
    return Estimate(float(centre), float(low), float(high))


def estimate(values):
    return interval(resampled_medians(values), np.median(values))


def estimate_over(groups):
    """The geometric mean of the groups' medians; each group is resampled by itself."""
    # With different draws, as the groups' errors are independent.
    rng = np.random.default_rng(1)
    logs = []
    for values in groups:
        values = np.asarray(values)
        chosen = rng.integers(0, len(values), (RESAMPLES, len(values)))
        logs.append(np.log(np.median(values[chosen], axis=1)))
    centre = np.exp(np.mean([np.log(np.median(values)) for values in groups]))
    return interval(np.exp(np.mean(logs, axis=0)), centre)


def variation(values):
    """The coefficient of variation, in percent."""
    return 0.0 if len(values) < 2 else float(np.std(values, ddof=1) / np.mean(values) * 100)


def outliers(times):
    """The indices of those times, in ms, that are far out."""
    low, high = np.percentile(times, (25, 75))
    reach = max(FENCE * (high - low), RESOLUTION)
    return [i for i, t in enumerate(times) if t < low - reach or t > high + reach]
