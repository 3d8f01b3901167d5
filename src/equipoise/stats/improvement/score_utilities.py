"""Utilities that are no means of decisions: of a whole score, or of all decisions together.

Each has a value for a group and the influence of every row on it; contrasts, tests and bootstrap
then are those of all other utilities.

* ``"auc"``: chance that a person with the outcome scores higher than one without, ties half;
* ``"brier"``: minus the mean squared difference of score and outcome;
* ``"ks"``: true minus false positive rate at a threshold fixed on other rows;
* ``"smd"``: mean score in standard deviations, whose gap is the standardised mean difference;
* the entropy index of benefits b = D - y + 1, a number for everyone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from equipoise._typing import BoolArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.utilities import BootstrapDraws, UtilityEstimates
from equipoise.stats.roc import auc_influence

__all__ = [
    "BENEFIT_ORDER",
    "ScoreRows",
    "ScoreUtility",
    "ScoredUtilities",
    "best_threshold",
    "of_benefits",
    "scored_utilities",
]

ScoreUtility: TypeAlias = Literal["auc", "brier", "ks", "smd"]
BENEFIT_ORDER = 2.0
"""Order of the entropy index of benefits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRows:
    """Rows with the scores of several rules.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome, 0 or 1; not a number where it is not known.
    score : array of shape (n, A)
        What each rule thinks of each row; for "ks", its decision.
    group : array of shape (n,)
        Group of each row.
    n_groups : int
        Number of groups.
    population : bool
        Whether everyone is one more group, the last.
    weight, count : array of shape (n,)
        Sampling weights; how many identical rows a row stands for.
    """

    y: FloatArray
    score: FloatArray
    group: IntArray
    n_groups: int
    population: bool
    weight: FloatArray
    count: FloatArray

    def members(self) -> list[BoolArray]:
        """Return the rows of each group, and of everyone."""
        everyone = [np.ones(len(self.y), dtype=np.bool_)] if self.population else []
        return [self.group == g for g in range(self.n_groups)] + everyone


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredUtilities:
    """Values of score utilities, and the influence of every row on each.

    Parameters
    ----------
    value, support : array of shape (S, A, H)
        Of S utilities, A rules and H groups; rows that each rests on.
    influence : array of shape (n, S, A, H)
        Of a row, its weight included.
    """

    value: FloatArray
    support: IntArray
    influence: FloatArray


def scored_utilities(kinds: Sequence[ScoreUtility], rows: Sequence[ScoreRows]) -> ScoredUtilities:
    """Estimate score utilities of all rules in all groups.

    Parameters
    ----------
    kinds : sequence of {"auc", "brier", "ks", "smd"}
        Which.
    rows : sequence of ScoreRows
        For each of them.

    Returns
    -------
    ScoredUtilities
        Zero where nothing supports a value.

    Examples
    --------
    Two scores of four people; who orders them better?

    >>> one = np.ones(4)
    >>> rows = ScoreRows(
    ...     y=np.array([0.0, 0.0, 1.0, 1.0]),
    ...     score=np.array([[1, 1], [3, 2], [2, 3], [4, 4]], dtype=float),
    ...     group=np.zeros(4, dtype=int), n_groups=1, population=False, weight=one, count=one)
    >>> scored_utilities(["auc"], [rows]).value[0, :, 0].tolist()
    [0.75, 1.0]
    """
    n, n_rules = rows[0].score.shape
    width = rows[0].n_groups + rows[0].population
    value = np.zeros((len(kinds), n_rules, width))
    support = np.zeros(value.shape, dtype=np.int64)
    influence = np.zeros((n, *value.shape))
    for s, (kind, sample) in enumerate(zip(kinds, rows, strict=True)):
        for a, h in np.ndindex(n_rules, width):
            member = sample.members()[h]
            value[s, a, h], influence[:, s, a, h], support[s, a, h] = _utility(
                kind, sample, sample.score[:, a], member
            )
    return ScoredUtilities(value=value, support=support, influence=influence)


def _utility(
    kind: ScoreUtility, rows: ScoreRows, score: FloatArray, member: BoolArray
) -> tuple[float, FloatArray, int]:
    """Return value, influence and support in one group."""
    influence = np.zeros(len(score))
    if kind == "smd":
        return _standardised(rows, score, member)
    used = member & ~np.isnan(rows.y)
    y, s, weight, count = rows.y[used], score[used], rows.weight[used], rows.count[used]
    mass = weight * count
    if kind == "brier":
        if not mass.sum():
            return 0.0, influence, 0
        gain = -((s - y) ** 2)
        value = float(mass @ gain / mass.sum())
        influence[used] = weight * (gain - value) / mass.sum()
        return value, influence, round(float(count.sum()))
    sizes = [float(mass @ (y == k)) for k in (0, 1)]
    least = min(round(float(count @ (y == k))) for k in (0, 1))
    if min(sizes) == 0.0:
        return 0.0, influence, 0
    if kind == "auc":
        value, psi = auc_influence(y, s, weight, count)
        influence[used] = weight * psi
        return value, influence, least
    rates = [float(mass @ (s * (y == k)) / sizes[k]) for k in (0, 1)]
    influence[used] = weight * np.where(y == 1, s - rates[1], rates[0] - s)
    influence[used] /= np.where(y == 1, sizes[1], sizes[0])
    return rates[1] - rates[0], influence, least


def _standardised(
    rows: ScoreRows, score: FloatArray, member: BoolArray
) -> tuple[float, FloatArray, int]:
    mass = rows.weight * rows.count
    size, own = float(mass.sum()), float(mass @ member)
    mean = float(mass @ score / size)
    variance = float(mass @ (score - mean) ** 2 / size)
    if own == 0.0 or variance == 0.0:
        return 0.0, np.zeros(len(score)), 0
    middle = float(mass @ (score * member) / own)
    value = middle / np.sqrt(variance)
    spread = ((score - mean) ** 2 - variance) / size
    influence = (score - middle) * member / own / np.sqrt(variance) - value * spread / (
        2.0 * variance
    )
    return value, rows.weight * influence, round(float(rows.count @ member))


def best_threshold(score: FloatArray, y: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the score at or above which the true minus the false positive rate is largest.

    Parameters
    ----------
    score, y : array of shape (n,)
        Scores, and outcomes of 0 and 1 that both occur.
    weight : array of shape (n,), optional
        Sampling weights.

    Returns
    -------
    float

    Examples
    --------
    >>> best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.0, 1.0, 1.0]))
    3.0
    """
    mass = np.ones(len(y)) if weight is None else weight
    sizes = [float(mass @ (y == k)) for k in (0, 1)]
    if min(sizes) == 0.0:
        raise InvalidParameterError(
            "a threshold needs training rows with and without the outcome; one of them is missing."
        )
    levels, place = np.unique(score, return_inverse=True)
    change = mass * np.where(y == 1, 1.0 / sizes[1], -1.0 / sizes[0])
    reached = np.cumsum(np.bincount(place, weights=change)[::-1])[::-1]
    return float(levels[int(np.argmax(reached))])


def of_benefits(
    estimates: UtilityEstimates, parts: Sequence[int | tuple[int, int]], *, population: bool
) -> UtilityEstimates:
    """Put entropy indices in place of the means of benefits that they are made of.

    Parameters
    ----------
    estimates : UtilityEstimates
        With everyone as the last group.
    parts : sequence of int or (int, int)
        For each criterion that is wanted: its number, or the numbers of the means of b squared and
        of b.
    population : bool
        Whether everyone is wanted.

    Returns
    -------
    UtilityEstimates
        Every group has the index of everyone.
    """
    rules, width = estimates.value.shape[1:]
    kept = width if population else estimates.n_groups
    shape = (len(parts), rules, kept)
    value, support = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    slope = np.zeros((value.size, estimates.value.size))
    a = BENEFIT_ORDER
    for c, r, h in np.ndindex(*shape):
        row, part = slope[np.ravel_multi_index((c, r, h), shape)], parts[c]
        if isinstance(part, int):
            row[estimates.position(part, r, h)] = 1.0
            value[c, r, h], support[c, r, h] = (
                estimates.value[part, r, h],
                estimates.support[part, r, h],
            )
            continue
        power, mean = (float(estimates.value[k, r, -1]) for k in part)
        value[c, r, h] = (power / mean**a - 1.0) / (a * (a - 1.0))
        row[estimates.position(part[0], r, width - 1)] = 1.0 / (mean**a * a * (a - 1.0))
        row[estimates.position(part[1], r, width - 1)] = -power / (mean ** (a + 1.0) * (a - 1.0))
        support[c, r, h] = estimates.support[part[0], r, -1]
    draws = estimates.draws
    if draws is not None:
        draws = BootstrapDraws(
            value=value.ravel() + (draws.value - estimates.value.ravel()) @ slope.T,
            covariance=slope @ draws.covariance @ slope.T,
            defined=np.ones((len(draws.value), value.size), dtype=np.bool_),
            law=draws.law,
        )
    return replace(
        estimates,
        value=value,
        covariance=slope @ estimates.covariance @ slope.T,
        support=support,
        draws=draws,
    )
