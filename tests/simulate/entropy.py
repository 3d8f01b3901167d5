"""Populations of benefits with known index, as tables of counts."""

import numpy as np

from equipoise.moments import CellMoments
from equipoise.stats.inequality.benefits import BenefitMoments
from equipoise.stats.inequality.index import kernel

SPEICHER_90 = ([0.0, 1.0, 2.0], [0.06, 0.90, 0.04])
SPEICHER_70 = ([0.0, 1.0, 2.0], [0.18, 0.70, 0.12])
SIX = np.array([0.35, 0.25, 0.15, 0.12, 0.08, 0.05])


def kappa_population(fpr, order_levels=(0.1, 0.865, 1.0)):
    """Punitive levels at base rate 0.4: false positives get 0.1, true positives 0.865."""
    return list(order_levels), [0.6 * fpr, 0.4 * 0.4, 1 - 0.6 * fpr - 0.16]


def moments_of(counts, levels, order):
    """Moments of a table of counts (group, level)."""
    return BenefitMoments.from_levels(levels, indicators_of(np.atleast_2d(counts)), order=order)


def indicators_of(counts):
    return CellMoments(
        n=counts.sum(axis=1),
        total=counts.astype(float),
        product=np.apply_along_axis(np.diag, 1, counts).astype(float),
        n_units=int(counts.sum()),
    )


def index_of(levels, probabilities, order):
    levels, probabilities = np.asarray(levels), np.asarray(probabilities)
    return float(probabilities @ kernel(levels / (probabilities @ levels), order))


def unequal_variances():
    """Six groups with mean one and standard deviations from 0.3 to 0.9."""
    spread = np.array([0.1, 0.2, 0.4, 0.5, 0.7, 0.8])
    return [0.0, 1.0, 2.0], np.stack([spread / 2, 1 - spread, spread / 2], axis=1)


def rare_low():
    """Six groups of equal mean with kappa levels and low benefits in 0.5% to 3% of people."""
    low = np.array([0.005, 0.01, 0.015, 0.02, 0.025, 0.03])
    other = (0.05 - 0.9 * low) / 0.135
    return [0.1, 0.865, 1.0], np.stack([low, other, 1 - low - other], axis=1)
