"""Programs that run a pool of Celery, each in a process of its own: a pool forks, and catches signals."""

import subprocess
import sys

from tests.pages import ROOT


def said_by(program: str, *words: str) -> str:
    """Run it with these words as its arguments; return all that it wrote."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    return done.stdout + done.stderr
