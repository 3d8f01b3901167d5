"""Recompute Tables 1-4 of the paper and the p-values on real data; write them beside this file.

    EQUIPOISE_DATA=<folder> python docs/reproductions/predictive_rate_parity.py

About ten minutes on one core. The page `predictive_rate_parity.md` shows the output.
"""

import csv
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import equipoise as eq
from equipoise.datasets import ADULT_COLUMNS
from equipoise.exceptions import DataError, SmallGroupWarning
from equipoise.mitigation import GroupCalibrator
from equipoise.stats.multiplicity import gaussian_draws, tail_share
from equipoise.stats.scores.cells import ScoreCells, influence_moments
from equipoise.stats.scores.curves import score_grid
from equipoise.stats.scores.kernel import (
    GRID_LEVELS,
    difference_block,
    paper_bandwidth,
    smoother,
)
from equipoise.stats.scores.quality import score_quality

DATA = Path(os.environ.get("EQUIPOISE_DATA", "data"))
HERE = Path(__file__).parent
METHODS = ("baseline", "interpolate", "monotone", "platt", "isotonic", "binning")
METRICS = ("calibration_error", "parity_error", "auc", "expected_calibration_error")


def adult():
    """Income of White and Black people, scored by a forest that does not see race."""
    read = {"names": ADULT_COLUMNS, "sep": ", ", "engine": "python"}
    train = pd.read_csv(DATA / "adult.data", **read)
    test = pd.read_csv(DATA / "adult.test", skiprows=1, **read)
    both = pd.concat([train, test], keys=["train", "test"])
    y = both.income.str.startswith(">50K").astype(int)
    features = pd.get_dummies(both.drop(columns=["income", "race"]))
    forest = RandomForestClassifier(200, min_samples_leaf=3, random_state=0)
    forest.fit(features.loc["train"].to_numpy(), y.loc["train"])
    score = forest.predict_proba(features.loc["test"].to_numpy())[:, 1]
    race = both.race.loc["test"]
    keep = race.isin(["White", "Black"]).to_numpy()
    return frame(y.loc["test"][keep], score[keep], race[keep])


def heart(seed=0):
    """Heart disease of men and women (Cleveland), scored by a forest that does not see sex."""
    table = pd.read_csv(DATA / "processed.cleveland.data", header=None, na_values="?")
    y, sex = (table[13] > 0).astype(int), table[1].map({1.0: "male", 0.0: "female"})
    features = table.drop(columns=[1, 13]).fillna(table.median())
    order = np.random.default_rng(seed).permutation(len(y))
    a, b = order[: len(y) // 2], order[len(y) // 2 :]
    forest = RandomForestClassifier(200, min_samples_leaf=3, random_state=seed)
    forest.fit(features.iloc[a], y.iloc[a])
    return frame(y.iloc[b], forest.predict_proba(features.iloc[b])[:, 1], sex.iloc[b])


def employment(rows=slice(None), *, adults=False):
    """Employment in Massachusetts 2015, with the scores of a model trained on 2014."""
    columns = ["employed", "predicted_probability", "SEX", "AGEP"]
    table = pd.read_parquet(DATA / "acs_employment_MA_reference.parquet", columns=columns)
    table = table[table.AGEP >= 16].sample(15_000, random_state=0) if adults else table[rows]
    sex = table.SEX.astype(str).map({"1": "men", "2": "women"})
    return frame(table.employed, table.predicted_probability, sex)


def compas():
    """Two-year recidivism by decile, African-American and Caucasian defendants."""
    table = pd.read_csv(DATA / "compas-scores-two-years.csv")
    table = table[table.race.isin(["African-American", "Caucasian"])]
    return frame(table.two_year_recid, table.decile_score / 10, table.race)


def union():
    """Union membership in the year after, of women seen several times, scored by a regression."""
    table = pd.read_csv(DATA / "nlswork_panel.csv.gz")
    table = table[table.race.isin([1, 2])].dropna(subset=["union"])
    columns = ["age", "grade", "ttl_exp", "tenure", "hours", "south", "c_city", "not_smsa"]
    table = table.dropna(subset=columns)
    people = table.idcode.unique()
    chosen = np.random.default_rng(0).choice(people, len(people) // 2, replace=False)
    train = table.idcode.isin(chosen)
    model = LogisticRegression(max_iter=2000)
    scale = table[columns].std()
    model.fit(table.loc[train, columns] / scale, table.loc[train, "union"])
    rest = table[~train]
    score = model.predict_proba(rest[columns] / scale)[:, 1]
    result = frame(rest["union"], score, rest.race.map({1: "White", 2: "Black"}))
    return result.assign(person=rest.idcode.to_numpy())


def frame(y, score, group):
    return pd.DataFrame(
        {
            "y": np.asarray(y, int),
            "score": np.asarray(score, float),
            "group": np.asarray(group, str),
        }
    )


def p_values(name, table, *, bandwidth="auto", grid=None, **options):
    """P-values of the default test, and of the paper's differences with a max-t adjustment."""
    audit = eq.Audit(table, group="group", y_true="y", y_score="score", **options)
    unit = {"unit": "cluster"} if options else {}
    result = audit.predictive_parity(bandwidth=bandwidth, grid=grid, **unit)
    pair = result.details["pairs"][0]
    keys = ("max_t_p_value", "cvm_p_value", "cusum_p_value")
    values = [pair[key] for key in keys] + [paper_max_t(table, grid)]
    print(name, len(table), [round(v, 4) for v in values], len(pair["grid"]), file=sys.stderr)
    return [name, len(table), *values, len(pair["grid"]), pair["average_difference"]]


def paper_max_t(table, grid):
    """The paper's studentised differences, their largest compared with its normal law.

    The paper adjusts by Bonferroni; so does `method="paper"`.
    """
    codes = np.unique(table.group, return_inverse=True)[1]
    cluster = table.person.to_numpy() if "person" in table else None
    unit = "row" if cluster is None else "cluster"
    cells = ScoreCells.from_rows(
        table.y.to_numpy(float), table.score.to_numpy(), codes, cluster=cluster, unit=unit
    )
    mass, total = cells.sums()
    points = score_grid(cells.support, mass.sum(axis=0), grid).points
    n_units = int(cells.units_in_group().sum())
    widths = paper_bandwidth(points, n_units)
    curves = [smoother(points, cells.support, m, widths, degree=0) for m in mass]
    block = difference_block(curves, points, cells.support, total)
    moments = influence_moments(cells, [block])
    estimate = curves[1].level @ total[1] - curves[0].level @ total[0]
    se = np.sqrt(np.diag(moments.covariance))
    draws = gaussian_draws(moments.covariance / np.outer(se, se), rng=0)
    largest = np.array([np.abs(estimate / se).max()])
    return float(tail_share(np.abs(draws).max(axis=1), largest)[0])


def tables(name, table, protocol, n_boot, seed=1):
    """Metrics after each calibrator; "paper" resamples before it splits, "clean" after."""
    rng = np.random.default_rng(seed)
    codes = np.unique(table.group, return_inverse=True)[1]
    y, score, n = table.y.to_numpy(), table.score.to_numpy(), len(table)
    found = {method: [] for method in METHODS}
    while len(found["baseline"]) < n_boot:
        if protocol == "paper":
            rows = rng.permutation(rng.integers(n, size=n))
            fit, test = rows[: n // 2], rows[n // 2 :]
        else:
            rows = rng.permutation(n)
            fit = rng.choice(rows[: n // 2], n // 2)
            test = rng.choice(rows[n // 2 :], n - n // 2)
        try:
            got = {method: quality(method, y, score, codes, fit, test) for method in METHODS}
        except DataError:
            continue  # a half without one of the classes in a group; happens on Heart only
        for method in METHODS:
            found[method].append(got[method])
    rows = []
    for method in METHODS:
        values = np.array(found[method])
        rows.append([name, protocol, method, *values.mean(axis=0), *values.std(axis=0, ddof=1)])
        print(rows[-1][:3], values.mean(axis=0).round(3), file=sys.stderr)
    return rows


def quality(method, y, score, codes, fit, test):
    new, old = score[test], score[fit]
    if method != "baseline":
        # Bootstrap halves of Heart have about 20 women: every group gets a map of its own here.
        calibrator = GroupCalibrator(method, min_group_size=0, min_class_count=0)
        calibrator.fit(old, y[fit], group=codes[fit])
        new = calibrator.predict(new, group=codes[test])
        old = calibrator.predict(old, group=codes[fit])
    points = np.quantile(old, GRID_LEVELS)
    result = score_quality(y[test], new, codes[test], points=points, n_bins=10)
    return [getattr(result, metric) for metric in METRICS]


def write(name, header, rows):
    with (HERE / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([[f"{v:.4f}" if isinstance(v, float) else v for v in row] for row in rows])


def main():
    warnings.simplefilter("ignore", SmallGroupWarning)
    income, deciles = adult(), compas()
    # Ten values and 21 quantiles: most points repeat, and count as often in the CvM statistic.
    repeated = np.quantile(deciles.score, GRID_LEVELS).tolist()
    tests = [
        p_values("Adult, White - Black", income),
        p_values("COMPAS deciles, Caucasian - African-American", deciles),
        p_values("COMPAS deciles, smoothed", deciles, bandwidth=0.0529, grid=repeated),
        p_values("Massachusetts employment, women - men, adults", employment(adults=True)),
        p_values("the same, all 68,785 rows", employment()),
        p_values("NLS union, White - Black", union(), cluster="person"),
    ]
    header = ["data", "rows", "max_t", "cvm", "cusum", "paper", "points", "average_difference"]
    write("predictive_rate_parity_tests.csv", header, tests)
    if "--tests" in sys.argv:
        return
    rows = []
    for protocol in ("paper", "clean"):
        rows += tables("Adult", income, protocol, 60)
        rows += tables("Heart", heart(), protocol, 200)
        rows += tables("Heart, another split", heart(1), protocol, 200)
        rows += tables("Massachusetts", employment(slice(15_000)), protocol, 60)
    columns = [*METRICS, *(f"{metric}_sd" for metric in METRICS)]
    write("predictive_rate_parity_tables.csv", ["data", "protocol", "method", *columns], rows)


if __name__ == "__main__":
    main()
