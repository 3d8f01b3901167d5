"""Planned power against simulated audits."""

import numpy as np
import pytest
from scipy import stats

from calibration.noted_rates import folds
from equipoise.design import effect_audit, power, sample_size
from equipoise.stats.effects.roots import arm_sides, plausible_skewness
from equipoise.stats.multiplicity import adjusted_p_values
from equipoise.stats.small_samples import contrast_law
from equipoise.stats.unit_sums import UnitSums
from simulate import units
from simulate.disparity import assessed, binary_comparison, mean_comparison, regions
from support.rates import assert_rate

pytestmark = pytest.mark.calibration
REPS = 4000


def rate_tables(rng, plan, rate, disparity, target, reference=0.5):
    """Counts of the planned group and target in simulated tables of the planned size."""
    share = plan.share[0]
    if target == "known":
        shares, rates = (share, 0.0, 0.0), (rate + disparity, 0.0, 0.0)
    elif target == "population":
        rest = rate - disparity * share / (1.0 - share)
        shares, rates = (0.0, share, 1.0 - share), (0.0, rate + disparity, rest)
    else:
        other = 1.0 - share if target == "rest" else reference
        shares, rates = (share, 0.0, other), (rate + disparity, 0.0, rate)
    counts = regions(rng, REPS, plan.n, shares, rates)
    return binary_comparison(*counts, n_units=plan.n, known=rate if target == "known" else None)


@pytest.mark.parametrize("target", ["known", "population", "rest", "reference"])
def test_disparity_of_a_rate_is_found_as_often_as_planned(rng, target):
    extra = {"reference_share": 0.5} if target == "reference" else {}
    plan = power("disparity", n=3000, share=0.2, disparity=0.06, rate=0.4, target=target, **extra)
    p = assessed(rate_tables(rng, plan, 0.4, 0.06, target), binary=True).p_value
    assert_rate((p <= 0.05).sum(), REPS, plan.power[0], below=0.012, above=0.012)


@pytest.mark.parametrize(
    ("alternative", "disparity"), [("greater", 0.08), ("less", -0.08), ("outside", -0.08)]
)
def test_flags_of_a_rate_are_raised_as_often_as_planned(rng, alternative, disparity):
    plan = power(
        "flag",
        n=3000,
        share=0.3,
        disparity=disparity,
        rate=0.4,
        target="rest",
        margin=0.03,
        alternative=alternative,
    )
    found = assessed(rate_tables(rng, plan, 0.4, disparity, "rest"), binary=True)
    p = {
        "greater": lambda: found.p_greater(0.03),
        "less": lambda: found.p_less(-0.03),
        "outside": lambda: found.p_outside(-0.03, 0.03),
    }[alternative]()
    assert_rate((p <= 0.05).sum(), REPS, plan.power[0], below=0.015, above=0.015)


@pytest.mark.parametrize("disparity", [0.0, 0.02])
def test_equivalence_of_a_rate_is_shown_as_often_as_planned(rng, disparity):
    plan = sample_size(
        "certify", share=0.3, disparity=disparity, rate=0.4, target="rest", margin=0.06, power=0.8
    )
    assert plan.power[0] >= 0.8
    found = assessed(rate_tables(rng, plan, 0.4, disparity, "rest"), binary=True)
    p = found.p_within(-0.06, 0.06)
    assert_rate((p <= 0.05).sum(), REPS, plan.power[0], below=0.012, above=0.012)


def test_sample_size_for_a_mean_gives_the_power_asked_for(rng):
    plan = sample_size("disparity", share=0.25, disparity=0.3, sd=1.0, target="rest", power=0.9)
    reps = 2000
    member = rng.random((reps, plan.n)) < 0.25
    u = rng.normal(size=(reps, plan.n)) + 0.3 * member
    found = assessed(
        mean_comparison(u, np.ones(u.shape), member, n_units=plan.n), binary=False, method="eel"
    )
    assert_rate((found.p_value <= 0.05).sum(), reps, 0.9, below=0.012, above=0.012)


def test_power_after_benjamini_hochberg_is_the_planned_one(rng):
    """Twenty tests, four of them with a gap, as in the limit of the procedure."""
    m, gaps = 20, 4
    plan = power(
        "flag",
        n=20_000,
        share=[0.04] * gaps,
        disparity=0.06,
        rate=0.4,
        target="known",
        n_tests=m,
        adjust="bh",
    )
    reps = 500
    size = rng.multinomial(plan.n, [*np.full(m, 0.04), 1.0 - 0.04 * m], size=reps)[:, :m]
    rates = np.where(np.arange(m) < gaps, 0.46, 0.4)
    ones = rng.binomial(size, rates).astype(float).reshape(-1)
    zero = np.zeros(len(ones))
    comparison = binary_comparison(
        np.stack([ones, zero, zero], axis=1),
        np.stack([size.reshape(-1).astype(float), zero, zero], axis=1),
        n_units=plan.n,
        known=0.4,
    )
    p = assessed(comparison, binary=True).p_greater(0.0).reshape(reps, m)
    rejected = np.array([adjusted_p_values(row) <= 0.05 for row in p])[:, :gaps]
    assert abs(rejected.mean() - plan.power[0]) < 0.03
    assert plan.level < 0.05


FEW = [
    ("certify", [12], "known", 0.0, 1.0),
    ("certify", [30, 300], "rest", 0.0, 0.6),
    ("flag", [15], "known", 0.8, 0.0),
    ("flag", [8, 40], "rest", 1.0, 0.0),
    ("disparity", [5], "known", 1.5, 0.0),
    ("disparity", [12], "known", 1.0, 0.0),
    ("disparity", [6, 6], "rest", 2.0, 0.0),
    ("disparity", [5, 100], "rest", 1.5, 0.0),
]


@pytest.mark.parametrize(("question", "sizes", "target", "disparity", "margin"), FEW)
def test_few_values_show_no_less_than_planned(rng, question, sizes, target, disparity, margin):
    n = sum(sizes)
    share = sizes[0] / n if target == "rest" else 1.0 - 1e-9
    options = {"sd": 1.0, "margin": margin, "adjust": "none"}
    plan = power(question, n=n, share=share, disparity=disparity, target=target, **options)
    shown = shown_of_few(rng, question, sizes, target, [disparity], margin)
    # Planning may be cautious: real values that are not skewed often look so, or do not.
    assert_rate(shown.sum(), REPS, plan.power[0], below=0.02, above=0.1)


def test_few_clusters_show_no_less_than_planned(rng):
    size, icc, n_clusters = 20, 0.2, (10, 10)
    plan = power(
        "disparity", n=400, share=0.5, disparity=0.6, sd=1.0, target="rest",
        design_effect=1 + (size - 1) * icc, cluster_size=size,
    )  # fmt: skip
    sd = np.sqrt(icc + (1 - icc) / size)
    shown = shown_of_few(rng, "disparity", n_clusters, "rest", [0.6 / sd], 0.0)
    assert_rate(shown.sum(), REPS, plan.power[0], below=0.02, above=0.1)


@pytest.mark.parametrize(
    ("rate", "rows", "icc", "n_clusters", "margin"),
    [(0.02, 10, 0.2, (100, 300), 0.05), (0.97, 5, 0.3, (80, 300), 0.05)],
)
def test_rare_events_of_clusters_are_certified_no_less_than_planned(
    rng, rate, rows, icc, n_clusters, margin
):
    n = sum(n_clusters)
    plan = power(
        "certify", n=n * rows, share=n_clusters[0] / n, rate=rate, target="rest", margin=margin,
        design_effect=1 + (rows - 1) * icc, cluster_size=rows,
    )  # fmt: skip
    there = np.arange(max(n_clusters)) < np.array(n_clusters)[:, None]
    u, w, _ = units.clusters(rng, max(n_clusters), 2, REPS, icc=icc, rate=rate, rows_each=rows)
    found = units.against_population(u * there, w * there, population=False)
    fold = folds(found.units())[:, 0]
    above, below = found.root(-margin)[:, 0], found.root(margin)[:, 0]
    shown = fold * np.maximum(stats.norm.sf(above), stats.norm.cdf(below)) <= 0.05
    assert_rate(shown.sum(), REPS, plan.power[0], below=0.03, above=0.1)


@pytest.mark.parametrize("rate", [0.1, 0.9])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_errors_of_rates_in_unequal_arms_are_found_no_less_than_planned(rng, rate, sign):
    n, share, treated = 2000, (0.7, 0.3), 0.1
    plan = effect_audit(n, share=share, rate=rate, treated=treated)
    sides = []
    for turn, part in ((1.0, 1.0 - treated), (-1.0, treated)):
        size = np.round(n * part * np.array(share))[:, None]
        there = (np.arange(size.max()) < size) * np.ones((REPS, 1, 1))
        y = (rng.random(there.shape) < rate) * there
        sides.append(UnitSums.of_units(turn * y, there))
    sums = UnitSums.stack(sides)
    arms = arm_sides(sums, binary=True)
    law = contrast_law(arms.sum(), plausible=plausible_skewness(sums, arms))
    for k, error in enumerate(plan.error):
        found = np.abs(law.root(sign * error)[:, k]) > stats.norm.isf(0.025 / len(share))
        assert_rate(found.sum(), REPS, 0.8, below=0.02, above=0.2)


def shown_of_few(rng, question, sizes, target, disparity, margin):
    """Whether an audit of normal values shows what is asked, in simulated tables."""
    u, w, _ = units.rows(rng, "normal", sizes, REPS)
    u = u + w * np.array([*disparity, *[0.0] * (len(sizes) - 1)])[:, None]
    found = units.against_known(u, w, 0.0)
    if target == "rest":
        found = units.against_population(u, w, population=False)
    root = found.root(0.0)[:, 0]
    fold = folds(found.units())[:, 0]
    if question == "disparity":
        return np.abs(root) > stats.norm.isf(0.025)
    above, below = found.root(-margin)[:, 0], found.root(margin)[:, 0]
    if question == "flag":
        return fold * stats.norm.sf(below) <= 0.05
    return fold * np.maximum(stats.norm.sf(above), stats.norm.cdf(below)) <= 0.05


def test_clustered_rows_need_the_design_effect(rng):
    icc, rows, users, reps = 0.3, 5, 300, 2000
    plan = power(
        "disparity",
        n=users * rows,
        share=0.4,
        disparity=0.25,
        sd=1.0,
        target="rest",
        design_effect=1 + (rows - 1) * icc,
    )
    member = rng.random((reps, users)) < 0.4
    shared = rng.normal(size=(reps, users, 1)) * np.sqrt(icc)
    u = shared + rng.normal(size=(reps, users, rows)) * np.sqrt(1 - icc) + 0.25 * member[..., None]
    totals = mean_comparison(
        u.sum(axis=2), np.full((reps, users), float(rows)), member, n_units=users
    )
    p = assessed(totals, binary=False, method="eel").p_value
    assert_rate((p <= 0.05).sum(), reps, plan.power[0], below=0.015, above=0.015)
