"""The identity of the files that an audit read."""

import glob
import hashlib
from pathlib import Path
from typing import Any

__all__ = ["fingerprint"]


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
    place = Path(path)
    if place.is_dir():
        files = sorted(place.rglob("*.parquet"))
    elif place.exists():
        files = [place]
    else:
        files = [Path(name) for name in sorted(glob.glob(path, recursive=True))]  # noqa: PTH207
    return [_identity(file) for file in files]


def _identity(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"name": file.name, "bytes": file.stat().st_size, "sha256": digest}
