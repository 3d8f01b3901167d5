"""The three steps of a necessity argument in one result that a court can read."""

import inspect
import textwrap
from dataclasses import fields, replace

import numpy as np
from scipy import special

from equipoise.audits.improvement.improvability import Search, concluded, search_for
from equipoise.audits.improvement.questions import (
    ImprovementDetails,
    NecessityDetails,
    improvability_headline,
)
from equipoise.audits.improvement.rows import utility_name, utility_words
from equipoise.audits.improvement.trial import Setting
from equipoise.data.metrics import METRICS, RateMetric
from equipoise.results.details import details_of
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding
from equipoise.results.formats import number, p_value
from equipoise.results.result import AuditResult
from equipoise.results.sentences import capital, points
from equipoise.results.words import MetricWords, Words
from equipoise.stats.improvement.test import Direction
from equipoise.stats.improvement.utilities import UtilityEstimates, standard_error

__all__ = ["necessity"]

NOT_SEARCHED = (
    "Other classes of models, other features, other outcomes and other ways to decide were not"
    " searched."
)


def _dossier(search: Search) -> AuditResult:
    """Add the disparity and the purpose of the status quo to the search for an alternative."""
    result = search.answer()
    details = details_of(result.details, ImprovementDetails)
    setting = search.setting
    rows = setting.rows
    groups = [g for g, name in enumerate(rows.names) if name in details.groups]
    everyone = np.arange(len(rows.y))
    now = setting.status_quo(everyone)
    estimates = setting.estimates(everyone, (now, now))
    findings = [
        *_disparities(search, estimates, groups, result),
        *_purposes(search, estimates, groups),
    ]
    words = _rate_words([f.estimand.metric for f in findings])
    record = {part.name: getattr(details, part.name) for part in fields(details)}
    return AuditResult(
        audit="necessity",
        null=result.null,
        alternative=result.alternative,
        alpha=result.alpha,
        method=result.method,
        n=result.n,
        findings=(*findings, *result.findings),
        joint=result.joint,
        notes=result.notes,
        details=NecessityDetails(
            **record,
            steps=_steps(findings, improvability_headline(replace(result, words=words)), words),
            search={
                "candidates": [row["name"] for row in details.candidates] or list(search.names),
                "order_rule": details.order_rule or "one candidate, named beforehand",
                "splits": 0 if search.ready else search.n_splits,
                "train_fraction": search.train_fraction,
                "validation_fraction": search.validation_fraction if details.candidates else 0.0,
                "seed": search.seed,
                "features": list(rows.feature_names),
                "not_searched": NOT_SEARCHED,
            },
        ),
    )


def _rate_words(names: list[str]) -> Words:
    """Return how metrics are told that are shares of people; what people are called comes later."""
    rates = [metric for name in names if isinstance(metric := METRICS.get(name), RateMetric)]
    return Words(
        metrics={
            rate.name: MetricWords(noun=rate.words, event=rate.event, among=rate.among)
            for rate in rates
        }
    )


def _disparities(
    search: Search, estimates: UtilityEstimates, groups: list[int], result: AuditResult
) -> list[Finding]:
    """The largest gap of each fairness metric under the status quo, whichever two groups it is."""
    setting = search.setting
    found = []
    for c, compared, tries in _compared(setting, groups):
        name, words = (f(setting.metrics[c]) for f in (utility_name, utility_words))
        pairs = []
        for g, h in compared:
            contrast = np.zeros(estimates.value.size)
            contrast[estimates.position(c, 0, g)] = 1.0
            contrast[estimates.position(c, 0, h)] = -1.0
            se = standard_error(contrast, estimates.covariance)
            gap = float(contrast @ estimates.value.ravel())
            pairs.append((gap, se, g, h) if gap >= 0 else (-gap, se, h, g))
        if not pairs:
            continue
        # Which two groups is not known beforehand: Bonferroni over all pairs.
        ps = [
            min(2.0 * tries * special.ndtr(-gap / se), 1.0) if se else 1.0
            for gap, se, _, _ in pairs
        ]
        gap, se, high, low = pairs[int(np.argmin(ps))]
        tail = (1.0 - search.confidence_level) / (2.0 * tries)
        reach = -special.ndtri(tail) * se
        p = float(min(ps))
        found.append(
            Finding(
                group=setting.rows.names[low],
                estimand=Estimand(name, "gap", scale="difference", noun=words),
                decision=Decision.DETECTED if p <= result.alpha else Decision.NOT_DETECTED,
                n=int(
                    setting.rows.group_sizes[sorted({g for pair in compared for g in pair})].sum()
                ),
                method="normal law, Bonferroni over all pairs of groups",
                estimate=-gap,
                ci=ConfidenceInterval(
                    low=float(-gap - reach),
                    high=float(-gap + reach),
                    confidence_level=search.confidence_level,
                ),
                p_value=p,
                p_value_raw=p / tries,
                reference=setting.rows.names[high],
            )
        )
    return found


def _compared(setting: Setting, groups: list[int]) -> list[tuple[int, list[Direction], int]]:
    """Return the pairs of groups behind each gap, and how many are looked at in its attribute."""
    found = []
    gaps = setting.question.gaps(len(setting.rows.names))
    for block in setting.rows.blocks:
        for c in setting.question.fairness:
            mine = [
                [(g, h) for g, h in gap.pairs if g < h and g in groups and h in groups]
                for gap in gaps
                if gap.criterion == c and set(gap.groups) <= set(block)
            ]
            tries = sum(map(len, mine))
            if c not in setting.question.indices:
                found += [(c, pairs, tries) for pairs in mine]
    return found


def _purposes(search: Search, estimates: UtilityEstimates, groups: list[int]) -> list[Finding]:
    """What the status quo achieves of its purpose, in the stated utility."""
    setting = search.setting
    name, words = (f(setting.metrics[0]) for f in (utility_name, utility_words))
    whom = [len(setting.rows.names)] if setting.question.population else groups
    reach = -special.ndtri((1.0 - search.confidence_level) / 2.0)
    found = []
    for g in whom:
        place = estimates.position(0, 0, g)
        value = float(estimates.value[0, 0, g])
        margin = reach * float(np.sqrt(max(estimates.covariance[place, place], 0.0)))
        sizes = setting.rows.group_sizes
        found.append(
            Finding(
                group="everyone" if setting.question.population else setting.rows.names[g],
                estimand=Estimand(name, "value", noun=f"{words} of the status quo"),
                decision=Decision.ESTIMATED,
                n=int(sizes.sum() if setting.question.population else sizes[g]),
                method="normal law",
                estimate=value,
                ci=ConfidenceInterval(
                    low=value - margin,
                    high=value + margin,
                    confidence_level=search.confidence_level,
                ),
                reference="",
            )
        )
    return found


def _steps(findings: list[Finding], alternative: str, words: Words) -> list[dict[str, str]]:
    """The three questions of the law, each with its answer."""
    gaps = [finding for finding in findings if finding.estimand.kind == "gap"]
    purposes = [finding for finding in findings if finding.estimand.kind != "gap"]
    disparity = "; ".join(_disparity_sentence(gap, words) for gap in gaps)
    return [
        {
            "question": "Is there a disparity?",
            "answer": capital(disparity) or "Not tested",
        },
        {
            "question": "What purpose does the rule in use serve, and how well?",
            "answer": _purpose_sentence(purposes) or "Not estimated",
        },
        {
            "question": "Does an alternative serve it as well with less disparity?",
            "answer": alternative,
        },
    ]


def _purpose_sentence(purposes: list[Finding]) -> str:
    known = [(f.group, number(f.estimate)) for f in purposes if f.estimate is not None]
    values = ", ".join(f"{value} for {group}" for group, value in known)
    return f"{purposes[0].estimand.noun}: {values}" if known else ""


def _disparity_sentence(finding: Finding, words: Words) -> str:
    shown = "is shown" if finding.decision is Decision.DETECTED else "is not detected"
    told = words.metrics.get(finding.estimand.metric)
    gap = abs(finding.estimate or 0.0)
    rate = told is not None and told.event is not None
    size = f"{points(gap)} percentage points" if rate else number(gap)
    test = "" if finding.p_value is None else f" (p {p_value(finding.p_value)})"
    return (
        f"a difference in {finding.estimand.noun} {shown}: {finding.group} is {size} below"
        f" {finding.reference}{test}"
    )


def _doc() -> str:
    """Return the docstring: the options are those of `improvability`."""
    # Python 3.13 takes the indentation out of docstrings, and -OO the docstrings themselves.
    text = inspect.cleandoc(search_for.__doc__ or "")
    options = text[text.find("Parameters\n") : text.find("Returns\n")]
    return f"""Argue necessity in three steps: disparity, purpose, alternative.

    First the largest gap of each fairness metric under the status quo; then what the status quo
    achieves of its purpose, in the utility that you state as `accuracy`; then whether a candidate
    serves it as well with less disparity, as in `improvability`. The null hypothesis of the joint
    test is that of the third step.

{textwrap.indent(options, "    ")}    Returns
    -------
    AuditResult
        `details["steps"]` has the three questions with their answers, `details["search"]` what was
        tried and what was not; the rest as in `improvability`.

    Examples
    --------
    Is calling people by their past costs necessary, when visits are known?

    >>> import equipoise as eq, numpy as np
    >>> rng = np.random.default_rng(7)
    >>> race = rng.choice(["a", "b"], size=3000)
    >>> sickness = rng.gamma(2.0, 2.0, size=3000)
    >>> data = {{"race": race, "sick": (sickness > 4).astype(int),
    ...         "visits": rng.poisson(3 * sickness),
    ...         "cost": sickness * np.where(race == "b", 0.4, 0.7)}}
    >>> audit = eq.Audit(data, group="race", y_true="sick", y_score="cost")
    >>> result = audit.necessity("visits", accuracy="tpr", fairness="selection_rate", capacity=0.2,
    ...                          higher_group="race=a")
    >>> print(result.details["steps"][0]["answer"].split(": ")[1])
    race=b is 32.9 percentage points below race=a (p <0.001)
    """


necessity = concluded(search_for, _dossier, "necessity", _doc())
