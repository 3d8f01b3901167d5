"""Gates on growth: by a comparison, and since the results of another sample."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from equipoise.cli.app import app
from equipoise.exceptions import InvalidParameterError
from equipoise.plans.baseline import growth_since, growth_words
from equipoise.plans.gate import junit_xml, tripped
from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision
from support.specimens import check, dossier, finding, result


def growth(group, decision, **changes):
    return finding(
        group,
        0.1,
        0.05,
        0.2,
        estimand=Estimand("fpr", "gap growth"),
        decision=decision,
        **changes,
    )


def comparison(*findings, margin=None):
    return check("compare", result("compare", findings, details={"margin": margin}))


def test_growth_that_is_shown_trips_worse_and_a_change_alone_does_not():
    grew = comparison(growth("g=1", Decision.DETECTED))
    moved = comparison(
        finding("g=1", 0.1, 0.05, 0.2, decision=Decision.DETECTED),
        growth("g=1", Decision.NOT_DETECTED),
    )
    flagged = check("flag", result("flag", [finding("g=1", 0.3, 0.2, 0.4)]))
    assert tripped([grew, flagged], "worse") == (grew,)
    assert tripped([moved], "worse") == ()
    assert tripped([flagged], "worse", grown=["flag"]) == (flagged,)
    with pytest.raises(InvalidParameterError, match='question = "compare", or --baseline'):
        tripped([flagged], "worse")
    assert junit_xml([grew], "worse").count("<failure") == 1
    assert junit_xml([moved], "worse").count("<failure") == 0


def test_a_margin_of_growth_is_decided_by_growth_alone():
    moved = finding("g=1", 0.1, 0.05, 0.2, decision=Decision.DETECTED)
    within = comparison(moved, growth("g=1", Decision.WITHIN_MARGIN), margin=0.1)
    unclear = comparison(moved, growth("g=1", Decision.NOT_DETECTED), margin=0.1)
    assert tripped([within], "not-within-margin") == ()
    assert tripped([unclear], "not-within-margin") == (unclear,)
    with pytest.raises(InvalidParameterError, match="not-within-margin"):
        tripped([comparison(moved)], "not-within-margin")


def run_of(*findings, sha="a", **options):
    files = [{"name": "t", "bytes": 1, "sha256": sha}]
    return dossier(
        check("disparity", result("disparity", findings), **options),
        data={"source": "t", "rows": 1, "roles": {}, "files": files},
    )


OLD = run_of(finding("g=1", 0.02, -0.01, 0.05), finding("g=2", 0.0, -0.03, 0.03), sha="b")
NEW = run_of(finding("g=1", 0.15, 0.12, 0.18), finding("g=2", 0.01, -0.02, 0.04), finding("g=3"))


def test_a_gap_that_grew_between_samples_is_named():
    grown = growth_since(NEW, OLD)
    assert [pair.group for pair in grown["disparity"]] == ["g=1"]
    assert "the gap of g=1 grew from 0.02 to 0.15 (p <0.001)" in growth_words(grown, NEW)
    assert growth_words(growth_since(OLD, NEW), OLD).endswith("no gap is shown to have grown.\n")


def test_several_metrics_of_a_group_are_compared_each_with_its_own():
    tpr, fpr = (Estimand(name, "gap", scale="difference") for name in ("tpr", "fpr"))
    before = run_of(
        finding("g=1", 0.02, -0.01, 0.05, estimand=tpr),
        finding("g=1", 0.30, 0.27, 0.33, estimand=fpr),
        sha="b",
    )
    now = run_of(
        finding("g=1", 0.15, 0.12, 0.18, estimand=tpr),
        finding("g=1", 0.30, 0.27, 0.33, estimand=fpr),
    )
    (pair,) = growth_since(now, before)["disparity"]
    assert (pair.old, pair.new) == (0.02, 0.15)


def test_the_same_data_and_strangers_are_refused():
    with pytest.raises(InvalidParameterError, match="another sample"):
        growth_since(NEW, run_of(finding("g=1", 0.02, -0.01, 0.05)))
    with pytest.raises(InvalidParameterError, match="no gap in common"):
        growth_since(NEW, run_of(finding("g=1", 0.0, -0.1, 0.1), sha="b", depth=1))
    other = replace(OLD, checks=(replace(OLD.checks[0], id="x"),))
    with pytest.raises(InvalidParameterError, match="no gap in common"):
        growth_since(NEW, other)
    open_end = run_of(finding("g=1", 0.02, None, 0.05), finding("g=2", 0.0, 0.0, 0.1), sha="b")
    with pytest.raises(InvalidParameterError, match="no gap in common"):
        growth_since(NEW, open_end)
    ratio = Estimand("fpr", "gap", scale="ratio")
    with pytest.raises(InvalidParameterError, match="no gap in common"):
        growth_since(NEW, run_of(finding("g=1", 1.0, 0.8, 1.2, estimand=ratio), sha="b"))


@pytest.fixture
def quarters(tmp_path):
    rng = np.random.default_rng(0)
    for name, gap in (("q1", 0.05), ("q2", 0.3)):
        group = rng.choice(["F", "M"], 2000)
        approved = rng.random(2000) < 0.5 - gap * (group == "F")
        rows = "\n".join(f"{g},{int(a)}" for g, a in zip(group, approved, strict=True))
        (tmp_path / f"{name}.csv").write_text(f"sex,approved\n{rows}\n")
        (tmp_path / f"{name}.toml").write_text(
            f'[data]\npath = "{name}.csv"\ngroup = "sex"\ny_pred = "approved"\n'
            '[[check]]\nquestion = "disparity"\nmetric = "selection_rate"\n'
        )
    return tmp_path


def test_the_command_line_stops_when_a_gap_grew_since_the_baseline(quarters):
    def audit(name, *options):
        return CliRunner().invoke(
            app, ["audit", str(quarters / f"{name}.toml"), *map(str, options)]
        )

    first = quarters / "first.json"
    assert audit("q1", "--json", first, "--quiet").exit_code == 0
    done = audit("q2", "--baseline", first, "--fail-on", "worse", "--quiet")
    assert done.exit_code == 1
    told = r"Since the baseline, disparity-selection_rate: the gap of sex: F grew from [-\d.]+ to"
    assert re.search(rf"{told} [-\d.]+ percentage points \(p", done.stdout)
    again = audit("q1", "--baseline", first, "--fail-on", "worse")
    assert isinstance(again.exception, InvalidParameterError)
    first.write_text(json.dumps({"checks": 3}))
    assert isinstance(audit("q2", "--baseline", first).exception, InvalidParameterError)
