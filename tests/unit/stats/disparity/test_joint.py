import numpy as np
import pytest
from scipy import sparse

from equipoise.stats.disparity.gaps import Target, Units, joint_test
from oracles.disparity import GROUPS, TARGETS, influence_moments, moments_of, random_table
from simulate.disparity import lattice

POPULATION = Target(kind="population")


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
    use = np.array([True, True, False, True])
    found = joint_test(moments, np.eye(4, dtype=bool), POPULATION, binary=True, use=use)
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
        a = joint_test(plain, groups, target, binary=False, method="eel")
        b = joint_test(spanning, groups, target, binary=False, method="eel")
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
    found = joint_test(moments_of(u, w, cell, cells), groups, POPULATION, binary=False, units=units)
    assert found.method == "influence_eel"
    assert found.df == cells - 1


def test_null_outside_the_hull_falls_back_to_moments(rng):
    u, w, cell = table(rng, 3, n=90, binary=False)
    known = Target(kind="known", value=60.0)
    units = Units(u=u, w=w, cell=cell)
    found = joint_test(
        moments_of(u, w, cell, 3), np.eye(3, dtype=bool), known, binary=False, units=units
    )
    assert (found.status, found.method) == ("hull", "influence_eel")
    assert 100 < found.statistic < np.inf


def test_constant_outcomes_are_no_evidence(rng):
    u, w, cell = table(rng, 4)
    moments = moments_of(np.ones_like(u), w, cell, 4)
    for groups in (np.eye(4, dtype=bool), np.array([[1, 1, 0, 0], [0, 1, 1, 0]], dtype=bool).T):
        for method in ("auto", "eel"):
            found = joint_test(moments, groups, POPULATION, binary=True, method=method)
            np.testing.assert_allclose(found.statistic, 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["population", "known"])
def test_rows_of_plain_means_factorise(rng, kind):
    u, w, cell = table(rng, 4, n=800, binary=False)
    moments, groups = moments_of(u, w, cell, 4), np.eye(4, dtype=bool)
    target = POPULATION if kind == "population" else Target(kind="known", value=1.0)
    rows = Units(u=u, w=w, cell=cell)
    each = Units(u=u, w=w, cell=cell, unit=np.arange(800))
    count = Units(u=u, w=w, cell=cell, count=np.ones(800))
    factored = joint_test(moments, groups, target, binary=False, units=rows)
    dense = joint_test(moments, groups, target, binary=False, units=each)
    counted = joint_test(moments, groups, target, binary=False, units=count)
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
    found = [joint_test(moments, GROUPS, POPULATION, binary=False, units=x) for x in (a, b)]
    np.testing.assert_allclose(found[0].statistic, found[1].statistic, atol=1e-9)


def test_structural_rank_is_the_rank_of_the_moments(rng):
    u, w, cell = random_table(rng, n=500)
    for target in (TARGETS["population"], TARGETS["reference"]):
        groups = np.hstack([GROUPS, ~GROUPS[:, :2], np.eye(6, dtype=bool)])
        z = influence_moments(u, w, cell, groups, target, 0.0)
        found = joint_test(moments_of(u, w, cell, 6), groups, target, binary=False, method="eel")
        assert found.df == np.linalg.matrix_rank(z, tol=1e-8)
