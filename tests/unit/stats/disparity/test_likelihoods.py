import numpy as np
import pytest
from scipy import stats

from equipoise.stats.disparity.likelihoods import (
    Samples,
    joint_likelihood,
    likelihood,
    profile,
)


def at(values, mean):
    return likelihood(Samples.of_means(np.asarray(values, dtype=float)), np.array([float(mean)]))


def test_two_points_are_solved_by_hand():
    # Weights 1/4 and 3/4 give mean 3 to the values 0 and 4: -2 log(2/4 * 2 * 3/4).
    fit = at([0.0, 4.0], 3.0)
    np.testing.assert_allclose(fit.statistic, -2 * np.log((2 / 4) * (2 * 3 / 4)))
    weights = 1 / (2 * (1 + fit.multiplier * np.array([-3.0, 1.0])))
    np.testing.assert_allclose(weights, [0.25, 0.75])


def test_zero_outside_the_hull_is_infinite_and_constant_zero_is_no_evidence():
    assert np.isinf(at([1.0, 2.0, 3.0], 3.5).statistic)
    assert np.isinf(at([1.0, 2.0, 3.0], 3.0).statistic)
    assert at([2.0, 2.0], 2.0).statistic == 0.0


def test_hull_failure_of_one_sample_leaves_the_others_alone():
    both = Samples.of_means(np.array([1.0, 2.0]), np.array([0.0, 1.0, 5.0]))
    found = likelihood(both, np.array([9.0, 1.5])).statistic
    assert np.isinf(found[0])
    np.testing.assert_allclose(found[1], at([0.0, 1.0, 5.0], 1.5).statistic[0])


def test_counts_are_repeated_rows(rng):
    x, count = rng.normal(size=8), rng.integers(1, 5, size=8).astype(float)
    counted = Samples.of_means(x, count=count)
    repeated = np.repeat(x, count.astype(int))
    a = likelihood(counted, np.array([0.1]))
    b = likelihood(Samples.of_means(repeated), np.array([0.1]))
    np.testing.assert_allclose(a.statistic, b.statistic, atol=1e-9)
    np.testing.assert_allclose(a.gradient, b.gradient, atol=1e-7)


def test_derivatives_are_those_of_the_statistic(rng):
    samples = Samples.of_means(rng.exponential(size=30))
    for mean in (0.8, 1.4):
        step = 1e-5
        fits = [likelihood(samples, np.array([mean + d])) for d in (-step, 0.0, step)]
        slope = (fits[2].statistic - fits[0].statistic) / (2 * step)
        bend = (fits[2].gradient - fits[0].gradient) / (2 * step)
        np.testing.assert_allclose(fits[1].gradient, slope, rtol=1e-5)
        np.testing.assert_allclose(fits[1].curvature, bend, rtol=1e-4)


def test_a_start_nearby_changes_nothing(rng):
    samples = Samples.of_means(rng.normal(size=50))
    plain = likelihood(samples, np.array([0.2]))
    started = likelihood(samples, np.array([0.2]), multiplier=plain.multiplier * 0.8)
    np.testing.assert_allclose(started.statistic, plain.statistic, atol=1e-10)


def test_samples_without_a_common_mean_have_an_infinite_statistic():
    found = profile(Samples.of_means(np.array([1.0, 2.0]), np.array([3.0, 4.0])), np.zeros(2))
    assert np.isinf(found[0])
    assert np.isnan(found[1])


def test_profile_starts_inside_when_the_average_of_means_is_outside():
    # The precise second sample pulls the average below the range of the first.
    samples = Samples.of_means(np.array([10.0, 30.0]), np.linspace(0.0, 10.2, 400))
    statistic, mean = profile(samples, np.zeros(2))
    assert 10.0 < mean < 10.2
    assert np.isfinite(statistic)


def test_external_estimate_pulls_the_common_value():
    sample = Samples.of_means(np.array([0.0, 1.0, 2.0, 5.0]))
    tight = profile(sample, np.zeros(1), prior=(1.0, 1e-4))
    np.testing.assert_allclose(tight[0], at([0.0, 1.0, 2.0, 5.0], 1.0).statistic[0], atol=1e-6)
    loose = profile(sample, np.zeros(1), prior=(1.0, 1e4))
    np.testing.assert_allclose(loose, (0.0, 2.0), atol=1e-6)


def test_disjoint_moments_factorise(rng):
    x, y = rng.normal(size=30), rng.normal(0.2, 1.0, size=40)
    joint = joint_likelihood(np.concatenate([x, y]), np.array([0, 30]), np.eye(2))
    parts = at(x, 0.0).statistic + at(y, 0.0).statistic
    np.testing.assert_allclose(joint, parts[0], atol=1e-9)


def test_joint_statistic_does_not_depend_on_the_basis(rng):
    values, start = rng.normal(0.1, 1.0, size=60), np.array([0, 20, 40])
    directions = rng.normal(size=(3, 2))
    mixed = directions @ np.array([[1.0, 2.0], [0.5, -3.0]])
    count = np.ones(60)
    np.testing.assert_allclose(
        joint_likelihood(values, start, directions, count=count),
        joint_likelihood(values, start, mixed),
        atol=1e-9,
    )


@pytest.mark.parametrize("shift", [3.0, 50.0])
def test_joint_moments_outside_the_hull_are_infinite(rng, shift):
    z = np.abs(rng.normal(size=(30, 2))) + shift
    assert np.isinf(joint_likelihood(np.ones(30), np.arange(30), z))


def test_constant_joint_moments_are_outside_their_hull():
    z = np.tile([1.0, 2.0], (5, 1))
    assert np.isinf(joint_likelihood(np.ones(5), np.arange(5), z))


def test_full_steps_that_leave_the_domain_are_damped():
    # From zero the full Newton step is 8.9 / 1.99, which makes 1 + step x (-1) negative.
    values = np.append(np.full(99, 0.1), -1.0)
    found = joint_likelihood(values, np.array([0]), np.eye(1))
    weight = 1 / 11  # of the last row: 0.1 (1 - weight) = weight
    expected = -2 * (99 * np.log(100 * (1 - weight) / 99) + np.log(100 * weight))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_null_statistic_of_a_mean_is_chi_square(rng):
    n, reps = 200, 2000
    x = rng.normal(size=n * reps)
    samples = Samples(base=x, slope=-np.ones(n * reps), start=np.arange(reps) * n)
    found = likelihood(samples, np.zeros(reps)).statistic
    assert stats.kstest(found, stats.chi2(1).cdf).pvalue > 1e-3


def test_rows_that_occur_no_times_do_not_matter():
    """Atoms of zeros and ones, some of which have only one of the two: a random table."""
    ones, zeros = np.array([[3, 1], [0, 2], [4, 1], [2, 0], [1, 2], [5, 3]]).T
    values = np.tile([0.6, -0.4], 6)
    count = np.stack([ones, zeros], axis=1).ravel().astype(float)
    directions = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 1], [1, 1]]) * 1.0
    found = joint_likelihood(values, np.arange(0, 12, 2), directions, count=count)
    rows = np.repeat(np.arange(12), count.astype(int))
    atoms = rows // 2
    expected = joint_likelihood(values[rows], np.searchsorted(atoms, np.arange(6)), directions)
    assert found == pytest.approx(expected)
    assert np.isfinite(found)
