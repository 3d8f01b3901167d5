"""Fairness audits with statistical guarantees."""

from equipoise import datasets
from equipoise._version import __version__
from equipoise.audits.audit import Audit
from equipoise.audits.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.audits.result import AuditResult
from equipoise.audits.subgroup_comparison import External
from equipoise.data.metrics import Metric

__all__ = [
    "Audit",
    "AuditResult",
    "ConfidenceInterval",
    "Decision",
    "External",
    "Finding",
    "JointTest",
    "Metric",
    "Note",
    "__version__",
    "datasets",
]
