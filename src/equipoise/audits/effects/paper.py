"""Accuracy of predicted effects by the published procedure, beside the audit's own."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equipoise._typing import EffectAdjust, EffectMeasure, FloatArray
from equipoise.audits.asking import Asking
from equipoise.audits.effects.questions import NO_REST, effect_estimand
from equipoise.audits.effects.sums import ExperimentSums, trial_rows
from equipoise.data.table import Table
from equipoise.exceptions import InvalidParameterError
from equipoise.results.estimand import EstimandKind
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, Note
from equipoise.stats.effects.paper import STRATEGIES, PaperEvaluation, PaperTests, paper_evaluation
from equipoise.stats.multiplicity import adjusted_p_values

__all__ = ["PAPER_METHOD", "PaperAnswer", "check_paper", "paper_answer"]

PAPER_METHOD = "the paper's procedure: Eqs. (15), (20), (25), (27), random halves, 50 draws"

_NOTES = (
    Note(
        code="paper-procedure",
        message="This is the published procedure, for comparison. Eq. (20) is not consistent where"
        " predictions differ inside a group; Eq. (42) corrects errors of one sign only; estimates"
        " are averages over random halves whose standard error is that of one of them, so that"
        " tests reject too seldom. The default method has none of these faults.",
    ),
)
_NO_DRAWS = Note(
    code="no-control-positives",
    message="Some bootstrap draws have no positive outcome without treatment; the published"
    " procedure has no answer for this group.",
)


def check_paper(table: Table, options: Sequence[str], several: Mapping[str, str]) -> None:
    """Refuse what the published procedure does not know.

    Parameters
    ----------
    table : Table
        With its roles.
    options : sequence of str
        Options that were asked for beside.
    several : mapping
        Columns of predictions by arm.
    """
    roles = [r for r in ("cluster", "weight", "strata", "propensity") if getattr(table.roles, r)]
    refused = [f"`{name}`" for name in (*roles, *options)]
    if several:
        refused.append("`effect_pred` of several arms")
    if refused:
        raise InvalidParameterError(
            f'method="paper" is the published procedure, which has no {", ".join(refused)}.'
            ' Leave them out, or use method="default".'
        )


class PaperAnswer:
    """What the procedure found, told as findings and details.

    Parameters
    ----------
    sums : ExperimentSums
        Groups and arms.
    found : PaperEvaluation
        Of the groups that have both arms; codes are places in `sums.groups`.
    measure : {"relative", "difference"}
        What the predictions predict.
    adjust : str
        For the number of groups.
    alpha, confidence_level : float
        Levels.
    """

    def __init__(
        self,
        sums: ExperimentSums,
        found: PaperEvaluation,
        *,
        measure: EffectMeasure,
        adjust: EffectAdjust,
        alpha: float,
        confidence_level: float,
    ) -> None:
        self.sums, self.found, self.measure = sums, found, measure
        self.alpha, self.level = alpha, confidence_level
        raw = found.bias.p_value
        # Two groups have one difference: it is one test.
        self.p_value = raw
        if len(raw) > 2 and adjust != "max_t":
            self.p_value = adjusted_p_values(raw, adjust)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is known to be wrong with it."""
        return _NOTES

    def findings(self) -> tuple[Finding, ...]:
        """Return the bias of every group, then effect, prediction and error."""
        place = {int(g): k for k, g in enumerate(self.found.tested)}
        biases = []
        for g, name in enumerate(self.sums.groups):
            shared: dict[str, Any] = {
                "group": name,
                "estimand": effect_estimand(self.measure, "bias"),
                "n": int(self.sums.n[g]),
                "reference": "the rest",
            }
            if g not in place:
                reason = NO_REST if len(self.sums.groups) == 1 else _NO_DRAWS
                shared |= {"method": "none", "notes": (reason,)}
                biases.append(Finding(decision=Decision.NOT_TESTED, **shared))
                continue
            k, tests = place[g], self.found.bias
            p = float(self.p_value[k])
            biases.append(
                Finding(
                    decision=Decision.DETECTED if p <= self.alpha else Decision.NOT_DETECTED,
                    estimate=float(tests.estimate[k]),
                    ci=self._interval(tests, k),
                    statistic=float(tests.statistic[k]),
                    p_value=p,
                    p_value_raw=float(tests.p_value[k]),
                    method="t",
                    **shared,
                )
            )
        return (*biases, *self._parts())

    def _parts(self) -> list[Finding]:
        kinds: tuple[tuple[EstimandKind, PaperTests], ...] = (
            ("effect", self.found.effect),
            ("predicted", self.found.predicted),
            ("error", self.found.error),
        )
        return [
            Finding(
                group=self.sums.groups[g],
                estimand=effect_estimand(self.measure, kind),
                decision=Decision.ESTIMATED,
                n=int(self.sums.n[g]),
                method="t",
                estimate=float(tests.estimate[k]),
                ci=self._interval(tests, k),
            )
            for k, g in enumerate(self.found.tested)
            for kind, tests in kinds
        ]

    def _interval(self, tests: PaperTests, k: int) -> ConfidenceInterval:
        low, high = tests.bounds(self.level)
        return ConfidenceInterval(
            low=float(low[k]), high=float(high[k]), confidence_level=self.level
        )

    def details(self) -> dict[str, Any]:
        """Return the numbers of the tested groups, and what the figures of the paper show."""
        found = self.found
        if not len(found.tested):
            return {"group": []}
        counts = self.sums.arms[0].errors()
        tested = found.tested
        names = [self.sums.groups[g] for g in tested]

        def ends(tests: PaperTests) -> list[list[float]]:
            return [
                [float(low), float(high)]
                for low, high in zip(*tests.bounds(self.level), strict=True)
            ]

        def squares(left: Mapping[str, FloatArray]) -> list[float]:
            return [float(np.mean(left[rule] ** 2)) for rule in STRATEGIES]

        return {
            "group": names,
            "arm": [self.sums.arms[0].arm] * len(names),
            "n_control": counts.n_control[tested].tolist(),
            "n_treated": counts.n_treated[tested].tolist(),
            "tau": found.effect.estimate.tolist(),
            "tau_se": found.effect.se.tolist(),
            "tau_ci": ends(found.effect),
            "tau_f": found.predicted.estimate.tolist(),
            "tau_f_se": found.predicted.se.tolist(),
            "B": found.error.estimate.tolist(),
            "B_se": found.error.se.tolist(),
            "B_ci": ends(found.error),
            "B_p_value_raw": found.error.p_value.tolist(),
            "rest": found.rest.estimate.tolist(),
            "A": found.bias.estimate.tolist(),
            "A_se": found.bias.se.tolist(),
            "A_ci": ends(found.bias),
            "corrections": {rule: found.amounts[rule].tolist() for rule in STRATEGIES},
            "paper": {
                "strategies": list(STRATEGIES),
                "error_mean_square": squares(found.remaining_error),
                "bias_mean_square": squares(found.remaining_bias),
                "rejected": [found.rejected[rule] for rule in STRATEGIES],
                "statistics": found.statistics.T.tolist(),
                "df": found.bias.df.tolist(),
                "grid": found.grid.tolist(),
                "error_density": found.error_density.tolist(),
                "bias_density": found.bias_density.tolist(),
                "remaining_error_density": {
                    rule: values.tolist() for rule, values in found.remaining_error_density.items()
                },
                "remaining_bias_density": {
                    rule: values.tolist() for rule, values in found.remaining_bias_density.items()
                },
            },
        }


def paper_answer(
    table: Table,
    sums: ExperimentSums,
    *,
    measure: EffectMeasure,
    control: object,
    adjust: EffectAdjust,
    n_repeats: int,
    alpha: float,
    confidence_level: float,
    rng: np.random.Generator,
) -> Asking[PaperAnswer]:
    """Read the rows and run the published procedure; see `Audit.treatment_effects`."""
    trial = yield from trial_rows(table, 'treatment_effects with method="paper"', control)
    rows = trial.experiment
    found = paper_evaluation(
        rows.outcome,
        rows.treated,
        rows.predicted,
        rows.group,
        measure=measure,
        count=rows.rows.count,
        n_repeats=n_repeats,
        alpha=alpha,
        rng=rng,
    )
    return PaperAnswer(
        sums,
        found,
        measure=measure,
        adjust=adjust,
        alpha=alpha,
        confidence_level=confidence_level,
    )
