"""How surely each cut-off of a score improves on the status quo, for all cut-offs at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise._typing import FloatArray, IntArray
from equipoise.search.sample import TrainingSample, Utility
from equipoise.stats.improvement.test import Direction, gap_direction
from equipoise.stats.improvement.utilities import UtilityLayout

__all__ = ["ThresholdSweep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdSweep:
    """Sums that give the utilities of every rule "select the k highest scores".

    A row adds one of two vectors to the sums, depending on its decision; so the sums of all
    cut-offs are cumulative sums of the differences in the order of the score.

    Parameters
    ----------
    group : array of shape (n,)
        Group of each row.
    layout : UtilityLayout
        Where the sums stand.
    nobody : array of shape (G, q)
        Sums when nobody is selected: quantities, then products of pairs.
    change : array of shape (n, q)
        What selecting a row adds.
    contrasts : array of shape (m, R)
        Requirements; all must be positive.
    """

    group: IntArray
    layout: UtilityLayout
    nobody: FloatArray
    change: FloatArray
    contrasts: FloatArray

    @classmethod
    def of(cls, sample: TrainingSample) -> "ThresholdSweep":
        """Prepare the sums of a training sample."""
        utilities, fairness = sample.criteria
        layout = UtilityLayout(criteria=len(utilities), groups=sample.n_groups, population=False)
        none, everyone = np.zeros(len(sample.y)), np.ones(len(sample.y))
        before = _columns(utilities, sample, none)
        after = _columns(utilities, sample, everyone)
        nobody = np.stack([before[sample.group == g].sum(axis=0) for g in range(sample.n_groups)])
        contrasts = _requirements(sample, layout, fairness)
        return cls(
            group=sample.group,
            layout=layout,
            nobody=nobody,
            change=after - before,
            contrasts=contrasts,
        )

    def worst_z(self, score: FloatArray, selected: IntArray) -> FloatArray:
        """Return the smallest z over the requirements when the k highest scores are selected.

        Parameters
        ----------
        score : array of shape (n,)
            Higher is selected first.
        selected : array of shape (T,)
            Increasing numbers k of selected rows.

        Returns
        -------
        array of shape (T,)
            Minus infinity where a utility is undefined.
        """
        order = np.argsort(-score, kind="stable")
        step = np.searchsorted(selected, np.arange(len(score)), side="right")
        slot = np.empty(len(score), dtype=np.int64)
        slot[order] = step
        used = slot < len(selected)
        place = slot[used] * self.layout.groups + self.group[used]
        size = len(selected) * self.layout.groups
        change = self.change[used]
        sums = np.stack(
            [np.bincount(place, weights=column, minlength=size) for column in change.T], axis=-1
        ).reshape(len(selected), self.layout.groups, -1)
        return self._z(self.nobody + np.cumsum(sums, axis=0))

    def _z(self, sums: FloatArray) -> FloatArray:
        quantities = 2 * self.layout.ratios_per_group
        first, second = np.triu_indices(quantities)
        size = quantities * self.layout.groups
        product = np.zeros((len(sums), size, size))
        for g in range(self.layout.groups):
            pairs = sums[:, g, quantities:]
            product[:, g * quantities + first, g * quantities + second] = pairs
            product[:, g * quantities + second, g * quantities + first] = pairs
        value, covariance, defined = self.layout.ratios(
            sums[:, :, :quantities].reshape(len(sums), -1), product
        )
        estimate = value @ self.contrasts.T
        variance = np.einsum("mr,trs,ms->tm", self.contrasts, covariance, self.contrasts)
        spread = np.sqrt(np.maximum(variance, np.finfo(float).tiny))
        worst: FloatArray = (estimate / spread).min(axis=1)
        return np.where(defined.all(axis=1), worst, -np.inf)


def _columns(
    utilities: Sequence[Utility], sample: TrainingSample, decisions: FloatArray
) -> FloatArray:
    """Quantities of status quo and candidate, then the products of all pairs."""
    rows = [(utility(sample.status_quo), utility(decisions)) for utility in utilities]
    top = [u for pair in rows for u, _ in pair]
    bottom = [w for pair in rows for _, w in pair]
    q = np.stack([*top, *bottom], axis=1)
    if sample.weight is not None:
        q = q * sample.weight[:, None]
    first, second = np.triu_indices(q.shape[1])
    return np.concatenate([q, q[:, first] * q[:, second]], axis=1)


def status_quo_directions(sample: TrainingSample) -> list[Direction]:
    """Return the direction of every fairness gap of the status quo."""
    weight = 1.0 if sample.weight is None else sample.weight
    directions = []
    for utility in sample.fairness:
        u, w = utility(sample.status_quo)
        directions.append(
            gap_direction(u * weight, w * weight, sample.group, n_groups=sample.n_groups)
        )
    return directions


def _requirements(
    sample: TrainingSample, layout: UtilityLayout, fairness: Sequence[int]
) -> FloatArray:
    size = layout.ratios_per_group * layout.groups

    def position(criterion: int, algorithm: int, group: int) -> int:
        return (2 * criterion + algorithm) * layout.groups + group

    rows = []
    for g in range(layout.groups):
        row = np.zeros(size)
        row[position(0, 1, g)], row[position(0, 0, g)] = 1.0, -1.0
        rows.append(row)
    for c, (high, low) in zip(fairness, status_quo_directions(sample), strict=True):
        for g in range(layout.groups):
            for h in range(layout.groups):
                if g != h:
                    row = np.zeros(size)
                    row[position(c, 0, high)], row[position(c, 0, low)] = 1.0, -1.0
                    row[position(c, 1, g)], row[position(c, 1, h)] = -1.0, 1.0
                    rows.append(row)
    return np.array(rows)
