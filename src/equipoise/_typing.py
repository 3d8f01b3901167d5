"""Array aliases, and the string options of the public functions.

Every option that takes a word is a `Literal` here; `_checks.check_option` reads the same alias, so
the type and the check cannot drift apart.
"""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
Rng: TypeAlias = np.random.Generator | int | None

AlarmRule: TypeAlias = Literal["ever", "arl"]
EAdjust: TypeAlias = Literal["e-holm", "e-bh", "none"]
DiscoveryMethod: TypeAlias = Literal["auto", "lattice", "split"]
GapSign: TypeAlias = Literal["absolute", "signed"]
ChangeDirection: TypeAlias = Literal["increase", "decrease"]
Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
FlagAlternative: TypeAlias = Literal["two-sided", "greater", "less", "outside"]
Adjust: TypeAlias = Literal["bh", "by", "holm", "bonferroni", "none", "auto"]
CalibrationHypothesis: TypeAlias = Literal["parity", "calibration"]
CalibrationMethod: TypeAlias = Literal["monotone", "interpolate", "isotonic", "platt", "binning"]
Collapse: TypeAlias = Literal["auto", "control", "aipw", "hajek", "mean", "weighted", "positives"]
Correction: TypeAlias = Literal[
    "none",
    "mean",
    "mean_if_detected",
    "mse_plus",
    "mse_minus",
    "positive_part",
    "james_stein",
    "bayes_zero",
    "eb_zero",
    "eb",
    "sure",
    "npmle",
]
CorrectionChoice: TypeAlias = Literal["auto", Correction]
Degree: TypeAlias = Literal[0, 1]
DisparityMethod: TypeAlias = Literal["auto", "el", "eel", "plug_in"]
EffectAdjust: TypeAlias = Literal["holm", "bonferroni", "bh", "by", "max_t", "none"]
EffectMeasure: TypeAlias = Literal["relative", "difference"]
EffectMethod: TypeAlias = Literal["default", "paper"]
"""The audit's own way to judge predicted effects, or the published one."""

EffectRanking: TypeAlias = Literal["autoc", "qini"]
EffectTest: TypeAlias = Literal["auto", "score", "wald"]
MultiObjectiveMethod: TypeAlias = Literal["auto", "kernel", "boosting", "spline"]
ParityMethod: TypeAlias = Literal["pooled_residual", "paper"]
MarginPlace: TypeAlias = Literal["auto", "level", "limit"]
QualityMetric: TypeAlias = Literal["rmsce", "auc", "brier", "parity_error"]
ParityAdjust: TypeAlias = Literal["closed", "holm"]
ParityUnit: TypeAlias = Literal["cluster", "row"]
Rest: TypeAlias = Literal["stratified", "pooled"]
Scale: TypeAlias = Literal["difference", "ratio"]
Smoothing: TypeAlias = Literal["rank", "score"]
Ties: TypeAlias = Literal["randomise", "attainable", "error"]
PlannedQuestion: TypeAlias = Literal["disparity", "flag", "certify", "inequality"]
PlannedTarget: TypeAlias = Literal["known", "population", "reference", "rest"]
Extreme: TypeAlias = Literal["highest", "lowest"]
Family: TypeAlias = Literal["table", "audit"]
SmallCategories: TypeAlias = Literal["exclude", "compare"]
Conditional: TypeAlias = Literal["strata", "doubly_robust"]
StratumWeights: TypeAlias = Literal["overlap", "group", "reference", "population"]
Missing: TypeAlias = Literal["raise", "drop"]
FailOn: TypeAlias = Literal["detected", "not-within-margin", "worse", "never"]
Multiplicity: TypeAlias = Literal["none", "bonferroni"]
Engine: TypeAlias = Literal["duckdb", "spark"]
ImprovementMethod: TypeAlias = Literal["signed", "paper"]
Inconclusive: TypeAlias = Literal["skip", "fail"]
Inference: TypeAlias = Literal["bootstrap", "analytic"]
MarginScale: TypeAlias = Literal["relative", "absolute"]
SplitRule: TypeAlias = Literal["median", "exch_median", "bonferroni"]
Cutoff: TypeAlias = Literal["sample", "training"]
CutoffLaw: TypeAlias = Literal["estimated", "fixed"]
CapacityMatch: TypeAlias = Literal["near", "randomise"]
Choice: TypeAlias = Literal["validation", "all"]
Preference: TypeAlias = Literal["safe", "certain"]
SmallGroups: TypeAlias = Literal["leave_out", "pool", "refuse"]
GapRule: TypeAlias = Literal["worst", "each"]
AttributeRule: TypeAlias = Literal["crossed", "separately"]
SearchObjective: TypeAlias = Literal["fairness", "accuracy"]
Unseen: TypeAlias = Literal["raise", "common"]
ErrorKind: TypeAlias = Literal["low", "high"]
EntropyPart: TypeAlias = Literal["total", "within", "between"]
EntropyConstraint: TypeAlias = Literal["direct", "cap", "between"]
GroupUse: TypeAlias = Literal["decision", "training"]
BenefitKind: TypeAlias = Literal["accuracy", "punitive", "assistive"]
DecisionKind: TypeAlias = Literal["punitive", "assistive"]
CapCorner: TypeAlias = Literal["perfect model", "harm everybody", "edge"]
AccuracyOf: TypeAlias = Literal["group", "population"]
Layout: TypeAlias = Literal["nyc-ll144"]
DataKind: TypeAlias = Literal["historical", "test"]
Template: TypeAlias = Literal["four-fifths", "nyc-ll144", "lending"]
