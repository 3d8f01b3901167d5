r"""One number for each row whose mean over any group of rows is their effect.

.. math:: \Gamma = \mu_1 - \mu_0 + \frac{T (Y - \mu_1)}{e} - \frac{(1 - T)(Y - \mu_0)}{1 - e}

is doubly robust: its mean is the effect if the chances of treatment e are right, whatever the
outcome models. In an experiment e is the share of treated rows of a (group, stratum), and the means
of its arms are the models, or predictions by least squares are.
"""

from dataclasses import dataclass

import numpy as np

from equipoise._checks import check_finite
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.exceptions import DataError
from equipoise.stats.rows import check_lengths

__all__ = [
    "EffectScores",
    "effect_scores",
    "lin_outcomes",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EffectScores:
    """Scores of rows, and which rows have one.

    Parameters
    ----------
    score : array of shape (n,)
        Doubly robust scores; zero where there is none.
    usable : array of bool of shape (n,)
        Rows whose (group, stratum) has both arms.
    cell : array of int of shape (n,)
        (Group, stratum).
    mass : array of shape (n,)
        Weight times count.
    excess : array of shape (n,)
        Whether treated, less the share of treated rows of the cell; zero where chances are known.
    pull : array of shape (n,)
        By how much a larger share would lower the score.
    """

    score: FloatArray
    usable: BoolArray
    cell: IntArray
    mass: FloatArray
    excess: FloatArray
    pull: FloatArray

    def __getitem__(self, rows: AnyArray) -> "EffectScores":
        """Keep some of the rows."""
        return EffectScores(
            score=self.score[rows],
            usable=self.usable[rows],
            cell=self.cell[rows],
            mass=self.mass[rows],
            excess=self.excess[rows],
            pull=self.pull[rows],
        )

    def share_influence(self, factor: FloatArray) -> FloatArray:
        r"""Return what estimated shares add to the influence of a row on a weighted sum of scores.

        Parameters
        ----------
        factor : array of shape (n,)
            a in :math:`\sum_i m_i a_i \Gamma_i`, m the masses.

        Returns
        -------
        array of shape (n,)
            Of a row of mass one.
        """
        size = int(self.cell.max(initial=-1)) + 1
        whole = np.bincount(self.cell, self.mass, minlength=size)
        pull = np.bincount(self.cell, self.mass * factor * self.pull, minlength=size)
        slope = np.divide(pull, whole, where=whole > 0.0, out=np.zeros(size))
        return np.asarray(-self.excess * slope[self.cell])


def effect_scores(
    outcome: AnyArray,
    treated: AnyArray,
    cell: AnyArray,
    *,
    mass: AnyArray | None = None,
    propensity: AnyArray | None = None,
) -> EffectScores:
    """Return the doubly robust score of every row.

    Parameters
    ----------
    outcome : array of shape (n,)
        Response.
    treated : array of bool of shape (n,)
        Arm.
    cell : array of int of shape (n,)
        (Group, stratum) of a row, within which treatment was assigned.
    mass : array of shape (n,), optional
        Weight times count.
    propensity : array of shape (n,), optional
        Known chances of treatment; by default the share of treated rows of the cell.

    Returns
    -------
    EffectScores

    Examples
    --------
    The mean score of a cell is the difference of its arm means.

    >>> import numpy as np
    >>> y, t = np.array([1.0, 2.0, 3.0, 6.0, 6.0]), np.array([0, 0, 0, 1, 1], dtype=bool)
    >>> float(effect_scores(y, t, np.zeros(5, dtype=int)).score.mean().round(9))
    4.0
    """
    check_lengths(outcome=outcome, treated=treated, cell=cell, mass=mass, propensity=propensity)
    y, t = np.asarray(outcome, np.float64), np.asarray(treated, np.bool_)
    code = np.asarray(cell, np.int64)
    w = np.ones(len(y)) if mass is None else np.asarray(mass, np.float64)
    size = int(code.max(initial=-1)) + 1

    def total(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(code, values, minlength=size), dtype=np.float64)

    n1, n0 = total(w * t), total(w * ~t)
    both = (n1 > 0.0) & (n0 > 0.0)
    usable = both[code]
    with np.errstate(divide="ignore", invalid="ignore"):
        mu1, mu0 = total(w * t * y) / n1, total(w * ~t * y) / n0
        share = (n1 / (n1 + n0))[code]
        e = share if propensity is None else np.asarray(propensity, np.float64)
        chance = np.where(t, e, 1.0 - e)
        residual = y - np.where(t, mu1[code], mu0[code])
        score = mu1[code] - mu0[code] + np.where(t, 1.0, -1.0) * residual / chance
        pull = residual / chance**2
    return EffectScores(
        score=np.where(usable, score, 0.0),
        usable=usable,
        cell=code,
        mass=w,
        excess=np.where(usable, t - share, 0.0) if propensity is None else np.zeros(len(y)),
        pull=np.where(usable, pull, 0.0),
    )


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
