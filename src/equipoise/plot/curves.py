"""Mean outcome by score: one curve with its simultaneous band for each group."""

from typing import TYPE_CHECKING

from equipoise.audits.scores.questions import Curve, ParityDetails
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.intervals import lines_height, name_lines, new_axes
from equipoise.results.details import details_of
from equipoise.results.formats import shortened
from equipoise.results.sentences import known_group_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = ["before_after", "quality_intervals", "score_curves"]

# Okabe-Ito colours; line styles repeat what the colour says.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")
MOST_CURVES = len(COLOURS)


def score_curves(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the curves of a predictive parity audit; marks on the axis show differences.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.predictive_parity`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    axes = new_axes(6.5, 5.0) if ax is None else ax
    details = details_of(result.details, ParityDetails)
    curves = [curve for curve in details.curves if curve["grid"]]
    # A picture of many groups is a tangle; the first ones of the table are drawn.
    for k, curve in enumerate(curves[:MOST_CURVES]):
        colour, style = COLOURS[k], STYLES[k % len(STYLES)]
        axes.fill_between(
            curve["grid"], curve["low"], curve["high"], color=colour, alpha=0.15, lw=0
        )
        axes.plot(
            curve["grid"],
            curve["estimate"],
            color=colour,
            ls=style,
            marker="o",
            ms=3,
            lw=1.6,
            label=shortened(known_group_words(curve["group"], result), 40),
        )
    _diagonal(axes, curves)
    _marks(axes, details)
    if not curves:
        axes.text(0.5, 0.5, "not tested", ha="center", va="center", transform=axes.transAxes)
    axes.set_xlabel("score")
    axes.set_ylabel(f"mean outcome, with simultaneous {100 * details.confidence_level:g}% band")
    if len(curves) > MOST_CURVES:
        axes.set_title(f"{MOST_CURVES} of {len(curves)} groups", fontsize="medium")
    if curves:
        axes.legend(frameon=False, loc="best")
    return axes


def before_after(before: "AuditResult", after: "AuditResult") -> "tuple[Axes, Axes]":
    """Draw two predictive parity audits side by side, for instance before and after calibration.

    Parameters
    ----------
    before, after : AuditResult
        Of `Audit.predictive_parity`, of the old and the new score.

    Returns
    -------
    tuple of two matplotlib.axes.Axes
    """
    from matplotlib.figure import Figure

    for result in (before, after):
        if result.audit != "predictive_parity":
            raise InvalidParameterError(
                f"curves belong to predictive parity audits; got {result.audit!r}."
            )
    left, right = Figure(figsize=(11.0, 5.0), layout="constrained").subplots(1, 2, sharey=True)
    for axes, result, name in ((left, before, "before"), (right, after, "after")):
        score_curves(result, ax=axes)
        axes.set_title(name)
    return left, right


def quality_intervals(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw what was estimated in each group with its interval, a block for each metric.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.score_quality` or `Audit.policy`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    records = result.details["groups"]
    axes = new_axes(6.5, lines_height(len(records))) if ax is None else ax
    if not records:
        axes.text(0.5, 0.5, "not tested", ha="center", va="center", transform=axes.transAxes)
        return axes
    metrics = list(dict.fromkeys(record["metric"] for record in records))
    for k, record in enumerate(records):
        colour = COLOURS[metrics.index(record["metric"]) % len(COLOURS)]
        hollow = record.get("score") == "baseline"
        axes.plot([record["low"], record["high"]], [k, k], color=colour, lw=1.6)
        axes.plot(record["estimate"], k, "o", color=colour, ms=6, mfc="white" if hollow else colour)
    labels = [
        f"{record['metric']}, {shortened(known_group_words(record['group'], result), 30)}"
        + (" (baseline)" if record.get("score") == "baseline" else "")
        for record in records
    ]
    name_lines(axes, labels)
    axes.set_xlabel("value, with its interval")
    return axes


def _diagonal(axes: "Axes", curves: list[Curve]) -> None:
    grid = [s for curve in curves for s in curve["grid"]]
    if grid and min(grid) >= 0.0 and max(grid) <= 1.0:
        ends = [min(grid), max(grid)]
        axes.plot(ends, ends, color="#767676", lw=0.8, zorder=0, label="outcome = score")


def _marks(axes: "Axes", details: ParityDetails) -> None:
    """Mark the scores at which a band excludes zero, along the horizontal axis."""
    points = sorted(
        {
            score
            for record in details.pairs
            for score, low, high in zip(
                record.get("grid", []), record.get("low", []), record.get("high", []), strict=True
            )
            if low > 0.0 or high < 0.0
        }
    )
    if points:
        axes.plot(
            points,
            [0.015] * len(points),
            "D",
            color="#D55E00",
            ms=5,
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            label="band excludes zero",
        )
