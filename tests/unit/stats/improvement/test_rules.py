"""Utilities of several rules by the influence of rows."""

import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.capacity import Decisions, cut_top_share
from equipoise.stats.improvement.rules import (
    RowUtilities,
    ScoreRows,
    best_threshold,
    estimate_rules,
    of_benefits,
    scored_utilities,
)
from equipoise.stats.improvement.utilities import estimate_utilities


def parts(y, *, selection=True):
    """Accuracy, and the selection rate."""
    one, zero = np.ones(len(y)), np.zeros(len(y))
    columns = [(1 - y, one, 2 * y - 1, zero)] + [(zero, one, one, zero)] * selection
    return RowUtilities(
        **dict(
            zip(
                RowUtilities.__dataclass_fields__,
                (np.stack(c, axis=1) for c in zip(*columns, strict=True)),
                strict=True,
            )
        )
    )


def population(rng, n=800):
    group = rng.integers(2, size=n)
    x = rng.normal(size=n)
    y = (x + rng.normal(size=n) > 0).astype(float)
    return group, y, x


def test_fixed_decisions_have_the_law_of_ratios(rng):
    group, y, x = population(rng)
    rules = [(x > 0).astype(float), (x > 0.2).astype(float)]
    weight = rng.integers(1, 4, size=len(y)).astype(float)
    cluster = np.arange(len(y)) // 3
    u = np.stack([[(d == y) * 1.0 for d in rules], rules]).transpose(2, 0, 1)
    for options in ({}, {"weight": weight}, {"cluster": cluster}, {"population": True}):
        old = estimate_utilities(u, np.ones_like(u), group, n_groups=2, **options)
        new = estimate_rules(
            parts(y), [Decisions(chance=d) for d in rules], group, n_groups=2, **options
        )
        np.testing.assert_allclose(new.value, old.value, rtol=1e-12)
        np.testing.assert_allclose(new.covariance, old.covariance, atol=1e-12)
        np.testing.assert_array_equal(new.support, old.support)


@pytest.mark.parametrize("n_resamples", [0, 99])
def test_a_unit_with_counted_rows_is_as_many_units(rng, n_resamples):
    """Each row twice, once in a group of each of two attributes: a row is a unit."""
    group, y, x = population(rng, 200)
    twice = np.tile(np.arange(200), 2)
    both = np.concatenate([group, 2 + (x > 0.3)])
    copies = rng.integers(1, 4, size=200)
    rules = [Decisions(chance=(x[twice] > cut).astype(float)) for cut in (0.0, 0.5)]
    options = {"n_groups": 4, "population": True, "n_resamples": n_resamples, "rng": 1}
    one = estimate_rules(
        parts(y[twice]), rules, both, count=copies[twice], cluster=twice, **options
    )
    whole = np.tile(np.repeat(np.arange(200), copies), 2)
    place = np.concatenate(
        [np.repeat(np.arange(200), copies), 200 + np.repeat(np.arange(200), copies)]
    )
    two = estimate_rules(
        parts(y[whole]),
        [Decisions(chance=rule.chance[place]) for rule in rules],
        both[place],
        cluster=np.tile(np.arange(copies.sum()), 2),
        **options,
    )
    assert one.n_units == two.n_units == copies.sum()
    np.testing.assert_array_equal(one.support, two.support)
    np.testing.assert_allclose(one.value, two.value, rtol=1e-12)
    np.testing.assert_allclose(one.covariance, two.covariance, atol=1e-15)
    if n_resamples:
        np.testing.assert_allclose(one.draws.value, two.draws.value, rtol=1e-9)


def test_counts_are_repeated_rows(rng):
    group, y, x = population(rng, 200)
    score = x.round(1)
    copies = rng.integers(1, 4, size=200)
    one = estimate_rules(
        parts(y),
        [cut_top_share(s, 0.3, count=copies) for s in (score, -score)],
        group,
        n_groups=2,
        count=copies,
    )
    whole = np.repeat(np.arange(200), copies)
    two = estimate_rules(
        parts(y[whole]),
        [cut_top_share(s[whole], 0.3) for s in (score, -score)],
        group[whole],
        n_groups=2,
    )
    np.testing.assert_allclose(one.value, two.value, rtol=1e-9)
    np.testing.assert_allclose(one.covariance, two.covariance, rtol=1e-9, atol=1e-15)
    assert one.n_units == two.n_units


def test_many_rules_are_each_as_in_a_pair(rng):
    group, y, x = population(rng)
    rules = [cut_top_share(x + rng.normal(size=len(x)), 0.25) for _ in range(4)]
    options = {"n_groups": 2, "population": True, "cluster": np.arange(len(x)) // 2}
    for extra in ({}, {"cluster": None}):
        many = estimate_rules(parts(y), rules, group, **(options | extra))
        pair = estimate_rules(parts(y), [rules[0], rules[3]], group, **(options | extra))
        np.testing.assert_allclose(many.value[:, [0, 3]], pair.value, rtol=1e-12)
        place = np.arange(many.value.size).reshape(many.value.shape)[:, [0, 3]].ravel()
        np.testing.assert_allclose(
            many.covariance[np.ix_(place, place)], pair.covariance, rtol=1e-9, atol=1e-15
        )


@pytest.mark.parametrize("clusters", [False, True])
def test_bootstrap_of_influence_has_its_covariance(rng, clusters):
    group, y, x = population(rng)
    rules = [cut_top_share(x.round(1), 0.3), cut_top_share(-x, 0.3)]
    found = estimate_rules(
        parts(y),
        rules,
        group,
        n_groups=2,
        cluster=np.arange(len(x)) // 2 if clusters else None,
        n_resamples=4000,
        rng=rng,
    )
    spread = np.cov(found.draws.value.T)
    np.testing.assert_allclose(
        np.sqrt(np.diag(spread)), np.sqrt(np.diag(found.covariance)), rtol=0.08
    )


def test_only_wanted_utilities_have_a_covariance(rng):
    group, y, x = population(rng)
    rules = [cut_top_share(x, 0.3), cut_top_share(-x, 0.3)]
    wanted = np.array([[False, False, True], [True, True, False]])
    some = estimate_rules(parts(y), rules, group, n_groups=2, population=True, wanted=wanted)
    whole = estimate_rules(parts(y), rules, group, n_groups=2, population=True)
    used = np.broadcast_to(wanted[:, None, :], some.value.shape).ravel()
    np.testing.assert_allclose(
        some.covariance[np.ix_(used, used)], whole.covariance[np.ix_(used, used)], rtol=1e-9
    )
    assert not some.covariance[~used].any()


def test_a_group_without_support_has_no_utility(rng):
    group, y, x = population(rng)
    found = estimate_rules(parts(y), [cut_top_share(x, 0.3)] * 2, group, n_groups=3)
    assert found.support[:, :, 2].max() == 0
    assert not found.value[:, :, 2].any()
    assert found.among([0, 1]).value.shape == (2, 2, 2)
    assert found.among([0, 1, 2]) is found


def test_the_share_has_no_variance(rng):
    group, y, x = population(rng)
    rules = [cut_top_share(s, 0.3) for s in (x.round(0), x)]
    found = estimate_rules(parts(y), rules, group, n_groups=2, population=True)
    place = found.position(1, 0, 2)
    assert found.value[1, 0, 2] == pytest.approx(0.3, abs=1e-12)
    assert found.covariance[place, place] == pytest.approx(0.0, abs=1e-20)


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
