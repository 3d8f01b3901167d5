"""Inequality of benefits within and between groups, on arrays."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from equipoise._checks import check_option
from equipoise._typing import AnyArray, EntropyPart, FloatArray, IntArray, Rng
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.inequality.benefits import BenefitMoments
from equipoise.stats.inequality.decomposition import (
    BetweenTest,
    EntropyDecomposition,
    between_interval,
    between_test,
    decompose,
    log_interval,
)
from equipoise.stats.inequality.resampled import MOST_UNITS, resampled_intervals
from equipoise.stats.rows import check_lengths, check_weight, code_clusters, code_groups
from equipoise.stats.summary import Interval, p_line, summary_table

__all__ = ["EntropyTest", "entropy_decomposition"]

_Ends: TypeAlias = tuple[float, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropyTest:
    """A generalized entropy index, its parts, and the test that groups have the same mean.

    Parameters
    ----------
    groups : tuple
        Labels of the groups, in the order of the arrays of `parts`; empty without groups.
    order : float
        Order of the index.
    parts : EntropyDecomposition
        Every number: standard errors, shares, what each group adds.
    between : BetweenTest, optional
        The test of equal mean benefits; needs two groups.
    benefits, code, cluster, weight : array of shape (n,)
        The rows, with the number of their group and cluster where there are any.
    rng : int or Generator, optional
        For intervals that rest on resamples.
    """

    groups: tuple[Hashable, ...]
    order: float
    parts: EntropyDecomposition
    between: BetweenTest | None
    benefits: FloatArray = field(repr=False)
    code: IntArray | None = field(default=None, repr=False)
    cluster: IntArray | None = field(default=None, repr=False)
    weight: FloatArray | None = field(default=None, repr=False)
    rng: Rng = None

    @property
    def estimate(self) -> float:
        """The index."""
        return self.parts.total

    @property
    def statistic(self) -> float:
        """Of the joint test of group means; NaN without groups, or where nothing can be tested."""
        return np.nan if self.between is None else self.between.statistic

    @property
    def p_value(self) -> float:
        """Of the same mean benefit in every group; NaN without groups or a test."""
        return np.nan if self.between is None else self.between.p_value

    def confidence_interval(
        self, confidence_level: float = 0.95, *, part: EntropyPart = "total"
    ) -> Interval:
        """Return an interval of the index, or of one of its parts.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.
        part : {"total", "within", "between"}
            Of what; the interval of "between" starts at zero unless the test rejects. The others
            rest on resamples of rows or clusters; see
            `equipoise.stats.inequality.resampled.resampled_intervals`.

        Returns
        -------
        Interval
            Infinite above where the data give no bound.
        """
        check_option("part", part, EntropyPart)
        parts = self.parts
        if part == "between":
            if self.between is None:
                raise InvalidParameterError("the between-group part needs `group`; none was given.")
            low, high = between_interval(parts, self.between, confidence_level=confidence_level)
        else:
            low, high = self._resampled(confidence_level)[0 if part == "total" else 1]
        return Interval(low, np.inf if high is None else high)

    def _resampled(self, level: float) -> tuple[_Ends, _Ends]:
        """Return the intervals of total and within."""
        parts = self.parts
        if (len(self.benefits) if self.cluster is None else self.cluster.max()) > MOST_UNITS:
            return (
                log_interval(parts.total, parts.total_se, confidence_level=level),
                log_interval(parts.within_corrected, parts.within_se, confidence_level=level),
            )
        found = resampled_intervals(
            self.benefits,
            self.code,
            order=self.order,
            cluster=self.cluster,
            weight=self.weight,
            confidence_level=level,
            rng=self.rng,
        )
        return found.total, found.within

    def __str__(self) -> str:
        parts = self.parts
        title = f"Generalized entropy index of order {self.order:g}"
        if self.between is None:
            return summary_table(
                title, {"part": ["total"], "index": [parts.total], **self._ends(["total"])}
            )
        names: list[EntropyPart] = ["total", "within", "between"]
        return summary_table(
            f"{title}; groups have the same mean: " + p_line(self.statistic, self.p_value),
            {
                "part": names,
                "index": [parts.total, parts.within_corrected, parts.between_corrected],
                **self._ends(names),
            },
        )

    def _ends(self, names: list[EntropyPart]) -> dict[str, list[Interval]]:
        return {"95% interval": [self.confidence_interval(part=name) for name in names]}


def entropy_decomposition(
    benefits: AnyArray,
    group: AnyArray | None = None,
    *,
    order: float = 1.0,
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    rng: Rng = None,
) -> EntropyTest:
    r"""Split the inequality of benefits into a part within and a part between groups.

    The null hypothesis of the test is that all groups have the same mean benefit, so that the
    between-group part is zero.

    Parameters
    ----------
    benefits : array of shape (n,)
        At least zero, on a scale where zero means no benefit.
    group : array of shape (n,), optional
        Label of each row; without it the index alone is estimated.
    order : float, default 1
        Order of the index; see `entropy_index`.
    cluster : array of shape (n,), optional
        Unit that rows repeat.
    weight : array of shape (n,), optional
        Sampling weights.
    rng : int or Generator, optional
        For intervals that rest on resamples.

    Returns
    -------
    EntropyTest

    Notes
    -----
    In words of [1]_, Eq. (2), with a centred kernel, so that what a group adds is at least zero;
    see `equipoise.stats.inequality.decomposition.decompose`. The parts that are printed are less
    their bias.

    References
    ----------
    .. [1] T. Speicher, H. Heidari, N. Grgic-Hlaca, K. P. Gummadi, A. Singla, A. Weller and M. B.
       Zafar (2018), A unified approach to quantifying algorithmic unfairness, KDD, 2239-2248.
       https://doi.org/10.1145/3219819.3220046

    Examples
    --------
    Errors leave some people with nothing and some with twice their due, more often in group b. How
    much of the inequality lies between the groups?

    >>> import numpy as np
    >>> from equipoise.stats import entropy_decomposition
    >>> benefit = np.repeat([0, 1, 2, 0, 1, 2], [50, 400, 50, 120, 330, 50])
    >>> print(entropy_decomposition(benefit, np.repeat(["a", "b"], 500), order=2))
    Generalized entropy index of order 2; groups have the same mean: statistic = 18.6, p <0.001
    part       index         95% interval
    total      0.153       [0.136, 0.174]
    within     0.151        [0.134, 0.17]
    between  0.00268  [0.000827, 0.00606]

    Some, since means differ; but 98% of it lies within them.
    """
    check_lengths(benefits=benefits, group=group, cluster=cluster, weight=weight)
    groups = None if group is None else code_groups(group, at_least=2)
    code = None if groups is None else groups.code
    units, weights = code_clusters(cluster), check_weight(weight)
    moments = BenefitMoments.from_rows(benefits, code, order=order, cluster=units, weight=weights)
    return EntropyTest(
        groups=() if groups is None else groups.labels,
        order=moments.order,
        parts=decompose(moments),
        between=None if groups is None else between_test(moments),
        benefits=np.asarray(benefits, dtype=np.float64),
        code=code,
        cluster=units,
        weight=weights,
        rng=rng,
    )
