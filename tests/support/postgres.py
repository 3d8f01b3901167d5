"""A private PostgreSQL for tests: no port, no password, gone at the end."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

__all__ = ["private_postgres", "why_not"]


def _programs():
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    return [*folders, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]


def why_not():
    """Say why no PostgreSQL can be started here; an empty text where it can."""
    if not any((folder / "initdb").exists() for folder in _programs()):
        return "PostgreSQL is not installed (Debian: postgresql)"
    if os.getuid() == 0 and shutil.which("runuser") is None:
        return "PostgreSQL does not run as root, and there is no `runuser`"
    return ""


@contextmanager
def private_postgres():
    """Start a cluster that listens on a socket in a folder of its own; yield that folder."""
    programs = next(folder for folder in _programs() if (folder / "initdb").exists())
    # The server refuses to run as root; a socket must have a short path.
    other = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if other:
        shutil.chown(folder, "postgres")
    data = str(folder / "data")

    def run(program, *arguments):
        command = [*other, str(programs / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=120, cwd=folder)

    try:
        run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        options = f"-k {folder} -h '' -F"
        run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield folder
        finally:
            run("pg_ctl", "-D", data, "-m", "fast", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
