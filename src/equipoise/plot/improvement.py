"""Pictures of an improvability audit: who gains, what each split says, how much is shown."""

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.improvement.questions import ImprovementDetails
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.effects import label_places
from equipoise.plot.intervals import NARROW, WIDE, in_lines, legend_below, narrow, new_axes
from equipoise.results.details import details_of
from equipoise.results.formats import shortened
from equipoise.results.sentences import group_words, known_group_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from equipoise.results.finding import Finding
    from equipoise.results.result import AuditResult

__all__ = [
    "candidate_margins",
    "delta_curves",
    "gap_and_accuracy",
    "improvement",
    "improvement_plane",
    "loss_frontier",
    "split_p_values",
]

STATUS_QUO, CANDIDATE, GREY = "#D55E00", "#0072B2", "#444444"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def improvement(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw what the status quo and the candidates do, and how sure and how large that is.

    Parameters
    ----------
    result : AuditResult
        Of an improvability audit.
    ax : matplotlib.axes.Axes, optional
        Where to draw the first panel alone; by default a new figure with all of them.

    Returns
    -------
    matplotlib.axes.Axes
        Of the first panel: many candidates by what they leave beyond the requirements
        (`candidate_margins`), else the gap against accuracy (`gap_and_accuracy`), or the accuracy
        of both groups where each of them must gain (`improvement_plane`).
    """
    details = details_of(result.details, ImprovementDetails)
    if not details.splits:
        return improvement_plane(result, ax=ax)
    first = _first_panel(details)
    if ax is not None:
        return first(result, ax=ax)
    panels: list[Callable[..., Axes]] = [first]
    if len(details.splits) > 1:
        panels.append(split_p_values)
    if any(largest is not None for largest in details.deltas.values()):
        panels.append(delta_curves)
    if details.frontier:
        panels.append(loss_frontier)
    drawn = _panels(len(panels))
    for panel, axes in zip(panels, drawn, strict=True):
        panel(result, ax=axes)
        axes.set_title(TITLES[panel.__name__], loc="left", fontsize="medium")
    return drawn[0]


TITLES = {
    "candidate_margins": "Candidates",
    "gap_and_accuracy": "Gap and accuracy",
    "improvement_plane": "Accuracy of both groups",
    "split_p_values": "How sure, split by split",
    "delta_curves": "How much is shown",
    "loss_frontier": "What a loss would buy",
}


def _first_panel(details: ImprovementDetails) -> "Callable[..., Axes]":
    if _judged(details):
        return candidate_margins
    kinds = [row.get("kind") for row in details.splits[0]["criteria"]]
    if kinds.count("accuracy") == 1 and "fairness" in kinds and details.scale == "difference":
        return gap_and_accuracy
    return improvement_plane


def _judged(details: ImprovementDetails) -> "list[tuple[int, dict[str, Any]]]":
    """Return the candidates whose distance from what is asked is known, and their places."""
    return [(k, e) for k, e in enumerate(details.candidates) if "gap_exceeded_by" in e]


def _panels(count: int) -> "list[Axes]":
    """Return axes of one figure: two in a row, or below each other on a phone."""
    from matplotlib.figure import Figure

    across = 1 if narrow() else min(count, 2)
    down = -(-count // across)
    size = (NARROW if narrow() else WIDE, 0.4 + 4.0 * down)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(down, across)
    return [figure.add_subplot(grid[k // across, k % across]) for k in range(count)]


def gap_and_accuracy(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the gap against accuracy, of the status quo and of the candidate in every split.

    Parameters
    ----------
    result : AuditResult
        Of an improvability audit with one requirement of accuracy.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Down is a smaller gap, to the right more accuracy; the shaded part meets both requirements
        as far as points go. The candidate is filled where it is shown to be an alternative.
    """
    axes = new_axes(5.4, 4.6) if ax is None else ax
    details = _details(result)
    rows = details.splits[0]["criteria"]
    at = [next(k for k, r in enumerate(rows) if r["kind"] == kind) for kind in KINDS]
    points = np.array(
        [
            [[split["criteria"][k][rule] for k in at] for rule in ("a0", "a1")]
            for split in details.splits
        ]
    )
    unit = 100.0 if _in_shares(result) else 1.0
    points[:, :, 1] *= unit
    quo, candidate = np.median(points, axis=0)
    shown = result.joint is not None and result.joint.decision == "detected"
    face = CANDIDATE if shown else "#FFFFFF"
    word = "candidate: shown to be an alternative" if shown else "candidate: not shown"
    axes.plot(*points[:, 0].T, "D", color=STATUS_QUO, ms=5, label="status quo", gid="status-quo")
    axes.plot(*points[:, 1].T, "o", color=CANDIDATE, mfc=face, ms=5, label=word, gid="candidate")
    axes.annotate("", candidate, quo, arrowprops={"arrowstyle": "->", "color": GREY}, gid="change")
    gain, narrowing = (
        float(np.ravel(delta)[0]) for delta in (details.delta_accuracy, details.delta_fairness)
    )
    relative = details.margin_scale == "relative"
    least = quo[0] * (1.0 + gain) if relative else quo[0] + gain
    most = quo[1] * (1.0 - narrowing) if relative else quo[1] - unit * narrowing
    axes.margins(0.15)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    left = min(left, least - 0.05 * (right - left))
    axes.fill_between([least, max(right, least)], low, most, color="#009E73", alpha=0.12, lw=0)
    axes.set(xlim=(left, max(right, least)), ylim=(low, high))
    words = ", percentage points" if unit != 1.0 else ""
    axes.set_xlabel(in_lines(rows[at[0]]["criterion"]), parse_math=False)
    axes.set_ylabel(f"{rows[at[1]]['criterion']}{words}", parse_math=False)
    legend_below(axes, [*axes.get_legend_handles_labels()[0], _asked()])
    return axes


KINDS = ("accuracy", "fairness")


def _asked() -> "Artist":
    from matplotlib.patches import Patch

    return Patch(color="#009E73", alpha=0.25, lw=0, label="what is asked for")


def _in_shares(result: "AuditResult") -> bool:
    """Whether the gap is one of shares of people."""
    known = details_of(result.details, ImprovementDetails).fairness
    told = result.words.metrics.get(known[0] if known else "")
    return told is not None and told.event is not None


def candidate_margins(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw of every candidate how far it is beyond what is asked of accuracy and of the gap.

    Parameters
    ----------
    result : AuditResult
        Of an improvability audit of several candidates.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Up and to the right of both lines a candidate meets the requirements as far as its point
        goes. Filled: shown to meet them; open: not settled; a cross: shown not to.
    """
    axes = new_axes(5.4, 4.6) if ax is None else ax
    details = _details(result)
    used = set()
    for k, entry in _judged(details):
        x, y = entry["accuracy_exceeded_by"], entry["gap_exceeded_by"]
        colour, marker, face, words = STATES.get(entry["state"], STATES["open"])
        label = "" if words in used else words
        used.add(words)
        axes.plot(
            *(x, y, marker),
            label=label or "_again",
            mfc=face,
            mec=colour,
            ms=7,
            gid=f"candidate-{k}",
        )
    axes.axvline(0.0, color=GREY, lw=0.8, zorder=0)
    axes.axhline(0.0, color=GREY, lw=0.8, zorder=0)
    axes.margins(0.2)
    _name_candidates(axes, details)
    axes.set_xlabel(in_lines(f"{details.noun} beyond what is asked"), parse_math=False)
    axes.set_ylabel("gap below what is asked")
    legend_below(axes, axes.get_legend_handles_labels()[0])
    return axes


STATES = {
    "shown": (CANDIDATE, "o", CANDIDATE, "shown to be an alternative"),
    "open": (CANDIDATE, "o", "#FFFFFF", "not settled"),
    "shown not to": (GREY, "X", GREY, "shown to miss a requirement"),
}
NAMED = 12
"""Candidates that are named beside their point."""


def _name_candidates(axes: "Axes", details: ImprovementDetails) -> None:
    known = [entry for _, entry in _judged(details)]
    if len(known) > NAMED:
        return
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    size = NAME_PANEL[narrow()]
    across = np.array([e["accuracy_exceeded_by"] for e in known])
    upward = np.array([e["gap_exceeded_by"] for e in known])
    up = (upward - low) / (high - low) * size[1]
    points = np.column_stack([(across - left) / (right - left) * size[0], up, up, up])
    names = [shortened(e["name"].rpartition(".")[2] or e["name"], 18) for e in known]
    for name, x, y, place in zip(
        names, across, upward, label_places(points, names, size), strict=True
    ):
        axes.annotate(
            *(name, (x, y)),
            xytext=place,
            textcoords="offset points",
            fontsize="x-small",
            parse_math=False,
            gid="candidate-name",
        )


NAME_PANEL = {False: (210.0, 200.0), True: (210.0, 170.0)}


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
    legend_below(axes, axes.get_legend_handles_labels()[0])
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
    legend_below(axes, axes.get_legend_handles_labels()[0])
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
        if len(curve["delta"]) < 2:
            continue
        largest = details.deltas[name]
        label = shortened(name, 40) + ("" if largest is None else f": {largest:.3f}")
        axes.plot(curve["delta"], curve["p_value"], color=colour, lw=1.4, label=label)
        if largest is not None:
            axes.plot(largest, result.alpha, "v", color=colour, ms=6)
    axes.axhline(result.alpha, color=GREY, lw=0.8, ls="--")
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel("improvement delta")
    axes.set_ylabel("p-value")
    legend_below(axes, axes.get_legend_handles_labels()[0])
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
    legend_below(axes, axes.get_legend_handles_labels()[0])
    return axes


def _details(result: "AuditResult") -> ImprovementDetails:
    details = details_of(result.details, ImprovementDetails)
    if not details.splits:
        raise InvalidParameterError("nothing was tested, so there is nothing to draw.")
    return details
