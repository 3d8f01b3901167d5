r"""What a decision is worth to the person: benefit matrices, benefits, and their sums by group.

A benefit matrix has :math:`B_{ij}`, the benefit of the decision i for a person whose outcome is j.
The sums of relative benefits by group are what every number about an entropy index is made of.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from equipoise._checks import check_finite, check_fraction
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments, UnitMoments, transform_quantities
from equipoise.stats.binomial import clopper_pearson
from equipoise.stats.inequality.index import (
    check_benefits,
    check_order,
    entropy_index,
    kernel,
    mean_benefit,
)
from equipoise.stats.unit_sums import shared_units

__all__ = [
    "SPEICHER",
    "BenefitMoments",
    "ExactBounds",
    "check_matrix",
    "exact_bounds",
    "hard_benefits",
    "levels_of_people",
    "soft_benefits",
]

SPEICHER: FloatArray = np.array([[1.0, 0.0], [2.0, 1.0]])
"""b = yhat - y + 1, the choice of AIF360, Clarify and jurity: a false negative gets nothing."""
SPEICHER.setflags(write=False)


def check_matrix(matrix: object, *, size: int | None = None) -> FloatArray:
    """Return a square matrix of benefits; raise unless all are at least zero and one is positive.

    Examples
    --------
    >>> check_matrix([[1, 0], [2, 1]]).shape
    (2, 2)
    """
    b = check_finite("benefits", matrix)
    expected = "square" if size is None else f"{size} x {size}"
    if b.ndim != 2 or b.shape[0] != b.shape[1] or b.shape[0] < 2 or size not in {None, len(b)}:
        raise InvalidParameterError(
            f"a benefit matrix must be {expected}, one row for each decision and one column for"
            f" each outcome; got shape {b.shape}."
        )
    if b.min() < 0.0 or b.max() == 0.0:
        raise InvalidParameterError(
            "a benefit matrix must have values of at least zero and one that is positive; got"
            f" {b.tolist()}."
        )
    return b


def hard_benefits(y_true: object, y_pred: object, *, matrix: object = SPEICHER) -> FloatArray:
    """Return the benefit of each decision.

    Parameters
    ----------
    y_true, y_pred : array of shape (n,)
        Outcome and decision, 0 to k - 1.
    matrix : array of shape (k, k), optional
        ``matrix[y_pred][y_true]``; by default ``y_pred - y_true + 1``.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> hard_benefits([0, 0, 1, 1], [0, 1, 0, 1]).tolist()
    [1.0, 2.0, 0.0, 1.0]
    """
    b = check_matrix(matrix)
    return np.asarray(b[_labels("y_pred", y_pred, len(b)), _labels("y_true", y_true, len(b))])


def soft_benefits(y_true: object, y_score: object, *, matrix: object = SPEICHER) -> FloatArray:
    r"""Return the expected benefit when decision 1 is drawn with probability `y_score`.

    Parameters
    ----------
    y_true : array of shape (n,)
        Outcome, 0 or 1.
    y_score : array of shape (n,)
        Probability of decision 1.
    matrix : array of shape (2, 2), optional
        Benefits.

    Returns
    -------
    array of shape (n,)
        :math:`(1-s)B_{0y} + sB_{1y}`.

    Notes
    -----
    Averaging over the draw comes before the index, so that inequality is at most that of the drawn
    decisions. The caps of `equipoise.design.benefit_design` hold for hard benefits only.

    Examples
    --------
    >>> soft_benefits([0, 1], [0.25, 0.25]).tolist()
    [1.25, 0.25]
    """
    b = check_matrix(matrix, size=2)
    y = _labels("y_true", y_true, 2)
    s = check_finite("y_score", y_score)
    if s.min(initial=0.0) < 0.0 or s.max(initial=1.0) > 1.0:
        raise InvalidParameterError(
            "soft benefits read `y_score` as the probability of decision 1, in [0, 1]; got values"
            f" from {s.min():g} to {s.max():g}."
        )
    return np.asarray((1.0 - s) * b[0, y] + s * b[1, y])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactBounds:
    """Bounds on the index that need no large-sample argument.

    Parameters
    ----------
    low, high : float
        Smallest and largest index over the box.
    base_rate, fpr, fnr : tuple of float
        Clopper-Pearson intervals that span the box, each at level 1 - alpha/3.
    """

    low: float
    high: float
    base_rate: tuple[float, float]
    fpr: tuple[float, float]
    fnr: tuple[float, float]


def exact_bounds(
    table: object, *, matrix: object = SPEICHER, order: float = 1.0, confidence_level: float = 0.95
) -> ExactBounds:
    r"""Bound the index of a 2 x 2 table when a benefit level has only a few people.

    Parameters
    ----------
    table : array of shape (2, 2)
        Counts ``table[y_pred][y_true]`` of independent rows.
    matrix : array of shape (2, 2), optional
        Benefits ``matrix[y_pred][y_true]``.
    order : float, default 1
        Order of the index.
    confidence_level : float, default 0.95
        Joint level of the box, and so of the bounds.

    Returns
    -------
    ExactBounds

    Notes
    -----
    The index is quasi-concave in the four probabilities, which are affine in each of base rate,
    false positive rate and false negative rate; its minimum over the box is therefore at one of
    eight corners. The maximum is searched from a grid. Conservative: the log-Wald interval is the
    better one from about ten people per benefit level.

    Examples
    --------
    One false positive in 100: how small or large can the index be?

    >>> bounds = exact_bounds([[60, 19], [1, 20]], matrix=[[1, 1], [0.1, 0.9]], order=0.5)
    >>> bounds.low < 0.002, bounds.high > 0.02
    (True, True)
    """
    # Takes longer to import than most audits to run.
    from scipy import optimize

    counts = check_finite("table", table)
    if counts.shape != (2, 2) or counts.min() < 0.0 or counts.sum(axis=0).min() == 0.0:
        raise InvalidParameterError(
            "`table` must be a 2 x 2 array of counts [y_pred][y_true] with people of both"
            f" outcomes; got {counts.tolist()}."
        )
    a, b = check_order(order), check_matrix(matrix, size=2)
    tail = (1.0 - check_fraction("confidence_level", confidence_level)) / 3.0
    n0, n1 = counts.sum(axis=0)
    events, trials = np.rint([[n1, counts[1, 0], counts[0, 1]], [n0 + n1, n0, n1]])
    ends = clopper_pearson(events, trials, tail=tail / 2.0)
    box = [(float(low), float(high)) for low, high in zip(*ends, strict=True)]

    def index(at: FloatArray) -> float:
        p, u, v = at
        mass = np.array([[(1 - p) * (1 - u), p * v], [(1 - p) * u, p * (1 - v)]])
        return entropy_index(b.ravel(), order=a, weight=mass.ravel())

    low = min(index(np.array(corner)) for corner in product(*box))
    grid = product(*(np.linspace(low_, high_, 5) for low_, high_ in box))
    start = max((np.array(point) for point in grid), key=index)
    best = optimize.minimize(lambda at: -index(at), start, bounds=box, method="L-BFGS-B")
    high = max(index(start), -float(best.fun))
    return ExactBounds(low=low, high=high, base_rate=box[0], fpr=box[1], fnr=box[2])


def _labels(name: str, values: object, size: int) -> IntArray:
    labels = check_finite(name, values, ndim=1)
    codes = labels.astype(np.int64)
    outside = (codes != labels) | (codes < 0) | (codes >= size)
    if outside.any():
        found = sorted({f"{v:g}" for v in labels[outside]})[:5]
        raise InvalidParameterError(
            f"`{name}` must hold labels 0 to {size - 1}, one for each row of the benefit matrix;"
            f" found {', '.join(found)}. Pass a larger matrix or recode the labels."
        )
    return codes


def levels_of_people(levels: FloatArray, size: FloatArray) -> FloatArray:
    """Return benefit levels with those that nobody has replaced by one that most people have.

    A level without people must not forbid an order, nor make a power of it infinite.

    Examples
    --------
    >>> levels_of_people(np.array([1.0, 0.0, 2.0]), np.array([5.0, 0.0, 1.0])).tolist()
    [1.0, 1.0, 2.0]
    """
    return np.where(size > 0.0, levels, levels[np.argmax(size)])


@dataclass(frozen=True, slots=True, kw_only=True)
class BenefitMoments:
    r"""Sums of :math:`(1, x, \tilde f_a(x))` by group, x = benefit / mean benefit.

    Parameters
    ----------
    order : float
        a.
    mean : float
        Mean benefit, in the unit of the data.
    moments : CellMoments
        One cell for each group, three quantities.
    means : CellMoments, optional
        Sums of (benefit, 1) up to the third order in the same cells, for the test of equal means.
    """

    order: float
    mean: float
    moments: CellMoments
    means: CellMoments | None = None

    @classmethod
    def from_rows(
        cls,
        benefits: object,
        group: object = None,
        *,
        order: float = 1.0,
        n_groups: int | None = None,
        cluster: AnyArray | None = None,
        weight: AnyArray | None = None,
        count: AnyArray | None = None,
    ) -> "BenefitMoments":
        """Sum rows in memory.

        Parameters
        ----------
        benefits : array of shape (n,)
            Benefit of each row.
        group : array of shape (n,), optional
            Group of each row, 0 to G - 1; by default one group.
        order : float, default 1
            Order of the index.
        n_groups : int, optional
            G.
        cluster, weight, count : array of shape (n,), optional
            Unit of each row; its sampling weight; how many identical rows it stands for.

        Returns
        -------
        BenefitMoments
        """
        a = check_order(order)
        b = check_benefits(benefits, a)
        code = np.zeros(len(b), dtype=np.int64) if group is None else np.asarray(group)
        ones = np.ones(len(b))
        omega = ones if weight is None else np.asarray(weight, dtype=np.float64)
        copies = ones if count is None else np.asarray(count, dtype=np.float64)
        mean = mean_benefit(b, omega * copies)
        x = b / mean
        options: dict[str, Any] = {
            "n_cells": n_groups,
            "cluster": cluster,
            "weight": weight,
            "count": count,
        }
        moments = CellMoments.from_rows(np.stack([ones, x, kernel(x, a)], axis=1), code, **options)
        means = CellMoments.from_rows(np.stack([b, ones], axis=1), code, order=3, **options)
        if cluster is not None and means.cross is not None:
            every, times = np.eye(len(means.n)), omega * copies
            inside = np.ones(len(means.n), dtype=np.bool_)
            shared = shared_units(b * times, times, cluster, code, every, inside)
            means = replace(means, shared=shared)
        return cls(order=a, mean=mean, moments=moments, means=means)

    @classmethod
    def from_levels(
        cls,
        levels: object,
        indicators: CellMoments,
        *,
        order: float = 1.0,
        means: CellMoments | None = None,
    ) -> "BenefitMoments":
        """Take counts of people by benefit level, such as the four outcomes of a 2 x 2 matrix.

        Parameters
        ----------
        levels : array of shape (L,)
            Benefit of each level.
        indicators : CellMoments
            One cell for each group; quantity l is the indicator of level l.
        order : float, default 1
            Order of the index.
        means : CellMoments, optional
            As in the class; not needed where rows are counted alike and one by one.

        Returns
        -------
        BenefitMoments
        """
        a = check_order(order)
        size = indicators.total.sum(axis=0)
        b = levels_of_people(check_finite("levels", levels, ndim=1), size)
        check_benefits(b, a)
        mean = mean_benefit(b, size)
        x = b / mean
        change = np.stack([np.ones(len(x)), x, kernel(x, a)])
        if means is None and indicators.cross is None:
            means = _counted_means(b, indicators)
        return cls(
            order=a, mean=mean, moments=transform_quantities(indicators, change), means=means
        )

    @classmethod
    def from_powers(
        cls, powers: CellMoments, *, order: float = 1.0, means: CellMoments | None = None
    ) -> "BenefitMoments":
        """Take sums of benefits and of their powers, as a database gives them in one scan.

        Parameters
        ----------
        powers : CellMoments
            One cell for each group; the quantities are 1, b and `b ** order` (order 0: `ln b`,
            order 1: `b ln b`).
        order : float, default 1
            Order of the index. Within 1e-4 of 0 or 1, but not equal, digits are lost.
        means : CellMoments, optional
            As in the class.

        Returns
        -------
        BenefitMoments
        """
        a = check_order(order)
        whole = powers.total.sum(axis=0)
        mean = mean_benefit(whole[1:2] / whole[0], np.ones(1))
        if not np.isfinite(powers.product).all():
            raise InvalidParameterError(
                f"benefits to the power {a:g} overflow. Pass an `order` closer to zero, or benefits"
                " in a larger unit."
            )
        change = np.zeros((3, 3))
        change[0, 0], change[1, 1] = 1.0, 1.0 / mean
        if a == 0.0:
            change[2] = [np.log(mean) - 1.0, 1.0 / mean, -1.0]
        elif a == 1.0:
            change[2] = [1.0, -(1.0 + np.log(mean)) / mean, 1.0 / mean]
        else:
            change[2] = np.array([a - 1.0, -a / mean, mean**-a]) / (a * (a - 1.0))
        return cls(order=a, mean=mean, moments=transform_quantities(powers, change), means=means)


def _counted_means(levels: FloatArray, indicators: CellMoments) -> CellMoments | None:
    """Return the sums of (benefit, 1) from counts of independent rows; None where they are not."""
    count = indicators.total
    # A row has one level, and its indicator is its own square: products are counts.
    squares = indicators.product - np.einsum("gl,lk->glk", count, np.eye(count.shape[1]))
    if np.abs(squares).max(initial=0.0) > 0.0:
        return None
    pair = np.stack([levels, np.ones(len(levels))])
    return replace(
        indicators,
        total=count @ pair.T,
        product=np.einsum("gl,al,bl->gab", count, pair, pair),
        sums=np.empty((0, 0)),
        units=UnitMoments(
            n=count @ (pair != 0.0).T.astype(np.float64),
            third=np.einsum("gl,al,bl,cl->gabc", count, pair, pair, pair),
            fourth=count @ (pair**4).T,
            fifth=count @ (pair**5).T,
        ),
    )
