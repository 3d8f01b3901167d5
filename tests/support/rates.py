"""Binomial bounds for simulated rates."""

import json
import os
from pathlib import Path

from scipy import stats


def _record(hits, trials, nominal, low, high):
    """Append a measured rate to the file named by EQUIPOISE_RATES, for the page on calibration."""
    file = os.environ.get("EQUIPOISE_RATES")
    if file:
        row = {
            "test": os.environ.get("PYTEST_CURRENT_TEST", ""),
            "trials": int(trials),
            "nominal": float(nominal),
            "rate": float(hits / trials),
            "low": float(low / trials),
            "high": float(high / trials),
        }
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")


def assert_rate(hits, trials, nominal, *, below=0.0, above=0.0, level=0.001):
    """Assert that `hits` of `trials` fits a rate in [nominal - below, nominal + above].

    The acceptance region is the exact two-sided binomial one at `level`. `below` and `above` allow
    for known finite-sample error of an asymptotic method; the caller gives the source beside it.
    """
    low = stats.binom.ppf(level / 2, trials, max(nominal - below, 0.0))
    high = stats.binom.isf(level / 2, trials, min(nominal + above, 1.0))
    _record(hits, trials, nominal, low, high)
    assert low <= hits <= high, (
        f"{hits} of {trials} = {hits / trials:.4f}; accepted "
        f"{low / trials:.4f} to {high / trials:.4f}"
        f" for a nominal rate of {nominal}"
    )


def assert_at_most(hits, trials, nominal, *, level=0.001):
    """Assert that `hits` of `trials` is compatible with a rate of at most `nominal`."""
    high = stats.binom.isf(level, trials, nominal)
    _record(hits, trials, nominal, 0.0, high)
    assert hits <= high, (
        f"{hits} of {trials} = {hits / trials:.4f}; accepted at most {high / trials:.4f}"
    )


def assert_at_least(hits, trials, nominal, *, level=0.001):
    """Assert that `hits` of `trials` is compatible with a rate of at least `nominal`."""
    low = stats.binom.ppf(level, trials, nominal)
    _record(hits, trials, nominal, low, trials)
    assert hits >= low, (
        f"{hits} of {trials} = {hits / trials:.4f}; accepted at least {low / trials:.4f}"
    )
