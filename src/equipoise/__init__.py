"""Fairness audits with statistical guarantees."""

import importlib
from typing import TYPE_CHECKING, Any

from equipoise._version import __version__

if TYPE_CHECKING:
    from equipoise import datasets
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

_HOME = {
    "Audit": "audits.audit",
    "AuditResult": "audits.result",
    "ConfidenceInterval": "audits.finding",
    "Decision": "audits.finding",
    "External": "audits.reference",
    "Finding": "audits.finding",
    "JointTest": "audits.finding",
    "Metric": "data.metrics",
    "Note": "audits.finding",
}
_ON_DEMAND = ("datasets", "design", "mitigation", "search", "stats", "testing")


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is first used: ``equipoise --help`` needs no arrays."""
    if name in _HOME:
        return getattr(importlib.import_module(f"equipoise.{_HOME[name]}"), name)
    if name in _ON_DEMAND:
        return importlib.import_module(f"equipoise.{name}")
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names and subpackages, those not yet imported too."""
    return sorted({*globals(), *__all__, *_ON_DEMAND})
