"""What grew since an earlier run of a plan on another sample."""

from equipoise.audits.disparity.earlier import GapPair, gaps_since
from equipoise.exceptions import InvalidParameterError
from equipoise.plans.dossier import Dossier
from equipoise.results.formats import number, p_value
from equipoise.results.result import AuditResult
from equipoise.results.sentences import known_group_words, points
from equipoise.results.wording import gap_size, in_points

__all__ = ["growth_since", "growth_words"]


def growth_since(now: Dossier, before: Dossier) -> dict[str, tuple[GapPair, ...]]:
    """Return the gaps that are shown to have grown since an earlier run on another sample.

    Checks are matched by id and options.

    Parameters
    ----------
    now, before : Dossier
        The two runs.

    Returns
    -------
    dict of str to tuple of GapPair
        By check; those in which nothing is shown to have grown are left out.

    Raises
    ------
    InvalidParameterError
        When both runs read the same data, or have no gap in common.
    """
    if _digests(now) and _digests(now) == _digests(before):
        raise InvalidParameterError(
            "`--baseline` must come from another sample; these results were computed from the same"
            " data. To compare two models on the same rows, ask the question 'compare'."
        )
    earlier = {check.id: check for check in before.checks}
    compared = {
        check.id: (gaps_since(earlier[check.id].result, check.result), check.result.alpha)
        for check in now.checks
        if check.id in earlier
        and (earlier[check.id].question, earlier[check.id].options)
        == (check.question, check.options)
    }
    if not any(pairs for pairs, _ in compared.values()):
        raise InvalidParameterError(
            "`--baseline` has no gap in common with this plan: checks are matched by id and"
            " options, and compared where they have gaps with intervals on the difference scale."
        )
    grown = {
        name: tuple(pair for pair in pairs if pair.p_value <= alpha)
        for name, (pairs, alpha) in compared.items()
    }
    return {name: pairs for name, pairs in grown.items() if pairs}


def growth_words(grown: dict[str, tuple[GapPair, ...]], now: Dossier) -> str:
    """Say which gaps grew, a line for each."""
    if not grown:
        return "Since the baseline: no gap is shown to have grown.\n"
    return "".join(
        f"Since the baseline, {check.id}: the gap of {known_group_words(pair.group, check.result)}"
        f" grew from {_sizes(pair, check.result)} (p {p_value(pair.p_value)}).\n"
        for check in now.checks
        for pair in grown.get(check.id, ())
    )


def _sizes(pair: GapPair, result: AuditResult) -> str:
    old = points(pair.old) if in_points(result) else number(pair.old)
    return f"{old} to {gap_size(pair.new, result)}"


def _digests(dossier: Dossier) -> list[str]:
    return sorted(str(file.get("sha256")) for file in dossier.data.get("files", []))
