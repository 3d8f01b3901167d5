"""One scan answers what many questions declare.

Rows are grouped by the keys of all declarations, by the codes of 0/1 labels, and by a *pattern*: an
integer with a bit for whatever is missing or impossible in a row. Each declaration is answered from
the patterns that its own columns allow, so that merging never changes which rows count. Missing and
impossible values are found in the same scan; the table is read again only to say what was wrong.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import add, or_
from typing import Any, TypeVar

import narwhals as nw
import numpy as np

from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.data import groups
from equipoise.data.clusters import ClusterProducts, Wanted, cluster_products
from equipoise.data.columns import INVALID_LABEL, MISSING_LABEL, MOST_ROWS, Fault
from equipoise.data.groups import absent, check_cells, encode
from equipoise.data.products import Term, higher_moments, product_terms, symmetric_products
from equipoise.data.query import (
    CLUSTER,
    COUNT,
    WEIGHT,
    NarrowRows,
    RowReader,
    collect,
    recorded,
)
from equipoise.data.table import Quantity, Rows, Sums
from equipoise.exceptions import DataError, EquipoiseError
from equipoise.moments import CellMoments, UnitMoments, roll_up, sum_by

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
    kept = [sums.table.kept(need) for need, sums in zip(declared, wanted, strict=True)]
    scanned = [sums for sums, known in zip(wanted, kept, strict=True) if known is None]
    for sums in scanned:
        _from_finer(sums)
    for batch in _batches(sums for sums in scanned if sums not in sums.table.answers):
        with recorded() as sent:
            answers = _answers(batch)
        for sums, cells in answers.items():
            sums.table.sent[sums] = tuple(sent)
            if isinstance(cells, CellMoments):
                sums.table.answers[sums] = cells
            else:
                errors[sums] = cells
    found: list[CellMoments | NarrowRows | EquipoiseError] = []
    for need, sums, known in zip(declared, wanted, kept, strict=True):
        if known is not None:
            found.append(known)
        elif sums in errors:
            found.append(errors[sums])
        else:
            cells = sums.table.answers[sums]
            found.append(_rows(sums, cells) if isinstance(need, Rows) else cells)
    return found


def _from_finer(sums: Sums) -> None:
    """Answer from cells of more columns, where these are known and no row was left out of them."""
    table, keys = sums.table, {*sums.keys}
    if sums in table.answers or table.roles.cluster is not None:
        return
    for other, cells in table.answers.items():
        if cells.dropped == 0 and keys < {*other.keys} and replace(other, keys=sums.keys) == sums:
            table.answers[sums] = roll_up(cells, [key.name for key in sums.keys])
            table.sent[sums] = table.sent[other]
            return


def _batches(declared: Iterable[Sums]) -> Iterator[list[Sums]]:
    """Part declarations into those that one scan can answer."""
    alike: dict[Hashable, list[Sums]] = {}
    faults: dict[Sums, tuple[Fault, ...]] = {}
    for sums in dict.fromkeys(declared):
        try:
            faults[sums] = _Faults(sums).names
        except EquipoiseError:
            yield [sums]  # alone, so that its error ends no other
            continue
        # Clusters are counted once for all: their declarations must agree on the rows.
        rows = (sums.keys, frozenset(faults[sums])) if sums.table.roles.cluster else None
        alike.setdefault((sums.table, rows), []).append(sums)
    for batch in alike.values():
        part: list[Sums] = []
        for sums in batch:
            names = {name for one in (*part, sums) for name in faults[one]}
            if part and len(names) > MOST_FAULTS:
                yield part
                part = []
            part.append(sums)
        yield part


def _answers(batch: list[Sums]) -> dict[Sums, CellMoments | EquipoiseError]:
    try:
        scan = _Scan(batch)
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
        quantities = (
            sums.table.indicators(sums.labels)
            if sums.rate is None
            else sums.table.rate_quantities(sums.labels, sums.rate)
        )
        sums = replace(sums, quantities=quantities, labels=(), rate=None)
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
    # Where no row has a fault, none is looked at again for one; a row that counts as none may.
    counted = sums.table.roles.count is not None
    rows = scan.complete() if counted or cells.dropped else scan.rows()
    frame = rows.select(*reader.keys, *reader.quantities, *reader.multipliers)
    return NarrowRows(frame=frame, reader=reader, n_rows=0 if counted else int(cells.n.sum()))


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
        varying = [q for q in sums.quantities if not q.is_one]
        self.null: dict[Fault, Quantity] = {(q, "null"): q for q in varying}
        self.infinite: dict[Fault, Quantity] = {(q, "infinite"): q for q in varying}

    @property
    def names(self) -> tuple[Fault, ...]:
        """The names of all."""
        return (*self.missing, *self.impossible, *self.null, *self.infinite)


def _named(prefix: str, things: Iterable[_Named], taken: Collection[str] = ()) -> dict[_Named, str]:
    """Give each distinct thing the name of a column, other than those that are taken."""
    mark = f"__eq_{prefix}"
    while any(name.startswith(mark) for name in taken):
        mark += "_"
    return {thing: f"{mark}{k}" for k, thing in enumerate(dict.fromkeys(things))}


class _Scan:
    """The query that answers declarations about one table; `whole` as in `_Faults`."""

    def __init__(self, batch: list[Sums], *, whole: bool = False) -> None:
        self.table = batch[0].table
        roles = self.table.roles
        self.clustered = roles.cluster is not None
        self.weighted = roles.weight is not None
        self.plain = roles.weight is None and roles.count is None
        self.wide = len({sums.keys for sums in batch}) > 1
        self.keys = _named("key", (key for sums in batch for key in sums.keys), self.table.schema)
        # Views of the table may give the same role to different columns.
        self.labels = {
            (role, sums.table.roles.column(role)): sums.table.label_code(role)
            for sums in batch
            for role in sums.labels
        }
        self.codes = _named("label", self.labels)
        self.quantities = _named("quantity", (q for sums in batch for q in sums.quantities))
        self.counted = _named("counted", (q for sums in batch for q in sums.counted))
        self.powers = max((sums.order for sums in batch if sums.rate is not None), default=0) > 2
        self.faults = {sums: _Faults(sums, whole=whole or self.clustered) for sums in batch}
        names = dict.fromkeys(name for faults in self.faults.values() for name in faults.names)
        self.bits = {name: 1 << k for k, name in enumerate(names)}
        self.batch = batch
        self._clusters: dict[Sums, ClusterProducts] | None = None

    def rows(self) -> "nw.LazyFrame[Any]":
        """Project each row to its keys, codes of labels, quantities, multipliers and pattern."""
        table = self.table
        columns = [key.value.alias(name) for key, name in self.keys.items()]
        columns += [self.labels[label].alias(name) for label, name in self.codes.items()]
        columns += [
            table.number(quantity.value).alias(name)
            for quantity, name in (*self.quantities.items(), *self.counted.items())
        ]
        if not self.plain:
            one = table.number(nw.lit(1.0))
            weight = one if table.roles.weight is None else table.value("weight")
            count = one if table.roles.count is None else table.value("count")
            columns += [weight.alias(WEIGHT), count.alias(COUNT), (weight * count).alias(FACTOR)]
        if self.clustered:
            columns.append(table.key(table.roles.column("cluster")).alias(CLUSTER))
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
                later[name] = table.is_beyond(value)
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
        result |= {"n": np.nan_to_num(result["n"])}
        return result | {name: result[same] for name, same in self._repeated().items()}

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
        cells = CellMoments(
            **add_up(sums, own, cell, size),
            n=sum_by(cell, own["n"], size).round().astype(np.int64),
            n_units=round(float(own["n"].sum())),
            columns=columns,
            labels=labels,
            dropped=round(float(result["n"][~complete].sum())),
        )
        if not self.clustered or sums.order == 1:
            return cells
        if self._clusters is None:
            self._clusters = self._by_cluster(
                cells, {key: own[key][np.argsort(cell)] for key in keys}
            )
        return replace(cells, **self._clusters[sums]._asdict())

    def _complete(self, sums: Sums, result: dict[str, AnyArray]) -> BoolArray:
        """Return which groups are complete; raise on impossible values, or on missing ones."""
        n, table, faults = result["n"], sums.table, self.faults[sums]
        pattern = result.get(PATTERN, np.zeros(len(n), dtype=np.int64))
        gone = (pattern & self._mask(faults.missing, faults.null)) != 0
        wrong = (pattern & self._mask(faults.impossible, faults.infinite)) != 0
        for key in sums.keys:
            gone |= absent(result[self.keys[key]])
        codes = [result[name] for name in self._codes(sums)]
        for code in codes:
            gone |= code == MISSING_LABEL
            wrong |= code == INVALID_LABEL
        roles = [role for role, _ in sums.needs]
        if table.translated(roles) and not (codes and all((code == 1).any() for code in codes)):
            table.check_positive(roles)
        if (wrong & ~gone).any() or (table.roles.missing == "raise" and gone.any()):
            table.explain(dict(sums.needs))
        if n.sum() > MOST_ROWS:
            raise DataError(f"`count` adds up to {n.sum():.3g} rows; the limit is 2^53.")
        complete = ~(gone | wrong)
        if not n[complete].sum() > 0:
            raise DataError(f"No complete row is left of {int(n.sum())}; nothing can be audited.")
        if table.roles.weight is not None and not result["weight"][complete].sum() > 0:
            raise DataError(f"`weight` column {table.roles.weight!r} is zero in every row.")
        return np.asarray(complete)

    def _codes(self, sums: Sums) -> list[str]:
        """Return the columns with the codes of a declaration's labels."""
        return [self.codes[role, sums.table.roles.column(role)] for role in sums.labels]

    def _quantity_sums(
        self, sums: Sums, own: dict[str, AnyArray], cell: IntArray, size: int
    ) -> dict[str, Any]:
        names = [self.quantities[quantity] for quantity in sums.quantities]
        terms = self._products(sums)
        added = dict(zip(terms, sum_by(cell, _stacked(own, list(terms)), size).T, strict=True))
        return {
            "total": sum_by(cell, _stacked(own, names), size),
            "product": symmetric_products(added, names, size),
            "units": higher_moments(added, names, size) if sums.order == 3 and terms else None,
            "sums": sum_by(cell, _stacked(own, [self.counted[q] for q in sums.counted]), size),
        }

    def _label_counts(
        self, sums: Sums, own: dict[str, AnyArray], cell: IntArray, size: int
    ) -> dict[str, Any]:
        p = 2 ** len(sums.labels)
        slot = cell
        for name in self._codes(sums):
            slot = 2 * slot + (1 - own[name])
        names = ["n", "n", "n"] if self.plain else ["n", "weight", "weight2"]
        names += ["weight3", "weight4", "weight5", "live"] if self.weighted and self.powers else []
        sums_of = sum_by(slot, _stacked(own, names), size * p).T.reshape(len(names), size, p)
        n, total, square = sums_of[:3]
        if sums.rate is None:
            product = np.zeros((size, p, p))
            product[:, np.arange(p), np.arange(p)] = square
            return {"total": total, "product": product, "sums": n}
        change = np.array(sums.rate, dtype=np.float64)
        outer = np.einsum("ac,bc->cab", change, change)
        units = None
        if self.weighted:
            # A row has one combination: products of u and w are those of their coefficients.
            third, fourth, fifth, live = sums_of[3:]
            units = UnitMoments(
                n=live @ (change != 0.0).T,
                third=np.einsum("kc,ac,bc,dc->kabd", third, change, change, change),
                fourth=fourth @ (change**4).T,
                fifth=fifth @ (change**5).T,
            )
        return {
            "total": total @ change.T,
            "product": np.einsum("kc,cab->kab", square, outer),
            "units": units,
            "sums": (n @ change[1])[:, None],
        }

    def _by_cluster(
        self, cells: CellMoments, keys: dict[str, AnyArray]
    ) -> dict[Sums, ClusterProducts]:
        factor = 1.0 if self.plain else nw.col(FACTOR)
        names = self.quantities.values()
        rows = self.complete().select(
            CLUSTER, *keys, *[(nw.col(name) * factor).alias(name) for name in names]
        )
        wanted = [sums for sums in self.batch if sums.order > 1]
        found = cluster_products(
            rows,
            keys,
            cells,
            [
                Wanted(
                    names=tuple(self.quantities[q] for q in sums.quantities),
                    higher=sums.order == 3,
                    powers=tuple(self.quantities[q] for q in sums.with_powers),
                    reference=sums.reference,
                )
                for sums in wanted
            ],
        )
        return dict(zip(wanted, found, strict=True))

    def _products(self, sums: Sums) -> dict[str, Term]:
        """Return the products that are summed in the query; clusters are multiplied later."""
        if sums.order == 1 or self.clustered:
            return {}
        names = [self.quantities[quantity] for quantity in sums.quantities]
        powers = [self.quantities[quantity] for quantity in sums.with_powers]
        return product_terms(names, higher=sums.order == 3, powers=powers)

    def _repeated(self) -> dict[str, str]:
        """Return sums that are others because a quantity is one in every row, and which."""
        summed = (*self.quantities.items(), *self.counted.items())
        ones = {name for quantity, name in summed if quantity.is_one}
        if not self.plain or not ones:
            return {}
        same = dict.fromkeys(ones, "n")
        terms = {name for sums in self.batch for name in self._products(sums)}
        for name in terms:
            factors = name.removesuffix("!=0").split("*")
            if ones & {*factors}:
                same[name] = "*".join(x for x in factors if x not in ones) or "n"
        return same

    def _aggregates(self) -> list[nw.Expr]:
        """Return the sums of the query: rows, weights, quantities and their products."""
        terms = {name: term for sums in self.batch for name, term in self._products(sums).items()}
        if self.plain:
            known = self._repeated()
            return [
                nw.len().cast(nw.Float64).alias("n"),
                *[
                    nw.col(a).sum()
                    for a in (*self.quantities.values(), *self.counted.values())
                    if a not in known
                ],
                *[
                    term.value.sum().alias(name)
                    for name, term in terms.items()
                    if name not in known
                ],
            ]
        count, factor, weight = nw.col(COUNT), nw.col(FACTOR), nw.col(WEIGHT)
        powers = [nw.lit(1.0), factor]
        while len(powers) < 6:
            powers.append(powers[-1] * weight)
        live = nw.when(weight != 0.0).then(count).otherwise(0.0)
        more = [powers[k].sum().alias(f"weight{k}") for k in (3, 4, 5)] if self.powers else []
        return [
            count.sum().alias("n"),
            factor.sum().alias("weight"),
            powers[2].sum().alias("weight2"),
            *more,
            *([live.sum().alias("live")] if more else []),
            *[(nw.col(a) * factor).sum().alias(a) for a in self.quantities.values()],
            *[(nw.col(a) * count).sum().alias(a) for a in self.counted.values()],
            *[
                (term.value * (powers[term.degree] if term.degree else live)).sum().alias(name)
                for name, term in terms.items()
            ],
        ]

    def _mask(self, *faults: Mapping[Fault, object]) -> int:
        return sum(self.bits[name] for name in {*chain(*faults)})

    def _pattern(self, faults: Mapping[Fault, nw.Expr]) -> nw.Expr:
        """Return the sum of the bits of the faults that a row has.

        Engines add the bits only in rows with a fault, which are few.
        """
        if not faults:
            return nw.lit(0).cast(nw.Int64)
        bits = [nw.when(wrong).then(self.bits[name]).otherwise(0) for name, wrong in faults.items()]
        some = nw.when(reduce(or_, faults.values()))
        return some.then(reduce(add, bits)).otherwise(0).cast(nw.Int64)


def _stacked(own: dict[str, AnyArray], names: list[str]) -> FloatArray:
    return np.array([own[name] for name in names]).reshape(len(names), len(own["n"])).T
