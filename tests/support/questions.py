"""Every question with options to ask it with, for tests over random tables."""

from hypothesis import strategies as st

import equipoise as eq

__all__ = ["QUESTIONS", "RATES", "REALS", "asked"]

RATES = ("selection_rate", "tpr", "ppv", "accuracy")
REALS = ("mean_score", "squared_error", "selected_outcome", "residual")

QUESTIONS = {
    "disparity": st.fixed_dictionaries(
        {"metric": st.sampled_from(RATES + REALS)},
        optional={
            "reference": st.sampled_from(
                ["population", "rest", "highest", "lowest", 0.3, eq.External(0.3, 0.05)]
            ),
            "simultaneous": st.just(value=True),
            "scale": st.just("ratio"),
            "method": st.sampled_from(["el", "eel", "plug_in"]),
            "depth": st.just(1),
        },
    ),
    "flag": st.fixed_dictionaries(
        {"metric": st.sampled_from(RATES + REALS)},
        optional={
            "margin": st.sampled_from([0.0, 0.05, 0.2]),
            "alternative": st.sampled_from(["greater", "less", "outside"]),
            "adjust": st.sampled_from(["bh", "by", "holm", "bonferroni", "none"]),
            "scale": st.just("ratio"),
            "reference": st.just("rest"),
        },
    ),
    "certify": st.fixed_dictionaries(
        {"metric": st.sampled_from(RATES + REALS), "margin": st.sampled_from([0.01, 0.1, 0.9])},
        optional={"scale": st.just("ratio"), "method": st.just("eel")},
    ),
    "compare": st.fixed_dictionaries(
        {"metric": st.sampled_from(RATES + REALS), "baseline": st.sampled_from(["rival", "rule"])},
        optional={
            "margin": st.sampled_from([0.0, 0.1]),
            "reference": st.just("rest"),
            "depth": st.just(1),
        },
    ),
    "decompose": st.fixed_dictionaries(
        {"metric": st.sampled_from(RATES + REALS), "given": st.sampled_from(["t", ["t", "rule"]])}
    ),
    "impact_ratios": st.fixed_dictionaries(
        {"metric": st.sampled_from(RATES + REALS)},
        optional={
            "min_share": st.sampled_from([0.0, 0.3]),
            "small": st.just("compare"),
            "by": st.just("audit"),
            "companions": st.just(value=False),
        },
    ),
    "monitor": st.fixed_dictionaries(
        {"metric": st.sampled_from(RATES + REALS), "time": st.just("week")},
        optional={
            "margin": st.sampled_from([0.0, 0.1, 0.9]),
            "reference": st.sampled_from(["population", 0.3]),
            "alternative": st.sampled_from(["greater", "less"]),
            "adjust": st.sampled_from(["e-bh", "none"]),
        },
    ),
    "discover": st.fixed_dictionaries(
        {"metric": st.sampled_from(RATES + REALS), "features": st.just(["rule", "week"])},
        optional={
            "method": st.sampled_from(["lattice", "split"]),
            "alternative": st.sampled_from(["greater", "less"]),
            "depth": st.just(1),
        },
    ),
    "predictive_parity": st.fixed_dictionaries(
        {"unit": st.sampled_from(["row", "cluster"])},
        optional={
            "method": st.just("paper"),
            "hypothesis": st.just("calibration"),
            "bandwidth": st.sampled_from([0.05, 1e-9, 1e9]),
            "grid": st.sampled_from([[0.5], [0.1, 0.5, 0.9], [-1e6, 1e6]]),
        },
    ),
    "score_quality": st.fixed_dictionaries(
        {},
        optional={
            "metrics": st.sampled_from([["auc"], ["parity_error"]]),
            "n_bins": st.sampled_from([1, 5]),
        },
    ),
    "multicalibration": st.fixed_dictionaries(
        {},
        optional={
            "depth": st.just(1),
            "hypothesis": st.just("parity"),
            "min_information": st.sampled_from([0.0, 3.0]),
        },
    ),
    "marginal_outcome": st.fixed_dictionaries(
        {"threshold": st.sampled_from([0.5, 0.0, -1e9]), "unit": st.sampled_from(["row"])},
        optional={"bandwidth": st.sampled_from([0.05, 1e-9, 1e9])},
    ),
    "improvability": st.fixed_dictionaries(
        {
            "candidate": st.sampled_from(
                ["rival", "rule", "sklearn.linear_model.LogisticRegression"]
            ),
            "accuracy": st.sampled_from(["accuracy", "ppv"]),
            "n_splits": st.just(2),
            "n_resamples": st.just(99),
        },
        optional={
            "fairness": st.sampled_from(["tpr", "selection_rate"]),
            "capacity": st.sampled_from([0.1, 0.9]),
            "inference": st.just("analytic"),
            "method": st.just("paper"),
        },
    ),
    "necessity": st.fixed_dictionaries(
        {
            "candidate": st.sampled_from(["rival", "rule"]),
            "accuracy": st.sampled_from(["accuracy", "tpr"]),
            "fairness": st.just("selection_rate"),
            "inference": st.just("analytic"),
        },
        optional={
            "capacity": st.sampled_from([0.1, 0.5]),
            "accuracy_loss": st.just(0.1),
            "frontier": st.just(value=True),
            "scale": st.just("ratio"),
        },
    ),
    "drop_table": st.fixed_dictionaries(
        {"estimator": st.just("sklearn.linear_model.LogisticRegression")},
        optional={
            "fairness": st.sampled_from(["tpr", "selection_rate", "accuracy"]),
            "capacity": st.sampled_from([0.1, 0.5]),
        },
    ),
    "inequality": st.fixed_dictionaries(
        {"benefits": st.sampled_from(["speicher", [[1.0, 0.0], [2.0, 1.0]], [[1.0, 1], [1, 1]]])},
        optional={"order": st.sampled_from([0.0, 0.5, 2.0, -1.0]), "soft": st.just(value=True)},
    ),
    "treatment_effects": st.fixed_dictionaries(
        {"n_repeats": st.just(2)},
        optional={
            "measure": st.just("difference"),
            "collapse": st.sampled_from(["control", "aipw", "hajek", "mean", "positives"]),
            "split": st.just(value=True),
            "margin": st.sampled_from([0.1, 0.5]),
            "adjust": st.sampled_from(["bh", "max_t", "none"]),
            "rest": st.just("pooled"),
            "ranking": st.sampled_from(["autoc", "qini"]),
            "budget": st.sampled_from([0.2, 0.7]),
            "method": st.sampled_from(["default", "paper"]),
        },
    ),
    "policy": st.one_of(
        st.fixed_dictionaries({"budget": st.sampled_from([0.01, 0.3, 0.99])}),
        st.fixed_dictionaries(
            {"threshold": st.sampled_from([0.0, -9.0, 9.0])}, optional={"cost": st.just(0.5)}
        ),
    ),
}
"""For each question, the options to ask it with."""


def asked(table, roles, question, options):
    return getattr(eq.Audit(table, **roles), question)(**options)
