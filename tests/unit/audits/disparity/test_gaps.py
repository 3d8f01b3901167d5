"""The three audits of group disparities, through the public face."""

import math

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import equipoise as eq
from equipoise.audits.disparity.unknown_shapes import MEASURED
from equipoise.exceptions import DataError, InvalidParameterError, NotBinaryError
from equipoise.results.finding import Decision
from equipoise.results.result import COLUMNS
from equipoise.results.wording import headline


def people(n=600, seed=3):
    rng = np.random.default_rng(seed)
    race = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    sex = rng.choice(["F", "M"], n)
    y = rng.random(n) < 0.4
    p = rng.random(n) < np.where(race == "b", 0.65, 0.45)
    return pd.DataFrame(
        {
            "race": race,
            "sex": sex,
            "y": y.astype(int),
            "p": p.astype(int),
            "score": rng.random(n),
            "profit": rng.exponential(size=n),
            "id": rng.integers(0, n // 3, n),
        }
    )


def audit(data=None, **roles):
    frame = people() if data is None else data
    return eq.Audit(frame, **({"group": ["race", "sex"], "y_true": "y", "y_pred": "p"} | roles))


def find(result, group):
    return next(finding for finding in result.findings if finding.group == group)


def test_the_gap_is_the_group_rate_minus_the_reference_rate():
    frame = people()
    result = audit(frame).disparity("selection_rate", reference={"race": "a"})
    b, a = frame[frame.race == "b"].p.mean(), frame[frame.race == "a"].p.mean()
    finding = find(result, "race=b")
    assert finding.estimate == pytest.approx(b - a, abs=1e-12)
    assert finding.n == (frame.race == "b").sum()
    assert finding.reference == "race=a"
    assert b - a in finding.ci


def test_every_subgroup_gets_a_finding_and_the_reference_says_so():
    result = audit().disparity("selection_rate", reference={"race": "a"})
    assert [finding.group for finding in result.findings] == [
        *("race=a", "race=b", "race=c", "sex=F", "sex=M"),
        *(f"race={r} & sex={s}" for r in "abc" for s in "FM"),
    ]
    assert find(result, "race=a").decision == "not tested"
    assert find(result, "race=a").notes[0].code == "vacuous"


def test_depth_limits_the_combinations():
    assert len(audit().disparity("selection_rate", depth=1).findings) == 5


@pytest.mark.parametrize(
    ("metric", "numerator", "denominator"),
    [
        ("selection_rate", lambda f: f.p, lambda f: f.p * 0 + 1),
        ("tpr", lambda f: f.y * f.p, lambda f: f.y),
        ("fnr", lambda f: f.y * (1 - f.p), lambda f: f.y),
        ("fpr", lambda f: (1 - f.y) * f.p, lambda f: 1 - f.y),
        ("tnr", lambda f: (1 - f.y) * (1 - f.p), lambda f: 1 - f.y),
        ("ppv", lambda f: f.y * f.p, lambda f: f.p),
        ("fdr", lambda f: (1 - f.y) * f.p, lambda f: f.p),
        ("npv", lambda f: (1 - f.y) * (1 - f.p), lambda f: 1 - f.p),
        ("for", lambda f: f.y * (1 - f.p), lambda f: 1 - f.p),
        ("accuracy", lambda f: (f.y == f.p) * 1, lambda f: f.p * 0 + 1),
        ("error_rate", lambda f: (f.y != f.p) * 1, lambda f: f.p * 0 + 1),
        ("mean_outcome", lambda f: f.y, lambda f: f.p * 0 + 1),
        ("mean_score", lambda f: f.score, lambda f: f.p * 0 + 1),
        ("selected_outcome", lambda f: f.y * f.p, lambda f: f.p),
        ("squared_error", lambda f: (f.y - f.score) ** 2, lambda f: f.p * 0 + 1),
        ("residual", lambda f: f.y - f.score, lambda f: f.p * 0 + 1),
        ("precision", lambda f: f.y * f.p, lambda f: f.p),
    ],
)
def test_each_metric_is_its_ratio_of_means(metric, numerator, denominator):
    frame = people()
    result = audit(frame, y_score="score").disparity(metric, depth=1, reference=0.0)
    for finding in result.findings:
        column, label = finding.group.split("=")
        part = frame[frame[column] == label]
        expected = numerator(part).sum() / denominator(part).sum()
        assert finding.estimate == pytest.approx(expected, abs=1e-12)
        assert finding.n == (denominator(part) != 0).sum()


def test_a_metric_of_your_own_is_audited():
    frame = people()
    metric = eq.Metric("profit per selected", nw.col("profit") * nw.col("p"), "p")
    finding = find(audit(frame).disparity(metric, reference=0.0), "race=c")
    part = frame[(frame.race == "c") & (frame.p == 1)]
    assert finding.estimate == pytest.approx(part.profit.mean(), rel=1e-12)
    assert finding.n == len(part)
    assert finding.estimand == "profit per selected difference"


def test_a_metric_of_zeros_and_ones_is_tested_by_its_counts():
    own = audit().disparity(eq.Metric("ppv", nw.col("y") * nw.col("p"), "p"))
    named = audit().disparity("ppv")
    assert [f.p_value for f in own.findings] == pytest.approx([f.p_value for f in named.findings])


def test_multi_class_labels_are_compared_one_against_the_rest():
    frame = people()
    frame["colour"] = np.where(frame.p == 1, "red", np.where(frame.y == 1, "blue", "green"))
    named = eq.Audit(frame, group="race", y_pred="colour", positive="red")
    plain = eq.Audit(frame, group="race", y_pred="p")
    for one, other in zip(
        named.disparity("selection_rate").findings,
        plain.disparity("selection_rate").findings,
        strict=True,
    ):
        assert one == other


@pytest.mark.parametrize("metric", ["ppv", "mean_score"])
@pytest.mark.parametrize("question", ["disparity", "flag", "certify"])
def test_counts_give_exactly_the_answers_of_the_expanded_rows(metric, question):
    frame = people(200).round({"score": 1})
    frame["copies"] = np.random.default_rng(0).integers(0, 5, len(frame))
    expanded = frame.loc[frame.index.repeat(frame.copies)]
    options = {"margin": 0.1} if question != "disparity" else {}
    roles = {"y_score": "score"}
    counted = getattr(audit(frame, count="copies", **roles), question)(metric, **options)
    repeated = getattr(audit(expanded, **roles), question)(metric, **options)
    left, right = counted.to_frame("pandas"), repeated.to_frame("pandas")
    pd.testing.assert_frame_equal(left, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("reference", ["population", "rest", {"race": "a"}, 0.4])
def test_the_interval_excludes_the_null_exactly_when_the_p_value_is_small(reference):
    for metric in ("selection_rate", "mean_score"):
        result = audit(y_score="score").disparity(metric, reference=reference)
        for finding in result.findings:
            if finding.ci is not None:
                assert (0.0 in finding.ci) == (finding.p_value > 0.05)


def test_simultaneous_intervals_contain_the_marginal_ones():
    marginal = audit().disparity("selection_rate")
    joint = audit().disparity("selection_rate", simultaneous=True)
    for one, other in zip(marginal.findings, joint.findings, strict=True):
        assert other.ci.low < one.ci.low
        assert one.ci.high < other.ci.high
        assert one.p_value < other.p_value
        assert other.p_value_raw == one.p_value
    assert "critical value" in joint.notes[-1].message


def test_adjusted_p_values_are_never_below_raw_ones_in_tiny_groups():
    audit_ = eq.Audit(
        eq.datasets.load_compas_counts(),
        group=["race", "sex"],
        count="count",
        y_true="two_year_recid",
        y_pred="high_risk",
    )
    result = audit_.disparity("fpr", reference={"race": "Caucasian"}, simultaneous=True)
    tested = [f for f in result.findings if f.p_value is not None]
    assert any(f.n == 1 for f in tested)
    assert all(f.p_value >= f.p_value_raw for f in tested)


def test_the_interval_of_one_person_stays_within_what_the_reference_allows():
    counts = eq.datasets.load_compas_counts()
    roles = {"group": ["race", "sex"], "count": "count"}
    labels = {"y_true": "two_year_recid", "y_pred": "high_risk"}
    result = eq.Audit(counts, **roles, **labels).disparity("fpr", reference={"race": "Caucasian"})
    finding = find(result, "race=Asian & sex=Female")
    assert (finding.n, round(finding.estimate, 3)) == (1, -0.235)
    # A rate cannot be negative, and the reference's is known to about 2 points.
    assert -0.27 < finding.ci.low < -0.235
    assert finding.ci.high > 0.7


def test_many_groups_fall_back_to_bonferroni_and_say_so(monkeypatch):
    monkeypatch.setattr("equipoise.stats.disparity.gaps.LARGEST_MAX_T", 3)
    result = audit().disparity("selection_rate", simultaneous=True)
    tested = [f for f in result.findings if f.p_value is not None]
    assert "Bonferroni" in result.notes[-1].message
    for finding in tested:
        assert finding.p_value == pytest.approx(min(1.0, finding.p_value_raw * len(tested)))


def test_ratio_scale_divides_by_the_reference():
    frame = people()
    finding = find(
        audit(frame).disparity("selection_rate", scale="ratio", reference={"race": "a"}), "race=b"
    )
    rate = frame.groupby("race").p.mean()
    assert finding.estimate == pytest.approx(rate["b"] / rate["a"], rel=1e-12)
    assert finding.estimand == "selection_rate ratio"


def test_an_external_reference_widens_the_interval_of_a_known_one():
    known = find(audit().disparity("selection_rate", reference=0.5), "race=b").ci
    external = find(
        audit().disparity("selection_rate", reference=eq.External(0.5, 0.02)), "race=b"
    ).ci
    assert external.low < known.low
    assert known.high < external.high


def test_the_plug_in_method_prints_the_coverage_it_implies():
    result = audit().disparity("selection_rate", reference={"race": "c"}, method="plug_in")
    note = next(note for note in result.notes if note.code == "plug-in-coverage")
    assert "claim 95% and cover between" in note.message
    for question in ("flag", "certify"):
        flagged = getattr(audit(), question)("selection_rate", margin=0.1, method="plug_in")
        assert any(note.code == "plug-in-coverage" for note in flagged.notes)


def test_flag_alternatives_point_in_their_direction():
    results = {
        alternative: audit().flag(
            "selection_rate", alternative=alternative, reference={"race": "a"}
        )
        for alternative in ("greater", "less", "two-sided")
    }
    raw = {name: find(result, "race=b").p_value_raw for name, result in results.items()}
    assert raw["greater"] + raw["less"] == pytest.approx(1.0)
    assert raw["two-sided"] == pytest.approx(2 * min(raw["greater"], raw["less"]), rel=1e-6)


def test_a_margin_makes_flags_rarer():
    p = [
        find(audit().flag("selection_rate", margin=margin), "race=b").p_value_raw
        for margin in (0.0, 0.05, 0.1)
    ]
    assert p == sorted(p)
    outside = audit().flag("selection_rate", margin=0.05, alternative="outside")
    assert (
        find(outside, "race=b").p_value_raw
        >= find(audit().flag("selection_rate", margin=0.05), "race=b").p_value_raw
    )


def test_four_fifths_is_a_margin_of_a_fifth_on_the_ratio_scale():
    result = audit().flag(
        "selection_rate", margin=0.2, alternative="less", scale="ratio", reference={"race": "b"}
    )
    assert result.details["bounds"] == [0.8, 1.25]
    assert result.null == "the group's ratio to race=b is at least 0.8"


def test_adjustments_are_ordered_by_caution():
    p = {
        adjust: find(audit().flag("selection_rate", adjust=adjust), "race=b").p_value
        for adjust in ("none", "bh", "holm", "bonferroni", "by")
    }
    assert p["none"] <= p["bh"] <= p["holm"] <= p["bonferroni"]
    assert p["bh"] <= p["by"]
    assert find(audit().flag("selection_rate"), "race=b").p_value == p["bh"]


def test_certify_agrees_with_the_interval_inside_the_margin():
    result = audit(people(4000)).certify("accuracy", margin=0.06)
    assert {str(f.decision) for f in result.findings} > {"within margin"}
    for finding in result.findings:
        inside = finding.ci.low > -0.06 and finding.ci.high < 0.06
        assert inside == (finding.decision == "within margin")
        assert finding.ci.confidence_level == pytest.approx(0.9)
    assert result.joint.p_value == max(f.p_value for f in result.findings)


def test_certify_makes_no_claim_about_all_groups_when_one_is_untested():
    frame = people(800)
    frame.loc[0, "race"] = "tiny"
    result = audit(frame, y_score="score").certify("mean_score", margin=0.3)
    assert result.joint.decision == "not tested"
    assert result.joint.notes[0].code == "not-all-tested"
    assert find(result, "race=tiny").notes[0].code == "too-few-units"


def test_constant_outcomes_give_findings_without_nan():
    frame = people().assign(p=1, y=0)
    for metric in ("selection_rate", "fpr", "tpr", "ppv", "accuracy"):
        result = audit(frame).disparity(metric)
        for value in result.to_frame("pandas").select_dtypes("number").to_numpy().ravel():
            assert value is None or math.isnan(value) or math.isfinite(value)
        assert "NaN" not in str(result.to_dict())


def test_clusters_widen_intervals_when_rows_repeat():
    frame = pd.concat([people(300)] * 3, ignore_index=True)
    frame["id"] = np.tile(np.arange(300), 3)
    plain = find(audit(frame).disparity("selection_rate", reference="rest"), "race=b").ci
    clustered = find(
        audit(frame, cluster="id").disparity("selection_rate", reference="rest"), "race=b"
    ).ci
    ratio = (clustered.high - clustered.low) / (plain.high - plain.low)
    assert ratio == pytest.approx(math.sqrt(3), rel=0.05)


def test_dropped_rows_are_counted_in_a_note():
    frame = people().astype({"p": float})
    frame.loc[:9, "p"] = np.nan
    result = audit(frame, missing="drop").disparity("selection_rate")
    assert result.n == len(frame) - 10
    assert result.notes[0].message.startswith("10 rows with a missing value")


def test_large_tables_are_tested_from_moments(monkeypatch):
    monkeypatch.setattr("equipoise.audits.disparity.measure.WORK_LIMIT", 100)
    result = audit(y_score="score").disparity("mean_score", method="el")
    assert any(note.code == "moments-only" for note in result.notes)
    assert {f.method for f in result.findings} == {"influence_eel"}


def test_the_frame_has_the_columns_of_the_contract():
    result = audit().disparity("selection_rate")
    for backend, columns in (
        ("pandas", lambda f: list(f.columns)),
        ("polars", lambda f: f.columns),
        ("pyarrow", lambda f: f.column_names),
    ):
        assert columns(result.to_frame(backend)) == list(COLUMNS)
    with pytest.raises(InvalidParameterError, match="`backend` must be one of"):
        result.to_frame("excel")


def test_a_result_survives_its_dictionary():
    result = audit().disparity("selection_rate")
    again = eq.AuditResult.from_dict(result.to_dict())
    assert again == result
    with pytest.raises(InvalidParameterError, match="schema_version"):
        eq.AuditResult.from_dict({"schema_version": 99})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda a: a.disparity("fpt"),
            InvalidParameterError,
            "'fpt' is unknown. Did you mean 'fpr'",
        ),
        (lambda a: a.disparity(3), InvalidParameterError, "`metric` must be a name"),
        (lambda a: a.disparity("fpr", depth=0), InvalidParameterError, "`depth` must be a whole"),
        (
            lambda a: a.disparity("fpr", alpha=5),
            InvalidParameterError,
            r"`alpha` must be in \(0, 1\)",
        ),
        (
            lambda a: a.disparity("fpr", method="x"),
            InvalidParameterError,
            "`method` must be one of",
        ),
        (lambda a: a.disparity("fpr", scale="x"), InvalidParameterError, "`scale` must be one of"),
        (lambda a: a.disparity("fpr", reference="best"), InvalidParameterError, "`reference` must"),
        (lambda a: a.disparity("fpr", reference={}), InvalidParameterError, "`reference` is empty"),
        (lambda a: a.disparity("fpr", reference={"race": "z"}), DataError, "selects no rows"),
        (
            lambda a: a.disparity("fpr", reference={"rase": "a"}),
            InvalidParameterError,
            "not a group column. Did you mean 'race'",
        ),
        (lambda a: a.flag("fpr", adjust="x"), InvalidParameterError, "`adjust` must be one of"),
        (lambda a: a.flag("fpr", alternative="x"), InvalidParameterError, "`alternative` must"),
        (lambda a: a.flag("fpr", margin=-1), InvalidParameterError, "`margin` must be a finite"),
        (
            lambda a: a.flag("fpr", margin=0.1, alternative="two-sided"),
            InvalidParameterError,
            'with a margin say "outside"',
        ),
        (lambda a: a.certify("fpr", margin=0), InvalidParameterError, "`margin` must be above 0"),
        (
            lambda a: a.certify("fpr", margin=2, scale="ratio"),
            InvalidParameterError,
            "`margin` must be a finite number in",
        ),
        (lambda a: a.disparity("mean_score"), InvalidParameterError, "needs `y_score`"),
        (
            lambda a: a.disparity(eq.Metric("m", "profits")),
            DataError,
            "Column 'profits' not found. Did you mean 'profit'",
        ),
    ],
)
def test_wrong_calls_get_one_clear_sentence(call, error, message):
    with pytest.raises(error, match=message):
        call(audit())


def test_a_rate_of_scores_is_refused():
    with pytest.raises(NotBinaryError, match="Threshold it"):
        audit(y_pred="score").disparity("fpr")


def test_a_reference_without_the_denominator_is_refused():
    frame = people()
    frame.loc[frame.race == "a", "y"] = 1
    with pytest.raises(InvalidParameterError, match="has no row on which 'fpr' is defined"):
        audit(frame).disparity("fpr", reference={"race": "a"})


def test_an_audit_without_groups_says_what_to_pass():
    with pytest.raises(InvalidParameterError, match="pass `group` to `Audit`"):
        eq.Audit(people(), y_pred="p").disparity("selection_rate")


def test_a_numerator_without_any_denominator_is_not_tested():
    data = {"g": ["a", "b"] * 20, "gain": [1.0, 2.0] * 20, "case": [0, 1] * 20}
    audit = eq.Audit(data, group="g")
    for reference in ("population", "rest"):
        found = audit.disparity(eq.Metric("gain per case", "gain", "case"), reference=reference)
        assert found.findings[0].decision is Decision.NOT_TESTED
        assert found.findings[0].estimate is None


def test_no_gap_is_not_written_as_minus_zero():
    audit = eq.Audit({"g": ["a", "b"] * 30, "p": [0, 1, 1] * 20}, group="g", y_pred="p")
    result = audit.flag("selection_rate", alternative="two-sided")
    assert result.null.endswith("is equal to 0")


@pytest.mark.parametrize("seed", range(5))
def test_a_family_of_one_has_the_interval_of_one(seed):
    audit = eq.Audit({"g": ["a"] * 9, "p": [1] * 6 + [0] * 3}, group="g", y_pred="p")
    one = audit.disparity("selection_rate", reference=0.3).findings[0]
    family = audit.disparity("selection_rate", reference=0.3, simultaneous=True, rng=seed)
    found = family.findings[0]
    assert found.ci.low <= one.ci.low
    assert found.p_value > 0.05
    assert 0.0 in found.ci


@pytest.mark.parametrize("method", ["auto", "eel", "el"])
@pytest.mark.parametrize("offset", [1e6, 1e7], ids=["NumAcc3", "NumAcc4"])
def test_a_large_offset_does_not_swallow_the_variance(offset, method):
    """NIST StRD: 1001 values with mean .2 above the offset and standard deviation exactly .1."""
    values = np.array([0.2, *[0.1, 0.3] * 500])
    groups = np.where(np.arange(1001) < 501, "a", "b")
    roles = {"group": "g", "y_score": "x"}

    def gaps(x, reference):
        asked = eq.Audit({"g": groups, "x": x}, **roles)
        return asked.disparity("mean_score", reference=reference, method=method)

    far, near = gaps(offset + values, offset + 0.2), gaps(values, 0.2)
    for one, other in zip(far.findings, near.findings, strict=True):
        assert one.estimate == pytest.approx(0.0, abs=2e-9)
        assert one.ci.low == pytest.approx(other.ci.low, rel=1e-6)
        assert one.ci.high == pytest.approx(other.ci.high, rel=1e-6)
    value = far.details["values"][0]
    assert value["group_value"] == pytest.approx(offset + 0.2, rel=1e-15)
    assert value["se"] == pytest.approx(0.1 / math.sqrt(501), rel=2e-3)
    far, near = gaps(offset + values, "rest"), gaps(values, "rest")
    assert far.findings[0].ci.high == pytest.approx(near.findings[0].ci.high, rel=1e-6)
    assert far.joint.p_value == pytest.approx(near.joint.p_value, rel=1e-6)
    assert len(far.sql()) >= 2  # the values are summed again, from near their mean


def test_a_ratio_keeps_its_zero():
    x = 1e6 + np.tile([0.1, 0.3], 200)
    asked = eq.Audit({"g": ["a", "b"] * 200, "x": x}, group="g", y_score="x")
    ratio = asked.disparity("mean_score", reference=1e6, scale="ratio").findings[0]
    assert ratio.estimate is None or ratio.estimate == pytest.approx(1.0000001, rel=1e-9)


def shape_notes(values, group, **options):
    rows = {"value": np.asarray(values), "group": np.asarray(group)}
    result = eq.Audit(rows, group="group").disparity(
        eq.Metric("value", numerator="value"), **options
    )
    told = [note for f in result.findings for note in f.notes if note.code == "shape-unknown"]
    return told, [note.code for note in result.joint.notes]


def test_one_sided_claims_of_values_of_unknown_shape_need_more(rng):
    values = eq.Metric("value", numerator="value")
    audit = eq.Audit({"value": rng.lognormal(size=25), "g": ["a"] * 25}, group="g")
    plain = audit.disparity(values, reference=2.5, confidence_level=0.9).findings[0]
    certified = audit.certify(values, reference=2.5, margin=3.0).findings[0]
    strict = audit.disparity(values, reference=2.5, confidence_level=1 - 0.1 / 3).findings[0]
    # From 20 to 40 units p-values count threefold, and the interval is that of a third of alpha.
    assert (certified.ci.low, certified.ci.high) == pytest.approx((strict.ci.low, strict.ci.high))
    assert certified.ci.low < plain.ci.low
    left = f"{dict(MEASURED)[20][0].guarded:.0%}"
    assert f"multiplied by 3; up to {left} were left" in certified.notes[-1].message
    flagged = audit.flag(values, reference=2.5, alternative="less").findings[0]
    root = stats.norm.ppf(plain.p_value / 2)
    assert flagged.p_value_raw == pytest.approx(3 * stats.norm.cdf(root))
    both = audit.flag(values, reference=2.5, alternative="two-sided").findings[0]
    assert both.p_value_raw == pytest.approx(plain.p_value)


def test_outside_a_margin_is_never_shown_sooner_than_on_one_side(rng):
    values = eq.Metric("value", numerator="value")
    audit = eq.Audit({"value": rng.lognormal(size=25), "g": ["a"] * 25}, group="g")

    def raw(alternative, margin):
        found = audit.flag(values, reference=5.0, alternative=alternative, margin=margin)
        return found.findings[0].p_value_raw

    outside = [raw("outside", margin) for margin in (0.0, 0.01, 0.1, 0.5, 2.0)]
    assert outside == sorted(outside)
    # With both ends alike it is two-sided; with the other end far away only one side is left.
    assert outside[0] == pytest.approx(raw("two-sided", 0.0))
    assert outside[-1] == pytest.approx(raw("less", 2.0), rel=1e-2)


def test_what_unknown_shapes_cost_does_not_depend_on_the_unit_of_weights(rng):
    rows = {"value": rng.lognormal(size=20), "g": ["a"] * 20}
    found = [
        eq.Audit(rows | {"w": np.full(20, weight)}, group="g", weight="w", y_true="value").flag(
            "mean_outcome", reference=2.5, alternative="less"
        )
        for weight in (1.0, 0.1, 1 / 3, 7.0)
    ]
    # 20 units count threefold; of 20 weights of 0.1 there are 20 but for rounding.
    for result in found:
        assert result.findings[0].p_value_raw == pytest.approx(found[0].findings[0].p_value_raw)
        assert "multiplied by 3" in result.findings[0].notes[-1].message


def test_skewed_values_with_nothing_to_borrow_quote_a_measured_rate(rng):
    told, jointly = shape_notes(rng.lognormal(size=100), ["a"] * 100, reference=1.65)
    assert [note.message.count("at a nominal 5%, two-sided ones") for note in told] == [1]
    assert jointly == ["shape-unknown"]


def test_values_that_are_not_skewed_or_have_many_others_are_not_noted(rng):
    # Of fewer than 200 units another note says what they need not show.
    told, jointly = shape_notes(rng.normal(size=150), ["a"] * 150, reference=0.0)
    assert (told, jointly) == ([], ["tail-unseen"])
    told, jointly = shape_notes(rng.normal(size=300), np.repeat(["a", "b", "c", "d", "e"], 60))
    assert (told, jointly) == ([], ["tail-unseen"])
    told, jointly = shape_notes(rng.normal(size=600), np.repeat(["a", "b", "c"], 200))
    assert (told, jointly) == ([], [])


@pytest.mark.parametrize("cluster", [None, "unit"])
def test_a_metric_may_have_any_name(rng, cluster):
    table = {
        "g": rng.choice(["a", "b"], 200),
        "value": rng.gamma(2.0, size=200),
        "unit": rng.integers(0, 60, 200),
    }
    one, other = (
        eq.Audit(table, group="g", cluster=cluster).disparity(eq.Metric(name, "value")).findings
        for name in ("one", "income")
    )
    # Clusters are summed in the order in which threads bring them.
    assert [f.p_value for f in one] == pytest.approx([f.p_value for f in other], rel=1e-9)
    assert [f.estimate for f in one] == pytest.approx([f.estimate for f in other], rel=1e-9)
    gap = np.mean(table["value"][table["g"] == "a"]) - np.mean(table["value"])
    assert one[0].estimate == pytest.approx(gap)


def test_the_absolute_error_is_the_mean_distance_of_scores_from_outcomes():
    rows = {"g": ["a", "b"] * 30, "y": [0.0, 1.0, 2.0] * 20, "s": [0.5, 0.0, 4.0] * 20}
    result = eq.Audit(rows, group="g", y_true="y", y_score="s").disparity(
        "absolute_error", reference=0.0
    )
    expected = (0.5 + 1.0 + 2.0) / 3
    assert [f.estimate for f in result.findings] == pytest.approx([expected, expected])


def test_a_reference_of_labels_that_nobody_has_together_is_refused():
    rows = {"g": ["a"] * 30 + ["b"] * 30, "h": ["x"] * 30 + ["z"] * 30, "p": [0, 1] * 30}
    audit = eq.Audit(rows, group=["g", "h"], y_pred="p")
    with pytest.raises(DataError, match="`reference` selects no rows: no cell has all of"):
        audit.disparity("selection_rate", reference={"g": "a", "h": "z"})


@pytest.mark.parametrize(
    ("options", "side"),
    [({"alternative": "two-sided"}, 0), ({"margin": 0.02}, 1), ({"alternative": "less"}, -1)],
)
def test_the_statistic_of_a_flag_is_that_of_its_p_value(options, side):
    result = audit(people(3000)).flag("selection_rate", **options)
    for f in result.findings:
        tail = -side * f.statistic if side else -abs(f.statistic)
        p = stats.norm.cdf(tail) * (1 if side else 2)
        if p < 0.5:
            assert f.p_value_raw == pytest.approx(p, rel=1e-9)
        else:  # on the side that is not asked about
            assert f.p_value_raw >= 0.5
        limit = 0.02 if side == 1 else 0.0
        assert (f.statistic > 0) == (f.estimate > limit)


def test_the_statistic_of_certify_is_that_of_the_nearer_end():
    for f in audit(people(3000)).certify("selection_rate", margin=0.2, depth=1).findings:
        assert stats.norm.sf(f.statistic) == pytest.approx(f.p_value_raw, rel=1e-9)


def test_several_metrics_are_exceeded_one_by_one():
    table = {"g": list("ab") * 50, "y": [0, 1] * 50, "p": [0, 1, 1, 0] * 25}
    asked = eq.Audit(table, group="g", y_true="y", y_pred="p")
    told = headline(asked.certify(["selection_rate", "accuracy"], margin=0.4))
    assert told == (
        "All 4 comparisons are shown to have a selection rate or accuracy within 40.0 percentage"
        " points of the population."
    )
    told = headline(asked.flag(["selection_rate", "accuracy"], margin=0.4))
    assert "shown to have a selection rate or accuracy more than 40.0 percentage points" in told
