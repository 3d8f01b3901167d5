r"""Smooth functions of sums, with their gradients: the delta method written once.

A `Linearised` quantity has one value for each group and its gradient with respect to the sums of
that group's cells. Arithmetic carries the gradients along, so a formula reads like the paper's and
its influence function is exact: a row with quantities q in cell c contributes
:math:`\nabla_c' q`.
"""

from dataclasses import dataclass

import numpy as np

from equipoise._typing import FloatArray, IntArray
from equipoise.moments import CellMoments

__all__ = ["Linearised", "covariance_by_group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linearised:
    """A smooth function of the sums of each group.

    Parameters
    ----------
    value : array of shape (G,)
        The function at the observed sums.
    gradient : array of shape (G, C, p)
        Its derivative with respect to the p sums of each of the group's C cells.
    """

    value: FloatArray
    gradient: FloatArray

    def __add__(self, other: "Linearised | float") -> "Linearised":
        if isinstance(other, Linearised):
            return Linearised(
                value=self.value + other.value, gradient=self.gradient + other.gradient
            )
        return Linearised(value=self.value + other, gradient=self.gradient)

    def __sub__(self, other: "Linearised | float") -> "Linearised":
        return self + other * -1.0

    def __mul__(self, other: "Linearised | float") -> "Linearised":
        if isinstance(other, Linearised):
            return Linearised(
                value=self.value * other.value,
                gradient=_scale(self.value, other.gradient) + _scale(other.value, self.gradient),
            )
        return Linearised(value=self.value * other, gradient=self.gradient * other)

    def __truediv__(self, other: "Linearised") -> "Linearised":
        value = self.value / other.value
        return Linearised(
            value=value,
            gradient=_scale(1.0 / other.value, self.gradient - _scale(value, other.gradient)),
        )

    def take(self, group: IntArray) -> "Linearised":
        """Return the quantity for some of the groups."""
        return Linearised(value=self.value[group], gradient=self.gradient[group])


def covariance_by_group(moments: CellMoments, functions: list[Linearised]) -> FloatArray:
    """Return the covariance matrix of several functions within each group.

    Parameters
    ----------
    moments : CellMoments
        Sums over cells, group-major: cell ``g * C + c`` is cell c of group g.
    functions : list of m Linearised
        Functions of the sums of each group.

    Returns
    -------
    array of shape (G, m, m)
        Sums over independent units of products of influence values.
    """
    gradient = np.stack([function.gradient for function in functions], axis=1)
    n_groups, _, n_cells, p = gradient.shape
    product = moments.product.reshape(n_groups, n_cells, p, p)
    covariance: FloatArray = np.einsum(
        "gmcp,gcpq,gkcq->gmk", gradient, product, gradient, optimize=True
    )
    if moments.cross is not None:
        first, second = moments.cross.first, moments.cross.second
        own = first // n_cells == second // n_cells
        g = first[own] // n_cells
        left = gradient[g, :, first[own] % n_cells]
        right = gradient[g, :, second[own] % n_cells]
        pair = np.einsum("emp,epq,ekq->emk", left, moments.cross.product[own], right)
        np.add.at(covariance, g, pair + pair.transpose(0, 2, 1))
    diagonal = np.einsum("gmm->gm", covariance)
    # A constant has variance zero up to rounding, on either side.
    np.maximum(diagonal, 0.0, out=diagonal)
    return covariance


def _scale(factor: FloatArray, gradient: FloatArray) -> FloatArray:
    return factor[:, None, None] * gradient
