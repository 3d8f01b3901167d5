"""Utilities of several rules by the influence of rows."""

import numpy as np
import pytest

from equipoise.stats.improvement.capacity import Decisions, cut_top_share
from equipoise.stats.improvement.rules import RowUtilities, estimate_rules
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
