"""Scores of rows on a cluster, asked for by queries: counts and sums come back."""

from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._typing import AnyArray, FloatArray
from equipoise.data.query import CLUSTER, COUNT, WEIGHT, CellRows, NarrowRows, collect, fetch
from equipoise.stats.scores.rows import ScoreBins, ScoreSupport, sum_by

__all__ = ["ScoreQueries"]

PLACE, ROWS, TOTAL = "__eq_place", "__eq_rows", "__eq_total"


class ScoreQueries:
    """Scores of rows, and the rows themselves where those that are alike can be counted.

    Independent rows without weights, and with outcomes 0 and 1, are alike when their groups,
    outcomes and places among the scores agree: one query counts them all.

    Parameters
    ----------
    narrow : NarrowRows
        With an outcome and a score.
    """

    def __init__(self, narrow: NarrowRows) -> None:
        self._frame, self._reader = narrow.frame, narrow.reader
        self._outcome, self._score = narrow.reader.quantities
        outcome, score = nw.col(self._outcome), nw.col(self._score)
        real = (outcome != 0.0) & (outcome != 1.0)
        found = collect(
            self._frame.select(
                n=nw.len(), low=score.min(), high=score.max(), real=real.cast(nw.Int32).sum()
            )
        )
        self._extent = int(found["n"][0]), float(found["low"][0]), float(found["high"][0])
        dependent = {CLUSTER, WEIGHT} & {*narrow.reader.multipliers}
        self.countable = not dependent and not found["real"][0]
        self._alike: CellRows | None = None

    def extent(self) -> tuple[int, float, float]:
        """Return how many there are, the lowest and the highest."""
        return self._extent

    def distinct(self) -> FloatArray:
        """Return those that differ, ascending."""
        place, _, _ = self._sums(nw.col(self._score))
        return np.unique(place)

    def counts(self, bins: ScoreBins) -> FloatArray:
        """Return the rows in each bin."""
        placed = self._frame.select(_number(bins, nw.col(self._score)).alias(PLACE))
        found = collect(placed.group_by(PLACE).agg(nw.len().alias(ROWS)))
        return sum_by(found[PLACE].astype(np.int64), found[ROWS], bins.size)

    def sums(self, bins: ScoreBins) -> tuple[FloatArray, FloatArray]:
        """Return the rows in each bin and the sums of their scores."""
        place, rows, total = self._sums(_number(bins, nw.col(self._score)))
        code = place.astype(np.int64)
        # Sums are added in an order of their own, whatever the engine's.
        order = np.lexsort((total, rows, code))
        return sum_by(code, rows, bins.size), sum_by(code[order], total[order], bins.size)

    def _sums(self, place: nw.Expr) -> tuple[AnyArray, FloatArray, FloatArray]:
        """Return places, rows and sums of scores; keep the rows that are alike, if they can be."""
        multipliers = [COUNT] if COUNT in self._reader.multipliers else []
        by = [*self._reader.keys, self._outcome] if self.countable else []
        query = (
            self._frame.select(*by, *multipliers, self._score, place.alias(PLACE))
            .group_by(*by, PLACE)
            .agg(
                nw.len().cast(nw.Float64).alias(ROWS),
                nw.col(self._score).sum().alias(TOTAL),
                *[nw.col(name).cast(nw.Float64).sum().alias(name) for name in multipliers],
            )
        )
        if not self.countable:
            found = collect(query)
            return found[PLACE], found[ROWS], found[TOTAL]
        table = fetch(query).to_native().combine_chunks()
        reader = replace(
            self._reader,
            quantities=(self._outcome, PLACE, ROWS, TOTAL),
            multipliers=tuple(multipliers),
        )
        self._alike = reader.rows(table.to_batches()[0])
        _, places, rows, total = self._alike.values
        return places, rows, total

    def counted(self, support: ScoreSupport) -> dict[str, Any]:
        """Return what `ScoreCells.from_rows` takes, one row for all that are alike.

        Parameters
        ----------
        support : ScoreSupport
            What `score_support` made of these scores.

        Returns
        -------
        dict of arrays
        """
        if self._alike is None:
            raise TypeError("rows of this kind are not alike")
        outcome, place, rows, _ = self._alike.values
        if support.place is not None:
            place = support.values[support.place[place.astype(np.int64)]]
        return {
            "y_true": outcome,
            "y_score": place,
            "group": self._alike.cell,
            "count": rows if self._alike.count is None else self._alike.count,
        }


def _number(bins: ScoreBins, score: nw.Expr) -> nw.Expr:
    """Write `ScoreBins.number` as an expression, of the same operations on doubles."""
    place = (score - bins.origin) / bins.width
    first, last = bins.first, bins.last
    number = (
        nw.when(place < first)
        .then(nw.lit(first))
        .otherwise(nw.when(place > last).then(nw.lit(last)).otherwise(place))
        .floor()
    )
    if last < 0.0:
        number = nw.when(place >= 0.0).then(nw.lit(last + 1.0)).otherwise(number)
    if first >= 0.0:
        number = nw.when(place < 0.0).then(nw.lit(first - 1.0)).otherwise(number)
    return (number - (first - 1.0)).cast(nw.Int32)
