"""Simulated tables for the disparity engine, many at once, with the true disparities."""

from dataclasses import fields

import numpy as np

from equipoise.stats.disparity.gaps import assess
from equipoise.stats.disparity.references import Comparison


def regions(rng, reps, n, shares, rates):
    """Ones and rows in (group only, both, target only); the rest of the n rows is elsewhere."""
    shares = np.asarray(shares, dtype=float)
    sizes = rng.multinomial(n, [*shares, max(0.0, 1.0 - shares.sum())], size=reps)[:, :3]
    return rng.binomial(sizes, rates).astype(float), sizes.astype(float)


def true_values(shares, rates):
    """Value of the group and of the target for `regions`."""
    shares, rates = np.asarray(shares), np.asarray(rates)
    group = shares[:2] @ rates[:2] / shares[:2].sum()
    return group, shares[1:] @ rates[1:] / shares[1:].sum()


def binary_comparison(ones, n, *, n_units, known=None, scale="difference"):
    """One comparison for each row of counts in (group only, both, target only)."""
    x = np.stack([ones[:, 0] + ones[:, 1], ones[:, 1], ones[:, 1] + ones[:, 2]])
    size = np.stack([n[:, 0] + n[:, 1], n[:, 1], n[:, 1] + n[:, 2]])
    total = np.stack([x, size], axis=2)
    product = np.stack([np.stack([x, x], axis=2), np.stack([x, size], axis=2)], axis=2)
    estimated = known is None
    zero = np.zeros_like(product[0])
    with np.errstate(invalid="ignore", divide="ignore"):
        target_value = x[2] / size[2] if estimated else np.full(len(n), float(known))
    return Comparison(
        group=total[0],
        overlap=total[1],
        target=total[2] if estimated else np.zeros_like(total[2]),
        group_group=product[0],
        group_target=product[1] if estimated else zero,
        target_target=product[2] if estimated else zero,
        group_value=x[0] / size[0],
        target_value=target_value,
        target_variance=0.0,
        n=size[0].astype(int),
        n_target=size[2].astype(int),
        n_units=n_units,
        same=np.zeros(len(n), dtype=bool),
        scale=scale,
    )


def stacked(comparisons):
    """Many comparisons as one, so that thousands of simulated tables are tested at once."""
    first = comparisons[0]
    values = {}
    for field in fields(Comparison):
        value = getattr(first, field.name)
        values[field.name] = (
            np.concatenate([getattr(c, field.name) for c in comparisons])
            if isinstance(value, np.ndarray)
            else value
        )
    return Comparison(**values)


def assessed(comparison, **options):
    """Test every comparison; simulated tables share no cells."""
    return assess(comparison, **options)


def mean_comparison(u, w, group, *, n_units, known=None):
    """Compare sums of (u, w) in the group with those in the rest, for each row of the arrays.

    Columns of `u` and `w` are independent units; `group` says which belong to the group.
    """

    def sums(mask):
        a, b = np.where(mask, u, 0.0), np.where(mask, w, 0.0)
        total = np.stack([a.sum(axis=1), b.sum(axis=1)], axis=1)
        mixed = (a * b).sum(axis=1)
        product = np.stack([(a * a).sum(axis=1), mixed, mixed, (b * b).sum(axis=1)], axis=1)
        return total, product.reshape(-1, 2, 2)

    (own, own_product), (other, other_product) = sums(group), sums(~group)
    estimated = known is None
    m = len(own)
    return Comparison(
        group=own,
        overlap=np.zeros((m, 2)),
        target=other if estimated else np.zeros((m, 2)),
        group_group=own_product,
        group_target=np.zeros((m, 2, 2)),
        target_target=other_product if estimated else np.zeros((m, 2, 2)),
        group_value=own[:, 0] / own[:, 1],
        target_value=other[:, 0] / other[:, 1] if estimated else np.full(m, float(known)),
        target_variance=0.0,
        n=group.sum(axis=1),
        n_target=(~group).sum(axis=1),
        n_units=n_units,
        same=np.zeros(m, dtype=bool),
        scale="difference",
    )


def lattice(levels):
    """Cells of crossed columns, and the groups of every combination of one or more columns."""
    cells = np.stack(np.meshgrid(*[np.arange(k) for k in levels], indexing="ij"), axis=-1)
    cells = cells.reshape(-1, len(levels))
    groups = []
    for mask in range(1, 2 ** len(levels)):
        columns = [c for c in range(len(levels)) if mask >> c & 1]
        patterns = np.unique(cells[:, columns], axis=0)
        groups += [(cells[:, columns] == pattern).all(axis=1) for pattern in patterns]
    return cells, np.stack(groups, axis=1)
