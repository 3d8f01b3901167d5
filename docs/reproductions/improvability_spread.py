"""How far the median p-value on the complete cases depends on the splits.

``EQUIPOISE_DATA=folder python docs/reproductions/improvability_spread.py`` prints the last table of
docs/reproductions/improvability.md; it takes about eight minutes on one core.
"""

import numpy as np
from improvability_splits import SPLITS, package_p_values, read
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LassoCV, LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.stats.improvement.capacity import select_top
from equipoise.stats.improvement.test import gap_direction

SEED = 1
FOREST = RandomForestRegressor(100, min_samples_leaf=3, max_features=0.33, random_state=0)
# candidate: sets of splits, model, p-values of the independent run by capacity
CANDIDATES = {
    "linear": (300, LinearRegression(), {0.03: (0.241, 0.241), 0.10: (0.171, 0.099)}),
    "lasso": (
        60,
        make_pipeline(StandardScaler(), LassoCV(alphas=30, cv=5)),
        {0.03: (0.221, 0.187), 0.10: (0.225, 0.201)},
    ),
    "forest": (12, FOREST, {0.03: (0.313, 0.331)}),
}


def one_set(model, data, capacities, rng):
    """Median p-values by capacity over five random splits."""
    X, y, white, score = data
    found = {capacity: [] for capacity in capacities}
    for _ in range(SPLITS):
        train, test = np.split(rng.permutation(len(y)), [2 * len(y) // 3])
        predicted = model.fit(X[train], y[train]).predict(X[test])
        for capacity in capacities:
            now = select_top(score[train], capacity)
            direction = gap_direction(y[train] * now, now, white[train], n_groups=2)
            decisions = [select_top(values, capacity) for values in (score[test], predicted)]
            found[capacity].append(
                package_p_values(y[test], white[test], decisions, direction, inference="analytic")
            )
    return {capacity: np.median(rows, axis=0) for capacity, rows in found.items()}


def main():
    data = read()
    for name, (repeats, model, reference) in CANDIDATES.items():
        rng = np.random.default_rng(SEED)
        sets = [one_set(model, data, list(reference), rng) for _ in range(repeats)]
        for capacity, independent in reference.items():
            medians = np.array([found[capacity] for found in sets])
            for j, statistic in enumerate(("squared", "signed")):
                spread = np.quantile(medians[:, j], [0.05, 0.5, 0.95]).round(3)
                place = np.mean(medians[:, j] <= independent[j])
                print(f"{name} top {capacity:.0%} {statistic} {spread} quantile {place:.2f}")


if __name__ == "__main__":
    main()
