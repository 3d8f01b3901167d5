"""How often a searched rule is better in every respect on people it has not seen: ACS income 2018.

``EQUIPOISE_DATA=folder python docs/reproductions/improvability_acs.py`` prints the table of
docs/methods/improvability.md; it takes about six minutes on one core.
"""

import os
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.search import ReweightedRule, TrainingSample

PLAIN = ["SCHL", "WKHP", "AGEP", "COW", "MAR"]
REPEATS = 10


def read(part):
    folder = Path(os.environ["EQUIPOISE_DATA"])
    return pd.read_parquet(folder / f"acs_income_2018_us_{part}20pct.parquet")


def features(people):
    """Columns of the candidates: the plain ones, squares, a product, occupation groups."""
    plain = people[PLAIN].to_numpy(float)
    schooling, hours, age = plain[:, 0], plain[:, 1], plain[:, 2]
    occupation = people["OCCP"].to_numpy() // 1000
    groups = [occupation == k for k in range(1, 10)]
    married, head = people["MAR"] == 1, people["RELP"] == 0
    return np.column_stack(
        [plain, age**2, schooling**2, schooling * hours, married, head, *groups]
    ).astype(float)


def values(decisions, y, group, metric):
    """Accuracy or true positive rate of the two groups."""
    if metric == "accuracy":
        return np.array([np.mean(decisions[group == g] == y[group == g]) for g in (0, 1)])
    return np.array([decisions[(group == g) & (y == 1)].mean() for g in (0, 1)])


def logistic(sample, X):
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    return model.fit(sample.X, sample.y).predict(X)


def reweighted(sample, X):
    return ReweightedRule().select(sample).decide(X)


def success(rule, X, y, group, status_quo, metric, rows, seed):
    """Whether the rule found on `rows` people is better in all respects on the others."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, other = order[:rows], order[rows:]
    sample = TrainingSample.from_arrays(
        X=X[train],
        y=y[train],
        group=group[train],
        status_quo=status_quo[train],
        accuracy="accuracy",
        fairness=metric,
    )
    found = rule(sample, X[other])
    y, group, now = y[other], group[other], status_quo[other]
    gain = values(found, y, group, "accuracy") - values(now, y, group, "accuracy")
    gaps = [np.ptp(values(d, y, group, metric)) for d in (found, now)]
    return bool(gain.min() > 0 and gaps[0] < gaps[1])


def main():
    others, people = read("validation"), read("test")
    model = make_pipeline(StandardScaler(), LogisticRegression())
    status_quo = model.fit(others[PLAIN], others["PINCP"]).predict(people[PLAIN]).astype(float)
    X, y = features(people), people["PINCP"].to_numpy(float)
    women = (people["SEX"] == 2).to_numpy().astype(int)
    black = (people["RAC1P"] == 1).to_numpy().astype(int)
    either = people["RAC1P"].isin([0, 1]).to_numpy()
    groups = {"sex": (women, np.ones(len(y), bool)), "race": (black, either)}
    for (name, (group, use)), metric, rows in product(
        groups.items(), ("accuracy", "tpr"), (3_000, 20_000)
    ):
        data = (X[use], y[use], group[use], status_quo[use])
        gap = np.ptp(values(data[3], data[1], data[2], metric))
        shares = [
            np.mean([success(rule, *data, metric, rows, 100 + r) for r in range(REPEATS)])
            for rule in (logistic, reweighted)
        ]
        print(f"{name} {metric} gap {gap:.3f} rows {rows}: logistic {shares[0]}, ours {shares[1]}")


if __name__ == "__main__":
    main()
