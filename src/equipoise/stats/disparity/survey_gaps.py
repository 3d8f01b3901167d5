"""Disparities of groups in a survey: gaps of means with the variance of the design."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse, special

from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Scale
from equipoise.stats.disparity.gaps import Disparities, GroupedCells
from equipoise.stats.disparity.references import Comparison, Target, compare, target_mask
from equipoise.stats.disparity.survey import DesignPairs, SurveyDesign
from equipoise.stats.small_samples import MIN_UNITS

__all__ = ["SurveyLaw", "survey_disparities"]

FEW_EVENTS = 5.0
"""Effective ones or zeros below which a rate of a survey is not tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyLaw:
    """Student's law of every group beside its target.

    Parameters
    ----------
    pairs : DesignPairs
        Means of groups and targets.
    tested : array of shape (m,)
        Which groups have a test.
    """

    pairs: DesignPairs
    tested: BoolArray

    @property
    def method(self) -> AnyArray:
        """Name of the test of each group."""
        return np.full(len(self.tested), "survey", dtype=object)

    def signed_root(self, null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG002
        """Roots at `null` of the groups numbered `which`.

        Parameters
        ----------
        null : array of shape (len(which),)
            Hypothesised disparities.
        which : array of int
            Numbers of the groups.
        tail : {1, -1}
            Does not matter: the law is continuous.

        Returns
        -------
        array of shape (len(which),)
        """
        return self.pairs.take(which).root(null)

    def interval(self, critical: float) -> tuple[FloatArray, FloatArray]:
        """Disparities whose roots are at most `critical` in size.

        Parameters
        ----------
        critical : float
            1.96 for a 95% interval.

        Returns
        -------
        low, high : array of shape (m,)
        """
        low, high = np.full((2, len(self.tested)), np.nan)
        which = np.flatnonzero(self.tested)
        if len(which):
            low[which], high[which] = self.pairs.take(which).interval(critical)
        return low, high


def survey_disparities(
    design: SurveyDesign,
    membership: Any,
    target: Target,
    *,
    scale: Scale = "difference",
    confidence_level: float = 0.95,
    n: AnyArray | None = None,
    zero_one: bool = False,
) -> Disparities:
    """Estimate and test the disparity of every group under a survey design.

    Variances are those of linearised domain means, as in R's survey (Lumley 2004); degrees of
    freedom are the units less the strata of the side that has fewer.

    Parameters
    ----------
    design : SurveyDesign
        Sums with the products of the design.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group.
    target : Target
        What groups are compared with.
    scale : {"difference", "ratio"}
        Group minus target, or group over target.
    confidence_level : float, default 0.95
        Of the intervals.
    n : array of shape (K,), optional
        Rows on which the metric is defined.
    zero_one : bool, default False
        Whether the metric is a rate: its means are far from normal where ones or zeros are few, and
        such groups have no test.

    Returns
    -------
    Disparities
    """
    c = compare(design.moments, membership, target, scale=scale, n=n)
    groups = sparse.csc_array(membership, dtype=np.float64)
    mask = _targets(target, design, groups)
    status = np.full(len(c.n), "ok", dtype="<U13")
    df, effective = (
        np.minimum(measure(groups), measure(mask)) if target.estimated else measure(groups)
        for measure in (design.degrees, design.effective)
    )
    pairs = _pairs(c, target, np.maximum(df, 1.0))
    with np.errstate(invalid="ignore"):
        flat = ~(pairs.se > 1e-7 * np.abs(pairs.first))
    # A side that does not vary in the sample would look as if it were known.
    flat |= ~(pairs.first_variance > 0.0)
    if target.estimated:
        flat |= ~(pairs.second_variance > 0.0)
    status[flat | ~np.isfinite(c.estimate)] = "degenerate"
    if zero_one:
        own = design.effective(groups) * _rarer(c.group_value)
        other = design.effective(mask) * _rarer(c.target_value) if target.estimated else own
        status[np.minimum(own, other) < FEW_EVENTS] = "rare"
    status[(effective < MIN_UNITS - 1e-9) | (df < 1.0)] = "too_few_units"
    if target.estimated:
        status[~(c.target[:, 1] > 0)] = "empty"
    status[c.same] = "vacuous"
    status[~(c.group[:, 1] > 0)] = "empty"
    tested = status == "ok"
    law = SurveyLaw(pairs=pairs, tested=tested)
    low, high = law.interval(float(special.ndtri((1.0 + confidence_level) / 2.0)))
    null = 1.0 if scale == "ratio" else 0.0
    which = np.flatnonzero(tested)
    root = np.full(len(tested), np.nan)
    root[which] = law.signed_root(np.full(len(which), null), which, 1)
    bounded = np.isfinite(low) & np.isfinite(high)
    return Disparities(
        estimate=c.estimate,
        se=pairs.se,
        group_value=c.group_value,
        target_value=c.target_value,
        n=c.n,
        n_target=c.n_target,
        null=null,
        statistic=root**2,
        p_value=2.0 * special.ndtr(-np.abs(root)),
        ci_low=low,
        ci_high=high,
        confidence_level=confidence_level,
        status=np.where(tested & ~bounded, "unbounded", status),
        method=np.where(tested, law.method, "none").astype(object),
        units=None,
        plug_in_weight=np.ones(len(c.n)),
        _law=law,
        _cells=GroupedCells(
            moments=design.moments, membership=membership, target=target, comparison=c
        ),
    )


def _rarer(rate: FloatArray) -> FloatArray:
    """Share of ones or of zeros, whichever are fewer."""
    return np.nan_to_num(np.minimum(rate, 1.0 - rate))


def _targets(target: Target, design: SurveyDesign, groups: Any) -> Any:
    """Cells of the target of every group, (K, m)."""
    if target.kind == "rest":
        return sparse.csc_array(1.0 - groups.toarray())
    mask = target_mask(target, design.moments)
    return sparse.csc_array(np.repeat(mask[:, None], groups.shape[1], axis=1))


def _pairs(c: Comparison, target: Target, df: FloatArray) -> DesignPairs:
    """Means of groups and targets with their variances, from residuals at those means."""

    def variance(
        product: FloatArray, one: tuple[FloatArray, FloatArray], two: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        (value, size), (other, whole) = one, two
        residual = product[:, 0, 0] - other * product[:, 0, 1] - value * product[:, 1, 0]
        residual += value * other * product[:, 1, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(residual / (size * whole))

    group, fixed = (c.group_value, c.group[:, 1]), np.zeros(len(c.n))
    own = variance(c.group_group, group, group)
    if not target.estimated:
        known = np.full(len(c.n), c.target_variance)
        parts = {"second_variance": known, "covariance": fixed}
    else:
        other = (c.target_value, c.target[:, 1])
        parts = {
            "second_variance": variance(c.target_target, other, other),
            "covariance": variance(c.group_target, group, other),
        }
    return DesignPairs(
        first=c.group_value,
        second=c.target_value,
        first_variance=own,
        df=df,
        scale=c.scale,
        **parts,
    )
