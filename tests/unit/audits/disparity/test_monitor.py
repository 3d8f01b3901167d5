import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise import Decision
from equipoise.audits.disparity.monitor import Watch, batch_order
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from equipoise.plans.dossier import Check
from equipoise.plans.gate import Outcome, outcome, tripped
from equipoise.results.disclosure import disclosed
from equipoise.results.wording import headline
from equipoise.stats.disparity.monitor import monitor_gaps

RNG = np.random.default_rng(4)
WEEKS, ROWS = 30, 120
N = WEEKS * ROWS
WEEK = np.repeat(np.arange(1, WEEKS + 1), ROWS)
GROUP = RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
TABLE = {
    "week": WEEK,
    "g": GROUP,
    "h": RNG.choice(["x", "y"], N),
    "p": (RNG.random(N) < 0.5 - 0.3 * ((GROUP == "b") & (WEEK > 12))).astype(int),
    "y": RNG.integers(0, 2, N),
    "s": RNG.random(N),
    "w": RNG.uniform(0.5, 2.0, N),
    "u": RNG.integers(0, 400, N).astype(str),
}
ROLES = {"group": "g", "y_true": "y", "y_pred": "p", "y_score": "s", "time": "week"}


def audit(**changes):
    return eq.Audit(TABLE, **(ROLES | changes))


def assert_same(result, direct):
    low, high = direct.confidence_interval()
    for j, group in enumerate(direct.groups):
        finding = next(f for f in result.findings if f.group == f"g={group}")
        numbers = (finding.estimate, finding.p_value, finding.p_value_raw)
        expected = (direct.estimate[j], direct.p_value[j], direct.alarms.p_value_raw[j])
        assert_allclose(numbers, expected, rtol=1e-9)
        assert_allclose((finding.ci.low, finding.ci.high), (low[j], high[j]), rtol=1e-9)


@pytest.mark.parametrize("reference", ["rest", "population", {"g": "a"}, 0.45])
def test_rates_agree_with_the_engine_on_arrays(reference):
    plain = reference["g"] if isinstance(reference, dict) else reference
    direct = monitor_gaps(TABLE["p"], GROUP, WEEK, reference=plain)
    result = audit().monitor("selection_rate", reference=reference)
    assert_same(result, direct)
    assert "exact" in result.method


@pytest.mark.parametrize("extra", [{}, {"weight": "w"}, {"cluster": "u"}])
def test_real_values_weights_and_clusters_agree_with_the_engine_on_arrays(extra):
    arrays = {name: TABLE[column] for name, column in extra.items()}
    direct = monitor_gaps((TABLE["y"] - TABLE["s"]) ** 2, GROUP, WEEK, **arrays)
    result = audit(**extra).monitor("squared_error")
    assert_same(result, direct)
    assert "asymptotic-monitor" in {note.code for note in result.notes}
    assert result.details["n_clusters"] == (400 if "cluster" in extra else None)


def test_outcomes_of_zeros_and_ones_are_exact_whatever_the_metric():
    assert "exact" in audit().monitor("mean_outcome").method


@pytest.mark.parametrize(
    ("reference", "size"), [({"g": "a"}, "one group and metric"), ("rest", "2 groups and metrics")]
)
def test_the_family_of_a_single_group_is_one(reference, size):
    rows = {"g": ["a", "b"] * 60, "p": [0, 1, 1] * 40, "t": [k // 40 for k in range(120)]}
    audit = eq.Audit(rows, group="g", y_pred="p", time="t")
    result = audit.monitor("selection_rate", reference=reference)
    (message,) = [note.message for note in result.notes if note.code == "multiplicity"]
    assert message.startswith(f"One family of {size} at all looks together")


def test_an_alarm_says_when_and_since_when():
    result = audit().monitor("selection_rate", reference={"g": "a"})
    b = next(path for path in result.details["paths"] if path["group"] == "g=b")
    assert int(b["alarm_at"]) > 12
    assert int(b["since"]["low"]) <= 13 <= int(b["since"]["high"])
    assert f"Alarm in {b['alarm_at']}: the selection rate of g: b" in headline(result)
    assert result.findings[0].is_reference


def test_numbers_are_ordered_as_numbers_and_text_as_text():
    assert audit().monitor("fpr").details["batches"] == [str(k) for k in range(1, WEEKS + 1)]
    text = TABLE | {"week": [f"2026-W{k:02}" for k in WEEK]}
    assert eq.Audit(text, **ROLES).monitor("fpr").details["batches"][0] == "2026-W01"


def test_several_metrics_are_one_family():
    result = audit().monitor(["selection_rate", "fpr"])
    assert len(result.findings) == 6
    alone = audit().monitor("selection_rate")
    assert result.findings[1].p_value > alone.findings[1].p_value
    assert result.findings[1].p_value_raw == alone.findings[1].p_value_raw


def test_no_alarm_is_told_with_what_is_known():
    result = audit().monitor("fpr", margin=0.5)
    assert headline(result).startswith("No alarm in 30 batches; the average gap of every group")
    early = eq.Audit({k: v[:40] for k, v in TABLE.items()}, **ROLES).monitor("fpr")
    assert "No alarm in 1 batch; this does not show" in headline(early)
    assert {note.code for f in early.findings for note in f.notes} == {"burn-in"}


def test_a_gap_that_did_not_last_is_noted():
    late = np.where((GROUP == "b") & (WEEK == 20), 0, RNG.integers(0, 2, N))
    result = eq.Audit(TABLE | {"p": late}, **ROLES).monitor("selection_rate")
    b = next(f for f in result.findings if f.group == "g=b")
    assert b.decision is Decision.DETECTED
    assert [note.code for note in b.notes] == ["gap-did-not-last"]


def test_what_has_no_evidence_is_said():
    apart = TABLE | {"g": np.where(WEEK % 2 == 0, "a", "b")}
    result = eq.Audit(apart, **ROLES).monitor("fpr")
    assert {f.notes[0].code for f in result.findings} == {"never-together"}
    assert result.joint.decision is Decision.NOT_TESTED
    few = {k: v[:60] for k, v in TABLE.items()}
    scale = eq.Audit(few, **ROLES).monitor("mean_score")
    assert {f.notes[0].code for f in scale.findings} == {"sets-scale"}
    constant = eq.Audit(TABLE | {"p": np.zeros(N, int)}, **ROLES).monitor("selection_rate")
    assert_allclose([f.p_value for f in constant.findings], 1.0)
    assert {f.notes[0].code for f in constant.findings} == {"degenerate"}


def test_run_lengths_have_no_p_values():
    result = audit().monitor("selection_rate", alarm="arl", run_length=50)
    assert {f.p_value for f in result.findings} == {None}
    b = next(f for f in result.findings if f.group == "g=b")
    assert b.decision is Decision.DETECTED
    assert len(result.details["paths"][1]["alarms"]) > 1
    assert "at least 50 batches" in " ".join(str(result).split())
    assert "chance of any false alarm" not in headline(result)


@pytest.mark.parametrize("adjust", ["e-bh", "none"])
def test_other_adjustments_say_what_they_bound(adjust):
    words = {"e-bh": "look where you stop", "none": "each group alone"}[adjust]
    notes = audit().monitor("fpr", adjust=adjust).notes
    assert any(words in note.message for note in notes)


def test_a_margin_beyond_the_rates_is_noted():
    notes = audit().monitor("fpr", reference=0.05, margin=0.1).notes
    assert "one-side-silent" in {note.code for note in notes}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": "highest"}, "the data choose"),
        ({"reference": eq.External(0.3, 0.1)}, "an error of its own"),
        ({"time": "weak"}, "Did you mean 'week'"),
        ({"alarm": "arl"}, "`run_length` belongs to"),
        ({"run_length": 5}, "`run_length` belongs to"),
        ({"metric": []}, "empty list"),
        ({"metric": "fpa"}, "unknown"),
        ({"margin": -0.1}, "margin"),
        ({"time": "h"}, "'h' is not a time: 'x' has no place"),
    ],
)
def test_what_cannot_be_watched_gets_a_sentence(options, message):
    with pytest.raises((InvalidParameterError, DataError), match=message):
        audit().monitor(**({"metric": "fpr"} | options))
    with pytest.raises(InvalidParameterError, match="needs `time`"):
        audit(time=None).monitor("fpr")


def test_time_must_have_an_order():
    with pytest.raises(DataError, match="of one length"):
        batch_order(np.array(["2026-07", "2026-07-01"]), "t")
    with pytest.raises(DataError, match=r"xxx \.\.\. xxx") as raised:
        batch_order(np.array(["2026-07", "x" * 5000]), "t")
    assert len(str(raised.value)) < 500
    with pytest.raises(DataError, match="true and false"):
        eq.Audit(TABLE | {"week": WEEK > 3}, **ROLES).monitor("fpr")
    with pytest.raises(DataError, match="20,001 different moments"):
        batch_order(np.arange(20_001).astype(str), "t")
    assert batch_order(np.array(["2026-07-01T10:00:00", "2026-07-01T09:00:00.5"]), "t")
    gone = WEEK.astype(float)
    gone[3] = np.nan
    with pytest.raises(MissingValuesError, match="'week' has 1 missing"):
        eq.Audit(TABLE | {"week": gone}, **ROLES).monitor("fpr")


def test_options_are_checked_once():
    assert Watch(depth=1).depth == 1
    with pytest.raises(InvalidParameterError, match="run_length"):
        Watch(alarm="arl", run_length=0.5)


def test_pictures_show_alarms_and_what_could_not_be_tested():
    result = audit(group=["g", "h"]).monitor("selection_rate", margin=0.01, reference={"g": "a"})
    axes = result.plot()
    *gaps, evidence = axes.figure.axes
    assert axes.get_title(loc="left").startswith("g: b, alarm ")
    assert evidence.get_xlabel() == "batch; 2 groups not tested: see the table"
    gids = {a.get_gid() for panel in axes.figure.axes for a in panel.get_children()}
    assert {
        f"evidence-{gid[8:]}" for gid in gids if re.fullmatch(r"finding-\d+", gid or "")
    } <= gids
    assert [panel.patches[0].get_gid() for panel in gaps] == ["margin"] * len(gaps)
    assert any(gid and gid.endswith("-alarm") for gid in gids)
    one = audit().monitor("selection_rate")
    assert one.plot(ax=axes) is axes
    apart = eq.Audit(TABLE | {"g": np.where(WEEK % 2 == 0, "a", "b")}, **ROLES).monitor("fpr")
    assert [t.get_text() for t in apart.plot().texts] == ["not tested"]


def test_a_group_whose_numbers_are_withheld_has_no_path():
    table = TABLE | {"g": np.where(np.arange(N) < 3, "tiny", GROUP)}
    result = disclosed(eq.Audit(table, **ROLES).monitor("selection_rate"))
    tiny = next(f for f in result.findings if f.group == "g=tiny")
    assert tiny.withheld
    assert result.details.path(tiny) is None
    assert "Alarm in" in headline(result)
    result.plot()
    few = [n for path in result.details["paths"] for n in path["n"] if n is not None and 0 < n < 5]
    assert not few
    only = replace(result, findings=tuple(replace(f, decision=Decision.DETECTED) for f in (tiny,)))
    said = headline(only)
    assert said.startswith(
        "Alarm in a batch that is withheld: the selection rate of g: tiny differs"
    )
    assert "(e withheld, at most a 5% chance of any false alarm" in said


def weekly(n=200, weeks=60, rates=(0.5, 0.5)):
    rng = np.random.default_rng(2)
    group = rng.integers(0, 2, n * weeks)
    decided = rng.random(n * weeks) < np.array(rates)[group]
    table = {"g": np.where(group == 1, "b", "a"), "p": decided.astype(int)}
    return table | {"week": np.repeat(np.arange(weeks), n)}


@pytest.mark.parametrize(
    ("options", "within"),
    [
        ({"margin": 0.1}, True),
        ({"margin": 0.1, "alternative": "greater"}, True),
        ({"margin": 0.1, "alternative": "less"}, True),
        ({"margin": 0.02}, False),
        ({"margin": 0.0}, False),
    ],
)
def test_an_average_gap_within_the_margin_is_said_to_be(options, within):
    data = eq.Audit(weekly(), group="g", y_pred="p", time="week")
    result = data.monitor("selection_rate", reference={"g": "a"}, **options)
    (finding,) = [f for f in result.findings if f.ci is not None]
    assert (finding.decision is Decision.WITHIN_MARGIN) == within
    assert ("within-on-average" in {note.code for note in finding.notes}) == within
    check = Check(id="m", question="monitor", options={}, result=result)
    if options["margin"]:
        assert bool(tripped([check], "not-within-margin")) != within
        assert outcome(result) is (Outcome.WITHIN_MARGIN if within else Outcome.INCONCLUSIVE)
    if within:
        assert finding.ci.high <= 0.1 or options.get("alternative") == "less"
        assert "is within the margin of 10.0 percentage points" in headline(result)
    else:
        assert "within the margin" not in headline(result)


def test_only_the_side_that_was_asked_about_has_to_be_within():
    data = eq.Audit(weekly(rates=(0.7, 0.5)), group="g", y_pred="p", time="week")
    asked = {"reference": {"g": "a"}, "margin": 0.1}

    def decision(side):
        result = data.monitor("selection_rate", alternative=side, **asked)
        return result.findings[1].decision

    assert decision("greater") is Decision.WITHIN_MARGIN
    assert decision("less") is Decision.DETECTED
    assert decision("two-sided") is Decision.DETECTED


def test_batches_of_a_few_rows_cannot_be_read_off_the_path():
    table = weekly(n=40, weeks=30)
    # One row of b in week 3, three in week 11; everybody else there is in a.
    for week, kept in ((3, 1), (11, 3)):
        there = np.flatnonzero((table["week"] == week) & (table["g"] == "b"))
        table["g"][there[kept:]] = "a"
    result = eq.Audit(table, group="g", y_pred="p", time="week").monitor("selection_rate")
    whole = result.details.path(result.findings[1])
    assert (whole["n"][3], whole["n"][11]) == (1, 3)
    path = disclosed(result).details.path(result.findings[1])
    hidden = [t for t in range(30) if path["n"][t] is None]
    assert {3, 11} < set(hidden)
    assert sum(whole["n"][t] for t in hidden) >= 5
    assert path["batch_gap"][3] is None
    for name in ("n", "n_reference"):
        for side in disclosed(result).details["paths"]:
            assert [t for t in range(30) if side[name][t] is None] == hidden
    for name in ("gap", "e", "e_adjusted"):
        shown = [t for t in range(30) if path[name][t] is not None]
        assert shown[-1] == 29
        steps = [sum(whole["n"][a + 1 : b + 1]) for a, b in zip([-1, *shown], shown, strict=False)]
        assert min(steps) >= 5
    assert disclosed(result, 1).details["paths"] == result.details["paths"]
    again = disclosed(disclosed(result))
    assert again.details["paths"] == disclosed(result).details["paths"]


def test_a_monitor_of_single_rows_tells_no_row():
    rng = np.random.default_rng(1)
    table = {"g": rng.choice(["a", "b"], 300), "p": rng.integers(0, 2, 300), "week": np.arange(300)}
    result = eq.Audit(table, group="g", y_pred="p", time="week").monitor(
        "selection_rate", reference=0.4
    )
    for path in disclosed(result).details["paths"]:
        assert set(path["n"]) == {None}
        told = {gap for gap in path["gap"] if gap is not None}
        assert 10 < len(told) <= 200 // 5
    disclosed(result).plot()


def test_a_group_of_a_few_people_hides_the_batches_that_have_them_and_few_others():
    table = weekly(n=60, weeks=40)
    table["g"][[5, 70]] = "tiny"
    result = eq.Audit(table, group="g", y_pred="p", time="week").monitor("selection_rate")
    told = disclosed(result).details["paths"]
    assert {path["group"] for path in told} <= {"g=a", "g=b"}
    for path in told:
        hidden = [t for t, n in enumerate(path["n"]) if n is None]
        assert {0, 1} <= set(hidden)
        assert len(hidden) < 5


@pytest.mark.parametrize("state", [3, ""])
def test_a_state_that_names_no_file_is_refused(state):
    rows = {"g": ["a", "b"] * 30, "p": [0, 1] * 30, "day": ["2024-01-01"] * 60}
    with pytest.raises(InvalidParameterError, match="`state` must name a file; got"):
        eq.Audit(rows, group="g", y_pred="p").monitor("selection_rate", time="day", state=state)
