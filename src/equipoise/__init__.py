"""Fairness audits with statistical guarantees."""
