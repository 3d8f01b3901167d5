"""Tables of categories and of strata, with the truth about them."""

import numpy as np

from equipoise.stats.disparity.extremes import IndependentLaw, range_quantile
from equipoise.stats.disparity.mantel_haenszel import StratumCounts
from equipoise.stats.disparity.pair_scores import ProportionPairs

# Two sexes by seven categories, four of which are below 2%.
FOURTEEN = np.outer([0.5, 0.5], [0.31, 0.27, 0.22, 0.15, 0.025, 0.015, 0.01]).ravel()
# One category with most of the rows, and six small ones.
LOPSIDED = np.array([0.85] + [0.025] * 6)


def selection_tables(rng, reps, n, shares, rates):
    """Draw numbers of applicants and of selected, (reps, categories)."""
    applicants = rng.multinomial(n, shares, reps)
    return applicants, rng.binomial(applicants, np.broadcast_to(rates, applicants.shape))


def pairs_of(applicants, selected, *, min_share=0.02):
    """Number of the table, first and second category of all ordered pairs of eligible ones."""
    eligible = applicants >= min_share * applicants.sum(axis=1, keepdims=True)
    table, first, second = np.nonzero(eligible[:, :, None] & eligible[:, None, :])
    apart = first != second
    return eligible, table[apart], first[apart], second[apart]


def joint_coverage(applicants, selected, rates, *, scale="ratio", level=0.95):
    """Whether all joint intervals of a table cover, without computing any interval.

    The interval of i covers its truth t exactly when no pair (i, j) has a root below minus the
    critical value at t, and some pair has one of at most the critical value.
    """
    eligible, table, first, second = pairs_of(applicants, selected)
    rate = np.broadcast_to(rates, applicants.shape)
    best = np.where(eligible, rate, -np.inf).max(axis=1)
    truth = rate / best[:, None] if scale == "ratio" else rate - best[:, None]
    root = roots(applicants, selected, table, first, second, truth[table, first], scale)
    critical = critical_values(eligible.sum(axis=1), level)[table]
    too_low = np.zeros(applicants.shape, dtype=bool)
    np.logical_or.at(too_low, (table, first), root < -critical)
    reached = ~eligible | (truth >= (1.0 if scale == "ratio" else 0.0))
    np.logical_or.at(reached, (table, first), root <= critical)
    return (~too_low & reached).all(axis=1)


def bounds_cover(applicants, selected, rates, shares, *, level=0.95):
    """Whether the bounds that certify cover together, without computing any bound.

    The bound of i is at most its truth t exactly when some candidate j has a root of at most its
    critical value at t.
    """
    rates, size = np.asarray(rates), applicants[0].sum() * np.asarray(shares)
    truth, k = rates / rates.max(), len(rates)
    critical = IndependentLaw.of(rates, rates * (1 - rates) / size, "ratio").one_sided(level)
    table, first, second = (part.ravel() for part in np.indices((len(applicants), k, k)))
    at_one, at_truth = (
        roots(applicants, selected, table, first, second, null, "ratio").reshape(-1, k, k)
        for null in (np.ones(len(table)), truth[first])
    )
    other = ~np.eye(k, dtype=bool)
    candidate = ((at_one <= critical) | ~other).all(axis=1)
    reached = ((at_truth <= critical) & other & candidate[:, None, :]).any(axis=2)
    return (reached | (truth == 1.0)).all(axis=1)


def shown_below(applicants, selected, threshold, *, level=0.95):
    """Tables and categories that are shown below a share of the highest."""
    eligible, table, first, second = pairs_of(applicants, selected)
    null = np.full(len(table), threshold)
    root = roots(applicants, selected, table, first, second, null, "ratio")
    critical = critical_values(eligible.sum(axis=1), level)[table]
    shown = np.zeros(applicants.shape, dtype=bool)
    np.logical_or.at(shown, (table, first), root < -critical)
    return shown


def roots(applicants, selected, table, first, second, null, scale):
    pairs = ProportionPairs(
        x1=selected[table, first].astype(float),
        n1=applicants[table, first].astype(float),
        x2=selected[table, second].astype(float),
        n2=applicants[table, second].astype(float),
        scale=scale,
    )
    return pairs.root(null)


def critical_values(number, level):
    known = {k: range_quantile(level, int(k)) / np.sqrt(2.0) for k in np.unique(number) if k > 1}
    return np.array([known.get(k, np.inf) for k in number])


def stratum_counts(rng, n1, n0, p1, p0):
    """Draw one table of strata."""
    return StratumCounts(
        x1=rng.binomial(n1, p1).astype(float),
        n1=np.asarray(n1, dtype=float),
        x0=rng.binomial(n0, p0).astype(float),
        n0=np.asarray(n0, dtype=float),
    )


def weighted_gap(n1, n0, p1, p0):
    """The Mantel-Haenszel difference of the true rates."""
    weight = np.asarray(n1) * np.asarray(n0) / (np.asarray(n1) + np.asarray(n0))
    return float(weight @ (np.asarray(p1) - np.asarray(p0)) / weight.sum())
