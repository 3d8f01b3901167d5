"""Whether an experiment looks like the one that was planned: shares of the arms, and balance."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.moments import CellMoments
from equipoise.stats.delta import Linearised, covariance_by_group
from equipoise.stats.effects.collapse import over_strata
from equipoise.stats.multiplicity import adjusted_p_values

__all__ = ["Balance", "SampleRatio", "balance_test", "sample_ratio_test"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRatio:
    """Whether the arms have the shares that they should have.

    Parameters
    ----------
    p_value : array of shape (G,)
        Of each group, adjusted by Holm's method; NaN where a group cannot be tested.
    share : array of shape (G,)
        Rows in the arms other than control, over all rows.
    joint_p_value : float
        That the shares are the planned ones, or are the same in every group of a stratum; NaN where
        nothing can be compared.
    """

    p_value: FloatArray
    share: FloatArray
    joint_p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Whether covariates measured before treatment are alike in both arms.

    Parameters
    ----------
    p_value : array of shape (G,)
        Of all covariates of a group together, not adjusted; NaN where a group is too small.
    largest : array of shape (G,)
        Largest absolute standardised difference.
    covariate : array of shape (G,)
        Which covariate it is.
    """

    p_value: FloatArray
    largest: FloatArray
    covariate: IntArray


def sample_ratio_test(counts: AnyArray, *, share: AnyArray | None = None) -> SampleRatio:
    """Test that no arm has lost or gained rows.

    With known shares the null hypothesis of a group is that its rows are dealt out to the arms by
    them; without, that they are dealt out in the same way in every group of a stratum.

    Parameters
    ----------
    counts : array of shape (G, S, A)
        Rows by group, stratum and arm, control first.
    share : array of shape (A,), optional
        Planned shares.

    Returns
    -------
    SampleRatio

    Examples
    --------
    A third of the treated of one group was lost.

    >>> found = sample_ratio_test([[[500, 500]], [[500, 333]]], share=[0.5, 0.5])
    >>> found.p_value.round(6).tolist()
    [1.0, 0.0]
    """
    n = np.asarray(counts, dtype=np.float64)
    if share is None:
        arms = n.sum(axis=0, keepdims=True)
        planned = np.divide(
            arms, arms.sum(axis=2, keepdims=True), out=np.zeros_like(arms), where=arms > 0
        )
    else:
        planned = np.broadcast_to(np.asarray(share, dtype=np.float64), (1, 1, n.shape[2]))
    rows = n.sum(axis=2, keepdims=True)
    expected = rows * planned
    square = np.divide((n - expected) ** 2, expected, out=np.zeros_like(n), where=expected > 0)
    by_stratum = square.sum(axis=2)
    if share is not None:
        # A group's rows in all strata have one plan.
        whole = n.sum(axis=1)
        plan = whole.sum(axis=1, keepdims=True) * planned[0]
        statistic = ((whole - plan) ** 2 / plan).sum(axis=1)
        df = np.full(len(n), n.shape[2] - 1.0)
        joint, joint_df = float(statistic.sum()), float(df.sum())
    else:
        # Of the expected counts a group itself decides its share: the rest of the stratum is
        # compared with it.
        part = np.divide(
            rows[:, :, 0],
            rows.sum(axis=0)[:, 0],
            out=np.ones(n.shape[:2]),
            where=rows.sum(axis=0)[:, 0] > 0,
        )
        alone = part >= 1.0 - 1e-12
        own = np.divide(
            by_stratum, 1.0 - part, out=np.zeros_like(by_stratum), where=~alone & (part > 0)
        )
        used = (planned > 0).sum(axis=2) - 1
        compared = ~alone & (part > 0)
        statistic = own.sum(axis=1)
        df = (compared * used).sum(axis=1).astype(np.float64)
        groups = (rows[:, :, 0] > 0).sum(axis=0)
        joint = float(by_stratum.sum())
        joint_df = float((np.maximum(groups - 1, 0) * used[0]).sum())
    p = np.where(df > 0, special.chdtrc(np.maximum(df, 1.0), statistic), np.nan)
    known = np.isfinite(p)
    adjusted = np.full(len(p), np.nan)
    if known.any():
        adjusted[known] = adjusted_p_values(p[known], "holm")
    total = n.sum(axis=(1, 2))
    return SampleRatio(
        p_value=adjusted,
        share=np.divide(
            n[:, :, 1:].sum(axis=(1, 2)), total, out=np.zeros_like(total), where=total > 0
        ),
        joint_p_value=float(special.chdtrc(joint_df, joint)) if joint_df > 0 else float("nan"),
    )


def balance_test(moments: CellMoments, *, n_strata: int = 1) -> Balance:
    r"""Test in every group that covariates have the same mean in both arms.

    Parameters
    ----------
    moments : CellMoments
        Sums of one and k covariates by (group, stratum, arm); strata without both arms are zero.
    n_strata : int, default 1
        S.

    Returns
    -------
    Balance

    Notes
    -----
    Differences are averaged over strata; their chi-square statistic is referred to
    :math:`F_{k, n - k}` as Hotelling's is.

    Examples
    --------
    >>> import numpy as np
    >>> x, t = np.tile([1.0, 2.0, 3.0], 20), np.repeat([0, 1], 30)
    >>> found = balance_test(CellMoments.from_rows(np.column_stack([x * 0 + 1, x]), t))
    >>> round(float(found.p_value[0]), 3)
    1.0
    """
    p = moments.total.shape[1]
    total = moments.total.reshape(-1, 2, p)
    rows = moments.n.reshape(-1, 2 * n_strata).sum(axis=1).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = _column(total, 0, 0) + _column(total, 1, 0)
        means = [
            [_column(total, arm, k) / _column(total, arm, 0) for arm in (1, 0)] for k in range(1, p)
        ]
        *differences, _ = over_strata([a - b for a, b in means] + [size], n_strata)
    covariance = covariance_by_group(moments, differences)
    value = np.stack([part.value for part in differences], axis=1)
    product = moments.product.reshape(len(rows), -1, p, p).sum(axis=1)
    sums = moments.total.reshape(len(rows), -1, p).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = sums[:, 1:] / sums[:, :1]
        spread = np.einsum("gkk->gk", product)[:, 1:] / product[:, 0, 0][:, None] - centre**2
        standard = np.abs(value) / np.sqrt(spread)
    moves = spread > 1e-12 * np.maximum(centre**2, 1e-300)
    standard = np.where(moves, standard, 0.0)
    p_value = np.full(len(rows), np.nan)
    for g in range(len(rows)):
        varies = moves[g]
        k = int(varies.sum())
        if k and rows[g] > 2 * k + 8:
            v = covariance[g][np.ix_(varies, varies)]
            square = float(value[g, varies] @ np.linalg.pinv(v) @ value[g, varies])
            f = square * (rows[g] - k) / (k * (rows[g] - 1.0))
            p_value[g] = special.fdtrc(k, rows[g] - k, f)
    return Balance(p_value=p_value, largest=standard.max(axis=1), covariate=standard.argmax(axis=1))


def _column(total: FloatArray, arm: int, k: int) -> Linearised:
    gradient = np.zeros_like(total)
    gradient[:, arm, k] = 1.0
    return Linearised(value=total[:, arm, k], gradient=gradient)
