"""docs/package.md: what it says to type installs the wheel with its driver, and tells which driver Django uses."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pages, programs, terminal
from tests.distribution.environments import clean

PAGE = pages.read("docs/package.md")
WHEEL, DRIVER, SEARCH, ASK = pages.codes(PAGE, "sh")
OF_PIP, OF_APT = DRIVER.splitlines()


def typed(line: str, folder: Path, **more: str) -> str:
    return terminal.typed(line, folder, clean() | more, seconds=1200)


@pytest.mark.slow
def test_the_wheel_is_installed_with_its_driver_and_django_uses_it(wheel: Path, tmp_path: Path) -> None:
    """In the folder of the wheel, with the environment of a project. Both lines for pip bring the same driver."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, env=clean())
    path = f"{venv / 'bin'}:/usr/bin:/bin"
    typed(WHEEL, wheel.parent, PATH=path)
    assert "Requirement already satisfied: psycopg[binary]" in typed(OF_PIP, tmp_path, PATH=path)
    assert typed(ASK, tmp_path, PATH=path) == "True\n"
    typed("python -c 'import harbor_refresh.client, unfold, flower, prometheus_client'", tmp_path, PATH=path)


def test_the_search_for_psycopg2_finds_each_line(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/models.py").write_text("import os\nfrom psycopg2.extras import Json\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("psycopg2\n", encoding="utf-8")
    assert typed(SEARCH, tmp_path).splitlines() == ["./shop/models.py:2:from psycopg2.extras import Json"]


OF_A_PROJECT = pages.code(pages.read("docs/jobs.md"), "sh", "sudo apt-get install")


@pytest.mark.skipif(not shutil.which("apt-get"), reason="the lines are for Debian")
@pytest.mark.parametrize(
    ("line", "packages"), [(OF_APT, ["libpq5"]), (OF_A_PROJECT, ["postgresql", "redis-server"])]
)
def test_debian_has_the_packages_that_the_pages_name(line: str, packages: list[str], tmp_path: Path) -> None:
    """apt-get says what it would do, and does nothing."""
    config = tmp_path / "apt.conf"
    config.write_text('APT::Get::Simulate "true";\n', encoding="utf-8")
    if not typed("apt-cache pkgnames libpq", tmp_path):
        programs.refresh_lists()
    said = typed(line.removeprefix("sudo "), tmp_path, APT_CONFIG=str(config))
    for one in packages:
        assert f"Inst {one} " in said or f"{one} is already the newest version" in said, said
