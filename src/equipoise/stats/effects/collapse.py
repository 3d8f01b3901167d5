"""How predicted effects of rows become the predicted effect of a group.

One table of formulas, from sums by arm; `equipoise.stats.effects.errors` says when each is
consistent.
"""

from collections.abc import Callable

import numpy as np

from equipoise._checks import check_option
from equipoise._typing import AnyArray, Collapse, EffectMeasure, FloatArray
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.delta import Linearised

__all__ = ["collapse_parts", "effect_quantities", "resolve_collapse", "row_quantities"]


def resolve_collapse(
    measure: EffectMeasure, collapse: Collapse, *, control_pred: bool, treated_pred: bool
) -> str:
    """Return the collapse to use; "auto" prefers what is consistent without a model.

    Parameters
    ----------
    measure : {"relative", "difference"}
        Effect measure.
    collapse : {"auto", "control", "aipw", "hajek", "mean", "weighted", "positives"}
        As asked.
    control_pred, treated_pred : bool
        Whether predictions of the outcome without and with treatment are at hand.

    Returns
    -------
    str
        A collapse that the measure and the predictions allow.

    Raises
    ------
    InvalidParameterError
        If the collapse does not fit.
    """
    check_option("measure", measure, EffectMeasure)
    check_option("collapse", collapse, Collapse)
    if measure == "difference":
        if collapse == "auto":
            return "aipw" if control_pred and treated_pred else "mean"
        if collapse not in {"mean", "aipw"}:
            raise InvalidParameterError(
                f"collapse={collapse!r} weights predictions by the outcome without treatment, which"
                ' belongs to relative effects; with measure="difference" pass "mean" or "aipw".'
            )
        if collapse == "aipw" and not (control_pred and treated_pred):
            raise InvalidParameterError(
                'collapse="aipw" with measure="difference" needs predictions of the outcome without'
                " and with treatment; pass both, or collapse='mean'."
            )
        return collapse
    if collapse == "auto":
        return "aipw" if control_pred else "control"
    if collapse in {"aipw", "hajek", "weighted"} and not control_pred:
        raise InvalidParameterError(
            f"collapse={collapse!r} needs predictions of the outcome without treatment; pass them,"
            ' or use collapse="control", which needs none.'
        )
    return collapse


def effect_quantities(
    measure: EffectMeasure, collapse: str, *, treated_pred: bool = False
) -> tuple[str, ...]:
    """Name the row quantities whose sums the collapse needs.

    Parameters
    ----------
    measure : {"relative", "difference"}
        Effect measure.
    collapse : str
        As `resolve_collapse` returns it.
    treated_pred : bool, default False
        Whether predictions of the outcome with treatment are used (only "aipw" does).

    Returns
    -------
    tuple of str
        Names that `row_quantities` knows.

    Examples
    --------
    Which sums does the default need?

    >>> effect_quantities("relative", "control")
    ('one', 'y', 'yf')

    Three per arm: rows, outcomes, and outcomes times predicted effect.
    """
    if collapse == "aipw":
        if measure == "difference":
            return ("one", "y", "f", "mu0", "mu1")
        return ("one", "y", "yf", "mu0", "mu0f") + (("mu1",) if treated_pred else ())
    return {
        "control": ("one", "y", "yf"),
        "positives": ("one", "y", "yf"),
        "mean": ("one", "y", "f"),
        "weighted": ("one", "y", "mu0f"),
        "hajek": ("one", "y", "mu0", "mu0f"),
    }[collapse]


def row_quantities(
    names: tuple[str, ...], *, y: AnyArray, f: AnyArray, mu0: AnyArray | None, mu1: AnyArray | None
) -> FloatArray:
    """Return the named quantities of each row, one column each."""
    columns = {"one": np.ones_like(y), "y": y, "f": f, "yf": y * f}
    if mu0 is not None:
        columns |= {"mu0": mu0, "mu0f": mu0 * f}
    if mu1 is not None:
        columns |= {"mu1": mu1}
    return np.column_stack([columns[name] for name in names])


def collapse_parts(
    total: FloatArray,
    *,
    measure: str,
    collapse: str,
    arm_ratio: float | None = None,
    split: bool = False,
) -> tuple[Linearised, Linearised, Linearised, Linearised]:
    """Return N, M, D and the size of each group as functions of the sums.

    Parameters
    ----------
    total : array of shape (G, C, p)
        Sums by cell: (control, treated), or those of the prediction half, then of the estimation
        half.
    measure, collapse, arm_ratio, split
        As in `group_errors`.

    Returns
    -------
    tuple of four Linearised
        For differences M is the effect and D is 1.
    """
    sums = _Sums(total, _names(total, measure, collapse))
    # The paper's split: predictions from the first two cells, effects from the last two.
    effects = 2 if split else 0
    size = sums.both("one") + sums.both("one", 2) if split else sums.both("one")
    if arm_ratio is not None:
        control = sums("y", 0, effects)
        implied = sums("yf", 0) / sums("y", 0) * control if split else sums("yf", 0)
        # Only outcomes are counted; the sizes of the arms enter through their known ratio.
        return implied, sums("y", 1, effects) * (1.0 / arm_ratio), control, size * 0.0 + 1.0
    augment = collapse == "aipw"
    control = sums.mean("y", 0, "mu0" if augment else None, effects)
    treated = sums.mean("y", 1, "mu1" if augment and sums.has("mu1") else None, effects)
    if measure == "difference":
        predicted = sums.both("f") / sums.both("one")
        return predicted, treated - control, control * 0.0 + 1.0, size
    if not split and collapse in {"control", "aipw"}:
        # N is a mean itself: no division by the control outcomes, which may be zero.
        return sums.mean("yf", 0, "mu0f" if augment else None), treated, control, size
    return _PREDICTED[collapse](sums) * control, treated, control, size


class _Sums:
    """The sums of every group by name, arm and half, as linearised quantities."""

    def __init__(self, total: FloatArray, names: tuple[str, ...]) -> None:
        self.total = total
        self.names = names

    def __call__(self, name: str, arm: int, start: int = 0) -> Linearised:
        gradient = np.zeros_like(self.total)
        k = self.names.index(name)
        gradient[:, start + arm, k] = 1.0
        return Linearised(value=self.total[:, start + arm, k], gradient=gradient)

    def has(self, name: str) -> bool:
        return name in self.names

    def both(self, name: str, start: int = 0) -> Linearised:
        return self(name, 0, start) + self(name, 1, start)

    def mean(self, name: str, arm: int, model: str | None = None, start: int = 0) -> Linearised:
        mean = self(name, arm, start) / self("one", arm, start)
        if model is None:
            return mean
        # P(T = a) is the share observed, so that the augmentation is a difference of means.
        return (
            mean
            + self.both(model, start) / self.both("one", start)
            - self(model, arm, start) / self("one", arm, start)
        )


def _names(total: FloatArray, measure: str, collapse: str) -> tuple[str, ...]:
    kind: EffectMeasure = "relative" if measure == "relative" else "difference"
    return effect_quantities(kind, collapse, treated_pred=total.shape[2] == 6)


def _eq20(sums: _Sums) -> Linearised:
    control, treated = sums("yf", 0), sums("yf", 1)
    return (control * control / sums("y", 0) + treated) / (control + sums("y", 1))


_PREDICTED: dict[str, Callable[[_Sums], Linearised]] = {
    "control": lambda s: s("yf", 0) / s("y", 0),
    "aipw": lambda s: s.mean("yf", 0, "mu0f") / s.mean("y", 0, "mu0"),
    "hajek": lambda s: s.both("mu0f") / s.both("mu0"),
    "mean": lambda s: s.both("f") / s.both("one"),
    "weighted": lambda s: s.both("mu0f") / s.both("one") / s.mean("y", 0),
    "positives": _eq20,
}
"""The collapsed prediction of each kind, as a ratio of sums."""
