"""The public face: a table with roles, and a method for each question.

A method loads the engines of its question when it is called: ``import equipoise`` stays light.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise._typing import (
    AccuracyOf,
    Adjust,
    CalibrationHypothesis,
    Collapse,
    DisparityMethod,
    EffectAdjust,
    EffectMeasure,
    FlagAlternative,
    ImprovementMethod,
    Inference,
    MarginScale,
    Missing,
    ParityMethod,
    ParityUnit,
    Rest,
    Rng,
    Scale,
    SplitRule,
)
from equipoise.audits.disparity.reference import Reference
from equipoise.data.metrics import Metric
from equipoise.data.roles import Roles
from equipoise.data.table import Table
from equipoise.results.result import AuditResult

if TYPE_CHECKING:
    from equipoise.audits.inequality.benefits import AnyBenefits

__all__ = ["Audit"]


class Audit:
    """A table with roles, ready to be asked.

    Parameters
    ----------
    data : frame, relation, Spark DataFrame, dict of arrays, or path
        pandas, polars and pyarrow tables, a DuckDB relation, a Spark DataFrame, a dict of arrays,
        or the path of a csv or parquet file, a folder of parquet files or a glob.
    group : str or list of str
        Columns whose combinations are compared.
    y_true, y_pred, y_score : str, optional
        Columns of the outcome, the decision and the score, as far as known.
    treatment, effect_pred : str, optional
        Columns of the arm (0 or 1) and the predicted effect; the outcome is `y_true`.
    cluster : str, optional
        Column of the unit that rows repeat; rows of one unit may depend on each other.
    features : list of str, optional
        Covariates for candidate algorithms.
    weight : str, optional
        Column of sampling weights.
    count : str, optional
        Column that says how many identical rows a row stands for.
    positive : object, default 1
        The label that counts as 1, when labels are text.
    missing : {"raise", "drop"}
        What to do with rows in which a column that a question uses is missing.
    bins : mapping of str to list of float, optional
        Cut points for numeric group columns.
    engine : {"duckdb", "spark"}
        What reads a path.

    Examples
    --------
    Does a model approve groups at different rates?

    >>> import equipoise as eq
    >>> audit = eq.Audit({"sex": ["F", "M"] * 50, "approved": [1, 0] * 25 + [0, 1] * 25},
    ...                  group="sex", y_pred="approved")
    """

    def __init__(
        self,
        data: Any,
        *,
        group: str | Sequence[str] = (),
        y_true: str | None = None,
        y_pred: str | None = None,
        y_score: str | None = None,
        treatment: str | None = None,
        effect_pred: str | None = None,
        cluster: str | None = None,
        features: str | Sequence[str] | None = None,
        weight: str | None = None,
        count: str | None = None,
        positive: object = 1,
        missing: Missing = "raise",
        bins: Mapping[str, Sequence[float]] | None = None,
        engine: str = "duckdb",
    ) -> None:
        roles = Roles(
            group=group,  # type: ignore[arg-type]
            y_true=y_true,
            y_pred=y_pred,
            y_score=y_score,
            treatment=treatment,
            effect_pred=effect_pred,
            cluster=cluster,
            features=features or (),  # type: ignore[arg-type]
            weight=weight,
            count=count,
            positive=positive,
            missing=missing,
            bins=bins or {},
        )
        self.table = Table(data, roles, engine=engine)

    def disparity(
        self,
        metric: str | Metric,
        *,
        reference: Reference = "population",
        depth: int | None = None,
        method: DisparityMethod = "auto",
        scale: Scale = "difference",
        simultaneous: bool = False,
        alpha: float = 0.05,
        confidence_level: float = 0.95,
        rng: Rng = None,
    ) -> AuditResult:
        """Say how big each subgroup's gap is, and whether there is any.

        The null hypothesis of a finding is that the subgroup's metric equals the reference; that
        of `joint` is that all do. The sampling error of an estimated reference counts.

        Parameters
        ----------
        metric : str or Metric
            A name such as ``"fpr"``, or a metric of your own.
        reference : "population", "rest", dict, float or External
            What subgroups are compared with: everybody, everybody else, a group such as
            ``{"race": "White"}``, a known number, or an estimate from elsewhere.
        depth : int, optional
            How many group columns may be combined; by default all.
        method : {"auto", "el", "eel", "plug_in"}
            The spec's rule, empirical likelihood, Euclidean likelihood, or the plug-in method of
            the paper, whose intervals are too narrow or too wide and say so.
        scale : {"difference", "ratio"}
            Group minus reference, or group over reference (impact ratio).
        simultaneous : bool
            Whether intervals and p-values hold for all subgroups together (max-t).
        alpha : float, default 0.05
            Level of the tests.
        confidence_level : float, default 0.95
            Level of the intervals.
        rng : int or numpy Generator, optional
            For the max-t critical value.

        Returns
        -------
        AuditResult
            `details` has the metric, the reference, and for each subgroup its value, the
            reference's value and the standard error.

        Examples
        --------
        Is a high-risk label as often right for African-American as for Caucasian defendants?

        >>> import equipoise as eq
        >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group="race", count="count",
        ...                  y_true="two_year_recid", y_pred="high_risk")
        >>> result = audit.disparity("ppv", reference={"race": "Caucasian"})
        >>> finding = result.findings[0]
        >>> print(finding.group, f"{finding.estimate:.3f}", f"{finding.p_value:.3f}")
        race=African-American 0.038 0.051

        Right 3.8 points more often, which chance alone could explain (p = 0.051).
        """
        from equipoise.audits.disparity import gaps

        return gaps.disparity(
            self.table,
            metric,
            reference=reference,
            depth=depth,
            method=method,
            scale=scale,
            simultaneous=simultaneous,
            alpha=alpha,
            confidence_level=confidence_level,
            rng=rng,
        )

    def flag(
        self,
        metric: str | Metric,
        *,
        margin: float = 0.0,
        alternative: FlagAlternative = "greater",
        adjust: Adjust = "auto",
        reference: Reference = "population",
        depth: int | None = None,
        method: DisparityMethod = "auto",
        scale: Scale = "difference",
        alpha: float = 0.05,
        confidence_level: float = 0.95,
    ) -> AuditResult:
        """Say which subgroups exceed the tolerance.

        The null hypothesis of a finding is that the subgroup's gap is within the tolerance; all
        subgroups form one family, and false flags are controlled.

        Parameters
        ----------
        metric : str or Metric
            A name such as ``"fpr"``, or a metric of your own.
        margin : float, default 0
            Tolerated gap. On the ratio scale 0.2 tolerates ratios from 0.8 to 1/0.8.
        alternative : {"two-sided", "greater", "less", "outside"}
            Flag gaps other than zero, above the margin, below minus the margin, or outside.
        adjust : {"bh", "by", "holm", "bonferroni", "none", "auto"}
            Benjamini-Hochberg ("auto"), Benjamini-Yekutieli, Holm, Bonferroni or no adjustment.
        reference, depth, method, scale, alpha, confidence_level
            As in `disparity`; the interval is two-sided and marginal.

        Returns
        -------
        AuditResult

        Examples
        --------
        For whom is a high-risk label wrong more than 5 points more often than overall?

        >>> import equipoise as eq
        >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group=["race", "sex"], count="count",
        ...                  y_true="two_year_recid", y_pred="high_risk")
        >>> result = audit.flag("fpr", margin=0.05)
        >>> [finding.group for finding in result.findings if finding.decision == "detected"]
        ['race=African-American', 'race=African-American & sex=Male']
        """
        from equipoise.audits.disparity import gaps

        return gaps.flag(
            self.table,
            metric,
            margin=margin,
            alternative=alternative,
            adjust=adjust,
            reference=reference,
            depth=depth,
            method=method,
            scale=scale,
            alpha=alpha,
            confidence_level=confidence_level,
        )

    def certify(
        self,
        metric: str | Metric,
        *,
        margin: float,
        reference: Reference = "population",
        depth: int | None = None,
        method: DisparityMethod = "auto",
        scale: Scale = "difference",
        alpha: float = 0.05,
        confidence_level: float | None = None,
    ) -> AuditResult:
        """Show, where the data can, that every subgroup is within the margin.

        The null hypothesis of a finding is that the subgroup is at least the margin away, so that
        a small group is inconclusive, never within the margin for lack of data.

        Parameters
        ----------
        metric : str or Metric
            A name such as ``"fpr"``, or a metric of your own.
        margin : float
            Above 0. On the ratio scale 0.2 means ratios between 0.8 and 1/0.8.
        reference, depth, method, scale, alpha
            As in `disparity`.
        confidence_level : float, optional
            Of the intervals; by default 1 - 2 alpha, the level at which an interval inside the
            margin and a `WITHIN_MARGIN` decision are the same thing.

        Returns
        -------
        AuditResult
            Decisions are `WITHIN_MARGIN`, `DETECTED` (beyond the margin) and `NOT_DETECTED`
            (inconclusive); `joint` is the claim about all subgroups.

        Examples
        --------
        Are the sexes shown to differ by less than 5 points in accuracy from everybody?

        >>> import equipoise as eq
        >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group="sex", count="count",
        ...                  y_true="two_year_recid", y_pred="high_risk")
        >>> result = audit.certify("accuracy", margin=0.05)
        >>> [str(finding.decision) for finding in result.findings]
        ['within margin', 'within margin']
        """
        from equipoise.audits.disparity import gaps

        return gaps.certify(
            self.table,
            metric,
            margin=margin,
            reference=reference,
            depth=depth,
            method=method,
            scale=scale,
            alpha=alpha,
            confidence_level=confidence_level,
        )

    def predictive_parity(
        self,
        *,
        unit: ParityUnit | None = None,
        grid: Sequence[float] | None = None,
        bandwidth: float | str = "auto",
        method: ParityMethod = "pooled_residual",
        hypothesis: CalibrationHypothesis = "parity",
        reference: Mapping[str, Any] | None = None,
        alpha: float = 0.05,
        confidence_level: float = 0.95,
        rng: Rng = None,
    ) -> AuditResult:
        """Say whether a score means the same in every group, and where it does not.

        The null hypothesis is that people with equal scores have equal mean outcomes whatever
        their group. `joint` tests it at all scores at once, by a cumulative sum of residuals;
        each finding is the difference at one score, with a band that holds for all of them.

        Parameters
        ----------
        unit : {"cluster", "row"}, optional
            Whether every cluster or every row weighs alike; must be said with clusters, because
            the two hypotheses differ when activity is related to the outcome.
        grid : list of float, optional
            Scores at which curves are compared; by default 21 quantiles, or every value of a score
            with at most 30.
        bandwidth : "auto" or float
            Standard deviation of the kernel; 0 compares equal scores only.
        method : {"pooled_residual", "paper"}
            "paper" is the test of the paper, for replication; it does not keep its level when
            scores are distributed differently in the groups.
        hypothesis : {"parity", "calibration"}
            "calibration" compares each group's outcome with the score itself.
        reference : dict, optional
            The group others are compared with, such as ``{"race": "White"}``; by default all pairs
            are compared.
        alpha : float, default 0.05
            Level of the tests.
        confidence_level : float, default 0.95
            Simultaneous level of the bands.
        rng : int or numpy Generator, optional
            For the multiplier draws.

        Returns
        -------
        AuditResult
            `details` has ``curves`` (of each group: grid, estimate, low, high) and ``pairs`` (of
            each comparison: average difference, p-values, common scores, differences by score).

        Examples
        --------
        Does a COMPAS decile mean the same chance of a new offence for two groups?

        >>> import equipoise as eq
        >>> audit = eq.Audit(
        ...     {
        ...         "race": ["Black", "White"] * 400,
        ...         "score": [1, 1, 2, 2, 3, 3, 4, 4] * 100,
        ...         "again": [0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1] * 50,
        ...     },
        ...     group="race", y_true="again", y_score="score",
        ... )
        >>> result = audit.predictive_parity(reference={"race": "White"})
        >>> [(f.estimand, f.estimate) for f in result.findings if f.decision == "detected"]
        [('outcome at score 2', 0.5), ('outcome at score 3', 0.5)]

        At scores 2 and 3 it does not.
        """
        from equipoise.audits.scores import parity as predictive_parity

        return predictive_parity.predictive_parity(
            self.table,
            unit=unit,
            grid=grid,
            bandwidth=bandwidth,
            method=method,
            hypothesis=hypothesis,
            reference=reference,
            alpha=alpha,
            confidence_level=confidence_level,
            rng=rng,
        )

    def inequality(
        self,
        benefits: "AnyBenefits",
        *,
        order: float = 1.0,
        soft: bool = False,
        kappa: float | None = None,
        alpha: float = 0.05,
        confidence_level: float = 0.95,
    ) -> AuditResult:
        r"""Say how unequal the benefits of decisions are, within and between groups.

        The null hypothesis of `joint` is that all groups have the same mean benefit, so that the
        between-group part of the index is zero.

        Parameters
        ----------
        benefits : "speicher", BenefitDesign, dict, matrix or column
            What a decision is worth to the person: ``yhat - y + 1``; a design from
            `equipoise.design.benefit_design`, or a dict of its arguments; a matrix
            ``B[yhat][y]`` for labels 0, 1, ...; or the name of a column of benefits.
        order : float, default 1
            Order of the index; a design brings its own.
        soft : bool
            Whether to read `y_score` as the probability of decision 1, and average over it.
        kappa : float, optional
            How many benign errors a harmful one is worth, for a matrix with one benefit for one
            of the decisions; a design brings its own.
        alpha : float, default 0.05
            Level of the tests; those of single groups are adjusted by Holm.
        confidence_level : float, default 0.95
            Level of the intervals.

        Returns
        -------
        AuditResult
            Findings: the index, its within- and between-group parts (the latter less its bias),
            with `kappa` the contrast of error rates and then the index against its cap, and each
            group's contributions. `details` has `total`, `within`, `between`, `between_share`,
            `within_share`, `contributions`, `error_rates`, `cap`, `roc`, `matrix`, `order`.

        Examples
        --------
        Do false alarms and misses fall unequally on the races?

        >>> import equipoise as eq
        >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group="race", count="count",
        ...                  y_true="two_year_recid", y_pred="high_risk")
        >>> result = audit.inequality("speicher", order=2)
        >>> print(f"{result.findings[0].estimate:.4f} {result.details['between_share']:.1%}")
        0.1700 1.4%
        >>> result.joint.p_value < 0.001
        True

        They do, though 1.4% of the inequality lies between races and the rest within them.
        """
        from equipoise.audits.inequality import inequality

        return inequality.inequality(
            self.table,
            benefits,
            order=order,
            soft=soft,
            kappa=kappa,
            alpha=alpha,
            confidence_level=confidence_level,
        )

    def marginal_outcome(
        self,
        threshold: float,
        *,
        unit: ParityUnit | None = None,
        bandwidth: float | str = "auto",
        reference: Mapping[str, Any] | None = None,
        alpha: float = 0.05,
        confidence_level: float = 0.95,
    ) -> AuditResult:
        """Say whether people at the cut-off have the same mean outcome in every group.

        The null hypothesis is that mean outcomes at the threshold are equal. Only rows with a
        score of at least `threshold` are used, since outcomes below it are often unknown.

        Parameters
        ----------
        threshold : float
            Score from which decisions are positive.
        unit : {"cluster", "row"}, optional
            Whether every cluster or every row weighs alike; must be said with clusters.
        bandwidth : "auto" or float
            Standard deviation of the kernel.
        reference : dict, optional
            The group others are compared with; by default all pairs are compared.
        alpha : float, default 0.05
            Level of the tests.
        confidence_level : float, default 0.95
            Level of the intervals.

        Returns
        -------
        AuditResult
            `details` has the threshold and ``margins``: outcomes at the threshold and above it.

        Examples
        --------
        Loans are given from score 0.5. Does the marginal borrower repay alike in both groups?

        >>> import numpy as np, equipoise as eq
        >>> rng = np.random.default_rng(0)
        >>> score, group = rng.uniform(size=8000), rng.choice(["A", "B"], size=8000)
        >>> repaid = rng.uniform(size=8000) < 0.2 + 0.5 * score + 0.25 * (group == "B")
        >>> audit = eq.Audit({"group": group, "score": score, "repaid": repaid.astype(int)},
        ...                  group="group", y_true="repaid", y_score="score")
        >>> audit.marginal_outcome(0.5).findings[0].decision.value
        'detected'

        They do not: group B is held to a higher standard.
        """
        from equipoise.audits.scores import margins as marginal_outcome

        return marginal_outcome.marginal_outcome(
            self.table,
            threshold,
            unit=unit,
            bandwidth=bandwidth,
            reference=reference,
            alpha=alpha,
            confidence_level=confidence_level,
        )

    def improvability(
        self,
        candidate: object,
        *,
        accuracy: str | Metric,
        fairness: str | Metric | Sequence[str | Metric] | None = None,
        delta_accuracy: float = 0.0,
        delta_fairness: float = 0.0,
        capacity: float | None = None,
        n_splits: int = 5,
        train_fraction: float = 2 / 3,
        n_resamples: int = 10_000,
        method: ImprovementMethod = "signed",
        combine: SplitRule = "median",
        accuracy_of: AccuracyOf = "group",
        margin_scale: MarginScale = "relative",
        inference: Inference = "bootstrap",
        higher_group: str | None = None,
        alpha: float = 0.05,
        confidence_level: float = 0.95,
        rng: Rng = None,
    ) -> AuditResult:
        """Say whether there is a less discriminatory alternative to the status quo.

        The null hypothesis is that the candidate does not raise accuracy for every group, or does
        not reduce the gap between groups. The status quo is `y_pred`, or the top share of `y_score`
        when a `capacity` is given. The candidate is found on one part of the rows and judged on the
        other, several times.

        Parameters
        ----------
        candidate : estimator, search object, callable or str
            A scikit-learn estimator (cut at the capacity, if there is one), an object of
            `equipoise.search`, a function from a `TrainingSample` to an algorithm, the name of a
            column with a ready score or decision (no split is made, and the result says so), or the
            import path of a known estimator such as ``"sklearn.linear_model.LassoCV"``.
        accuracy : str or Metric
            What must not get worse, larger is better: ``"accuracy"``, ``"selected_outcome"``, ...
        fairness : str, Metric or list of them, optional
            Metrics whose gap between groups must shrink; by default `accuracy`.
        delta_accuracy, delta_fairness : float, default 0
            How large an improvement must be: accuracy times 1 + delta, gap times 1 - delta.
        capacity : float, optional
            Share of people that may be selected.
        n_splits, train_fraction : int, float
            How often the rows are split, and the share that the candidate is built on.
        n_resamples : int
            Bootstrap samples for each split.
        method : {"signed", "paper"}
            Signed gap statistic, or the squared one of the paper, which has less power.
        combine : {"median", "exch_median", "bonferroni"}
            How p-values of the splits make one: twice their median, or another valid rule.
        accuracy_of : {"group", "population"}
            Whether accuracy must rise in every group or overall.
        margin_scale : {"relative", "absolute"}
            Whether `delta_accuracy` is a share of the status quo's accuracy or an amount.
        inference : {"bootstrap", "analytic"}
            Studentised bootstrap, or the normal law at once.
        higher_group : str, optional
            With two groups, the one known beforehand to have the higher fairness metric; else it is
            read off the training rows.
        alpha : float, default 0.05
            Level of the test.
        confidence_level : float, default 0.95
            Level of the intervals.
        rng : int or numpy Generator, optional
            For splits and bootstrap.

        Returns
        -------
        AuditResult
            Findings are the requirements; `joint` is the claim that all are met. `details` has, for
            each split, the value of candidate (`a1`) and status quo (`a0`) and the p-value of every
            requirement; `deltas`, the largest improvements that are shown; which requirement binds;
            if nothing is shown, whether data or search is the likely limit; and, in memory only,
            the fitted `candidates` of the splits, whose `decide` takes new rows.

        Examples
        --------
        Past cost decides who is called sick, and one group costs less when equally sick. Would a
        model of the visits be right more often, and more evenly?

        >>> import equipoise as eq, numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> rng = np.random.default_rng(7)
        >>> race = rng.choice(["a", "b"], size=3000)
        >>> sickness = rng.gamma(2.0, 2.0, size=3000)
        >>> data = {"race": race, "sick": (sickness > 4).astype(int),
        ...         "visits": rng.poisson(3 * sickness),
        ...         "called": (sickness * np.where(race == "b", 0.4, 0.7) > 4).astype(int)}
        >>> audit = eq.Audit(data, group="race", y_true="sick", y_pred="called", features="visits")
        >>> result = audit.improvability(LogisticRegression(), accuracy="accuracy", n_resamples=999)
        >>> str(result.joint.decision), bool(result.details["deltas"]["fairness"] > 0.5)
        ('detected', True)

        Yes: accuracy rises in both groups, and the gap shrinks by more than half.
        """
        # scikit-learn takes a second to import; only this question needs it.
        from equipoise.audits.improvement.improvability import improvability

        return improvability(
            self.table,
            candidate,
            accuracy=accuracy,
            fairness=fairness,
            delta_accuracy=delta_accuracy,
            delta_fairness=delta_fairness,
            capacity=capacity,
            n_splits=n_splits,
            train_fraction=train_fraction,
            n_resamples=n_resamples,
            method=method,
            combine=combine,
            accuracy_of=accuracy_of,
            margin_scale=margin_scale,
            inference=inference,
            higher_group=higher_group,
            alpha=alpha,
            confidence_level=confidence_level,
            rng=rng,
        )

    def treatment_effects(
        self,
        *,
        measure: EffectMeasure = "relative",
        collapse: Collapse = "auto",
        split: bool = False,
        margin: float | None = None,
        adjust: EffectAdjust = "holm",
        rest: Rest = "stratified",
        control_pred: str | None = None,
        treated_pred: str | None = None,
        arm_ratio: float | None = None,
        n_repeats: int = 10,
        alpha: float = 0.05,
        confidence_level: float = 0.95,
        rng: Rng = None,
    ) -> AuditResult:
        """Say whether predicted treatment effects are equally accurate in every group.

        The null hypothesis of a finding is that the predictions for the group, collapsed to a
        predicted effect of the group, have the same error as those for the rest; that of `joint`
        is that the error is the same in every group. Needs data of a randomised experiment on
        which the model was not trained, with the roles `y_true` (the outcome), `treatment` and
        `effect_pred`. A group is a combination of all group columns.

        Parameters
        ----------
        measure : {"relative", "difference"}
            What the predictions predict: the ratio of mean outcomes with and without treatment
            (1.2 for +20%), or their difference.
        collapse : str, default "auto"
            How predictions are averaged in a group: "control" weights by outcomes of controls and
            needs no model; "aipw" adds an outcome model and stays right if that is wrong; "mean"
            is for differences; "hajek", "weighted" (Eq. (16)) and "positives" (Eq. (20)) are for
            comparison and carry a note that says when they fail. "auto" is "aipw" if predicted
            outcomes are named, else "control"; for differences "aipw" or "mean".
        split : bool
            Estimate effects and predictions on separate random halves, as the paper does.
        margin : float, optional
            Also show, where the data can, that a group's bias is smaller than this.
        adjust : {"holm", "bonferroni", "bh", "by", "max_t", "none"}
            For the number of groups.
        rest : {"stratified", "pooled"}
            The rest of a group averages the arm means of the other groups, or pools their rows,
            which needs the same treated share everywhere.
        control_pred, treated_pred : str, optional
            Columns of predicted outcomes without and with treatment, from other data or
            cross-fitted. With `collapse="aipw"` and none of them they are fitted here by least
            squares on the `features` of the audit (Lin's adjustment).
        arm_ratio : float, optional
            Treated rows per control row by design, when the table holds positive outcomes only.
        n_repeats : int, default 10
            Random halvings in the evaluation of corrections; 0 leaves it out, and with it the need
            to put rows into random blocks.
        alpha : float, default 0.05
            Level of the tests.
        confidence_level : float, default 0.95
            Of the intervals.
        rng : int or numpy Generator, optional
            For the random blocks and halves.

        Returns
        -------
        AuditResult
            `details` has, for the tested groups in `group`: effects `tau` and collapsed
            predictions `tau_f` with standard errors, errors `B` and biases `A` with intervals, the
            error of the `rest`; `omnibus` (all errors equal; all zero), `prior_mean` and
            `prior_sd` of the errors between groups, `corrections` (amount to subtract, by rule and
            group; `correction` names the default), what is `remaining` after it on the same data,
            and the `evaluation` of all rules on held-out halves with the one it recommends.

        Examples
        --------
        A model promises +20% sales everywhere; in the north the offer does nothing.

        >>> import numpy as np
        >>> import equipoise as eq
        >>> rng = np.random.default_rng(0)
        >>> region, offer = rng.integers(4, size=200_000), rng.integers(2, size=200_000)
        >>> lift = np.where(region == 0, 1.0, 1.2)
        >>> data = {"region": np.array(["N", "E", "S", "W"])[region], "offer": offer,
        ...         "sold": (rng.random(200_000) < 0.1 * lift**offer).astype(int),
        ...         "predicted": np.full(200_000, 1.2)}
        >>> audit = eq.Audit(data, group="region", y_true="sold", treatment="offer",
        ...                  effect_pred="predicted")
        >>> result = audit.treatment_effects()
        >>> [(f.group, round(f.estimate, 2)) for f in result.findings if f.decision == "detected"]
        [('region=N', 0.17)]

        Predictions for the north are too high by 0.17, compared with the rest.
        """
        from equipoise.audits.effects import treatment_effects

        return treatment_effects.treatment_effects(
            self.table,
            measure=measure,
            collapse=collapse,
            split=split,
            margin=margin,
            adjust=adjust,
            rest=rest,
            control_pred=control_pred,
            treated_pred=treated_pred,
            arm_ratio=arm_ratio,
            n_repeats=n_repeats,
            alpha=alpha,
            confidence_level=confidence_level,
            rng=rng,
        )

    def __repr__(self) -> str:
        return f"Audit(group={list(self.table.roles.group)}, roles={self.table.roles.columns()})"
