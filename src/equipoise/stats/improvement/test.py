r"""Test whether a candidate improves on the status quo in every respect at once.

Each requirement is a contrast of the joint vector of utilities (see `utilities`): more
accuracy for every group, a smaller gap for every fairness criterion. The candidate is an
improvement only if all hold, so the p-value is the largest of theirs (intersection-union).

References
----------
.. [1] Auerbach, Liang, Tabord-Meehan and Okumura (2024). Testing the fairness-improvability of
   algorithms.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_number, check_option
from equipoise._typing import AnyArray, FloatArray, ImprovementMethod, Inference, MarginScale
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.improvement.utilities import (
    ContrastLaw,
    ContrastLine,
    UtilityEstimates,
    bootstrap_draws,
    standard_error,
)
from equipoise.stats.summary import Interval, p_line, summary_table

__all__ = [
    "MIN_SUPPORT",
    "CriterionTest",
    "ImprovementQuestion",
    "ImprovementTest",
    "compare_utilities",
    "gap_direction",
    "p_value_curve",
]

MIN_SUPPORT = 10
Direction = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImprovementQuestion:
    """What counts as an improvement, and how it is tested.

    Parameters
    ----------
    fairness : tuple of int
        Criteria whose gap must shrink; the accuracy criterion is number 0.
    population : bool
        Accuracy of everyone (the last group of the estimates) instead of each group.
    margin_scale : {"relative", "absolute"}
        Whether `delta_accuracy` multiplies the status quo's accuracy or is added to it.
    method : {"signed", "paper"}
        "signed": linear fairness statistic with the direction of the gap from other data.
        "paper": the squared statistic of [1]_.
    inference : {"bootstrap", "analytic"}
        Studentised bootstrap ("signed") or the printed bootstrap ("paper"); or the normal law.

    References
    ----------
    .. [1] Auerbach, Liang, Tabord-Meehan and Okumura (2024). Testing the fairness-improvability of
       algorithms.
    """

    fairness: tuple[int, ...] = (0,)
    population: bool = False
    margin_scale: MarginScale = "relative"
    method: ImprovementMethod = "signed"
    inference: Inference = "bootstrap"

    def __post_init__(self) -> None:
        check_option("margin_scale", self.margin_scale, MarginScale)
        check_option("method", self.method, ImprovementMethod)
        check_option("inference", self.inference, Inference)

    @property
    def law(self) -> ContrastLaw:
        """Law of the contrasts."""
        if self.inference == "analytic":
            return "normal"
        return "basic" if self.method == "paper" else "studentised"


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionTest:
    """One requirement: accuracy of a group, or the gap of a fairness criterion.

    Parameters
    ----------
    criterion : int
        Number of the criterion; 0 is accuracy.
    group : int or None
        Group whose accuracy is tested; None for a gap.
    status_quo, candidate : float
        Utilities, or gaps (largest minus smallest utility).
    contrasts : tuple of (float, float)
        Estimate and standard error of each linear contrast; all must be positive.
    p_value : float
        One-sided; small speaks for improvement.
    """

    criterion: int
    group: int | None
    status_quo: float
    candidate: float
    contrasts: tuple[tuple[float, float], ...]
    p_value: float

    @property
    def estimate(self) -> float:
        """By how much the requirement is exceeded; negative when it is not met."""
        return min(estimate for estimate, _ in self.contrasts)

    def interval(self, tail: float) -> tuple[float, float]:
        """Return normal bounds of `estimate`, each wrong with probability at most `tail`.

        The estimate is a minimum of contrasts: its lower bound is the least of theirs
        (intersection-union), its upper bound the least of theirs after Bonferroni.
        """
        low_z, high_z = -special.ndtri(tail), -special.ndtri(tail / len(self.contrasts))
        return (
            min(estimate - low_z * se for estimate, se in self.contrasts),
            min(estimate + high_z * se for estimate, se in self.contrasts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImprovementTest:
    """Whether the candidate improves in every respect.

    Parameters
    ----------
    accuracy, fairness : tuple of CriterionTest
        The requirements.
    p_value : float
        The largest of theirs.
    groups : tuple
        Labels of the groups, if known.
    """

    accuracy: tuple[CriterionTest, ...]
    fairness: tuple[CriterionTest, ...]
    p_value: float
    groups: tuple[Hashable, ...] = ()

    @property
    def binding(self) -> CriterionTest:
        """Return the requirement with the largest p-value."""
        return max((*self.accuracy, *self.fairness), key=lambda test: test.p_value)

    @property
    def estimate(self) -> float:
        """By how much the binding requirement is exceeded; negative when it is not met."""
        return self.binding.estimate

    @property
    def statistic(self) -> float:
        """Smallest studentised contrast of the binding requirement; 0 where nothing changes."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.divide(*np.transpose(self.binding.contrasts))
        return float(np.nan_to_num(ratios, nan=0.0, posinf=np.inf, neginf=-np.inf).min())

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return an interval of `estimate`.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval, from the normal law; the test is one-sided.

        Returns
        -------
        Interval
        """
        level = check_fraction("confidence_level", confidence_level)
        return Interval(*self.binding.interval(0.5 * (1.0 - level)))

    def __str__(self) -> str:
        tests = (*self.accuracy, *self.fairness)
        return summary_table(
            "The candidate is no improvement: " + p_line(self.statistic, self.p_value, name="z"),
            {
                "requirement": [self._words(test) for test in tests],
                "status quo": [test.status_quo for test in tests],
                "candidate": [test.candidate for test in tests],
                "exceeded by": [test.estimate for test in tests],
                "95% interval": [Interval(*test.interval(0.025)) for test in tests],
                "p": [test.p_value for test in tests],
            },
        )

    def _words(self, test: CriterionTest) -> str:
        if test.group is None:
            return f"gap {test.criterion}" if len(self.fairness) > 1 else "gap"
        whose = dict(enumerate(self.groups)).get(test.group)
        return f"accuracy, {'everyone' if whose is None else whose}"


def gap_direction(
    numerator: AnyArray, denominator: AnyArray, group: AnyArray, *, n_groups: int
) -> Direction:
    """Return the groups with the highest and the lowest utility, in that order.

    Use it on training rows: a direction read off the test rows can double the size of the test.

    Parameters
    ----------
    numerator, denominator : array of shape (n,)
        Row quantities (weights multiplied in) under the status quo.
    group : array of shape (n,)
        Group of each row, 0 to `n_groups` - 1.
    n_groups : int
        Number of groups.

    Returns
    -------
    tuple of int
        (highest, lowest).

    Examples
    --------
    >>> gap_direction([1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1], n_groups=2)
    (1, 0)
    """
    code = np.asarray(group, dtype=np.int64)
    top = np.bincount(code, weights=np.asarray(numerator, dtype=np.float64), minlength=n_groups)
    low = np.bincount(code, weights=np.asarray(denominator, dtype=np.float64), minlength=n_groups)
    if (low == 0).any():
        raise GroupTooSmallError(
            f"group {int(np.flatnonzero(low == 0)[0])} has no training row with a non-zero"
            " denominator, so the direction of the gap is unknown. Use a larger training share."
        )
    utility = top / low
    highest = int(np.argmax(utility))
    others = [g for g in range(n_groups) if g != highest]
    return highest, min(others, key=lambda g: float(utility[g]))


def compare_utilities(
    estimates: UtilityEstimates,
    *,
    directions: Sequence[Direction | None],
    question: ImprovementQuestion,
    delta_accuracy: float | Sequence[float] = 0.0,
    delta_fairness: float = 0.0,
) -> ImprovementTest:
    r"""Test that the candidate is not an improvement of the stated size.

    The null hypothesis, Eq. (4) of [1]_: for some group
    :math:`A_{1g} \le (1 + \Delta_g) A_{0g}`, or for some fairness criterion the candidate's gap is
    at least :math:`(1 - \Delta_f)` times that of the status quo.

    Parameters
    ----------
    estimates : UtilityEstimates
        On the test rows, with draws unless `question.inference` is "analytic".
    directions : sequence of (int, int) or None
        For each fairness criterion the groups with the highest and the lowest utility under the
        status quo, known from other data (`gap_direction`). None means unknown: every direction is
        tried, with Bonferroni's correction. "paper" does not use it.
    question : ImprovementQuestion
        What counts as an improvement.
    delta_accuracy : float or sequence of float
        Required gain in accuracy, for all groups or for each.
    delta_fairness : float
        Required relative reduction of the gap, in [0, 1).

    Returns
    -------
    ImprovementTest

    Raises
    ------
    GroupTooSmallError
        If a utility rests on fewer than 10 rows.

    Notes
    -----
    With (i, j) the direction, the fairness requirement is that all contrasts
    :math:`(1-\Delta_f)(F_{0i}-F_{0j}) - (F_{1g}-F_{1h})`, g and h any two groups, are positive:
    sufficient for a smaller largest gap, and for two groups equivalent when the direction is right.
    The bootstrap p-value is :math:`(1 + \#\{t^* \ge t\})/(J + 1)` with studentised contrasts.

    *Deviations from* [1]_: the squared fairness statistic loses power near an even candidate, its
    printed p-value is not monotone in :math:`\Delta_f` and it over-rejects at large
    :math:`\Delta_f`; "paper" keeps it, with the printed p-values :math:`\#\{T^*-T \ge T\}/J`
    for accuracy and :math:`\#\{T_f^*-T_f \le T_f\}/J` for fairness. Bootstrap samples with a zero
    denominator count as extreme.

    References
    ----------
    .. [1] Auerbach, Liang, Tabord-Meehan and Okumura (2024). Testing the fairness-improvability of
       algorithms.

    Examples
    --------
    A status quo is right 60% of the time in group 0 and 80% in group 1; a candidate 90% in both.
    Is that shown with 200 people in each?

    >>> from equipoise.stats.improvement.utilities import estimate_utilities
    >>> group = np.repeat([0, 1], 200)
    >>> right = np.ones((400, 1, 2))
    >>> right[:80, 0, 0] = right[200:240, 0, 0] = 0.0
    >>> right[60:80, 0, 1] = right[240:260, 0, 1] = 0.0
    >>> estimates = estimate_utilities(right, np.ones_like(right), group, n_groups=2)
    >>> question = ImprovementQuestion(inference="analytic")
    >>> test = compare_utilities(estimates, directions=[(1, 0)], question=question)
    >>> bool(test.p_value < 0.05), test.binding.group
    (True, 1)

    Yes: accuracy rises in both groups (least surely in group 1) and the gap shrinks.
    """
    _check(estimates, question, directions)
    gains = _gains(estimates, question, delta_accuracy)
    reduction = check_number("delta_fairness", delta_fairness, low=0.0)
    if reduction >= 1.0:
        raise InvalidParameterError(f"`delta_fairness` must be in [0, 1); got {delta_fairness!r}.")
    accuracy = []
    for g, gain in zip(_accuracy_groups(estimates, question), gains, strict=True):
        line = _accuracy_line(estimates, question, g)
        accuracy.append(
            CriterionTest(
                criterion=0,
                group=g,
                status_quo=float(estimates.value[0, 0, g]),
                candidate=float(estimates.value[0, 1, g]),
                contrasts=(line.at(estimates, gain),),
                p_value=float(line.p_values(estimates, np.array([gain]), question.law)[0]),
            )
        )
    fairness = []
    for c, direction in zip(question.fairness, directions, strict=True):
        gap = np.ptp(estimates.value[c, :, : estimates.n_groups], axis=1)
        values = estimates.value[c, 0, : estimates.n_groups]
        seen = (int(np.argmax(values)), int(np.argmin(values)))
        lines = _fairness_lines(estimates, c, seen if direction is None else direction)
        p = _gap_p_values(estimates, question, c, direction, np.array([reduction]))
        fairness.append(
            CriterionTest(
                criterion=c,
                group=None,
                status_quo=float(gap[0]),
                candidate=float(gap[1]),
                contrasts=tuple(line.at(estimates, reduction) for line in lines),
                p_value=float(p[0]),
            )
        )
    p_value = max(test.p_value for test in (*accuracy, *fairness))
    return ImprovementTest(accuracy=tuple(accuracy), fairness=tuple(fairness), p_value=p_value)


def p_value_curve(
    estimates: UtilityEstimates,
    deltas: AnyArray,
    *,
    directions: Sequence[Direction | None],
    question: ImprovementQuestion,
    fairness: bool = False,
    groups: Sequence[int] = (),
) -> FloatArray:
    """Return the p-value of the test at every delta, from the same draws.

    Parameters
    ----------
    estimates, directions, question
        As in `compare_utilities`.
    deltas : array of shape (D,)
        Improvements to test.
    fairness : bool
        Whether delta is required of the fairness gaps.
    groups : sequence of int
        Groups of which a gain of delta in accuracy is required; of the others, delta = 0.

    Returns
    -------
    array of shape (D,)
    """
    _check(estimates, question, directions)
    grid = np.asarray(deltas, dtype=np.float64)
    worst = np.zeros(len(grid))
    for g in _accuracy_groups(estimates, question):
        line = _accuracy_line(estimates, question, g)
        at = grid if g in groups else np.zeros(1)
        worst = np.maximum(worst, line.p_values(estimates, at, question.law))
    for c, direction in zip(question.fairness, directions, strict=True):
        at = grid if fairness else np.zeros(1)
        worst = np.maximum(worst, _gap_p_values(estimates, question, c, direction, at))
    return worst


def _accuracy_groups(estimates: UtilityEstimates, question: ImprovementQuestion) -> range:
    first = estimates.n_groups if question.population else 0
    return range(first, estimates.n_groups + question.population)


def _accuracy_line(
    estimates: UtilityEstimates, question: ImprovementQuestion, group: int
) -> ContrastLine:
    base, slope = np.zeros((2, estimates.value.size))
    base[estimates.position(0, 1, group)] = 1.0
    base[estimates.position(0, 0, group)] = -1.0
    if question.margin_scale == "absolute":
        return ContrastLine(base=base, slope=slope, margin=1.0)
    slope[estimates.position(0, 0, group)] = -1.0
    return ContrastLine(base=base, slope=slope)


def _fairness_lines(
    estimates: UtilityEstimates, criterion: int, direction: Direction
) -> list[ContrastLine]:
    high, low = direction
    status_quo = np.zeros(estimates.value.size)
    status_quo[estimates.position(criterion, 0, high)] = 1.0
    status_quo[estimates.position(criterion, 0, low)] = -1.0
    lines = []
    for g, h in permutations(range(estimates.n_groups), 2):
        candidate = np.zeros(estimates.value.size)
        candidate[estimates.position(criterion, 1, g)] = 1.0
        candidate[estimates.position(criterion, 1, h)] = -1.0
        lines.append(ContrastLine(base=status_quo - candidate, slope=-status_quo))
    return lines


def _gap_p_values(
    estimates: UtilityEstimates,
    question: ImprovementQuestion,
    criterion: int,
    direction: Direction | None,
    deltas: FloatArray,
) -> FloatArray:
    if question.method == "paper":
        return _squared_p_values(estimates, question, criterion, deltas)
    tried = list(permutations(range(estimates.n_groups), 2)) if direction is None else [direction]
    least = np.ones(len(deltas))
    for pair in tried:
        lines = _fairness_lines(estimates, criterion, pair)
        p = np.max([line.p_values(estimates, deltas, question.law) for line in lines], axis=0)
        least = np.minimum(least, len(tried) * p)
    return least


def _squared_p_values(
    estimates: UtilityEstimates,
    question: ImprovementQuestion,
    criterion: int,
    deltas: FloatArray,
) -> FloatArray:
    """P-values of the squared statistic, [1] Section 3.2 and Appendix A."""
    gaps = np.zeros((2, estimates.value.size))
    for algorithm in (0, 1):
        gaps[algorithm, estimates.position(criterion, algorithm, 0)] = 1.0
        gaps[algorithm, estimates.position(criterion, algorithm, 1)] = -1.0
    b, a = gaps @ estimates.value.ravel()
    keep = (1.0 - deltas) ** 2
    statistic = a**2 - keep * b**2
    if question.inference == "analytic":
        gradients = 2.0 * (a * gaps[1] - np.outer(keep * b, gaps[0]))
        se = np.array([standard_error(row, estimates.covariance) for row in gradients])
        return np.where(se > 0, special.ndtr(statistic / np.where(se > 0, se, 1.0)), 1.0)
    draws = bootstrap_draws(estimates)
    b_star, a_star = (draws.value @ gaps.T).T[:, :, None]
    defined = draws.defined[:, gaps.any(axis=0)].all(axis=1, keepdims=True)
    extreme = (a_star**2 - keep * b_star**2 <= 2.0 * statistic) | ~defined
    return np.asarray(extreme.mean(axis=0), dtype=np.float64)


def _gains(
    estimates: UtilityEstimates,
    question: ImprovementQuestion,
    delta_accuracy: float | Sequence[float],
) -> FloatArray:
    groups = _accuracy_groups(estimates, question)
    try:
        gains = np.broadcast_to(np.asarray(delta_accuracy, dtype=np.float64), len(groups))
    except ValueError as error:
        raise InvalidParameterError(
            f"`delta_accuracy` must be a number or one for each of {len(groups)} groups; got"
            f" {delta_accuracy!r}."
        ) from error
    for gain in gains:
        check_number("delta_accuracy", float(gain), low=0.0)
    status_quo = estimates.value[0, 0, groups.start : groups.stop]
    if question.margin_scale == "relative" and ((gains != 0) & (status_quo <= 0)).any():
        raise InvalidParameterError(
            "a relative gain in accuracy needs a positive utility of the status quo; got"
            f' {status_quo.min():.4g}. Pass margin_scale="absolute".'
        )
    return gains


def _check(
    estimates: UtilityEstimates,
    question: ImprovementQuestion,
    directions: Sequence[Direction | None],
) -> None:
    if estimates.n_groups < 2:
        raise InvalidParameterError("a gap needs at least two groups; got one.")
    if question.method == "paper" and estimates.n_groups > 2:
        raise InvalidParameterError(
            f'method="paper" is defined for two groups; got {estimates.n_groups}. Use "signed".'
        )
    if len(directions) != len(question.fairness):
        raise InvalidParameterError(
            f"`directions` needs one entry for each of {len(question.fairness)} fairness criteria;"
            f" got {len(directions)}."
        )
    if question.population and estimates.value.shape[2] == estimates.n_groups:
        raise InvalidParameterError(
            "accuracy of the population needs estimates made with population=True."
        )
    if estimates.support.min() < MIN_SUPPORT:
        c, algorithm, group = np.argwhere(estimates.support == estimates.support.min())[0]
        raise GroupTooSmallError(
            f"every utility needs at least {MIN_SUPPORT} rows; criterion {c} of the"
            f" {('status quo', 'candidate')[algorithm]} has {estimates.support.min()} in group"
            f" {group}. Merge groups, raise the capacity, or use more data."
        )
