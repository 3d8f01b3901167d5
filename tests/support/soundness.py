"""What must hold of every result, whatever the data."""

import json
import math
import re

from equipoise import AuditResult, Decision

FORBIDDEN = re.compile(r"\b(fair|unbiased|passed|certified)\b", re.IGNORECASE)
"""Words that would sell a failure to reject as a verdict."""


def assert_sound(result, *, printed=True):
    """Assert the invariants of a result and of every way to read it, as text if `printed`."""
    record = result.to_dict()
    text = json.dumps(record, allow_nan=False)
    assert AuditResult.from_dict(json.loads(text)) == result
    assert not FORBIDDEN.search(text)
    assert not (printed and FORBIDDEN.search(str(result)))
    for finding in result.findings:
        assert finding.n >= 0
        if finding.decision is Decision.NOT_TESTED:
            assert finding.p_value is None
            assert finding.notes
        for p in (finding.p_value, finding.p_value_raw):
            assert p is None or 0.0 <= p <= 1.0
        assert_consistent(finding, result)
    if result.joint is not None and result.joint.p_value is not None:
        shown = result.joint.decision in (Decision.DETECTED, Decision.WITHIN_MARGIN)
        assert shown == (result.joint.p_value <= result.alpha), result.joint
    assert "<b>" not in result._repr_html_()
    assert result.to_frame("pyarrow").num_rows == len(result.findings)


def assert_consistent(finding, result):
    """Assert that p-values, decision, estimate and interval of a finding tell one story."""
    p, raw, decision = finding.p_value, finding.p_value_raw, finding.decision
    if p is not None and raw is not None:
        assert p >= raw - 1e-12, finding
    if p is not None and result.audit == "certify":
        # Its p-value is that of "within"; beyond the margin is a test of its own.
        assert (decision is Decision.WITHIN_MARGIN) == (p <= result.alpha), finding
    elif p is not None and decision is not Decision.WITHIN_MARGIN:
        assert (decision is Decision.DETECTED) == (p <= result.alpha), finding
    if finding.ci is not None:
        slack = 1e-9 * max(1.0, abs(finding.estimate))
        low, high = finding.ci.low, finding.ci.high
        assert low is None or low <= finding.estimate + slack, finding
        assert high is None or high >= finding.estimate - slack, finding


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


def differences(ours, theirs, where="result", *, tolerance=1e-9):
    """Return where two results differ: numbers by more than the tolerance, the rest at all."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if ours.keys() != theirs.keys():
            return [f"{where}: keys {sorted(ours)} and {sorted(theirs)}"]
        pairs = [(ours[key], theirs[key], f"{where}.{key}") for key in ours]
    elif isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        if len(ours) != len(theirs):
            return [f"{where}: {len(ours)} and {len(theirs)} items"]
        pairs = [(a, b, f"{where}[{k}]") for k, (a, b) in enumerate(zip(ours, theirs, strict=True))]
    elif isinstance(ours, float) and isinstance(theirs, (int, float)):
        same = math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
        return [] if same else [f"{where}: {ours!r} and {theirs!r}"]
    else:
        return [] if ours == theirs else [f"{where}: {ours!r} and {theirs!r}"]
    return [
        found for a, b, place in pairs for found in differences(a, b, place, tolerance=tolerance)
    ]
