import numpy as np
import pytest
from scipy import optimize, stats

from equipoise.stats import pairs
from equipoise.stats.inversion import GREATER, LESS
from equipoise.stats.pairs import (
    EXACT_ROWS,
    Counts,
    Pairs,
    SmallTables,
    against_population,
    against_rest,
    external_root,
    known_interval,
    known_root,
)
from equipoise.stats.saddlepoint import FARTHEST
from support.two_samples import all_tables, chances, every_root, largest_sizes


def columns(*values):
    return tuple(np.array([float(v)]) for v in values)


def p_value(table, null=0.0, alternative="two-sided", **options):
    return float(Pairs.of(*columns(*table), **options).p_value(null, alternative)[0])


def interval(table, level=0.95, **options):
    low, high = Pairs.of(*columns(*table), **options).interval(level)
    return float(low[0]), float(high[0])


@pytest.mark.parametrize("x", [0, 3, 8])
def test_a_known_rate_has_the_binomial_test(x):
    for tail, name in ((GREATER, "greater"), (LESS, "less")):
        root = known_root(*columns(x, 8, 0.3), tail)
        expected = stats.binomtest(x, 8, 0.3, name).pvalue
        np.testing.assert_allclose(stats.norm.sf(tail * root[0]), expected, rtol=1e-10)


def test_mid_p_counts_half_of_the_observed_value():
    root = known_root(*columns(3, 8, 0.3), GREATER, mid=True)
    expected = stats.binom.sf(3, 8, 0.3) + 0.5 * stats.binom.pmf(3, 8, 0.3)
    np.testing.assert_allclose(stats.norm.sf(root), expected)


def test_a_rate_outside_zero_and_one_is_ruled_out():
    # Zero of 40 is within a margin of .1 around .02: more than -.08, and less than .12.
    x, n, low, high = columns(0, 40, -0.08, 0.12)
    assert known_root(x, n, low, GREATER) == FARTHEST
    assert known_root(x, n, low, LESS) == FARTHEST
    np.testing.assert_allclose(stats.norm.cdf(known_root(x, n, high, LESS)), 0.88**40)
    assert known_root(n, n, 1.0 - low, LESS) == -FARTHEST


@pytest.mark.parametrize("x", [0, 1, 6, 10])
def test_interval_of_a_known_rate_is_that_of_clopper_and_pearson(x):
    low, high = known_interval(*columns(x, 10), 0.9)
    expected = stats.binomtest(x, 10).proportion_ci(0.9, "exact")
    np.testing.assert_allclose([low[0], high[0]], [expected.low, expected.high], atol=1e-12)


def test_against_the_rest_and_back():
    # 30 of 100 in the group, 20 of 100 in the rest: .3 against .25 of all.
    difference = against_rest(np.array([0.05]), np.array([0.5]), "difference")
    ratio = against_rest(np.array([1.2]), np.array([0.5]), "ratio")
    np.testing.assert_allclose([difference[0], ratio[0]], [0.1, 1.5])
    np.testing.assert_allclose(against_population(difference, np.array([0.5]), "difference"), 0.05)
    np.testing.assert_allclose(against_population(ratio, np.array([0.5]), "ratio"), 1.2)
    # A ratio of 2 to a population of which one is half leaves the rest nothing.
    assert against_rest(np.array([2.0]), np.array([0.5]), "ratio")[0] == np.inf
    assert against_population(np.array([np.inf]), np.array([0.5]), "ratio")[0] == 2.0


def naive_exact(table, null):
    """The exact p-value for "greater" as its definition says, one table after the other."""
    x1, n1, x2, n2 = table
    z = 1.5

    def score(a, b, difference):
        def minus_log_likelihood(p):
            return -stats.binom.logpmf(a, n1, p + difference) - stats.binom.logpmf(b, n2, p)

        low, high = max(0.0, -difference), min(1.0, 1.0 - difference)
        p = optimize.minimize_scalar(
            minus_log_likelihood, bounds=(low, high), options={"xatol": 1e-12}
        ).x
        q = p + difference
        variance = (q * (1 - q) / n1 + p * (1 - p) / n2) * (n1 + n2) / (n1 + n2 - 1)
        return (a / n1 - b / n2 - difference) / np.sqrt(variance)

    limit = optimize.brentq(lambda d: score(x1, x2, d) - z, -0.999, x1 / n1 - x2 / n2 - 1e-9)
    extreme = [
        (a, b)
        for a in range(n1 + 1)
        for b in range(n2 + 1)
        if (a, b) == (x1, x2) or score(a, b, limit) >= z
    ]
    ways = np.zeros((n1 + 1, n2 + 1))
    ways[tuple(np.array(extreme).T)] = 1.0
    return largest_over_rates(table, ways, null)


def largest_over_rates(table, extreme, null):
    """Largest p-value over nuisance rates: many, dense at both limits, then nearer and nearer."""
    x1, n1, x2, n2 = table
    low, high = max(0.0, null), min(1.0, 1.0 + null)

    def p_values(first):
        second = np.clip(first - null, 0.0, 1.0)
        ones = [
            stats.binom.pmf(np.arange(n + 1)[:, None], n, p) for n, p in ((n1, first), (n2, second))
        ]
        doubts = [
            2 * np.minimum(stats.binom.cdf(x, n, p), stats.binom.sf(x - 1, n, p))
            for x, n, p in ((x1, n1, first), (x2, n2, second))
        ]
        chance = (ones[0] * (extreme @ ones[1])).sum(axis=0)
        return np.minimum(chance / 0.99, np.minimum(*doubts) / 0.005)

    small = np.geomspace(1e-12, 0.05, 400)
    first = np.concatenate([np.linspace(low, high, 4001), low + small, high - small])
    first = np.unique(np.clip(first, low, high))
    best = 0.0
    for _ in range(4):
        p = p_values(first)
        k, best = p.argmax(), max(best, p.max())
        first = np.linspace(first[max(k - 1, 0)], first[min(k + 1, len(first) - 1)], 201)
    return min(best, 1.0)


@pytest.mark.parametrize(
    ("table", "null"),
    [
        ((4, 5, 3, 12), 0.0),
        ((6, 7, 4, 9), 0.1),
        ((5, 12, 1, 7), -0.1),
        ((2, 2, 3, 15), 0.0),
        # Here the second side alone rules out the rates at which the tail would be largest.
        ((0, 3, 0, 30), -0.2),
        ((2, 4, 0, 30), -0.2),
        # The largest tail is near a first rate of zero, of one, or between two such limits.
        ((0, 1, 0, 50), -0.2),
        ((0, 1, 1, 50), -0.2),
        ((0, 1, 17, 50), -0.5),
        ((1, 3, 8, 50), -0.2),
        ((1, 2, 0, 40), -0.05),
        ((50, 50, 1, 1), -0.2),
        ((32, 32, 2, 4), 0.0),
        ((8, 9, 0, 4), 0.6),
    ],
)
def test_small_tables_have_the_exact_unconditional_p_value(table, null):
    counts = Counts(*columns(*table))
    found = SmallTables.of(counts).p_value(np.array([null]), np.array([0]))[0]
    assert 0.9975 < found / naive_exact(table, null) < 1.004


def exact_ratios(n1, n2, null, every=1):
    """P-values of (some) tables with n1 <= n2 that are against a null, and over naive ones."""
    x1, x2, _ = all_tables(n1, n2)
    against = x1 / n1 - x2 / n2 > null + 1e-9
    x1, x2 = x1[against][::every], x2[against][::every]
    one = np.ones_like(x1)
    small = SmallTables.of(Counts(x1, n1 * one, x2, n2 * one))
    p = small.p_value(null * one, np.arange(len(x1)))
    edge = np.concatenate([block.edge for block in small.blocks])
    naive = [
        largest_over_rates((a, n1, b, n2), np.arange(n2 + 1) <= e[: n1 + 1, None], null)
        for a, b, e in zip(x1, x2, edge, strict=True)
    ]
    return p, p / np.array(naive)


@pytest.mark.parametrize(("n1", "n2", "null"), [(1, 12, -0.3), (3, 20, -0.1), (5, 9, 0.1)])
def test_no_exact_p_value_is_too_small(n1, n2, null):
    p, ratio = exact_ratios(n1, n2, null)
    assert (ratio[p > 1e-4] > 0.9975).all()
    assert (ratio[p > 1e-3] < 1.005).all()


@pytest.mark.slow
@pytest.mark.parametrize("n1", [1, 2, 4, 8, 12])
@pytest.mark.parametrize("n2", [13, 50])
def test_no_exact_p_value_is_too_small_whatever_the_null(n1, n2):
    for null in (-0.5, -0.3, -0.2, -0.1, -0.02, 0.0, 0.05, 0.2, 0.5):
        p, ratio = exact_ratios(n1, n2, null, every=7)
        assert (ratio[p > 1e-3] > 0.9975).all()
        assert (ratio[p > 1e-6] > 0.97).all()


def test_balanced_tables_agree_with_the_tests_of_boschloo_and_barnard():
    for ones in ([[12, 4], [8, 16]], [[9, 3], [6, 12]]):
        (a, b), (c, d) = ones
        found = p_value((a, a + c, b, b + d), alternative="greater")
        outside = [
            stats.boschloo_exact(ones, "greater").pvalue,
            stats.barnard_exact(ones, "greater", pooled=True).pvalue,
        ]
        np.testing.assert_allclose(found, outside, rtol=0.06)
        assert found < stats.fisher_exact(ones, "greater")[1]


@pytest.mark.parametrize("table", [(9, 70, 40, 150), (3, 100, 10, 10_000), (300, 2000, 350, 2000)])
def test_larger_tables_are_close_to_fishers_exact_test(table):
    x1, n1, x2, n2 = table
    side = "greater" if x1 * n2 > x2 * n1 else "less"
    fisher = stats.fisher_exact([[x1, n1 - x1], [x2, n2 - x2]], side)[1]
    # Not conditional on the total, so not the same; but far from the score test in the tail.
    assert fisher / 1.5 < p_value(table, alternative=side) < fisher * 2.5


def test_rare_events_are_no_evidence_where_the_score_test_sees_eight_standard_errors():
    p = p_value((3, 100, 10, 10_000), alternative="greater")
    # Poisson with mean 100 x 13 / 10,100 at the common rate.
    assert 1e-4 < p < 1e-3


def test_one_row_is_compared_with_its_own_chance():
    # sup of theta P(X2 <= 30) over theta, slightly below 30 of 300 itself.
    rate = np.linspace(0.01, 0.2, 2000)
    expected = np.max(rate * stats.binom.cdf(30, 300, rate)) / 0.99
    np.testing.assert_allclose(p_value((1, 1, 30, 300), alternative="greater"), expected, rtol=1e-2)


@pytest.mark.parametrize("table", [(12, 20, 4, 20), (3, 3, 30, 300), (9, 70, 40, 150)])
def test_equality_is_the_same_hypothesis_on_both_scales(table):
    np.testing.assert_allclose(p_value(table), p_value(table, 1.0, scale="ratio"), rtol=1e-9)


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize(
    "table", [(4, 5, 600, 2000), (10, 70, 40, 150), (0, 9, 3, 30), (5, 9, 0, 30)]
)
def test_an_interval_excludes_equality_exactly_when_the_p_value_is_below(table, scale):
    null = float(scale == "ratio")
    for level in (0.5, 0.8, 0.95, 0.99):
        low, high = interval(table, level, scale=scale)
        assert (low <= null <= high) == (p_value(table, null, scale=scale) > 1.0 - level)


def test_interval_ends_have_the_p_value_of_the_level():
    for table in ((7, 20, 30, 200), (30, 90, 20, 110)):
        low, high = interval(table, 0.9)
        np.testing.assert_allclose(p_value(table, low, "greater"), 0.05, rtol=1e-6)
        np.testing.assert_allclose(p_value(table, high, "less"), 0.05, rtol=1e-6)


def test_limits_of_possible_values():
    table = (5, 20, 8, 30)
    assert p_value(table, -1.5, "greater") < 1e-100
    assert p_value(table, -1.5, "less") == 1.0
    assert p_value(table, 1.0, "greater") == 1.0
    assert p_value(table, 0.0, "greater", scale="ratio") < 1e-100
    assert p_value((0, 20, 8, 30), 0.0, "greater", scale="ratio") == 1.0
    assert p_value(table, 0.0, "less", scale="ratio") == 1.0
    assert interval((0, 20, 0, 30), scale="ratio") == (0.0, np.inf)
    assert interval((4, 20, 0, 30), scale="ratio")[1] == np.inf


def test_equal_tables_are_computed_once_and_different_nulls_are_kept():
    three = Pairs.of(*(np.array(v, float) for v in ([3, 4, 3], [9, 9, 9], [20, 20, 20], [90] * 3)))
    assert three.table.tolist() == [0, 1, 0]
    which = np.arange(3)
    same = three.root(np.zeros(3), which, GREATER)
    assert same[0] == same[2] != same[1]
    apart = three.root(np.array([0.0, 0.0, 0.1]), which, GREATER)
    np.testing.assert_allclose(apart[:2], same[:2], rtol=1e-12)
    assert apart[2] < same[2]


@pytest.mark.parametrize("scale", ["difference", "ratio"])
def test_more_tables_than_are_kept_have_the_same_answers(scale, monkeypatch):
    x = np.arange(8.0)
    counts = (x, x + 5, x[::-1] + 3, np.full(8, 60.0))
    kept = Pairs.of(*counts, scale=scale)
    monkeypatch.setattr(pairs, "_MOST_KEPT", 3)
    anew = Pairs.of(*counts, scale=scale)
    assert anew._kept is None
    null = float(scale == "ratio")
    np.testing.assert_allclose(anew.p_value(null), kept.p_value(null))
    np.testing.assert_allclose(anew.interval(0.9), kept.interval(0.9))


def test_a_mid_p_is_smaller_and_has_no_switch():
    for table in ((6, 20, 20, 200), (15, 80, 20, 220)):
        strict, mid = (p_value(table, alternative="greater", mid=m) for m in (False, True))
        assert mid < strict


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize("tail", [GREATER, LESS])
def test_an_external_estimate_without_error_is_nearly_a_known_rate(scale, tail):
    null = 1.1 if scale == "ratio" else 0.05
    x, n = np.arange(201.0), np.full(201, 200.0)
    one = np.ones(201)
    found = external_root(x, n, 0.3 * one, 1e-6 * one, null * one, tail, scale=scale)
    known = known_root(x, n, 0.3 * null * one if scale == "ratio" else 0.35 * one, tail)
    near = np.abs(known) < 5
    np.testing.assert_allclose(found[near], known[near], atol=0.06)


def test_external_ratios_at_zero():
    x, n, value, se, null = columns(0, 12, 0.2, 0.03, 0.0)
    assert external_root(x, n, value, se, null, GREATER, scale="ratio") == -FARTHEST
    assert external_root(x, n, value, se, null, LESS, scale="ratio") == FARTHEST
    assert external_root(x + 1, n, value, se, null, GREATER, scale="ratio") == FARTHEST


@pytest.mark.parametrize(("n", "se"), [(1, 0.03), (12, 0.03), (12, 0.1), (40, 0.02)])
def test_size_against_an_external_estimate_by_quadrature(n, se):
    node = np.linspace(-6.0, 6.0, 241)
    weight = stats.norm.pdf(node) / stats.norm.pdf(node).sum()
    for rate in (0.02, 0.1, 0.2, 0.5, 0.9):
        x, value = (
            v.ravel() for v in np.meshgrid(np.arange(n + 1.0), rate + se * node, indexing="ij")
        )
        one = np.ones_like(x)
        up, down = (
            external_root(x, n * one, value, se * one, 0 * one, tail) for tail in (GREATER, LESS)
        )
        chance = np.outer(stats.binom.pmf(np.arange(n + 1), n, rate), weight).ravel()
        assert chance[up >= stats.norm.isf(0.05)].sum() <= 0.05
        assert chance[(up >= stats.norm.isf(0.025)) | (down <= stats.norm.ppf(0.025))].sum() <= 0.05


BAD_DESIGNS = [
    (1, 300),
    (3, 100),
    (8, 40),
    (40, 8),
    (12, 60),
    (20, 20),
    (30, 30),
    (51, 51),
    (60, 90),
]


@pytest.mark.parametrize(("n1", "n2"), BAD_DESIGNS)
def test_size_is_at_most_nominal_at_every_rate(n1, n2):
    assert (largest_sizes(n1, n2, [0.0], [0.05, 0.025, 0.001]) <= 1.0).all()


@pytest.mark.parametrize(("n1", "n2"), [(3, 60), (20, 30), (51, 60), (60, 51)])
def test_size_is_at_most_nominal_at_margins(n1, n2):
    assert (largest_sizes(n1, n2, [-0.1, 0.02, 0.15], [0.05]) <= 1.0).all()
    assert (largest_sizes(n1, n2, [0.8, 0.98, 1.25], [0.05], scale="ratio") <= 1.0).all()


@pytest.mark.slow
@pytest.mark.calibration
@pytest.mark.parametrize(("n1", "n2"), [(50, 50), (50, 60), (20, 200), (60, 600)])
def test_size_is_at_most_nominal_in_larger_designs(n1, n2):
    assert (largest_sizes(n1, n2, [-0.1, 0.0, 0.02, 0.15], [0.05, 0.025, 0.001]) <= 1.0).all()
    assert (largest_sizes(n1, n2, [0.8, 0.98, 1.25], [0.05], scale="ratio") <= 1.0).all()


def test_mid_p_exceeds_its_level_somewhere():
    assert largest_sizes(20, 30, [0.0], [0.05], mid=True).max() > 1.05


def size_near(n1, n2, rate):
    """Sizes of the three tests at one rate of two samples, the second large."""
    least, most = stats.binom.ppf([1e-7, 1 - 1e-7], n2, rate)
    x2 = np.arange(least, most + 1)
    x1, x2 = (v.ravel() for v in np.meshgrid(np.arange(n1 + 1.0), x2, indexing="ij"))
    one = np.ones_like(x1)
    every = Pairs.of(x1, n1 * one, x2, n2 * one)
    chance = stats.binom.pmf(x1, n1, rate) * stats.binom.pmf(x2, n2, rate)
    sides = ("greater", "less", "two-sided")
    return np.array([chance[every.p_value(0.0, side) <= 0.05].sum() for side in sides])


@pytest.mark.parametrize("rate", [0.001, 0.005, 0.02])
def test_size_against_a_large_target(rate):
    assert (size_near(5, 2000, rate) <= 0.05).all()


@pytest.mark.slow
@pytest.mark.calibration
@pytest.mark.parametrize(("n1", "n2"), [(5, 2000), (12, 2000), (30, 1000), (51, 3000)])
def test_size_against_a_large_target_at_many_rates(n1, n2):
    for rate in (0.0005, 0.002, 0.01, 0.03, 0.1, 0.3, 0.6):
        assert (size_near(n1, n2, rate) <= 0.05).all()


def assert_monotone(n1, n2, nulls, **options):
    for roots in every_root(n1, n2, nulls, **options):
        for root in roots:
            # P-values below 1e-12 are right to a few per cent only.
            slack = np.where(np.abs(root) < 7.0, 1e-7, 1e-3)
            assert (np.diff(root, axis=0) > -slack[1:]).all()
            assert (np.diff(root, axis=1) < slack[:, 1:]).all()


@pytest.mark.parametrize("n", [EXACT_ROWS, EXACT_ROWS + 1])
def test_p_values_are_monotone_in_the_counts_across_the_switch(n):
    assert_monotone(n, 55, [0.0, 0.07], most=20)
    assert_monotone(n, 55, [0.8], scale="ratio", most=20)


@pytest.mark.slow
@pytest.mark.parametrize("n", range(EXACT_ROWS - 2, EXACT_ROWS + 4))
@pytest.mark.parametrize("other", [EXACT_ROWS - 1, EXACT_ROWS + 5, 150, 2000])
def test_p_values_are_monotone_in_the_counts_across_the_switch_up_to_forty(n, other):
    assert_monotone(n, other, [-0.05, -0.01, 0.0, 0.03, 0.1], most=40)
    assert_monotone(n, other, [0.5, 0.8, 1.0, 1.25, 2.0], scale="ratio", most=40)


@pytest.mark.parametrize(("n1", "n2"), [(2, 40), (3, 60), (5, 9), (8, 40), (20, 20)])
def test_p_values_of_small_tables_are_monotone_in_the_counts(n1, n2):
    assert_monotone(n1, n2, [-0.5, -0.1, -0.02, 0.0, 0.05, 0.2])


def test_interval_ends_are_monotone_in_the_count_across_the_switch():
    x = np.arange(41.0)
    for n in (EXACT_ROWS, EXACT_ROWS + 1):
        many = Pairs.of(x, np.full(41, float(n)), np.full(41, 40.0), np.full(41, 150.0))
        for end in many.interval(0.95):
            assert (np.diff(end) > 0).all()


def test_power_is_at_least_that_of_fishers_test():
    # 20 against 20 rows, .8 against .3; Fisher's two-sided test: .846.
    ((up, down),) = every_root(20, 20, [0.0])
    two = 2.0 * np.minimum(stats.norm.sf(up), stats.norm.cdf(down))
    assert chances(20, 20, 0.8, 0.3)[two <= 0.05].sum() > 0.89
