"""Rows in memory, checked once: what every function of `equipoise.stats` begins with."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from equipoise._checks import check_finite, quoted
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError

__all__ = [
    "GroupCodes",
    "check_lengths",
    "check_weight",
    "code_clusters",
    "code_groups",
    "code_pair",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCodes:
    """Groups by number.

    Parameters
    ----------
    labels : tuple
        Distinct labels, in order.
    code : array of shape (n,)
        Place of each row's label in `labels`.
    """

    labels: tuple[Hashable, ...]
    code: IntArray

    def find(self, label: object, *, name: str = "reference") -> int:
        """Return the number of a group, or raise with the groups there are."""
        for k, known in enumerate(self.labels):
            if known == label:
                return k
        raise InvalidParameterError(
            f"`{name}` {label!r} is no group. Groups: {quoted(self.labels)}."
        )


def code_groups(group: object, *, at_least: int = 1) -> GroupCodes:
    """Number the groups of rows, whatever their labels are.

    Parameters
    ----------
    group : array of shape (n,)
        A label for each row: text, numbers or any objects.
    at_least : int
        How many groups must be there.

    Returns
    -------
    GroupCodes

    Examples
    --------
    >>> found = code_groups(["b", "a", "b"])
    >>> found.labels, found.code.tolist()
    (('a', 'b'), [1, 0, 1])
    """
    labels, code = _coded("group", group)
    if len(labels) < at_least:
        raise DataError(
            f"`group` must have at least {at_least} groups; every row is {quoted(labels)}."
        )
    return GroupCodes(labels=labels, code=code)


def code_pair(group: object, reference: object = None) -> GroupCodes:
    """Number two groups; the reference, or the first in order, is 0.

    Parameters
    ----------
    group : array of shape (n,)
        Two labels.
    reference : object, optional
        Label of group 0.

    Returns
    -------
    GroupCodes

    Examples
    --------
    >>> code_pair(["men", "women", "men"], "women").code.tolist()
    [1, 0, 1]
    """
    found = code_groups(group)
    if len(found.labels) != 2:
        raise DataError(
            f"`group` must have two groups here; it has {len(found.labels)}"
            f" ({quoted(found.labels[:10])}). Keep the rows of the two to be compared."
        )
    if reference is None or found.find(reference) == 0:
        return found
    return GroupCodes(labels=found.labels[::-1], code=1 - found.code)


def code_clusters(cluster: object) -> IntArray | None:
    """Number the units that rows repeat; `None` stays `None`."""
    return None if cluster is None else _coded("cluster", cluster)[1]


def check_weight(weight: object) -> FloatArray | None:
    """Return sampling weights as an array; `None` stays `None`."""
    if weight is None:
        return None
    omega = check_finite("weight", weight, ndim=1)
    if omega.min(initial=0.0) < 0.0 or not omega.any():
        raise InvalidParameterError(
            "`weight` must be at least 0 for every row and above 0 for some; the smallest is"
            f" {omega.min(initial=0.0):g}."
        )
    return omega


def check_lengths(**arrays: object) -> int:
    """Return the number of rows; raise unless every array given has it."""
    sizes = {name: len(np.asarray(a)) for name, a in arrays.items() if a is not None}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"`{name}` {size}" for name, size in sizes.items())
        raise InvalidParameterError(f"arrays must have one value for each row; got {found}.")
    (size,) = set(sizes.values())
    if not size:
        raise DataError(f"there are no rows: {quoted(sizes)} are empty.")
    return size


def _coded(name: str, values: object) -> tuple[tuple[Hashable, ...], IntArray]:
    array: AnyArray = np.asarray(values)
    if array.ndim != 1:
        raise InvalidParameterError(
            f"`{name}` must have one label for each row; got shape {array.shape}. Join several"
            " columns into one label, or use `equipoise.Audit`."
        )
    plain = array.tolist()
    missing = sum(value is None or value != value for value in plain)  # noqa: PLR0124  (NaN)
    if missing:
        raise MissingValuesError(
            f"`{name}` has {missing} missing values in {len(plain)} rows. Drop the rows, or give"
            " them a label."
        )
    try:
        distinct, code = np.unique(array, return_inverse=True)
        return tuple(distinct.tolist()), code.astype(np.int64)
    except TypeError:  # labels of several types have no order of their own
        labels = tuple(sorted(set(plain), key=lambda label: (type(label).__name__, str(label))))
        place = {label: k for k, label in enumerate(labels)}
        return labels, np.array([place[label] for label in plain], dtype=np.int64)
