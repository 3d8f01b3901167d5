"""What others say about the same numbers: `python others.py` writes the page.

Each entry asks one peer about one thing and yields pairs (ours, theirs). Values of R were made by
`others.R`, `stats/regulator.R`, `stats/few_units.R` and `stats/delong.R`, those of AIF360 and
Aequitas by `peers.py`; the numbers of other libraries are those of their documentation.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy import stats

import equipoise as eq
from equipoise.data.table import Quantity
from equipoise.stats import adjusted_p_values, el_test, max_t, stratified_disparity_test
from equipoise.stats.binomial import clopper_pearson
from equipoise.stats.disparity.contrasts import PairedChange, WilsonRate
from equipoise.stats.disparity.extremes import IndependentLaw, range_quantile, range_tail
from equipoise.stats.disparity.impact import boschloo_p_value, companions, fisher_p_value
from equipoise.stats.disparity.likelihoods import Samples, likelihood
from equipoise.stats.disparity.mantel_haenszel import StratumCounts, generalised_test
from equipoise.stats.disparity.survey import DesignMeans, survey_means
from equipoise.stats.inequality.index import entropy_index
from equipoise.stats.influence import auc_influence
from equipoise.stats.scores.group_quality import group_quality
from equipoise.stats.small_samples import pooled_shape, side_contrast
from equipoise.stats.unit_sums import UnitSums
from reference.peers import table as rule_table
from support.asking import answer_of

__all__ = ["ENTRIES", "Entry", "largest", "page"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
R = json.loads((HERE / "others.json").read_text())
REGULATOR = json.loads((HERE / "stats" / "regulator.json").read_text())
FEW_UNITS = json.loads((HERE / "stats" / "few_units.json").read_text())
OBSERVED = json.loads((HERE / "strd.json").read_text())
PEERS = json.loads((HERE / "peers.json").read_text())
DELONG = json.loads((HERE / "stats" / "delong.json").read_text())
I = np.arange(1, 241)
Y = ((I * I * 7 + I) % 11 < 4).astype(float)
U, D, W = (I * 7919) % 101 / 10, 1.0 + (I * 31) % 17, 1.0 + (I * 13) % 5
PAGE = ROOT / "docs" / "asked-of-others.md"

Pairs = Iterator[tuple[object, object]]


@dataclass(frozen=True)
class Entry:
    """One peer, one thing, the largest relative difference that is explained."""

    who: str
    what: str
    tolerance: float
    reason: str
    pairs: Callable[[], Pairs]
    needs: str | None = None


ENTRIES: list[Entry] = []


def asked(who, what, *, tolerance=1e-9, reason="", needs=None):
    def kept(pairs):
        ENTRIES.append(Entry(who, what, tolerance, reason, pairs, needs))
        return pairs

    return kept


def largest(entry):
    """Return the number of numbers compared and the largest difference, relative above 1."""
    ours, theirs = (
        np.concatenate([np.ravel(np.asarray(pair[side], dtype=float)) for pair in entry.pairs()])
        for side in (0, 1)
    )
    return len(ours), float(np.max(np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1.0)))


@asked("R `fisher.test`", "p-value of a 2 x 2 table")
def _fisher():
    for one in REGULATOR["pairs"]:
        yield fisher_p_value(*one["table"]), one["fisher"]


@asked("R `epitools::tab2by2.test`", "p-value of a 2 x 2 table")
def _epitools():
    for one in REGULATOR["pairs"]:
        yield fisher_p_value(*one["table"]), one["epitools"]


@asked(
    "R `epitools::tab2by2.test`",
    "mid-P of a 2 x 2 table",
    tolerance=0.01,
    reason="twice the smaller tail there; here all tables that are no more likely",
)
def _mid_p():
    for one in R["midp"]:
        yield fisher_p_value(*one["table"], mid_p=True), one["p"]


@asked("R `prop.test`", "chi-square of two proportions, no correction")
def _prop_test():
    for one in REGULATOR["pairs"]:
        x1, n1, x2, n2 = one["table"]
        yield companions(np.array([x1, x2]), np.array([n1, n2]), 1).z[0] ** 2, one["chi_square"]


@asked("R `binom.test`", "Clopper-Pearson limits")
def _binom_test():
    for one in R["binom"]:
        ends = clopper_pearson(one["x"], one["n"], tail=0.025)
        yield ends, (one["low"], one["high"])


@asked("R `mcnemar.test`, `binom.test`", "change of decisions on the same rows: z squared; exact p")
def _mcnemar():
    for one in R["mcnemar"]:
        _, gained, lost, _ = one["table"]
        counts = (np.array([float(x)]) for x in (gained, lost, sum(one["table"])))
        gained, lost, n = counts
        by_score = PairedChange(gained, lost, n, exact_below=0).root(np.zeros(1))
        yield by_score[0] ** 2, one["statistic"]
        exact = PairedChange(gained, lost, n, exact_below=10**9).root(np.zeros(1))
        if abs(by_score[0]) > abs(exact[0]) > 0:
            yield 2 * stats.norm.sf(abs(exact[0])), one["exact"]


def _berkeley():
    names = ("x1", "n1", "x0", "n0")
    return StratumCounts(**{name: np.array(REGULATOR["ucb"][name], dtype=float) for name in names})


@asked("R `mantelhaen.test`", "given strata: chi-square with and without correction, exact p")
def _mantelhaen():
    counts, known = _berkeley(), REGULATOR["ucb"]
    yield counts.cochran_test().statistic, known["cmh"]
    yield counts.cochran_test(correct=True).statistic, known["cmh_yates"]
    yield counts.exact_p_value(), known["exact"]
    several = REGULATOR["several"]
    ones, zeros = (np.array(several[name], dtype=float).T for name in ("ones", "zeros"))
    yield generalised_test(ones + zeros, ones, ones.sum(axis=1)).statistic, several["statistic"]


def _permutation(value, group, strata):
    shape = (int(strata.max()) + 1, int(group.max()) + 1)
    size, total = np.zeros(shape), np.zeros(shape)
    np.add.at(size, (strata, group), 1.0)
    np.add.at(total, (strata, group), value)
    square = np.bincount(strata, value**2)
    return generalised_test(size, total, square).statistic


@asked("R `coin`", "permutation chi-square: two and three groups, real outcome, strata, `cmh_test`")
def _coin():
    one = np.zeros(240, dtype=int)
    yield _permutation(Y, I % 2, one), R["coin"]["two"]
    yield _permutation(Y, I % 3, one), R["coin"]["three"]
    yield _permutation(U, I % 2, one), R["coin"]["real"]
    yield _permutation(Y, I % 2, (I - 1) // 60), R["coin"]["strata"]
    yield _berkeley().cochran_test().statistic, R["coin"]["cmh"]


@asked("R `metafor::rma.mh`", "Mantel-Haenszel odds ratio, ratio, difference; Tarone's test")
def _metafor():
    for name, part in (("OR", "odds_ratio"), ("RR", "ratio"), ("RD", "difference")):
        pooled, known = getattr(_berkeley(), part), REGULATOR["ucb"][name]
        yield np.log(pooled.value) if pooled.logarithm else pooled.value, known["value"]
        yield pooled.se, known["se"]
    yield _berkeley().homogeneity_test().statistic, REGULATOR["ucb"]["OR"]["TA"]


@asked(
    "R `multcomp`",
    "z of contrasts; single-step p-values to a control",
    tolerance=0.01,
    reason="ours are 50,000 draws: a standard error of .002 at p = .5",
)
def _multcomp():
    means = DesignMeans(
        value=np.array([0.30, 0.36, 0.25, 0.41]),
        covariance=np.diag([0.0012, 0.0010, 0.0020, 0.0011]),
        df=10**12,
        n=np.full(4, 100),
    )
    first, second = np.array([1, 2, 3]), np.zeros(3, dtype=int)
    z = means.pairs(first, second, "difference").root(np.zeros(3))
    yield z, R["single_step"]["z"]
    yield max_t(means.pair_correlation(first, second)).p_values(z), R["single_step"]["p"]


@asked("R `ptukey`, `qtukey`", "studentised range", tolerance=1e-4, reason="`qtukey` stops at 1e-4")
def _tukey():
    known = REGULATOR["range"]
    for k, q95, q99, tail in zip(*(known[c] for c in ("k", "q95", "q99", "tail")), strict=True):
        yield [range_quantile(0.95, k), range_quantile(0.99, k)], [q95, q99]
        yield range_tail(np.array(4.0), k), tail


@asked("R `mvtnorm`", "Dunnett's value", tolerance=1e-4, reason="`qmvnorm` stops at 1e-4")
def _dunnett():
    n = np.array(REGULATOR["dunnett"]["n"], dtype=float)
    value = IndependentLaw.of(np.ones(4), 1.0 / n, "difference").one_sided(0.95)[0]
    yield value, REGULATOR["dunnett"]["value"]


@asked("R `survey`", "means and covariances: strata, clusters, weights, fpc, lonely units")
def _survey():
    rows = {name: np.array([row[name] for row in REGULATOR["survey"]["rows"]]) for name in "ygwhN"}
    psu = np.array([row["psu"] for row in REGULATOR["survey"]["rows"]])
    for design in ("plain", "fpc", "rows_as_units", "adjust", "certainty"):
        lonely = design in {"adjust", "certainty"}
        kept = ~((rows["h"] == 1) & (psu > 7)) if lonely else np.ones(len(psu), dtype=bool)
        options = {"lonely": design} if lonely else {}
        if design == "fpc":
            options["population"] = rows["N"]
        if design != "rows_as_units":
            options["cluster"] = psu[kept]
        y, g, h, w = (rows[name][kept] for name in "yghw")
        means = survey_means(y, g, strata=h, weight=w, **options)
        known = REGULATOR["survey"][design]
        yield means.value, known["mean"]
        yield means.covariance, known["cov"]
        yield means.df, known["df"]


def _ratio_sums():
    return UnitSums.from_rows(W * U, W * D, np.zeros(240, dtype=int), cluster=(I - 1) // 6)


@asked("R `survey::svyratio`", "ratio of means with clusters and weights, standard error")
def _svyratio():
    sums, n = _ratio_sums(), R["ratio"]["clusters"]
    yield sums.mean, R["ratio"]["value"]
    yield np.sqrt(sums.scatter * n / (n - 1)), R["ratio"]["se"]


@asked(
    "growthbook, tea-tasting",
    "variance of a ratio of means by the delta method, from their formula",
)
def _delta():
    sums = UnitSums.from_rows(U, D, np.zeros(240, dtype=int))
    cov = np.cov(U, D)
    m, d = U.mean(), D.mean()
    theirs = (cov[0, 0] / d**2 - 2 * m * cov[0, 1] / d**3 + m**2 * cov[1, 1] / d**4) / 240
    yield sums.scatter * 240 / 239, theirs


@asked("R `clubSandwich`, `survey`", "few units: CR0, its Satterthwaite degrees, CR1")
def _club_sandwich():
    for one in FEW_UNITS["weighted"]:
        i = np.arange(1, one["n"] + 1)
        x, w = (i * 7919) % 101 / 10 + i % 3, (1.0 + (i * 31) % 17) ** one["power"]
        sums = UnitSums.of_units(w * x, w, centre=5.0)
        yield [sums.mean, sums.scatter, sums.df], [one["mean"], one["cr0"], one["df_cr0"]]
    for one in FEW_UNITS["clustered"]:
        i = np.arange(1, one["n"] + 1)
        unit = np.repeat(i, 1 + (i * 5) % one["biggest"])
        k = np.arange(1, len(unit) + 1)
        y = (k * 104729) % 97 / 10 + (unit * 13) % 7
        sums = UnitSums.from_rows(y, np.ones(len(y)), np.zeros(len(y), int), cluster=unit)
        yield sums.scatter * one["n"] / (one["n"] - 1), one["cr1"]


@asked(
    "R `clubSandwich`",
    "variance CR2 of a mean of few weighted units",
    tolerance=0.02,
    reason="both are unbiased for units of one variance and weigh residuals differently; equal"
    " without weights",
)
def _cr2():
    for one in FEW_UNITS["weighted"]:
        i = np.arange(1, one["n"] + 1)
        x, w = (i * 7919) % 101 / 10 + i % 3, (1.0 + (i * 31) % 17) ** one["power"]
        sums = UnitSums.of_units(w * x, w, centre=5.0).expand(-1)
        yield side_contrast(sums, pooled_shape(sums)).variance, one["cr2"]


def _two_scores():
    i = np.arange(400)
    y = ((i * 7919) % 10 < 4).astype(float)
    return y, ((i * 31) % 50) / 50 + 0.3 * y, ((i * 17) % 20) / 20 + 0.4 * y


@asked("R `pROC`", "areas under two ROC curves, DeLong's variances, covariance and z")
def _proc():
    y, a, b = _two_scores()
    one = np.ones(400)
    (first, psi_a), (second, psi_b) = (auc_influence(y, s, one, one) for s in (a, b))
    yield [first, second], [DELONG["auc"], DELONG["auc_b"]]
    yield [psi_a @ psi_a, psi_b @ psi_b], [DELONG["variance"], DELONG["variance_b"]]
    yield psi_a @ psi_b, DELONG["covariance"]
    yield (first - second) / np.sqrt(np.sum((psi_a - psi_b) ** 2)), DELONG["paired_z"]


@asked(
    "R `pROC`",
    "z of a paired difference as an audit prints it",
    tolerance=0.01,
    reason="ours is on a t law with the effective number of rows as degrees, mapped to the normal"
    " scale",
)
def _paired_areas():
    y, a, b = _two_scores()
    found = group_quality(y, a, np.zeros(400, int), baseline=b, metrics=("auc",))
    yield found.differences[0].statistic, DELONG["paired_z"]


@asked("R `lm`, `t.test`", "stratum effects: coefficient; matched pairs: p, interval")
def _lm():
    d = REGULATOR["regression"]
    test = stratified_disparity_test(d["y"], np.array(d["a"]), np.array(d["k"]), reference=0)
    yield test.estimate[0], d["coefficient"]
    d = REGULATOR["paired"]
    y = np.concatenate([d["first"], d["second"]])
    side, pair = np.repeat([1, 0], 20), np.tile(np.arange(20), 2)
    one = stratified_disparity_test(y, side, pair, reference=0).comparisons[0]
    yield [one.p_value, *one.confidence_interval()], [d["p"], d["low"], d["high"]]


@asked(
    "scipy `boschloo_exact`",
    "p-value of a 2 x 2 table",
    tolerance=1e-8,
    reason="scipy searches the common rate with its own optimiser",
)
def _boschloo():
    for one in REGULATOR["pairs"]:
        x1, n1, x2, n2 = one["table"]
        known = stats.boschloo_exact([[x1, x2], [n1 - x1, n2 - x2]], n=256).pvalue
        yield boschloo_p_value(x1, n1, x2, n2), known


@asked("statsmodels `proportion_confint`", "Clopper-Pearson and Wilson limits", needs="statsmodels")
def _proportion():
    from statsmodels.stats.proportion import proportion_confint

    for x, n in ((0, 10), (3, 20), (81, 263), (10, 10)):
        yield clopper_pearson(x, n, tail=0.025), proportion_confint(x, n, method="beta")
        wilson = WilsonRate(np.array([float(x)]), np.array([float(n)]))
        limits = wilson.interval(np.array([stats.norm.isf(0.025)]))
        yield np.ravel(limits), proportion_confint(x, n, method="wilson")


@asked("statsmodels `StratifiedTable`", "odds ratio, chi-square, homogeneity", needs="statsmodels")
def _stratified():
    from statsmodels.stats.contingency_tables import StratifiedTable

    c = _berkeley()
    rows = zip(c.x1, c.n1, c.x0, c.n0, strict=True)
    known = StratifiedTable([np.array([[a, n - a], [b, m - b]]) for a, n, b, m in rows])
    yield c.odds_ratio.value, known.oddsratio_pooled
    yield c.cochran_test().statistic, known.test_null_odds().statistic
    yield c.homogeneity_test().statistic, known.test_equal_odds(adjust=True).statistic


@asked(
    "statsmodels `emplike`",
    "empirical likelihood ratio of a mean, and its p-value on F instead of chi-square",
    tolerance=1e-7,
    reason="both stop their search for the multiplier",
    needs="statsmodels",
)
def _emplike():
    from statsmodels.emplike.api import DescStat

    for value in (4.5, 5.0, 5.6):
        known = DescStat(U).test_mean(value, result_object=False)[0]
        yield likelihood(Samples.of_means(U), np.array([value])).statistic, known
        yield el_test(U, value).p_value, stats.f.sf(known, 1, len(U) - 1)


@asked("statsmodels `multipletests`", "Holm, BH, BY, Bonferroni", needs="statsmodels")
def _multipletests():
    from statsmodels.stats.multitest import multipletests

    p = (I[:40] * 37 % 101 + 1) / 2000
    names = {"holm": "holm", "bh": "fdr_bh", "by": "fdr_by", "bonferroni": "bonferroni"}
    for ours, theirs in names.items():
        yield adjusted_p_values(p, ours), multipletests(p, method=theirs)[1]


def _alternating(first, low, high):
    return [first, *[low, high] * 500]


def _digits_of_pi(size):
    """Return the first digits as NIST has them, by Machin's formula in whole numbers."""
    unit = 10 ** (size + 9)

    def arctan_of_inverse(k):
        term = total = unit // k
        for n in range(3, 3 * size, 2):
            term = -term // (k * k)
            total += term // n
        return total

    number = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    # In two halves: Python writes whole numbers of at most 4,300 digits.
    first, second = divmod(number // 10**10, 10 ** (size // 2))
    digits = [int(digit) for digit in f"{first}{second:0{size // 2}d}"]
    digits[956] = 3  # In the file of NIST, where the digit of pi is 8.
    return digits


STRD = {
    "PiDigits": (lambda: _digits_of_pi(5000), 4.53480000000000, 2.86733906028871),
    "Lottery": (lambda: OBSERVED["Lottery"], 518.958715596330, 291.699727470969),
    "Lew": (lambda: OBSERVED["Lew"], -177.435000000000, 277.332168044316),
    "Mavro": (lambda: OBSERVED["Mavro"], 2.00185600000000, 0.000429123454003053),
    "Michelso": (lambda: R["michelso"], 299.852400000000, 0.0790105478190518),
    "NumAcc1": (lambda: [10000001, 10000003, 10000002], 10000002.0, 1.0),
    "NumAcc2": (lambda: _alternating(1.2, 1.1, 1.3), 1.2, 0.1),
    "NumAcc3": (lambda: _alternating(1000000.2, 1000000.1, 1000000.3), 1000000.2, 0.1),
    "NumAcc4": (lambda: _alternating(10000000.2, 10000000.1, 10000000.3), 10000000.2, 0.1),
}
"""NIST's Statistical Reference Datasets: their rows by a rule, from R or as observed; mean and
deviation as certified."""


@asked(
    "NIST StRD univariate",
    "mean and standard deviation of " + ", ".join(STRD) + ", through a scan of the table",
    tolerance=1e-8,
    reason="NumAcc4 varies in the ninth digit: sixteen digits hold eight of its deviation",
)
def _strd():
    for make, mean, deviation in STRD.values():
        x = np.array(make(), dtype=float)
        table = eq.Audit(pa.table({"x": x, "g": ["a"] * len(x)}), group="g", y_score="x").table
        pilot = float(x[0])
        value = table.y_score - pilot
        cells = answer_of(table.sums([Quantity.of(value)], {"y_score": "number"}))
        total, square = cells.total[0, 0], cells.product[0, 0, 0]
        yield pilot + total / len(x), mean
        yield np.sqrt((square - total**2 / len(x)) / (len(x) - 1)), deviation


FAIRLEARN = {
    "y": [0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1],
    "p": [0, 0, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0],
    "g": list("bbabbcccaacabccbcc"),
}


@asked(
    "fairlearn, user guide, `MetricFrame`",
    "rates overall and by group, differences to overall",
    tolerance=1e-6,
    reason="documented to six digits",
)
def _fairlearn():
    audit = eq.Audit(FAIRLEARN, group="g", y_true="y", y_pred="p")
    for metric, overall, groups in (
        ("tpr", 0.5, [0.5, 0.6, 0.4]),
        ("fpr", 0.666667, [1.0, 0.0, 0.666667]),
        ("selection_rate", 0.555556, [0.75, 0.5, 0.5]),
    ):
        found = audit.disparity(metric, reference=0.5).findings
        yield [0.5 + finding.estimate for finding in found], groups
        gaps = audit.disparity(metric).findings
        yield [finding.estimate for finding in gaps], np.array(groups) - overall


@asked(
    "AIF360, `demo_json_explainers`",
    "German credit by sex: mean difference, disparate impact",
    needs="german.data",
)
def _aif360():
    from support.tables import german_credit

    audit = eq.Audit(german_credit(), group="sex", y_pred="good")
    gap, ratio = (
        audit.disparity("selection_rate", reference={"sex": "male"}, scale=scale, method="plug_in")
        for scale in ("difference", "ratio")
    )
    (one,) = (f for f in gap.findings if f.group == "sex=female")
    (two,) = (f for f in ratio.findings if f.group == "sex=female")
    yield one.estimate, -0.07480130902290782
    yield two.estimate, 0.8965673282047968


def _against_a(audit, metric, scale):
    """Return the groups other than `a` beside it, in the order of their names."""
    found = audit.disparity(metric, reference={"g": "a"}, scale=scale, method="plug_in").findings
    ours = {finding.group: finding.estimate for finding in found}
    return [ours[group] for group in sorted(ours) if group != "g=a"]


@asked(
    "AIF360 0.6.1, `ClassificationMetric`",
    "differences and ratios of eight rates, with and without weights",
)
def _aif360_rates():
    rows = rule_table()
    rows["g"] = ["a" if group == "a" else "other" for group in rows["g"]]
    for name, weight in (("aif360", None), ("aif360 weighted", "w")):
        audit = eq.Audit(rows, group="g", y_true="y", y_pred="p", weight=weight)
        for key, theirs in PEERS[name].items():
            metric, _, scale = key.partition(" ")
            if metric not in {"entropy", "theil", "between"}:
                yield _against_a(audit, metric, scale or "difference"), theirs


@asked("AIF360 0.6.1", "generalised entropy index, Theil's index, part between two groups")
def _aif360_entropy():
    rows, theirs = rule_table(), PEERS["aif360"]
    benefit = np.array(rows["p"]) - np.array(rows["y"]) + 1.0
    group = np.array([int(name == "a") for name in rows["g"]])
    yield entropy_index(benefit, order=2.0), theirs["entropy"]
    yield entropy_index(benefit, order=1.0), theirs["theil"]
    # The part between groups is the index of a table in which everybody has the group's mean.
    means = np.array([benefit[group == k].mean() for k in (0, 1)])
    yield entropy_index(means[group], order=2.0), theirs["between"]


@asked("Aequitas 1.1.0, `Group`, `Bias`", "ten rates of three groups; nine ratios to one of them")
def _aequitas_rates():
    audit = eq.Audit(rule_table(), group="g", y_true="y", y_pred="p")
    words = {"precision": "ppv", "pprev": "selection_rate", "prev": "outcome_rate"}
    for name, theirs in PEERS["aequitas"]["rates"].items():
        found = audit.disparity(words.get(name, name), reference=0.5, method="plug_in").findings
        ours = {finding.group: 0.5 + finding.estimate for finding in found}
        yield [ours[f"g={group}"] for group in "abc"], theirs
    for name, theirs in PEERS["aequitas"]["ratios"].items():
        yield _against_a(audit, words.get(name, name), "ratio"), theirs[1:]


@asked("AIF360, SageMaker Clarify, jurity", "generalised entropy index, from their formula")
def _entropy():
    b = (I % 3).astype(float)
    x = b / b.mean()
    yield entropy_index(b, order=2.0), np.mean(x**2 - 1) / 2
    positive = np.where(x > 0, x, 1.0)
    yield entropy_index(b, order=1.0), np.mean(x * np.log(positive))


@asked(
    "Aequitas, 30 seconds, `compas_for_aequitas`",
    "COMPAS: rows by race, sex and age, number flagged",
    needs="compas-scores-two-years.csv",
)
def _aequitas():
    from support.tables import compas

    documented = {
        "race": [3696, 32, 2454, 637, 18, 377],
        "sex": [1395, 5819],
        "age_cat": [4109, 1576, 1529],
    }
    for column, counts in documented.items():
        audit = eq.Audit(compas(), group=column, y_pred="high")
        found = audit.disparity("selection_rate", reference=0.5, method="plug_in").findings
        yield [finding.n for finding in found], counts
    yield sum(finding.n * (0.5 + finding.estimate) for finding in found), 3317


HEAD = """# Asked of others

What other programs say about the same numbers. A difference is relative for numbers above 1,
absolute below. Values of R are committed with the scripts that made them
([others.R](../tests/reference/others.R), [regulator.R](../tests/reference/stats/regulator.R),
[few_units.R](../tests/reference/stats/few_units.R), [delong.R](../tests/reference/stats/delong.R));
those of AIF360 and Aequitas with [peers.py](../tests/reference/peers.py); other libraries that are
not installed are asked by their documentation or their formula. A
[test](../tests/reference/test_r.py) runs the scripts again where R is installed; another
[test](../tests/reference/test_others.py) repeats every line with every change; the page is written
by

```console
$ PYTHONPATH=tests python tests/reference/others.py
```

| who | what | numbers | largest difference | why not zero |
| --- | --- | --- | --- | --- |"""


def page():
    """Return the page, with the differences measured now."""
    lines = [HEAD]
    for entry in ENTRIES:
        n, difference = largest(entry)
        shown = "0" if difference == 0 else f"{difference:.0e}"
        reason = entry.reason or ("" if difference == 0 else "rounding")
        lines.append(f"| {entry.who} | {entry.what} | {n} | {shown} | {reason} |")
    versions = ", ".join(f"{name} {version}" for name, version in R["versions"].items())
    lines += ["", f"R {R['R']} with {versions}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
