r"""Utilities of any number of rules on the same people, by the influence of every row.

A utility is linear in the chance of selection D: with u(0), w(0) the quantities of a row that is
not selected and :math:`\Delta u, \Delta w` what selecting it adds,

.. math:: U_g = \frac{\sum \omega\,(u(0) + D \Delta u) 1_g}{\sum \omega\,(w(0) + D \Delta w) 1_g}.

Where the rule selects a share :math:`\kappa` in every sample, its cut-off is estimated and a row
also moves it:

.. math:: \psi = \frac{\omega}{W_g}\left[(u(D) - U_g w(D)) 1_g + (\kappa - D)\,m_g\right],\qquad
          m_g = E_\omega[(\Delta u - U_g \Delta w) 1_g \mid S = q].

The same formula holds for a continuous score and for a block of equal scores at the cut-off, where
the chance :math:`\pi` of its members moves instead of q.

Some utilities are no means of decisions, but of a whole score, or of all decisions together.
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

from equipoise._checks import check_finite
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Rng
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.capacity import Decisions
from equipoise.stats.improvement.utilities import BootstrapDraws, UtilityEstimates, nameless_order
from equipoise.stats.influence import auc_influence
from equipoise.stats.resampling import (
    bootstrap_sums,
    distinct_rows,
    integer_levels,
    without_last_digits,
)

__all__ = [
    "BENEFIT_ORDER",
    "RowUtilities",
    "ScoreRows",
    "ScoreUtility",
    "ScoredUtilities",
    "best_threshold",
    "estimate_rules",
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


CHUNK = 65_536
MAX_SPAN = 1_000_000
MAX_CELLS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RowUtilities:
    """What selecting a row is worth, for C criteria.

    Parameters
    ----------
    numerator, denominator : array of shape (n, C)
        Quantities of a row that is not selected.
    numerator_change, denominator_change : array of shape (n, C)
        What selecting it adds.
    """

    numerator: FloatArray
    denominator: FloatArray
    numerator_change: FloatArray
    denominator_change: FloatArray

    @property
    def criteria(self) -> int:
        """Number C."""
        return int(self.numerator.shape[1])

    def columns(self) -> FloatArray:
        """Return all quantities side by side, of shape (n, 4 C)."""
        return np.concatenate(
            [
                self.numerator,
                self.denominator,
                self.numerator_change,
                self.denominator_change,
            ],
            axis=1,
        )

    @classmethod
    def of_columns(cls, columns: FloatArray) -> "RowUtilities":
        """Part what `columns` put together."""
        return cls(**dict(zip(cls.__dataclass_fields__, np.split(columns, 4, axis=1), strict=True)))

    def rows(self, part: IntArray | slice | BoolArray) -> "RowUtilities":
        """Return some of the rows."""
        return RowUtilities(
            **{name: getattr(self, name)[part] for name in self.__dataclass_fields__}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """Rows, what each of A rules decides about them, and whose utilities are wanted."""

    utilities: RowUtilities
    chance: FloatArray
    group: IntArray
    n_groups: int
    population: bool
    weight: FloatArray
    count: FloatArray

    @property
    def width(self) -> int:
        return self.n_groups + self.population

    def by_group(self, values: FloatArray, part: IntArray | None = None) -> FloatArray:
        """Sum over the rows of each group, and of everyone."""
        group = self.group if part is None else self.group[part]
        sums = np.bincount(group, weights=values, minlength=self.n_groups)
        total = [sums.sum()] if self.population else []
        return np.append(sums, total).astype(np.float64)

    def quantities(self, criterion: int, rule: int) -> tuple[FloatArray, FloatArray]:
        """Return weighted u and w of every row."""
        parts, d = self.utilities, self.chance[:, rule]
        u = parts.numerator[:, criterion] + d * parts.numerator_change[:, criterion]
        w = parts.denominator[:, criterion] + d * parts.denominator_change[:, criterion]
        return self.weight * u, self.weight * w


def estimate_rules(
    utilities: RowUtilities,
    rules: Sequence[Decisions],
    group: AnyArray,
    *,
    n_groups: int,
    population: bool = False,
    wanted: AnyArray | None = None,
    weight: AnyArray | None = None,
    count: AnyArray | None = None,
    cluster: AnyArray | None = None,
    n_resamples: int = 0,
    rng: Rng = None,
    scored: ScoredUtilities | None = None,
) -> UtilityEstimates:
    """Estimate the utilities of several rules in every group, with their joint law.

    Parameters
    ----------
    utilities : RowUtilities
        What selecting each row is worth.
    rules : sequence of Decisions
        The status quo first, then the candidates.
    group : array of shape (n,)
        Group of each row, 0 to `n_groups` - 1.
    n_groups : int
        Number of groups.
    population : bool
        Add everyone as one more group, the last.
    wanted : array of bool of shape (C, H), optional
        Utilities whose covariance is needed; by default all.
    weight, count, cluster : array of shape (n,), optional
        Sampling weights; how many identical rows a row stands for, or how many identical units
        its unit; unit of each row.
    n_resamples : int
        Bootstrap samples of the influence; for two rules.
    rng : numpy.random.Generator, int or None
        Source of randomness.
    scored : ScoredUtilities, optional
        Further criteria, of scores; they follow the others.

    Returns
    -------
    UtilityEstimates
        Covariances of utilities that are not wanted are zero; so are utilities without support.

    Examples
    --------
    Half of four people are selected by a score; three share the second place.

    >>> from equipoise.stats.improvement.capacity import cut_top_share
    >>> y = np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> zero, one = np.zeros((4, 1)), np.ones((4, 1))
    >>> outcome = RowUtilities(
    ...     numerator=zero, denominator=zero, numerator_change=y, denominator_change=one
    ... )
    >>> rule = cut_top_share([0.9, 0.5, 0.5, 0.5], 0.5)
    >>> found = estimate_rules(outcome, [rule, rule], [0, 0, 0, 0], n_groups=1)
    >>> found.value[0, 0].round(3).tolist()
    [0.667]

    The first, and one third of the other success: 4 in 3 of 2 selected.
    """
    code = np.asarray(group, dtype=np.int64)
    n = len(code)
    few = len(rules) == 2 or n_resamples > 0 or cluster is not None or scored is not None
    sample = _Sample(
        utilities=utilities,
        chance=np.stack([rule.chance for rule in rules], axis=1) if few else np.zeros((n, 0)),
        group=code,
        n_groups=n_groups,
        population=population,
        weight=np.ones(n) if weight is None else check_finite("weight", weight, ndim=1),
        count=np.ones(n) if count is None else np.asarray(count, dtype=np.float64),
    )
    kept = np.ones((utilities.criteria, sample.width), dtype=np.bool_)
    kept = kept if wanted is None else np.asarray(wanted)
    units = None if cluster is None else np.unique(np.asarray(cluster), return_inverse=True)[1]
    place = np.arange(n_groups)
    if n_resamples:
        place = _nameless(_merged(sample, rules))
        sample = replace(sample, group=place[code])
        order = [*np.argsort(place), *range(n_groups, sample.width)]
        kept = kept[:, order]
        if scored is not None:
            scored = ScoredUtilities(
                value=scored.value[:, :, order],
                support=scored.support[:, :, order],
                influence=scored.influence[:, :, :, order],
            )
    moves = [_moves(sample, rule) for rule in rules]
    if not few:
        cells = _cells(sample)
        if cells is not None:
            return _by_cells(sample, rules, moves, kept, cells)
        sample = replace(sample, chance=np.stack([rule.chance for rule in rules], axis=1))
    if len(rules) == 2 and units is None and scored is None:
        sample = _merged(sample, rules)
    total = np.zeros((utilities.criteria, len(rules), 2, sample.width))
    support = np.zeros((utilities.criteria, len(rules), sample.width), dtype=np.int64)
    for c, a in np.ndindex(*support.shape[:2]):
        for part, values in enumerate(sample.quantities(c, a)):
            total[c, a, part] = sample.by_group(sample.count * values)
        support[c, a] = _counted(sample, values != 0, units)
    # A group on which nothing rests has no utility; its support says so.
    bottom = np.where(total[:, :, 1] == 0, 1.0, total[:, :, 1])
    value = np.where(total[:, :, 1] == 0, 0.0, total[:, :, 0] / bottom)
    influence = _Influence(
        sample=sample,
        value=value,
        bottom=bottom,
        capacity=[rule.capacity for rule in rules],
        move=np.stack(
            [
                np.zeros_like(value[:, a]) if move is None else move[0] - value[:, a] * move[1]
                for a, move in enumerate(moves)
            ],
            axis=1,
        ),
        kept=kept,
    )
    if scored is not None:
        value = np.concatenate([value, scored.value])
        support = np.concatenate([support, scored.support])
        influence = replace(influence, scored=scored)
    used = influence.places()
    product, distinct = influence.products(units, draws=n_resamples > 0)
    covariance = np.zeros((value.size, value.size))
    covariance[np.ix_(used, used)] = product
    n_units = round(float((sample.count if units is None else _copies(sample, units)).sum()))
    draws = None
    if distinct is not None:
        draws = _draws(value.ravel(), used, distinct, n_units, n_resamples, rng)
    estimates = UtilityEstimates(
        value=value,
        covariance=covariance,
        support=support,
        n_groups=n_groups,
        n_units=n_units,
        draws=draws,
    )
    return estimates.among(place.tolist())


def _nameless(merged: "_Sample") -> IntArray:
    """Return the number of each group by its rows alone: draws do not depend on names."""
    rows = np.column_stack([merged.chance, merged.weight, merged.utilities.columns()])
    return nameless_order(rows, merged.group, merged.count, merged.n_groups)


def _moves(sample: _Sample, rule: Decisions) -> tuple[FloatArray, FloatArray] | None:
    """Return the mean changes of numerator and denominator at the cut-off, each (C, H)."""
    if rule.capacity is None or rule.near is None:
        return None
    near = np.flatnonzero(rule.near)
    mass = sample.weight[near] * sample.count[near]
    top, bottom = (
        np.stack([sample.by_group(mass * column[near], near) for column in change.T]) / mass.sum()
        for change in (
            sample.utilities.numerator_change,
            sample.utilities.denominator_change,
        )
    )
    return top, bottom


def _cells(sample: _Sample) -> list[IntArray] | None:
    """Return the rows that are alike but for decisions and weights; None if hardly any are."""
    code, span = sample.group, sample.n_groups
    for column in sample.utilities.columns().T:
        level, size = integer_levels(column)
        code, span = code * size + level, span * size
        if span > MAX_SPAN:
            return None
    counts = np.bincount(code, minlength=span)
    if np.count_nonzero(counts) > MAX_CELLS:
        return None
    order = np.argsort(code, kind="stable")
    return [part for part in np.split(order, np.cumsum(counts)[:-1]) if len(part)]


def _by_cells(
    sample: _Sample,
    rules: Sequence[Decisions],
    moves: Sequence[tuple[FloatArray, FloatArray] | None],
    kept: BoolArray,
    cells: Sequence[IntArray],
) -> UtilityEstimates:
    """Estimate many rules from sums of decisions and of their products in every cell.

    In a cell the influence of a row is affine in its decision: all that is needed are the sums of
    D and of D D' over the cell, whatever the number of criteria and groups.
    """
    parts, n_rules = sample.utilities, len(rules)
    shape = (parts.criteria, n_rules, sample.width)
    total = np.zeros((2, *shape))
    support = np.zeros(shape, dtype=np.int64)
    sums = []
    for rows in cells:
        chance = np.stack([rule.chance[rows] for rule in rules])
        count, weight = sample.count[rows], sample.weight[rows]
        mass, square = count * weight, count * weight**2
        root = chance * np.sqrt(square)
        sums.append((float(square.sum()), chance @ square, root @ root.T))
        everyone, chosen = float(mass.sum()), chance @ mass
        groups = [int(sample.group[rows[0]]), *([sample.n_groups] if sample.population else [])]
        for c in range(parts.criteria):
            u0, du, w0, dw = _of_cell(parts, int(rows[0]), c)
            if dw == 0.0:
                used = np.full(n_rules, (w0 != 0.0) * count.sum())
            else:
                used = (w0 + dw * chance != 0.0) @ count
            for g in groups:
                total[0, c, :, g] += u0 * everyone + du * chosen
                total[1, c, :, g] += w0 * everyone + dw * chosen
                support[c, :, g] += used.round().astype(np.int64)
    bottom = np.where(total[1] == 0, 1.0, total[1])
    value = np.where(total[1] == 0, 0.0, total[0] / bottom)
    criterion, rule, group = (
        axis[np.broadcast_to(kept[:, None, :], shape)] for axis in np.indices(shape)
    )
    share = np.array([rule.capacity or 0.0 for rule in rules])[rule]
    move = np.stack(
        [
            np.zeros((parts.criteria, sample.width))
            if found is None
            else found[0] - value[:, a] * found[1]
            for a, found in enumerate(moves)
        ],
        axis=1,
    )[criterion, rule, group]
    at, below = value[criterion, rule, group], bottom[criterion, rule, group]
    product = np.zeros((len(rule), len(rule)))
    for rows, (whole, first, second) in zip(cells, sums, strict=True):
        of_cell = [_of_cell(parts, int(rows[0]), c) for c in range(parts.criteria)]
        top, top_change, low, low_change = np.array(of_cell).T[:, criterion]
        mine = (group == sample.group[rows[0]]) | (group == sample.n_groups)
        level = ((top - at * low) * mine + share * move) / below
        slope = ((top_change - at * low_change) * mine - move) / below
        mixed = np.outer(level, slope * first[rule])
        product += whole * np.outer(level, level) + mixed + mixed.T
        product += np.outer(slope, slope) * second[np.ix_(rule, rule)]
    place = np.ravel_multi_index((criterion, rule, group), shape)
    covariance = np.zeros((value.size, value.size))
    covariance[np.ix_(place, place)] = product
    return UtilityEstimates(
        value=value,
        covariance=covariance,
        support=support,
        n_groups=sample.n_groups,
        n_units=round(float(sample.count.sum())),
    )


def _of_cell(parts: RowUtilities, row: int, criterion: int) -> tuple[float, float, float, float]:
    """Return u and w of a row that is not selected, each with what selecting it adds."""
    return (
        float(parts.numerator[row, criterion]),
        float(parts.numerator_change[row, criterion]),
        float(parts.denominator[row, criterion]),
        float(parts.denominator_change[row, criterion]),
    )


def _merged(sample: _Sample, rules: Sequence[Decisions]) -> _Sample:
    """Count rows that are alike."""
    fractions = [_fraction(rule.chance) for rule in rules]
    codes = [(rule.chance > 0.0).astype(np.float64) + (rule.chance >= 1.0) for rule in rules]
    columns = np.column_stack(
        [sample.group + 1.0, *codes, sample.weight, sample.utilities.columns()]
    )
    found = distinct_rows(columns, sample.count.round().astype(np.int64))
    place = 1 + len(rules)
    chance = np.column_stack(
        [
            np.array([0.0, fraction, 1.0])[found.values[:, 1 + k].astype(np.int64)]
            for k, fraction in enumerate(fractions)
        ]
    )
    return _Sample(
        utilities=RowUtilities.of_columns(found.values[:, place + 1 :]),
        chance=chance,
        group=found.values[:, 0].astype(np.int64) - 1,
        n_groups=sample.n_groups,
        population=sample.population,
        weight=found.values[:, place],
        count=found.count.astype(np.float64),
    )


def _fraction(chance: FloatArray) -> float:
    """Return the one chance between 0 and 1 that occurs."""
    between = (chance > 0.0) & (chance < 1.0)
    return float(chance[int(np.argmax(between))]) if between.any() else 0.0


def _counted(sample: _Sample, used: BoolArray, units: IntArray | None) -> IntArray:
    if units is None:
        return sample.by_group(sample.count * used).round().astype(np.int64)
    copies = _copies(sample, units)
    pairs = np.unique(units[used] * sample.n_groups + sample.group[used])
    found = np.bincount(
        pairs % sample.n_groups,
        weights=copies[pairs // sample.n_groups],
        minlength=sample.n_groups,
    )
    everyone = [copies[np.unique(units[used])].sum()] if sample.population else []
    return np.append(found, everyone).round().astype(np.int64)


def _copies(sample: _Sample, units: IntArray) -> FloatArray:
    """Return how many identical units each unit stands for: as many as each of its rows."""
    found = np.ones(int(units.max()) + 1)
    found[units] = sample.count
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Influence:
    """Influence of every row on the utilities that are wanted."""

    sample: _Sample
    value: FloatArray
    bottom: FloatArray
    capacity: Sequence[float | None]
    move: FloatArray
    kept: BoolArray
    scored: ScoredUtilities | None = None

    def places(self) -> IntArray:
        """Return the numbers of the wanted utilities."""
        everywhere = np.broadcast_to(self.kept[:, None, :], self.value.shape).ravel()
        more = 0 if self.scored is None else self.scored.value.size
        return np.flatnonzero(np.append(everywhere, np.ones(more, dtype=np.bool_)))

    def products(
        self, units: IntArray | None, *, draws: bool
    ) -> tuple[FloatArray, tuple[FloatArray, IntArray] | None]:
        """Return the sum of products over units and, for draws, the distinct units."""
        n = len(self.sample.group)
        width = len(self.places())
        product = np.zeros((width, width))
        kept = []
        totals = None if units is None else np.zeros((int(units.max()) + 1, width))
        for start in range(0, n, CHUNK):
            part = slice(start, min(start + CHUNK, n))
            psi = self._rows(part)
            if totals is not None and units is not None:
                unit = units[part]
                low = int(unit.min())
                for k, column in enumerate(psi.T):
                    sums = np.bincount(unit - low, weights=column)
                    totals[low : low + len(sums), k] += sums
                continue
            root = psi * np.sqrt(self.sample.count[part])[:, None]
            product += root.T @ root
            if draws:
                kept.append(psi)
        if totals is not None and units is not None:
            copies = _copies(self.sample, units)
            product = (totals * copies[:, None]).T @ totals
            if not draws:
                return product, None
            found = distinct_rows(without_last_digits(totals), copies.round().astype(np.int64))
            return product, (found.values, found.count)
        if not draws:
            return product, None
        rows = distinct_rows(np.concatenate(kept), self.sample.count.round().astype(np.int64))
        return product, (rows.values, rows.count)

    def _rows(self, part: slice) -> FloatArray:
        sample = self.sample
        rows = _Sample(
            utilities=sample.utilities.rows(part),
            chance=sample.chance[part],
            group=sample.group[part],
            n_groups=sample.n_groups,
            population=sample.population,
            weight=sample.weight[part],
            count=sample.count[part],
        )
        member = rows.group[:, None] == np.arange(sample.n_groups)
        columns = []
        for c, a in np.ndindex(*self.value.shape[:2]):
            u, w = rows.quantities(c, a)
            share = self.capacity[a]
            for g in np.flatnonzero(self.kept[c]):
                psi = u - self.value[c, a, g] * w
                if g < sample.n_groups:
                    psi = psi * member[:, g]
                if share is not None:
                    psi = psi + (self.move[c, a, g] * (share - rows.chance[:, a])) * rows.weight
                columns.append(psi / self.bottom[c, a, g])
        found = np.stack(columns, axis=1) if columns else np.zeros((len(rows.group), 0))
        if self.scored is None:
            return found
        more = self.scored.influence[part].reshape(len(found), -1)
        return np.concatenate([found, more], axis=1)


def _draws(
    value: FloatArray,
    place: IntArray,
    distinct: tuple[FloatArray, IntArray],
    n_units: int,
    n_resamples: int,
    rng: Rng,
) -> BootstrapDraws:
    """Resample sums of influence; every draw has its own covariance, to be studentised by."""
    psi, count = distinct
    first, second = np.triu_indices(psi.shape[1])
    columns = np.concatenate([psi, psi[:, first] * psi[:, second]], axis=1)
    resampled = bootstrap_sums(columns, count, n=n_units, n_resamples=n_resamples, rng=rng)
    shift = resampled.sums[:, : psi.shape[1]]
    products = resampled.sums[:, psi.shape[1] :] - shift[:, first] * shift[:, second] / n_units
    values = np.tile(value, (n_resamples, 1))
    values[:, place] += shift
    covariance = np.zeros((n_resamples, len(value), len(value)))
    covariance[:, place[first], place[second]] = products
    covariance[:, place[second], place[first]] = products
    return BootstrapDraws(
        value=values,
        covariance=covariance,
        defined=np.ones(values.shape, dtype=np.bool_),
        law=resampled.law,
    )
