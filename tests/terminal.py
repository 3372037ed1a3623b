"""A terminal with a person before it, for programs that ask."""

import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path


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
