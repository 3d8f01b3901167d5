"""Scikit-learn estimators that correct what the audits find."""
