"""Draw the figures of "Utility as fair pricing" anew, corrected where the text is; write SVG files.

    EQUIPOISE_DATA=<folder> python docs/reproductions/generalized_entropy_figures.py

About ten seconds. The page `generalized_entropy.md` shows them; they lie in `figures`, beside this
file.
"""

import io
import os
import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.path import Path as Outline
from matplotlib.ticker import MaxNLocator
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import equipoise as eq
from equipoise.datasets import ADULT_COLUMNS
from equipoise.design import benefit_design
from equipoise.plot.curves import COLOURS, STYLES
from equipoise.plot.decomposition import (
    BETWEEN,
    INK,
    LIMIT,
    WITHIN,
    error_plane,
    index_surface,
    threshold_curve,
)
from equipoise.stats.inequality.cap import (
    KappaScheme,
    cap_shown,
    contrast_shown,
    effective_kappa,
    kappa_scheme,
    threshold_path,
)
from equipoise.stats.inequality.geometry import (
    domain_parallelogram,
    domain_triangle,
    index_from_mean,
    level_shares,
    mean_domain,
    turning_point,
    two_level_peak,
)
from equipoise.stats.inequality.index import kernel

HERE = Path(__file__).parent
BLUE, GREY = COLOURS[0], "#999999"
ORDER = 0.5
ORDERS = (-1.0, 0.0, 0.5, 1.0, 2.0)
PRINTED = [[0.9, 0.01], [1.0, 1.0]]
"""Benefits of the paper's Figure 5: selection helps, a false negative has next to nothing."""
SURFACES = ((0.5, 0.8, 0.5), (0.5, 1.5, 2.0), (0.0, 0.8, 0.5))
"""Low and high benefit and order of the surfaces of Figure 4."""
UNIT_RATE = 0.1
"""Where Figure 4 is cut."""
PATH = re.compile(r' d="[^"]*"')
DIGITS = re.compile(r"(\.\d)\d+")
"""A tenth of a point is finer than a screen shows; files are half as large."""
INDENT = re.compile(r"\n +")


def data(name):
    return Path(os.environ.get("EQUIPOISE_DATA", "data")) / name


def compas():
    """Return two audits of COMPAS at its cut-off: by accuracy, and three misses an alarm."""
    table = pd.read_csv(data("compas-scores-two-years.csv"))
    decision = (table["decile_score"] >= 5).astype(int)
    table = table[["two_year_recid", "decile_score"]].assign(decision=decision)
    audit = eq.Audit(table, y_true="two_year_recid", y_pred="decision", y_score="decile_score")
    plain = audit.inequality("speicher", order=ORDER)
    base = plain.details["error_rates"]["base_rate"]
    return plain, audit.inequality(benefit_design(base, 3, "punitive", order=ORDER))


def adult():
    """Return outcomes and scores of one half of Adult from a regression fitted on the other."""
    table = pd.read_csv(data("adult.data"), names=ADULT_COLUMNS, skipinitialspace=True)
    y = (table.pop("income") == ">50K").astype(int).to_numpy()
    numbers = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
    words = [name for name in table if name not in {*numbers, "fnlwgt", "education"}]
    model = make_pipeline(
        make_column_transformer(
            (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), words)
        ),
        LogisticRegression(max_iter=5000, tol=1e-6),
    )
    order = np.random.default_rng(0).permutation(len(y))
    fit, shown = order[: len(y) // 2], order[len(y) // 2 :]
    model.fit(table.iloc[fit], y[fit])
    return y[shown], model.predict_proba(table.iloc[shown])[:, 1]


def income(y, score):
    """Return the audit of Adult at one half with the paper's benefits, and the ratio in them."""
    table = pd.DataFrame({"y": y, "score": score, "decision": (score >= 0.5).astype(int)})
    audit = eq.Audit(table, y_true="y", y_pred="decision", y_score="score")
    kappa = encoded_kappa(float(y.mean()))
    return audit.inequality(PRINTED, order=ORDER, kappa=kappa)


def encoded_kappa(base_rate):
    """Return the ratio of errors that the paper's benefits encode at a base rate."""
    (high, low), _ = PRINTED
    even = kappa_scheme(
        base_rate=0.5, kappa=(1 - low) / (1 - high), kind="assistive", minimum_benefit=low
    )
    return effective_kappa(even, base_rate)


def scheme_of(result):
    cap = result.details["cap"]
    return KappaScheme(**{key: cap[key] for key in ("kind", "base_rate", "kappa", "low", "high")})


def place(fpr, fnr, *, base_rate, low, high, kind):
    """Return mean benefit and unit reward rate at two error rates."""
    shares = level_shares(fpr, fnr, base_rate=base_rate, kind=kind)
    return np.tensordot([low, high, 1.0], np.stack(shares), 1), shares[2]


def model_place(result):
    """Return mean benefit and unit reward rate of the audited model."""
    rates = result.details["error_rates"]
    if result.details.get("cap") is None:
        levels = {"low": 0.0, "high": 2.0, "kind": "accuracy"}
    else:
        scheme = scheme_of(result)
        levels = {"low": scheme.low, "high": scheme.high, "kind": scheme.kind}
    mean, unit = place(rates["fpr"], rates["fnr"], base_rate=rates["base_rate"], **levels)
    return float(mean), float(unit)


def crossings(result, y, score):
    """Return the last threshold at which the ratio holds, and the last with an index below the cap.

    With the accuracy there, and the best accuracy among the thresholds that each allows.
    """
    scheme, cap = scheme_of(result), result.details["cap"]["index"]["cap"]
    path = threshold_path(score, y)
    right = 1.0 - path.errors / len(y)
    direct = contrast_shown(path, kappa=scheme.kappa, kind=scheme.kind, confidence_level=None)
    capped = cap_shown(path, scheme, cap=cap, order=ORDER, confidence_level=None)
    found = {"unconstrained": {"accuracy": float(right.max())}}
    for name, allowed in (("ratio", direct), ("cap", capped)):
        last = int(np.flatnonzero(allowed)[-1])
        found[name] = {
            "threshold": float(path.cut[last]),
            "accuracy": float(right[allowed].max()),
            "switches": int(np.count_nonzero(np.diff(allowed.astype(int)))),
        }
    return found


def figure_1(plain, checked):
    """Domain of mean benefit and unit reward rate: high benefit above one, and below."""
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    base = plain.details["error_rates"]["base_rate"]
    scheme = scheme_of(checked)
    _domain(left, base, low=0.0, high=2.0, kind="accuracy")
    _domain(right, base, low=scheme.low, high=scheme.high, kind=scheme.kind)
    # Finer towards no harm, where the region under the cap is thin.
    harmful, benign = np.meshgrid(np.linspace(0, 1, 161) ** 3, np.linspace(0, 1, 121))
    levels = {"low": scheme.low, "high": scheme.high, "kind": scheme.kind}
    mean, unit = place(harmful, benign, base_rate=base, **levels)
    index = scheme.index(harmful, benign, order=ORDER)
    cap = checked.details["cap"]["index"]["cap"]
    right.contourf(mean, unit, index, levels=[-1.0, cap], colors=[BETWEEN], alpha=0.55)
    right.contour(mean, unit, index, levels=[cap], colors=[BETWEEN], linewidths=1.2)
    right.axvline(scheme.mean_at_limit, color=LIMIT, lw=1.6)
    for axes, result, kind in (
        (left, plain, {"low": 0.0, "high": 2.0, "kind": "accuracy"}),
        (right, checked, levels),
    ):
        roc = checked.details["roc"]
        fpr, fnr = (np.array([point[name] for point in roc]) for name in ("fpr", "fnr"))
        axes.plot(*place(fpr, fnr, base_rate=base, **kind), color=BLUE, lw=1.4)
        axes.plot(*model_place(result), "o", color=INK, ms=6)
        axes.set(xlabel="mean benefit", ylim=(-0.03, 1.05))
    right.set(xlim=(0.05, 1.04), ylabel="unit reward rate: share not selected")
    left.set_ylabel("unit reward rate: accuracy")
    left.set_title("low 0, high 2", fontsize="medium")
    right.set_title(f"low {scheme.low:g}, high {scheme.high:.2f}", fontsize="medium")
    _legend(
        figure,
        [
            Patch(facecolor=WITHIN, alpha=0.25, label=f"reachable at base rate {base:.2f}"),
            Line2D([], [], color=BLUE, lw=2, label="thresholds of the score"),
            Line2D([], [], color=INK, marker="o", ls="", label="model"),
            Line2D([], [], color=LIMIT, lw=2, label="limit of the mean benefit"),
            Patch(facecolor=BETWEEN, alpha=0.55, label="index below its cap"),
        ],
    )
    return figure


def _domain(axes, base_rate, *, low, high, kind):
    triangle = domain_triangle(low=low, high=high)
    axes.fill(*triangle.T, facecolor="#f2f2f2", edgecolor=INK, lw=1.2)
    corners = domain_parallelogram(base_rate, low=low, high=high, kind=kind)
    axes.fill(*corners.T, facecolor=WITHIN, alpha=0.25, edgecolor=INK, lw=0.8)


def figure_2_3():
    """What a person adds to the index, and where an index of two levels is largest."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    x = np.geomspace(0.05, 3.0, 120)
    ratio = np.geomspace(0.02, 50.0, 121)
    for k, order in enumerate(ORDERS):
        style = {"color": COLOURS[k], "ls": STYLES[k % len(STYLES)], "lw": 1.6}
        left.plot(x, kernel(x, order), **style)
        peaks = [two_level_peak(float(b), order=order) for b in ratio]
        right.plot(ratio, peaks, **style, label=f"{order:g}")
    left.set(
        xlim=(0, 3), ylim=(0, 2.5), xlabel="benefit over mean benefit",
        ylabel="contribution to the index",
    )  # fmt: skip
    right.axvline(1.0, color=INK, lw=0.8)
    right.axhline(0.5, color=INK, lw=0.8)
    right.set(
        xscale="log", ylim=(0, 1), xlabel="benefit of the others (log scale)",
        ylabel="share with benefit one\nat which the index is largest",
    )  # fmt: skip
    right.set_xticks([0.02, 0.1, 1, 10, 50], ["0.02", "0.1", "1", "10", "50"])
    figure.legend(
        *right.get_legend_handles_labels(), title="order", loc="outside upper center",
        ncols=len(ORDERS), frameon=False,
    )  # fmt: skip
    return figure


def figure_4():
    """Three surfaces of the index, and cuts through them at one unit reward rate."""
    figure = Figure(figsize=(8.4, 6.6), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for k, (low, high, order) in enumerate(SURFACES):
        index_surface(low=low, high=high, order=order, ax=panels[k])
        panels[k].set_title(f"low {low:g}, high {high:g}", fontsize="medium")
        panels[k].set(ylabel="unit reward rate", yticks=[0, 0.5, 1])
        panels[k].axhline(UNIT_RATE, color=COLOURS[k], lw=1.4, ls=STYLES[k])
        mean, curve, peak = cut(low, high, order)
        name = f"low {low:g}, high {high:g}, order {order:g}"
        top = curve.max()
        panels[3].plot(mean, curve / top, color=COLOURS[k], ls=STYLES[k], lw=1.6, label=name)
        if peak is not None:
            at = index_from_mean(peak, UNIT_RATE, low=low, high=high, order=order)
            panels[3].plot(peak, at / top, "o", color=COLOURS[k], ms=6)
    panels[3].set(
        xlabel=f"mean benefit, at unit reward rate {UNIT_RATE:g}",
        ylabel="index over its largest value", ylim=(0, 1.42), yticks=[0, 0.25, 0.5, 0.75, 1],
    )  # fmt: skip
    for bar in figure.axes[len(panels) :]:
        bar.yaxis.set_major_locator(MaxNLocator(4))
    panels[3].legend(loc="upper right", frameon=False, fontsize="small")
    return figure


def cut(low, high, order):
    """Return means inside the domain at `UNIT_RATE`, the index there, and the turning point."""
    ends = [float(end) for end in mean_domain(UNIT_RATE, low=low, high=high)]
    mean = np.linspace(*ends, 41)
    curve = index_from_mean(mean, UNIT_RATE, low=low, high=high, order=order)
    peak = turning_point(UNIT_RATE, low=low, high=high, order=order)
    return mean, curve, peak


def figure_5(checked, incomes):
    """Plane of error rates of COMPAS and of Adult."""
    figure = Figure(figsize=(8.4, 4.9), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, result, name in zip(panels, (checked, incomes), ("COMPAS", "Adult"), strict=True):
        error_plane(result, ax=axes)
        axes.get_legend().remove()
        kappa = result.details["cap"]["kappa"]
        axes.set_title(f"{name}: benign = {kappa:.3g} x harmful", fontsize="medium")
    _close_up(panels[1], incomes)
    _legend(
        figure,
        [
            Line2D([], [], color=colour, lw=2, label=label)
            for colour, label in (
                (GREY, "index"),
                (BETWEEN, "cap"),
                (LIMIT, "limit of the ratio"),
                (BLUE, "thresholds of the score"),
                (INK, "model, 95% region"),
            )
        ],
    )
    return figure


def _close_up(axes, result):
    """Draw the left edge of the plane a hundred times as wide, where the cap would not be seen."""
    inset = axes.inset_axes((0.48, 0.42, 0.48, 0.5))
    scheme, cap = scheme_of(result), result.details["cap"]["index"]["cap"]
    edge = 0.01
    harmful, benign = np.meshgrid(np.linspace(0, edge, 41), np.linspace(0, 1, 41))
    index = scheme.index(harmful, benign, order=ORDER)
    inset.contour(harmful, benign, index, levels=[cap], colors=[BETWEEN])
    inset.plot([0, edge], [0, edge * scheme.kappa], color=LIMIT, lw=1.6)
    roc = [point for point in result.details["roc"] if point["fnr"] < 2 * edge]
    inset.plot([p["fnr"] for p in roc], [p["fpr"] for p in roc], color=BLUE, lw=1.4)
    inset.set(xlim=(0, edge), ylim=(0, 1), xticks=[0, edge / 2, edge], yticks=[0, 0.5, 1])
    inset.set_title("close-up of the left edge", fontsize="small")
    inset.tick_params(labelsize="small")


def figure_8(incomes, found):
    """Accuracy and error rates of Adult by threshold, and the index with its cap.

    On the left, too, thresholds are shaded that the ratio allows; a line ends those under the cap.
    """
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    roc = [point for point in incomes.details["roc"] if point["threshold"] is not None]
    at, fpr, fnr = (np.array([point[k] for point in roc]) for k in ("threshold", "fpr", "fnr"))
    base = incomes.details["error_rates"]["base_rate"]
    accuracy = level_shares(fpr, fnr, base_rate=base, kind="accuracy")[2]
    curves = (
        ("accuracy", accuracy, INK),
        ("false negative rate (harmful)", fnr, COLOURS[3]),
        ("false positive rate (benign)", fpr, COLOURS[4]),
    )
    for k, (name, curve, colour) in enumerate(curves):
        left.plot(at, curve, color=colour, ls=STYLES[k], lw=1.8, label=name)
    left.axvspan(0.0, found["ratio"]["threshold"], color=LIMIT, alpha=0.15, lw=0)
    left.axvline(found["cap"]["threshold"], color=BETWEEN, lw=1.2)
    left.set(ylabel="rate", ylim=(0, 1))
    threshold_curve(incomes, ax=right)
    handles = [*left.get_legend_handles_labels()[0], *right.get_legend().legend_handles]
    right.get_legend().remove()
    right.set(yscale="log", ylim=(1e-4, 1))
    right.set_yticks([1e-4, 1e-3, 1e-2, 1e-1, 1], ["0.0001", "0.001", "0.01", "0.1", "1"])
    right.set_ylabel(f"{right.get_ylabel()} (log scale)")
    for axes in (left, right):
        axes.set(xscale="log", xlim=(0.002, 1), xlabel="threshold of the score (log scale)")
        axes.set_xticks([0.002, 0.01, 0.1, 1], ["0.002", "0.01", "0.1", "1"])
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    return figure


def _legend(figure, handles):
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)


def _thin(figure):
    """Drop the points of contours that a straight line passes within a ninth of a pixel."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        for part in axes.collections:
            if isinstance(part, ContourSet):
                to = part.get_transform()
                part.set_paths([_thinned(path, to) for path in part.get_paths()])


def _thinned(path, to):
    short = path.transformed(to).cleaned(simplify=True)
    # The last vertex is a full stop.
    return Outline(to.inverted().transform(short.vertices[:-1]), short.codes[:-1])


def _rounded(path):
    return DIGITS.sub(r"\1", path[0].replace(" \n", "\n").replace("\nL ", "L"))


def draw(folder):
    """Write every figure into a folder; return the paths."""
    plain, checked = compas()
    y, score = adult()
    incomes = income(y, score)
    found = crossings(incomes, y, score)
    figures = {
        "domain": lambda: figure_1(plain, checked),
        "kernel_and_peak": figure_2_3,
        "surface": figure_4,
        "error_plane": lambda: figure_5(checked, incomes),
        "thresholds": lambda: figure_8(incomes, found),
    }
    written = []
    # Glyphs as outlines, so that no reader's fonts move a label; no date, and fixed names inside.
    with mpl.rc_context({"svg.hashsalt": "equipoise", "svg.fonttype": "path", "font.size": 10}):
        for name, figure in figures.items():
            path = Path(folder) / f"generalized_entropy_{name}.svg"
            text = io.StringIO()
            drawn = figure()
            _thin(drawn)
            drawn.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
            short = PATH.sub(_rounded, INDENT.sub("\n", text.getvalue()))
            path.write_text(short, encoding="utf-8", newline="\n")
            written.append(path)
    return written


if __name__ == "__main__":
    (HERE / "figures").mkdir(exist_ok=True)
    for file in draw(HERE / "figures"):
        print(f"{file.name} {file.stat().st_size / 1000:.0f} kB", file=sys.stderr)
