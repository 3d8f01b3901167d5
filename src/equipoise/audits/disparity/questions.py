"""The questions about gaps: what is asked, and how an answer is told."""

from dataclasses import dataclass, field, replace
from typing import Any, NotRequired, TypedDict

from equipoise.audits.disparity.wording import (
    extreme_headline,
    given_headline,
    margin_words,
    split_headline,
    tolerance_words,
)
from equipoise.results.details import Details, details_of
from equipoise.results.disclosure import is_few, withheld_places
from equipoise.results.finding import Decision, Finding
from equipoise.results.formats import (
    all_of,
    counted,
    listed,
    none_of,
    number,
    p_value,
    to_be,
    with_article,
)
from equipoise.results.question import Question, Section
from equipoise.results.result import AuditResult
from equipoise.results.sentences import LEADING, group_words, known_group_words, lead_sentence
from equipoise.results.wording import (
    compared_noun,
    decided,
    foremost_word,
    gap_metrics,
    gap_size,
    joint_detected,
    joint_p,
    level,
    metric_words,
    names,
    tested,
    unnamed_words,
)

__all__ = [
    "CERTIFY",
    "COMPARE",
    "DECOMPOSE",
    "DISCOVER",
    "DISPARITY",
    "FLAG",
    "IMPACT_RATIOS",
    "MONITOR",
    "CompareDetails",
    "DecomposeDetails",
    "DiscoverDetails",
    "DisparityDetails",
    "GroupUnits",
    "MonitorDetails",
    "people",
]


class GroupUnits(TypedDict):
    """Independent units that the test of one group rests on.

    Effective units are (sum of w)^2 / sum of w^2; those of a reference that is a number, and the
    degrees of freedom of exact tests, are None. `shape` is "checked", "borrowed" or "none".
    """

    group: str
    metric: NotRequired[str]
    n_units: float
    n_eff: float
    reference_units: float | None
    reference_n_eff: float | None
    df: float | None
    shape: str


SECTION = Section(
    id="disparity",
    heading="Is there a disparity?",
    lead="Rates by group and by intersection of groups, with intervals that allow for the"
    " uncertainty of the comparison as well as of the group.",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DisparityDetails(Details):
    """What was compared, and the value of every group.

    Parameters
    ----------
    metric, scale, reference : str
        What is compared, how, and with what.
    n_units : int
        Independent units in the whole table.
    simultaneous : bool, optional
        Whether intervals hold for all groups together.
    margin, alternative, adjust : optional
        Tolerance, side and adjustment of `flag`; margin of `certify`.
    tables : list of dict, optional
        Where categories are compared with the highest or lowest one: each table row by row.
    unknown : int, optional
        Rows without a known category.
    given, weights, conditional, strata : optional
        Where people alike in given factors are compared: the factors, how they are averaged, by
        strata or by learners, and for each group how it was compared: its raw gap, its strata,
        other averages and the Mantel-Haenszel family, or how well the learners predict.
    grades : list of dict, optional
        Grades of the groups of each table with many of them, and how much they differ in truth.
    units : list of GroupUnits
        Independent units of each group and of what it is compared with.
    """

    metric: str = ""
    scale: str = "difference"
    reference: str = ""
    n_units: int = 0
    simultaneous: bool | None = None
    margin: float | None = None
    alternative: str | None = None
    adjust: str | None = None
    tables: list[dict[str, Any]] | None = None
    unknown: int | None = None
    given: list[str] | None = None
    weights: str | None = None
    conditional: str | None = None
    strata: list[dict[str, Any]] | None = None
    grades: list[dict[str, Any]] | None = None
    units: list[GroupUnits] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecomposeDetails(Details):
    """How the gap of every group is made up.

    Parameters
    ----------
    metric, reference : str
        What is compared, and with what.
    n_units : int
        Independent units in the whole table.
    given : list of str
        The factors.
    split : list of dict
        For each group its parts, each with value, standard error and interval.
    """

    metric: str = ""
    reference: str = ""
    n_units: int = 0
    given: list[str] = field(default_factory=list)
    split: list[dict[str, Any]] = field(default_factory=list)


def _special(result: AuditResult) -> str | None:
    """Return what is said of comparisons with the highest, or given factors."""
    details = details_of(result.details, DisparityDetails)
    if details.tables is not None:
        return extreme_headline(result)
    return given_headline(result) if details.given is not None else None


def _disparity(result: AuditResult) -> str:
    if (special := _special(result)) is not None:
        return special
    metric = metric_words(result)
    differing = decided(result, Decision.DETECTED)
    compared = tested(result)
    p = joint_p(result)
    test = "" if p is None else f" (joint test p {p_value(p)})"
    among = counted(len(compared), compared_noun(result, "group"))
    differ = "differs" if len(differing) == 1 else "differ"
    count = f"{len(differing)} of {among} {differ} at the {level(result)} level{test}"
    if differing:
        first = lead_sentence(differing, result)
        if first:
            return f"{first}; {count}"
        return f"{count}, all of them {unnamed_words(differing, f'smaller than {LEADING} rows')}"
    if joint_detected(result):
        return (
            f"The {metric} differs between groups{test}, though none of {len(compared)} is shown to"
            " differ by itself"
        )
    return (
        f"No difference in {metric} was detected among"
        f" {counted(len(compared), compared_noun(result, 'subgroup'))}{test};"
        " this does not show that they are equal"
    )


def _subject(result: AuditResult) -> tuple[str, str]:
    """Name what is counted, and what it has: a metric, or one of several."""
    metrics = gap_metrics(result).values()
    metric = listed(metrics, "or") if len(metrics) > 1 else metric_words(result)
    return compared_noun(result, "subgroup"), with_article(metric)


def _flag(result: AuditResult) -> str:
    if (special := _special(result)) is not None:
        return special
    noun, metric = _subject(result)
    compared = tested(result)
    flagged = decided(result, Decision.DETECTED)
    limit = tolerance_words(result)
    if flagged:
        have = "has" if len(flagged) == 1 else "have"
        count = f"{len(flagged)} of {counted(len(compared), noun)} {have} {metric} {limit}"
        first = lead_sentence(flagged, result)
        return f"{first}; {count}: {names(flagged, result)}" if first else count
    return (
        f"{none_of(len(compared), noun)} shown to have {metric} {limit};"
        " a subgroup too small to tell may still do so"
    )


def _certify(result: AuditResult) -> str:
    if (special := _special(result)) is not None:
        return special
    noun, metric = _subject(result)
    compared = tested(result)
    within = decided(result, Decision.WITHIN_MARGIN)
    beyond = decided(result, Decision.DETECTED)
    unclear = decided(result, Decision.NOT_DETECTED)
    margin = margin_words(result)
    asked = [finding for finding in result.findings if not finding.is_reference]
    if len(within) == len(asked):
        return f"{all_of(len(within), noun)} shown to have {metric} {margin}"
    among = counted(len(compared), noun)
    counts = f"{len(within)} of {among} {to_be(len(within))} shown to be {margin}"
    if beyond:
        more = f", {len(unclear)} {_stay(unclear)} inconclusive" if unclear else ""
        first = lead_sentence(beyond, result)
        start = f"{first}; " if first else ""
        return (
            f"{start}{len(beyond)} of {among} {to_be(len(beyond))} shown to have"
            f" {metric} beyond the margin: {names(beyond, result)}; {counts}{more}"
        )
    if unclear:
        return (
            f"The data do not settle whether every {metric_words(result)} is within the margin:"
            f" {counts}, {len(unclear)} {_stay(unclear)} inconclusive ({names(unclear, result)})"
        )
    return counts


def _stay(findings: list[Finding]) -> str:
    return "stays" if len(findings) == 1 else "stay"


DISPARITY = Question(
    name="disparity",
    answer="equipoise.audits.disparity.gaps:disparity",
    sentence="How large is each subgroup's gap in {metric}, and is there any?",
    section=SECTION,
    headline=_disparity,
    details=DisparityDetails,
)
FLAG = Question(
    name="flag",
    answer="equipoise.audits.disparity.gaps:flag",
    sentence="Which subgroups exceed the tolerance in {metric}?",
    section=SECTION,
    subject="{metric} beyond the tolerance",
    headline=_flag,
    details=DisparityDetails,
)
CERTIFY = Question(
    name="certify",
    answer="equipoise.audits.disparity.gaps:certify",
    sentence="Is every subgroup shown to be within the margin in {metric}?",
    section=SECTION,
    headline=_certify,
    details=DisparityDetails,
    equivalence=True,
    words={Decision.NOT_DETECTED: "inconclusive"},
)
IMPACT_RATIOS = Question(
    name="impact_ratios",
    answer="equipoise.audits.disparity.impact_ratios:impact_ratios",
    sentence="How does the {metric} of every category compare with that of the highest one?",
    section=SECTION,
    headline=extreme_headline,
    details=DisparityDetails,
    tables="equipoise.report.impact_tables:impact_tables",
    needs_labels=False,
)
DECOMPOSE = Question(
    name="decompose",
    answer="equipoise.audits.disparity.decompose:decompose",
    sentence="How much of each gap goes with different factors, and how much does not?",
    section=SECTION,
    headline=split_headline,
    details=DecomposeDetails,
    drawing="equipoise.plot.split:split_plot",
    legend="Of each group the raw gap, then the parts that add up to it: what people alike in all"
    " factors still show, what goes with each factor, and what is due to people without anybody"
    " alike. Bars are intervals; a part that is nothing at all is left out.",
    needs_labels=False,
)


OVER_TIME = Section(
    id="over-time",
    heading="Did it change?",
    lead="Gaps before and after: two models on the same people, two periods, or batch by batch,"
    " with error rates that hold however often one looks.",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompareDetails(Details):
    """Values and gaps before and after.

    Parameters
    ----------
    metric, reference : str
        What is compared, and what gaps are measured against.
    kind : {"models", "periods", "tables"}
        Two models on the same rows, two periods of a table, or two tables.
    baseline, candidate : str
        What was before and what came after.
    margin : float, optional
        Growth of a gap that is tolerated.
    gap, direction, adjust : str
        As they were asked for.
    alike : bool
        Whether two models decide alike on every row.
    changes : list of dict
        For each group: rows, value and gap before and after; for paired counts, decisions gained
        and lost.
    gate : dict, optional
        With a margin: whether every growth is within it, and the largest bound.
    """

    metric: str = ""
    reference: str = ""
    kind: str = "models"
    baseline: str = ""
    candidate: str = ""
    margin: float | None = None
    gap: str = "absolute"
    direction: str | None = None
    adjust: str = "holm"
    alike: bool = False
    changes: list[dict[str, Any]] = field(default_factory=list)
    gate: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MonitorDetails(Details):
    """The evidence batch by batch.

    Parameters
    ----------
    metric, reference : str
        What is watched, and what gaps are measured against.
    margin, alternative, alarm, run_length, adjust
        As they were asked for.
    batches : list of str
        In the order in which they count.
    paths : list of dict
        For each finding: rows, gap of the batch, average gap with interval, evidence alone and
        within the family, the batch of the alarm, and since when the gap can be dated.
    epoch : int
        1, and one more after each restart.
    state_digest : str, optional
        Fingerprint of the state that was read.
    """

    metric: str = ""
    reference: str = ""
    margin: float = 0.0
    alternative: str = "two-sided"
    alarm: str = "ever"
    run_length: float | None = None
    adjust: str = "e-holm"
    batches: list[str] = field(default_factory=list)
    paths: list[dict[str, Any]] = field(default_factory=list)
    epoch: int = 1
    state_digest: str | None = None

    def told(self, min_cell: int) -> "MonitorDetails":
        """Return the evidence without batches, and looks, that tell of a few rows."""
        counts = {(k, key): path[key] for k, path in enumerate(self.paths) for key in _ROWS}
        if min_cell <= 1 or any(None in one for one in counts.values()):
            return self
        hidden = withheld_places(list(counts.values()), min_cell)
        paths = []
        for path in self.paths:
            shown = _shown_looks(path["n"], path["n_reference"], min_cell)
            paths.append(
                path
                | {key: _kept(path[key], [not one for one in hidden]) for key in _OF_BATCHES}
                | {key: _kept(path[key], shown) for key in _OF_LOOKS}
            )
        return replace(self, paths=paths)

    def path(self, finding: Finding) -> dict[str, Any] | None:
        """Return the path of a finding; None where its numbers are withheld."""
        own = (finding.group, finding.estimand.metric)
        return next((path for path in self.paths if (path["group"], path["metric"]) == own), None)


_ROWS = ("n", "n_reference")
_OF_BATCHES = (*_ROWS, "batch_gap")
_OF_LOOKS = ("gap", "low", "high", "e", "e_adjusted")


def _kept(values: list[Any], shown: list[bool]) -> list[Any]:
    return [value if one else None for value, one in zip(values, shown, strict=True)]


def _shown_looks(n: list[int], n_reference: list[int], min_cell: int) -> list[bool]:
    """Return the looks between which no few rows arrived; what is known now is always told.

    The change of an average from one look to the next says what the rows in between hold.
    """
    shown = [False] * len(n)
    since = [0, 0]
    for t in range(len(n) - 1, -1, -1):
        shown[t] = t == len(n) - 1 or not any(is_few(rows, min_cell) for rows in since)
        since = [n[t], n_reference[t]] if shown[t] else [since[0] + n[t], since[1] + n_reference[t]]
    so_far = [0, 0]
    for t in range(len(n) - 1):
        so_far = [so_far[0] + n[t], so_far[1] + n_reference[t]]
        shown[t] = shown[t] and not any(is_few(rows, min_cell) for rows in so_far)
    return shown


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiscoverDetails(Details):
    """What was looked at, and every subgroup that differs.

    Parameters
    ----------
    metric, noun : str
        What is compared, and how a person says it.
    features : list of str
        Columns that subgroups are made of.
    depth, min_size, method
        As they were asked for, or chosen.
    n_slices, n_tests, n_tested_rows, n_rejected : int
        Subgroups looked at, the factor by which p-values are corrected, rows that were tested, and
        subgroups that differ.
    value : float
        The metric of everybody.
    detectable : float
        Gap of a subgroup of 5% of the rows that would have been found with 80% chance.
    shown, rejected, nearest : list of dict
        Subgroups that are shown, all that differ (the first 200), and the best that do not: group,
        words, rows, value, gap with interval and bound, p-values, and what explains it.
    at_least : int, optional
        After a split: at least this many of the candidates are real.
    simultaneous : bool
        True: intervals hold for all subgroups together.
    """

    metric: str = ""
    noun: str = ""
    features: list[str] = field(default_factory=list)
    depth: int = 3
    min_size: float = 0.02
    method: str = "lattice"
    n_slices: int = 0
    n_tests: int = 1
    n_tested_rows: int = 0
    n_rejected: int = 0
    value: float = 0.0
    detectable: float = 0.0
    shown: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    nearest: list[dict[str, Any]] = field(default_factory=list)
    at_least: int | None = None
    simultaneous: bool = True

    def told(self, min_cell: int) -> "DiscoverDetails":
        """Return the lists without subgroups that differ from a larger one by a few rows."""
        larger = [(set(one["words"]), one["n"]) for one in self.shown + self.rejected]

        def kept(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [
                one
                for one in listed
                if not any(
                    words < set(one["words"]) and is_few(n - one["n"], min_cell)
                    for words, n in larger
                )
            ]

        rejected, nearest = kept(self.rejected), kept(self.nearest)
        if (rejected, nearest) == (self.rejected, self.nearest):
            return self
        return replace(self, rejected=rejected, nearest=nearest)


def _of_kind(result: AuditResult, kind: str, decision: Decision | None = None) -> list[Finding]:
    return [
        finding
        for finding in result.findings
        if finding.estimand.kind == kind and decision in {None, finding.decision}
    ]


def _compare(result: AuditResult) -> str:
    details = details_of(result.details, CompareDetails)
    if details.alike:
        return (
            f"{details.baseline} and {details.candidate} agree on every row that counts; nothing"
            " changed"
        )
    changed = _changed(result, details)
    sentences = [changed]
    if details.gate is not None:
        sentences = [_gate(result, details.gate), changed[:1].lower() + changed[1:]]
    grown = _of_kind(result, "gap growth", Decision.DETECTED)
    if grown:
        limit = f" by more than {gap_size(details.margin, result)}" if details.margin else ""
        told = [finding for finding in grown if not finding.withheld]
        most = ""
        if told:
            widest = max(told, key=lambda finding: finding.estimate or 0.0)
            most = (
                f" ({foremost_word(told, grown)}: {group_words(widest.group, result.words)},"
                f" {gap_size(widest.estimate, result)})"
            )
        sentences.append(f"{counted(len(grown), 'gap')} grew{limit}{most}")
    return "; ".join(sentences)


def _gate(result: AuditResult, gate: dict[str, Any]) -> str:
    margin = gap_size(gate["margin"], result)
    worst = known_group_words(str(gate["worst"]), result)
    if gate["within"]:
        largest = ""
        if gate["bound"] is not None:
            bound = gap_size(gate["bound"], result)
            largest = f" (largest bound {bound}, {worst})"
        return (
            f"Within the margin: no group's gap in {metric_words(result)} grew by more than"
            f" {margin}{largest}"
        )
    untested = gate.get("untested") or []
    if gate["worst"] is None:
        return "Not shown to be within the margin: no gap could be tested"
    if gate["bound"] is None:
        return (
            f"Not shown to be within the margin: for {worst}, whose numbers"
            f" are withheld, growth by more than {margin} cannot be excluded"
        )
    if gate["bound"] <= gate["margin"] and untested:
        return (
            f"Not shown to be within the margin: {known_group_words(str(untested[0]), result)}"
            + (f" and {len(untested) - 1} more" if len(untested) > 1 else "")
            + " could not be tested (largest bound of the others"
            f" {gap_size(gate['bound'], result)}, {worst})"
        )
    return (
        f"Not within the margin: for {worst} growth up to"
        f" {gap_size(gate['bound'], result)} cannot be excluded, where {margin} is tolerated"
    )


def _changed(result: AuditResult, details: CompareDetails) -> str:
    metric = metric_words(result)
    moved = _of_kind(result, "gap change", Decision.DETECTED)
    tested = [
        finding
        for finding in _of_kind(result, "gap change")
        if finding.decision is not Decision.NOT_TESTED
    ]
    p = joint_p(result)
    test = "" if p is None else f" (joint test p {p_value(p)})"
    between = f"between {details.baseline} and {details.candidate}"
    if moved:
        count = f"{len(moved)} of {counted(len(tested), 'gap')} in {metric} changed {between}"
        told = [finding for finding in moved if not finding.withheld]
        if not told:
            return f"{count}{test}"
        most = max(told, key=lambda finding: abs(finding.estimate or 0.0))
        return (
            f"{count}, {foremost_word(told, moved)} for {group_words(most.group, result.words)},"
            f" {_from_to(most, result, details)}{test}"
        )
    if joint_detected(result):
        return f"Gaps in {metric} changed {between}{test}; no single group is shown to have moved"
    return (
        f"No change of a gap in {metric} was detected {between}{test}; this does not show that"
        f" there is none{_shifted(result)}"
    )


def _shifted(result: AuditResult) -> str:
    """Say whose own values changed, where no gap is shown to have."""
    values = _of_kind(result, "change")
    shifted = [finding for finding in values if finding.decision is Decision.DETECTED]
    told = [finding for finding in shifted if not finding.withheld]
    if not shifted:
        return ""
    changed = f"; the {metric_words(result)} itself changed in {len(shifted)} of"
    changed += f" {counted(len(values), 'group')}"
    if not told:
        return changed
    most = max(told, key=lambda finding: abs(finding.estimate or 0.0))
    side = "lower" if (most.estimate or 0.0) < 0.0 else "higher"
    return (
        f"{changed}, {foremost_word(told, shifted)} for {group_words(most.group, result.words)},"
        f" where it is {gap_size(abs(most.estimate or 0.0), result)} {side}"
    )


def _from_to(finding: Finding, result: AuditResult, details: CompareDetails) -> str:
    """Say which gap became which: ``from 1.2 points below to 0.3 points above``."""
    row = next((row for row in details.changes if row["group"] == finding.group), None)
    if row is None or row["gap_old"] is None or row["gap_new"] is None:
        return f"by {gap_size(abs(finding.estimate or 0.0), result)}"
    ends = [
        f"{gap_size(abs(gap), result)} {'below' if gap < 0.0 else 'above'}"
        for gap in (row["gap_old"], row["gap_new"])
    ]
    reference = known_group_words(details.reference, result)
    return f"from {ends[0]} to {ends[1]} {reference}"


def _monitor(result: AuditResult) -> str:
    details = details_of(result.details, MonitorDetails)
    alarms = [
        (details.path(finding) or {"alarm_at": None, "since": None}, finding)
        for finding in result.findings
        if finding.decision is Decision.DETECTED
    ]
    count = len(details.batches)
    batches = "1 batch" if count == 1 else f"{count} batches"
    if not alarms:
        widths = [
            max(abs(f.ci.low or 0.0), abs(f.ci.high or 0.0))
            for f in result.findings
            if f.ci is not None
        ]
        known = ""
        within = decided(result, Decision.WITHIN_MARGIN)
        if within and within == tested(result):
            margin = gap_size(details.margin, result)
            known = f"; the average gap of every group is within the margin of {margin}"
        elif widths and len(widths) == len(tested(result)):
            known = (
                f"; the average gap of every group lies within"
                f" {gap_size(max(widths), result)} of"
                f" {known_group_words(details.reference, result)}"
            )
        return f"No alarm in {batches}{known}; this does not show that there is no gap"
    first, finding = min(
        alarms,
        key=lambda one: (
            details.batches.index(one[0]["alarm_at"]) if one[0]["alarm_at"] else count,
            one[1].group,
        ),
    )
    when = "a batch that is withheld" if finding.withheld else "an earlier batch"
    e = finding.statistic
    if first["alarm_at"] is not None:
        when = first["alarm_at"]
        e = first["e_adjusted"][details.batches.index(when)] or e
    evidence = "e withheld" if e is None else f"e = {number(e)}"
    sentence = (
        f"Alarm in {when}: the {finding.estimand.noun} of"
        f" {group_words(finding.group, result.words)} differs from"
        f" {known_group_words(details.reference, result)} ({evidence}{_chance(result, details)})"
    )
    if first["since"] is not None:
        since = first["since"]
        when = f"between {since['low']} and {since['high']}, most likely {since['best']}"
        if since["low"] == since["high"]:
            when = f"in {since['best']}"
        sentence += f"; if the gap began at once and stayed, it began {when}"
    others = len(alarms) - 1
    return sentence + (f"; {others} more {'alarm' if others == 1 else 'alarms'}" if others else "")


def _chance(result: AuditResult, details: MonitorDetails) -> str:
    if details.alarm == "arl":
        return ""
    return f", at most a {level(result)} chance of any false alarm, however often one looks"


def people(words: list[str]) -> str:
    """Say a subgroup: people whose age is at most 25 and whose home is rent."""
    return "people whose " + " and whose ".join(words)


def _discover(result: AuditResult) -> str:
    details = details_of(result.details, DiscoverDetails)
    looked = f"{details.n_slices:,} subgroups"
    if not result.findings:
        return (
            f"Nothing found among {looked}: no {details.noun} is shown to differ from the rest; a"
            " subgroup of 5% of the rows would have been found with 80% chance from a gap of about"
            f" {gap_size(details.detectable, result)}"
        )
    shown = len(result.findings)
    found = (
        f"{shown} {'subgroup' if shown == 1 else 'subgroups'} that nobody named"
        f" {'has' if shown == 1 else 'have'} another {details.noun} than the rest, of {looked}"
        f" looked at ({level(result)} chance that any is false)"
    )
    if not details.shown:
        return f"{found}; their numbers are withheld"
    first = details.shown[0]
    side = "higher" if (first["gap"] or 0.0) > 0 else "lower"
    among = "" if len(details.shown) == shown else " of those not withheld"
    return (
        f"{found}; the clearest{among}:"
        f" {people(first['words'])}, {gap_size(abs(first['gap'] or 0.0), result)} {side}, at least"
        f" {gap_size(abs(first['bound'] or 0.0), result)} ({first['n']:,} rows)"
    )


DISCOVER = Question(
    name="discover",
    answer="equipoise.audits.disparity.discover:discover",
    sentence="Which subgroups that nobody named differ in {metric}?",
    section=Section(
        id="discover",
        heading="Which groups did nobody name?",
        lead="Subgroups made of the columns, with error control over everything that was looked"
        " at: the worst of a thousand harmless subgroups always looks bad.",
    ),
    subject="{metric} of subgroups that nobody named",
    headline=_discover,
    legend="Subgroups in the order of the bound nearer to zero; bars are intervals that hold for"
    " all subgroups looked at.",
    details=DiscoverDetails,
    tables="equipoise.report.over_time_tables:discover_tables",
)
MONITOR = Question(
    name="monitor",
    answer="equipoise.audits.disparity.monitor:monitor",
    sentence="Is there a gap in {metric} now, looked at after every batch?",
    section=OVER_TIME,
    subject="{metric} over time",
    headline=_monitor,
    drawing="equipoise.plot.over_time:sequence",
    legend="Dots are gaps of single batches, the line is the average gap since the start with a"
    " band that holds at all looks together; the dashed line is the batch of the alarm, the shaded"
    " stretch where the gap may have begun.",
    details=MonitorDetails,
    tables="equipoise.report.over_time_tables:monitor_tables",
    keeps_margin=True,
    words={
        Decision.DETECTED: "alarm",
        Decision.NOT_DETECTED: "no alarm",
        Decision.WITHIN_MARGIN: "no alarm, within margin",
    },
)
COMPARE = Question(
    name="compare",
    answer="equipoise.audits.disparity.compare:compare",
    sentence="Did the gaps in {metric} change, and whom did the change hurt?",
    section=OVER_TIME,
    subject="change of gaps in {metric}",
    headline=_compare,
    drawing="equipoise.plot.over_time:changes",
    legend="Open points are gaps before, full points gaps after; the shape of a full point repeats"
    " what its colour says of the change. The number at the right is the change with its interval.",
    details=CompareDetails,
    gate_kind="gap growth",
    tables="equipoise.report.over_time_tables:compare_tables",
)
