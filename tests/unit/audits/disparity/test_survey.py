"""Audits of a stratified sample: the numbers of R's survey, refusals, other questions."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import equipoise as eq
from equipoise.audits.disparity import survey as survey_audit
from equipoise.exceptions import DataError, GroupTooSmallError, InvalidParameterError
from equipoise.results.finding import Decision

REFERENCE = Path(__file__).parents[3] / "reference" / "stats" / "regulator.json"
R = json.loads(REFERENCE.read_text())["survey"]
DATA = {
    name: np.array([row[name] for row in R["rows"]]) for name in ("y", "g", "w", "h", "N", "psu")
}
DATA |= {"g": DATA["g"].astype(str), "one": (DATA["y"] > 0).astype(int), "high": DATA["y"] + 10}
DESIGNS = {
    "plain": {"cluster": "psu"},
    "fpc": {"cluster": "psu", "fpc": "N"},
    "rows_as_units": {},
}


def audit(design="plain", data=DATA, **roles):
    options = {"group": "g", "y_true": "y", "y_pred": "one", "weight": "w", "strata": "h"}
    return eq.Audit(data, **(options | DESIGNS[design] | roles))


@pytest.mark.parametrize("design", DESIGNS)
def test_gaps_and_errors_are_those_of_r(design):
    result = audit(design).disparity("mean_outcome", reference={"g": "0"})
    mean, cov, df = np.array(R[design]["mean"]), np.array(R[design]["cov"]), R[design]["df"]
    for j in (1, 2):
        gap, se = mean[j] - mean[0], np.sqrt(cov[j, j] + cov[0, 0] - 2 * cov[0, j])
        finding = result.findings[j]
        assert_allclose(finding.estimate, gap, rtol=1e-8)
        assert_allclose(result.details.values[j]["se"], se, rtol=1e-8)
        if design != "rows_as_units":
            # Every group has rows in all clusters: their degrees are those of the design.
            assert_allclose(finding.p_value, 2 * stats.t.sf(abs(gap) / se, df), rtol=1e-8)
            reach = stats.t.ppf(0.975, df) * se
            assert_allclose([finding.ci.low, finding.ci.high], [gap - reach, gap + reach])
    assert result.findings[0].is_reference
    assert "survey-design" in {note.code for note in result.notes}


@pytest.mark.parametrize("design", DESIGNS)
def test_one_population_is_a_weighted_sum_of_its_groups(design):
    # The mean of everybody has the shares of the groups as coefficients, which are estimated too.
    result = audit(design).disparity("mean_outcome", reference="population")
    value = np.average(DATA["y"], weights=DATA["w"])
    for entry in result.details.values:
        assert_allclose(entry["target_value"], value)
    rest = audit(design).disparity("mean_outcome", reference="rest")
    for one, other in zip(result.findings, rest.findings, strict=True):
        share = DATA["w"][DATA["g"] == one.group[-1]].sum() / DATA["w"].sum()
        assert_allclose(one.estimate, (1 - share) * other.estimate)


@pytest.mark.parametrize("roles", [{}, {"cluster": "psu"}])
def test_counts_are_rows(roles):
    twice = {name: np.repeat(values, 2) for name, values in DATA.items()}
    counted = DATA | {"k": np.full(240, 2)}
    options = {"group": "g", "y_pred": "one", "strata": "h"} | roles
    one = eq.Audit(twice, **options).disparity("selection_rate")
    other = eq.Audit(counted, count="k", **options).disparity("selection_rate")
    for a, b in zip(one.findings, other.findings, strict=True):
        assert_allclose([a.estimate, a.p_value], [b.estimate, b.p_value], rtol=1e-9)


def test_row_order_and_names_do_not_matter():
    order = np.random.default_rng(0).permutation(240)
    mixed = {name: values[order] for name, values in DATA.items()}
    mixed["h"] = 9 - mixed["h"]
    for a, b in zip(
        audit("fpc").disparity("mean_outcome").findings,
        audit("fpc", mixed).disparity("mean_outcome").findings,
        strict=True,
    ):
        assert_allclose([a.estimate, a.p_value], [b.estimate, b.p_value], rtol=1e-9)


def test_ratios_flags_and_certificates_agree_with_their_intervals():
    for scale, null in (("difference", 0.0), ("ratio", 1.0)):
        result = audit().disparity("selection_rate", reference="rest", scale=scale)
        for finding in result.findings:
            assert (null in finding.ci) == (finding.p_value > 0.05)
    within = audit().certify("selection_rate", margin=0.9)
    assert {f.decision for f in within.findings} == {Decision.WITHIN_MARGIN}
    assert audit().flag("mean_outcome", margin=3.0).findings[0].p_value > 0.99
    together = audit().disparity("mean_outcome", reference="rest", simultaneous=True, rng=1)
    alone = audit().disparity("mean_outcome", reference="rest")
    assert together.findings[0].ci.low < alone.findings[0].ci.low
    assert alone.joint.method == "Bonferroni over 3 groups"


def test_the_highest_category_is_compared_under_the_design():
    result = audit(y_true="high").impact_ratios("mean_outcome")
    assert {f.method for f in result.findings} == {"studentised means, all pairs"}
    plain = eq.Audit(DATA, group="g", y_true="high", weight="w", cluster="psu")
    other = plain.impact_ratios("mean_outcome")
    for a, b in zip(result.findings, other.findings, strict=True):
        assert_allclose(a.estimate, b.estimate)
        assert a.ci != b.ci


def test_a_population_of_just_the_sample_leaves_no_error():
    whole = DATA | {"N": np.full(240, 6)}
    result = audit("fpc", whole).disparity("mean_outcome")
    assert {f.decision for f in result.findings} == {Decision.NOT_TESTED}


def test_few_units_are_not_tested():
    few = DATA | {"g": np.where(DATA["psu"] <= 3, "few", "many")}
    result = audit(data=few).disparity("mean_outcome", reference="rest")
    assert {f.decision for f in result.findings} == {Decision.NOT_TESTED}
    assert "too-few-units" in {note.code for f in result.findings for note in f.notes}


def test_designs_that_are_none_are_refused():
    with pytest.raises(InvalidParameterError, match="about `strata`"):
        eq.Audit(DATA, group="g", y_true="y", fpc="N")
    with pytest.raises(DataError, match="within `strata`"):
        audit(data=DATA | {"psu": DATA["psu"] % 6}).disparity("mean_outcome")
    with pytest.raises(DataError, match="the same in all rows"):
        audit("fpc", DATA | {"N": np.arange(240) + 50}).disparity("mean_outcome")
    with pytest.raises(InvalidParameterError, match="at least the number of units"):
        audit("fpc", DATA | {"N": np.full(240, 5)}).disparity("mean_outcome")
    with pytest.raises(GroupTooSmallError, match="a single unit"):
        audit("rows_as_units", DATA | {"h": np.arange(240)}).disparity("mean_outcome")
    with pytest.raises(InvalidParameterError, match="a law of its own"):
        audit().disparity("mean_outcome", method="el")


def test_a_question_that_does_not_use_the_strata_says_so():
    result = audit().disparity("mean_outcome", given="N", reference={"g": "0"})
    assert "strata-not-used" in {note.code for note in result.notes}
    assert "strata-not-used" not in {note.code for note in audit().disparity("mean_outcome").notes}


@pytest.mark.parametrize("ones", [0, 3, 37, 40])
def test_rates_of_few_events_are_not_tested(ones):
    # Nobody of forty selected has no variance of its own: the others' alone would decide.
    group = np.repeat(["few", "many"], [40, 200])
    y = np.concatenate([np.arange(40) < ones, np.arange(200) % 2 == 0]).astype(int)
    data = {"g": group, "y": y, "h": np.arange(240) % 3}
    result = eq.Audit(data, group="g", y_pred="y", strata="h").disparity(
        "selection_rate", reference="rest"
    )
    assert {f.decision for f in result.findings} == {Decision.NOT_TESTED}
    codes = {note.code for f in result.findings for note in f.notes}
    assert codes & {"too-small", "degenerate"}
    highest = eq.Audit(data, group="g", y_pred="y", strata="h").impact_ratios()
    assert {f.decision for f in highest.findings} == {Decision.NOT_TESTED}


def test_a_value_that_does_not_vary_on_one_side_is_not_tested():
    data = DATA | {"y": np.where(DATA["g"] == "0", 1.0, DATA["y"])}
    result = audit(data=data).disparity("mean_outcome", reference={"g": "1"})
    assert result.findings[0].decision == Decision.NOT_TESTED


def test_numbers_of_units_that_are_words_are_refused():
    data = DATA | {"N": np.where(DATA["h"] == DATA["h"][0], "many", "few")}
    with pytest.raises(DataError, match="`fpc` column 'N' must hold numbers of units"):
        audit("fpc", data).disparity("mean_outcome")


def test_a_stratified_sample_is_asked_about_one_metric_at_a_time():
    with pytest.raises(InvalidParameterError, match="With `strata`, ask about one metric"):
        audit().disparity(["mean_outcome", "selection_rate"])


def test_what_skewed_values_of_a_survey_cost_is_said_with_its_measured_rate():
    told = audit().disparity("mean_outcome")
    (first, *_) = [n.message for n in told.findings[0].notes if n.code == "shape-unknown"]
    assert "one-sided tests rejected up to" in first
    assert "in a stratified sample with uneven weights" in first
    assert [note.code for note in told.joint.notes] == ["shape-unknown"]
    # Rates of 0/1 values are refused where events are few.
    rates = audit().disparity("selection_rate")
    codes = [note.code for finding in rates.findings for note in finding.notes]
    assert "shape-unknown" not in [*codes, *(note.code for note in rates.joint.notes)]


def test_too_many_groups_of_a_stratified_sample_are_refused(monkeypatch):
    monkeypatch.setattr(survey_audit, "MOST_CELLS", 1)
    with pytest.raises(DataError, match="the groups may have 1 combinations; got"):
        audit().disparity("mean_outcome")
