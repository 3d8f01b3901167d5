"""Which statistic serves which group: the rule behind ``method="auto"``, and its safeguards.

Small counts get exact tests, small real-valued samples adjusted ones, and a null outside the
convex hull is never evidence by itself.
"""

import numpy as np

from equipoise._typing import AnyArray, BoolArray, DisparityMethod, FloatArray, IntArray
from equipoise.stats.disparity import roots
from equipoise.stats.disparity.references import Comparison
from equipoise.stats.disparity.row_roots import RowRoots
from equipoise.stats.inversion import GREATER, SignedRoot

__all__ = [
    "MIN_ROWS",
    "MIN_ROWS_OF_MOMENTS",
    "SMALL_SAMPLE",
    "choose_statistic",
    "group_status",
    "outside_hull",
    "possible_range",
    "signed_root",
]

MIN_ROWS = 10
"""A real-valued metric in fewer rows has no trustworthy p-value."""

MIN_ROWS_OF_MOMENTS = 50
"""The same where only moments are at hand: the Euclidean likelihood needs more rows."""

SMALL_SAMPLE = 100
"""Below this, real-valued metrics use adjusted empirical likelihood."""

_EXACT_BELOW, _SCORE_BELOW = 5.0, 10.0
_FARTHEST = 1e3
_EMPIRICAL = ("el", "adjusted_el", "influence_el", "plug_in_el", "profile_el")


def group_status(
    c: Comparison, rows: RowRoots | None, *, binary: bool, null: float, natural: float
) -> AnyArray:
    """Why a group has no test, or "ok"."""
    status = np.full(len(c.n), "ok", dtype="<U10")
    estimated = c.target[:, 1] != 0
    if not binary:
        status[_constant(c.group_group, c.group_value)] = "degenerate"
        status[estimated & _constant(c.target_target, c.target_value)] = "degenerate"
        few = c.n if rows is None else rows.units_per_group
        least = MIN_ROWS if rows is not None else MIN_ROWS_OF_MOMENTS
        status[(few < least) | (estimated & (c.n_target < least))] = "too_small"
    if c.scale == "ratio":
        status[c.target_value == 0.0] = "degenerate"
    status[c.same] = "vacuous" if null == natural else "impossible"
    status[~(c.group[:, 1] > 0)] = "empty"
    return status


def _constant(product: FloatArray, value: FloatArray) -> BoolArray:
    """Whether u - value w is zero on every unit, up to rounding."""
    direction = np.stack([np.ones_like(value), -value], axis=1)
    size = np.abs(direction)
    within = np.einsum("ja,jab,jb->j", direction, product, direction)
    return np.asarray(within <= 1e-12 * np.einsum("ja,jab,jb->j", size, np.abs(product), size))


def choose_statistic(
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
        own = _smallest_count(c.group)
        both = np.where(known, np.inf, np.minimum(own, _smallest_count(c.target)))
        auto = method == "auto"
        return np.select(
            [
                (np.where(known, own, both) < _EXACT_BELOW) & (c.target_variance == 0) & auto,
                known | (c.target_variance > 0),
                (both < _SCORE_BELOW) & auto,
                c.disjoint,
            ],
            ["exact_binomial", "likelihood_ratio", "score", "profile_el"],
            "influence_el",
        )
    small = (c.n < SMALL_SAMPLE) & (method == "auto")
    simple = (known | c.disjoint) & (rows is not None and rows.means)
    return np.select(
        [simple & small, known, simple | (c.target_variance > 0)],
        ["adjusted_el", "el", "profile_el"],
        "influence_el",
    )


def _smallest_count(total: FloatArray) -> FloatArray:
    return np.minimum(total[:, 0], total[:, 1] - total[:, 0])


def outside_hull(
    code: AnyArray,
    status: AnyArray,
    c: Comparison,
    rows: RowRoots | None,
    null: float,
    method: DisparityMethod,
) -> tuple[AnyArray, AnyArray]:
    """Groups whose null is outside the convex hull: Euclidean likelihood, or nothing to report."""
    which = np.flatnonzero(np.isin(code, _EMPIRICAL))
    at_null = signed_root(code, c, rows, finite=False)(np.full(len(which), null), which, GREATER)
    failed = which[np.isinf(at_null)]
    status, code = status.copy(), code.copy()
    status[failed] = "hull"
    code[failed] = "none" if method == "plug_in" else "influence_eel"
    return status, code


def signed_root(
    code: AnyArray, c: Comparison, rows: RowRoots | None, *, finite: bool
) -> SignedRoot:
    """One root for all groups; `finite` replaces infinite empirical likelihood by Euclidean."""
    euclidean = roots.euclidean_root(c)
    laws: dict[str, SignedRoot] = {
        "influence_eel": euclidean,
        "plug_in_eel": euclidean,
        "score": roots.score_root(c),
    }
    if rows is not None:
        laws |= {name: rows.root(name) for name in _EMPIRICAL}
    else:
        known = not c.target.any()
        external = c.target_variance > 0
        laws |= {
            "exact_binomial": roots.exact_root(c) if known else roots.exact_comparison_root(c),
            "likelihood_ratio": (
                roots.external_deviance_root(c) if external else roots.known_deviance_root(c)
            ),
            "plug_in_el": roots.pure_el_root(c),
            "profile_el": roots.two_sample_deviance_root(c),
            "influence_el": roots.influence_el_root(c),
        }

    # Inversion calls the root dozens of times; names are compared once.
    names, kind = np.unique(code.astype(str), return_inverse=True)
    empirical = np.isin(code, _EMPIRICAL)

    def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:
        value = np.empty(len(which))
        chosen = kind[which]
        for k in np.flatnonzero(np.bincount(chosen, minlength=len(names))):
            part = chosen == k
            value[part] = laws[str(names[k])](null[part], which[part], tail)
        if finite:
            outside = np.isinf(value) & empirical[which]
            value[outside] = euclidean(null[outside], which[outside], tail)
            # What is left are impossible hypotheses; a result holds no infinities.
            value = np.clip(value, -_FARTHEST, _FARTHEST)
        return value

    return root


def possible_range(code: AnyArray, c: Comparison, *, binary: bool) -> tuple[FloatArray, FloatArray]:
    """Range of possible disparities, where the statistic knows one."""
    m = len(code)
    low, high = np.full(m, -np.inf), np.full(m, np.inf)
    alone = not c.target.any() and c.target_variance == 0.0
    known = np.isin(code, ("exact_binomial", "likelihood_ratio")) & alone
    compared = np.isin(code, ("score", "profile_el", "exact_binomial")) & binary & ~known
    if c.scale == "ratio":
        low[known | compared] = 0.0
        high[known] = 1.0 / c.target_value[known]
        return low, high
    low[known], high[known] = -c.target_value[known], 1.0 - c.target_value[known]
    # Rows in both cancel: only the rest of the group and of the target can differ.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = c.overlap[:, 1] * (1.0 / c.group[:, 1] - 1.0 / c.target[:, 1])
        up = 1.0 - c.overlap[:, 1] / c.group[:, 1] + np.maximum(share, 0.0)
        down = 1.0 - c.overlap[:, 1] / c.target[:, 1] - np.minimum(share, 0.0)
    low[compared], high[compared] = -down[compared], up[compared]
    return low, high
