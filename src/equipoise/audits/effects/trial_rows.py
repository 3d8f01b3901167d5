"""Rows of an experiment with their doubly robust scores, for what sums by arm do not tell."""

from dataclasses import dataclass

import numpy as np

from equipoise._checks import quoted
from equipoise._typing import IntArray
from equipoise.audits.asking import Asking
from equipoise.audits.disparity.measure import dropped_notes
from equipoise.audits.effects.sums import SMALLEST_CHANCE, chance_notes
from equipoise.data.arms import ArmCells, arm_keys
from equipoise.data.columns import Needs
from equipoise.data.groups import cell_names
from equipoise.data.query import NarrowRows
from equipoise.data.table import Quantity, Rows, Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.results.finding import Note
from equipoise.stats.effects.effect_scores import effect_scores
from equipoise.stats.effects.evaluation import ExperimentRows
from equipoise.stats.influence import InfluenceSums

__all__ = ["TrialRows", "trial_rows"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialRows:
    """Rows whose (group, stratum) has both arms.

    Parameters
    ----------
    names : tuple of str
        Groups, written ``race=Black & sex=Female``.
    experiment : ExperimentRows
        The rows; groups are numbers of `names`.
    notes : tuple of Note
        Rows left out.
    """

    names: tuple[str, ...]
    experiment: ExperimentRows
    notes: tuple[Note, ...]

    @property
    def size(self) -> IntArray:
        """Rows of each group."""
        one = self.experiment
        return np.bincount(one.group, one.rows.count, minlength=len(self.names)).astype(np.int64)


def trial_rows(table: Table, question: str, control: object = None) -> Asking[TrialRows]:
    """Read the rows of an experiment with two arms.

    Parameters
    ----------
    table : Table
        With the roles `y_true`, `treatment` and `effect_pred`.
    question : str
        Named where rows cannot be read.
    control : object, optional
        The arm that is not treated; by default 0.

    Returns
    -------
    TrialRows
    """
    roles = table.roles
    if not roles.group:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    for role in ("y_true", "treatment", "effect_pred"):
        roles.column(role)
    used = ["y_true", "treatment", "effect_pred"]
    used += [role for role in ("strata", "propensity") if getattr(roles, role)]
    needs: Needs = dict.fromkeys(used, "number")
    quantities = [
        Quantity("y_true", None, table.y_true),
        Quantity("effect_pred", None, table.effect_pred),
    ]
    if roles.propensity is not None:
        quantities.append(Quantity("propensity", None, table.value("propensity")))
    needed = table.sums(quantities, needs, by=arm_keys(table), order=1)
    cells: CellMoments = yield needed
    place = ArmCells.of(cells, strata=roles.strata is not None, control=control)
    if len(place.arms) > 2:
        raise InvalidParameterError(
            f"`{question}` is about one treatment; this table has {quoted(place.arms[1:])} beside"
            f" {place.arms[0]!r}. Leave the rows of the others out."
        )
    narrow: NarrowRows = yield Rows(needed)
    if narrow.frame.implementation.is_pyspark():
        raise InvalidParameterError(
            f"`{question}` reads rows, which do not leave a Spark cluster. Pass a sample of them as"
            " a local table."
        )
    rows = narrow.read()
    y, f, *chance = rows.values
    e = None
    if chance:
        e = np.clip(chance[0], SMALLEST_CHANCE, 1.0 - SMALLEST_CHANCE)
    ones = np.ones(len(y))
    weight = ones if rows.weight is None else rows.weight
    count = ones if rows.count is None else rows.count
    notes = [*dropped_notes(cells.dropped)]
    if e is not None:
        impossible = (chance[0] <= 0.0) | (chance[0] >= 1.0)
        found = {"impossible": impossible, "extreme": chance[0] != e}
        notes += chance_notes({name: float(count[rare].sum()) for name, rare in found.items()})
    treated = place.arm[rows.cell] == 1
    group = place.group[rows.cell]
    cell = group * place.n_strata + place.stratum[rows.cell]
    scores = effect_scores(y, treated, cell, mass=weight * count, propensity=e)
    keep = scores.usable & (weight * count > 0.0)
    if not keep.any():
        raise DataError("no group has rows of both arms; there is no effect to estimate.")
    left_out = int(count[~scores.usable].sum())
    if left_out:
        message = f"{left_out} rows are left out: their group has one arm only in their stratum."
        notes.append(Note(code="one-arm-strata", message=message))
    unit = None if rows.unit is None else np.unique(rows.unit[keep], return_inverse=True)[1]
    return TrialRows(
        names=cell_names(place.columns, place.labels),
        experiment=ExperimentRows(
            outcome=y[keep],
            predicted=f[keep],
            treated=treated[keep],
            group=group[keep],
            stratum=place.stratum[rows.cell][keep],
            n_strata=place.n_strata,
            chance=None if e is None else e[keep],
            scores=scores[keep],
            rows=InfluenceSums(weight=weight[keep], count=count[keep], unit=unit),
        ),
        notes=tuple(notes),
    )
