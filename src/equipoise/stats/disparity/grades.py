r"""How much many groups differ in truth, and grades of them with few wrongly ordered pairs.

Observed values of many groups differ more than the truth: their variance is that of the truth plus
that of chance, which is taken off. A ranking of all groups is mostly noise; *grades* order only as
many pairs of groups as the data can tell apart. What is known of the truth is learnt from all
groups (empirical Bayes): how far true values spread, which shrinks the observed ones, and how many
pairs are equal in truth, from how far all pairs are apart [1]_. A pair in different grades is wrong
if its true order is another, or if it is equal in truth; its chance is the larger of the two. Of
all cuts of the ordered list into grades the one with most pairs in different grades is taken, among
those in which at most a given share of these pairs is expected to be wrong [2]_. If equality of all
groups is not rejected there is one grade.

*Deviations from* [2]_: there equal groups in different grades do not count as wrong, and the law of
the truth is estimated without a form. Counting ties orders far fewer pairs: hardly any of sixty
groups whose true values spread one and a half times as widely as chance does.

References
----------
.. [1] B. Efron (2008), Microarrays, empirical Bayes and the two-groups model, Statistical Science
   23, 1-22. doi:10.1214/07-STS236
.. [2] P. Kline, E. K. Rose and C. R. Walters (2024), A discrimination report card, American
   Economic Review 114(8), 2472-2525. doi:10.1257/aer.20230700
.. [3] W. Viechtbauer (2007), Confidence intervals for the amount of heterogeneity in meta-analysis,
   Statistics in Medicine 26, 37-52. doi:10.1002/sim.2514
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._checks import check_fraction
from equipoise._typing import FloatArray, IntArray
from equipoise.exceptions import GroupTooSmallError
from equipoise.stats.summary import Interval

__all__ = ["MIN_GROUPS", "MOST_GROUPS", "GroupGrades", "GroupSpread", "ManyGroups", "grade_groups"]

MIN_GROUPS, MOST_GROUPS = 20, 1000
"""Groups from which a law of their true values can be learnt, and for which pairs are held."""

_HALVINGS = 60
_WIDTH, _STEP = 0.3, 0.05
"""Smoothing of how far pairs are apart, in standard errors, and the grid it is done on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyGroups:
    """Means or rates of independent groups.

    Parameters
    ----------
    value : array of shape (G,)
        Observed means.
    n : array of shape (G,)
        Rows of each group.
    variance : array of shape (G,), optional
        Of the mean of each group; None for rates.
    """

    value: FloatArray
    n: FloatArray
    variance: FloatArray | None = None

    def __post_init__(self) -> None:
        if not MIN_GROUPS <= len(self.value) <= MOST_GROUPS:
            raise GroupTooSmallError(
                f"grades need {MIN_GROUPS} to {MOST_GROUPS:,} groups; got {len(self.value)}."
            )

    def chance(self, tau2: float) -> FloatArray:
        """Variance of each mean by chance, when the true values have variance `tau2`."""
        if self.variance is not None:
            return self.variance
        # A 0/1 row has variance p (1 - p), of which tau2 is between groups.
        mean = float(self.n @ self.value / self.n.sum())
        return np.asarray(max(mean * (1.0 - mean) - tau2, 0.0) / self.n)

    def excess(self, tau2: float) -> float:
        """Weighted squares about the weighted mean, at a variance between groups."""
        if np.ptp(self.value) == 0.0:
            return 0.0
        total = self.chance(tau2) + tau2
        mean = float((self.value / total).sum() / (1.0 / total).sum())
        return float(((self.value - mean) ** 2 / total).sum())

    def variance_at(self, limit: float) -> float:
        """Smallest variance between groups at which the squares are not above a limit."""
        if self.excess(0.0) <= limit:
            return 0.0
        low, high = 0.0, float(np.ptp(self.value)) ** 2
        while self.excess(high) > limit:
            low, high = high, 4.0 * high
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.excess(middle) > limit else (low, middle)
        return 0.5 * (low + high)

    @property
    def spread(self) -> "GroupSpread":
        """Variance of the true values."""
        observed = float(self.value.var(ddof=1))
        if self.variance is None:
            # Of a rate x / n the variance x (n - x) / n^2 / (n - 1) has no bias.
            own = self.value * (1.0 - self.value) / np.maximum(self.n - 1.0, 1.0)
        else:
            own = self.variance
        return GroupSpread(groups=self, variance=observed - float(own.mean()))

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Values and variances on a scale where the variance is known."""
        if self.variance is not None:
            return self.value, self.variance
        ones = self.value * self.n
        angle = np.arcsin(np.sqrt((ones + 0.375) / (self.n + 0.75)))
        return angle, 1.0 / (4.0 * self.n + 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpread:
    """How much the true values of groups differ.

    Parameters
    ----------
    groups : ManyGroups
        What was observed.
    variance : float
        Observed variance of the values less that by chance; may be negative by chance.
    """

    groups: ManyGroups
    variance: float

    @property
    def estimate(self) -> float:
        """Standard deviation of the true values; 0 where the variance is not positive."""
        return float(np.sqrt(max(self.variance, 0.0)))

    @property
    def statistic(self) -> float:
        """Cochran's Q: weighted squares of the values about their mean."""
        return self.groups.excess(0.0)

    @property
    def p_value(self) -> float:
        """P-value of "all groups have the same true value"."""
        return float(special.chdtrc(len(self.groups.value) - 1, self.statistic))

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Standard deviations of normally spread true values that Q does not reject.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        Interval
            By the method of [3]_ in the module.
        """
        tail = (1.0 - check_fraction("confidence_level", confidence_level)) / 2.0
        df = len(self.groups.value) - 1
        limits = [float(special.chdtri(df, p)) for p in (tail, 1.0 - tail)]
        low, high = (float(np.sqrt(self.groups.variance_at(limit))) for limit in limits)
        return Interval(low, high)

    def __str__(self) -> str:
        """One line for people."""
        low, high = self.confidence_interval()
        return (
            f"true values of {len(self.groups.value)} groups have standard deviation"
            f" {self.estimate:.3g} ({low:.3g} to {high:.3g})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGrades:
    """Grades of groups, 1 for the highest values.

    Parameters
    ----------
    grade : array of shape (G,)
        Of every group.
    shrunk : array of shape (G,)
        Expected true value of each group on the scale of `ManyGroups.scores`, under a normal law.
    ordered : int
        Pairs of groups in different grades.
    misranked : float
        Expected share of these pairs whose true order is another, or a tie; 0 without pairs.
    spread : GroupSpread
        How much the true values differ.
    """

    grade: IntArray
    shrunk: FloatArray
    ordered: int
    misranked: float
    spread: GroupSpread

    @property
    def n_grades(self) -> int:
        """How many grades there are."""
        return int(self.grade.max())

    def __str__(self) -> str:
        """Lines for people."""
        pairs = len(self.grade) * (len(self.grade) - 1) // 2
        return (
            f"{self.spread}\n{self.n_grades} grades order {self.ordered:,} of {pairs:,} pairs;"
            f" {self.misranked:.1%} of these are expected to be wrong"
        )


def grade_groups(groups: ManyGroups, *, level: float = 0.05) -> GroupGrades:
    """Cut many groups into grades of which few pairs are wrongly ordered.

    Parameters
    ----------
    groups : ManyGroups
        Means or rates of independent groups.
    level : float, default 0.05
        Largest expected share of wrongly ordered pairs among the pairs in different grades, and
        level of the test of equality without whose rejection there is one grade.

    Returns
    -------
    GroupGrades

    Examples
    --------
    Forty branches of 400 customers, half of which approve 30% and half 60%:

    >>> import numpy as np
    >>> rate = np.repeat([0.3, 0.6], 20) + np.tile([-0.02, 0.0, 0.02, 0.01], 10)
    >>> found = grade_groups(ManyGroups(value=rate, n=np.full(40, 400.0)))
    >>> found.n_grades, found.grade[0], found.grade[-1]
    (2, np.int64(2), np.int64(1))

    The twenty are told from the others, and not from each other.
    """
    check_fraction("level", level)
    z, variance = groups.scores()
    spread = groups.spread
    shrunk, normal = _normal_law(z, variance)
    order = np.lexsort((groups.n, z, -shrunk))
    grade = np.ones(len(z), dtype=np.int64)
    if spread.p_value > level:
        return GroupGrades(grade=grade, shrunk=shrunk, ordered=0, misranked=0.0, spread=spread)
    wrong = np.maximum(
        _normal_errors(shrunk[order], normal[order]), _ties(z[order], variance[order])
    )
    block = _best_cut(np.triu(wrong, 1), level)
    grade[order] = block + 1
    apart = block[:, None] < block[None, :]
    ordered = int(apart.sum())
    return GroupGrades(
        grade=grade,
        shrunk=shrunk,
        ordered=ordered,
        misranked=float(wrong[apart].sum() / ordered) if ordered else 0.0,
        spread=spread,
    )


def _normal_law(z: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and variances of the true values given the observed ones, under a normal law."""
    groups = ManyGroups(value=z, n=np.ones(len(z)), variance=variance)
    # The variance at which Q has its expected value (Paule and Mandel).
    tau2 = groups.variance_at(len(z) - 1.0)
    total = variance + tau2
    mean = float((z / total).sum() / (1.0 / total).sum())
    return mean + tau2 / total * (z - mean), tau2 * variance / total


def _normal_errors(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Chance that the first of two groups is not above the second; 1/2 or more for ties."""
    sd = np.sqrt(variance[:, None] + variance[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        root = (mean[:, None] - mean[None, :]) / sd
    return np.asarray(special.ndtr(-np.where(sd > 0.0, root, 0.0)))


def _ties(z: FloatArray, variance: FloatArray) -> FloatArray:
    """Chance that two groups are equal in truth, given how far they and all pairs are apart."""
    root = (z[:, None] - z[None, :]) / np.sqrt(variance[:, None] + variance[None, :])
    apart = np.abs(root[np.triu_indices(len(z), 1)])
    # Equal groups have a root above its median in half of the pairs.
    equal = min(2.0 * float((apart < special.ndtri(0.75)).mean()), 1.0)
    edges = np.arange(0.0, apart.max() + 4.0 * _WIDTH, _STEP)
    middle = 0.5 * (edges[1:] + edges[:-1])
    share = np.histogram(apart, edges)[0] / len(apart)
    kernel = np.exp(-0.5 * ((middle[:, None] - middle) / _WIDTH) ** 2)
    kernel += np.exp(-0.5 * ((middle[:, None] + middle) / _WIDTH) ** 2)
    density = kernel @ share / (_WIDTH * np.sqrt(2.0 * np.pi))
    # Roots of equal groups after the same smoothing, folded at zero.
    spread = np.sqrt(1.0 + _WIDTH**2)
    null = 2.0 * np.exp(-0.5 * (middle / spread) ** 2) / (spread * np.sqrt(2.0 * np.pi))
    chance = np.minimum(equal * null / np.maximum(density, 1e-300), 1.0)
    return np.asarray(np.interp(np.abs(root), middle, chance))


def _best_cut(wrong: FloatArray, level: float) -> IntArray:
    """Cut an ordered list so that most pairs are apart, and few of these are expected wrong."""
    size = len(wrong)
    low = 1.0

    def within(price: float) -> tuple[IntArray, bool]:
        block = _cheapest(wrong, price)
        apart = block[:, None] < block[None, :]
        return block, float(wrong[apart].sum()) <= level * float(apart.sum())

    block, fine = within(low)
    if fine:
        return block
    # At this price no pair that may be wrong is worth it.
    block, high = np.zeros(size, dtype=np.int64), 1e12
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        candidate, fine = within(middle)
        if fine:
            block, high = candidate, middle
        else:
            low = middle
    return block


def _cheapest(wrong: FloatArray, price: float) -> IntArray:
    """Cut so that the pairs in one block miss least of 1 - price * (chance of being wrong)."""
    size = len(wrong)
    gain = np.triu(1.0 - price * wrong, 1)
    # inside[i] is the gain of all pairs in i, ..., j - 1, which a block there gives up.
    inside = np.zeros(size + 1)
    best, start = np.zeros(size + 1), np.zeros(size + 1, dtype=np.int64)
    for j in range(1, size + 1):
        column = gain[:j, j - 1]
        inside[:j] += np.cumsum(column[::-1])[::-1]
        total = best[:j] + inside[:j]
        start[j] = int(total.argmin())
        best[j] = total[start[j]]
    block, j, k = np.zeros(size, dtype=np.int64), size, 0
    while j > 0:
        block[start[j] : j] = k
        j, k = int(start[j]), k + 1
    return np.asarray(block.max() - block)
