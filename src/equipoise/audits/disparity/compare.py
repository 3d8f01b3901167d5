"""Whether gaps changed between two models on the same rows, two periods, or two tables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._checks import check_fraction, check_number, check_option
from equipoise._typing import Adjust, ChangeDirection, GapSign
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.disparity.questions_over_time import CompareDetails
from equipoise.audits.disparity.reference import Reference
from equipoise.audits.disparity.sides import (
    Sides,
    sides_of,
)
from equipoise.audits.disparity.subgroups import finite
from equipoise.audits.disparity.two_samples import Sample, read_samples
from equipoise.data.metrics import Metric, find_metric
from equipoise.data.table import Table
from equipoise.exceptions import InvalidParameterError
from equipoise.results.estimand import Estimand, EstimandKind
from equipoise.results.finding import (
    INTERVAL_UNADJUSTED,
    ConfidenceInterval,
    Decision,
    Finding,
    JointTest,
    Note,
)
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.change import (
    Changes,
    ChangeTest,
    PairedCounts,
    gap_changes,
)
from equipoise.stats.disparity.growth import GapKind
from equipoise.stats.multiplicity import adjusted_p_values

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["compare"]

_METHODS = {
    "tango": "Tango score intervals of paired changes, MOVER for gaps",
    "wilson": "score tests between periods, MOVER on Wilson intervals for gaps",
    "influence": "influence functions summed by unit, t law with Bell-McCaffrey degrees",
}
_STATUS = {
    "empty": Note(
        code="empty-denominator",
        message="The metric is not defined on any row of this group, or of one of its periods.",
    ),
    "too_few": Note(
        code="too-small",
        message="Too few independent units for a test: at least 4 effective ones and 2 degrees of"
        " freedom are needed on each side.",
    ),
    "no_variation": Note(
        code="degenerate",
        message="Every row changed by the same amount; there is no variance to test with.",
    ),
}
_ONE_SIDE = {
    only_before: Note(
        code="one-side-only",
        message=f"The metric is defined on rows of this group {when} only: there is no change to"
        " test, and no gap is shown to be within a margin.",
    )
    for only_before, when in ((True, "before the change"), (False, "after the change"))
}
FAMILY_WORDS = {
    "bh": "adjusted for false discoveries (Benjamini-Hochberg)",
    "by": "adjusted for false discoveries under any dependence (Benjamini-Yekutieli)",
    "holm": "adjusted by Holm's method",
    "bonferroni": "adjusted by Bonferroni's method",
    "none": "not adjusted",
}


@question_method
def compare(
    self: "Audit",
    metric: str | Metric,
    *,
    baseline: Any,
    candidate: Any = None,
    period: str | None = None,
    reference: Reference = "population",
    margin: float | None = None,
    gap: GapSign = "absolute",
    direction: ChangeDirection | None = None,
    depth: int | None = None,
    adjust: Adjust = "holm",
    alpha: float = 0.05,
    confidence_level: float = 0.95,
) -> Asking[AuditResult]:
    """Say whether gaps changed, and whom the change hurt.

    The null hypotheses are that a subgroup's value did not change, that its gap to the reference
    did not change, and that its gap did not grow; that of `joint` is that no gap changed.

    Parameters
    ----------
    metric : str or Metric
        A name such as ``"fpr"``, or a metric of your own.
    baseline : str, value of the period, list of such values, or Audit
        What was before: the column of an earlier decision (score) on the same rows, values of
        `period`, or another `Audit` with the same roles.
    candidate : str, value of the period or list of such values, optional
        What came after; by default the column of `y_pred` (`y_score`), or all other periods.
    period : str, optional
        Column of the period; by default the role `time`.
    reference : "population", "rest" or dict
        What gaps are measured against. Shares of the population are those of all rows compared.
    margin : float, optional
        Growth of a gap that is tolerated; by default none, and nothing is shown to be within it.
    gap : {"absolute", "signed"}
        Whether the size of a gap must not grow, or the gap with its sign in one direction.
    direction : {"increase", "decrease"}, optional
        For ``gap="signed"``, and only there.
    depth : int, optional
        How many group columns may be combined; by default all.
    adjust : {"bh", "by", "holm", "bonferroni", "none", "auto"}
        Adjustment within each family: changes of values, changes of gaps, growth of gaps; "auto"
        is Holm.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Level of the intervals of changes; each stands alone.

    Returns
    -------
    AuditResult
        Three findings for each subgroup (gap change, gap growth, change); `details` has the values
        and gaps before and after, the counts of changed decisions, and the gate.

    Examples
    --------
    A lower threshold labels more people high risk. Does the gap in false positives grow?

    >>> import equipoise as eq
    >>> audit = eq.Audit({"race": ["A"] * 400 + ["B"] * 600, "y": [0] * 1000,
    ...                   "old": [1] * 80 + [0] * 320 + [1] * 90 + [0] * 510,
    ...                   "new": [1] * 120 + [0] * 280 + [1] * 96 + [0] * 504},
    ...                  group="race", y_true="y", y_pred="new")
    >>> result = audit.compare("fpr", baseline="old", reference="rest")
    >>> finding = result.findings[0]
    >>> print(finding.group, finding.estimand, f"{finding.estimate:.3f}", finding.decision)
    race=A fpr gap change 0.090 detected
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    check_option("adjust", adjust, Adjust)
    kind = _gap_kind(gap, direction)
    tolerated = None if margin is None else check_number("margin", margin, low=0.0)
    found = find_metric(metric)
    sample = yield from read_samples(self.table, found, _other(baseline), candidate, period)
    sides = sides_of(sample.groups, reference, depth, question="compare", numbers=False)
    changes = gap_changes(
        sample.table,
        sides.own,
        sides.other,
        names=sides.names,
        population=sides.population,
        gap=kind,
    )
    rule: Adjust = "holm" if adjust == "auto" else adjust
    found_words = {"metric": found.name, "noun": found.words}
    teller = _Teller(
        changes=changes,
        sides=sides,
        alpha=alpha,
        level=confidence_level,
        adjust=rule,
        margin=tolerated,
        words=found_words,
    )
    notes = [*sample.notes, teller.family_note()]
    if sample.alike:
        notes.append(
            Note(
                code="decide-alike",
                message=f"{sample.old} and {sample.new} agree on every row that counts: there is"
                " no change to test.",
            )
        )
    return AuditResult(
        audit="compare",
        null=f"no gap to {sides.words} changed between {sample.old} and {sample.new}",
        alternative="some gap changed",
        alpha=alpha,
        method=_METHODS[changes.method],
        n=round(float(sample.table.n.sum())),
        findings=teller.findings(),
        joint=teller.joint(),
        notes=tuple(notes),
        details=CompareDetails(
            metric=found.name,
            kind=sample.kind,
            baseline=sample.old,
            candidate=sample.new,
            reference=sides.words,
            margin=tolerated,
            gap=gap,
            direction=direction,
            adjust=rule,
            alike=sample.alike,
            n_clusters=sample.n_clusters,
            changes=teller.values(sample.table),
            gate=teller.gate(),
        ),
    )


def _other(baseline: object) -> object:
    """Return the table of another audit, or what was given."""
    table = getattr(baseline, "table", None)
    return table if isinstance(table, Table) else baseline


def _gap_kind(gap: GapSign, direction: ChangeDirection | None) -> GapKind:
    check_option("gap", gap, GapSign)
    if (gap == "signed") != (direction is not None):
        raise InvalidParameterError(
            '`direction` ("increase" or "decrease") belongs to `gap="signed"`, and only there; got'
            f" gap {gap!r} with direction {direction!r}."
        )
    if direction is None:
        return "absolute"
    check_option("direction", direction, ChangeDirection)
    return direction


@dataclass(frozen=True, slots=True, kw_only=True)
class _Teller:
    """Writes findings, joint test and details."""

    changes: Changes
    sides: Sides
    alpha: float
    level: float
    adjust: Adjust
    margin: float | None
    words: dict[str, str]

    def findings(self) -> tuple[Finding, ...]:
        """Gap changes first, then growth, then changes of values."""
        gaps = self._tested("gap change", self.changes.gap_change)
        values = self._tested("change", self.changes.change)
        return (*gaps, *self._growth(), *values)

    def _estimand(self, kind: EstimandKind) -> Estimand:
        return Estimand(self.words["metric"], kind, scale="difference", noun=self.words["noun"])

    def _shared(self, j: int, kind: EstimandKind) -> dict[str, Any]:
        return {
            "group": self.changes.groups[j],
            "estimand": self._estimand(kind),
            "n": round(float(self.changes.n[j])),
            "method": self.changes.method,
            "reference": "" if kind == "change" else self.sides.words,
        }

    def _why_not(self, j: int) -> Note:
        status = str(self.changes.status[j])
        why = self.sides.why[j]
        if status == "alone" and why is not None:
            return why
        if status == "empty" and np.isnan(self.changes.old[j]) != np.isnan(self.changes.new[j]):
            return _ONE_SIDE[bool(np.isnan(self.changes.new[j]))]
        return _STATUS[{"ok": "no_variation", "alone": "empty"}.get(status, status)]

    def _tested(self, kind: EstimandKind, test: ChangeTest) -> list[Finding]:
        low, high = test.confidence_interval(self.level)
        adjusted = adjusted_p_values(test.p_value_raw, self.adjust)
        statistic = test.statistic
        findings = []
        for j in range(len(self.changes.groups)):
            shared = self._shared(j, kind)
            raw = finite(test.p_value_raw[j])
            if raw is None:
                note = self._why_not(j)
                findings.append(Finding(decision=Decision.NOT_TESTED, notes=(note,), **shared))
                continue
            p = float(adjusted[j])
            findings.append(
                Finding(
                    decision=Decision.DETECTED if p <= self.alpha else Decision.NOT_DETECTED,
                    estimate=float(test.estimate[j]),
                    ci=ConfidenceInterval(
                        low=finite(low[j]), high=finite(high[j]), confidence_level=self.level
                    ),
                    statistic=finite(statistic[j]),
                    p_value=p,
                    p_value_raw=raw,
                    notes=(INTERVAL_UNADJUSTED,) if p > raw else (),
                    **shared,
                )
            )
        return findings

    def _growth(self) -> list[Finding]:
        """Whether gaps grew by more than the margin, or are shown to have grown by less."""
        growth = self.changes.growth
        raw = growth.p_grown(self.margin or 0.0)
        known = self.changes.status == "ok"
        grown = adjusted_p_values(np.where(known, raw, np.nan), self.adjust)
        within = growth.p_within(self.margin or 0.0)
        low, high = growth.lower_bound(self.alpha), growth.bound(self.alpha)
        findings = []
        for j in range(len(self.changes.groups)):
            shared = self._shared(j, "gap growth")
            bound = finite(high[j])
            if not known[j] or bound is None:
                note = self._why_not(j)
                findings.append(Finding(decision=Decision.NOT_TESTED, notes=(note,), **shared))
                continue
            decision = Decision.DETECTED if grown[j] <= self.alpha else Decision.NOT_DETECTED
            p, p_raw = float(grown[j]), float(raw[j])
            ci = ConfidenceInterval(
                low=finite(low[j]), high=None, confidence_level=1.0 - self.alpha
            )
            if self.margin is not None and decision is Decision.NOT_DETECTED:
                p = p_raw = float(within[j])
                decision = Decision.WITHIN_MARGIN if p <= self.alpha else decision
                ci = ConfidenceInterval(low=None, high=bound, confidence_level=1.0 - self.alpha)
            findings.append(
                Finding(
                    decision=decision,
                    estimate=float(growth.estimate[j]),
                    ci=ci,
                    p_value=p,
                    p_value_raw=p_raw,
                    notes=(INTERVAL_UNADJUSTED,) if p > p_raw else (),
                    **shared,
                )
            )
        return findings

    def joint(self) -> JointTest:
        """The test that no gap changed."""
        joint = self.changes.joint
        null = "all groups changed alike"
        if not (self.changes.status == "ok").any():
            note = Note(code="vacuous", message="No hypothesis is left to test jointly.")
            return JointTest(
                null=null, decision=Decision.NOT_TESTED, method=joint.method, notes=(note,)
            )
        return JointTest(
            null=null,
            decision=Decision.DETECTED if joint.p_value <= self.alpha else Decision.NOT_DETECTED,
            method=joint.method,
            statistic=finite(joint.statistic),
            df=float(joint.df),
            p_value=float(joint.p_value),
        )

    def family_note(self) -> Note:
        """Say what is adjusted together."""
        tested = int(np.isfinite(self.changes.gap_change.p_value_raw).sum())
        words = FAMILY_WORDS[self.adjust]
        gate = ""
        if self.margin is not None:
            gate = (
                " That no gap grew by more than the margin needs every bound to be below it, which"
                " takes no further adjustment."
            )
        return Note(
            code="multiplicity",
            message=f"Changes of gaps, growth of gaps and changes of values are three families of"
            f" {tested} groups, each {words}.{gate}",
        )

    def values(self, table: Sample) -> list[dict[str, Any]]:
        """Values and gaps before and after, and the decisions that changed."""
        growth = self.changes.growth
        columns = {
            "old": self.changes.old,
            "new": self.changes.new,
            "gap_old": growth.gap_old,
            "gap_new": growth.gap_new,
        }
        if isinstance(table, PairedCounts):
            joined = table.joined(self.sides.own)
            columns |= {"gained": joined.gained, "lost": joined.lost}
        return [
            {"group": name, "n": round(float(self.changes.n[j]))}
            | {key: finite(column[j]) for key, column in columns.items()}
            for j, name in enumerate(self.changes.groups)
        ]

    def gate(self) -> dict[str, Any] | None:
        """Whether every gap is shown to have grown by no more than the margin."""
        if self.margin is None:
            return None
        bound = np.where(self.changes.status == "ok", self.changes.growth.bound(self.alpha), np.nan)
        worst = None if np.isnan(bound).all() else int(np.nanargmax(bound))
        asked = [finding for finding in self._growth() if not finding.is_reference]
        # Nothing is shown of a gap that could not be tested.
        untested = [one.group for one in asked if one.decision is Decision.NOT_TESTED]
        return {
            "within": bool(asked) and all(one.decision is Decision.WITHIN_MARGIN for one in asked),
            "untested": untested,
            "margin": self.margin,
            "worst": None if worst is None else self.changes.groups[worst],
            "bound": None if worst is None else float(bound[worst]),
        }
