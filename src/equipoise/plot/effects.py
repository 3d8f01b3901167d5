"""Accuracy of predicted effects: biases before and after correction, and how groups differ."""

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.effects.questions import EffectDetails
from equipoise.plot.intervals import forest, shown_findings
from equipoise.results.details import details_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = ["effect_forest", "effect_spread", "effects"]

AFTER, PRIOR, RAW = "#767676", "#0072B2", "#444444"


def effects(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the biases before and after correction, and below them the spread of the errors.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects`.
    ax : matplotlib.axes.Axes, optional
        Where to draw the biases; the spread is then left to `effect_spread`. By default a new
        figure with both.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the biases.
    """
    if ax is not None or not details_of(result.details, EffectDetails).B:
        return effect_forest(result, ax=ax)
    from matplotlib.figure import Figure

    rows = 1.3 + 0.27 * len(shown_findings(result.findings, 0.0))
    figure = Figure(figsize=(8.5, rows + 2.4), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[rows, 2.2])
    effect_forest(result, ax=above)
    effect_spread(result, ax=below)
    axes: Axes = above
    return axes


def effect_forest(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the bias of every group with its interval, and in grey what a correction leaves.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    axes = forest(result, ax=ax)
    details = details_of(result.details, EffectDetails)
    if not details.remaining:
        return axes
    remaining = zip(details.remaining["A"], details.remaining["A_ci"], strict=True)
    after = dict(zip(details.group, remaining, strict=True))
    low, high = axes.get_xlim()
    for row, k in enumerate(shown_findings(result.findings, 0.0)):
        left = after.get(result.findings[k].group)
        if left is None:
            continue
        estimate, bounds = left
        ends = [low if bounds[0] is None else bounds[0], high if bounds[1] is None else bounds[1]]
        below = row + 0.28
        axes.plot(ends, [below, below], color=AFTER, lw=1.0, gid=f"finding-{k}-after-interval")
        axes.plot(estimate, below, "o", color=AFTER, mfc="white", ms=4, gid=f"finding-{k}-after")
    axes.set_xlim(low, high)
    axes.set_title(
        f"grey: remaining after the correction {details.correction!r}, same data",
        fontsize="small",
        loc="right",
        pad=24,
    )
    return axes


def effect_spread(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw how errors differ between groups, without the noise of their estimates.

    The curve is the empirical Bayes law of the true errors; the dashed one has the spread of the
    estimates, which adds their sampling error; ticks are the estimates.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects`, with at least two tested groups.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    from equipoise.plot.intervals import new_axes

    axes = new_axes(8.5, 2.4) if ax is None else ax
    details = details_of(result.details, EffectDetails)
    errors = np.array(details.B)
    mean, sd = details.prior_mean or 0.0, details.prior_sd or 0.0
    raw = float(errors.std())
    reach = 3.5 * max(sd, raw, 1e-6)
    grid = np.linspace(mean - reach, mean + reach, 400)
    axes.plot(
        grid,
        _density(grid, float(errors.mean()), max(raw, 1e-6)),
        "--",
        color=RAW,
        lw=1.0,
        label="estimates, sampling error included",
        gid="spread-estimates",
    )
    if sd > 0.02 * raw:
        axes.plot(
            grid,
            _density(grid, mean, sd),
            color=PRIOR,
            lw=1.8,
            label="true errors (empirical Bayes)",
            gid="spread-prior",
        )
    else:
        axes.axvline(
            mean,
            color=PRIOR,
            lw=1.8,
            label="true errors: no spread beyond sampling error",
            gid="spread-prior",
        )
    axes.plot(errors, np.zeros_like(errors), "|", color=RAW, ms=9, gid="spread-ticks")
    axes.set_yticks([])
    axes.set_xlabel("prediction error of a group")
    axes.legend(frameon=False, fontsize="small", loc="upper right")
    return axes


def _density(x: Any, mean: float, sd: float) -> Any:
    return np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
