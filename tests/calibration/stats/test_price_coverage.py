"""Coverage of what a correction changes in the value of decisions, and of the personal loss."""

import numpy as np
import pytest
from scipy import special

from equipoise.stats.effects.effect_scores import effect_scores
from equipoise.stats.effects.evaluation import (
    ExperimentRows,
    correction_prices,
    crossfitted_amounts,
    policy_prices,
)
from equipoise.stats.influence import InfluenceSums
from support.rates import assert_rate

pytestmark = pytest.mark.calibration

SHIFT = np.array([0.0, 0.5, -0.3])
"""By how much predictions are too high in each group."""


def experiment(rng, n, *, cluster=False):
    unit = np.repeat(np.arange(n // 4), 4) if cluster else np.arange(n)
    group = rng.integers(3, size=unit.max() + 1)[unit]
    treated = (rng.random(unit.max() + 1) < 0.4)[unit]
    effect = rng.normal(0.2, 1.0, n)
    noise = rng.normal(size=n) + 0.5 * rng.normal(size=unit.max() + 1)[unit]
    y = treated * effect + noise
    return ExperimentRows(
        outcome=y,
        predicted=effect + SHIFT[group],
        treated=treated,
        group=group,
        stratum=np.zeros(n, dtype=int),
        n_strata=1,
        chance=None,
        scores=effect_scores(y, treated, group),
        rows=InfluenceSums(weight=np.ones(n), count=np.ones(n), unit=unit if cluster else None),
    )


def gain(group, amount):
    """Return E[effect; effect + shift - amount >= 0] of N(.2, 1) effects."""
    cut = amount - SHIFT[group] - 0.2
    return 0.2 * special.ndtr(-cut) + np.exp(-0.5 * cut**2) / np.sqrt(2 * np.pi)


@pytest.mark.parametrize("cluster", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_intervals_of_the_value_of_a_correction_cover(rng, cluster):
    trials, hits = 150, 0
    for k in range(trials):
        rows = experiment(rng, 1_200, cluster=cluster)
        seed = np.random.default_rng(k)
        found = policy_prices(
            rows, measure="difference", corrections=("mean",), threshold=0.0, rng=seed
        )["mean"]
        dealt, part = rows.dealt(np.random.default_rng(k))
        amounts = crossfitted_amounts(dealt, part, measure="difference", corrections=("mean",))
        truth = np.mean(gain(rows.group, amounts["mean"]) - gain(rows.group, 0.0))
        hits += found.low <= truth <= found.high
    assert_rate(hits, trials, 0.95)


def test_the_personal_loss_of_unseen_rows_is_estimated_without_bias(rng):
    b, se = np.array([0.1, -0.1, 0.0, 0.2]), 0.1
    share, found = np.full(4, 0.25), []
    for _ in range(400):
        seen = b + se * rng.standard_normal(4)
        (price,) = correction_prices(
            seen, np.eye(4) * se**2, corrections=("mean",), n_repeats=2, rng=rng
        )
        found.append(price.loss)
    # The full correction leaves the variance of nine parts of ten.
    truth = se**2 * 10 / 9 - share @ b**2
    assert abs(np.mean(found) - truth) < 4 * np.std(found) / np.sqrt(len(found))
