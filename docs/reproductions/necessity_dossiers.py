"""Two necessity dossiers on public tables: a health plan and a lender.

``EQUIPOISE_DATA=folder python necessity_dossiers.py`` prints the argument of each.
"""

import os
import sys
from pathlib import Path

import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import equipoise as eq
from equipoise.search import FrontierRule, ReweightedEstimator


def health_plan(folder):
    """Return an audit of the commercial risk score, and what is asked (complete cases)."""
    names = ("obermeyer_complete_cases_train.csv.gz", "obermeyer_complete_cases_test.csv.gz")
    rows = pd.concat([pd.read_csv(folder / name) for name in names], ignore_index=True)
    rows["race"] = rows["race_white"].map({1: "White", 0: "Black"})
    features = [
        name
        for name in rows.columns
        if name.startswith("dem_") or (name.endswith("_tm1") and not name.startswith("cost_t"))
    ]
    features = [name for name in features if "race" not in name]
    audit = eq.Audit(
        rows[[*features, "race", "gagne_sum_t", "risk_score_t"]],
        group="race",
        y_true="gagne_sum_t",
        y_score="risk_score_t",
        features=features,
    )
    ridge = make_pipeline(StandardScaler(), Ridge(alpha=100.0))
    asked = {
        "candidates": {"model of health": ridge, "frontier": FrontierRule(ridge, lambdas=6)},
        "accuracy": "selected_outcome",
        "accuracy_of": "population",
        "fairness": "selected_outcome",
        "capacity": 0.2,
        "accuracy_loss": 0.02,
    }
    return audit, asked


def lender(folder):
    """Return an audit of a score fitted to a third of the credit card customers."""
    rows = pd.read_csv(folder / "UCI_Credit_Card.csv.gz")
    rows["repaid"] = 1 - rows["default.payment.next.month"]
    rows["sex"] = rows["SEX"].map({1: "men", 2: "women"})
    # Marriage, education and age are not among what the lender may use.
    features = [n for n in rows.columns if n.startswith(("LIMIT", "PAY", "BILL"))]
    built = rows["ID"] % 3 == 0
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    model.fit(rows.loc[built, features].to_numpy(), rows.loc[built, "repaid"])
    rows["score"] = model.predict_proba(rows[features].to_numpy())[:, 1]
    audit = eq.Audit(
        rows.loc[~built, [*features, "sex", "repaid", "score"]],
        group="sex",
        y_true="repaid",
        y_score="score",
        features=features,
    )
    asked = {
        "candidates": {
            "refitted": model,
            "frontier": FrontierRule(model, lambdas=10),
            "reweighted": ReweightedEstimator(model, lambdas=4),
        },
        "accuracy": "accuracy",
        "accuracy_of": "population",
        "fairness": "selection_rate",
        "capacity": 0.7,
        "accuracy_loss": 0.01,
    }
    return audit, asked


def main():
    folder = Path(os.environ["EQUIPOISE_DATA"])
    for name, build in (("health plan", health_plan), ("lender", lender)):
        audit, asked = build(folder)
        result = audit.necessity(**asked, frontier=True, n_splits=5, rng=1)
        sys.stdout.write(f"\n== {name}: {result.n} people\n")
        for step in result.details["steps"]:
            sys.stdout.write(f"{step['question']}\n  {step['answer']}\n")
        search = result.details["search"]
        sys.stdout.write(
            f"tried: {len(search['candidates'])} candidates; order: {search['order_rule']}; splits"
            f" {search['splits']}, seed {search['seed']}; {search['not_searched']}\n"
        )
        for finding in result.findings:
            ci = finding.ci
            sys.stdout.write(
                f"  {finding.group} | {finding.estimand.noun} | {finding.estimand.kind} |"
                f" {finding.estimate:.4f} [{ci.low:.4f}, {ci.high:.4f}] | {finding.decision}\n"
            )
        sys.stdout.write(f"p of the splits {[round(p, 4) for p in result.details['p_values']]}\n")
        for step in result.details["frontier"]:
            sys.stdout.write(
                f"  loss {step['loss']:.4f}: reduction {step['reduction']:.4f}"
                f" ({step['candidate']})\n"
            )
        for note in result.notes:
            sys.stdout.write(f"note {note.code}: {note.message}\n")


if __name__ == "__main__":
    main()
