"""Waiting for a condition, with a deadline and a word about what was awaited.

A deadline ends a test that has failed. It costs a passing test nothing, so it is long: a slow machine is no fault.
"""

import time
from collections.abc import Callable
from pathlib import Path


def wait_for(condition: Callable[[], object], what: str, *, seconds: float = 300, log: Path | None = None) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            tail = log.read_text(errors="replace")[-3000:] if log else ""
            raise AssertionError(f"waited {seconds:g} s for {what}\n{tail}")
        time.sleep(0.02)
