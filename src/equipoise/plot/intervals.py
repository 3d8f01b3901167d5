"""Forest plot: a line for each group, what is shown first."""

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from equipoise._names import GroupName
from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision, Finding
from equipoise.results.formats import interval, number, shortened
from equipoise.results.sentences import LEADING, group_words, least
from equipoise.results.wording import gap_metrics, in_points, question_words, reference_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = [
    "DECISION_STYLE",
    "MOST",
    "NARROW",
    "beside_line",
    "decision_legend",
    "forest",
    "in_lines",
    "lines_height",
    "name_lines",
    "narrow",
    "new_axes",
    "null_line",
    "shown_findings",
]

# Okabe-Ito colours; the marker repeats what the colour says.
DECISION_STYLE = {
    Decision.DETECTED: ("#D55E00", "D"),
    Decision.NOT_DETECTED: ("#0072B2", "o"),
    Decision.WITHIN_MARGIN: ("#009E73", "s"),
    Decision.NOT_TESTED: ("#767676", "x"),
    Decision.ESTIMATED: ("#555555", "_"),
}

MOST = 40
"""Lines of one picture, unless more groups are large."""

LARGE = 0.05
"""Share of the rows from which a group is drawn whatever its gap."""


NARROW = 3.9
"""Width in inches of a picture on a phone, at which text has its usual size."""


def narrow() -> bool:
    """Return whether matplotlib is set to figures too narrow for names beside them."""
    from matplotlib import rcParams

    return bool(rcParams["figure.figsize"][0] <= 1.2 * NARROW)


def new_axes(width: float = 7.0, height: float = 4.0) -> "Axes":
    """Return axes on a figure of their own that no window manager holds on to."""
    from matplotlib.figure import Figure

    size = (min(width, NARROW) if narrow() else width, height)
    return Figure(figsize=size, layout="constrained").add_subplot()


def forest(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw estimates and intervals: what is detected first, by what is shown, then by size.

    Parameters
    ----------
    result : AuditResult
        Any result whose findings are groups. Groups of fewer than `LEADING` rows, and all beyond
        `MOST` that are not large, are counted in the last line.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Artists of finding k have the gid ``finding-k`` or ``finding-k-interval``.
    """
    null = result.details.null_value
    shown = shown_findings(result.findings, null)
    folded = [f for k, f in enumerate(result.findings) if k not in set(shown)]
    lines = len(shown) + bool(folded)
    axes = new_axes(8.5, lines_height(lines)) if ax is None else ax
    estimand = result.findings[0].estimand if result.findings else Estimand("")
    ratio = estimand.scale == "ratio" and null == 1.0
    metrics = gap_metrics(result) or {estimand.metric: estimand.noun}
    unit = 100.0 if in_points(result) else 1.0
    edge = _edges([result.findings[k] for k in shown], null, ratio=ratio)
    for row, k in enumerate(shown):
        _line(axes, row, k, result.findings[k], edge, unit)
    null_line(axes, null * unit, range(lines))
    low, high = _tested_side(result, null)
    if low < high:
        axes.axvspan(low * unit, high * unit, color="#009E73", alpha=0.12, lw=0, gid="margin")
    names = [shortened(group_words(result.findings[k].group, result.words), 48) for k in shown]
    if len(metrics) > 1:
        nouns = [result.findings[k].estimand.noun for k in shown]
        names = [f"{name}, {noun}" for name, noun in zip(names, nouns, strict=True)]
    if folded:
        names.append(_folded_words(folded))
    name_lines(axes, names)
    if ratio:
        _log_axis(axes, edge)
    axes.set_xlabel(_axis_words(result, unit), parse_math=False)
    if narrow():
        axes.xaxis.label.set_fontsize("small")
    title = in_lines(question_words(result), _comparison_words(result))
    axes.set_title(title, loc="left", fontsize="medium", parse_math=False)
    decision_legend(axes, {result.findings[k].decision for k in shown})
    return axes


def null_line(axes: "Axes", place: float, rows: Sequence[float]) -> None:
    """Draw where there is no difference: beside every line, and through no name on a phone."""
    if not narrow():
        axes.axvline(place, color="#444444", lw=0.8, zorder=0)
        return
    for row in rows:
        axes.plot([place, place], [row - 0.14, row + 0.14], color="#444444", lw=0.8, zorder=0)


def lines_height(lines: int) -> float:
    """Return the height of a picture of lines, with a title above and a legend below."""
    return max(2.2 + 0.66 * lines, 4.0) if narrow() else max(1.9 + 0.27 * lines, 2.8)


def name_lines(
    axes: "Axes",
    names: Sequence[str],
    *,
    places: Sequence[float] | None = None,
    above: float = 0.2,
) -> None:
    """Write the name of each line: beside it, or above it where the picture is narrow."""
    rows = range(len(names)) if places is None else places
    last = max(rows, default=0)
    # Group names come from the data: a dollar sign in one is not mathematics.
    if narrow():
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        across = axes.get_yaxis_transform()
        for row, name in zip(rows, names, strict=True):
            axes.text(0.0, row - above, name, transform=across, va="bottom", parse_math=False)
        axes.set_ylim(last + 0.6, min(rows, default=0) - 0.6 - above)
        return
    axes.set_yticks(list(rows), names, parse_math=False)
    axes.set_ylim(last + 0.5, min(rows, default=0) - 0.5)


def beside_line(axes: "Axes", row: float, words: str) -> None:
    """Write the numbers of a line: at the right, or below it where the picture is narrow."""
    across = axes.get_yaxis_transform()
    if narrow():
        axes.text(0.0, row + 0.16, words, va="top", fontsize="x-small", transform=across)
    else:
        axes.text(1.01, row, words, va="center", fontsize="small", transform=across)


def shown_findings(findings: Sequence[Finding], null: float) -> list[int]:
    """Return the positions of the findings to draw, in the order of drawing.

    Detected ones come first, by the end of the interval nearest to the null value; then the others
    by their distance from it; then those without a number. Groups of fewer than `LEADING` rows are
    left to the table, unless there are no others.
    """
    positions = range(len(findings))
    large = [k for k in positions if findings[k].n >= LEADING] or list(positions)
    whole = _rows(findings)

    def order(k: int) -> tuple[bool, float, float]:
        finding = findings[k]
        away = -1.0 if finding.estimate is None else abs(finding.estimate - null)
        detected = finding.decision is Decision.DETECTED and finding.estimate is not None
        return not detected, -least(finding, null) if detected else 0.0, -away

    ordered = sorted(large, key=order)
    return [
        k for place, k in enumerate(ordered) if place < MOST or findings[k].n >= LARGE * whole > 0
    ]


def _rows(findings: Sequence[Finding]) -> int:
    """Return how many rows the findings are about: the groups of one set of columns share none."""
    totals: dict[tuple[str, ...], int] = {}
    for finding in findings:
        parts = finding.group.parts if isinstance(finding.group, GroupName) else ()
        columns = tuple(column for column, _ in parts)
        totals[columns] = totals.get(columns, 0) + finding.n
    return max(totals.values(), default=0)


def in_lines(*lines: str) -> str:
    """Return lines of text broken where the picture ends."""
    return "\n".join(part for line in lines for part in wrap(line, 40 if narrow() else 64))


def _comparison_words(result: "AuditResult") -> str:
    """Write what groups are compared with, the level, and whether it is joint."""
    levels = {f.ci.confidence_level for f in result.findings if f.ci is not None}
    parts = []
    if any(finding.reference for finding in result.findings):
        parts.append(f"compared with {reference_words(result.findings, result.words)}")
    if levels:
        parts.append(f"{100 * levels.pop():g}% intervals")
        joint = result.details.get("simultaneous")
        parts.append("joint" if joint else "each on its own")
    return ", ".join(parts)


def _edges(findings: Sequence[Finding], null: float, *, ratio: bool) -> tuple[float, float]:
    """Return where the axis ends, for sides without a bound."""
    values = [null] + [
        value
        for finding in findings
        for value in (
            finding.estimate,
            None if finding.ci is None else finding.ci.low,
            None if finding.ci is None else finding.ci.high,
        )
        if value is not None
    ]
    if not ratio:
        return min(values), max(values)
    away = max((abs(math.log(value)) for value in values if value > 0.0), default=0.0)
    reach = math.exp(max(away, 0.1) * 1.05)
    return 1.0 / reach, reach


def _log_axis(axes: "Axes", edge: tuple[float, float]) -> None:
    """Make an axis of ratios symmetric about 1."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    axes.set_xscale("log")
    axes.set_xlim(*edge)
    ticks = (1.0, 0.5, 2.0, 0.8, 1.25, 0.1, 10.0, 0.2, 5.0, 0.67, 1.5, 0.05, 20.0, 0.9, 1.1)
    apart = 0.12 * math.log(edge[1] / edge[0])
    inside: list[float] = []
    for tick in ticks:
        if edge[0] <= tick <= edge[1] and all(abs(math.log(tick / t)) >= apart for t in inside):
            inside.append(tick)
    if len(inside) > 2:
        axes.set_xticks(sorted(inside))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _tested_side(result: "AuditResult", null: float) -> tuple[float, float]:
    """Return the tolerated values, on the side that is tested."""
    low, high = result.details.bounds or (null, null)
    side = result.details.get("alternative")
    if side == "greater":
        return null, high
    if side == "less":
        return low, null
    return low, high


def _axis_words(result: "AuditResult", unit: float) -> str:
    """Name the quantity, its unit and, where known, the side on which a group is worse off."""
    if not result.findings:
        return ""
    estimand = result.findings[0].estimand
    several = len(gap_metrics(result)) > 1
    words = str(estimand.scale) if several else estimand.words
    words += ", percentage points" if unit != 1.0 else ""
    told = None if several else result.words.metrics.get(estimand.metric)
    if estimand.kind != "gap" or told is None or told.better is None:
        return words
    worse, better = "worse off \u2192", "\u2190 better off"
    if told.better == "higher":
        worse, better = "better off \u2192", "\u2190 worse off"
    if narrow():
        return f"{words}\n{better}  |  {worse}"
    return f"{better}  |  {words}  |  {worse}"


def _folded_words(findings: Sequence[Finding]) -> str:
    small = [finding for finding in findings if finding.n < LEADING]
    groups = "group" if len(findings) == 1 else "groups"
    if len(small) < len(findings):
        return f"{len(findings)} more {groups}: see the table"
    return f"{len(findings)} {groups} of fewer than {LEADING} rows: see the table"


def _line(
    axes: "Axes", row: int, k: int, finding: Finding, edge: tuple[float, float], unit: float
) -> None:
    colour, marker = DECISION_STYLE[finding.decision]
    across = axes.get_yaxis_transform()
    if finding.estimate is None:
        axes.text(
            0.5,
            row,
            _without_number(finding),
            color=colour,
            ha="center",
            va="center",
            transform=across,
            gid=f"finding-{k}",
            # The line of no difference runs behind the words, not through them.
            bbox={"facecolor": "#FFFFFF", "edgecolor": "none", "pad": 1.0},
        )
        return
    if finding.ci is not None:
        ends = (finding.ci.low, finding.ci.high)
        # On an axis of ratios zero is as far away as no bound at all.
        open_ends = [end is None or end <= min(edge[0], 0.0) < edge[0] for end in ends]
        low, high = (
            edge[k] if is_open or end is None else max(end, edge[0])
            for k, (end, is_open) in enumerate(zip(ends, open_ends, strict=True))
        )
        bar = [low * unit, high * unit]
        axes.plot(bar, [row, row], color=colour, lw=1.8, gid=f"finding-{k}-interval")
        # An arrow head says that the data give no bound on that side.
        for is_open, end, head in zip(open_ends, bar, "<>", strict=True):
            if is_open:
                axes.plot(end, row, head, color=colour, ms=5, gid=f"finding-{k}-open{head}")
    place = max(finding.estimate, edge[0]) * unit
    axes.plot(place, row, marker, color=colour, ms=5.5, gid=f"finding-{k}")
    beside_line(axes, row, f"{_written(finding, unit)}  n {finding.n:,}")


def _without_number(finding: Finding) -> str:
    if finding.withheld:
        return "withheld"
    return "what the others are compared with" if finding.is_reference else "not tested"


def _written(finding: Finding, unit: float) -> str:
    """Write estimate and interval in the unit of the axis."""
    if unit == 1.0 or finding.ci is None:
        return f"{number(finding.estimate)} {interval(finding.ci)}"
    low, high = (None if end is None else end for end in (finding.ci.low, finding.ci.high))
    ends = ["none" if end is None else f"{unit * end:+.1f}" for end in (low, high)]
    return f"{unit * (finding.estimate or 0.0):+.1f} [{', '.join(ends)}]"


def decision_legend(axes: "Axes", decisions: set[Decision]) -> None:
    """Say above the axes what the colours and shapes of decisions mean."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, label=decision.value)
        for decision, (colour, marker) in DECISION_STYLE.items()
        if decision in decisions
    ]
    figure = axes.get_figure(root=True)
    high = figure.get_size_inches()[1] - 1.2  # type: ignore[union-attr]
    if len(figure.axes) > 1:  # type: ignore[union-attr]
        high = axes.get_position().height * (high + 1.2)
    below = (-0.75 if narrow() else -0.55) / max(high, 0.5)
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, below),
        frameon=False,
        ncols=2 if narrow() else 4,
    )
