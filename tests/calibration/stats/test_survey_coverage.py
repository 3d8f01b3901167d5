"""Coverage of gaps in stratified samples, and of stratified gaps that hold together."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.moments import CellMoments
from equipoise.stats.disparity.references import Target
from equipoise.stats.disparity.survey import design_of_cells, design_of_rows, survey_disparities
from support.rates import assert_at_least, assert_rate

pytestmark = [pytest.mark.calibration, pytest.mark.slow]

PAIR = np.eye(2, dtype=bool)
OTHER = Target(kind="rest")


@pytest.mark.parametrize(
    ("strata", "per_stratum", "sampled"), [(4, 6, 0.0), (10, 3, 0.0), (4, 6, 0.5), (25, 2, 0.0)]
)
def test_gaps_of_clustered_samples_are_covered(rng, strata, per_stratum, sampled):
    # A fresh population of schools in every replication, of which a share is drawn.
    reps, size = 600, 12
    whole = round(per_stratum / sampled) if sampled else 40 * per_stratum
    covered = 0
    for _ in range(reps):
        level = np.repeat(rng.normal(size=strata) * 2.0, whole)
        school = level + rng.normal(size=strata * whole)
        slope = 0.5 + 0.5 * rng.normal(size=strata * whole)
        group = rng.integers(0, 2, (strata * whole, size))
        y = school[:, None] + slope[:, None] * group + rng.normal(size=group.shape)
        truth = y[group == 1].mean() - y[group == 0].mean()
        drawn = np.concatenate(
            [h * whole + rng.permutation(whole)[:per_stratum] for h in range(strata)]
        )
        of = np.repeat(drawn // whole, size)
        design = design_of_rows(
            y[drawn].ravel(),
            np.ones(len(of)),
            group[drawn].ravel(),
            strata=of,
            cluster=np.repeat(drawn, size),
            population=np.full(len(of), float(whole)) if sampled else None,
        )
        found = survey_disparities(design, PAIR, OTHER)
        covered += found.ci_low[1] <= truth <= found.ci_high[1]
    assert_rate(covered, reps, 0.95, below=0.01, above=0.02)


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_rates_of_stratified_rows_are_covered(rng, rate):
    reps, n = 2000, np.array([[60, 20], [40, 40], [30, 90]])
    rates = rate * np.array([[0.5, 0.7], [1.0, 1.2], [1.5, 1.3]])
    share = n / n.sum()
    truth = (share * rates)[:, 1].sum() / share[:, 1].sum()
    truth -= (share * rates)[:, 0].sum() / share[:, 0].sum()
    strata, cell = np.divmod(np.arange(6), 2)
    covered = 0
    for _ in range(reps):
        # Rows of a stratum are drawn together: which group they are of is random too.
        of = np.array([rng.binomial(m.sum(), m[1] / m.sum()) for m in n])
        size = np.stack([n.sum(axis=1) - of, of], axis=1).ravel().astype(float)
        ones = rng.binomial(size.astype(int), rates.ravel()).astype(float)
        product = np.stack([np.stack([ones, ones], 1), np.stack([ones, size], 1)], 1)
        cells = CellMoments(
            n=size.astype(np.int64),
            total=np.stack([ones, size], axis=1),
            product=product,
            n_units=int(size.sum()),
        )
        found = survey_disparities(design_of_cells(cells, cell, strata), PAIR, OTHER)
        covered += found.ci_low[1] <= truth <= found.ci_high[1]
    assert_rate(covered, reps, 0.95, below=0.015, above=0.02)


@pytest.mark.parametrize("reference", ["rest", {"g": "a"}])
@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_stratified_gaps_hold_together(rng, reference, rate):
    reps, n = 300, 900
    covered = 0
    for _ in range(reps):
        stratum = rng.integers(0, 12, n)
        data = {
            "g": rng.choice(list("abcde"), n, p=[0.4, 0.25, 0.15, 0.12, 0.08]),
            "f": stratum,
            "y": (rng.random(n) < rate * (0.5 + stratum / 12)).astype(int),
        }
        result = eq.Audit(data, group="g", y_pred="y").disparity(
            "selection_rate", given="f", reference=reference, simultaneous=True, rng=1
        )
        covered += all(0 in finding.ci for finding in result.findings if finding.ci)
    assert_at_least(covered, reps, 0.94)
