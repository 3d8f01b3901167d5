"""Published and independently computed numbers for the improvability test."""

import numpy as np
import pandas as pd
import pytest

from equipoise.stats.improvement.capacity import select_top
from equipoise.stats.improvement.frontier import SplitEvidence, delta_curve
from equipoise.stats.improvement.test import (
    ImprovementQuestion,
    compare_utilities,
    p_value_curve,
)
from equipoise.stats.improvement.utilities import estimate_utilities

DIRECTION = [(1, 0)]


@pytest.fixture(scope="module")
def holdout(data_file):
    """Outcome, group (1 Black) and the top 482 by the deployed score and by the authors' lasso."""
    table = pd.read_csv(data_file("obermeyer_holdout_predictions.csv.gz"))
    decisions = np.column_stack(
        [select_top(table[name], 0.03) for name in ("risk_score_t", "gagne_sum_t_hat")]
    ).astype(float)
    y = table["gagne_sum_t"].to_numpy(float)
    return y, decisions, table["dem_race_black"].to_numpy()


def estimate(holdout, **options):
    y, decisions, group = holdout
    return estimate_utilities(
        (y[:, None] * decisions)[:, None], decisions[:, None], group, n_groups=2, **options
    )


@pytest.fixture(scope="module")
def estimates(holdout):
    return estimate(holdout, n_resamples=100_000, rng=7)


def test_holdout_utilities_are_those_of_the_authors_data(estimates):
    np.testing.assert_allclose(estimates.value[0], [[5.194, 6.611], [7.458, 7.496]], atol=5e-4)
    assert estimates.support[0].tolist() == [[387, 95], [345, 137]]


def test_printed_bootstrap_gives_the_p_values_of_an_independent_run(estimates):
    """Independent row bootstrap with a million resamples: .0019, .0000 and .068; normal .043."""
    paper = compare_utilities(
        estimates, directions=DIRECTION, question=ImprovementQuestion(method="paper")
    )
    assert paper.accuracy[0].p_value < 1e-4
    # Monte Carlo standard errors .00014 and .0008.
    assert paper.accuracy[1].p_value == pytest.approx(0.0019, abs=5e-4)
    assert paper.fairness[0].p_value == pytest.approx(0.068, abs=0.003)
    normal = compare_utilities(
        estimates,
        directions=DIRECTION,
        question=ImprovementQuestion(method="paper", inference="analytic"),
    )
    assert normal.fairness[0].p_value == pytest.approx(0.043, abs=5e-4)


def test_signed_statistic_rejects_where_the_squared_one_does_not(estimates):
    signed = compare_utilities(estimates, directions=DIRECTION, question=ImprovementQuestion())
    assert signed.fairness[0].p_value == pytest.approx(0.0145, abs=0.003)
    assert signed.p_value < 0.05
    # The basic bootstrap of the same contrast, with a million resamples, gave .0145.
    contrast = np.array([-1.0, 1.0, 1.0, -1.0])
    other = np.array([-1.0, 1.0, -1.0, 1.0])
    basic = [
        np.mean((estimates.draws.value - 2 * estimates.value.ravel()) @ c >= 0)
        for c in (contrast, other)
    ]
    assert max(basic) == pytest.approx(0.0145, abs=0.0015)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"groups": (1,)}, 0.056),
        ({"groups": (0, 1)}, 0.056),
        ({"groups": (0,)}, 0.365),
        ({"fairness": True}, 0.453),
    ],
)
def test_largest_deltas_of_the_single_split(estimates, target, expected):
    """The reference inverted the unstudentised bootstrap; studentising moves it by under .01."""
    curve = delta_curve(
        [SplitEvidence(estimates=estimates, directions=DIRECTION)],
        question=ImprovementQuestion(),
        **target,
    )
    assert curve.largest == pytest.approx(expected, abs=0.01)


def test_squared_p_value_is_not_monotone_in_delta(estimates):
    """.067 at delta = 0 and .010 at delta = .9 in the independent run."""
    p = p_value_curve(
        estimates,
        np.array([0.0, 0.9]),
        directions=DIRECTION,
        question=ImprovementQuestion(method="paper"),
        fairness=True,
    )
    assert p[0] == pytest.approx(0.068, abs=0.003)
    assert p[1] == pytest.approx(0.010, abs=0.002)


def test_bootstrap_agrees_with_resampling_rows(holdout, rng):
    y, decisions, group = holdout
    n = len(y)
    exact = estimate(holdout, n_resamples=20_000, rng=rng)
    active = np.flatnonzero(decisions.any(axis=1))
    naive = np.empty((1000, 4))
    for j in range(1000):
        drawn = rng.integers(n, size=n)
        drawn = drawn[np.isin(drawn, active)]
        for k, (t, g) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
            chosen = drawn[(decisions[drawn, t] == 1) & (group[drawn] == g)]
            naive[j, k] = y[chosen].mean()
    # A standard deviation from 1000 draws has a relative standard error of 2.2%.
    np.testing.assert_allclose(exact.draws.value.std(axis=0), naive.std(axis=0), rtol=0.1)
    np.testing.assert_allclose(
        exact.draws.value.mean(axis=0), naive.mean(axis=0), atol=5 * naive.std() / np.sqrt(1000)
    )
    np.testing.assert_allclose(np.corrcoef(exact.draws.value.T), np.corrcoef(naive.T), atol=0.12)
