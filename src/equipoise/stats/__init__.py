"""Tests and indices for statisticians: arrays in, one frozen result out.

Every function is called in one line and needs numpy and scipy only; results have a `statistic`, a
`p_value`, an `estimate`, `confidence_interval(level)` and a `str` that a person can read. The
engines underneath, which the audits call with sums over cells, are in the modules of the families.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.stats.disparity.arrays import disparity_test, el_test, joint_disparity_test
    from equipoise.stats.disparity.change import paired_change_test, period_change_test
    from equipoise.stats.disparity.decomposition import disparity_decomposition
    from equipoise.stats.disparity.discovery import discover_subgroups
    from equipoise.stats.disparity.doubly_robust import doubly_robust_disparity_test
    from equipoise.stats.disparity.impact import impact_ratio_test
    from equipoise.stats.disparity.monitor import monitor_gaps
    from equipoise.stats.disparity.standardised import standardised_mean_difference
    from equipoise.stats.disparity.strata import stratified_disparity_test
    from equipoise.stats.effects.arrays import treatment_bias_test
    from equipoise.stats.effects.corrections import effect_correction
    from equipoise.stats.improvement.arrays import improvement_test
    from equipoise.stats.improvement.frontier import combine_splits
    from equipoise.stats.inequality.arrays import entropy_decomposition
    from equipoise.stats.inequality.index import entropy_index
    from equipoise.stats.multiplicity import adjusted_p_values, max_t
    from equipoise.stats.scores.margins import marginal_outcome_test
    from equipoise.stats.scores.parity import calibration_test, parity_test
    from equipoise.stats.sequential import confidence_sequence

__all__ = [
    "adjusted_p_values",
    "calibration_test",
    "combine_splits",
    "confidence_sequence",
    "discover_subgroups",
    "disparity_decomposition",
    "disparity_test",
    "doubly_robust_disparity_test",
    "effect_correction",
    "el_test",
    "entropy_decomposition",
    "entropy_index",
    "impact_ratio_test",
    "improvement_test",
    "joint_disparity_test",
    "marginal_outcome_test",
    "max_t",
    "monitor_gaps",
    "paired_change_test",
    "parity_test",
    "period_change_test",
    "standardised_mean_difference",
    "stratified_disparity_test",
    "treatment_bias_test",
]

_HOME = {
    "adjusted_p_values": "multiplicity",
    "calibration_test": "scores.parity",
    "combine_splits": "improvement.frontier",
    "confidence_sequence": "sequential",
    "discover_subgroups": "disparity.discovery",
    "disparity_decomposition": "disparity.decomposition",
    "disparity_test": "disparity.arrays",
    "doubly_robust_disparity_test": "disparity.doubly_robust",
    "effect_correction": "effects.corrections",
    "el_test": "disparity.arrays",
    "entropy_decomposition": "inequality.arrays",
    "entropy_index": "inequality.index",
    "impact_ratio_test": "disparity.impact",
    "improvement_test": "improvement.arrays",
    "joint_disparity_test": "disparity.arrays",
    "marginal_outcome_test": "scores.margins",
    "max_t": "multiplicity",
    "monitor_gaps": "disparity.monitor",
    "paired_change_test": "disparity.change",
    "parity_test": "scores.parity",
    "period_change_test": "disparity.change",
    "standardised_mean_difference": "disparity.standardised",
    "stratified_disparity_test": "disparity.strata",
    "treatment_bias_test": "effects.arrays",
}


def __getattr__(name: str) -> Any:
    """Import a function when it is first used."""
    if name in _HOME:
        return getattr(importlib.import_module(f"equipoise.stats.{_HOME[name]}"), name)
    raise AttributeError(f"module 'equipoise.stats' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the functions, those not yet imported too."""
    return sorted({*globals(), *__all__})
