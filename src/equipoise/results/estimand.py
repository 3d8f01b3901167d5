"""What a finding estimates."""

from typing import Literal, Self, TypeAlias

__all__ = ["Estimand", "EstimandKind"]

EstimandKind: TypeAlias = Literal[
    "gap",
    "gain",
    "gap reduction",
    "change",
    "gap change",
    "gap growth",
    "raw gap",
    "gap among alike",
    "part of the gap",
    "bias",
    "outcome",
    "index",
    "contribution",
    "contrast",
    "order",
    "segment",
    "value",
    "effect",
    "predicted",
    "error",
    "correction",
    "remaining",
    "slope",
    "slope difference",
    "ranking",
    "ranking difference",
]

_NAMED_BY_METRIC = {
    "order",
    "segment",
    *("bias", "outcome", "index", "contribution", "contrast", "value"),
    *("effect", "predicted", "error", "correction", "remaining", "slope", "slope difference"),
    *("ranking", "ranking difference"),
}
"""Kinds whose metric is already what a person says: nothing is added to it."""


class Estimand(str):
    """What a finding estimates: reads as its short name, and knows its parts.

    Parameters
    ----------
    metric : str
        Short name of the quantity, for instance ``"fpr"``.
    kind : str
        What is said of it: a gap between group and reference, a gain over the status quo, ...
    scale : {"difference", "ratio"}, optional
        How two values are compared.
    noun : str, optional
        The quantity as a person says it, for instance ``"false positive rate"``.

    Examples
    --------
    >>> gap = Estimand("fpr", "gap", scale="difference", noun="false positive rate")
    >>> print(gap, "|", gap.words)
    fpr difference | false positive rate difference
    """

    __slots__ = ("kind", "metric", "noun", "scale")

    metric: str
    kind: EstimandKind
    scale: str | None
    noun: str

    def __new__(
        cls,
        metric: str,
        kind: EstimandKind = "value",
        *,
        scale: str | None = None,
        noun: str | None = None,
    ) -> Self:
        """Write the short name, and keep the parts beside it."""
        self = super().__new__(cls, f"{metric} {_suffix(kind, scale)}".strip())
        self.metric, self.kind, self.scale, self.noun = metric, kind, scale, noun or metric
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str, str], dict[str, str | None]]:
        return (self.metric, self.kind), {"scale": self.scale, "noun": self.noun}

    @property
    def words(self) -> str:
        """The estimand as a person says it."""
        return f"{self.noun} {_suffix(self.kind, self.scale)}".strip()


def _suffix(kind: EstimandKind, scale: str | None) -> str:
    if kind == "gap":
        return scale or ""
    return "" if kind in _NAMED_BY_METRIC else kind
