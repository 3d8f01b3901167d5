"""Matplotlib pictures of results, one drawing function for each audit."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from equipoise.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.audits.result import AuditResult

__all__ = ["draw"]


def draw(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw a result with the picture that belongs to its audit."""
    from equipoise.plot.curves import score_curves
    from equipoise.plot.decomposition import decomposition
    from equipoise.plot.effects import effects
    from equipoise.plot.improvement import improvement
    from equipoise.plot.intervals import forest

    drawings: dict[str, Callable[..., Axes]] = {
        "disparity": forest,
        "flag": forest,
        "certify": forest,
        "inequality": decomposition,
        "marginal_outcome": forest,
        "predictive_parity": score_curves,
        "improvability": improvement,
        "treatment_effects": effects,
    }
    if result.audit not in drawings:
        raise InvalidParameterError(f"there is no picture for the audit {result.audit!r}.")
    return drawings[result.audit](result, ax=ax)
