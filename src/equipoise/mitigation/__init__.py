"""Scikit-learn estimators that correct what the audits find."""

from equipoise.mitigation.calibration import GroupCalibrator
from equipoise.mitigation.entropy_cap import EntropyCappedClassifier
from equipoise.mitigation.multi_objective import MultiObjectiveCalibrator
from equipoise.mitigation.thresholds import MarginalThresholds
from equipoise.mitigation.treatment_effects import EffectDebiaser

__all__ = [
    "EffectDebiaser",
    "EntropyCappedClassifier",
    "GroupCalibrator",
    "MarginalThresholds",
    "MultiObjectiveCalibrator",
]
