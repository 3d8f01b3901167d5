"""From a table of an experiment to the sums that the effect engines take."""

from dataclasses import dataclass

import narwhals as nw
import numpy as np

from equipoise._typing import AnyArray, Collapse, EffectMeasure, FloatArray, IntArray
from equipoise.audits.asking import Asking
from equipoise.audits.disparity.measure import dropped_notes
from equipoise.data.arms import arm_cells
from equipoise.data.columns import Needs
from equipoise.data.groups import cell_names
from equipoise.data.query import CellRows, NarrowRows
from equipoise.data.splitting import hashed_numpy
from equipoise.data.table import Quantity, Rows, Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.results.finding import Note
from equipoise.stats.effects.adjustment import lin_outcomes
from equipoise.stats.effects.collapse import effect_quantities, resolve_collapse
from equipoise.stats.effects.errors import effect_moments

__all__ = ["EffectSums", "effect_sums"]

CHUNK = 100_000
"""Rows whose copies are dealt out to the blocks at once."""

NEEDS: Needs = {"y_true": "number", "treatment": "label", "effect_pred": "number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSums:
    """Sums by (block, group, arm), and what they are sums of.

    Parameters
    ----------
    groups : tuple of str
        Written ``race=Black & sex=Female``.
    moments : CellMoments
        Block-major.
    n_blocks : int
        Number of blocks.
    collapse : str
        The collapse that is used.
    notes : tuple of Note
        Rows left out.
    """

    groups: tuple[str, ...]
    moments: CellMoments
    n_blocks: int
    collapse: str
    notes: tuple[Note, ...]


def effect_sums(
    table: Table,
    *,
    measure: EffectMeasure,
    collapse: Collapse,
    control_pred: str | None,
    treated_pred: str | None,
    arm_ratio: float | None,
    n_blocks: int,
    seed: int,
) -> Asking[EffectSums]:
    """Sum what the collapse needs, in one query; see `Audit.treatment_effects`.

    Rows come into memory only when they carry a `count` (copies of a row go to different blocks) or
    when the collapse is "aipw" with outcome predictions fitted here, on the features.
    """
    if not table.roles.group:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    for role in NEEDS:
        table.roles.column(role)
    fitted = collapse == "aipw" and control_pred is None and bool(table.roles.features)
    kind = resolve_collapse(
        measure,
        collapse,
        control_pred=control_pred is not None or fitted,
        treated_pred=treated_pred is not None or fitted,
    )
    if arm_ratio is not None and kind != "control":
        raise InvalidParameterError(
            f'`arm_ratio` is for positive outcomes only, which collapse="control" alone can use;'
            f" got {kind!r}."
        )
    columns = tuple(name for name in (control_pred, treated_pred) if name is not None)
    for column in columns:
        table.check_column(column)
    counted = table.roles.count is not None and table.roles.cluster is None
    if fitted or (counted and n_blocks > 1):
        return (
            yield from _from_rows(
                table,
                measure=measure,
                kind=kind,
                models=(control_pred, treated_pred),
                fitted=fitted,
                arm_ratio=arm_ratio,
                n_blocks=n_blocks,
                seed=seed,
            )
        )
    known = _expressions(table, control_pred, treated_pred)
    names = effect_quantities(measure, kind, treated_pred=treated_pred is not None)
    by_outcome = kind in {"control", "positives"}
    signs = {"negative": table.y_true < 0.0, "zero": table.y_true == 0.0}
    arms = yield from arm_cells(
        table,
        [Quantity(name, columns, known[name]) for name in names],
        NEEDS,
        counted=[Quantity(name, "y_true", sign) for name, sign in signs.items()],
        columns=columns,
        n_blocks=n_blocks,
        seed=seed,
        only_nonzero=by_outcome and table.roles.weight is None,
    )
    if by_outcome:
        negative, zero = arms.counted
        _check_outcomes(kind, negative, zero, arm_ratio)
    return EffectSums(
        groups=cell_names(arms.columns, arms.labels),
        moments=arms.cells,
        n_blocks=n_blocks,
        collapse=kind,
        notes=dropped_notes(arms.cells.dropped),
    )


def _expressions(
    table: Table, control_pred: str | None, treated_pred: str | None
) -> dict[str, nw.Expr]:
    """Return the row quantities by the names that the engine uses."""
    y, f = table.y_true, table.effect_pred
    known = {"one": nw.lit(1.0), "y": y, "f": f, "yf": y * f}
    if control_pred is not None:
        mu0 = nw.col(control_pred).cast(nw.Float64)
        known |= {"mu0": mu0, "mu0f": mu0 * f}
    if treated_pred is not None:
        known["mu1"] = nw.col(treated_pred).cast(nw.Float64)
    return known


def _from_rows(
    table: Table,
    *,
    measure: EffectMeasure,
    kind: str,
    models: tuple[str | None, str | None],
    fitted: bool,
    arm_ratio: float | None,
    n_blocks: int,
    seed: int,
) -> Asking[EffectSums]:
    wanted = {"y": table.y_true, "t": table.treatment, "f": table.effect_pred}
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
    narrow: NarrowRows = yield Rows(table.sums(quantities, NEEDS, order=1))
    rows = narrow.read()
    value = dict(zip(wanted, rows.values, strict=True))
    if kind in {"control", "positives"}:
        negative, zero = float(np.sum(value["y"] < 0)), float(np.sum(value["y"] == 0))
        _check_outcomes(kind, negative, zero, arm_ratio)
    mu0, mu1 = value.get("mu0"), value.get("mu1")
    if fitted:
        x = np.column_stack([value[name] for name in covariates])
        mu0, mu1 = lin_outcomes(value["y"], value["t"], rows.cell, x)
    take, block, count = _blocks(rows, n_blocks, seed)
    size = len(rows.labels[0])
    moments = effect_moments(
        value["y"][take],
        value["t"][take],
        value["f"][take],
        block * size + rows.cell[take],
        measure=measure,
        collapse=kind,  # type: ignore[arg-type]
        control_pred=None if mu0 is None else mu0[take],
        treated_pred=None if mu1 is None else mu1[take],
        n_groups=n_blocks * size,
        cluster=None if rows.unit is None else rows.unit[take],
        weight=None if rows.weight is None else rows.weight[take],
        count=count,
    )
    return EffectSums(
        groups=cell_names(rows.columns, rows.labels),
        moments=moments,
        n_blocks=n_blocks,
        collapse=kind,
        notes=dropped_notes(rows.dropped),
    )


def _blocks(
    rows: CellRows, n_blocks: int, seed: int
) -> tuple[IntArray, IntArray, FloatArray | None]:
    """Return rows, repeated where copies go to several blocks, with block and count."""
    n = len(rows.cell)
    everyone = np.arange(n)
    if rows.unit is not None:
        return everyone, hashed_numpy(rows.unit, seed) % n_blocks, rows.count
    parts: list[AnyArray] = [*rows.values, rows.cell]
    parts += [part for part in (rows.weight, rows.count) if part is not None]
    order = np.lexsort(parts)
    if rows.count is None:
        key = np.empty(n, dtype=np.int64)
        key[order] = everyone
        return everyone, hashed_numpy(key, seed) % n_blocks, None
    generator = np.random.default_rng(seed)
    share = np.full(n_blocks, 1.0 / n_blocks)
    pieces = []
    for part in np.array_split(order, n // CHUNK + 1):
        dealt = generator.multinomial(rows.count[part].astype(np.int64), share)
        row, block = np.nonzero(dealt)
        pieces.append((part[row], block, dealt[row, block].astype(np.float64)))
    take, blocks, counts = (np.concatenate(piece) for piece in zip(*pieces, strict=True))
    return take, blocks, counts


def _check_outcomes(kind: str, negative: float, zero: float, arm_ratio: float | None) -> None:
    if negative:
        raise DataError(
            f'collapse="{kind}" weights by outcomes, which must not be negative;'
            f" {negative:.0f} rows are."
            ' Use measure="difference", or collapse="aipw" with `control_pred`.'
        )
    if arm_ratio is not None and zero:
        raise DataError(
            "`arm_ratio` is for a table of positive outcomes only; "
            f"{zero:.0f} rows have outcome 0. Leave `arm_ratio` out."
        )
