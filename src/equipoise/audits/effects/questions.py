"""The question about predicted effects: what is asked, and how an answer is told."""

from dataclasses import dataclass, field
from typing import Any

from equipoise.results.assumptions import Assumption
from equipoise.results.details import Details, details_of
from equipoise.results.estimand import Estimand, EstimandKind
from equipoise.results.finding import Decision, Note
from equipoise.results.formats import all_of, counted, number, p_value
from equipoise.results.question import Question, Section
from equipoise.results.result import AuditResult
from equipoise.results.wording import decided, joint_detected, joint_p, most_words, tested, value

__all__ = [
    "CORRECTION_WORDS",
    "NO_REST",
    "POLICY",
    "TREATMENT_EFFECTS",
    "EffectDetails",
    "PolicyDetails",
    "correction_words",
    "effect_estimand",
]

SECTION = Section(
    id="effects",
    heading="Are effects predicted equally well?",
    lead="Whether predicted effects of a treatment are off by the same amount in every group.",
)

NO_REST = Note(
    code="no-rest",
    message="No other group can be tested, so there is nothing to compare this group with.",
)


CORRECTION_WORDS = {
    "none": "no correction",
    "mean": "the whole error",
    "mean_if_detected": "the whole error, where detected",
    "mse_plus": "the paper's first factor",
    "mse_minus": "the paper's second factor",
    "positive_part": "less by its own noise",
    "james_stein": "James-Stein",
    "bayes_zero": "Bayes, toward no error",
    "eb_zero": "empirical Bayes, toward no error",
    "eb": "empirical Bayes, toward the mean",
    "sure": "Stein's risk, toward no error",
    "npmle": "empirical Bayes, any distribution",
}
"""How people say the rules of `equipoise.stats.effects.corrections.effect_correction`."""


def correction_words(rule: str | None, *, code: bool = False) -> str:
    """Say a rule of correction in words, and its name in plans and calls where `code` is true."""
    words = CORRECTION_WORDS.get(str(rule), str(rule))
    return f"{words} ({rule})" if code and words != rule else words


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EffectDetails(Details):
    """Effects, predictions, errors and corrections of the tested groups, a list for each.

    Parameters
    ----------
    measure, collapse, split, compared_with, adjust, margin : optional
        As asked.
    strata : str, optional
        Column of the strata; `n_strata` is their number.
    control : str
        The arm with which the others are compared.
    group, arm : list of str
        The tested groups, arm after arm; the following lists are in this order.
    n_control, n_treated, control_strength : list
        Sizes of the arms.
    tau, tau_se, tau_ci, tau_f, tau_f_se : list
        Effect and predicted effect with standard errors.
    B, B_se, B_ci, B_p_value, B_p_value_raw, B_second_order_bias : list
        Error of the prediction.
    rest : list of float
        Error of the other groups.
    A, A_se, A_ci : list
        Difference of the errors.
    detectable : list of float
        Bias that would be detected with a chance of 80%.
    slopes : list of dict
        Slope of the effect on the prediction, `se`, and p-values for the slopes one and zero.
    rankings : list of dict
        Rank-weighted average effect of each group, where it was asked for.
    units : list of dict
        Independent units of both arms, effective ones, and degrees of freedom.
    omnibus : dict
        Tests that all errors are equal, and zero.
    remaining : dict
        What the correction leaves, on the same data.
    prior_mean, prior_sd : float, optional
        Of the normal law of the errors.
    correction : str, optional
        The rule shown; `corrections` has the amounts of every rule.
    corrections : dict of str to list of float
        Amounts to subtract.
    recommended : dict, optional
        Whether to correct: `rule`, `candidate`, `p_zero`, and the change of the mean squared error
        that it is expected to bring, `delta` with `delta_se`.
    evaluation : dict, optional
        What corrections leave on the other half.
    checks : dict
        `sample_ratio` and `balance` of the experiment.
    frontier : list of dict
        What each `rule` of correction buys and costs on data that it has not seen: `group_error`
        that it leaves, change of the personal squared error (`loss`, `loss_se`), and where a rule
        of decisions was named, change of its `value` (`value_low`, `value_high`) and share of
        decisions `flipped`.
    rule : dict, optional
        `threshold`, `budget` and `cost` of the decisions.
    method : str
        "default" or "paper".
    paper : dict, optional
        Of the published procedure: mean squares that its `strategies` leave, t `statistics` of all
        groups and runs, and the densities of its figures.
    by_arm : list of dict
        `omnibus`, `correction` and `recommended` of each arm, where there are several.
    """

    measure: str = "relative"
    collapse: str = ""
    split: bool = False
    compared_with: str = "stratified"
    adjust: str = "holm"
    margin: float | None = None
    strata: str | None = None
    n_strata: int = 1
    control: str = "0"
    group: list[str] = field(default_factory=list)
    arm: list[str] = field(default_factory=list)
    n_control: list[int] = field(default_factory=list)
    n_treated: list[int] = field(default_factory=list)
    control_strength: list[float] = field(default_factory=list)
    tau: list[float] = field(default_factory=list)
    tau_se: list[float] = field(default_factory=list)
    tau_ci: list[list[float | None]] = field(default_factory=list)
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
    detectable: list[float] = field(default_factory=list)
    slopes: list[dict[str, Any]] = field(default_factory=list)
    rankings: list[dict[str, Any]] = field(default_factory=list)
    units: list[dict[str, Any]] = field(default_factory=list)
    omnibus: dict[str, Any] = field(default_factory=dict)
    remaining: dict[str, Any] = field(default_factory=dict)
    prior_mean: float | None = None
    prior_sd: float | None = None
    correction: str | None = None
    corrections: dict[str, list[float]] = field(default_factory=dict)
    recommended: dict[str, Any] | None = None
    evaluation: dict[str, Any] | None = None
    checks: dict[str, Any] = field(default_factory=dict)
    frontier: list[dict[str, Any]] = field(default_factory=list)
    rule: dict[str, float | None] | None = None
    method: str = "default"
    paper: dict[str, Any] | None = None
    by_arm: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyDetails(Details):
    """The rule, and what it does in each group.

    Parameters
    ----------
    cutoff : float
        Smallest prediction that is treated.
    budget : float, optional
        Share of all rows that is treated.
    cost : float
        Of treating one person.
    groups : list of dict
        Metric, estimate and interval of each group.
    """

    cutoff: float = 0.0
    budget: float | None = None
    cost: float = 0.0
    groups: list[dict[str, Any]] = field(default_factory=list)


PARTS = (
    *("effect", "predicted", "error", "correction", "remaining"),
    *("slope", "slope difference", "ranking", "ranking difference"),
)
"""What is told beside the bias of a group."""


def effect_estimand(measure: str, kind: EstimandKind) -> Estimand:
    """Return what a finding about effects estimates, with its words."""
    word = "relative effect" if measure == "relative" else "effect"
    names = {
        "effect": (word, "effect"),
        "predicted": (f"predicted {word}", "predicted"),
        "error": (f"error of the predicted {word}", "error"),
        "bias": (f"bias of the predicted {word}", None),
        "correction": ("amount to subtract", "subtract"),
        "remaining": ("remaining error", "remaining"),
        "slope": ("slope of effects on predictions", "slope"),
        "slope difference": ("slope minus that of the rest", None),
        "ranking": ("gain from ranking by predictions", "ranking"),
        "ranking difference": ("gain from ranking minus that of the rest", None),
    }
    name, short = names[kind]
    return Estimand(name, kind, scale="difference", noun=short)


def _treatment_effects(result: AuditResult) -> str:
    compared = [f for f in tested(result) if f.estimand.kind == "bias"]
    found = decided(result, Decision.DETECTED)
    biased = [f for f in found if f.estimand.kind == "bias"]
    sloped = [f for f in found if f.estimand.kind == "slope difference"]
    p = joint_p(result)
    test = "" if p is None else f" (omnibus test p {p_value(p)})"
    more = ""
    if sloped:
        groups = "a group" if len(sloped) == 1 else f"{len(sloped)} groups"
        more = (
            f"; inside {groups} predicted differences follow the effects otherwise than in the"
            f" rest, {most_words(sloped, result)}"
        )
    among = counted(len(compared), "group")
    # A group without bounds never leads.
    bounded = [f for f in biased or compared if f.ci and f.ci.low is not None]
    if (biased or joint_detected(result)) and bounded:
        clearest = max(bounded, key=lambda f: abs(f.statistic or 0.0))
        differ = "differs" if len(biased) == 1 else "differ"
        if not joint_detected(result):
            # Adjusted for all groups, the test of one may show what that of all together does not.
            adjusted = "" if clearest.p_value is None else f", p {p_value(clearest.p_value)}"
            alone = "" if p is None else f"; all groups together: omnibus test p {p_value(p)}"
            test = f"{adjusted}{alone}"
            return (
                f"Predicted effects are not as accurate in every group:"
                f" {value(clearest, result)}{test}; {len(biased)} of {among} {differ}{more}"
            )
        told = [f for f in biased or compared if f.withheld or f in bounded]
        most = most_words(told, result, clearly=True)
        return (
            f"Predicted effects are not equally accurate in every group, {most};"
            f" {len(biased)} of {among} {differ}{test}{more}"
        )
    if biased or joint_detected(result):
        return f"Predicted effects are not equally accurate in every group{test}{more}"
    within = decided(result, Decision.WITHIN_MARGIN)
    if within and len(within) == len(result.lines):
        margin = number(details_of(result.details, EffectDetails).margin)
        everyone = all_of(len(within), "group")
        return f"{everyone} shown to have a prediction bias within {margin}"
    return (
        f"No difference in the accuracy of predicted effects was detected among"
        f" {among}{test}; this does not show that they are equally accurate{more}"
    )


TREATMENT_EFFECTS = Question(
    name="treatment_effects",
    answer="equipoise.audits.effects.treatment_effects:treatment_effects",
    drawing="equipoise.plot.effects:effects",
    tables="equipoise.report.effect_tables:effect_tables",
    sentence="Are predicted effects equally accurate in every group?",
    section=SECTION,
    headline=_treatment_effects,
    legend="Filled points are biases with their intervals, hollow ones what the recommended"
    " correction would leave; below, effects beside their predictions, and what every correction"
    " buys (smaller errors of groups, to the left) and brings (upward).",
    details=EffectDetails,
    needs_labels=False,
    own_strata=True,
    parts=PARTS,
    assumptions=(
        Assumption(
            text="Treatment was assigned at random within each group, and within each stratum where"
            " strata are named.",
            status="not checked",
            remark="The shares of the arms and the balance of the features are compared between"
            " groups; the design of the experiment must guarantee the rest.",
        ),
        Assumption(
            text="The model was not trained on these rows.",
            status="not checked",
            remark="Predictions for rows that a model was fitted to look better than they are.",
        ),
        Assumption(
            text="One person's treatment does not change another's outcome.",
            status="not checked",
            remark="Neighbours, households or shared stock can break it.",
        ),
        Assumption(
            text="Every group has people in both arms.",
            status="checked",
            remark="A group with fewer than four effective independent units in an arm is not"
            " tested.",
        ),
    ),
)


def _policy(result: AuditResult) -> str:
    details = details_of(result.details, PolicyDetails)
    rule = (
        f"A rule that treats from a prediction of {number(details.cutoff)} on"
        if details.budget is None
        else f"A rule that treats the {100 * details.budget:.3g}% with the highest predictions"
    )
    differing = decided(result, Decision.DETECTED)
    p = joint_p(result)
    if differing:
        shares = [f for f in differing if f.estimand.metric == "share"]
        gains = [f for f in differing if f.estimand.metric != "share"]
        parts = []
        if shares:
            parts.append(f"treats groups differently, {most_words(shares, result)}")
        if gains:
            parts.append(
                f"brings groups different gains, {most_words(gains, result, clearly=True)}"
            )
        return f"{rule} {' and '.join(parts)}"
    if p is None:
        return f"{rule} is described for each group, and groups are not compared"
    return (
        f"{rule}: no difference between groups was detected in whom it treats or what they gain"
        f" (largest difference p {p_value(p)}); this does not show that there is none"
    )


POLICY = Question(
    name="policy",
    answer="equipoise.audits.effects.policy:policy",
    drawing="equipoise.plot.curves:quality_intervals",
    sentence="Whom would a rule on predicted effects treat, and who would gain?",
    section=SECTION,
    subject="whom a rule treats and who gains",
    headline=_policy,
    legend="Points are shares and gains of each group with their intervals; one panel for each.",
    details=PolicyDetails,
    needs_labels=False,
    own_strata=True,
    assumptions=(
        Assumption(
            text="Treatment was assigned at random within each group, and within each stratum where"
            " strata are named.",
            status="not checked",
            remark="Ask `treatment_effects` for the shares of the arms and the balance of the"
            " features.",
        ),
        Assumption(
            text="Neither the model nor the rule was fitted to these rows.",
            status="not checked",
            remark="A rule chosen on these rows looks better than it is.",
        ),
    ),
)
