"""Matplotlib pictures of results, one drawing function for each audit."""

from typing import TYPE_CHECKING

from equipoise.plot.intervals import title
from equipoise.results.question import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = ["draw"]


def draw(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw a result with the picture that belongs to its audit.

    Above stand the question, and what groups are compared with at which level: of a new figure as
    its title, else as that of the axes.
    """
    axes: Axes = load(result.question.drawing)(result, ax=ax)
    if ax is None:
        _entitle(axes, result)
    elif not axes.get_title(loc="left"):
        axes.set_title(title(result, wide=64), loc="left", fontsize="medium")
    _take_literally(axes)
    return axes


def _entitle(axes: "Axes", result: "AuditResult") -> None:
    figure = axes.get_figure(root=True)
    if figure is not None:
        # On a phone letters are as large and lines shorter.
        figure.suptitle(title(result), x=0.01, ha="left", fontsize="medium", linespacing=1.3)


def _take_literally(axes: "Axes") -> None:
    """Keep a dollar sign in a group's name from being read as mathematics."""
    from matplotlib.text import Text

    figure = axes.get_figure(root=True)
    for text in [] if figure is None else figure.findobj(Text):
        if isinstance(text, Text) and "$" in text.get_text() and "\\math" not in text.get_text():
            text.set_parse_math(False)
