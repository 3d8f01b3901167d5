"""Features as conditions that a person can read: "sex=Female", "age in (25, 31]", "rent > 900".

Conditions are fixed from the features alone, before anybody looks at an outcome. Each row has one
code for each feature, and a condition is a set of codes; counts over codes therefore hold the
counts of all conditions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from itertools import pairwise

import numpy as np

from equipoise._checks import check_integer, quoted
from equipoise._names import condition
from equipoise._typing import AnyArray, BoolArray, FloatArray
from equipoise.exceptions import DataError, InvalidParameterError

__all__ = ["BinnedFeature", "bin_feature", "bin_features", "coded_feature"]

LEVELS = 12
"""Most frequent levels that become conditions."""

FEW_NUMBERS = 10
"""Numbers with at most this many distinct values are levels."""

EXACT = 2.0**53
"""Whole numbers below this are themselves as floats."""

MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedFeature:
    """A feature cut into codes, and the conditions on it.

    Parameters
    ----------
    name : str
        Of the feature.
    code : array of shape (n,)
        Small integers; rows of the same code are alike for every condition.
    labels : tuple of str
        Names of the conditions, c of them: "sex=Female", "age in (25, 31]".
    words : tuple of str
        The same as a person says it: "sex is Female", "age is above 25 and at most 31".
    holds : boolean array of shape (c, K)
        Codes that fulfil each condition.
    """

    name: str
    code: AnyArray
    labels: tuple[str, ...]
    words: tuple[str, ...]
    holds: BoolArray

    @property
    def n_codes(self) -> int:
        """K, the number of codes."""
        return int(self.holds.shape[1])

    def take(self, rows: AnyArray) -> "BinnedFeature":
        """The same conditions on some of the rows.

        Parameters
        ----------
        rows : array
            Which rows: truth values, or numbers of rows.

        Returns
        -------
        BinnedFeature
        """
        return replace(self, code=self.code[rows])


def bin_features(
    features: Mapping[str, object], *, bins: int = 4, nested: bool = False
) -> tuple[BinnedFeature, ...]:
    """Cut several features; those with a single value are left out.

    Parameters
    ----------
    features : mapping of str to array
        Columns of equal length.
    bins : int, default 4
        Bins of a number.
    nested : bool, default False
        As in `bin_feature`.

    Returns
    -------
    tuple of BinnedFeature
    """
    cut = [bin_feature(name, column, bins=bins, nested=nested) for name, column in features.items()]
    lengths = {len(one.code) for one in cut}
    if len(lengths) > 1:
        raise InvalidParameterError(f"Features must have the same length; got {sorted(lengths)}.")
    return tuple(one for one in cut if len(one.labels) > 1)


def bin_feature(
    name: str,
    column: object,
    *,
    bins: int = 4,
    nested: bool = False,
    count: AnyArray | None = None,
) -> BinnedFeature:
    """Cut one feature into codes and conditions.

    Parameters
    ----------
    name : str
        Of the feature.
    column : array of shape (n,)
        Text, truth values or numbers; None and NaN are the level "missing".
    bins : int, default 4
        Numbers with more than ten distinct values are cut into this many bins of about equal size;
        the bins and the unions of neighbouring bins that make up either half are conditions.
    nested : bool, default False
        Make all "at most" and "above" of the cuts conditions instead of bins and halves.
    count : array of shape (n,), optional
        How many identical rows a row stands for, at least one.

    Returns
    -------
    BinnedFeature

    Raises
    ------
    DataError
        If more than half of the values of a text column are distinct, as of an identifier.

    Examples
    --------
    >>> bin_feature("age", np.arange(20, 60)).labels
    ('age <= 30', 'age in (30, 40]', 'age in (40, 50]', 'age > 50', 'age <= 40', 'age > 40')
    >>> bin_feature("sex", ["f", "m", "f", None]).labels
    ('sex=f', 'sex=m', 'sex=missing')
    """
    parts = check_integer("bins", bins, low=2)
    values = np.asarray(column)
    absent = _absent(values)
    present = values[~absent] if absent.any() else values
    times = None if count is None else np.asarray(count)[~absent]
    if present.dtype.kind in "iuf" or _all_numbers(present):
        if _many(present):
            numbers = present.astype(np.float64)
            cuts = _cuts(numbers, times, np.arange(1, parts) / parts)
            return _numbers(name, numbers, absent, cuts, nested=nested)
        levels, where = np.unique(present, return_inverse=True)
        words = np.array([_written(level) for level in levels], dtype=object)
    else:
        words, where = np.unique(present.astype(str), return_inverse=True)
    size = np.bincount(where, weights=times, minlength=len(words))
    _check_no_identifier(name, words, size)
    return _levels(name, words, where, size, absent)


def coded_feature(
    name: str, levels: Sequence[str | None], index: AnyArray, *, count: AnyArray | None = None
) -> BinnedFeature:
    """Make conditions of a column that engines have coded: a level is written once, not by row.

    Parameters
    ----------
    name : str
        Of the feature.
    levels : sequence of str or None
        Distinct values as text; None is missing.
    index : array of shape (n,)
        Place of each row's value among the levels; -1 is missing.
    count : array of shape (n,), optional
        How many identical rows a row stands for.

    Returns
    -------
    BinnedFeature
        As `bin_feature` makes of the text itself.

    Examples
    --------
    >>> coded_feature("sex", ["m", "f"], np.array([1, 0, 1, -1])).labels
    ('sex=f', 'sex=m', 'sex=missing')
    """
    place = np.asarray(index, dtype=np.int64)
    known = [k for k, level in enumerate(levels) if level is not None]
    words, to = np.unique(np.array([str(levels[k]) for k in known], dtype=str), return_inverse=True)
    rank = np.full(len(levels) + 1, -1, dtype=np.int64)
    rank[known] = to
    where = rank[place]
    absent = where < 0
    present = where[~absent]
    times = None if count is None else np.asarray(count)[~absent]
    size = np.bincount(present, weights=times, minlength=len(words))
    _check_no_identifier(name, words, size)
    return _levels(name, words, present, size, np.asarray(absent))


def _check_no_identifier(name: str, words: AnyArray, size: AnyArray) -> None:
    n = round(float(size.sum()))
    if len(words) > LEVELS and len(words) > n / 2:
        raise DataError(
            f"Feature {name!r} has {len(words)} distinct values in {n} rows, like an identifier"
            f" (first: {quoted(words[:3])}). Leave it out of `features`."
        )


def _many(numbers: AnyArray) -> bool:
    # The first rows nearly always tell; sorting a million does not have to.
    return len(np.unique(numbers[:1000])) > FEW_NUMBERS or len(np.unique(numbers)) > FEW_NUMBERS


def _absent(values: AnyArray) -> BoolArray:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        # NaN is the one value that differs from itself.
        return np.array([one is None or one != one for one in values], dtype=np.bool_)  # noqa: PLR0124
    return np.zeros(len(values), dtype=np.bool_)


def _all_numbers(values: AnyArray) -> bool:
    return values.dtype.kind == "O" and all(
        isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        for value in values
    )


def _levels(
    name: str, words: AnyArray, where: AnyArray, size: AnyArray, absent: BoolArray
) -> BinnedFeature:
    # Most frequent first; ties in the order of the levels, never in that of the rows.
    order = np.argsort(-size, kind="stable")[:LEVELS]
    kept = len(order)
    position = np.full(len(words), kept, dtype=np.uint8)
    position[order] = np.arange(kept)
    # A code of its own for rarer levels and for missing values, if there are any.
    missing = kept + (len(words) > kept)
    code = np.full(len(absent), missing, dtype=np.uint8)
    code[~absent] = position[where]
    levels = [str(words[k]) for k in order]
    holds = np.eye(missing + int(absent.any()), dtype=np.bool_)
    keep = list(range(kept))
    labels = [condition(name, level) for level in levels]
    if absent.any():
        # Who wrote "missing" did write something.
        word = condition(name, MISSING)
        labels = [f'{name}="{MISSING}"' if label == word else label for label in labels]
        labels.append(word)
        levels = [f'"{level}"' if level == MISSING else level for level in levels]
        levels.append(MISSING)
        keep.append(missing)
    return BinnedFeature(
        name=name,
        code=code,
        labels=tuple(labels),
        words=tuple(f"{name} is {level}" for level in levels),
        holds=holds[keep],
    )


def _cuts(values: FloatArray, count: AnyArray | None, shares: FloatArray) -> FloatArray:
    """Return quantiles (the next higher value), each row as often as it counts."""
    if count is None:
        cuts = np.quantile(values, shares, method="higher")
    else:
        order = np.argsort(values)
        so_far = np.cumsum(count[order])
        place = np.ceil((so_far[-1] - 1.0) * shares)
        cuts = values[order[np.searchsorted(so_far, place, side="right")]]
    # Nothing lies above the largest value; where most rows have it, the others are the lower part.
    below = values[values < values.max()].max()
    return np.unique(np.minimum(cuts, below))


def _written(number: float) -> str:
    """Write a number as short as it can be told from all others; whole ones without a point."""
    whole = -EXACT < number < EXACT and number == int(number)
    return str(int(number)) if whole else str(number)


def _cut_written(cut: float, values: FloatArray) -> str:
    """Write a cut so that the words say exactly which rows lie below, with as few digits.

    Any number from the cut up to the next larger value parts the rows alike.
    """
    text = f"{cut:g}"
    if float(text) != cut:
        above = float(np.min(values[values > cut]))
        exact = Decimal(cut)
        for digits in range(6, 18):
            rounded = Context(prec=digits, rounding=ROUND_CEILING).plus(exact)
            if cut <= float(rounded) < above:
                text = f"{float(rounded):.{digits}g}"
                break
    return _written(float(text))


def _numbers(
    name: str, present: FloatArray, absent: BoolArray, cuts: FloatArray, *, nested: bool
) -> BinnedFeature:
    n_bins = len(cuts) + 1
    code = np.full(len(absent), n_bins, dtype=np.uint8)
    code[~absent] = np.searchsorted(cuts, present, side="left")
    number = [_cut_written(float(cut), present) for cut in cuts]
    n_codes = n_bins + int(absent.any())
    at_most = np.arange(n_codes) <= np.arange(len(cuts))[:, None]
    above = ~at_most
    above[:, n_bins:] = False
    if nested:
        labels = [f"{name} <= {cut}" for cut in number] + [f"{name} > {cut}" for cut in number]
        words = [f"{name} is at most {cut}" for cut in number]
        words += [f"{name} is above {cut}" for cut in number]
        holds = np.vstack([at_most, above])
    else:
        labels = [
            f"{name} <= {number[0]}",
            *(f"{name} in ({a}, {b}]" for a, b in pairwise(number)),
            f"{name} > {number[-1]}",
        ]
        words = [
            f"{name} is at most {number[0]}",
            *(f"{name} is above {a} and at most {b}" for a, b in pairwise(number)),
            f"{name} is above {number[-1]}",
        ]
        holds = np.eye(n_bins, n_codes, dtype=np.bool_)
        middle = (len(cuts) - 1) // 2
        if 0 < middle + 1 < n_bins and n_bins > 2:
            labels += [f"{name} <= {number[middle]}", f"{name} > {number[middle]}"]
            words += [f"{name} is at most {number[middle]}", f"{name} is above {number[middle]}"]
            holds = np.vstack([holds, at_most[middle], above[middle]])
    if absent.any():
        labels.append(f"{name}={MISSING}")
        words.append(f"{name} is {MISSING}")
        holds = np.vstack([holds, np.arange(n_codes) == n_bins])
    holds, first = np.unique(holds, axis=0, return_index=True)
    order = np.argsort(first)
    return BinnedFeature(
        name=name,
        code=code,
        labels=tuple(labels[k] for k in first[order]),
        words=tuple(words[k] for k in first[order]),
        holds=holds[order],
    )
