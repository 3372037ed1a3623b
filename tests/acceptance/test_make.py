"""What the pages say of make: each line starts what it says, and `make up` is everything on this machine."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from harbor_refresh.local.process import kill_tree, spawn
from tests import pages, terminal
from tests.faults.cluster import Member
from tests.terminal import answered
from tests.waiting import wait_for

README = pages.read("README.md")
UP, TEST = pages.lines(README.partition("## Try it")[2].partition("\n## ")[0])
#: With them, make finds the packages up to date, and installs none.
INSTALLED = (".up", ".installed", ".release")
#: What is made here and not kept in the repository.
MADE = (
    ".venv",
    ".git",
    ".local",
    ".site",
    ".*_cache",
    ".hypothesis",
    "dist",
    "build",
    "__pycache__",
    "*.egg-info",
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout, with the packages of the tests."""
    copy = tmp_path / "checkout"
    shutil.copytree(pages.ROOT, copy, ignore=shutil.ignore_patterns(*MADE))
    (copy / ".venv").mkdir()
    for one in Path(sys.prefix).iterdir():
        if one.name not in INSTALLED:
            (copy / ".venv" / one.name).symlink_to(one)
    for name in INSTALLED:
        (copy / ".venv" / name).touch()
    return copy


def environment(folder: Path) -> dict[str, str]:
    """That of a person, who has no server."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(folder), "no_proxy": "*"}


def typed(line: str, checkout: Path) -> str:
    return terminal.typed(line, checkout, environment(checkout))


def programs_of(checkout: Path) -> list[str]:
    """The command lines of all that runs in this checkout. Its addresses do not tell: another `make up` may have
    taken them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if (process / "cwd").readlink() == checkout:
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


@pytest.fixture
def up(checkout: Path, tmp_path: Path) -> Iterator[Member]:
    """The first command of the README, in a process group of its own, as on a terminal."""
    log = tmp_path / "up.log"
    argv = ["/bin/sh", "-ec", f"exec {UP}"]
    started = spawn(argv, log=log, cwd=checkout, env=environment(checkout))
    yield Member(started, log)
    kill_tree(started)
    if (checkout / ".local").exists():  # the test has failed, and root's PostgreSQL has its data elsewhere
        words = [sys.executable, "-m", "harbor_refresh.local", "forget"]
        subprocess.run(words, cwd=checkout, env=environment(checkout), check=False)


@pytest.mark.slow
def test_up_runs_everything_until_ctrl_c_and_clean_removes_what_it_left(checkout: Path, up: Member) -> None:
    wait_for(lambda: up.died() or "Ctrl-C ends everything" in up.text(), "the addresses", log=up.log)
    assert not up.died(), up.text()
    assert re.search(r"user admin, password \S{16}\n", up.text()), up.text()
    (address,) = set(re.findall(r"http://\S+(?=/admin/)", up.text()))

    def answers() -> bool:
        with suppress(httpx2.HTTPError):
            return httpx2.get(f"{address}/readyz", trust_env=False, timeout=60).status_code == 200
        return False

    assert answers()
    beside = ".venv/bin/python manage.py"  # which finds the servers by itself
    wait_for(lambda: "Success" in typed(f"{beside} harbor list", checkout), "the demo to end one", log=up.log)
    screen = answered(["make", "password"], [secrets.token_urlsafe(12)] * 2, checkout, environment(checkout))
    assert "Password changed successfully" in screen
    assert len(programs_of(checkout)) > 4
    up.signal(signal.SIGINT)
    wait_for(up.died, "the end", log=up.log)
    assert up.text().endswith("Everything has ended. `make up` finds its data again.\n")
    assert programs_of(checkout) == []
    assert not (checkout / ".local/up.json").exists(), "a later command would look for its servers"
    typed("make clean", checkout)
    assert not (checkout / ".local").exists()
    assert not (checkout / ".venv").exists()


#: What each line starts, in the environment of the checkout. The tests that run the programs themselves:
#: `up` and `clean` above; `.ci/run` and the workflow run `docs`, `test`, `slow`, `lint` and `test-matrix`;
#: tests/distribution builds the wheel; tests/soak, tests/browser/test_pictures.py and
#: tests/integration/benchmarks say how to run the others small.
STARTS = {
    "make up": ["-m harbor_refresh.local up"],
    "make password": ["manage.py changepassword admin"],
    "make test": ["-m pytest -n auto --dist loadfile --no-loadscope-reorder"],
    'make test ARGS="-k reports"': ["-m pytest -n auto --dist loadfile --no-loadscope-reorder -k reports"],
    "make slow": ["-m pytest -m slow -n auto --dist loadfile"],
    "make test-stock": ["-m tests.stock"],
    "make test-matrix": ["-m tests.matrix"],
    "make lint": [
        "-m ruff check .",
        "-m ruff format --check .",
        "-m mypy harbor_refresh settings benchmarks examples manage.py docs/hooks.py",
        "-m pytest -q tests/unit/test_imports.py tests/integration/executions/test_locks_of_migrations.py",
        "-c import secrets; print(secrets.token_urlsafe(64))",
        "manage.py check --deploy --fail-level WARNING",
        "-W ignore::RuntimeWarning manage.py makemigrations --check --dry-run",
    ],
    'make soak SEEDS="1 2"': ["-m tests.soak 1 2 --minutes 1"],
    "make soak": ["-m tests.soak 1 2 3 --minutes 1"],
    "make fuzz EXAMPLES=300": ["-m pytest -n auto tests/integration/service/test_api_description.py"],
    "make fuzz": ["-m pytest -n auto tests/integration/service/test_api_description.py"],
    "make docs": ["-m mkdocs build --quiet"],
    "make package": ["-m build .", "-m twine check --strict dist/*"],
    "make bench": [
        "-m benchmarks --executions 10000 --budget 25",
        "-m benchmarks intake --executions 20000 --rounds 20",
        "-m benchmarks hooks --executions 500 --tasks-per-execution 1",
    ],
    "make pictures": ["-m pytest -q -n 0 -m pictures tests/browser/test_pictures.py"],
    "make clean": ["-m harbor_refresh.local forget"],
}
PYTHON = '#!/bin/sh\necho "$*" >> "$HOME/started"\n'


def named() -> set[str]:
    """Every line of make in a block or a sentence of a page."""
    found: set[str] = set()
    for page in (*pages.ROOT.glob("*.md"), *pages.ROOT.glob("docs/**/*.md")):
        text = page.read_text(encoding="utf-8")
        written = [line.partition("#")[0].strip() for line in pages.lines(text)]
        found |= {one for one in (*written, *pages.spans(text)) if one.startswith("make ")}
    return found


def test_each_line_of_make_that_a_page_has_starts_what_it_says(tmp_path: Path) -> None:
    """The Python of this environment only writes down what it is to run."""
    for name in ("Makefile", *(one.name for one in pages.ROOT.glob("requirements*.txt"))):
        shutil.copy(pages.ROOT / name, tmp_path)
    program = tmp_path / ".venv/bin/python"
    started = tmp_path / "started"
    found = {}
    for line in sorted(named()):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(PYTHON, encoding="utf-8")
        program.chmod(0o755)
        for name in INSTALLED:
            (tmp_path / ".venv" / name).touch()
        (tmp_path / ".local").mkdir(exist_ok=True)
        (tmp_path / ".local/up.json").touch()
        started.write_text("", encoding="utf-8")
        typed(line, tmp_path)
        found[line] = started.read_text(encoding="utf-8").splitlines()
    assert found == {line: STARTS.get(line) for line in found}
    of_the_page = pages.lines(pages.read("CONTRIBUTING.md"))
    assert {line.partition("#")[0].strip() for line in of_the_page} < found.keys()
    (tmp_path / ".local/up.json").unlink()
    done = subprocess.run(["make", "password"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode, "`make up` does not run there"
    assert "Start `make up` first: its database has the account." in done.stdout
