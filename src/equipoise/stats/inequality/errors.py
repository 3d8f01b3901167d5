r"""What one more error does to the index, and where it lowers it.

Theorems C.3 and C.4 of "Utility as fair pricing", corrected. Three benefit levels as in
`equipoise.stats.inequality.geometry`: `low`, `high` and 1.
"""

import numpy as np

from equipoise._checks import check_number, check_option
from equipoise._typing import ErrorKind, FloatArray
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.inequality.geometry import secant
from equipoise.stats.inequality.index import check_order, kernel, kernel_slope

__all__ = ["cost_free_mean", "deviation_slope", "error_cost"]


def error_cost(
    mean: object,
    unit_rate: object,
    *,
    low: float,
    high: float,
    error: ErrorKind,
    order: float = 1.0,
) -> FloatArray:
    r"""Return n times the change of the index when one more person falls from 1 to an error.

    Parameters
    ----------
    mean, unit_rate : float or array
        Where the model is.
    low, high : float
        Benefits of the two errors.
    error : {"low", "high"}
        Which error is added.
    order : float, default 1
        a.

    Returns
    -------
    array
        Negative in the *deviation region*, where an extra error lowers the index.

    Notes
    -----
    Theorem C.4: :math:`(b-1)(C_\mu\mu + C_\lambda\lambda - C_0)/\mu^{a+1}`, with coefficients in
    the centred kernel, where no order is special. *Deviations from the paper*: Eq. (41) has the
    wrong sign before its indicator of order 1, and Eq. (42) lacks the division by
    :math:`\mu^{a+1}`.

    Examples
    --------
    With benefits 0 for a false negative and 2 for a false positive, does an extra false negative
    raise the index?

    >>> float(error_cost(1.0, 0.8, low=0.0, high=2.0, error="low", order=2.0)) > 0
    True
    """
    a = check_order(order)
    added = _added(low, high, error)
    by_mean, by_rate, constant = _cost_coefficients(low, high, added, a)
    mu, lam = np.asarray(mean, dtype=np.float64), np.asarray(unit_rate, dtype=np.float64)
    return np.asarray((added - 1.0) * (by_mean * mu + by_rate * lam - constant) / mu ** (a + 1.0))


def cost_free_mean(
    unit_rate: float, *, low: float, high: float, error: ErrorKind, order: float = 1.0
) -> float | None:
    r"""Return the mean benefit at which one more error leaves the index as it is, Eq. (43).

    None when the cost of the error does not depend on the mean.

    Examples
    --------
    >>> edge = cost_free_mean(0.8, low=0.5, high=1.5, error="high", order=2.0)
    >>> round(float(error_cost(edge, 0.8, low=0.5, high=1.5, error="high", order=2.0)), 12)
    0.0
    """
    a = check_order(order)
    by_mean, by_rate, constant = _cost_coefficients(low, high, _added(low, high, error), a)
    if by_mean == 0.0:
        return None
    return float((constant - by_rate * unit_rate) / by_mean)


def deviation_slope(high: float, *, error: ErrorKind, order: float = 1.0) -> float:
    r"""Return h such that with ``low = 0`` an extra error changes sign at mean = h * unit rate.

    Parameters
    ----------
    high : float
        :math:`b_+ > 1`.
    error : {"low", "high"}
        A false positive ("high") lowers the index where :math:`\mu > h\lambda`; a false negative
        ("low") would where :math:`\mu < h\lambda`.
    order : float, default 1
        a > 0.

    Returns
    -------
    float

    Notes
    -----
    Theorem C.3. *Deviation from the paper*: a false negative moves the mean by -1, not by
    :math:`-(b_+ - 1)`; the right :math:`h_- = a(b_+^{a-1}-1)/(ab_+^{a-1}-1)` is below one, and
    since :math:`\mu \ge \lambda` an extra false negative never lowers the index.

    Examples
    --------
    >>> round(deviation_slope(5.0, error="low", order=1.0), 3)
    0.617
    """
    check_option("error", error, ErrorKind)
    a = check_order(order)
    b = check_number("high", high)
    if b <= 1.0 or a <= 0.0:
        raise InvalidParameterError(
            f"the deviation region needs `high` > 1 and `order` > 0; got {b:g} and {a:g}."
        )
    # power = (b^(a-1) - 1)/(a - 1), which is ln b at order 1.
    power = float(kernel_slope(b, a))
    if error == "low":
        return a * power / (1.0 + a * power)
    gain = b - 1.0
    return a * gain * power / (gain * ((a - 1.0) * power + 1.0) - power)


def _added(low: float, high: float, error: ErrorKind) -> float:
    check_option("error", error, ErrorKind)
    return low if error == "low" else high


def _cost_coefficients(
    low: float, high: float, added: float, order: float
) -> tuple[float, float, float]:
    """Return C_mu, C_lambda and C_0 of Theorem C.4."""
    intercept, slope = secant(low, high, order)
    gap = added - 1.0
    ratio = 0.0 if gap == 0.0 else float(kernel(added, order)) / gap
    return ratio - 1.0 - order * slope, order * (intercept + slope), order * intercept - 1.0
