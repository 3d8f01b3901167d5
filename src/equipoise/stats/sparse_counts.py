r"""One test that several proportions are equal, or equal to a known rate, also with rare events.

Pearson's statistic is compared with its own law given the number of ones (multivariate
hypergeometric) or at the known rate (binomial), instead of the chi-square law. That matters when
expected counts are small: the variance of the statistic is then not twice its mean but up to many
times that, and chi-square tests reject equal groups far too often [1]_.

The law is enumerated when there are few tables, drawn otherwise, and with thousands of samples
approximated by its exact mean and variance [2]_. Draws depend on the sizes of the samples in
increasing order and on nothing else, so that names and order of the samples do not matter.

References
----------
.. [1] C. R. Mehta and N. R. Patel (1983), A network algorithm for performing Fisher's exact test in
   r x c contingency tables, Journal of the American Statistical Association 78, 427-434,
   doi:10.1080/01621459.1983.10477989.
.. [2] J. B. S. Haldane (1940), The mean and variance of chi-square, when used as a test of
   homogeneity, when expectations are small, Biometrika 31, 346-355, doi:10.1093/biomet/31.3-4.346.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import FloatArray
from equipoise.stats.inversion import GREATER, LESS
from equipoise.stats.pairs import Pairs, known_root

__all__ = ["EqualRates", "equal_rates_test", "smallest_expected_count"]

# The draws are the same for the same margins, so that their error does not average out over audits:
# with 999 the size of a 5% test of six groups was .060, with 9,999 .051.
_DRAWS, _LEAST_DRAWS, _MOST_NUMBERS = 9_999, 999, 100_000
_MOST_TABLES = 20_000
# Beyond this many samples the sum of their contributions is close to its limit.
_MOST_DRAWN = 5_000
_LARGEST_POPULATION = 10**9  # what numpy draws without replacement from
_TIE = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualRates:
    """Test that all samples have one rate.

    Parameters
    ----------
    statistic : float
        Pearson's.
    df : int
        Samples, less one when the rate is estimated.
    p_value : float
        Under the law that `method` names.
    method : {"pair", "binomial", "enumeration", "monte_carlo", "moments"}
        Two samples are one pair and have its p-value; one sample and a known rate have the binomial
        one.
    """

    statistic: float
    df: int
    p_value: float
    method: str


def smallest_expected_count(ones: FloatArray, n: FloatArray, rate: float | None = None) -> float:
    """Smallest number of ones or zeros that a sample should have under the null.

    Parameters
    ----------
    ones, n : array of shape (k,)
        Ones and rows of the samples.
    rate : float, optional
        Known rate; by default that of all samples together.

    Returns
    -------
    float
    """
    common = ones.sum() / n.sum() if rate is None else rate
    return float(n.min() * min(common, 1.0 - common))


def equal_rates_test(
    ones: FloatArray, n: FloatArray, *, rate: float | None = None, n_draws: int | None = None
) -> EqualRates:
    """Test that samples of 0/1 values have the same rate, or a known one.

    Parameters
    ----------
    ones, n : array of shape (k,)
        Ones and rows of k disjoint samples, n >= 1.
    rate : float, optional
        Known rate within (0, 1); without it the common rate is estimated.
    n_draws : int, optional
        Tables that are drawn when there are too many to enumerate; by default 9,999, and fewer for
        more than ten samples, at least 999.

    Returns
    -------
    EqualRates

    Examples
    --------
    One person in a group of three was selected, and 80 of 4,000 in two others.

    >>> ones, n = np.array([1.0, 41.0, 39.0]), np.array([3.0, 2000.0, 2000.0])
    >>> test = equal_rates_test(ones, n)
    >>> print(f"X2 = {test.statistic:.1f}, p = {test.p_value:.3f}")
    X2 = 14.9, p = 0.054

    Chi-square with two degrees of freedom would have said p = .0006.
    """
    order = np.lexsort((ones, n))
    ones, n = ones[order], n[order]
    df = len(n) - (rate is None)
    common = float(ones.sum() / n.sum()) if rate is None else float(rate)
    spread = n * common * (1.0 - common)
    if df == 0 or not spread.all():
        # All ones or all zeros: nothing can differ.
        return EqualRates(statistic=0.0, df=df, p_value=1.0, method="enumeration")
    statistic = float(np.sum((ones - n * common) ** 2 / spread))
    if rate is None and len(n) == 2:
        single = (np.array([v]) for v in (ones[0], n[0], ones[1], n[1]))
        p, method = float(Pairs.of(*single).p_value(0.0)[0]), "pair"
    elif rate is not None and len(n) == 1:
        at = np.array([common])
        tails = -known_root(ones, n, at, GREATER), known_root(ones, n, at, LESS)
        p, method = float(min(2.0 * special.ndtr(min(t[0] for t in tails)), 1.0)), "binomial"
    else:
        draws = max(min(_DRAWS, _MOST_NUMBERS // len(n)), _LEAST_DRAWS)
        p, method = _tail(statistic, ones.sum(), n, rate, draws if n_draws is None else n_draws)
    return EqualRates(statistic=statistic, df=df, p_value=p, method=method)


def _tail(
    statistic: float, total: float, n: FloatArray, rate: float | None, n_draws: int
) -> tuple[float, str]:
    """P-value of Pearson's statistic, and how it was found."""
    common = total / n.sum() if rate is None else rate
    most = np.minimum(n, total) if rate is None else n
    free = len(n) - (rate is None)
    if np.sum(np.log(most[:free] + 1.0)) <= np.log(_MOST_TABLES):
        chance, value = _tables(total, n, most, rate)
        extreme = value >= statistic * _TIE
        return float(min(chance[extreme].sum() / chance.sum(), 1.0)), "enumeration"
    if len(n) > _MOST_DRAWN or n.sum() >= _LARGEST_POPULATION:
        mean, variance = _moments(total, n, rate)
        # A multiple of chi-square with the right mean and variance.
        df, scale = 2.0 * mean**2 / variance, 0.5 * variance / mean
        return float(special.chdtrc(df, statistic / scale)), "moments"
    rng = np.random.default_rng(0)
    size = n.astype(np.int64)
    if rate is None:
        drawn = rng.multivariate_hypergeometric(size, int(total), n_draws, method="marginals")
    else:
        drawn = rng.binomial(size, rate, (n_draws, len(n)))
    values = np.sum((drawn - n * common) ** 2 / (n * common * (1.0 - common)), axis=1)
    beyond = np.count_nonzero(values >= statistic * _TIE)
    return float((1.0 + beyond) / (1.0 + n_draws)), "monte_carlo"


def _tables(
    total: float, n: FloatArray, most: FloatArray, rate: float | None
) -> tuple[FloatArray, FloatArray]:
    """Probabilities, up to a factor, and statistics of all tables; given the total without rate."""
    common = total / n.sum() if rate is None else rate

    def sample(x: FloatArray, size: float) -> FloatArray:
        """Counts of one sample, log probabilities and contributions to the statistic."""
        ways = special.gammaln(size + 1.0) - special.gammaln(x + 1.0)
        ways -= special.gammaln(size - x + 1.0)
        weight = ways + x * np.log(common) + (size - x) * np.log1p(-common)
        gap = (x - size * common) ** 2 / (size * common * (1.0 - common))
        return np.stack([x, weight, gap])

    free = len(n) - (rate is None)
    tables = np.zeros((3, 1))
    for size, top in zip(n[:free], most[:free], strict=True):
        new = sample(np.arange(top + 1.0), size)
        tables = (tables[:, :, None] + new[:, None, :]).reshape(3, -1)
    if rate is None:
        # The last sample has what the others leave.
        left = total - tables[0]
        possible = (left >= 0.0) & (left <= n[-1])
        tables = tables[:, possible] + sample(left[possible], n[-1])
    return np.exp(tables[1]), tables[2]


def _moments(total: float, n: FloatArray, rate: float | None) -> tuple[float, float]:
    """Exact mean and variance of Pearson's statistic."""
    if rate is not None:
        spread = rate * (1.0 - rate)
        return float(len(n)), float(np.sum(2.0 + (1.0 - 6.0 * spread) / (n * spread)))
    rows = n.sum()
    steps = np.arange(4.0)
    # Ratios of falling factorials: E of x_i (x_i - 1) ... over those of the sizes.
    one, two, three, four = np.cumprod((total - steps) / (rows - steps))

    def falling(order: int) -> FloatArray:
        return np.asarray(np.prod([n - step for step in range(order)], axis=0))

    first, second = falling(1) / n, falling(2) / n
    square = np.sum(second * two + first * one)
    # x^4 = x(4) + 6 x(3) + 7 x(2) + x in falling factorials.
    fourth = falling(4) * four + 6.0 * falling(3) * three + 7.0 * falling(2) * two + n * one
    pairs = four * (second.sum() ** 2 - np.sum(second**2))
    pairs += 2.0 * three * (second.sum() * first.sum() - np.sum(second * first))
    pairs += two * (first.sum() ** 2 - np.sum(first**2))
    variance = np.sum(fourth / n**2) + pairs - square**2
    factor = 1.0 / (one * (1.0 - one))
    return float(factor * (square - total**2 / rows)), float(factor**2 * variance)
