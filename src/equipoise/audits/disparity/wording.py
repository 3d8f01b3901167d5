"""What is said of comparisons with the highest category, or given factors, in one sentence."""

import math

from equipoise.results.finding import Decision, Finding, Note
from equipoise.results.formats import counted, listed, none_of, number, p_value, to_be, with_article
from equipoise.results.result import AuditResult
from equipoise.results.sentences import (
    LEADING,
    group_words,
    lead,
    least,
    pair_sentence,
    points,
    size_sentence,
)
from equipoise.results.wording import (
    decided,
    gap_size,
    in_points,
    joint_p,
    metric_words,
    reference_words,
    tested,
)

__all__ = [
    "extreme_headline",
    "family_note",
    "given_headline",
    "margin_words",
    "share_words",
    "split_headline",
    "tolerance_words",
]

_FRACTIONS = {0.8: "four fifths", 0.9: "nine tenths", 0.75: "three quarters", 0.5: "one half"}


def share_words(limit: float) -> str:
    """Write a threshold as people say it: four fifths."""
    return _FRACTIONS.get(round(limit, 9), number(limit))


def extreme_headline(result: AuditResult) -> str:
    """Say which categories are shown to be away from the highest or lowest one."""
    compared = tested(result)
    which = "highest" if result.details["reference"] == "highest" else "lowest"
    if result.question.equivalence:
        return _certified(result, which)
    if result.details["alternative"] is not None:
        return _flagged(result, which)
    metric = metric_words(result)
    shown = decided(result, Decision.DETECTED)
    side = "lower" if which == "highest" else "higher"
    p = joint_p(result)
    if all(finding.withheld for finding in shown) and shown:
        return f"{_withheld(shown, compared)} {side} than the {which} {metric}"
    if shown:
        most, start = _lead(shown, result, which)
        more = f"; {len(shown) - 1} more" if len(shown) > 1 else ""
        verb = "is" if len(shown) <= 2 else "are"
        rest = f"{more} {verb} shown {side} than the {which}" if more else ""
        return f"{start}{_told(most, result)}: shown {side} than the {which} {metric}{rest}"
    word = "smallest" if which == "highest" else "largest"
    return (
        f"Among {_categories(compared)} no {metric} is shown to be {side} than the {which}"
        f" (p {p_value(p)}){_observed(compared, result, which, word)}"
    )


def _flagged(result: AuditResult, which: str) -> str:
    compared = tested(result)
    shown = decided(result, Decision.DETECTED)
    side = "below" if which == "highest" else "above"
    near = _distance(result, which)
    beyond = f"more than {near}" if near else f"{side} {_limit(result, which)}"
    if _threshold(result, which) == 0.0:
        beyond = f"{side} the {which}"
    if all(finding.withheld for finding in shown) and shown:
        return f"{_withheld(shown, compared)} {beyond}"
    if shown:
        more = f"; {len(shown) - 1} more shown so" if len(shown) > 1 else ""
        most, start = _lead(shown, result, which)
        return f"{start}{_told(most, result)}: shown {beyond}{more}"
    observed = _observed(compared, result, which, "furthest")
    return f"None of {_categories(compared)} is shown {beyond}{observed}"


def _certified(result: AuditResult, which: str) -> str:
    compared = tested(result)
    within = decided(result, Decision.WITHIN_MARGIN)
    beyond = decided(result, Decision.DETECTED)
    near = _distance(result, which)
    least = "at least" if which == "highest" else "at most"
    inside = f"be at most {near}" if near else f"have {least} {_limit(result, which)}"
    p = joint_p(result)
    if len(within) == len(compared) and p is not None and p <= result.alpha:
        return f"Every category compared is shown to {inside} (p {p_value(p)})"
    left = len(compared) - len(within) - len(beyond)
    parts = [f"{len(within)} of {_categories(compared)} {to_be(len(within))} shown to {inside}"]
    if beyond:
        parts.append(f"{len(beyond)} {to_be(len(beyond))} shown beyond it")
    if left:
        parts.append(f"{left} {to_be(left)} not settled")
    start = _lead(beyond, result, which)[1] if beyond else ""
    return f"{start}{', '.join(parts)}"


def _categories(compared: list[Finding]) -> str:
    return counted(len(compared), "category")


def _distance(result: AuditResult, which: str) -> str:
    """Say how far from the extreme the threshold is; empty on the ratio scale."""
    if result.findings[0].estimand.scale == "ratio":
        return ""
    side = "below" if which == "highest" else "above"
    return f"{gap_size(abs(_threshold(result, which)), result)} {side} the {which}"


def _limit(result: AuditResult, which: str) -> str:
    return f"{share_words(_threshold(result, which))} of the {which} rate"


def _threshold(result: AuditResult, which: str) -> float:
    low, high = result.details.bounds or (0.0, 0.0)
    return low if which == "highest" else high


def _withheld(shown: list[Finding], compared: list[Finding]) -> str:
    """Begin to say what is shown of categories that are all withheld."""
    return f"{len(shown)} of {_categories(compared)}, withheld, {to_be(len(shown))} shown to be"


def _observed(compared: list[Finding], result: AuditResult, which: str, word: str) -> str:
    """Tell the category furthest from the extreme, which is not known where some are withheld."""
    if any(finding.withheld for finding in compared):
        return ""
    return f"; the {word} observed is {_told(_furthest(compared, which), result)}"


def _furthest(findings: list[Finding], which: str) -> Finding:
    chosen = min if which == "highest" else max
    findings = [finding for finding in findings if not finding.withheld]
    findings = [finding for finding in findings if finding.n >= LEADING] or findings
    return chosen(findings, key=lambda finding: finding.estimate or 0.0)


def _lead(shown: list[Finding], result: AuditResult, which: str) -> tuple[Finding, str]:
    """Choose the finding to name first, and tell both sides of it and who is worse off."""
    chosen = lead(shown, result)
    if chosen is None:
        return _furthest(shown, which), ""
    pair = pair_sentence(chosen, result)
    return chosen, f"{pair}; " if pair else ""


def _told(finding: Finding, result: AuditResult) -> str:
    ci = finding.ci
    write = points if in_points(result) else number
    bounds = ""
    if ci is not None:
        low = "no bound" if ci.low is None else write(ci.low)
        high = "no bound" if ci.high is None else write(ci.high)
        bounds = f" (joint {100 * ci.confidence_level:g}% interval {low} to {high})"
    gap = "ratio" if finding.estimand.scale == "ratio" else "difference"
    size = gap_size(finding.estimate, result)
    return f"{group_words(finding.group, result.words)}, {gap} {size}{bounds}"


def tolerance_words(result: AuditResult) -> str:
    """Write what a flagged group exceeds: ``more than 5.0 percentage points above``."""
    reference = reference_words(result)
    side = {"greater": "above", "less": "below"}.get(str(result.details["alternative"]))
    if result.findings[0].estimand.scale == "ratio":
        low, high = result.details["bounds"] or (1.0, 1.0)
        bound = {"above": f"above {number(high)}", "below": f"below {number(low)}"}
        either = f"outside {number(low)} to {number(high)}"
        return f"{bound.get(side or '', either)} times that of {reference}"
    margin = result.details["margin"]
    if side is None:
        side = "away from" if margin else "apart from"
    by = f"more than {gap_size(margin, result)} " if margin else ""
    return f"{by}{side} {reference}"


def margin_words(result: AuditResult) -> str:
    """Write what a certified group lies in: ``within 5.0 percentage points``."""
    reference = reference_words(result)
    if result.findings[0].estimand.scale == "ratio":
        low, high = result.details["bounds"] or (None, None)
        return f"between {number(low)} and {number(high)} times {reference}"
    return f"within {gap_size(result.details['margin'], result)} of {reference}"


def given_headline(result: AuditResult) -> str:
    """Say what remains of the largest gap among people alike in the factors."""
    compared = tested(result)
    factors = listed(result.details["given"])
    metric = metric_words(result)
    shown = decided(result, Decision.DETECTED)
    within = decided(result, Decision.WITHIN_MARGIN)
    first = lead(shown, result)
    told = "" if first is None else size_sentence(first, result, alike=factors)
    among = counted(len(compared), "group")
    kind = with_article(metric)
    if result.question.equivalence:
        counts = f"{len(within)} of {among} {to_be(len(within))} shown to have {kind}"
        parts = [f"{counts} {margin_words(result)}"]
        if shown:
            parts.append(f"{len(shown)} {to_be(len(shown))} shown beyond it")
        if left := len(compared) - len(within) - len(shown):
            parts.append(f"{left} {to_be(left)} inconclusive")
        return f"{told}{'; among' if told else 'Among'} people alike in {factors}, {listed(parts)}"
    none = result.details.null_value
    told_of = [finding for finding in shown or compared if not finding.withheld]
    undetected = (
        f"No gap in {metric} was detected among people alike in {factors}, which does not show that"
        " there is none"
    )
    what, count = f"a gap in {metric}", ""
    if result.details["alternative"] is not None:
        what = f"{kind} {tolerance_words(result)}"
        undetected = (
            f"{none_of(len(compared), 'group')} shown to have {what} among people alike in"
            f" {factors}; one too small to tell may still have it"
        )
        count = f"; {len(shown)} of {among} {to_be(len(shown))} shown to have {what}"
    if shown and not told_of:
        return (
            f"Among people alike in {factors}, {len(shown)} of {among}, withheld,"
            f" {to_be(len(shown))} shown to have {what}"
        )
    if not told_of:
        return undetected
    # A group of few rows has large gaps by chance: it leads only where there is no other.
    told_of = [finding for finding in told_of if finding.n >= LEADING] or told_of
    side = {"greater": 1.0, "less": -1.0}.get(str(result.details["alternative"]))

    def beyond(finding: Finding) -> float:
        gap = (finding.estimate or none) - none
        return abs(gap) if side is None else side * gap

    chosen = first or max(told_of, key=beyond)
    summary = next(s for s in result.details["strata"] if s["group"] == chosen.group)
    ratio = chosen.estimand.scale == "ratio"
    raw = summary["raw"]
    share = summary["group_covered"]
    covered = (
        "depends on the learners"
        if share is None
        else f"{100 * share:.3g}% of the group has a comparator"
    )
    p = p_value(chosen.p_value)
    estimate = chosen.estimate or 0.0
    if told:
        # Told as a share of those who were or were not selected, it has no side of its own.
        size = f"{number(raw)} times" if ratio else gap_size(abs(raw), result)
        against = raw * estimate < 0.0 and not ratio
        size += " the other way" if against else ""
        return f"{told}; p {p}; without regard to {factors} the gap is {size}; {covered}{count}"
    start = "" if shown else f"{undetected}; "
    return (
        f"{start}{_beside(chosen, result)}: {_sided(raw, result, ratio=ratio)}; among people alike"
        f" in {factors} {_sided(estimate, result, ratio=ratio)}{_ends(chosen, result)}, p {p};"
        f" {covered}"
    )


def _sided(value: float, result: AuditResult, *, ratio: bool) -> str:
    """Write a gap with a positive number and its side."""
    if ratio:
        return f"{number(value)} times"
    return f"{gap_size(abs(value), result)} {'lower' if value < 0.0 else 'higher'}"


def _ends(finding: Finding, result: AuditResult) -> str:
    """Write an interval in the direction in which its gap is told."""
    ci = finding.ci
    if ci is None:
        return ""
    low, high = ci.low, ci.high
    if finding.estimand.scale != "ratio" and (finding.estimate or 0.0) < 0.0:
        low, high = (None if end is None else -end for end in (high, low))
    write = points if in_points(result) else number
    told = ["no bound" if end is None else write(end) for end in (low, high)]
    return f" ({100 * ci.confidence_level:g}% interval {told[0]} to {told[1]})"


def _beside(finding: Finding, result: AuditResult) -> str:
    """Name both sides of a comparison."""
    own, other = (group_words(name, result.words) for name in (finding.group, finding.reference))
    return f"{own}, beside {other}"


def split_headline(result: AuditResult) -> str:
    """Say how the largest raw gap is made up."""
    splits = result.details["split"]
    if not splits:
        return f"What the gaps in {metric_words(result)} are made of is withheld"
    raws = [finding for finding in result.lines if finding.estimand.kind == "raw gap"]
    first = lead([raw for raw in raws if least(raw, 0.0) > 0.0], result)
    chosen = max(
        splits,
        key=lambda split: (
            first is not None and split["group"] == first.group,
            abs(split["raw"]["value"]),
        ),
    )
    start = "" if first is None else f"{size_sentence(first, result)}; "
    factors = listed(result.details["given"])
    told = result.words.metrics.get(raws[0].estimand.metric)
    rate = told is not None and told.event is not None
    # Parts are told in the direction of the gap: one that narrows it is negative.
    sign = math.copysign(1.0, chosen["raw"]["value"])

    def size(value: float) -> str:
        return f"{points(sign * value)} percentage points" if rate else number(sign * value)

    parts = ", ".join(f"{part['factor']} {size(part['value'])}" for part in chosen["by_factor"])
    # The part of the only factor is what was said already.
    parts = f" ({parts})" if len(chosen["by_factor"]) > 1 else ""
    alike = next(
        finding
        for finding in result.findings
        if finding.group == chosen["group"] and finding.p_value is not None
    )
    outside = chosen["outside_group"]["value"] + chosen["outside_comparator"]["value"]
    rest = f", and {size(outside)} is due to people without anybody alike" if outside else ""
    return (
        f"{start}{_beside(alike, result)}: of a raw gap of {size(chosen['raw']['value'])} in"
        f" {metric_words(result)}, the part that goes with different {factors} is"
        f" {size(chosen['explained']['value'])}{parts}, the part that does not"
        f" {size(alike.estimate or 0.0)} (p {p_value(alike.p_value)}){rest}"
    )


def family_note(rule: str, count: int) -> Note:
    """Say how the p-values of one family are adjusted."""
    words = {
        "bh": "Benjamini-Hochberg: the expected share of false flags is at most alpha",
        "by": "Benjamini-Yekutieli: the same under any dependence",
        "holm": "Holm: the chance of any false flag is at most alpha",
        "bonferroni": "Bonferroni: the chance of any false flag is at most alpha",
        "none": "not adjusted: with many groups some are flagged by chance",
    }[rule]
    return Note(
        code="multiplicity",
        message=f"P-values of one family of {counted(count, 'group')}, {words}.",
    )
