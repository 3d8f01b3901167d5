"""Products of the sums of clusters: within cells, and between cells that share clusters.

Clusters come by the million, so that each is summed once. Few cells are columns of one query by
cluster; many are rows of a table by cluster and cell, kept while it is joined with itself.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations, product
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.data.groups import Labelled, label_of, labels_of, place
from equipoise.data.products import (
    Term,
    higher_moments,
    mean_terms,
    product_terms,
    symmetric_products,
)
from equipoise.data.query import CLUSTER, CREATE, collect, engine_error, from_engine, record
from equipoise.moments import MONOMIALS, CrossMoments, SharedUnits, UnitMoments, number_cells

__all__ = ["ClusterProducts", "Wanted", "cluster_products"]

CELL, NUMBER = "__eq_cell", "__eq_number"
SOURCE = "__eq_source"
MOST_COLUMNS = 16
"""Sums of one cluster, cells times quantities, that are columns."""
MOST_LEVELS = 64
"""Labels of all keys together that are numbered in a query."""
BOTH_U, BOTH_W, ALL_U, ALL_W = "__eq_both_u", "__eq_both_w", "__eq_all_u", "__eq_all_w"
ONLY_U, ONLY_W, REST_U, REST_W = "__eq_only_u", "__eq_only_w", "__eq_rest_u", "__eq_rest_w"
LINKS = ((0, 1), (0, 2), (1, 2))
"""Pairs of the sides of a subgroup."""
ROUNDING = 1e-12
"""Part of the total of a cluster below which a difference of its sums is nothing."""
LITERALS = (str, bool, int, float)
"""Types of labels that every engine compares with a constant alike."""


class Wanted(NamedTuple):
    """What one question needs of the clusters.

    `names` are its quantities, `higher` says whether moments of higher order are needed, `powers`
    of which quantities those beyond the third are. `reference` are columns and labels of the cells
    that subgroups are compared with.
    """

    names: tuple[str, ...]
    higher: bool
    powers: tuple[str, ...]
    reference: tuple[tuple[str, str], ...]

    @property
    def pair(self) -> bool:
        """Whether subgroups are asked for: the quantities are a numerator and a denominator."""
        return self.higher and len(self.names) == 2

    @property
    def terms(self) -> dict[str, Term]:
        """Products to sum over clusters."""
        return product_terms(self.names, higher=self.higher, powers=self.powers)


class ClusterProducts(NamedTuple):
    """Sums over clusters of products of their sums: fields of `CellMoments`."""

    product: FloatArray
    n_units: int
    cross: CrossMoments | None
    units: UnitMoments | None = None
    shared: SharedUnits | None = None


def cluster_products(
    rows: "nw.LazyFrame[Any]",
    keys: dict[str, AnyArray],
    known: Labelled,
    wanted: Sequence[Wanted],
) -> list[ClusterProducts]:
    """Sum over clusters the products of the sums of their rows.

    Parameters
    ----------
    rows : narwhals.LazyFrame
        Complete rows: the cluster, the keys of the cell, and the quantities by name.
    keys : dict of arrays of shape (K,)
        Keys of each cell.
    known : Labelled
        Their columns and labels.
    wanted : sequence of Wanted
        Quantities of each question.

    Returns
    -------
    list of ClusterProducts
        One for each of `wanted`.
    """
    cells = list(zip(*(key.tolist() for key in keys.values()), strict=True)) if keys else [()]
    simple = all(isinstance(value, LITERALS) for cell in cells for value in cell)
    names = list(dict.fromkeys(name for one in wanted for name in one.names))
    higher = any(one.higher for one in wanted)
    if not higher and (len(cells) == 1 or (simple and len(cells) * len(names) <= MOST_COLUMNS)):
        every = _side_by_side(rows, list(keys), cells, names)
        return [_part(every, [names.index(name) for name in one.names]) for one in wanted]
    return _joined(rows, keys, known, wanted)


def _part(found: ClusterProducts, quantities: list[int]) -> ClusterProducts:
    """Keep some of the quantities."""
    cross = found.cross
    if cross is not None:
        cross = replace(cross, product=cross.product[:, quantities][:, :, quantities])
    product = found.product[:, quantities][:, :, quantities]
    return found._replace(product=product, cross=cross)


def _side_by_side(
    rows: "nw.LazyFrame[Any]", keys: list[str], cells: Sequence[tuple[Any, ...]], names: list[str]
) -> ClusterProducts:
    """Sum each cell in columns of its own, by cluster, then multiply the columns."""
    number = nw.lit(0)
    for k, cell in enumerate(cells[1:], 1):
        same = [nw.col(key) == value for key, value in zip(keys, cell, strict=True)]
        number = (
            nw.when(nw.all_horizontal(*same, ignore_nulls=False)).then(nw.lit(k)).otherwise(number)
        )
    slots = list(product(range(len(cells)), names))
    sums = [
        nw.when(nw.col(CELL) == k).then(nw.col(a)).otherwise(0.0).sum().alias(f"s{j}")
        for j, (k, a) in enumerate(slots)
    ]
    numbered = rows.select(CLUSTER, *names, number.alias(CELL))
    units = numbered.group_by(CLUSTER).agg(*sums)
    pairs = [(i, j) for i in range(len(slots)) for j in range(i, len(slots))]
    result = collect(
        units.select(
            nw.len().alias("units"),
            *[(nw.col(f"s{i}") * nw.col(f"s{j}")).sum().alias(f"{i}*{j}") for i, j in pairs],
        )
    )
    every = np.empty((len(slots), len(slots)))
    for i, j in pairs:
        every[i, j] = every[j, i] = result[f"{i}*{j}"][0]
    p, size = len(names), len(cells)
    blocks = every.reshape(size, p, size, p).transpose(0, 2, 1, 3)
    first, second = np.triu_indices(size, 1)
    shared = np.any(blocks[first, second] != 0.0, axis=(1, 2))
    first, second = first[shared], second[shared]
    cross = CrossMoments(first=first, second=second, product=blocks[first, second])
    own = blocks[np.arange(size), np.arange(size)]
    return ClusterProducts(own, int(result["units"][0]), cross if shared.any() else None)


def _joined(
    rows: "nw.LazyFrame[Any]",
    keys: dict[str, AnyArray],
    known: Labelled,
    wanted: Sequence[Wanted],
) -> list[ClusterProducts]:
    """Sum by cluster and cell, and join the sums of each cluster with each other."""
    names = list(dict.fromkeys(name for one in wanted for name in one.names))
    by = list(keys)
    size = len(known.labels[0]) if known.labels else 1
    pairwise = [one for one in wanted if one.pair]
    number = _number(keys, known)
    sums = rows.group_by(CLUSTER, *by).agg(*[nw.col(a).sum() for a in names])
    if number is not None:
        sums = sums.with_columns(number[0].alias(NUMBER))
    with _kept(sums, "__eq_parts") as parts, _units(parts, keys, known, pairwise) as totals:
        within, counted = _within(parts, by, known, size, wanted)
        everyone = _everyone(totals, pairwise)
        n_units = int(everyone["units"][0])
        spans = counted > n_units
        pairs = None
        if spans:
            codes = None if number is None else number[1]
            pairs = _between(parts, by, known, wanted, codes)
        shared = {}
        if spans and pairwise:
            found = _shared(parts, totals, everyone, keys, known, pairwise)
            shared = dict(zip(pairwise, found, strict=True))
    products = []
    for one in wanted:
        own = {name: within[name] for name in one.terms}
        products.append(
            ClusterProducts(
                product=symmetric_products(own, one.names, size),
                n_units=n_units,
                cross=None if pairs is None else pairs.of(one),
                units=higher_moments(own, one.names, size) if one.higher else None,
                shared=shared.get(one),
            )
        )
    return products


@contextmanager
def _units(
    parts: "nw.LazyFrame[Any]",
    keys: dict[str, AnyArray],
    known: Labelled,
    wanted: Sequence[Wanted],
) -> "Iterator[nw.LazyFrame[Any]]":
    """Sum each cluster over all cells, and over those of each reference, where that is wanted."""
    if not wanted:
        yield parts.select(CLUSTER).unique()
        return
    sides = _sides(wanted)
    given = parts.with_columns(*[part for one in sides for part in one.inside(keys, known)])
    totals = given.group_by(CLUSTER).agg(*[part for one in sides for part in one.totals()])
    with _kept(totals, "__eq_totals") as kept:
        yield kept


def _everyone(totals: "nw.LazyFrame[Any]", wanted: Sequence[Wanted]) -> dict[str, AnyArray]:
    """Count the clusters, and sum products of their totals in each reference."""
    terms = {name: term for one in _sides(wanted) for name, term in one.whole().items()}
    sums = [term.sum().alias(name) for name, term in terms.items()]
    return collect(totals.select(nw.len().alias("units"), *sums))


def _within(
    parts: "nw.LazyFrame[Any]",
    by: list[str],
    known: Labelled,
    size: int,
    wanted: Sequence[Wanted],
) -> tuple[dict[str, FloatArray], int]:
    """Sum products inside each cell; count the pairs of a cluster and a cell."""
    terms = {name: term.value for one in wanted for name, term in one.terms.items()}
    sums = [nw.len().alias("parts"), *[term.sum().alias(name) for name, term in terms.items()]]
    result = collect(parts.group_by(by).agg(*sums) if by else parts.select(*sums), keys=by)
    order = np.argsort(place([result[key] for key in by], known)) if by else np.zeros(1, np.int64)
    return {name: result[name][order].reshape(size) for name in terms}, int(result["parts"].sum())


class _Pairs(NamedTuple):
    """Sums over clusters with rows in two cells, by the names of two quantities."""

    first: IntArray
    second: IntArray
    sums: dict[str, AnyArray]

    def of(self, one: Wanted) -> CrossMoments:
        p = len(one.names)
        columns = [self.sums[f"{a}*{b}"] for a, b in product(one.names, one.names)]
        squares = [self.sums[f"{a}^2"] for a in one.names] if one.higher else []
        return CrossMoments(
            first=self.first,
            second=self.second,
            product=np.stack(columns, axis=1).reshape(-1, p, p),
            squares=np.stack(squares, axis=1) if squares else None,
        )


def _between(
    parts: "nw.LazyFrame[Any]",
    by: list[str],
    known: Labelled,
    wanted: Sequence[Wanted],
    codes: IntArray | None,
) -> _Pairs:
    """Multiply the sums of each cluster in one cell with those in another.

    `codes` are the numbers of the cells, where parts have them: they compare and group faster than
    labels, and each pair is joined once, not twice.
    """
    other = {name: nw.col(f"{name}__2") for one in wanted for name in one.names}
    terms = {
        f"{a}*{b}": nw.col(a) * other[b] for one in wanted for a, b in product(one.names, one.names)
    } | {
        f"{a}^2": (nw.col(a) * other[a]) * (nw.col(a) * other[a])
        for one in wanted
        if one.higher
        for a in one.names
    }
    sums = [term.sum().alias(name) for name, term in terms.items()]
    if codes is None:
        by2 = [f"{key}__2" for key in by]
        joined = parts.join(parts, on=CLUSTER, suffix="__2")
        result = collect(joined.group_by([*by, *by2]).agg(*sums), keys=[*by, *by2])
        first = place([result[key] for key in by], known)
        second = place([result[key] for key in by2], known)
    else:
        numbers = (NUMBER, f"{NUMBER}__2")
        part = parts.select(CLUSTER, *other, NUMBER)
        # Nothing is before the first cell or after the last.
        before = part.filter(nw.col(NUMBER) < int(codes[-1]))
        after = part.filter(nw.col(NUMBER) > int(codes[0]))
        once = before.join(after, on=CLUSTER, suffix="__2").filter(
            nw.col(numbers[0]) < nw.col(numbers[1])
        )
        result = collect(once.group_by(*numbers).agg(*sums), keys=numbers)
        first, second = (np.searchsorted(codes, result[name]) for name in numbers)
    upper = np.flatnonzero(first < second)
    upper = upper[np.lexsort([second[upper], first[upper]])]
    return _Pairs(
        first=first[upper],
        second=second[upper],
        sums={name: result[name][upper] for name in terms},
    )


def _number(keys: dict[str, AnyArray], known: Labelled) -> tuple[nw.Expr, IntArray] | None:
    """Number cells in the order of their labels; return also the number of each.

    Nothing for keys whose values a query cannot name, and for many of them.
    """
    number, code = nw.lit(0), np.zeros(len(known.labels[0]) if keys else 1, dtype=np.int64)
    levels = 0
    for (key, values), labels in zip(keys.items(), known.labels, strict=True):
        names, level = np.unique(labels.astype(str), return_inverse=True)
        raw = dict(zip(level.tolist(), values.tolist(), strict=True))
        levels += len(names)
        if levels > MOST_LEVELS or not all(isinstance(value, LITERALS) for value in raw.values()):
            return None
        own = nw.lit(0)
        for k in range(1, len(names)):
            own = nw.when(nw.col(key) == raw[k]).then(nw.lit(k)).otherwise(own)
        number = number * len(names) + own
        code = code * len(names) + level
    # Cells are sorted by label, so that numbers increase.
    return (number, code) if np.all(np.diff(code) > 0) else None


def _shared(
    parts: "nw.LazyFrame[Any]",
    totals: "nw.LazyFrame[Any]",
    everyone: dict[str, AnyArray],
    keys: dict[str, AnyArray],
    known: Labelled,
    wanted: Sequence[Wanted],
) -> list[SharedUnits]:
    """Sum every subgroup, and what is outside it, over clusters that have rows in both.

    A subgroup fixes some of the keys. The rows are repeated for each subset of the keys, the others
    null, so that one query sums all of them, whatever is wanted.
    """
    sides = _sides(wanted)
    given = parts.with_columns(*[part for one in sides for part in one.inside(keys, known)])
    names = list(dict.fromkeys(name for one in sides for name in one.columns))
    subsets = [
        chosen
        for size in range(1, len(keys) + 1)
        for chosen in combinations(range(len(keys)), size)
    ]
    never = nw.lit(value=False)
    repeated = [
        given.select(
            CLUSTER,
            nw.lit(number).alias(CELL),
            *[
                nw.col(key) if k in chosen else nw.when(never).then(nw.col(key)).alias(key)
                for k, key in enumerate(keys)
            ],
            *names,
        )
        for number, chosen in enumerate(subsets)
    ]
    # The last subset is that of all keys, and summed already.
    *unions, finest = repeated
    summed = finest
    if unions:
        together = nw.concat(unions, how="vertical").group_by(CLUSTER, CELL, *keys)
        sums = together.agg(*[nw.col(name).sum() for name in names])
        summed = nw.concat([sums, finest], how="vertical")
    terms = {name: term for one in sides for name, term in one.terms().items()}
    result = collect(
        summed.join(totals, on=CLUSTER)
        .with_columns(*[part for one in sides for part in one.outside()])
        .group_by(CELL, *keys)
        .agg(*[term.sum().alias(name) for name, term in terms.items()]),
        keys=keys,
    )
    order: list[IntArray] = []
    columns: list[tuple[int, ...]] = []
    labels: list[tuple[str, ...]] = []
    for number, chosen in enumerate(subsets):
        rows = np.flatnonzero(result[CELL] == number)
        written = [labels_of(result[key][rows]) for k, key in enumerate(keys) if k in chosen]
        code, own = number_cells(written)
        labels.extend(zip(*(label.tolist() for label in own), strict=True))
        columns.extend([chosen] * len(own[0]))
        order.append(rows[np.argsort(code)])
    sorted_sums = {name: result[name][np.concatenate(order)] for name in terms}
    return [one.units(sorted_sums, everyone, tuple(columns), tuple(labels)) for one in sides]


class _Sides:
    """Columns and terms of what one question wants of shared clusters: b, t and T of u and w."""

    def __init__(self, number: int, one: Wanted) -> None:
        self.one = one
        self.prefix = f"q{number}"
        self.both = (f"{BOTH_U}{number}", f"{BOTH_W}{number}")
        self.all = (f"{ALL_U}{number}", f"{ALL_W}{number}")
        self.only = (f"{ONLY_U}{number}", f"{ONLY_W}{number}")
        self.rest = (f"{REST_U}{number}", f"{REST_W}{number}")

    @property
    def columns(self) -> tuple[str, ...]:
        """What is summed by cluster and subgroup."""
        return (*self.one.names, *self.both)

    def inside(self, keys: dict[str, AnyArray], known: Labelled) -> list[nw.Expr]:
        """Return the quantities of the rows of the reference."""
        values = [nw.col(name) for name in self.one.names]
        if self.one.reference:
            is_reference = _reference(keys, known, self.one.reference)
            values = [nw.when(is_reference).then(value).otherwise(0.0) for value in values]
        return [value.alias(name) for name, value in zip(self.both, values, strict=True)]

    def totals(self) -> list[nw.Expr]:
        """Return the sums of a cluster in the reference."""
        return [
            nw.col(part).sum().alias(name) for name, part in zip(self.all, self.both, strict=True)
        ]

    def outside(self) -> list[nw.Expr]:
        """Return what a cluster has in the subgroup or in the reference alone."""
        left = [*zip(self.rest, _left(self.all, self.both), strict=True)]
        if self.one.reference:
            left += zip(self.only, _left(self.one.names, self.both), strict=True)
        return [value.alias(name) for name, value in left]

    def whole(self) -> dict[str, nw.Expr]:
        """Return what is summed over clusters of their totals in the reference."""
        terms = mean_terms(*map(nw.col, self.all))
        return {f"{self.prefix}t{name}": term for name, term in terms.items()}

    def terms(self) -> dict[str, nw.Expr]:
        """Return what is summed over clusters."""
        sides = {
            k: (nw.col(u), nw.col(w))
            for k, (u, w) in enumerate((self.only, self.both, self.rest))
            if k or self.one.reference
        }
        terms: dict[str, nw.Expr] = {}
        for k, side in sides.items():
            terms |= {f"{k}{name}": term for name, term in mean_terms(*side).items()}
        for a, b in LINKS:
            if a in sides:
                (ua, wa), (ub, wb) = sides[a], sides[b]
                linked = (ua * ub, ua * wb, wa * ub, wa * wb, wa * wa * wb * wb)
                terms |= {f"l{a}{b}{k}": term for k, term in enumerate(linked)}
        return self.whole() | {f"{self.prefix}{name}": term for name, term in terms.items()}

    def units(
        self,
        sums: dict[str, AnyArray],
        everyone: dict[str, AnyArray],
        columns: tuple[tuple[int, ...], ...],
        labels: tuple[tuple[str, ...], ...],
    ) -> SharedUnits:
        """Read the sums of subgroups and of all clusters."""
        zero = np.zeros(len(labels))

        def table(names: list[str]) -> FloatArray:
            return np.stack([sums.get(f"{self.prefix}{name}", zero) for name in names], axis=1)

        side = [table([f"{k}{name}" for name in MONOMIALS]) for k in range(3)]
        link = [table([f"l{a}{b}{k}" for k in range(5)]) for a, b in LINKS]
        return SharedUnits(
            side=np.stack(side, axis=1),
            link=np.stack(link, axis=1),
            touching=table([f"t{name}" for name in MONOMIALS]),
            everyone=np.array([everyone[f"{self.prefix}t{name}"][0] for name in MONOMIALS]),
            reference=self.one.reference,
            columns=columns,
            labels=labels,
        )


def _sides(wanted: Sequence[Wanted]) -> list[_Sides]:
    return [_Sides(k, one) for k, one in enumerate(wanted)]


def _left(whole: tuple[str, ...], part: tuple[str, ...]) -> tuple[nw.Expr, nw.Expr]:
    """Subtract a part; what is left of equal sums is nothing, and not their rounding."""
    (u, w), (part_u, part_w) = map(nw.col, whole), map(nw.col, part)
    none = (w - part_w).abs() <= ROUNDING * w.abs()
    return (
        nw.when(none).then(0.0).otherwise(u - part_u),
        nw.when(none).then(0.0).otherwise(w - part_w),
    )


def _reference(
    keys: dict[str, AnyArray], known: Labelled, reference: tuple[tuple[str, str], ...]
) -> nw.Expr:
    """Say whether a row belongs to the reference."""
    named = dict(zip(known.columns, keys.items(), strict=True))
    conditions = []
    for column, label in reference:
        key, values = named[column]
        raw = {value for value in values.tolist() if label_of(value) == label}
        conditions.append(nw.any_horizontal(*[nw.col(key) == v for v in raw], ignore_nulls=False))
    return nw.all_horizontal(*conditions, ignore_nulls=False)


@contextmanager
def _kept(frame: "nw.LazyFrame[Any]", name: str) -> "Iterator[nw.LazyFrame[Any]]":
    """Run a query once, and keep its rows in the engine, by name, for others."""
    native = frame.to_native()
    if frame.implementation.is_ibis():
        # Nothing is written to a database; it runs the query as often as it is used.
        yield frame
        return
    if not frame.implementation.is_duckdb():
        kept = native.persist()
        try:
            yield nw.from_native(kept)
        finally:
            kept.unpersist()
        return
    try:
        # A temporary table goes to disk when memory is short; a fetched result would not.
        made = native.query(SOURCE, f"{CREATE} {name} AS FROM {SOURCE}")
    except Exception as error:
        if not from_engine(error):
            raise
        raise engine_error(error) from error
    record(frame, table=name)
    # A relation remembers all that it was made of; what a statement returned starts anew.
    made = native if made is None else made
    try:
        yield nw.from_native(made.query(SOURCE, f"FROM {name}"))
    finally:
        made.query(SOURCE, f"DROP TABLE {name}")
        # Releases before 2.0 keep the view by which a query calls its relation.
        made.query(SOURCE, f"DROP VIEW IF EXISTS {SOURCE}")
