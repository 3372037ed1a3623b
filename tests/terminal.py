"""What a person types: a line in a shell, and the answers to a program that asks on its terminal."""

import os
import pty
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def typed(line: str, folder: Path, env: Mapping[str, str], seconds: float = 300) -> str:
    """Run a line in a shell, which must succeed; return what it printed."""
    done = subprocess.run(
        ["/bin/sh", "-ec", line],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
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
