import json

import numpy as np
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.audits.scores import sample as score_sample
from equipoise.exceptions import InvalidParameterError, MissingValuesError
from equipoise.stats.scores.margins import marginal_outcome_test
from support.engines import ENGINES, on_engine

ROLES = {"group": "g", "y_true": "y", "y_score": "score"}


@pytest.fixture
def data(rng):
    n = 5000
    score, group = rng.uniform(size=n), rng.choice(["a", "b"], size=n)
    y = (rng.uniform(size=n) < 0.1 + 0.3 * score + 0.5 * (group == "b")).astype(float)
    return {"y": y, "score": score, "g": group, "user": rng.integers(1500, size=n)}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_numbers_of_the_arrays(engine, data):
    y = np.where(data["score"] < 0.5, None, data["y"])
    table = pa.table(data | {"y": pa.array(y, pa.float64())})
    audit = eq.Audit(on_engine(engine, table), cluster="user", **ROLES)
    result = audit.marginal_outcome(0.5, unit="row")
    arrays = marginal_outcome_test(
        data["y"],
        data["score"],
        (data["g"] == "b").astype(int),
        0.5,
        cluster=data["user"],
        unit="row",
    )
    finding = result.findings[0]
    assert (finding.group, finding.reference) == ("g=b", "g=a")
    assert finding.estimate == pytest.approx(arrays.estimate, abs=1e-9)
    assert finding.ci.low == pytest.approx(arrays.confidence_interval().low, abs=1e-9)
    assert finding.p_value == pytest.approx(arrays.p_value, rel=1e-7)
    assert result.joint.p_value == pytest.approx(arrays.p_value, rel=1e-7)


def test_result_is_readable_and_survives_json(data):
    result = eq.Audit(data, **ROLES).marginal_outcome(0.5)
    assert result.joint.decision is eq.Decision.DETECTED
    assert "People at the cut-off 0.5" in str(result)
    margin = result.details["margins"][0]
    assert margin["outcome"]["g=b"] > margin["outcome"]["g=a"]
    assert eq.AuditResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    assert result.plot().get_yticklabels()[0].get_text() == "g: b"


def test_decision_and_interval_of_three_groups_agree(data, rng):
    data["g"] = rng.choice(["a", "b", "c"], size=5000)
    audit = eq.Audit(data, **ROLES)
    pairs = audit.marginal_outcome(0.5)
    assert len(pairs.findings) == 3
    assert [note.code for note in pairs.notes] == ["multiplicity"]
    for finding in pairs.findings:
        assert (0 in finding.ci) == (finding.p_value > 0.05)
        assert finding.p_value >= finding.p_value_raw
    assert pairs.joint.p_value == min(f.p_value for f in pairs.findings)
    assert "max-t" in pairs.joint.method
    assert len(audit.marginal_outcome(0.5, reference={"g": "c"}).findings) == 2


def test_missing_outcomes_above_the_threshold_are_refused_or_dropped(data):
    data["y"][np.flatnonzero(data["score"] > 0.6)[:3]] = np.nan
    with pytest.raises(MissingValuesError, match="'y' has 3 missing values in"):
        eq.Audit(data, **ROLES).marginal_outcome(0.5)
    dropped = eq.Audit(data, missing="drop", **ROLES).marginal_outcome(0.5)
    assert dropped.n == 4997


def test_too_few_at_the_threshold_is_not_tested(data):
    result = eq.Audit(data, **ROLES).marginal_outcome(0.999)
    assert result.findings[0].decision is eq.Decision.NOT_TESTED
    assert result.joint.decision is eq.Decision.NOT_TESTED
    assert result.findings[0].notes[0].code == "margin-not-tested"


def test_bandwidth_and_unit_are_used(data):
    audit = eq.Audit(data, cluster="user", **ROLES)
    with pytest.raises(InvalidParameterError, match="`unit` must be said"):
        audit.marginal_outcome(0.5)
    a = audit.marginal_outcome(0.5, unit="row").findings[0].estimate
    assert audit.marginal_outcome(0.5, unit="cluster").findings[0].estimate != a
    assert audit.marginal_outcome(0.5, unit="row", bandwidth=0.3).findings[0].estimate != a


def test_bins_begin_at_the_threshold(data, monkeypatch):
    audit = eq.Audit(data, **ROLES)
    exact = audit.marginal_outcome(0.5).findings[0]
    monkeypatch.setattr(score_sample, "EXACT_ROWS", 100)
    binned = audit.marginal_outcome(0.5).findings[0]
    assert binned.n == exact.n
    assert binned.estimate == pytest.approx(exact.estimate, abs=1e-3)


def test_deciles_are_compared_at_the_level_itself(data):
    data["score"] = np.ceil(10 * data["score"])
    result = eq.Audit(data, **ROLES).marginal_outcome(6)
    margin = result.details["margins"][0]
    assert margin["place"] == "level"
    at = data["score"] == 6
    mean = data["y"][at & (data["g"] == "b")].mean() - data["y"][at & (data["g"] == "a")].mean()
    assert result.findings[0].estimate == pytest.approx(mean)
    assert "people at the threshold" in result.method


def test_few_people_on_one_side_of_the_threshold_do_not_follow_from_those_on_it(data):
    data["score"] = np.ceil(10 * data["score"])
    few = np.flatnonzero((data["g"] == "b") & np.isin(data["score"], [2, 9]))
    data["score"][few] = np.where(data["score"][few] == 2, 3, 8)
    data["score"][few[:6]] = [2, 2, 2, 9, 9, 9]
    shown = eq.Audit(data, **ROLES).marginal_outcome(6).disclosed()
    scores, result = shown.details["scores"], shown.findings[0]
    told = {one["group"]: np.array(one["rows"], float) for one in scores["groups"]}
    above = np.array(scores["low"]) >= 6
    # The finding has the rows of both groups from the threshold on.
    assert result.n - sum(np.nansum(rows[above]) for rows in told.values()) >= 5
    for rows, side in [(told["g=b"], above), (told["g=b"], ~above)]:
        assert np.isnan(rows[side]).sum() > 1
        real = (data["g"] == "b") & ((data["score"] >= 6) == side[-1])
        assert real.sum() - np.nansum(rows[side]) >= 5
