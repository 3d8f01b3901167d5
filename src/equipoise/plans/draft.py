"""Draft a plan from a table: which column plays which part, with the reason beside it."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.data.profile import ColumnProfile
from equipoise.exceptions import DataError

__all__ = ["Draft", "draft", "draft_text"]

GROUP_WORDS = re.compile(
    r"race|(^|_)rac\d?|ethni|(^|_)sex|sex($|_)|gender|(^|_)age|age($|_)|religio|national|disab"
    r"|marital|(^|_)mar($|_)|veteran|pregnan|orient|colou?r|tribe|caste|language|region|group",
    re.IGNORECASE,
)
PREDICTED_WORDS = re.compile(
    r"pred|decision|decid|approv|select|hired|accept|admit|yhat|y_hat|flagged|high_risk|offer|grant",
    re.IGNORECASE,
)
OUTCOME_WORDS = re.compile(
    r"true|outcome|label|target|actual|repaid|default|recid|^y$|event|success|income|employ|died"
    r"|readmi|conver|response|class|voted|call",
    re.IGNORECASE,
)
SCORE_WORDS = re.compile(r"score|prob|risk|decile|rating|rank|percentile", re.IGNORECASE)
TREATMENT_WORDS = re.compile(r"treat|^arm$|assign|exposed|intervention", re.IGNORECASE)
EFFECT_WORDS = re.compile(r"uplift|effect|cate$|^tau|ite$", re.IGNORECASE)
IDENTIFIER_WORDS = re.compile(r"(^|_)(id|uuid|key|name|user|person|patient|customer)($|_)|id$|^id")
WEIGHT_WORDS = re.compile(r"weight|(^|_)wt", re.IGNORECASE)
COUNT_WORDS = re.compile(r"^(n|count|freq|frequency|n_rows|rows)$", re.IGNORECASE)
POSITIVE_WORDS = ("1", "true", "yes", "y", "t", "positive", "approved", "selected", "hired", "good")

MOST_GROUPS = 3
MOST_LEVELS = 20


@dataclass(slots=True, kw_only=True)
class Draft:
    """Guessed roles with their reasons.

    Parameters
    ----------
    roles : dict
        Arguments of `Audit`.
    reasons : dict
        Why each role was given.
    left : dict
        Columns without a role, and why.
    numbers : list of str
        Those among them that are numeric: possible features.
    """

    roles: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    numbers: list[str] = field(default_factory=list)

    def give(self, role: str, column: ColumnProfile, reason: str) -> None:
        """Give a role to a column."""
        self.roles[role] = column.name
        self.reasons[role] = reason


def draft(columns: Sequence[ColumnProfile]) -> Draft:
    """Guess the role of every column.

    Parameters
    ----------
    columns : sequence of ColumnProfile
        From `equipoise.data.profile.profile`.

    Returns
    -------
    Draft

    Raises
    ------
    DataError
        When no column can be a group, or none an outcome, a decision or a score.

    Examples
    --------
    Which column decides, and who is compared?

    >>> from equipoise.data.profile import profile
    >>> drafted = draft(profile({"sex": ["F", "M"] * 4, "approved": [0, 1, 1, 0] * 2}))
    >>> drafted.roles
    {'y_pred': 'approved', 'group': ['sex']}
    """
    plan = Draft()
    free = {column.name: column for column in columns}
    _identifiers(plan, free)
    rules: tuple[tuple[str, Callable[[ColumnProfile], bool], str], ...] = (
        ("weight", lambda c: c.kind == "number" and _named(WEIGHT_WORDS, c), "its name"),
        (
            "count",
            lambda c: c.whole and (c.low or 0) >= 0 and _named(COUNT_WORDS, c),
            "its name, and whole numbers: rows that stand for several",
        ),
        (
            "effect_pred",
            lambda c: c.kind == "number" and not c.binary and _named(EFFECT_WORDS, c),
            "its name, and numbers",
        ),
        (
            "treatment",
            lambda c: _zero_one(c) and _named(TREATMENT_WORDS, c),
            "its name, and two values 0 and 1",
        ),
        ("y_pred", lambda c: c.binary and _named(PREDICTED_WORDS, c), "its name, and two values"),
        (
            "y_score",
            lambda c: c.kind == "number" and c.distinct > 2 and _named(SCORE_WORDS, c),
            "its name, and numbers",
        ),
        ("y_true", lambda c: c.binary and _named(OUTCOME_WORDS, c), "its name, and two values"),
    )
    for role, fits, reason in rules:
        for column in list(free.values()):
            if role not in plan.roles and fits(column):
                plan.give(role, free.pop(column.name), f"{reason} ({_seen(column)})")
    _groups(plan, free)
    _remaining(plan, free)
    _labels(plan, columns)
    return plan


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
        "",
        "[data]",
        f"path = {json.dumps(path, ensure_ascii=False)}",
    ]
    for role, value in drafted.roles.items():
        reason = drafted.reasons.get(role)
        if reason:
            lines.append(f"# {_one_line(reason)}")
        lines.append(f"{role} = {_toml(value)}")
    if drafted.left:
        lines += ["", "# Columns without a role:"]
        lines += [f"#   {_one_line(name)}: {why}" for name, why in drafted.left.items()]
    return "\n".join(lines) + "\n\n" + (default_checks(drafted) if checks is None else checks)


def default_checks(drafted: Draft) -> str:
    """Write the questions that the roles allow, each with a line on what it asks."""
    have = set(drafted.roles)
    tables: list[tuple[str, dict[str, Any]]] = []
    if "y_pred" in have:
        tables += [
            (
                "How large is each subgroup's gap in selection rate, and is there any?",
                {"question": "disparity", "metric": "selection_rate"},
            ),
            (
                "Is every subgroup shown to be within 10 percentage points? The margin is yours.",
                {"question": "certify", "metric": "selection_rate", "margin": 0.1},
            ),
        ]
    if {"y_pred", "y_true"} <= have:
        tables += [
            (
                "Which subgroups have a higher false positive rate than everybody?",
                {"question": "flag", "metric": "fpr", "margin": 0.0},
            ),
            (
                "How unequal are the benefits of the decisions, within and between groups?",
                {"question": "inequality", "benefits": "speicher"},
            ),
        ]
    if "y_pred" not in have:
        metric = "mean_score" if "y_score" in have else "mean_outcome"
        tables.append(
            (
                "How large is each subgroup's gap, and is there any?",
                {"question": "disparity", "metric": metric},
            )
        )
    if {"y_score", "y_true"} <= have:
        # All pairs of groups are compared at every score: one column keeps that readable.
        options = {"question": "predictive_parity", "group": drafted.roles["group"][0]}
        if "cluster" in have:
            options["unit"] = "cluster"
        tables.append(("Does a score mean the same in every group?", options))
    if {"treatment", "effect_pred", "y_true"} <= have:
        tables.append(
            ("Are predicted effects equally accurate?", {"question": "treatment_effects"})
        )
    return "\n".join(
        f"# {words}\n[[check]]\n"
        + "".join(f"{key} = {_toml(value)}\n" for key, value in options.items())
        for words, options in tables
    )


def _identifiers(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    for column in list(free.values()):
        if column.distinct == 0:
            plan.left[column.name] = "empty"
        elif column.distinct == 1:
            plan.left[column.name] = "a single value"
        elif column.distinct == column.n > MOST_LEVELS and (
            column.kind == "text" or (column.whole and _named(IDENTIFIER_WORDS, column))
        ):
            plan.left[column.name] = "a different value in every row: an identifier"
        elif (
            "cluster" not in plan.roles
            and column.distinct > MOST_LEVELS
            and (column.whole or column.kind == "text")
            and _named(IDENTIFIER_WORDS, column)
        ):
            plan.give("cluster", column, f"its name, and values that repeat ({_seen(column)})")
        else:
            continue
        del free[column.name]


def _groups(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    def few(column: ColumnProfile) -> bool:
        return column.kind != "other" and 2 <= column.distinct <= MOST_LEVELS

    named = [c for c in free.values() if few(c) and _named(GROUP_WORDS, c)]
    chosen = named or [c for c in free.values() if few(c) and c.kind == "text"]
    if chosen:
        plan.roles["group"] = [c.name for c in chosen[:MOST_GROUPS]]
        why = "names that characterise people" if named else "text with few values"
        seen = "; ".join(f"{c.name}: {_seen(c)}" for c in chosen[:MOST_GROUPS])
        plan.reasons["group"] = f"{why} ({seen})"
    ages = [c for c in free.values() if c.kind == "number" and c.name.lower() == "age"]
    if ages and len(chosen) < MOST_GROUPS:
        plan.roles.setdefault("group", []).append(ages[0].name)
        plan.roles["bins"] = {ages[0].name: [25, 45]}
        plan.reasons["bins"] = "cut points for age: choose those that the law or your policy names"
        chosen = [*chosen[:MOST_GROUPS], ages[0]]
    if not chosen:
        raise DataError(
            "No column looks like a group: none has a name such as 'sex' or 'race', and none is"
            " text with 2 to 20 values. Write a plan by hand, with `group` under [data]."
        )
    for column in chosen[MOST_GROUPS:]:
        plan.left[column.name] = "could be a group too"
    for column in chosen:
        del free[column.name]


def _remaining(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    """Give the outcome, and failing all else the score, to what is left."""
    pairs = [c for c in free.values() if c.binary and (c.kind == "text" or _zero_one(c))]
    if "y_true" not in plan.roles and pairs:
        # Outcomes tend to be the last column of a table.
        last = free.pop(pairs[-1].name)
        plan.give("y_true", last, f"the last column with two values ({_seen(last)})")
    if not {"y_true", "y_pred", "y_score"} & set(plan.roles):
        numbers = [c for c in free.values() if c.kind == "number" and c.distinct > 2]
        if not numbers:
            raise DataError(
                "No column looks like an outcome, a decision or a score: none has two values, none"
                " is numeric. Write a plan by hand, with `y_true`, `y_pred` or `y_score`."
            )
        plan.give("y_score", free.pop(numbers[0].name), f"the first numbers ({_seen(numbers[0])})")
    for column in free.values():
        plan.left[column.name] = _seen(column)
        if column.kind == "number" and not column.missing:
            plan.numbers.append(column.name)


def _labels(plan: Draft, columns: Sequence[ColumnProfile]) -> None:
    """Say which label counts as 1, and what to do with missing values."""
    by_name = {column.name: column for column in columns}
    labels = [by_name[plan.roles[role]] for role in ("y_true", "y_pred") if role in plan.roles]
    texts = [c for c in labels if c.kind == "text" or not _zero_one(c)]
    if texts:
        known = {str(level).lower(): level for c in texts for level in c.levels}
        positive = next(
            (known[word] for word in POSITIVE_WORDS if word in known), texts[0].levels[-1]
        )
        plan.roles["positive"] = positive
        plan.reasons["positive"] = (
            f"the label that counts as 1, of {', '.join(map(str, texts[0].levels))}: check this"
        )
    used = {name for role, name in plan.roles.items() if isinstance(name, str)}
    used |= set(plan.roles.get("group", ()))
    gaps = [c for c in columns if c.name in used and c.missing]
    if gaps:
        plan.roles["missing"] = "drop"
        counts = ", ".join(f"{c.name} {c.missing}" for c in gaps)
        plan.reasons["missing"] = f"missing values in the rows looked at: {counts}"


def _named(words: re.Pattern[str], column: ColumnProfile) -> bool:
    return words.search(column.name) is not None


def _zero_one(column: ColumnProfile) -> bool:
    return column.kind == "boolean" or (
        column.kind == "number" and column.binary and (column.low, column.high) == (0.0, 1.0)
    )


def _seen(column: ColumnProfile) -> str:
    if column.levels and len(column.levels) <= 6:
        return ", ".join(_one_line(str(level))[:30] for level in column.levels)
    if column.kind == "number":
        return f"{column.distinct} values from {column.low:g} to {column.high:g}"
    return f"{column.distinct} values"


def _one_line(text: str) -> str:
    """Text from the data as part of a comment: control characters would end it or break TOML."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(str(k))} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        # A JSON string is a TOML basic string, except that TOML wants U+007F escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
