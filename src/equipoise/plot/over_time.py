"""Gaps before and after, and batch by batch."""

from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.audits.disparity.questions import CompareDetails, MonitorDetails
from equipoise.plot.curves import COLOURS, STYLES
from equipoise.plot.intervals import (
    DECISION_STYLE,
    INK,
    TOLERATED,
    WIDE,
    axis_words,
    decision_legend,
    folded_words,
    in_lines,
    legend_below,
    lines_height,
    name_lines,
    narrow,
    new_axes,
    new_panels,
    null_line,
    numbers_beside,
    shown_findings,
    without_number,
)
from equipoise.results.details import details_of
from equipoise.results.finding import Decision
from equipoise.results.formats import shortened
from equipoise.results.sentences import LEADING, group_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = ["changes", "sequence"]

PANELS = 6
"""Findings of one monitor that are drawn: alarms first, then the most evidence."""


def changes(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the gap of every group before and after, joined by a line.

    Parameters
    ----------
    result : AuditResult
        Of a comparison. Groups that a forest would leave out are counted in the last line.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Artists of finding k, a change of a gap, have the gid ``finding-k``.
    """
    from matplotlib.lines import Line2D

    details = details_of(result.details, CompareDetails)
    moved = [k for k, f in enumerate(result.findings) if f.estimand.kind == "gap change"]
    shown = [moved[k] for k in shown_findings([result.findings[k] for k in moved], 0.0)]
    found = [result.findings[k] for k in shown]
    folded = [result.findings[k] for k in moved if k not in set(shown)]
    names = [group_words(finding.group, result.words) for finding in found]
    names += [folded_words(folded)] if folded else []
    before = {row["group"]: (row["gap_old"], row["gap_new"]) for row in details.changes}
    axes = new_axes(WIDE, lines_height(names)) if ax is None else ax
    told = result.words.metrics.get(details.metric)
    shares = told is not None and told.event is not None
    unit = 100.0 if shares else 1.0
    for row, (k, finding) in enumerate(zip(shown, found, strict=True)):
        colour, marker = DECISION_STYLE[finding.decision]
        old, new = before.get(finding.group, (None, None))
        if finding.estimate is None or old is None or new is None:
            without_number(axes, row, k, finding)
            continue
        old, new = unit * old, unit * new
        axes.plot([old, new], [row, row], color=colour, lw=1.8, gid=f"finding-{k}-interval")
        axes.plot(old, row, "o", mfc="#FFFFFF", mec=colour, ms=5.5, gid=f"finding-{k}-before")
        axes.plot(new, row, marker, color=colour, ms=5.5, gid=f"finding-{k}")
        numbers_beside(axes, row, finding, shares=shares, start="change ")
    null_line(axes, 0.0, range(len(shown)))
    name_lines(axes, names)
    noun = details.metric if told is None else told.noun
    words = f"gap in {noun}{', percentage points' if shares else ''}"
    axes.set_xlabel(axis_words(words, told), parse_math=False)
    first = Line2D(
        *([], []),
        color=INK,
        marker="o",
        mfc="#FFFFFF",
        lw=0,
        label=in_lines(f"before: {shortened(details.baseline, 30)}"),
    )
    last = Line2D([], [], color=INK, marker="o", lw=0, label="after, filled")
    decision_legend(axes, result, found, more=(first, last))
    return axes


def sequence(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the gap of every watched group by batch, with the band that holds at all looks.

    Parameters
    ----------
    result : AuditResult
        Of a monitor; of more than `PANELS` findings those with alarms and most evidence are drawn,
        and groups of fewer than `LEADING` rows only if there are no others.
    ax : matplotlib.axes.Axes, optional
        Where to draw the first of them; by default a new figure with a panel for each, and one for
        the evidence against no gap, with the line at which an alarm is raised.

    Returns
    -------
    matplotlib.axes.Axes
        The first panel; the average gap of finding k has the gid ``finding-k``, its evidence
        ``evidence-k``.
    """
    details = details_of(result.details, MonitorDetails)
    order = sorted(
        range(len(result.findings)),
        key=lambda k: (
            result.findings[k].estimate is None,
            result.findings[k].decision is not Decision.DETECTED,
            -(result.findings[k].statistic or 0.0),
            k,
        ),
    )
    compared = [k for k in order if not result.findings[k].is_reference] or order
    large = [k for k in compared if result.findings[k].n >= LEADING] or compared
    drawn = large[: 1 if ax is not None else PANELS]
    heights = [1.7] * len(drawn) + [3.6 if narrow() else 2.6]
    panels = [ax] if ax is not None else new_panels(*heights)
    for k, axes in zip(drawn, panels, strict=False):
        _panel(axes, k, result, details)
        _batches(axes, details)
    if ax is None:
        left = [result.findings[k] for k in compared if k not in drawn]
        words = f"batch; {folded_words(left)}" if left else "batch"
        panels[-1].set_xlabel(in_lines(words), parse_math=False)
        _batches(panels[-1], details)
        _evidence(panels[-1], drawn, result, details)
    return panels[0]


def _batches(axes: "Axes", details: MonitorDetails) -> None:
    step = -(-len(details.batches) // (4 if narrow() else 8))
    ticks = list(range(0, len(details.batches), max(step, 1)))
    axes.set_xticks(ticks, [shortened(details.batches[t], 10) for t in ticks], parse_math=False)
    axes.set_xlim(-0.5, len(details.batches) - 0.5)


def _panel(axes: "Axes", k: int, result: "AuditResult", details: MonitorDetails) -> None:
    finding = result.findings[k]
    path = details.path(finding)
    told = result.words.metrics.get(finding.estimand.metric)
    shares = told is not None and told.event is not None
    unit = 100.0 if shares else 1.0
    colour, _ = DECISION_STYLE[finding.decision]
    at = range(len(details.batches))
    name = shortened(group_words(finding.group, result.words), 44 if narrow() else 70)
    alarm = "" if path is None or path["alarm_at"] is None else f", alarm {path['alarm_at']}"
    axes.set_title(f"{name}{alarm}", loc="left", fontsize="small", parse_math=False)
    words = "gap, points" if shares else "gap"
    axes.set_ylabel(words, fontsize="small")
    axes.axhline(0.0, color=INK, lw=0.8, zorder=0)
    if details.margin:
        least = 0.0 if details.alternative == "greater" else -details.margin
        most = 0.0 if details.alternative == "less" else details.margin
        axes.axhspan(unit * least, unit * most, color=TOLERATED, alpha=0.12, lw=0, gid="margin")
    if finding.estimate is None or path is None:
        axes.text(
            *(0.5, 0.5, "not tested"),
            color=colour,
            ha="center",
            va="center",
            transform=axes.transAxes,
            gid=f"finding-{k}",
        )
        return
    gap, low, high, single = (
        _numbers(path[name], unit) for name in ("gap", "low", "high", "batch_gap")
    )
    axes.plot(at, single, ".", color="#999999", ms=3, zorder=1)
    # Looks that must not be told leave no hole.
    told_at = [t for t in at if not isnan(gap[t])]
    band = [t for t in at if not isnan(low[t])]
    axes.fill_between(
        band, [low[t] for t in band], [high[t] for t in band], color=colour, alpha=0.18, lw=0
    )
    axes.plot(told_at, [gap[t] for t in told_at], color=colour, lw=1.8, gid=f"finding-{k}")
    if path["alarm_at"] is not None:
        raised = details.batches.index(path["alarm_at"])
        axes.axvline(raised, color="#D55E00", ls="--", lw=1.2, gid=f"finding-{k}-alarm")
        first, last = (details.batches.index(path["since"][end]) for end in ("low", "high"))
        axes.axvspan(first - 0.5, last + 0.5, color="#E69F00", alpha=0.2, lw=0)
    # The band of the first looks is wide enough to flatten all others.
    late = len(gap) // 6
    shown = [value for value in (*low[late:], *high[late:], *gap) if not isnan(value)]
    if shown:
        span = max(abs(min(shown)), abs(max(shown)), 1e-12)
        axes.set_ylim(-1.3 * span, 1.3 * span)


def _evidence(
    axes: "Axes", drawn: list[int], result: "AuditResult", details: MonitorDetails
) -> None:
    """Draw how strong the evidence against no gap is, and where an alarm is raised."""
    lines = []
    for place, k in enumerate(drawn):
        finding = result.findings[k]
        path = details.path(finding)
        if path is None:
            continue
        e = _numbers(path["e_adjusted"])
        at = [t for t in range(len(details.batches)) if not isnan(e[t])]
        (line,) = axes.plot(
            at,
            [max(e[t], 1e-3) for t in at],
            color=COLOURS[place % len(COLOURS)],
            ls=STYLES[place % len(STYLES)],
            lw=1.4,
            label=shortened(group_words(finding.group, result.words), 40),
            gid=f"evidence-{k}",
        )
        lines.append(line)
    raised = details.run_length if details.run_length is not None else 1.0 / result.alpha
    alarm = axes.axhline(raised, color=INK, lw=1.0, ls="--", label=f"alarm at {raised:.3g}")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    # Far beyond the alarm more is not more.
    axes.set_ylim(min(low, 0.5), min(max(high, 2.0 * raised), 1e4 * raised))
    axes.set_ylabel("e-value", fontsize="small")
    axes.set_title(
        in_lines("Evidence against no gap, all watched together"),
        loc="left",
        fontsize="small",
    )
    legend_below(axes, [*lines, alarm])


def _numbers(values: list[Any], unit: float = 1.0) -> list[float]:
    return [float("nan") if value is None else unit * float(value) for value in values]
