"""Results as values: those of the first version are read, and details are a mapping."""

import pytest

import equipoise as eq
from equipoise.results.finding import Decision

DATA = {"sex": ["F", "M"] * 50, "approved": [0, 1, 1, 1] * 25}


def result():
    return eq.Audit(DATA, group="sex", y_pred="approved").disparity("selection_rate")


def of_the_first_version(record):
    """Write a record as before: no parts of an estimand, no decision "estimated"."""
    for finding in record["findings"]:
        for name in ("kind", "metric", "scale", "noun"):
            del finding[name]
        if finding["decision"] == "estimated":
            finding["decision"] = "not detected"
    return record | {"schema_version": 1}


def test_results_of_the_first_version_are_read():
    tested = eq.AuditResult.from_dict(of_the_first_version(result().to_dict()))
    assert [f.decision for f in tested.findings] == [f.decision for f in result().findings]
    assert str(tested.findings[0].estimand) == str(result().findings[0].estimand)
    plain = eq.Audit(DATA, group="sex", y_pred="approved").inequality("approved")
    assert Decision.ESTIMATED in {finding.decision for finding in plain.findings}
    read = eq.AuditResult.from_dict(of_the_first_version(plain.to_dict()))
    assert [f.decision for f in read.findings] == [f.decision for f in plain.findings]


def test_a_result_is_equal_to_what_was_read_of_it_and_to_nothing_else():
    ours = result()
    assert eq.AuditResult.from_dict(ours.to_dict()) == ours
    assert ours != "a result"
    assert repr(ours) == "AuditResult(audit='disparity', n=100, findings=2, detected=True)"


def test_details_are_a_mapping():
    details = eq.Audit(DATA, group="sex", y_pred="approved").impact_ratios().details
    assert {*details} == {*details.keys()} == {*dict(details)}
    name = next(iter(details))
    assert details[name] == details.get(name) == getattr(details, name)
    assert details.get("no such thing", 7) == 7
    assert "no such thing" not in details
    with pytest.raises(KeyError, match="no such thing"):
        details["no such thing"]


def test_a_frame_is_of_pandas_where_nothing_is_said():
    told = result()
    frame = told.to_frame()
    assert type(frame).__module__.startswith("pandas")
    assert frame["estimate"].tolist() == [f.estimate for f in told.findings]
