"""The parts of a gap: raw, among people alike, and what goes with each factor."""

from typing import TYPE_CHECKING

from equipoise.plot.intervals import (
    DECISION_STYLE,
    beside_line,
    lines_height,
    name_lines,
    new_axes,
    null_line,
)
from equipoise.results.finding import Finding
from equipoise.results.formats import interval, number, short_points, shortened
from equipoise.results.sentences import group_words, known_group_words

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
        Of `decompose`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Artists of finding k have the gid ``finding-k`` or ``finding-k-interval``.
    """
    raw = {split["group"]: abs(split["raw"]["value"]) for split in result.details["split"]}
    groups = sorted(raw, key=lambda name: -raw[name])[:MOST]
    shown = [
        (k, finding)
        for k, finding in enumerate(result.findings)
        if finding.group in groups and not _nothing(finding)
    ]
    unit = 100.0 if _rates(result) else 1.0
    rows: list[tuple[float, str]] = []
    place = 0.0
    axes = new_axes(8.5, lines_height(len(shown) + len(groups) // 2)) if ax is None else ax
    for k, finding in shown:
        first = finding.estimand.kind == "raw gap"
        place += 1.6 if first and rows else 1.0
        rows.append((place, _label(finding, result)))
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
        write = short_points if unit != 1.0 else number
        value = "" if finding.estimate is None else write(finding.estimate)
        beside_line(axes, place, f"{value} {interval(finding.ci, write)}")
    null_line(axes, 0.0, [y for y, _ in rows])
    name_lines(axes, [text for _, text in rows], places=[y for y, _ in rows])
    words = ", percentage points" if unit != 1.0 else ""
    axes.set_xlabel(f"gap in {result.findings[0].estimand.noun}{words}", parse_math=False)
    reference = known_group_words(result.details["reference"], result)
    left = "" if len(groups) == len(raw) else f"; the {len(groups)} largest of {len(raw)}"
    axes.set_title(f"Compared with {reference}{left}", fontsize="medium", parse_math=False)
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
        return f"{shortened(group_words(finding.group, result.words), 40)}: raw gap"
    if estimand.kind == "gap among alike":
        return "among people alike"
    return shortened(estimand.noun, 40)
