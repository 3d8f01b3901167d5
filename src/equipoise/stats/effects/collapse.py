"""How predicted effects of rows become the predicted effect of a group.

One table of formulas, from sums by arm; `equipoise.stats.effects.errors` says when each is
consistent. In an experiment that was randomised within strata every mean is an average over the
strata of the group, by their sizes; with known chances of treatment, rows count by one over the
chance of the arm they are in.
"""

from collections.abc import Callable, Sequence

import numpy as np

from equipoise._checks import check_option
from equipoise._typing import AnyArray, Collapse, EffectMeasure, FloatArray
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.delta import Linearised

__all__ = [
    "collapse_parts",
    "effect_quantities",
    "over_strata",
    "resolve_collapse",
    "row_quantities",
    "slope_parts",
    "slope_quantities",
]


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
    measure: EffectMeasure, collapse: str, *, treated_pred: bool = False, weighted: bool = False
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
    weighted : bool, default False
        Whether rows count by one over their chance of being in their arm; only "control" and "mean"
        allow it.

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
    if weighted:
        return ("one", "w", "wy", "wyf") if measure == "relative" else ("one", "w", "wy", "f")
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


def slope_quantities(measure: EffectMeasure, *, weighted: bool = False) -> tuple[str, ...]:
    """Name the row quantities whose sums the slope of effects on predictions needs.

    Parameters
    ----------
    measure : {"relative", "difference"}
        Effect measure.
    weighted : bool, default False
        As in `effect_quantities`.

    Returns
    -------
    tuple of str
    """
    if measure == "relative":
        return ("one", "w", "wy", "wyf", "wyff") if weighted else ("one", "y", "yf", "yff")
    return ("one", "w", "wy", "wf", "wyf", "f", "ff") if weighted else ("one", "y", "f", "yf", "ff")


def row_quantities(
    names: tuple[str, ...],
    *,
    y: AnyArray,
    f: AnyArray,
    mu0: AnyArray | None = None,
    mu1: AnyArray | None = None,
    w: AnyArray | None = None,
) -> FloatArray:
    """Return the named quantities of each row, one column each."""
    columns = {"one": np.ones_like(y), "y": y, "f": f, "yf": y * f, "ff": f * f, "yff": y * f * f}
    if w is not None:
        columns |= {"w": w, "wy": w * y, "wf": w * f, "wyf": w * y * f, "wyff": w * y * f * f}
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
    names: tuple[str, ...] | None = None,
    arm_ratio: float | None = None,
    split: bool = False,
    n_strata: int = 1,
) -> tuple[Linearised, Linearised, Linearised, Linearised]:
    """Return N, M, D and the size of each group as functions of the sums.

    Parameters
    ----------
    total : array of shape (G, C, p)
        Sums by cell: (control, treated), or those of the prediction half, then of the estimation
        half; with strata those of each stratum.
    measure, collapse, arm_ratio, split, n_strata
        As in `group_errors`.
    names : tuple of str, optional
        The quantities; by default those of the collapse.

    Returns
    -------
    tuple of four Linearised
        For differences M is the effect and D is 1.
    """
    if n_strata > 1:
        parts = collapse_parts(
            total.reshape(-1, 2, total.shape[2]), measure=measure, collapse=collapse, names=names
        )
        *means, size = over_strata(parts, n_strata)
        return means[0], means[1], means[2], size
    known = names or _names(total, measure, collapse)
    sums = _Sums(total, known)
    # The paper's split: predictions from the first two cells, effects from the last two.
    effects = 2 if split else 0
    size = sums.both("one") + sums.both("one", 2) if split else sums.both("one")
    if arm_ratio is not None:
        control = sums("y", 0, effects)
        implied = sums("yf", 0) / sums("y", 0) * control if split else sums("yf", 0)
        # Only outcomes are counted; the sizes of the arms enter through their known ratio.
        return implied, sums("y", 1, effects) * (1.0 / arm_ratio), control, size * 0.0 + 1.0
    augment = collapse == "aipw"
    outcome = "wy" if "w" in known else "y"
    control = sums.mean(outcome, 0, "mu0" if augment else None, effects)
    treated = sums.mean(outcome, 1, "mu1" if augment and sums.has("mu1") else None, effects)
    if measure == "difference":
        predicted = sums.both("f") / sums.both("one")
        return predicted, treated - control, control * 0.0 + 1.0, size
    if not split and collapse in {"control", "aipw"}:
        # N is a mean itself: no division by the control outcomes, which may be zero.
        return sums.mean(f"{outcome}f", 0, "mu0f" if augment else None), treated, control, size
    return _PREDICTED[collapse](sums) * control, treated, control, size


def over_strata(parts: Sequence[Linearised], n_strata: int) -> list[Linearised]:
    """Average functions of strata over the strata of each group, by their sizes.

    Parameters
    ----------
    parts : sequence of Linearised
        Functions of (group, stratum), group-major; the last is the size, which is added up. A
        stratum of size zero does not count.
    n_strata : int
        S.

    Returns
    -------
    list of Linearised
        With gradients with respect to the cells (stratum, arm) of each group.
    """
    *means, size = parts
    n = size.value.reshape(-1, n_strata)
    whole = n.sum(axis=1)
    share = np.divide(n, whole[:, None], out=np.zeros_like(n), where=whole[:, None] > 0)

    def arranged(gradient: FloatArray) -> FloatArray:
        return gradient.reshape(len(n), -1, gradient.shape[-1])

    found = []
    for part in means:
        there = n > 0
        value = np.where(there, part.value.reshape(n.shape), 0.0)
        average = (share * value).sum(axis=1)
        gradient = np.where(there.reshape(-1, 1, 1), part.gradient, 0.0)
        gradient *= share.reshape(-1, 1, 1)
        # The shares of the strata are estimated too: the sum of ones moves the average.
        change = np.divide(
            value - average[:, None], whole[:, None], out=np.zeros_like(n), where=there
        )
        gradient[:, :, 0] += change.reshape(-1, 1)
        found.append(Linearised(value=average, gradient=arranged(gradient)))
    return [*found, Linearised(value=whole, gradient=arranged(size.gradient))]


def slope_parts(
    total: FloatArray, names: tuple[str, ...], *, measure: EffectMeasure, n_strata: int = 1
) -> tuple[Linearised, Linearised]:
    r"""Return covariance of effect and prediction, and variance of the prediction, by group.

    Their quotient is the slope of the best linear predictor of the effect ([1]_): the doubly robust
    score has :math:`E[\Gamma f] = E[(Y(1) - Y(0)) f]`. For relative effects moments are those under
    the outcome without treatment, :math:`E[Y(0) f] / E[Y(0)]` and so on.

    Parameters
    ----------
    total : array of shape (G, C, p)
        Sums by (stratum, arm).
    names : tuple of str
        The quantities, as `slope_quantities` names them.
    measure, n_strata
        As in `group_errors`.

    Returns
    -------
    tuple of two Linearised

    References
    ----------
    .. [1] V. Chernozhukov, M. Demirer, E. Duflo and I. Fernandez-Val (2018), Generic machine
       learning inference on heterogeneous treatment effects in randomized experiments.
       https://doi.org/10.3386/w24678
    """
    sums = _Sums(total.reshape(-1, 2, total.shape[2]), names)
    prefix = "w" if "w" in names else ""
    y, yf = f"{prefix}y", f"{prefix}yf"
    size = sums.both("one")
    if measure == "relative":
        parts: list[Linearised] = [
            sums.mean(yf, 1),
            sums.mean(y, 1),
            sums.mean(yf, 0),
            sums.mean(f"{yf}f", 0),
            sums.mean(y, 0),
            size,
        ]
        treated_f, treated, control_f, control_ff, control, _ = over_strata(parts, n_strata)
        mean = control_f / control
        return treated_f / control - treated / control * mean, control_ff / control - mean * mean
    f = f"{prefix}f"
    mean, square = (sums.both(name) / sums.both("one") for name in ("f", "ff"))
    effect = sums.mean(y, 1) - sums.mean(y, 0)
    within = [sums.mean(yf, arm) - sums.mean(y, arm) * sums.mean(f, arm) for arm in (1, 0)]
    parts = [effect * mean + within[0] - within[1], effect, mean, square, size]
    both, effect, mean, square, _ = over_strata(parts, n_strata)
    return both - effect * mean, square - mean * mean


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
        mean = self(name, arm, start) / self("w" if name[0] == "w" else "one", arm, start)
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
