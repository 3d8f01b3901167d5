"""The file that a monitor's state is kept in: read and written whole, by one process at a time.

A new state is written beside the old one, forced to the disk and renamed over it. Whoever reads
sees the old state or the new one; whoever is killed leaves the old one. The lock is held by the
operating system for an open file and ends with the process, however it ends.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from equipoise.exceptions import DataError
from equipoise.monitoring.state import MonitorState

__all__ = ["locked", "read_state", "update_state", "write_state"]

_POLL = 0.02


def read_state(path: Path) -> MonitorState | None:
    """Read a state.

    Parameters
    ----------
    path : Path
        Its file.

    Returns
    -------
    MonitorState or None
        None when there is no file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"State {str(path)!r} cannot be read: {error}.") from error
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"State {str(path)!r} is not JSON: {error}.") from error
    return MonitorState.from_dict(value)


def write_state(path: Path, state: MonitorState) -> None:
    """Write a state whole, or not at all.

    Parameters
    ----------
    path : Path
        Its file; the caller holds the lock.
    state : MonitorState
        What to write.
    """
    text = json.dumps(state.to_dict(), allow_nan=False, separators=(",", ":"))
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with beside.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise DataError(f"State {str(path)!r} cannot be written: {error.strerror}.") from error


def update_state(
    path: Path, change: Callable[[MonitorState | None], MonitorState], *, timeout: float = 60.0
) -> MonitorState:
    """Read a state, change it and write it back while nobody else can.

    Parameters
    ----------
    path : Path
        File of the state.
    change : callable
        From the state on file, None when there is none, to the new one. If it raises, the file
        stays.
    timeout : float, default 60
        Seconds to wait for another process.

    Returns
    -------
    MonitorState
        What is on file now.
    """
    with locked(path, timeout=timeout):
        before = read_state(path)
        after = change(before)
        if after != before:
            write_state(path, after)
        return after


@contextlib.contextmanager
def locked(path: Path, *, timeout: float = 60.0) -> Iterator[None]:
    """Hold the lock of a state.

    Parameters
    ----------
    path : Path
        File of the state; the lock is a file beside it, which stays.
    timeout : float, default 60
        Seconds to wait for it.

    Yields
    ------
    None

    Raises
    ------
    DataError
        When another process holds it all that time.
    """
    if not path.parent.is_dir():
        raise DataError(f"Folder {str(path.parent)!r} does not exist. Create it first.")
    until = time.monotonic() + timeout
    with path.with_name(f".{path.name}.lock").open("a+b") as stream:
        while not _acquire(stream.fileno()):
            if time.monotonic() >= until:
                raise DataError(
                    f"State {str(path)!r} is being written by another process; gave up after "
                    f"{timeout:g} seconds."
                )
            time.sleep(_POLL)
        yield


if os.name == "nt":  # pragma: no cover
    import msvcrt

    def _acquire(descriptor: int) -> bool:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True

    def _sync_folder(folder: Path) -> None:
        """Windows has no handle for folders."""

else:
    import fcntl

    def _acquire(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _sync_folder(folder: Path) -> None:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
