"""The two-line gate lists the subgroups, and keeps inconclusive apart from detected."""

import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.results.finding import Decision
from equipoise.testing import (
    DetectedError,
    InconclusiveError,
    assert_not_detected,
    assert_within_margin,
)
from support.specimens import finding, joint, result

FOUND = finding("g=1", 0.3, 0.2, 0.4, decision=Decision.DETECTED)
OPEN = finding("g=2", 0.9, -0.1, 2.3)
WITHIN = finding("g=3", 0.0, -0.01, 0.01, decision=Decision.WITHIN_MARGIN)
MARGIN = {"margin": 0.1, "bounds": [-0.1, 0.1]}


def test_a_detected_subgroup_is_listed_with_its_interval():
    with pytest.raises(
        DetectedError, match=r"g=1: false positive rate difference 0.3 \(95% interval"
    ):
        assert_not_detected(result("flag", [FOUND, OPEN]))


def test_only_what_is_detected_is_listed():
    with pytest.raises(DetectedError) as raised:
        assert_not_detected(result("flag", [FOUND, OPEN]))
    assert "g=2:" not in str(raised.value)


def test_a_joint_test_counts_too():
    with pytest.raises(AssertionError, match=r"joint test p <0\.001"):
        assert_not_detected(result("disparity", [OPEN], joint=joint()))


def test_a_large_estimate_with_a_wide_interval_does_not_raise():
    assert_not_detected(result("flag", [OPEN]))


def test_within_margin_needs_evidence_for_every_group():
    assert_within_margin(result("certify", [WITHIN], details=MARGIN))
    with pytest.raises(InconclusiveError, match=r"g=2: .*inconclusive"):
        assert_within_margin(result("certify", [WITHIN, OPEN], details=MARGIN))
    with pytest.raises(InconclusiveError, match="g=4: not tested"):
        assert_within_margin(result("certify", [WITHIN, finding("g=4")], details=MARGIN))
    with pytest.raises(DetectedError, match="g=1"):
        assert_within_margin(result("certify", [WITHIN, FOUND], details=MARGIN))


def test_within_margin_refuses_a_question_that_cannot_show_it():
    with pytest.raises(InvalidParameterError, match="needs the result of `certify`; got one of"):
        assert_within_margin(result("flag", [OPEN]))
