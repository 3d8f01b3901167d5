"""Judge candidates beside the status quo on rows they were not built on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np

from equipoise._typing import (
    BoolArray,
    CapacityMatch,
    CutoffLaw,
    FloatArray,
    IntArray,
    Preference,
)
from equipoise.audits.improvement.rows import (
    INDEX,
    SCORE_UTILITIES,
    DecisionRows,
    capacity_needed,
    of_score,
    utility_name,
)
from equipoise.audits.improvement.unlabelled import Unlabelled, outcome_utility
from equipoise.audits.progress import progress_bar
from equipoise.data.metrics import Metric
from equipoise.exceptions import InvalidParameterError, NotBinaryError
from equipoise.search.sample import Algorithm, SelectionRule, TrainingSample, Utility, utility_parts
from equipoise.stats.improvement.candidates import (
    candidate_lines,
    order_candidates,
)
from equipoise.stats.improvement.capacity import Decisions, cut_top_share, match_share
from equipoise.stats.improvement.rules import (
    BENEFIT_ORDER,
    RowUtilities,
    ScoredUtilities,
    ScoreRows,
    ScoreUtility,
    best_threshold,
    estimate_rules,
    of_benefits,
    scored_utilities,
)
from equipoise.stats.improvement.test import (
    MIN_SUPPORT,
    Direction,
    ImprovementQuestion,
    ImprovementTest,
    Margins,
    compare_utilities,
)
from equipoise.stats.improvement.unknown_outcomes import UnknownOutcomes, WorstCaseEstimates
from equipoise.stats.improvement.utilities import UtilityEstimates, estimate_utilities

__all__ = [
    "FittedElsewhere",
    "PossibleDirections",
    "Setting",
    "Trial",
    "directions_of",
    "judge_ready",
    "judge_splits",
    "possible_directions",
    "tested",
]

Candidates = Mapping[str, SelectionRule]
MAX_LINES = 30_000
"""Comparisons of several candidates that are made together where directions are not known."""
MAX_LINES_UNLABELLED = 3000
"""The same where every comparison has outcomes of its own at which it is smallest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What stays the same in every split.

    Parameters
    ----------
    rows : DecisionRows
        All rows.
    metrics : tuple of str or Metric
        One for each criterion, accuracy first.
    logs : tuple of int
        Criteria whose logarithms are compared.
    question : ImprovementQuestion
        What counts as an improvement.
    margins : Margins
        By how much, in the order of the groups and criteria.
    capacity : float, optional
        Share of people that may be selected.
    capacity_match : {"near", "randomise"}
        What is done with given decisions that select another share.
    cutoff : {"estimated", "fixed"}
        Whether the uncertainty of a cut-off counts.
    n_resamples : int
        Bootstrap samples.
    higher : tuple of int
        Groups that are known beforehand to have the higher fairness metric of two.
    alpha : float
        Level.
    prefer : {"safe", "certain"}
        Which of several candidates is tested first.
    unlabelled : Unlabelled, optional
        Limits of outcomes that are not known.
    """

    rows: DecisionRows
    metrics: tuple[str | Metric, ...]
    logs: tuple[int, ...]
    question: ImprovementQuestion
    margins: Margins
    capacity: float | None
    capacity_match: CapacityMatch
    cutoff: CutoffLaw
    n_resamples: int
    higher: tuple[int, ...]
    alpha: float
    prefer: Preference
    unlabelled: Unlabelled | None = None

    def question_among(self, groups: Sequence[int]) -> ImprovementQuestion:
        """Return what is asked of some groups, in that order."""
        found = [gap.among(groups) for gap in self.question.between]
        return replace(self.question, between=tuple(gap for gap in found if gap is not None))

    def margins_among(self, groups: Sequence[int]) -> Margins:
        """Return the margins of some groups, and of the gaps that remain between them."""
        margins = self.margins
        accuracy, between = margins.accuracy, self.question.between
        if not (isinstance(accuracy, (int, float)) or self.question.population):
            accuracy = [accuracy[g] for g in groups]

        def of_gaps(values: float | Sequence[float]) -> float | Sequence[float]:
            if isinstance(values, (int, float)) or not between:
                return values
            pairs = zip(values, between, strict=True)
            return [value for value, gap in pairs if gap.among(groups) is not None]

        return replace(
            margins,
            accuracy=accuracy,
            fairness=of_gaps(margins.fairness),
            tolerance=of_gaps(margins.tolerance),
        )

    def weight(self, part: IntArray) -> FloatArray | None:
        """Weights of some rows."""
        return None if self.rows.weight is None else self.rows.weight[part]

    def count(self, part: IntArray) -> IntArray | None:
        """How many rows each of some rows stands for."""
        return None if self.rows.count is None else self.rows.count[part]

    def size(self, part: IntArray) -> int:
        """Return how many people some rows are."""
        count = self.count(part)
        return len(part) if count is None else int(count.sum())

    def status_quo(self, part: IntArray, fit: IntArray | None = None) -> Decisions:
        """Decisions in use about some rows; `fit` are others, where a threshold is fixed."""
        score = None if self.rows.score is None else self.rows.score[part]
        threshold = None
        if self.rows.status_quo is None and self.rows.score is not None and fit is not None:
            threshold = self._threshold(self.rows.score[fit], fit)
        if self.rows.status_quo is not None:
            given = self.rows.status_quo[part]
            if self.capacity is not None and not _binary(given):
                raise InvalidParameterError(
                    "a `capacity` is a share of people who are selected; the status quo's decisions"
                    " are not 0 and 1. Leave the capacity out."
                )
            found = Decisions(chance=given, score=score)
            if self.capacity is None or self.capacity_match == "near":
                return found
            matched = match_share(
                given, self.capacity, weight=self.weight(part), count=self.count(part)
            )
            return replace(matched, score=score)
        if score is not None and self.capacity is None and of_score(self.metrics):
            return Decisions(chance=score, score=score, threshold=threshold)
        if score is None or self.capacity is None:
            raise capacity_needed()
        return replace(self._cut(score, part), threshold=threshold)

    def _threshold(self, score: FloatArray, fit: IntArray) -> float | None:
        """Return where a score is cut for the true minus the false positive rate."""
        if "ks" not in map(utility_name, self.metrics):
            return None
        known = self.rows.labelled[fit]
        weight = self.weight(fit)
        return best_threshold(
            score[known], self.rows.y[fit][known], None if weight is None else weight[known]
        )

    def decided(self, values: FloatArray, part: IntArray, name: str) -> Decisions:
        """Return what a candidate decides: a score is cut, decisions are held to the capacity."""
        if self.capacity is None:
            if of_score(self.metrics):
                return Decisions(chance=values, score=None if _binary(values) else values)
            if not _binary(values) and any(isinstance(m, str) for m in self.metrics):
                raise NotBinaryError(
                    f"metric {utility_name(self.metrics[0])!r} needs decisions of 0 and 1; got"
                    " other values. Give a `capacity`, or a candidate that classifies."
                )
            return Decisions(chance=values)
        if not _binary(values):
            return self._cut(values, part)
        self._check_share(values, part, repr(name))
        weight, count = self.weight(part), self.count(part)
        return match_share(values, self.capacity, weight=weight, count=count)

    def check_status_quo(self) -> None:
        """Refuse decisions in use that select another share than the capacity."""
        given = self.rows.status_quo
        if given is not None and self.capacity is not None and _binary(given):
            self._check_share(given, np.arange(len(given)), "the status quo")

    def _check_share(self, values: FloatArray, part: IntArray, name: str) -> None:
        capacity, count = float(self.capacity or 0.0), self.count(part)
        share = Decisions(chance=values).share(self.weight(part), count)
        n = len(part) if count is None else float(count.sum())
        near = 3.0 * np.sqrt(capacity * (1.0 - capacity) / n) + 1.0 / n
        if abs(share - capacity) > near and self.capacity_match == "near":
            raise InvalidParameterError(
                f"{name} selects {share:.1%}, the capacity is {capacity:.1%}: with another"
                " share, precision and gaps change by themselves. Give a score, decisions at the"
                ' capacity, or capacity_match="randomise".'
            )

    def _cut(self, score: FloatArray, part: IntArray) -> Decisions:
        return cut_top_share(
            score, float(self.capacity or 0.0), weight=self.weight(part), count=self.count(part)
        )

    def by_algorithm(
        self, algorithm: Algorithm, part: IntArray, name: str, fit: IntArray | None = None
    ) -> Decisions:
        """Return what a fitted candidate decides about some rows."""
        X = self.rows.X[part]
        score_of, cutoff = getattr(algorithm, "score", None), getattr(algorithm, "cutoff", None)
        score = None if score_of is None else np.asarray(score_of(X), dtype=np.float64)
        if self.capacity is not None and score is not None and cutoff is None:
            found = self._cut(score, part)
        elif score is not None and of_score(self.metrics):
            found = Decisions(chance=score, score=score)
        else:
            decided = np.asarray(algorithm.decide(X, weight=self.weight(part)), dtype=np.float64)
            found = replace(self.decided(decided, part, name), score=score)
        if score_of is None or fit is None:
            return found
        return replace(found, threshold=self._threshold(score_of(self.rows.X[fit]), fit))

    def utilities(self, part: IntArray) -> tuple[list[Utility], list[int | tuple[int, int]]]:
        """Return what is linear in decisions about some rows, and where each criterion is found.

        An entropy index is made of two means; utilities of scores follow all others.
        """
        linear: list[Utility] = []
        places: list[int | tuple[int, int]] = []
        scored = [m for m in self.metrics if utility_name(m) in SCORE_UTILITIES]
        for metric in self.metrics:
            name = utility_name(metric)
            if name == INDEX:
                places.append((len(linear), len(linear) + 1))
                linear += [
                    _benefits(self.rows.y[part], BENEFIT_ORDER),
                    _benefits(self.rows.y[part]),
                ]
            elif name in SCORE_UTILITIES:
                places.append(-1)
            else:
                places.append(len(linear))
                linear.append(self.rows.utility(metric, part))
        after = iter(range(len(linear), len(linear) + len(scored)))
        return linear, [next(after) if place == -1 else place for place in places]

    def wanted(self) -> BoolArray:
        """Whether the utility of a criterion in a group is used: of shape (C, H)."""
        groups = len(self.rows.names)
        used = np.zeros((len(self.metrics), groups + self.question.population), dtype=np.bool_)
        used[list(self.question.fairness), :groups] = True
        used[0, groups if self.question.population else slice(None)] = True
        return used

    def estimates(
        self, part: IntArray, rules: Sequence[Decisions], rng: np.random.Generator | None = None
    ) -> UtilityEstimates:
        """Estimate all utilities on some rows; with `rng`, with bootstrap draws."""
        rows, question = self.rows, self.question
        draws = self.n_resamples if rng is not None and question.inference == "bootstrap" else 0
        group, unit = self._groups(part)
        part, rules = self._repeated(part), [rule.repeated(len(rows.levels)) for rule in rules]
        linear, places = self.utilities(part)
        plain = places == list(range(len(linear)))
        options: dict[str, Any] = {
            "n_groups": len(rows.names),
            "population": question.population or bool(question.indices),
            "weight": self.weight(part),
            "cluster": unit,
            "count": self.count(part),
            "n_resamples": draws,
            "rng": rng,
        }
        given = len(rules) == 2 and all(_given(rule) for rule in rules)
        if plain and given and not rows.separate:
            pairs = [[utility(rule.chance) for rule in rules] for utility in linear]
            u, w = (
                np.stack([[pair[k] for pair in both] for both in pairs]).transpose(2, 0, 1)
                for k in (0, 1)
            )
            return estimate_utilities(u, w, group, undefined=True, **options)
        used = [rule.fixed() if self.cutoff == "fixed" else rule for rule in rules]
        columns = [utility_parts(utility, len(part)) for utility in linear]
        u0, du, w0, dw = np.array(columns).reshape(-1, 4, len(part)).transpose(1, 2, 0)
        parts = RowUtilities(
            numerator=u0, denominator=w0, numerator_change=du, denominator_change=dw
        )
        found = estimate_rules(
            parts,
            used,
            group,
            wanted=self.wanted() if plain else None,
            scored=self._scored(part, group, rules, options),
            **options,
        )
        return found if plain else of_benefits(found, places, population=question.population)

    def _repeated(self, part: IntArray) -> IntArray:
        """Repeat rows once for every attribute that is judged separately."""
        return np.tile(part, len(self.rows.levels))

    def _groups(self, part: IntArray) -> tuple[IntArray, IntArray | None]:
        """Return the groups of rows repeated for every attribute, and which rows are one unit.

        A row that is repeated with each of its groups is a cluster: the covariance of groups that
        overlap follows, and whatever is a mean over everybody stays what it was.
        """
        rows = self.rows
        group = np.concatenate([level[part] for level in rows.levels])
        unit = None if rows.unit is None else rows.unit[part]
        if not rows.separate:
            return group, unit
        return group, np.tile(part if unit is None else unit, len(rows.levels))

    def _scored(
        self,
        part: IntArray,
        group: IntArray,
        rules: Sequence[Decisions],
        options: Mapping[str, Any],
    ) -> ScoredUtilities | None:
        """Estimate the utilities of scores."""
        names = [utility_name(metric) for metric in self.metrics]
        kinds = [cast("ScoreUtility", name) for name in names if name in SCORE_UTILITIES]
        if not kinds:
            return None
        one = np.ones(len(part))
        weight, count = options["weight"], options["count"]
        return scored_utilities(
            kinds,
            [
                ScoreRows(
                    y=self.rows.y[part],
                    score=np.stack([_judged_score(kind, rule) for rule in rules], axis=1),
                    group=group,
                    n_groups=options["n_groups"],
                    population=options["population"],
                    weight=one if weight is None else weight,
                    count=one if count is None else count.astype(np.float64),
                )
                for kind in kinds
            ],
        )

    def worst_case(
        self,
        estimates: UtilityEstimates,
        part: IntArray,
        rules: Sequence[Decisions],
        fit: IntArray,
        spread: float | None = None,
    ) -> UtilityEstimates:
        """Return estimates whose contrasts hold for all outcomes that are not known."""
        if self.unlabelled is None:
            return estimates
        low, high = self.unlabelled.limits(
            self.rows, part, fit, self.unlabelled.asked if spread is None else spread
        )
        group, unit = self._groups(part)
        times, part = len(self.rows.levels), self._repeated(part)
        weight, count = self.weight(part), self.count(part)
        one = np.ones(len(part))
        return WorstCaseEstimates.of(
            estimates,
            UnknownOutcomes(
                low=np.tile(low, times),
                high=np.tile(high, times),
                chance=np.tile(np.stack([rule.chance for rule in rules], axis=1), (times, 1)),
                group=group,
                weight=one if weight is None else weight,
                count=one if count is None else count.astype(np.float64),
                unit=unit,
                utilities=tuple(outcome_utility(str(metric)) for metric in self.metrics),
            ),
        )

    def training_sample(self, part: IntArray) -> TrainingSample:
        """Return what a search is given: rows whose outcome is known."""
        rows = self.rows
        known = rows.labelled[part]
        fit = part[known]
        shrinking = self.question.gaps(len(rows.names))
        utilities = [rows.utility(_searched(metric), fit) for metric in self.metrics]
        return TrainingSample(
            X=rows.X[fit],
            y=rows.y[fit],
            group=rows.group[fit],
            status_quo=self.status_quo(part).chance[known],
            accuracy=utilities[0],
            fairness=tuple(utilities[c] for c in self.question.fairness),
            feature_names=rows.feature_names,
            weight=self.weight(fit),
            names=rows.cells or rows.names,
            capacity=self.capacity,
            attributes=tuple(
                attribute.level[fit] - attribute.groups[0]
                for attribute in rows.separate
                if any(not gap.held and gap.groups[0] in attribute.groups for gap in shrinking)
            ),
            metrics=tuple(utility_name(self.metrics[c]) for c in (0, *self.question.fairness)),
        )

    def training_values(self, part: IntArray) -> FloatArray:
        """Return the status quo's utilities on some rows, (F, G); not a number without support."""
        if any(utility_name(self.metrics[c]) in SCORE_UTILITIES for c in self.question.fairness):
            now = self.status_quo(part, part)
            found = self.estimates(part, (now, now)).among(range(len(self.rows.names)))
            chosen = list(self.question.fairness)
            supported = found.support[chosen, 0, : found.n_groups] > 0
            return np.where(supported, found.value[chosen, 0, : found.n_groups], np.nan)
        decisions = self.status_quo(part).chance
        weight = self.weight(part)
        mass = np.ones(len(part)) if weight is None else weight
        values = []
        for c in self.question.fairness:
            u, w = self.rows.utility(_searched(self.metrics[c]), part)(decisions)
            top, bottom = (self.rows.by_group(q * mass, part) for q in (u, w))
            values.append(np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.nan))
        return np.stack(values)


def _searched(metric: str | Metric) -> str | Metric:
    """Return the metric of decisions that a search aims at in place of one of scores."""
    name = utility_name(metric)
    if name not in (*SCORE_UTILITIES, INDEX):
        return metric
    return "selection_rate" if name == "smd" else "accuracy"


def _benefits(y: FloatArray, order: float = 1.0) -> Utility:
    """Return the mean of a power of benefits b = D - y + 1, of rows with an outcome."""
    known = ~np.isnan(y)
    outcome = np.where(known, y, 0.0)

    def quantities(d: FloatArray) -> tuple[FloatArray, FloatArray]:
        power = d * (2.0 - outcome) ** order + (1.0 - d) * (1.0 - outcome) ** order
        return power * known, known.astype(np.float64)

    return quantities


def _judged_score(kind: str, rule: Decisions) -> FloatArray:
    """Return what a score utility judges: the score, or decisions at a fixed threshold."""
    if kind == "ks":
        if rule.score is not None and rule.threshold is not None:
            return (rule.score >= rule.threshold).astype(np.float64)
        if rule.capacity is not None or not _binary(rule.chance):
            raise InvalidParameterError(
                "'ks' needs decisions, or a threshold that is fixed on training rows; the largest"
                " distance on the rows at hand is too large by chance. Pass `y_pred` and decisions,"
                " or a candidate that is fitted."
            )
        return rule.chance
    score = rule.score if rule.score is not None else rule.chance
    if kind == "brier" and ((score < 0.0) | (score > 1.0)).any():
        raise InvalidParameterError(
            f"'brier' needs scores between 0 and 1; got values from {score.min():.4g} to"
            f" {score.max():.4g}."
        )
    return score


def _binary(values: FloatArray) -> bool:
    return bool(np.isin(values, (0.0, 1.0)).all())


def _given(rule: Decisions) -> bool:
    """Whether decisions are given: nothing about them is estimated or left to chance."""
    return rule.capacity is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One candidate on the test rows of one split.

    Parameters
    ----------
    name : str
        Of the candidate.
    estimates : UtilityEstimates
        Of all groups.
    training : array of shape (F, G), optional
        The status quo's fairness utilities on other rows, which tell the direction of each gap.
    algorithm : Algorithm, optional
        What was fitted.
    n_train, n_validation, n_test : int
        Rows.
    rules : tuple of Decisions
        Status quo and candidate.
    part, fit : array of int
        The test rows, and those that the candidate was fitted to.
    order : tuple of str
        Candidates in the order in which they were to be tested.
    others : tuple of Trial
        Those tested after this one.
    fitted : mapping of str to Algorithm
        All candidates of the split.
    """

    name: str
    estimates: UtilityEstimates
    training: FloatArray | None
    algorithm: Algorithm | None
    n_train: int
    n_test: int
    rules: tuple[Decisions, Decisions]
    part: IntArray
    fit: IntArray
    n_validation: int = 0
    order: tuple[str, ...] = ()
    others: tuple["Trial", ...] = ()
    fitted: Mapping[str, Algorithm] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether the candidate decides as the status quo does for everyone."""
        return bool(np.array_equal(self.rules[0].chance, self.rules[1].chance))

    def discordant(self, setting: Setting) -> int:
        """Return how many rows the rules treat differently."""
        return setting.size(self.part[self.rules[0].chance != self.rules[1].chance])


def directions_of(setting: Setting, trial: Trial, groups: Sequence[int]) -> list[Direction | None]:
    """Return the direction of each gap among some groups; None where no other rows tell it."""
    question = setting.question_among(groups)
    higher = [k for k, g in enumerate(groups) if g in setting.higher]
    found: list[Direction | None] = []
    for gap in question.gaps(len(groups)):
        known = [pair for pair in gap.pairs if len(gap.groups) == 2 and pair[0] in higher]
        if known or gap.criterion in question.indices:
            found.append(known[0] if known else (0, 1))
        elif trial.training is None:
            found.append(None)
        else:
            place = question.fairness.index(gap.criterion)
            found.append(gap.direction(trial.training[place, list(groups)]))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleDirections:
    """What the direction of each gap of the status quo may be.

    Parameters
    ----------
    each : list of lists of (int, int)
        Of every gap: one pair of groups where its direction is known.
    n_candidates, n_lines : int
        Candidates, and comparisons that they make in all ways together.
    limit : int
        Comparisons that are made at most where there is more than one way.
    """

    each: list[list[Direction]]
    n_candidates: int
    n_lines: int
    limit: int

    @property
    def n_ways(self) -> int:
        """In how many ways all gaps together may point."""
        return math.prod(map(len, self.each))

    @property
    def too_many(self) -> bool:
        """Whether there are more comparisons than are made together."""
        return self.n_ways > 1 and self.n_lines > self.limit

    def ways(self) -> list[list[Direction]]:
        """Return every way; raise if there are too many."""
        if self.too_many:
            raise InvalidParameterError(
                f"the gaps of the status quo may point in {self.n_ways} ways, and each must be"
                f" tried for each of {self.n_candidates} candidates: {self.n_lines} comparisons,"
                f" at most {self.limit} are made. Compare fewer groups, say which is known to have"
                ' more (`higher_group`; with gap="each", the `reference`), or ask for one'
                " candidate at a time."
            )
        return [list(way) for way in product(*self.each)]


def possible_directions(
    setting: Setting, trial: Trial, groups: Sequence[int]
) -> PossibleDirections:
    """Return what the direction of each gap may be: one pair where other rows tell it."""
    known = directions_of(setting, trial, groups)
    gaps = setting.question_among(groups).gaps(len(groups))
    each = [gap.pairs if way is None else [way] for gap, way in zip(gaps, known, strict=True)]
    several = trial.estimates.value.shape[1] - 1
    lines = len(groups) + sum(len(gap.pairs) for gap in gaps)
    return PossibleDirections(
        each=each,
        n_candidates=several,
        n_lines=math.prod(map(len, each)) * several * lines,
        limit=MAX_LINES if setting.unlabelled is None else MAX_LINES_UNLABELLED,
    )


def tested(setting: Setting, trial: Trial, groups: Sequence[int]) -> ImprovementTest:
    """Test all requirements of a candidate among some groups."""
    margins = setting.margins_among(groups)
    return compare_utilities(
        trial.estimates.among(groups).on_log_scale(setting.logs),
        directions=directions_of(setting, trial, groups),
        question=setting.question_among(groups),
        delta_accuracy=margins.accuracy,
        delta_fairness=margins.fairness,
        tolerance=margins.tolerance,
        floor=margins.floor,
    )


class FittedElsewhere(NamedTuple):
    """A candidate fitted on other rows than those on which it is judged.

    `training` are the utilities of the status quo there, and `n` is how many rows there are.
    """

    algorithm: Algorithm
    training: FloatArray
    n: int

    def among(self, known: Sequence[str], names: Sequence[str]) -> "FittedElsewhere":
        """Return the same with the utilities of other groups; those not known have none."""
        place = {name: k for k, name in enumerate(known)}
        training = np.full((len(self.training), len(names)), np.nan)
        for k, name in enumerate(names):
            if name in place:
                training[:, k] = self.training[:, place[name]]
        return self._replace(training=training)


def judge_ready(
    setting: Setting, rng: np.random.Generator, name: str, fitted: "FittedElsewhere | None" = None
) -> Trial:
    """Judge a ready candidate on all rows, or one that was fitted on others."""
    everyone = np.arange(len(setting.rows.y))
    rules = (
        setting.status_quo(everyone),
        setting.decided(setting.rows.ready[:, 0], everyone, name),
    )
    return Trial(
        name=name,
        estimates=setting.worst_case(
            setting.estimates(everyone, rules, rng), everyone, rules, everyone
        ),
        training=None if fitted is None else fitted.training,
        algorithm=None if fitted is None else fitted.algorithm,
        n_train=0 if fitted is None else fitted.n,
        n_test=setting.size(everyone),
        rules=rules,
        part=everyone,
        fit=everyone[:0],
    )


def judge_splits(
    setting: Setting,
    candidates: Candidates,
    *,
    n_splits: int,
    train_fraction: float,
    validation_fraction: float,
    groups: Sequence[int] | None,
    rng: np.random.Generator,
) -> list[Trial]:
    """Split, fit, choose on validation rows if there is a choice, and judge on the test rows.

    Parameters
    ----------
    setting : Setting
        What is asked.
    candidates : mapping of str to SelectionRule
        By name.
    n_splits : int
        How often.
    train_fraction, validation_fraction : float
        Share of rows to build on, and the share of those that only choose.
    groups : sequence of int, optional
        Groups whose requirements order the candidates; by default all.
    rng : numpy.random.Generator
        For splits and bootstrap.

    Returns
    -------
    list of Trial
        The first candidate of each split, with those tested after it.
    """
    seeds = rng.integers(2**31 - 1, size=n_splits)
    trials = []
    several = len(candidates) > 1 or any(hasattr(rule, "path") for rule in candidates.values())
    with progress_bar("Splits and candidates") as advance:

        def step(done: float) -> None:
            if advance is not None:
                advance(round(1000 * done), 1000 * n_splits)

        for k, generator in enumerate(rng.spawn(n_splits)):
            fit, choose, test = setting.rows.split(
                int(seeds[k]), train_fraction, validation_fraction if several else 0.0
            )
            fitted: dict[str, Algorithm] = {}
            sample = setting.training_sample(fit)
            for number, (name, rule) in enumerate(candidates.items()):
                path = getattr(rule, "path", None)
                fitted |= {name: rule.select(sample)} if path is None else path(sample, name)
                step(k + number / len(candidates))
            trials.append(_in_order(setting, fitted, fit, choose, test, groups, generator))
            step(k + 1)
    return trials


def _in_order(
    setting: Setting,
    fitted: Mapping[str, Algorithm],
    fit: IntArray,
    choose: IntArray,
    test: IntArray,
    groups: Sequence[int] | None,
    rng: np.random.Generator,
) -> Trial:
    """Test candidates in the order of the validation rows, until the first that fails."""
    known = np.concatenate([fit, choose])
    training = setting.training_values(np.sort(known))
    names = list(fitted)
    whole = range(len(setting.rows.names)) if groups is None else groups
    order = names
    if len(names) > 1:
        order = _order(setting, fitted, choose, fit, len(test), training, whole)
    status_quo = setting.status_quo(test, fit)
    trials: list[Trial] = []
    for name in order:
        rules = (status_quo, setting.by_algorithm(fitted[name], test, name, fit))
        trial = Trial(
            name=name,
            estimates=setting.worst_case(setting.estimates(test, rules, rng), test, rules, fit),
            training=training,
            algorithm=fitted[name],
            n_train=len(fit),
            n_test=len(test),
            n_validation=len(choose),
            rules=rules,
            part=test,
            fit=fit,
            order=tuple(order) if len(names) > 1 else (),
        )
        trials.append(trial)
        if len(order) == 1 or trial.estimates.support[:, :, list(whole)].min() < MIN_SUPPORT:
            break
        if tested(setting, trial, whole).p_value > setting.alpha:
            break
    return replace(trials[0], others=tuple(trials[1:]), fitted=fitted)


def _order(
    setting: Setting,
    fitted: Mapping[str, Algorithm],
    choose: IntArray,
    fit: IntArray,
    n_test: int,
    training: FloatArray,
    groups: Sequence[int],
) -> list[str]:
    """Return the names of candidates that can be judged, the most promising first."""
    names = list(fitted)
    status_quo = setting.status_quo(choose, fit)
    rules = {name: setting.by_algorithm(fitted[name], choose, name, fit) for name in names}
    # A candidate that decides as the status quo does cannot be shown to be better.
    names = [n for n in names if not np.array_equal(rules[n].chance, status_quo.chance)] or names
    estimates = setting.estimates(choose, [status_quo, *(rules[name] for name in names)])
    among = estimates.among(groups)
    enough = among.support.min(axis=(0, 2))[1:] >= MIN_SUPPORT
    if among.support[:, 0].min() < MIN_SUPPORT or not enough.any():
        return names
    kept = np.flatnonzero(enough)
    judged = among.of_rules([0, *(kept + 1)])
    trial = Trial(
        name="",
        estimates=judged,
        training=training,
        algorithm=None,
        n_train=0,
        n_test=0,
        rules=(status_quo, status_quo),
        part=choose,
        fit=choose[:0],
    )
    lines = candidate_lines(
        judged.on_log_scale(setting.logs),
        directions=possible_directions(setting, trial, groups).ways(),
        question=setting.question_among(groups),
        margins=setting.margins_among(groups),
    )
    order = order_candidates(lines, ratio=n_test / len(choose), prefer=setting.prefer)
    return [names[kept[k]] for k in order]
