import json
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import equipoise as eq
from equipoise.audits.scores import sample as score_sample
from equipoise.cli.app import app
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from equipoise.plot.curves import before_after
from equipoise.results.wording import picture_words
from equipoise.stats.scores.parity import parity_test
from simulate.scores import users_with_scores
from support.engines import ENGINES, on_engine

ROLES = {"group": "sex", "y_true": "y", "y_score": "score"}


@pytest.fixture
def table(rng):
    y, score, group, user = users_with_scores(
        rng, n_users=700, rows=3, rho=0.4, gap=0.2, mean=lambda s: 0.05 + 0.7 * s
    )
    return pa.table(
        {
            "y": y.astype(int),
            "score": score,
            "sex": np.where(group == 1, "<b>", "M"),
            "user": [f"u{u:05d}" for u in user],
            "number": user,
        }
    )


def numbers(result):
    return [
        [f.estimate, f.ci and f.ci.low, f.ci and f.ci.high, f.statistic, f.p_value]
        for f in result.findings
    ] + [[result.joint.statistic, result.joint.p_value]]


def assert_same(a, b, atol=1e-9):
    for x, y in zip(numbers(a), numbers(b), strict=True):
        for u, v in zip(x, y, strict=True):
            assert (u is None) == (v is None)
            assert u is None or u == pytest.approx(v, abs=atol, rel=1e-7)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_numbers_of_the_arrays(engine, table):
    audit = eq.Audit(on_engine(engine, table), cluster="user", **ROLES)
    result = audit.predictive_parity(unit="cluster")
    arrays = parity_test(
        table["y"].to_numpy(),
        table["score"].to_numpy(),
        (table["sex"].to_numpy(zero_copy_only=False) == "M").astype(int),
        cluster=table["number"].to_numpy(),
        unit="cluster",
    )
    average, *rest, order = result.findings
    assert average.estimate == pytest.approx(arrays.estimate)
    assert average.p_value == pytest.approx(arrays.cusum.ks_p_value)
    assert order.estimate == pytest.approx(arrays.order.gap)
    tested = [f for f in rest if f.estimate is not None]
    np.testing.assert_allclose([f.estimate for f in tested], arrays.differences.estimate, atol=1e-9)
    np.testing.assert_allclose([f.ci.low for f in tested], arrays.differences.test.low, atol=1e-7)
    both = min(arrays.cusum.ks_p_value, arrays.order.p_value)
    assert result.joint.p_value == pytest.approx(min(1.0, 2 * both))
    assert result.details["definition2"]["parts"]["order"] == pytest.approx(arrays.order.p_value)
    assert result.n == table.num_rows


def test_result_answers_where_and_whether(table):
    result = eq.Audit(table, cluster="user", **ROLES).predictive_parity(unit="cluster")
    assert result.joint.decision is eq.Decision.DETECTED
    assert len(result.findings) == 23
    assert all(f.group == "sex=M" and f.reference == "sex=<b>" for f in result.findings[:-1])
    first = result.findings[0]
    assert first.estimand == "outcome at equal scores"
    assert first.ci.low < first.estimate < first.ci.high < 0
    assert first.notes[0].code == "interval-unadjusted"
    assert result.findings[-1].estimand.kind == "order"
    assert {f.decision for f in result.findings} >= {eq.Decision.DETECTED}
    words = " ".join(str(result).split())
    assert "At equal scores the mean outcome of sex: M is" in words
    assert "the same score does not mean the same in every group" in words
    assert "sex: M outcome at equal" in words
    assert "<b>" not in result._repr_html_()
    pair = result.details["pairs"][0]
    assert pair["average_difference"] == pytest.approx(-0.2, abs=0.08)
    average = result.details["average"]
    assert average["estimate"] == pair["average_difference"] == first.estimate
    assert (average["low"], average["high"]) == (first.ci.low, first.ci.high)
    for curve in result.details["curves"]:
        assert len(curve["grid"]) == len(curve["low"]) == len(curve["high"]) > 5
    again = eq.AuditResult.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert again == result


def test_unit_is_part_of_the_question(table):
    audit = eq.Audit(table, cluster="user", **ROLES)
    with pytest.raises(InvalidParameterError, match="`unit` must be said because rows repeat"):
        audit.predictive_parity()
    by_user, by_row = (audit.predictive_parity(unit=unit) for unit in ("cluster", "row"))
    assert by_user.joint.p_value != by_row.joint.p_value or by_user.findings != by_row.findings
    with pytest.raises(InvalidParameterError, match="needs clusters"):
        eq.Audit(table, **ROLES).predictive_parity(unit="cluster")


def test_options_change_the_answer(table):
    audit = eq.Audit(table, **ROLES)
    plain = audit.predictive_parity()
    assert [f.estimand for f in audit.predictive_parity(grid=[0.4, 0.5]).findings] == [
        "outcome at equal scores",
        "outcome at score 0.4",
        "outcome at score 0.5",
        "order",
    ]
    without = audit.predictive_parity(order=False)
    assert without.joint.p_value == without.details["pairs"][0]["cusum_p_value"]
    assert without.details["order"] is None
    assert len(without.findings) == len(plain.findings) - 1
    assert numbers(audit.predictive_parity(smoothing="score")) != numbers(plain)
    assert plain.findings[3].estimand.words.startswith("outcome near score")
    assert numbers(audit.predictive_parity(bandwidth=0.2)) != numbers(plain)
    assert numbers(audit.predictive_parity(rng=5)) != numbers(plain)
    wide = audit.predictive_parity(confidence_level=0.999)
    at = [k for k, f in enumerate(plain.findings[:-1]) if f.ci is not None]
    assert all(wide.findings[k].ci.high > plain.findings[k].ci.high for k in at)
    flipped = audit.predictive_parity(reference={"sex": "M"})
    assert flipped.findings[at[0]].group == "sex=<b>"
    paper = audit.predictive_parity(method="paper")
    assert paper.notes[0].code == "paper-parity"
    with pytest.raises(InvalidParameterError, match="'auto' or a number"):
        audit.predictive_parity(bandwidth="wide")


def test_calibration_compares_each_group_with_the_score(table):
    audit = eq.Audit(table, **ROLES)
    result = audit.predictive_parity(hypothesis="calibration")
    assert {f.group for f in result.findings} == {"sex=<b>", "sex=M"}
    assert {f.reference for f in result.findings} == {"the score itself"}
    assert [pair["reference"] for pair in result.details["pairs"]] == [None, None]
    with pytest.raises(InvalidParameterError, match="`method='paper'` tests parity"):
        audit.predictive_parity(hypothesis="calibration", method="paper")


def test_the_sentence_about_calibration_compares_no_groups(rng):
    score, group = rng.uniform(size=1000), np.repeat(["a", "b"], 500)
    right, low = (rng.uniform(size=1000) < factor * score for factor in (1.0, 0.5))
    said = [
        " ".join(str(eq.Audit(table, **ROLES).predictive_parity(hypothesis="calibration")).split())
        for table in ({"y": y.astype(int), "score": score, "sex": group} for y in (right, low))
    ]
    assert "no difference between outcomes and the score was detected in any group" in said[0]
    assert "; this does not show that the score is right in each." in said[0]
    assert "; the score is not the mean outcome in every group (global test p <0.001)" in said[1]


def test_of_equal_p_values_the_name_does_not_decide_whose_statistic_is_told(rng):
    table = three_groups(rng)
    level = np.select([table["sex"] == "a", table["sex"] == "b"], [0.02, 0.5], 0.98)
    table["y"] = (rng.uniform(size=len(level)) < level).astype(int)
    names = np.array(["c", "b", "a"])[np.searchsorted(["a", "b", "c"], table["sex"])]
    first, second = (
        eq.Audit(table | {"sex": sex}, **ROLES).predictive_parity(hypothesis="calibration").joint
        for sex in (table["sex"], names)
    )
    assert first.p_value == second.p_value
    assert first.statistic == pytest.approx(second.statistic, rel=1e-9)


def test_the_picture_of_calibration_compares_the_outcomes_of_a_group_with_the_score(table):
    result = eq.Audit(table, **ROLES).predictive_parity(hypothesis="calibration")
    assert result.details["average"]["reference"] is None
    title = " ".join(result.plot().get_title(loc="left").split())
    assert title.startswith("Outcomes of")
    assert "the score" in title


def three_groups(rng, n=1500):
    score = rng.uniform(size=n)
    group = rng.choice(["a", "b", "c"], size=n)
    y = (rng.uniform(size=n) < 0.2 + 0.5 * score + 0.25 * (group == "c")).astype(int)
    return {"y": y, "score": score, "sex": group}


def test_three_groups_are_compared_in_pairs_or_with_a_reference(rng):
    audit = eq.Audit(three_groups(rng), **ROLES)
    pairs = audit.predictive_parity()
    assert len(pairs.details["pairs"]) == 3
    assert len(pairs.details["curves"]) == 3
    assert "all groups at once" in pairs.joint.method
    raw = [pair["cusum_p_value"] for pair in pairs.details["pairs"]]
    adjusted = [pair["cusum_p_value_adjusted"] for pair in pairs.details["pairs"]]
    omnibus = pairs.details["definition2"]["parts"]["parity"]
    assert adjusted == [max(p, omnibus) for p in raw]
    assert "closed testing over 4 subsets" in pairs.notes[-1].message
    holm = audit.predictive_parity(adjust="holm")
    assert "decided by Holm;" in holm.notes[-1].message
    assert holm.joint.p_value == pairs.joint.p_value
    one = audit.predictive_parity(reference={"sex": "a"})
    assert {f.group for f in one.findings[:-1]} == {"sex=b", "sex=c"}
    with pytest.raises(DataError, match="has no value 'z'"):
        audit.predictive_parity(reference={"sex": "z"})


def test_a_reference_of_several_groups_is_refused(rng):
    data = three_groups(rng) | {"age": rng.choice(["old", "young"], size=1500)}
    audit = eq.Audit(data, group=["sex", "age"], y_true="y", y_score="score")
    with pytest.raises(InvalidParameterError, match="`reference` must select one group"):
        audit.predictive_parity(reference={"sex": "a"})


def test_a_small_group_is_listed_and_not_tested(rng):
    data = three_groups(rng)
    data["sex"] = np.where(np.arange(1500) < 5, "tiny", data["sex"])
    result = eq.Audit(data, **ROLES).predictive_parity(reference={"sex": "a"})
    tiny = [f for f in result.findings if f.group == "sex=tiny"]
    assert [f.decision for f in tiny] == [eq.Decision.NOT_TESTED]
    assert tiny[0].notes[0].code == "group-too-small"
    assert "at least 10 rows; the smallest has 5" in tiny[0].notes[0].message


def test_no_common_scores_leave_order_to_be_tested(rng):
    score = np.concatenate([rng.uniform(0, 0.4, 300), rng.uniform(0.5, 1, 300)])
    data = {"y": rng.integers(2, size=600), "score": score, "sex": np.repeat(["a", "b"], 300)}
    audit = eq.Audit(data, **ROLES)
    result = audit.predictive_parity()
    assert result.findings[0].decision is eq.Decision.NOT_TESTED
    assert result.findings[0].notes[0].code == "no-common-scores"
    assert "0% of the group" in result.findings[0].notes[0].message
    assert result.joint.p_value == result.details["order"]["p_value"]
    alone = audit.predictive_parity(order=False)
    assert alone.joint.decision is eq.Decision.NOT_TESTED
    assert "Nothing could be tested" in str(alone)


def test_the_paper_s_own_example_of_a_violation_is_detected():
    data = {
        "y": [1] * 80 + [0] * 20 + [1] * 60 + [0] * 40,
        "score": [0] * 100 + [1] * 100,
        "sex": ["a"] * 100 + ["b"] * 100,
    }
    result = eq.Audit(data, **ROLES).predictive_parity()
    assert result.joint.decision is eq.Decision.DETECTED
    assert result.findings[-1].decision is eq.Decision.DETECTED
    assert result.findings[-1].estimate == pytest.approx(0.2)
    assert "order is reversed: sex: b with scores 1 have an outcome 20.0 points below" in " ".join(
        str(result).split()
    )


def test_groups_that_share_few_scores_are_compared_there_and_judged_by_order(rng):
    n = 2000
    group = np.arange(n) % 2
    score = np.where(group == 1, rng.beta(8, 2, n), rng.beta(2, 8, n))
    data = {"y": (rng.uniform(size=n) < score).astype(int), "score": score, "sex": group}
    result = eq.Audit(data, **ROLES).predictive_parity()
    assert [note.code for note in result.findings[0].notes] == [
        "interval-unadjusted",
        "no-common-scores",
    ]
    assert result.joint.p_value == result.details["definition2"]["parts"]["order"]
    assert any(f.decision is not eq.Decision.NOT_TESTED for f in result.findings[1:-1])


def test_a_lending_table_has_a_size_a_direction_and_bands():
    """About 2,400 applicants, a minority of 14% approved less often at equal scores."""
    rng = np.random.default_rng(5)
    n = 2_380
    minority = rng.random(n) < 0.14
    score = np.where(minority, rng.beta(4, 1.5, n), rng.beta(8, 1.2, n))
    approved = (rng.random(n) < np.clip(score - 0.15 * minority, 0, 1)).astype(int)
    rows = {"race": np.where(minority, "Black", "White"), "y": approved, "s": score}
    result = eq.Audit(rows, group="race", y_true="y", y_score="s").predictive_parity(rng=0)
    average, *others = result.findings
    bands = [f for f in others if str(f.estimand).startswith("outcome at score")]
    # The size with its interval comes first, and in words.
    assert average.estimand == "outcome at equal scores"
    truth = -0.15 if average.group.startswith("race=Black") else 0.15
    assert average.ci.low < truth < average.ci.high
    assert 0 not in average.ci
    assert len(bands) == 21
    assert sum(f.decision != "not tested" for f in bands) >= 11
    assert any(f.decision == "detected" for f in bands)
    assert result.joint.decision == "detected"
    assert "At equal scores the mean outcome" in " ".join(str(result).split())


def test_one_tiny_group_does_not_end_in_p_one(rng):
    data = three_groups(rng)
    data["sex"] = np.where(np.arange(1500) < 12, "tiny", data["sex"])
    result = eq.Audit(data, **ROLES).predictive_parity()
    assert result.joint.decision is eq.Decision.DETECTED
    assert result.details["average"]["group"] == "sex=c"


def test_a_difference_that_changes_sign_is_said_to_be_none_on_average(rng):
    score, group = rng.uniform(size=4000), rng.choice(["a", "b"], size=4000)
    y = rng.uniform(size=4000) < 0.5 + np.where(group == "b", 0.5, -0.5) * (score - 0.5)
    result = eq.Audit({"y": y.astype(int), "score": score, "sex": group}, **ROLES)
    assert "on average no difference is shown: most for sex: b, outcome" in " ".join(
        str(result.predictive_parity()).split()
    )


def test_what_only_the_band_shows_is_not_said_of_the_global_test(rng):
    result = eq.Audit(three_groups(rng), **ROLES).predictive_parity()
    said = " ".join(str(result).split())
    assert "the same score does not mean the same in every group (global test p" in said
    alone = replace(result.joint, decision=eq.Decision.NOT_DETECTED, p_value=0.5)
    said = " ".join(str(replace(result, joint=alone)).split())
    assert "in every group at some scores, though the global test detects nothing (p 0.500)" in said


def test_sums_of_outcomes_and_scores_are_compared(rng):
    n = 3000
    group, s, t = rng.choice(["a", "b"], size=n), rng.uniform(size=n), rng.uniform(size=n)
    data = {
        "sex": group,
        "s": s,
        "t": t,
        "click": (rng.uniform(size=n) < s).astype(int),
        "reply": (rng.uniform(size=n) < t + 0.2 * (group == "b") * (0.5 - t)).astype(int),
    }
    audit = eq.Audit(data, group="sex")
    result = audit.predictive_parity(
        y_true=["click", "reply"], y_score=["s", "t"], weights=[1, 0.5], rng=1
    )
    y, score = data["click"] + 0.5 * data["reply"], s + 0.5 * t
    same = eq.Audit({"sex": group, "y": y, "score": score}, **ROLES).predictive_parity(rng=1)
    assert_same(result, same)
    one = audit.predictive_parity(y_true="click", y_score="s")
    assert one.findings[0].estimate != result.findings[0].estimate
    with pytest.raises(InvalidParameterError, match="one entry for each objective; got 2, 1 and 2"):
        audit.predictive_parity(y_true=["click", "reply"], y_score=["s"])
    with pytest.raises(InvalidParameterError, match="`weights` needs the columns"):
        eq.Audit(data | {"y": y}, group="sex", y_true="y", y_score="s").predictive_parity(
            weights=[1, 2]
        )
    with pytest.raises(DataError, match="the columns of a sum must be numeric; 'sex'"):
        audit.predictive_parity(y_true=["sex"], y_score=["s"])


def test_few_scores_are_said_to_be_compared_one_by_one(rng):
    data = three_groups(rng)
    data["score"] = np.ceil(data["score"] * 5)
    result = eq.Audit(data, **ROLES).predictive_parity(reference={"sex": "a"})
    assert "few-scores" in [note.code for note in result.notes]
    assert len(result.findings) == 13


def test_clusters_in_several_groups_are_said_to_be(rng):
    data = three_groups(rng) | {"user": rng.integers(300, size=1500)}
    result = eq.Audit(data, cluster="user", **ROLES).predictive_parity(unit="row")
    assert "clusters-span-groups" in [note.code for note in result.notes]


def test_an_order_turned_round_is_found(rng):
    score, group = rng.uniform(size=4000), rng.choice(["a", "b"], size=4000)
    mean = np.where(group == "a", 0.2 + 0.6 * score, 0.8 - 0.6 * score)
    data = {"y": (rng.uniform(size=4000) < mean).astype(int), "score": score, "sex": group}
    result = eq.Audit(data, **ROLES).predictive_parity()
    assert result.findings[-1].decision is eq.Decision.DETECTED
    assert result.findings[-1].estimate > 0.3


def test_constant_scores_are_refused(rng):
    data = three_groups(rng) | {"score": np.full(1500, 0.3)}
    with pytest.raises(DataError, match="`y_score` must vary"):
        eq.Audit(data, **ROLES).predictive_parity()


def test_one_group_is_refused(rng):
    data = three_groups(rng) | {"sex": np.full(1500, "a")}
    with pytest.raises(InvalidParameterError, match="parity compares groups; the table has one"):
        eq.Audit(data, **ROLES).predictive_parity()
    with pytest.raises(InvalidParameterError, match="pass `group`"):
        eq.Audit(data, y_true="y", y_score="score").predictive_parity()


def test_missing_values_are_refused_or_counted(rng):
    data = three_groups(rng)
    data["score"][:7] = np.nan
    with pytest.raises(MissingValuesError, match="'score' has 7 missing values"):
        eq.Audit(data, **ROLES).predictive_parity()
    result = eq.Audit(data, missing="drop", **ROLES).predictive_parity()
    assert result.n == 1493
    assert result.notes[0].code == "missing-dropped"


def test_weights_and_counts_enter(rng):
    data = three_groups(rng)
    count = rng.integers(1, 4, size=1500)
    counted = eq.Audit(data | {"k": count}, count="k", **ROLES).predictive_parity()
    repeated = {name: np.repeat(values, count) for name, values in data.items()}
    assert_same(counted, eq.Audit(repeated, **ROLES).predictive_parity())
    weighted = eq.Audit(data | {"k": count}, weight="k", **ROLES).predictive_parity()
    assert numbers(weighted) != numbers(eq.Audit(data, **ROLES).predictive_parity())


def test_many_rows_are_binned_and_change_little(table, monkeypatch):
    audit = eq.Audit(table, cluster="number", **ROLES)
    exact = audit.predictive_parity(unit="row", grid=[0.3, 0.5, 0.7])
    monkeypatch.setattr(score_sample, "EXACT_ROWS", 100)
    binned = audit.predictive_parity(unit="row", grid=[0.3, 0.5, 0.7])
    assert "binned-scores" in [note.code for note in binned.notes]
    assert_same(exact, binned, atol=2e-2)


def test_plot_draws_a_curve_and_a_band_for_each_group(table):
    result = eq.Audit(table, **ROLES).predictive_parity()
    axes = result.plot()
    curves, strips = axes.figure.axes
    assert curves is axes
    assert len(curves.collections) == 2
    labels = [text.get_text() for text in strips.get_legend().get_texts()]
    assert labels == ["outcome = score", "band excludes zero"]
    names = [text.get_text().partition(" \u00b7 ")[0] for text in strips.texts]
    assert names == ["sex: <b>", "sex: M"]
    assert [patch.get_gid() for patch in strips.patches] == ["scores-0", "scores-1"]


def test_plot_on_given_axes_or_without_scores_names_the_curves_in_its_legend(table):
    from matplotlib.figure import Figure

    result = eq.Audit(table, **ROLES).predictive_parity()
    told = result.to_dict()
    told["details"] = told["details"] | {"scores": None}
    for axes in (result.plot(ax=Figure().add_subplot()), eq.AuditResult.from_dict(told).plot()):
        assert len(axes.figure.axes) == 1
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert labels[:2] == ["sex: <b>", "sex: M"]


def test_rows_by_score_are_those_of_the_table_and_survive_json(table):
    result = eq.Audit(table, **ROLES).predictive_parity()
    scores = result.details["scores"]
    rows = table.to_pydict()
    for one in scores["groups"]:
        own = [
            s for s, g in zip(rows["score"], rows["sex"], strict=True) if f"sex={g}" == one["group"]
        ]
        counted = np.histogram(own, [*scores["low"], scores["high"][-1]])[0]
        assert one["rows"] == counted.tolist()
        assert sum(one["rows"]) == len(own)
    assert len(scores["low"]) == len(scores["high"]) == 40
    again = eq.AuditResult.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again.details["scores"] == scores


def test_the_description_of_the_picture_says_where_scores_lie(table):
    words = picture_words(eq.Audit(table, **ROLES).predictive_parity())[1]
    assert re.search(
        r"Half of the scores lie: sex: (M|<b>) between [\d.]+ and [\d.]+, sex: ", words
    )


def test_bins_with_few_people_are_withheld_and_drawn_as_such(rng):
    n = 1000
    score = np.round(rng.beta(2, 5, n), 3)
    data = {
        "y": (rng.uniform(size=n) < score) * 1,
        "score": score,
        "sex": rng.choice(list("ab"), n),
    }
    result = eq.Audit(data, **ROLES).predictive_parity()
    whole = [one["rows"] for one in result.details["scores"]["groups"]]
    assert any(0 < row < 5 for rows in whole for row in rows)
    shown = result.disclosed()
    for before, one in zip(whole, shown.details["scores"]["groups"], strict=True):
        hidden = [row for row, told in zip(before, one["rows"], strict=True) if told is None]
        assert all(told in {None, row} for row, told in zip(before, one["rows"], strict=True))
        assert not any(told is not None and 0 < told < 5 for told in one["rows"])
        assert len(hidden) > 1
        assert sum(hidden) >= 5
    assert "small counts are withheld" in shown.plot().figure.axes[1].get_xlabel()
    again = eq.AuditResult.from_dict(json.loads(json.dumps(shown.to_dict())))
    assert again.disclosed().details == shown.details
    wider = [one["rows"] for one in again.disclosed(min_cell=20).details["scores"]["groups"]]
    assert not any(row is not None and 0 < row < 20 for rows in wider for row in rows)
    assert result.disclosed(min_cell=1).details == result.details


def test_a_group_of_few_people_and_the_one_that_gives_it_away_have_no_bars_when_told(rng):
    data = three_groups(rng)
    data["sex"] = np.where(np.arange(1500) < 4, "tiny", data["sex"])
    result = eq.Audit(data, **ROLES).predictive_parity(reference={"sex": "a"})
    sizes = {one["group"]: sum(one["rows"]) for one in result.details["scores"]["groups"]}
    assert sizes["sex=tiny"] == 4
    shown = {one["group"] for one in result.disclosed().details["scores"]["groups"]}
    # With the reference of all nothing would be told at all.
    smallest = min(set(sizes) - {"sex=tiny", "sex=a"}, key=sizes.get)
    assert shown == set(sizes) - {"sex=tiny", smallest}


def test_rows_of_pairs_do_not_give_away_a_group_of_few_people(rng):
    data = three_groups(rng)
    data["sex"] = np.where(np.arange(1500) < 4, "tiny", data["sex"])
    result = eq.Audit(data, **ROLES).predictive_parity(rng=0)
    sizes = {one["group"]: sum(one["rows"]) for one in result.details["scores"]["groups"]}
    *_, second, largest = sorted(sizes, key=sizes.get)
    shown = result.disclosed()
    told = {frozenset((f.group, f.reference)) for f in shown.findings if not f.withheld}
    assert told == {frozenset((second, largest))}
    assert {one["group"] for one in shown.details["curves"]} == {second, largest}
    again = eq.AuditResult.from_dict(json.loads(json.dumps(shown.to_dict())))
    assert again.disclosed().to_dict() == shown.to_dict()


def test_plot_of_nothing_says_so(rng):
    score = np.concatenate([rng.uniform(0, 0.4, 9), rng.uniform(0.5, 1, 9)])
    data = {"y": rng.integers(2, size=18), "score": score, "sex": np.repeat(["a", "b"], 9)}
    axes = eq.Audit(data, **ROLES).predictive_parity().plot()
    assert axes.texts[0].get_text() == "not tested"


def test_before_and_after_are_drawn_side_by_side(table):
    result = eq.Audit(table, **ROLES).predictive_parity()
    left, right = before_after(result, result)
    assert (left.get_title(), right.get_title()) == ("before", "after")
    assert left.figure is right.figure
    with pytest.raises(InvalidParameterError, match="curves belong to predictive parity audits"):
        before_after(result, eq.Audit(table, **ROLES).marginal_outcome(0.5))


def test_plot_of_many_groups_draws_the_first_and_says_so(rng):
    data = three_groups(rng, n=4000) | {"sex": rng.choice(list("abcdefgh"), size=4000)}
    result = eq.Audit(data, **ROLES).predictive_parity(reference={"sex": "a"}, bandwidth=0.3)
    assert result.plot().get_title(loc="left").endswith("7 of 8 groups are drawn")


def test_a_pair_whose_outcome_is_constant_is_listed_and_not_tested(rng):
    data = three_groups(rng)
    data["y"] = np.where(data["sex"] == "c", data["y"], 1)
    result = eq.Audit(data, **ROLES).predictive_parity(reference={"sex": "a"})
    constant = next(f for f in result.findings if f.group == "sex=b")
    assert constant.notes[0].code == "not-comparable"


def test_a_small_group_is_not_compared_with_the_diagonal(rng):
    data = three_groups(rng)
    data["sex"] = np.where(np.arange(1500) < 5, "tiny", data["sex"])
    result = eq.Audit(data, **ROLES).predictive_parity(hypothesis="calibration")
    tiny = next(f for f in result.findings if f.group == "sex=tiny")
    assert tiny.notes[0].code == "group-too-small"


def test_both_questions_run_from_a_plan(tmp_path, table):
    pq.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "plan.toml").write_text(
        """
[data]
path = "rows.parquet"
group = "sex"
y_true = "y"
y_score = "score"
cluster = "number"

[[check]]
question = "predictive_parity"
unit = "cluster"
reference = { sex = "M" }

[[check]]
question = "marginal_outcome"
threshold = 0.5
unit = "row"
"""
    )
    output = CliRunner().invoke(
        app, ["audit", str(tmp_path / "plan.toml"), "--output", str(tmp_path / "page.html")]
    )
    assert output.exit_code == 0, output.output
    assert "does not mean the same in every group" in output.output
    page = (tmp_path / "page.html").read_text()
    assert "cut-off 0.5" in page
    assert "sex=<b>" not in page


@pytest.mark.parametrize("question", ["predictive_parity", "marginal_outcome"])
def test_a_reference_that_names_no_group_is_refused(question):
    rng = np.random.default_rng(3)
    n = 600
    score = rng.uniform(size=n)
    rows = {"g": rng.choice(["a", "b"], n), "s": score, "y": (rng.uniform(size=n) < score) * 1}
    audit = eq.Audit(rows, group="g", y_true="y", y_score="s")
    options = {"threshold": 0.5} if question == "marginal_outcome" else {}
    with pytest.raises(InvalidParameterError, match=r"`reference` must name a group, .*; got 'a'"):
        getattr(audit, question)(reference="a", **options)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"y_true": 3, "y_score": ["s"]}, "`y_true` must be a list of columns"),
        ({"y_true": ["y"]}, "must have one entry for each objective; got 1, 0 and 1"),
    ],
)
def test_objectives_that_are_no_lists_or_lack_a_part_are_refused(columns, words):
    rows = {"g": ["a", "b"] * 50, "s": np.linspace(0, 1, 100), "y": [0, 1, 1, 0] * 25}
    audit = eq.Audit(rows, group="g", y_true="y", y_score="s")
    with pytest.raises(InvalidParameterError, match=words):
        audit.predictive_parity(**columns)
