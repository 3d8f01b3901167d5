"""A table with roles, and what questions declare that they need of it.

A question needs *sums* over the cells of the group columns, or the *rows* behind such sums.
Quantities have names, so that declarations compare and merge; `equipoise.data.scan` answers those
of many questions in one scan.
"""

import copy
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from operator import add
from typing import Any, Literal

import narwhals as nw

from equipoise.data.columns import ONE, Needs, RoleColumns
from equipoise.data.query import Sent
from equipoise.data.roles import Roles
from equipoise.exceptions import EquipoiseError, InvalidParameterError
from equipoise.moments import CellMoments

__all__ = [
    "KEY",
    "NO_ROWS",
    "Needs",
    "NotInCellsError",
    "Quantity",
    "Rows",
    "Sums",
    "Table",
    "label_combinations",
]

KEY = "__eq_key"


class NotInCellsError(InvalidParameterError):
    """A question needs what a file of cells does not hold; the message goes on after its name."""


NO_ROWS = "needs rows, and a file of cells has none. Ask it where the rows are."


def label_combinations(roles: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Return the labels (1, 1), (1, 0), (0, 1), (0, 0) of two roles, (1,), (0,) of one."""
    return list(product((1, 0), repeat=len(roles)))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, or a key, of each row.

    Parameters
    ----------
    name, detail : str, hashable
        Quantities of a table with equal names and details are the same.
    value : narwhals expression
        How it is computed.
    """

    name: str
    detail: Hashable
    value: nw.Expr = field(compare=False, repr=False)

    @property
    def is_one(self) -> bool:
        """Whether it is one in every row; no name says so."""
        return self.value is ONE

    @classmethod
    def of(cls, value: nw.Expr) -> "Quantity":
        """Return a quantity without a name of its own, equal to no other."""
        return cls("expression", id(value), value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums of row quantities by cell, declared; answered by `CellMoments`.

    Parameters
    ----------
    table : Table
        What is summed.
    keys : tuple of Quantity
        Their combinations are the cells.
    needs : tuple of (str, str)
        Roles that are used, and whether as "label" or "number". Rows in which one is missing are
        left out.
    labels : tuple of str
        Roles with 0/1 labels whose combinations are counted: fast, instead of quantities.
    quantities : tuple of Quantity
        Numbers to sum, times weight and count.
    counted : tuple of Quantity
        Numbers to sum without weights.
    order : {1, 2, 3}
        2 for products of quantities, 3 for moments of higher order too (`CellMoments.units`).
    powers : tuple of int, optional
        Quantities whose units and fourth and fifth powers are summed with order 3: those that are
        weights. By default all of them.
    rate : tuple of two tuples of int, optional
        Which combinations of `labels` count in u and in w; the quantities are then u and w.
    reference : tuple of (str, str)
        Columns and labels of the cells with which subgroups are compared, for units with rows in
        several cells (`CellMoments.shared`); empty for all cells.
    """

    table: "Table"
    keys: tuple[Quantity, ...]
    needs: tuple[tuple[str, Literal["label", "number"]], ...]
    labels: tuple[str, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    counted: tuple[Quantity, ...] = ()
    order: Literal[1, 2, 3] = 2
    powers: tuple[int, ...] | None = None
    rate: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    reference: tuple[tuple[str, str], ...] = ()

    @property
    def with_powers(self) -> tuple[Quantity, ...]:
        """Quantities that are weights."""
        if self.powers is None:
            return self.quantities
        return tuple(self.quantities[k] for k in self.powers)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows behind sums, declared; answered by `equipoise.data.query.NarrowRows`."""

    sums: Sums


class Table(RoleColumns):
    """Rows with roles, on DuckDB, Spark or in a database; equal to other views of the same rows.

    Parameters
    ----------
    data, roles, engine, text
        As in `equipoise.data.columns.RoleColumns`.
    """

    def __init__(
        self, data: Any, roles: Roles, *, engine: str = "duckdb", text: Sequence[str] = ()
    ) -> None:
        super().__init__(data, roles, engine=engine, text=text)
        self.answers: dict[Sums, CellMoments] = {}
        """What has been asked before."""
        self.sent: dict[Sums, tuple[Sent, ...]] = {}
        """The queries that were sent for it."""
        self.only_sums = False
        """Whether no row may be read, because none is there or will be."""

    def kept(self, need: "Sums | Rows") -> "CellMoments | EquipoiseError | None":  # noqa: ARG002
        """Return what is known without a scan, or why it never will be; None here."""
        return None

    def check_rows(self) -> None:
        """Raise if there are no rows to read, or none may be read."""
        if self.only_sums:
            raise NotInCellsError(NO_ROWS)

    @property
    def withheld(self) -> tuple[int, int, int]:
        """How many cells were withheld, how many rows they have, and below which limit."""
        return 0, 0, 0

    @property
    def sites(self) -> int:
        """How many tables with clusters were added up; 0 where it is one table, or has none."""
        return 0

    def __eq__(self, other: object) -> bool:
        """Return whether both are views of the same rows."""
        return isinstance(other, Table) and self.frame is other.frame

    def __hash__(self) -> int:
        """Return the identity of the rows."""
        return id(self.frame)

    def grouped_by(self, group: Sequence[str]) -> "Table":
        """Return a view of the same rows with other group columns, and the bins that apply."""
        for column in group:
            self.check_column(column)
        view = copy.copy(self)
        bins = {column: cuts for column, cuts in self.roles.bins.items() if column in group}
        view.roles = replace(self.roles, group=tuple(group), bins=bins)
        return view

    def with_roles(self, **columns: str | None) -> "Table":
        """Return a view of the same rows in which other columns play some of the single roles."""
        for column in columns.values():
            if column is not None:
                self.check_column(column)
        view = copy.copy(self)
        view.roles = replace(self.roles, **columns)  # type: ignore[arg-type]
        return view

    def with_frame(self, frame: "nw.LazyFrame[Any]") -> "Table":
        """Return a table of other rows, with the same roles."""
        view = copy.copy(self)
        view.frame, view.schema = frame, dict(frame.collect_schema())
        view.answers, view.sent, view.good_labels = {}, {}, set()
        return view

    def sums(
        self,
        quantities: Sequence[Quantity],
        needs: Needs,
        *,
        counted: Sequence[Quantity] = (),
        by: Sequence[Quantity] = (),
        order: Literal[1, 2, 3] = 2,
        powers: Sequence[int] | None = None,
        reference: Sequence[tuple[str, str]] = (),
    ) -> Sums:
        """Declare sums of quantities, and of their products, over the cells.

        Parameters
        ----------
        quantities : sequence of Quantity
            p numbers for each row.
        needs : mapping of str to {"label", "number"}
            Roles that the quantities use.
        counted : sequence of Quantity
            Further numbers of which only sums are wanted, without weights.
        by : sequence of Quantity
            Keys beside the group columns.
        order : {1, 2, 3}
            2 for products, 3 for moments of higher order too.
        powers : sequence of int, optional
            As in `Sums`.
        reference : sequence of (str, str)
            As in `Sums`.

        Returns
        -------
        Sums
        """
        return Sums(
            table=self,
            keys=(*self.keys, *by),
            needs=tuple(needs.items()),
            quantities=tuple(quantities),
            counted=tuple(counted),
            order=order,
            powers=None if powers is None else tuple(powers),
            # Without clusters the sums of a reference are sums of cells.
            reference=tuple(reference) if self.roles.cluster is not None and order == 3 else (),
        )

    def label_sums(self, roles: tuple[str, ...]) -> Sums:
        """Declare counts of the rows of each cell by their 0/1 labels.

        Parameters
        ----------
        roles : tuple of str
            Roles with labels, for instance ``("y_true", "y_pred")``.

        Returns
        -------
        Sums
            Its quantities are the indicators of the label combinations in the order
            (1, 1), (1, 0), (0, 1), (0, 0); for one role (1,), (0,). Its further sums are how many
            rows, without weights, have each combination.
        """
        needs: Needs = dict.fromkeys(roles, "label")
        for role in roles:
            self.roles.column(role)
        if self.roles.cluster is None:
            return replace(self.sums((), needs), labels=roles)
        indicators = self.indicators(roles)
        return self.sums(indicators, needs, counted=indicators)

    def rate_sums(
        self,
        roles: tuple[str, ...],
        rate: tuple[tuple[int, ...], tuple[int, ...]],
        *,
        reference: Sequence[tuple[str, str]] = (),
    ) -> Sums:
        """Declare what the law of a rate of 0/1 labels needs.

        Parameters
        ----------
        roles : tuple of str
            Roles with labels.
        rate : tuple of two tuples of int
            Which combinations of labels, in the order of `label_sums`, count in the numerator u
            and in the denominator w.
        reference : sequence of (str, str)
            As in `Sums`.

        Returns
        -------
        Sums
            Of u and w; its further sum is how many rows count in w, without weights. Rows that are
            independent and have no weights leave no `CellMoments.units`: counts say all.
        """
        needs: Needs = dict.fromkeys(roles, "label")
        for role in roles:
            self.roles.column(role)
        if self.roles.cluster is None:
            return replace(self.sums((), needs, order=3), labels=roles, rate=rate)
        u, w = self.rate_quantities(roles, rate)
        return self.sums((u, w), needs, counted=(w,), order=3, reference=reference)

    def rate_quantities(
        self, roles: tuple[str, ...], rate: tuple[tuple[int, ...], tuple[int, ...]]
    ) -> tuple[Quantity, Quantity]:
        """Return numerator and denominator of a rate as numbers of each row."""
        combinations = label_combinations(roles)
        both = []
        for chosen in rate:
            used = [
                self.has_labels(roles, labels).cast(nw.Int32).cast(nw.Float64)
                for labels, counts in zip(combinations, chosen, strict=True)
                if counts
            ]
            # Every row with labels counts.
            value = ONE if all(chosen) else reduce(add, used)
            both.append(Quantity("rate", (roles, chosen), value))
        return both[0], both[1]

    def indicators(self, roles: tuple[str, ...]) -> tuple[Quantity, ...]:
        """Return whether a row has each combination of labels, in the order of `label_sums`."""
        return tuple(
            Quantity("labels", (roles, labels), self.has_labels(roles, labels))
            for labels in label_combinations(roles)
        )

    @property
    def keys(self) -> tuple[Quantity, ...]:
        """The group columns as keys, binned where asked."""
        group = self.roles.group
        bins = [tuple(self.roles.bins.get(column, ())) for column in group]
        return tuple(map(Quantity, group, bins, self.group_keys().values()))

    def complete(self, needs: Needs) -> "nw.LazyFrame[Any]":
        """Return the rows in which nothing that is used is missing or impossible, lazily."""
        return self.frame.filter(self.is_complete(needs))

    def keyed(self, needs: Needs) -> "nw.LazyFrame[Any]":
        """Return the complete rows with an integer key in the column `KEY`.

        With clusters the key numbers the clusters in sorted order; without, it numbers the rows
        sorted by every column with a role. Identical rows are exchangeable, so the key gives the
        same split on every engine, whatever the order of the rows.
        """
        frame = self.complete(needs)
        if self.roles.cluster is not None:
            rank = self.key(self.roles.cluster).rank("dense")
            return frame.with_columns(rank.cast(nw.Int64).alias(KEY))
        names = {*self.roles.group, *self.roles.features, *self.roles.columns().values()}
        indexed = frame.with_row_index(KEY, order_by=sorted(names))
        # Spark numbers rows in 32 bits; the hash needs 64.
        return indexed.with_columns(nw.col(KEY).cast(nw.Int64))
