"""The same numbers as R: fisher.test, mantelhaen.test, epitools, metafor, multcomp, survey.

`regulator.R` made `regulator.json`. Where statsmodels or scipy has the same test it is asked too.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats.contingency_tables import StratifiedTable

import equipoise as eq
from equipoise.stats.disparity.extremes import IndependentLaw, range_quantile, range_tail
from equipoise.stats.disparity.impact import boschloo_p_value, companions, fisher_p_value
from equipoise.stats.disparity.mantel_haenszel import StratumCounts, generalised_test
from equipoise.stats.disparity.strata import stratified_disparity_test
from equipoise.stats.disparity.survey import DesignMeans, survey_means
from equipoise.stats.multiplicity import correlations, max_t

R = json.loads(Path(__file__).with_name("regulator.json").read_text())
PAIRS = [one["table"] for one in R["pairs"]]


@pytest.mark.parametrize("one", R["pairs"], ids=str)
def test_fisher_and_the_pooled_z_are_those_of_r(one):
    x1, n1, x2, n2 = one["table"]
    assert_allclose(fisher_p_value(x1, n1, x2, n2), one["fisher"], rtol=1e-10)
    assert_allclose(fisher_p_value(x1, n1, x2, n2), one["epitools"], rtol=1e-10)
    z = companions(np.array([x1, x2]), np.array([n1, n2]), 1).z[0]
    assert_allclose(z**2, one["chi_square"], rtol=1e-10)


@pytest.mark.parametrize("table", PAIRS, ids=str)
def test_boschloo_is_that_of_scipy(table):
    x1, n1, x2, n2 = table
    known = stats.boschloo_exact([[x1, x2], [n1 - x1, n2 - x2]], n=256).pvalue
    # scipy searches the common rate with its own optimiser.
    assert_allclose(boschloo_p_value(*table), known, rtol=1e-8)


def test_the_studentised_range_is_that_of_r():
    columns = (R["range"][name] for name in ("k", "q95", "q99", "tail"))
    for k, q95, q99, tail in zip(*columns, strict=True):
        # qtukey stops at 1e-4.
        assert_allclose([range_quantile(0.95, k), range_quantile(0.99, k)], [q95, q99], rtol=1e-4)
        assert_allclose(range_tail(np.array(4.0), k), tail, rtol=1e-8)
        exact = stats.studentized_range.sf(4.0, k, np.inf)
        assert_allclose(range_tail(np.array(4.0), k), exact, rtol=1e-10)


def test_dunnetts_value_is_that_of_mvtnorm():
    n = np.array(R["dunnett"]["n"], dtype=float)
    value = IndependentLaw.of(np.ones(4), 1.0 / n, "difference").one_sided(0.95)[0]
    # qmvnorm stops at 1e-4.
    assert_allclose(value, R["dunnett"]["value"], rtol=1e-4)


def counts():
    return StratumCounts(
        **{name: np.array(R["ucb"][name], dtype=float) for name in ("x1", "n1", "x0", "n0")}
    )


def test_cochran_mantel_haenszel_is_that_of_r():
    c = counts()
    assert_allclose(c.cochran_test().statistic, R["ucb"]["cmh"], rtol=1e-10)
    assert_allclose(c.cochran_test(correct=True).statistic, R["ucb"]["cmh_yates"], rtol=1e-10)
    assert_allclose(c.exact_p_value(), R["ucb"]["exact"], rtol=1e-8)
    for null, scale in ((0.0, "difference"), (1.0, "ratio")):
        assert_allclose(c.root(null, c.overlap_weights, scale) ** 2, R["ucb"]["cmh"], rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "part"), [("OR", "odds_ratio"), ("RR", "ratio"), ("RD", "difference")]
)
def test_pooled_estimates_are_those_of_metafor(name, part):
    pooled, known = getattr(counts(), part), R["ucb"][name]
    value = np.log(pooled.value) if pooled.logarithm else pooled.value
    assert_allclose([value, pooled.se], [known["value"], known["se"]], rtol=1e-9)


def test_homogeneity_is_that_of_metafor_and_statsmodels():
    test = counts().homogeneity_test()
    assert_allclose(test.statistic, R["ucb"]["OR"]["TA"], rtol=1e-8)
    c = counts()
    tables = [
        np.array([[a, n - a], [b, m - b]])
        for a, n, b, m in zip(c.x1, c.n1, c.x0, c.n0, strict=True)
    ]
    known = StratifiedTable(tables).test_equal_odds(adjust=True)
    assert_allclose([test.statistic, test.p_value], [known.statistic, known.pvalue], rtol=1e-8)


def test_several_groups_are_those_of_r():
    ones, zeros = (np.array(R["several"][name], dtype=float).T for name in ("ones", "zeros"))
    test = generalised_test(ones + zeros, ones, ones.sum(axis=1))
    assert_allclose(test.statistic, R["several"]["statistic"], rtol=1e-10)
    assert test.df == R["several"]["df"]


def test_overlap_weights_give_the_coefficient_of_a_regression_with_stratum_effects():
    d = R["regression"]
    test = stratified_disparity_test(d["y"], np.array(d["a"]), np.array(d["k"]), reference=0)
    assert_allclose(test.estimate[0], d["coefficient"], rtol=1e-10)


def test_matched_pairs_give_the_paired_t_test():
    d = R["paired"]
    y = np.concatenate([d["first"], d["second"]])
    side, pair = np.repeat([1, 0], 20), np.tile(np.arange(20), 2)
    one = stratified_disparity_test(y, side, pair, reference=0).comparisons[0]
    assert_allclose(one.p_value, d["p"], rtol=1e-9)
    assert_allclose(one.confidence_interval(), [d["low"], d["high"]], rtol=1e-9)


def test_contrasts_of_known_variance_are_those_of_multcomp():
    means = DesignMeans(
        value=np.array([1.0, 1.4, 2.1]),
        covariance=np.diag([0.04, 0.09, 0.05]),
        df=10**12,
        n=np.full(3, 100),
    )
    pairs = means.pairs(np.array([1, 2, 2]), np.array([0, 0, 1]), "difference")
    assert_allclose(pairs.root(np.zeros(3)), R["contrasts"]["z"], rtol=1e-6)


@pytest.mark.parametrize("design", ["plain", "fpc", "rows_as_units", "adjust", "certainty"])
def test_survey_means_are_those_of_r(design):
    rows = {name: np.array([row[name] for row in R["survey"]["rows"]]) for name in "ygwhN"}
    rows["psu"] = np.array([row["psu"] for row in R["survey"]["rows"]])
    options = {}
    if design in {"adjust", "certainty"}:
        kept = ~((rows["h"] == 1) & (rows["psu"] > 7))
        rows = {name: values[kept] for name, values in rows.items()}
        options["lonely"] = design
    if design == "fpc":
        options["population"] = rows["N"]
    if design != "rows_as_units":
        options["cluster"] = rows["psu"]
    means = survey_means(rows["y"], rows["g"], strata=rows["h"], weight=rows["w"], **options)
    known = R["survey"][design]
    assert_allclose(means.value, known["mean"], rtol=1e-10)
    assert_allclose(means.covariance, known["cov"], rtol=1e-8)
    assert means.df == known["df"]


@pytest.mark.parametrize("one", R["random_pairs"], ids=lambda one: str(one["table"]))
def test_random_tables_are_those_of_fisher_test_and_epitools(one):
    x1, n1, x2, n2 = one["table"]
    assert_allclose(fisher_p_value(x1, n1, x2, n2), one["fisher"], rtol=1e-8)
    if one["odds"] is not None and one["odds"] != "NA":
        beside = companions(np.array([x1, x2]), np.array([n1, n2]), 1)
        assert_allclose(beside.odds_ratio[0], one["odds"], rtol=1e-8)
        # epitools has the second row over the first.
        assert_allclose((x2 / n2) / (x1 / n1), one["risk"], rtol=1e-8)


@pytest.mark.parametrize("one", R["random_strata"], ids=lambda one: f"{len(one['x1'])} strata")
def test_random_strata_are_those_of_mantelhaen_test(one):
    c = StratumCounts(
        **{name: np.array(one[name], dtype=float) for name in ("x1", "n1", "x0", "n0")}
    )
    assert_allclose(c.cochran_test().statistic, one["cmh"], rtol=1e-8, atol=1e-12)
    assert_allclose(c.cochran_test(correct=True).statistic, one["cmh_yates"], rtol=1e-8, atol=1e-12)
    assert_allclose(c.exact_p_value(), one["exact"], rtol=1e-8)
    assert_allclose(c.odds_ratio.value, one["odds"], rtol=1e-8)


@pytest.mark.parametrize("one", R["random_several"], ids=lambda one: f"df {one['df']}")
def test_random_groups_are_those_of_mantelhaen_test(one):
    ones, zeros = (np.array(one[name], dtype=float).T for name in ("ones", "zeros"))
    test = generalised_test(ones + zeros, ones, ones.sum(axis=1))
    assert_allclose(test.statistic, one["statistic"], rtol=1e-8)
    assert test.df == one["df"]


def test_simultaneous_comparisons_are_those_of_multcomp():
    shared = R["shared"]
    law = max_t(correlations(np.array(shared["cov"])), rng=1, n_draws=400_000)
    # multcomp's quasi-random integral is right to 1e-3, our draws to 2e-3.
    assert_allclose(law.critical(0.95), shared["critical"], atol=0.01)
    z = np.array(shared["estimate"]) / np.sqrt(np.diag(shared["cov"]))
    assert_allclose(law.p_values(np.abs(z)), shared["p"], atol=0.004)


@pytest.mark.parametrize("design", ["plain", "fpc", "rows_as_units"])
def test_the_audit_of_a_survey_has_the_gaps_and_errors_of_svyglm(design):
    rows = R["survey"]["rows"]
    data = {
        name: np.array([row[name] for row in rows]) for name in ("y", "g", "w", "h", "N", "psu")
    }
    roles = {"plain": {"cluster": "psu"}, "fpc": {"cluster": "psu", "fpc": "N"}}.get(design, {})
    audit = eq.Audit(data, group="g", y_true="y", weight="w", strata="h", **roles)
    result = audit.disparity("mean_outcome", reference="rest")
    for finding, value, known in zip(
        result.findings, result.details.values, R["survey"]["gaps"][design], strict=True
    ):
        assert_allclose(finding.estimate, known["gap"], rtol=1e-8)
        assert_allclose(value["se"], known["se"], rtol=1e-8)


@pytest.mark.parametrize("design", ["plain", "rows_as_units"])
def test_rates_of_a_survey_are_those_of_svymean(design):
    rows = R["survey"]["rows"]
    data = {name: np.array([row[name] for row in rows]) for name in ("y", "g", "w", "h", "psu")}
    data["one"] = (data["y"] > 0).astype(int)
    roles = {"plain": {"cluster": "psu", "weight": "w"}}.get(design, {})
    audit = eq.Audit(data, group="g", y_pred="one", strata="h", **roles)
    result = audit.disparity("selection_rate", reference={"g": 0})
    mean, cov = (np.array(R["survey"]["rates"][design][name]) for name in ("mean", "cov"))
    for j in (1, 2):
        assert_allclose(result.findings[j].estimate, mean[j] - mean[0], rtol=1e-8)
        se = np.sqrt(cov[j, j] + cov[0, 0] - 2 * cov[0, j])
        assert_allclose(result.details.values[j]["se"], se, rtol=1e-8)
