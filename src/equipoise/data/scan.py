"""One scan answers what many questions declare.

Rows are grouped by the keys of all declarations, by the codes of 0/1 labels, and by a *pattern*: an
integer with a bit for whatever is missing or impossible in a row. Each declaration is answered from
the patterns that its own columns allow, so that merging never changes which rows count. Missing and
impossible values are found in the same scan; the table is read again only to say what was wrong.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain, combinations_with_replacement
from operator import add
from typing import Any, TypeVar

import narwhals as nw
import numpy as np

from equipoise._checks import LARGEST
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.data import groups
from equipoise.data.clusters import ClusterProducts, cluster_products
from equipoise.data.columns import INVALID_LABEL, MISSING_LABEL, MOST_ROWS, Fault
from equipoise.data.groups import absent, check_cells, encode
from equipoise.data.query import CLUSTER, COUNT, WEIGHT, NarrowRows, RowReader, collect
from equipoise.data.table import Quantity, Rows, Sums
from equipoise.exceptions import DataError, EquipoiseError
from equipoise.moments import CellMoments, sum_by

__all__ = ["answer"]

PATTERN, FACTOR = "__eq_pattern", "__eq_factor"
MOST_FAULTS = 62
"""Bits of a pattern."""

_Named = TypeVar("_Named", bound=Hashable)


def answer(declared: Sequence[Sums | Rows]) -> list[CellMoments | NarrowRows | EquipoiseError]:
    """Answer declarations, those about one table in one scan.

    Parameters
    ----------
    declared : sequence of Sums or Rows
        What questions need.

    Returns
    -------
    list of CellMoments, NarrowRows or EquipoiseError
        In the same order; an error concerns its own declaration only.
    """
    wanted = [need.sums if isinstance(need, Rows) else need for need in declared]
    errors: dict[Sums, EquipoiseError] = {}
    for batch in _batches(sums for sums in wanted if sums not in sums.table.answers):
        for sums, cells in _answers(batch).items():
            if isinstance(cells, CellMoments):
                sums.table.answers[sums] = cells
            else:
                errors[sums] = cells
    found: list[CellMoments | NarrowRows | EquipoiseError] = []
    for need, sums in zip(declared, wanted, strict=True):
        if sums in errors:
            found.append(errors[sums])
        else:
            cells = sums.table.answers[sums]
            found.append(_rows(sums, cells) if isinstance(need, Rows) else cells)
    return found


def _batches(declared: Iterable[Sums]) -> Iterator[list[Sums]]:
    """Part declarations into those that one scan can answer."""
    alike: dict[Hashable, list[Sums]] = {}
    for sums in dict.fromkeys(declared):
        # Clusters are counted once for all: their declarations must agree on the rows.
        rows = (sums.keys, frozenset(_Faults(sums).names)) if sums.table.roles.cluster else None
        alike.setdefault((sums.table, rows), []).append(sums)
    for batch in alike.values():
        part: list[Sums] = []
        for sums in batch:
            names = {name for one in (*part, sums) for name in _Faults(one).names}
            if part and len(names) > MOST_FAULTS:
                yield part
                part = []
            part.append(sums)
        yield part


def _answers(batch: list[Sums]) -> dict[Sums, CellMoments | EquipoiseError]:
    scan = _Scan(batch)
    try:
        result = scan.result()
    except EquipoiseError as error:
        if len(batch) == 1:
            return {batch[0]: error}
        # Whose fault it is shows when each is asked alone.
        return {sums: cells for one in batch for sums, cells in _answers([one]).items()}
    answers: dict[Sums, CellMoments | EquipoiseError] = {}
    for sums in batch:
        try:
            answers[sums] = scan.cells(sums, result)
        except EquipoiseError as error:
            answers[sums] = error
    return answers


def _rows(sums: Sums, cells: CellMoments) -> NarrowRows:
    """Return the complete rows with few columns, not yet read."""
    if sums.labels:
        sums = replace(sums, quantities=sums.table.indicators(sums.labels), labels=())
    scan = _Scan([sums], whole=True)
    present = {"cluster": CLUSTER, "weight": WEIGHT, "count": COUNT}
    reader = RowReader(
        columns=cells.columns,
        keys=tuple(scan.keys.values()),
        labels=cells.labels,
        quantities=tuple(scan.quantities.values()),
        multipliers=tuple(
            name for role, name in present.items() if getattr(sums.table.roles, role)
        ),
        dropped=cells.dropped,
    )
    frame = scan.complete().select(*reader.keys, *reader.quantities, *reader.multipliers)
    return NarrowRows(frame=frame, reader=reader)


class _Faults:
    """What can be wrong with a row that a declaration uses, by name.

    Labels that are counted show it in their codes, and groups in their keys; with `whole` groups
    that are missing are faults too, so that a row is complete when it has none.
    """

    def __init__(self, sums: Sums, *, whole: bool = False) -> None:
        table, needs = sums.table, {} if sums.labels else dict(sums.needs)
        self.missing = table.missing(needs) | (table.missing_groups() if whole else {})
        self.impossible = table.impossible(needs)
        # A quantity can be null or infinite where its columns are complete.
        self.null: dict[Fault, Quantity] = {(q, "null"): q for q in sums.quantities}
        self.infinite: dict[Fault, Quantity] = {(q, "infinite"): q for q in sums.quantities}

    @property
    def names(self) -> tuple[Fault, ...]:
        """The names of all."""
        return (*self.missing, *self.impossible, *self.null, *self.infinite)


def _named(prefix: str, things: Iterable[_Named]) -> dict[_Named, str]:
    """Give each distinct thing the name of a column."""
    return {thing: f"__eq_{prefix}{k}" for k, thing in enumerate(dict.fromkeys(things))}


class _Scan:
    """The query that answers declarations about one table; `whole` as in `_Faults`."""

    def __init__(self, batch: list[Sums], *, whole: bool = False) -> None:
        self.table = batch[0].table
        roles = self.table.roles
        self.clustered = roles.cluster is not None
        self.plain = roles.weight is None and roles.count is None
        self.wide = len({sums.keys for sums in batch}) > 1
        self.keys = _named("key", (key for sums in batch for key in sums.keys))
        self.codes = _named("label", (role for sums in batch for role in sums.labels))
        self.quantities = _named("quantity", (q for sums in batch for q in sums.quantities))
        self.counted = _named("counted", (q for sums in batch for q in sums.counted))
        self.pairs = dict.fromkeys(pair for sums in batch for pair in self._pairs(sums))
        self.faults = {sums: _Faults(sums, whole=whole or self.clustered) for sums in batch}
        names = dict.fromkeys(name for faults in self.faults.values() for name in faults.names)
        self.bits = {name: 1 << k for k, name in enumerate(names)}
        self._products: ClusterProducts | None = None

    def rows(self) -> "nw.LazyFrame[Any]":
        """Project each row to its keys, codes of labels, quantities, multipliers and pattern."""
        table = self.table
        columns = [key.value.alias(name) for key, name in self.keys.items()]
        columns += [table.label_code(role).alias(name) for role, name in self.codes.items()]
        columns += [
            quantity.value.cast(nw.Float64).alias(name)
            for quantity, name in (*self.quantities.items(), *self.counted.items())
        ]
        if not self.plain:
            weight = nw.lit(1.0) if table.roles.weight is None else table.value("weight")
            count = nw.lit(1.0) if table.roles.count is None else table.value("count")
            columns += [weight.alias(WEIGHT), count.alias(COUNT), (weight * count).alias(FACTOR)]
        if self.clustered:
            columns.append(nw.col(table.roles.column("cluster")).alias(CLUSTER))
        if PATTERN not in self.by:
            return table.frame.select(*columns)
        wrong: dict[Fault, nw.Expr] = {}
        later: dict[Fault, nw.Expr] = {}
        for faults in self.faults.values():
            wrong |= faults.missing | faults.impossible
            for name, quantity in faults.null.items():
                later[name] = nw.col(self.quantities[quantity]).is_null()
            for name, quantity in faults.infinite.items():
                value = nw.col(self.quantities[quantity])
                later[name] = ~value.is_finite() | (value.abs() > LARGEST)
        frame = table.frame.select(*columns, self._pattern(wrong).alias(PATTERN))
        if not later:
            return frame
        return frame.with_columns((nw.col(PATTERN) + self._pattern(later)).alias(PATTERN))

    def complete(self) -> "nw.LazyFrame[Any]":
        """Return the rows without a fault."""
        return self.rows().filter(nw.col(PATTERN) == 0)

    @property
    def by(self) -> list[str]:
        """The columns by which rows are grouped."""
        columns = [*self.keys.values(), *self.codes.values()]
        return [*columns, PATTERN] if self.bits or not columns else columns

    def result(self) -> dict[str, AnyArray]:
        """Run the query."""
        query = self.rows().group_by(self.by).agg(*self._aggregates())
        if self.wide:
            query = query.head(groups.MAX_CELLS + 1)
        result = collect(query, keys=self.keys.values())
        if self.wide and len(result["n"]) > groups.MAX_CELLS:
            raise DataError("Too many cells for one scan.")
        # A count that is missing leaves no number.
        return result | {"n": np.nan_to_num(result["n"])}

    def cells(self, sums: Sums, result: dict[str, AnyArray]) -> CellMoments:
        """Take what concerns one declaration; raise if its rows cannot be used."""
        complete = self._complete(sums, result)
        own = {name: values[complete] for name, values in result.items()}
        keys = [self.keys[key] for key in sums.keys]
        columns = tuple(key.name for key in sums.keys)
        cell, labels = encode([own[key] for key in keys], len(own["n"]))
        size = len(labels[0]) if labels else 1
        check_cells(size, columns)
        add_up = self._label_counts if sums.labels else self._quantity_sums
        total, product, further = add_up(sums, own, cell, size)
        cells = CellMoments(
            total=total,
            product=product,
            sums=further,
            n=sum_by(cell, own["n"], size).round().astype(np.int64),
            n_units=round(float(own["n"].sum())),
            columns=columns,
            labels=labels,
            dropped=round(float(result["n"][~complete].sum())),
        )
        if not self.clustered or sums.order == 1:
            return cells
        if self._products is None:
            self._products = self._by_cluster(
                cells, {key: own[key][np.argsort(cell)] for key in keys}
            )
        mine = [list(self.quantities).index(quantity) for quantity in sums.quantities]
        return self._products.of(cells, mine)

    def _complete(self, sums: Sums, result: dict[str, AnyArray]) -> BoolArray:
        """Return which groups are complete; raise on impossible values, or on missing ones."""
        n, table, faults = result["n"], self.table, self.faults[sums]
        pattern = result.get(PATTERN, np.zeros(len(n), dtype=np.int64))
        gone = (pattern & self._mask(faults.missing, faults.null)) != 0
        wrong = (pattern & self._mask(faults.impossible, faults.infinite)) != 0
        for key in sums.keys:
            gone |= absent(result[self.keys[key]])
        codes = [result[self.codes[role]] for role in sums.labels]
        for code in codes:
            gone |= code == MISSING_LABEL
            wrong |= code == INVALID_LABEL
        roles = [role for role, _ in sums.needs]
        if table.translated(roles) and not any((code == 1).any() for code in codes):
            table.check_positive()
        if (wrong & ~gone).any() or (table.roles.missing == "raise" and gone.any()):
            sums.table.explain(dict(sums.needs))
        if n.sum() > MOST_ROWS:
            raise DataError(f"`count` adds up to {n.sum():.3g} rows; the limit is 2^53.")
        complete = ~(gone | wrong)
        if not n[complete].sum() > 0:
            raise DataError(f"No complete row is left of {int(n.sum())}; nothing can be audited.")
        if table.roles.weight is not None and not result["weight"][complete].sum() > 0:
            raise DataError(f"`weight` column {table.roles.weight!r} is zero in every row.")
        return np.asarray(complete)

    def _quantity_sums(
        self, sums: Sums, own: dict[str, AnyArray], cell: IntArray, size: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        names = [self.quantities[quantity] for quantity in sums.quantities]
        product = np.zeros((size, len(names), len(names)))
        for a, b in self._pairs(sums):
            i, j = names.index(a), names.index(b)
            found = np.bincount(cell, weights=own[f"{a}*{b}"], minlength=size)
            product[:, i, j] = product[:, j, i] = found
        total = sum_by(cell, _stacked(own, names), size)
        further = sum_by(cell, _stacked(own, [self.counted[q] for q in sums.counted]), size)
        return total, product, further

    def _label_counts(
        self, sums: Sums, own: dict[str, AnyArray], cell: IntArray, size: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        p = 2 ** len(sums.labels)
        slot = cell
        for role in sums.labels:
            slot = 2 * slot + (1 - own[self.codes[role]])
        names = ["n", "n", "n"] if self.plain else ["n", "weight", "weight_squared"]
        n, total, square = sum_by(slot, _stacked(own, names), size * p).T.reshape(3, size, p)
        product = np.zeros((size, p, p))
        product[:, np.arange(p), np.arange(p)] = square
        return total, product, n

    def _by_cluster(self, cells: CellMoments, keys: dict[str, AnyArray]) -> ClusterProducts:
        names = list(self.quantities.values())
        factor = 1.0 if self.plain else nw.col(FACTOR)
        rows = self.complete().select(
            CLUSTER, *keys, *[(nw.col(name) * factor).alias(name) for name in names]
        )
        return cluster_products(rows, keys, cells, names)

    def _pairs(self, sums: Sums) -> list[tuple[str, str]]:
        """Return the products that are summed in the query; clusters are multiplied later."""
        if sums.order == 1 or self.clustered:
            return []
        names = sorted(self.quantities[quantity] for quantity in sums.quantities)
        return list(combinations_with_replacement(names, 2))

    def _aggregates(self) -> list[nw.Expr]:
        """Return the sums of the query: rows, weights, quantities and their products."""
        if self.plain:
            return [
                nw.len().cast(nw.Float64).alias("n"),
                *[nw.col(a).sum() for a in (*self.quantities.values(), *self.counted.values())],
                *[(nw.col(a) * nw.col(b)).sum().alias(f"{a}*{b}") for a, b in self.pairs],
            ]
        count, factor = nw.col(COUNT), nw.col(FACTOR)
        square = factor * nw.col(WEIGHT)
        return [
            count.sum().alias("n"),
            factor.sum().alias("weight"),
            square.sum().alias("weight_squared"),
            *[(nw.col(a) * factor).sum().alias(a) for a in self.quantities.values()],
            *[(nw.col(a) * count).sum().alias(a) for a in self.counted.values()],
            *[(nw.col(a) * nw.col(b) * square).sum().alias(f"{a}*{b}") for a, b in self.pairs],
        ]

    def _mask(self, *faults: Mapping[Fault, object]) -> int:
        return sum(self.bits[name] for name in {*chain(*faults)})

    def _pattern(self, faults: Mapping[Fault, nw.Expr]) -> nw.Expr:
        """Return the sum of the bits of the faults that a row has."""
        bits = [nw.when(wrong).then(self.bits[name]).otherwise(0) for name, wrong in faults.items()]
        return reduce(add, bits, nw.lit(0)).cast(nw.Int64)


def _stacked(own: dict[str, AnyArray], names: list[str]) -> FloatArray:
    return np.array([own[name] for name in names]).reshape(len(names), len(own["n"])).T
