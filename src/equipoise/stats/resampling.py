r"""Bootstrap sums without resampling rows.

A bootstrap sample of n units matters to a sum only through how often each *distinct* unit occurs,
and the counts are multinomial. Units whose quantities are all zero change nothing and are left
out. What remains is drawn in one of three ways that agree in law or in the limit:

* ``"cells"``: multinomial counts of the distinct units (exact);
* ``"rows"``: a binomial number of draws among the units that matter, then counted (exact; cheaper
  when nearly every unit is distinct);
* ``"gaussian"``: the normal law with the same mean and covariance (the limit; for sums over so many
  distinct units that exact counts would take minutes).
"""

from dataclasses import dataclass

import numpy as np

from equipoise._checks import check_integer, check_rng
from equipoise._typing import AnyArray, FloatArray, IntArray, Rng
from equipoise.exceptions import InvalidParameterError

__all__ = [
    "DistinctRows",
    "ResampledSums",
    "bootstrap_sums",
    "distinct_rows",
    "integer_levels",
    "without_last_digits",
]

MAX_CELLS = 5_000
MAX_DRAWS = 1_000_000_000
CHUNK = 4_000_000
# A binomial variate costs about as much as six index draws.
BINOMIAL_COST = 6
WIDEST_CODE = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctRows:
    """The distinct rows of a matrix, without the row of zeros, in lexicographic order.

    Parameters
    ----------
    values : array of shape (K, p)
        Distinct rows.
    count : array of shape (K,)
        How often each occurs.
    n : int
        Rows in all, those of zeros included.
    """

    values: FloatArray
    count: IntArray
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResampledSums:
    """Sums over bootstrap samples, and the law they were drawn from.

    Parameters
    ----------
    sums : array of shape (n_resamples, q)
        One row for each bootstrap sample.
    law : str
        ``"cells"``, ``"rows"`` or ``"gaussian"``.
    """

    sums: FloatArray
    law: str


def distinct_rows(values: AnyArray, count: AnyArray | None = None) -> DistinctRows:
    """Return the distinct rows of `values` and how often each occurs.

    Rows are compared exactly, by integer codes built column by column: hashing floating-point rows
    could merge two that differ.

    Parameters
    ----------
    values : array of shape (n, p)
        Any finite numbers.
    count : array of shape (n,), optional
        How many identical rows a row stands for.

    Returns
    -------
    DistinctRows

    Examples
    --------
    How many different rows matter to the sum of these four?

    >>> rows = distinct_rows([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [0.0, 3.0]])
    >>> rows.values.tolist(), rows.count.tolist(), rows.n
    ([[0.0, 3.0], [1.0, 2.0]], [1, 2], 4)

    Two: one row is zero, and two are alike.
    """
    matrix = np.asarray(values, dtype=np.float64)
    copies = (
        np.ones(len(matrix), dtype=np.int64) if count is None else np.asarray(count, dtype=np.int64)
    )
    n = int(copies.sum())
    active = np.flatnonzero(matrix.any(axis=1) & (copies > 0))
    matrix, copies = matrix[active], copies[active]
    code = np.zeros(len(matrix), dtype=np.int64)
    span = 1
    for column in matrix.T:
        level, size = integer_levels(column)
        if span > WIDEST_CODE // size:
            known, code = np.unique(code, return_inverse=True)
            span = len(known)
        code = code * size + level
        span *= size
    _, first, where = np.unique(code, return_index=True, return_inverse=True)
    total = np.bincount(where, weights=copies, minlength=len(first)).round().astype(np.int64)
    return DistinctRows(values=matrix[first], count=total, n=n)


def without_last_digits(totals: FloatArray) -> FloatArray:
    """Round each column to 1e-12 of its largest number; columns of integers stay as they are.

    Sums of the same rows in another order differ in their last digits, and what is drawn of the
    distinct ones must not depend on that.
    """
    whole = (totals == np.floor(totals)).all(axis=0)
    unit = np.where(whole, 1.0, np.abs(totals).max(axis=0, initial=0.0))
    return np.where(whole, totals, np.round(totals / unit, 12) * unit)


def integer_levels(column: FloatArray) -> tuple[IntArray, int]:
    """Number the values of a column in increasing order; integers need no sort."""
    if not len(column):
        return np.zeros(0, dtype=np.int64), 1
    low, high = float(column.min()), float(column.max())
    if high - low < 2**20 and np.array_equal(column, np.floor(column)):
        return (column - low).astype(np.int64), int(high - low) + 1
    known, level = np.unique(column, return_inverse=True)
    return level.astype(np.int64), len(known)


def bootstrap_sums(
    columns: AnyArray,
    count: AnyArray,
    *,
    n: int,
    n_resamples: int,
    rng: Rng = None,
) -> ResampledSums:
    """Draw sums of `columns` over samples of `n` units taken with replacement.

    Parameters
    ----------
    columns : array of shape (K, q)
        Quantities of the distinct units that matter.
    count : array of shape (K,)
        How often each occurs among the `n` units.
    n : int
        Units in all; those not counted have zero quantities.
    n_resamples : int
        Bootstrap samples.
    rng : numpy.random.Generator, int or None
        Source of randomness.

    Returns
    -------
    ResampledSums

    Notes
    -----
    The law is ``"cells"`` for at most 5000 distinct units (unless counting draws is cheaper),
    ``"rows"`` up to 1e9 draws in all, else ``"gaussian"``. The answer does not depend on the order
    of the original rows when the distinct units come from `distinct_rows`.

    Examples
    --------
    What is the bootstrap standard error of a count of 30 in 100?

    >>> draws = bootstrap_sums([[1.0]], [30], n=100, n_resamples=20_000, rng=1)
    >>> round(float(draws.sums.std()), 1)
    4.6

    About the binomial value, the root of 21.
    """
    matrix = np.asarray(columns, dtype=np.float64)
    copies = np.asarray(count, dtype=np.int64)
    draws = check_integer("n_resamples", n_resamples, low=1)
    if copies.sum() > n or (copies <= 0).any():
        raise InvalidParameterError(
            f"`count` must be positive and sum to at most n = {n}; got {copies.sum()}."
        )
    generator = check_rng(rng)
    law = _law(len(copies), int(copies.sum()), draws)
    if law == "gaussian":
        return ResampledSums(sums=_gaussian(matrix, copies, n, draws, generator), law=law)
    counts = _cell_counts if law == "cells" else _row_counts
    sums = np.zeros((draws, matrix.shape[1]))
    if not len(copies):
        return ResampledSums(sums=sums, law=law)
    chunk = max(1, CHUNK // (len(copies) if law == "cells" else int(copies.sum())))
    for start in range(0, draws, chunk):
        stop = min(start + chunk, draws)
        sums[start:stop] = counts(copies, n, stop - start, generator) @ matrix
    return ResampledSums(sums=sums, law=law)


def _law(n_distinct: int, n_active: int, n_resamples: int) -> str:
    cheap_rows = n_active * n_resamples <= MAX_DRAWS
    if n_distinct <= MAX_CELLS and (BINOMIAL_COST * n_distinct <= n_active or not cheap_rows):
        return "cells"
    return "rows" if cheap_rows else "gaussian"


def _cell_counts(count: IntArray, n: int, size: int, rng: np.random.Generator) -> FloatArray:
    share = np.append(count, n - count.sum()) / n
    return rng.multinomial(n, share, size=size)[:, :-1].astype(np.float64)


def _row_counts(count: IntArray, n: int, size: int, rng: np.random.Generator) -> FloatArray:
    active = int(count.sum())
    owner = np.repeat(np.arange(len(count)), count)
    drawn = rng.binomial(n, active / n, size=size)
    unit = owner[rng.integers(active, size=int(drawn.sum()))]
    sample = np.repeat(np.arange(size) * len(count), drawn)
    counts = np.bincount(sample + unit, minlength=size * len(count))
    return counts.reshape(size, len(count)).astype(np.float64)


def _gaussian(
    columns: FloatArray, count: IntArray, n: int, size: int, rng: np.random.Generator
) -> FloatArray:
    total = count @ columns
    covariance = columns.T @ (columns * count[:, None]) - np.outer(total, total) / n
    scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    root, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    factor = vectors * np.sqrt(np.maximum(root, 0.0)) * scale[:, None]
    draws: FloatArray = total + rng.standard_normal((size, len(total))) @ factor.T
    return draws
