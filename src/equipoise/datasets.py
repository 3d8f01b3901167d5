"""Data sets for examples and tests."""

from equipoise.data.datasets import fetch_adult, fetch_compas, load_compas_counts

__all__ = ["fetch_adult", "fetch_compas", "load_compas_counts"]
