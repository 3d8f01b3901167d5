"""The question of necessity: what is asked, and how an answer is told."""

from dataclasses import dataclass, field, replace
from typing import Any, Self, TypedDict

import numpy as np

from equipoise.results.assumptions import Assumption
from equipoise.results.details import IN_MEMORY, Details, details_of
from equipoise.results.disclosure import is_few
from equipoise.results.finding import Finding
from equipoise.results.formats import counted, number, p_value
from equipoise.results.question import Question, Section
from equipoise.results.result import AuditResult
from equipoise.results.sentences import group_writer, points
from equipoise.results.wording import gap_size, joint_detected, joint_p

__all__ = [
    "DROP_TABLE",
    "IMPROVABILITY",
    "NECESSITY",
    "Curve",
    "DropDetails",
    "ImprovementDetails",
    "NecessityDetails",
    "improvability_headline",
]

SECTION = Section(
    id="necessity",
    heading="Is it necessary?",
    lead="Whether a less discriminatory alternative that serves the purpose as well has been"
    " shown to exist.",
)


MOST_TOLD = 3
"""Gaps that a headline tells one by one."""


class Curve(TypedDict):
    """P-values of ever larger improvements."""

    delta: list[float]
    p_value: list[float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImprovementDetails(Details):
    """What was compared on each split, and the largest improvements shown.

    Parameters
    ----------
    metric, noun : str
        The accuracy metric, and how a person says it.
    fairness, groups : list of str
        Metrics whose gap counts; the groups.
    gap : str
        Whether the worst gap or each must shrink.
    attributes, reference : list of str
        Attributes that are judged separately; groups that the others are compared with.
    left_out : list of str
        Groups too small to be compared.
    groups_left_out : dict
        The rows that a metric of theirs rests on.
    capacity, cutoff, combine, margin_scale, scale : optional
        As asked; whether a cut-off was estimated.
    accuracy_loss, delta_accuracy, delta_fairness, fairness_tolerance : optional
        Margins as asked; a list has one for each group or metric.
    splits : list of dict
        One for each split; empty where nothing was tested.
    p_values, p_median, p_combined : optional
        Of the splits, their median, and combined by every rule.
    binding, limit : str, optional
        The requirement that decides most often; what likely stands in the way.
    deltas, delta_curves : dict
        Largest improvement of each kind that is shown, and the p-values behind it.
    reduction_at_least : float, optional
        One-sided bound of the reduction of the first gap, as an amount.
    shares, ties : dict
        Shares that the rules select; who is selected by lot at the cut-off.
    candidates : list of dict
        Where several were tried: name, rank, numbers, p-values, and whether each is shown to meet
        the requirement, shown not to, or open.
    n_candidates, order_rule : optional
        How many were tried, and how they were put in order.
    critical : float, optional
        Joint critical value of all requirements of all candidates.
    winner : dict, optional
        The candidate whose numbers are shown.
    frontier : list of dict
        Reduction of the gap that is shown at every tolerated loss, all at once.
    open_bounds : dict, optional
        Of a candidate that is not shown to do: reduction of the gap at least, and loss of accuracy
        at most, that hold together.
    sufficiency : dict, optional
        What the search rules out, and under which condition.
    breakdown : dict, optional
        How far outcomes that are not known may go before the result is no longer shown.
    power : dict, optional
        By how much each requirement is exceeded, and their covariance for one test row: what
        `equipoise.design.sample_size` needs of a pilot.
    fitted : list, optional
        The fitted algorithms; in memory only.
    """

    metric: str = ""
    noun: str = ""
    fairness: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    gap: str = "worst"
    attributes: list[str] = field(default_factory=list)
    reference: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    groups_left_out: dict[str, int] = field(default_factory=dict)
    capacity: float | None = None
    cutoff: str | None = None
    combine: str | None = None
    margin_scale: str = "relative"
    scale: str = "difference"
    accuracy_loss: float | None = None
    delta_accuracy: float | list[float] = 0.0
    delta_fairness: float | list[float] = 0.0
    fairness_tolerance: float | list[float] = 0.0
    splits: list[dict[str, Any]] = field(default_factory=list)
    p_values: list[float] = field(default_factory=list)
    p_median: float | None = None
    p_combined: dict[str, float] = field(default_factory=dict)
    binding: str | None = None
    limit: str | None = None
    deltas: dict[str, float | None] = field(default_factory=dict)
    delta_curves: dict[str, Curve] = field(default_factory=dict)
    reduction_at_least: float | None = None
    shares: dict[str, Any] = field(default_factory=dict)
    ties: dict[str, dict[str, float]] = field(default_factory=dict)
    candidates: list[dict[str, Any]] = field(default_factory=list)
    n_candidates: int | None = None
    order_rule: str | None = None
    critical: float | None = None
    winner: dict[str, Any] | None = None
    frontier: list[dict[str, Any]] = field(default_factory=list)
    open_bounds: dict[str, Any] | None = None
    sufficiency: dict[str, Any] | None = None
    breakdown: dict[str, Any] | None = None
    power: dict[str, Any] | None = None
    fitted: list[Any] | None = field(default=None, metadata=IN_MEMORY)

    def group_rows(self) -> dict[str, int]:
        """Return the rows of groups that are left out, of which there is no finding."""
        return self.groups_left_out

    def told(self, min_cell: int) -> Self:
        """Return the details without the rows behind each rate, where those of some are few."""
        counted = [n for split in self.splits for rows in split["rows_counted"] for n in rows]
        if not any(is_few(n, min_cell) for n in (*counted, *self.groups_left_out.values())):
            return self
        return replace(self, splits=[split | {"rows_counted": []} for split in self.splits])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NecessityDetails(ImprovementDetails):
    """The three steps, what was searched, and all of the third step.

    Parameters
    ----------
    steps : list of dict
        Question and answer of each step.
    search : dict
        Candidates tried, how they were put in order, splits, seed, features, and what was not
        searched.
    """

    steps: list[dict[str, str]] = field(default_factory=list)
    search: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DropDetails(Details):
    """Models with and without each feature.

    Parameters
    ----------
    features : list of str
        Those left out, one at a time.
    critical : float
        Joint critical value of all intervals.
    n_train, n_test : int
        Rows that models were fitted to, and compared on.
    gap, accuracy : float
        Of the model with all features, on the rows that models are compared on.
    """

    features: list[str] = field(default_factory=list)
    critical: float | None = None
    n_train: int = 0
    n_test: int = 0
    gap: float | None = None
    accuracy: float | None = None


def _drop_headline(result: AuditResult) -> str:
    """Say which feature matters most to the gap, and what it costs."""
    pairs = list(zip(result.findings[::2], result.findings[1::2], strict=True))
    told = [pair for pair in pairs if not any(finding.withheld for finding in pair)]
    if not told:
        return f"What leaving out each of {counted(len(pairs), 'feature')} changes is withheld"
    gap, right = min(told, key=lambda pair: pair[0].estimate or 0.0)
    return (
        f"The gap changes most {gap.group}: it is {_moved(gap, 'wider', 'narrower', result)}, and"
        f" accuracy is {_moved(right, 'higher', 'lower', result)} (joint intervals of"
        f" {len(pairs)} features; estimated, not tested)"
    )


def _moved(finding: Finding, up: str, down: str, result: AuditResult) -> str:
    """Say how far something moved, with positive numbers, and where its interval ends."""
    estimate = finding.estimate or 0.0
    side = up if estimate >= 0.0 else down
    words = f"{gap_size(abs(estimate), result)} {side}"
    if finding.ci is None or None in (finding.ci.low, finding.ci.high):
        return words
    ends = [
        f"{gap_size(abs(end or 0.0), result)} {up if (end or 0.0) >= 0.0 else down}"
        for end in (finding.ci.low, finding.ci.high)
    ]
    return f"{words} ({100 * finding.ci.confidence_level:g}% interval from {ends[0]} to {ends[1]})"


def _necessity(result: AuditResult) -> str:
    details = details_of(result.details, NecessityDetails)
    answers = [step["answer"][:1].upper() + step["answer"][1:] for step in details.steps]
    return group_writer(result)(". ".join(answers))


def improvability_headline(result: AuditResult) -> str:
    """Say in one sentence whether an alternative is shown."""
    details = details_of(result.details, ImprovementDetails)
    p = joint_p(result)
    test = "" if p is None else f" (p {p_value(p)})"
    if joint_detected(result):
        return _shown(result, details, test)
    if details.splits and details.sufficiency and details.sufficiency["listed"]["all"]:
        return (
            f"None of the {details.n_candidates} listed alternatives meets the requirement (joint"
            f" {1 - result.alpha:.0%}). This says nothing about alternatives not listed"
        )
    who = "it"
    if details.n_candidates:
        who = "the first in order" if details.critical is None else "the most certain"
    limit = _open_words(details) or {
        "data": f"; {who} does better on the rows that judge it, and more data may settle it",
        "search": f"; {who} does no better itself, and another search may",
        "same": f"; {who} decides as the status quo does for everyone",
        "margin": f"; {who} is about equally accurate: state a tolerated loss (`accuracy_loss`)",
    }.get(details.limit or "", "")
    asked, reached = details.delta_fairness, details.deltas.get("fairness")
    if isinstance(asked, float) and reached is not None and 0.0 < reached < asked:
        return (
            f"A reduction of the gap by {asked:.0%} is not shown{test}; {reached:.0%} is"
            + _among(details)
        )
    which = "The candidate was not"
    if details.n_candidates:
        which = f"None of the {details.n_candidates} candidates was"
    return (
        f"{which} shown to be a less discriminatory alternative{test}{limit};"
        " this does not show that none exists" + _among(details)
    )


def _open_words(details: ImprovementDetails) -> str:
    """Say what is known of a candidate that narrows the gap, but may lose too much."""
    bounds, asked = details.open_bounds, details.delta_accuracy
    if bounds is None or not isinstance(asked, float) or asked > 0.0:
        return ""
    who = repr(bounds["candidate"]) if details.n_candidates else "it"
    narrows = f"{who} narrows the gap by at least {number(bounds['reduction'])}"
    most = f"more than {number(bounds['loss'])}"
    if details.limit == "margin":
        return (
            f"; {narrows} and is about equally accurate (a loss of {most} is excluded): state a"
            " tolerated loss (`accuracy_loss`)"
        )
    amount = f"{-asked:.3g}" if details.margin_scale == "absolute" else f"{-asked:.1%}"
    loss = f"a loss of more than {amount}" if asked else "a loss"
    again = ", and another search may do better" if details.limit == "search" else ""
    return f"; {narrows}, but {loss} of {details.noun} is not excluded (of {most} it is){again}"


def _shown(result: AuditResult, details: ImprovementDetails, test: str) -> str:
    """Say what is shown, by how much, and on which condition."""
    codes = {note.code for note in result.notes}
    name = "the candidate"
    conditions = [test.strip(" ()")]
    if details.n_candidates and details.winner is not None:
        name = repr(details.winner["name"])
        order = "first" if details.critical is None else "the most certain"
        conditions.append(f"{order} of {details.n_candidates} candidates")
        conditions[-1] += " in the order fixed on other rows" if details.critical is None else ""
    conditions.append(
        "if these rows played no part in building it"
        if "ready-candidate" in codes
        else "on rows it was not built on"
    )
    kept = f"raises {details.noun}"
    if details.accuracy_loss is not None:
        loss = details.accuracy_loss
        amount = f"{loss:.3g}" if details.margin_scale == "absolute" else f"{loss:.1%}"
        kept = f"loses at most {amount} of {details.noun}"
    rows = details.splits[0]["criteria"] if details.splits else []
    held = [str(row["criterion"]) for row in rows if row.get("kind") == "held"]
    if held:
        kept += f", and keeps the {', the '.join(held)} within what is tolerated"
    share = ""
    if "different-share" in codes:
        now, then = details.shares["status_quo"], details.shares["candidate"]
        share = f", while selecting {then:.1%} instead of {now:.1%}"
    own = "; it uses the attribute itself" if "group-feature" in codes else ""
    if details.breakdown is not None:
        own += f"; shown {details.breakdown['claim']}"
    said = "; ".join(filter(None, conditions))
    return (
        f"A less discriminatory alternative is shown: {name} narrows the"
        f" {_gap_words(details, result)} and {kept}{share} ({said}){_several(result, details)}{own}"
        + _among(details)
    )


def _gap_words(details: ImprovementDetails, result: AuditResult) -> str:
    """Name the first gap, what it was and is, and what is shown of the difference."""
    kinds = [row.get("kind") for split in details.splits[:1] for row in split["criteria"]]
    places = [k for k, kind in enumerate(kinds) if kind == "fairness"]
    if not places:
        return "gap"
    # Several attributes or groups are told one by one; several metrics by the first.
    several = details.gap == "each" or bool(details.attributes)
    words = [_narrowed(details, place, result) for place in places[: MOST_TOLD if several else 1]]
    told = ", the ".join(words)
    if several and len(places) > MOST_TOLD:
        told += f" and {len(places) - MOST_TOLD} more"
    shown = details.deltas.get("fairness")
    least = f"at least {shown:.0%}" if shown else ""
    each = " each" if several and len(places) > 1 else ""
    return f"{told} (by {least}{each})" if least else told


def _narrowed(details: ImprovementDetails, place: int, result: AuditResult) -> str:
    """Name one gap, what it was and is."""
    words = str(details.splits[0]["criteria"][place]["criterion"])
    if details.scale != "difference":
        return words
    ends = [
        float(np.median([split["criteria"][place][rule] for split in details.splits]))
        for rule in ("a0", "a1")
    ]
    told = [result.words.metrics.get(metric) for metric in details.fairness]
    if all(metric is not None and metric.event is not None for metric in told):
        return f"{words} from {points(ends[0])} to {points(ends[1])} percentage points"
    return f"{words} from {number(ends[0])} to {number(ends[1])}"


def _several(result: AuditResult, details: ImprovementDetails) -> str:
    """Say how many are shown, where several were tested together."""
    shown = sum(row["state"] == "shown" for row in details.candidates)
    if details.critical is None or shown < 2:
        return ""
    return (
        f"; {shown} of {details.n_candidates} candidates are shown to meet the requirement, chance"
        f" of any false one at most {result.alpha:.0%}"
    )


def _among(details: ImprovementDetails) -> str:
    left = details.left_out or list(details.groups_left_out)
    if not left:
        return ""
    names = ", ".join(left)
    total = len(details.groups) + len(left)
    few = "has" if len(left) == 1 else "have"
    return f"; among {len(details.groups)} of {total} groups ({names} {few} too few people)"


IMPROVABILITY = Question(
    name="improvability",
    answer="equipoise.audits.improvement.improvability:improvability",
    drawing="equipoise.plot.improvement:improvement",
    tables="equipoise.report.improvement_tables:improvement_tables",
    sentence="Is there a less discriminatory alternative?",
    section=SECTION,
    subject="a less discriminatory alternative",
    headline=improvability_headline,
    legend="Status quo and candidates on the rows that judge them, one point for each split or"
    " candidate; filled is what is shown. Where there is a panel of p-values by split, what is"
    " below the dashed line in at least half of them is shown; where there is one of improvements,"
    " those whose p-value is below the dashed line are.",
    details=ImprovementDetails,
    one_claim=True,
    assumptions=(
        Assumption(
            text="The candidate is judged on rows it was not built on.",
            status="by construction",
            remark="Sample splitting; a ready column is the exception, and a note says so.",
        ),
        Assumption(
            text="The accuracy measure is the legitimate aim of the decision.",
            status="not checked",
            remark="What counts as business necessity is a legal question.",
        ),
    ),
)

NECESSITY = replace(
    IMPROVABILITY,
    name="necessity",
    answer="equipoise.audits.improvement.necessity:necessity",
    sentence="Is there a disparity, what does it serve, and is there an alternative?",
    headline=_necessity,
    details=NecessityDetails,
)

DROP_TABLE = Question(
    name="drop_table",
    answer="equipoise.audits.improvement.drop_table:drop_table",
    sentence="What does leaving out a feature do to the gap and to accuracy?",
    section=SECTION,
    subject="features left out",
    headline=_drop_headline,
    details=DropDetails,
    assumptions=(
        Assumption(
            text="Models are compared on rows they were not fitted to.",
            status="by construction",
            remark="One split; another split gives other models.",
        ),
    ),
)
