"""Accuracy of predicted effects: biases before and after correction, and how groups differ."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.effects.questions import EffectDetails
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.intervals import NARROW, forest, narrow, shown_findings
from equipoise.results.details import details_of
from equipoise.results.formats import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = [
    "effect_forest",
    "effect_predictions",
    "effect_spread",
    "effects",
    "evaluation_bars",
    "statistics_against_null",
]

AFTER, PRIOR, RAW, DETECTED = "#767676", "#0072B2", "#444444", "#D55E00"
MOST_NAMED = 12
"""Groups that are named beside their point."""


def effects(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the biases before and after correction, and below them effects beside predictions.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects`.
    ax : matplotlib.axes.Axes, optional
        Where to draw the biases; the effects are then left to `effect_predictions`. By default a
        new figure with both.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the biases.
    """
    if ax is not None or not details_of(result.details, EffectDetails).B:
        return effect_forest(result, ax=ax)
    from matplotlib.figure import Figure

    rows = 1.3 + (0.66 if narrow() else 0.27) * len(shown_findings(_biases(result).findings, 0.0))
    figure = Figure(figsize=(NARROW if narrow() else 8.5, rows + 4.4), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[rows, 4.2])
    effect_forest(result, ax=above)
    effect_predictions(result, ax=below)
    axes: Axes = above
    return axes


def _biases(result: "AuditResult") -> "AuditResult":
    """Return the result with the biases alone; they are its first findings."""
    return replace(result, findings=tuple(f for f in result.findings if f.estimand.kind == "bias"))


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
    biases = _biases(result)
    axes = forest(biases, ax=ax)
    details = details_of(result.details, EffectDetails)
    if not details.remaining:
        return axes
    rules = {entry["correction"] for entry in details.by_arm} or {details.correction}
    if rules == {"none"}:
        title = "no correction is recommended"
    else:
        words = " or ".join(sorted(map(str, rules)))
        title = f"grey: remaining after the correction {words}, same data"
        _draw_remaining(biases, details, axes)
    axes.text(
        0.99,
        0.01,
        title,
        transform=axes.transAxes,
        ha="right",
        va="bottom",
        fontsize="x-small",
        color=AFTER,
        gid="correction",
    )
    return axes


def _draw_remaining(biases: "AuditResult", details: EffectDetails, axes: "Axes") -> None:
    remaining = zip(details.remaining["A"], details.remaining["A_ci"], strict=True)
    after = dict(zip(details.group, remaining, strict=True))
    low, high = axes.get_xlim()
    for row, k in enumerate(shown_findings(biases.findings, 0.0)):
        left = after.get(biases.findings[k].group)
        if left is None:
            continue
        estimate, bounds = left
        ends = [low if bounds[0] is None else bounds[0], high if bounds[1] is None else bounds[1]]
        below = row + 0.28
        axes.plot(ends, [below, below], color=AFTER, lw=1.0, gid=f"finding-{k}-after-interval")
        axes.plot(estimate, below, "o", color=AFTER, mfc="white", ms=4, gid=f"finding-{k}-after")
    axes.set_xlim(low, high)


def effect_predictions(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the effect of every group with its interval against what is predicted.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects`, with at least two tested groups.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A group on the diagonal is predicted right.
    """
    from equipoise.plot.intervals import new_axes

    axes = new_axes(6.0, 4.2) if ax is None else ax
    details = details_of(result.details, EffectDetails)
    effect, predicted = np.array(details.tau), np.array(details.tau_f)
    reach = [*effect, *predicted]
    pad = 0.15 * (max(reach) - min(reach)) or 0.1
    low, high = min(reach) - pad, max(reach) + pad
    axes.plot([low, high], [low, high], color=RAW, lw=0.8, zorder=0, gid="effects-diagonal")
    detected = {f.group for f in result.findings if f.decision == "detected"}
    named = len(details.group) <= MOST_NAMED
    for k, group in enumerate(details.group):
        ends = details.tau_ci[k]
        bar = [low if ends[0] is None else ends[0], high if ends[1] is None else ends[1]]
        colour = DETECTED if group in detected else PRIOR
        x = predicted[k]
        axes.plot([x, x], bar, color=colour, lw=1.0, gid=f"effect-{k}-interval")
        axes.plot(x, effect[k], "o", color=colour, ms=4, gid=f"effect-{k}")
        if named:
            axes.annotate(
                shortened(group, 24),
                (x, effect[k]),
                xytext=(4, 3),
                textcoords="offset points",
                fontsize="x-small",
                parse_math=False,
            )
    axes.set_xlim(low, high)
    axes.set_xlabel("predicted effect of the group")
    axes.set_ylabel("effect in the group")
    return axes


def evaluation_bars(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw what each correction leaves on the other half: the paper's comparison of strategies.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects` with an evaluation.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Bars are root mean squares of the remaining errors without sampling noise, whiskers their
        spread between repeats; the recommended rule is filled.
    """
    from equipoise.plot.intervals import new_axes

    details = details_of(result.details, EffectDetails)
    found, advice = details.evaluation, details.recommended
    if found is None or advice is None:
        raise InvalidParameterError("`evaluation_bars` needs an audit with `n_repeats` above 0.")
    axes = new_axes(7.0, 0.9 + 0.3 * len(found["corrections"])) if ax is None else ax
    square = np.maximum(np.array(found["error_mean_square"]), 0.0)
    spread = np.array(found["error_spread"])
    centre = np.sqrt(square)
    ends = [np.sqrt(np.maximum(square + sign * spread, 0.0)) for sign in (-1, 1)]
    for k, rule in enumerate(found["corrections"]):
        chosen = rule == advice["rule"]
        axes.barh(
            k,
            centre[k],
            color=PRIOR if chosen else "white",
            edgecolor=PRIOR,
            gid=f"rule-{rule}",
        )
        axes.plot([ends[0][k], ends[1][k]], [k, k], color=RAW, lw=1.0)
    axes.set_yticks(range(len(found["corrections"])), found["corrections"])
    axes.invert_yaxis()
    axes.set_xlabel("root mean square of the errors that remain on the other half")
    return axes


def statistics_against_null(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the statistics of all groups, in order, against those of groups without any bias.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Points on the diagonal behave as without bias; the shaded band holds the smallest to the
        largest of so many independent statistics with a chance of 95% each.
    """
    from scipy import stats

    from equipoise.plot.intervals import new_axes

    axes = new_axes(5.0, 4.2) if ax is None else ax
    values = sorted(f.statistic for f in _biases(result).findings if f.statistic is not None)
    m = len(values)
    place = np.arange(1, m + 1)
    expected = stats.norm.ppf((place - 0.375) / (m + 0.25))
    low, high = (stats.norm.ppf(stats.beta.ppf(q, place, m + 1 - place)) for q in (0.025, 0.975))
    axes.fill_between(expected, low, high, color=PRIOR, alpha=0.15, lw=0)
    axes.plot(expected, expected, color=RAW, lw=0.8)
    axes.plot(expected, values, "o", color=PRIOR, ms=4, gid="statistics")
    axes.set_xlabel("quantile without bias")
    axes.set_ylabel("statistic of a group")
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
