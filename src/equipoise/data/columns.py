"""Columns with roles as expressions, and what makes a row usable."""

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import narwhals as nw
import numpy as np

from equipoise._checks import LARGEST, nearest, quoted
from equipoise._names import bin_label
from equipoise.data.frame import has_nan, open_frame
from equipoise.data.groups import label_of
from equipoise.data.layout import FIRST
from equipoise.data.query import collect, fetch, listed
from equipoise.data.roles import Roles
from equipoise.exceptions import (
    ColumnNotFoundError,
    DataError,
    MissingValuesError,
    NotBinaryError,
)

if TYPE_CHECKING:
    from equipoise.data.duckdb import CsvWords

__all__ = [
    "INVALID_LABEL",
    "KEPT_NAMES",
    "MISSING_LABEL",
    "MOST_ROWS",
    "ONE",
    "TRUTHS",
    "Fault",
    "Needs",
    "RoleColumns",
]

Needs: TypeAlias = Mapping[str, Literal["label", "number"]]
"""Roles that a question uses: "label" must be 0 or 1, "number" finite."""

Fault: TypeAlias = tuple[Hashable, ...]
"""The name of something that can be wrong with a row, for instance ``("race", "missing")``."""

ONE = nw.lit(1.0)
"""The number one in every row. A quantity with this very value needs no sums of its own."""

INVALID_LABEL, MISSING_LABEL = 2, 3

MOST_ROWS = 2**53
"""Counts beyond this are refused: a float would no longer tell one row from the next."""


TRUTHS = {"true": 1, "t": 1, "yes": 1, "false": 0, "f": 0, "no": 0}
"""Words of truth values, as files have them: a column that is read as such keeps no word."""

MOST_LABELS = 20
"""Labels that a message lists at most."""

KEPT_NAMES = frozenset({"*", "__eq_key"})
"""Names of columns that engines and audits keep for themselves."""

NAMES = ("cluster", "strata", "time")
"""Roles whose values are names: of a unit, a stratum, a moment."""

LABELS = ("y_true", "y_pred", "baseline")
"""Roles whose labels may be text that is compared with `positive`."""

REALS = ("y_score", "effect_pred", "propensity", "weight")
"""Roles whose numbers need not be whole."""

NUMBERS = (*REALS, "count")
"""Roles whose column must be numeric."""


class RoleColumns:
    """A table whose columns are reached by role.

    Parameters
    ----------
    data : frame, relation, Spark DataFrame, Ibis table, dict of arrays, or path
        See `equipoise.data.frame.open_frame`.
    roles : Roles
        Which column plays which part.
    engine : {"duckdb", "spark"}
        What reads a path.
    text : sequence of str
        Columns of a csv file that are text whatever they hold.
    """

    def __init__(
        self, data: Any, roles: Roles, *, engine: str = "duckdb", text: Sequence[str] = ()
    ) -> None:
        used = (*roles.group, *roles.features, *roles.columns().values())
        self.frame = open_frame(data, engine=engine, used=used, words=_csv_words(roles, text))
        self.source = os.fspath(data) if isinstance(data, (str, os.PathLike)) else None
        self.roles = roles
        self.positive_known = False
        """Whether other rows of the same source have shown the label that counts as 1."""
        self.schema = dict(self.frame.collect_schema())
        self.good_labels: set[tuple[object, ...]] = set()
        """What is known to be a label of a column; views of the same rows share it."""
        self._has_nan = has_nan(self.frame)
        for column in used:
            self.check_column(column)
        good = roles.y_pred or roles.y_true
        if good is not None and self.schema[good] == nw.Boolean:
            truth = TRUTHS.get(str(roles.favourable).lower())
            if truth is not None:
                # Beside a word that counts as 1, 1 is that word and 0 the other.
                one = _number_of(roles.positive) if isinstance(roles.positive, str) else 1
                self.roles = replace(roles, favourable=int(truth == one))
        for role, column in roles.columns().items():
            if role in NUMBERS and not self.is_number(column):
                raise DataError(
                    f"`{role}` must be numeric; column {column!r} is {self.schema[column]}."
                )
        if roles.count is not None:
            # A row that stands for no rows is no row: it would widen the range of the data.
            times = nw.col(roles.count)
            self.frame = self.frame.filter(times.is_null() | (times != 0))
        for column in roles.bins:
            if not self.is_number(column):
                raise DataError(
                    f"`bins` needs a numeric column; {column!r} is {self.schema[column]}."
                )

    def size(self) -> int:
        """Count the rows; a row that stands for several counts as many."""
        rows = nw.len() if self.roles.count is None else nw.col(self.roles.count).sum()
        return int(collect(self.frame.select(size=rows))["size"][0])

    def value(self, role: str) -> nw.Expr:
        """Return a role as a number; labels become 1 where they equal `positive`, else 0."""
        column = self.roles.column(role)
        number = self.number(nw.col(column))
        if role not in LABELS:
            return number
        if not self._needs_positive(column):
            return number
        return self._is_positive(column).cast(nw.Int32).cast(nw.Float64)

    def median(self, role: str) -> float:
        """Return the median of a role over all rows that have it, whatever their group."""
        column = self.roles.column(role)
        if not self.schema[column].is_numeric():
            raise DataError(f"`{role}` column {column!r} must be numeric.")
        frame = self.frame.filter(~self.is_missing(column))
        if self.roles.count is None:
            found = collect(frame.select(self.value(role).median().alias("median")))
            return float(found["median"][0] or 0.0)
        counted = frame.select(self.value(role).alias("value"), self.value("count").alias("n"))
        found = collect(counted.group_by("value").agg(nw.col("n").sum()))
        order = np.argsort(found["value"])
        value, below = found["value"][order], np.cumsum(found["n"][order])
        middle = [(below[-1] - 1) // 2, below[-1] // 2] if len(below) else []
        ends = value[np.searchsorted(below, middle, side="right")]
        return float(ends.mean()) if len(ends) else 0.0

    @property
    def y_true(self) -> nw.Expr:
        """The outcome as a number."""
        return self.value("y_true")

    @property
    def y_pred(self) -> nw.Expr:
        """The decision as a number."""
        return self.value("y_pred")

    @property
    def y_score(self) -> nw.Expr:
        """The score."""
        return self.value("y_score")

    @property
    def treatment(self) -> nw.Expr:
        """The arm, 0 or 1."""
        return self.value("treatment")

    @property
    def effect_pred(self) -> nw.Expr:
        """The predicted effect."""
        return self.value("effect_pred")

    def has_labels(self, roles: Sequence[str], labels: Sequence[int]) -> nw.Expr:
        """Return whether a row has these 0/1 labels; null where one is missing."""
        same = [self.value(role) == label for role, label in zip(roles, labels, strict=True)]
        return nw.all_horizontal(*same, ignore_nulls=False)

    def group_keys(self, columns: Sequence[str] | None = None) -> dict[str, nw.Expr]:
        """Return the group columns, numeric ones binned where asked, under internal names."""
        names = self.roles.group if columns is None else tuple(columns)
        return {f"__eq_group_{k}": self._group_key(name) for k, name in enumerate(names)}

    def key(self, column: str) -> nw.Expr:
        """Return the values of a column as keys: equal ones are one group, or one cluster."""
        value, kind = nw.col(column), self.schema[column]
        if kind == nw.UInt128:  # whose upper half comes out of DuckDB as negative numbers
            return value.cast(nw.String)
        # Engines differ in whether 0.0 and -0.0 are; the sum is never -0.0.
        return value + 0.0 if kind.is_float() else value

    def missing(self, needs: Needs) -> dict[Fault, nw.Expr]:
        """Return, for each column that is used but the groups, where its value is missing."""
        return {
            (column, "missing"): self.is_missing(column) for column in self._used(needs).values()
        }

    def missing_groups(self) -> dict[Fault, nw.Expr]:
        """Return where the value of each group column is missing."""
        return {(column, "missing"): self.is_missing(column) for column in self.roles.group}

    def impossible(self, needs: Needs) -> dict[Fault, nw.Expr]:
        """Return, for each role that is used, where a value that is there cannot be used.

        Conditions are null only where the value is missing.
        """
        found: dict[Fault, nw.Expr] = {}
        for role, column in self._used(needs).items():
            wrong = self._invalid(role, column, needs)
            if wrong:
                fault = (column, role, needs.get(role, "number"))
                found[fault] = nw.any_horizontal(*wrong, ignore_nulls=False)
        return found

    def is_complete(self, needs: Needs) -> nw.Expr:
        """Return whether nothing that is used is missing or impossible in a row."""
        faults = self.missing_groups() | self.missing(needs) | self.impossible(needs)
        if not faults:
            return nw.lit(value=True)
        wrong = nw.any_horizontal(*faults.values(), ignore_nulls=False)
        return nw.when(wrong).then(nw.lit(value=False)).otherwise(nw.lit(value=True))

    def label_code(self, role: str) -> nw.Expr:
        """Return a label as 0, 1, `MISSING_LABEL` or `INVALID_LABEL`, a small integer.

        Grouping by the code instead of the value finds wrong labels in the scan that counts, and
        keeps the number of groups small whatever the column holds.
        """
        column = self.roles.column(role)
        value = nw.col(column) if self._is_plain(column) else self.value(role)
        code = nw.when(value == 1).then(1).otherwise(INVALID_LABEL)
        code = nw.when(value == 0).then(0).otherwise(code)
        return nw.when(self.is_missing(column)).then(MISSING_LABEL).otherwise(code).cast(nw.Int8)

    def _used(self, needs: Needs) -> dict[str, str]:
        always = [role for role in ("cluster", "weight", "count") if getattr(self.roles, role)]
        return {role: self.roles.column(role) for role in (*needs, *always)}

    def check_column(self, column: str) -> None:
        """Raise unless the table has the column, of a type that audits can use."""
        if not isinstance(column, str) or column not in self.schema:
            made_up = self.source is not None and not self.roles.names and FIRST in self.schema
            why = (
                " The file has no line of names: give them in `names`, or write one above the rows;"
                " say `header = true` if its first line is one."
            )
            raise ColumnNotFoundError(
                f"Column {column!r} not found.{nearest(str(column), self.schema)}"
                f" Columns: {quoted(self.schema)}.{why if made_up else ''}"
            )
        if column in KEPT_NAMES:
            raise DataError(
                f"Column {column!r} has a name that engines and audits keep for themselves;"
                " rename it."
            )
        dtype = self.schema[column]
        if dtype == nw.Unknown or dtype.is_nested():
            raise DataError(
                f"Column {column!r} has no values, or a type that no audit can use ({dtype})."
            )

    def is_number(self, column: str) -> bool:
        """Return whether a column holds numbers or truth values."""
        dtype = self.schema[column]
        return bool(dtype.is_numeric()) or dtype == nw.Boolean

    def _is_plain(self, column: str) -> bool:
        """Return whether a label column holds numbers, not Booleans, that mean themselves."""
        return bool(self.schema[column].is_numeric()) and not self._needs_positive(column)

    def _needs_positive(self, column: str) -> bool:
        """Return whether a label column is translated: text, or numbers with another `positive`."""
        if not self.is_number(column):
            return True
        positive = _number_of(self.roles.positive)
        return positive is not None and positive != 1

    def _is_positive(self, column: str) -> nw.Expr:
        """Return whether a label is the one that counts as 1."""
        positive = self.roles.positive
        label = nw.col(column)
        if not self.is_number(column):
            if not isinstance(positive, str):
                raise NotBinaryError(
                    f"Column {column!r} holds {self.schema[column]} labels; say which one counts as"
                    f" 1, for instance `positive='yes'`."
                )
            label = label.cast(nw.String)
        elif isinstance(positive, str):
            return self.number(label) == nw.lit(_number_of(positive))
        return label == nw.lit(positive)

    def translated(self, roles: Iterable[str]) -> bool:
        """Return whether any of the roles has labels that are compared with `positive`."""
        return any(
            role in LABELS and self._needs_positive(self.roles.column(role)) for role in roles
        )

    def check_positive(self, roles: Iterable[str] = LABELS) -> None:
        """Raise if a column lacks the label that counts as 1: all its labels would be 0.

        A column without it may hold labels that stand beside it in another column: nobody was
        selected there.
        """
        if self.positive_known:
            return
        columns = {
            role: str(name)
            for role in LABELS
            if (name := getattr(self.roles, role)) is not None and self._needs_positive(name)
        }
        asked = [columns[role] for role in roles if role in columns]
        lacking = [name for name in asked if not self._has_positive(name)]
        if not lacking:
            return
        others = [name for name in columns.values() if name not in lacking]
        others = [name for name in others if name in asked or self._has_positive(name)]
        known = {label for name in others for label in self._labels(name)}
        if not known:
            given = list(columns.values())
            labels = [label for name in given for label in self._labels(name)]
            if labels:
                raise NotBinaryError(_no_such_label("positive", self.roles.positive, given, labels))
        for name in lacking:
            labels = self._labels(name)
            if not known.issuperset(labels):
                raise NotBinaryError(
                    f"`positive` is {self.roles.positive!r} for {quoted(columns.values())} alike;"
                    f" no row of {name!r} has it. Labels: {quoted(labels)}. Write the same two"
                    " labels into these columns, such as 1 and 0."
                )

    def _has_positive(self, column: str) -> bool:
        # Engines stop at the first row found: far cheaper than a scan.
        return len(fetch(self.frame.filter(self._is_positive(column)).select(column).head(1))) > 0

    def check_favourable(self) -> None:
        """Raise if the good decision is no label, or one of several that count as 0.

        A misspelt one would be read as the other label, and all sentences would turn around.
        """
        label, positive = self.roles.favourable, self.roles.positive
        column = self.roles.y_pred or self.roles.y_true
        if label is None or column is None or self.roles.favours_positive:
            return
        if label in {0, 1} or (label in {"0", "1"} and self.is_number(column)):
            return
        known = (column, positive, label)
        if known in self.good_labels:
            return
        labels = self._labels(column)
        others = [other for other in labels if other != self._label(column, positive)]
        if others and self._label(column, label) not in labels:
            raise NotBinaryError(_no_such_label("favourable", label, [column], labels))
        if len(others) > 1:
            self.check_positive()
            raise NotBinaryError(
                f"`favourable` is {label!r}, and {column!r} has more labels beside"
                f" {positive!r}: {quoted(others)}. Pass `positive={label!r}`, or `favourable=0` if"
                " all of them are good."
            )
        self.good_labels.add(known)

    def _labels(self, column: str) -> list[str]:
        """Return the labels of a column as text, sorted; some of them where they are many."""
        found = fetch(self.frame.select(column).unique().head(MOST_LABELS)).to_native()
        labels = listed(found.column(column))
        return sorted({self._label(column, label) for label in labels if label is not None})

    def _label(self, column: str, label: Any) -> str:
        """Write a label; numbers that are equal are written alike, whatever their type."""
        number = self.schema[column].is_numeric() and not isinstance(label, str)
        return f"{float(label):g}" if number else label_of(label)

    def is_missing(self, column: str) -> nw.Expr:
        """Return where a value is null, or not a number."""
        absent = nw.col(column).is_null()
        if self.schema[column].is_float():
            return absent | self.is_nan(nw.col(column))
        return absent

    def number(self, value: nw.Expr) -> nw.Expr:
        """Return what a row holds as a number; true is 1."""
        if self.frame.implementation.is_ibis():
            # PostgreSQL makes a Boolean an integer of 32 bits and no other number.
            kind = self.frame.select(value=value).collect_schema()["value"]
            value = value.cast(nw.Int32) if kind == nw.Boolean else value
            # Its literals are decimal, and would stay so: no cast is sent where Ibis sees none.
            return value.cast(nw.Float64) + nw.lit(0).cast(nw.Float64)
        return value.cast(nw.Float64)

    def is_nan(self, value: nw.Expr) -> nw.Expr:
        """Return where a number is not one; nowhere in databases that have no such number."""
        return value.is_nan() if self._has_nan else nw.lit(value=False)

    def is_beyond(self, value: nw.Expr) -> nw.Expr:
        """Return where a number is not one, infinite, or too large to be squared."""
        # Not `is_finite`, which some databases lack; whether NaN is large depends on the engine.
        return (value.abs() > LARGEST) | self.is_nan(value)

    def _invalid(self, role: str, column: str, needs: Needs) -> list[nw.Expr]:
        """Return conditions under which a value that is there cannot be used."""
        if role == "cluster":
            return []
        conditions = []
        raw = nw.col(column)
        if self.schema[column].is_float():
            conditions.append(self.is_beyond(raw))
        if role == "weight" and self.schema[column].is_numeric():
            conditions.append((raw != 0) & (raw < 1.0 / LARGEST))
        if role == "count":
            number = raw.cast(nw.Float64)
            conditions.append((number < 0) | (number > MOST_ROWS) | (number != number.floor()))
        if needs.get(role) == "label":
            value = raw if self._is_plain(column) else self.value(role)
            conditions.append((value != 0) & (value != 1))
        return conditions

    def _group_key(self, column: str) -> nw.Expr:
        if column not in self.roles.bins:
            return self.key(column)
        cuts = list(self.roles.bins[column])
        value = nw.col(column).cast(nw.Float64)
        label = nw.lit(bin_label(cuts[-1], None))
        for low, high in reversed(list(zip([None, *cuts[:-1]], cuts, strict=True))):
            name = nw.lit(bin_label(low, high))
            label = nw.when(value < high).then(name).otherwise(label)
        return nw.when(~self.is_missing(column)).then(label)

    def explain(self, needs: Needs) -> NoReturn:
        """Read the table once more to say exactly what is wrong, and raise."""
        used = self._used(needs)
        checks: dict[str, nw.Expr] = {}
        columns = dict.fromkeys((*self.roles.group, *used.values()))
        for k, column in enumerate(columns):
            checks[f"m{k}"] = self.is_missing(column)
        for k, (role, column) in enumerate(used.items()):
            conditions = self._invalid(role, column, needs)
            if conditions:
                wrong = nw.any_horizontal(*conditions, ignore_nulls=True)
                checks[f"i{k}"] = wrong & ~self.is_missing(column)
        flags = [
            flag.cast(nw.Int32).sum().cast(nw.Float64).alias(name) for name, flag in checks.items()
        ]
        rows = nw.len().cast(nw.Float64).alias("rows")
        counts = collect(self.frame.select(rows, *flags))
        found = {name: int(value[0] or 0) for name, value in counts.items()}
        n = found["rows"]
        for k, (role, column) in enumerate(used.items()):
            if found.get(f"i{k}"):
                self._raise_invalid(role, column, found[f"i{k}"], n, needs)
        for k, column in enumerate(columns):
            if found[f"m{k}"]:
                raise MissingValuesError(
                    f"{column!r} has {found[f'm{k}']} missing values in {n} rows. Fill or drop"
                    f' them, or pass `missing="drop"`; the count is then noted in the result.'
                )
        raise DataError(
            f"The metric is missing, infinite or beyond {LARGEST:g} in rows whose columns are"
            " complete; guard its expression, or rescale its columns."
        )

    def _raise_invalid(self, role: str, column: str, bad: int, n: int, needs: Needs) -> NoReturn:
        if role == "weight":
            raise DataError(
                f"`weight` must be a number from {1.0 / LARGEST:g} to {LARGEST:g}, or 0; {bad} of"
                f" {n} rows are not."
            )
        if role == "count":
            raise DataError(
                f"`count` must be a whole number from 0 to 2^53; {bad} of {n} rows are not."
            )
        if needs.get(role) == "label":
            raise NotBinaryError(
                f"`{role}` must be 0 or 1 here; column {column!r} has other values in {bad} of {n}"
                " rows. Threshold it, or pass as `positive` the label that counts as 1 (the"
                " default, `positive=1`, means labels 0 and 1)."
            )
        raise DataError(
            f"{column!r} is infinite or beyond {LARGEST:g} in {bad} of {n} rows. Mend or drop them."
        )


def _no_such_label(option: str, label: Any, columns: Sequence[str], labels: Sequence[str]) -> str:
    known = sorted(set(labels))
    words = [*known, *TRUTHS] if known == ["False", "True"] else known
    return (
        f"`{option}` must be a label of {quoted(columns)}; no row has {label!r}."
        f"{nearest(str(label), words)} Labels: {quoted(known)}."
    )


def _csv_words(roles: Roles, text: Sequence[str]) -> "CsvWords":
    """Say what words of a csv file mean; a label that was named as text is a word."""
    from equipoise.data.duckdb import CsvWords

    named = (*NAMES, *LABELS) if isinstance(roles.positive, str) else NAMES
    return CsvWords(
        coded=frozenset(roles.columns().values()),
        truths=frozenset(name for role, name in roles.columns().items() if role not in named),
        text=frozenset(text),
        reals=frozenset(name for role, name in roles.columns().items() if role in REALS),
        header=roles.header,
        names=roles.names,
    )


def _number_of(label: Any) -> float | None:
    """Return a label as a number, also when it is written as text; None for other words."""
    if not isinstance(label, str):
        return float(label)
    try:
        return float(TRUTHS.get(label.lower(), label))
    except ValueError:
        return None
