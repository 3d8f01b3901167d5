"""The test that predicted treatment effects are equally accurate in every group, on arrays."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from equipoise._typing import (
    AnyArray,
    Collapse,
    EffectAdjust,
    EffectMeasure,
    EffectTest,
    FloatArray,
    IntArray,
    Rest,
    Rng,
)
from equipoise.stats.effects.bias import ChiSquareTest, TreatmentBias, treatment_bias
from equipoise.stats.effects.collapse import resolve_collapse
from equipoise.stats.effects.errors import UNTESTED, effect_moments, group_errors
from equipoise.stats.rows import check_lengths, check_weight, code_clusters, code_groups
from equipoise.stats.summary import Interval, p_line, summary_table

__all__ = ["TreatmentBiasTest", "treatment_bias_test"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreatmentBiasTest:
    """Bias of predicted effects by group, with a test and an interval for each.

    Parameters
    ----------
    groups : tuple
        Labels of the tested groups, in the order of the arrays.
    untested : dict
        The other groups, and why they have no test.
    n : array of shape (T,)
        Rows.
    effect, predicted : array of shape (T,)
        The effect of the treatment, and what the predictions say it is.
    error, error_se : array of shape (T,)
        Predicted minus true effect, and its standard error; pass them to `effect_correction`.
    estimate, se : array of shape (T,)
        The bias: error of the group minus that of the rest.
    statistic, p_value_raw, p_value : array of shape (T,)
        Two-sided test of no bias, before and after the adjustment for several groups.
    equal, zero : ChiSquareTest
        That all errors are equal; that all are zero.
    """

    groups: tuple[Hashable, ...]
    untested: dict[Hashable, str]
    n: IntArray
    effect: FloatArray
    predicted: FloatArray
    error: FloatArray
    error_se: FloatArray
    estimate: FloatArray
    se: FloatArray
    statistic: FloatArray
    p_value_raw: FloatArray
    p_value: FloatArray
    equal: ChiSquareTest
    zero: ChiSquareTest
    _found: TreatmentBias = field(repr=False)

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return an interval for each bias by itself.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of each interval; it holds zero exactly when `p_value_raw` exceeds one minus the level.

        Returns
        -------
        Interval
            Arrays of shape (T,).
        """
        return self._found.bias.confidence_interval(confidence_level)

    def __str__(self) -> str:
        low, high = self.confidence_interval()
        ends = zip(np.atleast_1d(low), np.atleast_1d(high), strict=True)
        return summary_table(
            "All groups have the same error: "
            + p_line(self.equal.statistic, self.equal.p_value, df=self.equal.df, name="chi-square"),
            {
                "group": self.groups,
                "n": self.n.tolist(),
                "effect": self.effect.tolist(),
                "predicted": self.predicted.tolist(),
                "bias": self.estimate.tolist(),
                "95% interval": [Interval(*pair) for pair in ends],
                "p": self.p_value.tolist(),
            },
        )


def treatment_bias_test(
    outcome: AnyArray,
    treatment: AnyArray,
    effect_pred: AnyArray,
    group: AnyArray,
    *,
    measure: EffectMeasure = "relative",
    collapse: Collapse = "auto",
    control_pred: AnyArray | None = None,
    treated_pred: AnyArray | None = None,
    rest: Rest = "stratified",
    test: EffectTest = "auto",
    adjust: EffectAdjust = "holm",
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    rng: Rng = None,
) -> TreatmentBiasTest:
    r"""Test for each group that its predicted effects err as those of the rest do.

    The null hypothesis of a group is :math:`b_g = b_{-g}` ([1]_, Eq. (26)): the predictions,
    collapsed to the group, are as far from the effect of the treatment in the group as those of
    the rest are. Rows are those of a randomised experiment on which the model was not trained.

    Parameters
    ----------
    outcome, treatment, effect_pred : array of shape (n,)
        The response, the arm (0 or 1) and the predicted effect of each row.
    group : array of shape (n,)
        Label of each row.
    measure : {"relative", "difference"}
        What is predicted: the ratio of mean outcomes with and without treatment, or their
        difference.
    collapse : str, default "auto"
        How predictions are averaged in a group; see `equipoise.stats.effects.errors.group_errors`.
    control_pred, treated_pred : array of shape (n,), optional
        Predictions of the outcome without and with treatment, made on other data or cross-fitted.
    rest : {"stratified", "pooled"}
        The rest averages the arm means of the other groups by size, or pools their rows.
    test : {"auto", "score", "wald"}
        "auto" is the law of few units: t with measured degrees of freedom, and for relative effects
        of a 0/1 outcome the conditional mid-P of events.
    adjust : {"holm", "bonferroni", "bh", "by", "max_t", "none"}
        For the number of groups.
    cluster : array of shape (n,), optional
        Unit of randomisation, or unit that rows repeat.
    weight : array of shape (n,), optional
        Sampling weights.
    rng : Generator, int or None
        For "max_t".

    Returns
    -------
    TreatmentBiasTest

    Raises
    ------
    DataError
        With fewer than two groups that have both arms.

    References
    ----------
    .. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026), Detecting
       and mitigating group bias in heterogeneous treatment effects.
       https://doi.org/10.48550/arXiv.2602.20383 (equations are those of the earlier manuscript,
       "Detecting and mitigating algorithmic bias in treatment effect estimation").

    Examples
    --------
    An offer is said to raise sales by half everywhere. Is that equally right in both regions?

    >>> import numpy as np
    >>> from equipoise.stats import treatment_bias_test
    >>> sold = np.concatenate([np.repeat([1, 0], [k, 1000 - k]) for k in (100, 150, 100, 230)])
    >>> offer, region = np.tile(np.repeat([0, 1], 1000), 2), np.repeat(["N", "S"], 2000)
    >>> print(treatment_bias_test(sold, offer, np.full(4000, 1.5), region))
    All groups have the same error: chi-square = 5.76 on 1 df, p = 0.016
    group     n  effect  predicted  bias     95% interval      p
    N      2000     1.5        1.5   0.8    [0.155, 1.37]  0.016
    S      2000     2.3        1.5  -0.8  [-1.37, -0.155]  0.016

    No: in the south sales more than double, so that predictions there are too low by 0.8.
    """
    check_lengths(
        outcome=outcome,
        treatment=treatment,
        effect_pred=effect_pred,
        group=group,
        control_pred=control_pred,
        treated_pred=treated_pred,
        cluster=cluster,
        weight=weight,
    )
    groups = code_groups(group, at_least=2)
    moments = effect_moments(
        outcome,
        treatment,
        effect_pred,
        groups.code,
        measure=measure,
        collapse=collapse,
        control_pred=control_pred,
        treated_pred=treated_pred,
        n_groups=len(groups.labels),
        cluster=code_clusters(cluster),
        weight=check_weight(weight),
    )
    kind = resolve_collapse(
        measure,
        collapse,
        control_pred=control_pred is not None,
        treated_pred=treated_pred is not None,
    )
    binary = bool(np.isin(np.asarray(outcome), (0, 1)).all())
    errors = group_errors(moments, measure=measure, collapse=kind, binary=binary)
    found = treatment_bias(errors, rest=rest, test=test, adjust=adjust, rng=rng)
    bias = found.bias
    return TreatmentBiasTest(
        groups=tuple(groups.labels[k] for k in errors.tested),
        untested={groups.labels[k]: UNTESTED[why] for k, why in errors.untested.items()},
        n=errors.n[errors.tested],
        effect=errors.effect,
        predicted=errors.predicted,
        error=errors.error,
        error_se=found.error.se,
        estimate=bias.estimate,
        se=bias.se,
        statistic=bias.statistic,
        p_value_raw=bias.p_value_raw,
        p_value=bias.p_value,
        equal=found.equal,
        zero=found.zero,
        _found=found,
    )
