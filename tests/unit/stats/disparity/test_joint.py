from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats

from equipoise.moments import CellMoments
from equipoise.stats.disparity.gaps import Target, Units, disparities
from equipoise.stats.disparity.joint import (
    _moments,
    _tables,
    equal_rates_test,
    joint_test,
    smallest_expected_count,
)
from equipoise.stats.disparity.row_roots import share_units
from equipoise.stats.pairs import Pairs
from oracles.disparity import GROUPS, TARGETS, influence_moments, moments_of, random_table
from simulate.disparity import lattice
from support.rates import assert_at_most, assert_rate

POPULATION = Target(kind="population")
FIRST = Target(kind="reference", cells=np.array([True, False, False]))


def counts(ones, n):
    ones, n = np.asarray(ones, dtype=float), np.asarray(n, dtype=float)
    product = np.stack([np.stack([ones, ones], 1), np.stack([ones, n], 1)], axis=1)
    return CellMoments(
        n=n.astype(int), total=np.stack([ones, n], 1), product=product, n_units=int(n.sum())
    )


def table(rng, cells, n=3000, binary=True):
    cell = rng.integers(cells, size=n)
    u = rng.binomial(1, 0.4, size=n).astype(float) if binary else rng.exponential(size=n)
    return u, np.ones(n), cell


def test_degrees_of_freedom_are_counted_from_atoms(rng):
    cells, groups = lattice((2, 3))
    u, w, cell = table(rng, 6)
    moments = moments_of(u, w, cell, 6)
    race = Target(kind="reference", cells=cells[:, 1] == 0)
    nested = np.stack([np.ones(6, bool), cells[:, 0] == 0, cells[:, 0] == 1], axis=1)
    cases = [
        (groups, POPULATION, 5),
        (groups, race, 5),
        (nested, Target(kind="known", value=0.4), 2),
        (np.eye(6, dtype=bool), POPULATION, 5),
        (np.eye(6, 3, dtype=bool), POPULATION, 3),
    ]
    for membership, target, df in cases:
        for method in ("auto", "el", "eel"):
            assert joint_test(moments, membership, target, binary=True, method=method).df == df


def test_duplicated_and_complementary_groups_add_no_hypothesis(rng):
    u, w, cell = random_table(rng, n=900, binary=True)
    moments = moments_of(u, w, cell, 6)
    once = joint_test(moments, GROUPS, POPULATION, binary=True)
    twice = joint_test(moments, np.hstack([GROUPS, GROUPS, ~GROUPS]), POPULATION, binary=True)
    assert once.df == twice.df
    np.testing.assert_allclose(once.statistic, twice.statistic, atol=1e-8)


def test_rest_and_population_are_the_same_hypothesis(rng):
    u, w, cell = random_table(rng, n=900, binary=True)
    moments = moments_of(u, w, cell, 6)
    a = joint_test(moments, GROUPS, POPULATION, binary=True)
    b = joint_test(moments, GROUPS, Target(kind="rest"), binary=True)
    assert a == b


def test_groups_equal_to_their_target_leave_nothing_to_test(rng):
    u, w, cell = table(rng, 3)
    moments = moments_of(u, w, cell, 3)
    found = joint_test(moments, np.ones((3, 1), dtype=bool), POPULATION, binary=True)
    assert (found.status, found.method, found.df, found.n_groups) == ("vacuous", "none", 0, 0)
    assert np.isnan(found.p_value)


def test_a_metric_that_is_defined_nowhere_leaves_nothing_to_test(rng):
    u, w, cell = table(rng, 3)
    found = joint_test(moments_of(0 * u, 0 * w, cell, 3), np.eye(3), POPULATION, binary=True)
    assert (found.status, found.n_atoms) == ("vacuous", 0)


def test_unused_groups_do_not_count(rng):
    u, w, cell = table(rng, 4)
    moments = moments_of(u, w, cell, 4)
    singles = disparities(moments, np.eye(4, dtype=bool), POPULATION, binary=True)
    use = np.array([True, True, False, True])
    singles = replace(singles, p_value=np.where(use, singles.p_value, np.nan))
    found = joint_test(moments, np.eye(4, dtype=bool), POPULATION, binary=True, found=singles)
    assert (found.df, found.n_groups) == (3, 3)


@pytest.mark.parametrize("kind", ["population", "reference", "known"])
def test_sparse_membership_gives_the_dense_answer(rng, kind, monkeypatch):
    u, w, cell = random_table(rng, n=900, binary=True)
    moments, target = moments_of(u, w, cell, 6), TARGETS[kind]
    thin = sparse.csc_array(GROUPS)
    for method in ("auto", "el", "eel", "plug_in"):
        dense = joint_test(moments, GROUPS, target, binary=True, method=method)
        monkeypatch.setattr("equipoise.stats.disparity.joint._DENSE", 0)
        found = joint_test(moments, thin, target, binary=True, method=method)
        monkeypatch.undo()
        assert found.df == dense.df
        np.testing.assert_allclose(found.statistic, dense.statistic, rtol=1e-9)


def test_score_and_euclidean_forms_agree_with_and_without_a_matrix(rng):
    """Saturated collections need no matrix; a cluster that spans cells does."""
    u, w, cell = table(rng, 5, n=400)
    groups = np.eye(5, dtype=bool)
    plain = moments_of(u, w, cell, 5)
    unit = np.arange(400)
    unit[1] = unit[0]
    spanning = moments_of(u, w, cell, 5, cluster=unit)
    for target in (
        POPULATION,
        Target(kind="known", value=0.4),
        Target(kind="external", value=0.4, se=0.05),
    ):
        rows = Units(u=u, w=w, cell=cell, unit=unit)
        a = joint_test(plain, groups, target, binary=False, method="eel")
        b = joint_test(spanning, groups, target, binary=False, method="eel", units=rows)
        assert a.df == b.df
        np.testing.assert_allclose(a.statistic, b.statistic, rtol=0.05)


def test_external_target_adds_its_variance(rng):
    u, w, cell = random_table(rng, n=900, binary=True)
    moments = moments_of(u, w, cell, 6)
    exact = joint_test(moments, GROUPS, Target(kind="known", value=0.4), binary=True, method="eel")
    loose = joint_test(
        moments, GROUPS, Target(kind="external", value=0.4, se=0.2), binary=True, method="eel"
    )
    sure = joint_test(
        moments, GROUPS, Target(kind="external", value=0.4, se=0.0), binary=True, method="eel"
    )
    assert loose.statistic < exact.statistic
    np.testing.assert_allclose(sure.statistic, exact.statistic)
    score = joint_test(moments, GROUPS, Target(kind="external", value=0.4, se=0.2), binary=True)
    assert score.method == "score"
    np.testing.assert_allclose(score.statistic, loose.statistic, rtol=0.2)


def test_many_groups_use_moments(rng):
    cells = 300
    u, w, cell = table(rng, cells, n=9000, binary=False)
    groups = np.eye(cells, dtype=bool)
    units = Units(u=u, w=w, cell=cell)
    moments = moments_of(u, w, cell, cells)
    found = joint_test(moments, groups, POPULATION, binary=False, method="el", units=units)
    assert found.method == "influence_eel"
    assert found.df == cells - 1


def test_null_outside_the_hull_falls_back_to_moments(rng):
    u, w, cell = table(rng, 3, n=90, binary=False)
    known = Target(kind="known", value=60.0)
    units = Units(u=u, w=w, cell=cell)
    found = joint_test(
        moments_of(u, w, cell, 3),
        np.eye(3, dtype=bool),
        known,
        binary=False,
        method="el",
        units=units,
    )
    assert (found.status, found.method) == ("hull", "influence_eel")
    assert 100 < found.statistic < np.inf


def test_constant_outcomes_are_no_evidence(rng):
    u, w, cell = table(rng, 4)
    moments = moments_of(np.ones_like(u), w, cell, 4)
    for groups in (np.eye(4, dtype=bool), np.array([[1, 1, 0, 0], [0, 1, 1, 0]], dtype=bool).T):
        for method in ("auto", "eel"):
            found = joint_test(moments, groups, POPULATION, binary=True, method=method)
            assert found.p_value == 1.0 or found.status == "vacuous"


@pytest.mark.parametrize("kind", ["population", "known"])
def test_rows_of_plain_means_factorise(rng, kind):
    u, w, cell = table(rng, 4, n=800, binary=False)
    moments, groups = moments_of(u, w, cell, 4), np.eye(4, dtype=bool)
    target = POPULATION if kind == "population" else Target(kind="known", value=1.0)
    rows = Units(u=u, w=w, cell=cell)
    each = Units(u=u, w=w, cell=cell, unit=np.arange(800))
    count = Units(u=u, w=w, cell=cell, count=np.ones(800))
    factored, dense, counted = (
        joint_test(moments, groups, target, binary=False, method="el", units=units)
        for units in (rows, each, count)
    )
    assert factored.method == {"population": "profile_el", "known": "el"}[kind]
    np.testing.assert_allclose(counted.statistic, factored.statistic, atol=1e-9)
    # Profile and influence-function likelihood agree to first order, with a known target exactly.
    np.testing.assert_allclose(
        dense.statistic, factored.statistic, atol=1e-8 if kind == "known" else 0.1
    )


def test_counted_clusters_are_summed(rng):
    u, w, cell = random_table(rng, n=300)
    count, unit = rng.integers(1, 4, size=300).astype(float), rng.integers(80, size=300)
    again = np.repeat(np.arange(300), count.astype(int))
    moments = moments_of(u, w, cell, 6, cluster=unit, count=count)
    a = Units(u=u, w=w, cell=cell, unit=unit, count=count)
    b = Units(u=u[again], w=w[again], cell=cell[again], unit=unit[again])
    found = [
        joint_test(moments, GROUPS, POPULATION, binary=False, method="el", units=x) for x in (a, b)
    ]
    np.testing.assert_allclose(found[0].statistic, found[1].statistic, atol=1e-9)


def test_structural_rank_is_the_rank_of_the_moments(rng):
    u, w, cell = random_table(rng, n=500)
    for target in (TARGETS["population"], TARGETS["reference"]):
        groups = np.hstack([GROUPS, ~GROUPS[:, :2], np.eye(6, dtype=bool)])
        z = influence_moments(u, w, cell, groups, target, 0.0)
        moments = moments_of(u, w, cell, 6)
        found = joint_test(moments, groups, target, binary=False, method="plug_in")
        assert found.df == np.linalg.matrix_rank(groups.astype(float))
        found = joint_test(moments, groups, target, binary=False, method="eel")
        assert found.df == np.linalg.matrix_rank(z, tol=1e-8)


def few_rows(rng, sizes):
    cell = np.repeat(np.arange(len(sizes)), sizes)
    return moments_of(rng.normal(size=len(cell)), np.ones(len(cell)), cell, len(sizes))


def test_a_partition_adds_the_squares_of_its_roots(rng):
    moments, groups = few_rows(rng, [12, 9, 20]), np.eye(3)
    singles = disparities(moments, groups, POPULATION, binary=False)
    found = joint_test(moments, groups, POPULATION, binary=False)
    share = np.array([12, 9, 20]) / 41
    assert (found.method, found.df) == ("sum_of_squares", 2)
    expected = np.sum((1 - share) * singles.root(0.0) ** 2)
    np.testing.assert_allclose(found.statistic, expected, rtol=1e-9)
    known = Target(kind="known", value=0.1)
    against = disparities(moments, groups, known, binary=False)
    found = joint_test(moments, groups, known, binary=False)
    np.testing.assert_allclose(found.statistic, np.sum(against.root(0.0) ** 2), rtol=1e-9)
    assert found.df == 3


def test_two_groups_have_the_p_value_of_their_difference(rng):
    for moments, binary in ((few_rows(rng, [8, 30]), False), (counts([3, 60], [9, 100]), True)):
        found = joint_test(moments, np.eye(2), POPULATION, binary=binary)
        singles = disparities(moments, np.eye(2), POPULATION, binary=binary)
        np.testing.assert_allclose(found.p_value, singles.p_value[0], rtol=1e-6)


def test_groups_without_enough_units_leave_bonferroni(rng):
    moments, groups = few_rows(rng, [12, 3, 20, 15]), np.eye(4)
    singles = disparities(moments, groups, POPULATION, binary=False)
    for method in ("auto", "el", "eel"):
        found = joint_test(moments, groups, POPULATION, binary=False, method=method)
        assert (found.method, found.df) == ("bonferroni", 3)
    found = joint_test(moments, groups, POPULATION, binary=False)
    assert found.p_value == pytest.approx(min(3 * np.nanmin(singles.p_value), 1.0))


@pytest.mark.parametrize("method", ["el", "eel"])
def test_groups_of_which_none_varies_leave_bonferroni(method):
    # Degrees of freedom come from variances inside groups, and there are none.
    moments = counts([0, 8, 0, 8], [8, 8, 8, 8])
    found = joint_test(moments, np.eye(4), POPULATION, binary=True, method=method)
    singles = disparities(moments, np.eye(4), POPULATION, binary=True, method=method)
    assert found.p_value == pytest.approx(min(1.0, 4 * singles.p_value.min()))


def test_overlapping_groups_have_one_quadratic_form_or_bonferroni(rng):
    groups = np.array([[1, 1, 0, 0], [0, 1, 1, 0]], dtype=bool).T
    many = joint_test(few_rows(rng, [40] * 4), groups, POPULATION, binary=False)
    few = joint_test(few_rows(rng, [12] * 4), groups, POPULATION, binary=False)
    assert (many.method, many.df, few.method) == ("roots", 2, "bonferroni")
    rare = joint_test(counts([1, 2, 0, 3], [20] * 4), groups, POPULATION, binary=True)
    assert rare.method == "bonferroni"
    external = Target(kind="external", value=0.0, se=0.1)
    assert joint_test(few_rows(rng, [40] * 4), np.eye(4), external, binary=False).method == "roots"


def test_rare_events_have_their_own_law_and_impossible_rates_the_smallest_p_value():
    rare = counts([1, 0, 1, 40, 40], [3, 3, 3, 2000, 2000])
    found = joint_test(rare, np.eye(5), POPULATION, binary=True)
    assert found.method == "enumeration"
    assert found.p_value > 1e-3
    assert joint_test(rare, np.eye(5), POPULATION, binary=True) == found
    beyond = joint_test(rare, np.eye(5), Target(kind="known", value=1.2), binary=True)
    assert beyond.method == "bonferroni"


def test_clusters_in_every_group_are_tested_jointly(rng):
    unit, cell = np.repeat(np.arange(15), 9), np.tile(np.repeat(np.arange(3), 3), 15)
    u, w = rng.normal(size=135) + rng.normal(size=15)[unit], np.ones(135)
    rows = Units(u=u, w=w, cell=cell, unit=unit)
    moments = moments_of(u, w, cell, 3, cluster=unit)
    found = joint_test(moments, np.eye(3), POPULATION, binary=False, units=rows)
    assert (found.method, found.df) == ("sum_of_squares", 2)
    named = joint_test(moments, np.eye(3)[:, 1:], FIRST, binary=False, units=rows)
    assert (named.method, named.df) == ("sum_of_squares", 2)
    hotelling = joint_test(moments, np.eye(3), POPULATION, binary=False, method="eel", units=rows)
    f = hotelling.statistic * (15 - 2) / (2 * 15)
    assert hotelling.p_value == pytest.approx(stats.f.sf(f, 2, 13))
    reference = share_units(moments, rows, np.eye(3)[:, 1:], FIRST)
    reference = replace(reference, shared=replace(reference.shared, reference=(("g", "0"),)))
    assert joint_test(reference, np.eye(3)[:, 1:], FIRST, binary=False).method == "bonferroni"


def array(*values):
    return np.array(values, dtype=float)


def test_enumeration_adds_up_the_tables_with_the_same_margins():
    ones, n = array(1, 4, 0), array(3, 8, 4)
    test = equal_rates_test(ones, n)
    total, every = 0.0, 0.0
    for a in range(4):
        for b in range(6):
            c = 5 - a - b
            if 0 <= c <= 4:
                chance = stats.multivariate_hypergeom.pmf([a, b, c], [3, 8, 4], 5)
                table = np.array([[a, b, c], [3 - a, 8 - b, 4 - c]])
                statistic = stats.chi2_contingency(table, correction=False).statistic
                every += chance
                total += chance * (statistic >= test.statistic - 1e-9)
    assert test.method == "enumeration"
    np.testing.assert_allclose([every, test.p_value], [1.0, total])
    assert test.df == 2


def test_a_known_rate_is_enumerated_without_margins():
    ones, n, rate = array(2, 0), array(2, 3), 0.2
    test = equal_rates_test(ones, n, rate=rate)
    x, y = np.meshgrid(np.arange(3), np.arange(4), indexing="ij")
    chance = np.outer(
        stats.binom.pmf(np.arange(3), 2, rate), stats.binom.pmf(np.arange(4), 3, rate)
    )
    value = (x - 0.4) ** 2 / 0.32 + (y - 0.6) ** 2 / 0.48
    np.testing.assert_allclose(test.statistic, 1.6**2 / 0.32 + 0.6**2 / 0.48)
    np.testing.assert_allclose(test.p_value, chance[value >= test.statistic - 1e-9].sum())
    assert test.df == 2


def test_two_samples_are_a_pair():
    test = equal_rates_test(array(9, 40), array(70, 150))
    pair = Pairs.of(array(40), array(150), array(9), array(70)).p_value(0.0)[0]
    np.testing.assert_allclose(test.p_value, pair, rtol=1e-9)
    assert (test.method, test.df) == ("pair", 1)


def test_one_sample_and_a_known_rate_are_binomial():
    test = equal_rates_test(array(5), array(94), rate=0.1)
    np.testing.assert_allclose(test.p_value, 2 * stats.binom.cdf(5, 94, 0.1))
    assert test.method == "binomial"


def test_without_variation_nothing_differs():
    for ones in (array(0, 0, 0), array(4, 5, 6)):
        assert equal_rates_test(ones, array(4, 5, 6)).p_value == 1.0


@pytest.mark.parametrize("rate", [None, 0.1])
def test_order_of_the_samples_does_not_matter(rate):
    rng = np.random.default_rng(3)
    n = rng.integers(3, 40, 30).astype(float)
    ones = rng.binomial(n.astype(int), 0.1).astype(float)
    first = equal_rates_test(ones, n, rate=rate)
    assert first.method == "monte_carlo"
    for order in (np.arange(30)[::-1], rng.permutation(30)):
        assert equal_rates_test(ones[order], n[order], rate=rate) == first


@pytest.mark.parametrize("rate", [None, 0.3])
def test_moments_are_those_of_the_enumerated_law(rate):
    n, total = array(3, 4, 5, 8), 6.0
    most = np.minimum(n, total) if rate is None else n
    chance, value = _tables(total, n, most, rate)
    chance = chance / chance.sum()
    mean = chance @ value
    np.testing.assert_allclose(
        _moments(total, n, rate), [mean, chance @ (value - mean) ** 2], rtol=1e-9
    )


def test_expected_counts_are_those_of_ones_or_zeros():
    np.testing.assert_allclose(smallest_expected_count(array(8, 9), array(10, 10)), 1.5)
    np.testing.assert_allclose(smallest_expected_count(array(8, 9), array(10, 20), 0.4), 4.0)


SPARSE = [
    ("five of 3 beside two of 2000", np.array([3.0] * 5 + [2000.0] * 2), 0.02, None),
    ("sizes 3 to 5000", np.round(np.geomspace(3, 5000, 100)), 0.005, None),
    ("sizes 3 to 20", np.round(np.linspace(3, 20, 100)), 0.03, None),
    ("sizes 3 to 20, known", np.round(np.linspace(3, 20, 100)), 0.03, 0.03),
]


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("n", "rate", "known"), [s[1:] for s in SPARSE], ids=[s[0] for s in SPARSE]
)
def test_size_of_the_joint_test_with_rare_events(n, rate, known, rng):
    # Chi-square rejected .252, .177, .080 and .153 of these.
    trials = 200
    ones = rng.binomial(n.astype(int), rate, (trials, len(n))).astype(float)
    hits = sum(equal_rates_test(row, n, rate=known).p_value <= 0.05 for row in ones)
    assert_at_most(hits, trials, 0.05)


@pytest.mark.calibration
@pytest.mark.parametrize("known", [False, True])
def test_size_with_thousands_of_samples(known, rng):
    n = rng.integers(3, 21, 6000)
    trials, rate = 1000, 0.003
    ones = rng.binomial(n, rate, (trials, len(n))).astype(float)
    tests = [equal_rates_test(row, n.astype(float), rate=rate if known else None) for row in ones]
    assert tests[0].method == "moments"
    assert_rate(sum(t.p_value <= 0.05 for t in tests), trials, 0.05)


@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_small_groups_are_tested_by_two_moments(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 9, 5001).astype(float)
    ones = rng.binomial(n.astype(int), 0.3).astype(float)
    many = equal_rates_test(ones, n)
    assert many.method == "moments"
    # With so many groups the chi-square law itself is near.
    assert many.p_value == pytest.approx(stats.chi2.sf(many.statistic, many.df), abs=0.06)
    ones[:200] = n[:200]
    assert equal_rates_test(ones, n).p_value < 1e-12
