"""Mean outcome by score, one curve with its simultaneous band for each group; scores below."""

from typing import TYPE_CHECKING

from equipoise.audits.scores.questions import (
    Bars,
    Curve,
    MarginDetails,
    ParityDetails,
    drawn_scores,
    largest_groups,
)
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.intervals import (
    NARROW,
    WIDE,
    forest,
    in_lines,
    legend_below,
    line_names,
    lines_height,
    name_lines,
    narrow,
    new_axes,
    new_panels,
    numbers_beside,
    shown_findings,
)
from equipoise.plot.strips import score_strips, strips_height
from equipoise.results.details import details_of
from equipoise.results.finding import ConfidenceInterval, Finding
from equipoise.results.formats import number, shortened
from equipoise.results.sentences import group_words, known_group_words, points

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = ["before_after", "margin_intervals", "quality_intervals", "score_curves"]

# Okabe-Ito colours; line styles repeat what the colour says.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")
MOST_CURVES = len(COLOURS)
LOOKS = [(colour, STYLES[k % len(STYLES)]) for k, colour in enumerate(COLOURS)]


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
    details = details_of(result.details, ParityDetails)
    curves = [curve for curve in details.curves if curve["grid"]]
    # A picture of many groups is a tangle; the first ones of the table are drawn.
    looks = dict(zip([curve["group"] for curve in curves], LOOKS, strict=False))
    strips = drawn_scores(details.scores, list(looks)) if ax is None else []
    axes, below = _begun(ax, len(looks), strips)
    for curve, (colour, style) in zip(curves, looks.values(), strict=False):
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
    axes.set_ylabel(f"mean outcome, {100 * details.confidence_level:g}% band of all scores")
    axes.set_title(in_lines(*_below_title(result, details, curves)), loc="left", fontsize="small")
    handles = axes.get_legend_handles_labels()[0]
    if below is None or details.scores is None:
        axes.set_xlabel("score")
        legend_below(axes, handles)
        return axes
    score_strips(result, details.scores, strips, below, looks=looks)
    axes.tick_params(labelbottom=False)
    # Where all curves have a strip, its name has their colour and line already.
    legend_below(below, handles[len(looks) :] if len(strips) == len(looks) else handles)
    return axes


def _begun(ax: "Axes | None", n_curves: int, strips: "list[Bars]") -> "tuple[Axes, Axes | None]":
    """Return axes for the curves, and with the same scores axes for the strips if there are any."""
    if ax is not None:
        return ax, None
    if not strips:
        return new_axes(WIDE, 4.6 + (0.2 * n_curves + 0.6 if narrow() else 0.0)), None
    from matplotlib.figure import Figure

    heights = (4.2, strips_height(strips))
    size = (NARROW if narrow() else WIDE, sum(heights) + 0.4)
    panels = Figure(figsize=size, layout="constrained").subplots(
        2, 1, sharex=True, height_ratios=heights
    )
    return panels[0], panels[1]


def margin_intervals(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the differences at the cut-off, and below them how the groups' scores lie around it.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.marginal_outcome`.
    ax : matplotlib.axes.Axes, optional
        Where to draw the differences; by default a new figure with both.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the differences.
    """
    details = details_of(result.details, MarginDetails)
    if ax is not None or details.scores is None:
        return forest(result, ax=ax)
    looks = dict(zip(largest_groups(details.scores), LOOKS, strict=False))
    strips = drawn_scores(details.scores, list(looks))
    if not strips:
        return forest(result)
    shown = shown_findings(result.findings, result.details.null_value)
    names = line_names(result, [result.findings[k] for k in shown])
    axes, below = new_panels(lines_height(names), strips_height(strips))
    forest(result, ax=axes)
    score_strips(result, details.scores, strips, below, looks=looks, cut=details.threshold)
    if len(details.scores["groups"]) > len(strips):
        below.set_title(
            in_lines(f"{len(strips)} of {len(details.scores['groups'])} groups are drawn"),
            loc="left",
            fontsize="small",
        )
    return axes


def _below_title(
    result: "AuditResult", details: ParityDetails, curves: list[Curve]
) -> "Iterator[str]":
    """Say how far outcomes at equal scores are apart on average, and what is left out."""
    average = details.average
    if average is not None:
        one, two = known_group_words(average["group"], result), "the score"
        start = f"Outcomes of {one}"
        if average["reference"] is not None:
            two = known_group_words(average["reference"], result)
            start = f"At equal scores {one}"
        write = points if details.binary else number
        unit = " points" if details.binary else ""
        low, high = sorted(abs(average[end]) for end in ("low", "high"))
        side = "below" if average["estimate"] < 0.0 else "above"
        interval = f" ({100 * details.confidence_level:g}% interval {write(low)} to {write(high)})"
        if average["low"] <= 0.0 <= average["high"]:
            interval = f", and the {100 * details.confidence_level:g}% interval holds zero"
        yield (
            f"{start} lie on average {write(abs(average['estimate']))}{unit} {side} {two}{interval}"
        )
    if len(curves) > MOST_CURVES:
        yield f"{MOST_CURVES} of {len(curves)} groups are drawn"


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
    """Draw what was estimated in each group with its interval, a panel for each metric.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.score_quality` or `Audit.policy`.
    ax : matplotlib.axes.Axes, optional
        Where to draw the first metric; by default a new figure with all of them.

    Returns
    -------
    matplotlib.axes.Axes
        The first panel. Values of a baseline are hollow. Artists of finding k have the gid
        ``finding-k`` or ``finding-k-interval``.
    """
    panels: dict[str, list[int]] = {}
    for k, finding in enumerate(result.findings):
        if finding.estimand.kind == "value" and finding.ci is not None:
            panels.setdefault(_metric(finding, result), []).append(k)
    if not panels:
        axes = new_axes(WIDE, 2.8) if ax is None else ax
        axes.text(0.5, 0.5, "not tested", ha="center", va="center", transform=axes.transAxes)
        return axes
    if ax is not None:
        _values(result, next(iter(panels.values())), ax)
        return ax
    heights = [
        lines_height([_line_name(result.findings[k], result) for k in rows]) - 1.2
        for rows in panels.values()
    ]
    drawn = new_panels(*heights)
    for rows, axes in zip(panels.values(), drawn, strict=True):
        _values(result, rows, axes)
    return drawn[0]


def _values(result: "AuditResult", rows: "Sequence[int]", axes: "Axes") -> None:
    """Draw one metric of every group."""
    findings = [result.findings[k] for k in rows]
    noun = _metric(findings[0], result)
    for row, (k, finding) in enumerate(zip(rows, findings, strict=True)):
        own = finding.estimand.noun == noun
        estimate, ci = (
            finding.estimate or 0.0,
            finding.ci or ConfidenceInterval(low=None, high=None),
        )
        ends = [estimate if end is None else end for end in (ci.low, ci.high)]
        axes.plot(ends, [row, row], color=COLOURS[0], lw=1.8, gid=f"finding-{k}-interval")
        face = COLOURS[0] if own else "#FFFFFF"
        axes.plot(estimate, row, "o", color=COLOURS[0], ms=5.5, mfc=face, gid=f"finding-{k}")
        numbers_beside(axes, row, finding, shares=False)
    name_lines(axes, [_line_name(finding, result) for finding in findings])
    axes.set_title(noun[:1].upper() + noun[1:], loc="left", fontsize="medium", parse_math=False)


def _line_name(finding: "Finding", result: "AuditResult") -> str:
    """Name the group, and the baseline where the value is its own."""
    group = group_words(finding.group, result.words)
    own = finding.estimand.noun == _metric(finding, result)
    return group if own else f"{group}, {result.details.get('baseline')}"


def _metric(finding: "Finding", result: "AuditResult") -> str:
    """Name the metric of a value, that of the baseline like its own."""
    return finding.estimand.noun.removesuffix(f" of {result.details.get('baseline')}")


def _diagonal(axes: "Axes", curves: list[Curve]) -> None:
    grid = [s for curve in curves for s in curve["grid"]]
    if grid and min(grid) >= 0.0 and max(grid) <= 1.0:
        ends = [min(grid), max(grid)]
        axes.plot(ends, ends, color="#767676", ls=":", lw=1.2, zorder=0, label="outcome = score")


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
