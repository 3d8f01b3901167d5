"""How much of a gap goes with different factors, and how much does not."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._checks import check_fraction
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.disparity.alike import GivenAsked, conditioning_note
from equipoise.audits.disparity.questions import DecomposeDetails
from equipoise.audits.disparity.sides import Reference
from equipoise.audits.disparity.strata import FactorCells, GroupInStrata, compare_within_strata
from equipoise.data.metrics import Metric
from equipoise.moments import merge_cells
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, Note
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.decomposition import LARGEST, Decomposition, Part
from equipoise.stats.disparity.decomposition import decompose as split_gap
from equipoise.stats.disparity.strata import GROUP, NEITHER

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["decompose"]

METHOD = "reweighted means, Shapley values"


@question_method
def decompose(
    self: "Audit",
    metric: str | Metric,
    *,
    given: str | Sequence[str],
    reference: Reference = None,
    depth: int | None = 1,
    bands: Mapping[str, Any] | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
) -> Asking[AuditResult]:
    """Say how much of each group's gap goes with different factors, and how much does not.

    The raw gap is the sum of the gap among people alike in all factors (at the group's own mix),
    of what goes with the different mix of each factor (Shapley values, which need no order), and of
    two parts due to people who have nobody alike on the other side. The null hypothesis of the
    second finding of a group is that people alike in the factors have no gap; the other parts are
    estimates.

    Parameters
    ----------
    metric : str or Metric
        A name such as ``"selection_rate"``, or a metric of your own.
    given : str or list of str
        Factors with few levels, at most ten.
    reference : "rest" or dict, optional
        What groups are compared with: everybody else (the default), or a group such as
        ``{"race": "White"}``.
    depth : int, default 1
        How many group columns may be combined.
    bands : mapping of str to int or list of float, optional
        Factors that are numbers: how many bands of about equal size, or their cut points.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    AuditResult
        `details["split"]` has every part of every group with its standard error, the shares of
        rows with somebody alike, and the gap when each factor is left out.

    Notes
    -----
    Nopo (2008), doi:10.1162/rest.90.2.290, for the parts outside overlap; Shorrocks (2013),
    doi:10.1007/s10888-011-9214-z, for Shapley values.

    Examples
    --------
    How much of the gap in high-risk labels goes with sex and age?

    >>> import equipoise as eq
    >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group="race", count="count",
    ...                  y_pred="high_risk")
    >>> result = audit.decompose("selection_rate", given=["sex"],
    ...                          reference={"race": "Caucasian"})
    >>> for finding in result.findings[:3]:
    ...     print(finding.group, finding.estimand, f"{finding.estimate:.3f}")
    race=African-American selection_rate raw gap 0.240
    race=African-American selection_rate gap among alike 0.244
    race=African-American sex part of the gap -0.003

    None of it.
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    asked = GivenAsked.of(
        given, reference=reference, scale="difference", weights="group", depth=depth, bands=bands
    )
    asked.check_size(LARGEST)
    alike = yield from compare_within_strata(self.table, metric, asked)
    cells, words = alike.cells, alike.reference
    findings: list[Finding] = []
    splits: list[dict[str, Any]] = []
    for one in alike.groups:
        if one.comparison is None:
            estimand = Estimand(cells.measured.name, "raw gap", noun=cells.measured.words)
            findings.append(
                Finding(
                    group=one.name,
                    estimand=estimand,
                    decision=Decision.NOT_TESTED,
                    n=one.n,
                    method="none",
                    reference=words,
                    notes=() if one.reason is None else (one.reason,),
                )
            )
            continue
        split = _split(cells, asked, one)
        findings += _findings(cells, one, split, alpha, confidence_level, words)
        splits.append(_written(one.name, split, confidence_level))
    measured = cells.measured
    n_units = measured.moments.n_units
    return AuditResult(
        audit="decompose",
        null=f"people alike in {asked.factors} have no gap to {words}",
        alternative=f"people alike in {asked.factors} have a gap to {words}",
        alpha=alpha,
        method=METHOD,
        n=int(measured.moments.n.sum()),
        findings=tuple(findings),
        notes=(
            *measured.notes,
            Note(
                code="split-of-a-gap",
                message="The parts of a group add up to its raw gap. Only the gap among people"
                " alike is tested; the others are estimates with intervals of their own.",
            ),
            *cells.band_notes(),
            conditioning_note(asked.factors),
        ),
        details=DecomposeDetails(
            metric=measured.name,
            reference=words,
            n_units=n_units,
            n_clusters=n_units if measured.clustered else None,
            given=list(asked.given),
            split=splits,
        ),
    )


def _split(cells: FactorCells, asked: GivenAsked, one: GroupInStrata) -> Decomposition:
    """Split the gap of one group."""
    used = one.side != NEITHER
    strata, number = np.unique(cells.stratum[used], return_inverse=True)
    # Cells that take no part come last and are cut off.
    code = np.full(len(used), 2 * len(strata), dtype=np.int64)
    code[used] = 2 * number + (one.side[used] == GROUP)
    merged = merge_cells(cells.moments, code, n_groups=2 * len(strata) + 1)
    first = np.unique(number, return_index=True)[1]
    return split_gap(
        merged.first(2 * len(strata)),
        cells.levels[used][first],
        asked.given,
        n_units=(cells.n_units(one.own), cells.n_units(one.other)),
    )


def _findings(
    cells: FactorCells,
    one: GroupInStrata,
    split: Decomposition,
    alpha: float,
    level: float,
    reference: str,
) -> list[Finding]:
    name, noun = cells.measured.name, cells.measured.words
    parts = [
        (Estimand(name, "raw gap", noun=noun), split.raw),
        (Estimand(name, "gap among alike", noun=noun), None),
        *(
            (Estimand(f, "part of the gap", noun=f"with {f}"), part)
            for f, part in split.by_factor.items()
        ),
        (Estimand("group without comparator", "part of the gap"), split.outside_group),
        (Estimand("comparator without group", "part of the gap"), split.outside_comparator),
    ]
    shared: dict[str, Any] = {"group": one.name, "n": one.n, "reference": reference}
    findings = []
    for estimand, part in parts:
        if part is not None:
            low, high = part.confidence_interval(level)
            findings.append(
                Finding(
                    estimand=estimand,
                    estimate=part.value,
                    ci=ConfidenceInterval(low=low, high=high, confidence_level=level),
                    decision=Decision.ESTIMATED,
                    method=METHOD,
                    **shared,
                )
            )
            continue
        # The test of the conditional disparity at the group's own mix: one law for one question.
        found = one.tested
        low, high = found.confidence_interval(level)
        p = found.p_value
        findings.append(
            Finding(
                estimand=estimand,
                estimate=found.estimate,
                ci=ConfidenceInterval(
                    low=min(low, found.estimate),
                    high=max(high, found.estimate),
                    confidence_level=level,
                ),
                statistic=found.statistic if np.isfinite(found.statistic) else None,
                p_value=p,
                p_value_raw=p,
                decision=Decision.DETECTED if p <= alpha else Decision.NOT_DETECTED,
                method=found.method,
                **shared,
            )
        )
    return findings


def _written(name: str, split: Decomposition, level: float) -> dict[str, Any]:
    def part(one: Part) -> dict[str, float]:
        low, high = one.confidence_interval(level)
        return {"value": one.value, "se": one.se, "low": low, "high": high}

    ratios = (split.ratio_explained, split.ratio_unexplained)
    return {
        "group": name,
        "raw": part(split.raw),
        "explained": part(split.explained),
        "unexplained": part(split.unexplained),
        "outside_group": part(split.outside_group),
        "outside_comparator": part(split.outside_comparator),
        "by_factor": [{"factor": f} | part(one) for f, one in split.by_factor.items()],
        "without": {f: part(one) for f, one in split.without.items()},
        "group_covered": split.group_covered,
        "comparator_covered": split.comparator_covered,
        "ratio_explained": float(ratios[0]) if np.isfinite(ratios[0]) else None,
        "ratio_unexplained": float(ratios[1]) if np.isfinite(ratios[1]) else None,
    }
