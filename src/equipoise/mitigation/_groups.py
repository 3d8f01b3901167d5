"""Groups, clusters and weights of an estimator's rows, checked in one place."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from equipoise._checks import nearest, quoted
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import DataError, InvalidParameterError

__all__ = ["ALL", "group_codes", "known_groups", "outcome_column", "score_column"]

ALL = "all"
"""Name of the one group when none is given."""


def group_codes(group: Any, n: int) -> tuple[list[Hashable], IntArray]:
    """Return the distinct groups, sorted, and the code of each row."""
    if group is None:
        return [ALL], np.zeros(n, dtype=np.int64)
    labels = _labels(group, n)
    names, codes = np.unique(labels, return_inverse=True)
    return names.tolist(), codes.astype(np.int64)


def known_groups(group: Any, n: int, known: list[Hashable]) -> IntArray:
    """Return the code of each row among the groups of the fit; raise on a new one."""
    if group is None:
        if len(known) > 1:
            raise InvalidParameterError(
                f"`group` must be given: the fit has the groups {quoted(known)}."
            )
        return np.zeros(n, dtype=np.int64)
    labels = _labels(group, n)
    place = {name: k for k, name in enumerate(known)}
    names, codes = np.unique(labels, return_inverse=True)
    unseen = [name for name in names.tolist() if name not in place]
    if unseen:
        hint = nearest(str(unseen[0]), [str(name) for name in known])
        raise DataError(
            f"group {str(unseen[0])!r} was not in the fit.{hint} Known groups: {quoted(known)}."
        )
    return np.array([place[name] for name in names.tolist()], dtype=np.int64)[codes]


def score_column(
    estimator: BaseEstimator, X: Any, *, column: int, group: Any, reset: bool
) -> FloatArray:
    """Return the scores of a table with one score for each row; a plain list needs `group`.

    Without `group` a list is refused, as scikit-learn's own checks demand.
    """
    if group is not None and np.ndim(X) == 1:
        X = np.reshape(np.asarray(X), (-1, 1))
    table = validate_data(estimator, X, dtype=np.float64, reset=reset)
    if not 0 <= column < table.shape[1]:
        raise InvalidParameterError(
            f"`column` must be one of the {table.shape[1]} columns of X, from 0; got {column!r}."
        )
    return np.asarray(table[:, column])


def outcome_column(estimator: BaseEstimator, y: Any, *, missing: bool = False) -> FloatArray:
    """Return outcomes as numbers; `missing` allows NaN."""
    if y is None:
        raise InvalidParameterError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    array = check_array(
        y,
        ensure_2d=False,
        dtype=np.float64,
        ensure_all_finite="allow-nan" if missing else True,
        input_name="y",
    )
    return np.asarray(column_or_1d(array, warn=True), dtype=np.float64)


def _labels(group: Any, n: int) -> AnyArray:
    labels = np.asarray(group)
    check_consistent_length(labels, np.empty(n))
    return labels.astype(str) if labels.dtype == object else labels
