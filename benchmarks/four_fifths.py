"""How often does the smallest impact ratio fall below 0.8 when all groups are alike?

Two sexes by seven categories of race and ethnicity, those under 2% of applicants left out as the
rules of New York City's Local Law 144 allow, and one selection rate for everybody:
``python benchmarks/four_fifths.py``.
"""

import numpy as np

SHARES = np.outer([0.5, 0.5], [0.31, 0.27, 0.22, 0.15, 0.025, 0.015, 0.01]).ravel()
LEAST = 0.02


def below_four_fifths(*, applicants, rate, audits=20_000, seed=20_260_101):
    """Return the share of audits whose smallest ratio to the most selected group is below 0.8."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(applicants, SHARES, audits)
    rates = rng.binomial(counts, rate) / np.maximum(counts, 1)
    told = counts >= LEAST * applicants
    lowest = np.where(told, rates, np.inf).min(axis=1)
    highest = np.where(told, rates, -np.inf).max(axis=1)
    return float((lowest < 0.8 * highest).mean())


if __name__ == "__main__":
    for rate in (0.1, 0.3, 0.5):
        share = below_four_fifths(applicants=2_000, rate=rate)
        print(f"{rate:.0%} selected: smallest ratio below 0.8 in {share:.0%} of audits")
