"""How scores of groups are distributed: a strip of bars for each group, one below the other."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise._typing import FloatArray
from equipoise.audits.scores.questions import Bars, Distribution, rows_told
from equipoise.plot.intervals import INK, narrow
from equipoise.results.formats import number, shortened
from equipoise.results.sentences import known_group_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

    from equipoise.results.result import AuditResult

__all__ = ["score_strips", "strips_height"]

STRIP, HIGHEST, NAME = 0.46, 0.55, 0.64
"""Height of a strip in inches, and the parts of it below the highest bar and below the name."""
SAMPLE = 0.05
"""Part of the width that the line before a name takes."""


def strips_height(strips: Sequence[Bars]) -> float:
    """Return the height in inches that strips take, with the words below."""
    return STRIP * len(strips) + (1.2 if narrow() else 0.8)


def score_strips(
    result: "AuditResult",
    scores: Distribution,
    strips: Sequence[Bars],
    axes: "Axes",
    *,
    looks: Mapping[str, tuple[str, str]],
    cut: float | None = None,
) -> None:
    """Draw the share of each group's rows by score.

    Parameters
    ----------
    result : AuditResult
        Whose words name the groups.
    scores : Distribution
        Where bins begin and end.
    strips : list of Bars
        What to draw, from `drawn_scores`.
    axes : matplotlib.axes.Axes
        Where to draw.
    looks : mapping of str to (str, str)
        Colour and line style of each group.
    cut : float, optional
        A score to be marked in every strip.
    """
    from matplotlib.patches import PathPatch

    left, width = _places(scores)
    rows = [np.array([row or 0 for row in one["rows"]], dtype=float) for one in strips]
    shares = [row / row.sum() for row in rows]
    highest = max((float(share.max()) for share in shares), default=1.0)
    across = axes.get_yaxis_transform()
    for k, (one, share) in enumerate(zip(strips, shares, strict=True)):
        base = float(len(strips) - 1 - k)
        colour, style = looks[one["group"]]
        path = _bars(left, width, base, HIGHEST * share / highest)
        axes.add_patch(PathPatch(path, fc=colour, ec="none", alpha=0.6, gid=f"scores-{k}"))
        axes.plot([0.0, 1.0], [base, base], color=INK, lw=0.6, transform=across)
        middle = base + 0.5 * (NAME + 1.0)
        axes.plot([0.0, SAMPLE], [middle] * 2, color=colour, ls=style, lw=1.6, transform=across)
        name = axes.text(
            *(1.3 * SAMPLE, middle, _words(one, result)),
            va="center",
            fontsize="small",
            transform=across,
            parse_math=False,
        )
        name.set_in_layout(False)
        if cut is not None:
            axes.plot([cut] * 2, [base, base + NAME], color=INK, lw=1.2, ls="--", gid=f"cut-{k}")
    axes.set_ylim(0.0, float(len(strips)))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(_axis_words(strips, cut))


def _places(scores: Distribution) -> tuple[FloatArray, float]:
    """Return where bars begin, and their width; those at the ends are drawn as wide as others."""
    low, high = np.array(scores["low"]), np.array(scores["high"])
    if low[-1] < high[-1]:
        width = high[1] - low[1]
        return np.concatenate([high[:1] - width, low[1:]]), width
    width = max(0.8 * np.diff(low).min(initial=np.inf), 0.01 * np.ptp(low))
    width = width if np.isfinite(width) else 1.0
    return low - 0.5 * width, width


def _bars(left: FloatArray, width: float, base: float, heights: FloatArray) -> "Path":
    """Return all bars as one path: a picture in a page has one element for them."""
    from matplotlib.path import Path

    bars = [
        [(x, base), (x, base + y), (x + width, base + y), (x + width, base), (x, base)]
        for x, y in zip(left.tolist(), heights.tolist(), strict=True)
        if y
    ]
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    return Path([corner for bar in bars for corner in bar], codes * len(bars))


def _words(strip: Bars, result: "AuditResult") -> str:
    name = shortened(known_group_words(strip["group"], result), 36 if narrow() else 60)
    return name if None in strip["rows"] else f"{name} \u00b7 n {rows_told(strip):,}"


def _axis_words(strips: Sequence[Bars], cut: float | None) -> str:
    parts = ["score; bars: share of the group's rows"]
    if cut is not None:
        parts.append(f"dashed: the cut-off {number(cut)}")
    if any(None in one["rows"] for one in strips):
        parts.append("small counts are withheld")
    return ("\n" if narrow() else "; ").join(parts)
