"""Fairness audits with statistical guarantees."""

import importlib
from typing import TYPE_CHECKING, Any

from equipoise._version import __version__

if TYPE_CHECKING:
    from equipoise import datasets
    from equipoise import design as design
    from equipoise import integrations as integrations
    from equipoise import mitigation as mitigation
    from equipoise import search as search
    from equipoise import stats as stats
    from equipoise import testing as testing
    from equipoise.audits.audit import Audit
    from equipoise.audits.cells import merge
    from equipoise.audits.disparity.sides import External
    from equipoise.data.cells import Cells
    from equipoise.data.metrics import Metric
    from equipoise.plans.dossier import load
    from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
    from equipoise.results.result import AuditResult

__all__ = [
    "Audit",
    "AuditResult",
    "Cells",
    "ConfidenceInterval",
    "Decision",
    "External",
    "Finding",
    "JointTest",
    "Metric",
    "Note",
    "__version__",
    "datasets",
    "load",
    "merge",
]

_HOME = {
    "Audit": "audits.audit",
    "AuditResult": "results.result",
    "Cells": "data.cells",
    "ConfidenceInterval": "results.finding",
    "Decision": "results.finding",
    "External": "audits.disparity.sides",
    "Finding": "results.finding",
    "JointTest": "results.finding",
    "Metric": "data.metrics",
    "Note": "results.finding",
    "load": "plans.dossier",
    "merge": "audits.cells",
}
_ON_DEMAND = ("datasets", "design", "integrations", "mitigation", "search", "stats", "testing")


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
