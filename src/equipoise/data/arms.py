"""Sums by (group, stratum, arm) of an experiment: one query, whatever is asked of them later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._checks import nearest, quoted
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.data.groups import label_of
from equipoise.data.table import Quantity, Table
from equipoise.exceptions import ColumnNotFoundError, DataError, InvalidParameterError
from equipoise.moments import CellMoments, CrossMoments, UnitMoments, number_cells

__all__ = ["PREDICTED", "ArmCells", "arm_keys", "with_effects"]

PREDICTED = "predicted effect"
"""Column of the effects that an estimator predicts."""

MOST_ARMS = 50
"""Values beyond which a treatment column does not hold arms."""

CONTROLS = ("0", "0.0", "False")
"""Labels that mean no treatment where nothing else is said."""


def with_effects(data: Any, estimator: Any, features: Sequence[str]) -> Any:
    """Return a table in memory with the effects that an estimator predicts for its rows.

    Parameters
    ----------
    data : frame or dict of arrays
        The rows.
    estimator : object
        With a method `effect`, as those of EconML have, or `predict`; of one matrix of features.
    features : sequence of str
        Columns of the matrix, in this order.

    Returns
    -------
    frame or dict of arrays
        With one more column, `PREDICTED`.
    """
    predict = getattr(estimator, "effect", None) or getattr(estimator, "predict", None)
    if not callable(predict):
        raise InvalidParameterError(
            "`effect_pred` must name a column, map arms to columns, or have a method `effect` or"
            f" `predict`; got {type(estimator).__name__}."
        )
    if not features:
        raise InvalidParameterError(
            "an estimator of effects needs `features`, the columns that it was fitted on."
        )
    frame = data
    if not isinstance(data, Mapping):
        try:
            frame = nw.from_native(data, eager_only=True)
        except TypeError as error:
            raise InvalidParameterError(
                "an estimator predicts for rows in memory: pass a frame or a dict of arrays, or"
                " write its predictions into a column and name that."
            ) from error
    for name in features:
        if name not in (frame if isinstance(data, Mapping) else frame.columns):
            raise ColumnNotFoundError(f"Column {name!r} of `features` not found.")
    x = np.column_stack([np.asarray(frame[name]) for name in features])
    effects = np.asarray(predict(x), dtype=np.float64)
    if effects.shape not in {(len(x),), (len(x), 1)}:
        raise InvalidParameterError(
            f"the estimator must predict one effect for each of {len(x)} rows; got shape"
            f" {effects.shape}. For several arms write them into columns and pass"
            " `effect_pred={arm: column}`."
        )
    if isinstance(data, Mapping):
        return {**data, PREDICTED: effects.ravel()}
    series = nw.new_series(PREDICTED, effects.ravel(), backend=frame.implementation)
    return frame.with_columns(series).to_native()


def arm_keys(table: Table) -> tuple[Quantity, ...]:
    """Return the keys beside the groups: the stratum, where there is one, and the arm."""
    roles = table.roles
    arm = roles.column("treatment")
    keys = [] if roles.strata is None else [Quantity("stratum", roles.strata, nw.col(roles.strata))]
    return (*keys, Quantity("arm", arm, nw.col(arm)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCells:
    """Cells whose place among groups, strata and arms is known.

    Parameters
    ----------
    columns : tuple of str
        The group columns.
    labels : tuple of arrays of shape (G,)
        Text label of each group in each column.
    arms : tuple of str
        Labels of the arms, control first.
    n_strata : int
        S; 1 without strata.
    cells : CellMoments
        K cells as the query returned them.
    group, stratum, arm : array of shape (K,)
        Where each belongs.
    """

    columns: tuple[str, ...]
    labels: tuple[AnyArray, ...]
    arms: tuple[str, ...]
    n_strata: int
    cells: CellMoments
    group: IntArray
    stratum: IntArray
    arm: IntArray

    @classmethod
    def of(cls, cells: CellMoments, *, strata: bool, control: object = None) -> "ArmCells":
        """Find the place of each cell.

        Parameters
        ----------
        cells : CellMoments
            Sums by the group columns and `arm_keys`.
        strata : bool
            Whether a stratum is among the keys.
        control : object, optional
            The arm with which the others are compared; by default 0.

        Returns
        -------
        ArmCells
        """
        extra = 2 if strata else 1
        group, names = number_cells(cells.labels[:-extra])
        arms = _arms(cells.labels[-1], control)
        place = {label: k for k, label in enumerate(arms)}
        stratum = np.zeros(len(cells.n), dtype=np.int64)
        if strata:
            stratum = np.unique(cells.labels[-2].astype(str), return_inverse=True)[1]
        return cls(
            columns=cells.columns[:-extra],
            labels=names,
            arms=arms,
            n_strata=int(stratum.max(initial=0)) + 1,
            cells=cells,
            group=group,
            stratum=stratum,
            arm=np.array([place[label] for label in cells.labels[-1].tolist()], dtype=np.int64),
        )

    @property
    def n_groups(self) -> int:
        """G."""
        return len(self.labels[0]) if self.labels else 1

    def counts(self) -> IntArray:
        """Rows of each (group, stratum, arm)."""
        n = np.zeros((self.n_groups, self.n_strata, len(self.arms)), dtype=np.int64)
        n[self.group, self.stratum, self.arm] = self.cells.n
        return n

    def compared(self, arm: int) -> CellMoments:
        """Return the sums of one arm beside those of the controls.

        Parameters
        ----------
        arm : int
            From 1.

        Returns
        -------
        CellMoments
            Cell ``(group * S + stratum) * 2 + treated``; cells without rows are zero.
        """
        cells = self.cells
        own = np.isin(self.arm, (0, arm))
        place = (self.group * self.n_strata + self.stratum) * 2 + (self.arm == arm)
        size = self.n_groups * self.n_strata * 2

        def spread(values: AnyArray) -> FloatArray:
            full = np.zeros((size, *values.shape[1:]))
            full[place[own]] = values[own]
            return full

        units, cross = cells.units, cells.cross
        if units is not None:
            units = UnitMoments(
                n=spread(units.n),
                third=spread(units.third),
                fourth=spread(units.fourth),
                fifth=spread(units.fifth),
            )
        if cross is not None:
            both = own[cross.first] & own[cross.second]
            first, second = place[cross.first[both]], place[cross.second[both]]
            turned = (first > second)[:, None, None]
            product = cross.product[both]
            cross = CrossMoments(
                first=np.minimum(first, second),
                second=np.maximum(first, second),
                product=np.where(turned, product.transpose(0, 2, 1), product),
                squares=None if cross.squares is None else cross.squares[both],
            )
            cross = cross if both.any() else None
        return replace(
            cells,
            n=spread(cells.n).round().astype(np.int64),
            total=spread(cells.total),
            product=spread(cells.product),
            units=units,
            cross=cross,
            columns=(),
            labels=(),
            sums=np.empty((0, 0)),
            shared=None,
        )


def _arms(labels: AnyArray, control: object) -> tuple[str, ...]:
    """Return the labels of the arms, control first."""
    known = sorted(set(labels.tolist()))
    if len(known) > MOST_ARMS:
        raise DataError(
            f"`treatment` must hold the arms of an experiment; it has {len(known)} different values"
            f" and the limit is {MOST_ARMS}."
        )
    first = [label for label in CONTROLS if label in known]
    if control is not None:
        first = [label_of(control)]
    if not first or first[0] not in known:
        asked = "" if control is None else f" {label_of(control)!r} is not one of them."
        hint = "" if control is None else nearest(label_of(control), known)
        raise InvalidParameterError(
            f"`treatment` has arms {quoted(known)}.{asked}{hint} Say which one the others are"
            " compared with, for instance `control=0`."
        )
    if len(known) < 2:
        raise DataError(f"`treatment` must have two arms or more; every row has {known[0]!r}.")
    return (first[0], *[label for label in known if label != first[0]])
