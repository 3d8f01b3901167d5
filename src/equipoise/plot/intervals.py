"""Forest plot: a line for each group, what is shown first."""

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from equipoise._names import GroupName
from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision, Finding
from equipoise.results.formats import decision_word, estimate_words, shortened
from equipoise.results.sentences import LEADING, group_writer, known_group_words, least
from equipoise.results.wording import gap_metrics, in_points, question_words, reference_words
from equipoise.results.words import MetricWords

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = [
    "DECISION_STYLE",
    "MOST",
    "NARROW",
    "WIDE",
    "axis_words",
    "beside_line",
    "decision_legend",
    "folded_words",
    "forest",
    "in_lines",
    "legend_below",
    "line_names",
    "lines_height",
    "name_lines",
    "narrow",
    "new_axes",
    "new_panels",
    "null_line",
    "numbers_beside",
    "shown_findings",
    "title",
    "without_number",
]

# Okabe-Ito colours; the marker repeats what the colour says.
DECISION_STYLE = {
    Decision.DETECTED: ("#D55E00", "D"),
    Decision.NOT_DETECTED: ("#0072B2", "o"),
    Decision.WITHIN_MARGIN: ("#009E73", "s"),
    Decision.NOT_TESTED: ("#767676", "x"),
    Decision.ESTIMATED: ("#555555", "|"),
}

MOST = 40
"""Lines of one picture, unless more groups are large."""

TOLERATED, INK = "#009E73", "#444444"

LARGE = 0.05
"""Share of the rows from which a group is drawn whatever its gap."""


WIDE, NARROW = 8.5, 3.9
"""Widths in inches of a picture on a page and on a phone; text has the same size on both."""

LONGEST = 46
"""Letters of a name on one line; longer ones take two."""


def narrow() -> bool:
    """Return whether matplotlib is set to figures too narrow for names beside them."""
    from matplotlib import rcParams

    return bool(rcParams["figure.figsize"][0] <= 1.2 * NARROW)


def new_axes(width: float = WIDE, height: float = 4.0) -> "Axes":
    """Return axes on a figure of their own that no window manager holds on to."""
    from matplotlib.figure import Figure

    size = (min(width, NARROW) if narrow() else width, height)
    return Figure(figsize=size, layout="constrained").add_subplot()


def new_panels(*heights: float) -> "list[Axes]":
    """Return axes below each other on a figure of their own, each with margins of its own."""
    from matplotlib.figure import Figure

    size = (NARROW if narrow() else WIDE, sum(heights) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    # A grid within the grid: long names of one panel take no room of the others.
    return [figure.add_subplot(grid[k, 0].subgridspec(1, 1)[0, 0]) for k in range(len(heights))]


def forest(
    result: "AuditResult", *, ax: "Axes | None" = None, beneath: bool = False, legend: bool = True
) -> "Axes":
    """Draw estimates and intervals: what is detected first, by what is shown, then by size.

    Parameters
    ----------
    result : AuditResult
        Any result whose findings are groups. Groups of fewer than `LEADING` rows, those that could
        not be tested, and all beyond `MOST`, unless they are large, are counted in the last line.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    beneath : bool
        Leave room below every line for another one.
    legend : bool
        Say what the colours and shapes mean.

    Returns
    -------
    matplotlib.axes.Axes
        Artists of finding k have the gid ``finding-k`` or ``finding-k-interval``.
    """
    null = result.details.null_value
    shown = shown_findings(result.findings, null)
    found = [result.findings[k] for k in shown]
    folded = [f for k, f in enumerate(result.findings) if k not in set(shown)]
    names = line_names(result, found) + ([folded_words(folded)] if folded else [])
    axes = new_axes(WIDE, lines_height(names, beneath=beneath)) if ax is None else ax
    estimand = result.findings[0].estimand if result.findings else Estimand("")
    ratio = estimand.scale == "ratio" and null == 1.0
    shares = in_points(result)
    unit = 100.0 if shares else 1.0
    edge = _edges(found, null, ratio=ratio)
    for row, k in enumerate(shown):
        _line(axes, row, k, result.findings[k], edge, shares=shares, beneath=beneath)
    null_line(axes, null * unit, range(len(shown)))
    low, high = _tested_side(result, null)
    if low < high:
        axes.axvspan(low * unit, high * unit, color=TOLERATED, alpha=0.12, lw=0, gid="margin")
    name_lines(axes, names, beneath=beneath)
    if ratio:
        _log_axis(axes, edge)
    axes.set_xlabel(_axis_words(result, unit), parse_math=False)
    if narrow():
        axes.xaxis.label.set_fontsize("small")
    if legend:
        decision_legend(axes, result, found, tolerated=low < high)
    return axes


def line_names(result: "AuditResult", findings: Sequence[Finding]) -> list[str]:
    """Name the lines: the groups, and what is compared where that is not always the same."""
    written = group_writer(result)
    names = [shortened(written(finding.group)) for finding in findings]
    if len({f.reference for f in findings if isinstance(f.reference, GroupName)}) > 1:
        others = [known_group_words(finding.reference, result) for finding in findings]
        names = [f"{name}\nagainst {other}" for name, other in zip(names, others, strict=True)]
    if not _several(result):
        return names
    return [f"{name}, {f.estimand.noun}" for name, f in zip(names, findings, strict=True)]


def _several(result: "AuditResult") -> bool:
    """Whether lines are of several quantities, such as gaps in two metrics, or gap and accuracy."""
    return len(gap_metrics(result)) > 1 or len({f.estimand.noun for f in result.findings}) > 1


def null_line(axes: "Axes", place: float, rows: Sequence[float]) -> None:
    """Draw where there is no difference: beside every line, and through no name on a phone."""
    if not narrow():
        axes.axvline(place, color=INK, lw=0.8, zorder=0)
        return
    # As high as a letter, however far lines are apart: numbers stand below.
    axes.plot([place] * len(rows), rows, "|", color=INK, ms=10.0, mew=0.8, zorder=0)


def lines_height(names: Sequence[str], *, beneath: bool = False) -> float:
    """Return the height of a picture of lines, with a title above and a legend below."""
    longest = max((len(_in_two(name).splitlines()) for name in names), default=1)
    if narrow():
        return 2.2 + len(names) * (0.5 + 0.16 * longest + 0.1 * beneath)
    return 2.0 + len(names) * max(0.11 + 0.16 * longest, 0.4 * beneath)


def _in_two(name: str) -> str:
    """Break a long name in two, or each of its lines; what is longer still loses its middle."""
    if "\n" in name:
        return "\n".join(map(_in_two, name.splitlines()))
    if len(name) <= LONGEST:
        return name
    lines = wrap(name, LONGEST)
    if len(lines) > 2 or max(map(len, lines)) > LONGEST:
        lines = wrap(shortened(name, 2 * LONGEST - 12), LONGEST)
    return "\n".join(lines[:2])


def name_lines(
    axes: "Axes",
    names: Sequence[str],
    *,
    places: Sequence[float] | None = None,
    above: float = 7.0,
    beneath: bool = False,
) -> None:
    """Write the name of each line: beside it, or above it where the picture is narrow.

    `above` is how far above, in points of print.
    """
    rows = list(range(len(names)) if places is None else places)
    first, last = min(rows, default=0), max(rows, default=0)
    # Group names come from the data: a dollar sign in one is not mathematics.
    if narrow():
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        for row, name in zip(rows, names, strict=True):
            axes.annotate(
                *(_in_two(name), (0.0, row)),
                xycoords=axes.get_yaxis_transform(),
                xytext=(0.0, above),
                textcoords="offset points",
                va="bottom",
                fontsize="small",
                linespacing=1.1,
                parse_math=False,
                label="name",
            )
        axes.set_ylim(last + 0.45 + 0.1 * beneath, first - 0.7)
        return
    axes.set_yticks(rows, [_in_two(name) for name in names], parse_math=False)
    for label in axes.get_yticklabels():
        label.set_linespacing(1.0)
    axes.set_ylim(last + 0.5 + 0.2 * beneath, first - 0.5)


def beside_line(axes: "Axes", row: float, words: str, *, beneath: bool = False) -> None:
    """Write the numbers of a line: at the right, or below it where the picture is narrow."""
    across = axes.get_yaxis_transform()
    place, at, size = ((0.0, row), (0.0, -13.0 if beneath else -6.0), "x-small")
    if not narrow():
        place, at, size = (1.0, row), (8.0, 0.0), "small"
    axes.annotate(
        *(words, place),
        xycoords=across,
        xytext=at,
        textcoords="offset points",
        va="top" if narrow() else "center",
        fontsize=size,
        parse_math=False,
    )


def shown_findings(findings: Sequence[Finding], null: float) -> list[int]:
    """Return the positions of the findings to draw, in the order of drawing.

    Detected ones come first, by the end of the interval nearest to the null value; then the others
    by their distance from it; then those without a number. Groups of fewer than `LEADING` rows, and
    smaller ones that could not be tested, are left to the table, unless there are no others.
    """
    positions = range(len(findings))
    whole = _rows(findings)
    named = [k for k in positions if findings[k].n >= LEADING] or list(positions)
    large = [
        k
        for k in named
        if findings[k].estimate is not None
        or findings[k].is_reference
        or findings[k].n >= LARGE * whole
    ] or named

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
    return "\n".join(part for line in lines for part in wrap(line, 44 if narrow() else 100))


def title(result: "AuditResult", *, wide: int | None = None) -> str:
    """Write what stands above a picture: the question, what groups are compared with, the level.

    `wide` is the number of letters of a line, by default those of the picture.
    """
    lines = [question_words(result)]
    parts = []
    compared = reference_words(result)
    values = any(finding.estimand.kind == "value" for finding in result.lines)
    if compared != "the reference" and not values:
        parts.append(f"compared with {compared}")
    levels = {f.ci.confidence_level for f in result.lines if f.ci is not None}
    if levels:
        parts.append(f"{100 * max(levels):g}% intervals")
        together = result.details.get("simultaneous", "not said")
        if together != "not said":
            parts.append("joint" if together else "each on its own")
    lines.append(", ".join(parts))
    if wide is None:
        return in_lines(*lines)
    return "\n".join(part for line in lines for part in wrap(line, wide))


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
    several = _several(result)
    words = (estimand.scale or "change") if several else estimand.words
    words += ", percentage points" if unit != 1.0 else ""
    told = None if several else result.words.metrics.get(estimand.metric)
    return axis_words(words, told if estimand.kind == "gap" else None)


def axis_words(words: str, told: MetricWords | None) -> str:
    """Name on which side of no difference a group is worse off, where that is known."""
    if told is None or told.better is None:
        return words
    worse, better = "worse off \u2192", "\u2190 better off"
    if told.better == "higher":
        worse, better = "better off \u2192", "\u2190 worse off"
    if narrow():
        return f"{words}\n{better}  |  {worse}"
    return f"{better}  |  {words}  |  {worse}"


def folded_words(findings: Sequence[Finding]) -> str:
    """Count the groups that are left to the table, and say why they are if that is one reason."""
    reasons = {_reason(finding) for finding in findings}
    why = reasons.pop() if len(reasons) == 1 else "more"
    groups = "group" if len(findings) == 1 else "groups"
    words = f"more {groups}" if why == "more" else f"{groups} {why}"
    return f"{len(findings)} {words}: see the table"


def _reason(finding: Finding) -> str:
    if finding.withheld:
        return "withheld"
    if finding.n < LEADING:
        return f"of fewer than {LEADING} rows"
    return "not tested" if finding.estimate is None else "more"


def _line(
    axes: "Axes",
    row: int,
    k: int,
    finding: Finding,
    edge: tuple[float, float],
    *,
    shares: bool,
    beneath: bool,
) -> None:
    colour, marker = DECISION_STYLE[finding.decision]
    unit = 100.0 if shares else 1.0
    if finding.estimate is None:
        without_number(axes, row, k, finding)
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
    numbers_beside(axes, row, finding, shares=shares, beneath=beneath)


def without_number(axes: "Axes", row: float, k: int, finding: Finding) -> None:
    """Say in the place of an estimate why there is none."""
    words = "what the others are compared with" if finding.is_reference else "not tested"
    axes.text(
        *(0.5, row, "withheld" if finding.withheld else words),
        color=DECISION_STYLE[finding.decision][0],
        ha="center",
        va="center",
        fontsize="small",
        transform=axes.get_yaxis_transform(),
        gid=f"finding-{k}",
        # The line of no difference runs behind the words, not through them.
        bbox={"facecolor": "#FFFFFF", "edgecolor": "none", "pad": 1.0},
    )


def numbers_beside(
    axes: "Axes",
    row: float,
    finding: Finding,
    *,
    shares: bool,
    start: str = "",
    beneath: bool = False,
) -> None:
    """Write estimate, interval and number of rows of a line."""
    words = start + estimate_words(finding.estimate, shares=shares)
    if finding.ci is not None:
        ends = [
            "none" if end is None else estimate_words(end, shares=shares)
            for end in (finding.ci.low, finding.ci.high)
        ]
        words += f" [{', '.join(ends)}]"
    # Browsers draw two blanks as one: a mark keeps the numbers apart.
    beside_line(axes, row, f"{words} \u00b7 n {finding.n:,}", beneath=beneath)


def decision_legend(
    axes: "Axes",
    result: "AuditResult",
    findings: Sequence[Finding],
    *,
    tolerated: bool = False,
    more: Sequence["Artist"] = (),
) -> None:
    """Say below the picture what the colours and shapes of decisions mean."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    decisions = {finding.decision for finding in findings if finding.estimate is not None}
    handles: list[Artist] = [
        Line2D([], [], color=colour, marker=marker, label=decision_word(one, result.question.words))
        for one, (colour, marker) in DECISION_STYLE.items()
        if one in decisions
    ]
    if tolerated:
        handles.append(Patch(color=TOLERATED, alpha=0.25, lw=0, label="tolerated"))
    legend_below(axes, [*handles, *more])


def legend_below(axes: "Axes", handles: Sequence["Artist"]) -> None:
    """Put a legend below the axes and their label, as wide as the picture allows."""
    from matplotlib.transforms import ScaledTranslation

    if not handles:
        return
    place = axes.get_subplotspec()
    beside = 1 if place is None else place.get_gridspec().ncols
    line = 36 if narrow() else 90
    longest = min(max(len(str(handle.get_label())) for handle in handles), line) + 6
    columns = min(len(handles), 4, max(1, (48 if narrow() else 100 // beside) // longest))
    label = axes.get_xlabel()
    lines = 2.2 + label.count("\n") + bool(label)
    figure = axes.get_figure(root=True)
    down = ScaledTranslation(0.0, -lines / 6.0, figure.dpi_scale_trans)  # type: ignore[union-attr]
    legend = axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=axes.transAxes + down,
        frameon=False,
        ncols=columns,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
        text.set_text("\n".join(wrap(text.get_text(), line)))
