"""Degrees of freedom and variances beside clubSandwich and survey.

`few_units.json` is the output of `few_units.R`; the versions are in it.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.stats.small_samples import combine, contrast_law, pooled_shape, side_contrast
from equipoise.stats.unit_sums import UnitSums
from simulate.peers import korn_graubard

REFERENCE = json.loads((Path(__file__).parent / "few_units.json").read_text(encoding="utf-8"))


def units(n, power):
    i = np.arange(1, n + 1)
    return (i * 7919) % 101 / 10 + i % 3, (1.0 + (i * 31) % 17) ** power


@pytest.mark.parametrize("case", REFERENCE["weighted"])
def test_weighted_mean_agrees_with_club_sandwich_and_survey(case):
    x, w = units(case["n"], case["power"])
    sums = UnitSums.of_units(w * x, w, centre=5.0)
    n = case["n"]
    assert_allclose(sums.mean, case["mean"], rtol=1e-12)
    assert_allclose(sums.scatter, case["cr0"], rtol=1e-11)
    assert_allclose(sums.df, case["df_cr0"], rtol=1e-10)
    assert_allclose(np.sqrt(sums.scatter * n / (n - 1)), case["survey_se"], rtol=1e-11)


@pytest.mark.parametrize("case", REFERENCE["weighted"])
def test_variance_is_within_two_percent_of_cr2(case):
    # Both are unbiased when unit means have one variance; they weigh the residuals differently.
    x, w = units(case["n"], case["power"])
    sums = UnitSums.of_units(w * x, w, centre=5.0)
    variance = side_contrast(sums.expand(-1), pooled_shape(sums.expand(-1))).variance
    tolerance = 1e-10 if case["power"] == 0 else 0.02
    assert_allclose(variance, case["cr2"], rtol=tolerance)


@pytest.mark.parametrize("case", REFERENCE["clustered"])
def test_clusters_of_rows_agree_with_club_sandwich(case):
    i = np.arange(1, case["n"] + 1)
    unit = np.repeat(i, 1 + (i * 5) % case["biggest"])
    k = np.arange(1, len(unit) + 1)
    y = (k * 104729) % 97 / 10 + (unit * 13) % 7
    sums = UnitSums.from_rows(y, np.ones(len(y)), np.zeros(len(y), int), cluster=unit)
    assert_allclose(sums.mean, case["mean"], rtol=1e-12)
    assert_allclose(sums.scatter, case["cr0"], rtol=1e-11)
    assert_allclose(sums.scatter * case["n"] / (case["n"] - 1), case["cr1"], rtol=1e-11)


@pytest.mark.parametrize("case", REFERENCE["pairs"])
def test_degrees_of_a_difference_agree_with_club_sandwich(case):
    # The working model of R gives both sides one variance; two units make the pool decide alone.
    first, second = units(case["n1"], case["power"]), units(case["n2"], case["power"])
    sides = UnitSums.stack([UnitSums.of_units(w * x, w) for x, w in (first, second)])
    spread = sides.variance_factor
    model = spread**2 / sides.df
    assert_allclose(sides.mean[1] - sides.mean[0], case["difference"], rtol=1e-10)
    assert_allclose(sides.scatter.sum(), case["cr0"], rtol=1e-10)
    assert_allclose(spread.sum() ** 2 / model.sum(), case["df_cr0"], rtol=1e-9)
    # Ours weighs the sides by the variance of their means, not by its uncorrected estimate.
    law = contrast_law(combine(side_contrast(sides, pooled_shape(sides)), np.array([-1.0, 1.0])))
    assert_allclose(law.df, case["df_cr0"], rtol=0.15)


@pytest.mark.parametrize("case", REFERENCE["proportions"])
def test_the_peer_of_weighted_rates_is_that_of_survey(case):
    x, w = units(case["n"], case["power"])
    y = (x > case["cut"]) * 1.0
    ends = korn_graubard(w * y, w, case["n"])
    assert_allclose(np.sum(w * y) / w.sum(), case["rate"], rtol=1e-12)
    assert_allclose(ends, (case["low"], case["high"]), rtol=1e-9)


@pytest.mark.parametrize("case", REFERENCE["clustered_proportions"])
def test_the_peer_of_clustered_rates_is_that_of_survey(case):
    i = np.arange(1, case["n"] + 1)
    size = 1 + (i * 5) % case["biggest"]
    unit = np.repeat(i, size)
    k = np.arange(1, len(unit) + 1)
    y = ((k * 104729) % 97 / 10 + (unit * 13) % 7 > case["cut"]) * 1.0
    total = np.bincount(unit, y)[1:]
    ends = korn_graubard(total, size * 1.0, len(y))
    assert_allclose(total.sum() / size.sum(), case["rate"], rtol=1e-12)
    assert_allclose(ends, (case["low"], case["high"]), rtol=1e-9)
