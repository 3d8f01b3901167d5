"""Test whether there is a less discriminatory alternative to the status quo."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from equipoise._checks import (
    check_fraction,
    check_integer,
    check_number,
    check_option,
    check_rng,
    quoted,
)
from equipoise._typing import (
    AccuracyOf,
    AttributeRule,
    CapacityMatch,
    Choice,
    CutoffLaw,
    FloatArray,
    GapRule,
    ImprovementMethod,
    Inference,
    IntArray,
    MarginScale,
    Preference,
    Rng,
    Scale,
    SmallGroups,
    SplitRule,
)
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.improvement import report
from equipoise.audits.improvement.candidates import (
    PREDICTION,
    fit_and_predict,
    judged_there,
    selection_rule,
)
from equipoise.audits.improvement.gaps import (
    check_groups,
    gaps_between,
    group_called,
    held_note,
    known_higher,
    margins_of_gaps,
    named_criteria,
    pooled_gaps,
    references_of,
)
from equipoise.audits.improvement.many import (
    FEWEST_CLUSTERS,
    compared_groups,
    shown_frontier,
    testable,
    together,
    tried,
)
from equipoise.audits.improvement.rows import (
    INDEX,
    SCORE_UTILITIES,
    DecisionRows,
    read_decisions,
    utility_name,
)
from equipoise.audits.improvement.trial import (
    FittedElsewhere,
    Setting,
    Trial,
    judge_ready,
    judge_splits,
    possible_directions,
    tested,
)
from equipoise.audits.improvement.unlabelled import limit_columns, stated_limits, widest
from equipoise.data.metrics import Metric
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.results.finding import Note
from equipoise.results.result import AuditResult
from equipoise.search.sample import SelectionRule
from equipoise.stats.improvement.frontier import combine_splits
from equipoise.stats.improvement.test import (
    MIN_SUPPORT,
    ImprovementQuestion,
    Margins,
)

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["Search", "concluded", "improvability", "search_for"]

_Options = ParamSpec("_Options")
SHARED = 10
"""People who share a value of a feature, on average, where that it tells the group is no chance."""

WORSE_WHEN_LARGER = {
    "fpr": "tnr",
    "fnr": "tpr",
    "error_rate": "accuracy",
    "fdr": "ppv",
    "for": "npv",
}


def search_for(
    self: "Audit",
    candidate: object = None,
    *,
    accuracy: str | Metric,
    fairness: str | Metric | Sequence[str | Metric] | None = None,
    candidates: Sequence[object] | Mapping[str, object] | None = None,
    accuracy_loss: float | Mapping[str, float] = 0.0,
    delta_accuracy: float | Mapping[str, float] = 0.0,
    delta_fairness: float | Mapping[str, float] = 0.0,
    fairness_tolerance: float | Mapping[str, float] = 0.0,
    margin_scale: MarginScale = "relative",
    scale: Scale = "difference",
    air_floor: float | None = None,
    gap: GapRule = "worst",
    reference: str | Mapping[str, str] | None = None,
    attributes: AttributeRule = "crossed",
    capacity: float | None = None,
    capacity_match: CapacityMatch = "near",
    cutoff: CutoffLaw = "estimated",
    choose: Choice | None = None,
    prefer: Preference = "safe",
    frontier: bool | Sequence[float] = False,
    draws_iid: bool = False,
    n_splits: int = 5,
    train_fraction: float = 2 / 3,
    validation_fraction: float = 0.25,
    n_resamples: int = 10_000,
    method: ImprovementMethod = "signed",
    combine: SplitRule = "median",
    accuracy_of: AccuracyOf = "group",
    inference: Inference = "bootstrap",
    higher_group: str | Mapping[str, str] | None = None,
    min_group_size: int = 30,
    small_groups: SmallGroups = "leave_out",
    unlabelled: str | Sequence[float] | Sequence[str] | Mapping[str, float] | None = None,
    allow_group_feature: bool = False,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking["Search"]:
    """Say whether there is a less discriminatory alternative to the status quo.

    The null hypothesis is that the candidate does not keep accuracy as asked, or does not reduce
    the gap between groups. The status quo is `y_pred`, or the top share of `y_score` when a
    `capacity` is given. The candidate is found on one part of the rows and judged on the other,
    several times.

    Parameters
    ----------
    candidate : estimator, search object, callable or str
        A scikit-learn estimator (cut at the capacity, if there is one), an object of
        `equipoise.search`, a function from a `TrainingSample` to an algorithm, the name of a
        column with a ready score or decision (no split is made, and the result says so), or the
        import path of a known estimator such as ``"sklearn.linear_model.LassoCV"``. Also a list or
        a dict of them, as `candidates`.
    accuracy : str or Metric
        What must not get worse, larger is better: ``"accuracy"``, ``"selected_outcome"``, ...; of
        scores, which need no capacity, ``"auc"``, ``"brier"`` (negated) or ``"ks"``.
    fairness : str, Metric or list of them, optional
        Metrics whose gap between groups must shrink; by default `accuracy`. ``"smd"`` is the
        standardised mean difference of the score; ``"entropy_index"`` is no gap but itself to
        shrink: the inequality of benefits b = decision - outcome + 1, of order 2.
    candidates : list or dict, optional
        Several candidates instead of one, by name if a dict.
    accuracy_loss : float or dict, default 0
        Loss of accuracy that is tolerated, for everyone or by group: the status quo's accuracy
        times 1 - loss must be kept.
    delta_accuracy, delta_fairness : float or dict, default 0
        How large an improvement must be: accuracy times 1 + delta (by group, if a dict), gap times
        1 - delta (by fairness metric, attribute or group, if a dict). Attributes or groups that
        such a dict does not name need not improve; their gaps may grow by 0.01 at most.
    fairness_tolerance : float or dict, default 0
        Amount by which a gap may exceed what is required; a dict as for `delta_fairness`.
    margin_scale : {"relative", "absolute"}
        Whether margins of accuracy are shares of the status quo's accuracy or amounts.
    scale : {"difference", "ratio"}
        Whether gaps are differences of rates or ratios of them (adverse impact).
    air_floor : float, optional
        With scale="ratio": also require every ratio of the candidate to be above this, say 0.8.
    gap : {"worst", "each"}
        Whether the largest gap between groups must shrink, or that of each group to the
        `reference`.
    reference : str or dict, optional
        Group that the others are compared with; by attribute, if a dict. By default the largest
        gap is that between any two groups.
    attributes : {"crossed", "separately"}
        With several group columns: whether groups are their combinations, or the groups of each
        column, each column a requirement of its own.
    capacity : float, optional
        Share of people that may be selected; both rules are held to it.
    capacity_match : {"near", "randomise"}
        Decisions whose share is near the capacity are brought to it by lot; with "randomise" any.
    cutoff : {"estimated", "fixed"}
        Whether the uncertainty of the score's cut-off at the capacity counts.
    choose : {"validation", "all"}, optional
        Several candidates: put them in order on other rows and test in that order (the default for
        what is fitted), or test all together (the default for ready columns).
    prefer : {"safe", "certain"}
        Order on validation rows: the largest reduction of the gap among the promising, or what is
        most certain first.
    frontier : bool or list of float
        Also return the reduction that is shown at every tolerated loss.
    draws_iid : bool
        Whether the candidates are independent draws of one generator, fixed before looking; then
        the result says what further draws could find.
    n_splits, train_fraction : int, float
        How often the rows are split, and the share that the candidate is built on.
    validation_fraction : float
        Share of those that only choose among several candidates.
    n_resamples : int
        Bootstrap samples for each split.
    method : {"signed", "paper"}
        Signed gap statistic, or the squared one of the paper, which has less power.
    combine : {"median", "exch_median", "bonferroni"}
        How p-values of the splits make one: twice their median, or another valid rule.
    accuracy_of : {"group", "population"}
        Whether accuracy must be kept in every group or overall.
    inference : {"bootstrap", "analytic"}
        Studentised bootstrap, or the normal law at once.
    higher_group : str or dict, optional
        With two groups, the one known beforehand to have the higher fairness metric; else it is
        read off the training rows. By attribute, if a dict; with gap="each", the reference.
    min_group_size : int, default 30
        Groups in which a metric rests on fewer rows are small. If fewer than two others remain,
        those of at least ten rows are compared after all, with a note.
    small_groups : {"leave_out", "pool", "refuse"}
        What is done with them.
    unlabelled : "worst", pair of numbers, pair of str or dict, optional
        Where outcomes of some people are not known: what they may be. "worst" is anything; a pair
        are limits, or columns that hold limits; ``{"odds": 2}`` says that their odds differ by at
        most that factor from those of similar people with an outcome. What is shown then holds for
        all such outcomes, and `details["breakdown"]` says how far they may lie.
    allow_group_feature : bool
        Whether the group column itself may be a feature.
    alpha : float, default 0.05
        Level of the test.
    confidence_level : float, default 0.95
        Level of the intervals.
    rng : int or numpy Generator, optional
        For splits and bootstrap.

    Returns
    -------
    AuditResult
        Findings are the requirements; `joint` is the claim that all are met. `details` has, for
        each split, the value of candidate (`a1`) and status quo (`a0`) and the p-value of every
        requirement; `deltas`, the largest improvements that are shown; which requirement binds;
        `shares` that both rules select; with several, the table of `candidates`; if nothing is
        shown, what the likely limit is; and, in memory only, the `fitted` candidates of the splits,
        whose `decide` takes new rows.

    Examples
    --------
    Past cost decides who is called sick, and one group costs less when equally sick. Would a
    model of the visits be right more often, and more evenly?

    >>> import equipoise as eq, numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(7)
    >>> race = rng.choice(["a", "b"], size=3000)
    >>> sickness = rng.gamma(2.0, 2.0, size=3000)
    >>> data = {"race": race, "sick": (sickness > 4).astype(int),
    ...         "visits": rng.poisson(3 * sickness),
    ...         "called": (sickness * np.where(race == "b", 0.4, 0.7) > 4).astype(int)}
    >>> audit = eq.Audit(data, group="race", y_true="sick", y_pred="called", features="visits")
    >>> result = audit.improvability(LogisticRegression(), accuracy="accuracy", n_resamples=999)
    >>> str(result.joint.decision), bool(result.details["deltas"]["fairness"] > 0.5)
    ('detected', True)

    Yes: accuracy rises in both groups, and the gap shrinks by more than half.
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    check_fraction("train_fraction", train_fraction)
    check_fraction("validation_fraction", validation_fraction)
    check_option("accuracy_of", accuracy_of, AccuracyOf)
    check_option("combine", combine, SplitRule)
    check_option("scale", scale, Scale)
    check_option("cutoff", cutoff, CutoffLaw)
    check_option("capacity_match", capacity_match, CapacityMatch)
    check_option("prefer", prefer, Preference)
    check_option("small_groups", small_groups, SmallGroups)
    check_option("gap", gap, GapRule)
    check_option("attributes", attributes, AttributeRule)
    least = check_integer("min_group_size", min_group_size, low=MIN_SUPPORT)
    if capacity is not None:
        check_fraction("capacity", capacity)
    splits = check_integer("n_splits", n_splits, low=1)
    metrics, numbers = _criteria(accuracy, fairness, scale)
    if unlabelled is not None:
        _check_bounded(metrics, method)
        inference = "analytic"
    question = ImprovementQuestion(
        fairness=numbers,
        population=accuracy_of == "population",
        margin_scale=margin_scale,
        method=method,
        inference=inference,
        indices=tuple(c for c in numbers if utility_name(metrics[c]) == INDEX),
    )
    table = self.table
    separately = attributes == "separately" and len(table.roles.group) > 1
    plain = not separately and gap == "worst" and reference is None
    named = _named_candidates(candidate, candidates)
    _check_paper(question, plain=plain, difference=scale == "difference", several=len(named) > 1)
    ready = tuple(str(c) for c in named.values() if isinstance(c, str) and c in table.schema)
    if ready and len(ready) < len(named):
        raise InvalidParameterError(
            "ready columns and candidates that are fitted cannot be tried together; got the columns"
            f" {quoted(ready)}. Ask for them apart, at half the level each."
        )
    if choose is not None:
        _check_choice(choose, ready)
    rules = (
        {}
        if ready
        else {name: selection_rule(given, capacity=capacity) for name, given in named.items()}
    )
    rows = yield from read_decisions(
        table,
        metrics,
        ready=ready,
        features=not ready,
        capacity=capacity,
        unlabelled=unlabelled is not None,
        limits=limit_columns(unlabelled),
        separately=separately,
    )
    check_groups(rows)
    notes = () if ready else _group_features(rows, table.roles.group, allow=allow_group_feature)

    def setting_of(rows: DecisionRows) -> Setting:
        between = gaps_between(
            rows,
            numbers,
            indices=question.indices,
            gap=gap,
            references=references_of(rows, reference, gap),
        )
        asked = margins_of_gaps(
            rows, [utility_name(m) for m in metrics], between, delta_fairness, fairness_tolerance
        )
        return Setting(
            rows=rows,
            metrics=metrics,
            logs=numbers if scale == "ratio" else (),
            question=question if plain else replace(question, between=asked.gaps),
            margins=Margins(
                accuracy=_accuracy_margin(rows.names, accuracy_loss, delta_accuracy, question),
                fairness=asked.reductions,
                tolerance=asked.tolerances,
                floor=_floor(air_floor, scale),
            ),
            capacity=capacity,
            capacity_match=capacity_match,
            cutoff=cutoff,
            n_resamples=check_integer("n_resamples", n_resamples, low=99),
            higher=known_higher(rows, between, higher_group),
            alpha=alpha,
            prefer=prefer,
            unlabelled=stated_limits(unlabelled, rows, fitted=not ready),
        )

    setting = setting_of(rows)
    setting.check_status_quo()
    fitted = None
    there = unlabelled is None and judged_there(rules, metrics)
    if rows.others is not None and there:
        (rule,) = rules.values()
        others, found = yield from fit_and_predict(setting, rows.others, rule)
        setting = setting_of(others)
        fitted = found.among(rows.names, others.names)
        ready = (PREDICTION,)
    return Search(
        fitted=fitted,
        setting=setting,
        rules=rules,
        ready=ready,
        names=tuple(named),
        n_splits=splits,
        train_fraction=train_fraction,
        validation_fraction=validation_fraction,
        combine=combine,
        confidence_level=confidence_level,
        loss=accuracy_loss if isinstance(accuracy_loss, (int, float)) and accuracy_loss else None,
        frontier=_losses(frontier),
        draws_iid=bool(draws_iid),
        min_group_size=least,
        small_groups=small_groups,
        gap=gap,
        references=references_of(setting.rows, reference, gap),
        direction_known=higher_group is not None or not ready or fitted is not None,
        notes=notes,
        rng=check_rng(rng),
        seed=0 if rng is None else rng if isinstance(rng, int) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Candidates to be tried, and how."""

    setting: Setting
    rules: Mapping[str, SelectionRule]
    ready: tuple[str, ...]
    names: tuple[str, ...]
    n_splits: int
    train_fraction: float
    validation_fraction: float
    combine: SplitRule
    confidence_level: float
    loss: float | None
    frontier: bool | Sequence[float]
    draws_iid: bool
    min_group_size: int
    small_groups: SmallGroups
    direction_known: bool
    notes: tuple[Note, ...]
    rng: np.random.Generator
    seed: int | None
    fitted: FittedElsewhere | None = None
    gap: GapRule = "worst"
    references: tuple[int, ...] = ()

    def answer(self) -> AuditResult:
        """Judge, decide which groups are compared, test and report."""
        rows, rng = self.setting.rows, self.rng
        everyone = tuple(range(len(rows.names)))
        if rows.selective is not None:
            note = Note(code="selective-labels", message=_sentence(rows.selective))
            return report.not_tested(self.form(everyone), note)
        again = copy.deepcopy(rng)
        if len(self.ready) > 1:
            return self._together(rng)
        if self.ready:
            trials = [judge_ready(self.setting, rng, self.names[0], self.fitted)]
        else:
            trials = self._splits(rng, None)
        found = compared_groups(self.setting, trials, self.min_group_size)
        if found.small and self.small_groups != "leave_out":
            return self.regrouped(found.small, again)
        if len(found.groups) < 2:
            note = Note(code="too-few-selected", message=found.reason)
            return report.not_tested(self.form(everyone, found.small), note)
        if len(found.groups) < len(everyone) and any(trial.order for trial in trials):
            trials = self._splits(again, found.groups)
        splits = [
            report.judged(
                self.setting, trial, found.groups, tested(self.setting, trial, found.groups)
            )
            for trial in trials
        ]
        extra = tried(self.setting, splits, found.groups, self.combine)
        extra |= self._frontier(splits, found.groups, rng)
        extra |= self._breakdown(trials, found.groups)
        p = float(combine_splits(np.array([split.test.p_value for split in splits]), self.combine))
        names = [(trial.name,) for trial in trials]
        extra |= _open_bounds(self.setting, trials, names, found.groups, p, rng)
        return report.result(self.form(found.groups, found.small, extra), splits)

    def _splits(self, rng: np.random.Generator, groups: Sequence[int] | None) -> list[Trial]:
        return judge_splits(
            self.setting,
            self.rules,
            n_splits=self.n_splits,
            train_fraction=self.train_fraction,
            validation_fraction=self.validation_fraction,
            groups=groups,
            rng=rng,
        )

    def regrouped(self, small: Mapping[str, int], rng: np.random.Generator) -> AuditResult:
        """Refuse small groups, or make them one."""
        rows = self.setting.rows
        if self.small_groups == "refuse":
            name, size = min(small.items(), key=lambda item: item[1])
            raise GroupTooSmallError(
                f"a metric rests on {size} rows of {name!r}; at least {self.min_group_size} are"
                ' needed. Merge groups, or pass small_groups="leave_out" or "pool".'
            )
        others, made_of = rows.pooled([rows.names.index(name) for name in small], "other")
        pooled = replace(
            self,
            setting=pooled_gaps(self.setting, others, made_of),
            references=tuple(k for k, old in enumerate(made_of) if set(old) & set(self.references)),
            small_groups="leave_out",
            rng=rng,
            notes=(
                *self.notes,
                Note(
                    code="groups-pooled",
                    message=f"Groups with few rows are compared as one, 'other': {quoted(small)}.",
                ),
            ),
        )
        return pooled.answer()

    def form(
        self,
        groups: tuple[int, ...],
        small: Mapping[str, int] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> report.Form:
        """Return what the report needs to know."""
        return report.Form(
            setting=self.setting,
            criteria=named_criteria(self.setting, groups),
            groups=groups,
            combine=self.combine,
            confidence_level=self.confidence_level,
            ready=self.ready if self.fitted is None else (),
            direction_known=self.direction_known,
            loss=self.loss,
            names=self.names,
            left_out=small or {},
            extra=extra or {},
            notes=(*self.notes, *held_note(self.setting, groups)),
            gap=self.gap,
            references=self.references,
        )

    def _together(self, rng: np.random.Generator) -> AuditResult:
        """Test ready columns all at once."""
        setting = replace(
            self.setting, question=replace(self.setting.question, inference="analytic")
        )
        asked = replace(self, setting=setting)
        rows = setting.rows
        if rows.unit is not None and len(np.unique(rows.unit)) < FEWEST_CLUSTERS:
            raise GroupTooSmallError(
                f"testing several candidates together needs {FEWEST_CLUSTERS} clusters; the table"
                f" has {len(np.unique(rows.unit))}. Ask for one candidate at a time."
            )
        everyone = np.arange(len(rows.y))
        rules = [
            setting.status_quo(everyone),
            *(
                setting.decided(column, everyone, name)
                for name, column in zip(self.names, rows.ready.T, strict=True)
            ),
        ]
        estimates = setting.worst_case(
            setting.estimates(everyone, rules), everyone, rules, everyone
        )
        whole = Trial(
            name="",
            estimates=estimates,
            training=None,
            algorithm=None,
            n_train=0,
            n_test=len(everyone),
            rules=(rules[0], rules[1]),
            part=everyone,
            fit=everyone[:0],
        )
        # A candidate that selects few is not tested; it does not remove a group from all others.
        alone = replace(whole, estimates=estimates.of_rules([0]))
        found = compared_groups(setting, [alone], self.min_group_size)
        if found.small and self.small_groups != "leave_out":
            return asked.regrouped(found.small, rng)
        if len(found.groups) >= 2 and not testable(whole, found.groups).any():
            found = compared_groups(setting, [whole], self.min_group_size)
        if len(found.groups) < 2:
            note = Note(code="too-few-selected", message=found.reason)
            return report.not_tested(asked.form(tuple(range(len(rows.names))), found.small), note)
        table = together(setting, whole, self.names, found.groups, self.draws_iid, rng)
        k = table.winner
        trial = replace(
            whole,
            name=self.names[k],
            estimates=estimates.of_rules([0, k + 1]),
            rules=(rules[0], rules[k + 1]),
            n_test=setting.size(everyone),
        )
        split = report.judged(setting, trial, found.groups, tested(setting, trial, found.groups))
        extra = dict(table.details)
        able = np.flatnonzero(testable(whole, found.groups))
        kept = replace(whole, estimates=estimates.of_rules([0, *(able + 1)]))
        judged = [self.names[j] for j in able]
        if self.frontier is not False:
            extra["frontier"] = shown_frontier(
                setting, [kept], [judged], found.groups, self.frontier, rng
            )
        # Which candidate is told follows from these rows: the bounds hold for all of them.
        extra |= _open_bounds(setting, [kept], [judged], found.groups, table.p_value, rng)
        form = asked.form(found.groups, found.small, extra)
        return report.result(form, [split], p_value=table.p_value)

    def _frontier(
        self,
        splits: Sequence[report.JudgedTrial],
        groups: Sequence[int],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        if self.frontier is False:
            return {}
        wholes, names = [], []
        for split in splits:
            trial = split.trial
            several = {trial.name: trial.rules[1]}
            if trial.order:
                several = {
                    name: self.setting.by_algorithm(algorithm, trial.part, name, trial.fit)
                    for name, algorithm in trial.fitted.items()
                }
            rules = [trial.rules[0], *several.values()]
            estimates = self.setting.worst_case(
                self.setting.estimates(trial.part, rules), trial.part, rules, trial.fit
            )
            wholes.append(replace(trial, estimates=estimates))
            names.append(tuple(several))
        return {"frontier": shown_frontier(self.setting, wholes, names, groups, self.frontier, rng)}

    def _breakdown(self, trials: Sequence[Trial], groups: Sequence[int]) -> dict[str, Any]:
        """Say how far outcomes that are not known may lie before nothing is shown."""
        setting = self.setting
        if setting.unlabelled is None:
            return {}

        def shown(spread: float) -> bool:
            p = [
                tested(
                    setting,
                    replace(
                        trial,
                        estimates=setting.worst_case(
                            trial.estimates, trial.part, trial.rules, trial.fit, spread
                        ),
                    ),
                    groups,
                ).p_value
                for trial in trials
            ]
            return float(combine_splits(np.array(p), self.combine)) <= setting.alpha

        return {"breakdown": widest(setting.unlabelled, shown)}


def _open_bounds(
    setting: Setting,
    trials: Sequence[Trial],
    names: Sequence[Sequence[str]],
    groups: Sequence[int],
    p: float,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return joint bounds of reduction and loss, where no candidate is shown to do.

    There are none where the gaps may point in too many ways to be tried together.
    """
    if p <= setting.alpha or setting.question.method == "paper":
        return {}
    directions = [possible_directions(setting, trial, groups) for trial in trials]
    if any(possible.too_many for possible in directions):
        return {}
    steps = shown_frontier(
        setting, trials, names, groups, losses=True, rng=rng, directions=directions
    )
    return {"open_bounds": steps[0]} if steps else {}


def concluded(
    ask: Callable[_Options, Asking[Search]],
    conclude: Callable[[Search], AuditResult],
    name: str,
    doc: str | None,
) -> Callable[_Options, AuditResult]:
    """Make one search several questions: what is asked is the same, what is told differs."""

    @wraps(ask)
    def question(*args: _Options.args, **options: _Options.kwargs) -> Asking[AuditResult]:
        return conclude((yield from ask(*args, **options)))

    question.__name__ = question.__qualname__ = name
    question.__doc__ = doc
    return question_method(question)


improvability = concluded(search_for, Search.answer, "improvability", search_for.__doc__)


def _check_paper(
    question: ImprovementQuestion, *, plain: bool, difference: bool, several: bool
) -> None:
    if question.method != "paper":
        return
    if several or not difference:
        raise InvalidParameterError(
            'method="paper" judges one candidate by differences; use "signed" with several'
            ' candidates or scale="ratio".'
        )
    if question.indices:
        raise InvalidParameterError('method="paper" compares groups; use "signed" with an index.')
    if not plain:
        raise InvalidParameterError(
            'method="paper" compares two groups; use "signed" with a `reference`, gap="each" or'
            ' attributes="separately".'
        )


def _check_bounded(metrics: Sequence[str | Metric], method: ImprovementMethod) -> None:
    own = [isinstance(m, Metric) or m in (*SCORE_UTILITIES, INDEX) for m in metrics]
    if any(own) or method == "paper":
        raise InvalidParameterError(
            "`unlabelled` is for named metrics of decisions and the signed statistic; of a metric"
            " of your own or of a score it is not known how it depends on the outcomes."
        )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _criteria(
    accuracy: str | Metric,
    fairness: str | Metric | Sequence[str | Metric] | None,
    scale: Scale,
) -> tuple[tuple[str | Metric, ...], tuple[int, ...]]:
    """Distinct metrics, accuracy first, and the number of each fairness metric.

    On the scale of ratios a gap is a difference of logarithms: a criterion of its own.
    """
    if utility_name(accuracy) in ("smd", INDEX):
        raise InvalidParameterError(
            f"{utility_name(accuracy)!r} measures disparity; pass it as `fairness`, and as"
            " `accuracy` what the rule is for."
        )
    better = WORSE_WHEN_LARGER.get(utility_name(accuracy))
    if better is not None:
        raise InvalidParameterError(
            f"`accuracy` must be larger when better; {utility_name(accuracy)!r} is larger when"
            f" worse. Use {better!r}; as `fairness` either will do."
        )
    if fairness is None:
        wanted: list[str | Metric] = [accuracy]
    elif isinstance(fairness, (str, Metric)):
        wanted = [fairness]
    else:
        wanted = list(fairness) if isinstance(fairness, Sequence) else []
    if not wanted:
        raise InvalidParameterError(
            f"`fairness` must be a metric or a list of metrics; got {fairness!r}."
        )
    metrics: list[str | Metric] = [accuracy]
    known = [utility_name(accuracy) if scale == "difference" else ""]
    numbers = []
    for metric in wanted:
        if utility_name(metric) not in known:
            metrics.append(metric)
            known.append(utility_name(metric))
        numbers.append(known.index(utility_name(metric)))
    return tuple(metrics), tuple(dict.fromkeys(numbers))


def _named_candidates(
    candidate: object, candidates: Sequence[object] | Mapping[str, object] | None
) -> dict[str, object]:
    """Return all candidates by name."""
    if candidates is None and isinstance(candidate, (list, tuple, Mapping)):
        candidate, candidates = None, candidate
    if (candidate is None) == (candidates is None):
        raise InvalidParameterError(
            "pass a `candidate`, or several as `candidates`; got "
            + ("neither." if candidate is None else "both.")
        )
    if isinstance(candidates, Mapping):
        found = {str(name): given for name, given in candidates.items()}
    else:
        several = [candidate] if candidates is None else candidates
        if isinstance(several, str) or not isinstance(several, Sequence):
            raise InvalidParameterError(
                f"`candidates` must be a list or a dict by name; got {candidates!r}."
            )
        found = {}
        for given in several:
            name = given if isinstance(given, str) else type(given).__name__
            if callable(given) and hasattr(given, "__name__"):
                name = given.__name__
            kind, number = name, 1
            while name in found:
                number += 1
                name = f"{kind} {number}"
            found[name] = given
    if not found:
        raise InvalidParameterError("`candidates` is empty; give at least one.")
    return found


def _losses(frontier: object) -> bool | list[float]:
    """Return the losses at which the frontier is wanted, or whether it is."""
    if isinstance(frontier, bool):
        return frontier
    if not isinstance(frontier, Sequence) or isinstance(frontier, str) or not frontier:
        raise InvalidParameterError(
            f"`frontier` must be true, false or a list of losses; got {frontier!r}."
        )
    return sorted(check_number("frontier", loss, low=0.0) for loss in frontier)


def _check_choice(choose: Choice, ready: tuple[str, ...]) -> None:
    check_option("choose", choose, Choice)
    if choose == "validation" and ready:
        raise InvalidParameterError(
            'choose="validation" splits the rows to choose among candidates that are fitted; a'
            ' ready column is judged on all of them. Pass choose="all", or nothing.'
        )
    if choose == "all" and not ready:
        raise InvalidParameterError(
            'choose="all" is for ready columns; candidates that are fitted are put in order on'
            ' validation rows, which shows more. Pass choose="validation", or nothing.'
        )


def _accuracy_margin(
    names: tuple[str, ...],
    loss: float | Mapping[str, float],
    delta: float | Mapping[str, float],
    question: ImprovementQuestion,
) -> float | list[float]:
    """Return the gain that accuracy must show; a tolerated loss is a negative one."""
    if loss and delta:
        raise InvalidParameterError(
            "`accuracy_loss` tolerates and `delta_accuracy` demands; pass one of them."
        )
    given, sign, name = (loss, -1.0, "accuracy_loss") if loss else (delta, 1.0, "delta_accuracy")
    if isinstance(given, Mapping):
        if question.population:
            raise InvalidParameterError(
                f"`{name}` by group needs the accuracy of groups; pass a number, or"
                ' accuracy_of="group".'
            )
        found = dict.fromkeys(names, 0.0)
        for group, value in given.items():
            found[group_called(str(group), names)] = sign * check_number(name, value)
        return list(found.values())
    if name == "accuracy_loss":
        check_number(name, given, low=0.0)
    return sign * check_number(name, given)


def _floor(floor: float | None, scale: Scale) -> float | None:
    if floor is None:
        return None
    if scale != "ratio":
        raise InvalidParameterError('`air_floor` is a ratio; pass scale="ratio" with it.')
    return check_fraction("air_floor", floor)


def _group_features(rows: DecisionRows, group: Sequence[str], *, allow: bool) -> tuple[Note, ...]:
    """Refuse features that are the group itself, by name or recoded."""
    whole = np.arange(len(rows.labels[0]))
    levels = [np.unique(labels, return_inverse=True)[1] for labels in rows.labels]
    attributes = [level[rows.group] for level in (whole, *levels)]
    same = [
        name
        for name, values in zip(rows.feature_names, rows.X.T, strict=True)
        if name in group or any(_tells(values, attribute) for attribute in attributes)
    ]
    if not same:
        return ()
    if not allow:
        raise InvalidParameterError(
            f"the feature {same[0]!r} is the group itself, or tells it; a rule that uses it treats"
            " people differently by group. Leave it out, or pass allow_group_feature=True, and the"
            " result says so."
        )
    return (
        Note(
            code="group-feature",
            message=f"The candidate uses the attribute itself: {quoted(same)}.",
        ),
    )


def _tells(values: FloatArray, attribute: IntArray) -> bool:
    """Whether a feature is an attribute recoded, a part of it, or finer than it.

    It is constant in every group, as an indicator of one group is; or thresholds of it part the
    groups, as with a copy to which noise was added; or everybody who shares a value shares the
    group, and values are shared by ten people on average.
    """
    known, level = np.unique(values, return_inverse=True)
    size, groups = int(attribute.max()) + 1, len(np.unique(attribute))
    if min(len(known), groups) < 2:
        return False
    order = np.lexsort((attribute, values))
    turns = np.flatnonzero(np.diff(attribute[order]))
    # A turn between people of one value is no threshold: a trait that only one group has.
    apart = values[order[turns]] < values[order[turns + 1]]
    if len(turns) + 1 == groups and apart.all() and len(values) > SHARED * groups:
        return True
    if len(known) > len(values) / SHARED:
        return False
    pairs = len(np.unique(level * size + attribute))
    return pairs in (len(known), groups)
