"""Rules learned on COMPAS and Adult over many splits; prints the tables of the page beside it.

    EQUIPOISE_DATA=<folder> python docs/reproductions/generalized_entropy.py

About five minutes on one core. `generalized_entropy.md` shows the output. Each line has the mean
over all splits and, in brackets, the standard deviation of a mean over as many splits as the
independent run used.
"""

import os
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.datasets import ADULT_COLUMNS
from equipoise.mitigation import EntropyCappedClassifier
from equipoise.mitigation.penalised_logistic import PenalisedLogistic
from equipoise.stats.inequality import cap as entropy_cap
from equipoise.stats.inequality.benefits import SPEICHER
from equipoise.stats.inequality.cap import index_cap, kappa_scheme
from equipoise.stats.inequality.decomposition import BenefitMoments, decompose

DATA = Path(os.environ.get("EQUIPOISE_DATA", "data"))
ORDER = 0.5
LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
BOOSTING = HistGradientBoostingClassifier(
    learning_rate=0.05, max_depth=4, max_iter=200, random_state=0
)
FACE_VALUE = {"confidence_level": None}
CAP = {"constraint": "cap", "order": ORDER}


def compas():
    """The 6,172 rows of ProPublica's filter; counts enter by their logarithm, race does not."""
    rows = pd.read_csv(DATA / "compas-scores-two-years.csv")
    rows = rows[rows["days_b_screening_arrest"].abs() <= 30]
    rows = rows[(rows["is_recid"] != -1) & (rows["c_charge_degree"] != "O")]
    counts = ["priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]
    X = np.log1p(rows[counts]).assign(
        age=rows["age"],
        young=(rows["age_cat"] == "Less than 25").astype(int),
        old=(rows["age_cat"] == "Greater than 45").astype(int),
        male=(rows["sex"] == "Male").astype(int),
        felony=(rows["c_charge_degree"] == "F").astype(int),
    )
    group = (rows["race"] == "African-American").to_numpy()
    return X.to_numpy(dtype=float), rows["two_year_recid"].to_numpy(), group


def adult():
    """The 32,561 rows of `adult.data`; gains and losses by their logarithm, no sex, no race."""
    rows = pd.read_csv(DATA / "adult.data", names=ADULT_COLUMNS, skipinitialspace=True)
    X = rows[["age", "education_num", "hours_per_week"]].assign(
        gain=np.log1p(rows["capital_gain"]), loss=np.log1p(rows["capital_loss"])
    )
    kinds = pd.get_dummies(rows[["workclass", "marital_status", "occupation", "relationship"]])
    y = (rows["income"] == ">50K").astype(int).to_numpy()
    return np.column_stack([X, kinds]).astype(float), y, (rows["sex"] == "Male").to_numpy()


def parts(y, split):
    """Three quarters to learn from (a third of them for thresholds), one quarter to test."""
    return train_test_split(np.arange(len(y)), test_size=0.25, random_state=split)


def judged(decision, y, kappa, kind):
    """Accuracy, FPR, FNR, index over cap, whether below the cap, whether the ratio is kept."""
    fpr, fnr = decision[y == 0].mean(), 1.0 - decision[y == 1].mean()
    harmful, benign = (fpr, fnr) if kind == "punitive" else (fnr, fpr)
    scheme = kappa_scheme(base_rate=y.mean(), kappa=kappa, kind=kind)
    over = float(scheme.index(harmful, benign, order=ORDER)) / index_cap(scheme, order=ORDER).cap
    return [np.mean(decision == y), fpr, fnr, over, over < 1.0, kappa * harmful < benign]


def compared(decision, y, group):
    """Accuracy, index and between-group part in units of 1e-4, Speicher's benefits, order 2."""
    benefit = SPEICHER[decision.astype(int), y].astype(float)
    parts = decompose(BenefitMoments.from_rows(benefit, group.astype(int), order=2.0))
    return [np.mean(decision == y), parts.total, 1e4 * parts.between]


def show(name, seen, n_reference):
    seen = np.array(seen, dtype=float)
    spread = seen.std(axis=0, ddof=1) / np.sqrt(n_reference)
    cells = [f"{m:.4f} ({s:.4f})" for m, s in zip(seen.mean(axis=0), spread, strict=True)]
    print("|", name, "|", " | ".join(cells), "|", flush=True)


def ratio_rules(X, y, *, model, kappa, kind, rules, n_splits, n_reference):
    """Each rule over all splits; None is the model at 0.5, trained on the same half."""
    seen = {name: [] for name in rules}
    for split in range(n_splits):
        learn, test = parts(y, split)
        for name, (options, few) in rules.items():
            rule = EntropyCappedClassifier(
                model, kappa=kappa, kind=kind, holdout=1 / 3, random_state=split, **(options or {})
            )
            with mock.patch.object(entropy_cap, "FEW_EVENTS", few):
                rule.fit(X[learn], y[learn])
            decide = rule if options is not None else rule.estimator_
            seen[name].append(judged(decide.predict(X[test]), y[test], kappa, kind))
    for name, values in seen.items():
        show(name, values, n_reference)


def between_rules(X, y, group, *, n_splits, n_reference):
    seen = {"at 0.5": [], "threshold by group": [], "penalty 300": []}
    for split in range(n_splits):
        learn, test = parts(y, split)
        rule = EntropyCappedClassifier(
            LOGISTIC, constraint="between", order=2, holdout=1 / 3, random_state=split
        ).fit(X[learn], y[learn], group=group[learn])
        half, _ = train_test_split(learn, test_size=1 / 3, stratify=y[learn], random_state=split)
        penalised = PenalisedLogistic(penalty=300.0, matrix=SPEICHER, order=2.0)
        penalised.fit(X[half], y[half].astype(float), group[half].astype(int))
        decisions = (
            rule.estimator_.predict(X[test]),
            rule.predict(X[test], group=group[test]),
            penalised.score(X[test]) > 0.5,
        )
        for values, decision in zip(seen.values(), decisions, strict=True):
            values.append(compared(decision, y[test], group[test]))
    for name, values in seen.items():
        show(name, values, n_reference)


def main():
    few = entropy_cap.FEW_EVENTS
    direct, direct_face = ({}, few), (FACE_VALUE, few)
    cap, cap_face, cap_wald = (CAP, few), (CAP | FACE_VALUE, few), (CAP, 0)
    X, y, group = compas()
    print("COMPAS, kappa 3", X.shape, round(y.mean(), 4))
    three = {"at 0.5": (None, few), "direct": direct_face, "direct, 95%": direct}
    three |= {"cap": cap_face, "cap, 95%": cap}
    many = {"n_splits": 100, "n_reference": 10, "kind": "punitive"}
    ratio_rules(X, y, model=LOGISTIC, kappa=3, rules=three, **many)
    print("COMPAS, kappa 10")
    ten = {"cap, 95%": cap, "cap, 95%, log-Wald only": cap_wald}
    ratio_rules(X, y, model=LOGISTIC, kappa=10, rules=ten, **many)
    ratio_rules(X, y, model=BOOSTING, kappa=10, rules={"boosting, direct, 95%": direct}, **many)
    print("COMPAS, between")
    between_rules(X, y, group, n_splits=100, n_reference=5)
    X, y, group = adult()
    print("Adult", X.shape, round(y.mean(), 4))
    boosted = {"cap, 95%": cap, "cap, 95%, log-Wald only": cap_wald, "direct, 95%": direct}
    some = {"n_splits": 20, "n_reference": 5, "kind": "assistive"}
    for kappa in (1, 3):
        print("Adult, kappa", kappa)
        ratio_rules(X, y, model=BOOSTING, kappa=kappa, rules=boosted, **some)
    print("Adult, between")
    between_rules(X, y, group, n_splits=20, n_reference=5)


if __name__ == "__main__":
    main()
