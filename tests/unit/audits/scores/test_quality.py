import json

import numpy as np
import pytest

import equipoise as eq
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from support.soundness import assert_sound

ROLES = {"group": "g", "y_true": "y", "y_score": "s"}


@pytest.fixture
def data(rng):
    n = 3000
    group, risk = rng.choice(["a", "b", "c"], size=n, p=[0.5, 0.4, 0.1]), rng.uniform(size=n)
    return {
        "g": group,
        "s": np.where(group == "b", 0.5 * risk + 0.5 * rng.uniform(size=n), risk),
        "old": risk**2,
        "y": (rng.uniform(size=n) < risk).astype(int),
        "u": rng.integers(800, size=n),
        "w": rng.uniform(0.5, 2, size=n),
    }


def test_metrics_come_first_and_differences_are_tested(data):
    result = eq.Audit(data, **ROLES).score_quality()
    values, differences = result.findings[:9], result.findings[9:]
    assert {f.decision for f in values} == {eq.Decision.ESTIMATED}
    assert {f.estimand.metric for f in values} == {"rmsce", "auc", "brier"}
    assert len(differences) == 6
    assert result.joint.decision is eq.Decision.DETECTED
    assert "The score is better in some groups" in " ".join(str(result).split())
    assert_sound(result)
    assert eq.AuditResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_the_difference_from_the_rest_at_equal_scores(data):
    # Outcomes of group b follow the root of its score, those of the others about the score itself.
    lower = data | {"s": np.where(data["g"] == "b", data["old"], data["s"])}
    result = eq.Audit(lower, **ROLES).score_quality(["parity_error"])
    assert [f.group for f in result.findings] == ["g=a", "g=b", "g=c"]
    assert {f.decision for f in result.findings} == {eq.Decision.ESTIMATED}
    assert result.findings[1].ci.low > 0.05
    assert result.joint is None
    apart = data | {"s": np.where(data["g"] == "c", 0.99 + 0.01 * data["s"], 0.9 * data["s"])}
    none = eq.Audit(apart, **ROLES).score_quality(["parity_error"]).findings[-1]
    assert none.decision is eq.Decision.NOT_TESTED
    assert "nothing to compare at equal scores" in none.notes[0].message


def test_two_scores_are_compared_in_pairs(data):
    result = eq.Audit(data, **ROLES).score_quality(baseline="old", reference={"g": "a"})
    changes = [f for f in result.findings if f.estimand.kind == "change"]
    assert {f.group for f in changes} == {"g=a", "g=b", "g=c"}
    assert all(f.reference == "old" for f in changes)
    assert "the two scores differ" in " ".join(str(result).split())
    assert_sound(result)


def test_clusters_weights_and_counts_enter(data):
    plain = eq.Audit(data, **ROLES).score_quality("auc")
    users = eq.Audit(data, cluster="u", **ROLES).score_quality("auc")
    weighted = eq.Audit(data, weight="w", **ROLES).score_quality("auc")
    assert users.findings[0].estimate == plain.findings[0].estimate
    assert users.findings[0].ci != plain.findings[0].ci
    assert weighted.findings[0].estimate != plain.findings[0].estimate
    assert eq.Audit(data | {"k": np.full(3000, 2)}, count="k", **ROLES).score_quality().n == 6000


def test_one_group_is_described_and_not_compared(data):
    keep = data["g"] == "a"
    result = eq.Audit({k: v[keep] for k, v in data.items()}, **ROLES).score_quality()
    assert result.joint is None
    assert "not compared" in str(result)


def test_nothing_detected_is_said_so(rng):
    score = rng.uniform(size=2000)
    data = {"g": rng.choice(["a", "b"], size=2000), "s": score, "y": rng.uniform(size=2000) < score}
    result = eq.Audit(data | {"y": data["y"].astype(int)}, **ROLES).score_quality("brier")
    assert "does not show that it is the same" in " ".join(str(result).split())
    assert result.notes == ()


def test_a_small_group_is_listed(data):
    data["g"] = np.where(np.arange(3000) < 12, "tiny", data["g"])
    result = eq.Audit(data, **ROLES).score_quality()
    (tiny,) = [f for f in result.findings if f.group == "g=tiny"]
    assert tiny.notes[0].code == "group-too-small"


def test_wrong_columns_are_refused(data):
    with pytest.raises(InvalidParameterError, match="pass `group`"):
        eq.Audit(data, y_true="y", y_score="s").score_quality()
    audit = eq.Audit(data, **ROLES)
    with pytest.raises(DataError, match="`baseline` must be numeric"):
        audit.score_quality(baseline="g")
    with pytest.raises(InvalidParameterError, match="`metrics`"):
        audit.score_quality(["ece"])
    data["old"][:3] = np.nan
    with pytest.raises(MissingValuesError, match="'old' has missing or infinite values"):
        eq.Audit(data, **ROLES).score_quality(baseline="old")
    data["s"][:2] = np.nan
    with pytest.raises(MissingValuesError, match="'s' has 2 missing values"):
        eq.Audit(data, **ROLES).score_quality()


def test_the_picture_has_a_line_for_each_metric_and_group(data):
    result = eq.Audit(data, **ROLES).score_quality(baseline="old")
    panels = result.plot().figure.axes
    titles = [axes.get_title(loc="left") for axes in panels]
    assert titles == ["Calibration error", "Area under the ROC curve", "Brier score"]
    assert [len(axes.get_yticklabels()) for axes in panels] == [6, 6, 6]
    assert [name.get_text() for name in panels[1].get_yticklabels()[:2]] == ["g: a", "g: a, old"]
    faces = {line.get_gid(): line.get_markerfacecolor() for line in panels[0].get_lines()}
    assert list(faces.values()).count("#FFFFFF") == 3
    own = panels[1].figure.subplots()
    assert result.plot(ax=own) is own
    few = {k: v[:12] for k, v in data.items()}
    assert eq.Audit(few, **ROLES).score_quality().plot().texts[0].get_text() == "not tested"


def test_another_score_is_not_blamed_for_bad_weights():
    rng = np.random.default_rng(0)
    table = {"g": rng.integers(2, size=80), "y": rng.integers(2, size=80), "s": rng.random(80)}
    table |= {"other": rng.random(80), "w": -np.ones(80)}
    asked = eq.Audit(table, group="g", y_true="y", y_score="s", weight="w")
    with pytest.raises(DataError, match="`weight` must be a number"):
        asked.score_quality(baseline="other")


def test_a_group_without_weight_is_not_tested_and_a_perfect_score_is_one():
    group, y = np.repeat([0, 1], 60), np.tile([0, 1], 60)
    table = {"g": group, "y": y, "s": 0.25 + 0.5 * y, "w": 0.1 * (group == 0)}
    found = eq.Audit(table, group="g", y_true="y", y_score="s", weight="w").score_quality()
    assert_sound(found)
    assert [f.group for f in found.findings if f.decision is eq.Decision.NOT_TESTED] == ["g=1"]
    auc = next(f for f in found.findings if f.estimand.metric == "auc")
    assert (auc.estimate, auc.ci.low, auc.ci.high) == pytest.approx((1.0, 1.0, 1.0))


def test_metrics_that_are_no_list_are_refused(data):
    with pytest.raises(InvalidParameterError, match="`metrics` must be a list of names; got 3"):
        eq.Audit(data, **ROLES).score_quality(metrics=3)
