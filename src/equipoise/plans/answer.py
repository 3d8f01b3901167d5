"""The whole audit in one paragraph that a person can sign."""

from collections.abc import Sequence

from equipoise._names import GroupName
from equipoise.plans.dossier import Check, Dossier
from equipoise.plans.gate import Outcome, outcome
from equipoise.results.finding import Decision, Finding
from equipoise.results.formats import counted, number
from equipoise.results.question import questions
from equipoise.results.result import AuditResult
from equipoise.results.sentences import gap_sentence, lead, least, worse_off
from equipoise.results.wording import (
    compared_noun,
    decided,
    gap_size,
    headline,
    metric_words,
    quantity_words,
    reference_words,
    tested,
)

__all__ = ["answer"]


def answer(dossier: Dossier) -> tuple[str, ...]:
    """Say what an audit found, what it did not show and what it did not ask.

    The first sentence has the largest disadvantage that is shown, by the end of its interval and
    among groups of at least 30 rows. What follows counts the other groups, says what is shown to be
    within its margin, what stays open, and which questions were not asked.

    Parameters
    ----------
    dossier : Dossier
        What a plan produced.

    Returns
    -------
    tuple of str
        Sentences with their full stop.
    """
    gaps = [check for check in dossier.checks if _compares(check.result)]
    first = _largest(gaps)
    untested = all(outcome(check.result) is Outcome.NOT_TESTED for check in dossier.checks)
    parts = []
    if first is not None:
        check, finding = first
        parts += [f"{gap_sentence(finding, check.result)}.", _others(check)]
    elif untested:
        parts.append(
            "Nothing could be tested: see in the tables which groups are too small, or why."
        )
    led = None if first is None else first[0]
    told = _told(dossier.checks, led)
    parts += [
        _equivalence(check.result) if check.result.question.equivalence else headline(check.result)
        for check in told
    ]
    further = [check for check in dossier.checks if check is not led and check not in told]
    parts += _further(further, led is not None or bool(told))
    parts += _open(further)
    parts += [] if untested else _untested(further)
    if gaps and all(check.result.words.favourable is None for check in gaps):
        parts.append(
            "Which decision is good for people was not given, so nothing is said about who is worse"
            " off."
        )
    parts += _unasked(dossier)
    return tuple(parts)


def _compares(result: AuditResult) -> bool:
    """Whether findings are gaps between a group and what it is compared with."""
    return bool(result.details.values) and any(f.estimand.kind == "gap" for f in result.findings)


def _largest(checks: Sequence[Check]) -> tuple[Check, Finding] | None:
    """Return the finding that leads the page.

    Whoever is worse off comes before whoever is better off. The largest of many bounds is only true
    if they hold together, so joint intervals come first; then shares of people, which compare with
    each other, before other numbers and ratios; then what is shown.
    """
    leading = []
    for check in checks:
        found = lead(decided(check.result, Decision.DETECTED), check.result)
        if found is not None:
            leading.append((check, found))

    def order(pair: tuple[Check, Finding]) -> tuple[bool, bool, bool, float]:
        check, finding = pair
        result = check.result
        shown = least(finding, result.details.null_value)
        worse = worse_off(finding, result) is not False
        told = result.words.metrics.get(finding.estimand.metric)
        rate = told is not None and told.event is not None and finding.estimand.scale != "ratio"
        return worse, bool(result.details.get("simultaneous")), rate, shown

    return max(leading, key=order) if leading else None


def _others(check: Check) -> str:
    """Count the groups that a check shows to differ, and say how far the list can be trusted."""
    result = check.result
    found, compared = decided(result, Decision.DETECTED), tested(result)
    details = result.details
    rate = f"{100 * result.alpha:g}%"
    if details.get("simultaneous") or details.get("adjust") in {"holm", "bonferroni"}:
        trust = f"with at most a {rate} chance that any of them is wrong"
    elif details.get("adjust") in {"bh", "by"}:
        trust = f"of which at most {rate} are expected to be wrong"
    else:
        trust = f"each tested by itself at the {rate} level"
    differ = "is" if len(found) == 1 else "are"
    crossed = any(len(f.group.parts) > 1 for f in compared if isinstance(f.group, GroupName))
    several = crossed and len(compared) > 1
    who = counted(
        len(compared), compared_noun(result, "groups and intersection" if several else "group")
    )
    return f"{len(found)} of {who} {differ} shown to differ in {metric_words(result)}, {trust}."


def _told(checks: Sequence[Check], led: Check | None) -> list[Check]:
    """Return the checks with a sentence of their own: equivalence, and what is shown if none leads.

    There are three at most.
    """
    return [
        check
        for check in checks
        if (
            outcome(check.result) is not Outcome.NOT_TESTED
            if check.result.question.equivalence
            else led is None and outcome(check.result) is Outcome.DETECTED
        )
    ][:3]


def _equivalence(result: AuditResult) -> str:
    within = decided(result, Decision.WITHIN_MARGIN)
    beyond = decided(result, Decision.DETECTED)
    asked = [finding for finding in result.findings if not finding.is_reference]
    reference = reference_words(result)
    bounds = result.details.bounds
    if result.findings[0].estimand.scale == "ratio" and bounds is not None:
        margin = f"between {number(bounds[0])} and {number(bounds[1])} times that of {reference}"
    else:
        margin = f"within {gap_size(result.details.get('margin'), result)} of {reference}"
    noun = compared_noun(result, "group")
    sentence = (
        f"The {quantity_words(result)}{_of_whom(result)} {'is' if noun == 'group' else 'are'} shown"
        f" to be {margin} for {len(within) or 'none'} of {counted(len(asked), noun)}"
    )
    if beyond:
        sentence += f" and beyond it for {len(beyond)}"
    unclear = len(asked) - len(within) - len(beyond)
    if unclear:
        sentence += f"; for {unclear} the data do not settle it"
    return f"{sentence}."


def _of_whom(result: AuditResult) -> str:
    """Say whose rate is compared as a ratio, where the ratio of the good decision is another."""
    estimand = result.findings[0].estimand
    told = result.words.metrics.get(estimand.metric)
    if estimand.scale != "ratio" or told is None or told.better != "lower":
        return ""
    if told.event is None or told.among is not None:
        return ""
    return f" (here the share of {result.words.people} who {result.words.phrase(told.event)})"


def _further(checks: Sequence[Check], beside: bool) -> list[str]:
    """Name what else was detected."""
    detected = [check for check in checks if outcome(check.result) is Outcome.DETECTED]
    if not detected:
        return []
    count, about = _questions(detected, " more" if beside else "")
    tables = "its table says" if len(detected) == 1 else "their tables say"
    return [f"{count} detected something {about}; {tables} what."]


def _open(checks: Sequence[Check]) -> list[str]:
    """Name what was asked and not shown."""
    nothing = {Outcome.NOT_DETECTED, Outcome.INCONCLUSIVE}
    unshown = [check for check in checks if outcome(check.result) in nothing]
    if not unshown:
        return []
    count, about = _questions(unshown)
    return [
        f"{count} detected nothing {about}, which does not show that there is nothing to detect."
    ]


def _untested(checks: Sequence[Check]) -> list[str]:
    """Name what was asked and could not be tested."""
    untested = [check for check in checks if outcome(check.result) is Outcome.NOT_TESTED]
    if not untested:
        return []
    count, about = _questions(untested)
    return [f"{count} could not be tested {about}."]


def _questions(checks: Sequence[Check], more: str = "") -> tuple[str, str]:
    """Count questions and say what they are about."""
    subjects = ", ".join(dict.fromkeys(_subject(check.result) for check in checks))
    count = f"One{more} question" if len(checks) == 1 else f"{len(checks)}{more} questions"
    return count, f"({subjects})"


def _subject(result: AuditResult) -> str:
    return result.question.subject.format(metric=quantity_words(result))


def _unasked(dossier: Dossier) -> list[str]:
    """Name the sections of the report without a question in this plan."""
    known = questions()
    answered = {known[check.question].section.id for check in dossier.checks}
    every = {question.section.id: question.section.heading for question in known.values()}
    missing = [heading for name, heading in every.items() if name not in answered]
    return [f"Not asked in this plan: {' '.join(missing)}"] if missing else []
