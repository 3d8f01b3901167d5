"""Forest plot: one line for each group, with its interval."""

from typing import TYPE_CHECKING

from equipoise.audits.finding import Decision

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.audits.result import AuditResult

__all__ = ["DECISION_STYLE", "forest", "new_axes"]

# Okabe-Ito colours; the marker repeats what the colour says.
DECISION_STYLE = {
    Decision.DETECTED: ("#D55E00", "D"),
    Decision.NOT_DETECTED: ("#0072B2", "o"),
    Decision.WITHIN_MARGIN: ("#009E73", "s"),
    Decision.NOT_TESTED: ("#767676", "x"),
}


def new_axes(width: float = 7.0, height: float = 4.0) -> "Axes":
    """Return axes on a figure of their own that no window manager holds on to."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def forest(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the estimate and interval of every finding, the first on top.

    Parameters
    ----------
    result : AuditResult
        Any result whose findings are groups.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    findings = result.findings
    axes = new_axes(7.5, 1.4 + 0.3 * len(findings)) if ax is None else ax
    bounds = [
        b for f in findings if f.ci is not None for b in (f.ci.low, f.ci.high) if b is not None
    ]
    edge = [min(bounds, default=-1.0), max(bounds, default=1.0)]
    for row, finding in enumerate(findings):
        colour, marker = DECISION_STYLE[finding.decision]
        if finding.estimate is None:
            axes.text(
                0.5,
                row,
                "not tested",
                color=colour,
                ha="center",
                va="center",
                transform=axes.get_yaxis_transform(),
            )
            continue
        if finding.ci is not None:
            low = edge[0] if finding.ci.low is None else finding.ci.low
            high = edge[1] if finding.ci.high is None else finding.ci.high
            axes.plot([low, high], [row, row], color=colour, lw=1.6)
        axes.plot(finding.estimate, row, marker, color=colour, ms=5)
    null = result.details.get("null_value", 0.0)
    axes.axvline(null, color="#444444", lw=0.8)
    margin = result.details.get("margin")
    if margin:
        axes.axvspan(null - margin, null + margin, color="#009E73", alpha=0.12, lw=0)
    axes.set_yticks(range(len(findings)), [f.group for f in findings])
    axes.set_ylim(len(findings) - 0.5, -0.5)
    axes.set_xlabel(findings[0].estimand if findings else "")
    _legend(axes, {f.decision for f in findings})
    return axes


def _legend(axes: "Axes", decisions: set[Decision]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, label=decision.value)
        for decision, (colour, marker) in DECISION_STYLE.items()
        if decision in decisions
    ]
    axes.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False
    )
