"""Sums by (block, group, arm) of an experiment: one query, whatever is asked of them later.

Rows are put into random blocks by hashing a key, so that any half of the blocks is a random half of
the rows and nothing has to be read again for another half. The key is the cluster, or the place of
the row among all rows sorted by what the question uses; it does not depend on the order of rows, so
that every engine makes the same blocks.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._typing import AnyArray, FloatArray
from equipoise.data.columns import Needs
from equipoise.data.splitting import PRIME, hashed
from equipoise.data.table import KEY, Quantity, Sums, Table
from equipoise.moments import CellMoments, CrossMoments, number_cells

__all__ = ["ArmCells", "arm_cells"]

ARM, BLOCK, KEYED = "__eq_arm", "__eq_block", "__eq_keyed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCells:
    """Sums by (block, group, arm), in this order: cell ``(block * G + group) * 2 + arm``.

    Parameters
    ----------
    columns : tuple of str
        The group columns.
    labels : tuple of arrays of shape (G,)
        Text label of each group in each column.
    cells : CellMoments
        The sums, in the order above.
    counted : array of shape (m,)
        Further sums that were asked for, over all rows.
    """

    columns: tuple[str, ...]
    labels: tuple[AnyArray, ...]
    cells: CellMoments
    counted: FloatArray


def arm_cells(
    table: Table,
    quantities: Sequence[Quantity],
    needs: Needs,
    *,
    counted: Sequence[Quantity] = (),
    columns: tuple[str, ...] = (),
    n_blocks: int = 1,
    seed: int = 0,
    only_nonzero: bool = False,
) -> Generator[Sums, CellMoments, ArmCells]:
    """Sum row quantities and their products by (block, group, arm).

    Parameters
    ----------
    table : Table
        With a treatment role and at least one group column.
    quantities : sequence of Quantity
        p numbers for each row; the first is 1.
    needs : mapping
        Roles that are used; treatment is a "label".
    counted : sequence of Quantity
        Further numbers, to be summed without weights.
    columns : tuple of str
        Columns without a role that the quantities use.
    n_blocks : int
        1 for no blocks.
    seed : int
        Of the hash.
    only_nonzero : bool
        Rows with outcome 0 count in the first quantity alone: they are counted by (group, arm) and
        the counts are dealt out to the blocks at random, so that only the other rows are keyed.

    Yields
    ------
    Sums

    Returns
    -------
    ArmCells
    """
    roles = table.roles
    arm = nw.when(table.treatment == 1.0).then(1).otherwise(0)
    frame = table.frame.with_columns(arm.cast(nw.Int64).alias(ARM))
    if n_blocks == 1:
        frame = frame.with_columns(nw.lit(0).alias(BLOCK))
    elif roles.cluster is not None:
        frame = frame.with_columns(_cluster_block(table, n_blocks, seed).alias(BLOCK))
    else:
        frame = _keyed(table, frame, needs, columns, n_blocks, seed, only_nonzero=only_nonzero)
    blocked = Table(
        frame,
        replace(
            roles,
            group=(*roles.group, BLOCK, ARM),
            features=tuple(dict.fromkeys((*roles.features, *columns))),
        ),
    )
    cells = yield blocked.sums(quantities, needs, counted=counted)
    return _arranged(cells, n_blocks, seed)


def _cluster_block(table: Table, n_blocks: int, seed: int) -> nw.Expr:
    """Return the block of a row's cluster; whole numbers are hashed as they are."""
    column = table.roles.column("cluster")
    if table.schema[column].is_integer():
        # Twice the remainder: engines differ in the sign of that of a negative number.
        key = (nw.col(column).cast(nw.Int64) % PRIME + PRIME) % PRIME
    else:
        key = nw.col(column).rank("dense").cast(nw.Int64)
    return nw.when(nw.col(column).is_null()).then(0).otherwise(hashed(key, seed) % n_blocks)


def _keyed(
    table: Table,
    frame: "nw.LazyFrame[Any]",
    needs: Needs,
    columns: tuple[str, ...],
    n_blocks: int,
    seed: int,
    *,
    only_nonzero: bool,
) -> "nw.LazyFrame[Any]":
    """Give each complete row a block by its place in the sorted table; the others get -1."""
    wanted = nw.lit(1) if not only_nonzero else nw.when(table.y_true != 0.0).then(1).otherwise(0)
    flag = nw.when(table.is_complete(needs)).then(wanted).otherwise(0)
    flagged = frame.with_columns(flag.alias(KEYED))
    used = {*table.roles.group, *columns, *(table.roles.column(role) for role in needs)}
    if table.roles.weight is not None:
        used.add(table.roles.weight)
    keyed = flagged.filter(nw.col(KEYED) == 1).with_row_index(KEY, order_by=sorted(used))
    block = hashed(nw.col(KEY).cast(nw.Int64), seed) % n_blocks
    keyed = keyed.with_columns(block.cast(nw.Int64).alias(BLOCK)).drop(KEY)
    others = flagged.filter(nw.col(KEYED) == 0)
    others = others.with_columns(nw.lit(-1).cast(nw.Int64).alias(BLOCK))
    names = keyed.collect_schema().names()
    return nw.concat([keyed, others.select(names)])


def _arranged(cells: CellMoments, n_blocks: int, seed: int) -> ArmCells:
    """Put the cells in the order (block, group, arm), and deal out the rows without a block."""
    *columns, _, _ = cells.columns
    *labels, block_label, arm_label = cells.labels
    block, arm = block_label.astype(np.int64), arm_label.astype(np.int64)
    group, names = number_cells(labels)
    size = len(names[0])
    place = (block * size + group) * 2 + arm
    p = cells.total.shape[1]
    n = np.zeros(n_blocks * size * 2, dtype=np.int64)
    total = np.zeros((len(n), p))
    product = np.zeros((len(n), p, p))
    own = block >= 0
    n[place[own]] = cells.n[own]
    total[place[own]] = cells.total[own]
    product[place[own]] = cells.product[own]
    generator = np.random.default_rng(seed)
    for k in np.flatnonzero(~own):
        dealt = generator.multinomial(cells.n[k], np.full(n_blocks, 1.0 / n_blocks))
        at = (np.arange(n_blocks) * size + group[k]) * 2 + arm[k]
        n[at] += dealt
        total[at, 0] += dealt
        product[at, 0, 0] += dealt
    cross = None
    if cells.cross is not None:
        pair = cells.cross
        cross = CrossMoments(
            first=place[pair.first], second=place[pair.second], product=pair.product
        )
    return ArmCells(
        columns=tuple(columns),
        labels=names,
        cells=CellMoments(
            n=n,
            total=total,
            product=product,
            n_units=cells.n_units,
            cross=cross,
            dropped=cells.dropped,
        ),
        counted=cells.sums.sum(axis=0),
    )
