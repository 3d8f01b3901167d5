r"""Mean outcomes at a decision threshold: are people at the cut-off alike in two groups.

Labels often exist only above the threshold, so each curve is fitted to rows with scores of at least
the threshold and read off at its end. A local line has the same order of bias there as inside;
Nadaraya-Watson does not, and its bias differs with the slope of each group.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from equipoise._checks import check_finite, check_fraction, check_number
from equipoise._numbers import number
from equipoise._typing import AnyArray, FloatArray, IntArray, ParityUnit
from equipoise.exceptions import DataError, GroupTooSmallError, InvalidParameterError
from equipoise.stats.rows import check_lengths, code_clusters, code_pair
from equipoise.stats.scores.cells import (
    AnyScoreCells,
    ScoreCells,
    check_unit,
    influence_moments,
)
from equipoise.stats.scores.curves import INFORMATION_NEEDED, UNITS_NEEDED, informative
from equipoise.stats.scores.kernel import (
    difference_block,
    group_curve_block,
    rule_of_thumb,
    smoother,
)
from equipoise.stats.summary import Interval, p_line, summary_table

__all__ = ["MarginalOutcomeTest", "compare_margins", "marginal_outcome_test"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalOutcomeTest:
    """Mean outcomes of two groups at the threshold, and their difference.

    Parameters
    ----------
    threshold, bandwidth : float
        Where, and how widely smoothed.
    estimate, se : float
        Mean outcome of group 1 minus that of group 0 at the threshold, and its standard error.
    statistic, degrees, p_value : float
        t statistic with Satterthwaite degrees of freedom.
    outcome, outcome_se, mean_above : array of shape (2,)
        Mean outcome at the threshold and its standard error; mean outcome of all above it.
    n_local, n_above : array of shape (2,)
        Units with a score within a bandwidth above the threshold; rows above it.
    groups : tuple
        Labels of group 0 and group 1, if known.
    """

    threshold: float
    bandwidth: float
    estimate: float
    se: float
    statistic: float
    degrees: float
    p_value: float
    outcome: FloatArray
    outcome_se: FloatArray
    mean_above: FloatArray
    n_local: IntArray
    n_above: IntArray
    groups: tuple[Hashable, ...] = (0, 1)

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return an interval of the difference at the threshold.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval; it holds zero exactly when the p-value exceeds one minus the level.

        Returns
        -------
        Interval
        """
        tail = 0.5 * (1.0 - check_fraction("confidence_level", confidence_level))
        shrink = float(np.sqrt((self.degrees - 1.0) / self.degrees))
        half = -float(special.stdtrit(self.degrees, tail)) * self.se / shrink
        return Interval(self.estimate - half, self.estimate + half)

    def __str__(self) -> str:
        return summary_table(
            f"Mean outcome at {number(self.threshold)}: "
            + p_line(self.statistic, self.p_value, df=round(self.degrees, 1), name="t"),
            {
                "group": [*self.groups, f"{self.groups[1]} minus {self.groups[0]}"],
                "n near": [*self.n_local.tolist(), None],
                "outcome": [*self.outcome.tolist(), self.estimate],
                "95% interval": [None, None, self.confidence_interval()],
            },
        )


def marginal_outcome_test(
    y_true: AnyArray,
    y_score: AnyArray,
    group: AnyArray,
    threshold: float,
    *,
    reference: object = None,
    cluster: AnyArray | None = None,
    unit: ParityUnit | None = None,
    weight: AnyArray | None = None,
    bandwidth: float | None = None,
) -> MarginalOutcomeTest:
    r"""Test that two groups have the same mean outcome at the threshold.

    The null hypothesis is :math:`E(Y | S = t, G = 1) = E(Y | S = t, G = 0)` at the threshold t.

    Parameters
    ----------
    y_true : array of shape (n,)
        Outcome; below the threshold it is not used and may be NaN.
    y_score : array of shape (n,)
        Score; positive decisions are those of at least `threshold`.
    group : array of shape (n,)
        Two labels.
    threshold : float
        Where decisions change.
    reference : object, optional
        Label of group 0; by default the first in order.
    cluster : array of shape (n,), optional
        Who a row belongs to.
    unit : {"cluster", "row"}, optional
        Whether clusters or rows count alike; must be named with `cluster`.
    weight : array of shape (n,), optional
        Sampling weights.
    bandwidth : float, optional
        Standard deviation of the kernel; by default the rule of thumb for all scores.

    Returns
    -------
    MarginalOutcomeTest

    Raises
    ------
    GroupTooSmallError
        If a group has too few units just above the threshold.

    Notes
    -----
    *Deviations from* [1]_: section 6 uses a one-sided Nadaraya-Watson estimate, whose bias is of
    the order of the bandwidth and does not cancel when slopes differ; with slopes 0.9 and 0.2 it
    rejects equal marginal outcomes 35% (1,000 users) to 71% (4,000) of the time at level 5%.

    References
    ----------
    .. [1] DiCiccio, Hsu, Yu, Nandy and Basu, "Detection and Mitigation of Algorithmic Bias via
       Predictive Rate Parity".

    Examples
    --------
    Loans are granted from score 0.5. Group 1 repays more often at every score. At the cut-off too?

    >>> import numpy as np
    >>> from equipoise.stats import marginal_outcome_test
    >>> rng = np.random.default_rng(4)
    >>> group, score = rng.integers(2, size=9000), rng.uniform(size=9000)
    >>> repaid = (rng.uniform(size=9000) < 0.2 + 0.5 * score + 0.2 * group).astype(float)
    >>> repaid[score < 0.5] = np.nan
    >>> test = marginal_outcome_test(repaid, score, group, 0.5)
    >>> low, high = test.confidence_interval(0.95)
    >>> test.p_value < 0.01, low < 0.2 < high
    (True, True)

    It does: group 1 was held to a higher standard.
    """
    check_lengths(y_true=y_true, y_score=y_score, group=group, cluster=cluster, weight=weight)
    score = check_finite("y_score", y_score, ndim=1)
    at = check_number("threshold", threshold)
    outcome = np.where(score >= at, np.asarray(y_true, dtype=np.float64), 0.0)
    pair = code_pair(group, reference)
    cells = ScoreCells.from_rows(
        outcome,
        score,
        pair.code,
        n_groups=2,
        cluster=code_clusters(cluster),
        unit=check_unit(unit, cluster),
        weight=weight,
    )
    return replace(compare_margins(cells, at, bandwidth=bandwidth), groups=pair.labels)


def compare_margins(
    cells: AnyScoreCells,
    threshold: float,
    *,
    bandwidth: float | None = None,
) -> MarginalOutcomeTest:
    """Compare group 1 and group 0 of `cells` at the threshold; see `marginal_outcome_test`.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        All rows; outcomes below the threshold are not used.
    threshold, bandwidth
        As in `marginal_outcome_test`.

    Returns
    -------
    MarginalOutcomeTest
    """
    highest = float(cells.support[-1])
    if threshold >= highest:
        raise DataError(
            f"`threshold` must be below the highest score, {highest:g}; got {threshold:g}."
        )
    h = rule_of_thumb(cells) if bandwidth is None else check_number("bandwidth", bandwidth)
    if h <= 0.0:
        raise InvalidParameterError(f"`bandwidth` must be positive; got {h:g}.")
    above = cells.above(threshold)
    if not above.n_rows.sum():
        raise DataError(f"no score of these groups is above the threshold {threshold:g}.")
    low, high = above.outcome_range
    if low == high:
        raise DataError("outcomes must vary above the threshold; every one is the same.")
    mass, total = above.sums()
    at = np.array([threshold])
    n_local = above.units_within(at, at + h)[:, 0]
    _check_information(n_local, above)
    fits = [smoother(at, above.support, m, h) for m in mass]
    outcome = np.array([float((f.level @ t)[0]) for f, t in zip(fits, total, strict=True)])
    blocks = [group_curve_block(k, fits[k], at, above.support, total) for k in (0, 1)]
    blocks.append(difference_block(fits, at, above.support, total))
    moments = above.reduce(influence_moments, blocks)
    variance = np.diag(moments.covariance)
    difference = float(outcome[1] - outcome[0])
    se = float(np.sqrt(variance[2]))
    degrees = max(float(variance[2] ** 2 / moments.fourth[2]), 1.0 + 1e-9)
    shrink = float(np.sqrt((degrees - 1.0) / degrees))
    statistic = difference / se * shrink
    return MarginalOutcomeTest(
        threshold=threshold,
        bandwidth=h,
        estimate=difference,
        se=se,
        statistic=statistic,
        degrees=degrees,
        p_value=float(2.0 * special.stdtr(degrees, -abs(statistic))),
        outcome=outcome,
        outcome_se=np.sqrt(variance[:2]),
        mean_above=total.sum(axis=1) / mass.sum(axis=1),
        n_local=n_local,
        n_above=above.n_rows,
    )


def _check_information(n_local: IntArray, above: AnyScoreCells) -> None:
    mass, total = above.sums()
    middle = float(total.sum() / max(mass.sum(), 1e-300))
    if not informative(n_local, np.full(2, middle), binary=above.binary).all():
        need = (
            f"{INFORMATION_NEEDED / max(middle * (1.0 - middle), 1e-3):.0f}"
            if above.binary
            else f"{UNITS_NEEDED}"
        )
        raise GroupTooSmallError(
            f"each group needs about {need} units within a bandwidth above the threshold; the"
            f" groups have {int(n_local[0])} and {int(n_local[1])}. Widen the bandwidth or gather"
            " more data."
        )
