"""Gaps beside those of an earlier result on another sample, of which only the findings are kept."""

from dataclasses import dataclass

import numpy as np

from equipoise.results.finding import Finding
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.growth import growth_between
from equipoise.stats.multiplicity import adjusted_p_values

__all__ = ["GapPair", "gaps_since"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GapPair:
    """A gap in two independent samples.

    Parameters
    ----------
    group : str
        Whose gap.
    old, new : float
        The estimates.
    p_value : float
        Of "it did not grow in size", adjusted by Holm among the groups.
    """

    group: str
    old: float
    new: float
    p_value: float


def gaps_since(before: AuditResult, now: AuditResult) -> tuple[GapPair, ...]:
    """Compare the gaps of two results on independent samples.

    Parameters
    ----------
    before, now : AuditResult
        Results of the same question.

    Returns
    -------
    tuple of GapPair
        Groups with a gap and a two-sided interval of the same level in both, on the difference
        scale; others cannot be compared and are left out.
    """
    known = {(one.group, one.estimand): _numbers(one) for one in before.findings}
    names, pairs, levels = [], [], []
    for finding in now.findings:
        new, old = _numbers(finding), known.get((finding.group, finding.estimand))
        if new is not None and old is not None and new[0] == old[0]:
            names.append(finding.group)
            pairs.append((old[1:], new[1:]))
            levels.append(new[0])
    if not pairs:
        return ()
    table = np.array(pairs)
    old_gaps, new_gaps = table[:, 0].T, table[:, 1].T
    growth = growth_between(old_gaps, new_gaps, confidence_level=levels[0])
    adjusted = adjusted_p_values(growth.p_grown(0.0), "holm")
    return tuple(
        GapPair(group=name, old=float(a), new=float(b), p_value=float(p))
        for name, a, b, p in zip(names, old_gaps[0], new_gaps[0], adjusted, strict=True)
    )


def _numbers(finding: Finding) -> tuple[float, float, float, float] | None:
    """Return level, estimate and ends of a gap; None for anything else."""
    ci, gap = finding.ci, finding.estimate
    if finding.estimand.kind != "gap" or finding.estimand.scale != "difference":
        return None
    if gap is None or ci is None or ci.low is None or ci.high is None:
        return None
    if not ci.low < gap < ci.high:
        return None
    return ci.confidence_level, gap, ci.low, ci.high
