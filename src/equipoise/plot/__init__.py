"""Matplotlib pictures of results, one drawing function for each audit."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from equipoise.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

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
    axes = drawings[result.audit](result, ax=ax)
    _take_literally(axes)
    return axes


def _take_literally(axes: "Axes") -> None:
    """Keep a dollar sign in a group's name from being read as mathematics."""
    from matplotlib.text import Text

    figure = axes.get_figure(root=True)
    for text in [] if figure is None else figure.findobj(Text):
        if isinstance(text, Text) and "$" in text.get_text() and "\\math" not in text.get_text():
            text.set_parse_math(False)
