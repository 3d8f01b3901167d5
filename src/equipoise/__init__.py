"""Fairness audits with statistical guarantees."""

from equipoise.audits.audit import Audit
from equipoise.audits.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.audits.result import AuditResult
from equipoise.data.metrics import Metric

__all__ = [
    "Audit",
    "AuditResult",
    "ConfidenceInterval",
    "Decision",
    "Finding",
    "JointTest",
    "Metric",
    "Note",
]
