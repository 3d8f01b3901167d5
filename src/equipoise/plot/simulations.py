"""Pictures of simulations: statistics against their law, and power against the truth."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from equipoise._typing import AnyArray, FloatArray
from equipoise.plot.curves import COLOURS, STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["power_curves", "quantile_plot"]

INK = "#444444"
MOST_POINTS = 200
"""Points that are drawn of many."""


def quantile_plot(
    values: AnyArray,
    quantile: Callable[[FloatArray], FloatArray],
    *,
    words: tuple[str, str] = ("quantile of the law", "statistic"),
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw statistics in order against the quantiles of a law.

    Parameters
    ----------
    values : array of shape (n,)
        The statistics.
    quantile : callable
        Quantiles of the law, such as ``scipy.stats.norm.ppf``.
    words : tuple of str
        Below and beside the picture.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Points on the diagonal follow the law; each of so many independent statistics lies in the
        shaded band with a chance of 95%.
    """
    from scipy import special

    from equipoise.plot.intervals import new_axes

    axes = new_axes(5.0, 4.2) if ax is None else ax
    ordered = np.sort(np.asarray(values, np.float64))
    m = len(ordered)
    place = np.arange(1, m + 1)
    expected = quantile(np.asarray((place - 0.375) / (m + 0.25), np.float64))
    low, high = (quantile(special.betaincinv(place, m + 1 - place, q)) for q in (0.025, 0.975))
    # Of thousands of points the tails and every so many between them say the same.
    ends = np.arange(MOST_POINTS // 4)
    inner = np.linspace(0, m - 1, min(m, MOST_POINTS // 2)).astype(np.int64)
    shown = np.unique(np.concatenate([inner, ends[ends < m], m - 1 - ends[ends < m]]))
    expected, low, high, ordered = (x[shown] for x in (expected, low, high, ordered))
    axes.fill_between(expected, low, high, color=COLOURS[0], alpha=0.15, lw=0)
    axes.plot(expected, expected, color=INK, lw=0.8)
    axes.plot(expected, ordered, "o", color=COLOURS[0], ms=4 if m <= 200 else 2, gid="statistics")
    axes.set_xlabel(words[0])
    axes.set_ylabel(words[1])
    return axes


def power_curves(
    truth: AnyArray,
    power: Mapping[str, AnyArray],
    *,
    alpha: float = 0.05,
    words: str = "true disparity",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw how often tests reject against what is true.

    Parameters
    ----------
    truth : array of shape (n,)
        The true values.
    power : mapping of str to array of shape (n,)
        Rates of rejection of each test.
    alpha : float, default 0.05
        Level, drawn as a line.
    words : str
        Below the picture.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    from equipoise.plot.intervals import new_axes

    axes = new_axes(5.0, 3.6) if ax is None else ax
    for k, (name, rate) in enumerate(power.items()):
        axes.plot(
            truth,
            rate,
            color=COLOURS[k % len(COLOURS)],
            ls=STYLES[k % len(STYLES)],
            label=name,
            gid=f"power-{k}",
        )
    axes.axhline(alpha, color=INK, lw=0.8, ls=":")
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(words)
    axes.set_ylabel("share rejected")
    axes.legend(frameon=False, fontsize="x-small")
    return axes
