import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.disparity.gap_sequence import BatchSums, gap_sequence
from oracles.over_time import conditional_factor
from oracles.over_time import e_process as naive_e_process

BETS = (0.1, 0.2, 0.4, 0.8, 1.6)
FIRST, SECOND = np.eye(2, 1, dtype=bool), np.eye(2, 1, -1, dtype=bool)


def watched(n, ones, reference=SECOND, **options):
    sums = BatchSums.of_counts(np.asarray(n, float), np.asarray(ones, float))
    return gap_sequence(sums, FIRST, reference, **options)


def test_observed_minus_expected_by_hand():
    # 3 of 10 against 2 of 30: expected 10 * 5 / 40 = 1.25, U = 1.75, w = 7.5.
    found = watched([[10, 30]], [[3, 2]])
    assert_allclose((found.score[0, 0], found.weight[0, 0]), (1.75, 7.5))
    assert_allclose(found.gap[0, 0], 0.3 - 2 / 30)
    population = watched([[10, 30]], [[3, 2]], population=True)
    assert_allclose(population.gap[0, 0], 0.3 - 5 / 40)
    assert_allclose(population.log_e, found.log_e)


def test_the_e_process_is_that_of_a_naive_second_implementation():
    n = [[4, 9], [1, 1], [12, 5], [6, 20]]
    ones = [[3, 2], [1, 0], [7, 1], [2, 8]]
    factors = [
        [conditional_factor(a, x, b, y, sign * beta) for sign in (1, -1) for beta in BETS]
        for (a, b), (x, y) in zip(n, ones, strict=True)
    ]
    assert_allclose(np.exp(watched(n, ones).log_e[:, 0]), naive_e_process(factors), rtol=1e-10)
    greater = [row[:5] for row in factors]
    one_sided = watched(n, ones, alternative="greater")
    assert_allclose(np.exp(one_sided.log_e[:, 0]), naive_e_process(greater), rtol=1e-10)


def mean_of_factors(sizes, rates, **options):
    """Mean of the e-values of one batch under given rates, by enumeration."""
    (n1, n2), (p1, p2) = sizes, rates
    counts = np.array(list(itertools.product(range(n1 + 1), range(n2 + 1))), dtype=float)
    # Every outcome is a replication of the same single batch.
    m = len(counts)
    sums = BatchSums.of_counts(np.tile([n1, n2], m)[None].astype(float), counts.reshape(1, -1))
    group = np.zeros((m, 2, m), dtype=bool)
    group[np.arange(m), 0, np.arange(m)] = True
    found = gap_sequence(
        sums,
        group.reshape(-1, m),
        options.pop("reference", group[:, ::-1].reshape(-1, m)),
        **options,
    )
    chance = stats.binom.pmf(counts[:, 0], n1, p1) * stats.binom.pmf(counts[:, 1], n2, p2)
    return chance @ np.exp(found.log_factor[0])


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.99])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 8)])
def test_without_a_gap_every_bet_has_mean_one(sizes, p):
    assert_allclose(mean_of_factors(sizes, (p, p)), 1.0, rtol=1e-9)


@pytest.mark.parametrize("sizes", [(1, 1), (4, 9), (10, 3)])
@pytest.mark.parametrize("margin", [0.05, 0.2])
def test_at_every_gap_within_the_margin_no_bet_has_a_mean_above_one(sizes, margin):
    largest = 0.0
    for p2 in np.linspace(0.0, 1.0, 21):
        for gap in np.linspace(-margin, margin, 5):
            if 0 <= p2 + gap <= 1:
                means = mean_of_factors(sizes, (p2 + gap, p2), margin=margin)
                largest = max(largest, means.max())
    assert 0.99 < largest <= 1 + 1e-9


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_against_a_known_value_no_bet_has_a_mean_above_one(margin):
    for p in (0.3 - margin, 0.3, 0.3 + margin):
        means = mean_of_factors((6, 1), (p, 0.5), reference=0.3, margin=margin)
        assert means.max() <= 1 + 1e-9


def test_the_margin_of_a_gap_to_everybody_is_larger_against_the_rest():
    # A share of 1/4: 3 points to everybody are 4 points to the rest.
    everybody = watched([[10, 30]], [[6, 9]], population=True, margin=0.03)
    rest = watched([[10, 30]], [[6, 9]], margin=0.04)
    assert_allclose(everybody.log_factor, rest.log_factor)


def test_a_side_beyond_what_is_possible_is_silent():
    found = watched([[10, 1]], [[9, 0]], reference=0.95, margin=0.1)
    assert (found.log_factor[0, 0, :5] == 0).all()
    assert (found.log_factor[0, 0, 5:] != 0).all()


def test_batches_without_a_side_do_not_count():
    whole = watched([[10, 30], [0, 40], [10, 30]], [[5, 9], [0, 3], [6, 7]])
    without = watched([[10, 30], [10, 30]], [[5, 9], [6, 7]])
    assert_allclose(whole.log_e[[0, 2]], without.log_e)
    assert_allclose(whole.gap[[0, 2]], without.gap)


def test_a_group_that_never_meets_its_reference_is_apart():
    found = watched([[10, 0], [0, 40]], [[5, 0], [0, 3]])
    assert found.status.tolist() == ["apart"]
    assert (found.log_e == 0).all()
    assert np.isnan(found.gap).all()


def test_a_constant_outcome_leaves_the_evidence_at_one():
    found = watched([[10, 20], [10, 20]], [[0, 0], [10, 20]])
    assert found.status.tolist() == ["constant"]
    assert_allclose(found.log_e, 0.0, atol=1e-12)


def test_the_interval_of_rates_waits_for_rows_and_outcomes():
    n = np.tile([30.0, 60.0], (4, 1))
    ones = np.tile([2.0, 20.0], (4, 1))
    assert watched(n, ones).shown[:, 0].tolist() == [False, False, True, True]


def test_the_variance_of_sato_is_right_on_average():
    # E V = Var U with V of Sato (1989) at the true gap, by enumeration of one batch.
    n1, n2, p1, p2 = 3, 5, 0.6, 0.35
    delta = p1 - p2
    mean_v = mean_u = square_u = 0.0
    for s1, s2 in itertools.product(range(n1 + 1), range(n2 + 1)):
        chance = stats.binom.pmf(s1, n1, p1) * stats.binom.pmf(s2, n2, p2)
        n = n1 + n2
        u = s1 - n1 * (s1 + s2) / n
        p = (n1**2 * s2 - n2**2 * s1 + n1 * n2 * (n2 - n1) / 2) / n**2
        q = (s1 * (n2 - s2) + s2 * (n1 - s1)) / (2 * n)
        mean_v += chance * (delta * p + q)
        mean_u += chance * u
        square_u += chance * u**2
    assert_allclose(mean_v, square_u - mean_u**2, rtol=1e-12)


def test_real_values_by_hand():
    # 50 rows a side set the scale; the next batch is tested with lambda = bets / sigma.
    x = np.concatenate([np.tile([0.0, 2.0], 50), [3.0, 1.0, 0.0, 2.0]])
    batch = np.repeat([0, 1], [100, 4])
    cell = np.concatenate([np.repeat([0, 1], 50), [0, 0, 1, 1]])
    sums = BatchSums.from_rows(x, batch, cell)
    found = gap_sequence(sums, FIRST, SECOND)
    v = 50 / 49
    sigma = np.sqrt(25**2 * (2 * v / 50) / 25)
    # Second batch: means 2 and 1, w = 1, U = 1, V = 2 / 2 + 2 / 2.
    slope = np.array([0.025, 0.05, 0.1]) / sigma
    factor = np.concatenate([slope - slope**2, -slope - slope**2])
    assert (found.log_factor[0] == 0).all()
    assert_allclose(found.log_factor[1, 0], factor)
    assert_allclose(found.log_e[1, 0], np.log(np.exp(factor).mean() / 2 + 1 / 2))
    assert_allclose(found.gap[1, 0], 1 / 26)


def test_a_side_of_one_row_takes_the_variance_of_the_batches_so_far():
    n, u = np.array([[60.0, 60.0], [1.0, 4.0]]), np.array([[0.0, 0.0], [1.0, 0.0]])
    uu = np.array([[118.0, 59.0], [1.0, 3.0]])
    sums = BatchSums(n=n, w=n, u=u, ww=n, uw=u, uu=uu, binary=False)
    found = gap_sequence(sums, FIRST, SECOND)
    # Variances 2 (from the first batch) and 3 / 3; w = 4 / 5.
    assert_allclose(found.variance[1, 0], 0.8**2 * (2.0 / 1 + 1.0 / 4))


def test_clusters_of_one_row_set_the_variance_of_their_squares(rng):
    x, cell = rng.normal(size=300), rng.integers(0, 2, size=300)
    batch = np.repeat([0, 1, 2], 100)
    own = BatchSums.from_rows(x, batch, cell, cluster=np.arange(300))
    found = gap_sequence(own, FIRST, SECOND)
    n = own.n
    w = n[:, 0] * n[:, 1] / n.sum(axis=1)
    direct = []
    for b in range(3):
        g, r = x[(batch == b) & (cell == 0)], x[(batch == b) & (cell == 1)]
        direct.append(w[b] ** 2 * (g.var(ddof=1) / len(g) + r.var(ddof=1) / len(r)))
    assert_allclose(found.variance[:, 0], direct, rtol=1e-9)


def test_a_cluster_in_every_batch_adds_up_before_it_is_squared():
    # Two clusters a side, the same in both batches: Z doubles, so the sum of squares is four times.
    x = np.tile([1.0, -1.0, 2.0, -2.0], 2)
    sums = BatchSums.from_rows(
        x, np.repeat([0, 1], 4), np.tile([0, 0, 1, 1], 2), cluster=np.tile([0, 1, 2, 3], 2)
    )
    found = gap_sequence(sums, FIRST, SECOND)
    # w = 1; Z = +-1/2, +-1, times the root of 2 / (2 - 1): sum of squares 5, then 20.
    assert_allclose(found.variance[:, 0], [5.0, 15.0])


def test_weights_may_be_scaled_by_any_number(rng):
    x, cell = rng.exponential(size=400), rng.integers(0, 2, size=400)
    batch, weight = np.repeat(np.arange(4), 100), rng.uniform(1, 5, size=400)
    one = gap_sequence(BatchSums.from_rows(x, batch, cell, weight=weight), FIRST, SECOND)
    ten = gap_sequence(BatchSums.from_rows(x, batch, cell, weight=10 * weight), FIRST, SECOND)
    assert_allclose(one.log_e, ten.log_e, rtol=1e-9, atol=1e-12)
    assert_allclose(one.interval(0.05), ten.interval(0.05), rtol=1e-9)


def test_real_values_before_the_scale_is_set_say_so():
    sums = BatchSums.from_rows([0.5, 1.5, 2.0, 0.0], [0, 0, 0, 0], [0, 0, 1, 1])
    found = gap_sequence(sums, FIRST, SECOND)
    assert found.status.tolist() == ["scale"]
    assert np.isnan(found.interval(0.05)).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: BatchSums.of_counts([[3.0]], [[4.0]]), InvalidParameterError, "between 0 and `n`"),
        (
            lambda: watched([[3, 3]], [[1, 1]], reference=FIRST),
            InvalidParameterError,
            "share cells",
        ),
        (lambda: watched([[3, 3]], [[1, 1]], margin=-1.0), InvalidParameterError, "margin"),
        (lambda: watched(np.zeros((0, 2)), np.zeros((0, 2))), DataError, "no batch yet"),
    ],
)
def test_bad_sums_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
