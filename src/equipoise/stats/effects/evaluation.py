r"""Evaluation of corrections by what they leave in predictions for new rows.

Algorithm 1 of [1]_: estimate errors and corrections on one half of the data, measure what remains
on the other, swap, repeat with new halves. Here the rows were put into random blocks once and for
all, and a half is a set of blocks: its sums are sums of block sums, so that no repeat reads a row.

References
----------
.. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel, F. von Wangenheim, "Detecting and
   Mitigating Algorithmic Bias in Treatment Effect Estimation".
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_integer, check_option, check_rng
from equipoise._typing import (
    AnyArray,
    BoolArray,
    Correction,
    EffectMeasure,
    FloatArray,
    IntArray,
    Rng,
)
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments, CrossMoments
from equipoise.stats.effects.bias import bias_estimates
from equipoise.stats.effects.corrections import CORRECTIONS, effect_correction
from equipoise.stats.effects.errors import GroupErrors, group_errors

__all__ = ["EffectEvaluation", "evaluate_corrections", "merge_blocks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectEvaluation:
    """What each correction leaves on data that it has not seen.

    Parameters
    ----------
    corrections : tuple of str
        The rules, in the order of the arrays.
    error_mean_square, bias_mean_square : array of shape (R,)
        Estimates without sampling noise of the mean over groups of :math:`(b_g - c_g)^2`, and of
        the same for the bias against the rest. Can be negative when nothing remains.
    error_spread : array of shape (R,)
        Standard deviation of `error_mean_square` between repeats.
    raw_mean_square : array of shape (R,)
        Mean of the squared estimates, sampling noise included.
    rejected : array of shape (R,)
        Share of groups whose remaining error is tested non-zero at `alpha`.
    n_repeats, n_groups : int
        Random halvings, each used both ways; groups that every half could test.
    recommended : str
        The rule with the smallest `error_mean_square`.
    """

    corrections: tuple[str, ...]
    error_mean_square: FloatArray
    bias_mean_square: FloatArray
    error_spread: FloatArray
    raw_mean_square: FloatArray
    rejected: FloatArray
    n_repeats: int
    n_groups: int
    recommended: str


def merge_blocks(
    moments: CellMoments, chosen: AnyArray, *, n_blocks: int, halves: AnyArray | None = None
) -> CellMoments:
    """Add up the sums of some blocks.

    Parameters
    ----------
    moments : CellMoments
        Sums by (block, group, arm), block-major; every unit lies in one block.
    chosen : array of shape (n_blocks,), bool
        Blocks to add up.
    n_blocks : int
        Blocks in all.
    halves : array of shape (n_blocks,), optional
        Half, 0 or 1, of each block; the result then has cells (group, half, arm).

    Returns
    -------
    CellMoments
        Sums by (group, arm).

    Examples
    --------
    >>> import numpy as np
    >>> rows = CellMoments.from_rows(np.ones((4, 1)), [0, 1, 2, 3])
    >>> merge_blocks(rows, np.array([True, True]), n_blocks=2).n.tolist()
    [2, 2]
    """
    size = len(moments.n) // n_blocks
    keep: BoolArray = np.asarray(chosen, dtype=bool)
    half = np.zeros(n_blocks, dtype=np.int64) if halves is None else np.asarray(halves)
    n_halves = 1 if halves is None else 2

    def add(values: AnyArray) -> FloatArray:
        blocks = values.reshape(n_blocks, size // 2, 2, *values.shape[1:])
        parts = [blocks[keep & (half == h)].sum(axis=0) for h in range(n_halves)]
        return np.stack(parts, axis=1).reshape(n_halves * size, *values.shape[1:])

    def target(cell: IntArray) -> IntArray:
        group, arm = cell % size // 2, cell % 2
        where: IntArray = (group * n_halves + half[cell // size]) * 2 + arm
        return where

    cross = None
    if moments.cross is not None:
        pair = moments.cross
        inside = np.flatnonzero(keep[pair.first // size])
        cross = CrossMoments(
            first=target(pair.first[inside]),
            second=target(pair.second[inside]),
            product=pair.product[inside],
        )
    n = add(moments.n).round().astype(np.int64)
    return CellMoments(
        n=n,
        total=add(moments.total),
        product=add(moments.product),
        n_units=int(n.sum()),
        cross=cross,
    )


def evaluate_corrections(
    moments: CellMoments,
    *,
    n_blocks: int,
    measure: EffectMeasure = "relative",
    collapse: str = "control",
    corrections: tuple[Correction, ...] | None = None,
    n_repeats: int = 10,
    alpha: float = 0.05,
    arm_ratio: float | None = None,
    rng: Rng = None,
    progress: Callable[[int, int], None] | None = None,
) -> EffectEvaluation:
    r"""Compare corrections by what they leave on held-out halves, split and swap.

    Parameters
    ----------
    moments : CellMoments
        Sums of `effect_quantities` by (block, group, arm), block-major; rows (units, when units
        repeat) are in random blocks.
    n_blocks : int
        Number of blocks, even.
    measure, collapse, arm_ratio
        As in `equipoise.stats.effects.errors.group_errors`.
    corrections : tuple of str, optional
        Rules to compare; by default all, "npmle" from 50 groups only.
    n_repeats : int, default 10
        Random halvings.
    alpha : float, default 0.05
        Level of "mean_if_detected" and of `rejected`.
    rng : Generator, int or None
        Chooses the halves.
    progress : callable, optional
        Called with (done, all) after each half.

    Returns
    -------
    EffectEvaluation

    Raises
    ------
    DataError
        If fewer than two groups can be tested in every half.

    Notes
    -----
    The remaining mean square is estimated by the mean of
    :math:`(\tilde B_g - c_g)^2 - \tilde s_g^2` with :math:`\tilde B_g` from the held-out half; the
    raw mean square is mostly noise.
    *Deviations from* [1]_: exact variances instead of 50 bootstrap draws; no second split into
    prediction and estimation sets; each group of the rest is corrected by its own amount.

    References
    ----------
    .. [1] Persson et al., see the module.

    Examples
    --------
    Predictions are right for all six groups. Should they be corrected?

    >>> import numpy as np
    >>> from equipoise.stats.effects.errors import effect_moments
    >>> rng = np.random.default_rng(1)
    >>> g, t, block = (rng.integers(k, size=60_000) for k in (6, 2, 8))
    >>> y = rng.random(60_000) < 0.1 * (1 + 0.2 * t)
    >>> sums = effect_moments(y, t, np.full(60_000, 1.2), block * 6 + g, n_groups=48)
    >>> found = evaluate_corrections(sums, n_blocks=8, corrections=("none", "mean", "eb"))
    >>> bool(found.error_mean_square[1] > found.error_mean_square[0])
    True

    No: subtracting the estimates would add their noise.
    """
    if check_integer("n_blocks", n_blocks, low=2) % 2:
        raise InvalidParameterError(f"`n_blocks` must be even; got {n_blocks}.")
    check_integer("n_repeats", n_repeats, low=1)
    level = check_fraction("alpha", alpha)
    generator = check_rng(rng)
    n_groups = len(moments.n) // n_blocks // 2
    rules = corrections or tuple(c for c in CORRECTIONS if c != "npmle" or n_groups >= 50)
    for rule in rules:
        check_option("corrections", rule, Correction)
    errors: list[GroupErrors] = []
    for _ in range(n_repeats):
        first = np.zeros(n_blocks, dtype=bool)
        first[generator.permutation(n_blocks)[: n_blocks // 2]] = True
        errors += [
            group_errors(
                merge_blocks(moments, half, n_blocks=n_blocks),
                measure=measure,
                collapse=collapse,
                arm_ratio=arm_ratio,
            )
            for half in (first, ~first)
        ]
    everywhere = _tested_everywhere(errors, n_groups)
    parts = np.empty((len(errors), len(rules), 4))
    for k in range(len(errors)):
        parts[k] = _remaining(errors[k], errors[k ^ 1], everywhere, rules, level)
        if progress is not None:
            progress(k + 1, len(errors))
    by_repeat = parts.reshape(n_repeats, 2, len(rules), 4).mean(axis=1)
    means = by_repeat.mean(axis=0)
    return EffectEvaluation(
        corrections=tuple(rules),
        error_mean_square=means[:, 0],
        bias_mean_square=means[:, 1],
        error_spread=by_repeat[:, :, 0].std(axis=0),
        raw_mean_square=means[:, 2],
        rejected=means[:, 3],
        n_repeats=n_repeats,
        n_groups=int(everywhere.sum()),
        recommended=rules[int(np.argmin(means[:, 0]))],
    )


def _tested_everywhere(errors: list[GroupErrors], n_groups: int) -> BoolArray:
    everywhere = np.ones(n_groups, dtype=bool)
    for half in errors:
        everywhere &= np.isin(np.arange(n_groups), half.tested)
    if everywhere.sum() < 2:
        raise DataError(
            f"the evaluation needs at least two groups that every half can test; {everywhere.sum()}"
            " remain. Merge groups."
        )
    return everywhere


def _remaining(
    detection: GroupErrors,
    held_out: GroupErrors,
    everywhere: BoolArray,
    rules: tuple[Correction, ...],
    alpha: float,
) -> FloatArray:
    """Return for each rule: mean squares of error and bias, raw mean square, share rejected."""
    learn, check = everywhere[detection.tested], everywhere[held_out.tested]
    new, se = held_out.error[check], held_out.error_se[check]
    bias, bias_se = bias_estimates(held_out)
    weight = (held_out.weight.value * held_out.denominator.value)[held_out.tested][check]
    everyone = float((held_out.weight.value * held_out.denominator.value).sum())
    critical = -float(special.ndtri(alpha / 2))
    out = np.empty((len(rules), 4))
    for k, rule in enumerate(rules):
        c = effect_correction(
            detection.error[learn], detection.error_se[learn], method=rule, alpha=alpha
        ).amount
        remaining = new - c
        # The rest is corrected group by group; its error is the outcome-weighted mean.
        rest_correction = ((weight * c).sum() - weight * c) / (everyone - weight)
        remaining_bias = bias[check] - c + rest_correction
        out[k] = (
            np.mean(remaining**2 - se**2),
            np.mean(remaining_bias**2 - bias_se[check] ** 2),
            np.mean(remaining**2),
            np.mean(np.abs(remaining / se) > critical),
        )
    return out
