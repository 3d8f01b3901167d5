"""The parts of a gap: raw, among people alike, and what goes with each factor."""

from typing import TYPE_CHECKING

from equipoise.plot.intervals import (
    DECISION_STYLE,
    WIDE,
    folded_words,
    lines_height,
    name_lines,
    new_axes,
    null_line,
    numbers_beside,
)
from equipoise.results.finding import Finding
from equipoise.results.sentences import LEADING, group_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = ["split_plot"]

MOST = 6
"""Groups of one picture; of more those with the largest raw gaps are drawn."""


def split_plot(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the raw gap of every group, and under it the parts that add up to it.

    Parameters
    ----------
    result : AuditResult
        Of `decompose`. Groups of fewer than `LEADING` rows are counted in the last line.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Artists of finding k have the gid ``finding-k`` or ``finding-k-interval``.
    """
    raw = [f for f in result.findings if f.estimand.kind == "raw gap" and f.estimate is not None]
    large = [f for f in raw if f.n >= LEADING] or raw
    large = sorted(large, key=lambda finding: -abs(finding.estimate or 0.0))[:MOST]
    groups = {finding.group: place for place, finding in enumerate(large)}
    shown = [
        (k, finding)
        for k, finding in enumerate(result.findings)
        if finding.group in groups and not _nothing(finding)
    ]
    shown.sort(key=lambda pair: groups[pair[1].group])
    folded = [finding for finding in raw if finding.group not in groups]
    shares = _rates(result)
    unit = 100.0 if shares else 1.0
    names = [_label(finding, result) for _, finding in shown]
    axes = new_axes(WIDE, lines_height([*names, *groups])) if ax is None else ax
    places: list[float] = []
    for k, finding in shown:
        first = finding.estimand.kind == "raw gap"
        place = places[-1] + (1.4 if first else 1.0) if places else 0.0
        places.append(place)
        colour, marker = DECISION_STYLE[finding.decision]
        ends = (
            []
            if finding.ci is None
            else [end for end in (finding.ci.low, finding.ci.high) if end is not None]
        )
        axes.plot(
            [unit * end for end in ends],
            [place] * len(ends),
            color=colour,
            lw=2.6 if first else 1.6,
            gid=f"finding-{k}-interval",
        )
        axes.plot(
            unit * (finding.estimate or 0.0),
            place,
            "s" if first else marker if marker != "_" else "o",
            color=colour,
            ms=7.0 if first else 5.0,
            gid=f"finding-{k}",
        )
        numbers_beside(axes, place, finding, shares=shares)
    null_line(axes, 0.0, places)
    if folded:
        places.append(places[-1] + 1.4)
        names.append(folded_words(folded))
    name_lines(axes, names, places=places)
    words = ", percentage points" if shares else ""
    axes.set_xlabel(f"gap in {result.findings[0].estimand.noun}{words}", parse_math=False)
    return axes


def _nothing(finding: Finding) -> bool:
    """Whether a part is nothing at all: nobody is without somebody alike."""
    return (
        finding.estimand.kind != "raw gap"
        and finding.estimate == 0.0
        and (finding.ci is None or (finding.ci.low, finding.ci.high) == (0.0, 0.0))
    )


def _rates(result: "AuditResult") -> bool:
    told = result.words.metrics.get(result.findings[0].estimand.metric)
    return told is not None and told.event is not None


def _label(finding: Finding, result: "AuditResult") -> str:
    """Name a row: the group on its first, parts indented under it."""
    estimand = finding.estimand
    if estimand.kind == "raw gap":
        return f"{group_words(finding.group, result.words)}: raw gap"
    if estimand.kind == "gap among alike":
        return "among people alike"
    return estimand.noun
