"""Several metrics in one question: one family, one covariance, one scan."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import equipoise as eq
from equipoise.audits.asking import ask
from equipoise.audits.disparity.subgroups import compare_metrics
from equipoise.cli.app import app
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.disparity.gaps import joint_covariance

METRICS = ["fpr", "selection_rate", "mean_score"]


@pytest.fixture
def table(rng):
    n = 600
    return {
        "g": rng.choice(["a", "b", "c"], n),
        "y": rng.integers(0, 2, n),
        "p": rng.integers(0, 2, n),
        "s": rng.random(n),
        "w": rng.uniform(0.5, 2.0, n),
        "user": rng.integers(0, 150, n),
    }


def audited(table, **roles):
    return eq.Audit(table, group="g", y_true="y", y_pred="p", y_score="s", **roles)


def naive_covariance(table, weight, unit):
    """Products of influence functions, row by row, of every metric and group against everybody."""
    w = np.ones(len(table["y"])) if weight is None else table[weight]
    who = np.arange(len(w)) if unit is None else table[unit]
    pairs = {
        "fpr": ((table["y"] == 0) & (table["p"] == 1), table["y"] == 0),
        "selection_rate": (table["p"] == 1, np.ones(len(w))),
        "mean_score": (table["s"], np.ones(len(w))),
    }
    influence = []
    for u, v in pairs.values():
        u, v = u * w, v * w  # noqa: PLW2901
        overall = u.sum() / v.sum()
        for label in "abc":
            own = table["g"] == label
            value = u[own].sum() / v[own].sum()
            psi = own * (u - value * v) / v[own].sum() - (u - overall * v) / v.sum()
            influence.append(np.bincount(who, weights=psi))
    return np.array(influence) @ np.array(influence).T


@pytest.mark.parametrize(
    "roles", [{}, {"weight": "w"}, {"cluster": "user"}, {"weight": "w", "cluster": "user"}]
)
def test_the_covariance_is_that_of_influence_functions(table, roles):
    audit = audited(table, **roles)
    compared = ask(compare_metrics(audit.table, METRICS, None, None, "auto", "difference", 0.95))
    expected = naive_covariance(table, roles.get("weight"), roles.get("cluster"))
    found = joint_covariance(compared.found, compared.moments)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("roles", [{}, {"weight": "w"}, {"cluster": "user"}])
@pytest.mark.parametrize("reference", [None, "rest", {"g": "a"}])
def test_each_metric_has_the_numbers_of_its_own_question(table, roles, reference):
    audit = audited(table, **roles)
    together = audit.disparity(METRICS, reference=reference)
    alone = [f for m in METRICS for f in audit.disparity(m, reference=reference).findings]
    assert [str(f.estimand) for f in together.findings] == [str(f.estimand) for f in alone]
    for one, other in zip(together.findings, alone, strict=True):
        assert one.group == other.group
        assert one.decision == other.decision
        if other.ci is None:
            assert one.ci is None
        else:
            for name in ("estimate", "p_value_raw", "statistic"):
                assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9)
            assert (one.ci.low, one.ci.high) == pytest.approx((other.ci.low, other.ci.high))


def test_a_larger_family_has_larger_p_values_and_is_one_scan(table):
    audit = audited(table)
    wide = audit.disparity(METRICS, simultaneous=True, rng=0)
    narrow = audit.disparity("fpr", simultaneous=True, rng=0)
    assert len(wide.queries) == 1
    for one, other in zip(wide.findings, narrow.findings, strict=False):
        assert one.p_value >= other.p_value - 0.01
        assert one.ci.low < other.ci.low
        assert one.ci.high > other.ci.high
    assert wide.joint.method == "max-t"
    assert wide.joint.p_value == min(f.p_value for f in wide.findings)
    assert wide.joint == audit.disparity(METRICS, rng=0).joint


def test_the_order_of_the_metrics_changes_no_number(table):
    audit = audited(table)
    forth = audit.disparity(METRICS, simultaneous=True, rng=0).findings
    back = audit.disparity(METRICS[::-1], simultaneous=True, rng=0).findings
    numbers = {(f.group, f.estimand.metric): (f.p_value, f.ci) for f in back}
    for finding in forth:
        p, ci = numbers[finding.group, finding.estimand.metric]
        assert finding.p_value == pytest.approx(p, rel=1e-9)
        assert (finding.ci.low, finding.ci.high) == pytest.approx((ci.low, ci.high))


def test_flags_and_margins_are_one_family(table):
    audit = audited(table)
    flags = audit.flag(["fpr", "selection_rate"], alternative="two-sided", adjust="bonferroni")
    for finding in flags.findings:
        assert finding.p_value == pytest.approx(min(1.0, 6 * finding.p_value_raw))
    certified = audit.certify(["fpr", "selection_rate"], margin=0.3)
    assert certified.joint.p_value == max(f.p_value for f in certified.findings)
    assert "comparisons" in str(certified)


def test_rows_are_those_complete_in_every_metric(table):
    score = table["s"].copy()
    score[:100] = np.nan
    audit = audited(table | {"s": score}, missing="drop")
    found = audit.disparity(["selection_rate", "mean_score"])
    rest = audited({name: column[100:] for name, column in table.items()})
    expected = rest.disparity(["selection_rate", "mean_score"])
    assert found.n == expected.n == 500
    assert [f.estimate for f in found.findings] == pytest.approx(
        [f.estimate for f in expected.findings]
    )
    assert any(note.code == "missing-dropped" for note in found.notes)


def test_values_and_units_name_their_metric(table):
    result = audited(table, weight="w").disparity(["fpr", "mean_score"])
    assert result.details.metric == "fpr, mean_score"
    assert [value["metric"] for value in result.details.values] == ["fpr"] * 3 + ["mean_score"] * 3
    assert [units["metric"] for units in result.details.units][2:4] == ["fpr", "mean_score"]
    last = result.findings[-1]
    value = result.details.value_of(last)
    assert value["group_value"] - value["target_value"] == pytest.approx(last.estimate)
    assert eq.AuditResult.from_dict(result.to_dict()) == result


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        ([], {}, "at least one metric"),
        (["selection_rate", "positive_rate"], {}, "one metric twice"),
        (["fpr", "tpr"], {"reference": 0.2}, "the value of one metric"),
        (["fpr", "tpr"], {"reference": "highest"}, "one metric at a time"),
        (["fpr", "tpr"], {"given": "user"}, "one metric at a time"),
    ],
)
def test_what_cannot_be_asked_of_several_metrics_is_said(table, metric, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        audited(table).disparity(metric, **options)


def test_nothing_tested_is_no_joint_claim():
    alike = {"g": ["a", "b"] * 10, "x": [3.0] * 20, "z": [2.0] * 20}
    metrics = [eq.Metric("first", "x"), eq.Metric("second", "z")]
    result = eq.Audit(alike, group="g").disparity(metrics, simultaneous=True)
    assert result.joint.decision == "not tested"
    assert result.joint.p_value is None
    assert {finding.decision for finding in result.findings} == {"not tested"}


def test_a_plan_asks_several_metrics_in_one_check(tmp_path, table):
    (tmp_path / "plan.toml").write_text(
        """
        [data]
        path = "t.csv"
        group = ["g"]
        y_true = "y"
        y_pred = "p"

        [[check]]
        question = "disparity"
        metric = ["fpr", "selection_rate"]
        simultaneous = true
        """
    )
    names = ["g", "y", "p"]
    rows = zip(*(table[name] for name in names), strict=True)
    lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    page = tmp_path / "report.html"
    arguments = ["audit", str(tmp_path / "plan.toml"), "--output", str(page), "--quiet"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    text = page.read_text()
    assert "false positive rate and selection rate" in text
    assert "a, false positive rate" in text
