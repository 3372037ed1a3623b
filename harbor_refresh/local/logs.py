"""The log files: one for each process, with the previous run's beside it. Their size is bounded."""

import shutil
from pathlib import Path

LARGEST_BYTES = 20_000_000


def fresh(log: Path) -> Path:
    """Begin a log; its old content becomes NAME.log.1."""
    if log.exists():
        log.replace(_previous(log))
    log.touch(mode=0o600)
    return log


def bound(folder: Path) -> None:
    """Truncate every log that has grown too large, while its process goes on writing to it.

    Logs are written in append mode, so a process continues at the new end of a truncated log. Lines that it writes
    between the copy and the truncation are lost.
    """
    for log in folder.glob("*.log"):
        if log.stat().st_size > LARGEST_BYTES:
            shutil.copyfile(log, _previous(log))
            with log.open("r+b") as file:
                file.truncate(0)


def _previous(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")
