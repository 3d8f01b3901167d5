"""Gates as a fixture of pytest: ``equipoise.within_margin(audit.certify(...))``."""

import pytest

from equipoise._checks import check_option
from equipoise._typing import Inconclusive
from equipoise.results.result import AuditResult
from equipoise.testing import InconclusiveError, assert_not_detected, assert_within_margin

__all__ = ["Gate", "equipoise", "pytest_configure"]


class Gate:
    """What the fixture `equipoise` offers to a test.

    Parameters
    ----------
    inconclusive : {"skip", "fail"}
        What becomes of a test that the data do not settle.
    """

    def __init__(self, inconclusive: Inconclusive = "skip") -> None:
        check_option("inconclusive", inconclusive, Inconclusive)
        self.inconclusive = inconclusive

    def not_detected(self, result: AuditResult) -> None:
        """Fail if something is detected, with the headline and a line for each group."""
        __tracebackhide__ = True
        assert_not_detected(result)

    def within_margin(self, result: AuditResult) -> None:
        """Fail if a group is beyond the margin; skip, or fail, if the data do not settle it."""
        __tracebackhide__ = True
        try:
            assert_within_margin(result)
        except InconclusiveError as error:
            if self.inconclusive == "fail":
                raise
            pytest.skip(str(error).splitlines()[0])


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        'equipoise(inconclusive="skip"): a gate on groups; "fail" lets what is not settled fail',
    )


@pytest.fixture
def equipoise(request: pytest.FixtureRequest) -> Gate:
    """Return the gate of a test, set by its marker."""
    marker = request.node.get_closest_marker("equipoise")
    return Gate() if marker is None else Gate(*marker.args, **marker.kwargs)
