"""Planning an audit before the data are there."""

from equipoise.design.power import Power, power, sample_size

__all__ = ["Power", "power", "sample_size"]
