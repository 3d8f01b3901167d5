"""The law of a difference or ratio of rates of independent rows: exact where rows are few.

A group and its target are two samples that share no rows, whatever the target: against everyone, or
a reference that contains the group, the group meets the others; a group that contains its
reference is the reference and what it has beside. Each such pair has the law of
`equipoise.stats.pairs`. Only where group and reference overlap in part there are three samples.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.stats.binomial import constrained_rates
from equipoise.stats.disparity.references import Comparison
from equipoise.stats.inversion import invert
from equipoise.stats.pairs import (
    EXACT_ROWS,
    Pairs,
    against_population,
    against_rest,
    external_root,
    known_interval,
    known_root,
)
from equipoise.stats.saddlepoint import Side, tail_root

__all__ = ["Counts", "RateLaw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Ones and rows in the group only, in group and target, and in the target only.

    Parameters
    ----------
    ones, n : array of shape (m, 3)
        Of a 0/1 metric without weights or clusters.
    """

    ones: FloatArray
    n: FloatArray

    @classmethod
    def of(cls, comparison: Comparison) -> "Counts":
        """Split the sums of a 0/1 metric into the three regions."""
        both = comparison.overlap
        regions = [comparison.group - both, both, comparison.target - both]
        sums = np.stack(regions, axis=1).round()
        return cls(ones=sums[:, :, 0], n=sums[:, :, 1])


_OVERLAP = -1
# What the two samples are: regions of `Counts`.
_SAMPLES = {0: (0, 2), 1: (1, 2), 2: (0, 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLaw:
    """Tests and intervals for rates of m groups.

    Parameters
    ----------
    comparison : Comparison
        Counts of groups and targets.
    tested : array of shape (m,)
        Groups with rows, and with a target that has some.
    """

    comparison: Comparison
    tested: AnyArray
    _kind: IntArray  # 0: disjoint, 1: group inside the target, 2: target inside the group
    _share: FloatArray
    _place: IntArray  # of a group among the pairs
    _pairs: Pairs | None
    _counts: Counts

    @classmethod
    def of(cls, comparison: Comparison, tested: AnyArray) -> "RateLaw":
        """Prepare the tables of all groups; equal ones are computed once."""
        c, counts = comparison, Counts.of(comparison)
        empty = counts.n == 0
        kind = np.select([empty[:, 1], empty[:, 0], empty[:, 2]], [0, 1, 2], _OVERLAP).astype(
            np.int64
        )
        place = np.full(len(kind), -1)
        share = np.zeros(len(kind))
        pairs = None
        if c.target.any():
            paired = np.flatnonzero(tested & (kind != _OVERLAP))
            place[paired] = np.arange(len(paired))
            first, last = np.array([_SAMPLES[k] for k in (0, 1, 2)])[kind[paired]].T
            x, n = counts.ones[paired], counts.n[paired]
            row = np.arange(len(paired))
            share[paired] = n[row, first] / np.maximum(n[row, first] + n[row, last], 1.0)
            pairs = Pairs.of(
                x[row, first], n[row, first], x[row, last], n[row, last], scale=c.scale
            )
        return cls(
            comparison=c,
            tested=tested,
            _kind=kind,
            _share=share,
            _place=place,
            _pairs=pairs,
            _counts=counts,
        )

    @property
    def method(self) -> AnyArray:
        """Name of the law of each group."""
        c = self.comparison
        m = len(c.n)
        if not c.target.any():
            return np.full(m, "saddlepoint" if c.target_variance > 0 else "exact_binomial")
        n = self._counts.n
        smaller = np.where(n > 0, n, np.inf).min(axis=1)
        exact = (smaller <= EXACT_ROWS) & (self._kind != _OVERLAP)
        return np.where(exact, "exact_unconditional", "saddlepoint")

    def signed_root(self, null: FloatArray, which: IntArray, tail: int) -> FloatArray:
        """Normal quantiles of the one-sided p-values; see `equipoise.stats.inversion`."""
        c = self.comparison
        if not c.target.any():
            x, n = c.group[which].T
            if c.target_variance > 0:
                se = np.full(len(which), np.sqrt(c.target_variance))
                return external_root(x, n, c.target_value[which], se, null, tail, scale=c.scale)
            return known_root(x, n, c.hypothesised(null, which)[0], tail)
        value = np.empty(len(which))
        paired = self._kind[which] != _OVERLAP
        own = which[paired]
        if self._pairs is not None and len(own):
            value[paired] = self._pairs.root(
                self._to_pair(null[paired], own), self._place[own], tail
            )
        if not paired.all():
            value[~paired] = self._overlap_root(null[~paired], which[~paired], tail)
        return value

    def interval(self, critical: float) -> tuple[FloatArray, FloatArray]:
        """Disparities whose root is at most `critical` in size; NaN where nothing is tested."""
        c = self.comparison
        m = len(c.n)
        low, high = np.full(m, np.nan), np.full(m, np.nan)
        which = np.flatnonzero(self.tested)
        if not c.target.any() and c.target_variance == 0:
            x, n = c.group[which].T
            ends = known_interval(x, n, float(2.0 * special.ndtr(critical) - 1.0))
            theta = c.target_value[which]
            with np.errstate(divide="ignore", invalid="ignore"):
                low[which], high[which] = (
                    end / theta if c.scale == "ratio" else end - theta for end in ends
                )
            return low, high
        if self._pairs is not None:
            paired = which[self._kind[which] != _OVERLAP]
            ends = self._pairs.ends(critical)
            low[paired], high[paired] = (self._from_pair(end, paired) for end in ends)
            which = which[self._kind[which] == _OVERLAP]
        if len(which):
            ratio = c.scale == "ratio"
            least = np.zeros(m) if ratio else np.full(m, -1.0)
            most = np.full(m, np.inf) if ratio else np.ones(m)
            chosen = np.zeros(m, dtype=np.bool_)
            chosen[which] = True
            p = (c.group[:, 0] + 1.0) / (c.group[:, 1] + 2.0)
            se = np.maximum(c.se, np.sqrt(p * (1.0 - p) / np.maximum(c.group[:, 1], 1.0)))
            estimate = np.where(chosen, c.estimate, np.nan)
            ends = invert(self.signed_root, estimate, se, critical=critical, low=least, high=most)
            low[which], high[which] = (end[which] for end in ends)
        return low, high

    def _to_pair(self, null: FloatArray, which: IntArray) -> FloatArray:
        """Disparity of the two samples that says the same as `null` of group and target."""
        kind, share, scale = self._kind[which], self._share[which], self.comparison.scale
        more = null / share if scale == "difference" else (null - 1.0 + share) / share
        rest = against_rest(null, np.where(kind == 1, share, 0.0), scale)
        return np.where(kind == 2, more, np.where(kind == 1, rest, null))

    def _from_pair(self, value: FloatArray, which: IntArray) -> FloatArray:
        kind, share, scale = self._kind[which], self._share[which], self.comparison.scale
        more = value * share if scale == "difference" else 1.0 - share + share * value
        rest = against_population(value, np.where(kind == 1, share, 0.5), scale)
        return np.where(kind == 2, more, np.where(kind == 1, rest, value))

    def _overlap_root(self, null: FloatArray, which: IntArray, tail: int) -> FloatArray:
        """Saddlepoint tail of a contrast of three samples, as `equipoise.stats.pairs` has it."""
        c, x, n = self.comparison, self._counts.ones[which], self._counts.n[which]
        group = np.array([1.0, 1.0, 0.0]) / c.group[which, 1][:, None]
        target = np.array([0.0, 1.0, 1.0]) / c.target[which, 1][:, None]
        ratio = c.scale == "ratio"
        weight = group - (null[:, None] if ratio else 1.0) * target
        value = np.zeros_like(null) if ratio else null
        # One row of each kind is added before the rates are fitted, as for two samples.
        rates = constrained_rates(x + 1.0, n + 2.0, weight * n, value)
        gap = (weight * x).sum(axis=1) - value
        excess = tail * gap - 0.5 * np.abs(weight).max(axis=1)
        sides = tuple(Side(tail * weight[:, k], n[:, k], rates[:, k]) for k in range(3))
        return np.asarray(tail * tail_root(excess, sides, np.zeros_like(null)))
