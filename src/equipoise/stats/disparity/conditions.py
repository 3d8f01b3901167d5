"""Features as conditions that a person can read: "sex = Female", "age in (25, 31]", "rent > 900".

Conditions are fixed from the features alone, before anybody looks at an outcome. Each row has one
code for each feature, and a condition is a set of codes; counts over codes therefore hold the
counts of all conditions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from equipoise._checks import check_integer, quoted
from equipoise._typing import AnyArray, BoolArray, FloatArray
from equipoise.exceptions import DataError, InvalidParameterError

__all__ = ["BinnedFeature", "bin_feature", "bin_features"]

LEVELS = 12
"""Most frequent levels that become conditions."""

FEW_NUMBERS = 10
"""Numbers with at most this many distinct values are levels."""

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
        Conditions in words, c of them.
    holds : boolean array of shape (c, K)
        Codes that fulfil each condition.
    """

    name: str
    code: AnyArray
    labels: tuple[str, ...]
    holds: BoolArray

    @property
    def n_codes(self) -> int:
        """K, the number of codes."""
        return int(self.holds.shape[1])

    def take(self, rows: BoolArray) -> "BinnedFeature":
        """The same conditions on some of the rows.

        Parameters
        ----------
        rows : boolean array of shape (n,)
            Rows to keep.

        Returns
        -------
        BinnedFeature
        """
        return BinnedFeature(
            name=self.name, code=self.code[rows], labels=self.labels, holds=self.holds
        )


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


def bin_feature(name: str, column: object, *, bins: int = 4, nested: bool = False) -> BinnedFeature:
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
    ('sex = f', 'sex = m', 'sex = missing')
    """
    parts = check_integer("bins", bins, low=2)
    values = np.asarray(column)
    absent = _absent(values)
    present = values[~absent] if absent.any() else values
    if present.dtype.kind in "iuf" or _all_numbers(present):
        if _many(present):
            return _numbers(name, present.astype(np.float64), absent, parts, nested=nested)
        levels, where, size = np.unique(present, return_inverse=True, return_counts=True)
        words = np.array([f"{level:g}" for level in levels.astype(np.float64)], dtype=object)
    else:
        words, where, size = np.unique(present.astype(str), return_inverse=True, return_counts=True)
        if len(words) > LEVELS and len(words) > len(present) / 2:
            raise DataError(
                f"Feature {name!r} has {len(words)} distinct values in {len(present)} rows, like "
                f"an identifier (first: {quoted(words[:3])}). Leave it out of `features`."
            )
    return _levels(name, words, where, size, absent)


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
    labels = [f"{name} = {words[k]}" for k in order]
    holds = np.eye(missing + int(absent.any()), dtype=np.bool_)
    keep = list(range(kept))
    if absent.any():
        labels.append(f"{name} = {MISSING}")
        keep.append(missing)
    return BinnedFeature(name=name, code=code, labels=tuple(labels), holds=holds[keep])


def _numbers(
    name: str, present: FloatArray, absent: BoolArray, bins: int, *, nested: bool
) -> BinnedFeature:
    cuts = np.unique(np.quantile(present, np.arange(1, bins) / bins, method="higher"))
    cuts = cuts[cuts < present.max()]
    n_bins = len(cuts) + 1
    code = np.full(len(absent), n_bins, dtype=np.uint8)
    code[~absent] = np.searchsorted(cuts, present, side="left")
    number = [f"{cut:g}" for cut in cuts]
    n_codes = n_bins + int(absent.any())
    at_most = np.arange(n_codes) <= np.arange(len(cuts))[:, None]
    above = ~at_most
    above[:, n_bins:] = False
    if nested:
        labels = [f"{name} <= {cut}" for cut in number] + [f"{name} > {cut}" for cut in number]
        holds = np.vstack([at_most, above])
    else:
        labels = [
            f"{name} <= {number[0]}",
            *(f"{name} in ({a}, {b}]" for a, b in pairwise(number)),
            f"{name} > {number[-1]}",
        ]
        holds = np.eye(n_bins, n_codes, dtype=np.bool_)
        middle = (len(cuts) - 1) // 2
        if 0 < middle + 1 < n_bins and n_bins > 2:
            labels += [f"{name} <= {number[middle]}", f"{name} > {number[middle]}"]
            holds = np.vstack([holds, at_most[middle], above[middle]])
    if absent.any():
        labels.append(f"{name} = {MISSING}")
        holds = np.vstack([holds, np.arange(n_codes) == n_bins])
    holds, first = np.unique(holds, axis=0, return_index=True)
    order = np.argsort(first)
    return BinnedFeature(
        name=name,
        code=code,
        labels=tuple(labels[k] for k in first[order]),
        holds=holds[order],
    )
