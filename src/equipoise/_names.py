"""The name of a group, which knows the columns and labels it is made of."""

import re
from collections.abc import Iterable
from typing import Self

__all__ = [
    "GroupName",
    "bin_label",
    "condition",
    "joined_labels",
    "label_order",
    "printable",
    "printable_json",
]

_BIN = re.compile(r"(?P<sign><|>=)?(?P<number>-?\d+(\.\d+)?(e[+-]\d+)?)( to <.*)?")

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""What moves a cursor, clears a screen or turns the order of letters, and what XML cannot hold."""

_FURTHER = re.compile(r'^"| & .*=', re.DOTALL)
"""What a label would share with a quoted one, or with the next condition."""


class GroupName(str):
    """A group written ``race=Black & sex=Female``, with its parts beside it.

    Parameters
    ----------
    parts : iterable of (str, str)
        Column and label of each condition.

    Examples
    --------
    >>> group = GroupName([("race", "Black"), ("sex", "Female")])
    >>> print(group, group.parts[1])
    race=Black & sex=Female ('sex', 'Female')

    A label that reads like further conditions is quoted: no two groups have one name.

    >>> print(GroupName([("race", "Black & sex=Female")]))
    race="Black & sex=Female"
    """

    __slots__ = ("parts",)

    parts: tuple[tuple[str, str], ...]

    def __new__(cls, parts: Iterable[tuple[str, str]]) -> Self:
        """Write the name, and keep the parts beside it."""
        pairs = tuple(parts)
        self = super().__new__(cls, " & ".join([condition(*pair) for pair in pairs]))
        self.parts = pairs
        return self

    def __getnewargs__(self) -> tuple[tuple[tuple[str, str], ...]]:  # type: ignore[override]
        return (self.parts,)


def condition(column: str, label: str) -> str:
    """Write ``race=Black``, so that no other conditions, joined by " & ", read the same."""
    if "=" in column or " & " in column or column.startswith(('"', "&")):
        column = _quoted(column)
    return f"{column}={_quoted(label) if _FURTHER.search(label) else label}"


def joined_labels(labels: Iterable[str]) -> str:
    """Write labels without their columns, so that no others read the same.

    Examples
    --------
    >>> print(joined_labels(["a", "b"]), "|", joined_labels(["a & b", "c"]))
    a & b | "a & b" & c
    """
    return " & ".join(_quoted(x) if " & " in x or x.startswith('"') else x for x in labels)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def bin_label(low: float | None, high: float | None) -> str:
    """Write the numbers from `low` to below `high` as a label; one of them may be open."""
    if high is None:
        return f">={low:g}"
    return f"<{high:g}" if low is None else f"{low:g} to <{high:g}"


def label_order(label: str) -> tuple[int, float, int, str]:
    """Return what a label is sorted by: numbers and bins by size, before other words.

    Examples
    --------
    >>> sorted([">=45", "25 to <45", "<25"], key=label_order)
    ['<25', '25 to <45', '>=45']
    >>> sorted(["10", "9", "other"], key=label_order)
    ['9', '10', 'other']
    """
    found = _BIN.fullmatch(label)
    if found is None:
        return 1, 0.0, 0, label
    side = {"<": -1, None: 0, ">=": 1}[found["sign"]]
    return 0, float(found["number"]), side, label


def printable(text: str) -> str:
    """Replace what would command a terminal, turn what follows around, or break XML.

    Examples
    --------
    >>> printable("a" + chr(27) + "[2J")
    'a�[2J'
    """
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def printable_json(text: str) -> str:
    r"""Write the same signs as escapes: they stand in strings only.

    Examples
    --------
    >>> print(printable_json('["' + chr(155) + '"]'))
    ["\u009b"]
    """
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
