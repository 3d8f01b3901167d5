r"""Generalized entropy index of benefits: the number itself, for any order.

With relative benefits :math:`x_i = b_i/\mu` the index of order a is the mean of the centred kernel

.. math:: \tilde f_a(x) = \frac{x^a - 1 - a(x-1)}{a(a-1)},\qquad
          \tilde f_0(x) = x - 1 - \ln x,\qquad \tilde f_1(x) = x\ln x - x + 1 .

The papers write :math:`f_a(x) = \tilde f_a(x) + f_a'(1)(x-1)`, Eq. (1) of [1]_; both have the same
mean, since relative benefits have mean one. The centred kernel is at least zero for every person
and continuous in the order at 0 and 1, which :math:`f_a` is not.

References
----------
.. [1] "Utility as fair pricing" (2022), anonymous, submitted to ICLR 2023; openreview.net,
   6jA1R0Z1G2.
"""

import numpy as np

from equipoise._checks import check_finite, check_number
from equipoise._typing import FloatArray
from equipoise.exceptions import InvalidParameterError

__all__ = [
    "check_benefits",
    "check_order",
    "entropy_gradient",
    "entropy_index",
    "kernel",
    "kernel_slope",
    "mean_benefit",
]

SERIES = 0.02
"""Below this |x - 1| (1 + |a|) the kernel is a power series: the closed form would cancel."""


def check_order(order: object) -> float:
    """Return the order of an index as a float; raise unless it is a finite number."""
    return check_number("order", order, low=-100.0, high=100.0)


def check_benefits(benefits: object, order: float) -> FloatArray:
    """Return benefits as an array; raise on negative ones, and on zeros when `order` <= 0."""
    b = check_finite("benefits", benefits)
    if b.size == 0:
        raise InvalidParameterError("`benefits` must hold at least one value; got none.")
    if b.min() < 0.0:
        raise InvalidParameterError(
            f"benefits must be at least zero; the smallest is {b.min():g}, and"
            f" {np.count_nonzero(b < 0)} of {b.size} are negative. Shift or clip them so that zero"
            " means no benefit."
        )
    if order <= 0.0 and b.min() == 0.0:
        raise InvalidParameterError(
            f"an index of order {order:g} is infinite when a benefit is zero;"
            f" {np.count_nonzero(b == 0)} of {b.size} are zero. Pass `order` > 0 or a positive"
            " smallest benefit."
        )
    return b


def mean_benefit(benefits: FloatArray, weight: FloatArray) -> float:
    """Return the weighted mean; raise when it is zero, because shares of nothing are undefined."""
    whole = float(weight.sum())
    if weight.min(initial=0.0) < 0.0 or not whole > 0.0:
        raise InvalidParameterError(
            f"`weight` must be at least zero with a positive sum; the sum is {whole:g}."
        )
    mean = float(np.dot(weight.ravel(), benefits.ravel())) / whole
    if not mean > 0.0:
        raise InvalidParameterError(
            "the mean benefit must be positive; every benefit is zero, so relative benefits are"
            " undefined. Check the benefit matrix."
        )
    return mean


def kernel(x: object, order: float) -> FloatArray:
    r"""Return the centred kernel :math:`\tilde f_a(x)`.

    Parameters
    ----------
    x : array
        Relative benefits, at least zero; where `order` <= 0 they must be positive.
    order : float
        a.

    Returns
    -------
    array
        At least zero, zero exactly at x = 1; :math:`1/a` at x = 0.

    Examples
    --------
    What does a person with twice the mean add to an index of order 2, and one with nothing?

    >>> kernel([2.0, 0.0, 1.0], 2.0).tolist()
    [0.5, 0.5, 0.0]

    The same: order 2 is half the squared coefficient of variation.
    """
    relative = np.asarray(x, dtype=np.float64)
    positive = relative > 0.0
    log = np.log(np.where(positive, relative, 1.0))
    if abs(order) < 0.5:
        # (x^a - 1)/a through expm1 keeps every digit as the order goes to zero.
        power = np.expm1(order * log) / order if order else log
        closed = (power - (relative - 1.0)) / (order - 1.0)
    else:
        shifted = order - 1.0
        power = np.expm1(shifted * log) / shifted if shifted else log
        closed = (relative * power - (relative - 1.0)) / order
    at_zero = 1.0 / order if order > 0.0 else np.inf
    values = np.where(positive, closed, at_zero)
    near = np.abs(relative - 1.0) * (1.0 + abs(order)) < SERIES
    return np.asarray(np.where(near, _kernel_series(relative, order), values))


def kernel_slope(x: object, order: float) -> FloatArray:
    r"""Return :math:`\tilde f_a'(x) = (x^{a-1} - 1)/(a - 1)`, or :math:`\ln x` for order 1.

    At x = 0 the value 0 is returned: a group without any benefit has no spread to multiply.

    Examples
    --------
    >>> kernel_slope([1.0, 3.0], 2.0).round(9).tolist()
    [0.0, 2.0]
    """
    relative = np.asarray(x, dtype=np.float64)
    log = np.log(np.where(relative > 0.0, relative, 1.0))
    shifted = order - 1.0
    return np.asarray(np.expm1(shifted * log) / shifted if shifted else log)


def entropy_index(benefits: object, *, order: float = 1.0, weight: object = None) -> float:
    r"""Return the generalized entropy index of a list of benefits.

    Parameters
    ----------
    benefits : array of shape (n,)
        At least zero, on a scale where zero means no benefit.
    order : float, default 1
        a, the papers' alpha. Orders above 1 look at the well-off, orders below 1 at the badly-off;
        0 and 1 are the two Theil indices, 2 is half the squared coefficient of variation.
    weight : array of shape (n,), optional
        Weight of each benefit.

    Returns
    -------
    float
        Zero exactly when all benefits are equal.

    Raises
    ------
    InvalidParameterError
        On negative benefits, on zero benefits with `order` <= 0, and when the mean is zero.

    Notes
    -----
    Eq. (1) of [1]_ with the centred kernel. AIF360 divides by the mean once more at order 0, so its
    number changes with the unit of the benefits; this one does not.

    References
    ----------
    .. [1] "Utility as fair pricing" (2022), anonymous, submitted to ICLR 2023; openreview.net,
       6jA1R0Z1G2.

    Examples
    --------
    How unequal are the benefits 1, 2 and 3?

    >>> round(entropy_index([1, 2, 3], order=2), 4)
    0.0833

    Half the squared coefficient of variation, (2/3) / 4 / 2.
    """
    a = check_order(order)
    b = check_benefits(benefits, a)
    w = np.ones(b.shape) if weight is None else check_finite("weight", weight)
    return float(np.average(kernel(b / mean_benefit(b, w), a), weights=w))


def entropy_gradient(benefits: object, *, order: float = 1.0) -> FloatArray:
    r"""Return the derivative of the index in each benefit, for optimisers.

    Parameters
    ----------
    benefits : array of shape (n,)
        Positive benefits; zeros are allowed when `order` > 1.
    order : float, default 1
        a.

    Returns
    -------
    array of shape (n,)
        :math:`(\tilde f_a'(x_k) - a I)/(n\mu)`.

    Examples
    --------
    Whose gain lowers inequality?

    >>> entropy_gradient([1.0, 3.0], order=2.0).round(4).tolist()
    [-0.1875, 0.0625]

    That of the person who has less.
    """
    a = check_order(order)
    b = check_benefits(benefits, a)
    if a <= 1.0 and b.min() == 0.0:
        raise InvalidParameterError(
            f"the derivative of an index of order {a:g} is infinite where a benefit is zero."
            " Pass `order` > 1 or positive benefits."
        )
    mean = mean_benefit(b, np.ones(b.shape))
    x = b / mean
    slope = kernel_slope(x, a) if a <= 1.0 else (x ** (a - 1.0) - 1.0) / (a - 1.0)
    return np.asarray((slope - a * kernel(x, a).mean()) / (b.size * mean))


def _kernel_series(x: FloatArray, order: float) -> FloatArray:
    """Sum (a-2)(a-3)...(a-k+1)/k! h^k from k = 2: one expression for every order."""
    h = np.clip(x - 1.0, -SERIES, SERIES)
    term = 0.5 * h * h
    total = term
    for k in range(3, 13):
        term = term * h * (order - k + 1.0) / k
        total = total + term
    return total
