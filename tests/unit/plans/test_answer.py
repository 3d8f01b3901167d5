"""One paragraph for the whole audit: what is shown, what is not, and what was not asked."""

from dataclasses import replace

from equipoise._names import GroupName
from equipoise.plans.answer import answer
from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision
from equipoise.results.wording import headline
from equipoise.results.words import MetricWords, Words
from support.specimens import check, dossier, finding, result

FOUND = Decision.DETECTED
FPR = MetricWords(noun="false positive rate", event="selected", among="no_outcome", better="lower")
WORDS = Words(favourable="not_selected", metrics={"fpr": FPR})


def line(label, gap, low, high, **changes):
    changes = {"decision": FOUND, "n": 500} | changes
    return finding(GroupName([("race", label)]), gap, low, high, **changes)


def gaps(*findings, words=WORDS, audit="disparity", **details):
    values = [
        {"group": f.group, "group_value": 0.4, "target_value": 0.2, "se": 0.01} for f in findings
    ]
    return result(audit, findings, words=words, details=details | {"values": values})


def said(*results):
    checks = [check(r.audit, r, f"c{k}") for k, r in enumerate(results)]
    return " ".join(answer(dossier(*checks)))


def test_the_largest_disadvantage_that_is_shown_leads_over_all_checks():
    small = gaps(line("a", 0.05, 0.04, 0.06))
    large = gaps(line("b", 0.2, 0.15, 0.25), line("five", 0.9, 0.8, 1.0, n=5), simultaneous=True)
    text = said(small, large)
    assert text.startswith("Among people who do not have the outcome, 40.0% of race: b and 20.0%")
    assert "at least 15.0" in text
    assert "five" not in text
    assert "2 of 2 groups are shown to differ" in text
    assert "at most a 5% chance that any of them is wrong" in text


def test_how_far_a_list_can_be_trusted_follows_from_its_adjustment():
    flagged = gaps(line("a", 0.05, 0.04, 0.06), audit="flag", adjust="bh", alternative="greater")
    assert "1 of 1 group is shown" in said(flagged)
    assert "at most 5% are expected to be wrong" in said(flagged)
    assert "each tested by itself at the 5% level" in said(gaps(line("a", 0.05, 0.04, 0.06)))


def test_a_ratio_of_the_bad_decision_says_so():
    ratio = Estimand("selection_rate", "gap", scale="ratio", noun="selection rate")
    within = line("a", 1.0, 0.9, 1.1, decision=Decision.WITHIN_MARGIN, estimand=ratio)
    for better, told in (
        ("lower", " (here the share of people who were denied) is"),
        ("higher", " is"),
    ):
        metric = MetricWords(noun="selection rate", event="selected", better=better)
        words = Words(selected="were denied", metrics={"selection_rate": metric})
        certified = gaps(within, audit="certify", margin=0.2, words=words)
        assert f"The selection rate{told} shown to be within" in said(certified)


def test_what_is_within_its_margin_says_among_whom_and_of_several_metrics():
    within = line("a", 0.0, -0.01, 0.01, decision=Decision.WITHIN_MARGIN)
    alike = said(gaps(within, audit="certify", margin=0.05, given=["tenure"]))
    assert "The false positive rate among people alike in tenure is shown to be within" in alike
    accuracy = Estimand("accuracy", "gap", noun="accuracy")
    other = line("a", 0.0, -0.01, 0.01, decision=Decision.WITHIN_MARGIN, estimand=accuracy)
    several = said(gaps(within, other, audit="certify", margin=0.05))
    assert "The false positive rate and accuracy are shown to be within 0.05 of" in several
    assert "for 2 of 2 comparisons." in several


def test_what_is_within_its_margin_beyond_it_and_open_is_counted():
    certified = gaps(
        line("a", 0.0, -0.01, 0.01, decision=Decision.WITHIN_MARGIN),
        line("b", 0.2, 0.15, 0.25),
        line("c", 0.0, -0.2, 0.2, decision=Decision.NOT_DETECTED),
        audit="certify",
        margin=0.05,
    )
    assert (
        "The false positive rate is shown to be within 5.0 percentage points of the population for"
        " 1 of 3 groups and beyond it for 1; for 1 the data do not settle it." in said(certified)
    )
    ratio = Estimand("fpr", "gap", scale="ratio", noun="false positive rate")
    within = line("a", 1.0, 0.9, 1.1, decision=Decision.WITHIN_MARGIN, estimand=ratio)
    assert "within 0.2 of the population for 1 of 1 group." in said(
        gaps(within, audit="certify", margin=0.2)
    )


def test_what_was_not_shown_and_not_asked_is_said():
    unshown = gaps(line("a", 0.0, -0.1, 0.1, decision=Decision.NOT_DETECTED))
    text = said(unshown, unshown)
    assert "2 questions detected nothing (false positive rate)" in text
    assert "does not show that there is nothing" in text
    assert "Not asked in this plan:" in text
    assert "Is it necessary" in text
    assert said(unshown).count("One question detected nothing") == 1


def test_what_else_was_detected_and_what_could_not_be_tested_is_named():
    led = gaps(line("a", 0.2, 0.15, 0.25))
    alike = gaps(line("a", 0.1, 0.05, 0.15), given=["branch", "grade"])
    few = gaps(finding("g=1", None, None, None, decision=Decision.NOT_TESTED), audit="flag")
    silent = gaps(line("a", 0.0, -0.1, 0.1, decision=Decision.NOT_DETECTED), audit="flag")
    text = said(led, alike, few, silent)
    subject = "false positive rate among people alike in branch and grade"
    assert f"One more question detected something ({subject});" in text
    beyond = "(false positive rate beyond the tolerance)"
    assert f"One question detected nothing {beyond}, which does not" in text
    assert f"One question could not be tested {beyond}." in text
    assert "detected something" not in said(led)


def test_every_detection_beyond_the_three_that_are_told_is_counted():
    bias = result("treatment_effects", [finding("g=1", 0.2, 0.1, 0.3, decision=FOUND)], details={})
    assert "2 more questions detected something (" in said(*[bias] * 5)


def test_a_direction_that_was_not_given_is_said():
    plain = Words(metrics={"fpr": MetricWords(noun="false positive rate", event="selected")})
    assert "Which decision is good for people was not given" in said(
        gaps(line("a", 0.1, 0.05, 0.2), words=plain)
    )


def test_other_questions_speak_where_no_gap_leads():
    bias = result("treatment_effects", [finding("g=1", 0.2, 0.1, 0.3, decision=FOUND)], details={})
    assert headline(bias) in said(bias)


def test_differences_lead_before_ratios():
    ratio = Estimand("fpr", "gap", scale="ratio", noun="false positive rate")
    times = gaps(line("a", 3.0, 2.0, 4.0, estimand=ratio), null_value=1.0)
    points = gaps(line("b", 0.1, 0.05, 0.2))
    assert "of race: b" in said(times, points)
    assert "3 times the rate" in said(times)


def test_a_bound_that_holds_together_with_the_others_leads_before_a_larger_one_that_does_not():
    alone = gaps(line("a", 0.3, 0.25, 0.35), audit="flag", alternative="greater", adjust="bh")
    together = gaps(line("b", 0.2, 0.15, 0.25), simultaneous=True)
    assert said(alone, together).index("race: b") < 120


def test_shares_of_people_lead_before_numbers_of_another_unit():
    score = Estimand("mean_score", "gap", scale="difference", noun="mean score")
    words = Words(favourable="not_selected", metrics={"mean_score": MetricWords(noun="mean score")})
    scores = gaps(line("a", 30.0, 20.0, 40.0, estimand=score), words=words)
    assert "of race: b" in said(scores, gaps(line("b", 0.2, 0.15, 0.25)))


def test_intersections_are_named_only_where_there_are_some():
    pair = GroupName([("race", "a"), ("sex", "f")])
    crossed = replace(line("a", 0.05, 0.04, 0.06), group=pair)
    assert "2 of 2 groups and intersections are shown" in said(
        gaps(crossed, line("b", 0.2, 0.1, 0.3))
    )
    assert "1 of 1 group is shown" in said(gaps(crossed))


def test_a_page_on_which_nothing_could_be_tested_says_so_first():
    few = finding("g=1", None, None, None, decision=Decision.NOT_TESTED)
    assert said(gaps(few, words=WORDS)).startswith("Nothing could be tested: ")
    assert "Nothing could be tested" not in said(gaps(line("a", 0.1, 0.05, 0.2)))
