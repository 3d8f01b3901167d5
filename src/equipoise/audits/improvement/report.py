"""From judged candidates to a result: findings, the joint test, details and remarks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import special

from equipoise._typing import GapRule, SplitRule
from equipoise.audits.improvement.candidates import described
from equipoise.audits.improvement.questions import Curve, ImprovementDetails
from equipoise.audits.improvement.rows import of_score
from equipoise.audits.improvement.trial import Setting, Trial, directions_of
from equipoise.audits.improvement.unlabelled import Unlabelled
from equipoise.results.estimand import Estimand, EstimandKind
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.improvement.candidates import candidate_lines
from equipoise.stats.improvement.frontier import (
    DeltaCurve,
    SplitEvidence,
    central_p_value,
    combine_splits,
    delta_curve,
)
from equipoise.stats.improvement.test import (
    CriterionTest,
    Direction,
    Gap,
    ImprovementTest,
    Margins,
    requirements,
)
from equipoise.stats.improvement.utilities import UtilityEstimates

__all__ = ["Criterion", "Form", "JudgedTrial", "judged", "not_tested", "result"]

RULES: tuple[SplitRule, ...] = ("median", "exch_median", "bonferroni")
RULE_WORDS = {
    "median": "twice the median p-value",
    "exch_median": "the exchangeable median rule",
    "bonferroni": "Bonferroni's rule",
}
FEW_ROWS = 30
FEW_DISCORDANT = 20
OTHER_SHARE = 0.02
"""Two shares that differ by more than this part of the larger are called different."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One requirement, in words."""

    metric: str
    noun: str
    group: str
    kind: Literal["accuracy", "fairness", "held", "floor"]
    scale: Literal["difference", "ratio"] = "difference"
    members: tuple[int, ...] = ()
    one_of_several: bool = False

    @property
    def words(self) -> str:
        """Name the requirement."""
        if self.kind == "accuracy":
            return f"{self.noun} of {self.group}"
        what = f"smallest {self.noun} ratio" if self.kind == "floor" else f"{self.noun} gap"
        return f"{what} of {self.group}" if self.one_of_several else what

    @property
    def estimand(self) -> Estimand:
        """What is estimated of it."""
        kind: EstimandKind = "gain" if self.kind == "accuracy" else "gap reduction"
        return Estimand(
            self.metric,
            "value" if self.kind == "floor" else kind,
            scale=self.scale,
            noun=f"smallest {self.noun} ratio above the floor"
            if self.kind == "floor"
            else self.noun,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTrial:
    """A trial with its test among the groups that are compared."""

    trial: Trial
    evidence: SplitEvidence
    test: ImprovementTest

    @property
    def tests(self) -> tuple[CriterionTest, ...]:
        """Requirements in the order of `Form.criteria`."""
        return (*self.test.accuracy, *self.test.fairness)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What was asked, as far as the report needs it."""

    setting: Setting
    criteria: tuple[Criterion, ...]
    groups: tuple[int, ...]
    combine: SplitRule
    confidence_level: float
    ready: tuple[str, ...]
    direction_known: bool
    loss: float | None
    names: tuple[str, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    gap: GapRule = "worst"
    references: tuple[int, ...] = ()

    @property
    def null(self) -> str:
        """The hypothesis in words."""
        question, margins = self.setting.question, self.setting.margins
        whose = "accuracy overall" if question.population else "accuracy in every group"
        less = ""
        if isinstance(margins.fairness, float) and margins.fairness:
            less = f" by more than {margins.fairness:.1%}"
        if not isinstance(margins.accuracy, float):
            return (
                "the candidate does not keep accuracy within the margins of the groups, or does not"
                f" narrow the gap{less}"
            )
        gain = margins.accuracy
        amount = f"{abs(gain):.3g}" if question.margin_scale == "absolute" else f"{abs(gain):.1%}"
        if gain < 0:
            first = f"the candidate loses more than {amount} of {whose}"
        else:
            more = f" by more than {amount}" if gain else ""
            first = f"the candidate does not raise {whose}{more}"
        return f"{first}, or does not narrow the gap{less}"

    @property
    def level(self) -> float:
        """Level of what is said of a winner; a winner among candidates tested together pays."""
        together = "critical" in self.extra
        return self.setting.alpha / (self.extra["n_candidates"] if together else 1)

    def method(self, n_splits: int) -> str:
        """The test in words."""
        question = self.setting.question
        statistic = {"signed": "signed gap statistic", "paper": "squared gap statistic"}
        law = "normal law"
        if question.inference == "bootstrap":
            kind = "studentised " if question.method == "signed" else ""
            law = f"{kind}bootstrap, {self.setting.n_resamples} resamples"
        splits = "no split" if self.ready else f"{n_splits} splits, {RULE_WORDS[self.combine]}"
        return f"{statistic[question.method]}, {law}, {splits}"

    def rows_of(self, criterion: Criterion) -> int:
        """Return how many rows a requirement rests on.

        Gaps among the others would tell how many rows a group has that is left out.
        """
        rows = self.setting.rows
        if not criterion.members or (self.left_out and len(criterion.members) > 1):
            return rows.n_labelled
        return int(rows.group_sizes[list(criterion.members)].sum())


def not_tested(form: Form, note: Note) -> AuditResult:
    """Return a result that says why nothing was tested."""
    findings = tuple(
        Finding(
            group=criterion.group,
            estimand=criterion.estimand,
            decision=Decision.NOT_TESTED,
            n=form.rows_of(criterion),
            method=form.method(0),
            reference="status quo",
            notes=(note,),
        )
        for criterion in form.criteria
    )
    return AuditResult(
        audit="improvability",
        null=form.null,
        alternative="the candidate is a less discriminatory alternative",
        alpha=form.setting.alpha,
        method=form.method(0),
        n=form.setting.rows.n_labelled,
        findings=findings,
        joint=JointTest(
            null=form.null,
            decision=Decision.NOT_TESTED,
            method="intersection-union",
            notes=(note,),
        ),
        notes=form.setting.rows.notes,
        details=ImprovementDetails(
            metric=form.criteria[0].metric,
            noun=form.criteria[0].noun,
            groups=list(form.setting.rows.names),
            left_out=list(form.left_out),
            groups_left_out=dict(form.left_out),
        ),
    )


def result(form: Form, splits: Sequence[JudgedTrial], p_value: float | None = None) -> AuditResult:
    """Combine the splits; `p_value` replaces theirs where candidates were tested together."""
    p_splits = np.array([split.test.p_value for split in splits])
    p = float(combine_splits(p_splits, form.combine)) if p_value is None else p_value
    alpha = form.setting.alpha
    detected = p <= alpha
    limit = None if detected else _limit(form, splits)
    joint = JointTest(
        null=form.null,
        decision=Decision.DETECTED if detected else Decision.NOT_DETECTED,
        method="intersection-union",
        statistic=_median_z(splits),
        p_value=p,
    )
    return AuditResult(
        audit="improvability",
        null=form.null,
        alternative="the candidate is a less discriminatory alternative",
        alpha=alpha,
        method=form.method(len(splits)),
        n=form.setting.rows.n_labelled,
        findings=tuple(_finding(form, splits, k) for k in range(len(form.criteria))),
        joint=joint,
        notes=(*form.setting.rows.notes, *form.notes, *remarks(form, splits, limit)),
        details=_details(form, splits, p_splits, limit),
    )


def _finding(form: Form, splits: Sequence[JudgedTrial], k: int) -> Finding:
    """One requirement over all splits; bounds are medians, as the p-value is."""
    criterion = form.criteria[k]
    tests = [split.tests[k] for split in splits]
    p_splits = np.array([test.p_value for test in tests])
    p = float(combine_splits(p_splits, form.combine))
    tail = (1.0 - form.confidence_level) / 2.0
    bounds = np.array([test.interval(tail / (2.0 if len(tests) > 1 else 1.0)) for test in tests])
    estimate = float(np.median([test.estimate for test in tests]))
    low, high = (float(bound) for bound in np.median(bounds, axis=0))
    return Finding(
        group=criterion.group,
        estimand=criterion.estimand,
        decision=Decision.DETECTED if p <= form.setting.alpha else Decision.NOT_DETECTED,
        n=form.rows_of(criterion),
        method=form.method(len(splits)),
        estimate=estimate,
        ci=ConfidenceInterval(low=low, high=high, confidence_level=form.confidence_level),
        statistic=_z(tests[int(np.argsort([t.estimate for t in tests])[(len(tests) - 1) // 2])]),
        p_value=p,
        p_value_raw=float(central_p_value(p_splits, form.combine)),
        reference="status quo",
    )


def _z(test: CriterionTest) -> float | None:
    ratios = [estimate / se for estimate, se in test.contrasts if se > 0]
    return min(ratios) if len(ratios) == len(test.contrasts) else None


def _median_z(splits: Sequence[JudgedTrial]) -> float | None:
    worst = []
    for split in splits:
        zs = [_z(test) for test in split.tests]
        known = [z for z in zs if z is not None]
        if len(known) < len(zs):
            return None
        worst.append(min(known))
    return float(np.median(worst))


def _limit(form: Form, splits: Sequence[JudgedTrial]) -> str:
    """Say what likely stands in the way: a margin, too little data, or the candidate itself."""
    if all(split.trial.same for split in splits):
        return "same"
    zs = [[_z(test) for test in split.test.accuracy] for split in splits]
    least = [min((z for z in row if z is not None), default=0.0) for row in zs]
    gains = np.min(form.setting.margins.accuracy)
    if gains == 0.0 and abs(float(np.median(least))) < 1.0:
        return "margin"
    better = [min(test.estimate for test in split.tests) > 0 for split in splits]
    return "data" if np.mean(better) > 0.5 else "search"


def _details(
    form: Form, splits: Sequence[JudgedTrial], p_splits: Any, limit: str | None
) -> ImprovementDetails:
    setting = form.setting
    curves = _curves(form, splits)
    binding = Counter(
        form.criteria[int(np.argmax([test.p_value for test in split.tests]))].words
        for split in splits
    )
    fitted = [split.trial.algorithm for split in splits if split.trial.algorithm is not None]
    first = splits[0].trial
    return ImprovementDetails(
        metric=form.criteria[0].metric,
        noun=form.criteria[0].noun,
        fairness=list(dict.fromkeys(c.metric for c in form.criteria if c.kind == "fairness")),
        gap=form.gap,
        attributes=[attribute.name for attribute in setting.rows.separate],
        reference=[setting.rows.names[g] for g in form.references],
        groups=[setting.rows.names[g] for g in form.groups],
        left_out=list(form.left_out),
        groups_left_out=dict(form.left_out),
        capacity=setting.capacity,
        cutoff=setting.cutoff if any(rule.capacity for rule in first.rules) else "fixed",
        combine=form.combine,
        margin_scale=setting.question.margin_scale,
        scale="ratio" if setting.logs else "difference",
        accuracy_loss=form.loss,
        delta_accuracy=_plain(setting.margins.accuracy),
        delta_fairness=_plain(setting.margins.fairness),
        fairness_tolerance=_plain(setting.margins.tolerance),
        splits=[_split_record(form, k, split) for k, split in enumerate(splits, start=1)],
        p_values=[float(p) for p in p_splits],
        p_median=float(np.median(p_splits)),
        p_combined={rule: float(combine_splits(p_splits, rule)) for rule in RULES},
        binding=binding.most_common(1)[0][0],
        limit=limit,
        deltas={name: curve.largest for name, curve in curves.items()},
        delta_curves={
            name: Curve(delta=curve.delta.tolist(), p_value=curve.p_value.tolist())
            for name, curve in curves.items()
        },
        shares=_shares(form, splits),
        ties=_ties(splits),
        reduction_at_least=_reduction(form, splits),
        power=_for_planning(form, splits),
        fitted=fitted or None,
        **form.extra,
    )


def _plain(value: Any) -> Any:
    return [float(v) for v in value] if isinstance(value, Sequence) else value


def _shares(form: Form, splits: Sequence[JudgedTrial]) -> dict[str, Any]:
    """Shares of people that both rules select, over all rows judged and by group compared."""
    setting = form.setting
    if setting.capacity is None and of_score(setting.metrics):
        return {}
    overall, by_group = [], []
    for split in splits:
        trial = split.trial
        weight, count = setting.weight(trial.part), setting.count(trial.part)
        mass = np.ones(len(trial.part)) if weight is None else weight
        mass = mass if count is None else mass * count
        overall.append([rule.share(weight, count) for rule in trial.rules])
        size = setting.rows.by_group(mass, trial.part)
        by_group.append(
            [
                setting.rows.by_group(mass * rule.chance, trial.part)
                / np.where(size > 0, size, 1.0)
                for rule in trial.rules
            ]
        )
    both, groups = np.mean(overall, axis=0), np.mean(by_group, axis=0)
    return {
        "status_quo": float(both[0]),
        "candidate": float(both[1]),
        "by_group": {
            setting.rows.names[g]: [float(groups[0, g]), float(groups[1, g])] for g in form.groups
        },
    }


def _ties(splits: Sequence[JudgedTrial]) -> dict[str, dict[str, float]]:
    """Who shares the score at the cut-off, where some of them are selected by lot."""
    found = {}
    rules = splits[0].trial.rules
    for name, rule in zip(("status_quo", "candidate"), rules, strict=True):
        if rule.cutoff is not None and rule.at_cutoff is not None:
            found[name] = {
                "cutoff": rule.cutoff,
                "chance": rule.at_cutoff,
                "tied": float(rule.tied),
            }
    return found


def _reduction(form: Form, splits: Sequence[JudgedTrial]) -> float | None:
    """Return the lower bound of the reduction of the first gap, as an amount.

    One-sided at the level of the test; over splits, the median of bounds at half of it.
    """
    question = form.setting.question_among(form.groups)
    if question.method == "paper":
        return None
    level = form.level / (2.0 if len(splits) > 1 else 1.0)
    lows = []
    for split in splits:
        estimates, known = split.evidence.estimates, split.evidence.directions
        between = question.gaps(estimates.n_groups)
        seen = _seen(estimates, between, known)
        tries = 1 if known[0] is not None else len(between[0].pairs)
        gaps = [
            asked
            for asked in requirements(
                estimates, directions=seen, question=question, margins=Margins()
            )
            if asked.gap is not None
        ]
        bounds = [line.at(estimates, 0.0) for line in gaps[0].lines]
        lows.append(min(e + special.ndtri(level / tries) * se for e, se in bounds))
    return float(np.median(lows))


def _for_planning(form: Form, splits: Sequence[JudgedTrial]) -> dict[str, Any] | None:
    """Return the requirements of the first split and their covariance for one test row."""
    question, first = form.setting.question_among(form.groups), splits[0]
    if question.method == "paper":
        return None
    estimates = first.evidence.estimates
    lines = candidate_lines(
        estimates,
        directions=[_seen(estimates, question.gaps(estimates.n_groups), first.evidence.directions)],
        question=question,
        margins=form.setting.margins_among(form.groups),
    )
    varies = np.flatnonzero(lines.se > 0)
    used = lines.of(varies)
    scale = used.se * np.sqrt(first.trial.n_test)
    return {
        "n_test": first.trial.n_test,
        "effects": used.estimate.tolist(),
        "covariance": (used.correlation * np.outer(scale, scale)).tolist(),
    }


def _seen(
    estimates: UtilityEstimates, gaps: Sequence[Gap], known: Sequence[Direction | None]
) -> list[Direction]:
    """Return the direction of every gap: as known, or as seen on the rows at hand."""
    return [
        gap.direction(estimates.value[gap.criterion, 0]) if way is None else way
        for gap, way in zip(gaps, known, strict=True)
    ]


def _split_record(form: Form, number: int, split: JudgedTrial) -> dict[str, Any]:
    trial, estimates = split.trial, split.evidence.estimates
    first = [[estimates.position(0, t, g) for g in (0, 1)] for t in (0, 1)]
    draws = estimates.draws
    groups = range(len(form.groups))
    return {
        "split": number,
        "n_train": trial.n_train,
        "n_validation": trial.n_validation,
        "n_test": trial.n_test,
        "chosen": trial.name,
        "p_value": split.test.p_value,
        "criteria": [
            {
                "criterion": criterion.words,
                "kind": criterion.kind,
                "a1": test.candidate,
                "a0": test.status_quo,
                "p_value": test.p_value,
            }
            for criterion, test in zip(form.criteria, split.tests, strict=True)
        ],
        "accuracy": estimates.value[0, :, groups].T.tolist(),
        "accuracy_covariance": [
            estimates.covariance[np.ix_(rows, rows)].tolist() for rows in first
        ],
        "rows_counted": estimates.support[0, :, groups].T.tolist(),
        "discordant": trial.discordant(form.setting),
        "resampling": "none" if draws is None else draws.law,
        "candidate": described(trial.algorithm, form.setting.rows.feature_names),
    }


def _curves(form: Form, splits: Sequence[JudgedTrial]) -> dict[str, DeltaCurve]:
    """Largest improvement of each kind; accuracy only where a gain can be expressed."""
    question = form.setting.question_among(form.groups)
    evidence = [split.evidence for split in splits]
    names = [c.group for c in form.criteria if c.kind == "accuracy"]
    first = len(form.groups) if question.population else 0
    numbers = list(range(first, first + len(names)))
    positive = all((split.estimates.value[0, 0, numbers] > 0).all() for split in evidence)

    def curve(*, fairness: bool = False, groups: Sequence[int] = ()) -> DeltaCurve:
        return delta_curve(
            evidence,
            question=question,
            alpha=form.level,
            combine=form.combine,
            fairness=fairness,
            groups=groups,
            margins=form.setting.margins_among(form.groups),
        )

    found = {"fairness": curve(fairness=True)}
    if positive or question.margin_scale == "absolute":
        found["joint accuracy"] = curve(groups=numbers)
        for name, g in zip(names, numbers, strict=True):
            if len(names) > 1:
                found[f"accuracy {name}"] = curve(groups=[g])
    return found


def judged(setting: Setting, trial: Trial, groups: Sequence[int], test: Any) -> JudgedTrial:
    """Put a trial and its test together."""
    estimates = trial.estimates.among(groups).on_log_scale(setting.logs)
    return JudgedTrial(
        trial=trial,
        evidence=SplitEvidence(
            estimates=estimates, directions=directions_of(setting, trial, groups)
        ),
        test=test,
    )


LIMITS = {
    "data": Note(
        code="limit-data",
        message="The candidate does better on most test parts in every respect, but not by enough"
        " for the number of people: more data may settle it.",
    ),
    "search": Note(
        code="limit-search",
        message="On most test parts the candidate itself is no improvement in every respect:"
        " another candidate or search may find one that is.",
    ),
    "margin": Note(
        code="limit-margin",
        message="The candidate is about as accurate as the status quo: no amount of data shows a"
        " strict gain. State a loss that you would tolerate (`accuracy_loss`).",
    ),
}


def remarks(form: Form, splits: Sequence[JudgedTrial], limit: str | None) -> list[Note]:
    """Return what the reader should know of the design, the candidate and the limits."""
    notes = [*_on_the_design(form, splits), *_on_the_candidate(form, splits)]
    notes += _on_the_shares(form, splits)
    return [*notes, LIMITS[limit]] if limit in LIMITS else notes


def _on_the_design(form: Form, splits: Sequence[JudgedTrial]) -> list[Note]:
    notes = []
    question = form.setting.question
    if form.ready:
        which = ", ".join(repr(name) for name in form.ready)
        one = len(form.ready) == 1
        notes.append(
            Note(
                code="ready-candidate",
                message=f"Column{'' if one else 's'} {which} {'was' if one else 'were'} judged on"
                " all rows, without a split: the p-value holds only if these rows played no part"
                f" in building {'it' if one else 'them'}.",
            )
        )
        if not form.direction_known and question.method == "signed":
            notes.append(
                Note(
                    code="direction-unknown",
                    message="Which group the status quo favours was not known beforehand, so every"
                    " direction is tested and the p-value of the gap multiplied accordingly; pass"
                    " `higher_group` if it is known from elsewhere.",
                )
            )
    if form.left_out:
        who = ", ".join(form.left_out)
        notes.append(
            Note(
                code="groups-left-out",
                message=f"Compared are {len(form.groups)} of {len(form.setting.rows.names)} groups;"
                f" a metric rests on too few rows of: {who}. They still count where everybody"
                " does.",
            )
        )
    if form.setting.unlabelled is not None:
        notes.append(_on_unlabelled(form, form.setting.unlabelled))
    if form.combine == "exch_median" and len(splits) > 1:
        p = combine_splits(np.array([split.test.p_value for split in splits]), "median")
        notes.append(
            Note(
                code="order-of-splits",
                message="The exchangeable rule depends on the order of the splits; twice the median"
                f" gives p = {float(p):.4f}.",
            )
        )
    if question.method == "paper":
        notes.append(
            Note(
                code="squared-gap",
                message="The squared gap statistic has little power near an even candidate and"
                " rejects too often for large required reductions.",
            )
        )
    laws = {s.evidence.estimates.draws.law for s in splits if s.evidence.estimates.draws}
    if "gaussian" in laws:
        notes.append(
            Note(
                code="gaussian-bootstrap",
                message="Too many distinct rows for exact bootstrap counts; resampled sums were"
                " drawn from the normal law with their mean and covariance.",
            )
        )
    return notes


def _on_unlabelled(form: Form, stated: Unlabelled) -> Note:
    """Say under which condition on the unknown outcomes something is shown."""
    text = (
        f"What is called shown holds {stated.claim()}; estimates are the least favourable ones,"
        " values of both rules those of people with an outcome."
    )
    if stated.kind == "odds":
        text += " Where nobody similar has an outcome, that is extrapolation."
    largest = (form.extra.get("breakdown") or {}).get("largest")
    if largest is not None and stated.kind == "odds":
        text += f" It is shown up to a factor of {largest:.3g}."
    elif largest is not None and largest < 1.0:
        text += (
            f" It is shown for limits up to {largest:.0%} of the way from the mean of the known"
            " outcomes of a group to the stated ones."
        )
    return Note(code="unlabelled", message=text)


def _on_the_candidate(form: Form, splits: Sequence[JudgedTrial]) -> list[Note]:
    notes = []
    fewest = min(int(split.evidence.estimates.support.min()) for split in splits)
    if fewest < FEW_ROWS:
        notes.append(
            Note(
                code="few-selected",
                message=f"A utility rests on only {fewest} rows of a group; below {FEW_ROWS} the"
                " test can be off by a few points.",
            )
        )
    same = sum(split.trial.same for split in splits)
    fewest = min(split.trial.discordant(form.setting) for split in splits)
    if same:
        notes.append(
            Note(
                code="same-decisions",
                message=f"In {same} of {len(splits)} test parts the candidate decides as the status"
                " quo does for everyone.",
            )
        )
    elif fewest < FEW_DISCORDANT:
        notes.append(
            Note(
                code="few-discordant",
                message=f"The two rules treat only {fewest} rows of a test part differently; below"
                f" {FEW_DISCORDANT} the test can be off by a point or two.",
            )
        )
    if _even_status_quo(form, splits):
        notes.append(
            Note(
                code="even-status-quo",
                message="The gap of the status quo is itself not distinguishable from zero, so a"
                " reduction can hardly be shown.",
            )
        )
    reports = [s.trial.algorithm.report for s in splits if s.trial.algorithm is not None]
    infeasible = [found for found in reports if found.get("status") == "infeasible"]
    if infeasible:
        least = min(float(found["least_violation"]) for found in infeasible)
        notes.append(
            Note(
                code="infeasible-search",
                message=f"In {len(infeasible)} of {len(splits)} splits no rule of the class meets"
                f" the requirements on the training rows; the closest misses them by {least:.4f}"
                " and was judged.",
            )
        )
    if any(found.get("group_proxy") for found in reports):
        notes.append(
            Note(
                code="group-proxy",
                message="The candidate's score contains a prediction of the group from the"
                " features: the group is used to build it, not to decide, but the prediction"
                " stands in for it. `ReweightedEstimator` keeps the group out of the score.",
            )
        )
    return notes


def _on_the_shares(form: Form, splits: Sequence[JudgedTrial]) -> list[Note]:
    """Say whom the rules select: how many, by lot, or brought to the capacity."""
    notes: list[Note] = []
    shares = _shares(form, splits)
    if not shares:
        return notes
    now, then = shares["status_quo"], shares["candidate"]
    if abs(then - now) > OTHER_SHARE * max(now, then):
        notes.append(
            Note(
                code="different-share",
                message=f"The candidate selects {then:.1%} of people, the status quo {now:.1%}; a"
                " mean over fewer selected people rises by itself, and gaps shrink. Compare at the"
                " same `capacity`.",
            )
        )
    rules = splits[0].trial.rules
    for name, rule in zip(("status quo", "candidate"), rules, strict=True):
        if rule.cutoff is not None and rule.tied > 1 and (rule.at_cutoff or 0.0) < 1.0:
            notes.append(
                Note(
                    code="ties",
                    message=f"{rule.tied:,} people share the score of the {name} at the cut-off;"
                    f" {rule.at_cutoff:.1%} of them are selected, counted as a chance, not as"
                    " persons.",
                )
            )
        if rule.capacity is not None and rule.cutoff is None:
            kind = "dropped" if rule.chance.min() == 0.0 else "added"
            notes.append(
                Note(
                    code="capacity-matched",
                    message=f"The decisions of the {name} did not select the capacity exactly;"
                    f" people were {kind} by lot to meet it, counted as a chance, not as persons.",
                )
            )
    return notes


def _even_status_quo(form: Form, splits: Sequence[JudgedTrial]) -> bool:
    """Whether the median z of the status quo's gap is below the one-sided critical value."""
    zs = []
    for split in splits:
        estimates = split.evidence.estimates
        question = form.setting.question_among(form.groups)
        for gap_asked in question.gaps(estimates.n_groups):
            c = gap_asked.criterion
            if c in question.indices or gap_asked.held:
                continue
            high, low = gap_asked.direction(estimates.value[c, 0])
            contrast = np.zeros(estimates.value.size)
            contrast[estimates.position(c, 0, high)] = 1.0
            contrast[estimates.position(c, 0, low)] = -1.0
            variance = float(contrast @ estimates.covariance @ contrast)
            gap = float(contrast @ estimates.value.ravel())
            zs.append(gap / np.sqrt(variance) if variance > 0 else 0.0)
    return bool(zs) and bool(np.median(zs) < -special.ndtri(form.setting.alpha))
