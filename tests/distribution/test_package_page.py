"""What docs/start/project.md and docs/howto/existing_project.md say to type installs the package."""

import re
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests import pages, terminal
from tests.distribution.environments import clean, copied

START, EXISTING = pages.read("docs/start/project.md"), pages.read("docs/howto/existing_project.md")
SERVERS, BEGIN, *_ = pages.codes(START, "sh")
INSTALL = pages.code(EXISTING, "sh", "pip install")
SEARCH = pages.code(EXISTING, "sh", "grep")


def typed(line: str, folder: Path, **more: str) -> str:
    return terminal.typed(line, folder, clean() | more, seconds=1200)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the checkout, as the pages have it."""
    found = tmp_path_factory.mktemp("home")
    copied(found / "harbor-refresh")
    return found


@pytest.mark.slow
def test_the_tutorial_begins_a_project_with_the_package(home: Path) -> None:
    path = f"{Path(sys.executable).resolve().parent}:/usr/bin:/bin"
    typed(BEGIN, home, HOME=str(home), PATH=path)
    typed(". .venv/bin/activate && python manage.py check", home / "shop", HOME=str(home), PATH=path)


@pytest.mark.slow
def test_the_package_is_installed_with_an_extra(home: Path, tmp_path: Path) -> None:
    typed(f"{sys.executable} -m venv venv", tmp_path)
    path = f"{tmp_path / 'venv/bin'}:/usr/bin:/bin"
    typed(INSTALL, tmp_path, HOME=str(home), PATH=path)
    typed("python -c 'import harbor_refresh, httpx2'", tmp_path, PATH=path)


def test_the_extra_of_the_page_works_with_the_newest_django_of_its_table() -> None:
    """Else pip replaces the Django of a project by an older one."""
    (extra,) = re.findall(r"harbor-refresh\[(\w+)\]", INSTALL)
    (newest,) = re.findall(r"^\| Django \| .* to ([\d.]+) \|$", EXISTING, re.MULTILINE)
    extras = tomllib.loads(pages.read("pyproject.toml"))["project"]["optional-dependencies"]
    needed = [Requirement(one) for name in extras[extra] for one in requires(Requirement(name).name) or ()]
    assert [str(one) for one in needed if one.name.lower() == "django" and newest not in one.specifier] == []


def test_the_search_for_psycopg2_finds_each_line(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/models.py").write_text("import os\nfrom psycopg2.extras import Json\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("psycopg2\n", encoding="utf-8")
    assert typed(SEARCH, tmp_path).splitlines() == ["./shop/models.py:2:from psycopg2.extras import Json"]
