"""Confidence intervals by inverting a test, for many parameters at once.

The test is given by its signed root r(x), which decreases in the hypothesised value x: the
one-sided p-values are Φ(-r) and Φ(r), and the interval is the set where |r| is at most a critical
value.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from equipoise._typing import FloatArray, IntArray

__all__ = ["GREATER", "LESS", "Bracket", "SignedRoot", "crossing", "endpoint", "invert"]

GREATER, LESS = 1, -1
"""Which one-sided test a root is for; they differ for discrete exact tests only."""

SignedRoot: TypeAlias = Callable[[FloatArray, IntArray, int], FloatArray]
"""``root(null, which, tail)``: roots at `null` for the parameters numbered `which`."""

_DOUBLINGS = 40
_STEPS = 100
_RELATIVE, _ABSOLUTE = 1e-12, 1e-10
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
        endpoint(root, estimate, se, critical, low, GREATER),
        endpoint(root, estimate, se, critical, high, LESS),
    )


def endpoint(
    root: SignedRoot,
    estimate: FloatArray,
    se: FloatArray,
    critical: float,
    limit: FloatArray,
    tail: int,
) -> FloatArray:
    """Find one end of what a test does not reject.

    Parameters
    ----------
    root, estimate, se, critical
        As of `invert`.
    limit : array of shape (m,)
        Smallest possible values for the tail "greater", largest ones for "less".
    tail : {1, -1}
        "greater" for the lower end, "less" for the upper one.

    Returns
    -------
    array of shape (m,)
    """
    reach = np.abs(estimate - limit)
    result = np.where(np.isfinite(estimate), limit, np.nan)
    which = np.flatnonzero(np.isfinite(estimate) & (reach > 0))

    def excess(distance: FloatArray, index: IntArray) -> FloatArray:
        r = root(estimate[index] - tail * distance, index, tail)
        return np.clip(tail * r, -_FAR, _FAR) - critical

    step = np.where(se > 0, critical * se, np.where(np.isfinite(reach), reach, 1.0))[which]
    # At the estimate itself the root is zero.
    near, below = np.zeros(len(which)), np.full(len(which), -critical)
    far, above = np.minimum(step, reach[which]), np.zeros(len(which))
    pending = np.arange(len(which))
    for _ in range(_DOUBLINGS):
        above[pending] = excess(far[pending], which[pending])
        pending = pending[(above[pending] <= 0) & (far[pending] < reach[which[pending]])]
        if not len(pending):
            break
        near[pending], below[pending] = far[pending], above[pending]
        far[pending] = np.minimum(2.0 * far[pending], reach[which[pending]])
    bracketed = np.flatnonzero(above > 0)
    distance = crossing(
        lambda x, k: excess(x, which[bracketed[k]]),
        Bracket(near[bracketed], below[bracketed], far[bracketed], above[bracketed]),
    )
    result[which[bracketed]] = estimate[which[bracketed]] - tail * distance
    return result


class Bracket(NamedTuple):
    """Points with a value of at most zero, and points with one above."""

    near: FloatArray
    below: FloatArray
    far: FloatArray
    above: FloatArray


def crossing(
    function: Callable[[FloatArray, IntArray], FloatArray],
    bracket: Bracket,
    *,
    tolerance: float = _ABSOLUTE,
) -> FloatArray:
    """Find where increasing functions cross zero, by the method of Chandrupatla (1997).

    scipy has it too, in a subpackage that takes longer to import than most audits to run, and
    without a place for the values at the ends, which are known here. Roots of tests are nearly
    straight lines, so that the first step interpolates instead of halving.

    Parameters
    ----------
    function : callable
        ``function(x, which)``: values at x of the functions numbered `which`.
    bracket : Bracket
        Where each of them is at most zero, and above.
    tolerance : float
        Values of at most this size count as zero.

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> ends = (np.array([value]) for value in (1.0, -1.0, 2.0, 2.0))
    >>> crossing(lambda x, which: x**2 - 2.0, Bracket(*ends)).round(6).tolist()
    [1.414214]
    """
    b, fb, a, fa = (np.array(part) for part in bracket)
    found = np.where(fb == 0.0, b, a)
    active = np.flatnonzero(fb < 0.0)
    a, fa, b, fb = a[active], fa[active], b[active], fb[active]
    t = np.clip(fa / (fa - fb), 0.05, 0.95)
    for _ in range(_STEPS):
        if not len(active):
            break
        x = a + t * (b - a)
        fx = function(x, active)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        best = np.where(np.abs(fa) < np.abs(fb), a, b)
        room = _RELATIVE * np.abs(best) / np.abs(b - a)
        found[active] = best
        going = (room < 0.5) & (np.minimum(np.abs(fa), np.abs(fb)) > tolerance)
        with np.errstate(divide="ignore", invalid="ignore"):
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            quadratic = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
            inverse = fa / (fb - fa) * fc / (fb - fc)
            inverse += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        t = np.where(quadratic, inverse, 0.5)
        t = np.clip(t, room, 1.0 - room)[going]
        active, a, fa, b, fb = active[going], a[going], fa[going], b[going], fb[going]
    return found
