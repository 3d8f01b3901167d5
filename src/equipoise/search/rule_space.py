"""The linear rules that an exact search chooses from."""

from dataclasses import dataclass

from equipoise._typing import FloatArray
from equipoise.search.sample import TrainingSample

__all__ = ["RuleSpace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSpace:
    """Rules "select where X'b >= 0" on training rows, the coefficients at most 1 in size.

    Parameters
    ----------
    sample : TrainingSample
        Rows.
    X : array of shape (n, d + 1)
        Scaled features, the intercept first.
    signs : array of shape (d + 1,)
        Allowed sign of each coefficient, 0 for both.
    n_selected : int, optional
        How many rows to select.
    epsilon : float
        Distance from the hyperplane of rows that are not selected.
    """

    sample: TrainingSample
    X: FloatArray
    signs: FloatArray
    n_selected: int | None
    epsilon: float
