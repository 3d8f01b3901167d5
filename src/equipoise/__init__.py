"""Fairness audits with statistical guarantees."""

import importlib
from typing import Any

from equipoise import datasets
from equipoise._version import __version__
from equipoise.audits.audit import Audit
from equipoise.audits.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.audits.reference import External
from equipoise.audits.result import AuditResult
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

_ON_DEMAND = ("design", "mitigation", "search", "stats", "testing")


def __getattr__(name: str) -> Any:
    """Import a subpackage when it is first used: ``eq.mitigation`` loads scikit-learn."""
    if name in _ON_DEMAND:
        return importlib.import_module(f"equipoise.{name}")
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
