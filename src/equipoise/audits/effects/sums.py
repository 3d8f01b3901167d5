"""From a table of an experiment to the sums that the effect engines take.

Rows with their doubly robust scores serve what sums by arm do not tell.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np

from equipoise._checks import quoted
from equipoise._typing import AnyArray, Collapse, EffectMeasure, FloatArray, IntArray
from equipoise.audits.asking import Asking
from equipoise.audits.words import dropped_notes
from equipoise.data.arms import ArmCells, arm_keys
from equipoise.data.columns import ONE, Needs
from equipoise.data.groups import cell_names
from equipoise.data.query import CellRows, NarrowRows
from equipoise.data.splitting import hashed_numpy
from equipoise.data.table import Quantity, Rows, Sums, Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.results.finding import Note
from equipoise.results.formats import counted
from equipoise.stats.effects.checks import Balance, SampleRatio, balance_test, sample_ratio_test
from equipoise.stats.effects.collapse import (
    effect_quantities,
    resolve_collapse,
    slope_quantities,
)
from equipoise.stats.effects.effect_scores import effect_scores, lin_outcomes
from equipoise.stats.effects.errors import GroupErrors, effect_moments, group_errors, with_both_arms
from equipoise.stats.effects.evaluation import ExperimentRows
from equipoise.stats.effects.roots import EffectContrasts, adjusted_effect_contrasts
from equipoise.stats.influence import InfluenceSums

__all__ = [
    "ArmSums",
    "ExperimentSums",
    "TrialRows",
    "chance_notes",
    "experiment_sums",
    "trial_rows",
    "with_strata",
]


CHUNK = 100_000
"""Rows whose copies are dealt out to the halves at once."""

SMALLEST_CHANCE = 0.01
"""Chances of treatment nearer to 0 or 1 count as this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSums:
    """Sums of one arm beside those of the controls.

    Parameters
    ----------
    arm : str
        Label of the arm.
    moments : CellMoments
        By (group, stratum, arm); with `split` by (group, half, arm).
    n_strata : int
        Strata within which treatment was assigned.
    measure, collapse : str
        As they are used.
    names : tuple of str
        The quantities.
    binary, split : bool
        Whether outcomes are 0/1; whether there are halves.
    arm_ratio : float, optional
        As asked.
    slope : CellMoments, optional
        Sums for slopes.
    slope_names : tuple of str
        Their quantities.
    adjusted : EffectContrasts, optional
        Errors after regression adjustment.
    """

    arm: str
    moments: CellMoments
    n_strata: int
    measure: EffectMeasure
    collapse: str
    names: tuple[str, ...]
    binary: bool
    split: bool
    arm_ratio: float | None
    slope: CellMoments | None
    slope_names: tuple[str, ...]
    adjusted: EffectContrasts | None

    def errors(self) -> GroupErrors:
        """Return effects, predictions and errors of every group."""
        return group_errors(
            self.moments,
            measure=self.measure,
            collapse=self.collapse,
            names=self.names,
            arm_ratio=self.arm_ratio,
            split=self.split,
            n_strata=self.n_strata,
            binary=self.binary,
            adjusted=self.adjusted,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSums:
    """What an audit of effects needs of a table.

    Parameters
    ----------
    groups : tuple of str
        Written ``race=Black & sex=Female``.
    n : array of shape (G,)
        Rows of each group.
    control : str
        Label of the arm with which the others are compared.
    arms : tuple of ArmSums
        One for each other arm.
    ratio : SampleRatio
        Whether arms have lost rows.
    balance : Balance, optional
        Of the features, where they are numbers, for the first arm.
    notes : tuple of Note
        Rows left out.
    """

    groups: tuple[str, ...]
    n: IntArray
    control: str
    arms: tuple[ArmSums, ...]
    ratio: SampleRatio
    balance: Balance | None
    notes: tuple[Note, ...]


def with_strata(table: Table, strata: str | None) -> Table:
    """Return a view of the same rows with another column of strata; None keeps the role."""
    if strata is None or strata == table.roles.strata:
        return table
    table.check_column(strata)
    view = copy.copy(table)
    view.roles = replace(table.roles, strata=strata)
    return view


def experiment_sums(
    table: Table,
    *,
    measure: EffectMeasure,
    collapse: Collapse,
    control: object,
    effect_preds: Mapping[str, str],
    control_pred: str | None,
    treated_pred: str | None,
    arm_ratio: float | None,
    split: bool,
    slope: bool,
    checks: bool,
    seed: int,
) -> Asking[ExperimentSums]:
    """Sum what the collapse needs, in one query; see `Audit.treatment_effects`.

    Rows come into memory only for the paper's split into halves, and when the collapse is "aipw"
    with outcome predictions fitted here, on the features.
    """
    roles = table.roles
    if not roles.group:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    for role in ("y_true", "treatment", *([] if effect_preds else ["effect_pred"])):
        roles.column(role)
    fitted = collapse == "aipw" and control_pred is None and bool(roles.features)
    kind = resolve_collapse(
        measure,
        collapse,
        control_pred=control_pred is not None or fitted,
        treated_pred=treated_pred is not None or fitted,
    )
    weighted = roles.propensity is not None
    _check_design(kind, arm_ratio, split=split, fitted=fitted, weighted=weighted, table=table)
    for column in (control_pred, treated_pred, *effect_preds.values()):
        if column is not None:
            table.check_column(column)
    names = effect_quantities(
        measure, kind, treated_pred=treated_pred is not None, weighted=weighted
    )
    needed = _needs(
        table,
        effect_quantities(measure, _PLAIN[measure]) if fitted else names,
        slope_quantities(measure, weighted=weighted) if slope and arm_ratio is None else (),
        effect_preds=effect_preds,
        models=(control_pred, treated_pred),
        control=control,
        counted=_counted(table, kind, arm_ratio),
        checks=checks,
    )
    found: list[CellMoments] = yield needed.declared
    cells = dict(zip(needed.declared, found, strict=True))

    def placed(sums: Sums) -> ArmCells:
        return ArmCells.of(cells[sums], strata=roles.strata is not None, control=control)

    first = placed(needed.declared[0])
    counts = [quantity.name for quantity in needed.declared[0].counted]
    further = dict(zip(counts, found[0].sums.sum(axis=0).tolist(), strict=True))
    _check_outcomes(kind, further)
    _check_arms(first.arms, effect_preds, weighted=weighted, one=split or fitted)
    notes = [*dropped_notes(found[0].dropped), *chance_notes(further)]
    groups = cell_names(first.columns, first.labels)
    arms = []
    for k, arm in enumerate(first.arms[1:], start=1):
        if effect_preds and arm not in effect_preds:
            continue
        own = placed(needed.errors[arm if effect_preds else ""])
        moments, left_out = with_both_arms(own.compared(k), own.n_strata)
        notes += _overlap_notes(left_out, groups, own.n_strata)
        slopes = needed.slopes.get(arm if effect_preds else "")
        arms.append(
            ArmSums(
                arm=arm,
                moments=moments,
                n_strata=own.n_strata,
                measure=measure,
                collapse=kind,
                names=names,
                binary=not further["other"],
                split=split,
                arm_ratio=arm_ratio,
                slope=None
                if slopes is None
                else with_both_arms(placed(slopes).compared(k), own.n_strata)[0],
                slope_names=slope_quantities(measure, weighted=weighted),
                adjusted=None,
            )
        )
    if fitted or split:
        arms[0] = yield from _from_rows(
            table,
            arms[0],
            control=first.arms[0],
            models=(control_pred, treated_pred),
            fitted=fitted,
            seed=seed,
        )
    of_arms = first.counts()
    return ExperimentSums(
        groups=groups,
        n=of_arms.sum(axis=(1, 2)),
        control=first.arms[0],
        arms=tuple(arms),
        ratio=sample_ratio_test(of_arms),
        balance=None
        if needed.balance is None
        else balance_test(
            with_both_arms(placed(needed.balance).compared(1), first.n_strata)[0],
            n_strata=first.n_strata,
        ),
        notes=tuple(notes),
    )


_PLAIN: dict[str, str] = {"relative": "control", "difference": "mean"}
"""The collapse that needs no model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needed:
    """Declarations: for errors and for slopes by arm ("" for all), and for balance."""

    errors: dict[str, Sums]
    slopes: dict[str, Sums]
    balance: Sums | None

    @property
    def declared(self) -> tuple[Sums, ...]:
        more = () if self.balance is None else (self.balance,)
        return (*self.errors.values(), *self.slopes.values(), *more)


def _needs(
    table: Table,
    names: tuple[str, ...],
    slope_names: tuple[str, ...],
    *,
    effect_preds: Mapping[str, str],
    models: tuple[str | None, str | None],
    control: object,
    counted: list[Quantity],
    checks: bool,
) -> _Needed:
    roles, by = table.roles, arm_keys(table)
    used = ["y_true", "treatment", *([] if effect_preds else ["effect_pred"])]
    used += [role for role in ("strata", "propensity") if getattr(roles, role)]
    numbers = [x for x in roles.features if table.schema[x].is_numeric()] if checks else []
    needs: Needs = dict.fromkeys(used, "number")
    errors, slopes = {}, {}
    for arm, column in (effect_preds or {"": ""}).items():
        known = _expressions(table, column, models, control)
        detail = (column, *models, str(control))
        errors[arm] = table.sums(
            [Quantity(name, detail, known[name]) for name in names],
            needs,
            counted=counted,
            by=by,
            order=3,
            powers=[k for k, name in enumerate(names) if k == 0 or name == "w"],
        )
        if slope_names:
            values = [Quantity(name, detail, known[name]) for name in slope_names]
            slopes[arm] = table.sums(values, needs, by=by)
    one = Quantity("one", "feature", ONE)
    values = [Quantity(x, "feature", nw.col(x).cast(nw.Float64)) for x in numbers]
    return _Needed(
        errors=errors,
        slopes=slopes,
        balance=table.sums([one, *values], needs, by=by) if numbers else None,
    )


def _counted(table: Table, kind: str, arm_ratio: float | None) -> list[Quantity]:
    """Return what is counted in all rows: what a collapse cannot use, and whether y is 0/1."""
    y = table.y_true
    counted = [Quantity("other", "y_true", (y != 0.0) & (y != 1.0))]
    if kind in {"control", "positives"}:
        counted.append(Quantity("negative", "y_true", y < 0.0))
    if arm_ratio is not None:
        counted.append(Quantity("zero", "y_true", y == 0.0))
    if table.roles.propensity is None:
        return counted
    e = table.value("propensity")
    far = (e < SMALLEST_CHANCE) | (e > 1.0 - SMALLEST_CHANCE)
    return [
        *counted,
        Quantity("extreme", "propensity", far),
        Quantity("impossible", "propensity", (e <= 0.0) | (e >= 1.0)),
    ]


def _expressions(
    table: Table, column: str, models: tuple[str | None, str | None], control: object
) -> dict[str, nw.Expr]:
    """Return the row quantities by the names that the engine uses."""
    y = table.y_true
    f = nw.col(column).cast(nw.Float64) if column else table.effect_pred
    known = {"one": ONE, "y": y, "f": f, "yf": y * f, "ff": f * f, "yff": y * f * f}
    control_pred, treated_pred = models
    if control_pred is not None:
        mu0 = nw.col(control_pred).cast(nw.Float64)
        known |= {"mu0": mu0, "mu0f": mu0 * f}
    if treated_pred is not None:
        known["mu1"] = nw.col(treated_pred).cast(nw.Float64)
    if table.roles.propensity is not None:
        e = table.value("propensity").clip(SMALLEST_CHANCE, 1.0 - SMALLEST_CHANCE)
        w = nw.when(_treated(table, control)).then(1.0 / e).otherwise(1.0 / (1.0 - e))
        known |= {"w": w, "wy": w * y, "wf": w * f, "wyf": w * y * f, "wyff": w * y * f * f}
    return known


def _treated(table: Table, control: object) -> nw.Expr:
    """Return whether a row is in another arm than control."""
    column = table.roles.column("treatment")
    dtype = table.schema[column]
    if dtype == nw.Boolean or dtype.is_numeric():
        zero = {None: 0.0, "False": 0.0, "True": 1.0}
        value = zero[control] if control in zero else float(control)  # type: ignore[arg-type]
        return nw.col(column).cast(nw.Float64) != value
    return nw.col(column) != nw.lit(str(control))


def _from_rows(
    table: Table,
    sums: ArmSums,
    *,
    control: str,
    models: tuple[str | None, str | None],
    fitted: bool,
    seed: int,
) -> Asking[ArmSums]:
    """Sum the rows of memory: in random halves, or after regression adjustment."""
    treated = nw.when(_treated(table, control)).then(1.0).otherwise(0.0)
    wanted = {"y": table.y_true, "t": treated, "f": table.effect_pred}
    wanted |= {
        name: nw.col(column).cast(nw.Float64)
        for name, column in zip(("mu0", "mu1"), models, strict=True)
        if column is not None
    }
    covariates = [f"x{k}" for k in range(len(table.roles.features))] if fitted else []
    wanted |= {
        name: nw.col(column).cast(nw.Float64)
        for name, column in zip(covariates, table.roles.features, strict=fitted)
    }
    quantities = [Quantity.of(value) for value in wanted.values()]
    needs: Needs = {"y_true": "number", "treatment": "number", "effect_pred": "number"}
    narrow: NarrowRows = yield Rows(table.sums(quantities, needs, order=1))
    rows = narrow.read()
    value = dict(zip(wanted, rows.values, strict=True))
    mu0, mu1 = value.get("mu0"), value.get("mu1")
    adjusted = None
    if fitted:
        x = np.column_stack([value[name] for name in covariates])
        mu0, mu1 = lin_outcomes(value["y"], value["t"], rows.cell, x)
        alone = rows.unit is None and rows.weight is None and rows.count is None
        if alone and sums.measure == "difference":
            adjusted = adjusted_effect_contrasts(
                value["y"],
                value["t"].astype(np.int64),
                rows.cell,
                x,
                effect_pred=value["f"],
                n_groups=len(rows.labels[0]),
            )
    take, half, count = _halves(rows, seed) if sums.split else (slice(None), None, rows.count)
    moments = effect_moments(
        value["y"][take],
        value["t"][take],
        value["f"][take],
        rows.cell[take],
        measure=sums.measure,
        collapse=sums.collapse,  # type: ignore[arg-type]
        control_pred=None if mu0 is None else mu0[take],
        treated_pred=None if mu1 is None else mu1[take],
        half=half,
        n_groups=len(rows.labels[0]),
        cluster=None if rows.unit is None else rows.unit[take],
        weight=None if rows.weight is None else rows.weight[take],
        count=count,
    )
    names = effect_quantities(sums.measure, sums.collapse, treated_pred=mu1 is not None)
    return replace(sums, moments=moments, names=names, adjusted=adjusted)


def _numbered(rows: CellRows) -> IntArray:
    """Number the cells of rows by their sizes and sums: names of groups must not turn the draws."""
    # Added up in an order made of numbers, so that the order of rows does not matter either.
    order = np.lexsort(rows.values)
    cell = rows.cell[order]
    sums = [np.bincount(cell, np.asarray(value, np.float64)[order]) for value in rows.values]
    rank = np.lexsort([*sums, np.bincount(cell)])
    number = np.empty(len(rank), dtype=np.int64)
    number[rank] = np.arange(len(rank))
    return np.asarray(number[rows.cell])


def _halves(rows: CellRows, seed: int) -> tuple[IntArray, IntArray, FloatArray | None]:
    """Return rows, repeated where copies go to both halves, with half and count."""
    n = len(rows.cell)
    everyone = np.arange(n)
    if rows.unit is not None:
        return everyone, hashed_numpy(rows.unit, seed) % 2, rows.count
    others = [part for part in (rows.weight, rows.count) if part is not None]
    parts: list[AnyArray] = [*rows.values, _numbered(rows), *others]
    order = np.lexsort(parts)
    if rows.count is None:
        key = np.empty(n, dtype=np.int64)
        key[order] = everyone
        return everyone, hashed_numpy(key, seed) % 2, None
    generator = np.random.default_rng(seed)
    pieces = []
    for part in np.array_split(order, n // CHUNK + 1):
        dealt = generator.multinomial(rows.count[part].astype(np.int64), [0.5, 0.5])
        row, half = np.nonzero(dealt)
        pieces.append((part[row], half, dealt[row, half].astype(np.float64)))
    take, halves, counts = (np.concatenate(piece) for piece in zip(*pieces, strict=True))
    return take, halves, counts


def _check_design(
    kind: str, arm_ratio: float | None, *, split: bool, fitted: bool, weighted: bool, table: Table
) -> None:
    if arm_ratio is not None and kind != "control":
        raise InvalidParameterError(
            f'`arm_ratio` is for positive outcomes only, which collapse="control" alone can use;'
            f" got {kind!r}."
        )
    design = table.roles.strata is not None or weighted
    if design and (arm_ratio is not None or split or fitted):
        raise InvalidParameterError(
            "strata and known chances of treatment cannot be combined with `split`, `arm_ratio` or"
            " models of outcomes that are fitted here."
        )
    if weighted and kind not in {"control", "mean"}:
        raise InvalidParameterError(
            f'with `propensity` the collapse must be "control" or "mean"; got {kind!r}.'
        )


def _check_arms(
    arms: tuple[str, ...], effect_preds: Mapping[str, str], *, weighted: bool, one: bool
) -> None:
    unknown = [arm for arm in effect_preds if arm not in arms[1:]]
    if unknown:
        raise InvalidParameterError(
            f"`effect_pred` names the arm {unknown[0]!r}, which no row has; arms beside the control"
            f" {arms[0]!r} are {quoted(arms[1:])}."
        )
    if (weighted or one) and len(arms) > 2:
        raise InvalidParameterError(
            "`propensity`, `split` and models of outcomes that are fitted here are for one"
            f" treatment; this table has {len(arms) - 1}: {quoted(arms[1:])}. Leave the rows of the"
            " others out."
        )


def _check_outcomes(kind: str, further: Mapping[str, float]) -> None:
    if further.get("negative"):
        raise DataError(
            f'collapse="{kind}" weights by outcomes, which must not be negative;'
            f" {further['negative']:.0f} rows are."
            ' Use measure="difference", or collapse="aipw" with `control_pred`.'
        )
    if further.get("zero"):
        raise DataError(
            "`arm_ratio` is for a table of positive outcomes only; "
            f"{further['zero']:.0f} rows have outcome 0. Leave `arm_ratio` out."
        )


def chance_notes(further: Mapping[str, float]) -> list[Note]:
    """Return the note on rows with extreme chances of treatment; impossible ones are refused."""
    if further.get("impossible"):
        raise DataError(
            "`propensity` must lie between 0 and 1, both excluded;"
            f" {further['impossible']:.0f} rows do not. Without a chance of either arm there is no"
            " effect to estimate: leave those rows out."
        )
    if not further.get("extreme"):
        return []
    message = (
        f"{further['extreme']:.0f} rows have a chance of treatment below {SMALLEST_CHANCE:g} or"
        f" above {1 - SMALLEST_CHANCE:g}; they count as if it were {SMALLEST_CHANCE:g} or"
        f" {1 - SMALLEST_CHANCE:g}."
    )
    return [Note(code="extreme-propensity", message=message)]


def _overlap_notes(left_out: IntArray, groups: tuple[str, ...], n_strata: int) -> list[Note]:
    rows = int(left_out.sum())
    if n_strata == 1 or not rows:
        return []
    some = [group for group, n in zip(groups, left_out, strict=True) if n]
    message = (
        f"{rows} rows of {counted(len(some), 'group')} are left out: in their stratum the group"
        " has one arm only."
    )
    return [Note(code="one-arm-strata", message=message)]


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
