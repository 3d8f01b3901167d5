"""One sentence for each question; it never claims more than the test shows."""

import re

import pytest

from equipoise._names import GroupName
from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision
from equipoise.results.formats import all_of, counted, index_number, joint_line, none_of
from equipoise.results.tables import html_table, table, text_width
from equipoise.results.wording import (
    amount,
    finding_words,
    headline,
    multiplicity_words,
    picture_words,
    reference_words,
    value,
)
from support.specimens import finding, joint, result

FOUND = Decision.DETECTED
WITHIN = Decision.WITHIN_MARGIN
RATIO = Estimand("selection_rate", "gap", scale="ratio", noun="selection rate")
QUESTIONS = (
    "certify",
    "disparity",
    "flag",
    "improvability",
    "inequality",
    "marginal_outcome",
    "predictive_parity",
    "treatment_effects",
)


def test_disparity_names_the_largest_gap_and_the_joint_test():
    audit = result(
        findings=[
            finding("race=A", 0.118, 0.09, 0.145, decision=FOUND),
            finding("race=B", 0.01, -0.02, 0.04),
        ],
        joint=joint(),
    )
    assert headline(audit) == (
        "The false positive rate differs between race=A and everybody: 0.118 higher, at least 0.09"
        " (95% interval 0.09 to 0.145; 100 people); 1 of 2 groups differs at the 5% level (joint"
        " test p <0.001)."
    )


def test_a_gap_below_the_reference_turns_the_interval_with_it():
    audit = result(findings=[finding("race=A", -0.08, -0.1, -0.05, decision=FOUND)])
    assert "0.08 lower, at least 0.05 (95% interval 0.05 to 0.1; 100 people)" in headline(audit)


def test_a_ratio_is_read_as_times_the_reference():
    line = finding("sex=F", 0.7, 0.6, 0.78, estimand=RATIO, reference="sex=M", decision=FOUND)
    sentence = headline(result(findings=[line], details={"null_value": 1.0}))
    assert sentence.startswith(
        "The selection rate differs between sex=F and sex=M: 0.7 times, at most 0.78 (95% interval"
        " 0.6 to 0.78; 100 people)"
    )


def test_not_detecting_a_disparity_does_not_show_equality():
    audit = result(
        findings=[finding("race=A", 0.01, -0.02, 0.04), finding("race=B")],
        joint=joint(Decision.NOT_DETECTED, 0.31),
    )
    assert headline(audit) == (
        "No difference in false positive rate was detected among 1 subgroup (joint test p 0.310);"
        " this does not show that they are equal; 1 of 2 could not be tested."
    )


def test_flag_names_the_subgroups_by_size_of_the_gap():
    audit = result(
        "flag",
        [finding(f"g={k}", 0.1 * k, 0.0, 0.5, decision=FOUND) for k in range(1, 6)],
        details={"margin": 0.05, "alternative": "greater", "bounds": [-0.05, 0.05]},
    )
    sentence = headline(audit)
    assert sentence == (
        "The false positive rate differs between g=5 and everybody: 0.5 higher (95% interval 0 to"
        " 0.5; 100 people); 5 of 5 subgroups have a false positive rate more than 0.05 above the"
        " population: g=5; g=4; g=3; and 2 more."
    )


def test_a_ratio_is_flagged_and_certified_against_its_bounds():
    line = finding("sex=F", 0.7, 0.6, 0.78, estimand=RATIO, decision=FOUND)
    details = {"margin": 0.2, "bounds": [0.8, 1.25], "null_value": 1.0, "alternative": "less"}
    flagged = headline(result("flag", [line], details=details))
    assert "has a selection rate below 0.8 times that of the population: sex=F" in flagged
    certified = headline(result("certify", [line], details=details))
    assert "shown to be between 0.8 and 1.25 times the population" in certified


def test_certify_separates_within_beyond_and_inconclusive():
    lines = [
        finding("g=1", 0.01, -0.01, 0.02, decision=WITHIN),
        finding("g=2", 0.3, 0.2, 0.4, decision=FOUND),
        finding("g=3", 0.1, -0.1, 0.3),
    ]
    details = {"margin": 0.1}
    all_within = headline(result("certify", lines[:1], details=details))
    assert all_within == (
        "The only subgroup is shown to have a false positive rate within 0.1 of the population."
    )
    beyond = headline(result("certify", lines, details=details))
    assert (
        "1 of 3 subgroups is shown to have a false positive rate beyond the margin: g=2" in beyond
    )
    assert "1 stays inconclusive" in beyond
    unclear = headline(result("certify", [lines[0], lines[2]], details=details))
    assert "do not settle" in unclear
    assert "g=3" in unclear


def test_nothing_tested_gives_the_reason():
    audit = result(findings=[finding("race=A")])
    assert headline(audit) == (
        "Nothing could be tested: Too few rows to test: 4, at least 10 are needed."
    )


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("decision", [FOUND, Decision.NOT_DETECTED, WITHIN])
@pytest.mark.parametrize("with_joint", [True, False])
def test_a_headline_is_one_sentence_without_a_verdict(question, decision, with_joint):
    audit = result(
        question,
        [finding("race=A", 0.1, 0.05, 0.15, decision=decision), finding("race=B")],
        joint=joint(FOUND if decision is FOUND else Decision.NOT_DETECTED) if with_joint else None,
    )
    sentence = headline(audit)
    assert sentence.endswith(".")
    assert not re.search(r"\b(fair|unbiased|passed|certified|compliant)\b", sentence)
    assert sentence[0].isupper() or sentence[0].isdigit()
    assert "None" not in sentence.replace("None of", "")


def test_a_long_group_name_is_cut_in_the_sentence_and_whole_in_the_table():
    name = "g=" + "x" * 500
    audit = result(findings=[finding(name, 0.1, 0.05, 0.15, decision=FOUND)])
    assert len(headline(audit)) < 300
    assert name in html_table(audit)
    assert table(audit).replace("\n", "").replace(" ", "").count("x") >= 500


def test_the_notebook_table_escapes_group_names():
    audit = result(findings=[finding("<b>", 0.1, 0.05, 0.15)])
    assert "&lt;b&gt;" in audit._repr_html_()
    assert "<b>" not in audit._repr_html_()


def test_inequality_gives_the_index_its_share_between_groups_and_the_test():
    line = finding("everybody", 0.139, 0.133, 0.146, estimand=Estimand("inequality index", "index"))
    audit = result("inequality", [line], joint=joint(), details={"between_share": 0.035})
    assert headline(audit) == (
        "The inequality of benefits is 0.139 (95% interval 0.133 to 0.146), of which 3.5% lies"
        " between groups; a difference in mean benefit between groups was detected (p <0.001)."
    )


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.1, None, "at least 0.1 (95% interval 0.1 or more; 100 people)"),
        (None, 0.4, "higher (95% interval 0.4 or less; 100 people)"),
        (None, None, "higher (95% interval without bounds; 100 people)"),
    ],
)
def test_a_side_without_bound_is_said(low, high, words):
    audit = result(findings=[finding("g=1", 0.2, low, high, decision=FOUND)])
    assert words in headline(audit)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.1, None, "0.2 (95% bound: at least 0.1)"),
        (None, 0.4, "0.2 (95% bound: at most 0.4)"),
        (None, None, "0.2 (95% interval without bounds)"),
    ],
)
def test_an_amount_says_which_side_has_no_bound(low, high, words):
    assert amount(finding("g=1", 0.2, low, high)) == words


def test_an_amount_without_an_interval_is_the_number():
    assert amount(finding("g=1", 0.2, ci=None)) == "0.2"


def test_prediction_bias_within_its_margin_is_said():
    line = finding("g=1", 0.0, -0.01, 0.01, decision=WITHIN)
    audit = result("treatment_effects", [line], details={"margin": 0.05})
    assert headline(audit) == "The only group is shown to have a prediction bias within 0.05."


def test_several_questions_state_what_they_report_by_chance():
    assert multiplicity_words([0.05], "none").startswith("The plan asks one question, at the 5%")
    assert "add up to 10%" in multiplicity_words([0.05, 0.05], "none")
    assert "shares one level of 5%" in multiplicity_words([0.025, 0.025], "bonferroni")


def test_text_is_as_wide_as_the_terminal_and_80_columns_without_one(monkeypatch):
    lines = [finding(f"race=African-American & sex=Male & age={k}", 0.1, 0.05, 0.2) for k in "ab"]
    audit = result(findings=lines)
    assert max(map(len, table(audit).splitlines())) <= 80
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "120")
    assert "race=African-American & sex=Male & age=a " in table(audit)
    monkeypatch.setenv("COLUMNS", "20")
    assert text_width() == 40


def test_no_name_is_broken_inside_a_word():
    name = "race=Caucasian" + "x" * 30
    lines = [finding(name, 0.123, -1234.5, 1234.5, n=1234567, decision=WITHIN)]
    assert name in table(result(findings=lines)).splitlines()


class Terminal:
    """Stands for a stream that is a terminal."""

    def isatty(self):
        return True


def test_lines_that_differ_in_their_reference_alone_name_it():
    pairs = [
        finding("race=A", 0.1, 0.0, 0.2, reference="race=B"),
        finding("race=A", 0.3, 0.2, 0.4, reference="race=C"),
        finding("race=D", 0.3, 0.2, 0.4, reference=""),
    ]
    audit = result(findings=pairs)
    for reference in ("race=B", "race=C"):
        text = " ".join(table(audit).split())
        assert re.search(rf"race=A .*compared with {reference}", text)
        assert f"> race=A compared with {reference}</th>" in " ".join(html_table(audit).split())
    assert "> race=D</th>" in " ".join(html_table(audit).split())
    assert "compared with" not in table(result(findings=pairs[1:]))
    first, _, last = finding_words(audit)
    assert first.startswith("race=A compared with race=B: false positive rate difference 0.1")
    assert finding_words(audit, pairs[2:]) == [last]
    assert value(pairs[1], audit).startswith("race=A, whose false positive rate is 0.3 above that")
    assert reference_words(audit) == "the reference"
    assert reference_words(result(findings=pairs[1:])) == "race=C"
    named = [finding("race=A", 0.1, 0.0, 0.2, reference=GroupName([("race", "B")]))]
    assert reference_words(result(findings=named)) == "race: B"
    highest = result(findings=pairs, details={"reference": "highest"})
    assert reference_words(highest) == "the highest false positive rate"


def test_a_joint_test_without_a_statistic_does_not_print_a_dash():
    assert joint_line(joint(statistic=None, df=None)).endswith("zero: p <0.001, detected")


def test_a_picture_of_nothing_says_so():
    told = result(findings=[finding("a"), finding("b")])
    assert picture_words(told)[1] == "Nothing could be tested for the 2 groups asked for."


def test_counts_agree_with_their_nouns():
    assert (counted(1, "group"), counted(1200, "group")) == ("1 group", "1,200 groups")
    assert (counted(1, "category"), counted(2, "category")) == ("1 category", "2 categories")
    assert (all_of(1, "group"), all_of(2, "group")) == ("The only group is", "All 2 groups are")
    assert none_of(1, "group") == "The only group was not"
    assert none_of(3, "group") == "None of 3 groups was"
    flagged = result("flag", [finding("g=1", 0.1, -0.1, 0.3)], details={"alternative": "greater"})
    assert headline(flagged).startswith("The only subgroup was not shown to have a false positive")


@pytest.mark.parametrize(
    ("estimate", "words"),
    [(7.38e-05, "<0.001"), (-7.38e-05, ">-0.001"), (0.0, "0"), (None, "-"), (0.0123, "0.0123")],
)
def test_a_small_part_of_an_index_is_told_as_small(estimate, words):
    assert index_number(estimate) == words
    if estimate is None:
        return
    part = finding("everybody", estimate, -0.1, 8e-05, estimand=Estimand("between part", "index"))
    assert amount(part) == f"{words} (95% interval -0.1 to <0.001)"
    assert f"Estimates run from {words} (everybody)" in picture_words(result(findings=[part]))[1]
    assert amount(finding("g=1", 7.38e-05, -0.1, 0.1)).startswith("0.0000738 ")


@pytest.mark.parametrize(("size", "side"), [(0.3, "above"), (-0.3, "below")])
def test_a_gap_is_told_with_its_side_and_what_it_is_beside(size, side):
    share = Estimand("share", "gap", scale="difference", noun="share treated")
    ends = sorted((0.5 * size, 1.5 * size))
    line = finding("g=A", size, *ends, estimand=share, decision=FOUND, reference="the rest")
    assert value(line, result("policy", [line])) == (
        f"g=A, whose share treated is 0.3 {side} that of everybody else (95% interval 0.15 to 0.45)"
    )


def test_a_sentence_about_withheld_numbers_has_no_dash_in_their_place():
    name = Estimand("residual", "value", noun="mean outcome less the score")
    hidden = finding("g=A", estimand=name, decision=FOUND, withheld=True)
    assert value(hidden, result("multicalibration", [hidden])) == (
        "g=A, whose numbers are withheld"
    )


def test_large_counts_of_what_could_not_be_tested_have_their_commas():
    lines = [finding(f"race={k}") for k in range(1_500)]
    told = headline(result(findings=[finding("race=A", 0.1, 0.05, 0.15), *lines]))
    assert told.endswith("; 1,500 of 1,501 could not be tested.")
