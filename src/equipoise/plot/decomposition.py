"""Inequality of benefits: its parts by group, the plane of error rates, and the threshold."""

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._checks import check_option
from equipoise._typing import BenefitKind, FloatArray
from equipoise.audits.inequality.questions import InequalityDetails
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.intervals import (
    INK,
    WIDE,
    legend_below,
    name_lines,
    narrow,
    new_axes,
)
from equipoise.results.details import details_of
from equipoise.results.formats import number
from equipoise.results.sentences import LEADING, known_group_words
from equipoise.stats.inequality.cap import KappaScheme
from equipoise.stats.inequality.geometry import domain_triangle, index_from_mean, turning_point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = ["decomposition", "error_plane", "index_surface", "threshold_curve"]

WITHIN, BETWEEN, LIMIT = "#56B4E9", "#D55E00", "#009E73"
HATCH = "////"
"""Repeats what the colour of the between part says."""


def decomposition(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw what each group adds to the index, within and between, with intervals.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.inequality`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A pair of bars for each group. Between parts are often a hundredth of within parts, so the
        numbers stand beside the bars.
    """
    from matplotlib.patches import Patch

    details = details_of(result.details, InequalityDetails)
    records = details.contributions or [
        {"group": "everybody", "within": details.within, "between": None, "n": result.n}
    ]
    # Largest first; groups too small to be named are counted in the last line.
    large = [r for r in records if r["n"] >= LEADING] or records
    large.sort(key=lambda record: -record["within"]["estimate"])
    names = [known_group_words(record["group"], result) for record in large]
    folded = len(records) - len(large)
    if folded:
        few = "group" if folded == 1 else "groups"
        names.append(f"{folded} {few} of fewer than {LEADING} rows: see the table")
    high = 1.7 + (1.05 if narrow() else 0.42) * len(names)
    axes = new_axes(WIDE, high) if ax is None else ax
    for row, record in enumerate(large):
        for part, colour, offset in (("within", WITHIN, -0.19), ("between", BETWEEN, 0.19)):
            numbers = record[part]
            if numbers is not None:
                _part(axes, row + offset, numbers, colour, f"part-{part}-{row}")
    axes.axvline(0.0, color=INK, lw=0.8)
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + (1.1 if narrow() else 0.35) * (high - low))
    # On a phone the names stand above both bars.
    shift = 0.38 if narrow() else 0.0
    name_lines(axes, names, places=[row - shift for row in range(len(names))], above=2.0)
    axes.set_ylim(len(names) - 0.5, -0.5 - 2 * shift)
    axes.set_xlabel(f"contribution to the index of order {details.order:g}")
    handles = [
        Patch(facecolor=WITHIN, label="within group"),
        Patch(facecolor=BETWEEN, hatch=HATCH, edgecolor="#FFFFFF", lw=0, label="between groups"),
    ]
    legend_below(axes, handles)
    return axes


def _part(axes: "Axes", y: float, numbers: dict[str, Any], colour: str, name: str) -> None:
    """Draw a part of the index with its interval, and write its value beside it."""
    low, high = numbers["ci_low"], numbers["ci_high"]
    (bar,) = axes.barh(y, numbers["estimate"], height=0.34, color=colour, lw=0, gid=name)
    if colour == BETWEEN:
        bar.set_hatch(HATCH)
        bar.set_edgecolor("#FFFFFF")
    if high is not None:
        axes.plot([low or 0.0, high], [y, y], color=INK, lw=1.2)
    text = number(numbers["estimate"])
    if high is not None:
        text += f" [{number(low)}, {number(high)}]"
    end = max(numbers["estimate"], high or 0.0)
    axes.annotate(
        *(text, (end, y)),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize="x-small" if narrow() else "small",
    )


def error_plane(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the plane of error rates: contours of the index, the line of kappa, ROC and model.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.inequality` with a design or `kappa`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Harmful rate across, benign rate up. Above the line the ratio holds; the bold contour is
        the cap; the ellipse holds the model's two rates with 95% confidence.
    """
    details = details_of(result.details, InequalityDetails)
    cap = _cap(details)
    scheme = _scheme(cap)
    axes = new_axes(6.0, 5.2) if ax is None else ax
    grid = np.linspace(0.0, 1.0, 121)
    harmful, benign = np.meshgrid(grid, grid)
    index = scheme.index(harmful, benign, order=details.order)
    axes.contour(harmful, benign, index, levels=12, colors="#999999", linewidths=0.6)
    axes.contour(harmful, benign, index, levels=[cap["index"]["cap"]], colors=BETWEEN)
    edge = min(1.0, 1.0 / scheme.kappa)
    axes.plot([0.0, edge], [0.0, edge * scheme.kappa], color=LIMIT, lw=1.6)
    flip = scheme.kind == "assistive"
    if details.roc:
        rates = np.array([[point["fpr"], point["fnr"]] for point in details.roc])
        rates = rates[:, ::-1] if flip else rates
        axes.plot(rates[:, 0], rates[:, 1], color="#0072B2", lw=1.4)
    ellipse = _ellipse(details.error_rates or {}, flip=flip)
    axes.plot(ellipse[:, 0], ellipse[:, 1], color=INK, lw=1.0)
    axes.plot(cap["harmful_rate"], cap["benign_rate"], "o", color=INK, ms=5)
    names = ["false positive rate", "false negative rate"]
    across, up = reversed(names) if flip else names
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=f"{across} (harmful)", ylabel=f"{up} (benign)")
    _legend(
        axes,
        [
            ("#999999", "index"),
            (BETWEEN, "cap"),
            (LIMIT, f"benign = {scheme.kappa:g} x harmful"),
            *([("#0072B2", "thresholds of the score")] if details.roc else []),
            (INK, "model"),
        ],
    )
    return axes


def index_surface(
    *,
    low: float,
    high: float,
    order: float = 1.0,
    kind: BenefitKind = "accuracy",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the index over mean benefit and unit reward rate, inside the triangle of its domain.

    Parameters
    ----------
    low, high : float
        The two benefits that are not 1.
    order : float, default 1
        Order of the index.
    kind : {"accuracy", "punitive", "assistive"}
        Names the unit reward rate on the axis.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The dashed line is the mean at which the index is largest for a given unit reward rate.
    """
    check_option("kind", kind, BenefitKind)
    axes = new_axes(6.0, 4.6) if ax is None else ax
    corners = domain_triangle(low=low, high=high)
    # Barycentric grid: every point lies in the triangle, edges included.
    steps = np.linspace(0.0, 1.0, 81)
    unit, split = np.meshgrid(steps[:-1], steps)
    mean = unit + (1.0 - unit) * (low + (high - low) * split)
    # Where everyone has nothing there is no index.
    defined = np.where(mean > 0.0, mean, 1.0)
    index = np.maximum(index_from_mean(defined, unit, low=low, high=high, order=order), 0.0)
    index = np.ma.masked_where(mean <= 0.0, index)
    filled = axes.contourf(mean, unit, index, levels=14, cmap="cividis")
    axes.figure.colorbar(filled, ax=axes, label=f"index of order {order:g}")
    closed = np.vstack([corners, corners[:1]])
    axes.plot(closed[:, 0], closed[:, 1], color=INK, lw=1.2)
    peaks = [(turning_point(rate, low=low, high=high, order=order), rate) for rate in steps]
    inside = [
        (peak, rate)
        for peak, rate in peaks
        if peak is not None
        and low + (1.0 - low) * rate <= peak <= high + (1.0 - high) * rate + 1e-12
    ]
    if inside:
        axes.plot(*zip(*inside, strict=True), color="#ffffff", lw=1.2, ls="--")
    names = {
        "accuracy": "accuracy",
        "punitive": "share not selected",
        "assistive": "share selected",
    }
    axes.set(xlabel="mean benefit", ylabel=f"unit reward rate ({names[kind]})")
    return axes


def threshold_curve(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the index against the threshold of the score, with its cap and the direct limit.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.inequality` with a design or `kappa`, on a table with a score.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Thresholds at which the ratio of errors itself holds are shaded.
    """
    details = details_of(result.details, InequalityDetails)
    cap = _cap(details)
    if not details.roc:
        raise InvalidParameterError("the curve needs a score; pass `y_score` to `Audit`.")
    scheme = _scheme(cap)
    axes = new_axes(6.5, 4.0) if ax is None else ax
    points = [point for point in details.roc if point["threshold"] is not None]
    cut = np.array([point["threshold"] for point in points])
    rates = np.array([[point["fpr"], point["fnr"]] for point in points])
    harmful, benign = rates.T if scheme.kind == "punitive" else rates[:, ::-1].T
    index = scheme.index(harmful, benign, order=details.order)
    holds = benign > scheme.kappa * harmful
    axes.plot(cut, index, color="#0072B2", lw=1.6)
    axes.axhline(cap["index"]["cap"], color=BETWEEN, lw=1.2)
    axes.fill_between(
        cut, 0.0, 1.0, where=holds, color=LIMIT, alpha=0.15, lw=0,
        transform=axes.get_xaxis_transform(), step="mid",
    )  # fmt: skip
    axes.set(xlabel="threshold of the score", ylabel=f"index of order {details.order:g}")
    axes.set_ylim(0.0, float(index.max()) * 1.08 + 1e-12)
    _legend(axes, [("#0072B2", "index"), (BETWEEN, "cap"), (LIMIT, "ratio of errors holds")])
    return axes


def _cap(details: InequalityDetails) -> dict[str, Any]:
    if details.cap is None:
        raise InvalidParameterError(
            "this picture needs a ratio of errors; ask with a `benefit_design` or `kappa`."
        )
    return details.cap


def _scheme(cap: dict[str, Any]) -> KappaScheme:
    return KappaScheme(
        kind=cap["kind"],
        base_rate=cap["base_rate"],
        kappa=cap["kappa"],
        low=cap["low"],
        high=cap["high"],
    )


def _ellipse(rates: dict[str, Any], *, flip: bool) -> FloatArray:
    """Return the 95% ellipse of the two error rates; 5.991 is the chi-square quantile, 2 df."""
    values, vectors = np.linalg.eigh(np.array(rates["covariance"]))
    angle = np.linspace(0.0, 2.0 * np.pi, 121)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    stretched = vectors @ (np.sqrt(np.maximum(values, 0.0) * 5.991)[:, None] * circle)
    points = stretched.T + np.array([rates["fpr"], rates["fnr"]])
    return np.asarray(points[:, ::-1] if flip else points)


def _legend(axes: "Axes", entries: list[tuple[str, str]]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, lw=3, label=label) for colour, label in entries]
    axes.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False
    )
