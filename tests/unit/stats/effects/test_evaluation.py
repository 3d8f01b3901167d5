from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.stats.effects.corrections import effect_correction
from equipoise.stats.effects.effect_scores import effect_scores
from equipoise.stats.effects.evaluation import (
    ExperimentRows,
    correction_prices,
    crossfitted_amounts,
    policy_prices,
)
from equipoise.stats.effects.policy import PolicyRule, value_change
from equipoise.stats.influence import InfluenceSums


def experiment(rng, n=600, *, unit=None, count=None):
    group, stratum = rng.integers(3, size=n), rng.integers(2, size=n)
    treated = rng.random(n) < np.where(stratum == 1, 0.7, 0.3)
    effect = rng.normal(0.3, 1.0, n)
    y = treated * effect + stratum + rng.normal(size=n)
    count = np.ones(n) if count is None else count
    return ExperimentRows(
        outcome=y,
        predicted=effect + 0.6 * (group == 1),
        treated=treated,
        group=group,
        stratum=stratum,
        n_strata=2,
        chance=None,
        scores=effect_scores(y, treated, 2 * group + stratum, mass=count),
        rows=InfluenceSums(weight=np.ones(n), count=count, unit=unit),
    )


def test_personal_loss_changes_by_what_the_square_of_the_group_error_changes_by(rng):
    """For a shift there is no trade-off: row by row, with any score of the right mean."""
    gamma, f, c = rng.normal(0.4, 2.0, 500), rng.normal(0.7, 0.5, 500), 0.25
    personal = np.mean((gamma - f + c) ** 2 - (gamma - f) ** 2)
    b = np.mean(f - gamma)
    assert_allclose(personal, (b - c) ** 2 - b**2, rtol=1e-12)


def test_without_noise_prices_are_those_of_the_amounts():
    b, v, size = np.array([0.3, -0.1]), np.eye(2) * 1e-16, np.array([3.0, 1.0])
    none, full = correction_prices(b, v, weight=size, corrections=("none", "mean"), rng=0)
    square = 0.75 * 0.09 + 0.25 * 0.01
    assert_allclose([none.group_error, full.group_error], [np.sqrt(square), 0.0], atol=1e-6)
    assert_allclose([none.loss, full.loss], [0.0, -square], atol=1e-6)
    assert none.loss_se == 0.0
    # 2 sqrt(sum share^2 c^2 s^2), Gaussian errors of 1e-8.
    assert_allclose(full.loss_se, 2e-8 * np.sqrt(0.75**2 * 0.09 + 0.25**2 * 0.01), rtol=1e-4)


def test_the_order_of_groups_changes_no_price():
    b, s = np.array([0.3, -0.1, 0.05]), np.array([0.1, 0.2, 0.15])
    size, turned = np.array([5.0, 1.0, 2.0]), [2, 0, 1]
    rules = ("bayes_zero", "mean_if_detected")
    one = correction_prices(b, np.diag(s**2), weight=size, corrections=rules, rng=3)
    other = correction_prices(
        b[turned], np.diag(s[turned] ** 2), weight=size[turned], corrections=rules, rng=3
    )
    assert_allclose([p.loss for p in one], [p.loss for p in other], rtol=1e-12)


def test_amounts_come_from_the_other_parts(rng):
    rows = experiment(rng)
    dealt, part = rows.dealt(np.random.default_rng(0))
    assert dealt is rows
    assert np.bincount(part).tolist() == [60] * 10
    found = crossfitted_amounts(rows, part, measure="difference", corrections=("mean", "none"))
    assert not found["none"].any()
    for k in (0, 7):
        here = part != k
        for g in range(3):
            own = here & (rows.group == g)
            effect = 0.0
            for stratum in (0, 1):
                cell = own & (rows.stratum == stratum)
                means = [rows.outcome[cell & (rows.treated == arm)].mean() for arm in (1, 0)]
                effect += cell.sum() / own.sum() * (means[0] - means[1])
            amount = np.unique(found["mean"][(part == k) & (rows.group == g)])
            assert_allclose(amount, [rows.predicted[own].mean() - effect], rtol=1e-12)


def test_units_stay_together_and_copies_are_dealt_out(rng):
    unit = np.repeat(np.arange(150), 4)
    _, part = experiment(rng, unit=unit).dealt(np.random.default_rng(0))
    assert all(len(np.unique(part[unit == u])) == 1 for u in range(150))
    many = experiment(rng, count=np.full(600, 20.0))
    dealt, part = many.dealt(np.random.default_rng(0))
    assert dealt.rows.count.sum() == 12_000.0
    assert_allclose(dealt.scores.mass.sum(), 12_000.0)
    assert np.bincount(part, dealt.rows.count).min() > 1_000


def test_the_order_of_rows_changes_no_value(rng):
    rows = experiment(rng)
    turned = rng.permutation(600)
    columns = ("outcome", "predicted", "treated", "group", "stratum", "scores")
    other = replace(rows, **{name: getattr(rows, name)[turned] for name in columns})
    options = {"measure": "difference", "corrections": ("mean", "eb"), "budget": 0.4, "rng": 5}
    for one, two in zip(
        policy_prices(rows, **options).values(),
        policy_prices(other, **options).values(),
        strict=True,
    ):
        assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_the_value_of_a_rule_is_what_those_gain_whom_it_adds(rng):
    rows = experiment(rng)
    f, scores = rows.predicted, rows.scores
    before, after = (PolicyRule.of(f, rows.rows, threshold=c) for c in (0.5, 0.1))
    found = value_change(scores, rows.rows, before, after, cost=0.2)
    added = (f >= 0.1) & (f < 0.5)
    assert_allclose(found.estimate, np.sum((scores.score - 0.2) * added) / 600, rtol=1e-12)
    assert found.flipped == pytest.approx(added.mean())
    assert found.low < found.estimate < found.high
    same = value_change(scores, rows.rows, before, before)
    assert same == (0.0, 0.0, 0.0, 0.0)


def test_known_chances_of_treatment_weight_the_errors(rng):
    rows = experiment(rng)
    chance = np.where(rows.stratum == 1, 0.7, 0.3)
    known = replace(rows, stratum=np.zeros(600, dtype=int), n_strata=1, chance=chance)
    tested, (error, se) = known.errors(np.ones(600, dtype=bool), "difference")
    own = rows.group == 1
    weight = np.where(rows.treated, 1 / chance, 1 / (1 - chance))
    means = [
        np.average(
            rows.outcome[own & (rows.treated == arm)], weights=weight[own & (rows.treated == arm)]
        )
        for arm in (1, 0)
    ]
    assert tested.tolist() == [0, 1, 2]
    assert_allclose(error[1], rows.predicted[own].mean() - means[0] + means[1], rtol=1e-10)
    assert se.min() > 0.0
    assert effect_correction(error, se).amount.shape == (3,)
