import numpy as np
import pytest
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.report.impact_tables import impact_tables, reading_words
from equipoise.results.finding import Decision
from equipoise.results.result import AuditResult
from equipoise.results.wording import headline
from equipoise.stats.disparity.extremes import compare_counts_with_extreme
from equipoise.stats.disparity.impact import impact_ratio_test
from equipoise.stats.disparity.standardised import standardised_mean_difference

COUNTS = {
    "race": ["a", "a", "b", "b", "c", "c", "d", "d"],
    "hired": [1, 0] * 4,
    "n": [30, 70, 45, 65, 52, 68, 2, 4],
}
ROLES = {"group": "race", "y_pred": "hired", "count": "n"}
X, N = np.array([30.0, 45.0, 52.0]), np.array([100.0, 110.0, 120.0])


def audit(**roles):
    return eq.Audit(COUNTS, **(ROLES | roles))


def test_every_category_is_compared_with_the_highest_at_tukeys_value():
    result = audit().disparity("selection_rate", reference="highest", scale="ratio")
    known = compare_counts_with_extreme(X, N)
    low, high = known.confidence_interval()
    for k, finding in enumerate(result.findings[:3]):
        assert finding.estimate == known.estimate[k]
        assert (finding.ci.low, finding.ci.high) == (low[k], high[k])
        assert finding.p_value == known.p_values()[k]
        assert finding.p_value_raw == known.p_values_raw()[k]
        assert finding.reference == "the highest (race=c)"
    small = result.findings[3]
    assert small.decision is Decision.NOT_TESTED
    assert [note.code for note in small.notes] == ["below-min-share"]
    assert result.joint.p_value == known.p_value
    assert {"reference-chosen-from-data", "multiplicity"} <= {note.code for note in result.notes}


def test_impact_ratios_are_disparities_to_the_highest_to_the_digit():
    ratios = audit().impact_ratios()
    plain = audit().disparity("selection_rate", reference="highest", scale="ratio")
    assert ratios.findings == plain.findings
    assert ratios.joint == plain.joint
    first, second = ratios.details["tables"][0], plain.details["tables"][0]
    assert first["companions"] is not None
    assert first | {"companions": None} == second
    assert first["n"] == [100, 110, 120, 6]
    assert first["selected"] == [30.0, 45.0, 52.0, 2.0]
    assert first["highest"] == "race=c"
    assert first["excluded"] == [None, None, None, "below-min-share"]
    assert first["verdict"] == ["not settled", "not settled", "not settled", None]
    assert first["k"] == 3
    assert first["permutation_p"] is None


def test_companions_are_those_of_the_engine():
    group, hired = (np.repeat(COUNTS[name], COUNTS["n"]) for name in ("race", "hired"))
    known = impact_ratio_test(hired, group).companions
    rows = audit().impact_ratios().details["tables"][0]["companions"]
    assert rows[3] == {}
    for name in ("z", "fisher", "boschloo", "shortfall", "flip_moved", "odds_ratio", "odds_low"):
        assert_allclose([row[name] for row in rows[:3]], getattr(known, name))


def test_a_small_category_may_be_compared_but_is_never_the_highest():
    data = COUNTS | {"n": [30, 70, 45, 65, 52, 68, 5, 1]}
    result = eq.Audit(data, **ROLES).disparity(
        "selection_rate", reference="highest", scale="ratio", small="compare"
    )
    small = result.findings[3]
    assert small.estimate == pytest.approx((5 / 6) / (52 / 120))
    assert small.ci.high is None or small.ci.high > 1.0
    assert [note.code for note in small.notes] == ["below-min-share"]
    assert result.details["tables"][0]["k"] == 4


def test_differences_to_the_lowest_are_above_zero():
    result = audit().disparity("selection_rate", reference="lowest", min_share=0.0)
    assert min(f.estimate for f in result.findings) == 0.0
    assert all(f.ci.low >= 0.0 for f in result.findings)
    assert "no selection rate is shown to be higher than the lowest" in headline(result)


def large(**counts):
    table = {"race": [], "hired": [], "n": []}
    for race, (ones, n) in counts.items():
        table["race"] += [race, race]
        table["hired"] += [1, 0]
        table["n"] += [ones, n - ones]
    return eq.Audit(table, **ROLES)


def test_flag_names_who_is_shown_below_four_fifths():
    asked = large(a=(400, 1000), b=(900, 1000), c=(850, 1000))
    result = asked.flag(
        "selection_rate", reference="highest", scale="ratio", margin=0.2, alternative="less"
    )
    assert [f.decision for f in result.findings] == [
        Decision.DETECTED,
        Decision.NOT_DETECTED,
        Decision.NOT_DETECTED,
    ]
    assert headline(result).startswith("40.0% of race: a and 90.0% of race: b have ")
    assert "; race: a, ratio 0.444 (joint 95% interval" in headline(result)
    assert "shown below four fifths of the highest rate" in headline(result)
    assert result.findings[0].ci.high < 0.8
    none = large(a=(80, 100), b=(90, 100), c=(85, 100)).flag(
        "selection_rate", reference="highest", margin=0.3, alternative="less"
    )
    assert headline(none).startswith(
        "None of 3 categories is shown more than 30.0 percentage points below the highest; the"
        " furthest observed is race: a, difference -10.0 percentage points (joint 95% interval"
    )
    up = asked.flag("selection_rate", reference="lowest", margin=0.2, alternative="greater")
    assert "2 more" not in headline(up)
    assert "1 more shown so" in headline(up)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternative": "greater"}, 'No category is above the highest one; pass `alternative="'),
        ({"reference": "lowest", "alternative": "less"}, "No category is below the lowest one"),
        ({"adjust": "bh"}, 'only `adjust="auto"` allows for that'),
        ({"method": "el"}, "has a law of its own"),
        ({"margin": 1.5, "scale": "ratio"}, "`margin` must be"),
        ({"small": "merge"}, "`small` must be"),
    ],
)
def test_what_cannot_be_asked_of_the_highest_is_refused(options, message):
    asked = {"reference": "highest", "alternative": "less"} | options
    with pytest.raises(InvalidParameterError, match=message):
        audit().flag("selection_rate", **asked)


def test_options_of_the_highest_need_it():
    with pytest.raises(InvalidParameterError, match="`min_share`, `small` and `by` belong"):
        audit().disparity("selection_rate", min_share=0.1)


def test_certify_shows_every_category_where_the_data_can():
    result = large(a=(870, 1000), b=(900, 1000), c=(880, 1000)).certify(
        "selection_rate", reference="highest", scale="ratio", margin=0.2
    )
    assert {f.decision for f in result.findings} == {Decision.WITHIN_MARGIN}
    assert result.joint.decision is Decision.WITHIN_MARGIN
    assert headline(result).startswith(
        "Every category compared is shown to have at least four fifths of the highest rate"
    )
    assert all(f.ci.low >= 0.8 for f in result.findings)
    mixed = large(a=(300, 1000), b=(900, 1000), c=(880, 1000), d=(740, 1000)).certify(
        "selection_rate", reference="highest", scale="ratio", margin=0.2
    )
    assert headline(mixed).startswith("30.0% of race: a and 90.0% of race: b have ")
    assert "; 2 of 4 categories are shown to have at least four fifths" in headline(mixed)
    assert "1 is shown beyond it, 1 is not settled" in headline(mixed)
    (beyond,) = (f for f in mixed.findings if f.decision is Decision.DETECTED)
    assert beyond.ci.high == 1.0  # One-sided: by itself it shows nothing.
    assert [note.code for note in beyond.notes] == ["interval-unadjusted"]
    assert beyond.notes[0].message.startswith(
        "Shown beyond the margin by a test of its own (p <0.001); the p-value and the one-sided"
    )
    upward = large(a=(450, 1000), b=(500, 1000)).certify(
        "selection_rate", reference="lowest", margin=0.2
    )
    assert headline(upward).startswith(
        "Every category compared is shown to be at most 20.0 percentage points above the lowest"
    )


def test_one_level_may_be_shared_by_all_tables():
    rng = np.random.default_rng(1)
    data = {
        "race": rng.choice(["a", "b"], 900),
        "sex": rng.choice(["f", "m"], 900),
        "y": rng.integers(0, 2, 900),
    }
    asked = eq.Audit(data, group=["race", "sex"], y_pred="y")
    own = asked.disparity("selection_rate", reference="highest")
    shared = asked.disparity("selection_rate", reference="highest", by="audit")
    for a, b in zip(own.findings, shared.findings, strict=True):
        assert b.p_value == pytest.approx(min(3 * a.p_value, 1.0))
        assert b.ci.low <= a.ci.low
    assert own.joint == shared.joint
    assert own.joint.method == "all pairs, Bonferroni over 3 tables"
    assert "each of 3 tables by itself" in own.notes[-1].message
    assert "all 3 tables together" in shared.notes[-1].message


@pytest.mark.parametrize("labels", ["numbers", "text", "text and a number", "truth values"])
@pytest.mark.parametrize("roles", [{}, {"weight": "n"}, {"strata": "s"}])
def test_ratios_are_of_the_decision_that_is_good_for_people(labels, roles):
    denied = np.repeat([1, 0, 1, 0, 1, 0], [10, 90, 30, 70, 25, 75])
    data = {"g": np.repeat(["a", "b", "c"], 100), "n": np.ones(300), "s": np.tile(["x", "y"], 150)}
    approved = eq.Audit(data | {"y": 1 - denied}, group="g", y_pred="y", **roles)
    words = np.where(denied == 1, "denied", "lent")
    column, said = {
        "numbers": (denied, {"favourable": 0}),
        "text": (words, {"positive": "denied", "favourable": "lent"}),
        "text and a number": (words, {"positive": "denied", "favourable": 0}),
        "truth values": (denied == 1, {"favourable": 0}),
    }[labels]
    told = eq.Audit(data | {"y": column}, group="g", y_pred="y", **said, **roles)
    limit = {"margin": 0.2, "reference": "highest", "scale": "ratio"}
    for question, options in (
        ("impact_ratios", {"companions": not roles}),
        ("disparity", {"metric": "selection_rate", "reference": "highest", "scale": "ratio"}),
        ("flag", {"metric": "selection_rate", "alternative": "less", **limit}),
        ("certify", {"metric": "selection_rate", **limit}),
    ):
        right = getattr(approved, question)(**options)
        result = getattr(told, question)(**options)
        assert result.details["tables"] == right.details["tables"]
        assert [f.estimate for f in result.findings] == [f.estimate for f in right.findings]
        assert "good-decision-counted" in [note.code for note in result.notes]
    assert result.details["tables"][0]["highest"] == "g=a"
    # Differences of a decision and of its opposite are the same: the metric stays what it is.
    gaps = told.disparity("selection_rate", reference="highest")
    assert gaps.details["tables"][0]["highest"] == "g=b"


def test_the_headline_of_ratios_counts_the_good_decision():
    data = {"g": list("aaabbb") * 40, "denied": [1, 0, 0, 1, 1, 1] * 40}
    result = eq.Audit(data, group="g", y_pred="denied", favourable=0).impact_ratios()
    assert "0% of g: b and 66.7% of g: a have `denied` = 0" in headline(result)
    again = AuditResult.from_dict(result.to_dict())
    assert headline(again) == headline(result)


def test_categories_without_a_comparison_say_why():
    one = large(a=(5, 10)).disparity("selection_rate", reference="highest")
    assert [n.code for n in one.findings[0].notes] == ["single-category"]
    assert one.joint.decision is Decision.NOT_TESTED
    nobody = large(a=(0, 100), b=(0, 100)).impact_ratios()
    assert {n.code for f in nobody.findings for n in f.notes} == {"nobody-selected"}
    assert nobody.details["tables"][0]["critical"] is None
    lowest = large(a=(0, 100), b=(50, 100)).disparity(
        "selection_rate", reference="lowest", scale="ratio"
    )
    assert {n.code for f in lowest.findings for n in f.notes} == {"ratio-to-zero"}
    certified = large(a=(5, 10)).certify("selection_rate", reference="highest", margin=0.1)
    assert certified.joint.decision is Decision.NOT_TESTED
    everybody = large(a=(100, 100), b=(80, 80)).impact_ratios()
    assert [f.estimate for f in everybody.findings] == [1.0, 1.0]
    assert [f.p_value for f in everybody.findings] == [1.0, 1.0]


def test_a_metric_without_rows_in_a_category_says_so():
    data = {"g": list("aaabbbccc") * 20, "y": [1, 1, 0, 1, 1, 0, 0, 0, 0] * 20, "p": [1, 0, 1] * 60}
    result = eq.Audit(data, group="g", y_true="y", y_pred="p").disparity("tpr", reference="highest")
    assert [n.code for n in result.findings[2].notes] == ["empty-denominator"]
    assert result.findings[0].n == 40


def test_a_small_highest_category_and_rare_events_are_pointed_out():
    result = large(a=(2, 25), b=(1, 100), c=(1, 90)).impact_ratios()
    assert [n.code for n in result.findings[0].notes] == ["small-highest"]
    assert 0.0 < result.details["tables"][0]["permutation_p"] < 1.0


def weighted(**roles):
    rng = np.random.default_rng(2)
    n = 600
    data = {
        "g": rng.choice(["a", "b", "c"], n),
        "y": rng.integers(0, 2, n),
        "s": rng.gamma(2.0, size=n),
        "w": rng.uniform(1, 2, n),
        "c": rng.integers(0, 60, n),
    }
    return data, eq.Audit(data, group="g", y_true="s", y_pred="y", **roles)


@pytest.mark.parametrize("roles", [{"weight": "w"}, {"cluster": "c"}, {}])
def test_weights_clusters_and_real_values_have_studentised_means(roles):
    data, asked = weighted(**roles)
    metric = "selection_rate" if roles else "mean_outcome"
    result = asked.disparity(metric, reference="highest", scale="ratio", rng=0)
    y = data["y" if roles else "s"].astype(float)
    given = {role: data[column] for role, column in roles.items()}
    known = impact_ratio_test(y, data["g"], rng=0, **given)
    low, high = known.confidence_interval()
    for k, finding in enumerate(result.findings):
        assert_allclose(finding.estimate, known.estimate[k], rtol=1e-9)
        assert_allclose([finding.ci.low, finding.ci.high], [low[k], high[k]], rtol=1e-6)
        assert finding.method == "studentised means, all pairs"


def test_many_rows_use_sums_alone(monkeypatch):
    monkeypatch.setattr("equipoise.audits.disparity.measure.WORK_LIMIT", 10)
    _, asked = weighted(cluster="c")
    sums = asked.disparity("selection_rate", reference="highest")
    monkeypatch.undo()
    _, asked = weighted(cluster="c")
    rows = asked.disparity("selection_rate", reference="highest")
    for a, b in zip(sums.findings, rows.findings, strict=True):
        assert_allclose(a.estimate, b.estimate, rtol=1e-9)
        assert_allclose(a.ci.low, b.ci.low, rtol=0.1)


def test_few_units_are_not_compared():
    data = {"g": list("aaabbbcccc") * 20, "y": [0, 1] * 100, "c": [1, 1, 1, *range(7)]}
    data["c"] = (data["c"] * 20)[:200]
    result = eq.Audit(data, group="g", y_pred="y", cluster="c").disparity(
        "selection_rate", reference="highest"
    )
    assert [n.code for n in result.findings[0].notes] == ["too-small"]


def test_unknown_labels_and_missing_groups_are_counted_once():
    data = {
        "sex": ["f", "m", None, "f", "unknown", "m"] * 50,
        "race": ["a", "b", "a", None, "a", "unknown"] * 50,
        "y": [1, 0, 1, 1, 0, 1] * 50,
    }
    asked = eq.Audit(data, group=["sex", "race"], y_pred="y", missing="drop")
    result = asked.impact_ratios(unknown="unknown")
    assert result.details["unknown"] == 200
    assert sum(result.details["tables"][0]["n"]) == 100
    assert "unknown-category" in {note.code for note in result.notes}
    assert result.details["tables"][0]["labels"] == [["f"], ["m"]]
    with pytest.raises(DataError, match="No row has a known category"):
        asked.impact_ratios(unknown=["f", "m", "unknown"])
    with pytest.raises(InvalidParameterError, match="`unknown` must list labels"):
        asked.impact_ratios(unknown=[1])


def test_the_tables_of_the_report_have_every_row():
    rates, beside = impact_tables(audit().impact_ratios())
    assert rates.columns[0] == "Category"
    assert rates.rows[0][:4] == ("race=a", "100", "30", "0.3")
    assert rates.rows[3][-1] == "not compared"
    assert len(beside.rows) == 2
    assert impact_tables(audit().disparity("selection_rate")) == ()


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        ("beyond", "below four fifths of the highest shown"),
        ("apart, within", "lower than the highest shown; at least four fifths shown"),
        ("within", "compatible with equality; at least four fifths shown"),
        (None, "not compared"),
    ],
)
def test_readings_in_words(reading, words):
    assert reading_words(reading, 0.8) == words
    assert "0.93" in reading_words("beyond", 0.93, which="lowest")


@pytest.fixture
def constant_categories():
    """Clusters span categories of which three do not vary at all."""
    group = np.repeat(["a", "b", "c", "d"], [20, 12, 40, 12])
    selected = np.ones(len(group), dtype=int)
    selected[20] = 0
    selected[group == "d"] = 0
    user = np.arange(len(group)) * 7 % 30
    return {"g": group, "p": selected, "user": user}


def test_categories_that_do_not_vary_are_not_linked_by_rounding(constant_categories):
    audit = eq.Audit(constant_categories, group="g", y_pred="p", cluster="user")
    result = audit.impact_ratios(rng=1)
    assert result.joint.p_value is not None


def test_the_interval_of_a_ratio_of_zero_agrees_with_its_p_value(constant_categories):
    audit = eq.Audit(constant_categories, group="g", y_pred="p", cluster="user")
    found = audit.impact_ratios(rng=1).findings[3]
    assert found.estimate == 0.0
    assert found.decision is Decision.DETECTED
    assert 1.0 not in found.ci


@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "b", "a")])
def test_of_categories_that_share_the_highest_rate_the_larger_is_taken(names):
    group = np.repeat(names, [20, 40, 20])
    selected = np.r_[np.tile([0, 1], 10), np.tile([0, 1], 20), np.zeros(20, dtype=int)]
    audit = eq.Audit({"g": group, "p": selected}, group="g", y_pred="p")
    result = audit.disparity("selection_rate", reference="highest")
    assert {finding.reference for finding in result.findings} == {"the highest (g=b)"}


def test_a_category_of_zeros_has_a_ratio_of_zero_whatever_the_rounding(rng):
    group = np.repeat(["a", "b", "c"], 20)
    for _ in range(20):
        selected = np.where(group == "c", 0, rng.integers(2, size=60))
        data = {"g": group, "p": selected, "w": rng.lognormal(size=60)}
        audit = eq.Audit(data, group="g", y_pred="p", weight="w")
        assert audit.impact_ratios(rng=1).findings[2].estimate == 0.0


@pytest.mark.parametrize("question", ["disparity", "impact_ratios"])
def test_weighted_categories_that_do_not_vary_are_not_told_apart(question):
    """A division of zero by zero, met once by a random table."""
    data = {"g": list("aabb") * 5, "p": [1] * 20, "w": [1.0, 2.0, 1.0, 0.5] * 5}
    audit = eq.Audit(data | {"k": [1, 2, 1, 3] * 5}, group="g", y_pred="p", weight="w", count="k")
    options = {"reference": "highest"} if question == "disparity" else {}
    result = getattr(audit, question)("selection_rate", **options)
    assert [finding.p_value for finding in result.findings[:2]] == [1.0, 1.0]


@pytest.mark.parametrize("cluster", [None, "c"])
def test_means_have_standardised_differences_beside_them(cluster):
    rng = np.random.default_rng(4)
    group = rng.choice(["a", "b", "c", "unknown"], 400)
    score = rng.gamma(2.0, size=400) + (group == "a")
    data = {"g": group, "s": score, "c": rng.integers(0, 60, 400)}
    audit = eq.Audit(data, group="g", y_score="s", cluster=cluster)
    result = audit.impact_ratios("mean_score", unknown="unknown")
    table = result.details["tables"][0]
    known = group != "unknown"
    for name, row in zip(table["categories"], table["companions"], strict=True):
        if name == table["highest"]:
            assert row == {}
            continue
        expected = standardised_mean_difference(
            score[known],
            group[known] == name[-1],
            comparator=group[known] == table["highest"][-1],
            cluster=None if cluster is None else data["c"][known],
        )
        assert_allclose([row["smd"], row["smd_p"]], [expected.estimate, expected.p_value])
        assert_allclose([row["smd_low"], row["smd_high"]], expected.confidence_interval())
    shown = impact_tables(result)[1]
    assert shown.columns[1] == "Standardised mean difference (x 100)"
    assert len(shown.rows) == 2
    weighted = eq.Audit(data, group="g", y_score="s", weight="s").impact_ratios("mean_score")
    assert weighted.details["tables"][0]["companions"] is None
