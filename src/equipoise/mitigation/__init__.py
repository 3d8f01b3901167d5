"""Scikit-learn estimators that correct what the audits find."""

from equipoise.mitigation.treatment_effects import EffectDebiaser

__all__ = ["EffectDebiaser"]
