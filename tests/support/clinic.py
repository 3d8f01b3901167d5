"""Patients called by past cost, for tests of less discriminatory alternatives."""

import numpy as np


def clinic(rng, n=3000):
    """Called by past cost, which understates the sickness of group b."""
    race = rng.choice(["a", "b"], size=n)
    sickness = rng.gamma(2.0, 2.0, size=n)
    cost = sickness * np.where(race == "b", 0.4, 0.7)
    return {
        "race": race,
        "sick": (sickness > 4).astype(int),
        "conditions": rng.poisson(sickness).astype(float),
        "cost": cost,
        "called": (cost > 4).astype(int),
        "visits": rng.poisson(3 * sickness).astype(float),
        "person": np.arange(n) // 2,
        "wt": rng.integers(1, 4, size=n),
    }


ROLES = {"group": "race", "y_true": "sick", "y_pred": "called", "features": ["visits"]}
