"""Gap on held-out rows at equal accuracy: the plug-in frontier beside fairlearn's reductions.

Run in an environment with fairlearn: ``python frontier_fairlearn.py``. One run, one process, one
thread: both tables, CPU seconds of fitting and scoring, and the ratio of fairlearn's to ours.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from equipoise.search import FrontierRule, ReweightedEstimator, TrainingSample
from equipoise.stats.improvement.capacity import cut_top_share

LOSSES = (0.0025, 0.005, 0.01, 0.02)


def adult():
    """Return X, y and sex of training and test rows, and the capacity."""
    folder = Path(os.environ["EQUIPOISE_DATA"])
    names = "age work fnlwgt edu years marital job kin race sex gain loss hours country income"
    options = {"names": names.split(), "skipinitialspace": True, "na_values": "?"}
    train = pd.read_csv(folder / "adult.data", **options)
    test = pd.read_csv(folder / "adult.test", skiprows=1, **options)
    whole = pd.concat([train, test], ignore_index=True)
    y = whole["income"].str.startswith(">50K").to_numpy().astype(float)
    sex = (whole["sex"] == "Male").to_numpy().astype(int)
    X = whole.drop(columns=["income", "sex", "fnlwgt"])
    X = X.apply(lambda c: c if c.dtype.kind in "if" else c.astype("category").cat.codes)
    n = len(train)
    return (X[:n].to_numpy(float), y[:n], sex[:n]), (X[n:].to_numpy(float), y[n:], sex[n:]), 0.25


def acs():
    """Return X, y and sex of training and test rows, and the capacity."""
    folder = Path(os.environ["EQUIPOISE_DATA"])
    rows = pd.read_parquet(folder / "acs_income_2018_us_validation20pct.parquet").sample(
        40_000, random_state=0
    )
    y = (rows["PINCP"] > 0).to_numpy().astype(float)
    sex = (rows["SEX"] == 1).to_numpy().astype(int)
    X = rows.drop(columns=["PINCP", "SEX"]).select_dtypes("number").to_numpy(float)
    n = 26_000
    return (X[:n], y[:n], sex[:n]), (X[n:], y[n:], sex[n:]), 0.37


def point(score, y, sex, capacity):
    """Return accuracy and the selection gap of a score cut at the capacity."""
    d = cut_top_share(score, capacity).chance
    right = float(np.mean(d * y + (1 - d) * (1 - y)))
    return right, float(abs(d[sex == 1].mean() - d[sex == 0].mean()))


def gaps_at(points, start):
    """Smallest gap at each loss, mixing two rules of the path if that helps."""
    found = np.array([start, *points])
    gaps = []
    for loss in LOSSES:
        floor = start[0] - loss
        best = found[found[:, 0] >= floor, 1].min()
        for a, b in found[found[:, 0] >= floor]:
            for c, d in found[found[:, 0] < floor]:
                share = (a - floor) / (a - c)
                best = min(best, (1 - share) * b + share * d)
        gaps.append(best)
    return gaps


def line(name, gaps, seconds):
    sys.stdout.write(
        f"{name:28}" + " ".join(f"{gap:.3f}" for gap in gaps) + f"  {seconds:7.1f} s\n"
    )
    sys.stdout.flush()


def compare(kind):
    """Print the gaps of every method on one table, and the time it took."""
    (X, y, sex), (Z, outcome, side), capacity = {"adult": adult, "acs": acs}[kind]()
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    fitted = model.fit(X, y)
    start = point(fitted.predict_proba(Z)[:, 1], outcome, side, capacity)
    sys.stdout.write(
        f"\n{kind}: {len(y)} training and {len(outcome)} test rows, capacity {capacity},"
        f" accuracy {start[0]:.4f}, gap {start[1]:.3f}\n"
        f"{'gap at a loss of':28}" + " ".join(f"{loss:.4f}" for loss in LOSSES) + "\n"
    )
    status_quo = cut_top_share(fitted.predict_proba(X)[:, 1], capacity).chance
    sample = TrainingSample.from_arrays(
        X=np.nan_to_num(X, nan=-1.0),
        y=y,
        group=sex,
        status_quo=status_quo,
        accuracy="accuracy",
        fairness="selection_rate",
    )
    W = np.nan_to_num(Z, nan=-1.0)
    seconds = {}
    for rule in (
        FrontierRule(model, capacity=capacity),
        ReweightedEstimator(model, capacity=capacity),
    ):
        begin = time.process_time()
        path = rule.path(sample)
        points = [point(a.score(W), outcome, side, capacity) for a in path.values()]
        seconds[type(rule).__name__] = time.process_time() - begin
        line(type(rule).__name__, gaps_at(points, start), seconds[type(rule).__name__])
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient, GridSearch

    begin = time.process_time()
    grid = GridSearch(model, DemographicParity(), grid_size=20)
    grid.fit(X, y, sensitive_features=sex)
    points = [
        point(p.predict_proba(Z)[:, 1], outcome, side, capacity)
        for p in grid.predictors_
        if hasattr(p, "classes_") and len(p.classes_) == 2
    ]
    seconds["grid"] = time.process_time() - begin
    line("fairlearn GridSearch (20)", gaps_at(points, start), seconds["grid"])
    begin = time.process_time()
    points = []
    for bound in (0.01, 0.05, 0.1):
        reduction = ExponentiatedGradient(model, DemographicParity(), eps=bound)
        reduction.fit(X, y, sensitive_features=sex)
        chance = sum(
            share * p.predict(Z)
            for share, p in zip(reduction.weights_, reduction.predictors_, strict=True)
        )
        points.append(point(np.asarray(chance), outcome, side, capacity))
    seconds["gradient"] = time.process_time() - begin
    line("fairlearn ExpGrad (3 bounds)", gaps_at(points, start), seconds["gradient"])
    ours = seconds["FrontierRule"]
    sys.stdout.write(
        f"time of fairlearn over FrontierRule: GridSearch {seconds['grid'] / ours:.1f},"
        f" ExponentiatedGradient {seconds['gradient'] / ours:.1f}\n"
    )


def main():
    for kind in sys.argv[1:] or ("adult", "acs"):
        compare(kind)


if __name__ == "__main__":
    main()
