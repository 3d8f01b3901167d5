"""Small tables of every kind, and every question asked of them in several ways."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import equipoise as eq

__all__ = ["CASES", "TABLES", "Case", "table"]


def _loans():
    """Plain rows, two group columns, and a region with three rows."""
    rng = np.random.default_rng(101)
    n = 2400
    sex = rng.choice(["F", "M"], n)
    region = rng.choice(np.array(["east", "north", "west", "island"]), n, p=[0.5, 0.3, 0.2, 0.0])
    region[:3] = "island"
    income = rng.gamma(4.0, 10.0, n).round(1)
    debt = rng.gamma(2.0, 5.0, n).round(1)
    score = 1 / (1 + np.exp(-(income - debt - 31 - 12 * (sex == "F")) / 15))
    repaid = rng.random(n) < 0.1 + 0.8 / (1 + np.exp(-(income - debt - 25) / 6))
    return {
        "sex": sex,
        "region": region,
        "income": income,
        "debt": debt,
        "credit_score": score.round(3),
        "repaid": repaid.astype(int),
        "approved": (score > 0.5).astype(int),
        "rival": (income - debt + rng.normal(0, 2, n) > 25).astype(int),
        "rival_score": (income - debt).round(1),
        "profit": (rng.normal(3.0, 2.0, n) * repaid - 2.0).round(2),
        "benefit": rng.gamma(2.0, size=n).round(3) + 0.1,
    }


def _visits():
    """Rows repeat people, and people appear in several groups; weights too."""
    rng = np.random.default_rng(102)
    n, people = 2400, 600
    person = rng.integers(people, size=n)
    taste = rng.normal(size=people)[person]
    device = rng.choice(["desktop", "phone", "tablet"], n, p=[0.4, 0.5, 0.1])
    score = (1 / (1 + np.exp(-(taste + rng.normal(size=n))))).round(2)
    bought = rng.random(n) < np.clip(score + 0.15 * (device == "phone") - 0.05, 0, 1)
    return {
        "person": person,
        "device": device,
        "score": score,
        "bought": bought.astype(int),
        "shown": (score >= 0.5).astype(int),
        "rival": (score + rng.normal(0, 0.1, n) >= 0.45).astype(int),
        "weight": rng.uniform(0.5, 2.0, n).round(3),
    }


def _wages():
    """Real-valued outcomes, heavy-tailed, with a group that never varies."""
    rng = np.random.default_rng(103)
    n = 1600
    site = rng.choice(["a", "b", "c"], n, p=[0.6, 0.35, 0.05])
    wage = rng.lognormal(3.0, 0.5, n).round(2) + 4 * (site == "b")
    wage[site == "c"] = 20.0
    return {
        "site": site,
        "age": rng.integers(18, 70, n),
        "wage": wage,
        "predicted": (0.6 * wage + rng.normal(8, 3, n)).round(2),
        "offered": (wage + rng.normal(0, 8, n) > 22).astype(int),
        "weight": rng.integers(1, 5, n).astype(float),
    }


def _letters():
    """Text labels, and missing values in every column."""
    rng = np.random.default_rng(104)
    n = 1200
    school = rng.choice(["Blue Hill", "Élan", "O'Neil <st>"], n)
    fit = rng.random(n)
    invited = np.where(fit > np.where(school == "Élan", 0.6, 0.45), "yes", "no")
    hired = np.where(rng.random(n) < 0.2 + 0.6 * fit, "yes", "no")
    age = rng.integers(18, 66, n).astype(float)

    def with_gaps(values, share):
        gaps = rng.random(n) < share
        return [None if gap else value for gap, value in zip(gaps, values.tolist(), strict=True)]

    return {
        "school": with_gaps(school, 0.02),
        "age": with_gaps(age, 0.03),
        "fit": with_gaps(fit.round(3), 0.02),
        "invited": with_gaps(invited, 0.01),
        "hired": with_gaps(hired, 0.05),
        "weight": rng.uniform(0.2, 3.0, n).round(2).tolist(),
    }


def _trial():
    """A randomised experiment; predictions for group c are too high."""
    rng = np.random.default_rng(105)
    n = 2400
    g, t, x = rng.integers(4, size=n), rng.integers(2, size=n), rng.normal(size=n).round(3)
    y = rng.random(n) < np.clip(0.3 + 0.05 * x, 0, 1) * (1 + 0.2 * t)
    return {
        "group": np.array(list("abcd"))[g],
        "offer": t,
        "sold": y.astype(float),
        "amount": (rng.gamma(2.0, 5.0, n) * (1 + 0.2 * t) + x).round(2),
        "lift": (1.2 + 0.6 * (g == 2) + 0.1 * rng.normal(size=n)).round(2),
        "gain": (2.0 + 3.0 * (g == 2) + 0.5 * rng.normal(size=n)).round(2),
        "without": (0.3 + 0.05 * x).round(3),
        "with": (0.36 + 0.06 * x).round(3),
        "x": x,
        "shop": rng.integers(500, size=n),
        "weight": rng.uniform(0.5, 2.0, n).round(2),
        "count": rng.integers(1, 4, n),
    }


TABLES = {
    "loans": _loans,
    "visits": _visits,
    "wages": _wages,
    "letters": _letters,
    "trial": _trial,
    "compas": eq.datasets.load_compas_counts,
}

ROLES = {
    "loans": {
        "group": ["sex", "region"],
        "y_true": "repaid",
        "y_pred": "approved",
        "y_score": "credit_score",
    },
    "visits": {
        "group": "device",
        "y_true": "bought",
        "y_pred": "shown",
        "y_score": "score",
        "cluster": "person",
    },
    "wages": {
        "group": "site",
        "y_true": "wage",
        "y_pred": "offered",
        "y_score": "predicted",
    },
    "letters": {
        "group": "school",
        "y_true": "hired",
        "y_pred": "invited",
        "y_score": "fit",
        "positive": "yes",
        "missing": "drop",
    },
    "trial": {
        "group": "group",
        "y_true": "sold",
        "treatment": "offer",
        "effect_pred": "lift",
    },
    "compas": {
        "group": ["race", "sex"],
        "y_true": "two_year_recid",
        "y_pred": "high_risk",
        "y_score": "decile_score",
        "count": "count",
    },
}


@cache
def table(name):
    """Return a table of `TABLES` as pyarrow."""
    return pa.table(TABLES[name]())


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question about one table; `roles` replace those of the table."""

    name: str
    table: str
    question: str
    options: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, Any] = field(default_factory=dict)

    def ask(self, data):
        roles = ROLES[self.table] | self.roles
        return getattr(eq.Audit(data, **roles), self.question)(**self.options)


def _case(name, question, *, roles=None, **options):
    """Return the case whose name is the table, a dash and what is special about it."""
    where = name.partition("-")[0]
    full = f"{question}-{name}"
    return Case(name=full, table=where, question=question, options=options, roles=roles or {})


SEX = {"group": "sex"}
RACE = {"group": "race"}
WEIGHED = {"weight": "weight"}
ROWS = {"cluster": None}
MATRIX = [[1.0, 0.4], [0.7, 1.5]]
FAST = {"n_splits": 3, "n_resamples": 199}
LINEAR = "sklearn.linear_model.LinearRegression"
LOGISTIC = "sklearn.linear_model.LogisticRegression"
DRAWN = {"features": ["income", "debt"], "group": "sex"}
RIVAL = {"candidate": "rival", "accuracy": "accuracy", "n_resamples": 199}

_DISPARITY = (
    _case("loans-plain", "disparity", metric="selection_rate"),
    _case("loans-rest", "disparity", metric="tpr", reference="rest"),
    _case("loans-group", "disparity", metric="fpr", reference={"sex": "M"}),
    _case("loans-crossed", "disparity", metric="ppv", reference={"sex": "M", "region": "east"}),
    _case("loans-number", "disparity", metric="selection_rate", reference=0.4, depth=1),
    _case("loans-external", "disparity", metric="npv", reference=eq.External(0.6, 0.03)),
    _case("loans-ratio", "disparity", metric="selection_rate", scale="ratio", reference="rest"),
    _case("loans-eel", "disparity", metric="accuracy", method="eel"),
    _case("loans-plug_in", "disparity", metric="error_rate", method="plug_in"),
    _case("loans-simultaneous", "disparity", metric="fnr", simultaneous=True, alpha=0.1),
    _case("loans-own", "disparity", metric=eq.Metric("profit per loan", "profit", "approved")),
    _case("loans-mean_score", "disparity", metric="mean_score", roles=SEX),
    _case("visits-clusters", "disparity", metric="tnr"),
    _case("visits-clusters_el", "disparity", metric="fdr", method="el", reference="rest"),
    _case("visits-weights", "disparity", metric="tpr", roles=WEIGHED, confidence_level=0.9),
    _case("visits-weighted_rows", "disparity", metric="ppv", roles=WEIGHED | ROWS, scale="ratio"),
    _case(
        "visits-simultaneous",
        "disparity",
        metric="for",
        simultaneous=True,
        reference={"device": "desktop"},
    ),
    _case("wages-mean_outcome", "disparity", metric="mean_outcome"),
    _case("wages-ratio", "disparity", metric="mean_outcome", scale="ratio", reference="rest"),
    _case("wages-residual", "disparity", metric="residual", reference=0.0),
    _case("wages-weights", "disparity", metric="squared_error", roles=WEIGHED),
    _case("wages-selected", "disparity", metric="selected_outcome", reference={"site": "a"}),
    _case(
        "wages-bins",
        "disparity",
        metric="mean_outcome",
        roles={"group": "age", "bins": {"age": [30, 50]}},
    ),
    _case("letters-text", "disparity", metric="tpr"),
    _case("letters-weights", "disparity", metric="selection_rate", roles=WEIGHED),
    _case("compas-counts", "disparity", metric="fpr"),
    _case("compas-reference", "disparity", metric="for", reference={"race": "Caucasian"}),
    _case(
        "compas-simultaneous",
        "disparity",
        metric="ppv",
        reference={"race": "Caucasian"},
        simultaneous=True,
        roles=RACE,
    ),
)

_FLAG = (
    _case("loans-plain", "flag", metric="selection_rate"),
    _case("loans-less", "flag", metric="selection_rate", alternative="less", margin=0.05),
    _case("loans-outside", "flag", metric="fpr", alternative="outside", margin=0.02, adjust="holm"),
    _case(
        "loans-four_fifths",
        "flag",
        metric="selection_rate",
        scale="ratio",
        reference="rest",
        alternative="less",
        margin=0.2,
    ),
    _case("visits-two_sided", "flag", metric="ppv", alternative="two-sided", adjust="by"),
    _case("wages-none", "flag", metric="mean_outcome", adjust="none", reference="rest"),
    _case("compas-counts", "flag", metric="fpr", margin=0.05, adjust="bonferroni", depth=1),
)

_CERTIFY = (
    _case("loans-plain", "certify", metric="accuracy", margin=0.15),
    _case("loans-ratio", "certify", metric="selection_rate", margin=0.2, scale="ratio"),
    _case("visits-clusters", "certify", metric="selection_rate", margin=0.2, method="eel"),
    _case("wages-weights", "certify", metric="residual", margin=5.0, roles=WEIGHED),
    _case("letters-text", "certify", metric="accuracy", margin=0.1, alpha=0.1),
    _case("compas-counts", "certify", metric="accuracy", margin=0.05, confidence_level=0.95),
)

_PARITY = (
    _case("loans-plain", "predictive_parity", roles=SEX),
    _case("loans-grid", "predictive_parity", roles=SEX, grid=[0.2, 0.5, 0.8], bandwidth=0.1),
    _case("loans-calibration", "predictive_parity", roles=SEX, hypothesis="calibration"),
    _case("loans-paper", "predictive_parity", roles=SEX, method="paper"),
    _case("visits-clusters", "predictive_parity", unit="cluster", grid=[0.3, 0.6]),
    _case(
        "visits-rows", "predictive_parity", unit="row", reference={"device": "desktop"}, alpha=0.1
    ),
    _case("letters-weights", "predictive_parity", roles=WEIGHED, grid=[0.25, 0.75]),
    _case("compas-counts", "predictive_parity", roles=SEX, reference={"sex": "Male"}),
)

_MARGIN = (
    _case("loans-plain", "marginal_outcome", threshold=0.5, roles=SEX),
    _case("loans-wide", "marginal_outcome", threshold=0.5, bandwidth=0.3, roles=SEX),
    _case("visits-clusters", "marginal_outcome", threshold=0.4, unit="cluster"),
    _case(
        "visits-rows",
        "marginal_outcome",
        threshold=0.5,
        unit="row",
        bandwidth=0.1,
        reference={"device": "desktop"},
    ),
    _case("wages-real", "marginal_outcome", threshold=18.0, roles=WEIGHED),
    _case("compas-counts", "marginal_outcome", threshold=5, roles=SEX),
)

_IMPROVABILITY = (
    _case("loans-column", "improvability", roles=SEX, **RIVAL),
    _case(
        "loans-analytic", "improvability", roles=SEX, **RIVAL, inference="analytic", fairness="tpr"
    ),
    _case(
        "loans-fitted",
        "improvability",
        roles=DRAWN,
        candidate=LOGISTIC,
        accuracy="accuracy",
        **FAST,
    ),
    _case(
        "loans-capacity",
        "improvability",
        roles=DRAWN,
        candidate=LINEAR,
        accuracy="ppv",
        fairness=["tpr", "selection_rate"],
        capacity=0.3,
        combine="bonferroni",
        **FAST,
    ),
    _case(
        "loans-deltas",
        "improvability",
        roles=SEX,
        **RIVAL,
        delta_accuracy=0.05,
        delta_fairness=0.2,
        margin_scale="absolute",
        accuracy_of="population",
        higher_group="sex=M",
    ),
    _case("loans-regions", "improvability", roles={"group": "region"}, **RIVAL, method="paper"),
    _case("visits-clusters", "improvability", **RIVAL, fairness="selection_rate"),
)

_INEQUALITY = (
    _case("loans-plain", "inequality", benefits="speicher", roles=SEX),
    _case("loans-order", "inequality", benefits="speicher", order=2, roles=SEX, alpha=0.1),
    _case("loans-soft", "inequality", benefits="speicher", soft=True),
    _case("loans-matrix", "inequality", benefits=MATRIX, order=0, roles=SEX),
    _case("loans-column", "inequality", benefits="benefit", roles={"group": "region"}),
    _case(
        "loans-design",
        "inequality",
        benefits={"kind": "assistive", "base_rate": 0.5, "kappa": 2.0},
        roles=SEX,
    ),
    _case("visits-clusters", "inequality", benefits="speicher"),
    _case("visits-weights", "inequality", benefits="speicher", order=0.5, roles=WEIGHED | ROWS),
    _case(
        "compas-design",
        "inequality",
        benefits={"kind": "punitive", "base_rate": 0.45, "kappa": 3.0},
        roles=RACE,
    ),
)

_EFFECTS = (
    _case("trial-plain", "treatment_effects"),
    _case("trial-models", "treatment_effects", control_pred="without", treated_pred="with"),
    _case("trial-features", "treatment_effects", collapse="aipw", roles={"features": "x"}),
    _case(
        "trial-difference",
        "treatment_effects",
        measure="difference",
        margin=2.5,
        n_repeats=0,
        roles={"y_true": "amount", "effect_pred": "gain"},
    ),
    _case("trial-split", "treatment_effects", split=True, n_repeats=3, adjust="max_t"),
    _case("trial-clusters", "treatment_effects", roles={"cluster": "shop"}, rest="pooled"),
    _case(
        "trial-weights",
        "treatment_effects",
        roles=WEIGHED,
        collapse="hajek",
        control_pred="without",
        n_repeats=0,
    ),
    _case("trial-counts", "treatment_effects", roles={"count": "count"}, n_repeats=2),
)

CASES = {
    case.name: case
    for case in (
        *_DISPARITY,
        *_FLAG,
        *_CERTIFY,
        *_PARITY,
        *_MARGIN,
        *_IMPROVABILITY,
        *_INEQUALITY,
        *_EFFECTS,
    )
}
"""All questions, by name."""
