"""Values and names as parts of a TOML file."""

import json
from typing import Any

__all__ = ["one_line", "toml_value"]


def one_line(text: str) -> str:
    """Text from the data as part of a comment: control characters would end it or break TOML."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def toml_value(value: Any) -> str:
    """Write a value of Python as one of TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return (
            "{ "
            + ", ".join(f"{toml_value(str(k))} = {toml_value(v)}" for k, v in value.items())
            + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, str):
        # A JSON string is a TOML basic string, except that TOML wants U+007F escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
