"""Populations for the improvability tests, with their true utilities."""

import numpy as np

from equipoise.stats.improvement.utilities import estimate_utilities


def paired_selection(
    rng, *, n, capacity, minority, status_quo, candidate, overlap=0.5, n_resamples=0, **options
):
    """Estimate the mean outcome of the selected under two rules that each select `capacity`.

    `status_quo` and `candidate` are the true means E[Y | D_t = 1, g] of groups 0 and 1; outcomes
    are Poisson. The rules agree on a share `overlap` of those they select.
    """
    group = (rng.random(n) < minority).astype(np.int64)
    kind = rng.random(n)
    both = capacity * overlap
    single = capacity * (1 - overlap)
    d0 = (kind < both + single).astype(float)
    d1 = ((kind < both) | ((kind >= both + single) & (kind < both + 2 * single))).astype(float)
    m0, m1 = np.asarray(status_quo)[group], np.asarray(candidate)[group]
    shared = (m0 + m1) / 2
    alone = np.where(d0 == 1, m0, m1)
    mean = np.where(d0 + d1 == 2, shared, (alone - overlap * shared) / (1 - overlap))
    y = np.where(d0 + d1 > 0, rng.poisson(np.maximum(mean, 0)), 0.0)
    decisions = np.stack([d0, d1], axis=1)
    return estimate_utilities(
        (y[:, None] * decisions)[:, None, :],
        decisions[:, None, :],
        group,
        n_groups=2,
        n_resamples=n_resamples,
        rng=rng,
        **options,
    )
