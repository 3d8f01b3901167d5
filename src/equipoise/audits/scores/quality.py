"""How good is a score in each group: calibration error, ranking and squared error."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import narwhals as nw
import numpy as np

from equipoise._checks import check_fraction, check_option
from equipoise._typing import AnyArray, QualityMetric, Rng
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.scores.questions import QualityDetails
from equipoise.audits.scores.sample import pairs_of_names
from equipoise.audits.words import dropped_notes
from equipoise.data.groups import cell_names
from equipoise.data.query import NarrowRows, collect
from equipoise.data.table import Quantity, Rows, Table
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.scores.group_quality import (
    MIN_CLASS,
    MIN_ROWS,
    GroupQuality,
    QualityDifference,
    group_quality,
)

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["score_quality"]

NOUNS: dict[str, str] = {
    "rmsce": "calibration error",
    "auc": "area under the ROC curve",
    "brier": "Brier score",
    "parity_error": "difference from the rest at equal scores",
}
METHOD = "influence of each row (DeLong for AUC), max-t over differences"
NULL = "the quality of the score is the same in all groups"


@question_method
def score_quality(
    self: "Audit",
    metrics: Sequence[QualityMetric] = ("rmsce", "auc", "brier"),
    *,
    baseline: str | None = None,
    reference: Mapping[str, Any] | None = None,
    n_bins: int = 15,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Say how good a score is in each group, and whether it is better in some.

    The null hypothesis is that a metric is the same in all groups and, with `baseline`, that two
    scores of the same rows are equally good in each group.

    Parameters
    ----------
    metrics : list of {"rmsce", "auc", "brier", "parity_error"}
        Root mean squared calibration error, freed from chance; area under the ROC curve; mean
        squared error (Brier score); root mean squared difference from the rest at equal scores,
        freed from chance.
    baseline : str, optional
        Column of another score of the same rows, for instance before calibration; the score less
        the baseline is tested in each group.
    reference : dict, optional
        The group others are compared with; by default all pairs are compared.
    n_bins : int, default 15
        Bins with equal counts, of the calibration error.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Of the intervals; those of differences hold for all of them together.
    rng : int or numpy Generator, optional
        For the law of the largest difference.

    Returns
    -------
    AuditResult
        First the metrics of each group, then differences between groups and between scores.

    Examples
    --------
    Does a score rank two groups equally well?

    >>> import numpy as np, equipoise as eq
    >>> rng = np.random.default_rng(0)
    >>> group, risk = rng.choice(["A", "B"], size=3000), rng.uniform(size=3000)
    >>> score = np.where(group == "B", (risk + rng.uniform(size=3000)) / 2, risk)
    >>> outcome = (rng.uniform(size=3000) < risk).astype(int)
    >>> audit = eq.Audit({"group": group, "score": score, "y": outcome},
    ...                  group="group", y_true="y", y_score="score")
    >>> audit.score_quality(["auc"]).findings[-1].decision.value
    'detected'

    It does not: noise makes it worse in group B.
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    if not isinstance(metrics, Sequence):
        raise InvalidParameterError(f"`metrics` must be a list of names; got {metrics!r}.")
    chosen = cast("tuple[QualityMetric, ...]", (metrics,) if isinstance(metrics, str) else metrics)
    for metric in chosen:
        check_option("metrics", metric, QualityMetric)
    table = self.table
    if not table.roles.group:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    quantities = [
        Quantity("y_true", None, table.y_true),
        Quantity("y_score", None, table.y_score),
    ]
    if baseline is not None:
        table.check_column(baseline)
        if not table.schema[baseline].is_numeric():
            raise DataError(f"`baseline` must be numeric; column {baseline!r} is not.")
        quantities.append(Quantity("column", baseline, nw.col(baseline).cast(nw.Float64)))
    try:
        rows = yield Rows(
            table.sums(quantities, {"y_true": "number", "y_score": "number"}, order=1)
        )
    except DataError as error:
        if baseline is None or not _incomplete(table, baseline):
            raise
        raise MissingValuesError(
            f"{baseline!r} has missing or infinite values. Fill or drop them first: two scores are"
            " compared on the same rows."
        ) from error
    names = cell_names(rows.reader.columns, rows.reader.labels)
    pairs = pairs_of_names(names, rows.reader, reference) if len(names) > 1 else ()
    columns = _arrays(rows, baseline)
    found = group_quality(
        **columns,
        metrics=tuple(chosen),
        pairs=pairs,
        n_bins=n_bins,
        confidence_level=confidence_level,
        rng=rng,
    )
    size = np.bincount(columns["group"], columns["count"], minlength=len(names)).astype(int)
    return AuditResult(
        audit="score_quality",
        null=NULL,
        alternative="some metric differs between groups, or between the two scores",
        alpha=alpha,
        method=METHOD,
        n=int(size.sum()),
        findings=(
            *_values(found, names, size, baseline, confidence_level),
            *_untested(found, names, size),
            *(
                _difference(d, names, size, baseline, alpha, confidence_level)
                for d in found.differences
            ),
        ),
        joint=_joint(found, alpha),
        notes=(*dropped_notes(rows.reader.dropped), *_multiplicity(len(found.differences))),
        details=QualityDetails(
            metrics=list(chosen),
            baseline=baseline,
            n_bins=n_bins,
            groups=[
                {
                    "group": names[value.group],
                    "score": "baseline" if value.score else "score",
                    "metric": value.metric,
                    "estimate": value.estimate,
                    "low": value.low,
                    "high": value.high,
                }
                for value in found.values
            ],
        ),
    )


def _incomplete(table: Table, column: str) -> bool:
    """Whether a column has missing or infinite values."""
    value = nw.col(column).cast(nw.Float64)
    bad = table.frame.filter(value.is_null() | ~value.is_finite()).select(column).head(1)
    return len(collect(bad)[column]) > 0


def _arrays(rows: NarrowRows, baseline: str | None) -> dict[str, AnyArray]:
    """Read the rows; those of a Spark DataFrame do not leave it."""
    if rows.frame.implementation.is_pyspark():
        raise InvalidParameterError(
            "`score_quality` reads rows, which do not leave a Spark cluster. Pass a sample of them"
            " as a local table."
        )
    parts = list(rows.batches())
    size = len(parts[0].values)
    values = [np.concatenate([part.values[k] for part in parts]) for k in range(size)]
    arrays: dict[str, AnyArray] = {
        "y_true": values[0],
        "y_score": values[1],
        "group": np.concatenate([part.cell for part in parts]),
    }
    if baseline is not None:
        arrays["baseline"] = values[2]
    for name, role in (("cluster", "unit"), ("weight", "weight")):
        if getattr(parts[0], role) is not None:
            arrays[name] = np.concatenate([getattr(part, role) for part in parts])
    count = [part.count for part in parts if part.count is not None]
    arrays["count"] = np.concatenate(count) if count else np.ones(len(values[0]))
    return arrays


def _values(
    found: GroupQuality,
    names: Sequence[str],
    size: AnyArray,
    baseline: str | None,
    level: float,
) -> list[Finding]:
    return [
        Finding(
            group=names[value.group],
            estimand=Estimand(
                value.metric if not value.score else f"{value.metric} of {baseline}",
                "value",
                noun=NOUNS[value.metric] + (f" of {baseline}" if value.score else ""),
            ),
            estimate=value.estimate,
            ci=ConfidenceInterval(low=value.low, high=value.high, confidence_level=level),
            decision=Decision.ESTIMATED,
            n=int(size[value.group]),
            method=METHOD,
        )
        for value in found.values
    ]


def _untested(found: GroupQuality, names: Sequence[str], size: AnyArray) -> list[Finding]:
    return [
        Finding(
            group=names[group],
            estimand=Estimand("score quality"),
            decision=Decision.NOT_TESTED,
            n=int(size[group]),
            method=METHOD,
            notes=(
                Note(
                    code="group-too-small",
                    message=f"Each outcome must occur in at least {MIN_CLASS} rows of a group; the"
                    f" rarer one occurs in {fewest}.",
                ),
            ),
        )
        for group, fewest in found.too_small.items()
    ] + [
        Finding(
            group=names[group],
            estimand=Estimand("parity_error", "value", noun=NOUNS["parity_error"]),
            decision=Decision.NOT_TESTED,
            n=int(size[group]),
            method=METHOD,
            notes=(
                Note(
                    code="no-common-scores",
                    message=f"No part of the scores has {MIN_ROWS} rows of the group and of the"
                    " rest; there is nothing to compare at equal scores.",
                ),
            ),
        )
        for group in found.apart
    ]


def _difference(
    difference: QualityDifference,
    names: Sequence[str],
    size: AnyArray,
    baseline: str | None,
    alpha: float,
    level: float,
) -> Finding:
    paired = difference.group == difference.other
    groups = {difference.group, difference.other}
    detected = difference.p_value_adjusted <= alpha
    return Finding(
        group=names[difference.group],
        reference=f"{baseline}" if paired else names[difference.other],
        estimand=Estimand(
            difference.metric + (f" less that of {baseline}" if paired else ""),
            "change" if paired else "gap",
            scale="difference",
            noun=NOUNS[difference.metric],
        ),
        estimate=difference.estimate,
        ci=ConfidenceInterval(low=difference.low, high=difference.high, confidence_level=level),
        statistic=difference.statistic,
        p_value=difference.p_value_adjusted,
        p_value_raw=difference.p_value,
        decision=Decision.DETECTED if detected else Decision.NOT_DETECTED,
        n=int(sum(size[g] for g in groups)),
        method=METHOD,
    )


def _joint(found: GroupQuality, alpha: float) -> JointTest | None:
    if not found.differences:
        return None
    best = min(found.differences, key=lambda d: (d.p_value_adjusted, -abs(d.statistic)))
    return JointTest(
        null=NULL,
        decision=Decision.DETECTED if best.p_value_adjusted <= alpha else Decision.NOT_DETECTED,
        method="largest difference (max-t)",
        statistic=abs(best.statistic),
        p_value=best.p_value_adjusted,
    )


def _multiplicity(n: int) -> tuple[Note, ...]:
    if n < 2:
        return ()
    message = f"P-values and intervals hold for the {n} differences together (max-t)."
    return (Note(code="multiplicity", message=message),)
