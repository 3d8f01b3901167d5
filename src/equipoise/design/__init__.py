"""Planning an audit before the data are there."""

from equipoise.design.benefits import BenefitDesign, benefit_design
from equipoise.design.power import Power, power, sample_size

__all__ = ["BenefitDesign", "Power", "benefit_design", "power", "sample_size"]
