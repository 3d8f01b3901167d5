"""One sentence for each question; it never claims more than the test shows."""

import re

import pytest

from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision
from equipoise.results.tables import html_table, table
from equipoise.results.wording import headline, multiplicity_words
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
        "The false positive rate differs between subgroups (joint test p <0.001), most for race=A,"
        " 0.118 above the population (95% interval 0.09 to 0.145); 1 of 2 subgroups differ at the"
        " 5% level."
    )


def test_a_gap_below_the_reference_turns_the_interval_with_it():
    audit = result(findings=[finding("race=A", -0.08, -0.1, -0.05, decision=FOUND)])
    assert "race=A, 0.08 below the population (95% interval 0.05 to 0.1)" in headline(audit)


def test_a_ratio_is_read_as_times_the_reference():
    line = finding("sex=F", 0.7, 0.6, 0.78, estimand=RATIO, reference="sex=M", decision=FOUND)
    sentence = headline(result(findings=[line], details={"null_value": 1.0}))
    assert "The selection rate differs" in sentence
    assert "sex=F, 0.7 times sex=M (95% interval 0.6 to 0.78)" in sentence


def test_not_detecting_a_disparity_does_not_show_equality():
    audit = result(
        findings=[finding("race=A", 0.01, -0.02, 0.04), finding("race=B")],
        joint=joint(Decision.NOT_DETECTED, 0.31),
    )
    assert headline(audit) == (
        "No difference in false positive rate was detected among 1 subgroups (joint test p 0.310);"
        " this does not show that they are equal; 1 of 2 could not be tested."
    )


def test_flag_names_the_subgroups_by_size_of_the_gap():
    audit = result(
        "flag",
        [finding(f"g={k}", 0.1 * k, 0.0, 0.5, decision=FOUND) for k in range(1, 6)],
        details={"margin": 0.05, "alternative": "greater", "bounds": [-0.05, 0.05]},
    )
    sentence = headline(audit)
    assert sentence.startswith(
        "5 of 5 subgroups have a false positive rate more than 0.05 above the population:"
        " g=5, g=4, g=3 and 2 more; the largest gap is g=5, 0.5 above the population"
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
        "All 1 subgroups are shown to have a false positive rate within 0.1 of the population."
    )
    beyond = headline(result("certify", lines, details=details))
    assert (
        "1 of 3 subgroups is shown to have a false positive rate beyond the margin: g=2" in beyond
    )
    assert "1 stay inconclusive" in beyond
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
        (0.1, None, "(95% bound: at least 0.1)"),
        (None, 0.4, "(95% bound: at most 0.4)"),
        (None, None, "(95% interval without bounds)"),
    ],
)
def test_a_side_without_bound_is_said(low, high, words):
    audit = result(findings=[finding("g=1", 0.2, low, high, decision=FOUND)])
    assert words in headline(audit)


def test_prediction_bias_within_its_margin_is_said():
    line = finding("g=1", 0.0, -0.01, 0.01, decision=WITHIN)
    audit = result("treatment_effects", [line], details={"margin": 0.05})
    assert headline(audit) == "All 1 groups are shown to have a prediction bias within 0.05."


def test_several_questions_state_what_they_report_by_chance():
    assert multiplicity_words([0.05], "none").startswith("The plan asks one question, at the 5%")
    assert "add up to 10%" in multiplicity_words([0.05, 0.05], "none")
    assert "shares one level of 5%" in multiplicity_words([0.025, 0.025], "bonferroni")
