import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats

from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.disparity.gaps import Target, Units, disparities, together
from equipoise.stats.disparity.means import MeanComparison
from equipoise.stats.disparity.references import compare
from equipoise.stats.disparity.row_roots import RowRoots
from equipoise.stats.small_samples import pooled_shape
from equipoise.stats.unit_sums import UnitSums
from oracles.disparity import GROUPS, TARGETS, moments_of, random_table


def counts(ones, n):
    ones, n = np.asarray(ones, dtype=float), np.asarray(n, dtype=float)
    product = np.stack([np.stack([ones, ones], 1), np.stack([ones, n], 1)], axis=1)
    return CellMoments(
        n=n.astype(int), total=np.stack([ones, n], 1), product=product, n_units=int(n.sum())
    )


def first_of(k):
    return np.eye(k, 1, dtype=bool)


REST = Target(kind="rest")


@pytest.mark.parametrize(
    ("ones", "n", "target", "method"),
    [
        ((3, 40), (10, 100), Target(kind="known", value=0.4), "exact_binomial"),
        ((3000, 40), (9000, 100), Target(kind="known", value=0.4), "exact_binomial"),
        ((30, 40), (90, 100), Target(kind="external", value=0.4, se=0.1), "saddlepoint"),
        ((3, 40), (10, 1000), REST, "exact_unconditional"),
        ((30, 10), (900, 30), Target(kind="population"), "exact_unconditional"),
        ((300, 400), (900, 1000), REST, "saddlepoint"),
        ((300, 400), (900, 1000), Target(kind="population"), "saddlepoint"),
    ],
)
def test_counts_are_tested_by_the_law_of_a_pair_of_rates(ones, n, target, method):
    found = disparities(counts(ones, n), first_of(2), target, binary=True)
    assert found.method.tolist() == [method]
    assert found.status.tolist() == ["ok"]
    assert found.units is None
    assert found.ci_low[0] < found.estimate[0] < found.ci_high[0]


def test_the_likelihood_of_an_external_rate_has_the_sign_of_the_gap():
    target = Target(kind="external", value=0.4, se=0.1)
    low, high = (
        disparities(counts([x, 40], [90, 100]), first_of(2), target, binary=True, method="el")
        for x in (20, 60)
    )
    assert low.p_less(0.0)[0] < 0.1
    assert low.p_greater(0.0)[0] > 0.9
    assert high.p_greater(0.0)[0] < 0.1
    assert high.p_less(0.0)[0] > 0.9


def test_the_law_of_a_rate_depends_on_rows_and_not_on_counts():
    methods = {
        str(disparities(counts([x, 40], [70, 150]), first_of(2), REST, binary=True).method[0])
        for x in range(71)
    }
    assert len(methods) == 1


def test_other_metrics_are_means_of_few_units_unless_a_likelihood_is_asked_for(rng):
    u, cell = rng.exponential(size=400), np.repeat([0, 1, 2], [60, 140, 200])
    w = np.ones(400)
    plain = Units(u=u, w=w, cell=cell)
    groups = np.eye(3, 2, dtype=bool)
    known = Target(kind="known", value=1.0)
    chosen = {
        ("rest", "auto"): "few_units",
        ("rest", "el"): "profile_el",
        ("known", "auto"): "few_units",
        ("known", "el"): "el",
        ("population", "auto"): "few_units",
        ("population", "el"): "influence_el",
        ("rest", "eel"): "influence_eel",
        ("rest", "plug_in"): "plug_in_el",
    }
    for (kind, method), expected in chosen.items():
        target = known if kind == "known" else Target(kind=kind)
        found = disparities(
            moments_of(u, w, cell, 3), groups, target, binary=False, method=method, units=plain
        )
        assert found.method.tolist() == [expected] * 2
    weighted = Units(u=2 * u, w=w + (cell == 1), cell=cell)
    moments = moments_of(weighted.u, weighted.w, cell, 3)
    found = disparities(moments, groups, REST, binary=False, method="el", units=weighted)
    assert found.method.tolist() == ["influence_el"] * 2
    found = disparities(moments_of(u, w, cell, 3), groups, REST, binary=False, method="plug_in")
    assert found.method.tolist() == ["plug_in_eel", "plug_in_eel"]


def test_means_of_independent_rows_against_the_rest_have_the_root_of_their_sums(rng):
    u, cell = rng.exponential(size=90), np.repeat([0, 1], [20, 70])
    found = disparities(moments_of(u, np.ones(90), cell, 2), np.eye(2), REST, binary=False)
    sums = UnitSums.from_rows(u, np.ones(90), cell)
    direct = MeanComparison.with_rest(sums, sums[::-1], pooled_shape(sums))
    np.testing.assert_allclose(found.root(0.1), direct.root(0.1), rtol=1e-9)
    np.testing.assert_allclose(found.interval(1.96)[0], direct.interval(1.96)[0], rtol=1e-9)
    assert found.units.n.tolist() == [20, 70]
    assert found.units.n_eff_target.tolist() == pytest.approx([70, 20])
    # Welch's standard error.
    variance = [x.var(ddof=1) / len(x) for x in (u[:20], u[20:])]
    np.testing.assert_allclose(found.se, np.sqrt(sum(variance)))


def test_clusters_of_several_groups_need_the_sums_of_every_group(rng):
    u, cell, unit = rng.normal(size=60), np.arange(60) % 2, np.arange(60) // 6
    moments = moments_of(u, np.ones(60), cell, 2, cluster=unit)
    with pytest.raises(InvalidParameterError, match="every group and what is outside"):
        disparities(moments, np.eye(2), REST, binary=False)
    rows = Units(u=u, w=np.ones(60), cell=cell, unit=unit)
    found = disparities(moments, np.eye(2), REST, binary=False, units=rows)
    # Each cluster is half of both groups: its difference is one value, n - 1 degrees of freedom.
    np.testing.assert_allclose(found.units.df, 9.0)


def test_groups_without_an_answer_say_why():
    n = np.array([0, 5, 40, 100])
    ones = np.array([0, 2, 20, 60])
    groups = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]], dtype=bool).T
    found = disparities(counts(ones, n), groups, Target(kind="population"), binary=True)
    assert found.status.tolist() == ["empty", "ok", "vacuous"]
    assert np.isnan(found.p_value).tolist() == [True, False, True]
    assert np.isnan(found.ci_low).tolist() == [True, False, True]
    moved = disparities(counts(ones, n), groups, Target(kind="population"), binary=True, null=0.1)
    assert moved.status.tolist() == ["empty", "ok", "impossible"]
    rest = disparities(counts(ones, n), groups, REST, binary=True)
    assert rest.status.tolist() == ["empty", "ok", "vacuous"]


def test_real_valued_groups_without_an_answer_say_why(rng):
    u = rng.normal(size=300)
    cell = np.repeat([0, 1, 2], [3, 97, 200])
    u[cell == 1] = 2.5
    units = Units(u=u, w=np.ones(300), cell=cell)
    moments = moments_of(u, np.ones(300), cell, 3)
    found = disparities(moments, np.eye(3, dtype=bool), REST, binary=False, units=units)
    # A group that happens not to vary has part of the variance of the others.
    assert found.status.tolist() == ["too_few_units", "ok", "ok"]
    constant = Target(kind="reference", cells=np.array([False, True, False]))
    found = disparities(moments, np.eye(3, dtype=bool), constant, binary=False, units=units)
    assert found.status.tolist() == ["too_few_units", "vacuous", "ok"]
    same = moments_of(np.ones(300), np.ones(300), cell, 3)
    found = disparities(same, np.eye(3, dtype=bool), REST, binary=False)
    assert found.status.tolist() == ["too_few_units", "degenerate", "degenerate"]
    zero = Target(kind="known", value=0.0)
    found = disparities(moments, np.eye(3, dtype=bool), zero, binary=False, scale="ratio")
    assert set(found.status) == {"degenerate"}


def test_few_clusters_are_too_small_however_many_rows(rng):
    u, cell = rng.normal(size=300), np.repeat([0, 1], [100, 200])
    unit = np.where(cell == 0, np.arange(300) % 3, 6 + np.arange(300) % 50)
    units = Units(u=u, w=np.ones(300), cell=cell, unit=unit)
    moments = moments_of(u, np.ones(300), cell, 2, cluster=unit)
    found = disparities(moments, np.eye(2, dtype=bool), REST, binary=False, units=units)
    assert found.status.tolist() == ["too_few_units", "too_few_units"]


def test_null_outside_the_data_is_not_a_p_value_of_zero(rng):
    """The paper's code returns p = 0 there, and flags groups of two people."""
    u, cell = rng.uniform(size=400), np.repeat([0, 1], [150, 250])
    units = Units(u=u, w=np.ones(400), cell=cell)
    moments = moments_of(u, np.ones(400), cell, 2)
    known = Target(kind="known", value=0.5)
    asked = {"binary": False, "units": units, "method": "el"}
    found = disparities(moments, first_of(2), known, null=0.9, **asked)
    assert found.status.tolist() == ["hull"]
    assert found.method.tolist() == ["influence_eel"]
    assert 0.0 < found.p_value[0] < 1e-6
    assert found.ci_low[0] < found.estimate[0] < found.ci_high[0]
    inside = disparities(moments, first_of(2), known, **asked)
    assert 0.0 < inside.p_less(0.9)[0] < 1e-6


@pytest.mark.parametrize(("ones", "n"), [(1, 1), (2, 2), (3, 3), (0, 2)])
def test_tiny_constant_groups_are_never_significant(ones, n):
    for target in (REST, Target(kind="population"), Target(kind="known", value=0.6)):
        found = disparities(counts([ones, 600], [n, 1000]), first_of(2), target, binary=True)
        assert found.p_value[0] > 0.05
        assert min(found.p_greater(0.0)[0], found.p_less(0.0)[0]) > 0.05


def test_plug_in_of_a_constant_group_has_no_p_value():
    found = disparities(
        counts([3, 600], [3, 1000]), first_of(2), REST, binary=True, method="plug_in"
    )
    assert found.status.tolist() == ["hull"]
    assert found.method.tolist() == ["none"]
    assert np.isnan(found.p_value[0])


def test_impossible_known_rates_keep_the_result_finite():
    target = Target(kind="known", value=0.95)
    found = disparities(counts([30, 1], [90, 2]), first_of(2), target, binary=True, null=0.1)
    assert found.p_value[0] < 1e-250
    assert np.isfinite(found.statistic[0])
    assert found.p_greater(0.1)[0] == 1.0
    # No rate is above 1, so that any is below 1.05.
    assert found.p_less(0.1)[0] < 1e-250


def test_euclidean_interval_of_a_small_group_is_the_quadratic_one(rng):
    u, cell = rng.exponential(size=500), np.repeat([0, 1], [60, 440])
    moments = moments_of(u, np.ones(500), cell, 2)
    target = Target(kind="known", value=0.8)
    found = disparities(moments, first_of(2), target, binary=False, method="eel")
    x, share, q = u[:60], 60 / 500, stats.f.isf(0.05, 1, 59)
    # n_G d^2 <= q (v + (1 - P) d^2).
    half = np.sqrt(q * x.var() / (60 - q * (1 - share)))
    np.testing.assert_allclose(found.ci_low[0], x.mean() - 0.8 - half, rtol=1e-9)
    np.testing.assert_allclose(found.ci_high[0], x.mean() - 0.8 + half, rtol=1e-9)


def test_likelihoods_have_the_f_law_of_their_units(rng):
    u, cell = rng.normal(size=60), np.repeat([0, 1], [12, 48])
    rows = Units(u=u, w=np.ones(60), cell=cell)
    moments = moments_of(u, np.ones(60), cell, 2)
    known = Target(kind="known", value=0.3)
    found = disparities(moments, first_of(2), known, binary=False, method="el", units=rows)
    every = RowRoots.of(rows, compare(moments, first_of(2), known), first_of(2), known)
    chi_square = every.root("el")(np.zeros(1), np.zeros(1, dtype=int), 1)
    np.testing.assert_allclose(
        found.p_value, stats.f.sf(chi_square**2, 1, found.units.df[0]), rtol=1e-9
    )
    assert found.units.df[0] == pytest.approx(11)


def test_corrected_interval_null_adds_the_other_side():
    found = disparities(counts([60, 400], [120, 1000]), first_of(2), REST, binary=True)
    low, high = -0.01, 0.02
    root = found.root(high)[0]
    expected = stats.norm.sf(root) + stats.norm.sf(root + (high - low) / found.se[0])
    np.testing.assert_allclose(found.p_outside(low, high)[0], expected)
    assert found.p_outside(0.05, 0.2)[0] == 1.0
    np.testing.assert_allclose(found.p_outside(0.0, 0.0), found.p_value, atol=1e-12)


def test_outside_a_margin_is_never_shown_sooner_than_any_gap():
    sizes = np.repeat([10, 20, 40], [11, 21, 41])
    events = np.concatenate([np.arange(11), np.arange(21), np.arange(41)])
    for value in (0.05, 0.15, 0.3):
        target = Target(kind="known", value=value)
        found = disparities(
            counts(events, sizes), np.eye(len(sizes), dtype=bool), target, binary=True
        )
        for margin in (0.01, 0.02, 0.05):
            assert (found.p_outside(-margin, margin) >= found.p_value).all()


@pytest.mark.parametrize(("n", "value", "margin"), [(20, 0.15, 0.01), (40, 0.1, 0.02)])
def test_outside_a_margin_holds_its_level_where_all_members_may_be_alike(n, value, margin):
    events = np.arange(n + 1)
    target = Target(kind="known", value=value)
    found = disparities(
        counts(events, [n] * (n + 1)), np.eye(n + 1, dtype=bool), target, binary=True
    )
    rejected = found.p_outside(-margin, margin) <= 0.05
    truths = np.linspace(value - margin, value + margin, 11)
    # Enumerated; with 20 rows, 0.15 and 0.01 it was 0.064.
    assert stats.binom.pmf(events, n, truths[:, None])[:, rejected].sum(axis=1).max() <= 0.05


def test_equivalence_is_the_larger_of_two_one_sided_tests():
    found = disparities(counts([500, 4900], [1000, 10000]), first_of(2), REST, binary=True)
    p = found.p_within(-0.05, 0.05)
    np.testing.assert_allclose(p, np.maximum(found.p_greater(-0.05), found.p_less(0.05)))
    low, high = found.interval(stats.norm.isf(0.05))
    assert (p[0] <= 0.05) == (low[0] > -0.05 and high[0] < 0.05)
    with pytest.raises(InvalidParameterError, match="must be in order"):
        found.p_within(0.1, -0.1)


def test_weight_of_the_plug_in_is_one_plus_the_ratio_of_variances():
    found = disparities(counts([1369, 505], [2174, 854]), first_of(2), REST, binary=True)
    p, q = 1369 / 2174, 505 / 854
    weight = 1 + (2174 / 854) * q * (1 - q) / (p * (1 - p))
    np.testing.assert_allclose(found.plug_in_weight, weight)
    np.testing.assert_allclose(found.plug_in_coverage(), stats.chi2.cdf(3.841459 / weight, 1))


def test_two_groups_and_many_cells_give_the_same_answer_sparse_or_dense(rng):
    y, w, cell = random_table(rng, n=600, binary=True)
    moments = moments_of(y, w, cell, 6)
    dense = disparities(moments, GROUPS, REST, binary=True)
    thin = disparities(moments, sparse.csc_array(GROUPS), REST, binary=True)
    np.testing.assert_array_equal(dense.p_value, thin.p_value)


def test_rows_with_a_denominator_are_counted(rng):
    y, cell = rng.binomial(1, 0.5, size=100).astype(float), rng.integers(2, size=100)
    w = rng.binomial(1, 0.7, size=100).astype(float)
    moments = moments_of(y * w, w, cell, 2)
    assert disparities(moments, first_of(2), REST, binary=True).n[0] == w[cell == 0].sum()
    weighted = moments_of(y * w, w, cell, 2, weight=rng.uniform(1, 2, size=100))
    assert compare(weighted, first_of(2), REST).n[0] == (cell == 0).sum()
    given = compare(weighted, first_of(2), REST, n=np.array([7, 9]))
    assert (given.n[0], given.n_target[0]) == (7, 9)


def test_rows_of_counted_clusters_equal_repeated_rows(rng):
    u, w, cell = random_table(rng, n=200)
    count = rng.integers(1, 4, size=200).astype(float)
    unit = rng.integers(60, size=200)
    again = np.repeat(np.arange(200), count.astype(int))
    for target in (TARGETS["population"], REST, Target(kind="external", value=1.0, se=0.1)):
        for clusters in (unit, None):
            one = Units(u=u, w=w, cell=cell, unit=clusters, count=count)
            many = Units(
                u=u[again],
                w=w[again],
                cell=cell[again],
                unit=None if clusters is None else clusters[again],
            )
            moments = moments_of(u, w, cell, 6, cluster=clusters, count=count)
            asked = {"binary": False, "method": "el"}
            a = disparities(moments, GROUPS, target, units=one, **asked)
            b = disparities(moments, GROUPS, target, units=many, **asked)
            np.testing.assert_allclose(a.statistic, b.statistic, atol=1e-8)


def test_ratio_below_zero_is_outside_every_hull(rng):
    u, cell = rng.exponential(size=400), np.repeat([0, 1], [150, 250])
    units = Units(u=u, w=np.ones(400), cell=cell)
    moments = moments_of(u, np.ones(400), cell, 2)
    found = disparities(
        moments, first_of(2), REST, binary=False, method="el", units=units, scale="ratio"
    )
    assert found.method.tolist() == ["profile_el"]
    assert 0.0 < found.p_greater(-0.5)[0] < 1e-6


def test_exact_comparison_covers_every_overlap(rng):
    """Small counts with the target around, inside, or partly over the group."""
    ones, n = np.array([2, 1, 60]), np.array([6, 5, 200])
    for cells in ([0, 1, 1], [0, 1, 0], [1, 1, 1], [0, 0, 1]):
        reference = Target(kind="reference", cells=np.array(cells, dtype=bool))
        group = np.array([[True], [True], [False]])
        for scale in ("difference", "ratio"):
            found = disparities(counts(ones, n), group, reference, binary=True, scale=scale)
            partly = cells == [0, 1, 1]
            assert found.method.tolist() == ["saddlepoint" if partly else "exact_unconditional"]
            assert found.ci_low[0] < found.estimate[0] < found.ci_high[0]
            level = 2 * stats.norm.sf(1.96)
            low, high = found.interval(1.96)
            for end in (low[0], high[0]):
                p = 2 * min(found.p_greater(end)[0], found.p_less(end)[0])
                assert p == pytest.approx(level, abs=1e-3) or end in (0.0, 1.0, -1.0)


def test_rare_events_in_large_samples_have_a_saddlepoint():
    found = disparities(counts([3, 4], [9000, 9500]), first_of(2), REST, binary=True)
    assert found.method.tolist() == ["saddlepoint"]
    assert found.p_greater(-0.4)[0] < 1e-250
    assert 0.5 < found.p_value[0] <= 1.0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "wald"}, "`method` must be one of"),
        ({"scale": "odds"}, "`scale` must be one of"),
        ({"confidence_level": 95}, r"must be in \(0, 1\); got 95. Pass 0.95"),
        ({"null": np.inf}, "`null` must be a finite number"),
    ],
)
def test_wrong_options_are_refused(options, match):
    with pytest.raises(InvalidParameterError, match=match):
        disparities(counts([3, 4], [9, 9]), first_of(2), REST, binary=True, **options)


def test_wrong_targets_and_shapes_are_refused():
    moments = counts([3, 4], [9, 9])
    with pytest.raises(InvalidParameterError, match="belongs to a target of kind 'reference'"):
        Target(kind="reference")
    with pytest.raises(InvalidParameterError, match="and only there"):
        Target(kind="rest", cells=np.array([True]))
    with pytest.raises(InvalidParameterError, match="one row for each of the 2 cells; got 3"):
        compare(moments, np.eye(3), REST)
    reference = Target(kind="reference", cells=np.array([True, False, False]))
    with pytest.raises(InvalidParameterError, match="one entry for each of the 2 cells"):
        compare(moments, first_of(2), reference)
    nobody = Target(kind="reference", cells=np.zeros(2, dtype=bool))
    with pytest.raises(InvalidParameterError, match="selects no rows"):
        compare(moments, first_of(2), nobody)


def test_independent_tests_are_adjusted_by_the_formula_of_sidak():
    p = np.array([0.01, 0.05, 0.4])
    adjusted, critical = together(p, np.eye(3), 0.95, rng=0)
    assert_allclose(adjusted, 1.0 - (1.0 - p) ** 3, atol=0.01)
    assert_allclose(critical, stats.norm.isf((1.0 - 0.95 ** (1 / 3)) / 2), atol=0.03)


def test_tests_of_one_thing_are_not_adjusted():
    p = np.array([0.01, 0.05])
    adjusted, critical = together(p, np.ones((2, 2)), 0.95, rng=0)
    assert np.all(adjusted >= p)
    assert_allclose(adjusted, p, atol=0.005)
    assert -1e-12 <= critical - stats.norm.isf(0.025) < 0.03
