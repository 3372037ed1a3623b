"""`make test-matrix`: the tests with each Python and each PostgreSQL of this machine.

    make test-matrix                                  # the whole suite with each
    make test-matrix ARGS="tests/unit -q"             # some tests
    make test-matrix ARGS="--python 3.13"             # one version

Each Python gets an environment of its own in `.local/matrix`, with the pins of requirements-dev.txt except for
that of Django: pip chooses the newest that this Python and the other packages take. These runs use the embedded
PostgreSQL. Then the newest Python uses each PostgreSQL that the distribution has installed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.programs import packaged_postgres

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".local" / "matrix"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
DJANGO = "Django>=5.2,<7"
#: Where version managers keep their Pythons, below the home directory.
MANAGED = (
    ".pyenv/versions/{version}*/bin/python",
    ".local/share/uv/python/cpython-{version}.*/bin/python{version}",
    ".asdf/installs/python/{version}*/bin/python",
    ".local/share/mise/installs/python/{version}*/bin/python",
    ".rye/py/cpython@{version}*/bin/python3",
)
_PIN = re.compile(r"^Django==\S+", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Result:
    python: str
    django: str
    postgres: str
    code: int
    summary: str
    seconds: float


def find(version: str) -> Path | None:
    """Return the newest Python of this version that runs and can make an environment."""
    return next((one for one in _candidates(version) if _is_usable(one, version)), None)


def _candidates(version: str) -> Iterator[Path]:
    if there := shutil.which(f"python{version}"):
        yield Path(there)
    for pattern in MANAGED:
        yield from sorted(Path.home().glob(pattern.format(version=version)), key=_numbers, reverse=True)


def _numbers(path: Path) -> list[int]:
    return [int(one) for one in re.findall(r"\d+", str(path))]


def _is_usable(python: Path, version: str) -> bool:
    """Run it: a version manager's stand-in may exist for a version that is not selected."""
    check = f"import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
    return subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0


def environment(version: str, python: Path) -> Path:
    """Make the environment anew if it is missing or the pins have changed; return its Python."""
    folder = ENVIRONMENTS / version
    pins = {file.name: _PIN.sub(DJANGO, file.read_text()) for file in sorted(ROOT.glob("requirements*.txt"))}
    installed = folder / "installed.txt"
    if not installed.exists() or installed.read_text() != str(pins):
        tell(f"Python {version}: installing into {folder.relative_to(ROOT)}")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        for name, text in pins.items():
            (folder / name).write_text(text)
        pip = [folder / "venv" / "bin" / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, "--requirement", folder / "requirements-dev.txt"], check=True)
        installed.write_text(str(pins))
    return folder / "venv" / "bin" / "python"


def run(version: str, python: Path, words: Sequence[str], programs: Path | None = None) -> Result:
    """Run the tests as `make test` does, on the embedded PostgreSQL or that of these programs. Show their output
    while they run."""
    django = _said([python, "-c", "import django; print(django.__version__)"])
    postgres = _said([programs / "postgres", "--version"]).split()[2] if programs else "embedded"
    tell(f"Python {version}, Django {django}, PostgreSQL {postgres}: pytest {' '.join(words)}")
    chosen = {"POSTGRES_PROGRAMS": str(programs)} if programs else {}
    begun = time.monotonic()
    tests = subprocess.Popen(
        [python, "-m", "pytest", *words],
        cwd=ROOT,
        env=os.environ | chosen,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert tests.stdout
    last = ""
    for line in tests.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        last = line.strip(" =\n") or last
    return Result(version, django, postgres, tests.wait(), last, time.monotonic() - begun)


def _said(command: Sequence[str | Path]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make test-matrix", description=__doc__.partition("\n")[0])
    parser.add_argument("--python", action="append", choices=VERSIONS, help="only this version; may be repeated")
    chosen, words = parser.parse_known_args(given)
    words = words or ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]
    found = {version: find(version) for version in chosen.python or VERSIONS}
    ready = {version: environment(version, there) for version, there in found.items() if there}
    results = [run(version, python, words) for version, python in ready.items()]
    if ready:
        newest = max(ready, key=VERSIONS.index)
        results += [run(newest, ready[newest], words, programs) for programs in packaged_postgres()]
    tell("")
    for one in results:
        outcome = "passed" if one.code == 0 else f"FAILED (exit {one.code})"
        versions = f"Python {one.python}  Django {one.django:7} PostgreSQL {one.postgres:9}"
        tell(f"{versions} {outcome:16} {one.seconds:6,.0f} s  {one.summary}")
    for version, there in found.items():
        if there is None:
            tell(f"Python {version}  not found: neither on PATH nor with pyenv, uv, asdf, mise or rye")
    if not results:
        tell("No Python was found, so nothing was tested.")
    return int(not results or any(one.code for one in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
