"""Draw the figures of the treatment-effect paper for a panel with known errors; write SVG files.

    python docs/reproductions/treatment_effects_figures.py

About ten seconds. The page `treatment_effects.md` shows them; they lie in `figures`, beside this
file.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import equipoise as eq
from equipoise.plot.effects import (
    correction_prices,
    effect_spread,
    evaluation_bars,
    paper_densities,
    paper_statistics,
    statistics_against_null,
)

SIZE = np.geomspace(10_000, 4_000_000, 60).round().astype(int)
ERROR = np.where(np.arange(60) % 10 == 4, 0.15 * (-1.0) ** (np.arange(60) // 10), 0.0)
"""Sixty countries, six of which have errors."""


def panel(seed=7):
    """Return sessions by country, arm, predicted effect and outcome, as counts."""
    rng = np.random.default_rng(seed)
    share, base = [0.4, 0.4, 0.2], np.array([0.5, 1.0, 2.0])
    lift, rows = np.array([1.3, 1.2, 1.0]), []
    for k in range(60):
        for arm in (0, 1):
            sessions = rng.multinomial(SIZE[k] // 2, share)
            booked = rng.binomial(sessions, 0.02 * base * lift**arm)
            for x in range(3):
                row = {"country": f"c{k:02d}", "offer": arm, "effect": lift[x] + ERROR[k]}
                rows.append(row | {"booked": 1, "sessions": booked[x]})
                rows.append(row | {"booked": 0, "sessions": sessions[x] - booked[x]})
    return pd.DataFrame(rows)


def audits():
    """Return the audit, and that of the published procedure."""
    audit = eq.Audit(
        panel(),
        group="country",
        y_true="booked",
        treatment="offer",
        effect_pred="effect",
        count="sessions",
    )
    return (
        audit.treatment_effects(threshold=1.15, rng=0),
        audit.treatment_effects(method="paper", rng=0),
    )


def figure_1(ours, published):
    """Densities of errors and biases, and the spread without sampling noise."""
    figure = Figure(figsize=(9.6, 3.0), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes, of in ((left, "error"), (middle, "bias")):
        paper_densities(published, of=of, ax=axes)
        axes.set_title("published procedure", fontsize="small")
    effect_spread(ours, ax=right)
    right.set_title("here", fontsize="small")
    return figure


def figure_2(ours, published):
    """Statistics against those of groups without any bias."""
    figure = Figure(figsize=(9.6, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    paper_statistics(published, ax=left)
    left.set_title("published procedure", fontsize="small")
    statistics_against_null(ours, ax=right)
    right.set_title("here", fontsize="small")
    return figure


def figure_3(ours, published):
    """What strategies leave."""
    figure = Figure(figsize=(9.6, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes, of in ((left, "error"), (middle, "bias")):
        paper_densities(published, of=of, remaining=True, ax=axes)
        axes.set_title("published procedure", fontsize="small")
    evaluation_bars(ours, ax=right)
    right.set_title("here", fontsize="small")
    return figure


def prices(ours):
    """What corrections buy and bring, where those are treated who are predicted to gain 15%."""
    figure = Figure(figsize=(9.6, 3.4), layout="constrained")
    correction_prices(ours, ax=figure.subplots())
    return figure


def draw(folder):
    """Write every figure into a folder; return the paths."""
    ours, published = audits()
    figures = {
        "errors": lambda: figure_1(ours, published),
        "statistics": lambda: figure_2(ours, published),
        "remaining": lambda: figure_3(ours, published),
        "prices": lambda: prices(ours),
    }
    written = []
    with mpl.rc_context({"svg.hashsalt": "equipoise", "font.size": 8}):
        for name, figure in figures.items():
            path = Path(folder) / f"treatment_effects_{name}.svg"
            figure().savefig(path, metadata={"Date": None, "Creator": None})
            written.append(path)
    return written


if __name__ == "__main__":
    for file in draw(Path(__file__).parent / "figures"):
        print(f"{file.name} {file.stat().st_size / 1000:.0f} kB", file=sys.stderr)
