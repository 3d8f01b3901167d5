"""How many pairs of groups in different grades are wrongly ordered, whatever the truth."""

import numpy as np
import pytest

from equipoise.stats.disparity.grades import ManyGroups, grade_groups
from support.rates import assert_at_least, assert_at_most

pytestmark = [pytest.mark.calibration, pytest.mark.slow]

LAWS = [
    "equal",
    "normal",
    "two values",
    "three values",
    "one apart",
    "heavy tails",
    "small ones low",
    "rare",
    "uniform",
]
REPS = {20: 200, 60: 100, 150: 50}


def true_rates(rng, law, n):
    """True rates of groups of n rows, under a named law."""
    size = len(n)
    rates = {
        "equal": np.full(size, 0.3),
        "normal": 0.3 + 0.04 * rng.normal(size=size),
        "two values": np.where(rng.random(size) < 0.5, 0.27, 0.33),
        "three values": rng.choice([0.3, 0.4, 0.6], size),
        "one apart": np.where(np.arange(size) == 0, 0.6, 0.3),
        "heavy tails": 0.3 + 0.02 * rng.standard_t(2, size=size),
        "small ones low": 0.3 + 0.05 * (np.log(n) - np.log(n).mean()),
        "rare": 0.02 * rng.gamma(2.0, 0.5, size=size),
        "uniform": rng.uniform(0.1, 0.9, size=size),
    }
    return np.clip(rates[law], 0.001, 0.99)


def wrong_share(grade, truth):
    """Share of the pairs in different grades whose true order is another, or a tie."""
    apart = grade[:, None] < grade[None, :]
    wrong = apart & (truth[:, None] <= truth[None, :])
    return wrong.sum() / apart.sum() if apart.any() else 0.0


def assert_share(shares, level):
    """The mean share is at most the level: half a hit for half of the pairs."""
    assert_at_most(round(float(np.sum(shares))), len(shares), level)


@pytest.mark.parametrize("groups", REPS)
@pytest.mark.parametrize("law", LAWS)
def test_few_pairs_of_rates_are_wrongly_ordered(rng, law, groups):
    shares = []
    for _ in range(REPS[groups]):
        n = np.round(np.exp(rng.normal(5.5, 1.0, groups))) + 30.0
        truth = true_rates(rng, law, n)
        seen = rng.binomial(n.astype(int), truth) / n
        shares.append(wrong_share(grade_groups(ManyGroups(value=seen, n=n)).grade, truth))
    assert_share(shares, 0.05)


@pytest.mark.parametrize("outcome", ["normal", "exponential", "lognormal"])
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_few_pairs_of_means_are_wrongly_ordered(rng, outcome, spread):
    shares = []
    for _ in range(100):
        n = rng.integers(30, 300, 40)
        truth = spread * rng.normal(size=40)
        rows = [
            getattr(rng, outcome)(size=size) + mean for size, mean in zip(n, truth, strict=True)
        ]
        groups = ManyGroups(
            value=np.array([own.mean() for own in rows]),
            n=n.astype(float),
            variance=np.array([own.var(ddof=1) / len(own) for own in rows]),
        )
        shares.append(wrong_share(grade_groups(groups).grade, truth))
    assert_share(shares, 0.05)


@pytest.mark.parametrize("groups", [20, 100])
@pytest.mark.parametrize("sd", [0.0, 0.02, 0.1])
def test_the_standard_deviation_of_true_rates_is_covered(rng, groups, sd):
    reps, covered = 600, 0
    for _ in range(reps):
        n = np.round(np.exp(rng.normal(5.5, 1.0, groups))) + 30.0
        truth = 0.4 + sd * rng.normal(size=groups)
        seen = rng.binomial(n.astype(int), np.clip(truth, 0.0, 1.0)) / n
        low, high = ManyGroups(value=seen, n=n).spread.confidence_interval()
        covered += low <= sd <= high
    assert_at_least(covered, reps, 0.95)
