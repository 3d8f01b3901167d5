"""A finding cannot hold numbers that contradict each other or its decision."""

from functools import partial

import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note

NOTE = (Note(code="small", message="Too few rows."),)
found = partial(Finding, group="g=a", estimand="tpr", n=10, method="exact")
joint = partial(JointTest, null="All are equal.", method="score")
NOT_FINITE = (float("nan"), float("inf"))


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("name", ["estimate", "statistic", "p_value", "p_value_raw"])
def test_numbers_of_a_finding_are_finite(name, value):
    numbers = {"estimate": 0.1, "p_value": 0.2} | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}` of 'g=a' must be finite; got"):
        found(decision=Decision.NOT_DETECTED, **numbers)


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("name", ["low", "high"])
def test_bounds_are_finite_and_in_order(name, value):
    with pytest.raises(InvalidParameterError, match="must be finite or None"):
        ConfidenceInterval(**{"low": 0.0, "high": 1.0} | {name: value})
    with pytest.raises(InvalidParameterError, match="needs low <= high"):
        ConfidenceInterval(low=1.0, high=0.5)
    assert ConfidenceInterval(low=None, high=0.5).low is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"withheld": True, "estimate": 0.1}, "withheld but has numbers"),
        ({"withheld": True, "p_value": 0.1}, "withheld but has numbers"),
        ({"withheld": True, "ci": ConfidenceInterval(low=0.0, high=1.0)}, "withheld but has"),
        ({"decision": Decision.NOT_TESTED, "estimate": 0.1, "notes": NOTE}, "has an estimate"),
        ({"decision": Decision.NOT_TESTED}, "a note must say why"),
        ({"decision": Decision.DETECTED, "p_value": 0.01}, "tested but has no estimate"),
        ({"decision": Decision.ESTIMATED, "estimate": 0.1, "p_value": 0.5}, "has a p-value"),
    ],
)
def test_a_decision_goes_with_its_numbers(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        found(**{"decision": Decision.NOT_DETECTED} | options)


def test_a_joint_test_has_a_finite_p_value_or_a_reason():
    for name in ("statistic", "df", "p_value"):
        with pytest.raises(InvalidParameterError, match=f"`{name}` of the joint test"):
            joint(decision=Decision.NOT_DETECTED, **{"p_value": 0.5} | {name: float("nan")})
    for options in ({"notes": NOTE, "p_value": 0.5}, {}):
        with pytest.raises(InvalidParameterError, match="or a note that says why not"):
            joint(decision=Decision.NOT_TESTED, **options)
    with pytest.raises(InvalidParameterError, match="or a note that says why not"):
        joint(decision=Decision.DETECTED, statistic=3.0)
    assert joint(decision=Decision.NOT_TESTED, notes=NOTE).p_value is None
