"""Empirical and Euclidean likelihood of a disparity, asked for by name.

The statistics are those of the paper; an estimated target counts, a null outside the convex hull is
never evidence by itself, and few independent units have the F law with the degrees of freedom of
the comparison in place of chi-square.
"""

from dataclasses import dataclass

import numpy as np

from equipoise._typing import AnyArray, BoolArray, DisparityMethod, FloatArray, IntArray
from equipoise.stats.disparity import roots
from equipoise.stats.disparity.references import Comparison
from equipoise.stats.disparity.row_roots import RowRoots
from equipoise.stats.inversion import GREATER, SignedRoot, invert
from equipoise.stats.small_samples import normal_root

__all__ = ["LikelihoodLaw"]

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
    euclidean = roots.euclidean_root(c)
    laws: dict[str, SignedRoot] = {"influence_eel": euclidean, "plug_in_eel": euclidean}
    if rows is not None:
        return laws | {name: rows.root(name) for name in _HULL}
    external = c.target_variance > 0
    return laws | {
        "likelihood_ratio": (
            roots.external_deviance_root(c) if external else roots.known_deviance_root(c)
        ),
        "plug_in_el": roots.pure_el_root(c),
        "profile_el": roots.two_sample_deviance_root(c),
        "influence_el": roots.influence_el_root(c),
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
