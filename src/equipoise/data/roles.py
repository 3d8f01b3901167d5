"""Which column plays which part in an audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from equipoise._checks import (
    check_columns,
    check_finite,
    check_flag,
    check_number,
    check_option,
    quoted,
)
from equipoise._typing import Missing
from equipoise.exceptions import InvalidParameterError

__all__ = ["SINGLE_ROLES", "Roles"]

SINGLE_ROLES = (
    "y_true",
    "y_pred",
    "y_score",
    "treatment",
    "effect_pred",
    "propensity",
    "cluster",
    "strata",
    "fpc",
    "time",
    "weight",
    "count",
)
"""Roles that one column plays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Columns of an audit by the part they play.

    Parameters
    ----------
    group : tuple of str
        Columns whose combinations are compared.
    y_true, y_pred, y_score, treatment, effect_pred, cluster, weight, count : str, optional
        Column of each role; the outcome of an experiment is `y_true`.
    propensity, strata, fpc, time : str, optional
        Column of the known chance of treatment, of the stratum of the sampling design, of the
        number of units of that stratum in the population, and of the moment of a row.
    baseline : str, optional
        Column that stood in the place of `y_pred` or `y_score` before; of one question, not of an
        audit.
    features : tuple of str
        Covariates for candidate algorithms.
    positive : object
        The label that counts as 1 where labels are text, or numbers other than 0 and 1.
    favourable : object, optional
        The decision that is good for a person (without decisions, the outcome): 1, 0 or a label;
        None where it is not known.
    missing : {"raise", "drop"}
        What to do with rows in which a column that a question uses is missing.
    bins : mapping of str to sequence of float
        Cut points of numeric group columns; ``{"age": [25, 45]}`` makes three bands.
    names : tuple of str
        Names of the columns of a csv file, in the place of its own; empty to take these.
    header : bool, optional
        Whether the first line of a csv file has the names of its columns; None to look.
    """

    group: tuple[str, ...] = ()
    y_true: str | None = None
    y_pred: str | None = None
    y_score: str | None = None
    treatment: str | None = None
    effect_pred: str | None = None
    propensity: str | None = None
    cluster: str | None = None
    strata: str | None = None
    fpc: str | None = None
    time: str | None = None
    weight: str | None = None
    count: str | None = None
    baseline: str | None = None
    features: tuple[str, ...] = ()
    positive: Any = 1
    favourable: Any = None
    missing: Missing = "raise"
    bins: Mapping[str, Sequence[float]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    header: bool | None = None

    def __post_init__(self) -> None:
        check_option("missing", self.missing, Missing)
        if self.header is not None:
            check_flag("header", self.header)
        for name in ("group", "features", "names"):
            columns = getattr(self, name)
            columns = () if columns is None else check_columns(name, columns)
            object.__setattr__(self, name, columns)
        for name in SINGLE_ROLES:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InvalidParameterError(f"`{name}` must name a column; got {value!r}.")
        if self.fpc is not None and self.strata is None:
            raise InvalidParameterError("`fpc` is about `strata`; name their column too.")
        for name in ("positive", "favourable"):
            label = getattr(self, name)
            known = name == "positive" or label is not None
            if known and not isinstance(label, (str, bool, np.bool_)):
                check_number(name, label)
        if not isinstance(self.bins, Mapping):
            raise InvalidParameterError(
                f'`bins` must map columns to cut points, {{"age": [25, 45]}}; got {self.bins!r}.'
            )
        bins = {column: self._cut_points(column, cuts) for column, cuts in self.bins.items()}
        object.__setattr__(self, "bins", bins)

    def _cut_points(self, column: str, cuts: Any) -> list[float]:
        if column not in self.group:
            raise InvalidParameterError(
                f"`bins` has {column!r}, which is not a group column: {quoted(self.group)}."
            )
        edges = check_finite(f"bins[{column!r}]", cuts, ndim=1).tolist()
        if not edges or any(a >= b for a, b in pairwise(edges)):
            raise InvalidParameterError(
                f"`bins[{column!r}]` must be increasing cut points; got {list(cuts)}."
            )
        return list(edges)

    @property
    def favours_positive(self) -> bool:
        """Whether the good label is the one that counts as 1; 1 and 0 say so of any labels."""
        label, positive = self.favourable, self.positive
        return bool(
            label == positive
            or str(label) == str(positive)
            or (isinstance(positive, str) and label == 1)
        )

    def without_file(self) -> "Roles":
        """Return the roles of rows that were read: how the lines of a file are read is done."""
        return replace(self, names=(), header=None)

    def column(self, role: str) -> str:
        """Return the column of a role; raise if the role was not given."""
        name = getattr(self, role)
        if name is None:
            raise InvalidParameterError(
                f"this question needs `{role}`; pass the name of its column to `Audit`."
            )
        return str(name)

    def columns(self) -> dict[str, str]:
        """Return every column that has a single role, by role."""
        pairs = ((role, getattr(self, role)) for role in SINGLE_ROLES)
        return {role: column for role, column in pairs if column is not None}
