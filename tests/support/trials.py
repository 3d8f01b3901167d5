"""Simulated randomised trials with a known prediction error in every group."""

from dataclasses import dataclass

import numpy as np

from equipoise.moments import CellMoments
from equipoise.stats.effects.errors import group_errors

# Six covariate cells: share, relative baseline, relative effect.
SHARE = np.array([0.25, 0.2, 0.2, 0.15, 0.1, 0.1])
BASELINE = np.array([0.5, 0.8, 1.0, 1.2, 1.6, 2.2])
EFFECT = np.array([1.3, 1.2, 1.15, 1.1, 1.0, 0.9])


@dataclass(frozen=True)
class Trial:
    """One group: the law of a row, and its true effect on the relative scale."""

    conversion: float
    error: float
    treated_share: float = 0.5

    @property
    def control_rate(self):
        return self.conversion * BASELINE / (SHARE @ BASELINE)

    @property
    def effect(self):
        p0 = self.control_rate
        return float(SHARE @ (p0 * EFFECT) / (SHARE @ p0))

    @property
    def prediction(self):
        return EFFECT + self.error


def arm_counts(rng, trial, n, size):
    """Rows and positives by (replicate, arm, covariate cell) for `size` replicates of n rows."""
    treated = rng.binomial(n, trial.treated_share, size=size)
    p0 = trial.control_rate
    out = []
    for arm_size, rate in ((n - treated, p0), (treated, p0 * EFFECT)):
        rows = rng.multinomial(arm_size, SHARE)
        out.append((rows, rng.binomial(rows, rate)))
    return out


def control_sums(rng, trial, n, size):
    """Totals and products of (1, y, yf) by (replicate, arm): what the default audit needs."""
    f = trial.prediction
    total = np.empty((size, 2, 3))
    product = np.empty((size, 2, 3, 3))
    for arm, (rows, positives) in enumerate(arm_counts(rng, trial, n, size)):
        y, yf, yff = positives.sum(1), positives @ f, positives @ f**2
        total[:, arm] = np.stack([rows.sum(1), y, yf], axis=1)
        product[:, arm] = np.stack(
            [
                np.stack([rows.sum(1), y, yf], axis=1),
                np.stack([y, y, yf], axis=1),
                np.stack([yf, yf, yff], axis=1),
            ],
            axis=1,
        )
    return total, product


def trial_rows(rng, trial, n):
    """Rows of one group: outcome, treatment, prediction, covariate cell."""
    cell = rng.choice(len(SHARE), size=n, p=SHARE)
    t = (rng.random(n) < trial.treated_share).astype(int)
    rate = trial.control_rate[cell] * np.where(t == 1, EFFECT[cell], 1.0)
    return (rng.random(n) < rate).astype(int), t, trial.prediction[cell], cell


def moments_of(total, product):
    """Cell moments whose groups are replicates (or groups) of shape (..., arm)."""
    size = total.shape[-1]
    flat = total.reshape(-1, size)
    n = flat[:, 0].round().astype(np.int64)
    return CellMoments(
        n=n, total=flat, product=product.reshape(-1, size, size), n_units=int(n.sum())
    )


def replicated_errors(rng, trial, n, size):
    """Errors of `size` independent replicates of one group, in one call."""
    return group_errors(moments_of(*control_sums(rng, trial, n, size)))


def population_sums(trials, sizes, quantities):
    """Exact (expected) sums by (group, arm) of named quantities; second moments are not needed."""
    total = np.zeros((len(trials), 2, len(quantities)))
    for g, (trial, n) in enumerate(zip(trials, sizes, strict=True)):
        p0, f = trial.control_rate, trial.prediction
        for arm, (share, rate) in enumerate(
            [(1 - trial.treated_share, p0), (trial.treated_share, p0 * EFFECT)]
        ):
            rows = n * share * SHARE
            values = {
                "one": rows.sum(),
                "y": rows @ rate,
                "f": rows @ f,
                "yf": rows @ (rate * f),
                "mu0": rows @ p0,
                "mu0f": rows @ (p0 * f),
            }
            total[g, arm] = [values[name] for name in quantities]
    return total
