"""Scores, outcomes and repeated users with a known mean outcome at every score."""

import numpy as np
from scipy import special, stats


def users_with_scores(
    rng,
    *,
    n_users=1000,
    rows=4,
    rho=0.0,
    score_rho=0.0,
    shapes=((2.0, 2.0), (2.0, 2.0)),
    mean=lambda s: s,
    gap=0.0,
    minority=0.5,
    heavy=False,
):
    """Draw users of two groups; outcomes have mean ``mean(s) + gap * group`` at score s exactly.

    A user's outcomes share a latent normal with correlation `rho`, and the scores one with
    `score_rho`; activity does not depend on the outcome, so user-level and aggregate parity agree.

    Returns
    -------
    y, score, group, user
    """
    group = (rng.uniform(size=n_users) < minority).astype(int)
    if rows == 1:
        n = np.ones(n_users, dtype=int)
    else:
        n = (
            np.minimum(1 + np.floor(rng.pareto(1.5, n_users) * 2).astype(int), 60)
            if heavy
            else 1 + rng.poisson(rows - 1, n_users)
        )
    user = np.repeat(np.arange(n_users), n)
    g = group[user]

    def uniform(share):
        common = rng.standard_normal(n_users)[user]
        own = rng.standard_normal(len(user))
        return special.ndtr(np.sqrt(share) * common + np.sqrt(1 - share) * own)

    u = uniform(score_rho)
    score = np.where(g == 1, stats.beta.ppf(u, *shapes[1]), stats.beta.ppf(u, *shapes[0]))
    y = (uniform(rho) < np.clip(mean(score) + gap * g, 0.0, 1.0)).astype(float)
    return y, score, g, user


def users_with_activity(rng, *, n_users=1000):
    """Draw users whose parity holds for users and not for rows.

    In group 1 active users (eight rows) have better outcomes than their score and idle ones (two
    rows) worse, by amounts that cancel when every user counts once.
    """
    group = rng.integers(2, size=n_users)
    active = rng.integers(2, size=n_users)
    user = np.repeat(np.arange(n_users), np.where(active == 1, 8, 2))
    score = rng.uniform(0.25, 0.75, size=len(user))
    shift = 0.15 * np.where(active == 1, 1.0, -1.0)[user] * group[user]
    y = (rng.uniform(size=len(user)) < score + shift).astype(float)
    return y, score, group[user], user


def awkward_clusters(rng, n_clusters, *, spanning=False, giant=False, informative=False):
    """Draw clusters of about twelve rows whose outcomes share a level; parity holds.

    Clusters have rows in one group or, `spanning`, in both; one of them may be a `giant` of 400
    rows, or sizes `informative` of the level.
    """
    level = rng.normal(size=n_clusters)
    size = np.full(n_clusters, 12)
    if informative:
        size = np.clip(np.round(12 * np.exp(0.8 * level)), 1, 80).astype(int)
    if giant:
        size[0] = 400
    cluster = np.repeat(np.arange(n_clusters), size)
    n = len(cluster)
    group = rng.integers(2, size=n) if spanning else cluster % 2
    score = rng.random(n)
    y = rng.random(n) < special.expit(2 * (score - 0.5) + level[cluster])
    return y.astype(float), score, group, cluster
