"""Remarks on an improvability audit."""

from collections.abc import Sequence

import numpy as np
from scipy import special

from equipoise._typing import SplitRule
from equipoise.audits.improvement.form import Form, SplitResult
from equipoise.results.finding import Note
from equipoise.stats.improvement.frontier import combine_splits

__all__ = ["remarks"]

FEW_ROWS = 30
FEWER = 0.9


def remarks(form: Form, splits: Sequence[SplitResult], limit: str | None) -> list[Note]:
    """Return what the reader should know of the design, the candidate and the limits."""
    notes = _notes_on_the_design(form, splits) + _notes_on_the_candidate(form, splits)
    if limit == "data":
        notes.append(
            Note(
                code="limit-data",
                message="The candidate does better on most test parts in every respect, but not by"
                " enough for the number of people: more data may settle it.",
            )
        )
    elif limit == "search":
        notes.append(
            Note(
                code="limit-search",
                message="On most test parts the candidate itself is no improvement in every"
                " respect: another candidate or search may find one that is.",
            )
        )
    return notes


def _notes_on_the_design(form: Form, splits: Sequence[SplitResult]) -> list[Note]:
    notes = []
    if form.ready:
        notes.append(
            Note(
                code="ready-candidate",
                message=f"Column {form.ready!r} was judged on all rows, without a split: the"
                " p-value holds only if these rows played no part in building it.",
            )
        )
        if not form.direction_known and form.question.method == "signed":
            notes.append(
                Note(
                    code="direction-unknown",
                    message="Which group the status quo favours was not known beforehand, so every"
                    " direction is tested and the p-value of the gap multiplied accordingly; pass"
                    " `higher_group` if it is known from elsewhere.",
                )
            )
    if form.combine == "exch_median" and len(splits) > 1:
        notes.append(
            Note(
                code="order-of-splits",
                message="The exchangeable rule depends on the order of the splits; twice the median"
                f" gives p = {_combined(splits, 'median'):.4f}.",
            )
        )
    if form.question.method == "paper":
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


def _combined(splits: Sequence[SplitResult], rule: SplitRule) -> float:
    return float(combine_splits(np.array([split.test.p_value for split in splits]), rule))


def _notes_on_the_candidate(form: Form, splits: Sequence[SplitResult]) -> list[Note]:
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
    same = sum(split.same for split in splits)
    if same:
        notes.append(
            Note(
                code="same-decisions",
                message=f"In {same} of {len(splits)} test parts the candidate decides as the status"
                " quo does for everyone.",
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
    shares = np.array([split.selected for split in splits]).mean(axis=(0, 2))
    if shares[1] < FEWER * shares[0]:
        notes.append(
            Note(
                code="fewer-selected",
                message=f"The candidate selects {shares[1]:.1%} of people, the status quo"
                f" {shares[0]:.1%}; a mean over fewer selected people rises by itself. Compare"
                " at the same `capacity`.",
            )
        )
    reports = [split.algorithm.report for split in splits if split.algorithm is not None]
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
    return notes


def _even_status_quo(form: Form, splits: Sequence[SplitResult]) -> bool:
    """Whether the median z of the status quo's gap is below the one-sided critical value."""
    zs = []
    for split in splits:
        estimates = split.evidence.estimates
        for c in form.question.fairness:
            values = estimates.value[c, 0, : estimates.n_groups]
            contrast = np.zeros(estimates.value.size)
            contrast[estimates.position(c, 0, int(np.argmax(values)))] = 1.0
            contrast[estimates.position(c, 0, int(np.argmin(values)))] = -1.0
            variance = float(contrast @ estimates.covariance @ contrast)
            gap = float(contrast @ estimates.value.ravel())
            zs.append(gap / np.sqrt(variance) if variance > 0 else 0.0)
    return bool(np.median(zs) < -special.ndtri(form.alpha))
