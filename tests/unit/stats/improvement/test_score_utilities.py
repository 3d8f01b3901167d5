"""Utilities of scores and of benefits, against definitions and their derivatives."""

import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.capacity import Decisions, cut_top_share
from equipoise.stats.improvement.rules import RowUtilities, estimate_rules
from equipoise.stats.improvement.score_utilities import (
    ScoreRows,
    best_threshold,
    of_benefits,
    scored_utilities,
)


def table(seed, n=80):
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    y = rng.integers(2, size=n).astype(float)
    score = np.round(np.clip(0.3 * y[:, None] + 0.6 * rng.random((n, 2)), 0, 1), 1)
    weight = rng.integers(1, 4, size=n).astype(float)
    return group, y, score, weight


def by_definition(kind, y, s, weight, member):
    w = weight * member
    if kind == "brier":
        return -(w @ (s - y) ** 2) / w.sum()
    if kind == "smd":
        mean = weight @ s / weight.sum()
        sd = np.sqrt(weight @ (s - mean) ** 2 / weight.sum())
        return (w @ s) / w.sum() / sd
    one, none = w * (y == 1), w * (y == 0)
    if kind == "ks":
        d = s >= 0.5
        return one @ d / one.sum() - none @ d / none.sum()
    wins = (s[:, None] > s) + 0.5 * (s[:, None] == s)
    return one @ wins @ none / one.sum() / none.sum()


@pytest.mark.parametrize("kind", ["auc", "brier", "ks", "smd"])
def test_values_and_influence(kind):
    group, y, score, weight = table(1)
    judged = (score >= 0.5).astype(float) if kind == "ks" else score
    rows = ScoreRows(
        y=y,
        score=judged,
        group=group,
        n_groups=2,
        population=True,
        weight=weight,
        count=np.ones(len(y)),
    )
    found = scored_utilities([kind], [rows])
    members = [group == 0, group == 1, np.ones(len(y))]
    for a in (0, 1):
        for h, member in enumerate(members):
            value = by_definition(kind, y, score[:, a], weight, member)
            assert found.value[0, a, h] == pytest.approx(value)
            # The influence is the derivative in the weight of a row.
            numeric = []
            for i in range(len(y)):
                more = weight.copy()
                more[i] += 1e-6
                moved = by_definition(kind, y, score[:, a], more, member)
                numeric.append(weight[i] * (moved - value) / 1e-6)
            psi = found.influence[:, 0, a, h]
            if kind == "auc":
                # DeLong's factor for small classes, n / (n - 1) in the variance.
                np.testing.assert_allclose(psi, numeric, rtol=0.05, atol=1e-5)
            else:
                np.testing.assert_allclose(psi, numeric, atol=1e-5)


def test_groups_without_an_outcome_rest_on_nothing():
    y = np.array([0.0, 0.0, 1.0, np.nan])
    rows = ScoreRows(
        y=y,
        score=np.ones((4, 2)),
        group=np.array([0, 0, 1, 1]),
        n_groups=2,
        population=False,
        weight=np.ones(4),
        count=np.ones(4),
    )
    found = scored_utilities(["auc", "brier", "smd"], [rows] * 3)
    assert found.support[0].tolist() == [[0, 0], [0, 0]]
    assert found.support[1].tolist() == [[2, 1], [2, 1]]
    assert found.support[2].max() == 0


def test_scores_join_decisions_in_one_covariance():
    """The covariance is that of the influence of both kinds, draws follow it."""
    group, y, score, _ = table(2, n=200)
    one, zero = np.ones((len(y), 1)), np.zeros((len(y), 1))
    accuracy = RowUtilities(
        numerator=(1 - y)[:, None],
        denominator=one,
        numerator_change=(2 * y - 1)[:, None],
        denominator_change=zero,
    )
    rows = ScoreRows(
        y=y,
        score=score,
        group=group,
        n_groups=2,
        population=True,
        weight=np.ones(len(y)),
        count=np.ones(len(y)),
    )
    rules = [Decisions(chance=(s >= 0.5).astype(float)) for s in score.T]
    found = estimate_rules(
        accuracy,
        rules,
        group,
        n_groups=2,
        population=True,
        scored=scored_utilities(["auc"], [rows]),
        n_resamples=4000,
        rng=1,
    )
    assert found.value.shape == (2, 2, 3)
    np.testing.assert_allclose(
        np.sqrt(np.diag(found.covariance)), found.draws.value.std(axis=0), rtol=0.1
    )
    right = (rules[0].chance == y) - np.mean(rules[0].chance == y)
    psi = scored_utilities(["auc"], [rows]).influence[:, 0, 1, 2]
    at = found.position(0, 0, 2), found.position(1, 1, 2)
    assert found.covariance[at] == pytest.approx(right @ psi / len(y))


def test_entropy_index_of_benefits_by_hand_and_by_resampling():
    group, y, score, _ = table(3, n=400)
    rules = [cut_top_share(s, 0.3) for s in score.T]
    parts = [(1.0 - y) ** 2, (2.0 - y) ** 2 - (1.0 - y) ** 2], [1.0 - y, np.ones(len(y))]
    one = np.ones((len(y), 2))
    means = RowUtilities(
        numerator=np.stack([parts[0][0], parts[1][0]], axis=1),
        denominator=one,
        numerator_change=np.stack([parts[0][1], parts[1][1]], axis=1),
        denominator_change=0 * one,
    )
    base = estimate_rules(means, rules, group, n_groups=2, population=True)
    found = of_benefits(base, [(0, 1)], population=False)
    for a, rule in enumerate(rules):
        d = rule.chance
        square = np.mean(d * (2 - y) ** 2 + (1 - d) * (1 - y) ** 2)
        mean = np.mean(d - y + 1)
        assert found.value[0, a].tolist() == pytest.approx([(square / mean**2 - 1) / 2] * 2)
    rng = np.random.default_rng(4)
    draws = []
    for _ in range(400):
        i = rng.integers(len(y), size=len(y))
        again = cut_top_share(score[i, 1], 0.3).chance
        square = np.mean(again * (2 - y[i]) ** 2 + (1 - again) * (1 - y[i]) ** 2)
        draws.append((square / np.mean(again - y[i] + 1) ** 2 - 1) / 2)
    se = np.sqrt(found.covariance[found.position(0, 1, 0), found.position(0, 1, 0)])
    assert se == pytest.approx(np.std(draws), rel=0.15)


def test_best_threshold_is_the_largest_distance():
    rng = np.random.default_rng(5)
    y, s = rng.integers(2, size=60).astype(float), np.round(rng.random(60), 1)
    s = s + 0.2 * y
    distance = [np.mean(s[y == 1] >= t) - np.mean(s[y == 0] >= t) for t in np.unique(s)]
    assert best_threshold(s, y) == np.unique(s)[int(np.argmax(distance))]
    with pytest.raises(InvalidParameterError, match="one of them is missing"):
        best_threshold(s, np.ones(60))


def test_a_group_without_known_outcomes_has_no_brier_score():
    one = np.ones(3)
    rows = ScoreRows(
        y=np.array([0.0, 1.0, np.nan]),
        score=np.array([[0.5], [0.5], [0.5]]),
        group=np.array([0, 0, 1]),
        n_groups=2,
        population=False,
        weight=one,
        count=one,
    )
    found = scored_utilities(["brier"], [rows])
    np.testing.assert_allclose(found.value[0, 0], [-0.25, 0.0])
    assert found.support[0, 0].tolist() == [2, 0]
