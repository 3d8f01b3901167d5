r"""Several objectives at once: :math:`E(Y^k | S_1, \ldots, S_K)` by a product kernel."""

from dataclasses import dataclass

import numpy as np

from equipoise._typing import FloatArray

__all__ = ["ProductKernelFit", "fit_product_kernel"]

BLOCK = 4_000_000
"""Kernel values in memory at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductKernelFit:
    """Nadaraya-Watson regression with a Gaussian product kernel.

    Parameters
    ----------
    score : array of shape (n, k)
        Scores in units of their bandwidths.
    outcome : array of shape (n, q)
        Outcomes.
    weight : array of shape (n,)
        Sampling weights.
    bandwidth : array of shape (k,)
        Of each score.
    """

    score: FloatArray
    outcome: FloatArray
    weight: FloatArray
    bandwidth: FloatArray

    def __call__(self, score: FloatArray) -> FloatArray:
        """Return the mean outcomes at each row of scores; shape (m, q)."""
        scaled = score / self.bandwidth
        step = max(BLOCK // len(self.score), 1)
        parts = [self._at(scaled[first : first + step]) for first in range(0, len(scaled), step)]
        return np.concatenate(parts) if parts else np.empty((0, self.outcome.shape[1]))

    def _at(self, scaled: FloatArray) -> FloatArray:
        distance = np.zeros((len(scaled), len(self.score)))
        for column, own in zip(scaled.T, self.score.T, strict=True):
            distance += (column[:, None] - own[None, :]) ** 2
        # Far from every row all kernels underflow; relative to the nearest row they do not.
        distance -= distance.min(axis=1, keepdims=True)
        kernel = np.exp(-0.5 * distance) * self.weight
        return np.asarray(kernel @ self.outcome / kernel.sum(axis=1, keepdims=True))


def fit_product_kernel(
    outcome: FloatArray, score: FloatArray, *, weight: FloatArray | None = None
) -> ProductKernelFit:
    r"""Fit mean outcomes given several scores.

    Parameters
    ----------
    outcome : array of shape (n, q)
        Outcomes.
    score : array of shape (n, k)
        Scores.
    weight : array of shape (n,), optional
        Sampling weights.

    Returns
    -------
    ProductKernelFit

    Notes
    -----
    The bandwidth of score k is :math:`1.06\,\mathrm{sd}_k n^{-1/(4+K)}`.

    Examples
    --------
    Outcomes depend on the sum of two scores. What is expected at (0.5, 0.5)?

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=(4000, 2))
    >>> outcome = score.sum(axis=1, keepdims=True)
    >>> fit_product_kernel(outcome, score)(np.array([[0.5, 0.5]])).round(2)
    array([[1.]])

    One.
    """
    n, k = score.shape
    w = np.ones(n) if weight is None else weight
    centre = np.average(score, axis=0, weights=w)
    spread = np.sqrt(np.average((score - centre) ** 2, axis=0, weights=w))
    bandwidth = np.where(spread > 0.0, 1.06 * spread * n ** (-1.0 / (4.0 + k)), 1.0)
    return ProductKernelFit(score=score / bandwidth, outcome=outcome, weight=w, bandwidth=bandwidth)
