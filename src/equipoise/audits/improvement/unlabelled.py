"""Outcomes that are not known: how far they may lie, and how far before a result breaks down."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from equipoise._checks import check_number
from equipoise._typing import FloatArray, IntArray
from equipoise.audits.improvement.rows import DecisionRows
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.search.sample import named_utility
from equipoise.stats.improvement.unknown_outcomes import OutcomeUtility, odds_limits

__all__ = ["Unlabelled", "limit_columns", "outcome_utility", "stated_limits", "widest"]

STEPS = 20
HALVINGS = 10
LARGEST_ODDS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlabelled:
    """Limits of outcomes that are not known.

    Parameters
    ----------
    kind : {"worst", "range", "odds"}
        Any outcome at all; between stated limits; or near what similar people have.
    n : int
        People without an outcome.
    low, high : array of shape (n,)
        Limits for every row, except with "odds".
    asked : float
        The factor of the odds; 1, the whole range, otherwise.
    """

    kind: Literal["worst", "range", "odds"]
    n: int
    low: FloatArray
    high: FloatArray
    asked: float = 1.0

    def limits(
        self, rows: DecisionRows, part: IntArray, fit: IntArray, spread: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the limits of some rows.

        Parameters
        ----------
        rows : DecisionRows
            All rows.
        part : array of int
            The rows asked about.
        fit : array of int
            Rows that tell what similar people have.
        spread : float
            Factor of the odds; or how far the limits lie from the mean of the known outcomes of
            the group, as a share of the way to the stated ones.
        """
        y, group = rows.y[part], rows.group[part]
        unknown = np.isnan(y)
        if self.kind == "odds":
            low, high = odds_limits(_similar(rows, fit, part), spread)
        else:
            known = np.bincount(group[~unknown], minlength=int(group.max()) + 1)
            total = np.bincount(group, weights=np.where(unknown, 0.0, y), minlength=len(known))
            middle = np.where(known > 0, total / np.maximum(known, 1), np.nanmean(y))[group]
            ends = self.low[part], self.high[part]
            low, high = (middle + spread * (end - middle) for end in ends)
        return np.where(unknown, low, y), np.where(unknown, high, y)

    def claim(self) -> str:
        """Say under which condition something is shown."""
        who = f"the {self.n:,} people without one"
        if self.kind == "worst":
            return f"whatever the outcomes of {who}"
        if self.kind == "range":
            return f"for any outcomes of {who} within the stated limits"
        return (
            f"if the odds of the outcomes of {who} differ by at most a factor of {self.asked:g}"
            " from those of similar people with one, as estimated"
        )


def _similar(rows: DecisionRows, fit: IntArray, part: IntArray) -> FloatArray:
    """Return the chance of the outcome among similar people who have one."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    known = fit[rows.labelled[fit]]
    if len(np.unique(rows.y[known])) < 2:
        return np.full(len(part), rows.y[known].mean())
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(rows.X[known], rows.y[known])
    chance: FloatArray = model.predict_proba(rows.X[part])[:, 1]
    return chance


def limit_columns(given: object) -> tuple[str, ...]:
    """Return the columns that hold limits, if `unlabelled` names them."""
    pair = isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2
    if pair and all(isinstance(name, str) for name in given):  # type: ignore[attr-defined]
        return tuple(given)  # type: ignore[arg-type]
    return ()


def stated_limits(given: object, rows: DecisionRows, *, fitted: bool) -> Unlabelled | None:
    """Return what `unlabelled` states; None where nothing is, or every outcome is known."""
    if given is None:
        return None
    unknown = ~rows.labelled
    n = int(unknown.sum() if rows.count is None else rows.count[unknown].sum())
    everyone = np.ones(len(rows.y))
    binary = bool(np.isin(rows.y[~unknown], (0.0, 1.0)).all())
    if isinstance(given, Mapping):
        factor = _odds(given, possible=fitted and binary)
        return (
            Unlabelled(kind="odds", n=n, low=everyone, high=everyone, asked=factor) if n else None
        )
    if given == "worst" and not binary:
        raise InvalidParameterError(
            'unlabelled="worst" is for outcomes of 0 and 1; state the limits of others, such as'
            " unlabelled=(0, 30)."
        )
    low, high = rows.limits.T if rows.limits is not None else np.outer(_pair(given), everyone)
    if not (np.isfinite(low) & np.isfinite(high) & (low <= high))[unknown].all():
        raise DataError(
            "limits of outcomes that are not known must be numbers, the lower first; in some rows"
            " they are not."
        )
    if binary and ((low < 0) | (high > 1))[unknown].any():
        raise InvalidParameterError(
            "outcomes are 0 and 1, so their limits lie between; `unlabelled` goes beyond."
        )
    kind: Literal["worst", "range"] = "worst" if given == "worst" else "range"
    return Unlabelled(kind=kind, n=n, low=low, high=high) if n else None


def _odds(given: Mapping[str, Any], *, possible: bool) -> float:
    if set(given) != {"odds"}:
        raise _unknown_form(given)
    if not possible:
        raise InvalidParameterError(
            "`unlabelled` by odds compares with similar people among the training rows, by the"
            " features; it needs a candidate that is fitted and outcomes of 0 and 1. State limits"
            ' instead, or "worst".'
        )
    return check_number("unlabelled", given["odds"], low=1.0)


def _pair(given: object) -> list[float]:
    if given == "worst":
        return [0.0, 1.0]
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise _unknown_form(given)
    return [check_number("unlabelled", value) for value in given]


def _unknown_form(given: object) -> InvalidParameterError:
    return InvalidParameterError(
        '`unlabelled` must be "worst", two limits, the names of two columns with limits, or'
        f' {{"odds": factor}}; got {given!r}.'
    )


def outcome_utility(name: str) -> OutcomeUtility:
    """Return a named metric as a function of outcome and decision."""
    u, w = np.zeros((2, 2, 2))
    for y in (0, 1):
        for d in (0, 1):
            top, bottom = named_utility(name, np.array([float(y)]))(np.array([float(d)]))
            u[y, d], w[y, d] = top[0], bottom[0]
    change = np.array([[1.0, 0.0], [-1.0, 1.0]])
    return OutcomeUtility(numerator=change @ u @ change.T, denominator=change @ w @ change.T)


def widest(stated: Unlabelled, shown: Callable[[float], bool]) -> dict[str, Any]:
    """Find how far outcomes may lie before a result is no longer shown.

    Parameters
    ----------
    stated : Unlabelled
        What was asked.
    shown : callable
        Whether the result is shown at a spread.

    Returns
    -------
    dict
        `largest` is the spread up to which it is; None if it is at none.
    """
    odds = stated.kind == "odds"
    grid = np.geomspace(1.0, LARGEST_ODDS, STEPS + 1) if odds else np.linspace(0.0, 1.0, STEPS + 1)
    held: float | None = None
    for spread in map(float, grid):
        if not shown(spread):
            break
        held = spread
    else:
        spread = held = float(grid[-1])
    if held is not None and held < spread:
        for _ in range(HALVINGS):
            middle = (held + spread) / 2.0
            held, spread = (middle, spread) if shown(middle) else (held, middle)
    return {
        "kind": stated.kind,
        "n_unlabelled": stated.n,
        "asked": stated.asked,
        "largest": held,
        "claim": stated.claim(),
    }
