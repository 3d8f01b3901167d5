"""Streams of batches in which nothing, or something known, happens.

Counts have shape (T, R, 2): batches, replications, and (group, rest). The columns of one table are
the replications, so that a thousand monitors run at once.
"""

import numpy as np

from equipoise.stats.disparity.gap_sequence import BatchSums, gap_sequence


def sides(replications):
    """Cells of the group and of the rest of each replication, (2R, R) each."""
    own = np.zeros((replications, 2, replications), dtype=bool)
    own[np.arange(replications), 0, np.arange(replications)] = True
    return own.reshape(-1, replications), own[:, ::-1].reshape(-1, replications)


def monitors(sums, replications, *, reference=None, **options):
    group, rest = sides(replications)
    return gap_sequence(sums, group, rest if reference is None else reference, **options)


def rates(rng, n, p):
    """Sums of 0/1 rows with the given sizes and rates."""
    ones = rng.binomial(n.astype(int), np.broadcast_to(p, n.shape))
    flat = n.reshape(len(n), -1)
    return BatchSums.of_counts(flat, ones.reshape(len(n), -1))


def values(rng, n, draw):
    """Sums of real rows; `draw(side, size)` returns values for rows of side 0 (group) or 1."""
    flat = n.reshape(-1).astype(int)
    owner = np.repeat(np.arange(len(flat)), flat)
    x = draw(owner % 2, len(owner))
    shape = (len(n), -1)

    def summed(quantity):
        return np.bincount(owner, weights=quantity, minlength=len(flat)).reshape(shape)

    rows, u = flat.reshape(shape).astype(float), summed(x)
    return BatchSums(n=rows, w=rows, u=u, ww=rows, uw=u, uu=summed(x * x), binary=False)


def sizes(rng, batches, replications, rows, share):
    """Rows of the group and of the rest when people arrive at random."""
    group = rng.binomial(rows, share, size=(batches, replications))
    return np.stack([group, rows - group], axis=-1).astype(float)


def steady(rng, replications, *, batches=52, rows=300, share=0.3, p=0.4):
    n = sizes(rng, batches, replications, rows, share)
    return n, p


def drifting(rng, replications, *, batches=104, rows=200):
    """The rate is a random walk and the group's share follows it: Simpson's trap."""
    walk = np.cumsum(rng.normal(0, 0.15, size=(batches, replications)), axis=0)
    p = 1 / (1 + np.exp(-walk))
    n = sizes(rng, batches, replications, rows, np.clip(0.6 * p, 0.02, 0.9))
    return n, p[..., None]


def seasonal(rng, replications, *, batches=365, rows=40):
    day = np.arange(batches)[:, None]
    p = 0.3 + 0.2 * np.sin(2 * np.pi * day / 7)
    n = sizes(rng, batches, replications, rows, 0.25 + 0.2 * np.sin(2 * np.pi * day / 7))
    return n, np.broadcast_to(p[..., None], (batches, replications, 1))


def sporadic(rng, replications, *, batches=200):
    """A group that is mostly absent and has at most three rows."""
    group = rng.integers(1, 4, size=(batches, replications)) * (
        rng.random((batches, replications)) < 0.3
    )
    rest = np.full_like(group, 60)
    return np.stack([group, rest], axis=-1).astype(float), 0.35


def one_row_a_side(rng, replications, *, batches=400):
    return np.ones((batches, replications, 2)), 0.3 + 0.4 * rng.random((batches, replications, 1))


def chased(rng, replications, *, batches=100, p=0.4):
    """More of the group arrive after a batch in which it did well: sizes depend on the past."""
    n = np.empty((batches, replications, 2))
    ones = np.empty_like(n)
    n[:, :, 1] = 100
    ahead = np.zeros(replications)
    for b in range(batches):
        n[b, :, 0] = np.where(ahead > 0, 10, 60)
        ones[b] = rng.binomial(n[b].astype(int), p)
        ahead = ahead + ones[b, :, 0] - n[b, :, 0] * p
    return BatchSums.of_counts(n.reshape(batches, -1), ones.reshape(batches, -1))


def extremes(rng, replications, *, batches=150):
    """Rates and shares that jump from one end to the other from batch to batch."""
    p = np.where(rng.random((batches, replications, 1)) < 0.5, 0.003, 0.997)
    share = np.where(rng.random((batches, replications)) < 0.5, 0.02, 0.98)
    return sizes(rng, batches, replications, 120, share), p


def doubled(rng, replications, *, batches=120, p=0.3, largest=2000):
    """Batches of twice the size after every batch that looked bad for the group: an adversary."""
    n = np.empty((batches, replications, 2))
    ones = np.empty_like(n)
    rows = np.full(replications, 10.0)
    for b in range(batches):
        n[b] = np.stack([rows, 3 * rows], axis=-1)
        ones[b] = rng.binomial(n[b].astype(int), p)
        bad = ones[b, :, 0] / rows < ones[b, :, 1] / (3 * rows)
        rows = np.where(bad, np.minimum(2 * rows, largest), 10.0)
    return BatchSums.of_counts(n.reshape(batches, -1), ones.reshape(batches, -1))


def users(rng, kind, *, batches=52, n_users=400, icc=0.3, share=0.25):
    """Rows of clusters with no gap: value, batch, group (0/1) and user of each row."""
    if kind == "same users":
        user = np.tile(np.arange(n_users), batches)
    elif kind == "users leave":
        here, rows, seen = np.arange(n_users), [], n_users
        for _ in range(batches):
            leave = rng.random(n_users) < 0.05
            here = here.copy()
            here[leave] = seen + np.arange(leave.sum())
            seen += int(leave.sum())
            rows.append(here)
        user = np.concatenate(rows)
    else:
        user = np.repeat(np.arange(batches * n_users // 5), 5)
    batch = np.repeat(np.arange(batches), n_users)
    total = user.max() + 1
    group = rng.random(total) < share
    effect = rng.normal(0, np.sqrt(icc), size=total)
    y = effect[user] + rng.normal(0, np.sqrt(1 - icc), size=len(user))
    return y, batch, group[user].astype(int), user
