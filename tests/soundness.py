"""What must hold of every result, whatever the data."""

import json
import re

from equipoise import AuditResult, Decision

FORBIDDEN = re.compile(r"\b(fair|unbiased|passed|certified)\b", re.IGNORECASE)
"""Words that would sell a failure to reject as a verdict."""


def assert_sound(result):
    """Assert the invariants of a result and of every way to read it."""
    record = result.to_dict()
    text = json.dumps(record, allow_nan=False)
    assert AuditResult.from_dict(json.loads(text)) == result
    assert not FORBIDDEN.search(text)
    assert not FORBIDDEN.search(str(result))
    for finding in result.findings:
        assert finding.n >= 0
        if finding.decision is Decision.NOT_TESTED:
            assert finding.p_value is None
            assert finding.notes
        for p in (finding.p_value, finding.p_value_raw):
            assert p is None or 0.0 <= p <= 1.0
    assert "<b>" not in result._repr_html_()
    assert result.to_frame("pyarrow").num_rows == len(result.findings)


def numbers(result):
    """Return the findings as tuples, for comparison of two results."""
    return {
        finding.group: (
            finding.estimate,
            *((None, None) if finding.ci is None else (finding.ci.low, finding.ci.high)),
            finding.p_value,
            finding.n,
            str(finding.decision),
        )
        for finding in result.findings
    }


def assert_same(first, second, *, tolerance=1e-7, rename=lambda group: group):
    """Assert that two results have the same findings, group by group."""
    one = {rename(group): values for group, values in numbers(first).items()}
    two = numbers(second)
    assert one.keys() == two.keys()
    for group, values in one.items():
        for a, b in zip(values, two[group], strict=True):
            if isinstance(a, float) and isinstance(b, float):
                assert abs(a - b) <= tolerance * max(1.0, abs(a)), (group, values, two[group])
            else:
                assert a == b, (group, values, two[group])
