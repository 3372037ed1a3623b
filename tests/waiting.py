"""Waiting for a condition, with a deadline and a word about what was awaited.

A deadline ends a test that has failed. It costs a passing test nothing, so it is long: a slow machine is no fault.
A look that takes long is made less often, so that looking does not slow down what is awaited.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def wait_for(condition: Callable[[], object], what: str, *, seconds: float = 300, log: Path | None = None) -> None:
    deadline = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        if now > deadline:
            tail = log.read_text(errors="replace")[-3000:] if log else ""
            raise AssertionError(f"waited {seconds:g} s for {what}\n{tail}")
        time.sleep(min(max(0.02, 4 * (now - begun)), 0.5))


def slowness() -> float:
    """How many times slower this machine is now than one that has nothing else to do, by the start of a Python; at
    least 1. For a deadline that is the point of a test."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import django.db"], check=True)
    return max(1.0, (time.monotonic() - began) / 0.2)
