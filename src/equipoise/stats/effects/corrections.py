r"""How much of an estimated prediction error to subtract from new predictions.

Subtracting all of it replaces a possible error by certain noise. Every rule here returns an amount
:math:`c_g` to subtract from the predictions of group g, from the estimates :math:`B_g` and their
standard errors :math:`s_g`. With five groups or more, empirical Bayes estimates how much groups
really differ and shrinks accordingly; it is the only family that beats doing nothing in every
simulated setting with errors. With fewer groups that spread cannot be estimated: it gets a prior of
its own, and the amount is a posterior mean ([4]_).

References
----------
.. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026), Detecting and
   mitigating group bias in heterogeneous treatment effects (earlier: Detecting and mitigating
   algorithmic bias in treatment effect estimation). doi:10.48550/arXiv.2602.20383
.. [2] X. Xie, S. C. Kou and L. D. Brown (2012), SURE estimates for a heteroscedastic hierarchical
   model, Journal of the American Statistical Association 107, 1465-1479.
   doi:10.1080/01621459.2012.728154
.. [3] Y. Wang (2007), On fast computation of the non-parametric maximum likelihood estimate of a
   mixing distribution, Journal of the Royal Statistical Society B 69, 185-198.
   doi:10.1111/j.1467-9868.2007.00583.x
.. [4] M. J. Daniels (1999), A prior for the variance in hierarchical models, Canadian Journal of
   Statistics 27, 567-578. https://doi.org/10.2307/3316112
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np
from scipy import optimize, special

from equipoise._checks import check_finite, check_fraction, check_option
from equipoise._typing import AnyArray, Correction, CorrectionChoice, FloatArray
from equipoise.exceptions import ConvergenceError, InvalidParameterError
from equipoise.stats.inversion import Bracket, crossing
from equipoise.stats.summary import summary_table

__all__ = [
    "CORRECTIONS",
    "MANY_GROUPS",
    "EffectCorrection",
    "MixingPrior",
    "NormalPrior",
    "default_correction",
    "effect_correction",
    "mixing_prior",
    "normal_prior",
]

CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
"""Every rule, in the order of the evaluation's table."""
MANY_GROUPS = 50
"""Groups from which the nonparametric prior is offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalPrior:
    """Spread of the true errors between groups, as a normal law."""

    mean: float
    sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MixingPrior:
    """Spread of the true errors between groups, as masses on points."""

    point: FloatArray
    mass: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectCorrection:
    """Amounts to subtract from the predictions of each group.

    Parameters
    ----------
    method : str
        The rule.
    amount : array of shape (G,)
        :math:`c_g`.
    common : float
        The amount for a group that was not seen: the prior mean with "eb" and "npmle", else 0.
    prior : NormalPrior, optional
        For the empirical Bayes rules.
    """

    method: str
    amount: FloatArray
    common: float
    prior: NormalPrior | None = None

    def __str__(self) -> str:
        return summary_table(
            f'Amounts to subtract, by "{self.method}"',
            {
                "group": [*range(len(self.amount)), "a new one"],
                "amount": [*self.amount.tolist(), self.common],
            },
        )


def default_correction(n_groups: int) -> Correction:
    """Return "eb" for five groups or more, else "bayes_zero"."""
    return "eb" if n_groups >= 5 else "bayes_zero"


def effect_correction(
    error: FloatArray,
    se: FloatArray,
    *,
    method: CorrectionChoice = "auto",
    alpha: float = 0.05,
    p_value: FloatArray | None = None,
    second_moment: FloatArray | None = None,
) -> EffectCorrection:
    r"""Return the amount to subtract from the predictions of each group.

    Parameters
    ----------
    error, se : array of shape (G,)
        Estimated prediction errors B and their standard errors s.
    method : str, default "auto"
        See Notes; "auto" is "eb" from five groups on, else "bayes_zero".
    alpha : float, default 0.05
        Level of the test in "mean_if_detected".
    p_value : array of shape (G,), optional
        Of the tests that single errors are zero, for "mean_if_detected"; by default from the normal
        law of B/s.
    second_moment : array of shape (G,), optional
        Bootstrap mean of :math:`B^2` for "mse_plus" and "mse_minus"; by default its limit
        :math:`B^2 + s^2`.

    Returns
    -------
    EffectCorrection

    Notes
    -----
    ================== ==================================================================
    method             amount
    ================== ==================================================================
    "none", "mean"     0; B
    "mean_if_detected" B where its test rejects, else 0
    "mse_plus"         B times :math:`B^2/\hat E B^2`, Eq. (46), clipped to [0, 1]
    "mse_minus"        B times :math:`(\hat E B^2 - s^2)/\hat E B^2`, Eq. (47), clipped
    "positive_part"    B max(0, 1 - s^2/B^2)
    "james_stein"      B max(0, 1 - (G - 2)/sum(B^2/s^2))
    "bayes_zero"       posterior mean of N(0, t^2) with uniform shrinkage prior on t^2 [3]_
    "eb_zero"          B t^2/(t^2 + s^2), t by maximum likelihood of N(0, t^2 + s^2)
    "eb"               m + (B - m) t^2/(t^2 + s^2), m and t by maximum likelihood
    "sure"             as "eb_zero" with t from Stein's unbiased risk estimate [2]_
    "npmle"            posterior mean under the nonparametric prior; for 50 groups or more
    ================== ==================================================================

    *Deviations from* [1]_: Eq. (42) rejects on one side, here on both; Eqs. (46) and (47) have the
    same limit :math:`B^2/(B^2 + s^2)` and are clipped to the factors that Eq. (39) allows; the
    oracle factor of Proposition 2 is not 0 or 1 but continuous in :math:`b/s`.

    References
    ----------
    .. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026).
       doi:10.48550/arXiv.2602.20383
    .. [2] X. Xie, S. C. Kou and L. D. Brown (2012). doi:10.1080/01621459.2012.728154
    .. [3] M. J. Daniels (1999). doi:10.2307/3316112

    Examples
    --------
    Six groups, one of them with a clear error. How much should be corrected?

    >>> from equipoise.stats import effect_correction
    >>> errors = [0.30, 0.02, -0.03, 0.01, 0.04, -0.02]
    >>> effect_correction(errors, [0.05] * 6).amount.round(3).tolist()
    [0.252, 0.027, -0.014, 0.019, 0.043, -0.006]

    Most of it where the error is clear, next to nothing elsewhere.
    """
    check_option("method", method, CorrectionChoice)
    b = check_finite("error", error, ndim=1)
    s = check_finite("se", se, ndim=1)
    if method == "auto":
        method = default_correction(len(b))
    level = check_fraction("alpha", alpha)
    if b.shape != s.shape or not b.size or float(s.min()) <= 0:
        raise InvalidParameterError(
            f"`error` and `se` need the same positive length and positive `se`; got {b.shape} and"
            f" {s.shape}."
        )
    if method in {"eb", "eb_zero", "sure"}:
        prior = _prior(b, s, method)
        shrink = prior.sd**2 / (prior.sd**2 + s**2)
        return EffectCorrection(
            method=method,
            amount=prior.mean + (b - prior.mean) * shrink,
            common=prior.mean,
            prior=prior,
        )
    if method == "npmle":
        mixing = mixing_prior(b, s)
        return EffectCorrection(
            method=method,
            amount=_posterior_mean(b, s, mixing),
            common=float(mixing.point @ mixing.mass),
        )
    if method == "bayes_zero":
        return EffectCorrection(method=method, amount=b * _posterior_shrinkage(b, s), common=0.0)
    m2 = b**2 + s**2 if second_moment is None else check_finite("second_moment", second_moment)
    if method == "mean_if_detected":
        normal = 2.0 * special.ndtr(-np.abs(b / s))
        p = normal if p_value is None else check_finite("p_value", p_value, ndim=1)
        return EffectCorrection(method=method, amount=np.where(p <= level, b, 0.0), common=0.0)
    return EffectCorrection(method=method, amount=b * _factor(b, s, method, m2), common=0.0)


def normal_prior(error: FloatArray, se: FloatArray, *, mean: float | None = None) -> NormalPrior:
    """Return the normal law of true errors between groups, by maximum likelihood.

    Parameters
    ----------
    error, se : array of shape (G,)
        Estimates and standard errors.
    mean : float, optional
        Known mean; by default estimated.

    Returns
    -------
    NormalPrior
        With sd 0 when the estimates vary no more than their standard errors explain.

    Examples
    --------
    >>> import numpy as np
    >>> normal_prior(np.array([0.1, -0.1, 0.05, -0.05]), np.full(4, 0.2)).sd
    0.0
    """

    def centre(t2: FloatArray) -> FloatArray:
        precision = 1.0 / (t2[:, None] + se**2)
        average: FloatArray = (precision * error).sum(axis=1) / precision.sum(axis=1)
        return average if mean is None else np.full(len(t2), mean)

    def minus_log_likelihood(t2: FloatArray) -> FloatArray:
        variance = t2[:, None] + se**2
        deviation = error - centre(t2)[:, None]
        total: FloatArray = (np.log(variance) + deviation**2 / variance).sum(axis=1)
        return total

    def slope(t2: FloatArray) -> FloatArray:
        variance = t2[:, None] + se**2
        deviation = error - centre(t2)[:, None]
        total: FloatArray = ((1.0 - deviation**2 / variance) / variance).sum(axis=1)
        return total

    t2 = _minimum(minus_log_likelihood, slope, error, se)
    return NormalPrior(mean=float(centre(np.array([t2]))[0]), sd=float(np.sqrt(t2)))


def mixing_prior(
    error: FloatArray, se: FloatArray, *, n_points: int = 300, n_steps: int = 200
) -> MixingPrior:
    r"""Return the law of true errors between groups without assuming its shape.

    The nonparametric maximum likelihood estimate on a grid, by constrained Newton steps [1]_: the
    log-likelihood is replaced by a quadratic on the current support and the local maxima of its
    gradient, a small non-negative least-squares problem.

    Parameters
    ----------
    error, se : array of shape (G,)
        Estimates and standard errors.
    n_points : int, default 300
        Grid points between the smallest and the largest estimate; zero is one more.
    n_steps : int, default 200
        At most so many Newton steps.

    Returns
    -------
    MixingPrior

    Raises
    ------
    ConvergenceError
        If the duality gap does not close.

    References
    ----------
    .. [1] Y. Wang (2007). doi:10.1111/j.1467-9868.2007.00583.x

    Examples
    --------
    >>> import numpy as np
    >>> b = np.r_[np.zeros(45), np.full(5, 1.0)]
    >>> prior = mixing_prior(b, np.full(50, 0.1))
    >>> round(float(prior.mass[prior.point > 0.5].sum()), 3)
    0.1
    """
    point = np.union1d(np.linspace(error.min(), error.max(), n_points), [0.0])
    scaled = (error[:, None] - point) / se[:, None]
    # Row scaling changes the likelihood by a constant and keeps far groups away from underflow.
    likelihood = np.exp(-0.5 * (scaled**2 - (scaled**2).min(axis=1, keepdims=True)))
    mass = np.full(len(point), 1.0 / len(point))
    support = np.zeros(len(point), dtype=bool)
    for _ in range(n_steps):
        ratio = likelihood / (likelihood @ mass)[:, None]
        gradient = ratio.sum(axis=0) - len(error)
        if gradient.max() < 0.01:
            keep = mass > 0
            return MixingPrior(point=point[keep], mass=mass[keep] / mass.sum())
        padded = np.concatenate([[-np.inf], gradient, [-np.inf]])
        peak = (gradient > 0) & (gradient >= padded[:-2]) & (gradient >= padded[2:])
        active = np.flatnonzero(peak | support)
        target = np.zeros_like(mass)
        target[active] = _simplex_least_squares(ratio[:, active])
        mass = _line_search(likelihood, mass, target)
        support = mass > 0
    raise ConvergenceError(
        f"the nonparametric prior of {len(error)} groups did not converge in {n_steps} steps; use"
        ' correction="eb".'
    )


def _prior(b: FloatArray, s: FloatArray, method: str) -> NormalPrior:
    if method == "eb":
        return normal_prior(b, s)
    if method == "eb_zero":
        return normal_prior(b, s, mean=0.0)

    def risk(t2: FloatArray) -> FloatArray:
        # [2] Eq. (3) with the shrinkage target zero.
        total = t2[:, None] + s**2
        terms = (s**2 * b / total) ** 2 + s**2 * (t2[:, None] - s**2) / total
        value: FloatArray = terms.sum(axis=1)
        return value

    def slope(t2: FloatArray) -> FloatArray:
        total = t2[:, None] + s**2
        value: FloatArray = (2.0 * s**4 * (1.0 - b**2 / total) / total**2).sum(axis=1)
        return value

    return NormalPrior(mean=0.0, sd=float(np.sqrt(_minimum(risk, slope, b, s))))


def _posterior_shrinkage(b: FloatArray, s: FloatArray) -> FloatArray:
    """Posterior mean of t^2/(t^2 + s^2) when s0^2/(s0^2 + t^2) is uniform, on 200 points."""
    common = len(s) / np.sum(1.0 / s**2)
    uniform = (np.arange(200) + 0.5) / 200
    t2 = (common * (1.0 - uniform) / uniform)[:, None]
    variance = t2 + s**2
    log_likelihood = -0.5 * np.sum(np.log(variance) + b**2 / variance, axis=1)
    weight = np.exp(log_likelihood - log_likelihood.max())
    return np.asarray(weight @ (t2 / variance) / weight.sum())


def _factor(b: FloatArray, s: FloatArray, method: str, m2: FloatArray) -> FloatArray:
    z2 = (b / s) ** 2
    # Below z = 1 the positive part is zero; the floors only avoid a division by zero.
    shrunk = 1.0 - 1.0 / np.maximum(z2, 1.0)
    evidence = max(float(z2.sum()), 1e-9)
    factors: dict[str, AnyArray] = {
        "none": np.zeros_like(b),
        "mean": np.ones_like(b),
        "mse_plus": b**2 / m2,
        "mse_minus": (m2 - s**2) / m2,
        "positive_part": shrunk,
        "james_stein": np.full_like(b, 1.0 - (len(b) - 2) / evidence),
    }
    return np.asarray(np.clip(factors[method].astype(np.float64), 0.0, 1.0))


def _minimum(
    function: Callable[[FloatArray], FloatArray],
    slope: Callable[[FloatArray], FloatArray],
    b: FloatArray,
    s: FloatArray,
) -> float:
    """Minimise over the variance between groups: a grid against several minima, then the slope."""
    top = float(max(np.max(b**2), np.ptp(b) ** 2)) + float(np.min(s)) ** 2
    grid = np.concatenate([[0.0], np.geomspace(1e-6 * float(np.min(s)) ** 2, top, 80)])
    value = function(grid)
    k = int(np.argmin(value))
    if k == 0:
        return 0.0
    low, high = grid[k - 1], grid[min(k + 1, len(grid) - 1)]
    ends = slope(np.array([low, high]))
    if not ends[0] < 0.0 < ends[1]:
        return float(grid[k])
    # Values tell half of the digits, the slope tells all: rows summed in another order agree.
    inside = Bracket(np.array([low]), ends[:1], np.array([high]), ends[1:])
    near_zero = 1e-14 * float(np.abs(ends).max())
    return float(crossing(lambda x, _: slope(x), inside, tolerance=near_zero)[0])


def _posterior_mean(b: FloatArray, s: FloatArray, prior: MixingPrior) -> FloatArray:
    scaled = (b[:, None] - prior.point) / s[:, None]
    weight = prior.mass * np.exp(-0.5 * (scaled**2 - (scaled**2).min(axis=1, keepdims=True)))
    mean: FloatArray = weight @ prior.point / weight.sum(axis=1)
    return mean


def _simplex_least_squares(ratio: FloatArray) -> FloatArray:
    # min |ratio w - 2|^2 with sum w = 1: non-negative least squares of a homogeneous system with
    # one more row for the sum, then rescaled ([3] section 3).
    system = np.vstack([ratio - 2.0, np.ones(ratio.shape[1])])
    right = np.zeros(len(system))
    right[-1] = 1.0
    solution, _ = optimize.nnls(system, right)
    share: FloatArray = solution / solution.sum()
    return share


def _line_search(likelihood: FloatArray, mass: FloatArray, target: FloatArray) -> FloatArray:
    """Return the best of the steps 1, 1/2, 1/4, ...: any ascent would do, but slowly."""
    old, new = likelihood @ mass, likelihood @ target
    step = 0.5 ** np.arange(20.0)
    with np.errstate(divide="ignore"):
        gain = np.log((1.0 - step) * old[:, None] + step * new[:, None]).sum(axis=0)
    best = int(np.argmax(gain))
    if gain[best] <= np.log(old).sum():
        return mass
    moved: FloatArray = (1.0 - step[best]) * mass + step[best] * target
    return moved
