"""Programs that a test runs to their end, lines that a person types in a shell, and answers on a terminal."""

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.pages import ROOT


def ran(
    argv: Sequence[str | Path],
    folder: str | Path = ROOT,
    env: Mapping[str, str] | None = None,
    seconds: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and return its exit code and what it printed."""
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=seconds, check=False)


def typed(line: str, folder: Path, env: Mapping[str, str], seconds: float = 300) -> str:
    """Run a line in a shell, which must succeed; return what it printed."""
    done = ran(["/bin/sh", "-ec", line], folder, env, seconds)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout


def answered(argv: list[str], answers: list[str], folder: Path, env: dict[str, str]) -> str:
    """Run a program on a terminal, where a person answers its questions; return what is on the screen."""
    terminal, of_program = pty.openpty()
    process = subprocess.Popen(
        argv, cwd=folder, env=env, stdin=of_program, stdout=of_program, stderr=of_program, start_new_session=True
    )
    os.close(of_program)
    screen, waiting = "", list(answers)
    with suppress(OSError):  # the end of the program ends the terminal
        while text := os.read(terminal, 4096).decode():
            screen += text
            if waiting and text.rstrip().endswith(":"):
                os.write(terminal, f"{waiting.pop(0)}\n".encode())
    os.close(terminal)
    assert process.wait(60) == 0, screen
    return screen
