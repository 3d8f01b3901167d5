r"""How many rows an audit needs, and what an audit of a given size can show.

Power for rates of independent rows is enumerated with the tests that the audits make, as long as
events are few in the group or in its target. Elsewhere it is that of the signed roots of
`equipoise.stats.disparity.gaps`, with the sampling error of an estimated target and the covariance
of a group with the population that contains it: normal for rates of many independent rows, and the
noncentral t law for real values and for clusters, of which fewer than four are not tested and which
must show more on one side where there are too few to know their shape. It is planning, not
inference: tests/calibration compares it with simulated audits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_integer, check_number, check_option
from equipoise._typing import (
    Adjust,
    AnyArray,
    BoolArray,
    FlagAlternative,
    FloatArray,
    PlannedQuestion,
    PlannedTarget,
)
from equipoise.design.alternatives import Alternative, Pilot, planned_alternative
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.binomial import probability, upper_tail
from equipoise.stats.inversion import GREATER
from equipoise.stats.pairs import Pairs, known_root
from equipoise.stats.small_samples import MIN_UNITS, one_sided_fold, shape_is_unknown

__all__ = ["MANY", "Power", "critical_value", "power", "sample_size", "unit_rows"]

_LARGEST = 10**12
_FEW_EVENTS = 100.0
"""Expected ones and zeros in group and target from which the normal law is good to 0.01."""
_TARGET_COUNTS = 41
"""Counts of the target that are looked at; more of them are taken together."""
_FAR = 6.0
_FARTHEST = 30.0
MANY = 1e6
"""Degrees of freedom from which a law is normal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power of the tests of an audit.

    Parameters
    ----------
    question : str
        "disparity", "flag", "certify" or "improvability".
    n : int
        Rows on which the metric is defined.
    share, n_group, se, power : tuple of float
        For each group: its share of the rows, its expected rows, the standard error of its
        disparity, and the chance that its test succeeds.
    level : float
        Level of a single test after adjustment for the number of tests.
    all_groups : float
        Lower bound on the chance that the tests of all groups succeed.
    """

    question: str
    n: int
    share: tuple[float, ...]
    n_group: tuple[float, ...]
    se: tuple[float, ...]
    power: tuple[float, ...]
    level: float
    all_groups: float

    def __str__(self) -> str:
        """Write one line for each group."""
        lines = [f"{self.question}: n = {self.n}, level of one test {self.level:.3g}"]
        if self.question == "improvability":
            return "\n".join(
                [
                    f"{lines[0]}, {3 * self.n} rows in all, power {self.all_groups:.3f}",
                    *(
                        f"  requirement {k}: standard error {se:.3g}, power {chance:.3f}"
                        for k, (se, chance) in enumerate(zip(self.se, self.power, strict=True), 1)
                    ),
                ]
            )
        rows = zip(self.share, self.n_group, self.se, self.power, strict=True)
        lines += [
            f"  share {share:.3g}: {n:.0f} rows, standard error {se:.3g}, power {chance:.3f}"
            for share, n, se, chance in rows
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scenario:
    """Checked arguments; arrays have one entry for each group."""

    question: PlannedQuestion
    share: FloatArray
    disparity: FloatArray
    variance: FloatArray  # of the metric within the group
    target_variance: FloatArray  # within the reference, or within the rest of the population
    target: PlannedTarget
    reference_share: float
    margin: float
    alternative: FlagAlternative
    alpha: float
    n_tests: int
    adjust: Adjust
    design_effect: float
    cluster_size: float
    rates: tuple[FloatArray, FloatArray] | None  # of group and target, for 0/1 metrics

    @property
    def counted(self) -> bool:
        """Whether counts of independent rows decide."""
        return self.rates is not None and self.cluster_size == 1.0 == self.design_effect


@dataclass(frozen=True, slots=True, kw_only=True)
class _Law:
    """Of the test of each group.

    t with `df` degrees. What is taken out of skewness costs `cost` times the square of a statistic;
    tests of one side are `fold` times as strict in the share `unknown` of samples.
    """

    df: FloatArray
    cost: FloatArray
    fold: FloatArray
    unknown: FloatArray
    tested: BoolArray

    def beyond(self, shift: FloatArray, critical: FloatArray) -> FloatArray:
        """Probability of a statistic above `critical` when it is centred at `shift`."""
        # The noncentral law is not computed far from its centre, where nothing is left to chance.
        near = np.clip(shift, -_FARTHEST, _FARTHEST)
        below = special.nctdtr(np.minimum(self.df, MANY), near, critical)
        below = np.where(np.isinf(self.df), special.ndtr(critical - shift), below)
        return np.where(self.tested, 1.0 - below, 0.0)

    def quantile(self, tail: AnyArray | float) -> FloatArray:
        """Statistic that is exceeded with a chance of `tail` without any gap."""
        return critical_value(tail, self.df, self.cost)


def power(
    question: PlannedQuestion | Literal["improvability"],
    *,
    n: int,
    share: float | Sequence[float] | None = None,
    disparity: float | Sequence[float] = 0.0,
    rate: float | None = None,
    sd: float | None = None,
    target: PlannedTarget = "population",
    reference_share: float | None = None,
    margin: float = 0.0,
    alternative: FlagAlternative = "greater",
    alpha: float = 0.05,
    n_tests: int | None = None,
    adjust: Adjust = "auto",
    design_effect: float = 1.0,
    cluster_size: float | None = None,
    pilot: Pilot | None = None,
    effects: Sequence[float] | None = None,
    cov: AnyArray | None = None,
    differing: float | None = None,
    accuracy_loss: float | None = None,
    n_candidates: int = 1,
    correlation: float = 0.0,
) -> Power:
    r"""Chance that an audit of `n` rows shows what is there.

    Parameters
    ----------
    question : {"disparity", "flag", "certify", "improvability"}
        Two-sided tests of no gap; tests against a tolerance; equivalence tests; or the search for
        an alternative, which is described by the options from `pilot` on and by `alpha`.
    n : int
        Rows on which the metric is defined: for a positive predictive value, those predicted
        positive. Of "improvability", the rows that candidates are tested on: a third of all.
    share : float or list of float
        Share of each group in these rows.
    disparity : float or list of float, default 0
        True difference of the group from its target.
    rate : float, optional
        Rate of the target, for 0/1 metrics; the group has `rate` + `disparity`.
    sd : float, optional
        Standard deviation of a real-valued metric within groups. Give `rate` or `sd`.
    target : {"population", "rest", "reference", "known"}
        What the groups are compared with.
    reference_share : float, optional
        Share of the reference group, which shares no rows with the others.
    margin : float, default 0
        Tolerated difference ("flag"), or the one to be excluded ("certify", above 0).
    alternative : {"greater", "less", "two-sided", "outside"}
        Of "flag"; "disparity" is two-sided, "certify" has none.
    alpha : float, default 0.05
        Level of the test, or of the family of tests.
    n_tests : int, optional
        Tests in the family; by default the groups listed.
    adjust : {"auto", "bh", "by", "holm", "bonferroni", "none"}
        How the tests are adjusted: "auto" is "bh" for "flag" and "none" otherwise, as in the
        audits. "bh" and "by" use the limiting level of the procedure when the tests beyond the
        groups listed have no gap; "holm" is at least as powerful as the "bonferroni" given.
    design_effect : float, default 1
        Factor on the variance for dependent rows: with c rows for each unit and correlation r
        within units, 1 + (c - 1) r.
    cluster_size : float, optional
        c, the rows of a unit: with few units less is shown. By default the fewest that have this
        design effect, which promises too much where units are few and r is small.
    pilot : AuditResult, optional
        Of `improvability`: the candidate is expected to be what it was in the pilot.
    effects, cov : list of float, array, optional
        By how much each requirement is exceeded, and their covariance for one test row.
    differing, accuracy_loss : float, optional
        Equal accuracy: the share of people who are decided differently, and the loss tolerated.
    n_candidates, correlation : int, float
        Ready columns that are tested together, and the correlation between them. Candidates that
        are put in order on other rows cost nothing: leave it at 1.

    Returns
    -------
    Power
        Of "improvability": one entry for each requirement; `all_groups` is the power of the claim
        that all are met.

    Examples
    --------
    A group makes up a tenth of 5000 decisions; overall 40% are selected. Would a gap of five
    points be noticed?

    >>> print(power("disparity", n=5000, share=0.1, disparity=-0.05, rate=0.4))
    disparity: n = 5000, level of one test 0.05
      share 0.1: 500 rows, standard error 0.0203, power 0.693

    In seven audits of ten.
    """
    rows = check_integer("n", n, low=2)
    if question == "improvability":
        return _of_alternative(
            planned_alternative(
                pilot=pilot,
                effects=effects,
                cov=cov,
                differing=differing,
                accuracy_loss=accuracy_loss,
                n_candidates=n_candidates,
                correlation=correlation,
                alpha=alpha,
            ),
            rows,
        )
    scenario = _scenario(
        question,
        share=share,
        disparity=disparity,
        rate=rate,
        sd=sd,
        target=target,
        reference_share=reference_share,
        margin=margin,
        alternative=alternative,
        alpha=alpha,
        n_tests=n_tests,
        adjust=adjust,
        design_effect=design_effect,
        cluster_size=cluster_size,
    )
    return _evaluate(scenario, rows)


def sample_size(
    question: PlannedQuestion | Literal["improvability"],
    *,
    share: float | Sequence[float] | None = None,
    disparity: float | Sequence[float] = 0.0,
    rate: float | None = None,
    sd: float | None = None,
    target: PlannedTarget = "population",
    reference_share: float | None = None,
    margin: float = 0.0,
    alternative: FlagAlternative = "greater",
    alpha: float = 0.05,
    n_tests: int | None = None,
    adjust: Adjust = "auto",
    design_effect: float = 1.0,
    cluster_size: float | None = None,
    pilot: Pilot | None = None,
    effects: Sequence[float] | None = None,
    cov: AnyArray | None = None,
    differing: float | None = None,
    accuracy_loss: float | None = None,
    n_candidates: int = 1,
    correlation: float = 0.0,
    power: float = 0.8,
) -> Power:
    r"""Rows with which every group's test has the power asked for, and with one fewer has not.

    Parameters
    ----------
    question : {"disparity", "flag", "certify", "improvability"}
        As in `power`.
    share, disparity, rate, sd, target, reference_share : optional
        As in `power`.
    margin, alternative, alpha, n_tests, adjust, design_effect, cluster_size : optional
        As in `power`.
    pilot, effects, cov, differing, accuracy_loss, n_candidates, correlation : optional
        As in `power`, of "improvability".
    power : float, default 0.8
        Power wanted for each group.

    Returns
    -------
    Power
        With `n`, the rows needed.

    Raises
    ------
    InvalidParameterError
        When no number of rows is enough, because the disparity is not on the side of the
        alternative.

    Examples
    --------
    How many decisions are needed to show that a group of 10% is within five points of the rest,
    if it really is equal?

    >>> sample_size("certify", share=0.1, rate=0.4, target="rest", margin=0.05).n
    9135

    And to show that a candidate that decides one person in ten differently loses at most one point
    of accuracy, if it loses nothing?

    >>> sample_size("improvability", differing=0.1, accuracy_loss=0.01).n
    6183

    As many to test on, and twice as many again to build it.
    """
    wanted = check_fraction("power", power)
    if question == "improvability":
        planned = planned_alternative(
            pilot=pilot,
            effects=effects,
            cov=cov,
            differing=differing,
            accuracy_loss=accuracy_loss,
            n_candidates=n_candidates,
            correlation=correlation,
            alpha=alpha,
        )
        if (planned.effect <= 0).any():
            raise InvalidParameterError(
                "a requirement is expected not to be met, so no number of rows shows that it is;"
                f" got effects {planned.effect.tolist()}."
            )
        return _of_alternative(
            planned, _least(lambda n: _of_all(planned, n) >= wanted, "the effects are too small")
        )
    scenario = _scenario(
        question,
        share=share,
        disparity=disparity,
        rate=rate,
        sd=sd,
        target=target,
        reference_share=reference_share,
        margin=margin,
        alternative=alternative,
        alpha=alpha,
        n_tests=n_tests,
        adjust=adjust,
        design_effect=design_effect,
        cluster_size=cluster_size,
    )

    def enough(n: int) -> bool:
        return min(_evaluate(scenario, n).power) >= wanted

    reason = (
        f"`disparity` must lie on the side that {scenario.question!r} tests for: with "
        f"disparity {scenario.disparity.tolist()}, margin {scenario.margin:g} and "
        f"alternative {scenario.alternative!r} no number of rows gives power {wanted:g}."
    )
    return _evaluate(scenario, _least(enough, reason))


def _least(enough: Callable[[int], bool], reason: str) -> int:
    """Return the smallest number of rows that is enough, if any is."""
    high = 2
    while not enough(high):
        high *= 2
        if high > _LARGEST:
            raise InvalidParameterError(reason)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _of_all(planned: Alternative, n: int) -> float:
    """Power of all requirements; exact where there is one."""
    _, single, together = planned.power(n)
    return single[0] if len(single) == 1 else together


def _of_alternative(planned: Alternative, n: int) -> Power:
    se, single, _ = planned.power(n)
    return Power(
        question="improvability",
        n=n,
        share=(1.0,) * len(se),
        n_group=(float(n),) * len(se),
        se=se,
        power=single,
        level=planned.level,
        all_groups=_of_all(planned, n),
    )


def _scenario(
    question: PlannedQuestion,
    *,
    share: float | Sequence[float] | None,
    disparity: float | Sequence[float],
    rate: float | None,
    sd: float | None,
    target: PlannedTarget,
    reference_share: float | None,
    margin: float,
    alternative: FlagAlternative,
    alpha: float,
    n_tests: int | None,
    adjust: Adjust,
    design_effect: float,
    cluster_size: float | None,
) -> _Scenario:
    check_option("question", question, PlannedQuestion)
    check_option("target", target, PlannedTarget)
    check_option("alternative", alternative, FlagAlternative)
    check_option("adjust", adjust, Adjust)
    if share is None:
        raise InvalidParameterError("pass `share`, the share of each group in the rows.")
    shares = np.array([check_fraction("share", s) for s in np.atleast_1d(share).tolist()])
    gaps = np.array([check_number("disparity", d) for d in np.atleast_1d(disparity).tolist()])
    if len(gaps) not in {1, len(shares)}:
        raise InvalidParameterError(
            f"`disparity` must be one number or one for each of the {len(shares)} shares; "
            f"got {len(gaps)}."
        )
    gaps = np.broadcast_to(gaps, shares.shape).astype(np.float64)
    if (reference_share is not None) != (target == "reference"):
        raise InvalidParameterError(
            f"`reference_share` belongs to `target='reference'`, and only there; "
            f"got {reference_share!r} with target {target!r}."
        )
    beside = 0.0 if reference_share is None else check_fraction("reference_share", reference_share)
    if shares.max() + beside > 1.0:
        raise InvalidParameterError(
            f"A group and its reference must fit into the rows: shares {shares.max():g} and "
            f"{beside:g} add up to more than 1."
        )
    limit = check_number("margin", margin, low=0.0)
    if question == "certify" and limit == 0.0:
        raise InvalidParameterError(
            "`margin` must be above 0: no data can show that a gap is exactly zero."
        )
    if question == "disparity" and limit != 0.0:
        raise InvalidParameterError(
            f"`margin` belongs to 'flag' and 'certify'; 'disparity' tests for no gap at all. "
            f"Got {limit:g}."
        )
    rates = None if rate is None else _rates(shares, gaps, rate, target)
    own, other = _variances(shares, rates, sd)
    effect = check_number("design_effect", design_effect, low=1e-9)
    rule: Adjust = ("bh" if question == "flag" else "none") if adjust == "auto" else adjust
    tests = len(shares) if n_tests is None else check_integer("n_tests", n_tests, low=len(shares))
    return _Scenario(
        question=question,
        share=shares,
        disparity=gaps,
        variance=own,
        target_variance=other,
        target=target,
        reference_share=beside,
        margin=limit,
        alternative="two-sided" if question == "disparity" else alternative,
        alpha=check_fraction("alpha", alpha),
        n_tests=tests,
        adjust=rule,
        design_effect=effect,
        cluster_size=unit_rows(effect, cluster_size),
        rates=rates,
    )


def unit_rows(design_effect: float, cluster_size: float | None) -> float:
    """Rows of a unit: those given, or the fewest that have the design effect.

    Parameters
    ----------
    design_effect : float
        1 + (c - 1) r with c rows and a correlation of r.
    cluster_size : float, optional
        c.

    Returns
    -------
    float
    """
    if cluster_size is None:
        return max(design_effect, 1.0)
    size = check_number("cluster_size", cluster_size, low=1.0)
    if size < design_effect:
        raise InvalidParameterError(
            f"`design_effect` cannot exceed the rows of a unit: it is 1 + (c - 1) r with c rows and"
            f" a correlation r of at most 1; got {design_effect:g} with `cluster_size` {size:g}."
        )
    return size


def critical_value(
    tail: AnyArray | float, df: AnyArray | float, cost: AnyArray | float
) -> FloatArray:
    """Statistic that is exceeded with a chance of `tail` without any effect.

    Parameters
    ----------
    tail : float or array
        One-sided level.
    df : float or array
        Degrees of freedom.
    cost : float or array
        What taking out skewness costs, in squares of the statistic.

    Returns
    -------
    array
    """
    q = -special.stdtrit(df, tail)
    return np.asarray(q + cost * q**2)


def _variances(
    share: FloatArray, rates: tuple[FloatArray, FloatArray] | None, sd: float | None
) -> tuple[FloatArray, FloatArray]:
    """Variance of the metric in the group and in what it is compared with."""
    if (rates is None) == (sd is None):
        raise InvalidParameterError(
            "Give `rate` for a 0/1 metric or `sd` for a real-valued one, and not both."
        )
    if rates is not None:
        group, rest = rates
        return group * (1.0 - group), rest * (1.0 - rest)
    variance = np.full(len(share), check_number("sd", sd, low=1e-300) ** 2)
    return variance, variance


def _rates(
    share: FloatArray, disparity: FloatArray, rate: float, target: PlannedTarget
) -> tuple[FloatArray, FloatArray]:
    """Rate of the group and of what it is compared with; the rest of a population."""
    theta = check_fraction("rate", rate)
    group = theta + disparity
    # In a population of rate theta the rest balances the group.
    balance = share / (1.0 - share) if target == "population" else 0.0
    rest = theta - disparity * balance
    for values in (group, rest):
        if values.min() <= 0.0 or values.max() >= 1.0:
            raise InvalidParameterError(
                f"`rate` and `disparity` must leave every rate between 0 and 1; got rate "
                f"{theta:g} with disparity {disparity.tolist()}."
            )
    return group, np.broadcast_to(rest, group.shape)


def _evaluate(s: _Scenario, n: int) -> Power:
    se, law = _standard_error(s, n), _law(s, n)
    level = _level(s, se, law)
    chance = _chance(s, se, law, level)
    if s.counted:
        for k in range(len(chance)):
            exact = _enumerated(s, k, n, float(se[k]), level)
            chance[k] = chance[k] if exact is None else exact
    return Power(
        question=s.question,
        n=n,
        share=tuple(s.share.tolist()),
        n_group=tuple((n * s.share).tolist()),
        se=tuple(se.tolist()),
        power=tuple(chance.tolist()),
        level=level,
        all_groups=float(max(0.0, 1.0 - np.sum(1.0 - chance))),
    )


def _standard_error(s: _Scenario, n: int) -> FloatArray:
    """Standard errors of the disparities, from the influence function."""
    p = s.share
    own = s.variance / p
    if s.target == "known":
        variance = own
    elif s.target == "population":
        # The group is part of its target; the last terms are the random share of the group.
        rest = p * s.disparity / (1.0 - p)
        variance = (
            (1.0 - p) ** 2 * own
            + (1.0 - p) * s.target_variance
            + p * s.disparity**2
            + (1.0 - p) * rest**2
        )
    else:
        other = 1.0 - p if s.target == "rest" else np.full(len(p), s.reference_share)
        variance = own + s.target_variance / other
    return np.sqrt(variance * s.design_effect / n)


def _law(s: _Scenario, n: int) -> _Law:
    """Law of the test of each group, from the independent units on both sides."""
    one = np.ones(len(s.share))
    if s.counted:
        return _Law(df=np.inf * one, cost=0.0 * one, fold=one, unknown=0.0 * one, tested=one > 0)
    everyone = n / s.cluster_size
    own = everyone * s.share
    other = everyone * (s.reference_share * one if s.target == "reference" else 1.0 - s.share)
    least = own if s.target == "known" else np.minimum(own, other)
    a, b = s.variance / own, s.target_variance / other * (s.target != "known")
    # Welch's degrees; a side of one unit is not tested.
    shared = a**2 / np.maximum(own - 1.0, 1e-9) + b**2 / np.maximum(other - 1.0, 1e-9)
    # As in audits; a group that is nearly everybody has only its own shape.
    lone = everyone < 1.5 * least
    unknown = shape_is_unknown(everyone, least) | (lone & (least < 100.0))
    # The skewness of m normal values has the variance 6 / m, and is too large from 0.1 root m on.
    looks_skewed = 2.0 * special.ndtr(-0.1 * least / np.sqrt(6.0))
    return _Law(
        df=(a + b) ** 2 / shared,
        # Found by simulation: in few units some skewness is always seen, and what is seen counts.
        cost=np.where(lone, 0.5, 0.25) / least,
        fold=one_sided_fold(least),
        unknown=np.where(unknown, 1.0, looks_skewed),
        tested=least >= MIN_UNITS,
    )


def _level(s: _Scenario, se: FloatArray, law: _Law) -> float:
    """Level at which a single test of the family is made."""
    if s.adjust == "none":
        return s.alpha
    if s.adjust in {"bonferroni", "holm"}:
        return s.alpha / s.n_tests
    m = s.n_tests
    alpha = float(s.alpha / np.sum(1.0 / np.arange(1, m + 1)) if s.adjust == "by" else s.alpha)
    # The procedure takes the largest t with t <= alpha x (rejections at level t) / m. Rejections
    # grow with t, so that the iteration falls from alpha to that t.
    level = alpha
    for _ in range(1000):  # pragma: no branch
        rejected = _chance(s, se, law, level).sum() + (m - len(se)) * level
        following = float(alpha * max(rejected, 1.0) / m)
        if level - following <= 1e-9 * level:
            break
        level = following
    return level


def _chance(s: _Scenario, se: FloatArray, law: _Law, level: float) -> FloatArray:
    """Probability that each test rejects at `level`."""
    strict = _chance_of(s, se, law, level, law.fold)
    plain = _chance_of(s, se, law, level, np.ones(len(se)))
    return law.unknown * strict + (1.0 - law.unknown) * plain


def _chance_of(
    s: _Scenario, se: FloatArray, law: _Law, level: float, fold: FloatArray
) -> FloatArray:
    """Probability that each test rejects where p-values of one side count `fold` times."""
    z, margin = s.disparity / se, s.margin / se
    q = law.quantile(level / fold)
    if s.question == "certify":
        return np.maximum(law.beyond(margin - z, q) + law.beyond(margin + z, q) - 1.0, 0.0)
    if s.alternative in {"greater", "less"}:
        sign = 1.0 if s.alternative == "greater" else -1.0
        return law.beyond(sign * z - margin, q)
    each = zip(margin, fold, strict=True)
    root = np.array([_outside_critical(level, 2.0 * width, f) for width, f in each])
    q = law.quantile(special.ndtr(-root))
    return law.beyond(z - margin, q) + law.beyond(-z - margin, q)


def _enumerated(s: _Scenario, k: int, n: int, se: float, level: float) -> float | None:
    """Probability that the test of rates rejects; None where events are many."""
    assert s.rates is not None  # noqa: S101
    own, other = (float(rates[k]) for rates in s.rates)
    rows = max(round(n * float(s.share[k])), 1)
    beside = s.reference_share if s.target == "reference" else 1.0 - float(s.share[k])
    target_rows = None if s.target == "known" else max(round(n * beside), 1)
    events = rows * min(own, 1.0 - own)
    if target_rows is not None:
        events = min(events, target_rows * min(other, 1.0 - other))
    if events >= _FEW_EVENTS:
        return None
    # A gap to the population is one to the rest, larger by what the group adds to it.
    larger = 1.0 / beside if s.target == "population" else 1.0
    table = _Rows(rows=rows, rate=own, target_rows=target_rows, target_rate=other)
    q = -float(special.ndtri(level))
    if s.question == "certify":
        return table.between((-s.margin * larger, q), (s.margin * larger, q))
    if s.alternative == "greater":
        return table.above(s.margin * larger, q)
    if s.alternative == "less":
        return table.below(-s.margin * larger, q)
    q = _outside_critical(level, 2.0 * s.margin / se)
    return table.above(s.margin * larger, q) + table.below(-s.margin * larger, q)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """A group of independent rows and its target: a known rate, or rows that share none."""

    rows: int
    rate: float
    target_rows: int | None
    target_rate: float

    def above(self, null: float, critical: float) -> float:
        """Probability that the root for "more than `null`" is at least `critical`."""
        return self._expected(lambda x: upper_tail(*self._binomial(self._edge(x, null, critical))))

    def below(self, null: float, critical: float) -> float:
        """Probability that the root for "less than `null`" is at most -`critical`."""
        return self._mirrored().above(-null, critical)

    def between(self, low: tuple[float, float], high: tuple[float, float]) -> float:
        """Probability that both "more than low" and "less than high" are shown."""
        mirror = self._mirrored()

        def chance(x: FloatArray) -> FloatArray:
            least = self._edge(x, *low)
            zeros = mirror._edge(mirror._target(x), -high[0], high[1])  # noqa: SLF001
            most = self.rows - zeros
            more = upper_tail(*self._binomial(least)) - upper_tail(*self._binomial(most + 1.0))
            return np.where(most >= least, np.maximum(more, 0.0), 0.0)

        return self._expected(chance)

    def _mirrored(self) -> "_Rows":
        """Ones and zeros change places, and so do more and less."""
        return _Rows(
            rows=self.rows,
            rate=1.0 - self.rate,
            target_rows=self.target_rows,
            target_rate=1.0 - self.target_rate,
        )

    def _target(self, ones: FloatArray) -> FloatArray:
        return ones if self.target_rows is None else self.target_rows - ones

    def _binomial(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return x, np.full(x.shape, float(self.rows)), np.full(x.shape, self.rate)

    def _expected(self, chance: Callable[[FloatArray], FloatArray]) -> float:
        """Mean over the counts of the target."""
        if self.target_rows is None:
            return float(chance(np.zeros(1))[0])
        n, p = float(self.target_rows), self.target_rate
        reach = _FAR * np.sqrt(n * p * (1.0 - p)) + 3.0
        counts = np.arange(max(np.floor(n * p - reach), 0.0), min(np.ceil(n * p + reach), n) + 1.0)
        mass = probability(counts, np.full(len(counts), n), np.full(len(counts), p))
        parts = np.array_split(np.arange(len(counts)), min(_TARGET_COUNTS, len(counts)))
        weight = np.array([mass[part].sum() for part in parts])
        middle = np.array([counts[part[len(part) // 2]] for part in parts])
        return float(weight @ chance(middle) / weight.sum())

    def _edge(self, x: FloatArray, null: float, critical: float) -> FloatArray:
        """Smallest number of ones whose root for "more than `null`" reaches `critical`.

        P-values are monotone in the count, so that halving finds it; one more than there are rows
        where none does.
        """
        low, high = np.full(len(x), -1.0), np.full(len(x), self.rows + 1.0)
        while (high - low > 1.0).any():
            middle = np.clip(np.floor(0.5 * (low + high)), 0.0, self.rows)
            reached = self._root(middle, x, null) >= critical
            open_ = high - low > 1.0
            high = np.where(open_ & reached, middle, high)
            low = np.where(open_ & ~reached, middle, low)
        return high

    def _root(self, x: FloatArray, target: FloatArray, null: float) -> FloatArray:
        rows = np.full(len(x), float(self.rows))
        if self.target_rows is None:
            return known_root(x, rows, np.full(len(x), self.target_rate + null), GREATER)
        pairs = Pairs.of(x, rows, target, np.full(len(x), float(self.target_rows)))
        return pairs.root(np.full(len(x), null), np.arange(len(x)), GREATER)


def _outside_critical(level: float, width: float, fold: float = 1.0) -> float:
    """Critical root of the test of an interval of `width` standard errors; see `p_outside`."""
    # Takes longer to import than most audits to run.
    from scipy import optimize

    def excess(c: float) -> float:
        return float(fold * special.ndtr(-c) + (2.0 - fold) * special.ndtr(-c - width)) - level

    return float(optimize.brentq(excess, -1.0, -float(special.ndtri(level / (4.0 * fold)))))
