"""Products of the quantities of a unit: as expressions of the engine, by name, and as arrays."""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations_with_replacement, permutations
from operator import mul
from typing import NamedTuple

import narwhals as nw
import numpy as np

from equipoise._typing import FloatArray
from equipoise.moments import UnitMoments

__all__ = ["Term", "higher_moments", "mean_terms", "product_terms", "symmetric_products"]


class Term(NamedTuple):
    """A number of each unit, and how many quantities are multiplied in it."""

    value: nw.Expr
    degree: int


def _name(names: Sequence[str]) -> str:
    return "*".join(sorted(names))


def product_terms(names: Sequence[str], *, higher: bool, powers: Sequence[str]) -> dict[str, Term]:
    """Return the products of quantities that `CellMoments` sums.

    Parameters
    ----------
    names : sequence of str
        Columns of the quantities.
    higher : bool
        Whether moments of higher order are wanted too.
    powers : sequence of str
        Those of which fourth and fifth powers and units are wanted.

    Returns
    -------
    dict of Term
        Degree 0 says whether a quantity is other than zero.
    """
    chosen: list[tuple[str, ...]] = [*combinations_with_replacement(sorted(names), 2)]
    terms = {}
    if higher:
        chosen += combinations_with_replacement(sorted(names), 3)
        chosen += [(name,) * degree for degree in (4, 5) for name in powers]
        terms = {
            f"{name}!=0": Term(nw.when(nw.col(name) != 0.0).then(1.0).otherwise(0.0), 0)
            for name in powers
        }
    return {
        _name(factors): Term(reduce(mul, map(nw.col, factors)), len(factors)) for factors in chosen
    } | terms


def symmetric_products(
    added: Mapping[str, FloatArray], names: Sequence[str], size: int
) -> FloatArray:
    """Return the sums of products of two quantities as matrices, one for each of `size` cells."""
    p = len(names)
    product = np.zeros((size, p, p))
    for i, j in combinations_with_replacement(range(p), 2) if added else ():
        product[:, i, j] = product[:, j, i] = added[_name((names[i], names[j]))]
    return product


def higher_moments(added: Mapping[str, FloatArray], names: Sequence[str], size: int) -> UnitMoments:
    """Return the sums of higher order; powers that were not asked for are zero."""
    p = len(names)
    nothing = np.zeros(size)
    third = np.empty((size, p, p, p))
    for chosen in combinations_with_replacement(range(p), 3):
        for i, j, k in set(permutations(chosen)):
            third[:, i, j, k] = added[_name([names[q] for q in chosen])]
    power = {
        degree: np.array([added.get(_name((name,) * degree), nothing) for name in names]).T
        for degree in (4, 5)
    }
    return UnitMoments(
        n=np.array([added.get(f"{name}!=0", nothing) for name in names]).T,
        third=third,
        fourth=power[4],
        fifth=power[5],
    )


def mean_terms(u: nw.Expr, w: nw.Expr) -> dict[str, nw.Expr]:
    """Return the products of the totals of a unit that `equipoise.moments.MONOMIALS` names."""
    ww, uu = w * w, u * u
    return {
        "n": nw.when(w != 0.0).then(1.0).otherwise(0.0),
        "w": w,
        "w2": ww,
        "w3": ww * w,
        "w4": ww * ww,
        "w5": ww * ww * w,
        "u": u,
        "uu": uu,
        "uw": u * w,
        "uuu": uu * u,
        "uuw": uu * w,
        "uww": u * ww,
    }
