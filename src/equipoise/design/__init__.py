"""Planning an audit before the data are there."""

from equipoise.design.benefits import BenefitDesign, benefit_design
from equipoise.design.effects import EffectAudit, effect_audit
from equipoise.design.power import Power, power, sample_size

__all__ = [
    "BenefitDesign",
    "EffectAudit",
    "Power",
    "benefit_design",
    "effect_audit",
    "power",
    "sample_size",
]
