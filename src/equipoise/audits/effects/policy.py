"""Whom would a rule on predicted effects treat, and who would gain."""

from typing import TYPE_CHECKING

from equipoise._checks import check_fraction
from equipoise._typing import Rng
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.effects.questions import PolicyDetails
from equipoise.audits.effects.sums import trial_rows, with_strata
from equipoise.exceptions import InvalidParameterError
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.effects.policy import (
    GroupContrast,
    GroupQuantities,
    PolicyRule,
    group_policies,
)

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["policy"]

METHOD = "influence of each row on doubly robust gains, max-t over differences"
NULL = "the rule treats the same share of the group as of the rest, with the same gain"
NOUNS = {
    "share": "share treated",
    "gain per member": "gain per member",
    "gain per treated": "gain per person treated",
}


@question_method
def policy(
    self: "Audit",
    *,
    threshold: float | None = None,
    budget: float | None = None,
    cost: float = 0.0,
    control: object = None,
    strata: str | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Say whom a rule on predicted effects would treat in each group, and what they would gain.

    The rule treats where the prediction is at least `threshold`, or the share `budget` of all rows
    with the highest predictions. The null hypotheses are that share, gain of a member and gain of a
    treated one are the same in a group and in the rest. Needs data of a randomised experiment with
    one treatment, on which neither model nor rule was fitted.

    Parameters
    ----------
    threshold : float, optional
        Smallest prediction that is treated.
    budget : float, optional
        Share of all rows that is treated; give one of the two.
    cost : float, default 0
        Of treating one person, in units of the outcome.
    control : object, optional
        The arm that is not treated; by default 0.
    strata : str, optional
        Column of the strata within which treatment was assigned; by default the role `strata`.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Of the intervals; those of differences hold for all of them together.
    rng : int or numpy Generator, optional
        For the law of the largest difference.

    Returns
    -------
    AuditResult
        For each group the share treated, the gain per member and the gain per person treated; then
        their differences from the rest.

    Examples
    --------
    Predictions for one group are too low. Does a budget for a third of all pass it over?

    >>> import numpy as np, equipoise as eq
    >>> rng = np.random.default_rng(0)
    >>> group, offer = rng.choice(["A", "B"], 4000), rng.integers(2, size=4000)
    >>> effect = rng.normal(1.0, 1.0, 4000)
    >>> data = {"group": group, "offer": offer, "y": offer * effect + rng.normal(size=4000),
    ...         "predicted": effect - 0.8 * (group == "B")}
    >>> audit = eq.Audit(data, group="group", y_true="y", treatment="offer",
    ...                  effect_pred="predicted")
    >>> result = audit.policy(budget=1 / 3)
    >>> [(f.group, round(f.estimate, 2)) for f in result.findings if f.estimand == "share"]
    [('group=A', 0.47), ('group=B', 0.2)]

    It does: half of group A and a fifth of group B are treated.
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    if (threshold is None) == (budget is None):
        raise InvalidParameterError("give either `threshold` or `budget`.")
    if self.effect_preds:
        raise InvalidParameterError(
            "`policy` is about one treatment; name one column as `effect_pred`."
        )
    trial = yield from trial_rows(with_strata(self.table, strata), "policy", control)
    experiment = trial.experiment
    rule = PolicyRule.of(experiment.predicted, experiment.rows, threshold=threshold, budget=budget)
    found = group_policies(
        experiment.scores,
        experiment.group,
        experiment.treated,
        experiment.rows,
        rule,
        cost=cost,
        confidence_level=confidence_level,
        rng=rng,
    )
    size = [int(n) for n in trial.size]
    findings = [
        *(_value(one, trial.names, size, confidence_level) for one in found.values),
        *(
            _missing(name, trial.names[g], size[g], reason)
            for (name, g), reason in found.missing.items()
        ),
        *(
            _missing("share", name, 0, "all rows of the group are in one arm")
            for name, rows in zip(trial.names, size, strict=True)
            if not rows
        ),
        *(
            _difference(one, trial.names, size, alpha, confidence_level)
            for one in found.differences
        ),
    ]
    return AuditResult(
        audit="policy",
        null=NULL,
        alternative="the rule treats another share of the group, or with another gain",
        alpha=alpha,
        method=METHOD,
        n=sum(size),
        findings=tuple(findings),
        joint=_joint(found, alpha),
        notes=(*trial.notes, *_multiplicity(len(found.differences))),
        details=PolicyDetails(
            cutoff=rule.cutoff,
            budget=budget,
            cost=cost,
            groups=[
                {
                    "group": trial.names[one.group],
                    "metric": one.name,
                    "estimate": one.estimate,
                    "low": one.low,
                    "high": one.high,
                }
                for one in found.values
            ],
        ),
    )


def _value(one: GroupContrast, names: tuple[str, ...], size: list[int], level: float) -> Finding:
    return Finding(
        group=names[one.group],
        estimand=Estimand(one.name, "value", noun=NOUNS[one.name]),
        estimate=one.estimate,
        ci=ConfidenceInterval(low=one.low, high=one.high, confidence_level=level),
        decision=Decision.ESTIMATED,
        n=size[one.group],
        method=METHOD,
    )


def _missing(name: str, group: str, n: int, reason: str) -> Finding:
    return Finding(
        group=group,
        estimand=Estimand(name, "value", noun=NOUNS[name]),
        decision=Decision.NOT_TESTED,
        n=n,
        method=METHOD,
        notes=(Note(code="too-small", message=f"Not tested: {reason}."),),
    )


def _difference(
    one: GroupContrast, names: tuple[str, ...], size: list[int], alpha: float, level: float
) -> Finding:
    detected = one.p_value_adjusted is not None and one.p_value_adjusted <= alpha
    return Finding(
        group=names[one.group],
        reference="the rest",
        estimand=Estimand(one.name, "gap", scale="difference", noun=NOUNS[one.name]),
        estimate=one.estimate,
        ci=ConfidenceInterval(low=one.low, high=one.high, confidence_level=level),
        statistic=one.statistic,
        p_value=one.p_value_adjusted,
        p_value_raw=one.p_value,
        decision=Decision.DETECTED if detected else Decision.NOT_DETECTED,
        n=size[one.group],
        method=METHOD,
    )


def _joint(found: GroupQuantities, alpha: float) -> JointTest | None:
    if not found.differences:
        return None
    best = min(
        found.differences, key=lambda d: (d.p_value_adjusted or 0.0, -abs(d.statistic or 0.0))
    )
    p = best.p_value_adjusted or 0.0
    return JointTest(
        null=f"{NULL}, in every group",
        decision=Decision.DETECTED if p <= alpha else Decision.NOT_DETECTED,
        method="largest difference (max-t)",
        statistic=abs(best.statistic or 0.0),
        p_value=p,
    )


def _multiplicity(n: int) -> tuple[Note, ...]:
    if n < 2:
        return ()
    message = f"P-values and intervals hold for the {n} differences together (max-t)."
    return (Note(code="multiplicity", message=message),)
