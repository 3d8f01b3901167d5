"""What a table says in the sentences of a result: who its people are, and who was left out."""

from collections.abc import Iterable
from typing import Any, Literal

from equipoise.data.metrics import METRICS, OPPOSITE, RateMetric, RealMetric
from equipoise.data.roles import Roles
from equipoise.results.finding import Note
from equipoise.results.words import Event, MetricWords, Words

__all__ = ["dropped_notes", "good_event", "words_of"]


def words_of(roles: Roles, metrics: Iterable[str]) -> Words:
    """Return the words for results about the given metrics.

    Parameters
    ----------
    roles : Roles
        With the columns, the label that counts as 1 and the decision that is good for a person.
    metrics : iterable of str
        Names; those that are not known have no words of their own.

    Returns
    -------
    Words
    """
    favourable = good_event(roles)
    selected, not_selected = _phrases(roles, "y_pred", favourable)
    outcome, no_outcome = _phrases(roles, "y_true", favourable)
    return Words(
        selected=selected,
        not_selected=not_selected,
        outcome=outcome,
        no_outcome=no_outcome,
        favourable=favourable,
        metrics={
            name: _metric(METRICS[name], roles, favourable) for name in metrics if name in METRICS
        },
    )


def good_event(roles: Roles) -> Event | None:
    """Return the decision that is good for a person; without decisions, the outcome that is."""
    if roles.favourable is None:
        return None
    good = roles.favours_positive
    if roles.y_pred is None and roles.y_true is not None:
        return "outcome" if good else "no_outcome"
    return "selected" if good else "not_selected"


def _phrases(
    roles: Roles, role: Literal["y_pred", "y_true"], favourable: Event | None
) -> tuple[str, str]:
    """Return what is said of people whose label is the one that counts as 1, and of the others."""
    column = getattr(roles, role)
    if column is None:
        events: tuple[Event, Event] = (
            ("selected", "not_selected") if role == "y_pred" else ("outcome", "no_outcome")
        )
        return Words().phrase(events[0]), Words().phrase(events[1])
    decides = role == "y_pred" or favourable in {"outcome", "no_outcome"}
    if isinstance(roles.favourable, str) and decides:
        # The good label names both sides, so that the choice of `positive` does not change a word.
        yes = f"have `{column}` = {roles.favourable}"
        no = f"have `{column}` other than {roles.favourable}"
        return (yes, no) if favourable in {"selected", "outcome"} else (no, yes)
    if not isinstance(roles.positive, str) and roles.positive in {0, 1}:
        one = int(roles.positive)
        return f"have `{column}` = {one}", f"have `{column}` = {1 - one}"
    return f"have `{column}` = {roles.positive}", f"have `{column}` other than {roles.positive}"


def _metric(metric: RateMetric | RealMetric, roles: Roles, favourable: Event | None) -> MetricWords:
    if isinstance(metric, RateMetric):
        return MetricWords(
            noun=metric.words,
            event=metric.event,
            among=metric.among,
            better=_better(metric, favourable),
        )
    column = {"mean_outcome": roles.y_true, "mean_score": roles.y_score}.get(metric.name)
    if column is None:
        return MetricWords(noun=metric.words, better=metric.better)
    # A high score goes with the label that counts as 1.
    good = {"outcome": "higher", "no_outcome": "lower"}
    if metric.name == "mean_score":
        good |= {"selected": "higher", "not_selected": "lower"}
    better: Any = good.get(str(favourable))
    return MetricWords(noun=f"mean of `{column}`", better=better)


def _better(metric: RateMetric, favourable: Event | None) -> Literal["higher", "lower"] | None:
    """Say which values of a rate are better for the people concerned.

    More of the good decision is better, whoever receives it. A predictive value counts where the
    decision is the bad one: people are better off if it is right more often.
    """
    if metric.event in {"right", "wrong"}:
        return "higher" if metric.event == "right" else "lower"
    if favourable is None:
        return None
    if metric.event in {favourable, OPPOSITE[favourable]}:
        return "higher" if metric.event == favourable else "lower"
    if metric.among == OPPOSITE[favourable]:
        return metric.better
    return None


def dropped_notes(dropped: int) -> tuple[Note, ...]:
    """Say how many rows were left out because a value was missing."""
    if not dropped:
        return ()
    message = f"{dropped} rows with a missing value in a column that is used were left out."
    return (Note(code="missing-dropped", message=message),)
