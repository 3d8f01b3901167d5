r"""What an audit of predicted treatment effects can show.

Standard errors are those of arm means: :math:`\sigma / \sqrt{n e (1 - e)}` for the effect of a
group of n rows of which the share e is treated, and the same for its error, its slope (over the
standard deviation of its predictions) and its ranking. Tests have a noncentral t law with the
degrees of freedom of the arms; fewer than four units in an arm show nothing, whatever the error. It
is planning, not inference.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise._checks import check_fraction, check_integer, check_number
from equipoise._typing import FloatArray
from equipoise.design.power import unit_rows, unit_skewness
from equipoise.design.units import PlannedSide, unit_law
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.small_samples import MIN_UNITS, quotient

__all__ = ["EffectAudit", "effect_audit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectAudit:
    """Smallest quantities that an audit of effects detects with a given chance.

    Parameters
    ----------
    n : int
        Rows of the experiment.
    power, level : float
        The chance; level of one test after adjustment for the number of groups.
    share, n_group : tuple of float
        Of each group: its share of the rows, and its rows.
    error, bias : tuple of float
        Error of the predictions of each group; error less that of the other groups. Infinite where
        an arm of the group has fewer than four units: it is not tested.
    slope, autoc : tuple of float, or None
        Distance of the slope from one; rank-weighted average effect. `None` where the spread of the
        predictions is not given.
    """

    n: int
    power: float
    level: float
    share: tuple[float, ...]
    n_group: tuple[float, ...]
    error: tuple[float, ...]
    bias: tuple[float, ...]
    slope: tuple[float, ...] | None
    autoc: tuple[float, ...]

    def __str__(self) -> str:
        """Write one line for each group."""
        tests = f"level of one test {self.level:.3g}; detected with power {self.power:g}:"
        lines = [f"treatment_effects: n = {self.n}, {tests}"]
        for k, share in enumerate(self.share):
            slope = "" if self.slope is None else f", slope off by {self.slope[k]:.3g}"
            lines.append(
                f"  share {share:.3g}: {self.n_group[k]:.0f} rows, error {self.error[k]:.3g},"
                f" bias {self.bias[k]:.3g}{slope}, AUTOC {self.autoc[k]:.3g}"
            )
        return "\n".join(lines)


def effect_audit(
    n: int,
    *,
    share: Sequence[float],
    rate: float | None = None,
    sd: float | None = None,
    treated: float = 0.5,
    pred_sd: float | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    design_effect: float = 1.0,
    cluster_size: float | None = None,
) -> EffectAudit:
    """Say how large an error must be for an experiment to show it.

    Effects are differences of means. Each quantity is tested in every group, adjusted for their
    number (Bonferroni, which Holm never exceeds).

    Parameters
    ----------
    n : int
        Rows of the experiment.
    share : list of float
        Share of each group in these rows; they add up to one.
    rate : float, optional
        Mean of a 0/1 outcome in both arms: predictions are off where there is no effect. Effects
        that were not predicted move it in one arm; then give the one nearer to a half.
    sd : float, optional
        Standard deviation of another outcome within an arm. Give `rate` or `sd`.
    treated : float, default 0.5
        Share of the rows that is treated.
    pred_sd : float, optional
        Standard deviation of the predicted effects within a group, for slopes.
    alpha : float, default 0.05
        Level of the audit.
    power : float, default 0.8
        Chance of detection.
    design_effect : float, default 1
        Variance factor for dependent rows.
    cluster_size : float, optional
        Rows of a unit, as in `power`; units are in one arm.

    Returns
    -------
    EffectAudit

    Examples
    --------
    Ten thousand people, a tenth of them in a minority, an outcome of 30%: how far must predicted
    effects be off to be found?

    >>> plan = effect_audit(10_000, share=[0.9, 0.1], rate=0.3)
    >>> [round(error, 3) for error in plan.error]
    [0.03, 0.09]

    By three points for the majority, and by nine for the minority.
    """
    check_integer("n", n, low=1)
    check_fraction("alpha", alpha)
    check_fraction("treated", treated)
    chance = check_fraction("power", power)
    parts = np.array([check_fraction("share", one) for one in share])
    if len(parts) < 2 or not np.isclose(parts.sum(), 1.0):
        raise InvalidParameterError(
            f"`share` must have one entry for each of two groups or more, and add up to 1; got"
            f" {list(share)}."
        )
    if (rate is None) == (sd is None):
        raise InvalidParameterError("give either `rate`, of a 0/1 outcome, or `sd`.")
    factor = check_number("design_effect", design_effect, low=np.finfo(float).tiny)
    rows = unit_rows(factor, cluster_size)
    if sd is None:
        theta = check_fraction("rate", rate)
        spread = math.sqrt(theta * (1.0 - theta))
        skewness = unit_skewness(factor, rows) * (1.0 - 2.0 * theta) / spread
    else:
        spread, skewness = check_number("sd", sd, low=np.finfo(float).tiny), 0.0
    size = n * parts
    arms = [
        PlannedSide(
            units=size * part / rows,
            variance=spread**2 * factor / (size * part),
            skewness=np.full(len(parts), skewness),
            sign=sign,
        )
        for part, sign in ((treated, 1.0), (1.0 - treated, -1.0))
    ]
    single = unit_law(arms, pool=n / rows)
    apart = unit_law([*arms, *(_others(arm, size) for arm in arms)], pool=n / rows)
    # Of two groups the biases are one number with two signs: one test.
    level = alpha / (1 if len(parts) == 2 else len(parts))
    reach = single.se * single.least(chance, level / 2.0)
    slope = None
    if pred_sd is not None:
        slope = tuple((reach / check_number("pred_sd", pred_sd, low=1e-300)).tolist())
    return EffectAudit(
        n=n,
        power=chance,
        level=level,
        share=tuple(parts.tolist()),
        n_group=tuple(size.tolist()),
        error=tuple((single.se * single.least(chance, 0.5 * alpha / len(parts))).tolist()),
        bias=tuple((apart.se * apart.least(chance, 0.5 * level)).tolist()),
        slope=slope,
        # The weights of ranks have variance one.
        autoc=tuple(reach.tolist()),
    )


def _others(arm: PlannedSide, size: FloatArray) -> PlannedSide:
    """The same arm of the other groups, averaged by size."""
    used = np.where(arm.units >= MIN_UNITS, size, 0.0)
    squares = used**2 * arm.variance
    doubt = squares**2 / np.maximum(arm.units - 1.0, 1e-9)
    total = squares.sum() - squares
    return PlannedSide(
        units=1.0 + quotient(total**2, doubt.sum() - doubt),
        variance=quotient(total, (used.sum() - used) ** 2),
        skewness=arm.skewness,
        sign=-arm.sign,
    )
