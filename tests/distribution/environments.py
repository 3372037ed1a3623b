"""The wheel, and environments with it: each was empty before, and sees nothing of the checkout."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.distribution.metadata import ROOT
from tests.terminal import ran

#: What would lead from an environment back to the checkout, or to the settings of the tests.
LEADING_BACK = ("PYTHON", "DJANGO_SETTINGS_MODULE", "VIRTUAL_ENV", "PYTEST_")


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(LEADING_BACK)}


@dataclass(frozen=True)
class Environment:
    """A Python with packages. `path`: where the checkout is found, if it is not installed."""

    python: Path
    path: tuple[Path, ...] = ()

    def variables(self, *folders: Path) -> dict[str, str]:
        """What its programs get, with modules in `folders`."""
        return clean() | {"PYTHONPATH": os.pathsep.join(map(str, (*folders, *self.path)))}

    def run(self, *words: str | Path, cwd: Path, alone: bool = False, **variables: str) -> str:
        """Run a program of it to its end, which must be a good one; return what it printed. `alone`: with these
        variables and no others."""
        done = ran(
            [self.python, *words],
            folder=cwd,
            env=variables if alone else self.variables() | variables,
            seconds=600,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout


CHECKOUT = Environment(Path(sys.executable), (ROOT,))


def copied(folder: Path) -> Path:
    """Copy the checkout with its links: a build leaves files beside the source."""
    left = shutil.ignore_patterns(
        ".git", ".venv", ".*cache", "__pycache__", ".local", ".site", "build", "dist", "*.egg-info"
    )
    shutil.copytree(ROOT, folder, symlinks=True, ignore=left)
    return folder


def build(folder: Path, source: Path) -> Path:
    """Build the wheel, as `make package` does."""
    _pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(folder: Path, python: Path, packages: Sequence[str], constraints: str) -> Environment:
    """Make an empty environment and install these packages, in versions within the constraints."""
    subprocess.run([python, "-m", "venv", folder], check=True, env=clean())
    (folder / "constraints.txt").write_text(constraints, encoding="utf-8")
    made = Environment(folder / "bin/python")
    _pip(made.python, "install", "--constraint", folder / "constraints.txt", *packages)
    return made


def _pip(python: Path, *words: str | Path) -> None:
    command = [python, "-m", "pip", *words, "--quiet", "--disable-pip-version-check"]
    done = ran(command, folder="/", env=clean(), seconds=1200)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
