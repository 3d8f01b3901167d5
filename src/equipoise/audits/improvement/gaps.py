"""Between whom a gap must shrink, by how much, and what the requirement is called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from equipoise._checks import check_number, nearest, quoted
from equipoise._typing import GapRule
from equipoise.audits.improvement.report import Criterion
from equipoise.audits.improvement.rows import DecisionRows, utility_name, utility_words
from equipoise.audits.improvement.trial import Setting
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.results.finding import Note
from equipoise.stats.improvement.test import Gap

__all__ = [
    "AskedGaps",
    "check_groups",
    "gaps_between",
    "group_called",
    "held_note",
    "known_higher",
    "margins_of_gaps",
    "named_criteria",
    "pooled_gaps",
    "references_of",
]

HELD = 0.01
"""By how much a gap that need not shrink may grow, where nothing is said."""


def check_groups(rows: DecisionRows) -> None:
    """Refuse an attribute of which the table has one group."""
    for block in rows.blocks:
        if len(block) < 2:
            raise InvalidParameterError(
                f"a gap needs at least two groups; the table has only {rows.names[block[0]]!r}."
            )


def group_called(name: str, names: Sequence[str]) -> str:
    """Return the group of that name, written in full or by its value alone."""
    matches = [known for known in names if name in (known, known.partition("=")[2])]
    if len(matches) != 1:
        raise InvalidParameterError(
            f"there is no group {name!r}.{nearest(name, names)} Groups: {quoted(names)}."
        )
    return matches[0]


def _groups_called(
    name: str, rows: DecisionRows, given: str | Mapping[str, str] | None
) -> tuple[int, ...]:
    """Return the groups that an option names, one or one for each attribute."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        return (rows.names.index(group_called(str(given), rows.names)),)
    found = []
    for attribute, value in given.items():
        known = {part.name: part.groups for part in rows.separate}
        if attribute not in known:
            raise InvalidParameterError(
                f"`{name}` by attribute needs attributes that are judged separately"
                f' (attributes="separately"); got {attribute!r}.{nearest(str(attribute), known)}'
                f" Attributes: {quoted(known) or 'none'}."
            )
        mine = [rows.names[g] for g in known[attribute]]
        found.append(rows.names.index(group_called(str(value), mine)))
    return tuple(found)


def references_of(
    rows: DecisionRows, reference: str | Mapping[str, str] | None, gap: GapRule
) -> tuple[int, ...]:
    """Return the groups that others are compared with."""
    found = _groups_called("reference", rows, reference)
    bare = [block for block in rows.blocks if not set(block) & set(found)]
    if gap == "each" and bare:
        whose = [part.name for part in rows.separate if part.groups in bare]
        raise InvalidParameterError(
            'gap="each" compares every group with a `reference`; name one'
            + (f" for each attribute; {quoted(whose)} has none." if whose else ".")
        )
    return found


def gaps_between(
    rows: DecisionRows,
    criteria: Sequence[int],
    *,
    indices: Sequence[int],
    gap: GapRule,
    references: Sequence[int],
) -> tuple[Gap, ...]:
    """Return all gaps that are asked about.

    Parameters
    ----------
    rows : DecisionRows
        With the groups, of one attribute or of several.
    criteria : sequence of int
        Numbers of the fairness metrics.
    indices : sequence of int
        Those that are one number for everyone.
    gap : {"worst", "each"}
        Whether the largest gap counts, or that of each group to its reference.
    references : sequence of int
        Groups that others are compared with.

    Returns
    -------
    tuple of Gap
    """
    found = []
    for c in criteria:
        if c in indices:
            found.append(Gap(criterion=c, groups=rows.blocks[0]))
            continue
        for block in rows.blocks:
            base = next((g for g in references if g in block), None)
            if gap == "each" and base is not None:
                found += [Gap(criterion=c, groups=(g, base)) for g in block if g != base]
            else:
                found.append(Gap(criterion=c, groups=block, reference=base))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedGaps:
    """Gaps, and what is asked of each.

    Parameters
    ----------
    gaps : tuple of Gap
        Which.
    reductions, tolerances : float or list of float
        Relative reduction that is required, amount that is tolerated; for all or for each.
    """

    gaps: tuple[Gap, ...]
    reductions: float | list[float]
    tolerances: float | list[float]


def margins_of_gaps(
    rows: DecisionRows,
    metrics: Sequence[str],
    gaps: Sequence[Gap],
    reduction: float | Mapping[str, float],
    tolerance: float | Mapping[str, float],
) -> AskedGaps:
    """Return what is asked of each gap: by metric, attribute or group.

    Attributes and groups that `reduction` leaves out, where it names some, need not improve; their
    gaps are held.
    """
    named = {
        name: _by_key(name, given, rows, metrics, gaps)
        for name, given in (("delta_fairness", reduction), ("fairness_tolerance", tolerance))
        if isinstance(given, Mapping)
    }
    if not named:
        return AskedGaps(
            gaps=tuple(gaps),
            reductions=check_number("delta_fairness", reduction),
            tolerances=check_number("fairness_tolerance", tolerance),
        )
    criteria = {metrics[gap.criterion] for gap in gaps}
    # Metrics that are left out must shrink all the same: they were asked for one by one.
    picked = isinstance(reduction, Mapping) and not set(reduction) <= criteria
    reductions, tolerances, found = [], [], []
    for k, gap in enumerate(gaps):
        d, m = (
            named[name][k] if name in named else given
            for name, given in (("delta_fairness", reduction), ("fairness_tolerance", tolerance))
        )
        held = picked and d is None
        if m is None or (held and not m and "fairness_tolerance" not in named):
            m = HELD if held else 0.0
        reductions.append(check_number("delta_fairness", 0.0 if d is None else d))
        tolerances.append(check_number("fairness_tolerance", m))
        found.append(replace(gap, held=held))
    if all(gap.held for gap in found):
        raise InvalidParameterError("`delta_fairness` names no gap that must shrink.")
    return AskedGaps(gaps=tuple(found), reductions=reductions, tolerances=tolerances)


def _by_key(
    name: str,
    given: Mapping[str, float],
    rows: DecisionRows,
    metrics: Sequence[str],
    gaps: Sequence[Gap],
) -> list[float | None]:
    """Return what a mapping says of each gap: of its group, else its attribute, else its metric."""
    keys = [_keys(rows, metrics, gap) for gap in gaps]
    known = list(dict.fromkeys(key for mine in keys for key in mine))
    for key in given:
        if key not in known:
            raise InvalidParameterError(
                f"`{name}` names {key!r}, which is not asked of the gap."
                f"{nearest(str(key), known)} Known: {quoted(known)}."
            )
    return [next((given[key] for key in mine if key in given), None) for mine in keys]


def _keys(rows: DecisionRows, metrics: Sequence[str], gap: Gap) -> list[str]:
    """Return what a gap may be called, the narrowest name first."""
    keys = []
    if len(gap.groups) == 2 and gap.reference is None and len(rows.names) > 2:
        name = rows.names[gap.groups[0]]
        keys += [name, name.partition("=")[2]]
    keys += [part.name for part in rows.separate if gap.groups[0] in part.groups]
    return [*keys, metrics[gap.criterion]]


def known_higher(
    rows: DecisionRows, gaps: Sequence[Gap], given: str | Mapping[str, str] | None
) -> tuple[int, ...]:
    """Return the groups that are known to have the higher metric of two."""
    if given is None:
        return ()
    pairs = [gap.groups for gap in gaps if len(gap.groups) == 2]
    if isinstance(given, Mapping):
        found = _groups_called("higher_group", rows, given)
    else:
        found = tuple(g for g, name in enumerate(rows.names) if name == given)
    if not found or any(not any(g in pair for pair in pairs) for g in found):
        raise InvalidParameterError(
            f"`higher_group` must be one of two groups, written as in the result; got"
            f" {given!r} among {quoted(rows.names)}."
        )
    return found


def pooled_gaps(setting: Setting, rows: DecisionRows, made_of: Sequence[Sequence[int]]) -> Setting:
    """Ask the same of rows in which some groups are one: of that, the most that was asked."""
    place = {g: k for k, old in enumerate(made_of) for g in old}
    margins = setting.margins
    if not isinstance(margins.accuracy, (int, float)):
        gains = margins.accuracy
        margins = replace(margins, accuracy=[max(gains[g] for g in old) for old in made_of])
    asked: dict[Gap, tuple[bool, float, float]] = {}
    gaps = setting.question.between
    each = [
        [float(values)] * len(gaps) if isinstance(values, (int, float)) else list(values)
        for values in (margins.fairness, margins.tolerance)
    ]
    for gap, d, m in zip(gaps, *(each if gaps else ([], [])), strict=True):
        if gap.reference is not None and len(made_of[place[gap.reference]]) > 1:
            raise GroupTooSmallError(
                f"the reference {setting.rows.names[gap.reference]!r} is too small and would be"
                " compared as one with others. Name another `reference`."
            )
        base = None if gap.reference is None else place[gap.reference]
        groups = tuple(dict.fromkeys(place[g] for g in gap.groups))
        if len(groups) < 2:
            continue
        new = Gap(criterion=gap.criterion, groups=groups, reference=base)
        held, most, least = asked.get(new, (True, d, m))
        asked[new] = (held and gap.held, max(most, d), min(least, m))
    if gaps:
        margins = replace(
            margins,
            fairness=[d for _, d, _ in asked.values()],
            tolerance=[m for _, _, m in asked.values()],
        )
    between = tuple(replace(gap, held=held) for gap, (held, _, _) in asked.items())
    higher = tuple(dict.fromkeys(place[g] for g in setting.higher if len(made_of[place[g]]) == 1))
    return replace(
        setting,
        rows=rows,
        margins=margins,
        higher=higher,
        question=replace(setting.question, between=between),
    )


def held_note(setting: Setting, groups: Sequence[int]) -> tuple[Note, ...]:
    """Say which gaps need not shrink."""
    criteria = [c for c in named_criteria(setting, groups) if c.kind == "held"]
    if not criteria:
        return ()
    between = setting.question_among(groups).between
    values = setting.margins_among(groups).tolerance
    each = [values] * len(between) if isinstance(values, float) else list(values)
    most = [m for m, gap in zip(each, between, strict=True) if gap.held]
    told = "; ".join(f"{c.words} ({m:g})" for c, m in zip(criteria, most, strict=True))
    return (
        Note(
            code="held-gaps",
            message="Gaps that need not shrink, but may not grow by more than the amount in"
            f" brackets: {told}.",
        ),
    )


def named_criteria(setting: Setting, groups: Sequence[int]) -> tuple[Criterion, ...]:
    """Requirements in the order of the tests: accuracy of the groups, then the gaps."""
    names = [setting.rows.names[g] for g in groups]
    metrics, question = setting.metrics, setting.question_among(groups)
    whose: list[tuple[str, tuple[int, ...]]] = (
        [("everyone", ())]
        if question.population
        else [(name, (g,)) for name, g in zip(names, groups, strict=True)]
    )
    found = [
        Criterion(
            metric=utility_name(metrics[0]),
            noun=utility_words(metrics[0]),
            group=name,
            kind="accuracy",
            members=members,
            scale="ratio" if 0 in setting.logs else "difference",
        )
        for name, members in whose
    ]
    gaps = question.gaps(len(groups))
    kinds: list[Literal["fairness", "floor"]] = ["fairness"]
    if setting.margins.floor is not None:
        kinds.append("floor")
    for kind in kinds:
        found += [
            Criterion(
                metric=utility_name(metrics[gap.criterion]),
                noun=utility_words(metrics[gap.criterion]),
                group=_between_whom(setting, gap, names),
                kind="held" if gap.held and kind == "fairness" else kind,
                members=tuple(groups[g] for g in gap.groups),
                scale="ratio" if gap.criterion in setting.logs else "difference",
                one_of_several=bool(question.between),
            )
            for gap in gaps
        ]
    return tuple(found)


def _between_whom(setting: Setting, gap: Gap, names: Sequence[str]) -> str:
    """Say between which groups a gap is taken."""
    if len(gap.groups) == 2:
        return " vs ".join(names[g] for g in gap.groups)
    first = setting.rows.names.index(names[gap.groups[0]])
    of = [part.name for part in setting.rows.separate if first in part.groups]
    whole = f"all groups of {of[0]}" if of else "all groups"
    return whole if gap.reference is None else f"{whole} vs {names[gap.reference]}"
