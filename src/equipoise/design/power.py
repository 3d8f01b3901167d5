r"""How many rows an audit needs, and what an audit of a given size can show.

Power for rates of independent rows is enumerated with the tests that the audits make, as long as
events are few in the group or in its target. Elsewhere it is that of the signed roots of
`equipoise.stats.disparity.gaps`, with the sampling error of an estimated target and the covariance
of a group with the population that contains it: normal for rates of many independent rows, and the
t law of `equipoise.design.units` for real values and for clusters, of which fewer than four are not
tested and which must show more on one side where there are too few to know their shape. It is
planning, not inference: tests/calibration compares it with simulated audits.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_integer, check_number, check_option
from equipoise._typing import (
    Adjust,
    AnyArray,
    FlagAlternative,
    FloatArray,
    PlannedQuestion,
    PlannedTarget,
)
from equipoise.design.alternatives import Alternative, Pilot, planned_alternative
from equipoise.design.units import PlannedSide, UnitLaw, normal_law, unit_law
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.binomial import probability, upper_tail
from equipoise.stats.inversion import GREATER
from equipoise.stats.pairs import Pairs, external_root, known_root

__all__ = ["Power", "power", "sample_size", "unit_rows"]

_LARGEST = 10**12
_FEW_EVENTS = 100.0
"""Expected ones and zeros in group and target from which the normal law is good to 0.01."""
_TARGET_COUNTS = 41
"""Counts of the target that are looked at; more of them are taken together."""
_FAR = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power of the tests of an audit.

    Parameters
    ----------
    question : str
        "disparity", "flag", "certify", "inequality" or "improvability".
    n : int
        Rows on which the metric is defined.
    share, n_group, se, power : tuple of float
        For each group: its share of the rows, its expected rows, the standard error of its
        disparity, and the chance that its test succeeds.
    level : float
        Level of a single test after adjustment for the number of tests.
    all_groups : float
        Lower bound on the chance that the tests of all groups succeed.
    joint : float or None
        Of "disparity" of real values and "inequality", when the groups listed are everybody: the
        chance that the joint test finds that they differ.
    """

    question: str
    n: int
    share: tuple[float, ...]
    n_group: tuple[float, ...]
    se: tuple[float, ...]
    power: tuple[float, ...]
    level: float
    all_groups: float
    joint: float | None = None

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
        if self.joint is not None:
            lines[0] += f", power of the joint test {self.joint:.3f}"
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
    target_se: float
    reference_share: float
    margin: float
    alternative: FlagAlternative
    alpha: float
    n_tests: int
    adjust: Adjust
    design_effect: float
    cluster_size: float
    uneven: float  # rows over effective rows, where weights make the design effect
    rates: tuple[FloatArray, FloatArray] | None  # of group and target, for 0/1 metrics
    skewness: tuple[FloatArray, FloatArray]  # of the mean of a unit, in group and target

    @property
    def counted(self) -> bool:
        """Whether counts of independent rows decide."""
        return self.rates is not None and self.cluster_size == 1.0 == self.design_effect

    @property
    def everybody(self) -> bool:
        """Whether the groups are all there is, compared with each other."""
        alone = len(self.share) > 1 and np.isclose(self.share.sum(), 1.0)
        return bool(alone and self.target in {"population", "rest"})


def power(
    question: PlannedQuestion | Literal["improvability"],
    *,
    n: int,
    share: float | Sequence[float] | None = None,
    disparity: float | Sequence[float] = 0.0,
    rate: float | None = None,
    sd: float | Sequence[float] | None = None,
    target: PlannedTarget = "population",
    target_se: float = 0.0,
    reference_share: float | None = None,
    margin: float = 0.0,
    alternative: FlagAlternative = "greater",
    alpha: float = 0.05,
    n_tests: int | None = None,
    adjust: Adjust = "auto",
    design_effect: float = 1.0,
    cluster_size: float | None = None,
    skewness: float | None = None,
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
    question : {"disparity", "flag", "certify", "inequality", "improvability"}
        Two-sided tests of no gap; tests against a tolerance; equivalence tests; the test that mean
        benefits are equal; or the search for an alternative, which is described by the options
        from `pilot` on and by `alpha`.
    n : int
        Rows on which the metric is defined: for a positive predictive value, those predicted
        positive. Of "improvability", the rows that candidates are tested on: a third of all.
    share : float or list of float
        Share of each group in these rows.
    disparity : float or list of float, default 0
        True difference of the group from its target. Of "inequality" the mean benefits of groups
        that are everybody, or what they differ by.
    rate : float, optional
        Rate of the target, for 0/1 metrics; the group has `rate` + `disparity`.
    sd : float or list of float, optional
        Standard deviation of a real-valued metric within groups; one for each group if these are
        everybody. Give `rate` or `sd`.
    target : {"population", "rest", "reference", "known"}
        What the groups are compared with.
    target_se : float, default 0
        Standard error of a known target that was estimated elsewhere (`External`).
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
        How the tests are adjusted: "auto" is "bh" for "flag", "holm" for the groups of
        "inequality" and "none" otherwise, as in the audits. "bh" and "by" use the limiting level of
        the procedure when the tests beyond the groups listed have no gap; "holm" is at least as
        powerful as the "bonferroni" given.
    design_effect : float, default 1
        Factor on the variance: for dependent rows, with c rows for each unit and correlation r
        within units, 1 + (c - 1) r; for weights with a coefficient of variation v, 1 + v^2.
    cluster_size : float, optional
        c, the rows of a unit: with few units less is shown. Where their sizes vary with a
        coefficient v, c is the mean size times 1 + v^2, here and in the design effect. By default
        rows are independent and have weights.
    skewness : float, optional
        Of the mean of a unit, within groups; by default 0, or what `rate` implies. Gaps towards
        the short side of skewed values are harder to show, and those towards the long side easier.
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

    Benefits vary by 0.6 within groups, of which one of a fifth has 0.05 less than the others on
    average. Would an audit of inequality find it?

    >>> print(power("inequality", n=5000, share=[0.8, 0.2], disparity=[1.0, 0.95], sd=0.6))
    inequality: n = 5000, level of one test 0.025, power of the joint test 0.652
      share 0.8: 4000 rows, standard error 0.00425, power 0.543
      share 0.2: 1000 rows, standard error 0.017, power 0.545
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
        target_se=target_se,
        reference_share=reference_share,
        margin=margin,
        alternative=alternative,
        alpha=alpha,
        n_tests=n_tests,
        adjust=adjust,
        design_effect=design_effect,
        cluster_size=cluster_size,
        skewness=skewness,
    )
    return _evaluate(scenario, rows)


def sample_size(
    question: PlannedQuestion | Literal["improvability"],
    *,
    share: float | Sequence[float] | None = None,
    disparity: float | Sequence[float] = 0.0,
    rate: float | None = None,
    sd: float | Sequence[float] | None = None,
    target: PlannedTarget = "population",
    target_se: float = 0.0,
    reference_share: float | None = None,
    margin: float = 0.0,
    alternative: FlagAlternative = "greater",
    alpha: float = 0.05,
    n_tests: int | None = None,
    adjust: Adjust = "auto",
    design_effect: float = 1.0,
    cluster_size: float | None = None,
    skewness: float | None = None,
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
    question : {"disparity", "flag", "certify", "inequality", "improvability"}
        As in `power`.
    share, disparity, rate, sd, target, target_se, reference_share : optional
        As in `power`.
    margin, alternative, alpha, n_tests, adjust : optional
        As in `power`.
    design_effect, cluster_size, skewness : optional
        As in `power`.
    pilot, effects, cov, differing, accuracy_loss, n_candidates, correlation : optional
        As in `power`, of "improvability".
    power : float, default 0.8
        Power wanted for each group; of "inequality", for the joint test.

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

    As many to test on, and twice as many again to build it. And how many for three groups whose
    mean benefits are 1, 0.95 and 0.9?

    >>> sample_size("inequality", share=[0.7, 0.2, 0.1], disparity=[1.0, 0.95, 0.9], sd=0.6).n
    3188
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
        target_se=target_se,
        reference_share=reference_share,
        margin=margin,
        alternative=alternative,
        alpha=alpha,
        n_tests=n_tests,
        adjust=adjust,
        design_effect=design_effect,
        cluster_size=cluster_size,
        skewness=skewness,
    )

    def enough(n: int) -> bool:
        found = _evaluate(scenario, n)
        if question == "inequality":
            return (found.joint or 0.0) >= wanted
        return min(found.power) >= wanted

    reason = (
        f"`disparity` must lie on the side that {scenario.question!r} tests for: with "
        f"disparity {scenario.disparity.tolist()}, margin {scenario.margin:g} and "
        f"alternative {scenario.alternative!r} no number of rows gives power {wanted:g}."
    )
    if question == "inequality":
        reason = "groups with the same mean benefit, all of `disparity`, are never found to differ."
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
    sd: float | Sequence[float] | None,
    target: PlannedTarget,
    target_se: float,
    reference_share: float | None,
    margin: float,
    alternative: FlagAlternative,
    alpha: float,
    n_tests: int | None,
    adjust: Adjust,
    design_effect: float,
    cluster_size: float | None,
    skewness: float | None,
) -> _Scenario:
    check_option("question", question, PlannedQuestion)
    check_option("target", target, PlannedTarget)
    check_option("alternative", alternative, FlagAlternative)
    check_option("adjust", adjust, Adjust)
    shares, gaps = _groups(question, share, disparity, target)
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
    outside = check_number("target_se", target_se, low=0.0)
    if outside > 0.0 and target != "known":
        raise InvalidParameterError(
            f"`target_se` belongs to `target='known'`, estimated elsewhere; got target {target!r}."
        )
    limit = _margin(question, margin)
    rates = None if rate is None else _rates(shares, gaps, rate, target)
    if rates is not None and question == "inequality":
        raise InvalidParameterError("benefits have `sd`; 'inequality' knows no `rate`.")
    own, other = _variances(shares, gaps, rates, sd, target)
    effect = check_number("design_effect", design_effect, low=1e-9)
    usual: dict[PlannedQuestion, Adjust] = {"flag": "bh", "inequality": "holm"}
    rule = usual.get(question, "none") if adjust == "auto" else adjust
    unit = unit_rows(effect, cluster_size)
    tests = len(shares) if n_tests is None else check_integer("n_tests", n_tests, low=len(shares))
    return _Scenario(
        question=question,
        share=shares,
        disparity=gaps,
        variance=own,
        target_variance=other,
        target=target,
        target_se=outside,
        reference_share=beside,
        margin=limit,
        alternative=alternative if question in {"flag", "certify"} else "two-sided",
        alpha=check_fraction("alpha", alpha),
        n_tests=tests,
        adjust=rule,
        design_effect=effect,
        cluster_size=unit,
        uneven=unit if cluster_size is None else 1.0,
        rates=rates,
        skewness=_skewness(shares, rates, skewness, unit_skewness(effect, unit)),
    )


def _groups(
    question: PlannedQuestion,
    share: float | Sequence[float] | None,
    disparity: float | Sequence[float],
    target: PlannedTarget,
) -> tuple[FloatArray, FloatArray]:
    """Shares of the groups, and their differences from the target."""
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
    if question != "inequality":
        return shares, gaps
    if len(shares) < 2 or not np.isclose(shares.sum(), 1.0) or target != "population":
        raise InvalidParameterError(
            "'inequality' compares the groups that everybody is in with each other: leave `target`"
            f" out and list two `share` or more that add up to 1; got {shares.tolist()} with target"
            f" {target!r}."
        )
    return shares, gaps - shares @ gaps


def _margin(question: PlannedQuestion, margin: float) -> float:
    limit = check_number("margin", margin, low=0.0)
    if question == "certify" and limit == 0.0:
        raise InvalidParameterError(
            "`margin` must be above 0: no data can show that a gap is exactly zero."
        )
    if question in {"disparity", "inequality"} and limit != 0.0:
        raise InvalidParameterError(
            f"`margin` belongs to 'flag' and 'certify'; {question!r} tests for no gap at all. "
            f"Got {limit:g}."
        )
    return limit


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


def _variances(
    share: FloatArray,
    disparity: FloatArray,
    rates: tuple[FloatArray, FloatArray] | None,
    sd: float | Sequence[float] | None,
    target: PlannedTarget,
) -> tuple[FloatArray, FloatArray]:
    """Variance of the metric in the group and in what it is compared with."""
    if (rates is None) == (sd is None):
        raise InvalidParameterError(
            "Give `rate` for a 0/1 metric or `sd` for a real-valued one, and not both."
        )
    if rates is not None:
        group, rest = rates
        return group * (1.0 - group), rest * (1.0 - rest)
    each = np.atleast_1d(np.asarray(sd, dtype=np.float64)).tolist()
    own = np.array([check_number("sd", one, low=1e-300) ** 2 for one in each])
    if len(own) == 1:
        variance = np.broadcast_to(own, share.shape)
        return variance, variance
    everybody = np.isclose(share.sum(), 1.0) and target in {"population", "rest"}
    if len(own) != len(share) or not everybody:
        raise InvalidParameterError(
            "`sd` must be one number, or one for each `share` where these add up to 1 and are"
            f" compared with each other; got {len(own)} with shares {share.tolist()} and target"
            f" {target!r}."
        )
    rest = 1.0 - share
    mean = (share @ disparity - share * disparity) / rest
    square = own + disparity**2
    return own, (share @ square - share * square) / rest - mean**2


def _skewness(
    share: FloatArray,
    rates: tuple[FloatArray, FloatArray] | None,
    skewness: float | None,
    left: float,
) -> tuple[FloatArray, FloatArray]:
    """Skewness of the mean of a unit, in the group and in what it is compared with.

    The part `left` of the skewness of a 0/1 value is left in the mean of its unit.
    """
    if skewness is None and rates is not None:
        group, rest = (left * (1.0 - 2.0 * rate) / np.sqrt(rate * (1.0 - rate)) for rate in rates)
        return group, rest
    value = 0.0 if skewness is None else check_number("skewness", skewness)
    return np.full(len(share), value), np.full(len(share), value)


def unit_skewness(design_effect: float, rows: float) -> float:
    """Skewness of the mean of the 0/1 rows of a unit, over that of a row.

    Rates of units follow a beta law: all is left where the rows of a unit are alike, and as much as
    in the mean of independent ones where they are not.
    """
    alike = design_effect / rows
    correlation = max(design_effect - 1.0, 0.0) / (rows - 1.0) if rows > 1.0 else 0.0
    return math.sqrt(alike) * (1.0 + correlation / alike) / (1.0 + correlation)


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
    se = _standard_error(s, n)
    law = _law(s, n, se)
    level = _level(s, se, law)
    chance = _chance(s, se, law, level)
    if s.counted:
        for k in range(len(chance)):
            exact = _enumerated(s, k, n, float(se[k]), level)
            chance[k] = chance[k] if exact is None else exact
    asked = s.everybody and s.rates is None and s.question in {"disparity", "inequality"}
    return Power(
        question=s.question,
        n=n,
        share=tuple(s.share.tolist()),
        n_group=tuple((n * s.share).tolist()),
        se=tuple(se.tolist()),
        power=tuple(chance.tolist()),
        level=level,
        all_groups=float(max(0.0, 1.0 - np.sum(1.0 - chance))),
        joint=_joint(s, se, law) if asked else None,
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
    return np.sqrt(variance * s.design_effect / n + s.target_se**2)


def _law(s: _Scenario, n: int, se: FloatArray) -> UnitLaw:
    """Law of the test of each group, from the independent units on both sides."""
    if s.counted:
        return normal_law(se)
    everyone, factor = n / s.cluster_size, s.design_effect / n
    own, other = s.skewness
    beside = 1.0 - s.share if s.target != "reference" else np.full(len(s.share), s.reference_share)
    group = PlannedSide(
        units=everyone * s.share, variance=factor * s.variance / s.share, skewness=own
    )
    target = PlannedSide(
        units=everyone * beside,
        variance=factor * s.target_variance / beside,
        skewness=other,
        sign=-1.0,
    )
    return unit_law(
        [group] if s.target == "known" else [group, target],
        pool=everyone,
        uneven=s.uneven,
        external=s.target_se**2,
    )


def _joint(s: _Scenario, se: FloatArray, law: UnitLaw) -> float:
    """Chance that the sum of squares of the roots is beyond its critical value."""
    if not law.tested.all():
        # The audits take the smallest p-value of a group.
        tests = max(int(law.tested.sum()), 1)
        return float(_chance(s, se, law, s.alpha / tests).max())
    df = len(s.share) - 1.0
    critical = float(special.chdtri(df, s.alpha))
    root = law.root(np.abs(s.disparity) / se, np.where(s.disparity < 0.0, -1.0, 1.0))
    return float(1.0 - special.chndtr(critical, df, np.sum((1.0 - s.share) * root**2)))


def _level(s: _Scenario, se: FloatArray, law: UnitLaw) -> float:
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


def _chance(s: _Scenario, se: FloatArray, law: UnitLaw, level: float) -> FloatArray:
    """Probability that each test rejects at `level`."""
    strict = _chance_of(s, se, law, level, law.fold)
    plain = _chance_of(s, se, law, level, np.ones(len(se)))
    return law.unknown * strict + (1.0 - law.unknown) * plain


def _chance_of(
    s: _Scenario, se: FloatArray, law: UnitLaw, level: float, fold: FloatArray
) -> FloatArray:
    """Probability that each test rejects where p-values of one side count `fold` times."""
    z, margin = s.disparity / se, s.margin / se
    tail = level / fold
    if s.question == "certify":
        return law.both(margin + z, margin - z, tail)
    if s.alternative in {"greater", "less"}:
        sign = 1.0 if s.alternative == "greater" else -1.0
        return law.beyond(sign * z - margin, tail, sign)
    each = zip(margin, fold, strict=True)
    root = np.array([_outside_critical(level, 2.0 * width, f) for width, f in each])
    tail = special.ndtr(-root)
    # Laws of both sides are approximations, and overlap where skewness is extreme.
    both = law.beyond(z - margin, tail) + law.beyond(-z - margin, tail, -1.0)
    return np.minimum(both, 1.0)


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
    table = _Rows(
        rows=rows,
        rate=own,
        target_rows=target_rows,
        target_rate=other,
        target_se=s.target_se,
    )
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
    """A group of independent rows and its target: a rate, or rows that share none."""

    rows: int
    rate: float
    target_rows: int | None
    target_rate: float
    target_se: float

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
            target_se=self.target_se,
        )

    def _target(self, ones: FloatArray) -> FloatArray:
        """What the target is when ones and zeros change places."""
        return (1.0 if self.target_rows is None else self.target_rows) - ones

    def _binomial(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return x, np.full(x.shape, float(self.rows)), np.full(x.shape, self.rate)

    def _expected(self, chance: Callable[[FloatArray], FloatArray]) -> float:
        """Mean over the counts of the target, or over what it is estimated to be."""
        if self.target_rows is None:
            tails = (np.arange(_TARGET_COUNTS) + 0.5) / _TARGET_COUNTS
            steps = special.ndtri(tails) if self.target_se > 0.0 else np.zeros(1)
            return float(chance(self.target_rate + self.target_se * steps).mean())
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
        if self.target_rows is None and self.target_se > 0.0:
            se, gap = np.full(len(x), self.target_se), np.full(len(x), null)
            return external_root(x, rows, target, se, gap, GREATER)
        if self.target_rows is None:
            return known_root(x, rows, target + null, GREATER)
        pairs = Pairs.of(x, rows, target, np.full(len(x), float(self.target_rows)))
        return pairs.root(np.full(len(x), null), np.arange(len(x)), GREATER)


def _outside_critical(level: float, width: float, fold: float = 1.0) -> float:
    """Critical root of the test of an interval of `width` standard errors; see `p_outside`."""
    # Takes longer to import than most audits to run.
    from scipy import optimize

    def excess(c: float) -> float:
        return float(fold * special.ndtr(-c) + (2.0 - fold) * special.ndtr(-c - width)) - level

    return float(optimize.brentq(excess, -1.0, -float(special.ndtri(level / (4.0 * fold)))))
