"""Grades of many groups: what a list of gaps can tell about their order."""

from typing import TypedDict

import numpy as np

from equipoise.audits.disparity.measure import Measured
from equipoise.data.groups import GroupTable, group_tables
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import sum_by
from equipoise.results.finding import Note
from equipoise.results.formats import number
from equipoise.stats.disparity.grades import MIN_GROUPS, MOST_GROUPS, ManyGroups, grade_groups

__all__ = ["GradedTable", "grades_of"]

FEW_ROWS = 30.0
"""Effective rows of a group below which it has no grade."""


class GradedTable(TypedDict):
    """The groups of one table, those without a grade included; grade 1 has the highest values."""

    columns: list[str]
    groups: list[str]
    grade: list[int | None]
    n_grades: int
    sd: float
    sd_low: float
    sd_high: float
    sd_p: float
    ordered: int
    pairs: int
    misranked: float


def grades_of(
    measured: Measured, *, depth: int | None, level: float, confidence_level: float
) -> tuple[list[GradedTable], tuple[Note, ...]]:
    """Grade the groups of every table that has enough of them.

    Parameters
    ----------
    measured : Measured
        A metric of independent rows.
    depth : int, optional
        How many group columns may be combined.
    level : float
        Largest expected share of wrongly ordered pairs.
    confidence_level : float
        Of the interval of the standard deviation of true values.

    Returns
    -------
    list of GradedTable, tuple of Note
    """
    if measured.clustered or measured.design is not None:
        raise InvalidParameterError(
            "`grades` needs independent rows: groups that share clusters or strata move together."
        )
    tables = group_tables(measured.moments, depth=depth)
    found = [_graded(measured, one, level, confidence_level) for one in tables]
    graded = [one for one in found if one is not None]
    if graded:
        return graded, tuple(_note(one, confidence_level) for one in graded)
    message = (
        f"No table has {MIN_GROUPS} to {MOST_GROUPS:,} groups of at least {FEW_ROWS:g} rows: too"
        " few to learn how much groups differ in truth, or too many."
    )
    return [], (Note(code="no-grades", message=message),)


def _graded(
    measured: Measured, table: GroupTable, level: float, confidence_level: float
) -> GradedTable | None:
    size = len(table.names)
    moments = measured.moments
    total = sum_by(table.category, moments.total, size)
    product = sum_by(table.category, moments.product, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.nan_to_num(total[:, 1] ** 2 / product[:, 1, 1])
        value = total[:, 0] / total[:, 1]
        squares = product[:, 0, 0] - 2.0 * value * product[:, 0, 1] + value**2 * product[:, 1, 1]
        variance = squares / total[:, 1] ** 2 * n / (n - 1.0)
    enough = n >= FEW_ROWS
    if not measured.binary:
        # Values that do not vary in a group would look as if its mean were known.
        enough &= np.nan_to_num(variance) > 0.0
    if not MIN_GROUPS <= enough.sum() <= MOST_GROUPS:
        return None
    groups = ManyGroups(
        value=value[enough] + measured.centre,
        n=n[enough],
        variance=None if measured.binary else variance[enough],
    )
    found = grade_groups(groups, level=level)
    spread = found.spread
    low, high = spread.confidence_interval(confidence_level)
    grade: list[int | None] = [None] * size
    for k, own in zip(np.flatnonzero(enough), found.grade, strict=True):
        grade[k] = int(own)
    count = int(enough.sum())
    return GradedTable(
        columns=list(table.columns),
        groups=list(table.names),
        grade=grade,
        n_grades=found.n_grades,
        sd=spread.estimate,
        sd_low=float(low),
        sd_high=float(high),
        sd_p=spread.p_value,
        ordered=found.ordered,
        pairs=count * (count - 1) // 2,
        misranked=found.misranked,
    )


def _note(table: GradedTable, level: float) -> Note:
    ends = f"{number(table['sd_low'])} to {number(table['sd_high'])}"
    count = sum(grade is not None for grade in table["grade"])
    noun = "grade" if table["n_grades"] == 1 else "grades"
    order = (
        "no pair of them is ordered"
        if not table["ordered"]
        else f"{table['ordered']:,} of {table['pairs']:,} pairs are in different ones, of which"
        f" {100.0 * table['misranked']:.2g}% are expected to be wrong"
    )
    return Note(
        code="grades",
        message=f"{count} groups of {' and '.join(table['columns'])} have {table['n_grades']}"
        f" {noun} (1 has the highest values): {order}. The true values have standard"
        f" deviation {number(table['sd'])} ({100 * level:g}% interval {ends}).",
    )
