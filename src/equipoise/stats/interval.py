"""Confidence intervals by inverting a test, for many parameters at once.

The test is given by its signed root r(x), which decreases in the hypothesised value x: the
one-sided p-values are Φ(-r) and Φ(r), and the interval is the set where |r| is at most a critical
value.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.optimize import elementwise

from equipoise._typing import FloatArray, IntArray

__all__ = ["GREATER", "LESS", "SignedRoot", "invert"]

GREATER, LESS = 1, -1
"""Which one-sided test a root is for; they differ for discrete exact tests only."""

SignedRoot: TypeAlias = Callable[[FloatArray, IntArray, int], FloatArray]
"""``root(null, which, tail)``: roots at `null` for the parameters numbered `which`."""

_DOUBLINGS = 40
# Beyond any critical value; an infinite root (outside the convex hull) only says "further in".
_FAR = 1e3


def invert(
    root: SignedRoot,
    estimate: FloatArray,
    se: FloatArray,
    *,
    critical: float,
    low: FloatArray,
    high: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Find the values that a test does not reject.

    Parameters
    ----------
    root : callable
        ``root(null, which, tail)``, decreasing in `null`.
    estimate : array of shape (m,)
        Where the root is zero; NaN gives NaN.
    se : array of shape (m,)
        Scale of the search.
    critical : float
        Largest absolute root that is not rejected.
    low, high : array of shape (m,)
        Smallest and largest possible values. A finite limit that is not rejected is the end of
        the interval; an infinite one leaves it unbounded.

    Returns
    -------
    low, high : array of shape (m,)
        -inf or inf where no value on that side is rejected.

    Examples
    --------
    Which means are compatible with an average of 3 whose standard error is 0.5?

    >>> import numpy as np
    >>> root = lambda null, which, tail: (3.0 - null) / 0.5
    >>> ends = invert(root, np.array([3.0]), np.array([0.5]), critical=1.96,
    ...               low=np.array([-np.inf]), high=np.array([np.inf]))
    >>> [float(end.round(2)[0]) for end in ends]
    [2.02, 3.98]
    """
    return (
        _endpoint(root, estimate, se, critical, low, GREATER),
        _endpoint(root, estimate, se, critical, high, LESS),
    )


def _endpoint(
    root: SignedRoot,
    estimate: FloatArray,
    se: FloatArray,
    critical: float,
    limit: FloatArray,
    tail: int,
) -> FloatArray:
    reach = np.abs(estimate - limit)
    result = np.where(np.isfinite(estimate), limit, np.nan)
    which = np.flatnonzero(np.isfinite(estimate) & (reach > 0))

    def excess(distance: FloatArray, index: IntArray) -> FloatArray:
        r = root(estimate[index] - tail * distance, index, tail)
        return np.clip(tail * r, -_FAR, _FAR) - critical

    near = np.zeros(len(which))
    step = np.where(se > 0, critical * se, np.where(np.isfinite(reach), reach, 1.0))[which]
    far = np.minimum(step, reach[which])
    rejected = np.zeros(len(which), dtype=np.bool_)
    pending = np.arange(len(which))
    for _ in range(_DOUBLINGS):
        rejected[pending] = excess(far[pending], which[pending]) > 0
        pending = pending[~rejected[pending] & (far[pending] < reach[which[pending]])]
        if not len(pending):
            break
        near[pending] = far[pending]
        far[pending] = np.minimum(2.0 * far[pending], reach[which[pending]])
    bracketed = np.flatnonzero(rejected)
    if len(bracketed):
        found = elementwise.find_root(
            excess,
            (near[bracketed], far[bracketed]),
            args=(which[bracketed],),
            tolerances={"xatol": 0.0, "xrtol": 1e-12, "fatol": 1e-10, "frtol": 0.0},
        )
        result[which[bracketed]] = estimate[which[bracketed]] - tail * found.x
    return result
