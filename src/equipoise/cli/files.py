"""Output files: checked before the work, written whole or not at all."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from equipoise.exceptions import InvalidParameterError

__all__ = ["check_writable", "write_all"]


def check_writable(*files: Path | None) -> None:
    """Raise before any work is done when a file could not be written afterwards."""
    for file in files:
        if file is None:
            continue
        folder = file.parent
        if not folder.is_dir():
            raise InvalidParameterError(
                f"Folder {str(folder)!r} for {file.name!r} does not exist. Create it first."
            )
        if file.is_dir() or not os.access(folder, os.W_OK):
            raise InvalidParameterError(f"{str(file)!r} cannot be written: no permission.")


def write_all(texts: Mapping[Path, str]) -> None:
    """Write every file beside its target and rename at the end, so that none is ever half there.

    Parameters
    ----------
    texts : mapping of Path to str
        What goes where.

    Raises
    ------
    InvalidParameterError
        When a file cannot be written; no target is then changed.
    """
    ready: dict[Path, Path] = {}
    try:
        for target, text in texts.items():
            try:
                ready[target] = _beside(target)
                with ready[target].open("w", encoding="utf-8", errors="replace") as stream:
                    stream.write(text)
                    stream.flush()
                    os.fsync(stream.fileno())
            except OSError as error:
                raise InvalidParameterError(
                    f"{str(target)!r} cannot be written: {error.strerror}."
                ) from error
        for target, written in ready.items():
            written.replace(target)
    finally:
        for written in ready.values():
            written.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    os.close(handle)
    written = Path(name)
    # mkstemp makes a private file; a report gets the rights that any new file would get.
    mask = os.umask(0)
    os.umask(mask)
    written.chmod(0o666 & ~mask)
    return written
