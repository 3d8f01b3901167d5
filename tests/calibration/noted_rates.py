"""How often tests of one group against a known number err: the rates that notes quote.

Prints two-sided rejections of a true null at 5%, one-sided ones on either side, false "within the
margin" at a margin of one standard deviation, and what is left of the last two once p-values count
several fold, as `flag` and `certify` have them; how often groups that do not differ are within the
margin, without and with that. In two minutes:

    PYTHONPATH=src:tests python tests/calibration/noted_rates.py
"""

import numpy as np
from scipy import stats

from equipoise.audits.disparity.subgroups import MEASURED, units_of_unknown_shape
from equipoise.stats.small_samples import one_sided_fold
from simulate import units as simulate

SEED, N_TABLES = 77, 6000
LAWS = "lognormal", "zero-inflated", "t3", "exponential", "normal"
SIZES = 5, 8, 12, 15, 20, 30, 40, 60, 100, 150, 200, 300


def rates(rng, law, n, n_tables=N_TABLES):
    """Shares of tables: two-sided, less, greater, false within, and of those that err, noted."""
    u, w, mean = simulate.rows(rng, law, [n], n_tables)
    found = simulate.against_known(u, w, mean)
    root = found.root(0.0)[:, 0]
    tested = np.isfinite(root)
    margin = u.std()
    shifted = simulate.against_known(u, w, mean - margin)
    within = (shifted.root(margin)[:, 0] < -1.645) & (shifted.root(-margin)[:, 0] > 1.645)
    wrong = np.abs(root) > 1.96, root < -1.645, root > 1.645, within
    noted = units_of_unknown_shape(found.units())[:, 0]
    return [float(x[tested].mean()) for x in wrong] + [float(noted[tested & wrong[1]].mean())]


def guarded(rng, law, n, n_tables=N_TABLES):
    """Shares of tables: "less" and false within, guarded; true within, without and with guard."""
    u, w, mean = simulate.rows(rng, law, [n], n_tables)
    margin = u.std()
    found, at_margin = (simulate.against_known(u, w, mean - gap) for gap in (0.0, margin))
    root = found.root(0.0)[:, 0]
    tested = np.isfinite(root)
    cut = critical(n, units_of_unknown_shape(found.units())[:, 0])

    def within(comparison, z):
        return (comparison.root(margin)[:, 0] < -z) & (comparison.root(-margin)[:, 0] > z)

    shares = root < -cut, within(at_margin, cut), within(found, 1.645), within(found, cut)
    return [float(x[tested].mean()) for x in shares]


def critical(n, unknown):
    """Roots from which a one-sided test of so many units rejects at 5%."""
    return np.where(unknown, stats.norm.isf(0.05 / one_sided_fold(n)), stats.norm.isf(0.05))


def quoted(n):
    """One-sided and two-sided rates that a note quotes for so many units."""
    return max(row for row in MEASURED if row[0] <= n)[1:]


def main():
    rng = np.random.default_rng(SEED)
    print(
        "| values | n | two-sided | less | greater | false within | noted of less | less, guarded |"
        " false within, guarded | true within | guarded |"
    )
    print("| --- " * 11 + "|")
    for law in LAWS:
        for n in SIZES:
            shares = rates(rng, law, n) + guarded(rng, law, n)
            print(f"| {law} | {n} | " + " | ".join(f"{x:.3f}" for x in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
