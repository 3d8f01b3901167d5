r"""Power of the search for a less discriminatory alternative.

All requirements of a candidate must be shown, so with true margins :math:`T_j` and standard
deviations :math:`s_j` of one test row the power is

.. math:: P\left(Z_j + \sqrt{n}\,T_j / s_j > c \text{ for all } j\right),

Z with the correlation of the requirements and c the critical value: that of a single test where
candidates are put in order on other rows, that of all together for ready columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import special

from equipoise._checks import check_finite, check_fraction, check_integer, check_number
from equipoise._typing import AnyArray, FloatArray
from equipoise.exceptions import InvalidParameterError

__all__ = ["Alternative", "Pilot", "planned_alternative"]

N_DRAWS = 20_000


class Pilot(Protocol):
    """A result of `improvability`, as far as planning needs it."""

    @property
    def details(self) -> Any:
        """With `power`: margins and covariance of the requirements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A candidate as it is expected to be.

    Parameters
    ----------
    effect, sd : array of shape (L,)
        By how much each requirement is exceeded, and its standard deviation for one test row.
    draws : array of shape (n_draws, L)
        Standard normal draws with the correlation of the requirements.
    critical : float
        What every z must exceed.
    level : float
        The level of one test that this means.
    """

    effect: FloatArray
    sd: FloatArray
    draws: FloatArray
    critical: float
    level: float

    def power(self, n: int) -> tuple[tuple[float, ...], tuple[float, ...], float]:
        """Return standard errors, power of each requirement, and of all, with n test rows."""
        shift = np.sqrt(n) * self.effect / self.sd
        single = special.ndtr(shift - self.critical)
        together = float(np.mean((self.draws + shift > self.critical).all(axis=1)))
        return tuple((self.sd / np.sqrt(n)).tolist()), tuple(single.tolist()), together


def planned_alternative(
    *,
    pilot: Pilot | None,
    effects: Sequence[float] | None,
    cov: AnyArray | None,
    differing: float | None,
    accuracy_loss: float | None,
    n_candidates: int,
    correlation: float,
    alpha: float,
) -> Alternative:
    """Return the candidate that the options describe.

    Parameters
    ----------
    pilot : AuditResult, optional
        Of `improvability` on a pilot sample.
    effects, cov : optional
        By how much each requirement is exceeded, and their covariance for one test row.
    differing, accuracy_loss : float, optional
        An equally accurate candidate that decides this share differently, and the loss tolerated.
    n_candidates, correlation : int, float
        Ready columns tested together, and the correlation between their requirements.
    alpha : float
        Level.

    Returns
    -------
    Alternative
    """
    level = check_fraction("alpha", alpha)
    given = [pilot is not None, effects is not None or cov is not None, differing is not None]
    if sum(given) != 1:
        raise InvalidParameterError(
            "say what is expected in one way: a `pilot`, `effects` with `cov`, or `differing` with"
            " `accuracy_loss`."
        )
    if pilot is not None:
        found = pilot.details["power"]
        if not found:
            raise InvalidParameterError("the pilot was not tested; it says nothing of power.")
        effects, cov = found["effects"], found["covariance"]
    elif differing is not None:
        if accuracy_loss is None:
            raise InvalidParameterError(
                "equal accuracy can be shown up to a loss only; pass `accuracy_loss` too."
            )
        effects = [check_number("accuracy_loss", accuracy_loss, low=1e-12)]
        cov = np.array([[check_fraction("differing", differing)]])
    effect = check_finite("effects", effects, ndim=1)
    covariance = check_finite("cov", cov, ndim=2)
    if covariance.shape != (len(effect), len(effect)) or (np.diag(covariance) <= 0).any():
        raise InvalidParameterError(
            f"`cov` must be the covariance of the {len(effect)} effects, each with a variance above"
            f" zero; got shape {covariance.shape}."
        )
    sd = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    factor = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((N_DRAWS, len(effect))) @ factor
    k = check_integer("n_candidates", n_candidates, low=1)
    critical = float(-special.ndtri(level))
    if k > 1:
        critical = _joint_critical(factor, k, correlation, level, rng)
    return Alternative(
        effect=effect, sd=sd, draws=draws, critical=critical, level=float(special.ndtr(-critical))
    )


def _joint_critical(
    factor: FloatArray, k: int, correlation: float, level: float, rng: np.random.Generator
) -> float:
    """Return what the largest z of all candidates exceeds with the level, or Holm's value."""
    rho = check_number("correlation", correlation, low=0.0, high=1.0)
    size = factor.shape[0]
    largest = np.full(N_DRAWS, -np.inf)
    common = rng.standard_normal((N_DRAWS, size))
    for _ in range(k):
        own = rng.standard_normal((N_DRAWS, size))
        z = (np.sqrt(rho) * common + np.sqrt(1.0 - rho) * own) @ factor
        largest = np.maximum(largest, z.max(axis=1))
    return float(min(np.quantile(largest, 1.0 - level), -special.ndtri(level / k)))
