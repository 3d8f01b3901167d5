import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise.audits.asking import ask
from equipoise.audits.disparity.alike import GivenAsked
from equipoise.audits.disparity.strata import compare_within_strata
from equipoise.exceptions import InvalidParameterError
from equipoise.results.finding import Decision
from equipoise.results.wording import headline, question_words
from equipoise.stats.disparity.decomposition import disparity_decomposition
from equipoise.stats.disparity.strata import stratified_disparity_test
from equipoise.stats.pairs import Pairs

RNG = np.random.default_rng(8)
N = 1500
SEX = RNG.choice(["men", "women"], N)
RACE = RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
DEPARTMENT = np.where(RNG.random(N) < np.where(SEX == "women", 0.8, 0.3), "hard", "easy")
GRADE = RNG.choice(["A", "B", "C"], N)
ADMITTED = (RNG.random(N) < np.where(DEPARTMENT == "hard", 0.2, 0.5)).astype(int)
PAY = RNG.gamma(3.0, size=N) + (DEPARTMENT == "hard") + 0.5 * (SEX == "women")
WEIGHT, CLUSTER = RNG.uniform(0.5, 2.0, N), RNG.integers(0, 80, N)
DATA = {
    "sex": SEX,
    "race": RACE,
    "department": DEPARTMENT,
    "grade": GRADE,
    "admitted": ADMITTED,
    "pay": PAY,
    "w": WEIGHT,
    "c": CLUSTER,
}
FACTORS = [DEPARTMENT, GRADE]


def audit(group="sex", **roles):
    return eq.Audit(DATA, group=group, y_true="pay", y_pred="admitted", **roles)


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize("weights", ["overlap", "group", "population"])
@pytest.mark.parametrize("metric", ["selection_rate", "mean_outcome"])
@pytest.mark.parametrize(
    "roles", [{}, {"weight": "w"}, {"cluster": "c"}, {"weight": "w", "cluster": "c"}]
)
def test_the_audit_is_the_test_on_arrays(scale, weights, metric, roles):
    result = audit("race", **roles).disparity(
        metric, given=["department", "grade"], scale=scale, weights=weights
    )
    given = {role: DATA[column] for role, column in roles.items()}
    y = ADMITTED if metric == "selection_rate" else PAY
    known = stratified_disparity_test(y, RACE, FACTORS, scale=scale, weights=weights, **given)
    low, high = known.confidence_interval()
    for k, finding in enumerate(result.findings):
        assert_allclose(finding.estimate, known.estimate[k], rtol=1e-9)
        assert_allclose([finding.ci.low, finding.ci.high], [low[k], high[k]], rtol=1e-6)
        assert_allclose(finding.p_value, known.p_values()[k], rtol=1e-6)
    if "cluster" in roles:
        assert result.joint.method == "Bonferroni over 3 groups"
    else:
        assert_allclose(result.joint.p_value, known.p_value, rtol=1e-6)


def test_a_reference_group_is_not_compared_with_itself():
    result = audit().disparity(
        "selection_rate", given=["department"], reference={"sex": "men"}, simultaneous=True
    )
    men, women = result.findings
    assert men.is_reference
    known = stratified_disparity_test(ADMITTED, SEX, DEPARTMENT, reference="men")
    assert_allclose(women.estimate, known.estimate[0])
    summary = result.details["strata"][0]
    assert summary["group"] == "sex=women"
    assert summary["raw"] == pytest.approx(
        ADMITTED[SEX == "women"].mean() - ADMITTED[SEX == "men"].mean()
    )
    assert summary["without"]["department"] == pytest.approx(summary["raw"])
    assert summary["mantel_haenszel"]["cmh"] == pytest.approx(women.statistic**2)
    assert headline(result).startswith("No gap in selection rate was detected among people alike")
    assert ", which does not show that there is none;" in headline(result)
    told = headline(result)
    assert re.search(
        r"beside sex: men: 1\d\.\d percentage points lower; among people alike in department"
        r" [\d.]+ percentage points lower \(95% interval -?[\d.]+ to [\d.]+\), p 0",
        told,
    )
    assert not re.search(r"\d [-\d.]", told)
    codes = {note.code for note in result.notes}
    assert {"conditioning-cannot-excuse", "strata-compared"} <= codes


def test_simultaneous_lies_between_one_by_one_and_bonferroni():
    asked = audit("race")
    alone = asked.disparity("selection_rate", given="grade")
    together = asked.disparity("selection_rate", given="grade", simultaneous=True, rng=1)
    for a, b in zip(alone.findings, together.findings, strict=True):
        assert a.p_value < b.p_value < min(3 * a.p_value, 1.0)
        assert b.p_value_raw == a.p_value
        assert b.ci.low < a.ci.low
        assert (0 in b.ci) == (b.p_value > 0.05)
    assert "marginal" in {note.code for note in alone.notes}
    assert "simultaneous" in {note.code for note in together.notes}


@pytest.mark.parametrize("roles", [{}, {"weight": "w"}, {"cluster": "c"}])
def test_a_group_and_its_rest_are_one_comparison(roles):
    asked = audit(**roles)
    alone = asked.disparity("selection_rate", given="department")
    together = asked.disparity("selection_rate", given="department", simultaneous=True, rng=1)
    for a, b in zip(alone.findings, together.findings, strict=True):
        # 50,000 draws of the largest root.
        assert_allclose(b.p_value, a.p_value, atol=0.01)
        assert_allclose([b.ci.low, b.ci.high], [a.ci.low, a.ci.high], rtol=0.03)


def test_equal_groups_share_half_of_their_error_with_the_comparator():
    third = np.repeat(["a", "b", "c"], 400)
    data = {"g": third, "f": np.tile(["x", "y"], 600), "y": np.tile([1, 1, 0, 0], 300)}
    asked = GivenAsked(given=("f",), reference={"g": "a"}, scale="difference")
    table = eq.Audit(data, group="g", y_pred="y").table
    found = ask(compare_within_strata(table, "selection_rate", asked))
    assert_allclose(found.correlation(), [[1.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize("alternative", ["greater", "less", "outside", "two-sided"])
def test_flag_adjusts_one_sided_p_values(alternative):
    margin = 0.0 if alternative == "two-sided" else 0.05
    result = audit().flag(
        "mean_outcome", given="department", margin=margin, alternative=alternative, adjust="holm"
    )
    known = stratified_disparity_test(PAY, SEX, DEPARTMENT)
    for one, finding in zip(known.comparisons, result.findings, strict=True):
        up = 1.0 - _phi(one.root(margin))
        down = _phi(one.root(-margin))
        expected = {"greater": up, "less": down}.get(alternative, min(2 * min(up, down), 1.0))
        assert finding.p_value_raw == pytest.approx(expected, rel=1e-6, abs=1e-12)
        assert finding.p_value >= finding.p_value_raw
    assert (Decision.DETECTED in {f.decision for f in result.findings}) == result.detected


def _phi(z):
    from scipy.stats import norm

    return norm.cdf(z)


def test_certify_needs_both_sides_and_every_group():
    wide = audit().certify("selection_rate", given="department", margin=0.4)
    assert {f.decision for f in wide.findings} == {Decision.WITHIN_MARGIN}
    assert wide.joint.decision is Decision.WITHIN_MARGIN
    narrow = audit().certify("mean_outcome", given="department", margin=0.01)
    assert {f.decision for f in narrow.findings} == {Decision.DETECTED}
    assert "0 of 2 groups are shown" in headline(narrow)
    apart = eq.Audit(
        {"g": list("ab") * 50, "f": list("xy") * 50, "y": [0, 1, 1, 0] * 25}, group="g", y_pred="y"
    ).certify("selection_rate", given="f", margin=0.1)
    assert apart.joint.decision is Decision.NOT_TESTED
    assert {n.code for f in apart.findings for n in f.notes} == {"no-overlap"}


def test_what_few_skewed_values_cost_among_people_alike_is_said(rng):
    n = 40
    rows = {
        "g": np.repeat(["a", "b"], [n, 10 * n]),
        "s": np.tile(["x", "y"], 11 * n // 2),
        "y": rng.lognormal(size=11 * n),
    }
    result = eq.Audit(rows, group="g", y_true="y").flag(
        "mean_outcome", given="s", reference={"g": "b"}, alternative="less"
    )
    (finding,) = [one for one in result.findings if one.group == "g=a"]
    (note,) = [note for note in finding.notes if note.code == "shape-unknown"]
    assert "up to 14% at a nominal 5%, two-sided ones 10%" in note.message


def test_one_stratum_is_the_plain_comparison_and_says_so():
    data = {
        "g": np.repeat(["a", "b", "a"], [48, 60, 20]),
        "f": np.repeat(["x", "y"], [108, 20]),
        "y": np.repeat([1, 0, 1, 0, 1], [5, 43, 14, 46, 20]),
    }
    result = eq.Audit(data, group="g", y_pred="y").disparity(
        "selection_rate", given="f", reference={"g": "b"}
    )
    finding = result.findings[0]
    pair = Pairs.of(*(np.array([value]) for value in (5.0, 48.0, 14.0, 60.0)))
    assert finding.p_value == pytest.approx(pair.p_value(0.0)[0])
    assert {note.code for note in finding.notes} == {"one-stratum", "little-overlap"}
    remedy = next(note for note in finding.notes if note.code == "little-overlap").message
    assert remedy.endswith('wider bands, or `conditional="doubly_robust"`.')
    assert result.details["strata"][0]["n_strata"] == 2
    assert result.details["strata"][0]["n_compared"] == 1


def test_weights_of_everybody_need_everybody_compared():
    data = {"g": list("aab"), "f": list("xyx"), "y": [1, 0, 1], "n": [50, 40, 30]}
    asked = eq.Audit(data, group="g", y_pred="y", count="n")
    result = asked.disparity("selection_rate", given="f", weights="population")
    assert "needs both sides in every stratum" in result.findings[1].notes[0].message


def test_what_cannot_be_tested_says_why():
    few = eq.Audit(
        {"g": list("aabb") * 5, "f": ["x"] * 20, "y": np.arange(20.0), "c": [1, 2, 3, 4] * 5},
        group="g",
        y_true="y",
        cluster="c",
    ).disparity("mean_outcome", given="f")
    assert {n.code for f in few.findings for n in f.notes} == {"too-small"}
    constant = eq.Audit(
        {"g": list("aabb") * 10, "f": ["x"] * 40, "y": [2.5] * 40}, group="g", y_true="y"
    ).disparity("mean_outcome", given="f")
    assert {n.code for f in constant.findings for n in f.notes} == {"degenerate"}
    zero = eq.Audit(
        {"g": list("ab") * 40, "f": ["x"] * 80, "y": [1, 0] * 40}, group="g", y_pred="y"
    ).disparity("selection_rate", given="f", reference={"g": "b"}, scale="ratio")
    assert zero.findings[0].notes[0].code == "ratio-to-zero"


def test_a_gap_that_varies_is_pointed_out():
    data = {
        "g": np.repeat(["a", "b", "a", "b"], 200),
        "f": np.repeat(["x", "y"], 400),
        "y": np.repeat([1, 0] * 4, [160, 40, 60, 140, 60, 140, 160, 40]),
    }
    result = eq.Audit(data, group="g", y_pred="y").disparity("selection_rate", given="f")
    assert "gap-varies" in {note.code for note in result.findings[0].notes}


def test_numbers_are_cut_into_bands():
    asked = audit()
    remedy = r'has 1,500 distinct values; pass `bands=.* printed\) or `conditional="doubly_robust"`'
    remedy += r"\.$"
    with pytest.raises(InvalidParameterError, match=remedy):
        asked.disparity("selection_rate", given="pay")
    result = asked.disparity("selection_rate", given=["pay"], bands={"pay": 4})
    cuts = np.quantile(PAY, [0.25, 0.5, 0.75])
    known = stratified_disparity_test(ADMITTED, SEX, np.searchsorted(cuts, PAY, side="right"))
    assert_allclose([f.estimate for f in result.findings], known.estimate)
    assert "bands" in {note.code for note in result.notes}
    own = asked.disparity("selection_rate", given=["pay"], bands={"pay": cuts.tolist()})
    assert own.findings == result.findings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"given": "sex"}, "'sex' is both group and given"),
        ({"given": []}, "`given` must name at least one factor"),
        ({"given": "grade", "reference": "population"}, "conditioning needs a comparison group"),
        ({"given": "grade", "reference": "highest"}, "conditioning needs a comparison group"),
        ({"given": "grade", "method": "el"}, "has a law of its own"),
        ({"given": "grade", "bands": {"pay": 3}}, "which is not among `given`"),
        ({"given": "grade", "bands": {"grade": 3}}, "`bands` cuts numbers"),
        ({"given": "grade", "bands": 3}, "`bands` must map factors"),
        ({"weights": "group"}, "'bands', 'conditional', .* belong to `given`"),
    ],
)
def test_what_cannot_be_asked_is_refused(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        audit().disparity("selection_rate", **options)


def test_counts_and_weights_go_together():
    counted = eq.Audit(
        DATA | {"n": np.full(N, 2)}, group="sex", y_pred="admitted", weight="w", count="n"
    ).disparity("selection_rate", given="grade")
    twice = {name: np.repeat(column, 2) for name, column in DATA.items()}
    rows = eq.Audit(twice, group="sex", y_pred="admitted", weight="w").disparity(
        "selection_rate", given="grade"
    )
    for a, b in zip(counted.findings, rows.findings, strict=True):
        assert_allclose([a.estimate, a.p_value], [b.estimate, b.p_value], rtol=1e-9)


@pytest.mark.parametrize("roles", [{}, {"weight": "w"}, {"cluster": "c"}])
def test_a_split_is_the_decomposition_on_arrays(roles):
    result = audit(**roles).decompose(
        "selection_rate", given=["department", "grade"], reference={"sex": "men"}
    )
    given = {role: DATA[column] for role, column in roles.items()}
    known = disparity_decomposition(
        ADMITTED, SEX == "women", {"department": DEPARTMENT, "grade": GRADE}, **given
    )
    split = result.details["split"][0]
    for name in ("raw", "explained", "unexplained", "outside_group", "outside_comparator"):
        part = getattr(known, name)
        assert_allclose([split[name]["value"], split[name]["se"]], [part.value, part.se], atol=1e-9)
    for entry in split["by_factor"]:
        assert_allclose(entry["value"], known.by_factor[entry["factor"]].value, atol=1e-12)
    raw, alike, *parts = [f for f in result.findings if f.group == "sex=women"]
    assert raw.decision is Decision.ESTIMATED
    assert raw.estimate == pytest.approx(
        alike.estimate + sum(part.estimate for part in parts), abs=1e-12
    )
    conditional = audit(**roles).disparity(
        "selection_rate", given=["department", "grade"], weights="group", reference={"sex": "men"}
    )
    assert alike.p_value == pytest.approx(conditional.findings[1].p_value)
    told = " percentage points fewer of sex: women than of sex: men have `admitted` = 1, at least "
    assert told in headline(result)
    told = headline(result)
    assert "; sex: women, beside sex: men: of a raw gap of 1" in told
    assert " percentage points in selection rate, the part that goes with different " in told
    # Every part has its unit.
    assert len(re.findall(r"(?:is|not) -?[\d.]+ percentage points", told)) == 2
    # No two numbers stand in a row: a unit or a word is between them.
    assert not re.search(r"\d [-\d.]", told)


def test_the_question_says_in_what_people_are_alike():
    asked = eq.Audit(DATA, group="sex", y_pred="admitted")
    given = asked.disparity("selection_rate", given=["department", "grade"])
    assert question_words(given) == (
        "How large is each subgroup's gap in selection rate among people alike in department and"
        " grade, and is there any?"
    )
    assert "alike" not in question_words(asked.disparity("selection_rate"))


def test_the_headline_says_who_is_worse_off_among_people_alike():
    data = DATA | {"admitted": ADMITTED * (SEX == "men")}
    asked = eq.Audit(data, group="sex", y_pred="admitted", favourable=1)
    told = headline(asked.disparity("selection_rate", given="department"))
    assert told.startswith("Among people alike in department, ")
    assert (
        " percentage points fewer of sex: women than of everybody else have `admitted` = 1" in told
    )
    apart = ", so sex: women are worse off; p <0.001; without regard to department the gap is "
    assert apart in told
    assert told.partition(apart)[2].partition(";")[0].endswith(" percentage points")
    certified = headline(asked.certify("selection_rate", given="department", margin=0.01))
    assert "worse off; among people alike in department, 0 of 2 groups are shown" in certified
    split = headline(asked.decompose("selection_rate", given="department"))
    assert ", so sex: women are worse off; sex: women, beside everybody else: of a raw" in split
    few = {"g": list("ab") * 20, "f": ["x"] * 40, "y": [0, 1] * 20}
    small = headline(eq.Audit(few, group="g", y_pred="y").disparity("selection_rate", given="f"))
    assert small.startswith("g: a, beside everybody else: 100.0 percentage points lower; among")


def test_people_without_comparators_have_parts_of_their_own():
    data = {"g": list("aab"), "f": list("xyx"), "y": [1, 0, 1], "n": [50, 40, 30]}
    result = eq.Audit(data, group="g", y_pred="y", count="n").decompose(
        "selection_rate", given="f", reference={"g": "b"}
    )
    parts = {str(f.estimand): f.estimate for f in result.findings if f.group == "g=a"}
    assert parts["group without comparator part of the gap"] == pytest.approx(-40 / 90)
    assert "is due to people without anybody alike" in headline(result)


def test_a_split_takes_ten_factors_at_most():
    data = DATA | {f"f{k}": GRADE for k in range(11)}
    with pytest.raises(InvalidParameterError, match="at most 10 factors here; got 11"):
        eq.Audit(data, group="sex", y_pred="admitted").decompose(
            "selection_rate", given=[f"f{k}" for k in range(11)]
        )


def test_the_picture_has_every_part_of_the_largest_gaps():
    result = audit("race").decompose("selection_rate", given=["department"])
    axes = result.plot()
    drawn = {artist.get_gid() for artist in axes.get_lines()}
    parts = {f"finding-{k}" for k, finding in enumerate(result.findings) if finding.estimate}
    assert parts <= drawn
    labels = [text.get_text() for text in axes.get_yticklabels()]
    # The group with the largest raw gap comes first.
    raw = [f for f in result.findings if f.estimand.kind == "raw gap"]
    first = max(raw, key=lambda finding: abs(finding.estimate))
    assert labels[:2] == [f"{first.group.replace('=', ': ')}: raw gap", "among people alike"]
    assert "with department" in labels
    # Everybody has somebody alike: parts that are nothing have no line.
    assert len(labels) == len(parts) < len(result.findings)
    assert axes.get_xlabel() == "gap in selection rate, percentage points"


def test_too_few_clusters_leave_no_joint_test_either():
    n = 60
    data = {
        "g": np.repeat(["a", "b"], [40, 20]),
        "p": np.arange(n) * 7 % 3 // 2,
        "z": np.arange(n) * 5 % 4 // 2,
        "user": np.arange(n) % 3,
    }
    audit = eq.Audit(data, group="g", y_pred="p", cluster="user")
    result = audit.disparity("selection_rate", given="z")
    assert result.joint.decision is Decision.NOT_TESTED
    assert "Nothing could be tested" in str(result)


@pytest.mark.parametrize(("adjust", "words"), [("by", "Yekutieli"), ("none", "not adjusted")])
def test_the_family_of_flags_given_a_factor_is_told_in_words(adjust, words):
    data = {"g": ["a", "b"] * 60, "p": [0, 1, 1] * 40, "z": [0, 0, 1, 1] * 30}
    audit = eq.Audit(data, group="g", y_pred="p")
    result = audit.flag("selection_rate", given="z", adjust=adjust)
    (note,) = [note for note in result.notes if note.code == "multiplicity"]
    assert words in note.message


def test_a_flag_given_a_factor_speaks_of_its_tolerance():
    few = {"g": list("ab") * 60, "p": [0, 1, 1, 1] * 30, "z": list("xxyy") * 30}
    asked = eq.Audit(few, group="g", y_pred="p")
    wide = headline(asked.flag("selection_rate", given="z", margin=0.7))
    limit = "shown to have a selection rate more than 70.0 percentage points above the rest"
    assert wide.startswith(f"None of 2 groups was {limit} among people alike in z; one too small")
    assert "; g: b, beside everybody else: 50.0 percentage points higher; among" in wide
    less = headline(asked.flag("selection_rate", given="z", margin=0.7, alternative="less"))
    assert "; g: a, beside everybody else: 50.0 percentage points lower; among" in less
    near = headline(asked.flag("selection_rate", given="z", margin=0.1))
    assert near.endswith(
        "; 1 of 2 groups is shown to have a selection rate more than 10.0 percentage points above"
        " the rest."
    )
    certified = headline(asked.certify("selection_rate", given="z", margin=0.7))
    assert certified == (
        "Among people alike in z, 2 of 2 groups are shown to have a selection rate within 70.0"
        " percentage points of the rest."
    )


def test_an_empty_reference_is_refused():
    with pytest.raises(InvalidParameterError, match="`reference` is empty; name a group"):
        audit().disparity("selection_rate", given="department", reference={})


ALIKE = (
    "Among people alike in t, 1 of 3 groups, withheld, is shown to have a selection rate more than"
    " 5.0 percentage points above the rest"
)
BELOW = (
    "1 of 2 categories, withheld, is shown to be more than 5.0 percentage points below the highest"
)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"given": "t"}, ALIKE), ({"reference": "highest", "alternative": "less"}, BELOW)],
)
def test_a_few_people_do_not_keep_a_sentence_from_being_written(options, sentence):
    group = np.repeat(["a", "b", "c"], [400, 40, 3])
    selected = np.arange(443) % 10 < np.repeat([3, 8, 5], [400, 40, 3])
    table = {"g": group, "t": np.arange(443) // 10 % 2, "p": selected.astype(int)}
    asked = eq.Audit(table, group="g", y_pred="p")
    result = asked.flag("selection_rate", margin=0.05, **options)
    assert headline(result.disclosed()).startswith(sentence)
