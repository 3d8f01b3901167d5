"""Audits of planned designs, many at once: how often each shows what it was planned to show."""

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from equipoise.audits.disparity.unknown_shapes import units_of_unknown_shape
from equipoise.design import power
from equipoise.stats.disparity.means import MeanComparison
from equipoise.stats.small_samples import joint_bonferroni, one_sided_fold, pooled_shape
from equipoise.stats.small_samples import joint_test as sum_of_squares
from equipoise.stats.unit_sums import UnitSums

ANSWERS, CHANCES = np.arange(1.0, 6.0), np.array([0.45, 0.25, 0.15, 0.1, 0.05])
FROZEN = {
    "weibull 0.8": stats.weibull_min(0.8),
    "weibull 1.5": stats.weibull_min(1.5),
    "negative binomial": stats.nbinom(1.5, 1.0 / 3.0),
    "beta 2, 5": stats.beta(2.0, 5.0),
    "t4": stats.t(4),
    "laplace": stats.laplace(),
    "lognormal 0.5": stats.lognorm(0.5),
    "normal": stats.norm(),
    "uniform": stats.uniform(),
    "inverse gaussian": stats.invgauss(1.0),
    "lomax 8": stats.lomax(8.0),
    "gumbel": stats.gumbel_r(),
    "logistic": stats.logistic(),
    "t6": stats.t(6),
    "poisson 2": stats.poisson(2.0),
    "binomial 10, 0.9": stats.binom(10, 0.9),
    "Likert": stats.rv_discrete(values=(ANSWERS, CHANCES)),
}
"""Laws of values; "left Likert" is the mirror image."""


def standard(rng, law, shape):
    """Values with mean zero and standard deviation one, and their skewness."""
    sign = -1.0 if law.startswith("left ") else 1.0
    frozen = FROZEN[law.removeprefix("left ")]
    values = frozen.rvs(size=shape, random_state=rng)
    return sign * (values - frozen.mean()) / frozen.std()


def skewness_of(law):
    """Skewness of a law; that of t4 is zero by symmetry."""
    sign = -1.0 if law.startswith("left ") else 1.0
    return sign * float(np.nan_to_num(FROZEN[law.removeprefix("left ")].stats(moments="s")))


@dataclass(frozen=True, kw_only=True)
class Planned:
    """Groups of independent units.

    `units` are those of each group. `gap` is the true disparity of the first, which is compared
    with `target`; of "inequality" it holds the means of all groups, and `sd` their standard
    deviations. Clusters have `rows` on average with the coefficient of variation `rows_cv` and the
    correlation `icc`; rows have weights with `weight_cv`. With `random` group sizes vary as in a
    sample.
    """

    question: str
    law: str
    units: tuple
    gap: object
    target: str = "population"
    sd: object = 1.0
    margin: float = 0.0
    alternative: str = "greater"
    rows: int = 1
    rows_cv: float = 0.0
    icc: float = 0.0
    weight_cv: float = 0.0
    target_se: float = 0.0
    scale: str = "difference"
    random: bool = False

    def __str__(self):
        """Name of the design."""
        standard = Planned(question="", law="", units=(), gap=0.0)
        names = ("target", "margin", "alternative", "rows", "rows_cv", "icc", "weight_cv")
        names += ("target_se", "scale", "random", "sd")
        extra = [
            f"{name} {getattr(self, name)}"
            for name in names
            if getattr(self, name) != getattr(standard, name)
        ]
        first = f"{self.question}, {self.law}, {self.units}, gap {self.gap}"
        return ", ".join([first, *extra])

    def plan(self):
        """What planning promises."""
        part = self.icc / (self.icc + (1.0 - self.icc) / self.rows) if self.rows > 1 else 1.0
        options = {
            "target": self.target,
            "margin": self.margin,
            "alternative": self.alternative,
            "target_se": self.target_se,
            "sd": self.sd,
            "skewness": part**1.5 * skewness_of(self.law),
            "adjust": "none",
        }
        if self.rows > 1:
            c = self.rows * (1.0 + self.rows_cv**2)
            options |= {"design_effect": 1.0 + (c - 1.0) * self.icc, "cluster_size": c}
        elif self.weight_cv:
            options["design_effect"] = 1.0 + self.weight_cv**2
        if self.target == "reference":
            options["reference_share"] = self.units[1] / sum(self.units)
        share = [size / sum(self.units) for size in self.units]
        if self.question != "inequality":
            share = share[0] if len(share) > 1 else 1.0 - 1e-9
        n = sum(self.units) * self.rows
        found = power(self.question, n=n, share=share, disparity=self.gap, **options)
        return found.joint if self.question == "inequality" else found.power[0]

    def shown(self, rng, n_tables):
        """Whether the audit of each simulated table shows what is asked."""
        found, size = self._compared(rng, n_tables)
        units = found.units()
        if self.question == "inequality":
            root = found.root(np.zeros(units.df.shape))
            test = sum_of_squares(root, share=size)
            few = np.isnan(root).any(axis=1)
            return np.where(few, joint_bonferroni(root).p_value, test.p_value) <= 0.05

        def tails(null):
            root = found.root(np.full(units.df.shape, null))[:, 0]
            return special.ndtr(-root), special.ndtr(root)

        if self.question == "disparity":
            return 2.0 * np.minimum(*tails(1.0 if self.scale == "ratio" else 0.0)) <= 0.05
        n_eff = np.minimum(units.n_eff, units.n_eff_target)
        fold = np.where(units_of_unknown_shape(units), one_sided_fold(n_eff, units.skewness), 1.0)[
            :, 0
        ]
        if self.question == "certify":
            return fold * np.maximum(tails(-self.margin)[0], tails(self.margin)[1]) <= 0.05
        upper = self.alternative == "greater"
        return fold * (tails(self.margin)[0] if upper else tails(-self.margin)[1]) <= 0.05

    def _compared(self, rng, n_tables):
        u, w = self._tables(rng, n_tables)
        sums = UnitSums.of_units(u, w)
        shape = pooled_shape(sums).expand()
        if self.target == "known":
            value = self.target_se * rng.standard_normal((n_tables, 1))
            se = np.full(value.shape, self.target_se)
            return MeanComparison.with_known(sums, shape, value, se=se), sums.w
        other = sums.sum().expand(-1) - sums
        if self.target == "reference":
            other = sums[:, [1] * len(self.units)]
        population = self.target == "population"
        compared = MeanComparison.with_rest(
            sums, other, shape, population=population, scale=self.scale
        )
        return compared, sums.w

    def _tables(self, rng, n_tables):
        """Totals of units: those of ones and their weights."""
        sizes = np.array(self.units)
        most = 2 * max(sizes) if self.random else max(sizes)
        shape = (n_tables, len(sizes), most)
        present = np.broadcast_to(sizes, shape[:2])
        if self.random:
            present = rng.multinomial(sizes.sum(), sizes / sizes.sum(), n_tables)
        value, w = standard(rng, self.law, shape), np.ones(shape)
        if self.weight_cv:
            w = rng.lognormal(0.0, np.sqrt(np.log1p(self.weight_cv**2)), shape)
        if self.rows > 1:
            w = np.full(shape, float(self.rows))
            if self.rows_cv:
                a = self.rows_cv**-2.0
                w = np.maximum(1.0, np.round(rng.gamma(a, self.rows / a, shape)))
            noise = rng.standard_normal(shape) / np.sqrt(w)
            value = np.sqrt(self.icc) * value + np.sqrt(1.0 - self.icc) * noise
        mean = np.zeros(len(sizes))
        if self.question == "inequality":
            mean[:] = self.gap
        else:
            mean[0] = self.gap
            if self.target == "population":
                mean[1:] = -self.gap * sizes[0] / sizes[1:].sum()
        mean += 10.0 if self.scale == "ratio" else 0.0
        w = w * (np.arange(most) < present[..., None])
        sd = np.broadcast_to(self.sd, sizes.shape)
        return w * (mean[:, None] + sd[:, None] * value), w
