"""Pictures of an improvability audit: who gains, what each split says, how much is shown."""

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.improvement.questions import ImprovementDetails
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.intervals import NARROW, narrow, new_axes
from equipoise.results.details import details_of
from equipoise.results.formats import shortened
from equipoise.results.sentences import group_words, known_group_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.finding import Finding
    from equipoise.results.result import AuditResult

__all__ = [
    "delta_curves",
    "improvement",
    "improvement_plane",
    "loss_frontier",
    "split_p_values",
]

STATUS_QUO, CANDIDATE, GREY = "#D55E00", "#0072B2", "#444444"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def improvement(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw all pictures side by side; with `ax`, the plane alone.

    Parameters
    ----------
    result : AuditResult
        Of an improvability audit.
    ax : matplotlib.axes.Axes, optional
        Where to draw the plane.

    Returns
    -------
    matplotlib.axes.Axes
        That of the plane.
    """
    if ax is not None or not details_of(result.details, ImprovementDetails).splits:
        return improvement_plane(result, ax=ax)
    from matplotlib.figure import Figure

    steps = bool(details_of(result.details, ImprovementDetails).frontier)
    widths = (1.2, 0.9, 1.1, 1.0) if steps else (1.2, 0.9, 1.1)
    if narrow():
        figure = Figure(figsize=(NARROW, 4.0 * len(widths)), layout="constrained")
        first, second, third, *rest = figure.subplots(len(widths), 1)
    else:
        figure = Figure(figsize=(15.0 if steps else 12.0, 4.2), layout="constrained")
        first, second, third, *rest = figure.subplots(1, len(widths), width_ratios=widths)
    split_p_values(result, ax=second)
    delta_curves(result, ax=third)
    if rest:
        loss_frontier(result, ax=rest[0])
    return improvement_plane(result, ax=first)


def improvement_plane(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the accuracy of the second group against that of the first.

    Points are the splits, ellipses the confidence regions of the median split; on the diagonal both
    groups fare alike, and up and to the right of the status quo both fare better.

    Parameters
    ----------
    result : AuditResult
        Of an improvability audit.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    axes = new_axes(5.4, 4.6) if ax is None else ax
    details = details_of(result.details, ImprovementDetails)
    if not details.splits:
        axes.text(0.5, 0.5, "not tested", ha="center", transform=axes.transAxes, color="#767676")
        return axes
    level = result.findings[0].ci.confidence_level if result.findings[0].ci else 0.95
    middle = int(np.argsort(details.p_values)[(len(details.p_values) - 1) // 2])
    edges = []
    for algorithm, (name, colour, marker) in enumerate(
        (("status quo", STATUS_QUO, "D"), ("candidate", CANDIDATE, "o"))
    ):
        points = np.array([split["accuracy"][algorithm][:2] for split in details.splits])
        axes.plot(points[:, 0], points[:, 1], marker, color=colour, ms=5, alpha=0.75, label=name)
        covariance = np.array(details.splits[middle]["accuracy_covariance"][algorithm])
        outline = _ellipse(points[middle], covariance, level)
        axes.plot(outline[:, 0], outline[:, 1], color=colour, lw=1.2)
        edges += [points, outline]
    extent = np.concatenate(edges)
    low, high = float(extent.min()), float(extent.max())
    axes.plot([low, high], [low, high], color=GREY, lw=0.8, ls="--", label="both alike")
    centre = np.array(details.splits[middle]["accuracy"][0][:2])
    axes.axvline(centre[0], color=GREY, lw=0.5, alpha=0.6)
    axes.axhline(centre[1], color=GREY, lw=0.5, alpha=0.6)
    first, second = (known_group_words(name, result) for name in details.groups[:2])
    axes.set_xlabel(f"{details.noun}, {shortened(first, 40)}", parse_math=False)
    axes.set_ylabel(f"{details.noun}, {shortened(second, 40)}", parse_math=False)
    axes.legend(loc="best", frameon=False, fontsize="small")
    return axes


def _ellipse(centre: Any, covariance: Any, level: float) -> Any:
    """Outline of the normal confidence region of two means."""
    root, vectors = np.linalg.eigh(covariance)
    radius = np.sqrt(-2.0 * np.log(1.0 - level))
    angle = np.linspace(0.0, 2.0 * np.pi, 121)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return centre + radius * (circle * np.sqrt(np.maximum(root, 0.0))) @ vectors.T


def split_p_values(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the p-value of every split, and the level that their median is compared with.

    Parameters
    ----------
    result : AuditResult
        Of an improvability audit that was tested.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    axes = new_axes(4.0, 4.2) if ax is None else ax
    splits = _details(result).splits
    number = np.arange(1, len(splits) + 1)
    # Those of the requirements come last.
    asked = result.findings[-len(splits[0]["criteria"]) :]
    for k, finding in enumerate(asked):
        p = [split["criteria"][k]["p_value"] for split in splits]
        axes.plot(
            number,
            p,
            "o-",
            color=COLOURS[k % len(COLOURS)],
            ms=4,
            lw=0.8,
            label=_criterion_label(finding, result),
        )
    level = result.alpha / 2 if len(splits) > 1 else result.alpha
    words = "alpha / 2 (median)" if len(splits) > 1 else "alpha"
    axes.axhline(level, color=GREY, lw=0.8, ls="--", label=words)
    axes.set_xticks(number)
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set_ylim(0.0, 1.1)
    axes.set_xlabel("split")
    axes.set_ylabel("p-value")
    _plain_legend(axes)
    return axes


def _criterion_label(finding: "Finding", result: "AuditResult") -> str:
    """Name a requirement; what tells it from the others stands first, the legend cuts the rest."""
    gap = finding.estimand.kind == "gap reduction"
    who = "gap" if gap else group_words(finding.group, result.words)
    return shortened(f"{who}: {finding.estimand.noun}", 40)


def delta_curves(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the p-value of growing improvements; what lies below alpha from zero on is shown.

    Parameters
    ----------
    result : AuditResult
        Of an improvability audit that was tested.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    axes = new_axes(5.0, 4.2) if ax is None else ax
    details = _details(result)
    for k, (name, curve) in enumerate(details.delta_curves.items()):
        colour = COLOURS[k % len(COLOURS)]
        largest = details.deltas[name]
        label = shortened(name, 40) + ("" if largest is None else f": {largest:.3f}")
        axes.plot(curve["delta"], curve["p_value"], color=colour, lw=1.4, label=label)
        if largest is not None:
            axes.plot(largest, result.alpha, "v", color=colour, ms=6)
    axes.axhline(result.alpha, color=GREY, lw=0.8, ls="--")
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel("improvement delta")
    axes.set_ylabel("p-value")
    _plain_legend(axes)
    return axes


def loss_frontier(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the reduction of the gap that is shown at every tolerated loss.

    Everything on and below the staircase is shown at once, whichever loss is chosen later.

    Parameters
    ----------
    result : AuditResult
        Of an improvability audit with a frontier.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    axes = new_axes(5.0, 4.2) if ax is None else ax
    details = _details(result)
    if not details.frontier:
        raise InvalidParameterError("there is no frontier to draw; ask with `frontier=True`.")
    loss = np.array([step["loss"] for step in details.frontier])
    reduction = np.array([step["reduction"] for step in details.frontier])
    end = float(loss[-1]) * 1.15 or 0.01
    x, y = np.append(loss, end), np.append(reduction, reduction[-1])
    axes.step(x, y, where="post", color=CANDIDATE, lw=1.6, label="shown, all at once")
    axes.fill_between(x, 0.0, y, step="post", color=CANDIDATE, alpha=0.15)
    axes.plot(loss, reduction, "o", color=CANDIDATE, ms=4)
    asked = details.accuracy_loss
    if asked is not None and details.margin_scale == "absolute" and asked <= end:
        axes.axvline(asked, color=STATUS_QUO, lw=1.0, ls="--", label="loss stated beforehand")
    axes.set_xlim(0.0, end)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel(f"loss of {details.noun}, at most", parse_math=False)
    axes.set_ylabel("reduction of the gap, at least")
    _plain_legend(axes)
    return axes


def _details(result: "AuditResult") -> ImprovementDetails:
    details = details_of(result.details, ImprovementDetails)
    if not details.splits:
        raise InvalidParameterError("nothing was tested, so there is nothing to draw.")
    return details


def _plain_legend(axes: "Axes") -> None:
    """Add a legend whose names, which come from the data, are not read as formulas."""
    legend = axes.legend(loc="best", frameon=False, fontsize="small")
    for text in legend.get_texts():
        text.set_parse_math(False)
