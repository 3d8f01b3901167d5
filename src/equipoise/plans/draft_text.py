"""Write a drafted plan: its roles with their reasons, what is left open, and what is asked."""

import json
import textwrap
from collections.abc import Sequence
from typing import Any

from equipoise.plans.draft import NO_WORDS, Draft
from equipoise.plans.toml import one_line, toml_value

__all__ = ["draft_text", "odds_text", "remarks", "unread_text"]

MOST_LISTED = 20
"""Columns of numbers without a role that a plan lists one by one."""


def draft_text(drafted: Draft, *, path: str, checks: str | None = None) -> str:
    """Write a draft as a commented plan.

    Parameters
    ----------
    drafted : Draft
        Roles and reasons.
    path : str
        Of the data, as the plan will name it.
    checks : str, optional
        The ``[[check]]`` tables; by default those that the roles allow.

    Returns
    -------
    str
        TOML that runs as it stands.
    """
    lines = [
        "# A plan for `equipoise audit`. The roles below are guesses: read the reasons, correct",
        "# what is wrong, and choose margins that you can defend before you look at the results.",
        *(f"# {line}" for line in textwrap.wrap(drafted.warning, 86)),
        "",
        "[data]",
        f"path = {json.dumps(path, ensure_ascii=False)}",
        *_own_names(drafted.names),
    ]
    for role, value in drafted.roles.items():
        reason = drafted.reasons.get(role)
        if reason:
            lines.append(f"# {one_line(reason)}")
        lines.append(f"{role} = {toml_value(value)}")
    if "cluster" not in drafted.roles:
        lines += [
            "# If people have several rows, name the column that tells people apart.",
            '# cluster = "person"',
        ]
    if "favourable" not in drafted.roles:
        lines += [
            "# Which decision (or outcome) is good for the person: 1, 0 or a label. No column name",
            "# says it; without it the report cannot say who is worse off.",
            "# favourable = 1",
        ]
    lines += _said(drafted)
    folded = drafted.numbers[MOST_LISTED:]
    apart = {*folded, *drafted.undecided[1:]}
    listed = {name: why for name, why in drafted.left.items() if name not in apart}
    if listed:
        lines += ["", "# Columns without a role:"]
        lines += [f"#   {one_line(name)}: {why}" for name, why in listed.items()]
    if folded:
        ends = " to ".join(map(one_line, (folded[0], folded[-1])))
        lines.append(f"#   and {len(folded)} more of numbers, {ends}")
    for remark in remarks(drafted):
        lines += ["", *(f"# {line}" for line in textwrap.wrap(remark, 86))]
    return "\n".join(lines) + "\n\n" + (default_checks(drafted) if checks is None else checks)


def remarks(drafted: Draft) -> list[str]:
    """Say what a person must add to a draft, or should know of what it asks.

    Parameters
    ----------
    drafted : Draft
        Roles and reasons.

    Returns
    -------
    list of str
    """
    said = []
    if drafted.undecided:
        _, name = drafted.undecided
        said.append(f"`{one_line(name)}` is {drafted.left[name]}.")
    if drafted.at_odds:
        said.append(odds_text(drafted))
    if not drafted.roles.get("group"):
        said.append('No column looks like a group. Name one under [data], such as group = ["sex"].')
    if not {"y_pred", "y_score"} & {*drafted.roles, *drafted.undecided[:1]}:
        said.append(
            "There is no model output here: no model is audited. The questions of this plan are"
            " about outcomes. To audit a model, add the column of its decisions or scores."
        )
    return said


def odds_text(drafted: Draft) -> str:
    """Say why decisions and outcomes, or scores, of a draft are not compared, and what to do.

    Parameters
    ----------
    drafted : Draft
        Whose roles are at odds.

    Returns
    -------
    str
    """
    decision, other = one_line(drafted.roles["y_pred"]), one_line(drafted.at_odds)
    score = drafted.at_odds == drafted.roles.get("y_score")
    asked = "the mean score is" if score else "errors are"
    high = f"a high `{other}`" if score else f"a 1 in `{other}`"
    return (
        f"Of a 1 in `{decision}` and {high} one reads as good for the person and one as bad, so"
        f" {asked} not asked about: the two are taken to go together. Add a column with the"
        f" opposite of `{other}`, and name it as `{'y_score' if score else 'y_true'}`; only where"
        f" decisions are meant for people with {high}, as help is, ask as it stands."
    )


def unread_text(*, path: str, reason: str) -> str:
    """Write a plan for a table that cannot be read yet: the reason, and what is to be filled in.

    Parameters
    ----------
    path : str
        Of the data, as the plan will name it.
    reason : str
        Why it cannot be read, and what to do.

    Returns
    -------
    str
    """
    return draft_text(Draft(warning=reason), path=path)


def _own_names(names: Sequence[str]) -> list[str]:
    """Write made-up names, some to a line, so that a person can put the right ones there."""
    if not names:
        return []
    listed = textwrap.wrap(", ".join(map(toml_value, names)), 80)
    return [
        "# The file has no names: put those of its description here.",
        "names = [",
        *(f"  {line}" for line in listed),
        "]",
    ]


def _said(drafted: Draft) -> list[str]:
    """Write the words of the report: those that names of columns give, or how to give some."""
    if not drafted.words:
        return [
            "",
            "# Sentences name columns and values; to have them say it in words:",
            "# [words]",
            '# people = "applicants"',
            '# selected = "invited to an interview"',
        ]
    lines = ["", "[words]"]
    # What counts as 1 may be the label that says no: the good decision, for a template.
    no = str(drafted.roles.get("positive", 1)).strip().lower() in NO_WORDS
    for role, said in drafted.words.items():
        with_it, without = said[::-1] if no else said
        names = ("selected", "not_selected") if role == "y_pred" else ("outcome", "no_outcome")
        lines.append(f"# read from `{one_line(drafted.roles[role])}`: check this")
        lines += [f"{names[0]} = {toml_value(with_it)}", f"{names[1]} = {toml_value(without)}"]
    return lines


def default_checks(drafted: Draft) -> str:
    """Write the questions that the roles allow, each with a line on what it asks.

    Groups of single columns come first, with intervals and p-values that hold for all of them
    together; intersections are a check of their own, with false flags controlled.
    """
    tables = [*_gap_checks(drafted), *_further_checks(drafted)]
    text = "\n".join(
        "".join(f"# {line}\n" for line in textwrap.wrap(words, 98))
        + "[[check]]\n"
        + "".join(f"{key} = {toml_value(value)}\n" for key, value in options.items())
        for words, options in tables
    )
    if tables and drafted.roles.get("group"):
        return text
    role = drafted.undecided[0] if drafted.undecided else ""
    metric = {"y_pred": "selection_rate", "y_true": "outcome_rate"}.get(role, "mean_outcome")
    said = text or f'# What is asked?\n[[check]]\nquestion = "disparity"\nmetric = "{metric}"\n'
    lines = [f"# {line}".rstrip() for line in said.splitlines()]
    first = "# Complete the roles above, then take the first sign of these lines away:"
    return "\n".join([first, *lines, ""])


def _gap_checks(drafted: Draft) -> list[tuple[str, dict[str, Any]]]:
    metrics = _metrics(drafted)
    several = len(drafted.roles.get("group", ())) > 1
    single = {"depth": 1} if several else {}
    tables: list[tuple[str, dict[str, Any]]] = []
    for metric, words in metrics:
        asked = (
            f"How large is each group's gap in {words}, and is there any? Intervals hold together."
        )
        options = {"question": "disparity", "metric": metric, "simultaneous": True}
        tables.append((asked, options | single))
    for metric, words in metrics[:1]:
        who = "groups and intersections" if several else "groups"
        name = {"id": f"intersections-{metric.replace('_', '-')}"} if several else {}
        options = {"question": "flag", "metric": metric, "alternative": "two-sided"}
        tables.append(
            (f"Which {who} differ in {words}? False flags are controlled.", name | options)
        )
    if "y_pred" in drafted.roles:
        # Ten points would be much of a rare decision and little of a common one.
        asked = (
            "Is every group's rate shown to be between 0.8 and 1.25 times that of everybody? The"
            " margin is yours."
        )
        if _bad_ones(drafted):
            asked += (
                " These are rates of the bad decision; the four-fifths rule looks at the good one:"
                " `--template four-fifths`."
            )
        options = {"question": "certify", "metric": "selection_rate"}
        tables.append((asked, options | {"scale": "ratio", "margin": 0.2} | single))
    return tables


def _bad_ones(drafted: Draft) -> bool:
    """Whether what counts as 1 in the decision is bad for the person."""
    good, positive = drafted.roles.get("favourable"), drafted.roles.get("positive", 1)
    return good is not None and good not in (
        {positive, 1} if isinstance(positive, str) else {positive}
    )


def _further_checks(drafted: Draft) -> list[tuple[str, dict[str, Any]]]:
    have = set(drafted.roles)
    tables: list[tuple[str, dict[str, Any]]] = []
    if {"y_pred", "y_true"} <= have and not (drafted.amount or drafted.at_odds):
        asked = "How unequal are the benefits of the decisions, within and between groups?"
        tables.append((asked, {"question": "inequality", "benefits": "speicher"}))
    if {"y_score", "y_true", "group"} <= have:
        # All pairs of groups are compared at every score: one column keeps that readable.
        options = {"question": "predictive_parity", "group": drafted.roles["group"][0]}
        if "cluster" in have:
            options["unit"] = "cluster"
        tables.append(("Does a score mean the same in every group?", options))
    if {"treatment", "effect_pred", "y_true"} <= have:
        asked = (
            "Are predicted effects equally accurate? What is predicted is a difference of outcomes"
            " (0.1 for 10 points more) or their ratio (1.2 for a fifth more): check which."
        )
        options = {"question": "treatment_effects", "measure": drafted.measure}
        tables.append((asked, options))
    return tables


def _metrics(drafted: Draft) -> list[tuple[str, str]]:
    """Return the metrics that the roles allow, with their words."""
    have = set(drafted.roles)
    if "y_pred" in have:
        both = "y_true" in have and not drafted.amount and not drafted.at_odds
        errors = [("fpr", "false positive rates"), ("fnr", "false negative rates")]
        alone = "y_score" in have and "y_true" not in have and not drafted.at_odds
        unasked = [("mean_score", "mean scores")] if alone else []
        return [("selection_rate", "selection rates"), *(errors if both else unasked)]
    metrics = []
    if "y_true" in have:
        metrics.append(
            ("mean_outcome", "mean outcomes")
            if drafted.amount
            else ("outcome_rate", "outcome rates")
        )
    if "y_score" in have:
        metrics.append(("mean_score", "mean scores"))
    return metrics
