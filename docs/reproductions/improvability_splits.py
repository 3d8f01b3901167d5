"""An independent run on the complete cases, split for split and draw for draw.

``EQUIPOISE_DATA=folder python docs/reproductions/improvability_splits.py`` prints the numbers of
docs/reproductions/improvability.md; it takes about ten seconds on one core.

One generator, `default_rng(2024)`, makes a permutation, then the bootstrap draws of that split
(10,000, multinomial over the distinct rows of the eight sums), then the next permutation. The
first two thirds of a permutation train the candidate; both rules select the top of the rest. Beside
its p-values stand those of this package, from draws of its own, for the same decisions.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LassoCV, LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.stats.improvement.capacity import select_top
from equipoise.stats.improvement.test import (
    ImprovementQuestion,
    compare_utilities,
    gap_direction,
)
from equipoise.stats.improvement.utilities import estimate_utilities

SPLITS = 5
RESAMPLES = 10_000
SEED = 2024
CANDIDATES = {
    "linear": LinearRegression(),
    "lasso": make_pipeline(StandardScaler(), LassoCV(alphas=50, cv=5)),
}


def read():
    folder = Path(os.environ["EQUIPOISE_DATA"])
    parts = [folder / f"obermeyer_complete_cases_{part}.csv.gz" for part in ("train", "test")]
    cases = pd.concat([pd.read_csv(part) for part in parts], ignore_index=True)
    features = [name for name in cases if name.startswith("dem_") or "_tm1" in name]
    return (
        cases[features].to_numpy(float),
        cases["gagne_sum_t"].to_numpy(float),
        cases["race_white"].to_numpy(),
        cases["risk_score_t"].to_numpy(float),
    )


def statistics(sums, sign):
    """Accuracy gains of White and Black, the squared gap statistic, the two signed ones."""
    utility = sums[..., 0::2] / sums[..., 1::2]
    white0, black0, white1, black1 = np.moveaxis(utility, -1, 0)
    gap0, gap1 = sign * (black0 - white0), sign * (black1 - white1)
    gains = [white1 - white0, black1 - black0]
    return np.stack([*gains, gap0**2 - gap1**2, gap0 - gap1, gap0 + gap1], axis=-1)


def p_values(y, white, decisions, sign, rng):
    """Squared and signed p-value of one split, printed (basic) bootstrap for both."""
    columns = []
    for decided in decisions:
        for chosen in (decided & (white == 1), decided & (white == 0)):
            columns += [chosen * y, chosen]
    cells, counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    draws = rng.multinomial(len(y), counts / len(y), size=RESAMPLES) @ cells
    observed = statistics(counts @ cells, sign)
    white_p, black_p, squared, one, other = np.mean(
        statistics(draws, sign) - observed >= observed, axis=0
    )
    return max(white_p, black_p, squared), max(white_p, black_p, one, other)


def package_p_values(y, white, decisions, direction, *, inference="bootstrap"):
    """Squared and signed p-value of one split by this package."""
    chosen = np.column_stack(decisions)[:, None, :].astype(float)
    estimates = estimate_utilities(
        y[:, None, None] * chosen,
        chosen,
        white,
        n_groups=2,
        n_resamples=RESAMPLES if inference == "bootstrap" else 0,
        rng=SEED,
    )
    questions = [ImprovementQuestion(method=m, inference=inference) for m in ("paper", "signed")]
    return [
        compare_utilities(estimates, directions=[direction], question=question).p_value
        for question in questions
    ]


def run(model, capacity, data):
    """Median p-values over the splits, theirs and ours, and the Black patients selected in each."""
    X, y, white, score = data
    rng = np.random.default_rng(SEED)
    found, ours, selected = [], [], []
    for _ in range(SPLITS):
        train, test = np.split(rng.permutation(len(y)), [2 * len(y) // 3])
        predicted = model.fit(X[train], y[train]).predict(X[test])
        now = select_top(score[train], capacity)
        direction = gap_direction(y[train] * now, now, white[train], n_groups=2)
        decisions = [select_top(values, capacity) for values in (score[test], predicted)]
        sign = 1 if direction[0] == 0 else -1
        found.append(p_values(y[test], white[test], decisions, sign, rng))
        ours.append(package_p_values(y[test], white[test], decisions, direction))
        selected.append([int(decided[white[test] == 0].sum()) for decided in decisions])
    return np.median(found, axis=0), np.median(ours, axis=0), np.array(selected).T


def main():
    data = read()
    for name, model in CANDIDATES.items():
        for capacity in (0.03, 0.10):
            theirs, ours, (now, then) = run(model, capacity, data)
            print(
                f"{name:7} top {capacity:.0%}: {theirs[0]:.3f} / {theirs[1]:.3f}; this package"
                f" {ours[0]:.3f} / {ours[1]:.3f}; Black patients {now.min()}-{now.max()} (a0),"
                f" {then.min()}-{then.max()} (a1)"
            )


if __name__ == "__main__":
    main()
