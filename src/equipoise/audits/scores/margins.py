"""Are people at the cut-off alike in every group."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw

from equipoise._checks import check_fraction, check_number, check_option
from equipoise._typing import MarginPlace, ParityUnit, Rng
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
from equipoise.stats.scores.cells import AnyScoreCells
from equipoise.stats.scores.margins import MarginalOutcomeTest, compare_margins

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["marginal_outcome"]

METHODS = {
    "limit": "one-sided local parabola (robust bias correction), t with Satterthwaite degrees",
    "level": "means of people at the threshold, t with Satterthwaite degrees",
}


@question_method
def marginal_outcome(
    self: "Audit",
    threshold: float,
    *,
    unit: ParityUnit | None = None,
    bandwidth: float | str = "auto",
    at: MarginPlace = "auto",
    reference: Mapping[str, Any] | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
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
        Standard deviation of the kernel; "auto" widens it in a group until it has enough
        information.
    at : {"auto", "level", "limit"}
        "level" compares people whose score is the threshold, "limit" the ends of the groups'
        curves there; "auto" takes the level of a score with few values, or of any other where
        every group has enough information at it.
    reference : dict, optional
        The group others are compared with; by default all pairs are compared.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Level of the intervals, for all pairs together.
    rng : int or numpy Generator, optional
        For the law of the largest of several statistics.

    Returns
    -------
    AuditResult
        `details` has the threshold, ``margins`` (outcomes at the threshold and above it) and
        ``scores`` (rows of each group by score).

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
    where = check_number("threshold", threshold)
    check_option("at", at, MarginPlace)
    width = parity_bandwidth(bandwidth)
    table = self.table
    if table.translated(["y_true"]):
        table.check_positive(["y_true"])
    counted = parity_unit(table, unit)
    # Labels below the threshold are often unknown, and never used.
    known = nw.when(table.y_score >= where).then(table.y_true).otherwise(0.0)
    outcome = Quantity("y_true", ("from", where), known)
    try:
        rows = yield score_rows(table, outcome, {"y_score": "number"})
    except DataError:
        _check_labels(table, where)
        raise
    with score_sample(rows, counted, edge=where) as sample:
        pairs = pairs_of(sample, reference)
        scores = sample.distribution(edge=where)
        tests = _compared(
            sample.cells,
            where,
            pairs,
            bandwidth=width,
            at=at,
            confidence_level=confidence_level,
            rng=rng,
        )
    names = [(sample.names[group], sample.names[other]) for group, other in pairs]
    tested = [test for test in tests if not isinstance(test, Note)]
    method = METHODS[tested[0].place if tested else "limit"]
    null = f"at score {where:g} the mean outcome is the same in all groups"
    return AuditResult(
        audit="marginal_outcome",
        null=null,
        alternative=f"at score {where:g} the mean outcome differs",
        alpha=alpha,
        method=method,
        n=sample.n,
        findings=tuple(
            _finding(test, pair, method, alpha=alpha, level=confidence_level, n=sample.n)
            for test, pair in zip(tests, names, strict=True)
        ),
        joint=_joint(null, tests, method, alpha),
        notes=sample.notes + _multiplicity(len(tested)),
        details=MarginDetails(
            threshold=where,
            unit=counted,
            margins=[
                _record(test, pair)
                for test, pair in zip(tests, names, strict=True)
                if not isinstance(test, Note)
            ],
            scores=scores,
        ),
    )


def _compared(
    cells: AnyScoreCells,
    threshold: float,
    pairs: Sequence[tuple[int, int]],
    **options: Any,
) -> list[MarginalOutcomeTest | Note]:
    """Compare the pairs, or say why they cannot be compared."""
    try:
        tests = compare_margins(cells, threshold, pairs, **options)
    except DataError as error:
        tests = [str(error)] * len(pairs)
    return [
        Note(code="margin-not-tested", message=test[:1].upper() + test[1:])
        if isinstance(test, str)
        else test
        for test in tests
    ]


def _check_labels(table: Table, threshold: float) -> None:
    """Raise when outcomes above the threshold are missing and may not be dropped."""
    if table.roles.missing == "drop":
        return
    column = table.roles.column("y_true")
    above = table.frame.filter(table.y_score >= threshold)
    query = above.select(
        table.is_missing(column).cast(nw.Int32).sum().cast(nw.Float64).alias("absent"),
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
    method: str,
    *,
    alpha: float,
    level: float,
    n: int,
) -> Finding:
    common: dict[str, Any] = {
        "group": pair[0],
        "reference": pair[1],
        "estimand": Estimand("outcome at the threshold", "gap", scale="difference"),
        "method": method,
    }
    if isinstance(test, Note):
        return Finding(**common, n=n, decision=Decision.NOT_TESTED, notes=(test,))
    detected = test.p_value_adjusted <= alpha
    return Finding(
        **common,
        n=int(test.n_above.sum()),
        estimate=test.estimate,
        ci=ConfidenceInterval(low=test.low, high=test.high, confidence_level=level),
        statistic=test.statistic,
        p_value=test.p_value_adjusted,
        p_value_raw=test.p_value,
        decision=Decision.DETECTED if detected else Decision.NOT_DETECTED,
    )


def _joint(
    null: str, tests: list[MarginalOutcomeTest | Note], method: str, alpha: float
) -> JointTest:
    tested = [test for test in tests if not isinstance(test, Note)]
    if not tested:
        notes = tuple(test for test in tests if isinstance(test, Note))[:1]
        return JointTest(null=null, decision=Decision.NOT_TESTED, method=method, notes=notes)
    best = min(tested, key=lambda test: (test.p_value_adjusted, -abs(test.statistic)))
    smallest = best.p_value_adjusted
    return JointTest(
        null=null,
        decision=Decision.DETECTED if smallest <= alpha else Decision.NOT_DETECTED,
        method=method + ("" if len(tested) == 1 else ", largest of all pairs (max-t)"),
        statistic=abs(best.statistic),
        p_value=smallest,
    )


def _multiplicity(n_pairs: int) -> tuple[Note, ...]:
    if n_pairs < 2:
        return ()
    return (
        Note(
            code="multiplicity",
            message=f"P-values and intervals hold for the {n_pairs} comparisons together (max-t).",
        ),
    )


def _record(test: MarginalOutcomeTest, pair: tuple[str, str]) -> dict[str, Any]:
    return {
        "group": pair[0],
        "reference": pair[1],
        "place": test.place,
        "bandwidth": dict(zip(reversed(pair), test.bandwidth.tolist(), strict=True)),
        "outcome": {pair[0]: float(test.outcome[1]), pair[1]: float(test.outcome[0])},
        "standard_error": {
            pair[0]: float(test.outcome_se[1]),
            pair[1]: float(test.outcome_se[0]),
        },
        "mean_above": {pair[0]: float(test.mean_above[1]), pair[1]: float(test.mean_above[0])},
        "n_near": {pair[0]: int(test.n_local[1]), pair[1]: int(test.n_local[0])},
    }
