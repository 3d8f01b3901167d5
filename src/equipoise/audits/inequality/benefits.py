"""From benefits as the user names them to sums by group, in one scan of the table."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np

from equipoise._checks import SMALLEST, check_number, nearest, quoted
from equipoise._typing import FloatArray
from equipoise.audits.asking import Asking
from equipoise.audits.words import dropped_notes
from equipoise.data.columns import ONE, Needs
from equipoise.data.table import Quantity, Sums, Table
from equipoise.design.benefits import BenefitDesign, benefit_design
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from equipoise.moments import CellMoments, merge_cells
from equipoise.results.finding import Note
from equipoise.stats.inequality.benefits import (
    SPEICHER,
    BenefitMoments,
    check_matrix,
    levels_of_people,
)
from equipoise.stats.inequality.cap import IndexCap, KappaScheme, index_cap
from equipoise.stats.inequality.index import check_order
from equipoise.stats.inequality.resampled import power

__all__ = ["Benefits", "MeasuredBenefits", "find_benefits", "measure_benefits"]

AnyBenefits: TypeAlias = str | BenefitDesign | Mapping[str, Any] | Sequence[Sequence[float]]

NEAR_LIMIT = 1e-7
"""Orders closer than this to 0 or 1, but not equal, are taken as 0 or 1 by a database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benefits:
    """Benefits that were asked for, checked.

    Parameters
    ----------
    name : str
        For the reader.
    order : float
        Order of the index.
    matrix : array of shape (k, k), optional
        Benefits ``matrix[y_pred][y_true]``; absent when a column holds them.
    column : str, optional
        Column of benefits.
    soft : bool
        Whether the score is read as the probability of decision 1.
    kappa : float, optional
        How many benign errors a harmful one is worth.
    design : BenefitDesign, optional
        Present when the benefits come from one.
    """

    name: str
    order: float
    matrix: FloatArray | None = None
    column: str | None = None
    soft: bool = False
    kappa: float | None = None
    design: BenefitDesign | None = None

    def limit(self, base_rate: float) -> tuple[KappaScheme, IndexCap] | None:
        """Return the scheme and cap of kappa; without a design, at the observed base rate."""
        if self.design is not None:
            scheme = self.design.scheme
            return scheme, index_cap(scheme, order=self.order)
        if self.kappa is None or self.matrix is None:
            return None
        kind, unit, low, high = _row_unit(self.matrix)
        scheme = KappaScheme(
            kind=kind, base_rate=base_rate, kappa=self.kappa, low=low / unit, high=high / unit
        )
        return scheme, index_cap(scheme, order=self.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBenefits:
    """Benefits summed over the cells of a table.

    Parameters
    ----------
    moments : BenefitMoments
        Sums by cell.
    cells : CellMoments
        With the labels of the cells.
    people : CellMoments, optional
        For 2 x 2 matrices: one cell with the indicators of true positives, false negatives, false
        positives and true negatives.
    counts : array of shape (4,), optional
        Rows of each of these, without weights.
    independent : bool
        Whether rows are independent, unweighted and have few benefit levels: counts are sufficient.
    declared : Sums
        What was summed.
    change : array of shape (3, p)
        From the quantities that were summed to weight, benefit and its power.
    notes : tuple of Note
        What the reader should know.
    """

    moments: BenefitMoments
    cells: CellMoments
    declared: Sums
    change: FloatArray
    people: CellMoments | None = None
    counts: FloatArray | None = None
    independent: bool = False
    notes: tuple[Note, ...] = ()


def find_benefits(
    table: Table, benefits: AnyBenefits, *, order: float, soft: bool, kappa: float | None
) -> Benefits:
    """Check what was asked for; every error says what to pass instead."""
    a = check_order(order)
    ratio = None if kappa is None else check_number("kappa", kappa, low=1e-9)
    if soft and (ratio is not None or isinstance(benefits, (BenefitDesign, Mapping))):
        raise InvalidParameterError(
            "a ratio of errors and its cap are about decisions, not about scores; pass"
            " `soft=False`, or benefits without a design and no `kappa`."
        )
    if isinstance(benefits, Mapping):
        benefits = _design(benefits, a)
    if isinstance(benefits, BenefitDesign):
        design = benefits
        if a not in (1.0, design.order) or ratio not in (None, design.scheme.kappa):
            raise InvalidParameterError(
                f"the design has order {design.order:g} and kappa {design.scheme.kappa:g}; got"
                f" order {a:g} and kappa {kappa}. Make another design, or leave them out here."
            )
        return Benefits(
            name=f"{design.scheme.kind} design, kappa {design.scheme.kappa:g}",
            order=design.order,
            matrix=np.array(design.matrix),
            kappa=design.scheme.kappa,
            design=design,
        )
    if isinstance(benefits, str):
        return _named(table, benefits, a, soft=soft, kappa=ratio)
    matrix = check_matrix(benefits, size=2 if soft else None)
    if ratio is not None:
        _row_unit(matrix)
    return Benefits(name="benefit matrix", order=a, matrix=matrix, soft=soft, kappa=ratio)


def measure_benefits(table: Table, benefits: Benefits) -> Asking[MeasuredBenefits]:
    """Sum benefits over the cells in one scan.

    Decisions with a 2 x 2 matrix need counts of labels only, which other audits share; everything
    else sums b and its power in the engine.
    """
    if benefits.matrix is not None and len(benefits.matrix) == 2 and not benefits.soft:
        declared = table.label_sums(("y_true", "y_pred"))
        independent = table.roles.weight is None and table.roles.cluster is None
        if independent:
            cells: CellMoments = yield declared
            means: CellMoments | None = None
        else:
            value, _, _ = _expression(table, benefits)
            benefit = ("matrix", *benefits.matrix.ravel().tolist())
            cells, means = yield declared, _mean_sums(table, value, benefit, dict(declared.needs))
        (tn, fn), (fp, tp) = benefits.matrix
        levels = levels_of_people(np.array([tp, fn, fp, tn]), cells.total.sum(axis=0))
        return MeasuredBenefits(
            moments=BenefitMoments.from_levels(levels, cells, order=benefits.order, means=means),
            cells=cells,
            declared=declared,
            change=np.stack([np.ones(4), levels, power(levels, benefits.order)]),
            people=merge_cells(cells, np.zeros(len(cells.n))),
            counts=cells.sums.sum(axis=0),
            independent=independent,
            notes=dropped_notes(cells.dropped),
        )
    value, needs, outside = _expression(table, benefits)
    order = benefits.order
    for limit in (0.0, 1.0):
        order = limit if abs(order - limit) < NEAR_LIMIT else order
    absent = nw.lit(value=False)
    if benefits.column is not None and table.roles.missing == "raise":
        absent = value.is_null() | table.is_nan(value)
        value = nw.when(absent).then(nw.lit(1.0)).otherwise(value)
    flags = {"outside": outside, "absent": absent, "negative": value < 0.0, "zero": value == 0.0}
    terms = {"one": ONE, "benefit": value, "power": _power(value, order)}
    matrix = None if benefits.matrix is None else tuple(benefits.matrix.ravel().tolist())
    detail = (benefits.name, matrix, benefits.soft, order)
    declared = table.sums(
        [Quantity(name, detail, term) for name, term in terms.items()],
        needs,
        counted=[Quantity(name, detail, flag) for name, flag in flags.items()],
    )
    cells, means = yield declared, _mean_sums(table, value, detail, needs)
    _refuse(benefits, dict(zip(flags, cells.sums.sum(axis=0).tolist(), strict=True)), cells)
    if 0.0 < cells.total[:, 1].sum() < SMALLEST * cells.total[:, 0].sum():
        raise DataError(
            f"Benefits must not all be below {SMALLEST:g} in size, where squares vanish. Rescale"
            " them."
        )
    return MeasuredBenefits(
        moments=BenefitMoments.from_powers(cells, order=order, means=means),
        cells=cells,
        declared=declared,
        change=np.eye(3),
        notes=dropped_notes(cells.dropped),
    )


def _mean_sums(table: Table, value: nw.Expr, detail: Hashable, needs: Needs) -> Sums:
    """Declare what the law of mean benefits needs."""
    terms = (Quantity("benefit", detail, value), Quantity("one", detail, ONE))
    return table.sums(terms, needs, order=3)


def _named(table: Table, name: str, order: float, *, soft: bool, kappa: float | None) -> Benefits:
    if name == "speicher":
        if kappa is not None:
            raise InvalidParameterError(
                "`kappa` needs benefits that say which error is harmful; pass a `benefit_design`"
                ' instead of "speicher".'
            )
        return Benefits(name="yhat - y + 1", order=order, matrix=SPEICHER, soft=soft)
    if name not in table.schema:
        raise InvalidParameterError(
            f'`benefits` must be "speicher", a benefit design, a matrix or a column; {name!r} is'
            f" none of these.{nearest(name, ('speicher', *table.schema))} Columns:"
            f" {quoted(table.schema)}."
        )
    table.check_column(name)
    if not table.schema[name].is_numeric():
        raise DataError(f"benefits must be numeric; column {name!r} is {table.schema[name]}.")
    if soft or kappa is not None:
        raise InvalidParameterError(
            f"`soft` and `kappa` need a benefit matrix; {name!r} is a column of benefits."
        )
    return Benefits(name=f"column {name!r}", order=order, column=name)


def _design(options: Mapping[str, Any], order: float) -> BenefitDesign:
    known = ("base_rate", "kappa", "kind", "minimum_benefit", "order")
    for key in options:
        if key not in known:
            raise InvalidParameterError(
                f"a benefit design has no option {key!r}.{nearest(str(key), known)} Options:"
                f" {quoted(known)}."
            )
    for key in ("base_rate", "kappa"):
        if key not in options:
            raise InvalidParameterError(f"a benefit design needs `{key}`.")
    return benefit_design(**({"order": order} | dict(options)))


def _row_unit(matrix: FloatArray) -> tuple[Any, float, float, float]:
    """Return kind, unit, low and high of a matrix in which one decision has one benefit."""
    if len(matrix) == 2:
        (tn, fn), (fp, tp) = matrix.tolist()
        if tn == fn > tp > fp > 0.0:
            return "punitive", tn, fp, tp
        if fp == tp > tn > fn > 0.0:
            return "assistive", tp, fn, tn
    raise InvalidParameterError(
        "`kappa` needs a 2 x 2 matrix ((1, 1), (low, high)) or ((high, low), (1, 1)) with"
        f" 0 < low < high < 1; got {matrix.tolist()}. `benefit_design` makes one."
    )


def _expression(table: Table, benefits: Benefits) -> tuple[nw.Expr, Needs, nw.Expr]:
    """Return the benefit of a row, the roles it uses, and whether the row has none."""
    if benefits.column is not None:
        return nw.col(benefits.column).cast(nw.Float64), {}, nw.lit(value=False)
    matrix = SPEICHER if benefits.matrix is None else benefits.matrix
    if benefits.soft:
        score, y = table.y_score, table.y_true
        when_one = (1.0 - score) * float(matrix[0, 1]) + score * float(matrix[1, 1])
        when_zero = (1.0 - score) * float(matrix[0, 0]) + score * float(matrix[1, 0])
        outside = (score < 0.0) | (score > 1.0)
        value = nw.when(outside).then(nw.lit(1.0)).otherwise(y * when_one + (1.0 - y) * when_zero)
        return value, {"y_true": "label", "y_score": "number"}, outside
    value, found = nw.lit(1.0), nw.lit(value=False)
    for i, row in enumerate(matrix.tolist()):
        for j, benefit in enumerate(row):
            here = (table.y_pred == float(i)) & (table.y_true == float(j))
            value = nw.when(here).then(nw.lit(benefit)).otherwise(value)
            found = found | here
    return value, {"y_true": "number", "y_pred": "number"}, ~found


def _power(value: nw.Expr, order: float) -> nw.Expr:
    """Return b ** order, ln b at order 0 and b ln b at order 1; zero where b is not positive."""
    positive = nw.when(value > 0.0).then(value).otherwise(nw.lit(1.0))
    if order == 0.0:
        return positive.log()
    power = positive.log() * positive if order == 1.0 else positive**order
    return nw.when(value > 0.0).then(power).otherwise(nw.lit(0.0))


def _refuse(benefits: Benefits, found: dict[str, float], cells: CellMoments) -> None:
    """Raise if the scan met benefits that no index can use."""
    n = int(cells.n.sum())
    if found["outside"] and benefits.soft:
        raise DataError(
            f"soft benefits read `y_score` as the probability of decision 1, in [0, 1];"
            f" {found['outside']:.0f} of {n} rows are outside."
        )
    if found["outside"] and benefits.matrix is not None:
        raise DataError(
            f"`y_true` and `y_pred` must hold labels 0 to {len(benefits.matrix) - 1}, one for each"
            f" row of the benefit matrix; {found['outside']:.0f} of {n} rows are outside. Pass a"
            " larger matrix or recode the labels."
        )
    if found["absent"]:
        raise MissingValuesError(
            f"{benefits.column!r} has {found['absent']:.0f} missing values in {n} rows. Fill or"
            ' drop them, or pass `missing="drop"`; the count is then noted in the result.'
        )
    if found["negative"]:
        raise DataError(
            f"benefits must be at least zero; {found['negative']:.0f} of {n} rows are negative."
            " Shift or clip them so that zero means no benefit."
        )
    if found["zero"] and benefits.order <= 0.0:
        raise DataError(
            f"an index of order {benefits.order:g} is infinite when a benefit is zero;"
            f" {found['zero']:.0f} of {n} rows are zero. Pass `order` > 0 or a positive smallest"
            " benefit."
        )
