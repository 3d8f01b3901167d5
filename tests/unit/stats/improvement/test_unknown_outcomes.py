"""Bounds where outcomes are not known, against all outcomes tried one by one."""

from itertools import product

import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.search.sample import named_utility
from equipoise.stats.improvement.unknown_outcomes import (
    OutcomeUtility,
    UnknownOutcomes,
    WorstCaseEstimates,
    odds_limits,
)
from equipoise.stats.improvement.utilities import UtilityEstimates, estimate_utilities

METRICS = ["accuracy", "error_rate", "tpr", "fpr", "tnr", "fnr", "ppv", "npv", "fdr", "for"]


def of_outcome(name):
    u, w = np.zeros((2, 2, 2))
    for y, d in product((0, 1), (0, 1)):
        top, bottom = named_utility(name, np.array([float(y)]))(np.array([float(d)]))
        u[y, d], w[y, d] = top[0], bottom[0]
    change = np.array([[1.0, 0.0], [-1.0, 1.0]])
    return OutcomeUtility(numerator=change @ u @ change.T, denominator=change @ w @ change.T)


def rows(rng, n=14, unknown=7):
    y = rng.integers(2, size=n).astype(float)
    y[unknown:] = np.nan
    # Two rows of either outcome, so that no denominator is zero whatever the others are.
    y[:4] = [0.0, 0.0, 1.0, 1.0]
    chance = rng.integers(2, size=(n, 2)).astype(float)
    chance[:2], chance[2:4] = [[0, 0], [1, 1]], [[1, 1], [0, 0]]
    chance[5, 0] = 0.3
    return y, chance, rng.integers(1, 4, size=n).astype(float)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(6))
def test_the_worst_case_is_the_least_over_all_outcomes(metric, seed):
    rng = np.random.default_rng(seed)
    y, chance, weight = rows(rng)
    missing = np.isnan(y)
    factor = rng.normal(size=2)
    low, high = np.where(missing, 0.2, y), np.where(missing, 0.9, y)
    found = UnknownOutcomes(
        low=low,
        high=high,
        chance=chance,
        group=np.zeros(len(y), dtype=np.int64),
        weight=weight,
        count=np.ones(len(y)),
        unit=None,
        utilities=(of_outcome(metric),),
    ).worst(0, np.ones(len(y), dtype=bool), factor)[0]
    values = []
    for guess in product((0.2, 0.9), repeat=int(missing.sum())):
        outcome = np.where(missing, 0.0, y)
        outcome[missing] = guess
        total = 0.0
        for rule in (0, 1):
            one, zero = (
                named_utility(metric, np.full(len(y), k))(chance[:, rule]) for k in (1.0, 0.0)
            )
            u, w = (outcome * a + (1 - outcome) * b for a, b in zip(one, zero, strict=True))
            total += factor[rule] * (weight @ u) / (weight @ w)
        values.append(total)
    assert found == pytest.approx(min(values), abs=1e-12)


def sample(y, chance, group, metric, low, high, **options):
    known = ~np.isnan(y)
    quantities = [
        named_utility(metric, np.where(known, y, 0.0))(chance[:, rule]) for rule in (0, 1)
    ]
    u, w = (np.stack([q[k] * known for q in quantities], axis=1)[:, None, :] for k in (0, 1))
    estimates = estimate_utilities(u, w, group, n_groups=2, population=True, undefined=True)
    outcomes = UnknownOutcomes(
        low=low,
        high=high,
        chance=chance,
        group=group,
        weight=np.ones(len(y)),
        count=np.ones(len(y)),
        unit=options.get("unit"),
        utilities=(of_outcome(metric),),
    )
    return estimates, WorstCaseEstimates.of(estimates, outcomes)


@pytest.mark.parametrize("metric", ["accuracy", "tpr", "ppv"])
def test_with_all_outcomes_known_nothing_is_lost(metric):
    rng = np.random.default_rng(1)
    n = 400
    y, chance = rng.integers(2, size=n).astype(float), rng.integers(2, size=(n, 2)).astype(float)
    plain, worst = sample(y, chance, np.arange(n) % 2, metric, y, y)
    contrasts = np.random.default_rng(2).normal(size=(3, plain.value.size))
    (value, one), (least, two) = plain.loadings(contrasts), worst.loadings(contrasts)
    np.testing.assert_allclose(value, least, atol=1e-12)
    np.testing.assert_allclose(one @ one.T, two @ two.T, atol=1e-12)
    few = worst.among([1]).of_rules([0, 1])
    row = np.zeros(few.value.size)
    row[few.position(0, 1, 0)], row[few.position(0, 0, 0)] = 1.0, -1.0
    expected = plain.among([1]).contrast(row)
    np.testing.assert_allclose(few.contrast(row), expected, atol=1e-12)


def test_clusters_add_their_influence_first():
    rng = np.random.default_rng(3)
    n = 300
    y, chance = rng.integers(2, size=n).astype(float), rng.integers(2, size=(n, 2)).astype(float)
    unit = np.arange(n) // 3
    _, alone = sample(y, chance, np.arange(n) % 2, "accuracy", y, y)
    _, together = sample(y, chance, np.arange(n) % 2, "accuracy", y, y, unit=unit)
    row = np.zeros(alone.value.size)
    row[alone.position(0, 1, 2)] = 1.0
    right = np.where(chance[:, 1] == y, 1.0, 0.0) - np.mean(chance[:, 1] == y)
    expected = np.sqrt((np.bincount(unit, weights=right) ** 2).sum()) / n
    assert together.contrast(row)[1] == pytest.approx(expected)
    assert alone.contrast(row)[1] == pytest.approx(np.sqrt((right**2).sum()) / n)


def test_a_rate_without_outcomes_has_no_bound():
    y, chance = np.full(20, np.nan), np.tile([0.0, 1.0], (20, 1))
    _, worst = sample(y, chance, np.arange(20) % 2, "tpr", np.zeros(20), np.zeros(20))
    row = np.zeros(worst.value.size)
    row[worst.position(0, 1, 2)] = 1.0
    assert worst.contrast(row)[0] == -np.inf


def test_ratios_of_rates_of_unknown_outcomes_are_refused():
    y, chance = np.ones(20), np.tile([0.0, 1.0], (20, 1))
    _, worst = sample(y, chance, np.arange(20) % 2, "tpr", y, y)
    with pytest.raises(InvalidParameterError, match="need no outcome"):
        worst.on_log_scale([0])
    assert isinstance(worst, UtilityEstimates)


def test_odds_of_one_leave_a_chance_alone():
    np.testing.assert_allclose(odds_limits(np.array([0.1, 0.7]), 1.0), [[0.1, 0.7]] * 2)
