"""Groups by metrics: one picture of all gaps of an audit."""

from collections.abc import Sequence
from dataclasses import replace
from textwrap import fill, wrap
from typing import TYPE_CHECKING

from equipoise._names import GroupName
from equipoise.plot.intervals import DECISION_STYLE, NARROW, narrow
from equipoise.results.finding import Decision, Finding
from equipoise.results.formats import shortened
from equipoise.results.sentences import LEADING, group_words
from equipoise.results.wording import gap_metrics, reference_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from equipoise.results.result import AuditResult

__all__ = ["overview", "overview_groups", "overview_results"]

MOST_METRICS = 4
MOST_GROUPS = 16


def overview_results(results: Sequence["AuditResult"]) -> list["AuditResult"]:
    """Return one result for each metric that has gaps in shares of people, joint ones first."""
    chosen: dict[str, AuditResult] = {}
    results = [one for result in results for one in _by_metric(result)]
    for result in sorted(results, key=lambda result: not result.details.get("simultaneous")):
        estimand = result.findings[0].estimand if result.findings else None
        if estimand is None or estimand.kind != "gap" or estimand.scale == "ratio":
            continue
        told = result.words.metrics.get(estimand.metric)
        if result.details.values and told is not None and told.event is not None:
            chosen.setdefault(estimand.metric, result)
    return [result for result in results if any(result is kept for kept in chosen.values())][
        :MOST_METRICS
    ]


def overview(results: Sequence["AuditResult"]) -> "Figure":
    """Draw the value of every group and metric; filled where a difference is shown.

    Parameters
    ----------
    results : sequence of AuditResult
        From `overview_results`: a column each.

    Returns
    -------
    matplotlib.figure.Figure
        A row for each group of one column with at least `LEADING` rows, the largest first within
        its column; the bar is the interval of the gap, placed at the value of the reference.
    """
    from matplotlib.figure import Figure

    groups = overview_groups(results)
    high = 1.5 + 0.34 * len(groups)
    if narrow():
        size, shape = (NARROW, high * len(results)), (len(results), 1)
    else:
        # One panel is not drawn larger than two: the page stretches a picture to its width.
        size, shape = (max(2.4 + 2.3 * len(results), 7.0), high), (1, len(results))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(*shape, sharey=True, squeeze=False).ravel()
    for number, (panel, result) in enumerate(zip(panels, results, strict=True)):
        _panel(panel, result, groups, number)
    width = 22 if narrow() else 36
    names = [
        fill(shortened(group_words(group, results[0].words), 2 * width - 4), width)
        for group in groups
    ]
    letters = "small" if narrow() else "medium"
    for panel in panels:
        panel.set_yticks(range(len(groups)), names, parse_math=False, fontsize=letters)
    panels[0].set_ylim(len(groups) - 0.5, -0.5)
    return figure


def overview_groups(results: Sequence["AuditResult"]) -> list[str]:
    """Return the groups of a single column that are large enough to be named."""
    sizes: dict[str, int] = {}
    for result in results:
        for finding in result.findings:
            single = isinstance(finding.group, GroupName) and len(finding.group.parts) == 1
            if single and finding.n >= LEADING:
                sizes[finding.group] = max(sizes.get(finding.group, 0), finding.n)
    kept = sorted(sizes, key=lambda group: -sizes[group])[:MOST_GROUPS]
    columns: list[str] = []
    for group in sizes:
        column = _column(group)
        if column not in columns:
            columns.append(column)
    return sorted(kept, key=lambda group: (columns.index(_column(group)), -sizes[group]))


def _by_metric(result: "AuditResult") -> list["AuditResult"]:
    """Return the findings of each metric as a result."""
    metrics = gap_metrics(result)
    if len(metrics) < 2:
        return [result]
    return [
        replace(result, findings=tuple(f for f in result.findings if f.estimand.metric == metric))
        for metric in metrics
    ]


def _column(group: str) -> str:
    return group.parts[0][0] if isinstance(group, GroupName) else ""


def _panel(axes: "Axes", result: "AuditResult", groups: Sequence[str], number: int) -> None:
    from matplotlib.ticker import MaxNLocator

    findings = {finding.group: finding for finding in result.findings}
    for row, group in enumerate(groups):
        finding = findings.get(group)
        entry = None if finding is None else result.details.value_of(finding)
        if finding is None or entry is None or entry["group_value"] is None or finding.n < LEADING:
            few = finding is not None and finding.n < LEADING
            words = f"fewer than {LEADING} rows" if few else "not tested"
            if finding is not None and finding.withheld:
                words = "withheld"
            across = axes.get_yaxis_transform()
            axes.text(0.02, row, words, va="center", fontsize="x-small", transform=across)
            continue
        _cell(axes, row, finding, entry["group_value"], entry["target_value"], f"overview-{number}")
    axes.set_title(result.findings[0].estimand.noun, fontsize="medium", parse_math=False)
    axes.set_xlabel("\n".join(_axis_lines(result)), fontsize="small", parse_math=False)
    low, high = axes.get_xlim()
    marks = MaxNLocator(3).tick_values(low, high)
    axes.set_xticks([tick for tick in marks if max(low, 0.0) <= tick <= min(high, 100.0)])


def _axis_lines(result: "AuditResult") -> list[str]:
    """Say what the axis, the upright line and the bars are."""
    levels = {f.ci.confidence_level for f in result.findings if f.ci is not None}
    lines = wrap(f"per cent; line: {reference_words(result)}", 32)
    if levels:
        joint = ", joint" if result.details.get("simultaneous") else ""
        lines.append(f"{100 * max(levels):g}% intervals{joint}")
    return lines


def _cell(
    axes: "Axes", row: int, finding: Finding, value: float, target: float | None, name: str
) -> None:
    colour, marker = DECISION_STYLE[finding.decision]
    if finding.is_reference:
        marker = "|"
    gid = f"{name}-{row}"
    if target is not None:
        axes.plot([100 * target] * 2, [row - 0.42, row + 0.42], color="#444444", lw=0.8)
        if finding.ci is not None and None not in (finding.ci.low, finding.ci.high):
            both = (finding.ci.low, finding.ci.high)
            ends = [100 * min(max(target + end, 0.0), 1.0) for end in both if end is not None]
            axes.plot(ends, [row, row], color=colour, lw=1.8, gid=f"{gid}-interval")
    shown = finding.decision is Decision.DETECTED
    face = colour if shown else "#FFFFFF"
    axes.plot(100 * value, row, marker, color=colour, mfc=face, mec=colour, ms=6.0, gid=gid)
    axes.annotate(
        *(f"{100 * value:.1f}% \u00b7 n {finding.n:,}", (1.0, row)),
        xycoords=axes.get_yaxis_transform(),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize="x-small",
        gid=f"{gid}-value",
    )
