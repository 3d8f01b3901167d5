r"""Subgroups that nobody named.

Every conjunction of up to `depth` conditions on the features is a slice, and each is tested
against the rest. Among thousands of slices of null data the worst always looks terrible, so that
what counts is error control over the whole lattice: the exact conditional test of each slice, and
Tarone's [1]_ correction for those slices that could be significant at all. The chance that any
reported slice is false is then at most alpha, under any dependence; searching in one half of the
data and testing in the other has less power, and is kept for what has no exact test (real values,
clusters, weights).

Counting is cheap: features are put into blocks, and every combination of `depth` blocks is one
table from which all slices inside it follow.

References
----------
.. [1] R. E. Tarone (1990), A modified Bonferroni method for discrete data, Biometrics 46, 515-522.
   doi:10.2307/2531456
.. [2] A. Terada, M. Okada-Hatakeyama, K. Tsuda and J. Sese (2013), Statistical significance of
   combinatorial regulations, PNAS 110, 12996-13001, doi:10.1073/pnas.1302233110.
.. [3] J. J. Goeman and A. Solari (2011), Multiple testing for exploratory research, Statistical
   Science 26, 584-597, doi:10.1214/11-STS356.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from scipy import special

from equipoise._checks import (
    check_finite,
    check_fraction,
    check_integer,
    check_number,
    check_option,
)
from equipoise._typing import (
    Alternative,
    AnyArray,
    BoolArray,
    DiscoveryMethod,
    FloatArray,
    IntArray,
)
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.disparity.conditions import BinnedFeature, bin_features
from equipoise.stats.disparity.contrasts import Mover, WilsonRate
from equipoise.stats.hypergeometric import smallest_tails, tails

__all__ = [
    "Discovery",
    "Lattice",
    "Subgroup",
    "discover_subgroups",
    "exact_discovery",
    "lattice",
    "lattice_discovery",
    "least_rows",
    "select_slices",
    "tarone_factor",
]

LARGEST_LATTICE = 200_000
LEAST_ROWS = 50
SHOWN = 20
CONSIDERED = 1_000
"""Rejected slices, those with the largest bounds, among which the shown ones are selected."""

_TABLE = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgroup:
    """A slice of the rows beside the rest.

    Parameters
    ----------
    label : str
        Its conditions in words, joined by "&".
    n : int
        Rows inside (of the test part, when the data were split).
    value, rest : float
        Rate or mean inside and outside.
    statistic : float
        Signed root of the test.
    p_value_raw, p_value : float
        Alone, and corrected for everything that was looked at.
    ci_low, ci_high : float
        Interval of the gap, right together with those of all other slices.
    words : tuple of str
        Its conditions as a person says them.
    explained_by : str, optional
        A larger slice from which this one does not differ noticeably (descriptive, not a test).
    """

    label: str
    n: int
    value: float
    rest: float
    statistic: float
    p_value_raw: float
    p_value: float
    ci_low: float
    ci_high: float
    words: tuple[str, ...] = ()
    explained_by: str | None = None

    @property
    def gap(self) -> float:
        """Value inside minus value outside."""
        return self.value - self.rest

    @property
    def bound(self) -> float:
        """End of the interval nearer to zero: the gap is at least this large."""
        return max(self.ci_low, 0.0) + min(self.ci_high, 0.0)

    def __str__(self) -> str:
        return (
            f"{self.label} (n = {self.n:,}): {self.value:.3g} against {self.rest:.3g}, "
            f"gap {self.gap:+.3g} [{self.ci_low:.3g}, {self.ci_high:.3g}], p = {self.p_value:.3g}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Subgroups that differ from the rest, and what was looked at to find them.

    Parameters
    ----------
    subgroups : tuple of Subgroup
        Those to show, the largest bound first; what they explain is left out.
    rejected : tuple of Subgroup
        All that differ from the rest.
    nearest : tuple of Subgroup
        The five best of those that do not.
    n_slices, n_tests : int
        Slices looked at, and the factor by which p-values are corrected.
    n : int
        Rows that were tested.
    value : float
        Rate or mean of all of them.
    sd : float
        Standard deviation of a row.
    alpha : float
        Chance that any reported subgroup is false.
    method : {"lattice", "split"}
        How they were found.
    at_least : int, optional
        After a split: at least this many of the candidates are real, with the same chance of error.
    """

    subgroups: tuple[Subgroup, ...]
    rejected: tuple[Subgroup, ...]
    nearest: tuple[Subgroup, ...]
    n_slices: int
    n_tests: int
    n: int
    value: float
    sd: float
    alpha: float
    method: str
    at_least: int | None = None

    @property
    def statistic(self) -> float:
        """Largest absolute root of all slices; 0 without any."""
        return max((abs(one.statistic) for one in self.rejected + self.nearest), default=0.0)

    @property
    def p_value(self) -> float:
        """Of the null hypothesis that no slice differs from the rest."""
        return min((one.p_value for one in self.rejected + self.nearest), default=1.0)

    def detectable(self, share: float = 0.05, *, power: float = 0.8) -> float:
        """Gap of a subgroup that would have been found with a given chance.

        Parameters
        ----------
        share : float, default 0.05
            Share of the rows in the subgroup.
        power : float, default 0.8
            The chance.

        Returns
        -------
        float
        """
        part = check_fraction("share", share)
        chance = check_fraction("power", power)
        se = self.sd / np.sqrt(self.n * part * (1.0 - part))
        z = special.ndtri(1.0 - self.alpha / (2.0 * self.n_tests)) + special.ndtri(chance)
        return float(z * se)

    def __str__(self) -> str:
        if not self.subgroups:
            return (
                f"Nothing found among {self.n_slices:,} subgroups; one of 5% of the rows would "
                f"have been found with 80% chance from a gap of about {self.detectable():.3g}"
            )
        differ = "subgroup differs" if len(self.subgroups) == 1 else "subgroups differ"
        title = (
            f"{len(self.subgroups)} {differ} from the rest, of {self.n_slices:,} looked at "
            f"({self.alpha:.0%} chance that any is false)"
        )
        return "\n".join([title, *(f"  {one}" for one in self.subgroups)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lattice:
    """Counts of all slices of a table.

    Parameters
    ----------
    features : tuple of BinnedFeature
        What conditions are made of.
    condition : array of shape (S, depth)
        Conditions of each slice, numbered through the features; -1 where there are fewer.
    n, ones : array of shape (S,)
        Rows and ones inside.
    n_rows, n_ones : int
        Of the whole table.
    parent_n, parent_ones : array of shape (S, depth)
        Counts of the slice without its first, second, ... condition; 0 where there is no such
        parent.
    count : array of shape (n,), optional
        How many identical rows a row stands for.
    """

    features: tuple[BinnedFeature, ...]
    condition: IntArray
    n: FloatArray
    ones: FloatArray
    n_rows: int
    n_ones: int
    parent_n: FloatArray
    parent_ones: FloatArray
    count: AnyArray | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """All conditions in words."""
        return tuple(label for feature in self.features for label in feature.labels)

    def words(self, conditions: Sequence[int]) -> tuple[str, ...]:
        """Say the conditions of a conjunction.

        Parameters
        ----------
        conditions : sequence of int
            Numbers of conditions; negative ones are skipped.

        Returns
        -------
        tuple of str
        """
        words = [one for feature in self.features for one in feature.words]
        return tuple(words[c] for c in conditions if c >= 0)

    def label(self, conditions: Sequence[int]) -> str:
        """Name a conjunction.

        Parameters
        ----------
        conditions : sequence of int
            Numbers of conditions; negative ones are skipped.

        Returns
        -------
        str
        """
        words = self.labels
        return " & ".join(words[c] for c in conditions if c >= 0)


def lattice(
    y: AnyArray,
    features: Sequence[BinnedFeature],
    *,
    depth: int = 3,
    min_rows: int = LEAST_ROWS,
    count: AnyArray | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Lattice:
    """Count all conjunctions of up to `depth` conditions on different features.

    Parameters
    ----------
    y : array of shape (n,)
        Zeros and ones.
    features : sequence of BinnedFeature
        Features of the same rows.
    depth : int, default 3
        Most conditions in a slice.
    min_rows : int, default 50
        Rows that a slice has at least, inside and outside.
    count : array of shape (n,), optional
        How many identical rows a row stands for.
    progress : callable, optional
        Called with the tables counted and all tables.

    Returns
    -------
    Lattice
        A slice with the same rows as one of fewer conditions is left out.

    Examples
    --------
    >>> from equipoise.stats.disparity.conditions import bin_features
    >>> cut = bin_features({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    >>> found = lattice(np.array([0, 0, 0, 1]), cut, depth=2, min_rows=1)
    >>> [found.label(c) for c, s in zip(found.condition, found.ones) if s == 1]
    ['a=1', 'b=1', 'a=1 & b=1']
    """
    cut = tuple(features)
    deepest = min(check_integer("depth", depth, low=1), len(cut))
    outcome = np.asarray(y).astype(np.intp)
    times = np.ones(len(outcome)) if count is None else np.asarray(count, dtype=np.float64)
    n_rows, n_ones = round(float(times.sum())), round(float(times @ outcome))
    counts = _counts(outcome, cut, deepest, count, progress)
    offset = np.concatenate([[0], np.cumsum([len(one.labels) for one in cut])])
    parts: list[tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]] = []
    for subset in sorted(counts, key=lambda key: (len(key), key)):
        both = counts[subset]
        n, ones = both.sum(axis=-1), both[..., 1]
        keep = (n >= min_rows) & (n_rows - n >= min_rows)
        parents = []
        for axis in range(len(subset)):
            above = counts.get(subset[:axis] + subset[axis + 1 :])
            if above is not None:
                # Broadcasts over the condition that the parent does not have.
                wide = np.broadcast_to(np.expand_dims(above, axis), both.shape)
                parents.append((wide.sum(axis=-1), wide[..., 1]))
                keep &= n != parents[-1][0]
        at = np.nonzero(keep)
        size = len(at[0])
        condition = np.full((size, deepest), -1)
        parent_n, parent_ones = np.zeros((size, deepest)), np.zeros((size, deepest))
        for axis, feature in enumerate(subset):
            condition[:, axis] = at[axis] + offset[feature]
        for axis, (rows, hits) in enumerate(parents):
            parent_n[:, axis], parent_ones[:, axis] = rows[at], hits[at]
        parts.append((condition, n[at], ones[at], parent_n, parent_ones))
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else None
    if joined is None:
        joined = [
            np.zeros((0, 1), int),
            *(np.zeros(0) for _ in range(2)),
            np.zeros((0, 1)),
            np.zeros((0, 1)),
        ]
    return Lattice(
        features=cut,
        condition=joined[0],
        n=joined[1].astype(np.float64),
        ones=joined[2].astype(np.float64),
        n_rows=n_rows,
        n_ones=n_ones,
        parent_n=joined[3],
        parent_ones=joined[4],
        count=count,
    )


def _counts(
    outcome: AnyArray,
    features: tuple[BinnedFeature, ...],
    depth: int,
    count: AnyArray | None,
    progress: Callable[[int, int], None] | None,
) -> dict[tuple[int, ...], AnyArray]:
    """Rows by outcome for every conjunction on every set of up to `depth` features."""
    counts: dict[tuple[int, ...], AnyArray] = {}
    sizes = [one.n_codes for one in features]
    blocks = _blocks(sizes, depth)
    keys = [_key([features[f].code for f in block], [sizes[f] for f in block]) for block in blocks]
    widths = [int(np.prod([sizes[f] for f in block])) for block in blocks]
    together = min(depth, len(blocks))
    tables = comb(len(blocks), together)
    for done, (chosen, key) in enumerate(_combined(outcome, keys, widths, together)):
        if progress is not None:
            progress(done, tables)
        inside = [f for b in chosen for f in blocks[b]]
        cells = np.bincount(
            key, weights=count, minlength=2 * int(np.prod([widths[b] for b in chosen]))
        )
        table = cells.reshape(2, *(sizes[f] for f in inside))
        for k in range(1, depth + 1):
            for subset in combinations(sorted(inside), k):
                if subset not in counts:
                    counts[subset] = _conditions(table, inside, subset, features)
    return counts


def _combined(
    key: AnyArray, keys: list[AnyArray], widths: list[int], depth: int, first: int = 0
) -> Iterator[tuple[tuple[int, ...], AnyArray]]:
    """Yield every choice of `depth` blocks with the key of its table."""
    if depth == 0:
        yield (), key
        return
    longer = np.empty_like(key)
    for b in range(first, len(keys) - depth + 1):
        np.multiply(key, widths[b], out=longer)
        np.add(longer, keys[b], out=longer)
        for chosen, combined in _combined(longer, keys, widths, depth - 1, b + 1):
            yield (b, *chosen), combined


def _blocks(sizes: list[int], depth: int) -> list[list[int]]:
    """Put features into blocks so that any `depth` blocks make a table of moderate size."""
    capacity = _TABLE ** (1.0 / depth) * (1.0 + 1e-9)
    blocks: list[list[int]] = []
    room: list[float] = []
    for f in np.argsort([-size for size in sizes], kind="stable"):
        fits = [b for b, free in enumerate(room) if sizes[f] <= free]
        if fits:
            blocks[fits[0]].append(int(f))
            room[fits[0]] /= sizes[f]
        else:
            blocks.append([int(f)])
            room.append(capacity / sizes[f])
    return blocks


def _key(codes: list[AnyArray], sizes: list[int]) -> AnyArray:
    key = np.zeros(len(codes[0]), dtype=np.intp)
    for code, size in zip(codes, sizes, strict=True):
        key = key * size + code
    return key


def _conditions(
    table: AnyArray,
    inside: list[int],
    subset: tuple[int, ...],
    features: tuple[BinnedFeature, ...],
) -> AnyArray:
    """Sum a table over the features outside the subset, then over the codes of each condition."""
    others = tuple(1 + axis for axis, f in enumerate(inside) if f not in subset)
    part = table.sum(axis=others)
    order = [f for f in inside if f in subset]
    part = np.moveaxis(part, 0, -1).transpose(*(order.index(f) for f in subset), len(subset))
    for axis, f in enumerate(subset):
        part = np.moveaxis(
            np.tensordot(features[f].holds.astype(np.int64), part, (1, axis)), 0, axis
        )
    return np.asarray(part)


def tarone_factor(smallest: FloatArray, alpha: float) -> int:
    r"""By how much p-values are to be multiplied, given the smallest that each test can have.

    The smallest k such that at most k tests can reach :math:`\alpha / k`: tests that cannot be
    significant at that level need no share of it ([1]_).

    Parameters
    ----------
    smallest : array of shape (m,)
        Smallest attainable p-values.
    alpha : float
        Chance of a single false rejection.

    Returns
    -------
    int
        At least 1.

    References
    ----------
    .. [1] R. E. Tarone (1990), A modified Bonferroni method for discrete data, Biometrics 46,
       515-522. doi:10.2307/2531456

    Examples
    --------
    Ten tests, of which seven can never have a p-value below 0.1:

    >>> tarone_factor(np.array([0.1] * 7 + [0.001] * 3), 0.05)
    3
    """
    ordered = np.sort(smallest)
    k = np.arange(1, len(ordered) + 1)
    possible = np.searchsorted(ordered, alpha / k, side="right")
    enough = np.flatnonzero(possible <= k)
    return int(k[enough[0]]) if len(enough) else 1


def lattice_discovery(
    slices: Lattice,
    *,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
) -> Discovery:
    """Test every slice of a lattice against the rest.

    The null hypothesis of a slice is that the rate inside equals the rate outside.

    Parameters
    ----------
    slices : Lattice
        Counts, and the features that tell overlapping slices apart.
    alternative : {"two-sided", "greater", "less"}
        "greater": only rates above the rest count.
    alpha : float, default 0.05
        Chance that any reported slice is false.

    Returns
    -------
    Discovery
    """
    level = check_fraction("alpha", alpha)
    check_option("alternative", alternative, Alternative)
    total, hits = float(slices.n_rows), float(slices.n_ones)
    n, ones = slices.n, slices.ones
    everyone, all_ones = np.full(len(n), total), np.full(len(n), hits)
    up, down = smallest_tails(everyone, all_ones, n)
    factor = tarone_factor(_one_p(up, down, alternative), level)
    root = _score(ones, n, total, hits)
    raw = _exact_p(slices, root, alternative, level / factor)
    share = level / factor / (2.0 if alternative == "two-sided" else 1.0)
    gap = _rate_gap(ones, n, total, hits)
    low, high = gap.interval(np.full(len(n), float(special.ndtri(1.0 - share))))
    adjusted = np.minimum(factor * raw, 1.0)
    rejected = adjusted <= level
    # The exact test decides; a limit that it excludes ends at zero.
    sign = np.sign(gap.estimate)
    low = np.where(rejected & (sign > 0), np.maximum(low, 0.0), low)
    high = np.where(rejected & (sign < 0), np.minimum(high, 0.0), high)
    bound = np.maximum(low, 0.0) - np.minimum(high, 0.0)
    ranked = _ranking(slices, bound, raw, rejected)
    chosen = select_slices(slices, ranked[:CONSIDERED])
    missed = np.lexsort((np.arange(len(n)), raw))
    missed = missed[~rejected[missed]][:5]

    def described(k: int) -> Subgroup:
        return Subgroup(
            label=slices.label(slices.condition[k].tolist()),
            n=int(n[k]),
            value=float(ones[k] / n[k]),
            rest=float((hits - ones[k]) / (total - n[k])),
            statistic=float(root[k]),
            p_value_raw=float(raw[k]),
            p_value=float(adjusted[k]),
            ci_low=float(low[k]),
            ci_high=float(high[k]),
            words=slices.words(slices.condition[k].tolist()),
            explained_by=_explained_by(slices, k),
        )

    rate = hits / total
    return Discovery(
        subgroups=tuple(described(k) for k in sorted(chosen, key=lambda k: -bound[k])),
        rejected=tuple(described(k) for k in ranked),
        nearest=tuple(described(k) for k in missed),
        n_slices=len(n),
        n_tests=factor,
        n=slices.n_rows,
        value=rate,
        sd=float(np.sqrt(rate * (1.0 - rate))),
        alpha=level,
        method="lattice",
    )


def _one_p(greater: FloatArray, less: FloatArray, alternative: Alternative) -> FloatArray:
    if alternative == "two-sided":
        return np.minimum(2.0 * np.minimum(greater, less), 1.0)
    return greater if alternative == "greater" else less


def _score(ones: FloatArray, n: FloatArray, total: float, hits: float) -> FloatArray:
    """Observed minus expected ones over its hypergeometric standard deviation."""
    variance = n * (total - n) * hits * (total - hits) / (total**2 * max(total - 1.0, 1.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variance > 0, (ones - n * hits / total) / np.sqrt(variance), 0.0)


def _exact_p(
    slices: Lattice, root: FloatArray, alternative: Alternative, level: float
) -> FloatArray:
    """P-values, exact wherever the normal approximation could matter."""
    total, hits = float(slices.n_rows), float(slices.n_ones)
    p = _one_p(special.ndtr(-root), special.ndtr(root), alternative)
    smaller = np.minimum(slices.n, total - slices.n) * min(hits, total - hits) / total
    edge = -special.ndtri(level / 2.0) - 1.0
    exact = np.flatnonzero((np.abs(root) > min(edge, 3.0)) | (smaller < 25.0))
    if len(exact):
        size = len(exact)
        greater, less = tails(
            slices.ones[exact], np.full(size, total), np.full(size, hits), slices.n[exact]
        )
        p[exact] = _one_p(greater, less, alternative)
    return p


def _rate_gap(ones: FloatArray, n: FloatArray, total: float, hits: float) -> Mover:
    one = np.ones_like(n)
    return Mover((WilsonRate(ones, n), WilsonRate(hits - ones, total - n)), (one, -one))


def _ranking(slices: Lattice, bound: FloatArray, raw: FloatArray, rejected: BoolArray) -> list[int]:
    """Rejected slices, the largest bound first; then fewer conditions and smaller p-values."""
    conditions = (slices.condition >= 0).sum(axis=1)
    order = np.lexsort((np.arange(len(bound)), raw, conditions, -bound))
    return [int(k) for k in order[rejected[order]]]


def _explained_by(slices: Lattice, k: int) -> str | None:
    """Name the parent that the slice resembles most, unless it differs from all."""
    own = slices.condition[k]
    best, name = 1.96, None
    for axis in range(len(own)):
        rows, hits = slices.parent_n[k, axis], slices.parent_ones[k, axis]
        if rows <= slices.n[k]:
            continue
        z = abs(float(_score(slices.ones[k : k + 1], slices.n[k : k + 1], rows, hits)[0]))
        if z < best:
            best, name = z, slices.label(np.delete(own, axis).tolist())
    return name


def select_slices(slices: Lattice, candidates: Sequence[int]) -> list[int]:
    """Choose few slices that together say what all candidates say.

    Forward selection on the residuals of least squares on the chosen slices. A slice is scored with
    the variance of *all* rows: its own would reward slices that happen to have no case at all.
    Among those within 1 of the best score the one with the fewest conditions is taken; it ends at
    a score below 2, or with 20.

    Parameters
    ----------
    slices : Lattice
        Where the slices come from.
    candidates : sequence of int
        Numbers of slices, the best first.

    Returns
    -------
    list of int
        In the order of selection.
    """
    number = np.asarray(candidates, dtype=np.int64)
    if not len(number):
        return []
    used = np.unique(slices.condition[number])
    bits = {int(c): _bits(_fulfils(slices.features, int(c))) for c in used[used >= 0]}

    def rows_of(k: int) -> AnyArray:
        own = [bits[int(c)] for c in slices.condition[k] if c >= 0]
        return np.asarray(np.bitwise_and.reduce(own))

    def size_of(both: AnyArray) -> float:
        if slices.count is None:
            return float(np.bitwise_count(both).sum())
        inside = np.unpackbits(both.view(np.uint8), count=len(slices.count))
        return float(slices.count @ inside)

    total, hits = float(slices.n_rows), float(slices.n_ones)
    n, ones = slices.n[number], slices.ones[number]
    conditions = (slices.condition[number] >= 0).sum(axis=1)
    # Of each indicator, apart from the constant and the chosen slices: length, product with y.
    length, product = n - n**2 / total, ones - n * hits / total
    spread = hits - hits**2 / total
    shadows: list[FloatArray] = []
    chosen: list[int] = []
    for _ in range(SHOWN):
        free = length > 1e-9 * n
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.where(free, product / np.sqrt(length * max(spread, 1e-300) / total), 0.0)
        best = np.abs(z).max()
        if best < 2.0:
            break
        close = np.flatnonzero(np.abs(z) >= max(best - 1.0, 2.0))
        pick = close[np.lexsort((-np.abs(z[close]), conditions[close]))[0]]
        chosen.append(int(number[pick]))
        own = rows_of(int(number[pick]))
        shared = np.array([size_of(rows_of(int(k)) & own) for k in number])
        shadow = shared - n * n[pick] / total
        for earlier in shadows:
            shadow = shadow - earlier * earlier[pick]
        shadow = shadow / np.sqrt(length[pick])
        along = product[pick] / np.sqrt(length[pick])
        length, product = np.maximum(length - shadow**2, 0.0), product - shadow * along
        length[pick] = 0.0
        spread -= along**2
        shadows.append(shadow)
    return chosen


def _fulfils(features: Sequence[BinnedFeature], condition: int) -> BoolArray:
    for feature in features:
        if condition < len(feature.labels):
            return np.asarray(feature.holds[condition][feature.code])
        condition -= len(feature.labels)
    raise InvalidParameterError("There is no such condition.")


def _bits(mask: BoolArray) -> AnyArray:
    packed = np.packbits(mask)
    return np.pad(packed, (0, -len(packed) % 8)).view(np.uint64)


def discover_subgroups(
    y: object,
    features: Mapping[str, object],
    *,
    depth: int = 3,
    min_size: float = 0.02,
    bins: int = 4,
    method: DiscoveryMethod = "auto",
    alternative: Alternative = "two-sided",
    weight: object = None,
    cluster: AnyArray | None = None,
    n_candidates: int = 10,
    split: object = 0.5,
    alpha: float = 0.05,
) -> Discovery:
    """Find subgroups whose rate or mean differs from the rest.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome, 0/1 or real.
    features : mapping of str to array
        Columns to make subgroups of.
    depth : int, default 3
        Most conditions in a subgroup.
    min_size : float, default 0.02
        Smallest share of the rows in a subgroup, and at least 50 rows.
    bins : int, default 4
        Bins of a number.
    method : {"auto", "lattice", "split"}
        "lattice": test all subgroups exactly, for 0/1 outcomes of independent unweighted rows.
        "split": search in one part of the rows and test in the other.
    alternative : {"two-sided", "greater", "less"}
        Which gaps count.
    weight : array of shape (n,), optional
        Sampling weight of a row.
    cluster : array of shape (n,), optional
        Unit of each row.
    n_candidates : int, default 10
        Subgroups that a split search may take to the test.
    split : float or boolean array of shape (n,), default 0.5
        Share of the rows (clusters) that is searched, or which rows are.
    alpha : float, default 0.05
        Chance that any reported subgroup is false.

    Returns
    -------
    Discovery

    Examples
    --------
    Errors are more frequent among people under 30 who rent; nobody asked about them.

    >>> rng = np.random.default_rng(5)
    >>> age, home = rng.integers(18, 80, 8000), rng.choice(["rent", "own"], 8000)
    >>> region = rng.choice(["n", "s", "e", "w"], 8000)
    >>> rate = 0.2 + 0.15 * ((age <= 30) & (home == "rent"))
    >>> error = rng.random(8000) < rate
    >>> found = discover_subgroups(error, {"age": age, "home": home, "region": region})
    >>> found.subgroups[0].label, round(found.subgroups[0].bound, 2)
    ('age <= 33 & home=rent', 0.08)

    At least 8 points more than the rest; by the quartiles of age it begins at 33.
    """
    check_option("method", method, DiscoveryMethod)
    values = np.asarray(y)
    outcome = check_finite("y", values.astype(np.float64), ndim=1)
    rate = bool(np.isin(outcome, (0.0, 1.0)).all()) and weight is None and cluster is None
    share = check_number("min_size", min_size, low=0.0, high=0.5)
    if outcome.min(initial=np.inf) >= outcome.max(initial=-np.inf):
        raise DataError("The outcome is the same in all rows; no subgroup can differ.")
    for name, column in features.items():
        other = np.asarray(column)
        if other.dtype.kind in "biuf" and np.array_equal(other.astype(np.float64), outcome):
            raise DataError(f"Feature {name!r} is the outcome itself. Leave it out of `features`.")
    if method == "lattice" and not rate:
        raise InvalidParameterError(
            "The lattice needs a 0/1 outcome of independent unweighted rows; pass method='split'."
        )
    if method == "split" or not rate:
        from equipoise.stats.disparity.split_search import split_discovery

        both = bin_features(features, bins=bins) + bin_features(features, bins=8, nested=True)
        return split_discovery(
            outcome,
            both,
            depth=depth,
            min_rows=least_rows(len(outcome), share),
            alternative=alternative,
            weight=weight,
            cluster=cluster,
            n_candidates=n_candidates,
            split=split,
            alpha=alpha,
        )
    return exact_discovery(
        outcome,
        bin_features(features, bins=bins),
        depth=depth,
        min_size=min_size,
        alternative=alternative,
        alpha=alpha,
    )


def least_rows(n: int, share: float) -> int:
    """Return the rows that a subgroup needs: a share of all, and at least 50."""
    return max(LEAST_ROWS, int(np.ceil(share * n)))


def exact_discovery(
    outcome: AnyArray,
    features: Sequence[BinnedFeature],
    *,
    depth: int = 3,
    min_size: float = 0.02,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
    count: AnyArray | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Discovery:
    """Test every subgroup of binned features exactly.

    Parameters
    ----------
    outcome : array of shape (n,)
        Zeros and ones.
    features : sequence of BinnedFeature
        What conditions are made of.
    depth, min_size, alternative, alpha
        As in `discover_subgroups`.
    count : array of shape (n,), optional
        How many identical rows a row stands for.
    progress : callable, optional
        Called with the tables counted and all tables.

    Returns
    -------
    Discovery

    Raises
    ------
    DataError, InvalidParameterError
        When no feature splits the rows, no subgroup is large enough, or there are too many.
    """
    if not features:
        raise DataError("No feature splits the rows: each has a single value.")
    n = len(outcome) if count is None else round(float(np.sum(count)))
    least = least_rows(n, min_size)
    found = lattice(outcome, features, depth=depth, min_rows=least, count=count, progress=progress)
    if len(found.n) > LARGEST_LATTICE:
        raise InvalidParameterError(
            f"There are {len(found.n):,} subgroups of at least {least} rows; at most "
            f"{LARGEST_LATTICE:,} can be tested together. Raise `min_size` ({min_size:g}), lower "
            f"`depth` ({depth}), or pass method='split'."
        )
    if not len(found.n):
        remedy = (
            f"Lower `min_size` ({min_size:g})."
            if least > LEAST_ROWS
            else f"That is the least for a test; there are {n} rows."
        )
        raise DataError(f"No subgroup has {least} rows inside and outside. {remedy}")
    return lattice_discovery(found, alternative=alternative, alpha=alpha)
