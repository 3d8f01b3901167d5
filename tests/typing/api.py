"""What a typed caller may rely on; mypy reads this file, nothing runs it."""

from typing import Any, assert_type

import equipoise as eq
from equipoise import design

audit = eq.Audit({"sex": ["F", "M"]}, group="sex", y_pred="approved", missing="drop")
result = audit.disparity("selection_rate", reference={"sex": "M"}, simultaneous=True)

assert_type(result, eq.AuditResult)
assert_type(result.findings, tuple[eq.Finding, ...])
assert_type(result.joint, eq.JointTest | None)
assert_type(result.findings[0].estimate, float | None)
assert_type(result.findings[0].ci, eq.ConfidenceInterval | None)
assert_type(result.findings[0].decision, eq.Decision)
assert_type(result.to_dict(), dict[str, Any])
assert_type(result.notes, tuple[eq.Note, ...])

assert_type(audit.flag("fpr", margin=0.05, alternative="outside", adjust="holm"), eq.AuditResult)
assert_type(audit.certify("fpr", margin=0.05, reference=eq.External(0.3, 0.01)), eq.AuditResult)
assert_type(audit.predictive_parity(unit="row"), eq.AuditResult)
assert_type(audit.inequality("speicher", order=2.0), eq.AuditResult)
assert_type(audit.treatment_effects(measure="difference"), eq.AuditResult)
assert_type(design.power("disparity", n=1000, share=0.2, disparity=0.05, rate=0.3), design.Power)

eq.testing.assert_not_detected("result")  # type: ignore[arg-type]
audit.flag("fpr", adjust="tukey")  # type: ignore[arg-type]
audit.disparity("fpr", alpha="5%")  # type: ignore[arg-type]
eq.Audit({}, missing="ignore")  # type: ignore[arg-type]
