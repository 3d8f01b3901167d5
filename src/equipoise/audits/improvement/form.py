"""What an improvability audit asks, and what each split answers."""

from dataclasses import dataclass
from typing import Literal

from equipoise._typing import SplitRule
from equipoise.audits.improvement.decision_rows import DecisionRows
from equipoise.results.estimand import Estimand, EstimandKind
from equipoise.search.sample import Algorithm
from equipoise.stats.improvement.frontier import SplitEvidence
from equipoise.stats.improvement.test import (
    CriterionTest,
    ImprovementQuestion,
    ImprovementTest,
)

__all__ = ["Criterion", "Form", "SplitResult"]

RULE_WORDS = {
    "median": "twice the median p-value",
    "exch_median": "the exchangeable median rule",
    "bonferroni": "Bonferroni's rule",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One requirement, in words."""

    metric: str
    noun: str
    group: str
    kind: Literal["accuracy", "fairness"]

    @property
    def words(self) -> str:
        """Name the requirement."""
        return f"{self.noun} of {self.group}" if self.kind == "accuracy" else f"{self.noun} gap"

    @property
    def estimand(self) -> Estimand:
        """What is estimated of it."""
        kind: EstimandKind = "gain" if self.kind == "accuracy" else "gap reduction"
        return Estimand(self.metric, kind, scale="difference", noun=self.noun)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResult:
    """What one split gave."""

    evidence: SplitEvidence
    test: ImprovementTest
    algorithm: Algorithm | None
    n_train: int
    n_test: int
    selected: list[list[float]]
    same: bool
    cutoff_p_values: tuple[float, float] | None

    @property
    def tests(self) -> tuple[CriterionTest, ...]:
        """Requirements in the order of `Form.criteria`."""
        return (*self.test.accuracy, *self.test.fairness)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What was asked, as far as the report needs it."""

    rows: DecisionRows
    criteria: tuple[Criterion, ...]
    question: ImprovementQuestion
    combine: SplitRule
    alpha: float
    confidence_level: float
    capacity: float | None
    n_resamples: int
    delta_accuracy: float
    delta_fairness: float
    ready: str | None
    direction_known: bool

    @property
    def null(self) -> str:
        """The hypothesis in words."""
        whose = "accuracy overall" if self.question.population else "accuracy in every group"
        gain = self.delta_accuracy
        amount = f"{gain:.3g}" if self.question.margin_scale == "absolute" else f"{gain:.1%}"
        more = f" by more than {amount}" if gain else ""
        less = f" by more than {self.delta_fairness:.1%}" if self.delta_fairness else ""
        return f"the candidate does not raise {whose}{more}, or does not narrow the gap{less}"

    def method(self, n_splits: int) -> str:
        """The test in words."""
        statistic = {"signed": "signed gap statistic", "paper": "squared gap statistic"}
        law = "normal law"
        if self.question.inference == "bootstrap":
            kind = "studentised " if self.question.method == "signed" else ""
            law = f"{kind}bootstrap, {self.n_resamples} resamples"
        splits = "no split" if self.ready else f"{n_splits} splits, {RULE_WORDS[self.combine]}"
        return f"{statistic[self.question.method]}, {law}, {splits}"
