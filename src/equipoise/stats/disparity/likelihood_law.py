r"""Empirical and Euclidean likelihood of a disparity, asked for by name.

The statistics are those of the paper; an estimated target counts, a null outside the convex hull is
never evidence by itself, and few independent units have the F law with the degrees of freedom of
the comparison in place of chi-square.

The signed roots are those of all groups at once. Each takes a `Comparison` and returns ``root(null,
which, tail)``: the square root of the statistic at the hypothesised disparity, positive where the
estimate is above it. P-values, one and two-sided, equivalence tests and intervals all follow from
it.
"""

from dataclasses import dataclass

import numpy as np

from equipoise._typing import AnyArray, BoolArray, DisparityMethod, FloatArray, IntArray
from equipoise.stats.binomial import (
    constrained_rates,
    deviance,
    difference_fit,
    signed_deviance,
)
from equipoise.stats.disparity.likelihoods import Samples, likelihood
from equipoise.stats.disparity.rates import Counts
from equipoise.stats.disparity.references import Comparison
from equipoise.stats.disparity.row_roots import RowRoots
from equipoise.stats.inversion import GREATER, SignedRoot, invert
from equipoise.stats.small_samples import normal_root

__all__ = [
    "LikelihoodLaw",
    "euclidean_root",
    "external_deviance_root",
    "influence_el_root",
    "known_deviance_root",
    "pure_el_root",
    "two_sample_deviance_root",
]


def euclidean_root(c: Comparison) -> SignedRoot:
    r"""Root of the Euclidean likelihood of the influence-function moments.

    :math:`n \bar u^2 / \widehat{\mathrm{Var}}(u)`, which needs first and second moments only.
    It is bounded in small groups: with three rows it cannot reject at 5%.
    """

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        tau, _ = c.hypothesised(null, which)
        total = c.group[which, 0] - tau * c.group[which, 1]
        spread = c.spread(null, which) - total**2 / c.n_units
        with np.errstate(divide="ignore", invalid="ignore"):
            value = total / np.sqrt(np.maximum(spread, 0.0))
        return np.where(total == 0.0, 0.0, value)

    return root


def known_deviance_root(c: Comparison) -> SignedRoot:
    """Root of the binomial deviance at a value of the group that is taken as known."""

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        tau, _ = c.hypothesised(null, which)
        return signed_deviance(c.group[which, 0], c.group[which, 1], tau)

    return root


def pure_el_root(c: Comparison) -> SignedRoot:
    """Root of the paper's statistic: the deviance, infinite in groups of only zeros or ones."""
    regular = known_deviance_root(c)

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:
        x, n = c.group[which].T
        value = regular(null, which, tail)
        return np.where((x > 0) & (x < n), value, np.copysign(np.inf, value))

    return root


def external_deviance_root(c: Comparison) -> SignedRoot:
    r"""Root of the deviance profiled over an external target, 0/1 metric.

    The statistic is :math:`\min_\theta l_G(\tau(\theta)) + ((\theta - \hat\theta) / se)^2`.
    """

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        x, n = c.group[which, 0], c.group[which, 1]
        centre = c.target_value[which]
        ratio = c.scale == "ratio"
        rate = null if ratio else np.ones_like(null)
        shift = np.zeros_like(null) if ratio else null
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = -shift / rate, (1.0 - shift) / rate
        for _ in range(60):
            theta = 0.5 * (low + high)
            tau = shift + rate * theta
            # Derivative of the sum times tau (1 - tau) / 2, which keeps its sign.
            pull = (theta - centre) / c.target_variance * tau * (1.0 - tau)
            right = rate * (n * tau - x) + pull > 0
            low, high = np.where(right, low, theta), np.where(right, theta, high)
        theta = 0.5 * (low + high)
        statistic = deviance(x, n, shift + rate * theta)
        statistic += (theta - centre) ** 2 / c.target_variance
        return np.asarray(np.sign(x / n - shift - rate * centre) * np.sqrt(statistic))

    return root


def two_sample_deviance_root(c: Comparison) -> SignedRoot:
    """Root of the likelihood ratio of two disjoint binomial samples: profile EL of a 0/1 metric."""

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        (x1, n1), (x2, n2) = c.group[which].T, c.target[which].T
        if c.scale == "ratio":
            fit = constrained_rates(
                np.stack([x1, x2], axis=1),
                np.stack([n1, n2], axis=1),
                np.stack([np.ones_like(null), -null], axis=1),
                np.zeros_like(null),
            )
            first, second = fit.T
        else:
            first, second = difference_fit(x1, n1, x2, n2, null)
        statistic = deviance(x1, n1, first) + deviance(x2, n2, second)
        return np.sign(c.estimate[which] - null) * np.sqrt(statistic)

    return root


def influence_el_root(c: Comparison) -> SignedRoot:
    r"""Root of the empirical likelihood of the influence-function moments, 0/1 metric.

    A row has one of six values: y = 1 or 0 in the group only, in both, in the target only.
    """
    counts = Counts.of(c)
    ones, zeros = counts.ones, counts.n - counts.ones
    y = np.array([1.0, 0.0])

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
        tau, rate = c.hypothesised(null, which)
        factor = rate * c.group[which, 1] / c.target[which, 1]
        own = y - tau[:, None]
        other = factor[:, None] * (y - c.target_value[which][:, None])
        z = np.stack([own, own - other, -other], axis=1)
        count = np.stack([ones[which], zeros[which]], axis=2)
        return np.sign(c.estimate[which] - null) * np.sqrt(_el_of_atoms(z, count))

    return root


def _el_of_atoms(z: FloatArray, count: FloatArray) -> FloatArray:
    """Statistics of samples with a few distinct values; values that do not occur are set to 0."""
    m = len(z)
    occurs: BoolArray = count > 0
    flat = np.where(occurs, z, 0.0).reshape(m, -1)
    samples = Samples(
        base=flat.ravel(),
        slope=np.zeros(flat.size),
        start=np.arange(m) * flat.shape[1],
        count=count.reshape(-1),
    )
    return likelihood(samples, np.zeros(m)).statistic


_FARTHEST = 1e3
_EMPIRICAL = ("el", "influence_el", "likelihood_ratio", "plug_in_el", "profile_el")
_HULL = ("el", "influence_el", "plug_in_el", "profile_el")


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodLaw:
    """Likelihood ratio tests of m groups.

    Parameters
    ----------
    comparison : Comparison
        Sums of groups and targets; those of the plug-in view for that method.
    rows : RowRoots, optional
        Rows of a real-valued metric.
    method : array of str
        Statistic of each group, "none" without one.
    hull : array of bool
        Groups whose null is outside the convex hull.
    df : array of shape (m,)
        Degrees of freedom; infinite for the chi-square law of the paper.
    low, high : array of shape (m,)
        Smallest and largest possible disparities.
    """

    comparison: Comparison
    rows: RowRoots | None
    method: AnyArray
    hull: BoolArray
    df: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(
        cls,
        comparison: Comparison,
        rows: RowRoots | None,
        method: DisparityMethod,
        *,
        binary: bool,
        tested: BoolArray,
        df: FloatArray,
        null: float,
    ) -> "LikelihoodLaw":
        """Choose the statistic of each group.

        Parameters
        ----------
        comparison, rows
            As in the class.
        method : {"el", "eel", "plug_in"}
            What is asked for.
        binary : bool
            Whether sums are counts of independent rows.
        tested : array of bool
            Groups that can be tested.
        df : array
            Degrees of freedom of the comparison.
        null : float
            Disparity at which the hull is looked at.

        Returns
        -------
        LikelihoodLaw
        """
        code = np.where(tested, _statistic(comparison, rows, method, binary=binary), "none")
        low, high = _possible_range(code, comparison, binary=binary)
        law = cls(
            comparison=comparison,
            rows=rows,
            # Objects: a numpy string array would cut names to the length of the longest.
            method=code.astype(object),
            hull=np.zeros(len(code), dtype=np.bool_),
            df=np.full(len(code), np.inf) if method == "plug_in" else df,
            low=low,
            high=high,
        )
        which = np.flatnonzero(np.isin(code, _HULL))
        at_null = law._root(np.full(len(which), null), which, GREATER, finite=False)
        failed = which[np.isinf(at_null)]
        law.hull[failed] = True
        law.method[failed] = "none" if method == "plug_in" else "influence_eel"
        return law

    @property
    def tested(self) -> BoolArray:
        """Which groups have a test."""
        return np.asarray(self.method != "none")

    def signed_root(self, null: FloatArray, which: IntArray, tail: int) -> FloatArray:
        """Root on the normal scale; Euclidean outside the hull."""
        return self._root(null, which, tail, finite=True)

    def interval(self, critical: float) -> tuple[FloatArray, FloatArray]:
        """Disparities whose roots are at most `critical` in size."""

        def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:
            return self._root(null, which, tail, finite=False)

        c = self.comparison
        estimate = np.where(self.tested, c.estimate, np.nan)
        return invert(root, estimate, c.se, critical=critical, low=self.low, high=self.high)

    def _root(self, null: FloatArray, which: IntArray, tail: int, *, finite: bool) -> FloatArray:
        laws = _laws(self.comparison, self.rows)
        value = np.empty(len(which))
        chosen = self.method[which]
        for name in sorted(set(chosen.tolist())):
            part = np.flatnonzero(chosen == name)
            value[part] = laws[name](null[part], which[part], tail)
        if finite:
            outside = np.isinf(value) & np.isin(chosen.astype(str), _EMPIRICAL)
            value[outside] = laws["influence_eel"](null[outside], which[outside], tail)
            # What is left are impossible hypotheses; a result holds no infinities.
            value = np.clip(value, -_FARTHEST, _FARTHEST)
        df = self.df[which]
        few = np.isfinite(df) & np.isfinite(value)
        value[few] = normal_root(value[few], df[few])
        return value


def _laws(c: Comparison, rows: RowRoots | None) -> dict[str, SignedRoot]:
    euclidean = euclidean_root(c)
    laws: dict[str, SignedRoot] = {"influence_eel": euclidean, "plug_in_eel": euclidean}
    if rows is not None:
        return laws | {name: rows.root(name) for name in _HULL}
    external = c.target_variance > 0
    return laws | {
        "likelihood_ratio": (external_deviance_root(c) if external else known_deviance_root(c)),
        "plug_in_el": pure_el_root(c),
        "profile_el": two_sample_deviance_root(c),
        "influence_el": influence_el_root(c),
    }


def _statistic(
    c: Comparison, rows: RowRoots | None, method: DisparityMethod, *, binary: bool
) -> AnyArray:
    """Name of the statistic of each group."""
    m = len(c.n)
    known = ~(c.target[:, 1] > 0) & (c.target_variance == 0.0)
    if method == "eel" or (not binary and rows is None):
        return np.full(m, "plug_in_eel" if method == "plug_in" else "influence_eel")
    if method == "plug_in":
        return np.full(m, "plug_in_el")
    if binary:
        return np.select(
            [known | (c.target_variance > 0), c.disjoint],
            ["likelihood_ratio", "profile_el"],
            "influence_el",
        )
    simple = c.disjoint & (rows is not None and rows.means)
    return np.select(
        [known, simple | (c.target_variance > 0)], ["el", "profile_el"], "influence_el"
    )


def _possible_range(
    code: AnyArray, c: Comparison, *, binary: bool
) -> tuple[FloatArray, FloatArray]:
    """Range of possible disparities, where the statistic knows one."""
    m = len(code)
    low, high = np.full(m, -np.inf), np.full(m, np.inf)
    alone = not c.target.any() and c.target_variance == 0.0
    known = (code == "likelihood_ratio") & alone
    compared = (code == "profile_el") & binary & ~known
    if c.scale == "ratio":
        low[known | compared] = 0.0
        with np.errstate(divide="ignore"):
            high[known] = 1.0 / c.target_value[known]
        return low, high
    low[known], high[known] = -c.target_value[known], 1.0 - c.target_value[known]
    low[compared], high[compared] = -1.0, 1.0
    return low, high
