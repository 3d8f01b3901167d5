"""Which groups differ, which exceed a tolerance, and which are shown to be within a margin."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from equipoise._checks import (
    check_depth,
    check_flag,
    check_fraction,
    check_number,
    check_option,
    quoted,
)
from equipoise._typing import (
    Adjust,
    AnyArray,
    Conditional,
    DisparityMethod,
    Extreme,
    Family,
    FlagAlternative,
    FloatArray,
    Rng,
    Scale,
    SmallCategories,
    StratumWeights,
)
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.disparity.alike import GivenAsked, bonferroni
from equipoise.audits.disparity.sides import Reference
from equipoise.audits.disparity.subgroups import (
    MANY_VALUES,
    Compared,
    compare_metrics,
    finite,
    method_words,
    plug_in_note,
    survey_shape_notes,
)
from equipoise.audits.disparity.unknown_shapes import (
    guarded_interval,
    joint_shape_notes,
    shape_guard,
)
from equipoise.audits.disparity.wording import family_note
from equipoise.data.metrics import Metric, Metrics
from equipoise.exceptions import InvalidParameterError
from equipoise.results.finding import Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.gaps import (
    Disparities,
    SimultaneousDisparities,
    simultaneous_disparities,
)
from equipoise.stats.disparity.joint import joint_test
from equipoise.stats.multiplicity import adjusted_p_values

# Comparisons with the highest, and among people alike, are imported where they are asked for.
if TYPE_CHECKING:
    from equipoise.audits.audit import Audit
    from equipoise.audits.disparity.extremes import ExtremeAsked

__all__ = ["certify", "disparity", "flag"]

_NOT_GIVEN = ("overlap", None, "strata", None, 5)


@question_method
def disparity(
    self: "Audit",
    metric: Metrics,
    *,
    reference: Reference = None,
    depth: int | None = None,
    method: DisparityMethod = "auto",
    scale: Scale = "difference",
    simultaneous: bool = False,
    grades: bool = False,
    min_share: float = 0.02,
    small: SmallCategories = "exclude",
    by: Family = "table",
    given: str | Sequence[str] | None = None,
    weights: StratumWeights = "overlap",
    bands: Mapping[str, Any] | None = None,
    conditional: Conditional = "strata",
    learner: Any = None,
    n_splits: int = 5,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Say how big each subgroup's gap is, and whether there is any.

    The null hypothesis of a finding is that the subgroup's metric equals the reference; that
    of `joint` is that all do. The sampling error of an estimated reference counts.

    Parameters
    ----------
    metric : str, Metric or list of them
        A name such as ``"fpr"``, or a metric of your own. Several are one family: adjusted and
        simultaneous results hold for all groups in all of them.
    reference : "population", "rest", "highest", "lowest", dict, float or External
        What subgroups are compared with: everybody (the default), everybody else, the category with
        the highest or lowest value (chosen from the data, which intervals and p-values allow for),
        a group such as ``{"race": "White"}``, a known number, or an estimate from elsewhere.
    depth : int, optional
        How many group columns may be combined; by default all.
    method : {"auto", "el", "eel", "plug_in"}
        The test that fits the size and kind of the data, empirical likelihood, Euclidean
        likelihood, or the plug-in method of the paper, whose intervals are too narrow or too wide
        and say so.
    scale : {"difference", "ratio"}
        Group minus reference, or group over reference (impact ratio).
    simultaneous : bool
        Whether intervals and p-values hold for all subgroups together (max-t).
    grades : bool
        Whether tables with twenty groups or more are cut into grades, of which at most `alpha` of
        the pairs in different ones are expected to be wrongly ordered.
    min_share, small, by
        With the reference "highest" or "lowest", as in `impact_ratios`.
    given : str or list of str, optional
        Factors in which people must be alike to be compared; their combinations are strata. The
        reference is then "rest" or a group.
    weights : {"overlap", "group", "reference", "population"}
        How strata are averaged: comparable people (Mantel and Haenszel), the group's own members,
        the reference's, or everybody.
    bands : mapping of str to int or list of float, optional
        Factors that are numbers: how many bands of about equal size, or their cut points.
    conditional : {"strata", "doubly_robust"}
        Whether combinations of the factors make people alike, or two regressions, for factors that
        are many or continuous: of the outcome on the factors and of membership in the group on
        them. Such a gap is right if one of the two is learnt well.
    learner : tuple of two scikit-learn estimators, optional
        For ``"doubly_robust"``: of the outcome and of membership; by default boosted trees.
    n_splits : int, default 5
        For ``"doubly_robust"``: every row is predicted by learners fitted to the other folds.
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
    race=African-American 0.038 0.054

    Right 3.8 points more often, which chance alone could explain (p = 0.054).
    """
    check_fraction("alpha", alpha)
    check_flag("simultaneous", simultaneous)
    check_depth(depth)
    if check_flag("grades", grades) and (
        given is not None or _is_extreme(reference) or not isinstance(metric, (str, Metric))
    ):
        raise InvalidParameterError(
            '`grades` are of one metric, without `given` and the reference "highest" or "lowest".'
        )
    alike = _alike(
        given,
        method,
        reference=reference,
        scale=scale,
        depth=depth,
        weights=weights,
        bands=bands,
        conditional=conditional,
        learner=learner,
        n_splits=n_splits,
    )
    extreme = _extreme(reference, method, scale, depth, min_share, small, by, rng)
    if extreme is not None:
        from equipoise.audits.disparity.extremes import disparity_to_extreme

        return (
            yield from disparity_to_extreme(
                self.table, _single(metric), extreme, alpha=alpha, confidence_level=confidence_level
            )
        )
    if alike is not None:
        from equipoise.audits.disparity.given import disparity_given

        return (
            yield from disparity_given(
                self.table,
                _single(metric),
                alike,
                simultaneous=simultaneous,
                alpha=alpha,
                confidence_level=confidence_level,
                rng=rng,
            )
        )
    compared = yield from compare_metrics(
        self.table, metric, reference, depth, method, scale, confidence_level
    )
    raw = compared.joined("p_value")
    low, high, p = compared.joined("ci_low"), compared.joined("ci_high"), raw
    notes = [*compared.notes]
    tested = int(compared.joined("tested").sum())
    family = None
    if simultaneous or len(compared.parts) > 1:
        family = simultaneous_disparities(
            compared.found, moments=compared.moments, confidence_level=confidence_level, rng=rng
        )
    if simultaneous and family is not None:
        low, high, p = family.low, family.high, family.p_value
        notes.append(_together(family, tested, compared.noun))
    elif tested > 1:
        notes.append(
            Note(
                code="multiplicity",
                message=f"Each interval and p-value stands alone; {tested} {compared.noun} were"
                " looked at. Ask for simultaneous ones, or use the flag audit, to allow for that.",
            )
        )
    if method == "plug_in":
        notes.append(plug_in_note(compared.found, confidence_level))
    graded = None
    if grades:
        from equipoise.audits.disparity.grades import grades_of

        graded, told = grades_of(
            compared.parts[0].measured, depth=depth, level=alpha, confidence_level=confidence_level
        )
        notes.extend(told)
    null = f"no group differs from {compared.reference}"
    return AuditResult(
        audit="disparity",
        null=null,
        alternative=f"the group differs from {compared.reference}",
        alpha=alpha,
        method=method_words(compared.found, method),
        n=compared.n,
        findings=compared.findings(
            p=p,
            p_raw=raw,
            decisions=_rejected(p, alpha),
            interval=(low, high, confidence_level),
            statistic=compared.joined("statistic"),
        ),
        joint=_joint(compared.parts[0], null, method, alpha)
        if len(compared.parts) == 1
        else _any_metric(family, null, alpha),
        notes=tuple(notes),
        details=compared.details(simultaneous=simultaneous, grades=graded),
    )


@question_method
def flag(
    self: "Audit",
    metric: Metrics,
    *,
    margin: float = 0.0,
    alternative: FlagAlternative = "greater",
    adjust: Adjust = "auto",
    reference: Reference = None,
    depth: int | None = None,
    method: DisparityMethod = "auto",
    scale: Scale = "difference",
    min_share: float = 0.02,
    small: SmallCategories = "exclude",
    by: Family = "table",
    given: str | Sequence[str] | None = None,
    weights: StratumWeights = "overlap",
    bands: Mapping[str, Any] | None = None,
    conditional: Conditional = "strata",
    learner: Any = None,
    n_splits: int = 5,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
) -> Asking[AuditResult]:
    """Say which subgroups exceed the tolerance.

    The null hypothesis of a finding is that the subgroup's gap is within the tolerance; all
    subgroups form one family, and false flags are controlled.

    Parameters
    ----------
    metric : str, Metric or list of them
        A name such as ``"fpr"``, or a metric of your own; several are one family.
    margin : float, default 0
        Tolerated gap. On the ratio scale 0.2 tolerates ratios from 0.8 to 1/0.8.
    alternative : {"two-sided", "greater", "less", "outside"}
        Flag gaps other than zero, above the margin, below minus the margin, or outside.
    adjust : {"bh", "by", "holm", "bonferroni", "none", "auto"}
        Benjamini-Hochberg ("auto"), Benjamini-Yekutieli, Holm, Bonferroni or no adjustment.
    reference, depth, method, scale, min_share, small, by
        As in `disparity`.
    given, weights, bands, conditional, learner, n_splits, alpha
        As in `disparity`.
    confidence_level : float, default 0.95
        Of the interval, which is two-sided and marginal, or that of all pairs with the reference
        "highest" (which needs ``alternative="less"``) or "lowest".

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
    check_fraction("alpha", alpha)
    check_depth(depth)
    check_option("alternative", alternative, FlagAlternative)
    check_option("adjust", adjust, Adjust)
    alike = _alike(
        given,
        method,
        reference=reference,
        scale=scale,
        depth=depth,
        weights=weights,
        bands=bands,
        conditional=conditional,
        learner=learner,
        n_splits=n_splits,
    )
    extreme = _extreme(reference, method, scale, depth, min_share, small, by)
    if extreme is not None:
        from equipoise.audits.disparity.extremes import flag_extreme

        return (
            yield from flag_extreme(
                self.table,
                _single(metric),
                extreme,
                margin=margin,
                alternative=alternative,
                adjust=adjust,
                alpha=alpha,
                confidence_level=confidence_level,
            )
        )
    low, high = _tolerance(margin, scale)
    if alternative == "two-sided" and margin != 0.0:
        raise InvalidParameterError(
            '`alternative="two-sided"` tests against no gap at all; with a margin say "outside".'
        )
    if alike is not None:
        from equipoise.audits.disparity.given import flag_given

        return (
            yield from flag_given(
                self.table,
                _single(metric),
                alike,
                margin=margin,
                bounds=(low, high),
                alternative=alternative,
                adjust=adjust,
                alpha=alpha,
                confidence_level=confidence_level,
            )
        )
    compared = yield from compare_metrics(
        self.table, metric, reference, depth, method, scale, confidence_level
    )
    raw = np.concatenate([_flag_p_values(one, alternative, low, high) for one in compared.found])
    rule = "bh" if adjust == "auto" else adjust
    p = adjusted_p_values(raw, rule)
    bound = {"two-sided": low, "greater": high, "less": low, "outside": None}[alternative]
    statistic = (
        compared.joined("statistic")
        if bound is None
        else np.concatenate([one.nearer_root(bound) for one in compared.found])
    )
    gap = "gap" if scale == "difference" else "ratio"
    null, other = {
        "two-sided": (f"equal to {low:g}", f"other than {low:g}"),
        "greater": (f"at most {high:g}", f"above {high:g}"),
        "less": (f"at least {low:g}", f"below {low:g}"),
        "outside": (f"between {low:g} and {high:g}", f"outside {low:g} to {high:g}"),
    }[alternative]
    notes = [*compared.notes, family_note(rule, int(np.isfinite(raw).sum()))]
    if method == "plug_in":
        notes.append(plug_in_note(compared.found, confidence_level))
    return AuditResult(
        audit="flag",
        null=f"the group's {gap} to {compared.reference} is {null}",
        alternative=f"the group's {gap} to {compared.reference} is {other}",
        alpha=alpha,
        method=method_words(compared.found, method),
        n=compared.n,
        findings=compared.findings(
            p=p,
            p_raw=raw,
            decisions=_rejected(p, alpha),
            interval=(compared.joined("ci_low"), compared.joined("ci_high"), confidence_level),
            statistic=statistic,
            null={
                "two-sided": (low, high),
                "outside": (low, high),
                "greater": (-np.inf, high),
                "less": (low, np.inf),
            }[alternative],
            guarded=alternative != "two-sided",
        ),
        notes=tuple(notes),
        details=compared.details(
            margin=margin, alternative=alternative, adjust=rule, bounds=[low, high]
        ),
    )


@question_method
def certify(
    self: "Audit",
    metric: Metrics,
    *,
    margin: float,
    reference: Reference = None,
    depth: int | None = None,
    method: DisparityMethod = "auto",
    scale: Scale = "difference",
    min_share: float = 0.02,
    small: SmallCategories = "exclude",
    by: Family = "table",
    given: str | Sequence[str] | None = None,
    weights: StratumWeights = "overlap",
    bands: Mapping[str, Any] | None = None,
    conditional: Conditional = "strata",
    learner: Any = None,
    n_splits: int = 5,
    alpha: float = 0.05,
    confidence_level: float | None = None,
) -> Asking[AuditResult]:
    """Show, where the data can, that every subgroup is within the margin.

    The null hypothesis of a finding is that the subgroup is at least the margin away, so that
    a small group is inconclusive, never within the margin for lack of data.

    Parameters
    ----------
    metric : str, Metric or list of them
        A name such as ``"fpr"``, or a metric of your own; several are one family.
    margin : float
        Above 0. On the ratio scale 0.2 means ratios between 0.8 and 1/0.8.
    reference, depth, method, scale, min_share, small, by
        As in `disparity`.
    given, weights, bands, conditional, learner, n_splits, alpha
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
    check_fraction("alpha", alpha)
    low, high = _tolerance(margin, scale)
    if margin == 0.0:
        raise InvalidParameterError(
            "`margin` must be above 0: no data can show that a gap is exactly zero."
        )
    alike = _alike(
        given,
        method,
        reference=reference,
        scale=scale,
        depth=depth,
        weights=weights,
        bands=bands,
        conditional=conditional,
        learner=learner,
        n_splits=n_splits,
    )
    extreme = _extreme(reference, method, scale, depth, min_share, small, by)
    if extreme is not None:
        from equipoise.audits.disparity.extremes import certify_extreme

        return (
            yield from certify_extreme(
                self.table,
                _single(metric),
                extreme,
                margin=margin,
                alpha=alpha,
                confidence_level=confidence_level,
            )
        )
    level = 1.0 - 2.0 * alpha if confidence_level is None else confidence_level
    if alike is not None:
        from equipoise.audits.disparity.given import certify_given

        return (
            yield from certify_given(
                self.table,
                _single(metric),
                alike,
                margin=margin,
                bounds=(low, high),
                alpha=alpha,
                confidence_level=level,
            )
        )
    compared = yield from compare_metrics(
        self.table, metric, reference, depth, method, scale, level
    )
    within = np.concatenate(
        [np.minimum(shape_guard(one) * one.p_within(low, high), 1.0) for one in compared.found]
    )
    outside = np.concatenate(
        [one.p_outside(low, high, fold=shape_guard(one)) for one in compared.found]
    )
    beyond = adjusted_p_values(outside, "holm")
    decisions = np.where(
        within <= alpha,
        Decision.WITHIN_MARGIN,
        np.where(beyond <= alpha, Decision.DETECTED, Decision.NOT_DETECTED),
    )
    notes = [
        *compared.notes,
        Note(
            code="equivalence",
            message="A group is within the margin when both one-sided tests reject, that is when"
            f" its {level:.0%} interval lies inside the margin; beyond it when the margin is"
            " exceeded after Holm's adjustment; anything else is inconclusive.",
        ),
        Note(
            code="multiplicity",
            message="That all groups are within the margin needs every one of their tests, each at"
            f" level {alpha:g}; groups beyond it form one family, Holm.",
        ),
    ]
    if method == "plug_in":
        notes.append(plug_in_note(compared.found, level))
    ends = np.concatenate([guarded_interval(one, level) for one in compared.found], axis=1)
    findings = compared.findings(
        p=within,
        p_raw=within,
        decisions=decisions,
        interval=(ends[0], ends[1], level),
        statistic=np.concatenate(
            [np.minimum(one.nearer_root(low), -one.nearer_root(high)) for one in compared.found]
        ),
        guarded=True,
    )
    return AuditResult(
        audit="certify",
        null=f"the group is at least the margin {margin:g} away from {compared.reference}",
        alternative=f"the group is closer than {margin:g} to {compared.reference}",
        alpha=alpha,
        method=method_words(compared.found, method),
        n=compared.n,
        findings=findings,
        joint=_all_within(findings, margin, alpha),
        notes=tuple(notes),
        details=compared.details(margin=margin, bounds=[low, high]),
    )


def _single(metric: Metrics) -> str | Metric:
    """Return the metric of a question that takes one."""
    if isinstance(metric, (list, tuple)):
        raise InvalidParameterError(
            'With `given`, or with the reference "highest" or "lowest", ask about one metric at a'
            " time."
        )
    return metric


def _is_extreme(reference: object) -> bool:
    """Whether the reference is the highest or the lowest category."""
    return isinstance(reference, str) and reference in get_args(Extreme)


def _extreme(
    reference: Reference,
    method: DisparityMethod,
    scale: Scale,
    depth: int | None,
    min_share: float,
    small: SmallCategories,
    by: Family,
    rng: Rng = None,
) -> "ExtremeAsked | None":
    """Return the comparison with the highest or lowest category, if that is asked."""
    if not _is_extreme(reference):
        if (min_share, small, by) != (0.02, "exclude", "table"):
            raise InvalidParameterError(
                '`min_share`, `small` and `by` belong to `reference="highest"` or "lowest".'
            )
        return None
    if method != "auto":
        raise InvalidParameterError(
            f'`reference="{reference}"` has a law of its own; leave `method` at "auto".'
        )
    from equipoise.audits.disparity.extremes import ExtremeAsked

    return ExtremeAsked(
        reference=reference,  # type: ignore[arg-type]
        scale=scale,
        depth=depth,
        min_share=min_share,
        small=small,
        by=by,
        rng=rng,
    )


def _alike(
    given: str | Sequence[str] | None, method: DisparityMethod, **options: Any
) -> GivenAsked | None:
    """Return the comparison of people alike, if that is asked."""
    if given is None:
        own = ("weights", "bands", "conditional", "learner", "n_splits")
        if any(options[name] != default for name, default in zip(own, _NOT_GIVEN, strict=True)):
            raise InvalidParameterError(f"{quoted(own)} belong to `given`.")
        return None
    if method != "auto":
        raise InvalidParameterError('`given` has a law of its own; leave `method` at "auto".')
    return GivenAsked.of(given, **options)


def _tolerance(margin: float, scale: Scale) -> tuple[float, float]:
    """Return the ends of what is tolerated: 0 -+ margin, or 1 - margin and its reciprocal."""
    if scale == "ratio":
        value = check_number("margin", margin, low=0.0, high=0.999)
        return 1.0 - value, 1.0 / (1.0 - value)
    value = check_number("margin", margin, low=0.0)
    return 0.0 - value, value


def _flag_p_values(
    found: Disparities, alternative: FlagAlternative, low: float, high: float
) -> FloatArray:
    """P-values of each group; those of one side count several fold where no shape is known."""
    if alternative == "two-sided":
        return found.p_value
    fold = shape_guard(found)
    if alternative == "outside":
        return found.p_outside(low, high, fold=fold)
    one = found.p_greater(high) if alternative == "greater" else found.p_less(low)
    return np.minimum(fold * one, 1.0)


def _rejected(p: FloatArray, alpha: float) -> AnyArray:
    return np.where(p <= alpha, Decision.DETECTED, Decision.NOT_DETECTED)


def _joint(compared: Compared, null: str, method: DisparityMethod, alpha: float) -> JointTest:
    if compared.measured.design is not None:
        tested = compared.found.tested
        smallest = bonferroni(null, compared.found.p_value[tested].tolist(), alpha)
        least = compared.found.n[tested].min(initial=MANY_VALUES)
        notes = survey_shape_notes(compared.measured, least) if least < MANY_VALUES else ()
        return replace(smallest, notes=(*smallest.notes, *notes))
    test = joint_test(
        compared.measured.moments,
        compared.groups.membership,
        compared.target,
        binary=compared.measured.binary,
        method=method,
        units=compared.measured.units,
        found=compared.found,
    )
    if not np.isfinite(test.p_value):
        note = Note(code="vacuous", message="No hypothesis is left to test jointly.")
        return JointTest(null=null, decision=Decision.NOT_TESTED, method=test.method, notes=(note,))
    return JointTest(
        null=null,
        decision=Decision.DETECTED if test.p_value <= alpha else Decision.NOT_DETECTED,
        method=test.method,
        statistic=finite(test.statistic),
        df=None if test.method == "bonferroni" else float(test.df),
        p_value=float(test.p_value),
        notes=joint_shape_notes(compared.found, bounded=compared.measured.zero_one),
    )


def _all_within(findings: tuple[Finding, ...], margin: float, alpha: float) -> JointTest:
    """Test the claim that every group is within the margin: the largest p-value decides."""
    null = f"some group is at least {margin:g} away"
    method = "intersection-union"
    compared = [finding for finding in findings if not finding.is_reference]
    tested = [f.p_value for f in compared if f.p_value is not None]
    if len(tested) < len(compared) or not tested:
        note = Note(
            code="not-all-tested",
            message="Not every group could be tested, so no claim is made about all of them.",
        )
        return JointTest(null=null, decision=Decision.NOT_TESTED, method=method, notes=(note,))
    p = max(tested)
    decision = Decision.WITHIN_MARGIN if p <= alpha else Decision.NOT_DETECTED
    return JointTest(null=null, decision=decision, method=method, p_value=p)


def _any_metric(family: SimultaneousDisparities | None, null: str, alpha: float) -> JointTest:
    """Test that no group differs in any metric: the smallest p-value of the family decides."""
    p = np.nan if family is None else np.nanmin(np.append(family.p_value, np.inf))
    null = f"{null} in any metric"
    if family is None or not np.isfinite(p):
        note = Note(code="vacuous", message="No hypothesis is left to test jointly.")
        return JointTest(null=null, decision=Decision.NOT_TESTED, method="max-t", notes=(note,))
    decision = Decision.DETECTED if p <= alpha else Decision.NOT_DETECTED
    return JointTest(null=null, decision=decision, method=family.rule.lower(), p_value=float(p))


def _together(family: SimultaneousDisparities, count: int, noun: str) -> Note:
    """Say that intervals and p-values hold together."""
    message = (
        f"Intervals and p-values hold for all {count} {noun} together ({family.rule},"
        f" critical value {family.critical:.2f})."
        if count
        else "No group could be tested."
    )
    return Note(code="multiplicity", message=message)
