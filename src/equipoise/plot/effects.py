"""Accuracy of predicted effects: biases before and after correction, and how groups differ."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._typing import FloatArray
from equipoise.audits.effects.questions import EffectDetails, correction_words
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.intervals import (
    decision_legend,
    forest,
    in_lines,
    legend_below,
    lines_height,
    narrow,
    new_axes,
    new_panels,
    shown_findings,
)
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
    "label_places",
    "paper_densities",
    "paper_statistics",
    "statistics_against_null",
]

AFTER, PRIOR, RAW, DETECTED = "#767676", "#0072B2", "#444444", "#D55E00"
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#444444", "#E69F00")
MARKERS = ("o", "s", "^", "v", "D", "P", "X")
MOST_NAMED = 12
"""Groups that are named beside their point."""
MOST_NUMBERED = 20
"""Groups whose point has the number of their line."""
PANEL, PHONE_PANEL = (310.0, 230.0), (220.0, 210.0)
"""Width and height of the panel of effects in points of print, where names find their places."""
LINE, LETTER = 10.0, 5.0
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
    biases = _biases(result)
    shown = shown_findings(biases.findings, 0.0)
    names = [group_words(biases.findings[k].group, result.words) for k in shown]
    heights = [lines_height(names, beneath=True) - 0.5, 4.2]
    heights += [5.8 if narrow() else 4.4 for _ in _costs(result)[:1]]
    above, below, *last = new_panels(*heights)
    effect_forest(result, ax=above)
    _number(above, len(names))
    numbered = [biases.findings[k].group for k in shown[:MOST_NUMBERED]]
    numbers = {group: str(row) for row, group in enumerate(numbered, start=1)}
    _predictions(result, below, numbers)
    below.set_title(
        in_lines("Effect against prediction;", "numbers are those of the lines above"),
        loc="left",
        fontsize="medium",
    )
    for ax_of_prices in last:
        correction_prices(result, ax=ax_of_prices)
    return above


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
    from matplotlib.lines import Line2D

    biases = _biases(result)
    details = details_of(result.details, EffectDetails)
    rules = {entry["correction"] for entry in details.by_arm} or {details.correction}
    corrected = bool(details.remaining) and rules != {"none"}
    axes = forest(biases, ax=ax, beneath=corrected, legend=False)
    shown = [biases.findings[k] for k in shown_findings(biases.findings, 0.0)]
    more = []
    if corrected:
        _draw_remaining(biases, details, axes)
        told = " or ".join(sorted(map(correction_words, rules)))
        words = f"remains after the correction ({told}), same data"
    else:
        words = "no correction is recommended"
    if details.remaining:
        marker = {"marker": "o", "mfc": "white", "ms": 4} if corrected else {"lw": 0}
        more = [Line2D([], [], color=AFTER, label=words, gid="correction", **marker)]
    decision_legend(axes, biases, shown, more=more)
    return axes


def _number(axes: "Axes", lines: int) -> None:
    """Put a number before the name of every line."""
    names = [text for text in axes.texts if text.get_label() == "name"] or axes.get_yticklabels()
    numbered = [f"{row + 1}  {name.get_text()}" for row, name in enumerate(names[:lines])]
    if not narrow():
        rest = [name.get_text() for name in names[lines:]]
        axes.set_yticks(axes.get_yticks(), [*numbered, *rest], parse_math=False)
    for name, text in zip(names, numbered, strict=False):
        name.set_text(text)


def _draw_remaining(biases: "AuditResult", details: EffectDetails, axes: "Axes") -> None:
    from matplotlib.transforms import ScaledTranslation

    remaining = zip(details.remaining["A"], details.remaining["A_ci"], strict=True)
    after = dict(zip(details.group, remaining, strict=True))
    # In points of print: the numbers of a line stand further below it, however far lines are apart.
    down = (7.0 if narrow() else 9.0) / 72.0
    figure = axes.get_figure(root=True)
    below = axes.transData + ScaledTranslation(0.0, -down, figure.dpi_scale_trans)  # type: ignore[union-attr]
    low, high = axes.get_xlim()
    for row, k in enumerate(shown_findings(biases.findings, 0.0)):
        left = after.get(biases.findings[k].group)
        if left is None:
            continue
        estimate, bounds = left
        ends = [low if bounds[0] is None else bounds[0], high if bounds[1] is None else bounds[1]]
        low, high = min(low, *ends), max(high, *ends)
        axes.plot(
            *(ends, [row, row]),
            color=AFTER,
            lw=1.0,
            transform=below,
            gid=f"finding-{k}-after-interval",
        )
        axes.plot(
            *(estimate, row, "o"),
            color=AFTER,
            mfc="white",
            ms=4,
            transform=below,
            gid=f"finding-{k}-after",
        )
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
    named = len(details.group) <= MOST_NAMED
    names = {g: shortened(group_words(g, result.words), 24) for g in details.group if named}
    _predictions(result, axes, names)
    return axes


def _predictions(result: "AuditResult", axes: "Axes", names: dict[str, str]) -> None:
    """Draw effects against predictions, with an arrow to what a correction makes of them."""
    details = details_of(result.details, EffectDetails)
    effect, predicted = np.array(details.tau), np.array(details.tau_f)
    left = {f.group: f.estimate for f in result.findings if f.estimand.kind == "remaining"}
    corrected = [
        tau + rest if (rest := left.get(group)) is not None else value
        for group, tau, value in zip(details.group, effect, predicted, strict=True)
    ]
    ends = np.array([*predicted, *corrected])
    pad = 0.2 * (np.ptp(ends) or 0.5 * np.ptp(effect)) or 0.1
    low, high = ends.min() - pad, ends.max() + pad
    known = [end for pair in details.tau_ci for end in pair if end is not None]
    floor, top = min([*effect, *known]), max([*effect, *known])
    detected = {f.group for f in result.findings if f.decision == "detected"}
    bars = []
    for k, group in enumerate(details.group):
        bounds = details.tau_ci[k]
        bar = [floor if bounds[0] is None else bounds[0], top if bounds[1] is None else bounds[1]]
        bars.append(bar)
        # The shape repeats what the colour says.
        colour, marker = (DETECTED, "D") if group in detected else (PRIOR, "o")
        x = predicted[k]
        axes.plot([x, x], bar, color=colour, lw=1.0, gid=f"effect-{k}-interval")
        axes.plot(x, effect[k], marker, color=colour, ms=5, gid=f"effect-{k}")
        if abs(corrected[k] - x) > 1e-9 * (high - low):
            axes.annotate(
                "",
                (corrected[k], effect[k]),
                (x, effect[k]),
                arrowprops={"arrowstyle": "->", "color": AFTER, "lw": 1.2},
                gid=f"effect-{k}-correction",
            )
    width, height = PHONE_PANEL if narrow() else PANEL
    upward = np.column_stack([effect, bars])
    rise = (top - floor) or 1.0
    points = np.column_stack(
        [(predicted - low) / (high - low) * width, (upward - floor) / rise * height]
    )
    kept = [k for k, group in enumerate(details.group) if group in names]
    words = [names[details.group[k]] for k in kept]
    for k, name, place in zip(
        kept, words, label_places(points[kept], words, (width, height)), strict=True
    ):
        axes.annotate(
            *(name, (predicted[k], effect[k])),
            xytext=place,
            textcoords="offset points",
            fontsize="small",
            parse_math=False,
            gid=f"effect-{k}-name",
        )
    axes.axline((low, low), slope=1.0, color=RAW, lw=0.8, zorder=0, gid="effects-diagonal")
    axes.set_xlim(low, high)
    axes.set_ylim(floor - 0.05 * rise, top + 0.05 * rise)
    axes.set_xlabel("predicted effect of the group")
    axes.set_ylabel("effect in the group")


def label_places(
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
    axes = new_axes(8.5, 4.4) if ax is None else ax
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
            label=correction_words(entry["rule"]),
            gid=f"price-{entry['rule']}",
        )
    gap = "\n" if narrow() else " "
    axes.set_xlabel(f"error of groups that remains{gap}(root mean square)")
    axes.set_ylabel("gain of decisions" if decided else "fall of the personal squared error")
    axes.set_title(
        in_lines("What every correction brings and costs"), loc="left", fontsize="medium"
    )
    legend_below(axes, axes.get_legend_handles_labels()[0])
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
    axes.set_yticks(
        range(len(found["corrections"])), list(map(correction_words, found["corrections"]))
    )
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
            label=correction_words(rule) if rule else "",
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
