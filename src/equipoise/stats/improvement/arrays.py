"""The test of a less discriminatory alternative, on arrays."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from equipoise._checks import check_finite, check_integer, check_option
from equipoise._typing import (
    AccuracyOf,
    AnyArray,
    FloatArray,
    ImprovementMethod,
    Inference,
    MarginScale,
    Rng,
)
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.test import (
    Direction,
    ImprovementQuestion,
    ImprovementTest,
    compare_utilities,
)
from equipoise.stats.improvement.utilities import estimate_utilities
from equipoise.stats.rows import GroupCodes, check_lengths, check_weight, code_clusters, code_groups

__all__ = ["improvement_test"]


def improvement_test(
    status_quo: AnyArray,
    candidate: AnyArray,
    group: AnyArray,
    *,
    status_quo_denominator: AnyArray | None = None,
    candidate_denominator: AnyArray | None = None,
    higher_group: object = None,
    accuracy_of: AccuracyOf = "group",
    delta_accuracy: float | Sequence[float] = 0.0,
    delta_fairness: float = 0.0,
    margin_scale: MarginScale = "relative",
    method: ImprovementMethod = "signed",
    inference: Inference = "bootstrap",
    n_resamples: int = 10_000,
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    rng: Rng = None,
) -> ImprovementTest:
    r"""Test that a candidate rule is no improvement on the rule in use.

    The null hypothesis, Eq. (4) of [1]_: some group is not served better than
    :math:`(1 + \Delta_a)` times before, or some gap between groups is not below
    :math:`(1 - \Delta_f)` times what it was. A small p-value shows that the candidate is better for
    every group and more even.

    Parameters
    ----------
    status_quo, candidate : array of shape (n,) or (n, C)
        What each rule is worth in each row: 1 for a right decision, a profit, a benefit. Of several
        columns the first is the accuracy that must rise, the others those whose gap must shrink; a
        single column is both.
    group : array of shape (n,)
        Label of each row.
    status_quo_denominator, candidate_denominator : array like `status_quo`, optional
        For utilities that are ratios: among the selected, pass the decisions.
    higher_group : object, optional
        With two groups, the label of the one known beforehand to be better served; otherwise both
        directions are tried, at the price of Bonferroni's correction.
    accuracy_of : {"group", "population"}
        Whether accuracy must rise in every group or overall.
    delta_accuracy, delta_fairness : float
        Required gain in accuracy (also one for each group), and relative reduction of the gap.
    margin_scale : {"relative", "absolute"}
        Whether `delta_accuracy` multiplies the status quo's accuracy or is added to it.
    method : {"signed", "paper"}
        Linear statistic of the gap, or the squared one of [1]_.
    inference : {"bootstrap", "analytic"}
        Studentised bootstrap, or the normal law.
    n_resamples : int, default 10000
        Bootstrap samples.
    cluster : array of shape (n,), optional
        Unit that rows repeat; units are resampled whole.
    weight : array of shape (n,), optional
        Sampling weights.
    rng : Generator, int or None
        For the bootstrap.

    Returns
    -------
    ImprovementTest
        `estimate`, `statistic` and the interval are those of the requirement that binds.

    Raises
    ------
    GroupTooSmallError
        If a utility rests on fewer than 10 rows.

    Notes
    -----
    The rows must not be those on which the candidate was chosen; combine several splits with
    `combine_splits`.

    References
    ----------
    .. [1] E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the
       fairness-improvability of algorithms. https://doi.org/10.48550/arXiv.2405.04816

    Examples
    --------
    A rule is right for 60% of group a and 80% of group b; a new one for 90% of both. Is the new
    rule shown to be better and more even with 200 people in each?

    >>> import numpy as np
    >>> from equipoise.stats import improvement_test
    >>> old = np.repeat([0, 1, 0, 1], [80, 120, 40, 160])
    >>> new = np.roll(np.repeat([0, 1, 0, 1], [20, 180, 20, 180]), 60)
    >>> group = np.repeat(["a", "b"], 200)
    >>> print(improvement_test(old, new, group, inference="analytic"))
    The candidate is no improvement: z = 2.63, p = 0.004
    requirement  status quo  candidate  exceeded by     95% interval       p
    accuracy, a         0.6        0.9          0.3   [0.236, 0.364]  <0.001
    accuracy, b         0.8        0.9          0.1  [0.0254, 0.175]   0.004
    gap                 0.2          0          0.2  [0.0874, 0.312]  <0.001

    It is: accuracy rises in both groups, least surely in b, and the gap shrinks.
    """
    check_option("accuracy_of", accuracy_of, AccuracyOf)
    check_lengths(
        status_quo=status_quo, candidate=candidate, group=group, cluster=cluster, weight=weight
    )
    u = _both("status_quo", status_quo, "candidate", candidate)
    w = np.ones_like(u)
    if status_quo_denominator is not None or candidate_denominator is not None:
        w = _both(
            "status_quo_denominator",
            w[:, :, 0] if status_quo_denominator is None else status_quo_denominator,
            "candidate_denominator",
            w[:, :, 1] if candidate_denominator is None else candidate_denominator,
        )
    if w.shape != u.shape:
        raise InvalidParameterError(
            f"utilities have shape {u.shape[:2]} and denominators {w.shape[:2]}; they must agree."
        )
    groups = code_groups(group, at_least=2)
    criteria = u.shape[1]
    question = ImprovementQuestion(
        fairness=tuple(range(1, criteria)) or (0,),
        population=accuracy_of == "population",
        margin_scale=margin_scale,
        method=method,
        inference=inference,
    )
    samples = check_integer("n_resamples", n_resamples, low=99)
    estimates = estimate_utilities(
        u,
        w,
        groups.code,
        n_groups=len(groups.labels),
        population=question.population,
        weight=check_weight(weight),
        cluster=code_clusters(cluster),
        n_resamples=samples if inference == "bootstrap" else 0,
        rng=rng,
    )
    test = compare_utilities(
        estimates,
        directions=[_direction(groups, higher_group)] * len(question.fairness),
        question=question,
        delta_accuracy=delta_accuracy,
        delta_fairness=delta_fairness,
    )
    return replace(test, groups=groups.labels)


def _both(first: str, status_quo: object, second: str, candidate: object) -> FloatArray:
    """Return the row quantities of both rules, of shape (n, C, 2)."""
    columns = []
    for name, values in ((first, status_quo), (second, candidate)):
        array = check_finite(name, values)
        columns.append(array[:, None] if array.ndim == 1 else array)
    if columns[0].shape != columns[1].shape or columns[0].ndim != 2:
        raise InvalidParameterError(
            f"`{first}` and `{second}` must have the same shape, (n,) or (n, criteria); got"
            f" {columns[0].shape} and {columns[1].shape}."
        )
    return np.stack(columns, axis=2)


def _direction(groups: GroupCodes, higher_group: object) -> Direction | None:
    if higher_group is None:
        return None
    if len(groups.labels) != 2:
        raise InvalidParameterError(
            f"`higher_group` is for two groups; there are {len(groups.labels)}."
        )
    high = groups.find(higher_group, name="higher_group")
    return high, 1 - high
