"""Cells that travel: the sums of a table in a small file, without a row of it.

A file holds what questions declared, each declaration under a name of its own, so that a table made
of the file gives the same questions the same sums as the rows would. Sums of tables that share no
units add. Small cells are withheld: their rows are left out before anything is summed, and so are
those of further cells until no count of a withheld cell follows from the margins of the table.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._checks import quoted, shown
from equipoise._typing import BoolArray, FloatArray, IntArray
from equipoise._version import __version__
from equipoise.data.roles import Roles
from equipoise.data.table import NO_ROWS, NotInCellsError, Rows, Sums, Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import (
    MONOMIALS,
    CellMoments,
    CrossMoments,
    SharedUnits,
    UnitMoments,
    roll_up,
)

__all__ = [
    "CellTable",
    "Cells",
    "identity",
    "kinds_of",
    "read_cells",
    "withheld",
]

SCHEMA_VERSION = 1
METADATA = b"equipoise"
MOST_WITHHELD = 2000
"""Cells that are withheld at most: beyond, the columns are too fine to be shared."""

CANDIDATES = 40
"""Cells that are looked at as partners of a withheld one."""

_KINDS = {"integer": "int64", "number": "float64", "boolean": "bool_", "text": "string"}


def identity(sums: Sums) -> str | None:
    """Return the name of a declaration, the same in every process.

    None for what never leaves: quantities without a name, and sums by cluster, that is by person.
    """
    quantities = (*sums.keys, *sums.quantities, *sums.counted)
    people = sums.table.roles.cluster
    if any(quantity.name == "expression" for quantity in quantities) or (
        people is not None and any(key.name in {"cluster", people} for key in sums.keys)
    ):
        return None
    keys, summed, counted = (
        tuple((quantity.name, quantity.detail) for quantity in part)
        for part in (sums.keys, sums.quantities, sums.counted)
    )
    needs = tuple(sorted(sums.needs))
    return repr((keys, needs, sums.labels, summed, counted, sums.order, sums.rate, sums.reference))


def kinds_of(table: Table, further: Sequence[str] = ()) -> dict[str, str]:
    """Return what columns hold, those with a role and further ones."""
    names = (*table.roles.group, *table.roles.features, *table.roles.columns().values(), *further)
    return {name: _kind(table.schema[name]) for name in dict.fromkeys(names)}


def _kind(dtype: Any) -> str:
    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_integer():
        return "integer"
    return "number" if dtype.is_numeric() else "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Sums of a table by cell, or of several tables that share no units.

    Parameters
    ----------
    roles : Roles
        Of the table.
    kinds : dict of str
        What its columns hold.
    metrics, questions : tuple of str
        What can be asked.
    answers : dict of CellMoments
        Sums, by the name of the declaration.
    suppress_below : int
        Cells of fewer rows were withheld.
    withheld_cells, withheld_rows : int
        How many cells were withheld, and how many rows they have.
    sources : tuple of str
        Fingerprints of the tables.

    Examples
    --------
    Two sites, one audit, no row shared:

    >>> import equipoise as eq
    >>> def site(selected):
    ...     data = {"sex": ["F", "M"] * 30, "approved": selected}
    ...     audit = eq.Audit(data, group="sex", y_pred="approved")
    ...     return audit.cells(metrics=["selection_rate"])
    >>> both = eq.merge(site([1, 0] * 30), site([1, 1, 0] * 20))
    >>> eq.Audit.from_cells(both).disparity("selection_rate").n
    120
    """

    roles: Roles
    kinds: dict[str, str]
    metrics: tuple[str, ...]
    questions: tuple[str, ...]
    answers: dict[str, CellMoments]
    suppress_below: int
    withheld_cells: int = 0
    withheld_rows: int = 0
    sources: tuple[str, ...] = ()

    def __add__(self, other: "Cells") -> "Cells":
        """Join the sums of two tables that share no units."""
        for name in ("roles", "kinds", "metrics", "questions"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                raise InvalidParameterError(
                    f"cells merge when they have the same {name}; got {_brief(ours)} and"
                    f" {_brief(theirs)}. Write them again with the same options."
                )
        twice = {*self.sources} & {*other.sources}
        if twice:
            raise InvalidParameterError(
                f"cells merge when their tables share no rows; both hold those of the table with"
                f" fingerprint {min(twice)[:12]}."
            )
        common = self.answers.keys() & other.answers.keys()
        return replace(
            self,
            answers={
                name: self.answers[name] + other.answers[name]
                for name in self.answers
                if name in common
            },
            suppress_below=max(self.suppress_below, other.suppress_below),
            withheld_cells=self.withheld_cells + other.withheld_cells,
            withheld_rows=self.withheld_rows + other.withheld_rows,
            sources=(*self.sources, *other.sources),
        )

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return max((len(cells.n) for cells in self.answers.values()), default=0)

    def content(self) -> str:
        """Return the SHA-256 of the sums themselves."""
        digest = hashlib.sha256()
        for name, cells in sorted(self.answers.items()):
            record = _declaration(name, cells)
            digest.update(json.dumps(record, sort_keys=True).encode())
            for row in _rows_of(0, cells):
                digest.update(repr(row).encode())
        return digest.hexdigest()

    def write(self, path: "str | os.PathLike[str]") -> None:
        """Write a parquet file that `read_cells` reads.

        Parameters
        ----------
        path : str
            Its name; an existing file is replaced, whole or not at all.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = [row for k, cells in enumerate(self.answers.values()) for row in _rows_of(k, cells)]
        schema = pa.schema(
            {
                "declaration": pa.int32(),
                "part": pa.string(),
                "labels": pa.list_(pa.string()),
                "places": pa.list_(pa.int32()),
                "n": pa.int64(),
                "numbers": pa.list_(pa.float64()),
            }
        )
        columns = zip(*rows, strict=True) if rows else [()] * len(schema)
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=schema)
        table = table.replace_schema_metadata({METADATA: json.dumps(self._record()).encode()})
        file = Path(path)
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            pq.write_table(table, partial)
            partial.replace(file)
        except OSError as error:
            raise DataError(f"{shown(str(path))} cannot be written: {error.strerror}.") from error
        finally:
            partial.unlink(missing_ok=True)

    def _record(self) -> dict[str, Any]:
        roles = asdict(self.roles)
        record = {
            "schema_version": SCHEMA_VERSION,
            "equipoise": __version__,
            "roles": roles | {"bins": {k: list(v) for k, v in self.roles.bins.items()}},
            "kinds": self.kinds,
            "metrics": list(self.metrics),
            "questions": list(self.questions),
            "suppress_below": self.suppress_below,
            "withheld": {"cells": self.withheld_cells, "rows": self.withheld_rows},
            "sources": list(self.sources),
            "declarations": [_declaration(name, c) for name, c in self.answers.items()],
        }
        return record | {"sha256": _sealed(record, self.content())}


def _sealed(record: Mapping[str, Any], content: str) -> str:
    """Return the hash of all that a file says: its record, without the hash, and its sums."""
    rest = {name: value for name, value in record.items() if name != "sha256"}
    return hashlib.sha256(f"{json.dumps(rest, sort_keys=True)}{content}".encode()).hexdigest()


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) < 120 else f"{text[:117]}..."


def _declaration(name: str, cells: CellMoments) -> dict[str, Any]:
    """Describe the shapes of the arrays of one declaration, and what is not by cell."""
    return {
        "name": name,
        "columns": list(cells.columns),
        "quantities": cells.total.shape[1],
        "further": cells.sums.shape[1] if cells.sums.size else 0,
        "higher": cells.units is not None,
        "squares": cells.cross is not None and cells.cross.squares is not None,
        "n_units": int(cells.n_units),
        "dropped": int(cells.dropped),
        "reference": None if cells.shared is None else [list(r) for r in cells.shared.reference],
    }


def _rows_of(place: int, cells: CellMoments) -> list[tuple[Any, ...]]:
    """Return the rows of a file that hold one declaration."""
    size = len(cells.n)
    parts = [cells.total, cells.product]
    if cells.sums.size:
        parts.append(cells.sums)
    if cells.units is not None:
        parts += [getattr(cells.units, name) for name in ("n", "third", "fourth", "fifth")]
    numbers = _flat(parts, size)
    labels = list(zip(*cells.labels, strict=True)) if cells.labels else [()] * size
    rows: list[tuple[Any, ...]] = [
        (place, "cell", list(labels[k]), [], int(cells.n[k]), numbers[k].tolist())
        for k in range(size)
    ]
    if cells.cross is not None:
        cross = cells.cross
        pairs = [cross.product] if cross.squares is None else [cross.product, cross.squares]
        numbers = _flat(pairs, len(cross.first))
        rows += [
            (place, "pair", [], [int(a), int(b)], None, values.tolist())
            for a, b, values in zip(cross.first, cross.second, numbers, strict=True)
        ]
    if cells.shared is not None:
        shared = cells.shared
        numbers = _flat([shared.side, shared.link, shared.touching], len(shared.labels))
        rows += [
            (place, "subgroup", list(names), list(columns), None, values.tolist())
            for names, columns, values in zip(shared.labels, shared.columns, numbers, strict=True)
        ]
        rows.append((place, "everyone", [], [], None, shared.everyone.tolist()))
    return rows


def _flat(parts: Sequence[FloatArray], size: int) -> FloatArray:
    return np.concatenate([np.reshape(part, (size, -1)) for part in parts], axis=1)


def read_cells(path: "str | os.PathLike[str]") -> Cells:
    """Read a file that `Cells.write` wrote.

    Parameters
    ----------
    path : str
        Its name.

    Returns
    -------
    Cells

    Raises
    ------
    DataError
        If it is not such a file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = shown(os.fspath(path))
    try:
        table = pq.read_table(os.fspath(path), partitioning=None)
    except FileNotFoundError as error:
        raise DataError(f"File {name} not found.") from error
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{name} is not a file of cells: it is not parquet.") from error
    written = (table.schema.metadata or {}).get(METADATA)
    if written is None:
        raise DataError(f"{name} is not a file of cells. `Audit.cells` writes them.")
    try:
        record = json.loads(written)
        if record["schema_version"] != SCHEMA_VERSION:
            raise DataError(
                f"{name} has schema_version {record['schema_version']!r}; this version reads"
                f" {SCHEMA_VERSION}."
            )
        cells = _cells_of(record, table.to_pylist())
        same = record["sha256"] == _sealed(record, cells.content())
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} is damaged, or was edited ({error!r}).") from error
    if not same:
        raise DataError(f"{name} is damaged, or was edited (it is not what was written).")
    return cells


def _cells_of(record: Mapping[str, Any], rows: list[dict[str, Any]]) -> Cells:
    answers = {}
    for k, one in enumerate(record["declarations"]):
        own: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row["declaration"] == k:
                own.setdefault(row["part"], []).append(row)
        answers[one["name"]] = _moments(one, own)
    roles = record["roles"]
    return Cells(
        roles=Roles(**roles).without_file(),
        kinds=record["kinds"],
        metrics=tuple(record["metrics"]),
        questions=tuple(record["questions"]),
        answers=answers,
        suppress_below=record["suppress_below"],
        withheld_cells=record["withheld"]["cells"],
        withheld_rows=record["withheld"]["rows"],
        sources=tuple(record["sources"]),
    )


def _moments(one: Mapping[str, Any], own: Mapping[str, list[dict[str, Any]]]) -> CellMoments:
    p, m, size = one["quantities"], one["further"], len(own["cell"])
    shapes: list[tuple[int, ...]] = [(p,), (p, p)]
    shapes += [(m,)] if m else []
    shapes += [(p,), (p, p, p), (p,), (p,)] if one["higher"] else []
    total, product, *others = _arrays(own["cell"], shapes)
    further = others.pop(0) if m else np.empty((0, 0))
    labels = zip(*(row["labels"] for row in own["cell"]), strict=True)
    return CellMoments(
        n=np.array([row["n"] for row in own["cell"]], dtype=np.int64),
        total=total,
        product=product,
        n_units=one["n_units"],
        cross=_pairs(one, own["pair"]) if "pair" in own else None,
        columns=tuple(one["columns"]),
        labels=tuple(_texts(label) for label in labels) if one["columns"] and size else (),
        sums=further,
        dropped=one["dropped"],
        units=UnitMoments(n=others[0], third=others[1], fourth=others[2], fifth=others[3])
        if one["higher"]
        else None,
        shared=None if one["reference"] is None else _subgroups(one, own),
    )


def _texts(labels: Sequence[str]) -> Any:
    texts = np.empty(len(labels), dtype=object)
    texts[:] = labels
    return texts


def _arrays(rows: list[dict[str, Any]], shapes: list[tuple[int, ...]]) -> list[FloatArray]:
    """Cut the numbers of rows into arrays; raise if there are more or fewer."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    numbers = np.array([row["numbers"] for row in rows], dtype=np.float64)
    numbers = numbers.reshape(len(rows), sum(sizes))
    parts = np.split(numbers, np.cumsum(sizes)[:-1], axis=1)
    return [part.reshape(len(rows), *shape) for part, shape in zip(parts, shapes, strict=True)]


def _pairs(one: Mapping[str, Any], rows: list[dict[str, Any]]) -> CrossMoments:
    p = one["quantities"]
    product, *squares = _arrays(rows, [(p, p), (p,)] if one["squares"] else [(p, p)])
    places = np.array([row["places"] for row in rows], dtype=np.int64)
    return CrossMoments(
        first=places[:, 0],
        second=places[:, 1],
        product=product,
        squares=squares[0] if squares else None,
    )


def _subgroups(one: Mapping[str, Any], own: Mapping[str, list[dict[str, Any]]]) -> SharedUnits:
    size = len(MONOMIALS)
    rows = own["subgroup"]
    side, link, touching = _arrays(rows, [(3, size), (3, 5), (size,)])
    return SharedUnits(
        side=side,
        link=link,
        touching=touching,
        everyone=np.array(own["everyone"][0]["numbers"]),
        reference=tuple((column, label) for column, label in one["reference"]),
        columns=tuple(tuple(row["places"]) for row in rows),
        labels=tuple(tuple(row["labels"]) for row in rows),
    )


class CellTable(Table):
    """A table of which only cells are known.

    Parameters
    ----------
    cells : Cells
        Its sums.
    """

    def __init__(self, cells: Cells) -> None:
        import pyarrow as pa

        kinds = {name: getattr(pa, _KINDS[kind])() for name, kind in cells.kinds.items()}
        super().__init__(pa.schema(kinds).empty_table(), cells.roles)
        self.cells = cells
        self.only_sums = True
        self._every_key = self.keys

    @property
    def withheld(self) -> tuple[int, int, int]:
        """How many cells were withheld, how many rows they have, and below which limit."""
        own = self.cells
        return own.withheld_cells, own.withheld_rows, own.suppress_below

    @property
    def sites(self) -> int:
        """How many tables with clusters were added up; 0 where it is one table, or has none."""
        several = self.roles.cluster is not None and len(self.cells.sources) > 1
        return len(self.cells.sources) if several else 0

    def kept(self, need: Sums | Rows) -> CellMoments | NotInCellsError:
        """Return what the file holds; the columns of the groups may be fewer than its own."""
        if isinstance(need, Rows):
            return NotInCellsError(NO_ROWS)
        found = self.cells.answers.get(identity(need) or "")
        if found is None:
            found = self._rolled_up(need)
        if found is None:
            return NotInCellsError(
                "needs sums that the file of cells does not hold; it holds those of"
                f" {quoted(self.cells.questions)} for {quoted(self.cells.metrics)}. Write the cells"
                " again with what you want to ask."
            )
        return found

    def _rolled_up(self, need: Sums) -> CellMoments | None:
        """Add up the cells of more columns; units with rows in several cells do not add up."""
        wider = identity(replace(need, keys=self._every_key))
        found = self.cells.answers.get(wider or "")
        columns = [key.name for key in need.keys]
        if found is None or found.cross is not None or not {*columns} < {*found.columns}:
            return None
        return roll_up(found, columns)


def withheld(labels: Sequence[tuple[str | None, ...]], n: IntArray, limit: int) -> BoolArray:
    """Choose the cells that are withheld.

    Cells of fewer rows than the limit are; then further ones, the smallest first, until the counts
    of the withheld cells have more than one solution each, even for a reader who knows the sums of
    all cells over any of the columns, and until they add up to the limit.

    Parameters
    ----------
    labels : sequence of tuple of str or None
        Of each cell in each column; None for a missing value.
    n : array of shape (K,)
        Rows of each cell.
    limit : int
        Rows that a cell needs.

    Returns
    -------
    array of bool of shape (K,)

    Raises
    ------
    DataError
        If nothing would be left.
    """
    hidden = np.asarray(n < limit)
    while hidden.any():
        if hidden.all() or hidden.sum() > MOST_WITHHELD:
            raise DataError(
                f"{int(hidden.sum())} of {len(n)} cells would be withheld, so that none of fewer"
                f" than {limit} rows can be worked out. Name fewer or coarser group columns, or"
                " give `bins` for numeric ones."
            )
        places = np.flatnonzero(hidden).tolist()
        solved = _solved(labels, places)
        if not solved and n[hidden].sum() >= limit:
            break
        hidden[_partner(labels, n, hidden, (solved or places)[0])] = True
    return hidden


def _solved(labels: Sequence[tuple[str | None, ...]], places: list[int]) -> list[int]:
    """Return those of the withheld cells whose counts follow from the margins."""
    found = _determined([labels[k] for k in places]).tolist()
    return [place for place, solved in zip(places, found, strict=True) if solved]


def _determined(labels: Sequence[tuple[str | None, ...]]) -> BoolArray:
    """Return which counts follow from the margins of the table, all other cells being known."""
    equations: dict[tuple[Any, ...], list[int]] = {}
    columns = range(len(labels[0]))
    for size in columns:
        for chosen in combinations(columns, size):
            for k, label in enumerate(labels):
                equations.setdefault((chosen, *(label[c] for c in chosen)), []).append(k)
    matrix = np.zeros((len(equations), len(labels)))
    for row, members in enumerate(equations.values()):
        matrix[row, members] = 1.0
    # A count is free to move when a solution of the homogeneous system moves it.
    _, singular, basis = np.linalg.svd(matrix, full_matrices=True)
    rank = int((singular > 1e-9 * singular[0]).sum())
    return np.asarray(np.abs(basis[rank:]).max(axis=0, initial=0.0) < 1e-9)


def _partner(
    labels: Sequence[tuple[str | None, ...]], n: IntArray, hidden: BoolArray, place: int
) -> int:
    """Choose the cell that is withheld beside another one: alike in most labels, and small."""
    nearest = sorted(
        (sum(a != b for a, b in zip(labels[k], labels[place], strict=True)), int(n[k]), k)
        for k in np.flatnonzero(~hidden).tolist()
    )[:CANDIDATES]
    places = np.flatnonzero(hidden).tolist()
    if len(places) > CANDIDATES:
        return nearest[0][2]
    return min((len(_solved(labels, [*places, k])), far, size, k) for far, size, k in nearest)[3]
