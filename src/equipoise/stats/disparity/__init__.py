"""Disparities: a group beside its reference."""
