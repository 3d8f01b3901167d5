"""Are predicted treatment effects equally accurate: detection, correction, evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import (
    check_flag,
    check_fraction,
    check_integer,
    check_number,
    check_option,
    check_rng,
)
from equipoise._names import condition
from equipoise._typing import (
    Collapse,
    Correction,
    CorrectionChoice,
    EffectAdjust,
    EffectMeasure,
    EffectMethod,
    EffectRanking,
    FloatArray,
    Rest,
    Rng,
)
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.effects.paper import PAPER_METHOD, check_paper, paper_answer
from equipoise.audits.effects.questions import NO_REST, EffectDetails, effect_estimand
from equipoise.audits.effects.sums import (
    ArmSums,
    ExperimentSums,
    experiment_sums,
    trial_rows,
    with_strata,
)
from equipoise.data.table import Table
from equipoise.exceptions import InvalidParameterError
from equipoise.results.estimand import EstimandKind
from equipoise.results.finding import (
    INTERVAL_UNADJUSTED,
    ConfidenceInterval,
    Decision,
    Finding,
    JointTest,
    Note,
)
from equipoise.results.result import AuditResult
from equipoise.stats.effects.bias import (
    ChiSquareTest,
    TreatmentBias,
    effect_tests,
    error_covariance,
    treatment_bias,
)
from equipoise.stats.effects.corrections import MANY_GROUPS, effect_correction, normal_prior
from equipoise.stats.effects.errors import UNTESTED, GroupErrors
from equipoise.stats.effects.evaluation import (
    CorrectionPrice,
    EffectEvaluation,
    Recommendation,
    all_rules,
    correction_prices,
    evaluate_corrections,
    policy_prices,
    recommend_correction,
)
from equipoise.stats.effects.policy import GroupContrast, ValueChange, group_rankings
from equipoise.stats.effects.ratio_tests import RatioTests
from equipoise.stats.effects.slopes import GroupSlopes, group_slopes
from equipoise.stats.multiplicity import adjusted_p_values

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["treatment_effects"]

FEW_POSITIVES = 20
FEW_DF = 30.0
"""Degrees of freedom below which a finding says how few units there are."""
SHAPE_UNITS = 200
"""Units of an arm in all groups together below which the shape of outcomes is not known."""
MISSED, REJECTED = 0.32, 0.25
"""How often 95% intervals of errors missed at most, and how often the test that no group errs
rejected."""
WARNED, ALARMED = 0.01, 0.001
"""P-values of the checks of an experiment that are noted, and that lead."""

NULL = "the group's predicted effects have the same error as those of the rest"
ALTERNATIVE = "the group's predicted effects have another error than those of the rest"

_UNTESTED = {
    "one-arm-only": Note(
        code="one-arm-only",
        message="Fewer than two rows in one arm; the effect in this group cannot be estimated.",
    ),
    "no-control-positives": Note(
        code="no-control-positives",
        message="The mean outcome without treatment is not positive; an effect relative to it is"
        " not defined. Merge the group, or audit differences.",
    ),
    "no-variation": Note(
        code="no-variation",
        message="The outcome does not vary in this group; no test is possible.",
    ),
}
_FEW = Note(
    code="few-control-positives",
    message=f"Fewer than {FEW_POSITIVES} control positives: the interval is wide.",
)
_UNBOUNDED = Note(code="unbounded", message="The data do not bound the interval on every side.")
_WITHIN = Note(
    code="difference-within-margin",
    message="A difference from the rest is detected, and it is shown to be within the margin.",
)

INCONSISTENT = {
    ("relative", "mean"): "an unweighted mean of relative effects is the group's effect only if"
    " predictions are unrelated to the outcome without treatment",
    ("relative", "hajek"): "weights from an outcome model are right only if the model is right in"
    " shape",
    ("relative", "weighted"): "Eq. (16) needs an outcome model right in shape and scale, and misses"
    " errors of that model when the predictions come from it",
    ("relative", "positives"): "Eq. (20) is right only if predictions are constant in a group",
}
"""When a collapse fails, by measure and collapse."""


@question_method
def treatment_effects(
    self: "Audit",
    *,
    measure: EffectMeasure = "relative",
    collapse: Collapse = "auto",
    control: object = None,
    strata: str | None = None,
    split: bool = False,
    margin: float | None = None,
    adjust: EffectAdjust = "holm",
    rest: Rest = "stratified",
    correction: CorrectionChoice = "auto",
    slope: bool = True,
    ranking: EffectRanking | None = None,
    threshold: float | None = None,
    budget: float | None = None,
    cost: float = 0.0,
    checks: bool = True,
    control_pred: str | None = None,
    treated_pred: str | None = None,
    arm_ratio: float | None = None,
    n_repeats: int = 10,
    method: EffectMethod = "default",
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking[AuditResult]:
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
    control : object, optional
        The arm with which every other arm is compared; by default 0.
    strata : str, optional
        Column of the strata within which treatment was assigned; by default the role `strata`.
        Means of arms are averages over the strata of a group. Where chances of treatment are
        known for each row, pass them as the role `propensity` instead.
    split : bool
        Estimate effects and predictions on separate random halves, as the paper does.
    margin : float, optional
        Also show, where the data can, that a group's bias is smaller than this.
    adjust : {"holm", "bonferroni", "bh", "by", "max_t", "none"}
        For the number of groups and arms; "max_t" is the step-down method of Romano and Wolf.
    rest : {"stratified", "pooled"}
        The rest of a group averages the arm means of the other groups, or pools their rows,
        which needs the same treated share everywhere.
    correction : str, default "auto"
        The rule that corrections follow where errors are shown: "auto" is "bayes_zero" for up to
        four groups and "eb" from five on; others as in
        `equipoise.stats.effects.corrections.effect_correction`, also where nothing is shown.
    slope : bool, default True
        Also compare slopes of the effect on the prediction between groups.
    ranking : {"autoc", "qini"}, optional
        Also say how much more those gain who are predicted to gain more, as a difference of
        outcomes, and compare it between groups. It reads the rows; for one treatment.
    threshold, budget, cost : float, optional
        A rule that rests on the predictions, as in `policy`: also say what each correction changes
        in the value of its decisions. It reads the rows; for one treatment.
    checks : bool, default True
        Check the shares of the arms, and the balance of the `features`.
    control_pred, treated_pred : str, optional
        Columns of predicted outcomes without and with treatment, from other data or
        cross-fitted. With `collapse="aipw"` and none of them they are fitted here by least
        squares on the `features` of the audit (Lin's adjustment).
    arm_ratio : float, optional
        Treated rows per control row by design, when the table holds positive outcomes only.
    n_repeats : int, default 10
        Halvings in the evaluation of corrections; 0 leaves it out.
    method : {"default", "paper"}
        "paper" is the published procedure, random halves and bootstrap draws with Eqs. (15) and
        (20), for comparison; it carries a note on what is wrong with it, and has neither slopes nor
        a joint test.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Of the intervals.
    rng : int or numpy Generator, optional
        For the halves.

    Returns
    -------
    AuditResult
        For each group the bias and whether it is detected, then its effect, predicted effect,
        error, correction, what remains of the error after it, and slope, as findings of their own.
        `details` has the same numbers as lists in the order of `group`: effects `tau` and collapsed
        predictions `tau_f` with standard errors, errors `B` and biases `A` with intervals, the
        error of the `rest`; `omnibus` (all errors equal; all zero), `prior_mean` and `prior_sd` of
        the errors between groups, `corrections` (amount to subtract, by rule and group), whether
        one is `recommended`, what is `remaining` after it on the same data, the `evaluation` of all
        rules on halves, what rules buy and cost (`frontier`), `slopes`, `checks`, `units`, and
        `detectable` biases.

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
    for name, flag in (("split", split), ("slope", slope), ("checks", checks)):
        check_flag(name, flag)
    check_option("correction", correction, CorrectionChoice)
    if ranking is not None:
        check_option("ranking", ranking, EffectRanking)
    _check_options(alpha, confidence_level, adjust, rest, n_repeats, margin, arm_ratio)
    check_option("method", method, EffectMethod)
    generator = check_rng(rng)
    table = with_strata(self.table, strata)
    if method == "paper":
        given = {
            "collapse": collapse != "auto",
            "split": split,
            "margin": margin is not None,
            "adjust": adjust == "max_t",
            "rest": rest != "stratified",
            "correction": correction != "auto",
            "ranking": ranking is not None,
            "threshold": threshold is not None,
            "budget": budget is not None,
            "control_pred": control_pred is not None,
            "treated_pred": treated_pred is not None,
            "arm_ratio": arm_ratio is not None,
            "n_repeats": n_repeats == 0,
        }
        check_paper(table, [name for name, refused in given.items() if refused], self.effect_preds)
        slope, collapse = False, "positives" if measure == "relative" else "mean"
    sums = yield from experiment_sums(
        table,
        measure=measure,
        collapse=collapse,
        control=control,
        effect_preds=self.effect_preds,
        control_pred=control_pred,
        treated_pred=treated_pred,
        arm_ratio=arm_ratio,
        split=split,
        slope=slope,
        checks=checks,
        seed=int(generator.integers(2**31 - 1)),
    )
    if method == "paper":
        return (
            yield from _paper(
                table,
                sums,
                measure=measure,
                control=control,
                adjust=adjust,
                n_repeats=n_repeats,
                alpha=alpha,
                confidence_level=confidence_level,
                checks=checks,
                rng=generator,
            )
        )
    options = _Options(
        rest=rest,
        adjust=adjust,
        margin=margin,
        correction=correction,
        n_repeats=n_repeats,
        alpha=alpha,
        confidence_level=confidence_level,
    )
    ranked: tuple[Finding, ...] = ()
    if ranking is not None:
        ranked = yield from _rankings(table, ranking, control, options, several=self.effect_preds)
    answers = [_answer(arm, options, generator) for arm in sums.arms]
    answers = _adjusted(answers, options)
    decided: Mapping[Correction, ValueChange] = {}
    if threshold is not None or budget is not None:
        decided = yield from _policy_prices(
            table,
            answers[0],
            options,
            control=control,
            several=self.effect_preds,
            rule={"threshold": threshold, "budget": budget, "cost": cost},
            rng=generator.spawn(1)[0],
        )
    names = _names(sums, table.roles.column("treatment"))
    kind = sums.arms[0].collapse
    notes = [*sums.notes, *_method_notes(measure, kind, split=split)]
    notes += _adjust_notes(adjust, answers)
    if len(answers) > 1:
        notes.append(_arms_note(sums))
    details = _details(names, answers, options)
    details["frontier"] = _frontier(answers[0], decided)
    details["rule"] = {"threshold": threshold, "budget": budget, "cost": cost} if decided else None
    details |= {
        "measure": measure,
        "collapse": kind,
        "split": split,
        "strata": table.roles.strata,
        "n_strata": sums.arms[0].n_strata,
        "control": sums.control,
    }
    details["rankings"] = [
        {"group": f.group, "estimate": f.estimate, "low": f.ci.low, "high": f.ci.high}
        for f in ranked
        if f.estimand.kind == "ranking" and f.ci is not None
    ]
    if table.roles.cluster is not None:
        details["n_clusters"] = sums.arms[0].moments.n_units
    if checks:
        found, extra = _checks(sums, table.roles.features)
        details["checks"] = found
        notes += extra
    return AuditResult(
        audit="treatment_effects",
        null=NULL,
        alternative=ALTERNATIVE,
        alpha=alpha,
        method=_method(answers, measure, kind, split=split),
        n=int(sums.n.sum()),
        findings=tuple(f for answer in answers for f in _biases(names, answer, options))
        + tuple(f for answer in answers for f in _parts(names, answer, options))
        + ranked,
        joint=_joint(answers, alpha),
        notes=tuple(dict.fromkeys(notes)),
        details=EffectDetails(**details),
    )


def _paper(
    table: Table,
    sums: ExperimentSums,
    *,
    measure: EffectMeasure,
    adjust: EffectAdjust,
    alpha: float,
    checks: bool,
    **options: Any,
) -> Asking[AuditResult]:
    """Answer by the published procedure."""
    answer = yield from paper_answer(
        table, sums, measure=measure, adjust=adjust, alpha=alpha, **options
    )
    details = answer.details() | {
        "method": "paper",
        "measure": measure,
        "collapse": sums.arms[0].collapse,
        "compared_with": "pooled",
        "adjust": adjust,
        "split": True,
        "control": sums.control,
    }
    notes = [*sums.notes, *answer.notes, *_multiplicity(adjust, len(details["group"]), 1)]
    if checks:
        details["checks"], extra = _checks(sums, table.roles.features)
        notes += extra
    return AuditResult(
        audit="treatment_effects",
        null=NULL,
        alternative=ALTERNATIVE,
        alpha=alpha,
        method=PAPER_METHOD,
        n=int(sums.n.sum()),
        findings=answer.findings(),
        notes=tuple(dict.fromkeys(notes)),
        details=EffectDetails(**details),
    )


_Names: TypeAlias = Mapping[str, tuple[str, ...]]
"""Names of the groups by arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """What was asked."""

    rest: Rest
    adjust: EffectAdjust
    margin: float | None
    correction: CorrectionChoice
    n_repeats: int
    alpha: float
    confidence_level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What is found for one arm; without two groups that can be tested there are no tests."""

    arm: str
    errors: GroupErrors
    effect: RatioTests | None
    bias: TreatmentBias | None
    slopes: GroupSlopes | None
    slope_p: FloatArray
    rules: Mapping[str, FloatArray]
    shown: str
    recommended: Recommendation | None
    evaluation: EffectEvaluation | None
    prices: tuple[CorrectionPrice, ...] = ()

    @property
    def measure(self) -> str:
        return self.errors.measure

    @property
    def amount(self) -> FloatArray:
        return self.rules[self.shown]


def _check_options(
    alpha: float,
    confidence_level: float,
    adjust: EffectAdjust,
    rest: Rest,
    n_repeats: int,
    margin: float | None,
    arm_ratio: float | None,
) -> None:
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    check_option("adjust", adjust, EffectAdjust)
    check_option("rest", rest, Rest)
    check_integer("n_repeats", n_repeats)
    if margin is not None:
        check_number("margin", margin, low=np.finfo(float).tiny)
    if arm_ratio is not None:
        check_number("arm_ratio", arm_ratio, low=np.finfo(float).tiny)


def _answer(arm: ArmSums, options: _Options, rng: np.random.Generator) -> _Answer:
    """Test one arm: errors, biases and slopes, and what a correction would do."""
    errors = arm.errors()
    slopes = _slopes(arm, errors)
    nothing = _Answer(
        arm=arm.arm,
        errors=errors,
        effect=None,
        bias=None,
        slopes=slopes,
        slope_p=_slope_p_values(slopes, options.adjust),
        rules={},
        shown="none",
        recommended=None,
        evaluation=None,
    )
    if len(errors.tested) < 2:
        return nothing
    bias = treatment_bias(
        errors,
        rest=options.rest,
        adjust=options.adjust,
        margin=options.margin,
        confidence_level=options.confidence_level,
        rng=rng,
    )
    b, s = bias.error.estimate, bias.error.se
    covariance = error_covariance(errors, s)
    rules: dict[str, FloatArray] = {
        rule: effect_correction(
            b, s, method=rule, alpha=options.alpha, p_value=bias.error.p_value
        ).amount
        for rule in all_rules(len(b))
    }
    recommended = recommend_correction(
        b, covariance, p_zero=bias.zero.p_value, alpha=options.alpha, rng=rng
    )
    weight = (errors.weight.value * errors.denominator.value)[errors.tested]
    evaluation = None
    if options.n_repeats:
        evaluation = evaluate_corrections(
            b,
            covariance,
            weight=weight,
            n_repeats=options.n_repeats,
            alpha=options.alpha,
            rng=rng,
        )
    return _Answer(
        arm=arm.arm,
        errors=errors,
        effect=effect_tests(errors, confidence_level=options.confidence_level),
        bias=bias,
        slopes=slopes,
        slope_p=nothing.slope_p,
        rules=rules,
        shown=recommended.rule if options.correction == "auto" else options.correction,
        recommended=recommended,
        evaluation=evaluation,
        # Draws of their own: no other number depends on them.
        prices=correction_prices(
            b,
            covariance,
            weight=weight,
            corrections=all_rules(len(b)),
            alpha=options.alpha,
            # Means over many groups need fewer parts, and their rules take longer to fit.
            n_repeats=10 if len(b) < MANY_GROUPS else 1,
            rng=rng.spawn(1)[0],
        ),
    )


def _policy_prices(
    table: Table,
    answer: _Answer,
    options: _Options,
    *,
    control: object,
    several: Mapping[str, str],
    rule: Mapping[str, Any],
    rng: np.random.Generator,
) -> Asking[Mapping[Correction, ValueChange]]:
    """Return what each correction changes in the decisions of a rule."""
    if several:
        raise InvalidParameterError(
            "a rule is about one treatment; name one column as `effect_pred`, or leave `threshold`"
            " and `budget` out."
        )
    trial = yield from trial_rows(table, "treatment_effects with a rule", control)
    return policy_prices(
        trial.experiment,
        measure=answer.errors.measure,  # type: ignore[arg-type]
        corrections=all_rules(len(answer.errors.tested)),
        alpha=options.alpha,
        confidence_level=options.confidence_level,
        rng=rng,
        **rule,
    )


def _frontier(
    answer: _Answer, decided: Mapping[Correction, ValueChange]
) -> list[dict[str, float | str | None]]:
    """Return what every rule of correction buys and costs."""
    found: list[dict[str, float | str | None]] = []
    for price in answer.prices:
        value = decided.get(price.rule)
        found.append(
            {
                "rule": price.rule,
                "group_error": price.group_error,
                "loss": price.loss,
                "loss_se": price.loss_se,
                "value": None if value is None else value.estimate,
                "value_low": None if value is None else value.low,
                "value_high": None if value is None else value.high,
                "flipped": None if value is None else value.flipped,
            }
        )
    return found


def _slopes(arm: ArmSums, errors: GroupErrors) -> GroupSlopes | None:
    if arm.slope is None:
        return None
    units = errors.n_units.sum(axis=1)
    usable = np.isin(np.arange(len(units)), errors.tested)
    return group_slopes(
        arm.slope,
        arm.slope_names,
        np.where(usable, units, 0.0),
        measure=arm.measure,
        n_strata=arm.n_strata,
    )


def _slope_p_values(slopes: GroupSlopes | None, adjust: EffectAdjust) -> FloatArray:
    if slopes is None or len(slopes.tested) < 2:
        return np.empty(0)
    raw = 2.0 * special.ndtr(-np.abs(slopes.difference_root()))
    if len(raw) == 2:
        return np.asarray(raw)
    return adjusted_p_values(raw, "holm" if adjust == "max_t" else adjust)


def _adjusted(answers: list[_Answer], options: _Options) -> list[_Answer]:
    """Adjust p-values for several arms too: one family of arms and groups."""
    tested = [answer.bias for answer in answers if answer.bias is not None]
    if len(tested) < 2 or options.adjust == "none":
        return answers
    p = np.concatenate([bias.bias.p_value_raw for bias in tested])
    if options.adjust == "max_t":
        # Step-down within an arm, and the number of arms times that.
        p = np.concatenate([bias.bias.p_value for bias in tested])
        joint = np.minimum(p * len(tested), 1.0)
    else:
        joint = adjusted_p_values(p, options.adjust)
    found, start = [], 0
    for answer in answers:
        if answer.bias is None:
            found.append(answer)
            continue
        size = len(answer.bias.bias.p_value)
        mine = joint[start : start + size]
        start += size
        bias = replace(answer.bias, bias=replace(answer.bias.bias, p_value=mine))
        found.append(replace(answer, bias=bias))
    return found


def _names(sums: ExperimentSums, treatment: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the groups by arm; with several arms the arm is part of them."""
    if len(sums.arms) == 1:
        return {sums.arms[0].arm: sums.groups}
    return {
        arm.arm: tuple(f"{group} & {condition(treatment, arm.arm)}" for group in sums.groups)
        for arm in sums.arms
    }


def _details(names: _Names, answers: list[_Answer], options: _Options) -> dict[str, Any]:
    """Return the numbers of the tested groups, one list for each quantity, arm after arm."""
    details: dict[str, Any] = {
        "compared_with": options.rest,
        "adjust": options.adjust,
        "margin": options.margin,
    }
    told = [answer for answer in answers if answer.bias is not None]
    for answer in told:
        for name, values in _numbers(names, answer, options).items():
            details.setdefault(name, [])
            details[name] += values
    if not told:
        return details
    rules: dict[str, list[float]] = {}
    for answer in told:
        for rule, amount in answer.rules.items():
            rules[rule] = rules.get(rule, []) + amount.tolist()
    first = told[0]
    if first.bias is None or first.recommended is None:
        return details
    prior = normal_prior(first.bias.error.estimate, first.bias.error.se)
    details |= {
        "omnibus": {
            "equal": _chi_square(first.bias.equal),
            "zero": _chi_square(first.bias.zero),
        },
        "remaining": _remaining(told),
        "corrections": rules,
        "correction": first.shown,
        "recommended": _recommendation(first.recommended),
        "prior_mean": prior.mean,
        "prior_sd": prior.sd,
        "evaluation": None if first.evaluation is None else _evaluation(first.evaluation),
        "by_arm": [_arm_details(answer) for answer in told] if len(answers) > 1 else [],
    }
    return details


def _numbers(names: _Names, answer: _Answer, options: _Options) -> dict[str, list[Any]]:
    errors, bias, effect = answer.errors, answer.bias, answer.effect
    if bias is None or effect is None:
        return {}
    tested = errors.tested
    m = len(tested)
    # The bias that is detected with a chance of 80%.
    quantiles = -special.ndtri(options.alpha / (2.0 * max(m, 1))) + special.ndtri(0.8)
    slope = _slope_numbers(answer)
    return {
        "group": [names[answer.arm][g] for g in tested],
        "arm": [answer.arm] * m,
        "n_control": errors.n_control[tested].tolist(),
        "n_treated": errors.n_treated[tested].tolist(),
        "control_strength": errors.control_strength.tolist(),
        "tau": errors.effect.tolist(),
        "tau_se": effect.se.tolist(),
        "tau_ci": _intervals(effect),
        "tau_f": errors.predicted.tolist(),
        "tau_f_se": errors.predicted_se.tolist(),
        "B": bias.error.estimate.tolist(),
        "B_se": bias.error.se.tolist(),
        "B_ci": _intervals(bias.error),
        "B_p_value": bias.error.p_value.tolist(),
        "B_p_value_raw": bias.error.p_value_raw.tolist(),
        "B_second_order_bias": errors.second_order_bias.tolist(),
        "rest": bias.rest.tolist(),
        "A": bias.bias.estimate.tolist(),
        "A_se": bias.bias.se.tolist(),
        "A_ci": _intervals(bias.bias),
        "detectable": (quantiles * bias.bias.se).tolist(),
        "slopes": slope,
        "units": [
            {
                "group": names[answer.arm][g],
                "n_units": errors.n_units[g].tolist(),
                "n_eff": errors.n_eff[g].tolist(),
                "df": float(bias.df[k]) if np.isfinite(bias.df[k]) else None,
            }
            for k, g in enumerate(tested)
            if np.isfinite(errors.n_units[g]).all()
        ],
    }


def _slope_numbers(answer: _Answer) -> list[dict[str, Any]]:
    """Return slope, its standard error and p-values for each tested group; None where untested."""
    slopes, tested = answer.slopes, answer.errors.tested
    if slopes is None:
        return []
    place = {int(g): k for k, g in enumerate(slopes.tested)}
    ones, zeros = (2.0 * special.ndtr(-np.abs(slopes.root(value))) for value in (1.0, 0.0))
    found: list[dict[str, Any]] = []
    for g in tested:
        k = place.get(int(g))
        if k is None:
            found.append({"slope": None, "se": None, "p_one": None, "p_zero": None})
            continue
        found.append(
            {
                "slope": float(slopes.slope[k]),
                "se": float(slopes.se[k]),
                "p_one": float(ones[k]),
                "p_zero": float(zeros[k]),
            }
        )
    return found


def _remaining(told: list[_Answer]) -> dict[str, Any]:
    """Return what the correction shown leaves on the same data: intervals are shifted."""
    found: dict[str, list[Any]] = {"B": [], "B_ci": [], "A": [], "A_ci": []}
    for answer in told:
        if answer.bias is None:
            continue
        c = answer.amount
        errors = answer.errors
        weight = (errors.weight.value * errors.denominator.value)[errors.tested]
        rest = ((weight * c).sum() - weight * c) / (weight.sum() - weight)
        for name, tests, shift in (("B", answer.bias.error, c), ("A", answer.bias.bias, c - rest)):
            found[name] += (tests.estimate - shift).tolist()
            found[f"{name}_ci"] += [
                [None if end is None else end - x for end in ends]
                for ends, x in zip(_intervals(tests), shift.tolist(), strict=True)
            ]
    return found


def _arm_details(answer: _Answer) -> dict[str, Any]:
    if answer.bias is None or answer.recommended is None:
        return {"arm": answer.arm}
    return {
        "arm": answer.arm,
        "omnibus": {
            "equal": _chi_square(answer.bias.equal),
            "zero": _chi_square(answer.bias.zero),
        },
        "correction": answer.shown,
        "recommended": _recommendation(answer.recommended),
        "frontier": _frontier(answer, {}),
    }


def _intervals(tests: RatioTests) -> list[list[float | None]]:
    return [list(bounds) for bounds in zip(tests.low, tests.high, strict=True)]


def _chi_square(test: ChiSquareTest) -> dict[str, float]:
    return {"statistic": test.statistic, "df": test.df, "p_value": test.p_value}


def _recommendation(found: Recommendation) -> dict[str, Any]:
    return {
        "rule": found.rule,
        "candidate": found.candidate,
        "p_zero": found.p_zero,
        "delta": found.delta,
        "delta_se": found.delta_se,
    }


def _evaluation(found: EffectEvaluation) -> dict[str, Any]:
    return {
        "corrections": list(found.corrections),
        "error_mean_square": found.error_mean_square.tolist(),
        "error_spread": found.error_spread.tolist(),
        "bias_mean_square": found.bias_mean_square.tolist(),
        "raw_mean_square": found.raw_mean_square.tolist(),
        "rejected": found.rejected.tolist(),
        "n_repeats": found.n_repeats,
        "n_groups": found.n_groups,
    }


def _joint(answers: list[_Answer], alpha: float) -> JointTest | None:
    """One test for all groups; with several arms the smallest p-value times their number."""
    found = [answer.bias.equal for answer in answers if answer.bias is not None]
    if not found:
        return None
    null = "predicted effects have the same error in every group"
    if len(found) == 1:
        (equal,) = found
        return JointTest(
            null=null,
            decision=Decision.DETECTED if equal.p_value <= alpha else Decision.NOT_DETECTED,
            method="chi-square test around a common error",
            statistic=equal.statistic,
            df=float(equal.df),
            p_value=equal.p_value,
        )
    p = min(1.0, len(found) * min(test.p_value for test in found))
    return JointTest(
        null=f"{null}, for every arm",
        decision=Decision.DETECTED if p <= alpha else Decision.NOT_DETECTED,
        method="Bonferroni over arms",
        p_value=p,
    )


def _checks(sums: ExperimentSums, features: tuple[str, ...]) -> tuple[dict[str, Any], list[Note]]:
    """Return the checks of the experiment, and notes on what looks wrong."""

    def known(values: FloatArray) -> list[float | None]:
        return [float(x) if np.isfinite(x) else None for x in values]

    ratio, balance = sums.ratio, sums.balance
    (joint,) = known(np.array([ratio.joint_p_value]))
    found: dict[str, Any] = {
        "sample_ratio": {
            "group": list(sums.groups),
            "share": ratio.share.tolist(),
            "p_value": known(ratio.p_value),
            "joint_p_value": joint,
        }
    }
    notes = []
    if joint is not None and joint < WARNED:
        # Of two groups each is what the other is compared with: they have one p-value.
        worst = int(np.lexsort((ratio.share, ratio.p_value))[0])
        message = (
            f"The share of treated rows differs between groups (p {joint:.2g}), most in"
            f" {sums.groups[worst]} ({ratio.share[worst]:.1%} treated). Rows may have been lost"
            " after assignment, or treatment was assigned within strata that are not named."
        )
        notes.append(Note(code="sample-ratio", message=message))
    if balance is None:
        return found, notes
    names = list(features)
    found["balance"] = {
        "group": list(sums.groups),
        "p_value": known(balance.p_value),
        "largest": known(balance.largest),
        "covariate": [names[k] if k < len(names) else "" for k in balance.covariate],
    }
    p = balance.p_value[np.isfinite(balance.p_value)]
    if len(p) and p.min() * len(p) < WARNED:
        worst = int(np.lexsort((-balance.largest, balance.p_value))[0])
        message = (
            f"Covariates differ between the arms in {sums.groups[worst]}"
            f" (p {balance.p_value[worst]:.2g}; largest difference {balance.largest[worst]:.2g}"
            f" standard deviations, {found['balance']['covariate'][worst]}): treatment was not"
            " assigned at random there, or a stratum is missing."
        )
        notes.append(Note(code="balance", message=message))
    return found, notes


def _biases(names: _Names, answer: _Answer, options: _Options) -> tuple[Finding, ...]:
    errors, bias = answer.errors, answer.bias
    place = {int(g): k for k, g in enumerate(errors.tested)}
    estimand = effect_estimand(answer.measure, "bias")
    findings = []
    for g, name in enumerate(names[answer.arm]):
        shared: dict[str, Any] = {
            "group": name,
            "estimand": estimand,
            "n": int(errors.n[g]),
            "reference": "the rest",
        }
        if g not in place or bias is None:
            reason = NO_REST if g in place else _untested_note(errors, g)
            shared |= {"method": "none", "notes": (reason,)}
            findings.append(Finding(decision=Decision.NOT_TESTED, **shared))
            continue
        k = place[g]
        tests = bias.bias
        decision, notes = _decision(tests, k, options)
        notes += _bias_notes(errors, bias, k, g)
        ci = _interval(tests, k, options)
        if decision is not Decision.WITHIN_MARGIN and (0.0 in ci) == (
            decision is Decision.DETECTED
        ):
            notes.append(INTERVAL_UNADJUSTED)
        findings.append(
            Finding(
                decision=decision,
                estimate=float(tests.estimate[k]),
                ci=ci,
                statistic=float(tests.statistic[k]),
                p_value=float(tests.p_value[k]),
                p_value_raw=float(tests.p_value_raw[k]),
                method=tests.method[k],
                notes=tuple(notes),
                **shared,
            )
        )
    return tuple(findings)


def _parts(names: _Names, answer: _Answer, options: _Options) -> list[Finding]:
    """Return what a reader needs beside the bias: effect, prediction, error, correction, slope."""
    errors, bias, effect = answer.errors, answer.bias, answer.effect
    findings: list[Finding] = []
    if bias is None or effect is None:
        return findings
    left = _remaining([answer])
    for k, g in enumerate(errors.tested):

        def estimated(
            kind: EstimandKind,
            value: float,
            ci: ConfidenceInterval | None = None,
            *,
            g: int = int(g),
            method: str = "none",
            notes: tuple[Note, ...] = _shape_notes(errors),
        ) -> Finding:
            return Finding(
                group=names[answer.arm][g],
                estimand=effect_estimand(answer.measure, kind),
                decision=Decision.ESTIMATED,
                n=int(errors.n[g]),
                method=method,
                estimate=float(value),
                ci=ci,
                notes=() if ci is None else notes,
            )

        low, high = left["B_ci"][k]
        findings += [
            estimated(
                "effect", errors.effect[k], _interval(effect, k, options), method=effect.method[k]
            ),
            estimated("predicted", errors.predicted[k]),
            estimated(
                "error",
                bias.error.estimate[k],
                _interval(bias.error, k, options),
                method=bias.error.method[k],
            ),
            estimated("correction", answer.amount[k], method=answer.shown),
            estimated(
                "remaining",
                left["B"][k],
                ConfidenceInterval(low=low, high=high, confidence_level=options.confidence_level),
                method=bias.error.method[k],
            ),
        ]
    return findings + _slope_findings(names, answer, options)


def _slope_findings(names: _Names, answer: _Answer, options: _Options) -> list[Finding]:
    slopes = answer.slopes
    if slopes is None:
        return []
    findings = []
    several = len(slopes.tested) > 1
    # Two groups have one difference of slopes: it is one test.
    for k, g in enumerate(slopes.tested):
        shared: dict[str, Any] = {
            "group": names[answer.arm][g],
            "n": int(answer.errors.n[g]),
            "method": "t",
        }
        findings.append(
            Finding(
                decision=Decision.ESTIMATED,
                estimand=effect_estimand(answer.measure, "slope"),
                estimate=float(slopes.slope[k]),
                ci=_t_interval(slopes.slope[k], slopes.se[k], slopes.df[k], options),
                notes=_slope_notes(slopes, k, options.alpha),
                **shared,
            )
        )
        if not several:
            continue
        p = float(answer.slope_p[k])
        root = float(slopes.difference_root()[k])
        findings.append(
            Finding(
                decision=Decision.DETECTED if p <= options.alpha else Decision.NOT_DETECTED,
                estimand=effect_estimand(answer.measure, "slope difference"),
                estimate=float(slopes.difference[k]),
                ci=_t_interval(
                    slopes.difference[k],
                    slopes.difference_se[k],
                    slopes.difference_df[k],
                    options,
                ),
                statistic=root,
                p_value=p,
                p_value_raw=float(2.0 * special.ndtr(-abs(root))),
                reference="the rest",
                **shared,
            )
        )
    return findings


def _rankings(
    table: Table,
    kind: EffectRanking,
    control: object,
    options: _Options,
    *,
    several: Mapping[str, str],
) -> Asking[tuple[Finding, ...]]:
    """Return the rank-weighted average effect of every group, and their differences."""
    if several:
        raise InvalidParameterError(
            "`ranking` is about one treatment; name one column as `effect_pred`."
        )
    trial = yield from trial_rows(table, "ranking", control)
    # Draws of its own: asking for it changes no other number.
    rows = trial.experiment
    found = group_rankings(
        rows.scores,
        rows.predicted,
        rows.group,
        rows.treated,
        rows.rows,
        kind=kind,
        confidence_level=options.confidence_level,
        rng=0,
    )
    size = trial.size

    def finding(one: GroupContrast, **more: Any) -> Finding:
        level = options.confidence_level
        return Finding(
            group=trial.names[one.group],
            estimate=one.estimate,
            ci=ConfidenceInterval(low=one.low, high=one.high, confidence_level=level),
            n=int(size[one.group]),
            method=kind,
            **more,
        )

    estimated = [
        finding(one, decision=Decision.ESTIMATED, estimand=effect_estimand("difference", "ranking"))
        for one in found.values
    ]
    compared = [
        finding(
            one,
            decision=Decision.DETECTED
            if (one.p_value_adjusted or 0.0) <= options.alpha
            else Decision.NOT_DETECTED,
            estimand=effect_estimand("difference", "ranking difference"),
            statistic=one.statistic,
            p_value=one.p_value_adjusted,
            p_value_raw=one.p_value,
            reference="the rest",
        )
        for one in found.differences
    ]
    untested = [
        Finding(
            group=trial.names[g],
            estimand=effect_estimand("difference", "ranking"),
            decision=Decision.NOT_TESTED,
            n=int(size[g]),
            method=kind,
            notes=(Note(code="too-small", message=f"Ranking is not tested: {reason}."),),
        )
        for (_, g), reason in found.missing.items()
    ]
    return (*estimated, *untested, *compared)


def _slope_notes(slopes: GroupSlopes, k: int, alpha: float) -> tuple[Note, ...]:
    value = float(slopes.slope[k])
    if 2.0 * special.ndtr(-abs(slopes.root(1.0)[k])) > alpha:
        return ()
    if value <= 0.0:
        words = "predicted differences inside the group are not those of the effects"
    elif value < 1.0:
        words = f"predicted differences inside the group are about {1 / value:.1f} times too large"
    else:
        words = f"effects differ inside the group about {value:.1f} times as much as predicted"
    return (Note(code="slope", message=f"Slope {value:.2g}: {words}."),)


def _t_interval(value: float, se: float, df: float, options: _Options) -> ConfidenceInterval:
    half = -float(special.stdtrit(df, (1.0 - options.confidence_level) / 2.0)) * float(se)
    return ConfidenceInterval(
        low=float(value) - half,
        high=float(value) + half,
        confidence_level=options.confidence_level,
    )


def _interval(tests: RatioTests, k: int, options: _Options) -> ConfidenceInterval:
    return ConfidenceInterval(
        low=tests.low[k], high=tests.high[k], confidence_level=options.confidence_level
    )


def _untested_note(errors: GroupErrors, g: int) -> Note:
    code = errors.untested[g]
    if code != "too-few-units":
        return _UNTESTED[code]
    arm = int(np.argmin(errors.n_eff[g]))
    message = (
        f"{'Control' if arm == 0 else 'Treated'} arm: {errors.n_units[g, arm]:.0f} independent"
        f" units, effective {errors.n_eff[g, arm]:.1f}; {UNTESTED[code]}."
    )
    return Note(code="too-few-units", message=message)


def _bias_notes(errors: GroupErrors, bias: TreatmentBias, k: int, g: int) -> list[Note]:
    notes = []
    if errors.measure == "relative" and errors.control_strength[k] < FEW_POSITIVES:
        notes.append(_FEW)
    df = float(bias.df[k])
    if df < FEW_DF:
        arm = int(np.argmin(errors.n_eff[g]))
        message = (
            f"Few units: {errors.n_units[g, arm]:.0f} in the smaller arm, effective"
            f" {errors.n_eff[g, arm]:.1f}, {df:.1f} degrees of freedom."
        )
        notes.append(Note(code="few-units", message=message))
    if bias.bias.low[k] is None or bias.bias.high[k] is None:
        notes.append(_UNBOUNDED)
    return notes


def _shape_notes(errors: GroupErrors) -> tuple[Note, ...]:
    """Say how often intervals of one group err when an arm has few units in all groups."""
    pool = float(errors.n_units[errors.tested].sum(axis=0).min(initial=np.inf))
    if errors.measure != "difference" or errors.binary or pool >= SHAPE_UNITS:
        return ()
    message = (
        f"An arm has {pool:.0f} units in all groups together, too few to know the shape of its"
        " outcomes. In simulations with as few, up to 99 in 100 zero or 2% of them far out, 95%"
        f" intervals missed up to {MISSED:.0%} of the time, and the test that no group errs"
        f" rejected up to {REJECTED:.0%} at 5%."
    )
    return (Note(code="shape-unknown", message=message),)


def _decision(tests: RatioTests, k: int, options: _Options) -> tuple[Decision, list[Note]]:
    detected = tests.p_value[k] <= options.alpha
    if tests.equivalence_p_value is not None and tests.equivalence_p_value[k] <= options.alpha:
        return Decision.WITHIN_MARGIN, [_WITHIN] if detected else []
    return (Decision.DETECTED if detected else Decision.NOT_DETECTED), []


def _method(answers: list[_Answer], measure: str, collapse: str, *, split: bool) -> str:
    used = {
        method
        for answer in answers
        if answer.bias is not None
        for method in answer.bias.bias.method
    }
    tests = {
        "t": "t test",
        "mid-p": "conditional mid-P test",
        "score": "score test",
        "wald": "Wald test",
    }
    test = " and ".join(sorted(tests[name] for name in used)) or "no test"
    words = f"{test}, {measure} effects, {collapse} collapse"
    return f"{words}, estimation and prediction halves" if split else words


def _method_notes(measure: str, collapse: str, *, split: bool) -> list[Note]:
    notes = []
    if (measure, collapse) in INCONSISTENT:
        message = f'collapse="{collapse}": {INCONSISTENT[measure, collapse]}.'
        notes.append(Note(code="collapse", message=message))
    if split:
        message = (
            "Effects and predictions come from separate random halves, as in the paper; this about"
            " doubles the variances and changes nothing else."
        )
        notes.append(Note(code="split-halves", message=message))
    return notes


def _arms_note(sums: ExperimentSums) -> Note:
    arms = ", ".join(arm.arm for arm in sums.arms)
    message = (
        f"`treatment` has arms {sums.control}, {arms}: each is compared with {sums.control}"
        " (`control=` to change)."
    )
    return Note(code="several-arms", message=message)


def _adjust_notes(adjust: EffectAdjust, answers: list[_Answer]) -> list[Note]:
    size = sum(len(answer.errors.tested) for answer in answers if answer.bias is not None)
    return _multiplicity(adjust, size, len(answers))


def _multiplicity(adjust: EffectAdjust, size: int, n_arms: int) -> list[Note]:
    words = {
        "holm": "Holm's method",
        "bonferroni": "Bonferroni's method",
        "bh": "the Benjamini-Hochberg method",
        "by": "the Benjamini-Yekutieli method",
        "max_t": "the law of the largest of the remaining statistics (step-down max-t)",
    }
    if size <= 2 or adjust == "none":
        return []
    family = f"{size} groups" if n_arms == 1 else f"{size} pairs of arm and group"
    message = f"P-values are adjusted for {family} by {words[adjust]}; intervals are not."
    return [Note(code="multiplicity", message=message)]
