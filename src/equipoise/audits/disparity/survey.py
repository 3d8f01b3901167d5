"""A metric in a stratified sample: sums with the variances of the survey design."""

from dataclasses import replace

import numpy as np

from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.audits.asking import Asking
from equipoise.audits.disparity.measure import Measured, measure, read_units
from equipoise.data.metrics import AnyMetric
from equipoise.data.table import Table
from equipoise.exceptions import DataError
from equipoise.moments import number_cells
from equipoise.results.finding import Note
from equipoise.stats.disparity.survey import SurveyDesign, design_of_cells, design_of_rows

__all__ = ["measure_survey"]

MOST_CELLS = 2000
"""Cells of groups whose products are all held: strata make every pair of cells depend."""


def measure_survey(table: Table, metric: str | AnyMetric) -> Asking[tuple[Measured, SurveyDesign]]:
    """Sum a metric over the cells of a stratified sample.

    Parameters
    ----------
    table : Table
        With the role `strata`, and `fpc` where populations of strata are known.
    metric : str or Metric
        Name, or a metric of the user's own.

    Yields
    ------
    Sums, then Rows where units are clusters

    Returns
    -------
    Measured, SurveyDesign
        The moments of the first are those of the second, with the labels of the groups.
    """
    roles = table.roles
    group, strata, fpc = roles.group, roles.column("strata"), roles.fpc
    keys = (*group, strata, *(() if fpc is None else (fpc,)))
    view = table.grouped_by(tuple(dict.fromkeys(keys)))
    whole = yield from measure(view, metric, rows=False)
    fine = whole.moments
    names = dict(zip(fine.columns, fine.labels, strict=True))
    cell, labels = number_cells([names[column] for column in group])
    stratum, (words,) = number_cells([names[strata]])
    size = int(cell.max()) + 1
    if size > MOST_CELLS:
        raise DataError(
            f"With `strata` the groups may have {MOST_CELLS:,} combinations; got {size:,}."
        )
    population = None if fpc is None else _population(names[fpc], stratum, words, fpc)
    if roles.cluster is None:
        design = design_of_cells(fine, cell, stratum, population=population)
    else:
        units = yield from read_units(view, metric)
        if units.unit is None:
            raise ValueError("clusters have no units")
        count = 1.0 if units.count is None else units.count
        of = np.unique(np.stack([units.unit, stratum[units.cell]]), axis=1)[0]
        if len(np.unique(of)) < len(of):
            raise DataError(
                f"`cluster` column {roles.cluster!r} must lie within `strata`: some clusters have"
                " rows in several. Number clusters over the whole table."
            )
        design = design_of_rows(
            units.u * count,
            units.w * count,
            cell[units.cell],
            strata=stratum[units.cell],
            cluster=units.unit,
            population=None if population is None else population[units.cell],
        )
    moments = replace(design.moments, columns=group, labels=labels, dropped=fine.dropped)
    design = replace(design, moments=moments)
    measured = replace(
        whole,
        moments=moments,
        defined=np.bincount(cell, whole.defined, size).round().astype(np.int64),
        binary=False,
        notes=(*whole.notes, _design_note(design, clustered=roles.cluster is not None)),
        design=design,
        zero_one=not fine.sums[:, 1:].any(),
    )
    return measured, design


def _population(labels: AnyArray, stratum: IntArray, words: AnyArray, column: str) -> FloatArray:
    """Read the number of units of every stratum; one number a stratum."""
    try:
        sizes = labels.astype(np.float64)
    except ValueError:
        raise DataError(f"`fpc` column {column!r} must hold numbers of units.") from None
    for h, word in enumerate(words.tolist()):
        if len(set(sizes[stratum == h].tolist())) > 1:
            raise DataError(
                f"`fpc` column {column!r} must be the same in all rows of a stratum; stratum"
                f" {word!r} has several."
            )
    return np.asarray(sizes)


def _design_note(design: SurveyDesign, *, clustered: bool) -> Note:
    noun = "clusters" if clustered else "rows"
    finite = ", drawn without replacement from populations of known size" if design.finite else ""
    return Note(
        code="survey-design",
        message=f"Stratified sample: {design.moments.n_units:,} {noun} in {design.n_strata}"
        f" strata{finite}. Variances are those of the design, degrees of freedom the units less"
        " the strata of the smaller side.",
    )
