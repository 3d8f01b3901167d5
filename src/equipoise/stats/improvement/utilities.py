r"""Utilities of two algorithms in every group, on the same people, and contrasts of them.

A utility is a ratio of means: :math:`U = \sum \omega u / \sum \omega w` over the rows of a group,
with row quantities (u, w) that depend on the decision (Eq. (1) of [1]_). Status quo and candidate
decide about the same rows, so all ratios are estimated jointly: values, covariance by influence
functions, and bootstrap draws of both. Every test at every margin is then a linear contrast of one
vector; nothing is resampled twice.

References
----------
.. [1] E. Auerbach, A. Liang, M. Tabord-Meehan and K. Okumura (2024), Testing the
   fairness-improvability of algorithms. doi:10.48550/arXiv.2405.04816
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Self, TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import check_finite
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Rng
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.resampling import bootstrap_sums, distinct_rows, without_last_digits

__all__ = [
    "BootstrapDraws",
    "ContrastLaw",
    "ContrastLine",
    "UtilityEstimates",
    "UtilityLayout",
    "bootstrap_draws",
    "counted_units",
    "estimate_utilities",
    "gram_root",
    "nameless_order",
    "standard_error",
]

DRAW_CHUNK = 2_000
ContrastLaw: TypeAlias = Literal["studentised", "basic", "normal"]
# Rounding leaves a relative variance of this size where the truth is zero.
NO_VARIANCE = 1e-14
ROUNDING = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapDraws:
    """Estimates on bootstrap samples.

    Parameters
    ----------
    value : array of shape (J, R)
        Ratios; zero where undefined.
    covariance : array of shape (J, R, R)
        Their covariance, estimated on the bootstrap sample.
    defined : array of shape (J, R)
        False where a bootstrap sample has a zero denominator.
    law : str
        How the samples were drawn, see `equipoise.stats.resampling`.
    """

    value: FloatArray
    covariance: FloatArray
    defined: BoolArray
    law: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityEstimates:
    """All utilities of two algorithms, with their joint law.

    Ratios are numbered by criterion, then algorithm (0 status quo, 1 candidate), then group.

    Parameters
    ----------
    value : array of shape (C, A, H)
        Utilities of A algorithms, two unless several candidates are judged together; H counts the
        groups and, with `population`, everyone as the last.
    covariance : array of shape (R, R)
        Their covariance, R = A C H.
    support : array of shape (C, A, H)
        Independent units with a non-zero denominator.
    n_groups : int
        Groups, everyone not counted.
    n_units : int
        Independent units: rows, or clusters.
    draws : BootstrapDraws, optional
        Present when bootstrap samples were asked for.
    """

    value: FloatArray
    covariance: FloatArray
    support: IntArray
    n_groups: int
    n_units: int
    draws: BootstrapDraws | None = None

    def position(self, criterion: int, algorithm: int, group: int) -> int:
        """Return the number of a ratio in `covariance` and in the draws."""
        rules, width = int(self.value.shape[1]), int(self.value.shape[2])
        return (rules * criterion + algorithm) * width + group

    def among(self, groups: Sequence[int]) -> Self:
        """Return the estimates of some groups, in that order (and of everyone, if there)."""
        kept = [*groups, *range(self.n_groups, self.value.shape[2])]
        if kept == list(range(self.value.shape[2])):
            return self
        place = np.arange(self.value.size).reshape(self.value.shape)[:, :, kept].ravel()
        draws = self.draws
        if draws is not None:
            draws = BootstrapDraws(
                value=draws.value[:, place],
                covariance=draws.covariance[:, place[:, None], place],
                defined=draws.defined[:, place],
                law=draws.law,
            )
        return replace(
            self,
            value=self.value[:, :, kept],
            covariance=self.covariance[np.ix_(place, place)],
            support=self.support[:, :, kept],
            n_groups=len(groups),
            draws=draws,
        )

    def of_rules(self, rules: Sequence[int]) -> Self:
        """Return the estimates of some algorithms, the status quo (0) first; without draws."""
        place = np.arange(self.value.size).reshape(self.value.shape)[:, list(rules)].ravel()
        return replace(
            self,
            value=self.value[:, list(rules)],
            covariance=self.covariance[np.ix_(place, place)],
            support=self.support[:, list(rules)],
            draws=None,
        )

    def loadings(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return contrasts of the ratios, and rows whose products are their covariances."""
        return rows @ self.value.ravel(), rows @ gram_root(self.covariance)

    def contrast(self, row: FloatArray) -> tuple[float, float]:
        """Return one contrast and its standard error."""
        return float(row @ self.value.ravel()), standard_error(row, self.covariance)

    def on_log_scale(self, criteria: Sequence[int]) -> Self:
        """Return the estimates with the logarithms of some criteria, by the delta method."""
        scale = np.ones(self.value.shape)
        value = self.value.copy()
        for c in criteria:
            if (self.value[c, :, : self.n_groups] <= 0).any():
                raise InvalidParameterError(
                    "ratios need rates above zero in every group, for both rules; a rate is zero."
                    ' Use scale="difference", or leave the group out.'
                )
            used = self.value[c] > 0
            scale[c] = np.where(used, 1.0 / np.where(used, self.value[c], 1.0), 0.0)
            value[c] = np.log(np.where(used, self.value[c], 1.0))
        factor = scale.ravel()
        draws = self.draws
        if draws is not None:
            place = np.arange(self.value.size).reshape(self.value.shape)[list(criteria)].ravel()
            positive = draws.value[:, place] > 0
            safe = np.where(positive, draws.value[:, place], 1.0)
            each = np.ones_like(draws.value)
            each[:, place] = 1.0 / safe
            logs, defined = draws.value.copy(), draws.defined.copy()
            logs[:, place], defined[:, place] = np.log(safe), defined[:, place] & positive
            draws = BootstrapDraws(
                value=logs,
                covariance=draws.covariance * each[:, :, None] * each[:, None, :],
                defined=defined,
                law=draws.law,
            )
        return replace(
            self,
            value=value,
            covariance=self.covariance * np.outer(factor, factor),
            draws=draws,
        )


def estimate_utilities(
    numerator: AnyArray,
    denominator: AnyArray,
    group: AnyArray,
    *,
    n_groups: int,
    population: bool = False,
    weight: AnyArray | None = None,
    count: AnyArray | None = None,
    cluster: AnyArray | None = None,
    n_resamples: int = 0,
    undefined: bool = False,
    rng: Rng = None,
) -> UtilityEstimates:
    """Estimate the utilities of status quo and candidate in every group.

    Parameters
    ----------
    numerator, denominator : array of shape (n, C, 2)
        Row quantities u and w of C criteria under the status quo (0) and the candidate (1).
    group : array of shape (n,)
        Group of each row, 0 to `n_groups` - 1.
    n_groups : int
        Number of groups.
    population : bool
        Add everyone as one more group, the last.
    weight : array of shape (n,), optional
        Sampling weights.
    count : array of shape (n,), optional
        How many identical rows a row stands for; not with `cluster`.
    cluster : array of shape (n,), optional
        Unit of each row; units are resampled whole.
    n_resamples : int
        Bootstrap samples; 0 for none (the analytic tests need none).
    undefined : bool
        Let groups without support have a utility of zero instead of raising.
    rng : numpy.random.Generator, int or None
        Source of randomness.

    Returns
    -------
    UtilityEstimates

    Raises
    ------
    GroupTooSmallError
        If a denominator is zero in some group.

    Examples
    --------
    Two groups of three rows, decisions of two algorithms; is the candidate right more often?

    >>> y = np.array([1, 0, 1, 1, 0, 0])
    >>> decisions = np.array([[1, 1, 0, 0, 0, 1], [1, 0, 0, 1, 0, 1]]).T
    >>> right = (decisions == y[:, None]).astype(float)[:, None, :]
    >>> estimates = estimate_utilities(
    ...     right, np.ones_like(right), np.array([0, 0, 0, 1, 1, 1]), n_groups=2
    ... )
    >>> estimates.value[0].round(2).tolist()
    [[0.33, 0.33], [0.67, 0.67]]

    In the sample, yes: in both groups it is right in two cases of three, the status quo in one.
    """
    u = check_finite("numerator", numerator, ndim=3)
    w = check_finite("denominator", denominator, ndim=3)
    code = np.asarray(group, dtype=np.int64)
    if u.shape != w.shape or u.shape[2] != 2 or len(code) != len(u):
        raise InvalidParameterError(
            f"`numerator` and `denominator` must have shape (n, criteria, 2) with n = {len(code)};"
            f" got {u.shape} and {w.shape}."
        )
    if count is not None and cluster is not None:
        raise InvalidParameterError(
            "`count` and `cluster` cannot be combined: a row that stands for several has no single"
            " cluster. Repeat the rows."
        )
    copies = np.ones(len(u), dtype=np.int64) if count is None else np.asarray(count, dtype=np.int64)
    layout = UtilityLayout(criteria=u.shape[1], groups=n_groups, population=population)
    quantities = np.concatenate([u.reshape(len(u), -1), w.reshape(len(w), -1)], axis=1)
    if weight is not None:
        quantities = quantities * check_finite("weight", weight, ndim=1)[:, None]
    units, unit_count, n_units, place = _units(quantities, code, copies, cluster, layout)
    spans_groups = population or cluster is not None
    basis = layout.expand(units, spans_groups=cluster is not None)
    pairs = layout.pairs(spans_groups=spans_groups)
    total = unit_count @ basis
    product = (basis * unit_count[:, None]).T @ basis
    support = counted_units(w, place[code], n_groups=n_groups, count=copies, cluster=cluster)
    if population:
        everyone = counted_units(w, np.zeros_like(code), n_groups=1, count=copies, cluster=cluster)
        support = np.concatenate([support, everyone], axis=-1)
    if not undefined and (total[layout.denominators()] == 0).any():
        raise GroupTooSmallError(
            "every group needs rows with a non-zero denominator; a group has none. Merge groups or"
            " use more data."
        )
    value, covariance, _ = layout.ratios(total[None], product[None])
    draws = None
    if n_resamples:
        columns = np.concatenate([basis, basis[:, pairs[0]] * basis[:, pairs[1]]], axis=1)
        resampled = bootstrap_sums(columns, unit_count, n=n_units, n_resamples=n_resamples, rng=rng)
        draws = _draws(resampled.sums, resampled.law, pairs, layout)
    estimates = UtilityEstimates(
        value=value[0].reshape(u.shape[1], 2, layout.width),
        covariance=covariance[0],
        support=support,
        n_groups=n_groups,
        n_units=n_units,
        draws=draws,
    )
    return estimates.among(place.tolist())


def counted_units(
    denominator: AnyArray,
    group: AnyArray,
    *,
    n_groups: int,
    count: AnyArray | None = None,
    cluster: AnyArray | None = None,
) -> IntArray:
    """Count the independent units on which each utility rests.

    Parameters
    ----------
    denominator : array of shape (n, C, 2)
        Row quantities w.
    group : array of shape (n,)
        Group of each row, 0 to `n_groups` - 1.
    n_groups : int
        Number of groups.
    count : array of shape (n,), optional
        How many identical rows a row stands for.
    cluster : array of shape (n,), optional
        Unit of each row.

    Returns
    -------
    array of shape (C, 2, n_groups)
        Rows, or clusters, with a non-zero denominator.

    Examples
    --------
    Two people with two rows each, one row selected:

    >>> w = np.array([1.0, 1.0, 1.0, 0.0])[:, None, None] * np.ones((1, 1, 2))
    >>> counted_units(w, [0, 0, 0, 0], n_groups=1, cluster=[7, 7, 8, 8])[0, 0, 0].item()
    2
    """
    used = np.asarray(denominator) != 0
    code = np.asarray(group, dtype=np.int64)
    copies = np.ones(len(code), dtype=np.int64) if count is None else np.asarray(count)
    unit = None if cluster is None else np.asarray(cluster)
    found = np.zeros((*used.shape[1:], n_groups), dtype=np.int64)
    for c, t, g in np.ndindex(*found.shape):
        rows = used[:, c, t] & (code == g)
        found[c, t, g] = copies[rows].sum() if unit is None else len(np.unique(unit[rows]))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityLayout:
    """Where the sums of (group, quantity) stand in a row of the basis.

    A group has 4 C quantities: numerators of criterion and algorithm, then denominators.

    Parameters
    ----------
    criteria, groups : int
        Numbers C and G.
    population : bool
        Whether everyone is one more group.
    """

    criteria: int
    groups: int
    population: bool

    @property
    def width(self) -> int:
        """Groups, everyone included."""
        return self.groups + self.population

    @property
    def ratios_per_group(self) -> int:
        """Ratios of one group: criteria times two algorithms."""
        return 2 * self.criteria

    def numerators(self) -> IntArray:
        """Basis column of the numerator of each ratio, in the order of `UtilityEstimates`."""
        ratio, group = np.divmod(np.arange(self.ratios_per_group * self.width), self.width)
        positions: IntArray = group * 2 * self.ratios_per_group + ratio
        return positions

    def denominators(self) -> IntArray:
        """Basis column of the denominator of each ratio."""
        return self.numerators() + self.ratios_per_group

    def pairs(self, *, spans_groups: bool) -> tuple[IntArray, IntArray]:
        """Pairs of basis columns whose product can differ from zero."""
        size = 2 * self.ratios_per_group
        first, second = np.triu_indices(size * self.width)
        if not spans_groups:
            same = first // size == second // size
            first, second = first[same], second[same]
        return first, second

    def expand(self, units: FloatArray, *, spans_groups: bool) -> FloatArray:
        """Give every group its own columns; `units` has the group code first unless it spans."""
        size = 2 * self.ratios_per_group
        if spans_groups:
            blocks = units.reshape(len(units), self.groups, size)
        else:
            blocks = np.zeros((len(units), self.groups, size))
            blocks[np.arange(len(units)), units[:, 0].astype(np.int64) - 1] = units[:, 1:]
        if self.population:
            blocks = np.concatenate([blocks, blocks.sum(axis=1, keepdims=True)], axis=1)
        return blocks.reshape(len(units), self.width * size)

    def ratios(
        self, total: FloatArray, product: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Ratios and their covariance from sums; one leading axis of samples.

        The influence of a unit on ratio r is (u - U w) / W ([1] Section 3.2).
        """
        top, bottom = self.numerators(), self.denominators()
        defined = total[:, bottom] != 0
        w = np.where(defined, total[:, bottom], 1.0)
        value = np.where(defined, total[:, top] / w, 0.0)
        row, column = value[:, :, None], value[:, None, :]
        covariance = (
            product[:, top[:, None], top]
            - column * product[:, top[:, None], bottom]
            - row * product[:, bottom[:, None], top]
            + row * column * product[:, bottom[:, None], bottom]
        ) / (w[:, :, None] * w[:, None, :])
        return value, covariance, defined


def _units(
    quantities: FloatArray,
    group: IntArray,
    count: IntArray,
    cluster: AnyArray | None,
    layout: UtilityLayout,
) -> tuple[FloatArray, IntArray, int, IntArray]:
    """Distinct independent units: (group + 1, quantities), or totals by group of a cluster.

    Groups are renumbered as `nameless_order` says, so that what is drawn of the units does not
    depend on what the groups are called; the last value is the new number of each.
    """
    if cluster is None:
        # A row of zeros matters to no sum, whatever its group.
        tag = np.where(quantities.any(axis=1), group + 1, 0)
        rows = distinct_rows(np.column_stack([tag, quantities]), count)
        old = rows.values[:, 0].astype(np.int64) - 1
        place = nameless_order(rows.values[:, 1:], old, rows.count, layout.groups)
        order = np.argsort(place[old], kind="stable")
        units = np.column_stack([place[old] + 1.0, rows.values[:, 1:]])[order]
        return units, rows.count[order], rows.n, place
    _, unit = np.unique(np.asarray(cluster), return_inverse=True)
    n_units = int(unit.max()) + 1
    slot = unit * layout.groups + group
    totals = without_last_digits(
        np.column_stack(
            [np.bincount(slot, weights=q, minlength=n_units * layout.groups) for q in quantities.T]
        )
    )
    every = np.tile(np.arange(layout.groups), n_units)
    parts = distinct_rows(np.column_stack([every + 1.0, totals])[totals.any(axis=1)])
    old = parts.values[:, 0].astype(np.int64) - 1
    place = nameless_order(parts.values[:, 1:], old, parts.count, layout.groups)
    blocks = totals.reshape(n_units, layout.groups, -1)[:, np.argsort(place)]
    rows = distinct_rows(blocks.reshape(n_units, -1))
    return rows.values, rows.count, rows.n, place


def nameless_order(values: FloatArray, group: IntArray, count: AnyArray, n_groups: int) -> IntArray:
    """Number groups by what is in them: the largest first, then by their rows.

    Parameters
    ----------
    values : array of shape (K, p)
        Distinct rows of each group, in an order that does not depend on its name.
    group, count : array of shape (K,)
        The group of each, and how often it occurs.
    n_groups : int
        Number of groups.

    Returns
    -------
    array of shape (n_groups,)
        New number of each group; groups with the same rows keep their order.

    Examples
    --------
    >>> nameless_order(np.array([[1.0], [2.0]]), np.array([0, 1]), np.array([3, 5]), 2).tolist()
    [1, 0]
    """
    order = np.argsort(group, kind="stable")
    ends = np.searchsorted(group[order], np.arange(n_groups + 1))
    mine = [order[low:high] for low, high in pairwise(ends)]
    sizes = [int(count[m].sum()) for m in mine]
    # Compared as numbers, so that a factor common to all weights does not matter.
    keys = [
        (-size, [*values[m].ravel().tolist(), *count[m].tolist()] if sizes.count(size) > 1 else [])
        for size, m in zip(sizes, mine, strict=True)
    ]
    return np.argsort(sorted(range(n_groups), key=keys.__getitem__)).astype(np.int64)


def _draws(
    sums: FloatArray, law: str, pairs: tuple[IntArray, IntArray], layout: UtilityLayout
) -> BootstrapDraws:
    size = sums.shape[1] - len(pairs[0])
    n_ratios = layout.ratios_per_group * layout.width
    value = np.empty((len(sums), n_ratios))
    covariance = np.empty((len(sums), n_ratios, n_ratios))
    defined = np.empty((len(sums), n_ratios), dtype=np.bool_)
    for start in range(0, len(sums), DRAW_CHUNK):
        part = slice(start, min(start + DRAW_CHUNK, len(sums)))
        product = np.zeros((part.stop - start, size, size))
        product[:, pairs[0], pairs[1]] = sums[part, size:]
        product[:, pairs[1], pairs[0]] = sums[part, size:]
        value[part], covariance[part], defined[part] = layout.ratios(sums[part, :size], product)
    return BootstrapDraws(value=value, covariance=covariance, defined=defined, law=law)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastLine:
    """A contrast that moves linearly with delta: (base + delta slope)' U - delta margin + offset.

    The null hypothesis is that it is at most zero.

    Parameters
    ----------
    base, slope : array of shape (R,)
        Coefficients of the ratios of a `UtilityEstimates`.
    margin : float
        Subtracted once for each unit of delta.
    offset : float
        Added whatever the delta: what is tolerated.
    """

    base: FloatArray
    slope: FloatArray
    margin: float = 0.0
    offset: float = 0.0

    def at(self, estimates: UtilityEstimates, delta: float) -> tuple[float, float]:
        """Return estimate and standard error at one delta."""
        value, se = estimates.contrast(self.base + delta * self.slope)
        return value - delta * self.margin + self.offset, se

    def p_values(
        self, estimates: UtilityEstimates, deltas: FloatArray, law: ContrastLaw
    ) -> FloatArray:
        """Return one-sided p-values at every delta, from the same draws.

        Parameters
        ----------
        estimates : UtilityEstimates
            With draws unless the law is "normal".
        deltas : array of shape (D,)
            Where to test.
        law : {"studentised", "basic", "normal"}
            Bootstrap of the studentised contrast, bootstrap of the contrast, or the normal law.

        Returns
        -------
        array of shape (D,)
        """
        pairs = [self.at(estimates, float(delta)) for delta in deltas]
        estimate, se = np.array([e for e, _ in pairs]), np.array([s for _, s in pairs])
        varies = se > 0
        t = estimate / np.where(varies, se, 1.0)
        if law == "normal":
            p = special.ndtr(-t)
        elif law == "basic":
            shift = self._deviation(estimates, bootstrap_draws(estimates), deltas)
            p = (shift >= estimate).mean(axis=0)
        else:
            p = self._studentised(estimates, bootstrap_draws(estimates), deltas, t)
        # Without variation there is nothing to compare the estimate with: not shown.
        return np.where(varies, p, 1.0)

    def _deviation(
        self, estimates: UtilityEstimates, draws: BootstrapDraws, deltas: FloatArray
    ) -> FloatArray:
        """Bootstrap minus sample contrast, (J, D); infinite where undefined."""
        used = self._used()
        shift = draws.value[:, used] - estimates.value.ravel()[used]
        deviation = (shift @ self.base[used])[:, None] + np.outer(shift @ self.slope[used], deltas)
        deviation[~draws.defined[:, used].all(axis=1)] = np.inf
        return deviation

    def _studentised(
        self,
        estimates: UtilityEstimates,
        draws: BootstrapDraws,
        deltas: FloatArray,
        t: FloatArray,
    ) -> FloatArray:
        used = self._used()
        covariance = draws.covariance[:, used[:, None], used]
        from_base = covariance @ self.base[used]
        from_slope = covariance @ self.slope[used]
        level = from_base @ self.base[used]
        mixed = from_base @ self.slope[used]
        square = from_slope @ self.slope[used]
        deviation = self._deviation(estimates, draws, deltas)
        variance = level[:, None] + 2.0 * np.outer(mixed, deltas) + np.outer(square, deltas**2)
        spread = np.sqrt(np.maximum(variance, 0.0))
        # A resample without spread cannot be studentised; it counts as extreme.
        extreme = (deviation >= t * spread) | (variance <= 0.0)
        p: FloatArray = (1.0 + extreme.sum(axis=0)) / (len(deviation) + 1.0)
        return p

    def _used(self) -> IntArray:
        return np.flatnonzero((self.base != 0) | (self.slope != 0))


def gram_root(covariance: FloatArray) -> FloatArray:
    """Return a matrix whose rows have given covariances as products.

    Parameters
    ----------
    covariance : array of shape (R, R)
        Of any rank.

    Returns
    -------
    array of shape (R, r)
        r is the rank; what is left by rounding is left out.

    Examples
    --------
    >>> root = gram_root(np.array([[4.0, 4.0], [4.0, 4.0]]))
    >>> root.shape, (root @ root.T).round(9).tolist()
    ((2, 1), [[4.0, 4.0], [4.0, 4.0]])
    """
    variance = np.diag(covariance)
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    size, axes = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = size > ROUNDING * max(float(size.max(initial=0.0)), 1.0)
    root: FloatArray = scale[:, None] * axes[:, kept] * np.sqrt(size[kept])
    return root


def standard_error(contrast: FloatArray, covariance: FloatArray) -> float:
    """Return the standard error of a contrast; exactly zero when only rounding is left."""
    variance = float(contrast @ covariance @ contrast)
    scale = float(contrast**2 @ np.diag(covariance))
    return float(np.sqrt(variance)) if variance > NO_VARIANCE * scale else 0.0


def bootstrap_draws(estimates: UtilityEstimates) -> BootstrapDraws:
    """Return the bootstrap draws; raise if there are none."""
    if estimates.draws is None:
        raise InvalidParameterError(
            "the bootstrap needs draws; pass `n_resamples` to `estimate_utilities`, or ask for"
            ' inference="analytic".'
        )
    return estimates.draws
