import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.moments import linear_covariance
from equipoise.stats.disparity.extremes import compare_means_with_extreme
from equipoise.stats.disparity.gaps import Target
from equipoise.stats.disparity.survey import (
    DesignMeans,
    design_degrees,
    design_of_rows,
    survey_disparities,
    survey_means,
    survey_moments,
)


def test_the_variance_of_a_stratified_total_by_hand():
    # Stratum one has units 1, 3; stratum two has 2, 2, 5.
    y, strata = np.array([1.0, 3.0, 2.0, 2.0, 5.0]), np.array([0, 0, 1, 1, 1])
    moments = survey_moments(y, np.zeros(5, dtype=int), strata=strata)
    # n/(n-1) sum (t - mean)^2: 2 * 2 and 3/2 * 6.
    assert_allclose(moments.product[0, 0, 0], 4.0 + 9.0)
    finite = survey_moments(
        y, np.zeros(5, dtype=int), strata=strata, population=np.array([4, 4, 3, 3, 3])
    )
    assert_allclose(finite.product[0, 0, 0], 0.5 * 4.0 + 0.0 * 9.0)


def test_units_are_summed_before_they_are_compared():
    y, strata, unit = np.arange(6.0), np.zeros(6), np.array([0, 0, 1, 1, 2, 2])
    summed = survey_moments(y, np.zeros(6, dtype=int), strata=strata, cluster=unit)
    direct = survey_moments(np.array([1.0, 5.0, 9.0]), np.zeros(3, dtype=int), strata=np.zeros(3))
    assert_allclose(summed.product, direct.product)
    assert design_degrees(strata, unit) == 2
    assert design_degrees(np.array([0, 0, 1, 1])) == 2


def test_cells_of_one_stratum_covary(rng):
    y, strata, cell = rng.normal(size=30), np.repeat([0, 1, 2], 10), rng.integers(0, 4, 30)
    moments = survey_moments(y, cell, strata=strata)
    total = linear_covariance(moments, [np.ones((4, 1))])
    assert_allclose(
        total, sum(10 / 9 * ((part - part.mean()) ** 2).sum() for part in y.reshape(3, 10))
    )


def test_a_far_mean_loses_no_digits(rng):
    y, strata, group = rng.normal(size=60), np.arange(60) // 12, np.arange(60) % 2
    near = survey_means(y, group, strata=strata)
    far = survey_means(y + 1e8, group, strata=strata)
    assert_allclose(far.covariance, near.covariance, rtol=1e-6)
    assert_allclose(far.value - 1e8, near.value, atol=1e-6)


def test_a_stratum_of_one_unit_is_an_error_unless_asked():
    rows = {"y": np.arange(5.0), "category": np.array([0, 1, 0, 1, 0])}
    strata = np.array([0, 0, 0, 0, 1])
    with pytest.raises(GroupTooSmallError, match="1 strata of the design have a single unit"):
        survey_means(**rows, strata=strata)
    certain = survey_means(**rows, strata=strata, lonely="certainty")
    adjusted = survey_means(**rows, strata=strata, lonely="adjust")
    assert (np.diag(adjusted.covariance) >= np.diag(certain.covariance)).all()


def test_a_population_smaller_than_the_sample_is_refused():
    with pytest.raises(InvalidParameterError, match="5 units of a population of 4"):
        survey_moments(
            np.arange(5.0), np.zeros(5, dtype=int), strata=np.zeros(5), population=np.full(5, 4.0)
        )


def test_pairs_of_a_survey_have_students_law_on_the_degrees_of_the_design(rng):
    y, strata, group = rng.exponential(size=60) + 1.0, np.arange(60) // 12, np.arange(60) % 2
    means = survey_means(y, group, strata=strata)
    pair = means.pairs(np.array([0]), np.array([1]), "difference")
    t = (means.value[0] - means.value[1]) / np.sqrt(np.array([1, -1]) @ means.covariance @ [1, -1])
    assert_allclose(2 * stats.norm.sf(abs(pair.root(np.zeros(1)))), 2 * stats.t.sf(abs(t), 55))
    for scale in ("difference", "ratio"):
        pair = means.pairs(np.array([0]), np.array([1]), scale)
        for end in pair.interval(1.96):
            assert_allclose(np.abs(pair.root(end)), 1.96, rtol=1e-7)


@pytest.mark.parametrize(("scale", "null"), [("difference", 0.0), ("ratio", 1.0)])
def test_the_p_value_of_a_survey_is_where_its_interval_ends(rng, scale, null):
    group, strata = np.arange(120) % 2, np.repeat(np.arange(3), 40)
    y = rng.normal(3.0, 1.0, size=120) + strata + 0.3 * group
    design = design_of_rows(y, np.ones(120), group, strata=strata, cluster=np.arange(120))
    options = {"scale": scale, "confidence_level": 0.9}
    found = survey_disparities(design, np.eye(2, dtype=bool)[:, 1:], Target(kind="rest"), **options)
    level = 1.0 - float(found.p_value[0])
    options["confidence_level"] = level
    at = survey_disparities(design, np.eye(2, dtype=bool)[:, 1:], Target(kind="rest"), **options)
    end = at.ci_low[0] if found.estimate[0] > null else at.ci_high[0]
    assert_allclose(end, null, atol=1e-9)
    assert found.ci_low[0] < found.estimate[0] < found.ci_high[0]


def test_a_survey_is_compared_with_its_highest_category(rng):
    y, strata, group = rng.exponential(size=90) + 1.0, np.arange(90) // 15, np.arange(90) % 3
    compared = compare_means_with_extreme(survey_means(y, group, strata=strata))
    low, high = compared.confidence_interval()
    assert ((low <= compared.estimate) & (compared.estimate <= high + 1e-12)).all()
    assert 0.0 < compared.p_value <= 1.0


@pytest.mark.parametrize("scale", ["difference", "ratio"])
def test_of_means_without_variance_nothing_is_known(scale):
    means = DesignMeans(
        value=np.array([1.0, 0.5]), covariance=np.zeros((2, 2)), df=9, n=np.array([10, 10])
    )
    pair = means.pairs(np.array([0]), np.array([1]), scale)
    assert pair.root(np.array([1.0])).tolist() == [0.0]
    assert pair.interval(1.96)[1].tolist() == [np.inf]


def test_a_group_without_weight_is_empty_and_not_only_few(rng):
    group, strata = np.arange(60) % 3, np.arange(60) // 12
    weight = np.where(group == 2, 0.0, 1.0)
    y = rng.normal(size=60) * weight
    design = design_of_rows(y, weight, group, strata=strata, cluster=np.arange(60))
    found = survey_disparities(design, np.eye(3, dtype=bool), Target(kind="known", value=0.1))
    assert found.status.tolist() == ["ok", "ok", "empty"]
