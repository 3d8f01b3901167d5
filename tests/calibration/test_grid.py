"""A thinned run of the grid behind docs/calibration.md: every rate is in bounds, or explained."""

import numpy as np
import pytest

from calibration.grid import FAMILIES, Cell, claim, name_of, table

pytestmark = pytest.mark.calibration


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_rates_of_the_grid_are_in_bounds_or_explained(rng, family):
    cells = list(family(rng, 1000, thin=5))
    assert cells
    assert not [cell for cell in cells if not cell.inside and not cell.reason]
    # An explanation excuses no false alarms beyond the smallest and most skewed designs.
    worst = [cell for cell in cells if cell.nominal > 0.5 and cell.rate < 0.88]
    assert not worst


def test_a_rate_outside_its_bounds_is_told_from_one_inside():
    good, bad = (
        Cell(family="f", design="d", what="w", nominal=0.95, hits=hits, trials=1000)
        for hits in (950, 900)
    )
    assert good.inside
    assert not bad.inside
    assert "unexplained" in table([bad])
    assert "unexplained" not in table([good])
    np.testing.assert_allclose(good.bounds, (0.926, 0.971), atol=0.002)


@pytest.mark.parametrize(
    ("rate", "low", "high", "claimed", "reason"),
    [
        (0.01, 0.0, 0.06, "at most 0.05", ""),
        (0.90, 0.2, 1.0, "at least 0.05", ""),
        (0.05, 0.04, 0.06, "0.05", ""),
        (0.08, 0.04, 0.09, "0.05", "**unexplained**"),
    ],
)
def test_recorded_rates_say_what_is_claimed(rate, low, high, claimed, reason):
    row = {
        "test": "tests/x.py::test_level[a] (call)",
        "trials": 10_000,
        "nominal": 0.05,
        "rate": rate,
        "low": low,
        "high": high,
    }
    assert name_of(row) == "level: a"
    assert claim(row) == (claimed, reason)
