"""Are predicted treatment effects equally accurate: detection, correction, evaluation."""

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._checks import (
    check_flag,
    check_fraction,
    check_integer,
    check_number,
    check_option,
    check_rng,
)
from equipoise._typing import Collapse, EffectAdjust, EffectMeasure, Rest, Rng
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.effects.questions import EffectDetails
from equipoise.audits.effects.sums import EffectSums, effect_sums
from equipoise.audits.progress import progress_bar
from equipoise.exceptions import DataError
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.effects.bias import ChiSquareTest, TreatmentBias, treatment_bias
from equipoise.stats.effects.corrections import (
    CORRECTIONS,
    default_correction,
    effect_correction,
    normal_prior,
)
from equipoise.stats.effects.errors import GroupErrors, corrected_errors, group_errors
from equipoise.stats.effects.evaluation import EffectEvaluation, evaluate_corrections, merge_blocks
from equipoise.stats.effects.ratio_tests import RatioTests

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["treatment_effects"]

N_BLOCKS = 64
"""Random blocks of rows; a half is 32 of them."""

FEW_POSITIVES = 20
MANY_GROUPS = 50
"""Groups from which the nonparametric prior is offered."""

UNTESTED_NOTES = {
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
_NO_REST = Note(
    code="no-rest",
    message="No other group can be tested, so there is nothing to compare this group with.",
)
_FEW = Note(
    code="few-control-positives",
    message=f"Fewer than {FEW_POSITIVES} control positives: the interval is wide; the score test"
    " keeps its level.",
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
    check_flag("split", split)
    _check_options(alpha, confidence_level, adjust, rest, n_repeats, margin, arm_ratio)
    generator = check_rng(rng)
    sums = yield from effect_sums(
        self.table,
        measure=measure,
        collapse=collapse,
        control_pred=control_pred,
        treated_pred=treated_pred,
        arm_ratio=arm_ratio,
        n_blocks=N_BLOCKS if n_repeats or split else 1,
        seed=int(generator.integers(2**31 - 1)),
    )
    errors = _errors(sums, measure, arm_ratio, split=split)
    notes = [*sums.notes, *_method_notes(measure, sums.collapse, split=split)]
    details: dict[str, Any] = {
        "measure": measure,
        "collapse": sums.collapse,
        "split": split,
        "compared_with": rest,
        "adjust": adjust,
        "margin": margin,
    }
    if self.table.roles.cluster is not None:
        details["n_clusters"] = sums.moments.n_units
    bias = None
    if len(errors.tested) >= 2:
        options: dict[str, Any] = {
            "rest": rest,
            "adjust": adjust,
            "confidence_level": confidence_level,
            "rng": generator,
        }
        bias = treatment_bias(errors, margin=margin, **options)
        rule, corrections, extra = _corrections(errors, alpha)
        notes += [*_adjust_notes(adjust, len(errors.tested)), *extra]
        corrected = corrected_errors(errors, np.array(corrections["corrections"][rule]))
        left = treatment_bias(corrected, **options)
        details |= _numbers(sums.groups, errors, bias, left) | corrections
        details["evaluation"], extra = _evaluation(
            sums, measure, arm_ratio, n_repeats, alpha, generator
        )
        notes += extra
    word = "relative effect" if measure == "relative" else "effect"
    return AuditResult(
        audit="treatment_effects",
        null="the group's predicted effects have the same error as those of the rest",
        alternative="the group's predicted effects have another error than those of the rest",
        alpha=alpha,
        method=_method(measure, sums.collapse, split=split),
        n=int(errors.n.sum()),
        findings=_findings(
            sums.groups,
            errors,
            bias,
            estimand=Estimand(f"bias of the predicted {word}", "bias", scale="difference"),
            alpha=alpha,
            confidence_level=confidence_level,
        ),
        joint=None if bias is None else _joint(bias.equal, alpha),
        notes=tuple(notes),
        details=EffectDetails(**details),
    )


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


def _errors(
    sums: EffectSums, measure: EffectMeasure, arm_ratio: float | None, *, split: bool
) -> GroupErrors:
    halves = np.arange(sums.n_blocks) % 2 if split else None
    merged = merge_blocks(
        sums.moments,
        np.ones(sums.n_blocks, dtype=bool),
        n_blocks=sums.n_blocks,
        halves=halves,
    )
    return group_errors(
        merged, measure=measure, collapse=sums.collapse, arm_ratio=arm_ratio, split=split
    )


def _corrections(errors: GroupErrors, alpha: float) -> tuple[str, dict[str, Any], list[Note]]:
    """Return the default rule, the amounts of every rule with the prior, and notes."""
    size = len(errors.tested)
    rules = [c for c in CORRECTIONS if c != "npmle" or size >= MANY_GROUPS]
    amounts: dict[str, list[float]] = {
        rule: effect_correction(
            errors.error, errors.error_se, method=rule, alpha=alpha
        ).amount.tolist()
        for rule in rules
    }
    prior = normal_prior(errors.error, errors.error_se)
    rule = default_correction(size)
    notes = []
    if rule != "eb":
        message = (
            f"{size} groups are too few to estimate how much groups differ: the correction shown"
            " subtracts an error where it is detected."
        )
        notes.append(Note(code="few-groups", message=message))
    found = {
        "prior_mean": prior.mean,
        "prior_sd": prior.sd,
        "correction": rule,
        "corrections": amounts,
    }
    return rule, found, notes


def _evaluation(
    sums: EffectSums,
    measure: EffectMeasure,
    arm_ratio: float | None,
    n_repeats: int,
    alpha: float,
    rng: np.random.Generator,
) -> tuple[dict[str, Any] | None, list[Note]]:
    if not n_repeats:
        return None, []
    try:
        with progress_bar("Evaluating corrections on held-out halves") as progress:
            found = evaluate_corrections(
                sums.moments,
                n_blocks=sums.n_blocks,
                measure=measure,
                collapse=sums.collapse,
                n_repeats=n_repeats,
                alpha=alpha,
                arm_ratio=arm_ratio,
                rng=rng,
                progress=progress,
            )
    except DataError as error:
        return None, [Note(code="no-evaluation", message=f"Corrections not evaluated: {error}")]
    notes = []
    if found.n_groups < len(sums.groups):
        message = (
            f"The evaluation of corrections uses {found.n_groups} of {len(sums.groups)} groups:"
            " the others cannot be tested in every random half."
        )
        notes.append(Note(code="evaluation-groups", message=message))
    return _evaluation_dict(found), notes


def _evaluation_dict(found: EffectEvaluation) -> dict[str, Any]:
    return {
        "corrections": list(found.corrections),
        "error_mean_square": found.error_mean_square.tolist(),
        "error_spread": found.error_spread.tolist(),
        "bias_mean_square": found.bias_mean_square.tolist(),
        "raw_mean_square": found.raw_mean_square.tolist(),
        "rejected": found.rejected.tolist(),
        "n_repeats": found.n_repeats,
        "n_groups": found.n_groups,
        "recommended": found.recommended,
    }


def _numbers(
    groups: tuple[str, ...], errors: GroupErrors, bias: TreatmentBias, left: TreatmentBias
) -> dict[str, Any]:
    """Return the numbers of the tested groups, one list for each quantity."""

    def intervals(tests: RatioTests) -> list[list[float | None]]:
        return [list(bounds) for bounds in zip(tests.low, tests.high, strict=True)]

    return {
        "group": [groups[g] for g in errors.tested],
        "n_control": errors.n_control[errors.tested].tolist(),
        "n_treated": errors.n_treated[errors.tested].tolist(),
        "control_strength": errors.control_strength.tolist(),
        "tau": errors.effect.tolist(),
        "tau_se": errors.effect_se.tolist(),
        "tau_f": errors.predicted.tolist(),
        "tau_f_se": errors.predicted_se.tolist(),
        "B": errors.error.tolist(),
        "B_se": errors.error_se.tolist(),
        "B_ci": intervals(bias.error),
        "B_p_value": bias.error.p_value.tolist(),
        "B_p_value_raw": bias.error.p_value_raw.tolist(),
        "B_second_order_bias": errors.second_order_bias.tolist(),
        "rest": bias.rest.tolist(),
        "A": bias.bias.estimate.tolist(),
        "A_se": bias.bias.se.tolist(),
        "A_ci": intervals(bias.bias),
        "omnibus": {"equal": _chi_square(bias.equal), "zero": _chi_square(bias.zero)},
        "remaining": {
            "B": left.error.estimate.tolist(),
            "B_ci": intervals(left.error),
            "A": left.bias.estimate.tolist(),
            "A_ci": intervals(left.bias),
        },
    }


def _chi_square(test: ChiSquareTest) -> dict[str, float]:
    return {"statistic": test.statistic, "df": test.df, "p_value": test.p_value}


def _joint(equal: ChiSquareTest, alpha: float) -> JointTest:
    return JointTest(
        null="predicted effects have the same error in every group",
        decision=Decision.DETECTED if equal.p_value <= alpha else Decision.NOT_DETECTED,
        method="chi-square test around a common error",
        statistic=equal.statistic,
        df=float(equal.df),
        p_value=equal.p_value,
    )


def _findings(
    groups: tuple[str, ...],
    errors: GroupErrors,
    bias: TreatmentBias | None,
    *,
    estimand: Estimand,
    alpha: float,
    confidence_level: float,
) -> tuple[Finding, ...]:
    place = {int(g): k for k, g in enumerate(errors.tested)}
    findings = []
    for g, name in enumerate(groups):
        shared: dict[str, Any] = {
            "group": name,
            "estimand": estimand,
            "n": int(errors.n[g]),
            "reference": "the rest",
        }
        if g not in place or bias is None:
            reason = _NO_REST if g in place else UNTESTED_NOTES[errors.untested[g]]
            shared |= {"method": "none", "notes": (reason,)}
            findings.append(Finding(decision=Decision.NOT_TESTED, **shared))
            continue
        k = place[g]
        tests = bias.bias
        decision, notes = _decision(tests, k, alpha)
        if errors.measure == "relative" and errors.control_strength[k] < FEW_POSITIVES:
            notes.append(_FEW)
        if tests.low[k] is None:
            notes.append(_UNBOUNDED)
        findings.append(
            Finding(
                decision=decision,
                estimate=float(tests.estimate[k]),
                ci=ConfidenceInterval(
                    low=tests.low[k], high=tests.high[k], confidence_level=confidence_level
                ),
                statistic=float(tests.statistic[k]),
                p_value=float(tests.p_value[k]),
                p_value_raw=float(tests.p_value_raw[k]),
                method=tests.method[k],
                notes=tuple(notes),
                **shared,
            )
        )
    return tuple(findings)


def _decision(tests: RatioTests, k: int, alpha: float) -> tuple[Decision, list[Note]]:
    detected = tests.p_value[k] <= alpha
    if tests.equivalence_p_value is not None and tests.equivalence_p_value[k] <= alpha:
        return Decision.WITHIN_MARGIN, [_WITHIN] if detected else []
    return (Decision.DETECTED if detected else Decision.NOT_DETECTED), []


def _method(measure: str, collapse: str, *, split: bool) -> str:
    test = "score test" if measure == "relative" else "z test"
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


def _adjust_notes(adjust: EffectAdjust, size: int) -> list[Note]:
    words = {
        "holm": "Holm's method",
        "bonferroni": "Bonferroni's method",
        "bh": "the Benjamini-Hochberg method",
        "by": "the Benjamini-Yekutieli method",
        "max_t": "the law of the largest of all statistics (max-t)",
    }
    if size == 2 or adjust == "none":
        return []
    message = f"P-values are adjusted for {size} groups by {words[adjust]}; intervals are not."
    return [Note(code="multiplicity", message=message)]
