"""The log files: one a process, the previous run's kept beside it, none without bound."""

import shutil
from pathlib import Path

LARGEST_BYTES = 20_000_000


def fresh(log: Path) -> Path:
    """Begin a log: what it held becomes NAME.log.1."""
    if log.exists():
        log.replace(_previous(log))
    log.touch(mode=0o600)
    return log


def bound(folder: Path) -> None:
    """Begin every log anew that has grown too large, while its process goes on writing to it.

    They are written in append mode, so a truncated one is simply continued at its new end; what a
    process writes between the copy and the truncation is lost.
    """
    for log in folder.glob("*.log"):
        if log.stat().st_size > LARGEST_BYTES:
            shutil.copyfile(log, _previous(log))
            with log.open("r+b") as file:
                file.truncate(0)


def _previous(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")
