"""Scores and outcomes of a table, arranged for the kernel tests, with the names of their groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import narwhals as nw
import numpy as np

from equipoise._checks import check_number, check_option, quoted
from equipoise._typing import AnyArray, ParityUnit
from equipoise.audits.finding import Note
from equipoise.data.cells import Rows
from equipoise.data.grouping import matching_cells, subgroup_name
from equipoise.data.table import Needs, Table
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.score_cells import ScoreCells

__all__ = ["ScoreSample", "pairs_of", "parity_bandwidth", "parity_unit", "score_sample"]

EXACT_ROWS = 200_000
"""Up to this many rows scores are exact; beyond, they are means of narrow bins."""
N_BINS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSample:
    """Rows by group and score.

    Parameters
    ----------
    cells : ScoreCells
        The rows; group k is ``names[k]``.
    names : tuple of str
        Groups, written ``race=Black & sex=Female``.
    frame : Rows
        Labels of the groups, without rows.
    notes : tuple of Note
        What was done to the rows.
    """

    cells: ScoreCells
    names: tuple[str, ...]
    frame: Rows
    notes: tuple[Note, ...]

    @property
    def n(self) -> int:
        """Rows used."""
        return int(self.cells.n_rows.sum())


def parity_unit(table: Table, unit: ParityUnit | None) -> ParityUnit:
    """Return what counts alike; with clusters it must be said."""
    if unit is not None:
        check_option("unit", unit, ParityUnit)
        if unit == "cluster" and table.roles.cluster is None:
            raise InvalidParameterError(
                "`unit='cluster'` needs clusters; pass `cluster` to `Audit`, or leave `unit` out."
            )
        return unit
    if table.roles.cluster is not None:
        raise InvalidParameterError(
            f"`unit` must be said because rows repeat {table.roles.cluster!r}: 'cluster' weighs"
            " every cluster alike (user-level parity), 'row' every row (aggregate parity). The two"
            " hypotheses differ when activity is related to the outcome."
        )
    return "row"


def parity_bandwidth(bandwidth: float | str) -> float | None:
    """Return a bandwidth given as a number, and `None` for "auto"."""
    if bandwidth == "auto":
        return None
    if isinstance(bandwidth, str):
        raise InvalidParameterError(f"`bandwidth` must be 'auto' or a number; got {bandwidth!r}.")
    return check_number("bandwidth", bandwidth, low=0.0)


def score_sample(
    table: Table,
    unit: ParityUnit,
    *,
    outcome: nw.Expr,
    needs: Needs,
    edge: float | None = None,
) -> ScoreSample:
    """Read scores and outcomes; of more than 200,000 rows scores are binned.

    Parameters
    ----------
    table : Table
        With the roles `y_score` and those of `needs`.
    unit : {"cluster", "row"}
        What counts alike.
    outcome : narwhals expression
        The outcome of a row.
    needs : mapping of str to {"label", "number"}
        Roles that are used.
    edge : float, optional
        A score at which a bin must begin.

    Returns
    -------
    ScoreSample
    """
    if not table.roles.group:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    quantities = {"y": outcome, "s": table.y_score}
    parts: dict[str, list[AnyArray]] = {}
    for frame in table.batches(quantities, needs):
        columns: dict[str, AnyArray | None] = {
            **frame.values,
            "cell": frame.cell.astype(np.int32),
            "unit": frame.unit,
            "weight": frame.weight,
            "count": frame.count,
        }
        for name, values in columns.items():
            if values is not None:
                parts.setdefault(name, []).append(values)
    n = sum(len(part) for part in parts["cell"])

    def joined(name: str) -> AnyArray:
        # Each column is freed as it is joined: ten million rows are held once.
        return np.concatenate(parts.pop(name))

    cells = ScoreCells.from_rows(
        joined("y"),
        joined("s"),
        joined("cell"),
        n_groups=len(frame.labels[0]),
        cluster=joined("unit") if "unit" in parts else None,
        unit=unit,
        weight=joined("weight") if "weight" in parts else None,
        count=joined("count") if "count" in parts else None,
        n_bins=N_BINS if n > EXACT_ROWS else None,
        edge=edge,
    )
    notes = []
    if frame.dropped:
        notes.append(
            Note(
                code="missing-dropped",
                message=f"{frame.dropped} rows with missing values were left out.",
            )
        )
    if n > EXACT_ROWS:
        notes.append(
            Note(
                code="binned-scores",
                message=f"Scores were rounded to the means of {N_BINS} narrow bins.",
            )
        )
    return ScoreSample(
        cells=cells,
        names=tuple(
            subgroup_name(frame.columns, tuple(str(label) for label in labels))
            for labels in zip(*frame.labels, strict=True)
        ),
        frame=frame,
        notes=tuple(notes),
    )


def pairs_of(
    sample: ScoreSample, reference: Mapping[str, object] | None
) -> tuple[tuple[int, int], ...]:
    """Return the pairs (group, reference) to compare: all, or each with one reference."""
    size = len(sample.names)
    if size < 2:
        raise InvalidParameterError(
            f"parity compares groups; the table has one, {sample.names[0]!r}."
        )
    if reference is None:
        return tuple((b, a) for a, b in combinations(range(size), 2))
    if not isinstance(reference, Mapping):
        raise InvalidParameterError(
            f'`reference` must name a group, {{"race": "White"}}; got {reference!r}.'
        )
    chosen = np.flatnonzero(matching_cells(sample.frame, dict(reference)))
    if len(chosen) > 1:
        names = quoted(sample.names[k] for k in chosen)
        raise InvalidParameterError(
            f"`reference` must select one group; {dict(reference)} selects {names}."
        )
    return tuple((k, int(chosen[0])) for k in range(size) if k != chosen[0])
