"""The question about predicted effects: what is asked, and how an answer is told."""

from dataclasses import dataclass, field
from typing import Any

from equipoise.results.assumptions import Assumption
from equipoise.results.details import Details, details_of
from equipoise.results.finding import Decision
from equipoise.results.formats import number, p_value
from equipoise.results.question import Question, Section
from equipoise.results.result import AuditResult
from equipoise.results.wording import decided, joint_detected, joint_p, largest, tested, value

__all__ = ["TREATMENT_EFFECTS", "EffectDetails"]

SECTION = Section(
    id="effects",
    heading="Are effects predicted equally well?",
    lead="Whether predicted effects of a treatment are off by the same amount in every group.",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EffectDetails(Details):
    """Effects, predictions, errors and corrections of the tested groups, a list for each.

    Parameters
    ----------
    measure, collapse, split, compared_with, adjust, margin : optional
        As asked.
    group : list of str
        The tested groups; the following lists are in this order.
    n_control, n_treated, control_strength : list
        Sizes of the arms.
    tau, tau_se, tau_f, tau_f_se : list of float
        Effect and predicted effect with standard errors.
    B, B_se, B_ci, B_p_value, B_p_value_raw, B_second_order_bias : list
        Error of the prediction.
    rest : list of float
        Error of the other groups.
    A, A_se, A_ci : list
        Difference of the errors.
    omnibus : dict
        Tests that all errors are equal, and zero.
    remaining : dict
        What a correction leaves, on the same data.
    prior_mean, prior_sd : float, optional
        Of the normal law of the errors.
    correction : str, optional
        The rule shown; `corrections` has the amounts of every rule.
    corrections : dict of str to list of float
        Amounts to subtract.
    evaluation : dict, optional
        What corrections leave on held-out halves.
    """

    measure: str = "relative"
    collapse: str = ""
    split: bool = False
    compared_with: str = "stratified"
    adjust: str = "holm"
    margin: float | None = None
    group: list[str] = field(default_factory=list)
    n_control: list[int] = field(default_factory=list)
    n_treated: list[int] = field(default_factory=list)
    control_strength: list[float] = field(default_factory=list)
    tau: list[float] = field(default_factory=list)
    tau_se: list[float] = field(default_factory=list)
    tau_f: list[float] = field(default_factory=list)
    tau_f_se: list[float] = field(default_factory=list)
    B: list[float] = field(default_factory=list)
    B_se: list[float] = field(default_factory=list)
    B_ci: list[list[float | None]] = field(default_factory=list)
    B_p_value: list[float] = field(default_factory=list)
    B_p_value_raw: list[float] = field(default_factory=list)
    B_second_order_bias: list[float] = field(default_factory=list)
    rest: list[float] = field(default_factory=list)
    A: list[float] = field(default_factory=list)
    A_se: list[float] = field(default_factory=list)
    A_ci: list[list[float | None]] = field(default_factory=list)
    omnibus: dict[str, Any] = field(default_factory=dict)
    remaining: dict[str, Any] = field(default_factory=dict)
    prior_mean: float | None = None
    prior_sd: float | None = None
    correction: str | None = None
    corrections: dict[str, list[float]] = field(default_factory=dict)
    evaluation: dict[str, Any] | None = None


def _treatment_effects(result: AuditResult) -> str:
    compared = tested(result)
    biased = decided(result, Decision.DETECTED)
    p = joint_p(result)
    test = "" if p is None else f" (omnibus test p {p_value(p)})"
    if biased or joint_detected(result):
        furthest = largest(biased or compared, result)
        return (
            f"Predicted effects are not equally accurate in every group{test}, most for"
            f" {value(furthest)}; {len(biased)} of {len(compared)} groups differ"
        )
    within = decided(result, Decision.WITHIN_MARGIN)
    if within and len(within) == len(result.findings):
        margin = number(details_of(result.details, EffectDetails).margin)
        return f"All {len(within)} groups are shown to have a prediction bias within {margin}"
    return (
        f"No difference in the accuracy of predicted effects was detected among"
        f" {len(compared)} groups{test}; this does not show that they are equally accurate"
    )


TREATMENT_EFFECTS = Question(
    name="treatment_effects",
    answer="equipoise.audits.effects.treatment_effects:treatment_effects",
    drawing="equipoise.plot.effects:effects",
    sentence="Are predicted effects equally accurate in every group?",
    section=SECTION,
    headline=_treatment_effects,
    legend="Filled points are biases with their intervals, hollow ones what a correction would"
    " leave; below, how prediction errors spread over the groups.",
    details=EffectDetails,
    needs_labels=False,
    assumptions=(
        Assumption(
            text="Treatment was assigned at random within each group.",
            status="not checked",
            remark="The design of the experiment must guarantee it.",
        ),
        Assumption(
            text="One person's treatment does not change another's outcome.",
            status="not checked",
            remark="Neighbours, households or shared stock can break it.",
        ),
        Assumption(
            text="Every group has people in both arms.",
            status="checked",
            remark="A group with one arm is not tested.",
        ),
    ),
)
