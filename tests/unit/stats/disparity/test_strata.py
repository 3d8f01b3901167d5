import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.disparity import mantel_haenszel
from equipoise.stats.disparity.mantel_haenszel import ChiSquare, PooledEstimate, StratumCounts
from equipoise.stats.disparity.strata import Strata, stratified_disparity_test
from equipoise.stats.pairs import Pairs


def counts(*tables):
    x1, n1, x0, n0 = np.array(tables, dtype=float).T
    return StratumCounts(x1=x1, n1=n1, x0=x0, n0=n0)


@pytest.fixture
def rows(rng):
    n = 300
    stratum, group = rng.integers(0, 8, n), rng.integers(0, 2, n)
    return rng.normal(size=n) + stratum - 0.3 * group, group, stratum


def test_estimates_by_hand():
    two = counts((3, 10, 10, 20), (5, 20, 4, 10))
    w = two.overlap_weights
    assert_allclose(w, [20 / 3, 20 / 3])
    assert_allclose(two.estimate(w, "difference"), ((0.3 - 0.5) + (0.25 - 0.4)) / 2)
    assert_allclose(two.estimate(w, "ratio"), (0.3 + 0.25) / (0.5 + 0.4))
    assert_allclose(two.shortfall, 10 * 13 / 30 - 3 + 20 * 9 / 30 - 5)


def test_matched_pairs_are_mcnemars_test():
    # 12 pairs with only the group, 5 with only the comparator, 20 with neither, 8 with both.
    pairs = [(1, 1, 0, 1)] * 12 + [(0, 1, 1, 1)] * 5 + [(0, 1, 0, 1)] * 20 + [(1, 1, 1, 1)] * 8
    c = counts(*pairs)
    assert_allclose(c.cochran_test().statistic, (12 - 5) ** 2 / (12 + 5))
    assert_allclose(c.root(0.0, c.overlap_weights, "difference") ** 2, 49 / 17)
    assert int(c.informative().sum()) == 17


def test_the_interval_agrees_with_the_test():
    c = counts((3, 10, 10, 20), (5, 20, 4, 10), (2, 7, 6, 9))
    w = c.overlap_weights
    for scale in ("difference", "ratio"):
        low, high = c.interval(1.959963984540054, w, scale)
        assert_allclose(abs(c.root(low, w, scale)), 1.959963984540054, rtol=1e-7)
        assert_allclose(abs(c.root(high, w, scale)), 1.959963984540054, rtol=1e-7)


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize("batch", [1, 5, 20_000])
def test_intervals_searched_together_are_those_searched_alone(rng, monkeypatch, scale, batch):
    monkeypatch.setattr(mantel_haenszel, "_BATCH", batch)
    tables = [counts((0, 20, 0, 10)), counts((0, 20, 3, 10), (0, 5, 1, 9))]
    for strata in (1, 2, 7, 30):
        n = rng.integers(1, 40, (strata, 2))
        x = rng.binomial(n, 0.3)
        tables.append(counts(*zip(x[:, 0], n[:, 0], x[:, 1], n[:, 1], strict=True)))
    weights = [one.overlap_weights for one in tables]
    low, high = mantel_haenszel.score_intervals(tables, weights, 1.96, scale)
    alone = [one.interval(1.96, w, scale) for one, w in zip(tables, weights, strict=True)]
    assert_allclose(np.stack([low, high], axis=1), alone, rtol=1e-9, atol=1e-9)


def test_strata_where_nothing_varies_add_no_evidence():
    c = counts((3, 10, 10, 20), (0, 20, 0, 10))
    alone = counts((3, 10, 10, 20))
    assert_allclose(c.cochran_test().statistic, alone.cochran_test().statistic)
    nothing = counts((0, 20, 0, 10))
    assert nothing.root(0.0, nothing.overlap_weights, "difference") == 0.0
    assert nothing.cochran_test().statistic == 0.0
    assert np.isnan(nothing.odds_ratio.value)
    assert np.isnan(nothing.ratio.value)
    assert nothing.exact_p_value() == 1.0


def test_sparse_strata_do_not_tell_whether_odds_ratios_differ():
    assert counts(*[(1, 2, 1, 2)] * 30).homogeneity_test() is None
    assert counts((30, 60, 20, 60)).homogeneity_test() is None


def test_pooled_estimates_have_intervals_on_their_scale():
    value = PooledEstimate(value=2.0, se=0.1, logarithm=True).confidence_interval()
    assert_allclose(np.log(value), np.log(2.0) + np.array([-1, 1]) * 1.959963984540054 * 0.1)
    assert ChiSquare(statistic=3.84, df=1).p_value < 0.0501
    assert np.isnan(ChiSquare(statistic=0.0, df=0).p_value)


def test_one_stratum_is_the_unconditional_pair():
    y = np.repeat([1, 0, 1, 0], [5, 43, 14, 46])
    group = np.repeat(["a", "b"], [48, 60])
    one = stratified_disparity_test(y, group, np.zeros(108), reference="b").comparisons[0]
    pair = Pairs.of(*(np.array([value]) for value in (5.0, 48.0, 14.0, 60.0)))
    assert one.single
    assert one.method == "one pair"
    assert_allclose(one.p_value, pair.p_value(0.0)[0], rtol=1e-9)
    assert_allclose(one.confidence_interval(), np.ravel(pair.interval(0.95)))


def test_strata_without_both_groups_are_counted_and_left_out(rows):
    y, group, stratum = rows
    more = (
        np.append(y, [5.0, 6.0, 7.0]),
        np.append(group, [1, 1, 0]),
        np.append(stratum, [20, 20, 21]),
    )
    plain = stratified_disparity_test(y, group, stratum, reference=0).comparisons[0]
    one = stratified_disparity_test(*more, reference=0).comparisons[0]
    assert_allclose(one.estimate, plain.estimate)
    assert_allclose(one.p_value, plain.p_value)
    assert len(one.sides.strata) == 8
    assert one.n_strata == 9
    assert one.sides.group_covered == group.sum() / (group.sum() + 2)
    assert one.sides.comparator_covered == (1 - group).sum() / ((1 - group).sum() + 1)


@pytest.mark.parametrize("weights", ["overlap", "group", "reference", "population"])
def test_weights_by_hand(rows, weights):
    y, group, stratum = rows
    one = stratified_disparity_test(y, group, stratum, reference=0, weights=weights)
    gaps, used = [], []
    for k in range(8):
        a, b = y[(stratum == k) & (group == 1)], y[(stratum == k) & (group == 0)]
        gaps.append(a.mean() - b.mean())
        choices = {
            "overlap": len(a) * len(b) / (len(a) + len(b)),
            "group": len(a),
            "reference": len(b),
            "population": len(a) + len(b),
        }
        used.append(choices[weights])
    assert_allclose(one.estimate[0], np.average(gaps, weights=used))


def test_the_variance_of_large_strata_is_that_of_separate_means(rows):
    y, group, stratum = rows
    sides = stratified_disparity_test(y, group, stratum, reference=0).comparisons[0].sides
    w = sides.weights("overlap")
    _, variance, degrees = sides.contrast(0.0, w, "difference")
    parts, spread = [], []
    for k in range(8):
        for g in (0, 1):
            cell = y[(stratum == k) & (group == g)]
            parts.append((w[k] / w.sum()) ** 2 * cell.var(ddof=1) / len(cell))
            spread.append(((w[k] / w.sum()) ** 2 / len(cell)) ** 2 / (len(cell) - 1))
    assert_allclose(variance, sum(parts))
    share = [(w[k] / w.sum()) ** 2 / sides.size[k, g] for k in range(8) for g in (0, 1)]
    assert_allclose(degrees, sum(share) ** 2 / sum(spread))


def test_lone_rows_are_measured_from_the_fit_of_their_stratum(rng):
    # A naive second implementation: the covariance of residuals under equal variances, as matrices.
    stratum, group = np.arange(32) % 10, rng.integers(0, 2, 32)
    y = rng.normal(size=32)
    sides = stratified_disparity_test(y, group, stratum, reference=0).comparisons[0].sides
    w = sides.weights("overlap")
    estimate, variance, degrees = sides.contrast(0.0, w, "difference")
    kept = np.isin(stratum, sides.strata)
    y, group, stratum = y[kept], group[kept], stratum[kept]
    n = len(y)
    slope, residual = np.zeros(n), np.zeros((n, n))
    for position, k in enumerate(sides.strata):
        inside = stratum == k
        cells = [np.flatnonzero(inside & (group == g)) for g in (0, 1)]
        share = w[position] / w.sum()
        for g, sign in ((0, -1.0), (1, 1.0)):
            slope[cells[g]] = sign * share / len(cells[g])
    for k in sides.strata:
        cells = [np.flatnonzero((stratum == k) & (group == g)) for g in (0, 1)]
        if min(len(cell) for cell in cells) >= 2:
            for cell in cells:
                m = len(cell)
                block = (np.eye(m) - 1 / m) * np.sqrt(m / (m - 1))
                residual[np.ix_(cell, cell)] = block
        else:
            cell = np.concatenate(cells)
            m = len(cell)
            shift = (group[cell] - group[cell].mean())[:, None] * slope
            centred = np.zeros((m, n))
            centred[:, cell] = np.eye(m) - 1 / m
            residual[cell] = (centred - shift) * np.sqrt(m / (m - 1))
    loading = slope[:, None] * residual
    gram = loading @ loading.T
    raw = float(((loading @ y) ** 2).sum())
    assert_allclose(estimate, slope @ y)
    assert_allclose(variance, raw * (slope @ slope) / np.trace(gram))
    assert_allclose(degrees, np.trace(gram) ** 2 / (gram**2).sum())


@pytest.mark.parametrize("scale", ["difference", "ratio"])
def test_weights_of_one_and_clusters_of_one_row_change_nothing(rng, scale):
    stratum, group = rng.integers(0, 30, 120), rng.integers(0, 2, 120)
    y = rng.exponential(size=120) + 0.5
    plain = stratified_disparity_test(y, group, stratum, reference=0, scale=scale).comparisons[0]
    for unit in ({"weight": np.ones(120)}, {"cluster": np.arange(120)}):
        test = stratified_disparity_test(y, group, stratum, reference=0, scale=scale, **unit)
        assert_allclose(test.comparisons[0].p_value, plain.p_value, rtol=1e-8)
        ends = test.comparisons[0].confidence_interval()
        assert_allclose(ends, plain.confidence_interval(), rtol=1e-7)


def test_many_units_skip_the_correlation_of_residuals_only(rng, monkeypatch):
    stratum, group, cluster = rng.integers(0, 6, 400), rng.integers(0, 2, 400), np.arange(400) // 2
    y = rng.normal(size=400)
    exact = stratified_disparity_test(y, group, stratum, reference=0, cluster=cluster)
    monkeypatch.setattr("equipoise.stats.disparity.strata._DENSE_UNITS", 10)
    quick = stratified_disparity_test(y, group, stratum, reference=0, cluster=cluster)
    assert_allclose(quick.p_values(), exact.p_values(), rtol=1e-2)


def test_several_groups_have_one_joint_test(rng):
    y, group, stratum = rng.random(300) < 0.4, rng.integers(0, 3, 300), rng.integers(0, 5, 300)
    rest = stratified_disparity_test(y, group, stratum)
    named = stratified_disparity_test(y, group, stratum, reference=2)
    assert len(rest.comparisons) == 3
    assert len(named.comparisons) == 2
    assert_allclose(rest.p_value, named.p_value)
    assert rest.joint.df == 2
    assert_allclose(rest.statistic, rest.joint.statistic)


def test_the_joint_test_with_clusters_of_one_row_is_close_to_the_one_given_margins(rng):
    y, group, stratum = rng.normal(size=600), rng.integers(0, 3, 600), rng.integers(0, 5, 600)
    plain = Strata.from_rows(y, group, stratum).joint_test()
    units = Strata.from_rows(y, group, stratum, cluster=np.arange(600)).joint_test()
    assert_allclose(units.statistic, plain.statistic, rtol=0.15)


def test_text_says_how_many_have_a_comparator(rows):
    y, group, stratum = rows
    text = str(stratified_disparity_test(y, group, stratum, reference=0))
    assert "100% of the group has a comparator in 8 of 8 strata" in text


def test_several_factors_make_strata_of_their_combinations(rows):
    y, group, stratum = rows
    one = stratified_disparity_test(y, group, stratum, reference=0)
    two = stratified_disparity_test(y, group, [stratum // 2, stratum % 2], reference=0)
    assert_allclose(two.p_values(), one.p_values())


def test_a_group_without_comparators_is_named():
    y = np.array([1, 0, 1, 0, 1, 1, 0, 0, 1, 0])
    group = np.array(["a"] * 4 + ["b"] * 4 + ["c"] * 2)
    stratum = np.array([0, 0, 1, 1, 0, 0, 1, 1, 2, 2])
    test = stratified_disparity_test(y, group, stratum, reference="a")
    assert test.without_comparator == ("c",)
    assert "no stratum has a comparator of 'c'" in str(test)


def test_what_cannot_be_compared_is_refused(rows):
    y, group, stratum = rows
    with pytest.raises(GroupTooSmallError, match="No stratum has rows of both groups"):
        stratified_disparity_test(y, group, group)
    with pytest.raises(InvalidParameterError, match="one of the groups '0', '1'; got 'x'"):
        stratified_disparity_test(y, group, stratum, reference="x")
    with pytest.raises(InvalidParameterError, match="one entry for each row"):
        stratified_disparity_test(y, group[:5], stratum)
    with pytest.raises(InvalidParameterError, match="`weights` must be one of"):
        stratified_disparity_test(y, group, stratum, weights="att").p_values()
    with pytest.raises(GroupTooSmallError, match="a comparison needs 4"):
        stratified_disparity_test(y, group, stratum, cluster=np.arange(300) // 100)


def test_a_ratio_to_a_mean_of_zero_is_undefined():
    c = counts((3, 10, 0, 20))
    assert np.isnan(c.estimate(c.overlap_weights, "ratio"))
    low, high = c.interval(1.96, c.overlap_weights, "ratio")
    assert low > 0.0
    assert high == np.inf


def test_a_pooled_difference_has_a_symmetric_interval_and_a_ratio_one_by_logarithms():
    reach = 1.959963984540054
    low, high = PooledEstimate(value=0.1, se=0.05, logarithm=False).confidence_interval()
    np.testing.assert_allclose([low, high], [0.1 - 0.05 * reach, 0.1 + 0.05 * reach])
    low, high = PooledEstimate(value=2.0, se=0.5, logarithm=True).confidence_interval()
    np.testing.assert_allclose([low, high], 2.0 * np.exp([-0.5 * reach, 0.5 * reach]))
