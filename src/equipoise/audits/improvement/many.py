"""Which groups are compared, and what is said of several candidates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise._typing import BoolArray, FloatArray, SplitRule
from equipoise.audits.improvement.report import JudgedTrial
from equipoise.audits.improvement.rows import utility_name
from equipoise.audits.improvement.trial import (
    PossibleDirections,
    Setting,
    Trial,
    possible_directions,
    tested,
)
from equipoise.stats.improvement.candidates import (
    CandidateLines,
    candidate_lines,
    fixed_sequence,
    loss_frontier,
    random_search_bounds,
    step_down,
    winner_gain,
)
from equipoise.stats.improvement.frontier import combine_splits
from equipoise.stats.improvement.test import MIN_SUPPORT, Margins

__all__ = [
    "FEWEST_CLUSTERS",
    "ComparedGroups",
    "Table",
    "compared_groups",
    "shown_frontier",
    "testable",
    "together",
    "tried",
]

FEWEST_CLUSTERS = 30
STATES = {True: "shown", False: "open"}
ORDER_WORDS = {
    "safe": "largest reduction of the gap among candidates whose every requirement has z >= 2.5 on"
    " the validation rows, then by the smallest z",
    "certain": "by the smallest z of all requirements on the validation rows",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedGroups:
    """Groups that are compared, and those on which too little rests.

    Parameters
    ----------
    groups : tuple of int
        Numbers of the groups that are compared.
    small : dict of str to int
        Names of the others, and the rows that a metric rests on.
    reason : str
        Why so few are left, if so.
    """

    groups: tuple[int, ...]
    small: dict[str, int]
    reason: str = ""


def compared_groups(setting: Setting, trials: Sequence[Trial], least: int) -> ComparedGroups:
    """Find the groups on which enough rests, for every metric, rule and part.

    Counts decide, never outcomes of the comparison. If fewer than two groups reach `least`, those
    with ten rows are compared.
    """
    names = setting.rows.names
    size = len(names)
    wanted = setting.wanted()[:, :size]
    support = np.full(size, np.iinfo(np.int64).max)
    where = [""] * size
    for number, trial in enumerate(trials, start=1):
        found = np.where(
            wanted[:, None, :], trial.estimates.support[:, :, :size], np.iinfo(np.int64).max
        )
        part = "the table" if trial.training is None else f"the test part of split {number}"
        for g in range(size):
            c, rule = divmod(int(np.argmin(found[:, :, g])), int(found.shape[1]))
            if found[c, rule, g] < support[g]:
                support[g] = int(found[c, rule, g])
                whose = "status quo" if rule == 0 else "candidate"
                where[g] = f"{utility_name(setting.metrics[c])!r} of the {whose} rests on"
                where[g] += f" {support[g]} {_units(setting)} of {names[g]!r} in {part}"
        if trial.training is not None:
            unknown = np.isnan(trial.training).any(axis=0) & (support > 0)
            for g in map(int, np.flatnonzero(unknown)):
                support[g] = 0
                metric = utility_name(setting.metrics[setting.question.fairness[0]])
                where[g] = (
                    f"{metric!r} of the status quo rests on 0 {_units(setting)} of {names[g]!r} in"
                    f" the training part of split {number}"
                )
    kept: list[int] = []
    testable_blocks = []
    for block in setting.rows.blocks:
        enough = [g for g in block if support[g] >= least]
        if len(enough) < 2:
            enough = [g for g in block if support[g] >= MIN_SUPPORT]
        testable_blocks.append(len(enough) >= 2)
        kept += enough
    small = {names[g]: int(support[g]) for g in range(size) if g not in kept}
    worst = int(np.argmin(support))
    gone = [gap.reference for gap in setting.question.between if gap.reference not in (None, *kept)]
    if gone:
        worst = int(gone[0] or 0)
    elif not all(testable_blocks):
        block = setting.rows.blocks[testable_blocks.index(False)]
        worst = min(block, key=lambda g: int(support[g]))
    reason = (
        f"{where[worst]}; at least {MIN_SUPPORT} are needed. Merge groups, raise the capacity, or"
        " use more data."
    )
    return ComparedGroups(
        groups=() if gone or not all(testable_blocks) else tuple(kept),
        small=small,
        reason=reason[:1].upper() + reason[1:],
    )


def _units(setting: Setting) -> str:
    return "rows" if setting.rows.unit is None else "clusters"


def testable(trial: Trial, groups: Sequence[int]) -> BoolArray:
    """Whether enough rests on every metric of each candidate, among some groups."""
    enough: BoolArray = trial.estimates.among(groups).support.min(axis=(0, 2))[1:] >= MIN_SUPPORT
    return enough


def _gains(lines: CandidateLines) -> tuple[FloatArray, FloatArray]:
    """Return the least gain of accuracy and the least reduction of the gap of each candidate."""
    return (
        lines.least(lines.estimate, accuracy=True),
        lines.least(lines.estimate, accuracy=False),
    )


def _lines(
    setting: Setting,
    trial: Trial,
    groups: Sequence[int],
    directions: PossibleDirections,
    margins: Margins | None = None,
) -> CandidateLines:
    return candidate_lines(
        trial.estimates.among(groups).on_log_scale(setting.logs),
        directions=directions.ways(),
        question=setting.question_among(groups),
        margins=setting.margins_among(groups) if margins is None else margins,
    )


def tried(
    setting: Setting, splits: Sequence[JudgedTrial], groups: Sequence[int], combine: SplitRule
) -> dict[str, Any]:
    """Describe candidates that were put in order on other rows and tested in that order."""
    if not splits[0].trial.order:
        return {}
    names = list(dict.fromkeys(name for split in splits for name in split.trial.fitted))
    shown = dict.fromkeys(names, 0)
    ranks: dict[str, list[int]] = {name: [] for name in names}
    p_values: dict[str, list[float]] = {name: [] for name in names}
    for split in splits:
        trials = (split.trial, *split.trial.others)
        tests = [split.test, *(tested(setting, trial, groups) for trial in split.trial.others)]
        adjusted = fixed_sequence([test.p_value for test in tests])
        for trial, p in zip(trials, adjusted, strict=True):
            p_values[trial.name].append(float(p))
            shown[trial.name] += p <= setting.alpha
        for rank, name in enumerate(split.trial.order, start=1):
            ranks[name].append(rank)
    first = [split.trial.name for split in splits]
    p = float(combine_splits(np.array([split.test.p_value for split in splits]), combine))
    winner = max(dict.fromkeys(first), key=first.count)
    gain = [min(t.estimate for t in s.test.fairness) for s in splits if s.trial.name == winner]
    return {
        "n_candidates": len(names),
        "order_rule": ORDER_WORDS[setting.prefer],
        "candidates": [
            {
                "name": name,
                "rank": float(np.median(ranks[name])) if ranks[name] else None,
                "first_in": first.count(name),
                "tested_in": len(p_values[name]),
                "shown_in": int(shown[name]),
                "p_adjusted": p_values[name][0] if len(splits) == 1 and p_values[name] else None,
                "state": STATES[p <= setting.alpha and shown[name] > len(splits) / 2],
            }
            for name in names
        ],
        "winner": {"name": winner, "gain": float(np.median(gain))},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Ready candidates tested together.

    Parameters
    ----------
    winner : int
        Number of the candidate with the smallest p-value.
    p_value : float
        Its adjusted p-value.
    details : dict
        What is written of all of them.
    """

    winner: int
    p_value: float
    details: dict[str, Any]


def together(
    setting: Setting,
    trial: Trial,
    names: Sequence[str],
    groups: Sequence[int],
    draws_iid: bool,
    rng: np.random.Generator,
) -> Table:
    """Test ready candidates all at once, and say what the list or the search rules out."""
    judged = np.flatnonzero(testable(trial, groups))
    kept = replace(trial, estimates=trial.estimates.of_rules([0, *(judged + 1)]))
    directions = possible_directions(setting, kept, groups)
    lines, ways = _lines(setting, kept, groups, directions), directions.n_ways
    test = step_down(lines, alpha=setting.alpha, rng=rng)
    p = test.p_value.reshape(len(judged), ways).min(axis=1)
    # It fails only if it fails whatever the direction of the gaps.
    fails = test.p_fails.reshape(len(judged), ways).max(axis=1)
    raw = np.minimum(lines.p_values.reshape(len(judged), ways).min(axis=1) * ways, 1.0)
    gains, reductions = (part.reshape(len(judged), ways) for part in _gains(lines))
    best = lines.smallest_z.reshape(len(judged), ways)
    way = np.argmax(best, axis=1)
    order = np.lexsort((-best.max(axis=1), p))
    lower = lines.least(lines.bounds(test.critical), accuracy=False).reshape(len(judged), ways)
    rows: list[dict[str, Any]] = [
        {"name": name, "rank": None, "p": None, "p_adjusted": None, "state": "not tested"}
        for name in names
    ]
    for rank, j in enumerate(order, start=1):
        state = "shown" if p[j] <= setting.alpha else "open"
        if fails[j] <= setting.alpha:
            state = "shown not to"
        rows[judged[j]] = {
            "name": names[judged[j]],
            "rank": rank,
            "accuracy_exceeded_by": float(gains[j, way[j]]),
            "gap_exceeded_by": float(reductions[j, way[j]]),
            "p": float(raw[j]),
            "p_adjusted": float(p[j]),
            "p_fails": float(fails[j]),
            "state": state,
        }
    first = int(order[0])
    at_least = float(lower[first, way[first]])
    details: dict[str, Any] = {
        "n_candidates": len(names),
        "order_rule": "all together, step-down by the joint law of all requirements",
        "candidates": rows,
        "critical": test.critical,
        "winner": {
            "name": names[judged[first]],
            "gain": winner_gain(lines, lower=at_least, ways=ways, rng=rng),
            "gain_unadjusted": float(reductions[first, way[first]]),
            "lower": at_least,
        },
        "sufficiency": _sufficiency(setting, kept, groups, lines, fails, draws_iid, rng),
    }
    return Table(winner=int(judged[first]), p_value=float(p[first]), details=details)


def _sufficiency(
    setting: Setting,
    trial: Trial,
    groups: Sequence[int],
    lines: CandidateLines,
    fails: FloatArray,
    draws_iid: bool,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Say what was ruled out, each statement with its condition."""
    found: dict[str, Any] = {
        "listed": {
            "ruled_out": int((fails <= setting.alpha).sum()),
            "of": len(fails),
            "all": bool((fails <= setting.alpha).all()),
            "condition": "any list; says nothing about alternatives not listed",
        }
    }
    if draws_iid and lines.n_candidates == len(fails):
        first = setting.question_among(groups).gaps(len(groups))[0]
        gap = first.size(trial.estimates.value[first.criterion, 0, list(groups)])
        bounds = random_search_bounds(lines, gap=gap, alpha=setting.alpha, rng=rng)
        found["random_search"] = {
            "n_drawn": bounds.n_drawn,
            "not_ruled_out": bounds.not_ruled_out,
            "success_at_most": bounds.success_at_most,
            "gain": bounds.gain,
            "better_at_most": bounds.better_at_most,
            "further_gain_at_most": bounds.further_gain_at_most,
            "record": bounds.record,
            "condition": "candidates are independent draws of one generator, fixed before looking",
        }
    return found


def shown_frontier(
    setting: Setting,
    trials: Sequence[Trial],
    names: Sequence[Sequence[str]],
    groups: Sequence[int],
    losses: bool | Sequence[float],
    rng: np.random.Generator,
    directions: Sequence[PossibleDirections] | None = None,
) -> list[dict[str, Any]]:
    """Return the reduction of the gap that is shown at every tolerated loss, all at once.

    Over several splits, the median of bounds at half the level. `directions` are those of each
    trial, if they were found before.
    """
    each_way = directions or [possible_directions(setting, trial, groups) for trial in trials]
    level = setting.alpha / (2.0 if len(trials) > 1 else 1.0)
    steps = []
    gaps = setting.question_among(groups).gaps(len(groups))
    asked = setting.margins_among(groups)
    held = any(gap.held for gap in gaps)
    free = replace(asked, accuracy=0.0, fairness=0.0, floor=None) if held else Margins()
    for trial, possible in zip(trials, each_way, strict=True):
        lines = _lines(setting, trial, groups, possible, free)
        steps.append(
            [
                (step.loss, step.reduction, step.candidate // possible.n_ways)
                for step in loss_frontier(lines, alpha=level, rng=rng)
            ]
        )
    known = sorted({loss for found in steps for loss, _, _ in found})
    grid = known if losses is True else [float(loss) for loss in losses]  # type: ignore[union-attr]
    rows: list[dict[str, Any]] = []
    for loss in grid:
        reached = [
            max(((b, k) for a, b, k in found if a <= loss), default=(0.0, -1)) for found in steps
        ]
        order = np.argsort([b for b, _ in reached], kind="stable")
        # The lower median: at least half of the splits show as much.
        middle = int(order[(len(order) - 1) // 2])
        reduction, k = reached[middle]
        if losses is True and reduction <= (rows[-1]["reduction"] if rows else 0.0):
            continue
        rows.append(
            {
                "loss": loss,
                "reduction": reduction,
                "candidate": names[middle][k] if k >= 0 else None,
            }
        )
    return rows
