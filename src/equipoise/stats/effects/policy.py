r"""Who a rule on predicted effects would treat, and who would gain, by group.

A rule treats where the prediction is at least c. For a group: the share treated, the gain of a
member :math:`E[d(\Gamma - \text{cost})]` and the gain of a treated one, their ratio. With a budget,
c is the quantile of all predictions that treats that share; a person who joins the data moves it,
and the influence of everyone on a group is that times the density of the group at c.

Whether those who are predicted to gain most gain most is the area under the targeting curve.
Treat the share v of a group with the highest predictions. The rank-weighted average effect is
a mean of effects weighted by rank, :math:`\int_0^1 w(v) \tau(v) dv` ([1]_):
:math:`w(v) = -\log v - 1` for AUTOC, which looks at the very top, and :math:`w(v) = 1/2 - v` for
Qini, which looks at everyone alike. It is zero where predictions tell nothing.

References
----------
.. [1] S. Yadlowsky, S. Fleming, N. Shah, E. Brunskill and S. Wager (2025), Evaluating treatment
   prioritization rules via rank-weighted average treatment effects, Journal of the American
   Statistical Association 120. https://doi.org/10.1080/01621459.2024.2393466
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from equipoise._checks import check_fraction, check_number, check_option
from equipoise._typing import AnyArray, EffectRanking, FloatArray, Rng
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.effects.effect_scores import EffectScores
from equipoise.stats.influence import InfluenceSums, without_noise
from equipoise.stats.rows import check_lengths
from equipoise.stats.scores.cells import weighted_quantile

__all__ = [
    "GroupContrast",
    "GroupQuantities",
    "PolicyRule",
    "RankedEffect",
    "ValueChange",
    "group_policies",
    "group_rankings",
    "ranked_effect",
    "value_change",
]


class RankedEffect(NamedTuple):
    r"""A rank-weighted average effect, with the influence of each row.

    Parameters
    ----------
    estimate : float
        Zero where predictions tell nothing, negative where they are upside down.
    influence : array of shape (n,)
        Of a row of mass one; their products with the masses add up to zero.
    factor : array of shape (n,)
        a in the estimate :math:`\sum_i m_i a_i \Gamma_i`, m the masses.
    """

    estimate: float
    influence: FloatArray
    factor: FloatArray


def ranked_effect(
    score: AnyArray,
    predicted: AnyArray,
    *,
    kind: EffectRanking = "autoc",
    mass: AnyArray | None = None,
) -> RankedEffect:
    """Estimate how much more those gain who are predicted to gain more.

    Parameters
    ----------
    score : array of shape (n,)
        Doubly robust scores (`effect_scores`).
    predicted : array of shape (n,)
        Predicted effects; only their order counts, and rows with the same one share their rank.
    kind : {"autoc", "qini"}
        Weights of ranks.
    mass : array of shape (n,), optional
        Weight times count.

    Returns
    -------
    RankedEffect

    Examples
    --------
    Four people gain 3, 2, 1 and 0, as predicted.

    >>> import numpy as np
    >>> gains = np.array([3.0, 2.0, 1.0, 0.0])
    >>> ranked_effect(gains, gains, kind="qini").estimate
    0.3125
    >>> ranked_effect(gains, -gains, kind="qini").estimate
    -0.3125
    """
    check_lengths(score=score, predicted=predicted, mass=mass)
    check_option("kind", kind, EffectRanking)
    gamma, f = np.asarray(score, np.float64), np.asarray(predicted, np.float64)
    w = np.ones(len(f)) if mass is None else np.asarray(mass, np.float64)
    # Levels from the highest prediction down, and the share of rows above and up to each.
    level = np.unique(-f, return_inverse=True)[1]
    own = np.bincount(level, w)
    total = own.sum()
    high = np.cumsum(own) / total
    low = np.concatenate([[0.0], high[:-1]])
    middle = 0.5 * (low + high)
    if kind == "qini":
        weight, slope = 0.5 - middle, np.full(len(own), -1.0)
    else:
        # The mean of -log v - 1 over the ranks of a level.
        area = [np.where(v > 0.0, v * np.log(np.maximum(v, 1e-300)), 0.0) for v in (low, high)]
        full = own > 0.0
        weight, slope = np.zeros(len(own)), np.zeros(len(own))
        weight[full] = -(area[1] - area[0])[full] / (high - low)[full]
        slope[full] = -1.0 / middle[full]
    centred = gamma - w @ gamma / total
    estimate = float(np.sum(w * weight[level] * centred) / total)
    # A row moves the rank of everyone with its prediction or a lower one.
    moved = np.bincount(level, w * slope[level] * centred) / total
    below = np.cumsum(moved[::-1])[::-1]
    influence = weight[level] * centred - estimate + below[level] - float(own @ below) / total
    return RankedEffect(estimate, influence / total, weight[level] / total)


MIN_TREATED = 10
"""Rows of each arm that a group must have, for a gain where the rule treats."""
MIN_UNITS = 4.0
"""Effective units of each arm, where rows repeat units."""

_Estimate = tuple[str, int, float, FloatArray]
"""Name, group, value and influence of each row."""


class GroupContrast(NamedTuple):
    """A quantity of a group, or its difference from that of the other groups."""

    name: str
    group: int
    estimate: float
    low: float
    high: float
    statistic: float | None = None
    p_value: float | None = None
    p_value_adjusted: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuantities:
    """Quantities of each group, and their differences from the rest.

    Parameters
    ----------
    values : tuple of GroupContrast
        With intervals of each alone.
    differences : tuple of GroupContrast
        A group less the other groups; intervals and adjusted p-values hold for all together.
    missing : dict of (str, int) to str
        Quantities that groups do not have, and why.
    """

    values: tuple[GroupContrast, ...]
    differences: tuple[GroupContrast, ...]
    missing: dict[tuple[str, int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """Who is treated.

    Parameters
    ----------
    cutoff : float
        Smallest prediction that is treated.
    chance : array of shape (n,)
        Of treatment; between 0 and 1 for rows at the cutoff where a budget ends among them.
    budget : float, optional
        Share of all rows that is treated.
    near : array of bool of shape (n,)
        Rows that stand for those at the cutoff; none where it is given.
    """

    cutoff: float
    chance: FloatArray
    budget: float | None
    near: AnyArray

    @classmethod
    def of(
        cls,
        predicted: AnyArray,
        rows: InfluenceSums,
        *,
        threshold: float | None = None,
        budget: float | None = None,
    ) -> "PolicyRule":
        """Return the rule of a threshold or of a budget.

        Parameters
        ----------
        predicted : array of shape (n,)
            Predicted effects.
        rows : InfluenceSums
            Weights and counts.
        threshold : float, optional
            Smallest prediction that is treated.
        budget : float, optional
            Share of all rows that is treated, from the highest prediction down.

        Returns
        -------
        PolicyRule

        Examples
        --------
        Three of four equal predictions would exceed a budget of half.

        >>> import numpy as np
        >>> rows = InfluenceSums(weight=np.ones(4), count=np.ones(4))
        >>> PolicyRule.of(np.array([1.0, 2.0, 2.0, 2.0]), rows, budget=0.5).chance.round(3)
        array([0.   , 0.667, 0.667, 0.667])
        """
        f, mass = np.asarray(predicted, np.float64), rows.mass
        if (threshold is None) == (budget is None):
            raise InvalidParameterError("give either `threshold` or `budget`.")
        if threshold is not None:
            c = check_number("threshold", threshold)
            return cls(
                cutoff=c,
                chance=(f >= c).astype(np.float64),
                budget=None,
                near=np.zeros(len(f), dtype=bool),
            )
        q = check_fraction("budget", budget)
        order = np.argsort(f, kind="stable")
        (c,) = weighted_quantile(f[order], mass[order], np.array([1.0 - q]))
        at, above = f == c, f > c
        total = mass.sum()
        left = q * total - mass[above].sum()
        share = min(max(left / mass[at].sum(), 0.0), 1.0)
        # Those nearest to the cutoff tell who is there.
        distance = np.abs(f - c)
        closest = np.argsort(distance, kind="stable")
        seen = np.cumsum(rows.count[closest])
        k = min(int(np.searchsorted(seen, 2.0 * np.sqrt(seen[-1]))), len(f) - 1)
        near = distance <= distance[closest[k]]
        return cls(cutoff=float(c), chance=above + share * at, budget=q, near=near)


def group_policies(
    scores: EffectScores,
    group: AnyArray,
    treated: AnyArray,
    rows: InfluenceSums,
    rule: PolicyRule,
    *,
    cost: float = 0.0,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> GroupQuantities:
    """Compare between groups whom a rule treats, and what they gain.

    The null hypotheses are that share, gain of a member and gain of a treated one are the same in a
    group and in the rest.

    Parameters
    ----------
    scores : EffectScores
        Doubly robust scores of n rows.
    group, treated : array of shape (n,)
        Group codes from 0; arm in the experiment.
    rows : InfluenceSums
        Weights, counts and units.
    rule : PolicyRule
        Who is treated.
    cost : float, default 0
        Of treating one person, in units of the outcome.
    confidence_level : float, default 0.95
        Of the intervals; those of differences hold together.
    rng : numpy.random.Generator or int, optional
        Of the law of the largest difference.

    Returns
    -------
    GroupQuantities
        Named "share", "gain per member" and "gain per treated".

    Examples
    --------
    A rule treats the upper half of group 0 and everyone of group 1.

    >>> import numpy as np
    >>> from equipoise.stats.effects.effect_scores import effect_scores
    >>> group, treated = np.repeat([0, 1], 40), np.tile([True, False], 40)
    >>> f = np.where(group == 1, 2.0, np.tile([0.0, 0.0, 2.0, 2.0], 20))
    >>> scores = effect_scores(np.where(treated, f, 0.0), treated, group)
    >>> rows = InfluenceSums(weight=np.ones(80), count=np.ones(80))
    >>> rule = PolicyRule.of(f, rows, threshold=1.0)
    >>> found = group_policies(scores, group, treated, rows, rule, rng=0)
    >>> [(v.name, v.group, v.estimate) for v in found.values if v.name == "share"]
    [('share', 0, 0.5), ('share', 1, 1.0)]
    """
    gain = scores.score - check_number("cost", cost)
    code, arm = np.asarray(group, np.int64), np.asarray(treated, np.bool_)
    own: list[_Estimate] = []
    differences: list[_Estimate] = []
    missing: dict[tuple[str, int], str] = {}
    for g in np.unique(code).tolist():
        member = code == g
        reason, other = (_why_not(rows, rule, side, arm) for side in (member, ~member))
        mine = _policy_of(scores, gain, rows.mass, rule, member)
        rest = _policy_of(scores, gain, rows.mass, rule, ~member) if (~member).any() else {}
        few, fewer = (_few_units(rows, side) for side in (member, ~member))
        for name, (estimate, influence) in mine.items():
            lacking = few if name == "share" else reason
            if lacking:
                missing[name, g] = lacking
                continue
            own.append((name, g, estimate, influence))
            if name in rest and not (fewer if name == "share" else other):
                value, moved = rest[name]
                differences.append((name, g, estimate - value, influence - moved))
    return _quantities(rows, own, differences, missing, confidence_level, rng)


def _why_not(rows: InfluenceSums, rule: PolicyRule, member: AnyArray, arm: AnyArray) -> str:
    """Say why a gain is not known, if so."""
    where = member & (rule.chance > 0.0)
    if not where.any():
        return "the rule treats nobody"
    fewest = int(min(rows.count[where & side].sum() for side in (arm, ~arm)))
    if fewest >= MIN_TREATED:
        return _few_units(rows, where & arm) or _few_units(rows, where & ~arm)
    return f"the rule treats {fewest} rows of the smaller arm; {MIN_TREATED} are needed"


def _few_units(rows: InfluenceSums, where: AnyArray) -> str:
    """Say that some rows belong to too few units, if so."""
    if rows.unit is None or not where.any():
        return ""
    sizes = np.bincount(rows.unit[where], rows.mass[where])
    effective = float(sizes.sum() ** 2 / np.sum(sizes**2))
    if effective >= MIN_UNITS:
        return ""
    return f"{effective:.1f} effective independent units; {MIN_UNITS:g} are needed"


def _policy_of(
    scores: EffectScores, gain: FloatArray, mass: FloatArray, rule: PolicyRule, member: AnyArray
) -> dict[str, tuple[float, FloatArray]]:
    """Return the quantities of some rows, with the influence of every row."""
    d, size = rule.chance, float(mass[member].sum())
    inside = member / size
    share, value = float(mass @ (inside * d)), float(mass @ (inside * d * gain))
    by_share = inside * without_noise(d - share)
    by_value = inside * (d * gain - value) + scores.share_influence(inside * d)
    if rule.budget is not None:
        # Everyone moves the cutoff, and with it those of the group who are there.
        near = mass * rule.near
        there = float(near @ member / near.sum()) * float(mass.sum()) / size
        moved = -there * without_noise(d - rule.budget) / mass.sum()
        by_share = by_share + moved
        if there > 0.0:
            by_value = by_value + moved * float(near @ (member * gain) / (near @ member))
    found = {"share": (share, by_share), "gain per member": (value, by_value)}
    ratio = value / share if share > 0.0 else 0.0
    by_ratio = (by_value - ratio * by_share) / share if share > 0.0 else by_value
    return found | {"gain per treated": (ratio, by_ratio)}


class ValueChange(NamedTuple):
    """What another rule changes: mean gain of a person with an interval, and decisions."""

    estimate: float
    low: float
    high: float
    flipped: float


def value_change(
    scores: EffectScores,
    rows: InfluenceSums,
    before: PolicyRule,
    after: PolicyRule,
    *,
    cost: float = 0.0,
    confidence_level: float = 0.95,
) -> ValueChange:
    """Return how much more a person gains on average from one rule than from another.

    Parameters
    ----------
    scores : EffectScores
        Doubly robust scores of n rows.
    rows : InfluenceSums
        Weights, counts and units.
    before, after : PolicyRule
        The rules.
    cost : float, default 0
        Of treating one person, in units of the outcome.
    confidence_level : float, default 0.95
        Of the interval.

    Returns
    -------
    ValueChange
        With `flipped`, the share of persons whom the rules treat differently.

    Examples
    --------
    Leaving out those whom treatment harms.

    >>> import numpy as np
    >>> from equipoise.stats.effects.effect_scores import effect_scores
    >>> effect, treated = np.repeat([1.0, -1.0], 40), np.tile([True, False], 40)
    >>> scores = effect_scores(np.where(treated, effect, 0.0), treated, effect > 0)
    >>> rows = InfluenceSums(weight=np.ones(80), count=np.ones(80))
    >>> everyone, gainers = (PolicyRule.of(effect, rows, threshold=c) for c in (-1.0, 1.0))
    >>> found = value_change(scores, rows, everyone, gainers)
    >>> found.estimate, found.flipped
    (0.5, 0.5)
    """
    gain = scores.score - check_number("cost", cost)
    everyone = np.ones(len(gain), dtype=bool)
    (old, by_old), (new, by_new) = (
        _policy_of(scores, gain, rows.mass, rule, everyone)["gain per member"]
        for rule in (before, after)
    )
    sums = rows.sums(by_new - by_old)
    ends = rows.interval(new - old, sums, check_fraction("confidence_level", confidence_level))
    flipped = rows.mass @ np.abs(after.chance - before.chance) / rows.mass.sum()
    return ValueChange(new - old, float(ends.low), float(ends.high), float(flipped))


def group_rankings(
    scores: EffectScores,
    predicted: AnyArray,
    group: AnyArray,
    treated: AnyArray,
    rows: InfluenceSums,
    *,
    kind: EffectRanking = "autoc",
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> GroupQuantities:
    """Compare between groups how much more those gain who are predicted to gain more.

    The null hypothesis is that the rank-weighted average effect of a group is that of the other
    groups, averaged by size.

    Parameters
    ----------
    scores : EffectScores
        Doubly robust scores of n rows.
    predicted, group, treated : array of shape (n,)
        Predicted effects; group codes from 0; arm in the experiment.
    rows : InfluenceSums
        Weights, counts and units.
    kind : {"autoc", "qini"}
        Weights of ranks.
    confidence_level : float, default 0.95
        Of the intervals; those of differences hold together.
    rng : numpy.random.Generator or int, optional
        Of the law of the largest difference.

    Returns
    -------
    GroupQuantities
        Named as `kind`.
    """
    code, f = np.asarray(group, np.int64), np.asarray(predicted, np.float64)
    arm = np.asarray(treated, np.bool_)
    missing: dict[tuple[str, int], str] = {}
    own: list[_Estimate] = []
    sizes = []
    for g in np.unique(code).tolist():
        member = code == g
        if len(np.unique(f[member])) < 2:
            missing[kind, g] = "every prediction is the same"
            continue
        fewest = int(min(rows.count[member & side].sum() for side in (arm, ~arm)))
        if fewest < MIN_TREATED:
            missing[kind, g] = f"the smaller arm has {fewest} rows; {MIN_TREATED} are needed"
            continue
        few = _few_units(rows, member & arm) or _few_units(rows, member & ~arm)
        if few:
            missing[kind, g] = few
            continue
        found = ranked_effect(scores.score[member], f[member], kind=kind, mass=rows.mass[member])
        influence, factor = np.zeros(len(code)), np.zeros(len(code))
        influence[member], factor[member] = found.influence, found.factor
        own.append((kind, g, found.estimate, influence + scores.share_influence(factor)))
        sizes.append(float(rows.mass[member].sum()))
    size = np.array(sizes)
    differences: list[_Estimate] = []
    for k, (name, g, estimate, influence) in enumerate(own) if len(own) > 1 else ():
        share = np.where(np.arange(len(own)) == k, 0.0, size) / (size.sum() - size[k])
        rest = float(sum(a * one[2] for a, one in zip(share, own, strict=True)))
        moved = sum(a * one[3] for a, one in zip(share, own, strict=True))
        differences.append((name, g, estimate - rest, influence - moved))
    return _quantities(rows, own, differences, missing, confidence_level, rng)


def _quantities(
    rows: InfluenceSums,
    own: list[_Estimate],
    differences: list[_Estimate],
    missing: dict[tuple[str, int], str],
    level: float,
    rng: Rng,
) -> GroupQuantities:
    check_fraction("confidence_level", level)
    values = []
    for name, g, estimate, influence in own:
        ends = rows.interval(estimate, rows.sums(influence), level)
        values.append(GroupContrast(name, g, estimate, float(ends.low), float(ends.high)))
    sums = [rows.sums(influence) for *_, influence in differences]
    kept = [k for k, one in enumerate(sums) if np.any(np.abs(one) > 0.0)]
    found: dict[int, GroupContrast] = {}
    if kept:
        test = rows.test(
            np.array([differences[k][2] for k in kept]),
            np.array([sums[k] for k in kept]),
            confidence_level=level,
            rng=rng,
        )
        for place, k in enumerate(kept):
            name, g, estimate, _ = differences[k]
            found[k] = GroupContrast(
                name,
                g,
                estimate,
                float(test.low[place]),
                float(test.high[place]),
                float(test.statistic[place]),
                float(test.p_value[place]),
                float(test.p_value_adjusted[place]),
            )
    return GroupQuantities(
        values=tuple(values),
        differences=tuple(found[k] for k in sorted(found)),
        missing=missing,
    )
