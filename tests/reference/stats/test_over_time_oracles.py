"""Numbers of others: the published formula of a confidence sequence, statsmodels and scipy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import StratifiedTable, mcnemar
from statsmodels.stats.proportion import proportion_confint

from equipoise.stats.disparity.contrasts import PairedChange, RateChange, WilsonRate
from equipoise.stats.disparity.gap_sequence import BatchSums, gap_sequence
from equipoise.stats.disparity.monitor import monitor_gaps
from equipoise.stats.sequential import confidence_sequence
from oracles.over_time import asymptotic_confidence_sequence

Z = np.array([stats.norm.ppf(0.975)])


@pytest.mark.parametrize("t", [50, 51, 137, 400])
def test_the_confidence_sequence_is_the_published_one(rng, t):
    x = rng.gamma(2.0, size=400)
    found = confidence_sequence(x, burn_in=50)
    mean, radius = asymptotic_confidence_sequence(
        x.tolist(), t, alpha=0.05, rho=0.1, sigma=float(x[:50].std(ddof=1))
    )
    assert_allclose(found.estimate[t - 1], mean)
    assert_allclose(found.high[t - 1] - mean, radius, rtol=1e-10)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (4, 5), (9, 0), (10, 0), (30, 14)])
def test_the_test_of_no_change_is_mcnemars(gained, lost):
    theirs = mcnemar([[50, lost], [gained, 20]], exact=gained + lost < 10, correction=False)
    ours = PairedChange(np.array([gained * 1.0]), np.array([lost * 1.0]), np.array([200.0]))
    p = 2 * stats.norm.sf(np.abs(ours.root(np.zeros(1))))
    expected = 1.0 if gained + lost == 0 else theirs.pvalue
    assert_allclose(p, expected, rtol=1e-9)


def test_rates_have_wilsons_interval():
    low, high = WilsonRate(np.array([7.0]), np.array([40.0])).interval(Z)
    assert_allclose((low[0], high[0]), proportion_confint(7, 40, method="wilson"), rtol=1e-9)


@pytest.mark.parametrize("table", [(7, 40, 12, 50), (0, 20, 4, 30), (45, 50, 10, 90)])
def test_two_periods_have_the_score_of_the_most_likely_rates(table):
    """Miettinen and Nurminen's score with the restricted rates found by maximisation.

    The interval of statsmodels 0.14 has another cubic (its first coefficient has ones in place of
    rows) and differs in the third digit.
    """
    x1, n1, x0, n0 = table
    ours = RateChange(*(np.array([float(v)]) for v in table))
    for limit, sign in zip(ours.interval(Z), (1, -1), strict=True):
        d = limit[0]

        def unlikely(p0, d=d):
            return -stats.binom.logpmf(x1, n1, p0 + d) - stats.binom.logpmf(x0, n0, p0)

        low, high = max(0.0, -d), min(1.0, 1.0 - d)
        p0 = optimize.minimize_scalar(
            unlikely, bounds=(low, high), method="bounded", options={"xatol": 1e-12}
        ).x
        n = n1 + n0
        variance = ((p0 + d) * (1 - p0 - d) / n1 + p0 * (1 - p0) / n0) * n / (n - 1)
        z = (x1 / n1 - x0 / n0 - d) / np.sqrt(variance)
        assert_allclose(sign * z, Z[0], rtol=1e-5)


def test_the_sum_of_scores_is_that_of_cochran_mantel_and_haenszel(rng):
    n = rng.integers(20, 60, size=(8, 2)).astype(float)
    ones = rng.binomial(n.astype(int), 0.4).astype(float)
    eye = np.eye(2, dtype=bool)
    found = gap_sequence(BatchSums.of_counts(n, ones), eye[:, :1], eye[:, 1:])
    tables = [
        np.array([[s1, n1 - s1], [s2, n2 - s2]]) for (n1, n2), (s1, s2) in zip(n, ones, strict=True)
    ]
    theirs = StratifiedTable(tables).test_null_odds(correction=False)
    ours = found.score.sum() ** 2 / found.variance.sum()
    assert_allclose(ours, theirs.statistic, rtol=1e-9)


def test_compas_by_week_is_watched(data_file):
    """Error of the score on real weeks of screening: African-American against the rest."""
    import csv

    with data_file("compas-scores-two-years.csv").open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["is_recid"] != "-1"]
    day = np.array([row["compas_screening_date"] for row in rows], dtype="datetime64[D]")
    week = (day - day.min()).astype(int) // 7
    race = np.array([row["race"] == "African-American" for row in rows])
    reoffends = np.array([row["two_year_recid"] == "1" for row in rows])
    high = np.array([int(row["decile_score"]) >= 5 for row in rows])
    fpr = ~reoffends
    found = monitor_gaps(
        high[fpr], np.where(race[fpr], "African-American", "others"), week[fpr], adjust="none"
    )
    first = found.alarms.batch[0]
    low, _ = found.confidence_interval()
    # The gap is about 20 points and was there from the start: an alarm within the first ten weeks.
    assert 0 <= first < 10
    assert low[0] > 0.1
    # With labels permuted within weeks there is nothing to find.
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(20):
        shuffled = high[fpr].copy()
        for one in np.unique(week[fpr]):
            here = week[fpr] == one
            shuffled[here] = rng.permutation(shuffled[here])
        again = monitor_gaps(shuffled, race[fpr].astype(int), week[fpr], adjust="none")
        alarms += again.alarms.batch[0] >= 0
    assert alarms <= 4
