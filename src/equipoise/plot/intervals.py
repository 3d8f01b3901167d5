"""Forest plot: one line for each group, with its interval."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from equipoise.results.finding import Decision, Finding
from equipoise.results.formats import interval, number, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = ["DECISION_STYLE", "MOST", "forest", "new_axes", "shown_findings"]

# Okabe-Ito colours; the marker repeats what the colour says.
DECISION_STYLE = {
    Decision.DETECTED: ("#D55E00", "D"),
    Decision.NOT_DETECTED: ("#0072B2", "o"),
    Decision.WITHIN_MARGIN: ("#009E73", "s"),
    Decision.NOT_TESTED: ("#767676", "x"),
    Decision.ESTIMATED: ("#555555", "_"),
}

MOST = 40
"""Lines of one picture; of more findings the ones furthest from the null value are drawn."""


def new_axes(width: float = 7.0, height: float = 4.0) -> "Axes":
    """Return axes on a figure of their own that no window manager holds on to."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def forest(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the estimate and interval of every finding, the first on top.

    Parameters
    ----------
    result : AuditResult
        Any result whose findings are groups. Of more than `MOST` the ones furthest from the null
        value are drawn, and the title says so.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Artists of finding k have the gid ``finding-k`` or ``finding-k-interval``.
    """
    null = result.details.null_value
    shown = shown_findings(result.findings, null)
    axes = new_axes(8.5, 1.3 + 0.27 * len(shown)) if ax is None else ax
    bounds = [
        b
        for k in shown
        if (ci := result.findings[k].ci) is not None
        for b in (ci.low, ci.high)
        if b is not None
    ]
    edge = (min(bounds, default=-1.0), max(bounds, default=1.0))
    for row, k in enumerate(shown):
        _line(axes, row, k, result.findings[k], edge)
    axes.axvline(null, color="#444444", lw=0.8, zorder=0)
    low, high = result.details.bounds or (null, null)
    if low < high:
        axes.axvspan(low, high, color="#009E73", alpha=0.12, lw=0)
    # Group names come from the data: a dollar sign in one is not mathematics.
    axes.set_yticks(
        range(len(shown)),
        [shortened(result.findings[k].group, 48) for k in shown],
        parse_math=False,
    )
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlabel(result.findings[0].estimand.words if shown else "", parse_math=False)
    if len(shown) < len(result.findings):
        axes.set_ylabel(f"the {len(shown)} furthest of {len(result.findings)}")
    _legend(axes, {result.findings[k].decision for k in shown})
    return axes


def shown_findings(findings: Sequence[Finding], null: float) -> list[int]:
    """Return the positions of the findings to draw, in their order."""

    def distance(k: int) -> float:
        estimate = findings[k].estimate
        return -1.0 if estimate is None else abs(estimate - null)

    return sorted(sorted(range(len(findings)), key=lambda k: -distance(k))[:MOST])


def _line(axes: "Axes", row: int, k: int, finding: Finding, edge: tuple[float, float]) -> None:
    colour, marker = DECISION_STYLE[finding.decision]
    across = axes.get_yaxis_transform()
    if finding.estimate is None:
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
        return
    if finding.ci is not None:
        low = edge[0] if finding.ci.low is None else finding.ci.low
        high = edge[1] if finding.ci.high is None else finding.ci.high
        axes.plot([low, high], [row, row], color=colour, lw=1.8, gid=f"finding-{k}-interval")
        # An arrow head says that the data give no bound on that side.
        for bound, end, head in ((finding.ci.low, low, "<"), (finding.ci.high, high, ">")):
            if bound is None:
                axes.plot(end, row, head, color=colour, ms=5, gid=f"finding-{k}-open{head}")
    axes.plot(finding.estimate, row, marker, color=colour, ms=5.5, gid=f"finding-{k}")
    value = f"{number(finding.estimate)} {interval(finding.ci)}"
    axes.text(1.01, row, value, va="center", fontsize="small", transform=across)


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
