r"""Test whether a candidate improves on the status quo in every respect at once.

Each requirement is a contrast of the joint vector of utilities (see `utilities`): more
accuracy for every group, a smaller gap for every fairness criterion. The candidate is an
improvement only if all hold, so the p-value is the largest of theirs (intersection-union).

References
----------
.. [1] E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the
   fairness-improvability of algorithms. doi:10.48550/arXiv.2405.04816
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
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
    "Gap",
    "ImprovementQuestion",
    "ImprovementTest",
    "Margins",
    "Requirement",
    "compare_utilities",
    "gap_direction",
    "gap_values",
    "p_value_curve",
    "requirements",
]

MIN_SUPPORT = 10
Direction = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Between which groups a gap is taken.

    Parameters
    ----------
    criterion : int
        Number of the criterion.
    groups : tuple of int
        At least two groups.
    reference : int, optional
        One of them: only gaps to it count.
    held : bool
        Whether the gap need not shrink, but only stay within its tolerance.

    Examples
    --------
    The largest distance of two rates to that of the first group:

    >>> gap = Gap(criterion=0, groups=(0, 1, 2), reference=0)
    >>> round(gap.size(np.array([0.5, 0.7, 0.4])), 2)
    0.2
    """

    criterion: int
    groups: tuple[int, ...]
    reference: int | None = None
    held: bool = False

    @property
    def pairs(self) -> list[Direction]:
        """Ordered pairs of groups that are compared."""
        every = permutations(self.groups, 2)
        return [pair for pair in every if self.reference is None or self.reference in pair]

    def size(self, values: FloatArray) -> float:
        """Return the largest difference among the values of all groups."""
        return max(float(values[g] - values[h]) for g, h in self.pairs)

    def direction(self, values: FloatArray) -> Direction:
        """Return the pair with the largest difference, the higher group first."""
        return max(self.pairs, key=lambda pair: float(values[pair[0]] - values[pair[1]]))

    def among(self, groups: Sequence[int]) -> "Gap | None":
        """Return the gap between those of its groups that are kept, in their new order."""
        place = {g: k for k, g in enumerate(groups)}
        kept = tuple(place[g] for g in self.groups if g in place)
        if len(kept) < 2 or (self.reference is not None and self.reference not in place):
            return None
        reference = None if self.reference is None else place[self.reference]
        return replace(self, groups=kept, reference=reference)


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
    indices : tuple of int
        Fairness criteria that are one number for everyone, itself to be reduced.
    between : tuple of Gap
        Gaps that must shrink; by default of every fairness criterion, between all groups.

    References
    ----------
    .. [1] E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the
       fairness-improvability of algorithms. doi:10.48550/arXiv.2405.04816
    """

    fairness: tuple[int, ...] = (0,)
    population: bool = False
    margin_scale: MarginScale = "relative"
    method: ImprovementMethod = "signed"
    inference: Inference = "bootstrap"
    indices: tuple[int, ...] = ()
    between: tuple[Gap, ...] = ()

    def __post_init__(self) -> None:
        check_option("margin_scale", self.margin_scale, MarginScale)
        check_option("method", self.method, ImprovementMethod)
        check_option("inference", self.inference, Inference)

    def gaps(self, n_groups: int) -> tuple[Gap, ...]:
        """Return the gaps that must shrink, in the order of directions and margins."""
        whole = tuple(range(n_groups))
        return self.between or tuple(Gap(criterion=c, groups=whole) for c in self.fairness)

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
    floor : bool
        Whether the candidate's smallest ratio is compared with a floor, not with the status quo.
    """

    criterion: int
    group: int | None
    status_quo: float
    candidate: float
    contrasts: tuple[tuple[float, float], ...]
    p_value: float
    floor: bool = False

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
        if test.floor:
            return "smallest ratio"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """How much better a candidate must be, or how much worse it may be.

    Parameters
    ----------
    accuracy : float or sequence of float
        Required gain, for all groups or for each; negative is a loss that is tolerated.
    fairness : float or sequence of float
        Required relative reduction of each gap, below 1.
    tolerance : float or sequence of float
        Amount by which each gap may exceed what is required.
    floor : float, optional
        With logarithms of rates: smallest ratio that the candidate must keep, such as 0.8.
    """

    accuracy: float | Sequence[float] = 0.0
    fairness: float | Sequence[float] = 0.0
    tolerance: float | Sequence[float] = 0.0
    floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One requirement as contrasts, all of which must be positive.

    Parameters
    ----------
    criterion : int
        Number of the criterion; 0 is accuracy.
    lines : tuple of ContrastLine
        The contrasts.
    delta : float
        Where the lines are asked.
    group : int, optional
        Group whose accuracy is meant.
    gap : Gap, optional
        Gap that is meant.
    floor : bool
        Whether a smallest ratio is meant.
    """

    criterion: int
    lines: tuple[ContrastLine, ...]
    delta: float
    group: int | None = None
    gap: Gap | None = None
    floor: bool = False


def requirements(
    estimates: UtilityEstimates,
    *,
    directions: Sequence[Direction],
    question: ImprovementQuestion,
    margins: Margins,
    candidate: int = 1,
) -> list[Requirement]:
    """Return all requirements of one candidate, accuracy first.

    Parameters
    ----------
    estimates : UtilityEstimates
        Of the status quo and one or more candidates.
    directions : sequence of (int, int)
        For each gap, the groups of highest and lowest utility of the status quo.
    question : ImprovementQuestion
        What counts as an improvement.
    margins : Margins
        How much.
    candidate : int
        Number of the candidate.

    Returns
    -------
    list of Requirement
    """
    gains = _gains(estimates, question, margins.accuracy)
    asked = [
        Requirement(
            criterion=0,
            group=g,
            lines=(_accuracy_line(estimates, question, g, candidate),),
            delta=float(gain),
        )
        for g, gain in zip(_accuracy_groups(estimates, question), gains, strict=True)
    ]
    gaps = question.gaps(estimates.n_groups)
    reductions = _for_each_gap("delta_fairness", margins.fairness, gaps)
    tolerances = _for_each_gap("fairness_tolerance", margins.tolerance, gaps)
    for gap, direction, d, m in zip(gaps, directions, reductions, tolerances, strict=True):
        if d >= 1.0:
            raise InvalidParameterError(f"`delta_fairness` must be below 1; got {d:g}.")
        lines = _fairness_lines(estimates, question, gap, direction, candidate, float(m))
        asked.append(
            Requirement(criterion=gap.criterion, gap=gap, lines=tuple(lines), delta=float(d))
        )
    if margins.floor is not None:
        asked += [
            Requirement(
                criterion=gap.criterion,
                gap=gap,
                lines=tuple(_floor_lines(estimates, gap, candidate, margins.floor)),
                delta=0.0,
                floor=True,
            )
            for gap in gaps
        ]
    return asked


def _for_each_gap(name: str, given: float | Sequence[float], gaps: Sequence[Gap]) -> FloatArray:
    try:
        values = np.broadcast_to(np.asarray(given, dtype=np.float64), len(gaps))
    except ValueError as error:
        raise InvalidParameterError(
            f"`{name}` must be a number or one for each of {len(gaps)} fairness"
            f" metrics; got {given!r}."
        ) from error
    for value in values:
        check_number(name, float(value))
    return values


def compare_utilities(
    estimates: UtilityEstimates,
    *,
    directions: Sequence[Direction | None],
    question: ImprovementQuestion,
    delta_accuracy: float | Sequence[float] = 0.0,
    delta_fairness: float | Sequence[float] = 0.0,
    tolerance: float | Sequence[float] = 0.0,
    floor: float | None = None,
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
        For each gap the groups with the highest and the lowest utility under the status quo,
        known from other data (`gap_direction`). None means unknown: every direction is
        tried, with Bonferroni's correction. "paper" does not use it.
    question : ImprovementQuestion
        What counts as an improvement.
    delta_accuracy : float or sequence of float
        Required gain in accuracy, for all groups or for each; negative is a tolerated loss.
    delta_fairness : float or sequence of float
        Required relative reduction of the gap, below 1, for all gaps or for each.
    tolerance : float or sequence of float
        Amount by which the gap may exceed what is required.
    floor : float, optional
        With logarithms of rates: the smallest ratio that the candidate must keep.

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
    .. [1] E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the
       fairness-improvability of algorithms. doi:10.48550/arXiv.2405.04816

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
    gaps = question.gaps(estimates.n_groups)
    seen = [
        gap.direction(estimates.value[gap.criterion, 0]) if direction is None else direction
        for gap, direction in zip(gaps, directions, strict=True)
    ]
    margins = Margins(
        accuracy=delta_accuracy, fairness=delta_fairness, tolerance=tolerance, floor=floor
    )
    if question.method == "paper":
        _check_printed(margins, gaps)
    unknown = dict(zip(gaps, directions, strict=True))
    tests = []
    for asked in requirements(estimates, directions=seen, question=question, margins=margins):
        c, g, at = asked.criterion, asked.group, np.array([asked.delta])
        if asked.gap is not None and not asked.floor:
            p = _gap_p_values(
                estimates,
                question,
                asked.gap,
                unknown[asked.gap],
                at,
                offset=asked.lines[0].offset,
            )
        else:
            p = np.max([line.p_values(estimates, at, question.law) for line in asked.lines], axis=0)
        values = (
            estimates.value[c, :, g]
            if asked.gap is None
            else gap_values(estimates, question, asked.gap)
        )
        tests.append(
            CriterionTest(
                criterion=c,
                group=g,
                status_quo=float(values[0]),
                candidate=float(values[1]),
                contrasts=tuple(line.at(estimates, asked.delta) for line in asked.lines),
                p_value=float(p[0]),
                floor=asked.floor,
            )
        )
    return ImprovementTest(
        accuracy=tuple(test for test in tests if test.group is not None),
        fairness=tuple(test for test in tests if test.group is None),
        p_value=max(test.p_value for test in tests),
    )


def gap_values(estimates: UtilityEstimates, question: ImprovementQuestion, gap: Gap) -> FloatArray:
    """Return the largest gap of each rule, or the index itself where it is one number."""
    values: FloatArray = estimates.value[gap.criterion]
    if gap.criterion in question.indices:
        index: FloatArray = values[:, 0]
        return index
    return np.array([gap.size(of_rule) for of_rule in values])


def _check_printed(margins: Margins, gaps: Sequence[Gap]) -> None:
    """The printed statistics know no tolerated loss."""
    reductions = _for_each_gap("delta_fairness", margins.fairness, gaps)
    if np.min(margins.accuracy) < 0 or reductions.min() < 0 or np.any(margins.tolerance):
        raise InvalidParameterError(
            'method="paper" knows improvements only; use "signed" with a tolerated loss.'
        )


def p_value_curve(
    estimates: UtilityEstimates,
    deltas: AnyArray,
    *,
    directions: Sequence[Direction | None],
    question: ImprovementQuestion,
    fairness: bool = False,
    groups: Sequence[int] = (),
    margins: Margins | None = None,
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
    margins : Margins, optional
        Losses and tolerances that hold wherever delta is not required.

    Returns
    -------
    array of shape (D,)
    """
    _check(estimates, question, directions)
    allowed = margins or Margins()
    losses = np.minimum(_gains(estimates, question, allowed.accuracy), 0.0)
    gaps = question.gaps(estimates.n_groups)
    tolerances = _for_each_gap("fairness_tolerance", allowed.tolerance, gaps)
    reductions = np.minimum(_for_each_gap("delta_fairness", allowed.fairness, gaps), 0.0)
    grid = np.asarray(deltas, dtype=np.float64)
    worst = np.zeros(len(grid))
    for g, loss in zip(_accuracy_groups(estimates, question), losses, strict=True):
        line = _accuracy_line(estimates, question, g)
        at = grid if g in groups else np.array([loss])
        worst = np.maximum(worst, line.p_values(estimates, at, question.law))
    for gap, direction, d, m in zip(gaps, directions, reductions, tolerances, strict=True):
        at = grid if fairness and not gap.held else np.array([d])
        p = _gap_p_values(estimates, question, gap, direction, at, offset=float(m))
        worst = np.maximum(worst, p)
    return worst


def _accuracy_groups(estimates: UtilityEstimates, question: ImprovementQuestion) -> range:
    first = estimates.n_groups if question.population else 0
    return range(first, estimates.n_groups + question.population)


def _accuracy_line(
    estimates: UtilityEstimates, question: ImprovementQuestion, group: int, candidate: int = 1
) -> ContrastLine:
    base, slope = np.zeros((2, estimates.value.size))
    base[estimates.position(0, candidate, group)] = 1.0
    base[estimates.position(0, 0, group)] = -1.0
    if question.margin_scale == "absolute":
        return ContrastLine(base=base, slope=slope, margin=1.0)
    slope[estimates.position(0, 0, group)] = -1.0
    return ContrastLine(base=base, slope=slope)


def _fairness_lines(
    estimates: UtilityEstimates,
    question: ImprovementQuestion,
    gap: Gap,
    direction: Direction,
    candidate: int = 1,
    offset: float = 0.0,
) -> list[ContrastLine]:
    criterion = gap.criterion
    if criterion in question.indices:
        now, then = np.zeros((2, estimates.value.size))
        now[estimates.position(criterion, 0, 0)] = 1.0
        then[estimates.position(criterion, candidate, 0)] = 1.0
        return [ContrastLine(base=now - then, slope=-now, offset=offset)]
    high, low = direction
    status_quo = _difference(estimates, criterion, 0, high, low)
    return [
        ContrastLine(
            base=status_quo - _difference(estimates, criterion, candidate, g, h),
            slope=-status_quo,
            offset=offset,
        )
        for g, h in gap.pairs
    ]


def _floor_lines(
    estimates: UtilityEstimates, gap: Gap, candidate: int, floor: float
) -> list[ContrastLine]:
    """Return that no ratio of the candidate's rates, given as logarithms, is below the floor."""
    none = np.zeros(estimates.value.size)
    return [
        ContrastLine(
            base=_difference(estimates, gap.criterion, candidate, h, g),
            slope=none,
            offset=-float(np.log(floor)),
        )
        for g, h in gap.pairs
    ]


def _difference(
    estimates: UtilityEstimates, criterion: int, algorithm: int, first: int, second: int
) -> FloatArray:
    contrast = np.zeros(estimates.value.size)
    contrast[estimates.position(criterion, algorithm, first)] = 1.0
    contrast[estimates.position(criterion, algorithm, second)] = -1.0
    return contrast


def _gap_p_values(
    estimates: UtilityEstimates,
    question: ImprovementQuestion,
    gap: Gap,
    direction: Direction | None,
    deltas: FloatArray,
    *,
    offset: float = 0.0,
) -> FloatArray:
    if question.method == "paper":
        return _squared_p_values(estimates, question, gap.criterion, deltas)
    tried = gap.pairs if direction is None else [direction]
    least = np.ones(len(deltas))
    for pair in tried:
        lines = _fairness_lines(estimates, question, gap, pair, offset=offset)
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
        check_number("delta_accuracy", float(gain))
        if gain <= -1.0 and question.margin_scale == "relative":
            raise InvalidParameterError(
                f"a relative loss of accuracy must be below 1 (everything); got {-gain:g}."
            )
    status_quo = estimates.value[0, 0, groups.start : groups.stop]
    if question.margin_scale == "relative" and ((gains != 0) & (status_quo <= 0)).any():
        raise InvalidParameterError(
            "a relative margin of accuracy needs a positive utility of the status quo; got"
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
    gaps = question.gaps(estimates.n_groups)
    if len(directions) != len(gaps):
        raise InvalidParameterError(
            f"`directions` needs one entry for each of {len(gaps)} fairness criteria;"
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
