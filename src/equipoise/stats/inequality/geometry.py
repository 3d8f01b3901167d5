r"""How the index moves with error rates, mean benefit, unit reward rate, and one more error.

Three benefit levels: `low` (:math:`b_-`), `high` (:math:`b_+`) and 1. The share of people with
benefit 1 is the unit reward rate :math:`\lambda`, the mean benefit is :math:`\mu`. Numbers of
theorems and equations are those of [1]_, corrected where the text is wrong;
``docs/methods/generalized_entropy.md`` lists every correction.

References
----------
.. [1] "Utility as fair pricing" (2022), anonymous, submitted to ICLR 2023; openreview.net,
   6jA1R0Z1G2.
"""

import numpy as np

from equipoise._checks import check_fraction, check_number, check_option
from equipoise._typing import BenefitKind, ErrorKind, FloatArray
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.inequality.index import check_order, kernel, kernel_slope

__all__ = [
    "cost_free_mean",
    "deviation_slope",
    "domain_parallelogram",
    "domain_triangle",
    "error_cost",
    "index_from_error_rates",
    "index_from_mean",
    "is_monotone",
    "level_shares",
    "mean_domain",
    "secant",
    "turning_point",
    "turning_point_curvature",
    "two_level_index",
    "two_level_peak",
]


def index_from_mean(
    mean: object, unit_rate: object, *, low: float, high: float, order: float = 1.0
) -> FloatArray:
    r"""Return the index as a function of mean benefit and unit reward rate.

    Parameters
    ----------
    mean, unit_rate : float or array
        :math:`\mu` and :math:`\lambda`, inside `mean_domain`.
    low, high : float
        :math:`b_- < b_+`, benefits of the two other outcomes.
    order : float, default 1
        a.

    Returns
    -------
    array

    Notes
    -----
    Theorem 3.2, Eq. (4): :math:`[(A+\beta)(1-\lambda) + \beta(\mu-1) - f(\mu)]/\mu^a`, linear in
    :math:`\lambda`. The slope in :math:`\lambda` is positive when `high` < 1 or `low` > 1 and
    negative when 1 lies between them.

    Examples
    --------
    Half the people get 1, a quarter 0.5 and a quarter 1.5:

    >>> round(float(index_from_mean(1.0, 0.5, low=0.5, high=1.5, order=2.0)), 4)
    0.0625
    """
    a = check_order(order)
    intercept, slope = secant(low, high, a)
    mu, lam = np.asarray(mean, dtype=np.float64), np.asarray(unit_rate, dtype=np.float64)
    line = (intercept + slope) * (1.0 - lam) + slope * (mu - 1.0)
    return np.asarray((line - kernel(mu, a)) / mu**a)


def mean_domain(unit_rate: object, *, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    r"""Return the smallest and largest mean benefit at a unit reward rate, Eq. (6).

    Examples
    --------
    >>> [float(end) for end in mean_domain(0.5, low=0.0, high=2.0)]
    [0.5, 1.5]
    """
    lam = np.asarray(unit_rate, dtype=np.float64)
    return np.asarray(low + (1.0 - low) * lam), np.asarray(high + (1.0 - high) * lam)


def domain_triangle(*, low: float, high: float) -> FloatArray:
    r"""Return the corners (mean, unit rate) of the domain: all low, all high, all 1.

    Examples
    --------
    >>> domain_triangle(low=0.0, high=2.0).tolist()
    [[0.0, 0.0], [2.0, 0.0], [1.0, 1.0]]
    """
    return np.array([[low, 0.0], [high, 0.0], [1.0, 1.0]], dtype=np.float64)


def domain_parallelogram(
    base_rate: float, *, low: float, high: float, kind: BenefitKind
) -> FloatArray:
    r"""Return the corners (mean, unit rate) that can be reached when the base rate is known.

    The map from (FPR, FNR) to (mean, unit rate) is affine, so the unit square becomes a
    parallelogram; corners are in the order (0,0), (1,0), (1,1), (0,1) of (FPR, FNR).

    Examples
    --------
    >>> domain_parallelogram(0.5, low=0.0, high=2.0, kind="accuracy").tolist()
    [[1.0, 1.0], [1.5, 0.5], [1.0, 0.0], [0.5, 0.5]]
    """
    corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    shares = [level_shares(u, v, base_rate=base_rate, kind=kind) for u, v in corners]
    return np.array([[low * s[0] + high * s[1] + s[2], s[2]] for s in shares], dtype=np.float64)


def level_shares(
    fpr: object, fnr: object, *, base_rate: float, kind: BenefitKind
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Return the shares of people with benefit `low`, `high` and 1 (the unit reward rate).

    Parameters
    ----------
    fpr, fnr : float or array
        False positive and false negative rate.
    base_rate : float
        :math:`P(Y = 1)`.
    kind : {"accuracy", "punitive", "assistive"}
        Which people get 1: those judged correctly, matrix ((1, low), (high, 1)); those not
        selected, ((1, 1), (low, high)); or those selected, ((high, low), (1, 1)).

    Returns
    -------
    low, high, unit : array

    Examples
    --------
    >>> [round(float(share), 6) for share in level_shares(0.2, 0.4, base_rate=0.5, kind="accuracy")]
    [0.2, 0.1, 0.7]
    """
    check_option("kind", kind, BenefitKind)
    p = check_fraction("base_rate", base_rate)
    u, v = np.asarray(fpr, dtype=np.float64), np.asarray(fnr, dtype=np.float64)
    if kind == "accuracy":
        worst, other = p * v, (1.0 - p) * u
    elif kind == "punitive":
        worst, other = (1.0 - p) * u, p * (1.0 - v)
    else:
        worst, other = p * v, (1.0 - p) * (1.0 - u)
    return np.asarray(worst), np.asarray(other), np.asarray(1.0 - worst - other)


def index_from_error_rates(
    fpr: object,
    fnr: object,
    *,
    base_rate: float,
    low: float,
    high: float,
    kind: BenefitKind,
    order: float = 1.0,
) -> FloatArray:
    r"""Return the index as a function of the two error rates, Theorems 3.3 to 3.5.

    Parameters
    ----------
    fpr, fnr : float or array
        False positive and false negative rate.
    base_rate : float
        :math:`P(Y = 1)`.
    low, high : float
        The two benefits that are not 1.
    kind : {"accuracy", "punitive", "assistive"}
        Which people get 1; see `level_shares`.
    order : float, default 1
        a.

    Returns
    -------
    array

    Examples
    --------
    >>> index = index_from_error_rates(
    ...     0.2, 0.4, base_rate=0.5, low=0.0, high=2.0, kind="accuracy", order=2.0)
    >>> round(float(index), 4)
    0.179
    """
    a = check_order(order)
    if a <= 0.0 and min(low, high) <= 0.0:
        raise InvalidParameterError(
            f"an index of order {a:g} is infinite when a benefit is zero. Pass `order` > 0 or"
            " positive benefits."
        )
    worst, other, unit = level_shares(fpr, fnr, base_rate=base_rate, kind=kind)
    mu = unit + low * worst + high * other
    safe = np.where(mu > 0.0, mu, 1.0)
    index = (
        unit * kernel(1.0 / safe, a)
        + worst * kernel(low / safe, a)
        + other * kernel(high / safe, a)
    )
    if np.any(mu <= 0.0):
        raise InvalidParameterError("the mean benefit must be positive; it is zero here.")
    return np.asarray(index)


def turning_point(unit_rate: float, *, low: float, high: float, order: float = 1.0) -> float | None:
    r"""Return the mean benefit at which the index is largest for a fixed unit reward rate.

    Parameters
    ----------
    unit_rate : float
        :math:`\lambda`.
    low, high : float
        :math:`b_- < b_+`.
    order : float, default 1
        a.

    Returns
    -------
    float or None
        Eq. (7); None when it would not be positive, and then the index falls throughout.

    Notes
    -----
    *Deviation from the paper*: a turning point is always a maximum. With ``low = 0`` and
    ``high <= 1`` there is none; the paper calls it a minimum or an inflection.

    Examples
    --------
    >>> round(turning_point(0.5, low=0.5, high=1.5, order=1.0), 4)
    0.8894
    """
    a = check_order(order)
    intercept, slope = secant(low, high, a)
    value = (1.0 - a * (intercept - (intercept + slope) * unit_rate)) / (1.0 + (a - 1.0) * slope)
    # Rounding error must not make a turning point of the one that lies at zero.
    return float(value) if value > 1e-12 * high else None


def turning_point_curvature(
    unit_rate: float, *, low: float, high: float, order: float = 1.0
) -> float | None:
    r"""Return the second derivative in the mean at the turning point: always negative.

    :math:`-(1 + (a-1)\tilde\beta)/\hat\mu^{a+1}` with the slope of the centred kernel's secant;
    None without turning point.

    Examples
    --------
    >>> turning_point_curvature(0.5, low=0.5, high=1.5, order=2.0) < 0
    True
    """
    peak = turning_point(unit_rate, low=low, high=high, order=order)
    if peak is None:
        return None
    slope = secant(low, high, order)[1]
    return float(-(1.0 + (order - 1.0) * slope) / peak ** (order + 1.0))


def two_level_index(mass: object, ratio: float, *, order: float = 1.0) -> FloatArray:
    r"""Return the index when a share `mass` gets `ratio` and everybody else 1, Eq. (22).

    Examples
    --------
    >>> round(float(two_level_index(0.5, 0.5, order=2.0)), 4)
    0.0556
    """
    a = check_order(order)
    m = np.asarray(mass, dtype=np.float64)
    mu = 1.0 - m * (1.0 - ratio)
    return np.asarray(m * kernel(ratio / mu, a) + (1.0 - m) * kernel(1.0 / mu, a))


def two_level_peak(ratio: float, *, order: float = 1.0) -> float:
    r"""Return the share with benefit 1 at which a two-level index is largest.

    Parameters
    ----------
    ratio : float
        Benefit b > 0 of everybody else.
    order : float, default 1
        a.

    Returns
    -------
    float
        :math:`\hat\rho(b, a)`, Eq. (23); 1/2 at b = 1.

    Notes
    -----
    :math:`\hat\rho(b) = 1 - \hat\rho(1/b)`. *Deviation from the paper*: it decreases in the order
    for b < 1 and increases for b > 1; Theorem B.2 says the reverse.

    Examples
    --------
    >>> round(two_level_peak(0.5, order=2.0), 4)
    0.3333
    """
    a = check_order(order)
    b = check_number("ratio", ratio, low=1e-300)
    if abs(b - 1.0) < 1e-7:
        return 0.5
    # (b^(a-1) - 1)/(a - 1) over (b^a - 1)/a: the limits at orders 0 and 1 are inside.
    mu = float(b * kernel_slope(b, a) / kernel_slope(b, a + 1.0))
    return float((b - mu) / (b - 1.0))


def is_monotone(
    *, base_rate: float, low: float, high: float, kind: BenefitKind, order: float = 1.0
) -> bool:
    r"""Say whether the index falls in the mean benefit on the whole domain of a row-unit matrix.

    Parameters
    ----------
    base_rate : float
        :math:`P(Y = 1)`.
    low, high : float
        :math:`0 < b_- < b_+ < 1`.
    kind : {"punitive", "assistive"}
        Who is protected.
    order : float, default 1
        a.

    Returns
    -------
    bool

    Notes
    -----
    With Q the share of people outside the protected class: the turning point must not exceed the
    lower end of the domain at unit rates 0, Q and 1. *Deviation from the paper*, whose condition
    (the same at every unit rate of the triangle) can never hold. The cap does not need it.

    Examples
    --------
    >>> is_monotone(base_rate=0.4, low=0.1, high=0.865, kind="punitive", order=0.5)
    True
    >>> is_monotone(base_rate=0.1, low=0.1, high=0.19, kind="punitive", order=0.5)
    False
    """
    check_option("kind", kind, BenefitKind)
    p = check_fraction("base_rate", base_rate)
    q = p if kind == "punitive" else 1.0 - p
    at_q = turning_point(q, low=low, high=high, order=order)
    at_one = turning_point(1.0, low=low, high=high, order=order)
    return (
        two_level_peak(low / high, order=order) <= q
        and (at_q is None or at_q <= low + (1.0 - low) * q)
        and (at_one is None or at_one <= 1.0)
    )


def secant(low: float, high: float, order: float) -> tuple[float, float]:
    """Return intercept and slope of the centred kernel's secant through `low` and `high`.

    Eq. (5) has the secant of the uncentred kernel. Centring subtracts a multiple of x - 1, which
    every representation absorbs, and spares it the special cases at orders 0 and 1.
    """
    if not 0.0 <= low < high:
        raise InvalidParameterError(
            f"benefit levels must satisfy 0 <= low < high; got {low:g} and {high:g}."
        )
    if order <= 0.0 and low == 0.0:
        raise InvalidParameterError(
            f"an index of order {order:g} is infinite when a benefit is zero; got `low` = 0."
        )
    f_low, f_high = kernel([low, high], order)
    slope = (f_high - f_low) / (high - low)
    return float(f_high - high * slope), float(slope)


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
