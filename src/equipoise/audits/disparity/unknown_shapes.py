"""What is said, and how much more is asked, where nothing tells the shape of values.

The law of few units takes out the skewness that a sample and its neighbours show. Where there is
little to borrow it from, or the tail of a law need not be in the sample at all, tests err more
often than they say. How often was measured (tests/calibration/noted_rates.py), and is quoted.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from equipoise._typing import BoolArray, FloatArray, IntArray
from equipoise.results.finding import Note
from equipoise.stats.disparity.gaps import Disparities
from equipoise.stats.disparity.means import UnitCounts
from equipoise.stats.small_samples import VERY_SKEWED, one_sided_fold, shape_is_unknown

__all__ = [
    "guarded_interval",
    "joint_shape_notes",
    "shape_guard",
    "shape_not_taken_out",
    "shape_notes",
    "shape_unknown",
    "tail_unseen",
    "units_of_unknown_shape",
    "units_of_unseen_tail",
]

SKEWED = 0.1
"""Skewness of a mean from which one-sided tests may err, when there is little to borrow from."""
LONE_UNITS = 100.0
"""Units of a group without any other below which its tails are not known."""
UNSEEN_UNITS = 200.0
"""Units below which a sample need not show one value in fifty."""
IN_SURVEYS = ((0, 0.27, 0.24), (90, 0.16, 0.13), (300, 0.10, 0.09), (990, 0.09, 0.07))
"""Rows; how often one-sided and two-sided tests of lognormal or mostly zero values in stratified
samples with weights of 1, 2 and 5 reject a true null at 5%; their law has no skewness."""
WITHIN_STRATA = ((0, 0.14, 0.10), (60, 0.12, 0.08), (300, 0.07, 0.06))
"""Rows; the same of gaps to ten times as many others who are alike, in three strata."""


class Rates(NamedTuple):
    """Rejections of a true null at 5%, at most."""

    one_sided: float
    two_sided: float
    guarded: float
    """Of one side, with p-values several fold where `shape_guard` says so."""


SKEWNESS = (1.5, VERY_SKEWED)
"""Skewness, measured, from which the second and third column of `MEASURED` hold."""
MEASURED: tuple[tuple[float, tuple[Rates, Rates, Rates]], ...] = (
    (0, (Rates(0.34, 0.28, 0.26), Rates(0.34, 0.28, 0.18), Rates(0.05, 0.05, 0.05))),
    (12, (Rates(0.35, 0.27, 0.29), Rates(0.25, 0.20, 0.16), Rates(0.15, 0.10, 0.05))),
    (20, (Rates(0.39, 0.32, 0.37), Rates(0.20, 0.15, 0.13), Rates(0.17, 0.12, 0.06))),
    (40, (Rates(0.37, 0.33, 0.36), Rates(0.17, 0.13, 0.14), Rates(0.17, 0.12, 0.06))),
    (60, (Rates(0.29, 0.29, 0.29), Rates(0.14, 0.12, 0.12), Rates(0.16, 0.11, 0.06))),
    (80, (Rates(0.21, 0.22, 0.21), Rates(0.14, 0.15, 0.10), Rates(0.14, 0.11, 0.06))),
    (100, (Rates(0.14, 0.16, 0.14), Rates(0.12, 0.16, 0.10), Rates(0.13, 0.10, 0.07))),
    (150, (Rates(0.09, 0.10, 0.06), Rates(0.12, 0.10, 0.08), Rates(0.12, 0.10, 0.08))),
    (200, (Rates(0.05, 0.10, 0.06), Rates(0.11, 0.10, 0.08), Rates(0.11, 0.10, 0.08))),
    (500, (Rates(0.05, 0.10, 0.06), Rates(0.09, 0.06, 0.07), Rates(0.09, 0.06, 0.07))),
    (1000, (Rates(0.05, 0.10, 0.06), Rates(0.09, 0.06, 0.06), Rates(0.09, 0.06, 0.06))),
)
"""Effective units from which the rates hold, and rates for each class of skewness."""
_LAWS = "lognormal with sigma 1.5; 19 in 20 zero; 2% of them 20 standard deviations out"


def shape_unknown(found: Disparities) -> BoolArray:
    """Whether values are skewed, or too few to tell, with little to borrow their shape from."""
    few = found.tested & (found.method == "few_units")
    return np.asarray(few & units_of_unknown_shape(found.units))


def units_of_unknown_shape(units: UnitCounts | None) -> BoolArray:
    """The same from the units alone; never for counts of independent rows."""
    if units is None:
        return np.zeros(1, dtype=np.bool_)
    n_eff = _least(units)
    lone = (units.borrowed < 1.5 * n_eff) & (n_eff < LONE_UNITS)
    # Own and borrowed shape differ; or hardly anybody else; or a few weights count for most.
    alone = (units.shape == "checked") | (units.borrowed < 3.0 * n_eff)
    alone |= units.n_eff < 0.5 * units.n
    skewed = units.skewness >= SKEWED * np.sqrt(n_eff)
    return np.asarray(shape_is_unknown(units.borrowed, n_eff) | lone | (alone & skewed))


def tail_unseen(found: Disparities) -> BoolArray:
    """Whether values look harmless, but are so few or so alike that rare ones may be missing."""
    few = found.tested & (found.method == "few_units")
    return np.asarray(few & units_of_unseen_tail(found.units))


def units_of_unseen_tail(units: UnitCounts | None) -> BoolArray:
    """The same from the units alone; never together with an unknown shape."""
    if units is None:
        return np.zeros(1, dtype=np.bool_)
    unseen = _small(units) | np.isfinite(units.n_alike)
    return np.asarray(unseen & ~units_of_unknown_shape(units))


def shape_guard(found: Disparities) -> FloatArray:
    """Return how many fold a one-sided p-value counts: 1 where the shape of values is known."""
    if found.units is None:
        return np.ones(len(found.n))
    return np.where(shape_unknown(found), _fold(found.units), 1.0)


def guarded_interval(found: Disparities, confidence_level: float) -> tuple[FloatArray, FloatArray]:
    """Return intervals that agree with p-values of one side times `shape_guard`."""
    low, high = found.ci_low.copy(), found.ci_high.copy()
    guard = shape_guard(found)
    for fold in np.unique(guard[guard > 1.0]):
        ends = found.interval(float(-special.ndtri((1.0 - confidence_level) / (2.0 * fold))))
        low, high = (
            np.where(guard == fold, own, kept) for own, kept in zip(ends, (low, high), strict=True)
        )
    return low, high


def shape_notes(
    found: Disparities, *, bounded: bool = False, guarded: bool = False
) -> list[tuple[Note, ...]]:
    """Say of each group how often tests err where little is known of the shape of its values.

    Parameters
    ----------
    found : Disparities
        Groups and what they are compared with.
    bounded : bool, default False
        Whether values are 0 or 1, or have as few levels, so that none of them lies far out.
    guarded : bool, default False
        Whether p-values of one side hold those of `shape_guard` already.

    Returns
    -------
    list of tuple of Note
        One or none for each group; small groups of unseen tails share one, of the worst of them.
    """
    notes: list[tuple[Note, ...]] = [()] * len(found.n)
    if found.units is None:
        return notes
    unknown, unseen = shape_unknown(found), tail_unseen(found) & (not bounded)
    row, column = _cells(found.units)
    fold = _fold(found.units) if guarded else np.ones(len(notes))
    same: dict[tuple[int, int, float], tuple[Note, ...]] = {}
    for k in np.flatnonzero(unknown).tolist():
        kind = int(row[k]), int(column[k]), float(fold[k])
        if kind not in same:
            same[kind] = (_unknown(row[k], column[k], fold[k] if guarded else None),)
        notes[k] = same[kind]
    small = unseen & _small(found.units)
    if small.any():
        one = (_unseen(found.units, small, guarded=guarded),)
        for k in np.flatnonzero(small).tolist():
            notes[k] = one
    for k in np.flatnonzero(unseen & ~small).tolist():
        notes[k] = (_alike(float(found.units.n_alike[k])),)
    return notes


def joint_shape_notes(found: Disparities, *, bounded: bool = False) -> tuple[Note, ...]:
    """Say how often a joint test errs where little is known of the shape of some groups.

    Parameters
    ----------
    found : Disparities
        Groups and what they are compared with.
    bounded : bool, default False
        Whether values are 0 or 1, or have as few levels.

    Returns
    -------
    tuple of Note
        None where every shape is known.
    """
    unknown, unseen = shape_unknown(found), tail_unseen(found) & (not bounded)
    if found.units is None or not (unknown | unseen).any():
        return ()
    if not unknown.any():
        small = unseen & _small(found.units)
        if small.any():
            return (_unseen(found.units, small),)
        return (_alike(float(found.units.n_alike[unseen].min())),)
    row, column = _cells(found.units)
    worst = max(MEASURED[row[k]][1][column[k]].two_sided for k in np.flatnonzero(unknown | unseen))
    message = (
        "Some groups have skewed values or uneven weights, and little to borrow their shape from."
        f" In simulations joint tests with such groups rejected up to {worst:.0%} at a nominal 5%."
    )
    return (Note(code="shape-unknown", message=message),)


def shape_not_taken_out(n: float, rates: Sequence[tuple[int, float, float]], of: str) -> Note:
    """Say how often tests err that do not take skewness out, as measured with so many rows.

    Parameters
    ----------
    n : float
        Rows of the group, or fewer independent units.
    rates : sequence of tuple
        Rows from which one-sided and two-sided tests reject so many true nulls.
    of : str
        What was simulated.

    Returns
    -------
    Note
    """
    _, one_sided, two_sided = max(row for row in rates if row[0] <= n)
    return Note(
        code="shape-unknown",
        message="The test does not take the skewness of values out. In simulations of as many very"
        f" skewed ones (lognormal, or four in five zero) {of}, one-sided tests rejected up to"
        f" {one_sided:.0%} at a nominal 5%, two-sided ones {two_sided:.0%}.",
    )


def _small(units: UnitCounts) -> BoolArray:
    """Which have so few effective units that tails need not be among them."""
    return np.asarray(_least(units) < UNSEEN_UNITS)


def _least(units: UnitCounts) -> FloatArray:
    """Effective units of the smaller side."""
    return np.minimum(units.n_eff, units.n_eff_target)


def _fold(units: UnitCounts) -> FloatArray:
    return one_sided_fold(_least(units), units.skewness)


def _cells(units: UnitCounts) -> tuple[IntArray, IntArray]:
    """Row and column of the nearest measured cell that is not better."""
    starts = [start for start, _ in MEASURED]
    row = np.searchsorted(starts, np.nan_to_num(_least(units)), side="right") - 1
    return row, np.searchsorted(SKEWNESS, units.skewness, side="right")


def _unknown(row: int, column: int, fold: float | None) -> Note:
    """Say how often tests of as many values that look as skewed err, as measured."""
    rates = MEASURED[row][1][column]
    message = (
        "Values are skewed, or too few to tell, and there is little to borrow their shape from. In"
        f" simulations of as many values of heavy laws that look alike ({_LAWS}), alone or beside"
        f" normal ones, one-sided tests rejected up to {rates.one_sided:.0%} at a nominal 5%,"
        f" two-sided ones {rates.two_sided:.0%}."
    )
    if fold is not None:
        message += (
            f" P-values of one side are therefore multiplied by {fold:g}; up to"
            f" {rates.guarded:.0%} were left."
        )
    return Note(code="shape-unknown", message=message)


def _unseen(units: UnitCounts, which: BoolArray, *, guarded: bool = False) -> Note:
    """Say what some groups are too small to show, and how often tests of the worst then err."""
    row, column = _cells(units)
    rates = [MEASURED[row[k]][1][column[k]] for k in np.flatnonzero(which)]
    two_sided = max(one.two_sided for one in rates)
    one_sided = max(one.guarded if guarded else one.one_sided for one in rates)
    message = (
        f"Fewer than {UNSEEN_UNITS:.0f} effective units need not show values far out. Where there"
        f" are such ({_LAWS}), tests with as few as the smallest group here rejected up to"
        f" {two_sided:.0%} at a nominal 5%, one-sided ones {one_sided:.0%}. Values with near"
        " limits, such as scores and ages, have no such tails."
    )
    return Note(code="tail-unseen", message=message)


def _alike(n: float) -> Note:
    """Say what values that are all alike need not show."""
    share = 1.0 - 0.05 ** (1.0 / n)
    message = (
        f"All values of one side are alike ({n:,.0f} effective units). Where {share:.2%} of people"
        " have others, one such sample in twenty shows none of them, and an interval"
        " does not reach as far as these may lie. Values with near limits have no such tails."
    )
    return Note(code="tail-unseen", message=message)
