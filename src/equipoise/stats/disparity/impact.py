r"""The regulator's table: selection rates, impact ratios to the most selected, and what they show.

The impact ratio of a category is its selection rate over that of the most selected category. Beside
it stand a joint interval that allows for the choice of that category (`extremes`), and the figures
that courts and agencies read: standard deviations, exact tests, the shortfall, and how few
decisions would turn the result. These companions compare with the category observed as highest as
if it had been named before; they are not adjusted for choosing it.

References
----------
.. [1] Uniform Guidelines on Employee Selection Procedures, 29 CFR 1607.4 D; Questions and Answers
   20 and 21, 44 FR 11996 (1979).
.. [2] Rules of the City of New York, title 6, sections 5-300 to 5-304.
.. [3] Hazelwood School District v. United States, 433 U.S. 299 (1977), note 17; Waisome v. Port
   Authority, 948 F.2d 1370 (1991).
.. [4] R. D. Boschloo (1970), Raised conditional level of significance for the 2 x 2 table when
   testing the equality of two probabilities, Statistica Neerlandica 24, 1-9.
   doi:10.1111/j.1467-9574.1970.tb00104.x
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import check_finite, check_fraction, check_number
from equipoise._typing import AnyArray, BoolArray, Extreme, FloatArray, IntArray, Rng, Scale
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.binomial import log_ways
from equipoise.stats.disparity.category_means import CategoryMeans
from equipoise.stats.disparity.extremes import (
    ExtremeComparison,
    compare_counts_with_extreme,
    compare_means_with_extreme,
    permutation_p_value,
)
from equipoise.stats.summary import Interval

__all__ = [
    "Companions",
    "ImpactRatioTest",
    "Reading",
    "boschloo_p_value",
    "companions",
    "eligible_categories",
    "fisher_p_value",
    "impact_ratio_test",
    "observed_below",
    "odds_ratio_interval",
    "readings",
]

Reading: TypeAlias = Literal["beyond", "apart, within", "apart", "within", "not settled"]

TWO_STANDARD_DEVIATIONS = 1.96
"""What "two or three standard deviations" is read as."""

_LARGEST_TABLE = 1_000_000
_GRID = 512
_TIE = 1e-7
_DEVIATIONS, _ROWS = 60.0, 50
_EXPECTED = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Companions:
    """What is read beside impact ratios; each row against one category, named beforehand.

    Parameters
    ----------
    z : array of shape (m,)
        Difference of rates in standard deviations, with the pooled rate and no correction.
    fisher, boschloo : array of shape (m,)
        Two-sided exact p-values, conditional on all margins and unconditional; the second is NaN
        for tables of more than a million outcomes.
    shortfall, shortfall_parity : array of shape (m,)
        Selections missing to the common rate, and to the rate of the other category.
    flip_moved : array of shape (m,)
        Selections to move from the other category until the rates are no longer lower.
    flip_added : array of shape (m,)
        Selections to add until the difference is below 1.96 standard deviations; -1 if never.
    odds_ratio, odds_low, odds_high : array of shape (m,)
        With its score interval; NaN where a zero makes it undefined.
    """

    z: FloatArray
    fisher: FloatArray
    boschloo: FloatArray
    shortfall: FloatArray
    shortfall_parity: FloatArray
    flip_moved: IntArray
    flip_added: IntArray
    odds_ratio: FloatArray
    odds_low: FloatArray
    odds_high: FloatArray


def companions(
    selected: AnyArray, n: AnyArray, other: int, *, confidence_level: float = 0.95
) -> Companions:
    """Compare every category with one of them in the ways that courts and agencies do.

    Parameters
    ----------
    selected, n : array of shape (m,)
        Selected and rows of each category, at least one row.
    other : int
        Number of the category that the others are compared with.
    confidence_level : float, default 0.95
        Of the intervals of the odds ratios.

    Returns
    -------
    Companions

    Examples
    --------
    Of 20 women 3 were hired, of 80 men 16: the impact ratio is 75%. What if it had been one more?

    >>> beside = companions(np.array([3, 16]), np.array([20, 80]), 1)
    >>> int(beside.flip_moved[0]), round(float(beside.z[0]), 2)
    (1, -0.51)

    One person more, and one man less, would have turned it.
    """
    x, rows = np.asarray(selected, dtype=np.int64), np.asarray(n, dtype=np.int64)
    x2, n2 = x[other], rows[other]
    pooled = (x + x2) / (rows + n2)
    z = _standard_deviations(x, rows, x2, n2)
    odds = [
        odds_ratio_interval(int(a), int(b), int(x2), int(n2), confidence_level=confidence_level)
        for a, b in zip(x, rows, strict=True)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = x * (n2 - x2) / ((rows - x) * x2)
    moved = -((x * n2 - x2 * rows) // (rows + n2))
    tables = [(int(a), int(b), int(x2), int(n2)) for a, b in zip(x, rows, strict=True)]
    own = np.arange(len(x)) == other
    return Companions(
        z=z,
        fisher=np.array([fisher_p_value(*table) for table in tables]),
        boschloo=np.array(
            [
                boschloo_p_value(*table) if table[1] * table[3] <= _LARGEST_TABLE else np.nan
                for table in tables
            ]
        ),
        shortfall=np.where(own, 0.0, rows * pooled - x),
        shortfall_parity=rows * x2 / n2 - x,
        flip_moved=np.where(own, 0, np.maximum(moved, 0)),
        flip_added=_flips_added(x, rows, int(x2), int(n2)),
        odds_ratio=np.where(np.isfinite(ratio), ratio, np.nan),
        odds_low=np.array([low for low, _ in odds]),
        odds_high=np.array([high for _, high in odds]),
    )


def _standard_deviations(
    x1: AnyArray, n1: AnyArray | int, x2: AnyArray | int, n2: AnyArray | int
) -> FloatArray:
    pooled = (x1 + x2) / (n1 + n2)
    variance = pooled * (1.0 - pooled) * (1.0 / n1 + 1.0 / n2)
    gap = x1 / n1 - x2 / n2
    return np.asarray(
        np.where(variance > 0.0, gap / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    )


def _flips_added(x1: IntArray, n1: IntArray, x2: int, n2: int) -> IntArray:
    """Smallest number of further ones; standard deviations grow with it, so halving finds it."""
    low, high = np.zeros_like(x1), n1 - x1 + 1
    while np.any(low < high):
        middle = (low + high) // 2
        enough = _standard_deviations(x1 + middle, n1, x2, n2) > -TWO_STANDARD_DEVIATIONS
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    reached = np.minimum(low, n1 - x1)
    small = np.abs(_standard_deviations(x1 + reached, n1, x2, n2)) < TWO_STANDARD_DEVIATIONS
    return np.where(small & (low <= n1 - x1), reached, -1)


def fisher_p_value(x1: int, n1: int, x2: int, n2: int, *, mid_p: bool = False) -> float:
    """Two-sided p-value of Fisher's exact test: all tables no more likely than the observed one.

    Parameters
    ----------
    x1, n1, x2, n2 : int
        Ones and rows of the two samples.
    mid_p : bool, default False
        Count tables as likely as the observed one by half.

    Returns
    -------
    float

    Examples
    --------
    >>> round(fisher_p_value(3, 20, 16, 80), 3)
    0.757
    """
    count, chance = _hypergeometric(n1, n2, x1 + x2, near=x1)
    observed = chance[x1 - count[0]]
    p = chance[chance <= observed * (1.0 + _TIE)].sum()
    if mid_p:
        p -= 0.5 * chance[np.abs(chance - observed) <= observed * _TIE].sum()
    return min(float(p), 1.0)


def _hypergeometric(
    n1: int, n2: int, total: int, *, near: int | None = None
) -> tuple[IntArray, FloatArray]:
    """Possible counts of the first sample given the total, and their chances.

    All of them, or those that matter for the p-value of the count `near`: beyond 60 standard
    deviations from the likeliest count, and from this one, no chance is left to add.
    """
    first, last = max(0, total - n2), min(n1, total)
    if near is not None:
        n = n1 + n2
        likeliest = (n1 + 1) * (total + 1) // (n + 2)
        variance = total * (n1 / n) * (n2 / n) * (n - total) / max(n - 1, 1)
        reach = int(_DEVIATIONS * np.sqrt(variance)) + _ROWS
        first = max(first, min(likeliest, near) - reach)
        last = min(last, max(likeliest, near) + reach)
    count = np.arange(first, last + 1)
    at = count[:-1].astype(np.float64)
    steps = np.log((n1 - at) * (total - at) / ((at + 1.0) * (n2 - total + at + 1.0)))
    log = np.concatenate([[0.0], np.cumsum(steps)])
    chance = np.exp(log - log.max())
    return count, chance / chance.sum()


def boschloo_p_value(x1: int, n1: int, x2: int, n2: int) -> float:
    """Two-sided p-value of Boschloo's exact unconditional test: twice the smaller one-sided one.

    Tables are ordered by Fisher's one-sided p-value; the chance of a table at least as extreme is
    the largest over all common rates. Never less powerful than Fisher's test, and strict.

    Parameters
    ----------
    x1, n1, x2, n2 : int
        Ones and rows of the two samples.

    Returns
    -------
    float

    Examples
    --------
    >>> round(boschloo_p_value(3, 20, 16, 80), 3)
    0.714
    """
    above = _boschloo_greater(x1, n1, x2, n2)
    below = _boschloo_greater(n1 - x1, n1, n2 - x2, n2)
    return min(2.0 * min(above, below), 1.0)


def _boschloo_greater(x1: int, n1: int, x2: int, n2: int) -> float:
    """One-sided p-value of "the first rate is larger"."""
    tail = np.ones((n1 + 1, n2 + 1))
    for total in range(n1 + n2 + 1):
        count, chance = _hypergeometric(n1, n2, total)
        tail[count, total - count] = np.cumsum(chance[::-1])[::-1]
    # Fisher's tail grows in the second count: the extreme tables are those up to an edge.
    edge = np.count_nonzero(tail <= tail[x1, x2] * (1.0 + _TIE), axis=1) - 1
    kept = np.flatnonzero(edge >= 0)
    edge = edge[kept]
    ways = log_ways(n1, kept.astype(np.float64))

    def chance_at(rate: FloatArray) -> FloatArray:
        p = rate[:, None]
        own = np.exp(ways + special.xlogy(kept, p) + special.xlog1py(n1 - kept, -p))
        return np.asarray((own * special.bdtr(edge.astype(np.float64), n2, p)).sum(axis=1))

    grid = (np.arange(_GRID) + 0.5) / _GRID
    step = 1.0 / _GRID
    for _ in range(5):
        best = grid[chance_at(grid).argmax()]
        largest = float(chance_at(np.array([best]))[0])
        step /= 8.0
        grid = np.clip(best + step * np.arange(-16, 17), 1e-12, 1.0 - 1e-12)
    return largest


def odds_ratio_interval(
    x1: int, n1: int, x2: int, n2: int, *, confidence_level: float = 0.95
) -> tuple[float, float]:
    """Score interval of the odds ratio of two proportions; it agrees with the pooled z at one.

    Parameters
    ----------
    x1, n1, x2, n2 : int
        Ones and rows of the two samples.
    confidence_level : float, default 0.95
        Of the interval.

    Returns
    -------
    low, high : float
        Zero or infinite where nothing on that side is rejected; NaN when no table but the observed
        one has its margins.

    Examples
    --------
    >>> low, high = odds_ratio_interval(3, 20, 16, 80)
    >>> round(low, 2), round(high, 2)
    (0.2, 2.56)
    """
    level = check_fraction("confidence_level", confidence_level)
    critical = float(special.ndtri((1.0 + level) / 2.0))
    total = x1 + x2
    first, last = max(0, total - n2), min(n1, total)
    if first == last:
        return np.nan, np.nan

    def root(expected: float) -> float:
        """Root when the first count is expected to be `expected`, which fixes the odds ratio."""
        second = total - expected
        own, rest = expected * (1.0 - expected / n1), second * (1.0 - second / n2)
        return (x1 - expected) * float(np.sqrt(1.0 / own + 1.0 / rest))

    def odds(expected: float) -> float:
        second = total - expected
        below = (n1 - expected) * second
        return expected * (n2 - second) / below if below > 0.0 else np.inf

    ends = []
    for limit, open_end in ((first, 0.0), (last, np.inf)):
        near, far = float(x1), float(limit)
        if near == far:
            ends.append(open_end)
            continue
        for _ in range(100):
            middle = 0.5 * (near + far)
            near, far = (near, middle) if abs(root(middle)) > critical else (middle, far)
        ends.append(odds(near))
    return ends[0], ends[1]


def eligible_categories(n: AnyArray, *, min_share: float = 0.02) -> BoolArray:
    """Categories with at least a share of the rows; smaller ones may be left out of the ratios.

    Parameters
    ----------
    n : array of shape (m,)
        Rows of known category.
    min_share : float, default 0.02
        Smallest share, 2% in [2]_.

    Returns
    -------
    array of bool, shape (m,)
    """
    rows = np.asarray(n, dtype=np.float64)
    return np.asarray(
        rows >= check_number("min_share", min_share, low=0.0, high=1.0) * rows.sum() - 1e-9
    )


def observed_below(
    selected: AnyArray, n: AnyArray, other: int, *, threshold: float = 0.8
) -> BoolArray:
    """Categories whose observed ratio is below a threshold; exactly four fifths is not below.

    Parameters
    ----------
    selected, n : array of shape (m,)
        Selected and rows.
    other : int
        Category of the denominator.
    threshold : float, default 0.8
        Compared in whole numbers where it is a simple fraction.

    Returns
    -------
    array of bool, shape (m,)

    Examples
    --------
    48% against 60% is 80%, which is not below.

    >>> observed_below(np.array([48, 60]), np.array([100, 100]), 1).tolist()
    [False, False]
    """
    x, rows = np.asarray(selected, dtype=np.float64), np.asarray(n, dtype=np.float64)
    own, limit = x * rows[other], threshold * x[other] * rows
    return np.asarray(own < limit * (1.0 - 1e-12))


def readings(
    low: FloatArray, high: FloatArray, threshold: float = 0.8, *, natural: float = 1.0
) -> tuple[Reading, ...]:
    """What a joint interval of a disparity to the highest category shows about one threshold.

    Parameters
    ----------
    low, high : array of shape (m,)
        Joint interval.
    threshold : float, default 0.8
        Four fifths; above `natural` the disparities are those to the lowest category.
    natural : float, default 1
        Value of no disparity: 1 for ratios, 0 for differences.

    Returns
    -------
    tuple of str
        "beyond": shown beyond the threshold; "apart, within": shown to differ from the highest, and
        within the threshold; "apart": shown to differ, the threshold not settled; "within":
        compatible with equality, and shown within the threshold; "not settled": compatible with
        both.

    Examples
    --------
    >>> readings(np.array([0.5, 0.85, 0.6]), np.array([0.7, 1.0, 1.0]))
    ('beyond', 'within', 'not settled')
    """
    result: list[Reading] = []
    up = threshold > natural
    for one, two in zip(low, high, strict=True):
        # Read from no disparity outwards, on either side of it.
        near, far, limit, none = (
            (-one, -two, -threshold, -natural) if up else (two, one, threshold, natural)
        )
        if near < limit:
            result.append("beyond")
        elif near < none:
            result.append("apart, within" if far >= limit else "apart")
        else:
            result.append("within" if far >= limit else "not settled")
    return tuple(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactRatioTest:
    """Impact ratios of all categories of one table.

    Arrays have one entry for each category; those of excluded categories are NaN where a
    comparison is needed.

    Parameters
    ----------
    categories : tuple of str
        Labels.
    n, selected : array of shape (m,)
        Rows, and the sum of the outcome over them (weighted if weights are given).
    rate : array of shape (m,)
        Mean outcome.
    compared : array of shape (m,)
        Categories that are not too small to be compared.
    unknown : int
        Rows without a known category, which count nowhere.
    comparison : ExtremeComparison
        Of the categories compared.
    companions : Companions or None
        Of the categories compared; None for outcomes that are not counts.
    permutation_p_value : float or None
        Exact test of equal rates where an expected count is below 5.
    """

    categories: tuple[str, ...]
    n: IntArray
    selected: FloatArray
    rate: FloatArray
    compared: BoolArray
    unknown: int
    comparison: ExtremeComparison
    companions: Companions | None
    permutation_p_value: float | None

    @property
    def estimate(self) -> FloatArray:
        """Impact ratios (or differences) to the extreme category."""
        return self._whole(self.comparison.estimate)

    @property
    def statistic(self) -> float:
        """Largest absolute root of all pairs of categories."""
        return self.comparison.statistic

    @property
    def p_value(self) -> float:
        """P-value of "all categories are equal"."""
        return self.comparison.p_value

    def p_values(self, null: float | None = None) -> FloatArray:
        """Adjusted p-values of "as high as `null` times the highest".

        Parameters
        ----------
        null : float, optional
            Disparity under the null; by default none.

        Returns
        -------
        array of shape (m,)
        """
        return self._whole(self.comparison.p_values(null))

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Intervals that cover together, whichever category is truly the extreme one.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Joint coverage.

        Returns
        -------
        Interval
        """
        low, high = self.comparison.confidence_interval(confidence_level)
        return Interval(self._whole(low), self._whole(high))

    def __str__(self) -> str:
        low, high = map(np.asarray, self.confidence_interval())
        p = self.p_values()
        name = "ratio" if self.comparison.scale == "ratio" else "difference"
        width = max(8, *(len(label) for label in self.categories))
        count = int(self.compared.sum())
        title = (
            f"{name} to the {self.comparison.reference} of {count} categories, chosen from these"
        )
        lines = [
            f"{title} data; p = {self.p_value:.3g} that all are equal",
            f"{'category':<{width}} {'n':>8} {'rate':>8} {name:>10}  joint 95% interval  p",
        ]
        for i, label in enumerate(self.categories):
            row = f"{label:<{width}} {self.n[i]:>8} {self.rate[i]:>8.3f} "
            if self.compared[i]:
                row += f"{self.estimate[i]:>10.3f}  {low[i]:.3f} to {high[i]:.3f}      {p[i]:.3g}"
            else:
                row += f"{'-':>10}  too small to be compared"
            lines.append(row)
        if self.unknown:
            lines.append(f"{self.unknown} rows of unknown category are not counted.")
        return "\n".join(lines)

    def _whole(self, values: FloatArray) -> FloatArray:
        result = np.full(len(self.categories), np.nan)
        result[self.compared] = values
        return result


def impact_ratio_test(
    selected: AnyArray,
    group: AnyArray,
    *,
    reference: Extreme = "highest",
    scale: Scale = "ratio",
    weight: AnyArray | None = None,
    cluster: AnyArray | None = None,
    min_share: float = 0.02,
    unknown: Sequence[object] = (),
    rng: Rng = None,
) -> ImpactRatioTest:
    """Compare the selection rate of every category with the highest one.

    The null hypothesis is that all categories have the same rate. Intervals and p-values allow for
    the highest category having been chosen from the data.

    Parameters
    ----------
    selected : array of shape (n,)
        0 or 1; or any outcome whose mean is compared.
    group : array of shape (n,)
        Category of each row; None, NaN and the labels of `unknown` are unknown.
    reference : {"highest", "lowest"}
        Which category the others are compared with.
    scale : {"ratio", "difference"}
        Rate over the extreme rate, or minus it.
    weight, cluster : array of shape (n,), optional
        Sampling weight of a row, and the unit it belongs to.
    min_share : float, default 0.02
        Categories with a smaller share of the rows of known category are not compared.
    unknown : sequence of labels
        Labels that mean "not known".
    rng : int, Generator or None
        Source of the permutations, and of the joint law where units are in several categories.

    Returns
    -------
    ImpactRatioTest

    Examples
    --------
    Does any of three groups have a lower rate than the most selected one?

    >>> selected = np.repeat([1, 0, 1, 0, 1, 0], [30, 70, 25, 75, 36, 64])
    >>> test = impact_ratio_test(selected, np.repeat(["a", "b", "c"], 100))
    >>> test.estimate.round(2).tolist(), round(test.p_value, 2)
    ([0.83, 0.69, 1.0], 0.21)

    A ratio of 0.69 is what equal groups of this size often show.
    """
    y = check_finite("selected", selected, ndim=1)
    labels, code, missing = _categories(np.asarray(group, dtype=object), unknown)
    if len(code) != len(y):
        raise InvalidParameterError(
            f"`selected` and `group` need one entry for each row; got {len(y)} and {len(code)}."
        )
    known = code >= 0
    y, code = y[known], code[known]
    n = np.bincount(code, minlength=len(labels))
    compared = eligible_categories(n, min_share=min_share)
    if compared.sum() < 2:
        raise GroupTooSmallError(
            f"A comparison needs two categories of at least {min_share:.0%} of the {len(y)} rows "
            f"of known category; got {int(compared.sum())}."
        )
    counts = weight is None and cluster is None and bool(np.isin(y, (0.0, 1.0)).all())
    rows = np.ones(len(y)) if weight is None else check_finite("weight", weight, ndim=1)[known]
    total, size = (
        np.asarray(np.bincount(code, part, len(labels)), dtype=np.float64)
        for part in (rows * y, rows)
    )
    beside, permutation = None, None
    if counts:
        x, m = total[compared], size[compared]
        comparison = compare_counts_with_extreme(x, m, reference=reference, scale=scale)
        beside = companions(x, m, comparison.extreme)
        common = x.sum() / m.sum()
        if m.min() * min(common, 1.0 - common) < _EXPECTED:
            permutation = permutation_p_value(x, m, rng=rng)
    else:
        part = compared[code]
        means = CategoryMeans.from_rows(
            y[part],
            (np.cumsum(compared) - 1)[code[part]],
            n_categories=int(compared.sum()),
            weight=None if weight is None else rows[part],
            cluster=None if cluster is None else np.asarray(cluster)[known][part],
        )
        _check_units(means, [label for label, kept in zip(labels, compared, strict=True) if kept])
        comparison = compare_means_with_extreme(means, reference=reference, scale=scale, rng=rng)
    return ImpactRatioTest(
        categories=tuple(labels),
        n=n.astype(np.int64),
        selected=total,
        rate=total / size,
        compared=compared,
        unknown=missing,
        comparison=comparison,
        companions=beside,
        permutation_p_value=permutation,
    )


def _categories(group: AnyArray, unknown: Sequence[object]) -> tuple[list[str], IntArray, int]:
    """Labels in order, the code of each row (-1 if unknown), and how many are unknown."""
    known = np.array(
        [label is not None and label == label and label not in unknown for label in group],  # noqa: PLR0124
        dtype=np.bool_,
    )
    labels, inner = np.unique(group[known].astype(str), return_inverse=True)
    code = np.full(len(group), -1, dtype=np.int64)
    code[known] = inner
    return labels.tolist(), code, int(np.count_nonzero(~known))


def _check_units(means: CategoryMeans, labels: list[str]) -> None:
    few = np.flatnonzero(~means.enough)
    if len(few):
        raise GroupTooSmallError(
            f"Category {labels[few[0]]!r} has {means.sides.n_units[few[0]]:.0f} units, effectively "
            f"{means.sides.n_eff[few[0]]:.1f}; a comparison needs 4. Merge it with another."
        )
