"""Outcome predictions by least squares, for regression-adjusted effects."""

import numpy as np

from equipoise._checks import check_finite
from equipoise._typing import AnyArray, FloatArray
from equipoise.exceptions import DataError

__all__ = ["lin_outcomes"]


def lin_outcomes(
    outcome: AnyArray, treatment: AnyArray, group: AnyArray, covariates: AnyArray
) -> tuple[FloatArray, FloatArray]:
    """Predict the outcome without and with treatment by least squares in each (group, arm).

    Passed to `equipoise.stats.effects.errors.effect_moments` as `control_pred` and `treated_pred`
    they give Lin's regression adjustment: covariates centred in the group, one fit for each arm.

    Parameters
    ----------
    outcome, treatment, group : array of shape (n,)
        As in `effect_moments`.
    covariates : array of shape (n, k)
        Measured before treatment.

    Returns
    -------
    tuple of two arrays of shape (n,)

    Raises
    ------
    DataError
        If an arm of a group has fewer than k + 2 rows.

    Examples
    --------
    >>> y, t = [1.0, 2.0, 3.0, 2.0, 3.0, 4.0], [0, 0, 0, 1, 1, 1]
    >>> x = [[0.0], [1.0], [2.0], [0.0], [1.0], [2.0]]
    >>> mu0, mu1 = lin_outcomes(y, t, [0] * 6, x)
    >>> (mu1 - mu0).round(6).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    y = check_finite("outcome", outcome, ndim=1)
    x = check_finite("covariates", covariates, ndim=2)
    arm = np.asarray(treatment, dtype=np.int64)
    code = np.asarray(group, dtype=np.int64)
    fitted = np.empty((2, len(y)))
    for g in np.unique(code):
        member = code == g
        design = np.column_stack([np.ones(member.sum()), x[member] - x[member].mean(axis=0)])
        for a in (0, 1):
            rows = arm[member] == a
            if rows.sum() < design.shape[1] + 1:
                raise DataError(
                    f"regression adjustment on {x.shape[1]} covariates needs at least"
                    f" {design.shape[1] + 1} rows in each arm of a group; group {g} has"
                    f" {rows.sum()} in arm {a}. Use fewer covariates or merge the group."
                )
            coefficient = np.linalg.lstsq(design[rows], y[member][rows], rcond=None)[0]
            fitted[a, member] = design @ coefficient
    return fitted[0], fitted[1]
