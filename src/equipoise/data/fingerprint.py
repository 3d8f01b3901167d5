"""The identity of the files that an audit read."""

import glob
import hashlib
import os
from pathlib import Path
from typing import Any

__all__ = ["fingerprint", "sources"]


def fingerprint(path: str) -> list[dict[str, Any]]:
    """Return name, size and SHA-256 of every file behind a path, in order of name.

    Parameters
    ----------
    path : str
        A file, a folder of parquet files or a glob, as an audit accepts it.

    Returns
    -------
    list of dict
        With ``name``, ``bytes`` and ``sha256``.
    """
    return [_identity(file) for file in sources(path)]


def sources(path: str) -> list[Path]:
    """Return every file behind a path, in order of name; none where there is none."""
    # Unlike the methods of `Path`, these take a name that no file can have for one that none has.
    if os.path.isdir(path):  # noqa: PTH112
        return sorted(Path(path).rglob("*.parquet"))
    if os.path.exists(path):  # noqa: PTH110
        return [Path(path)]
    return [Path(name) for name in sorted(glob.glob(path, recursive=True))]  # noqa: PTH207


def _identity(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"name": file.name, "bytes": file.stat().st_size, "sha256": digest}
