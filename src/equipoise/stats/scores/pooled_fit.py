"""Local-linear regression of the pooled groups, interpolated between nodes."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from equipoise._typing import FloatArray
from equipoise.stats.scores.cells import weighted_quantile
from equipoise.stats.scores.kernel import smoother

__all__ = ["PooledFit"]

N_NODES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledFit:
    """Local-linear fit at nodes, interpolated to the support: linear in the weighted outcomes."""

    level: FloatArray
    interpolation: sparse.csr_array
    value: FloatArray

    @classmethod
    def of(
        cls, support: FloatArray, mass: FloatArray, total: FloatArray, bandwidth: float
    ) -> "PooledFit":
        """Fit weighted outcomes on the support; bandwidth 0 takes the mean at each score."""
        nodes = support
        if bandwidth > 0.0:
            levels = np.linspace(0.0, 1.0, N_NODES)
            nodes = np.unique(weighted_quantile(support, mass, levels))
        level = smoother(nodes, support, mass, bandwidth).level
        right = np.minimum(np.maximum(np.searchsorted(nodes, support), 1), len(nodes) - 1)
        left = np.maximum(right - 1, 0)
        gap = np.where(right > left, nodes[right] - nodes[left], 1.0)
        part = np.clip((support - nodes[left]) / gap, 0.0, 1.0)
        rows = np.arange(len(support))
        interpolation = sparse.coo_array(
            (
                np.concatenate([1.0 - part, part]),
                (np.concatenate([rows, rows]), np.concatenate([left, right])),
            ),
            shape=(len(support), len(nodes)),
        ).tocsr()
        return cls(level=level, interpolation=interpolation, value=interpolation @ (level @ total))

    def fitted(self, total: FloatArray) -> FloatArray:
        """Smooth other weighted outcomes in the same way."""
        return np.asarray(self.interpolation @ (self.level @ total))
