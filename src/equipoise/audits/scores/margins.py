"""Are people at the cut-off alike in every group."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from equipoise._checks import check_fraction, check_number
from equipoise._typing import ParityUnit
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.scores.questions import MarginDetails
from equipoise.audits.scores.sample import (
    pairs_of,
    parity_bandwidth,
    parity_unit,
    score_rows,
    score_sample,
)
from equipoise.data.query import collect
from equipoise.data.table import Quantity, Table
from equipoise.exceptions import DataError, MissingValuesError
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.multiplicity import adjusted_p_values
from equipoise.stats.scores.cells import AnyScoreCells
from equipoise.stats.scores.margins import MarginalOutcomeTest, compare_margins

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["marginal_outcome"]

METHOD = "one-sided local linear, t with Satterthwaite degrees"


@question_method
def marginal_outcome(
    self: "Audit",
    threshold: float,
    *,
    unit: ParityUnit | None = None,
    bandwidth: float | str = "auto",
    reference: Mapping[str, Any] | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
) -> Asking[AuditResult]:
    """Say whether people at the cut-off have the same mean outcome in every group.

    The null hypothesis is that mean outcomes at the threshold are equal. Only rows with a
    score of at least `threshold` are used, since outcomes below it are often unknown.

    Parameters
    ----------
    threshold : float
        Score from which decisions are positive.
    unit : {"cluster", "row"}, optional
        Whether every cluster or every row weighs alike; must be said with clusters.
    bandwidth : "auto" or float
        Standard deviation of the kernel.
    reference : dict, optional
        The group others are compared with; by default all pairs are compared.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    AuditResult
        `details` has the threshold and ``margins``: outcomes at the threshold and above it.

    Examples
    --------
    Loans are given from score 0.5. Does the marginal borrower repay alike in both groups?

    >>> import numpy as np, equipoise as eq
    >>> rng = np.random.default_rng(0)
    >>> score, group = rng.uniform(size=8000), rng.choice(["A", "B"], size=8000)
    >>> repaid = rng.uniform(size=8000) < 0.2 + 0.5 * score + 0.25 * (group == "B")
    >>> audit = eq.Audit({"group": group, "score": score, "repaid": repaid.astype(int)},
    ...                  group="group", y_true="repaid", y_score="score")
    >>> audit.marginal_outcome(0.5).findings[0].decision.value
    'detected'

    They do not: group B is held to a higher standard.
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    at = check_number("threshold", threshold)
    width = parity_bandwidth(bandwidth)
    table = self.table
    if table.translated(["y_true"]):
        table.check_positive()
    counted = parity_unit(table, unit)
    # Labels below the threshold are often unknown, and never used.
    known = nw.when(table.y_score >= at).then(table.y_true).otherwise(0.0)
    outcome = Quantity("y_true", ("from", at), known)
    try:
        rows = yield score_rows(table, outcome, {"y_score": "number"})
    except DataError:
        _check_labels(table, at)
        raise
    with score_sample(rows, counted, edge=at) as sample:
        pairs = pairs_of(sample, reference)
        tests = [
            _compared(sample.cells.select([other, group]), at, bandwidth=width)
            for group, other in pairs
        ]
    raw = np.array([np.nan if isinstance(test, Note) else test.p_value for test in tests])
    adjusted = adjusted_p_values(raw, "holm")
    names = [(sample.names[group], sample.names[other]) for group, other in pairs]
    null = f"at score {at:g} the mean outcome is the same in all groups"
    return AuditResult(
        audit="marginal_outcome",
        null=null,
        alternative=f"at score {at:g} the mean outcome differs",
        alpha=alpha,
        method=METHOD,
        n=sample.n,
        findings=tuple(
            _finding(
                test,
                pair,
                p,
                alpha=alpha,
                confidence_level=confidence_level,
                n_pairs=len(pairs),
                n=sample.n,
            )
            for test, pair, p in zip(tests, names, adjusted, strict=True)
        ),
        joint=_joint(null, tests, adjusted, alpha),
        notes=sample.notes + _multiplicity(len(pairs)),
        details=MarginDetails(
            threshold=at,
            unit=counted,
            margins=[
                _record(test, pair)
                for test, pair in zip(tests, names, strict=True)
                if not isinstance(test, Note)
            ],
        ),
    )


def _compared(
    cells: AnyScoreCells, threshold: float, *, bandwidth: float | None
) -> MarginalOutcomeTest | Note:
    """Compare two groups, or say why they cannot be compared."""
    try:
        return compare_margins(cells, threshold, bandwidth=bandwidth)
    except DataError as error:
        text = str(error)
        return Note(code="margin-not-tested", message=text[:1].upper() + text[1:])


def _check_labels(table: Table, threshold: float) -> None:
    """Raise when outcomes above the threshold are missing and may not be dropped."""
    if table.roles.missing == "drop":
        return
    column = table.roles.column("y_true")
    above = table.frame.filter(table.y_score >= threshold)
    query = above.select(
        table.is_missing(column).cast(nw.Int64).sum().cast(nw.Float64).alias("absent"),
        nw.len().cast(nw.Float64).alias("n"),
    )
    found = collect(query)
    missing, n = int(found["absent"][0] or 0), int(found["n"][0] or 0)
    if missing:
        raise MissingValuesError(
            f"{column!r} has {missing} missing values in {n} rows with a score of at least"
            f' {threshold:g}. Fill or drop them, or pass `missing="drop"`; below the threshold'
            " outcomes are not needed."
        )


def _finding(
    test: MarginalOutcomeTest | Note,
    pair: tuple[str, str],
    p: float,
    *,
    alpha: float,
    confidence_level: float,
    n_pairs: int,
    n: int,
) -> Finding:
    common: dict[str, Any] = {
        "group": pair[0],
        "reference": pair[1],
        "estimand": Estimand("outcome at the threshold", "gap", scale="difference"),
        "method": METHOD,
    }
    if isinstance(test, Note):
        return Finding(**common, n=n, decision=Decision.NOT_TESTED, notes=(test,))
    # Pairs are read together, so that the interval of each allows for their number (Bonferroni).
    low, high = test.confidence_interval(1.0 - (1.0 - confidence_level) / n_pairs)
    return Finding(
        **common,
        n=int(test.n_above.sum()),
        estimate=test.estimate,
        ci=ConfidenceInterval(low=float(low), high=float(high), confidence_level=confidence_level),
        statistic=test.statistic,
        p_value=float(p),
        p_value_raw=test.p_value,
        decision=Decision.DETECTED if p <= alpha else Decision.NOT_DETECTED,
    )


def _joint(
    null: str, tests: list[MarginalOutcomeTest | Note], adjusted: Any, alpha: float
) -> JointTest:
    notes = [test for test in tests if isinstance(test, Note)]
    if len(notes) == len(tests):
        return JointTest(null=null, decision=Decision.NOT_TESTED, method=METHOD, notes=(notes[0],))
    best = int(np.nanargmin(adjusted))
    smallest, test = float(adjusted[best]), tests[best]
    return JointTest(
        null=null,
        decision=Decision.DETECTED if smallest <= alpha else Decision.NOT_DETECTED,
        method=METHOD + ("" if len(tests) == 1 else ", Holm"),
        statistic=None if isinstance(test, Note) else abs(test.statistic),
        p_value=smallest,
    )


def _multiplicity(n_pairs: int) -> tuple[Note, ...]:
    if n_pairs == 1:
        return ()
    return (
        Note(
            code="multiplicity",
            message=f"P-values are adjusted by Holm, intervals by Bonferroni, for {n_pairs}"
            " comparisons.",
        ),
    )


def _record(test: MarginalOutcomeTest, pair: tuple[str, str]) -> dict[str, Any]:
    return {
        "group": pair[0],
        "reference": pair[1],
        "bandwidth": test.bandwidth,
        "outcome": {pair[0]: float(test.outcome[1]), pair[1]: float(test.outcome[0])},
        "standard_error": {
            pair[0]: float(test.outcome_se[1]),
            pair[1]: float(test.outcome_se[0]),
        },
        "mean_above": {pair[0]: float(test.mean_above[1]), pair[1]: float(test.mean_above[0])},
        "n_near": {pair[0]: int(test.n_local[1]), pair[1]: int(test.n_local[0])},
    }
