r"""Thresholds of a score that respect a ratio of errors, with the error of choosing among many.

Any two error rates that a score can reach are reached by a threshold, so the best rule under a
constraint on them is a threshold. Cut-offs are tested one after the other, from the one that harms
nobody, until the first that fails: the chance that a chosen cut-off violates the constraint is then
at most that of a single test, however many were tried (fixed-sequence testing).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from equipoise._checks import check_fraction
from equipoise._typing import BoolArray, DecisionKind, FloatArray
from equipoise.stats.binomial import clopper_pearson
from equipoise.stats.inequality.cap import FEW_EVENTS, KappaScheme
from equipoise.stats.inequality.index import kernel

__all__ = [
    "ThresholdPath",
    "allowed_in_sequence",
    "between_thresholds",
    "cap_shown",
    "contrast_shown",
    "threshold_path",
]


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
