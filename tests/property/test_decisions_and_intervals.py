"""Decision and interval say the same, or the finding says why not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import equipoise as eq
from equipoise import Decision
from property.test_laws_of_every_audit import CASES, answer, fewer
from simulate.disparity import assessed, binary_comparison
from support.strategies import informative_tables

QUICK = settings(max_examples=8, deadline=None)
ROLES = {
    "rows": {},
    "weights": {"weight": "weight"},
    "clusters": {"cluster": "id"},
    "weighted clusters": {"weight": "weight", "cluster": "id"},
}
asked = {
    "seed": st.integers(0, 10_000),
    "roles": st.sampled_from(sorted(ROLES)),
    "metric": st.sampled_from(["selection_rate", "mean_outcome"]),
    "scale": st.sampled_from(["difference", "ratio"]),
    "reference": st.sampled_from(["population", "rest", {"group": "a"}, 0.4]),
}


def audit(seed, roles, names="abcd"):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 200))
    rows = {
        "group": rng.choice(list(names), n, p=[0.4, 0.3, 0.2, 0.1]),
        "p": (rng.random(n) < rng.uniform(0.05, 0.6)).astype(int),
        "y": rng.exponential(size=n),
        "weight": rng.lognormal(sigma=0.7, size=n),
        "id": rng.integers(0, 20, n),
    }
    return eq.Audit(rows, group="group", y_true="y", y_pred="p", **ROLES[roles])


def ends(finding):
    low, high = finding.ci.low, finding.ci.high
    return -np.inf if low is None else low, np.inf if high is None else high


def with_a_test(result):
    return [finding for finding in result.findings if finding.p_value is not None]


@QUICK
@given(**asked, simultaneous=st.booleans())
def test_a_gap_is_detected_exactly_when_its_interval_excludes_none(
    seed, roles, metric, scale, reference, simultaneous
):
    result = audit(seed, roles).disparity(
        metric, scale=scale, reference=reference, simultaneous=simultaneous
    )
    null = 1.0 if scale == "ratio" else 0.0
    for finding in with_a_test(result):
        if abs(finding.p_value - 0.05) < 1e-4:
            continue
        low, high = ends(finding)
        assert (finding.decision == "detected") == (not low <= null <= high)


@QUICK
@given(**asked, margin=st.sampled_from([0.05, 0.2, 0.5]))
def test_a_group_is_within_the_margin_exactly_when_its_interval_is(
    seed, roles, metric, scale, reference, margin
):
    result = audit(seed, roles).certify(metric, margin=margin, scale=scale, reference=reference)
    inside = (1 - margin, 1 / (1 - margin)) if scale == "ratio" else (-margin, margin)
    for finding in with_a_test(result):
        if abs(finding.p_value - 0.05) < 1e-4:
            continue
        low, high = ends(finding)
        assert (finding.decision == "within margin") == (inside[0] < low and high < inside[1])


@QUICK
@given(
    **asked,
    margin=st.sampled_from([0.0, 0.1]),
    alternative=st.sampled_from(["greater", "less", "outside"]),
    adjust=st.sampled_from(["bh", "none"]),
)
def test_a_flag_that_differs_from_its_interval_says_so(
    seed, roles, metric, scale, reference, margin, alternative, adjust
):
    result = audit(seed, roles).flag(
        metric,
        margin=margin,
        alternative=alternative,
        adjust=adjust,
        scale=scale,
        reference=reference,
    )
    low, high = (1 - margin, 1 / (1 - margin)) if scale == "ratio" else (-margin, margin)
    for finding in with_a_test(result):
        bottom, top = ends(finding)
        above, below = bottom > high, top < low
        excluded = {"greater": above, "less": below, "outside": above or below}[alternative]
        told = any(note.code == "interval-unadjusted" for note in finding.notes)
        assert told == ((finding.decision == "detected") != excluded)


@QUICK
@given(
    seed=st.integers(0, 10_000),
    roles=st.sampled_from(sorted(ROLES)),
    metric=st.sampled_from(["selection_rate", "mean_outcome"]),
    reference=st.sampled_from(["population", "rest", {"group": "a"}, 0.4, eq.External(0.5, 0.1)]),
    lone=st.booleans(),
)
def test_claims_about_a_margin_agree_with_each_other(seed, roles, metric, reference, lone):
    """Also where the shape of values is not known, and p-values of one side count several fold."""
    if lone:
        reference = 0.4 if isinstance(reference, (str, dict)) else reference
    asked = audit(seed, roles, names="aaaa" if lone else "abcd")

    def raw(alternative, margin):
        found = asked.flag(
            metric, margin=margin, alternative=alternative, adjust="none", reference=reference
        )
        return {f.group: f.p_value_raw for f in with_a_test(found)}

    def certified(margin):
        found = asked.certify(metric, margin=margin, reference=reference)
        return {f.group: f for f in with_a_test(found)}

    two_sided = raw("two-sided", 0.0)
    margins = (0.05, 0.2, 0.5)
    greater, less, outside = ([raw(a, m) for m in margins] for a in ("greater", "less", "outside"))
    within = [certified(m) for m in margins]
    for group, both in two_sided.items():
        shown = [one[group] for one in within]
        # A wider margin is exceeded less easily, and more easily kept.
        for ps in (greater, less, outside):
            assert np.diff([p[group] for p in ps]).min() >= -1e-9
        assert np.diff([one.p_value for one in shown]).max() <= 1e-9
        for k in range(len(margins)):
            assert outside[k][group] >= both - 1e-9
            # Of both sides, an alternative counts two fold where one side counts up to five fold.
            assert outside[k][group] >= 0.4 * min(greater[k][group], less[k][group]) - 1e-9
            # Whoever is shown beyond the margin is flagged outside it.
            if shown[k].decision == "detected":
                assert outside[k][group] <= 0.05
            if shown[k].p_value <= 0.05:
                assert min(greater[k][group], less[k][group]) > 0.5


@pytest.mark.parametrize(("ones", "reference"), [(0, 0.02), (40, 0.98)])
def test_no_event_is_within_a_margin_that_reaches_beyond_all_rates(ones, reference):
    rows = {"g": ["a"] * 40, "p": [1] * ones + [0] * (40 - ones)}
    result = eq.Audit(rows, group="g", y_pred="p").certify(
        "selection_rate", reference=reference, margin=0.1
    )
    (finding,) = result.findings
    assert finding.decision == "within margin"
    assert finding.p_value < 0.02
    assert abs(finding.ci.low) < 0.1
    assert abs(finding.ci.high) < 0.1
    assert result.joint.decision == "within margin"


@pytest.mark.parametrize("n", [20, 23, 41, 94])
@pytest.mark.parametrize(("reference", "margin"), [(0.05, 0.05), (0.1, 0.1), (0.4, 0.2)])
def test_claims_about_known_rates_are_wrong_at_most_as_often_as_they_say(n, reference, margin):
    x = np.arange(n + 1.0)
    zero = np.zeros(n + 1)
    ones = np.stack([x, zero, zero], axis=1)
    rows = np.stack([zero + n, zero, zero], axis=1)
    found = assessed(binary_comparison(ones, rows, n_units=n, known=reference), binary=True)
    for end in (reference - margin, reference + margin):
        if 0 <= end <= 1:
            chance = binomial(n, end)
            assert chance[found.p_within(-margin, margin) <= 0.05].sum() <= 0.05
            assert chance[found.p_greater(end - reference) <= 0.05].sum() <= 0.05
            assert chance[found.p_less(end - reference) <= 0.05].sum() <= 0.05


@pytest.mark.parametrize(("n", "m"), [(8, 40), (15, 20), (25, 60)])
def test_claims_about_two_rates_are_wrong_at_most_as_often_as_they_say(n, m):
    x, y = (part.ravel() for part in np.meshgrid(np.arange(n + 1.0), np.arange(m + 1.0)))
    zero = np.zeros(len(x))
    ones = np.stack([x, zero, y], axis=1)
    rows = np.stack([zero + n, zero, zero + m], axis=1)
    found = assessed(binary_comparison(ones, rows, n_units=n + m), binary=True)
    margin = 0.15
    within = found.p_within(-margin, margin) <= 0.05
    beyond = found.p_greater(margin) <= 0.05
    for rate in np.linspace(0.0, 1.0 - margin, 18):
        chance = (binomial(m, rate)[:, None] * binomial(n, rate + margin)).ravel()
        assert chance[within].sum() <= 0.05
        assert chance[beyond].sum() <= 0.05 + 1e-6


FITTED = {"improvability by a column", "improvability by a model", "drop table", "necessity"}
"""Questions whose claims are about gains over a status quo: their bounds are one-sided."""
ONE_SIDED = {"gap growth", "gain", "gap reduction"}


def null_of(finding, options):
    """Values that the null hypothesis allows: one number, or all within the margin."""
    margin = options.get("margin", 0.0) if "alternative" in options else 0.0
    return (1.0, 1.0) if finding.estimand.scale == "ratio" else (-margin, margin)


@pytest.mark.parametrize("case", [case for case in CASES if case not in FITTED])
@fewer
@given(drawn=informative_tables())
def test_whatever_is_asked_decision_and_interval_agree_or_the_finding_says_why(case, drawn):
    table, roles = drawn
    _, options = CASES[case]
    result = answer(table, roles, case)
    for finding in with_a_test(result):
        p = [x for x in (finding.p_value, finding.p_value_raw) if x is not None]
        tie = any(abs(x - result.alpha) < 2e-3 for x in p)
        if finding.ci is None or finding.estimand.kind in ONE_SIDED or tie:
            continue
        low, high = null_of(finding, options)
        bottom, top = ends(finding)
        if finding.decision is Decision.WITHIN_MARGIN:
            margin = options["margin"]
            assert -margin < bottom
            assert top < margin
            continue
        if result.audit == "certify":
            continue
        outside = bottom > high or top < low
        told = {note.code for note in (*finding.notes, *result.notes)}
        explained = told & {"interval-unadjusted", "alarm-and-interval", "gap-did-not-last"}
        assert explained or outside == (finding.decision is Decision.DETECTED), finding
        # The interval is that of one of the two p-values.
        assert explained or outside in [x <= result.alpha for x in p], finding


def binomial(n, rate):
    return stats.binom.pmf(np.arange(n + 1), n, rate)
