"""Gaps before and after, batch by batch, and of subgroups that nobody named."""

from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.audits.disparity.questions import CompareDetails, MonitorDetails
from equipoise.plot.intervals import (
    DECISION_STYLE,
    NARROW,
    beside_line,
    decision_legend,
    in_lines,
    lines_height,
    name_lines,
    narrow,
    new_axes,
    null_line,
    shown_findings,
)
from equipoise.results.details import details_of
from equipoise.results.finding import Decision
from equipoise.results.formats import interval, number, short_points, shortened
from equipoise.results.sentences import group_words, known_group_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = ["changes", "sequence"]

PANELS = 6
"""Findings of one monitor that are drawn: alarms first, then the most evidence."""

MOST_TICKS = 12


def changes(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the gap of every group before and after, joined by a line.

    Parameters
    ----------
    result : AuditResult
        Of a comparison.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Artists of finding k, a change of a gap, have the gid ``finding-k``.
    """
    details = details_of(result.details, CompareDetails)
    moved = [k for k, f in enumerate(result.findings) if f.estimand.kind == "gap change"]
    shown = [moved[k] for k in shown_findings([result.findings[k] for k in moved], 0.0)]
    before = {row["group"]: (row["gap_old"], row["gap_new"]) for row in details.changes}
    axes = new_axes(8.5, lines_height(len(shown))) if ax is None else ax
    across = axes.get_yaxis_transform()
    told = result.words.metrics.get(details.metric)
    rate = told is not None and told.event is not None
    unit, write = (100.0, short_points) if rate else (1.0, number)
    for row, k in enumerate(shown):
        finding = result.findings[k]
        colour, marker = DECISION_STYLE[finding.decision]
        old, new = before.get(finding.group, (None, None))
        if finding.estimate is None or old is None or new is None:
            axes.text(
                0.5,
                row,
                "not tested",
                color=colour,
                ha="center",
                va="center",
                transform=across,
                gid=f"finding-{k}",
            )
            continue
        old, new = unit * old, unit * new
        axes.plot([old, new], [row, row], color=colour, lw=1.8, gid=f"finding-{k}-interval")
        axes.plot(old, row, "o", mfc="#FFFFFF", mec=colour, ms=5.5, gid=f"finding-{k}-before")
        axes.plot(new, row, marker, color=colour, ms=5.5, gid=f"finding-{k}")
        words = f"{write(finding.estimate)} {interval(finding.ci, write)}"
        beside_line(axes, row, words)
    null_line(axes, 0.0, range(len(shown)))
    names = [group_words(result.findings[k].group, result.words) for k in shown]
    name_lines(axes, [shortened(name, 48) for name in names])
    reference = known_group_words(details.reference, result)
    noun = details.metric if told is None else told.noun
    words = f"{noun} gap to {reference}{', percentage points' if rate else ''}, before and after"
    lines = [words]
    if len(shown) < len(moved):
        lines.append(f"{len(shown)} of {len(moved)} groups; the others are in the table")
    axes.set_xlabel(in_lines(*lines), parse_math=False)
    decision_legend(axes, {result.findings[k].decision for k in shown})
    return axes


def sequence(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the gap of every watched group by batch, with the band that holds at all looks.

    Parameters
    ----------
    result : AuditResult
        Of a monitor; of more than `PANELS` findings those with alarms and most evidence are drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw the first of them; by default a new figure with a panel for each.

    Returns
    -------
    matplotlib.axes.Axes
        The first panel; the average gap of finding k has the gid ``finding-k``.
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
    drawn = sorted(compared[: 1 if ax is not None else PANELS])
    panels = [ax] if ax is not None else _panels(len(drawn))
    for k, axes in zip(drawn, panels, strict=True):
        _panel(axes, k, result, details)
    last = panels[-1]
    step = max(1, -(-len(details.batches) // MOST_TICKS))
    ticks = list(range(0, len(details.batches), step))
    last.set_xticks(ticks, [shortened(details.batches[t], 12) for t in ticks], rotation=30)
    last.set_xlabel("batch")
    if len(drawn) < len(compared) and ax is None:
        panels[0].set_title(
            f"{len(drawn)} of {len(compared)}: alarms and most evidence", fontsize="small"
        )
    return panels[0]


def _panels(count: int) -> "list[Axes]":
    from matplotlib.figure import Figure

    size = max(count, 1)
    figure = Figure(
        figsize=(NARROW if narrow() else 8.5, 0.9 + max(1.55 * size, 2.3)), layout="constrained"
    )
    return list(figure.subplots(size, 1, sharex=True, squeeze=False)[:, 0])


def _panel(axes: "Axes", k: int, result: "AuditResult", details: MonitorDetails) -> None:
    finding = result.findings[k]
    path = details.path(finding)
    colour, _ = DECISION_STYLE[finding.decision]
    at = range(len(details.batches))
    name = shortened(group_words(finding.group, result.words), 24)
    axes.set_ylabel(f"{name}\n{finding.estimand.words}", fontsize="small", parse_math=False)
    axes.axhline(0.0, color="#444444", lw=0.8, zorder=0)
    if details.margin:
        axes.axhspan(-details.margin, details.margin, color="#009E73", alpha=0.12, lw=0)
    if finding.estimate is None or path is None:
        axes.text(
            0.5,
            0.5,
            "not tested",
            color=colour,
            ha="center",
            va="center",
            transform=axes.transAxes,
            gid=f"finding-{k}",
        )
        return
    gap, low, high, single = (_numbers(path[name]) for name in ("gap", "low", "high", "batch_gap"))
    axes.plot(at, single, ".", color="#999999", ms=3, zorder=1)
    # Looks that must not be told leave no hole.
    told = [t for t in at if not isnan(gap[t])]
    band = [t for t in at if not isnan(low[t])]
    axes.fill_between(
        band, [low[t] for t in band], [high[t] for t in band], color=colour, alpha=0.18, lw=0
    )
    axes.plot(told, [gap[t] for t in told], color=colour, lw=1.8, gid=f"finding-{k}")
    if path["alarm_at"] is not None:
        alarm = details.batches.index(path["alarm_at"])
        axes.axvline(alarm, color="#D55E00", ls="--", lw=1.2, gid=f"finding-{k}-alarm")
        first, last = (details.batches.index(path["since"][end]) for end in ("low", "high"))
        axes.axvspan(first - 0.5, last + 0.5, color="#E69F00", alpha=0.2, lw=0)
    # The band of the first looks is wide enough to flatten all others.
    late = len(gap) // 6
    shown = [value for value in (*low[late:], *high[late:], *gap) if not isnan(value)]
    if shown:
        span = max(abs(min(shown)), abs(max(shown)), 1e-12)
        axes.set_ylim(-1.3 * span, 1.3 * span)


def _numbers(values: list[Any]) -> list[float]:
    return [float("nan") if value is None else float(value) for value in values]
