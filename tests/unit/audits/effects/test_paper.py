"""The published procedure as an audit: labelled, with its faults noted, beside the default."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise.audits.effects.questions import correction_words
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.effects import paper_densities, paper_statistics
from equipoise.report.effect_tables import effect_tables


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    n = 30_000
    region, offer = rng.integers(4, size=n), rng.integers(2, size=n)
    lift = np.where(region == 0, 1.0, 1.4)
    return {
        "region": np.array(["N", "E", "S", "W"])[region],
        "offer": offer,
        "sold": (rng.random(n) < 0.2 * lift**offer).astype(int),
        "predicted": np.full(n, 1.4),
    }


def audit(table, **roles):
    known = {"group": "region", "y_true": "sold", "treatment": "offer", "effect_pred": "predicted"}
    return eq.Audit(table, **(known | roles))


@pytest.fixture(scope="module")
def result(table):
    return audit(table).treatment_effects(method="paper", n_repeats=3, rng=0)


def test_it_is_labelled_and_says_what_is_wrong_with_it(result):
    assert "paper" in result.method
    (note,) = (note for note in result.notes if note.code == "paper-procedure")
    for fault in ("Eq. (20)", "Eq. (42)", "seldom"):
        assert fault in note.message
    assert result.details["method"] == "paper"
    assert result.joint is None


def test_a_group_without_an_effect_is_found(table, result):
    biases = {f.group: f for f in result.findings if f.estimand.kind == "bias"}
    assert biases["region=N"].decision == "detected"
    default = audit(table).treatment_effects(rng=0)
    ours = {f.group: f for f in default.findings if f.estimand.kind == "bias"}
    assert_allclose(biases["region=N"].estimate, ours["region=N"].estimate, atol=0.1)
    # A quarter of the rows carries each estimate: twice the standard error.
    width = [b["region=N"].ci.high - b["region=N"].ci.low for b in (biases, ours)]
    assert 1.6 < width[0] / width[1] < 2.4
    assert default.details["method"] == "default"
    assert default.details["paper"] is None


def test_figures_and_tables_of_the_paper_are_drawn(result):
    assert {line.get_gid() for line in paper_densities(result).get_lines()} >= {"density-before"}
    strategies = result.details["paper"]["strategies"]
    after = paper_densities(result, of="error", remaining=True)
    assert {line.get_gid() for line in after.get_lines()} >= {f"density-{s}" for s in strategies}
    assert paper_statistics(result).get_xlabel()
    lines, left, *_ = effect_tables(result)
    assert len(lines.rows) == 4
    assert [row[0] for row in left.rows] == [correction_words(s, code=True) for s in strategies]
    assert result.plot() is not None
    again = eq.AuditResult.from_dict(result.to_dict())
    assert again.details["paper"] == result.details["paper"]


def test_figures_need_the_procedure(table):
    plain = audit(table).treatment_effects(n_repeats=1, rng=0)
    with pytest.raises(InvalidParameterError, match="paper"):
        paper_densities(plain)


def test_what_the_procedure_does_not_know_is_refused(table):
    rows = table | {"who": np.arange(30_000) // 2, "w": np.ones(30_000)}
    for roles, options, named in (
        ({"cluster": "who"}, {}, "`cluster`"),
        ({"weight": "w"}, {}, "`weight`"),
        ({}, {"margin": 0.1}, "`margin`"),
        ({}, {"adjust": "max_t"}, "`adjust`"),
        ({}, {"ranking": "autoc", "collapse": "control"}, "`collapse`, `ranking`"),
        ({}, {"n_repeats": 0}, "`n_repeats`"),
    ):
        with pytest.raises(InvalidParameterError, match=named):
            audit(rows, **roles).treatment_effects(method="paper", **options)
    with pytest.raises(InvalidParameterError, match="method"):
        audit(table).treatment_effects(method="published")


def test_arms_named_by_text_and_groups_that_cannot_be_tested(table):
    rows = {name: values[:3_000] for name, values in table.items()}
    rows["offer"] = np.where(rows["offer"] == 1, "mail", "nothing")
    rows["region"] = np.where(np.arange(3_000) < 12, "tiny", rows["region"])
    rows["sold"] = np.where(np.arange(3_000) < 12, 0, rows["sold"])
    found = audit(rows).treatment_effects(method="paper", control="nothing", n_repeats=1, rng=0)
    (tiny,) = (f for f in found.findings if f.group == "region=tiny")
    assert tiny.decision == "not tested"
    assert tiny.notes[0].code == "no-control-positives"
    assert any(f.decision != "not tested" for f in found.findings)


def test_one_group_has_no_rest(table):
    rows = {name: values[:2_000] for name, values in table.items()}
    one = audit(rows | {"region": np.full(2_000, "N")})
    (finding,) = one.treatment_effects(method="paper", n_repeats=1, rng=0).findings
    assert finding.decision == "not tested"
    assert finding.notes[0].code == "no-rest"


def test_the_published_procedure_knows_one_treatment(table):
    several = audit(table, effect_pred={"1": "predicted"})
    with pytest.raises(InvalidParameterError, match="which has no `effect_pred` of several arms"):
        several.treatment_effects(method="paper")
