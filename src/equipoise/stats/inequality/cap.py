r"""The kappa scheme: a benefit matrix and a cap that bound harmful errors by benign ones.

Notation for both cases: P is the share of the protected class, Q = 1 - P; u is the rate of harmful
errors in it, v the rate of benign errors outside it.

========= ======== === === ======================
kind      P        u   v   matrix
========= ======== === === ======================
punitive  P(Y=0)   FPR FNR ((1, 1), (low, high))
assistive P(Y=1)   FNR FPR ((high, low), (1, 1))
========= ======== === === ======================

The mean benefit exceeds :math:`\mu_0 = P + Q b_+` exactly when :math:`v > \kappa u`.

Any two error rates that a score can reach are reached by a threshold, so the best rule under a
constraint on them is a threshold. Cut-offs are tested one after the other, from the one that harms
nobody, until the first that fails: the chance that a chosen cut-off violates the constraint is then
at most that of a single test, however many were tried (fixed-sequence testing).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_number, check_option
from equipoise._typing import BoolArray, CapCorner, DecisionKind, FloatArray
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.binomial import clopper_pearson
from equipoise.stats.inequality.benefits import BenefitMoments
from equipoise.stats.inequality.decomposition import decompose
from equipoise.stats.inequality.geometry import index_from_error_rates, two_level_index
from equipoise.stats.inequality.index import check_order, kernel

__all__ = [
    "CapCheck",
    "IndexCap",
    "KappaScheme",
    "ThresholdPath",
    "allowed_in_sequence",
    "between_thresholds",
    "cap_shown",
    "check_cap",
    "contrast_shown",
    "effective_kappa",
    "index_cap",
    "kappa_scheme",
    "threshold_path",
]


FEW_EVENTS = 10
"""Below this many harmful or benign errors, normal approximations give way to exact bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KappaScheme:
    """Benefits that make "v > kappa u" a statement about the mean benefit.

    Parameters
    ----------
    kind : {"punitive", "assistive"}
        Which decision does harm.
    base_rate, kappa : float
        P(Y = 1); how many benign errors a harmful one is worth.
    low, high : float
        Benefits of the harmful error and of the other person with the same decision.
    """

    kind: DecisionKind
    base_rate: float
    kappa: float
    low: float
    high: float

    @property
    def protected(self) -> float:
        """P, the share of the protected class."""
        return 1.0 - self.base_rate if self.kind == "punitive" else self.base_rate

    @property
    def matrix(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Benefits ``matrix[y_pred][y_true]``."""
        if self.kind == "punitive":
            return (1.0, 1.0), (self.low, self.high)
        return (self.high, self.low), (1.0, 1.0)

    @property
    def levels(self) -> FloatArray:
        """Benefits of true positives, false negatives, false positives and true negatives."""
        (tn, fn), (fp, tp) = self.matrix
        return np.array([tp, fn, fp, tn])

    @property
    def mean_at_limit(self) -> float:
        """Mean benefit at which v = kappa u."""
        return self.protected + (1.0 - self.protected) * self.high

    def index(self, harmful: object, benign: object, *, order: float) -> FloatArray:
        """Return the index as a function of the harmful and the benign error rate."""
        fpr, fnr = (harmful, benign) if self.kind == "punitive" else (benign, harmful)
        return index_from_error_rates(
            fpr,
            fnr,
            base_rate=self.base_rate,
            low=self.low,
            high=self.high,
            kind=self.kind,
            order=order,
        )


def kappa_scheme(
    *, base_rate: float, kappa: float, kind: DecisionKind, minimum_benefit: float = 0.1
) -> KappaScheme:
    r"""Return the benefits that encode a ratio of harmful to benign errors.

    Parameters
    ----------
    base_rate : float
        P(Y = 1) in the population the rule is for.
    kappa : float
        Harmful errors must be rarer than benign ones by this factor: :math:`\kappa u < v`.
    kind : {"punitive", "assistive"}
        Punitive: selection does harm, avoid false positives. Assistive: selection helps, avoid
        false negatives.
    minimum_benefit : float, default 0.1
        :math:`b_-`, anything in (0, 1).

    Returns
    -------
    KappaScheme

    Raises
    ------
    InvalidParameterError
        If the ratio cannot be encoded at this base rate.

    Notes
    -----
    Eqs. (13), (17) and (18) with :math:`\tilde\kappa = \kappa Q/P`:
    :math:`b_+ = 1 - (1-b_-)/\tilde\kappa`. *Deviation from the paper*: it needs
    :math:`\tilde\kappa > 1`, which is not stated, and any minimum benefit will do.

    Examples
    --------
    Blackstone's ratio of ten to one, when four in ten are guilty:

    >>> round(kappa_scheme(base_rate=0.4, kappa=10, kind="punitive").high, 3)
    0.865
    """
    check_option("kind", kind, DecisionKind)
    p = check_fraction("base_rate", base_rate)
    ratio = check_number("kappa", kappa)
    low = check_fraction("minimum_benefit", minimum_benefit)
    if ratio <= 0.0:
        raise InvalidParameterError(f"`kappa` must be positive; got {ratio:g}.")
    protected = 1.0 - p if kind == "punitive" else p
    effective = ratio * (1.0 - protected) / protected
    if effective <= 1.0:
        needed = protected / (1.0 - protected)
        raise InvalidParameterError(
            f"kappa = {ratio:g} cannot be encoded at a base rate of {p:g}: a {kind} rule needs"
            f" kappa * {'p/(1-p)' if kind == 'punitive' else '(1-p)/p'} > 1 and has"
            f" {effective:.3g}. Pass a `kappa` above {needed:.4g}, or constrain the error rates"
            " directly."
        )
    return KappaScheme(
        kind=kind, base_rate=p, kappa=ratio, low=low, high=1.0 - (1.0 - low) / effective
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCap:
    """Largest cap that lets no model with kappa u >= v through.

    Parameters
    ----------
    cap : float
        An index below it proves kappa u < v.
    binding : {"perfect model", "harm everybody", "edge"}
        The forbidden model with the smallest index.
    largest_harm : float
        Largest harmful error rate of any model below the cap; 1/kappa is what kappa allows.
    """

    cap: float
    binding: CapCorner
    largest_harm: float


def index_cap(scheme: KappaScheme, *, order: float = 1.0, youden: float = 0.0) -> IndexCap:
    r"""Return the exact cap on the index under which every model satisfies kappa u < v.

    Parameters
    ----------
    scheme : KappaScheme
        Benefits.
    order : float, default 1
        a.
    youden : float, default 0
        Consider only models with :math:`1 - u - v` of at least this; with 0 all models are
        considered, even those worse than chance.

    Returns
    -------
    IndexCap

    Notes
    -----
    The index is quasi-concave in the shares of the three benefit levels, which are affine in
    (u, v), so its minimum over the polygon :math:`v \le \kappa u` is at a corner. For
    :math:`\kappa \ge 1` only two matter: the perfect model and the model that harms everybody in
    both classes. *Deviation from the paper*, which caps the index "where :math:`\mu = \mu_0`": that
    value depends on the unit reward rate, so it is no number, and its condition for monotonicity
    can never hold.

    Examples
    --------
    >>> cap = index_cap(kappa_scheme(base_rate=0.4, kappa=10, kind="punitive"), order=0.5)
    >>> round(cap.cap, 5), cap.binding, round(cap.largest_harm, 4)
    (0.00248, 'perfect model', 0.0044)
    """
    a = check_order(order)
    kappa = scheme.kappa
    floor = check_number("youden", youden, low=0.0, high=1.0)
    if floor > 0.0:
        reach = 1.0 - floor
        edge = reach / (1.0 + kappa)
        corners: list[tuple[float, float]] = [(0.0, 0.0), (reach, 0.0), (edge, kappa * edge)]
    else:
        corners = [(0.0, 0.0), (1.0, 0.0), (1.0, min(1.0, kappa))]
        if kappa > 1.0:
            corners.append((1.0 / kappa, 1.0))
    values = [float(scheme.index(u, v, order=a)) for u, v in corners]
    least = int(np.argmin(values))
    names: tuple[CapCorner, CapCorner, CapCorner] = ("perfect model", "harm everybody", "edge")
    return IndexCap(
        cap=values[least],
        binding=names[min(least, 2)],
        largest_harm=_largest_harm(scheme, values[least], a),
    )


def effective_kappa(scheme: KappaScheme, base_rate: float) -> float:
    r"""Return the ratio that the same matrix encodes when the base rate moves.

    Examples
    --------
    >>> scheme = kappa_scheme(base_rate=0.4, kappa=10, kind="punitive")
    >>> round(effective_kappa(scheme, 0.5), 3)
    6.667
    """
    p = check_fraction("base_rate", base_rate)
    moved = ((1.0 - p) / p) / ((1.0 - scheme.base_rate) / scheme.base_rate)
    return scheme.kappa * (moved if scheme.kind == "punitive" else 1.0 / moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapCheck:
    """A model against kappa: the direct contrast first, then the index against its cap.

    Parameters
    ----------
    harmful_rate, benign_rate : float
        u and v.
    contrast, contrast_low, contrast_high : float
        v - kappa u and its one-sided bounds.
    index, index_high : float
        The index at the design's benefits and its one-sided upper bound.
    cap : float
        Of the design.
    contrast_shown, index_shown : bool
        Whether the bound proves kappa u < v, directly or through the cap.
    contrast_refuted : bool
        Whether the bound proves kappa u > v.
    exact : bool
        Whether the contrast's bound is a Clopper-Pearson rectangle, because errors are few.
    """

    harmful_rate: float
    benign_rate: float
    contrast: float
    contrast_low: float
    contrast_high: float
    index: float
    index_high: float | None
    cap: float
    contrast_shown: bool
    contrast_refuted: bool
    index_shown: bool
    exact: bool


def check_cap(
    people: CellMoments,
    scheme: KappaScheme,
    *,
    cap: float,
    order: float = 1.0,
    confidence_level: float = 0.95,
) -> CapCheck:
    r"""Check a model against kappa directly, and against the cap on the index.

    Parameters
    ----------
    people : CellMoments
        One cell whose four quantities are the indicators of true positives, false negatives, false
        positives and true negatives.
    scheme : KappaScheme
        Benefits.
    cap : float
        From `index_cap`.
    order : float, default 1
        a.
    confidence_level : float, default 0.95
        Of the one-sided bounds.

    Returns
    -------
    CapCheck

    Notes
    -----
    With fewer than ten harmful or benign errors the contrast's bound comes from two
    Clopper-Pearson bounds at half the error each; this needs independent, unweighted rows, so
    otherwise the normal bound stays.

    Examples
    --------
    Is a false positive rate of 2% with a false negative rate of 70% within ten to one?

    >>> import numpy as np
    >>> people = CellMoments.from_rows(np.eye(4), np.zeros(4), count=[120, 280, 12, 588])
    >>> scheme = kappa_scheme(base_rate=0.4, kappa=10, kind="punitive")
    >>> check = check_cap(people, scheme, cap=index_cap(scheme).cap)
    >>> round(check.contrast, 3), check.contrast_shown, check.index_shown
    (0.5, True, False)

    Directly it is shown; the cap on the index, which is stricter, is not met.
    """
    tail = 1.0 - check_fraction("confidence_level", confidence_level)
    z = float(special.ndtri(1.0 - tail))
    size = people.total[0]
    positives, negatives = slice(0, 2), slice(2, 4)
    harm, benign, harmed, spared = (
        (2, 1, negatives, positives) if scheme.kind == "punitive" else (1, 2, positives, negatives)
    )
    n_harmed, n_spared = float(size[harmed].sum()), float(size[spared].sum())
    if n_harmed == 0.0 or n_spared == 0.0:
        raise InvalidParameterError(
            "the check against kappa needs people of both outcomes; one of them has none."
        )
    u, v = float(size[harm] / n_harmed), float(size[benign] / n_spared)
    influence = np.zeros(4)
    influence[harmed], influence[spared] = scheme.kappa * u / n_harmed, -v / n_spared
    influence[harm] -= scheme.kappa / n_harmed
    influence[benign] += 1.0 / n_spared
    se = float(np.sqrt(max(influence @ people.product[0] @ influence, 0.0)))
    contrast = v - scheme.kappa * u
    low, high = contrast - z * se, contrast + z * se
    plain = np.array_equal(people.product[0], np.diag(size))
    exact = bool(plain and min(size[harm], size[benign]) < FEW_EVENTS)
    if exact:
        # Either bound of the contrast takes one of each rate, at half the error.
        trials = np.rint([n_harmed, n_spared])
        least, most = clopper_pearson(np.rint(size[[harm, benign]]), trials, tail=tail / 2.0)
        low = float(least[1] - scheme.kappa * most[0])
        high = float(most[1] - scheme.kappa * least[0])
    parts = decompose(BenefitMoments.from_levels(scheme.levels, people, order=order))
    index_high = None
    if parts.total > 0.0:
        index_high = float(parts.total * np.exp(min(z * parts.total_se / parts.total, 700.0)))
    return CapCheck(
        harmful_rate=u,
        benign_rate=v,
        contrast=contrast,
        contrast_low=low,
        contrast_high=high,
        index=parts.total,
        index_high=index_high,
        cap=cap,
        contrast_shown=low > 0.0,
        contrast_refuted=high < 0.0,
        index_shown=index_high is not None and index_high < cap,
        exact=exact,
    )


def _largest_harm(scheme: KappaScheme, cap: float, order: float) -> float:
    """Harmful rate at which the index reaches the cap when every other person is let off (v = 1).

    There the index has two levels; it is at least the cap at u = 1, and quasi-concave in u.
    """
    # Takes longer to import than most audits to run.
    from scipy import optimize

    def excess(u: float) -> float:
        return float(two_level_index(scheme.protected * u, scheme.low, order=order)) - cap

    return float(optimize.brentq(excess, 0.0, 1.0, xtol=1e-14))


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdPath:
    """What each cut-off does; people with a score above it are selected.

    Parameters
    ----------
    cut : array of shape (m,)
        Increasing; the first selects everybody (-inf), the last nobody (inf).
    fp, fn : array of shape (m,)
        False positives and false negatives.
    n0, n1 : float
        People with outcome 0 and 1.
    """

    cut: FloatArray
    fp: FloatArray
    fn: FloatArray
    n0: float
    n1: float

    @property
    def errors(self) -> FloatArray:
        """Wrong decisions at each cut-off."""
        return self.fp + self.fn

    def harmful(self, kind: DecisionKind) -> tuple[FloatArray, float, FloatArray, float]:
        """Return harmful errors, their class, benign errors and theirs."""
        if kind == "punitive":
            return self.fp, self.n0, self.fn, self.n1
        return self.fn, self.n1, self.fp, self.n0


def threshold_path(
    score: FloatArray, y: FloatArray, cuts: FloatArray | None = None
) -> ThresholdPath:
    """Count the errors of every cut-off.

    Parameters
    ----------
    score : array of shape (n,)
        Scores of held-out people.
    y : array of shape (n,)
        Their outcomes, 0 or 1.
    cuts : array of shape (m,), optional
        Cut-offs that were fixed without looking at these people; by default one between every two
        neighbouring scores.

    Returns
    -------
    ThresholdPath

    Examples
    --------
    >>> import numpy as np
    >>> path = threshold_path(np.array([0.1, 0.4, 0.8]), np.array([0, 1, 1]))
    >>> path.cut.tolist(), path.errors.tolist()
    ([-inf, 0.25, 0.6000000000000001, inf], [1.0, 0.0, 1.0, 2.0])
    """
    if cuts is None:
        levels = np.unique(score)
        cuts = 0.5 * (levels[1:] + levels[:-1])
    cut = np.concatenate([[-np.inf], np.unique(cuts), [np.inf]])
    zeros, ones = np.sort(score[y == 0]), np.sort(score[y == 1])
    below0 = np.searchsorted(zeros, cut, side="right")
    below1 = np.searchsorted(ones, cut, side="right")
    return ThresholdPath(
        cut=cut,
        fp=(len(zeros) - below0).astype(np.float64),
        fn=below1.astype(np.float64),
        n0=float(len(zeros)),
        n1=float(len(ones)),
    )


def contrast_shown(
    path: ThresholdPath, *, kappa: float, kind: DecisionKind, confidence_level: float | None
) -> BoolArray:
    """Say at which cut-offs v > kappa u, or with a level, is shown.

    Fewer than ten errors of a kind get Clopper-Pearson bounds. The cut-off that harms nobody counts
    as shown: no data are needed for it.
    """
    harm, n_harm, benign, n_benign = path.harmful(kind)
    u, v = harm / n_harm, benign / n_benign
    if confidence_level is None:
        shown = v > kappa * u
    else:
        tail = 1.0 - check_fraction("confidence_level", confidence_level)
        se = np.sqrt(v * (1.0 - v) / n_benign + kappa**2 * u * (1.0 - u) / n_harm)
        low = v - kappa * u - special.ndtri(1.0 - tail) * se
        few = np.minimum(harm, benign) < FEW_EVENTS
        least, _ = clopper_pearson(benign, n_benign, tail=0.5 * tail)
        _, most = clopper_pearson(harm, n_harm, tail=0.5 * tail)
        exact = least - kappa * most
        shown = np.where(few, exact, low) > 0.0
    return _harmless_is_allowed(shown, kind)


def cap_shown(
    path: ThresholdPath,
    scheme: KappaScheme,
    *,
    cap: float,
    order: float,
    confidence_level: float | None,
) -> BoolArray:
    """Say at which cut-offs the index is below its cap, or with a level, is shown to be.

    The bound is log-Wald; with fewer than ten harmful errors it is the largest index over the
    Clopper-Pearson rectangle of the two rates.
    """
    harm, n_harm, benign, n_benign = path.harmful(scheme.kind)
    u, v = harm / n_harm, benign / n_benign
    index = scheme.index(u, v, order=order)
    if confidence_level is None:
        return _harmless_is_allowed(index < cap, scheme.kind)
    tail = 1.0 - check_fraction("confidence_level", confidence_level)
    worst, other = scheme.protected * u, (1.0 - scheme.protected) * (1.0 - v)
    shares = np.stack([worst, other, 1.0 - worst - other])
    levels = np.array([scheme.low, scheme.high, 1.0])[:, None]
    x = levels / np.sum(shares * levels, axis=0)
    influence = kernel(x, order) - index - order * index * (x - 1.0)
    se = np.sqrt(np.sum(shares * influence**2, axis=0) / (n_harm + n_benign))
    safe = np.where(index > 0.0, index, 1.0)
    high = index * np.exp(np.minimum(special.ndtri(1.0 - tail) * se / safe, 700.0))
    few = harm < FEW_EVENTS
    if few.any():
        corner = np.linspace(0.0, 1.0, 9)
        high = high.copy()
        ends_u = clopper_pearson(harm, n_harm, tail=0.5 * tail)
        ends_v = clopper_pearson(benign, n_benign, tail=0.5 * tail)
        across = (
            ends_u[0][few, None, None]
            + (ends_u[1] - ends_u[0])[few, None, None] * (corner[None, :, None])
        )
        up = (
            ends_v[0][few, None, None]
            + (ends_v[1] - ends_v[0])[few, None, None] * (corner[None, None, :])
        )
        high[few] = scheme.index(across, up, order=order).max(axis=(1, 2))
    return _harmless_is_allowed(high < cap, scheme.kind)


def allowed_in_sequence(shown: BoolArray, kind: DecisionKind) -> BoolArray:
    """Keep the cut-offs before the first that fails, from the one that harms nobody.

    Examples
    --------
    >>> import numpy as np
    >>> allowed_in_sequence(np.array([True, False, True, True]), "punitive").tolist()
    [False, False, True, True]
    """
    if kind == "punitive":
        return np.asarray(np.logical_and.accumulate(shown[::-1])[::-1])
    return np.asarray(np.logical_and.accumulate(shown))


def between_thresholds(
    paths: list[ThresholdPath], matrix: Any, *, order: float, limit: float
) -> tuple[FloatArray, float, float]:
    r"""Choose a cut-off for each group so that the between-group part is at most a limit.

    Parameters
    ----------
    paths : list of ThresholdPath
        One for each group.
    matrix : array of shape (2, 2)
        Benefits ``matrix[y_pred][y_true]``.
    order : float
        Of the index.
    limit : float
        Largest between-group part.

    Returns
    -------
    cut : array of shape (G,)
        A cut-off for each group.
    between : float
        The between-group part at these cut-offs.
    errors : float
        Wrong decisions.

    Notes
    -----
    For a common target of the mean benefit and a band around it, the best cut-off of each group is
    the one with the fewest errors whose mean lies in the band. Targets and bands are searched; the
    narrowest band holds at least the cut-off nearest to the target, so a choice always exists.
    """
    (tn, fn), (fp, tp) = np.asarray(matrix, dtype=np.float64).tolist()
    sizes = np.array([path.n0 + path.n1 for path in paths])
    share = sizes / sizes.sum()
    means = [
        ((p.n0 - p.fp) * tn + p.fp * fp + p.fn * fn + (p.n1 - p.fn) * tp) / (p.n0 + p.n1)
        for p in paths
    ]
    low, high = min(float(m.min()) for m in means), max(float(m.max()) for m in means)
    best: tuple[float, float, list[int]] | None = None
    nearest: tuple[float, float, list[int]] | None = None
    for target in np.linspace(low, high, 201):
        for band in (high - low) * np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 25)]):
            picks = [_in_band(m, p.errors, target, band) for m, p in zip(means, paths, strict=True)]
            mean = np.array([m[k] for m, k in zip(means, picks, strict=True)])
            whole = float(share @ mean)
            if whole <= 0.0 or (order <= 0.0 and mean.min() <= 0.0):
                continue
            between = float(share @ kernel(mean / whole, order))
            errors = float(sum(p.errors[k] for p, k in zip(paths, picks, strict=True)))
            if between <= limit and (best is None or (errors, between) < best[:2]):
                best = (errors, between, picks)
            if nearest is None or between < nearest[1]:
                nearest = (errors, between, picks)
    errors, between, picks = best or nearest or (0.0, 0.0, [0] * len(paths))
    cut = np.array([p.cut[k] for p, k in zip(paths, picks, strict=True)])
    return cut, between, errors


def _in_band(mean: FloatArray, errors: FloatArray, target: float, band: float) -> int:
    gap = np.abs(mean - target)
    inside = gap <= max(band, float(gap.min()))
    return int(np.argmin(np.where(inside, errors, np.inf)))


def _harmless_is_allowed(shown: BoolArray, kind: DecisionKind) -> BoolArray:
    allowed = np.asarray(shown).copy()
    allowed[-1 if kind == "punitive" else 0] = True
    return allowed
