"""Whether a score is right, or means the same, in each of many overlapping segments."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np
from scipy import sparse

from equipoise._checks import check_columns, check_depth, check_fraction, check_option
from equipoise._typing import CalibrationHypothesis, FloatArray, Rng
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.scores.questions import SegmentDetails
from equipoise.audits.words import dropped_notes
from equipoise.data.groups import subgroups
from equipoise.data.query import NarrowRows
from equipoise.data.table import Quantity, Rows, Sums, Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments, number_cells
from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.scores.multicalibration import (
    MIN_UNITS,
    MulticalibrationTest,
    ResidualCells,
    multicalibration_test,
)

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["multicalibration"]

N_BINS = 200
"""Equal parts of the scores from 0 to 1, by which rows are summed."""
VARIANCE = 3
"""Place of the null variance of a row among the sums about calibration."""
METHOD = "cumulative residuals under the null law, step-down over segments"
NULLS = {
    "calibration": "at every score the mean outcome of the segment is the score",
    "parity": "at every score the mean outcome of the segment is that of everyone",
}


@question_method
def multicalibration(
    self: "Audit",
    segments: Sequence[str] | None = None,
    *,
    depth: int = 2,
    hypothesis: CalibrationHypothesis = "calibration",
    n_cuts: int = 20,
    min_information: float = 10.0,
    alpha: float = 0.05,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Say whether a score is right in every segment that a few columns make.

    The null hypothesis of a finding is that at every score the mean outcome of the segment is the
    score or, with `hypothesis="parity"`, the mean outcome of everyone who has that score; that of
    `joint` is that this holds in all segments. One query sums the rows.

    Parameters
    ----------
    segments : list of str, optional
        Columns whose values, and combinations of values, are the segments; by default the group
        columns.
    depth : int, default 2
        How many columns are combined at most.
    hypothesis : {"calibration", "parity"}
        What is tested.
    n_cuts : int, default 20
        Scores at which sums of residuals are looked at.
    min_information : float, default 10
        Least sum of S(1 - S) over a segment that is tested.
    alpha : float, default 0.05
        Chance of any false detection.
    rng : int or numpy Generator, optional
        For the law of the largest statistic.

    Returns
    -------
    AuditResult
        One finding for each segment: the mean outcome less the mean score (less that of everyone at
        the same scores, for parity), and a p-value that allows for all segments.

    Examples
    --------
    A score is right for each sex and for each age, and wrong for each combination.

    >>> import numpy as np, equipoise as eq
    >>> rng = np.random.default_rng(0)
    >>> sex, age = rng.choice(["f", "m"], 8000), rng.choice(["old", "young"], 8000)
    >>> score = rng.uniform(0.1, 0.7, 8000)
    >>> shift = np.where((sex == "f") == (age == "young"), 0.1, -0.1)
    >>> data = {"sex": sex, "age": age, "score": score,
    ...         "y": (rng.uniform(size=8000) < score + shift).astype(int)}
    >>> audit = eq.Audit(data, group=["sex", "age"], y_true="y", y_score="score")
    >>> result = audit.multicalibration(rng=0)
    >>> sorted(f.group for f in result.findings if f.decision == "detected")
    ['sex=f & age=old', 'sex=f & age=young', 'sex=m & age=old', 'sex=m & age=young']

    No single column shows it.
    """
    check_fraction("alpha", alpha)
    check_option("hypothesis", hypothesis, CalibrationHypothesis)
    check_depth(depth)
    table = self.table
    if segments is not None:
        table = table.grouped_by(check_columns("segments", segments))
    if not table.roles.group:
        raise InvalidParameterError("pass the columns that make `segments`.")
    needed = _declared(table, hypothesis)
    cells = yield needed
    _check_values(cells)
    patterns, found_cells = _arranged(cells, hypothesis)
    if table.roles.cluster is not None:
        narrow = yield Rows(needed)
        units, roots = _by_unit(narrow, patterns, found_cells)
        found_cells = replace(found_cells, units=units, roots=roots)
    every = subgroups(patterns, depth=depth)
    member = every.membership.toarray().T
    found = multicalibration_test(
        found_cells, member, n_cuts=n_cuts, min_information=min_information, rng=rng
    )
    size = (member @ patterns.n).astype(int)
    return AuditResult(
        audit="multicalibration",
        null=NULLS[hypothesis],
        alternative="at some score the mean outcome of the segment is another one",
        alpha=alpha,
        method=METHOD,
        n=int(patterns.n.sum()),
        findings=tuple(
            _finding(found, k, name, int(size[k]), hypothesis, min_information, alpha)
            for k, name in enumerate(every.names)
        ),
        joint=_joint(found, hypothesis, alpha),
        notes=(
            *dropped_notes(cells.dropped),
            *_refuted(cells, hypothesis),
            *_multiplicity(int(found.tested.sum())),
        ),
        details=SegmentDetails(
            hypothesis=hypothesis,
            depth=depth,
            n_cuts=n_cuts,
            min_information=min_information,
            information=[
                {"group": name, "information": value}
                for name, value in zip(every.names, found.information.tolist(), strict=True)
            ],
        ),
    )


def _declared(table: Table, hypothesis: CalibrationHypothesis) -> Sums:
    """Declare the sums of each pattern by part of the score; weights multiply once more."""
    y, score = table.y_true, table.y_score
    outside = (score < 0.0) | (score > 1.0)
    # Such scores are refused by their number; a huge one would not fit into sums or integers.
    s = nw.when(outside).then(0.0).otherwise(score)
    w = table.number(nw.lit(1.0)) if table.roles.weight is None else table.value("weight")
    v = s * (1.0 - s)
    terms = (
        {"residual": y - s, "one": None, "v w": v * w, "v": v, "third": v * (1.0 - 2.0 * s) * w * w}
        if hypothesis == "calibration"
        else {"y": y, "one": None, "w": w, "w2": w * w}
    )
    quantities = [
        Quantity(name, "multicalibration", table.number(nw.lit(1.0)) if value is None else value)
        for name, value in terms.items()
    ]
    counted = [
        Quantity("other", "y_true", (y != 0.0) & (y != 1.0)),
        Quantity("outside", "y_score", outside),
        Quantity("refuted", "y_score", ((s == 0.0) & (y == 1.0)) | ((s == 1.0) & (y == 0.0))),
    ]
    part = (s * N_BINS).floor().cast(nw.Int64)
    return table.sums(
        quantities,
        {"y_true": "number", "y_score": "number"},
        counted=counted,
        by=(Quantity("part of the score", N_BINS, part),),
        order=1,
    )


def _check_values(cells: CellMoments) -> None:
    other, outside, _ = cells.sums.sum(axis=0)
    if other:
        raise DataError(f"`y_true` must be 0 or 1 here; {other:.0f} rows have other values.")
    if outside:
        raise DataError(
            f"scores must be probabilities, in [0, 1]; {outside:.0f} rows are outside. Rescale or"
            " calibrate them first."
        )


class _Patterns:
    """The finest combinations of the columns, with their rows."""

    def __init__(self, cells: CellMoments) -> None:
        self.columns = cells.columns[:-1]
        self.code, self.labels = number_cells(cells.labels[:-1])
        self.part = np.minimum(cells.labels[-1].astype(np.int64), N_BINS - 1)
        self.n = np.bincount(self.code, cells.n)


def _arranged(
    cells: CellMoments, hypothesis: CalibrationHypothesis
) -> tuple[_Patterns, ResidualCells]:
    patterns = _Patterns(cells)
    sums = np.zeros((len(patterns.n), N_BINS, cells.total.shape[1]))
    np.add.at(sums, (patterns.code, patterns.part), cells.total)
    columns: list[FloatArray] = list(np.moveaxis(sums, 2, 0))
    if hypothesis == "calibration":
        return patterns, ResidualCells.around_score(*columns)
    return patterns, ResidualCells.around_mean(*columns)


def _by_unit(
    narrow: NarrowRows, patterns: _Patterns, cells: ResidualCells
) -> tuple["sparse.csr_array", "sparse.csr_array"]:
    """Sum residuals and null deviations of each cluster over the cells; no rows leave Spark."""
    if narrow.frame.implementation.is_pyspark():
        raise InvalidParameterError(
            "`multicalibration` with clusters reads rows, which do not leave a Spark cluster. Pass"
            " a sample of them as a local table."
        )
    parts = list(narrow.batches())
    cell = np.concatenate([part.cell for part in parts])
    residual, w = (np.concatenate([part.values[k] for part in parts]) for k in (0, 1))
    for role in ("weight", "count"):
        if getattr(parts[0], role) is not None:
            w = w * np.concatenate([getattr(part, role) for part in parts])
    part = patterns.part[cell]
    column = patterns.code[cell] * N_BINS + part
    if cells.centre is None:
        variance = np.concatenate([one.values[VARIANCE] for one in parts])
    else:
        residual = residual - cells.centre[part]
        variance = (cells.centre * (1.0 - cells.centre))[part]
    unit = np.unique(np.concatenate([part.unit for part in parts]), return_inverse=True)[1]
    shape = (int(unit.max()) + 1, cells.total.size)
    deviation = np.sqrt(np.maximum(variance, 0.0))
    units, roots = (
        sparse.coo_array((w * values, (unit, column)), shape=shape).tocsr()
        for values in (residual, deviation)
    )
    return units, roots


def _finding(
    found: MulticalibrationTest,
    k: int,
    name: str,
    n: int,
    hypothesis: CalibrationHypothesis,
    needed: float,
    alpha: float,
) -> Finding:
    estimand = Estimand(
        "residual",
        "segment",
        noun="mean outcome less the score"
        if hypothesis == "calibration"
        else "mean outcome less that of everyone at the same scores",
    )
    if not found.tested[k]:
        note = Note(
            code="too-small",
            message=f"The segment carries information {found.information[k]:.2g} of the"
            f" {needed:g} needed (rows times the variance of their outcomes).",
        )
        if found.units[k] < MIN_UNITS:
            note = Note(
                code="too-few-units",
                message=f"The segment has {found.units[k]:.1f} effective independent units; it"
                f" takes {MIN_UNITS:g}.",
            )
        return Finding(
            group=name,
            estimand=estimand,
            decision=Decision.NOT_TESTED,
            n=n,
            method=METHOD,
            notes=(note,),
        )
    detected = found.p_value_adjusted[k] <= alpha
    return Finding(
        group=name,
        estimand=estimand,
        estimate=float(found.gap[k]),
        statistic=float(found.statistic[k]),
        p_value=float(found.p_value_adjusted[k]),
        p_value_raw=float(found.p_value[k]),
        decision=Decision.DETECTED if detected else Decision.NOT_DETECTED,
        n=n,
        method=METHOD,
    )


def _joint(
    found: MulticalibrationTest, hypothesis: CalibrationHypothesis, alpha: float
) -> JointTest | None:
    if not found.tested.any():
        return None
    best = int(np.nanargmin(np.where(found.tested, found.p_value_adjusted, np.nan)))
    p = float(found.p_value_adjusted[best])
    return JointTest(
        null=f"{NULLS[hypothesis]}, in all segments",
        decision=Decision.DETECTED if p <= alpha else Decision.NOT_DETECTED,
        method="largest statistic of all segments",
        statistic=float(np.nanmax(found.statistic)),
        p_value=p,
    )


def _refuted(cells: CellMoments, hypothesis: CalibrationHypothesis) -> tuple[Note, ...]:
    """Say that scores which claim certainty are wrong: no test by chance can weigh them."""
    *_, rows = cells.sums.sum(axis=0)
    if not rows or hypothesis != "calibration":
        return ()
    message = (
        f"{rows:.0f} rows have a score of 0 or 1 and the other outcome. A score that claims"
        " certainty is refuted by one such row, whatever the tests of segments say."
    )
    return (Note(code="refuted-certainty", message=message),)


def _multiplicity(n: int) -> tuple[Note, ...]:
    if n < 2:
        return ()
    message = f"P-values hold for the {n} segments together (step-down)."
    return (Note(code="multiplicity", message=message),)
