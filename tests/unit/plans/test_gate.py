"""Gates act on decisions; what the data cannot settle is its own outcome."""

import xml.etree.ElementTree as ET

import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.plans.gate import Outcome, junit_xml, outcome, tripped
from equipoise.results.finding import Decision
from support.specimens import check, finding, joint, result

FOUND = finding("g=1", 0.3, 0.2, 0.4, decision=Decision.DETECTED)
OPEN = finding("g=2", 0.1, -0.1, 0.3)
WITHIN = finding("g=3", 0.0, -0.01, 0.01, decision=Decision.WITHIN_MARGIN)
UNTESTED = finding("g=4")


@pytest.mark.parametrize(
    ("audit", "expected"),
    [
        (result("flag", [FOUND, OPEN]), Outcome.DETECTED),
        (result("flag", [OPEN, UNTESTED]), Outcome.NOT_DETECTED),
        (result("flag", [UNTESTED]), Outcome.NOT_TESTED),
        (result("disparity", [OPEN], joint=joint()), Outcome.DETECTED),
        (result("certify", [WITHIN, WITHIN]), Outcome.WITHIN_MARGIN),
        (result("certify", [WITHIN, OPEN]), Outcome.INCONCLUSIVE),
        (result("certify", [OPEN]), Outcome.INCONCLUSIVE),
        (result("certify", [WITHIN, UNTESTED]), Outcome.INCONCLUSIVE),
        (result("certify", [WITHIN, FOUND]), Outcome.DETECTED),
    ],
)
def test_outcome(audit, expected):
    assert outcome(audit) is expected


def test_a_large_estimate_without_evidence_trips_nothing():
    wide = finding("g=1", 0.9, -0.5, 2.0)
    assert tripped([check("flag", result("flag", [wide]))], "detected") == ()


def test_not_within_margin_counts_the_inconclusive_and_only_checks_with_a_margin():
    unclear = check("certify", result("certify", [WITHIN, OPEN]))
    shown = check("certify", result("certify", [WITHIN]), name="shown")
    flagged = check("flag", result("flag", [FOUND]))
    assert tripped([unclear, shown, flagged], "not-within-margin") == (unclear,)
    assert tripped([unclear, shown, flagged], "detected") == (flagged,)
    assert tripped([unclear, shown, flagged], "never") == ()


def test_not_within_margin_needs_a_check_that_asks_for_it():
    with pytest.raises(InvalidParameterError, match='needs a check with question = "certify"'):
        tripped([check("flag", result("flag", [OPEN]))], "not-within-margin")


def test_an_unknown_gate_is_refused():
    with pytest.raises(InvalidParameterError, match="Did you mean 'detected'"):
        tripped([], "detekted")


def suites(checks, fail_on):
    return ET.fromstring(junit_xml(checks, fail_on).split("?>", 1)[1])


def test_junit_names_the_subgroup_that_failed():
    audit = result("flag", [FOUND, OPEN, UNTESTED], joint=joint(Decision.NOT_DETECTED, 0.2))
    root = suites([check("flag", audit)], "detected")
    suite = root[0]
    assert suite.attrib == {
        "name": "flag",
        "tests": "4",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    failed = [
        case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None
    ]
    assert failed == ["g=1"]
    message = suite.find("testcase/failure").get("message")
    assert message == "false positive rate difference 0.3 [0.2, 0.4], p 0.200, detected"


def test_junit_has_no_two_cases_of_one_name():
    pairs = [
        finding("g=1", 0.3, 0.2, 0.4, reference="g=2", decision=Decision.DETECTED),
        finding("g=1", 0.1, 0.0, 0.2, reference="g=3"),
    ]
    cases = suites([check("flag", result("flag", pairs))], "detected")[0].findall("testcase")
    assert [case.get("name") for case in cases] == [
        f"g=1 compared with g={other}, fpr difference" for other in (2, 3)
    ]


def test_junit_marks_inconclusive_as_skipped_unless_the_gate_counts_it():
    checks = [check("certify", result("certify", [WITHIN, OPEN]))]
    assert suites(checks, "detected")[0].get("skipped") == "1"
    strict = suites(checks, "not-within-margin")[0]
    assert strict.get("failures") == "1"
    assert strict.find("testcase/failure").get("type") == "not detected"


def test_junit_stays_well_formed_with_strange_names():
    names = ["<b>", "\x00\x07", "😀", '"quoted"', "\ud800"]
    audit = result("flag", [finding(name, 0.1, 0.0, 0.2) for name in names])
    cases = suites([check("flag", audit)], "detected")[0].findall("testcase")
    assert [case.get("name") for case in cases] == ["<b>", "��", "😀", '"quoted"', "�"]
