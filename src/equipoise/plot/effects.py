"""Accuracy of predicted effects: biases before and after correction, and how groups differ."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._typing import FloatArray
from equipoise.audits.effects.questions import EffectDetails
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.intervals import NARROW, forest, narrow, new_axes, shown_findings
from equipoise.plot.simulations import quantile_plot
from equipoise.results.details import details_of
from equipoise.results.formats import shortened
from equipoise.results.sentences import group_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from equipoise.results.result import AuditResult

__all__ = [
    "correction_prices",
    "effect_forest",
    "effect_predictions",
    "effect_spread",
    "effects",
    "evaluation_bars",
    "paper_densities",
    "paper_statistics",
    "statistics_against_null",
]

AFTER, PRIOR, RAW, DETECTED = "#767676", "#0072B2", "#444444", "#D55E00"
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#444444", "#E69F00")
MARKERS = ("o", "s", "^", "v", "D", "P", "X")
MOST_NAMED = 12
"""Groups that are named beside their point."""
PANEL, PHONE_PANEL = (310.0, 230.0), (220.0, 210.0)
"""Width and height of the panel of effects in points of print, where names find their places."""
LINE, LETTER = 9.0, 3.9
"""Height of a line of small print, and width of a letter, in points."""
CLOSE = 5
"""Lines near a point among which its name looks for one that crosses no interval."""


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
    heights = [rows, 4.2, *(5.2 if narrow() else 3.6 for _ in _costs(result)[:1])]
    figure = Figure(figsize=(NARROW if narrow() else 8.5, sum(heights) + 0.2), layout="constrained")
    above, below, *last = figure.subplots(len(heights), 1, height_ratios=heights)
    effect_forest(result, ax=above)
    effect_predictions(result, ax=below)
    for ax_of_prices in last:
        correction_prices(result, ax=ax_of_prices)
    axes: Axes = above
    return axes


def _costs(result: "AuditResult") -> list[dict[str, Any]]:
    """Return the rules with their prices; none where an audit has not judged them."""
    return details_of(result.details, EffectDetails).frontier


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
    low, high = axes.get_ylim()
    axes.set_ylim(low + 0.4, high)
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
        # On a phone the numbers of a line stand right below it.
        below = row + (0.42 if narrow() else 0.28)
        axes.plot(ends, [below, below], color=AFTER, lw=1.0, gid=f"finding-{k}-after-interval")
        axes.plot(estimate, below, "o", color=AFTER, mfc="white", ms=4, gid=f"finding-{k}-after")
    axes.set_xlim(low, high)


def _begun(
    result: "AuditResult", ax: "Axes | None", size: tuple[float, float]
) -> tuple["Axes", EffectDetails]:
    """Return the axes to draw on, new ones of the given size by default, and what to draw."""
    axes = new_axes(*size) if ax is None else ax
    return axes, details_of(result.details, EffectDetails)


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
    axes, details = _begun(result, ax, (6.0, 4.2))
    effect, predicted = np.array(details.tau), np.array(details.tau_f)
    reach = [*effect, *predicted]
    pad = 0.15 * (max(reach) - min(reach)) or 0.1
    low, high = min(reach) - pad, max(reach) + pad
    axes.plot([low, high], [low, high], color=RAW, lw=0.8, zorder=0, gid="effects-diagonal")
    detected = {f.group for f in result.findings if f.decision == "detected"}
    floor, top = low, high
    bars = []
    for k, group in enumerate(details.group):
        ends = details.tau_ci[k]
        bar = [low if ends[0] is None else ends[0], high if ends[1] is None else ends[1]]
        floor, top = min(floor, *bar), max(top, *bar)
        bars.append(bar)
        colour = DETECTED if group in detected else PRIOR
        x = predicted[k]
        axes.plot([x, x], bar, color=colour, lw=1.0, gid=f"effect-{k}-interval")
        axes.plot(x, effect[k], "o", color=colour, ms=4, gid=f"effect-{k}")
    if len(details.group) <= MOST_NAMED:
        width, height = PHONE_PANEL if narrow() else PANEL
        upward = np.column_stack([effect, bars])
        points = np.column_stack(
            [(predicted - low) / (high - low) * width, (upward - floor) / (top - floor) * height]
        )
        names = [shortened(group_words(group, result.words), 24) for group in details.group]
        for k, place in enumerate(_label_places(points, names, (width, height))):
            axes.annotate(
                names[k],
                (predicted[k], effect[k]),
                xytext=place,
                textcoords="offset points",
                fontsize="x-small",
                parse_math=False,
                gid=f"effect-{k}-name",
            )
    axes.set_xlim(low, high)
    axes.set_xlabel("predicted effect of the group")
    axes.set_ylabel("effect in the group")
    return axes


def _label_places(
    points: FloatArray, names: Sequence[str], size: tuple[float, float]
) -> list[tuple[float, float]]:
    """Return where names stand beside their points, in points of print, without covering another.

    `points` has places across, upward, and of the ends of the interval. From the leftmost point on,
    each name takes the nearest line, right or left of its point, where it covers no other name and,
    if there is such a line, no other interval.
    """
    taken: list[tuple[float, float, float]] = []
    places: dict[int, tuple[float, float]] = {}
    lines = [3.0 + LINE * line for line in sorted(range(-len(names), len(names) + 1), key=abs)]
    for k in np.argsort(points[:, 0], kind="stable"):
        x, y = points[k, :2]
        long = LETTER * len(names[k])
        starts = [at for at in (x + 4.0, x - 4.0 - long) if 0.0 <= at <= size[0] - long] or [
            min(max(x + 4.0, 0.0), size[0] - long)
        ]
        inside = [(at, y + dy) for dy in lines for at in starts if 0 <= y + dy <= size[1] - LINE]
        free = [
            (at, line)
            for at, line in inside
            if all(abs(line - v) >= LINE or at >= end or at + long <= u for u, end, v in taken)
        ]
        across, _, low, high = np.delete(points, k, axis=0).T
        clear = [
            (at, line)
            for at, line in free[: 2 * CLOSE]
            if not np.any(
                (at < across) & (across < at + long) & (low < line + LINE) & (line < high)
            )
        ]
        at, line = (clear or free or inside or [(starts[0], y + 3.0)])[0]
        taken.append((at, at + long, line))
        places[int(k)] = (at - x, line - y)
    return [places[k] for k in range(len(names))]


def correction_prices(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw what every rule of correction buys and costs, on data that it has not seen.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        To the left groups err less. Upward is the gain: of the decisions, where the audit was given
        a rule (larger points change more of them), else in personal accuracy, the fall of the mean
        squared error. Bars are intervals of 95%, or two standard errors.
    """
    entries = _costs(result)
    if not entries:
        raise InvalidParameterError("`correction_prices` needs at least two tested groups.")
    axes = new_axes(8.5, 3.6) if ax is None else ax
    decided = entries[0]["value"] is not None
    axes.axhline(0.0, color=RAW, lw=0.8, zorder=0)
    for k, entry in enumerate(entries):
        x = entry["group_error"]
        if decided:
            y, ends = entry["value"], (entry["value_low"], entry["value_high"])
        else:
            y = -entry["loss"]
            ends = (y - 2.0 * entry["loss_se"], y + 2.0 * entry["loss_se"])
        colour = PALETTE[k % len(PALETTE)]
        axes.plot([x, x], ends, color=colour, lw=1.0, gid=f"price-{entry['rule']}-interval")
        axes.plot(
            x,
            y,
            MARKERS[k % len(MARKERS)],
            color=colour,
            mfc="white" if k % 2 else colour,
            ms=6.0 + 8.0 * (entry["flipped"] or 0.0),
            label=entry["rule"],
            gid=f"price-{entry['rule']}",
        )
    gap = "\n" if narrow() else " "
    axes.set_xlabel(f"error of groups that remains{gap}(root mean square)")
    axes.set_ylabel("gain of decisions" if decided else "fall of the personal squared error")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncol": 2}
    beside = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    axes.legend(frameon=False, fontsize="x-small", **(below if narrow() else beside))
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
    from scipy import special

    values = [f.statistic for f in _biases(result).findings if f.statistic is not None]
    words = ("quantile without bias", "statistic of a group")
    return quantile_plot(np.array(values), special.ndtri, words=words, ax=ax)


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
    axes, details = _begun(result, ax, (8.5, 2.4))
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


def paper_densities(
    result: "AuditResult", *, of: str = "bias", remaining: bool = False, ax: "Axes | None" = None
) -> "Axes":
    """Draw the densities of errors or biases over groups and draws: Figures 1 and 3 of the paper.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects` with ``method="paper"``.
    of : {"error", "bias"}
        Which.
    remaining : bool, default False
        What each strategy leaves on the other half (Figure 3), instead of what there was (Figure
        1).
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The spread is that between groups and twice the sampling variance; `effect_spread` takes the
        noise out.
    """
    found = _published(result)
    axes = new_axes(6.0, 3.2) if ax is None else ax
    curves = {"": found[f"{of}_density"]}
    if remaining:
        curves = found[f"remaining_{of}_density"]
    for k, (rule, density) in enumerate(curves.items()):
        axes.plot(
            found["grid"],
            density,
            color=PALETTE[k % len(PALETTE)],
            lw=1.5,
            label=rule,
            gid=f"density-{rule or 'before'}",
        )
    axes.axvline(0.0, color=RAW, lw=0.6, zorder=0)
    axes.set_yticks([])
    axes.set_xlabel(f"{of} (sd between groups)")
    if remaining:
        axes.legend(frameon=False, fontsize="x-small")
    return axes


def paper_statistics(result: "AuditResult", *, ax: "Axes | None" = None) -> "Axes":
    """Draw the t statistics of all groups and runs over their null density: Figure 2 of the paper.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects` with ``method="paper"``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    values = np.concatenate([np.asarray(one) for one in _published(result)["statistics"]])
    axes = new_axes(6.0, 3.2) if ax is None else ax
    reach = max(4.0, float(np.abs(values).max()))
    grid = np.linspace(-reach, reach, 400)
    axes.hist(values, bins=40, density=True, color=PRIOR, alpha=0.4, gid="statistics")
    axes.plot(grid, _density(grid, 0.0, 1.0), color=RAW, lw=1.2, label="without bias", gid="null")
    for end in (-1.96, 1.96):
        axes.axvline(end, color=RAW, lw=0.6, ls=":")
    axes.set_yticks([])
    axes.set_xlabel("t statistic of a group in one run")
    axes.legend(frameon=False, fontsize="x-small")
    return axes


def _published(result: "AuditResult") -> dict[str, Any]:
    found = details_of(result.details, EffectDetails).paper
    if found is None:
        raise InvalidParameterError('this figure needs an audit with `method="paper"`.')
    return found


def _density(x: Any, mean: float, sd: float) -> Any:
    return np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
