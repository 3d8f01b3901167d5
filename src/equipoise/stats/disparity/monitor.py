"""Alarms about gaps that may be looked at after every batch.

The evidence of `gap_sequence` is compared with the level within a family: all groups of all metrics
that are watched together. An alarm says that there was a gap; the interval says how large it has
been on average since the start. They answer different questions, and may disagree when a gap came
late or did not last.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_number, check_option, quoted
from equipoise._typing import (
    AlarmRule,
    Alternative,
    AnyArray,
    BoolArray,
    EAdjust,
    FloatArray,
    IntArray,
)
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.disparity.gap_sequence import BatchSums, GapSequence, gap_sequence
from equipoise.stats.sequential import ChangeDate, e_detector, e_holm

__all__ = ["Alarms", "GapMonitor", "monitor_gaps", "raise_alarms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """Alarms of one family: all groups of all metrics that are watched.

    Parameters
    ----------
    e_value, adjusted : array of shape (T, J)
        Evidence after each batch, alone and within the family.
    p_value_raw, p_value : array of shape (J,)
        One over the largest e-value and the largest adjusted e-value so far, at most 1.
    batch : array of shape (J,)
        Batch of the first alarm; -1 without one.
    raised : array of shape (T, J)
        Every alarm; with the rule "ever" only the first of each group.
    joint : array of shape (T,)
        Average e-value of the family: evidence against "no gap anywhere".
    """

    e_value: FloatArray
    adjusted: FloatArray
    p_value_raw: FloatArray
    p_value: FloatArray
    batch: IntArray
    raised: BoolArray
    joint: FloatArray


def raise_alarms(
    sequences: list[GapSequence],
    *,
    alpha: float = 0.05,
    adjust: EAdjust = "e-holm",
    alarm: AlarmRule = "ever",
    run_length: float | None = None,
) -> Alarms:
    r"""Decide where evidence suffices for an alarm.

    Parameters
    ----------
    sequences : list of GapSequence
        Metrics of one family, watched on the same batches.
    alpha : float, default 0.05
        Chance that any false alarm is ever raised.
    adjust : {"e-holm", "e-bh", "none"}
        "e-holm" bounds the chance of any false alarm at all looks together; "e-bh" the false
        discovery rate at the look where one stops, not over all looks.
    alarm : {"ever", "arl"}
        "arl": the Shiryaev-Roberts detector, which begins again after each alarm; at least
        `run_length` batches lie between false alarms of the family on average.
    run_length : float, optional
        For "arl", and only there.

    Returns
    -------
    Alarms
    """
    level = check_fraction("alpha", alpha)
    check_option("adjust", adjust, EAdjust)
    check_option("alarm", alarm, AlarmRule)
    if (alarm == "arl") != (run_length is not None):
        raise InvalidParameterError(
            f"`run_length` belongs to `alarm='arl'`, and only there; got alarm {alarm!r} with "
            f"run_length {run_length!r}."
        )
    log_e = np.concatenate([sequence.log_e for sequence in sequences], axis=1)
    adjusted = _adjusted(log_e, adjust)
    highest, highest_adjusted = (path.max(axis=0, initial=0.0) for path in (log_e, adjusted))
    if run_length is None:
        over = adjusted >= -np.log(level)
        raised = over & (np.cumsum(over, axis=0) == 1)
    else:
        # The average of the family's detectors is one too: each has to reach m times as much.
        target = check_number("run_length", run_length, low=1.0) * log_e.shape[1]
        raised = np.concatenate(
            [
                e_detector(one.log_factor, run_length=target, informative=one.informative)[1]
                for one in sequences
            ],
            axis=1,
        )
    return Alarms(
        e_value=_exp(log_e),
        adjusted=_exp(adjusted),
        p_value_raw=np.exp(-highest),
        p_value=np.exp(-highest_adjusted),
        batch=np.where(raised.any(axis=0), np.argmax(raised, axis=0), -1),
        raised=raised,
        joint=_exp(special.logsumexp(log_e, axis=1) - np.log(log_e.shape[1])),
    )


def _adjusted(log_e: FloatArray, adjust: EAdjust) -> FloatArray:
    if adjust == "none" or log_e.shape[-1] == 1:
        return log_e
    if adjust == "e-holm":
        return e_holm(log_e)
    m = log_e.shape[-1]
    order = np.argsort(-log_e, axis=-1, kind="stable")
    ranked = np.take_along_axis(log_e, order, axis=-1) + np.log(np.arange(1, m + 1) / m)
    best = np.maximum.accumulate(ranked[..., ::-1], axis=-1)[..., ::-1]
    result = np.empty_like(log_e)
    np.put_along_axis(result, order, best, axis=-1)
    return result


def _exp(log_e: FloatArray) -> FloatArray:
    return np.exp(np.minimum(log_e, 700.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class GapMonitor:
    """What is known about each group's gap after the batches so far.

    Parameters
    ----------
    groups : tuple of str
        Groups that are watched.
    batches : tuple of str
        Batches in order.
    sequence : GapSequence
        The evidence.
    alarms : Alarms
        What was raised.
    since : tuple of ChangeDate or None
        Since when, for each group with an alarm.
    alpha : float
        Chance of any false alarm, ever.
    """

    groups: tuple[str, ...]
    batches: tuple[str, ...]
    sequence: GapSequence
    alarms: Alarms
    since: tuple[ChangeDate | None, ...]
    alpha: float

    @property
    def estimate(self) -> FloatArray:
        """Average gap of each group since the start."""
        return np.asarray(self.sequence.gap[-1])

    @property
    def statistic(self) -> FloatArray:
        """Largest adjusted e-value of each group so far."""
        return np.asarray(self.alarms.adjusted.max(axis=0))

    @property
    def p_value(self) -> FloatArray:
        """One over it, at most 1: valid whenever one stops."""
        return self.alarms.p_value

    def confidence_interval(self, confidence_level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Average gaps at the latest look, right for all groups and looks together.

        Parameters
        ----------
        confidence_level : float, default 0.95
            For all groups and looks together.

        Returns
        -------
        low, high : array of shape (J,)
        """
        level = check_fraction("confidence_level", confidence_level)
        low, high = self.sequence.interval((1.0 - level) / len(self.groups))
        return low[-1], high[-1]

    def __str__(self) -> str:
        low, high = self.confidence_interval(1.0 - self.alpha)
        size = len(self.groups)
        title = (
            f"Gaps of {size} group{'s' if size > 1 else ''} after {len(self.batches)} batches; at "
            f"most a {self.alpha:.0%} chance of any false alarm, however often one looks"
        )
        lines = [title]
        for j, group in enumerate(self.groups):
            interval = "" if np.isnan(low[j]) else f" [{low[j]:.3g}, {high[j]:.3g}]"
            line = f"  {group}: {self.estimate[j]:.3g}{interval}, e = {self.statistic[j]:.3g}"
            date = self.since[j]
            if date is not None:
                line += (
                    f"; alarm in {self.batches[self.alarms.batch[j]]}; if the gap began at once "
                    f"and stayed, between {self.batches[date.low]} and {self.batches[date.high]}"
                )
            lines.append(line)
        return "\n".join(lines)


def monitor_gaps(
    y: object,
    group: AnyArray,
    batch: AnyArray,
    *,
    reference: object = "rest",
    weight: object = None,
    cluster: AnyArray | None = None,
    margin: float = 0.0,
    alternative: Alternative = "two-sided",
    adjust: EAdjust = "e-holm",
    alpha: float = 0.05,
) -> GapMonitor:
    """Watch the gaps between groups, batch by batch.

    The null hypothesis is that in no batch the mean of a group differs from its reference by more
    than the margin.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome or decision, 0/1 or real.
    group : array of shape (n,)
        Group of each row.
    batch : array of shape (n,)
        Batch of each row; the sorted values are the order of arrival.
    reference : "rest", "population", a group, or a number
        What each group is held against; a number is a known value.
    weight : array of shape (n,), optional
        Sampling weight of a row.
    cluster : array of shape (n,), optional
        Unit of each row; it may have rows in several batches.
    margin : float, default 0
        Largest gap under the null.
    alternative : {"two-sided", "greater", "less"}
        Which gaps count against the null.
    adjust : {"e-holm", "e-bh", "none"}
        As in `raise_alarms`.
    alpha : float, default 0.05
        Chance that any false alarm is ever raised.

    Returns
    -------
    GapMonitor

    Examples
    --------
    Forty weeks of a hundred decisions; group b is treated worse from week 20 on:

    >>> rng = np.random.default_rng(0)
    >>> week, group = np.repeat(np.arange(40), 100), rng.choice(["a", "b"], size=4000)
    >>> rate = 0.5 - 0.25 * ((week >= 20) & (group == "b"))
    >>> found = monitor_gaps(rng.random(4000) < rate, group, week)
    >>> found.batches[found.alarms.batch[1]], found.batches[found.since[1].best]
    ('25', '20')

    The alarm came in week 25, and the change is dated to week 20.
    """
    labels, cell = np.unique(np.asarray(group), return_inverse=True)
    times, when = np.unique(np.asarray(batch), return_inverse=True)
    values = np.asarray(y)
    sums = BatchSums.from_rows(
        values.astype(np.float64) if values.dtype == np.bool_ else values,
        when,
        cell,
        weight=weight,
        cluster=cluster,
        n_batches=len(times),
        n_cells=len(labels),
    )
    own = np.eye(len(labels), dtype=np.bool_)
    target: AnyArray | float
    if isinstance(reference, (int, float)) and reference not in labels:
        target, watched = float(reference), np.arange(len(labels))
    elif isinstance(reference, str) and reference in {"rest", "population"}:
        target, watched = ~own, np.arange(len(labels))
    elif reference in labels:
        at = int(np.flatnonzero(labels == reference)[0])
        watched = np.delete(np.arange(len(labels)), at)
        own = own[:, watched]
        target = np.repeat(np.arange(len(labels))[:, None] == at, len(watched), axis=1)
    else:
        raise InvalidParameterError(
            f"`reference` must be 'rest', 'population', a number or one of the groups "
            f"{quoted(labels)}; got {reference!r}."
        )
    sequence = gap_sequence(
        sums,
        own,
        target,
        population=isinstance(reference, str) and reference == "population",
        margin=margin,
        alternative=alternative,
    )
    alarms = raise_alarms([sequence], alpha=alpha, adjust=adjust)
    return GapMonitor(
        groups=tuple(str(labels[j]) for j in watched),
        batches=tuple(str(time) for time in times),
        sequence=sequence,
        alarms=alarms,
        since=tuple(
            sequence.date(j, int(at)) if at >= 0 else None for j, at in enumerate(alarms.batch)
        ),
        alpha=check_fraction("alpha", alpha),
    )
