"""The few queries that every audit is made of.

Each query groups by a *status* besides its own keys, so that missing and impossible values are
found in the same scan that computes the answer; the table is read a second time only to say in
detail what was wrong.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._checks import LARGEST
from equipoise._typing import AnyArray
from equipoise.data.batches import NarrowRows, RowReader
from equipoise.data.cells import Cells, Rows, Totals, absent, check_cells, encode
from equipoise.data.clusters import CLUSTER, ClusterProducts, cluster_products
from equipoise.data.columns import (
    COMPLETE,
    INVALID,
    INVALID_LABEL,
    MISSING,
    MISSING_LABEL,
    MOST_ROWS,
    Needs,
    RoleColumns,
)
from equipoise.data.query import collect
from equipoise.data.roles import Roles
from equipoise.exceptions import DataError

__all__ = ["KEY", "Needs", "Table", "label_combinations"]

STATUS = "__eq_status"
KEY = "__eq_key"


def label_combinations(roles: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Return the labels (1, 1), (1, 0), (0, 1), (0, 0) of two roles, (1,), (0,) of one."""
    return list(product((1, 0), repeat=len(roles)))


class Table(RoleColumns):
    """Rows with roles, on DuckDB or Spark, and the queries of the audits."""

    def __init__(self, data: Any, roles: Roles, *, engine: str = "duckdb") -> None:
        super().__init__(data, roles, engine=engine)
        self._label_cells: dict[tuple[str, ...], Cells] = {}

    def label_cells(self, roles: tuple[str, ...]) -> Cells:
        """Count the rows of each cell by their 0/1 labels, in one scan.

        Parameters
        ----------
        roles : tuple of str
            Roles with labels, for instance ``("y_true", "y_pred")``.

        Returns
        -------
        Cells
            Its quantities are the indicators of the label combinations in the order
            (1, 1), (1, 0), (0, 1), (0, 0); for one role (1,), (0,). Its `sums` named ``rows0``,
            ``rows1``, ... are how many rows, without weights, have each combination.
        """
        needs: Needs = dict.fromkeys(roles, "label")
        combinations = label_combinations(roles)
        if self.roles.cluster is not None:
            indicators = {
                f"q{k}": self.has_labels(roles, labels).cast(nw.Float64)
                for k, labels in enumerate(combinations)
            }
            rows = {f"rows{k}": flag for k, flag in enumerate(indicators.values())}
            return self.cells(indicators, needs, sums=rows)
        if roles in self._label_cells:
            return self._label_cells[roles]
        totals = self._labelled(roles)
        group = [totals.keys[name] for name in self.group_keys()]
        cell, labels = encode(group, len(totals.n))
        size = len(labels[0]) if labels else 1
        check_cells(size, self.roles.group)
        code = np.zeros(len(totals.n), dtype=np.int64)
        for name in roles:
            code = 2 * code + (1 - totals.keys[name])
        p = len(combinations)
        slot = cell * p + code
        counts = np.bincount(slot, weights=totals.n, minlength=size * p).reshape(size, p)
        weight = np.bincount(slot, weights=totals.sums["weight"], minlength=size * p)
        square = np.bincount(slot, weights=totals.sums["weight_squared"], minlength=size * p)
        outer = np.zeros((size, p, p))
        outer[:, np.arange(p), np.arange(p)] = square.reshape(size, p)
        cells = Cells(
            columns=self.roles.group,
            labels=labels,
            n=counts.sum(axis=1).round().astype(np.int64),
            total=weight.reshape(size, p).astype(np.float64),
            product=outer,
            n_units=int(totals.n.sum()),
            sums={f"rows{k}": counts[:, k].astype(np.float64) for k in range(p)},
            dropped=totals.dropped,
        )
        self._label_cells[roles] = cells
        return cells

    def cells(
        self,
        quantities: Mapping[str, nw.Expr],
        needs: Needs,
        *,
        sums: Mapping[str, nw.Expr] | None = None,
    ) -> Cells:
        """Sum row quantities and their products over the cells.

        Parameters
        ----------
        quantities : mapping of str to narwhals expression
            p numbers for each row.
        needs : mapping of str to {"label", "number"}
            Roles that the quantities use.
        sums : mapping of str to narwhals expression, optional
            Further numbers of which only sums are wanted (not weighted).

        Returns
        -------
        Cells
        """
        names, extra = list(quantities), list(sums or {})
        keys = list(self.group_keys())
        base = self._base(quantities, self.group_keys(), needs, extra=sums)
        factor = nw.col("__eq_factor")
        pairs = [(a, b) for k, a in enumerate(names) for b in names[k:]]
        products = [
            (nw.col(a) * nw.col(b) * factor * nw.col("__eq_weight")).sum().alias(f"{a}*{b}")
            for a, b in pairs
            if self.roles.cluster is None
        ]
        query = base.group_by([*keys, STATUS]).agg(
            nw.col("__eq_count").sum().alias("n"),
            *[(nw.col(a) * factor).sum().alias(a) for a in names],
            *products,
            *[(nw.col(a) * nw.col("__eq_count")).sum().alias(a) for a in extra],
            *([] if self.roles.weight is None else [factor.sum().alias("weight")]),
        )
        result = collect(query)
        complete = self._complete(result, needs, result["n"])
        cell, labels = encode([result[key][complete] for key in keys], int(complete.sum()))
        size = len(labels[0]) if labels else 1
        check_cells(size, self.roles.group)
        found = {name: value[complete][np.argsort(cell)] for name, value in result.items()}
        n = found["n"].round().astype(np.int64)
        if self.roles.cluster is None:
            outer = np.empty((size, len(names), len(names)))
            for a, b in pairs:
                i, j = names.index(a), names.index(b)
                outer[:, i, j] = outer[:, j, i] = found[f"{a}*{b}"]
            within = ClusterProducts(outer, None, int(n.sum()))
        else:
            rows = base.filter(nw.col(STATUS) == COMPLETE).select(
                CLUSTER, *keys, *[(nw.col(a) * factor).alias(a) for a in names]
            )
            within = cluster_products(rows, {key: found[key] for key in keys}, labels, names)
        return Cells(
            columns=self.roles.group,
            labels=labels,
            n=n,
            total=np.stack([found[a] for a in names], axis=1),
            product=within.product,
            n_units=within.n_units,
            cross=within.cross,
            sums={a: found[a] for a in extra},
            dropped=round(float(result["n"][~complete].sum())),
        )

    def totals(
        self, quantities: Mapping[str, nw.Expr], by: Mapping[str, nw.Expr], needs: Needs
    ) -> Totals:
        """Sum quantities, times weight and count, over any keys, in one scan.

        Parameters
        ----------
        quantities : mapping of str to narwhals expression
            Numbers to sum.
        by : mapping of str to narwhals expression
            Keys; rows with a missing key are left out as missing.
        needs : mapping of str to {"label", "number"}
            Roles that are used.

        Returns
        -------
        Totals
            Sorted by key.
        """
        totals = self._grouped(quantities, by, needs)
        order = np.lexsort([np.asarray(key) for key in reversed(list(totals.keys.values()))])
        return Totals(
            keys={name: key[order] for name, key in totals.keys.items()},
            n=totals.n[order],
            sums={name: value[order] for name, value in totals.sums.items()},
            dropped=totals.dropped,
        )

    def rows(self, quantities: Mapping[str, nw.Expr], needs: Needs) -> Rows:
        """Bring complete rows into memory.

        Parameters
        ----------
        quantities : mapping of str to narwhals expression
            Columns wanted.
        needs : mapping of str to {"label", "number"}
            Roles that are used.

        Returns
        -------
        Rows
        """
        base = self._base(quantities, self.group_keys(), needs)
        if self.roles.cluster is None:
            base = base.drop(CLUSTER, strict=False)
        result = collect(base)
        complete = self._complete(result, needs, result["__eq_count"])
        cell, labels = encode(
            [result[name][complete] for name in self.group_keys()], int(complete.sum())
        )
        unit = None
        if self.roles.cluster is not None:
            unit = np.unique(result[CLUSTER][complete], return_inverse=True)[1]
        return Rows(
            columns=self.roles.group,
            labels=labels,
            values={name: result[name][complete] for name in quantities},
            cell=cell,
            unit=unit,
            weight=None if self.roles.weight is None else result["__eq_weight"][complete],
            count=None if self.roles.count is None else result["__eq_count"][complete],
            dropped=round(float(result["__eq_count"][~complete].sum())),
        )

    def narrow(self, quantities: Mapping[str, nw.Expr], needs: Needs) -> NarrowRows:
        """Check the rows in one scan; return the complete ones with few columns, not yet read.

        Parameters
        ----------
        quantities : mapping of str to narwhals expression
            Columns wanted.
        needs : mapping of str to {"label", "number"}
            Roles that are used.

        Returns
        -------
        NarrowRows
        """
        keys = self.group_keys()
        totals = self._grouped(quantities, keys, needs)
        _, labels = encode(list(totals.keys.values()), len(totals.n))
        check_cells(len(totals.n), self.roles.group)
        multipliers = [
            f"__eq_{role}" for role in ("cluster", "weight", "count") if getattr(self.roles, role)
        ]
        base = self._base(quantities, keys, needs).filter(nw.col(STATUS) == COMPLETE)
        return NarrowRows(
            frame=base.select(*keys, *quantities, *multipliers),
            reader=RowReader(
                columns=self.roles.group,
                keys=tuple(keys),
                labels=labels,
                quantities=tuple(quantities),
                multipliers=tuple(multipliers),
                dropped=totals.dropped,
            ),
        )

    def complete(self, needs: Needs) -> "nw.LazyFrame[Any]":
        """Return the rows in which nothing that is used is missing, lazily.

        Raises as the other queries do; costs one scan to check.
        """
        self._grouped({}, {}, needs)
        return self.frame.filter(self.status(needs) == COMPLETE)

    def keyed(self, needs: Needs) -> "nw.LazyFrame[Any]":
        """Return the complete rows with an integer key in the column `KEY`.

        With clusters the key numbers the clusters in sorted order; without, it numbers the rows
        sorted by every column with a role. Identical rows are exchangeable, so the key gives the
        same split on every engine, whatever the order of the rows.
        """
        frame = self.complete(needs)
        if self.roles.cluster is not None:
            rank = nw.col(self.roles.cluster).rank("dense")
            return frame.with_columns(rank.cast(nw.Int64).alias(KEY))
        names = {*self.roles.group, *self.roles.features, *self.roles.columns().values()}
        indexed = frame.with_row_index(KEY, order_by=sorted(names))
        # Spark numbers rows in 32 bits; the hash needs 64.
        return indexed.with_columns(nw.col(KEY).cast(nw.Int64))

    def _base(
        self,
        quantities: Mapping[str, nw.Expr],
        keys: Mapping[str, nw.Expr],
        needs: Needs,
        *,
        extra: Mapping[str, nw.Expr] | None = None,
    ) -> "nw.LazyFrame[Any]":
        """Project each row to its keys, quantities, status, weight and count."""
        columns = [expr.alias(name) for name, expr in keys.items()]
        columns += [
            expr.cast(nw.Float64).alias(name)
            for name, expr in (*quantities.items(), *(extra or {}).items())
        ]
        columns += self._multipliers()
        if self.roles.cluster is not None:
            columns.append(nw.col(self.roles.cluster).alias(CLUSTER))
        status = self.status(needs)
        if quantities:
            # A quantity of the user's own can be null or infinite where its columns are complete.
            bad = [
                ~nw.col(name).is_finite() | (nw.col(name).abs() > LARGEST) for name in quantities
            ]
            gone = [nw.col(name).is_null() for name in quantities]
            selected = self.frame.select(*columns, status.alias(STATUS))
            combined = (
                nw.when(nw.col(STATUS) != COMPLETE)
                .then(nw.col(STATUS))
                .otherwise(
                    nw.when(nw.any_horizontal(*gone, ignore_nulls=False))
                    .then(MISSING)
                    .otherwise(
                        nw.when(nw.any_horizontal(*bad, ignore_nulls=False))
                        .then(INVALID)
                        .otherwise(COMPLETE)
                    )
                )
            )
            return selected.with_columns(combined.alias(STATUS))
        return self.frame.select(*columns, status.alias(STATUS))

    def _labelled(self, roles: tuple[str, ...]) -> Totals:
        """Count rows by group columns and codes of labels; what is missing shows in the keys."""
        keys = self.group_keys()
        codes = {role: self.label_code(role) for role in roles}
        columns = [expr.alias(name) for name, expr in (keys | codes).items()]
        by = [*keys, *codes]
        if not self._plain:
            columns += [*self._multipliers(), self.status({}).alias(STATUS)]
            by.append(STATUS)
        result = collect(self.frame.select(*columns).group_by(by).agg(*self._counted()))
        status = result.get(STATUS, np.full(len(result["n"]), COMPLETE))
        for role in roles:
            status = np.where(result[role] == INVALID_LABEL, INVALID, status)
        gone_labels = [result[role] == MISSING_LABEL for role in roles]
        for gone in (*gone_labels, *(absent(result[name]) for name in keys)):
            status = np.where(gone, MISSING, status)
        needs: Needs = dict.fromkeys(roles, "label")
        return self._totals(
            result | {STATUS: status}, [*keys, *codes], ["weight", "weight_squared"], needs
        )

    def _grouped(
        self, quantities: Mapping[str, nw.Expr], keys: Mapping[str, nw.Expr], needs: Needs
    ) -> Totals:
        base = self._base(quantities, keys, needs)
        factor = nw.col("__eq_factor")
        sums = [(nw.col(name) * factor).sum().alias(name) for name in quantities]
        result = collect(base.group_by([*keys, STATUS]).agg(*self._counted(), *sums))
        return self._totals(result, list(keys), list(quantities), needs)

    @property
    def _plain(self) -> bool:
        """Whether every row counts once."""
        return self.roles.weight is None and self.roles.count is None

    def _multipliers(self) -> list[nw.Expr]:
        """Return what a row is multiplied by: weight, count and their product."""
        weight = nw.lit(1.0) if self.roles.weight is None else self.value("weight")
        count = nw.lit(1.0) if self.roles.count is None else self.value("count")
        return [
            weight.alias("__eq_weight"),
            count.alias("__eq_count"),
            (weight * count).alias("__eq_factor"),
        ]

    def _counted(self) -> list[nw.Expr]:
        """Return the aggregates that count rows, weights and squared weights."""
        if self._plain:
            return [nw.len().cast(nw.Float64).alias("n")]
        factor = nw.col("__eq_factor")
        return [
            nw.col("__eq_count").sum().alias("n"),
            factor.sum().alias("weight"),
            (factor * nw.col("__eq_weight")).sum().alias("weight_squared"),
        ]

    def _totals(
        self, result: dict[str, AnyArray], keys: list[str], sums: list[str], needs: Needs
    ) -> Totals:
        """Keep the groups whose rows are complete; raise as `_complete` does."""
        complete = self._complete(result, needs, result["n"])
        n = result["n"][complete]
        return Totals(
            keys={name: result[name][complete] for name in keys},
            n=n.round().astype(np.int64),
            sums={name: result[name][complete] if name in result else n for name in sums},
            dropped=round(float(result["n"][~complete].sum())),
        )

    def _complete(self, result: dict[str, AnyArray], needs: Needs, n: AnyArray) -> AnyArray:
        """Return which groups are complete; raise on impossible values, or on missing ones."""
        status = result[STATUS]
        if (status == INVALID).any() or (
            self.roles.missing == "raise" and (status == MISSING).any()
        ):
            self.explain(needs)
        if n.sum() > MOST_ROWS:
            raise DataError(f"`count` adds up to {n.sum():.3g} rows; the limit is 2^53.")
        complete: AnyArray = status == COMPLETE
        if not n[complete].sum() > 0:
            raise DataError(f"No complete row is left of {int(n.sum())}; nothing can be audited.")
        if self.roles.weight is not None and "weight" in result:
            weights = result["weight"][complete]
            if not weights.sum() > 0:
                raise DataError(f"`weight` column {self.roles.weight!r} is zero in every row.")
        return complete
