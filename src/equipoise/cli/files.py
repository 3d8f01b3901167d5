"""Output files: checked before the work, staged beside their targets, renamed together at the end.

A file that is there keeps its mode, a new one gets what the umask allows. A symbolic link is
followed: the file that it leads to is replaced, the link stays. What a killed run has left behind
is recognised by its name and its lock, and removed by the next run that writes to the folder.
"""

import fcntl
import os
import secrets
import signal
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from equipoise._checks import shown
from equipoise.exceptions import InvalidParameterError, ResourceError

__all__ = ["check_outputs", "write_all"]

STAGED = ".equipoise-{}.part"
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link that leads to itself",
}


def check_outputs(*files: Path | None, inputs: Mapping[str, Sequence[Path]]) -> None:
    """Raise before any work is done when a file could not, or must not, be written afterwards.

    Parameters
    ----------
    *files : Path or None
        The outputs that were asked for.
    inputs : mapping of str to sequence of Path
        Files that must stay as they are, by what they are: ``{"the data": [...]}``.
    """
    taken = [(place, what) for what, places in inputs.items() for place in places]
    for file in files:
        if file is None:
            continue
        _check_place(file)
        for other, what in taken:
            if _same(file, other):
                raise InvalidParameterError(
                    f"{shown(file)} is {what}, which would be lost. Name another file."
                )
        taken.append((file, "another output too"))


def _check_place(file: Path) -> None:
    target = _followed(file)
    if not target.parent.is_dir():
        raise InvalidParameterError(
            f"Folder {shown(file.parent)} for {shown(file.name)} does not exist. Create it first."
        )
    try:
        kind = stat.S_IFMT(target.lstat().st_mode)
    except FileNotFoundError:
        kind = stat.S_IFREG
    except OSError as error:
        raise InvalidParameterError(
            f"{shown(file)} cannot be written: {error.strerror}."
        ) from error
    if kind != stat.S_IFREG:
        raise InvalidParameterError(
            f"{shown(file)} is {KINDS[kind]}; an output is a file that is written whole."
        )
    if not all(os.access(place, os.W_OK) for place in (target.parent, target) if place.exists()):
        raise InvalidParameterError(f"{shown(file)} cannot be written: no permission.")


def _followed(file: Path) -> Path:
    """Return where a path leads to, through every link."""
    return Path(os.path.realpath(file))


def _same(file: Path, other: Path) -> bool:
    try:
        return file.samefile(other)
    except OSError:
        return _followed(file) == _followed(other)


def write_all(texts: Mapping[Path, str], *, errors: str = "replace") -> None:
    """Write every file beside its target, then rename all: none is ever half there.

    Whenever the run ends, the files that are there are of one run, also when another run writes to
    the same files.

    Parameters
    ----------
    texts : mapping of Path to str
        What goes where.
    errors : str
        How characters are written that UTF-8 does not have.

    Raises
    ------
    ResourceError
        When a file cannot be written, on a full disk for instance; no target is then changed.
    """
    with ExitStack() as staged:
        parts = {}
        for file, text in texts.items():
            target = _followed(file)
            with _named(file):
                _remove_stale(target.parent)
                content = text.encode("utf-8", errors=errors)
                parts[file] = staged.enter_context(_staged(target, content)), target
        with _undisturbed(), _alone_in({target.parent for _, target in parts.values()}):
            # All but the first go before any comes: a run that is killed here may leave fewer files
            # than before, but never those of two runs.
            for file, (_, target) in [*parts.items()][1:]:
                with _named(file):
                    target.unlink(missing_ok=True)
            for file, (part, target) in parts.items():
                with _named(file):
                    part.replace(target)


@contextmanager
def _named(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ResourceError(f"{shown(file)} cannot be written: {error.strerror}.") from error


@contextmanager
def _staged(target: Path, content: bytes) -> Iterator[Path]:
    """Write a file beside its target, with its mode; it is gone at the end unless renamed."""
    part, handle = _locked_part(target.parent)
    try:
        with suppress(FileNotFoundError):
            _keep_rights(handle, target.stat())
        with open(handle, "wb", closefd=False) as stream:
            stream.write(content)
            stream.flush()
            os.fsync(handle)
        yield part
    finally:
        part.unlink(missing_ok=True)
        os.close(handle)


def _locked_part(folder: Path) -> tuple[Path, int]:
    while True:
        part = folder / STAGED.format(secrets.token_hex(8))
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with suppress(OSError):  # a disk without locks: then nothing is ever taken for stale
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return part, handle
        os.close(handle)  # a run that tidies up came between


def _keep_rights(handle: int, old: os.stat_result) -> None:
    mode = stat.S_IMODE(old.st_mode)
    try:
        os.fchown(handle, old.st_uid if os.geteuid() == 0 else -1, old.st_gid)
    except PermissionError:
        mode &= ~stat.S_IRWXG  # meant for another group
    os.fchmod(handle, mode)


def _remove_stale(folder: Path) -> None:
    """Remove what a killed run has staged: files of which no process holds the lock."""
    for part in folder.glob(STAGED.format("*")):
        with suppress(OSError):  # another's, or in use
            handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
            finally:
                os.close(handle)


@contextmanager
def _alone_in(folders: set[Path]) -> Iterator[None]:
    """Let no other run rename files in these folders meanwhile: it waits for its turn."""
    with ExitStack() as held:
        for folder in sorted(folders):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, handle)
            with suppress(OSError):  # a disk without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let no signal come between two renames: from here on the run is done."""
    stopping = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    before = {number: signal.getsignal(number) for number in stopping}
    for number in before:
        signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
