"""Argument checks that say what must hold, what was found, and what to do."""

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np

from equipoise._typing import FloatArray, Rng
from equipoise.exceptions import DataError, InvalidParameterError

__all__ = [
    "check_columns",
    "check_depth",
    "check_finite",
    "check_flag",
    "check_fraction",
    "check_integer",
    "check_number",
    "check_option",
    "check_rng",
    "nearest",
    "not_distinct",
    "quoted",
    "shown",
]


LARGEST = 1e45
"""Numbers beyond this are refused: engines take sixth powers, which would not be finite."""

SMALLEST = 1e-45
"""Typical sizes below this are refused: their squares vanish."""

LONGEST_SHOWN = 300
"""Characters of a name or a path that a message shows whole."""


def quoted(names: Iterable[object]) -> str:
    """Write names as ``'a', 'b', 'c'``."""
    return ", ".join(repr(str(name)) for name in names)


def shown(value: object) -> str:
    """Write a name or a path as ``'a'``; a long one loses its middle."""
    text = repr(str(value))
    return text if len(text) <= LONGEST_SHOWN else f"{text[:90]} ... {text[-90:]}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest known name, or an empty string."""
    folded = {one.casefold(): one for one in known}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return f" Did you mean {folded[close[0]]!r}?" if close else ""


def check_option(name: str, value: object, alias: Any) -> None:
    """Raise unless `value` is one of the words of the `Literal` alias."""
    words = get_args(alias)
    if value not in words:
        hint = nearest(value, words) if isinstance(value, str) else ""
        raise InvalidParameterError(
            f"`{name}` must be one of {quoted(words)}; got {value!r}.{hint}"
        )


def check_number(
    name: str, value: object, *, low: float = -LARGEST, high: float = LARGEST
) -> float:
    """Return `value` as a float; raise unless it is finite and within [low, high]."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidParameterError(f"`{name}` must be a number; got {value!r}.")
    number = float(value)
    if not (math.isfinite(number) and low <= number <= high):
        raise InvalidParameterError(
            f"`{name}` must be a finite number in [{low:g}, {high:g}]; got {value!r}."
        )
    return number


def check_fraction(name: str, value: object) -> float:
    """Return `value` as a float; raise unless it lies strictly between 0 and 1."""
    number = check_number(name, value)
    if not 0.0 < number < 1.0:
        hint = f" Pass {number / 100:g} for {number:g}%." if 1.0 < number < 100.0 else ""
        raise InvalidParameterError(f"`{name}` must be in (0, 1); got {value!r}.{hint}")
    return number


def check_integer(name: str, value: object, *, low: int = 0) -> int:
    """Return `value` as an int; raise unless it is a whole number of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise InvalidParameterError(
            f"`{name}` must be a whole number of at least {low}; got {value!r}."
        )
    return int(value)


def check_depth(value: object) -> int | None:
    """Return how many columns are combined at most; None for all."""
    return None if value is None else check_integer("depth", value, low=1)


def check_flag(name: str, value: object) -> bool:
    """Return `value`; raise unless it is true or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidParameterError(f"`{name}` must be true or false; got {value!r}.")
    return bool(value)


def check_columns(name: str, value: object) -> tuple[str, ...]:
    """Return one column or several as a tuple of names; raise unless all are distinct text."""
    columns = (value,) if isinstance(value, str) else value
    if not isinstance(columns, Sequence) or not all(isinstance(one, str) for one in columns):
        raise InvalidParameterError(f"`{name}` must name columns; got {value!r}.")
    if len(set(columns)) < len(columns):
        raise InvalidParameterError(f"`{name}` names a column twice: {quoted(columns)}.")
    return tuple(columns)


def not_distinct(names: Iterable[str]) -> DataError:
    """Return the error of columns whose names cannot be told apart."""
    return DataError(
        f"Column names must be distinct, in lower case too; {quoted(names)} are not. Rename them."
    )


def check_finite(name: str, values: object, *, ndim: int | None = None) -> FloatArray:
    """Return `values` as a float array; raise on NaN, infinity or the wrong number of axes."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"`{name}` must be numeric; got {type(values).__name__}."
        ) from error
    if ndim is not None and array.ndim != ndim:
        raise InvalidParameterError(f"`{name}` must have {ndim} axes; got shape {array.shape}.")
    bad = int(np.size(array) - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise InvalidParameterError(
            f"`{name}` must be finite; {bad} of {array.size} values are NaN or infinite."
        )
    return array


def check_rng(rng: Rng) -> np.random.Generator:
    """Return a generator: `rng` itself, or one seeded by it; `None` means seed 0.

    A fixed default seed keeps an audit reproducible when the caller says nothing.
    """
    if rng is None:
        return np.random.default_rng(0)
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(check_integer("rng", rng))
