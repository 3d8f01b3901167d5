import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import equipoise as eq
from equipoise.design import effect_audit
from equipoise.exceptions import InvalidParameterError


def test_errors_by_hand():
    plan = effect_audit(4_000, share=[0.5, 0.3, 0.2], sd=2.0, treated=0.25, pred_sd=0.5)
    arms = 4.0 / (np.array([0.25, 0.75]) * 2_000)
    se = np.sqrt(arms.sum())
    # Welch's degrees of 500 and 1,500; a quarter of q^2 / 500 is what skewness costs.
    df = se**4 / (arms**2 / [499, 1499]).sum()
    q = stats.t.isf(0.05 / 6, df)
    at = q + q**2 / 2_000
    # A kurtosis of 2 is allowed for.
    doubt = (2 * arms**2 / [500, 1500]).sum() / se**4
    spread = np.sqrt(1 + at**2 * doubt / 4 / (1 + at**2 / (2 * df)))
    centre = at + (plan.error[0] / se - at) / spread
    assert_allclose(stats.nct.sf(at, df, centre), 0.8, rtol=1e-6)
    assert_allclose(plan.slope[0], plan.error[0] / 0.5)
    assert_allclose(plan.bias[0], plan.error[0] * np.sqrt(2.0), rtol=2e-3)
    assert "share 0.2: 800 rows" in str(plan)
    assert plan.slope is not None
    assert effect_audit(4_000, share=[0.5, 0.5], rate=0.2).slope is None


def test_arms_of_three_detect_nothing():
    plan = effect_audit(86, share=[0.93, 0.07], sd=1.0)
    assert plan.error[1] == plan.bias[1] == np.inf
    assert np.isfinite(plan.error[0])
    clusters = effect_audit(400, share=[0.5, 0.5], sd=1.0, design_effect=3.0, cluster_size=40.0)
    assert clusters.error == (np.inf, np.inf)


def test_an_audit_says_what_planning_said(rng):
    """The bias that an audit could have detected is the planned one."""
    n = 6_000
    table = {
        "g": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]),
        "t": rng.integers(2, size=n),
        "f": np.zeros(n),
        "y": rng.normal(size=n),
    }
    found = eq.Audit(
        table, group="g", y_true="y", treatment="t", effect_pred="f"
    ).treatment_effects(measure="difference", n_repeats=0)
    planned = effect_audit(n, share=[0.5, 0.3, 0.2], sd=1.0)
    assert_allclose(found.details["detectable"], planned.bias, rtol=0.08)


def test_twice_the_rows_at_a_design_effect_of_two_are_the_same():
    one = effect_audit(1_000, share=[0.5, 0.5], rate=0.3)
    two = effect_audit(2_000, share=[0.5, 0.5], rate=0.3, design_effect=2.0)
    assert_allclose(one.bias, two.bias)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": [0.5, 0.4], "rate": 0.3}, "add up to 1"),
        ({"share": [1.0], "rate": 0.3}, "`share` must"),
        ({"share": [0.5, 0.5]}, "either `rate`"),
        ({"share": [0.5, 0.5], "rate": 0.3, "sd": 1.0}, "either `rate`"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        effect_audit(100, **options)


def test_an_arm_of_hardly_one_unit_is_not_tested():
    assert np.isinf(effect_audit(12, share=[0.2, 0.8], sd=1.0, treated=0.5).error[0])
