"""docs/howto/testing.md, followed word for word in a project that knows nothing of ours, without Redis."""

from pathlib import Path

import pytest

from tests import pages
from tests.distribution.fixtures import Make
from tests.distribution.metadata import pinned
from tests.distribution.project_pages import begin_project, postgres_of_the_test

#: What a project has that follows the page.
TOOLS = tuple(str(one) for one in pinned("requirements-dev.txt") if one.name in ("pytest", "pytest-django"))


def followed(folder: Path) -> list[str]:
    """Write the files of the page; return its commands."""
    page = pages.read("docs/howto/testing.md")
    for name, code in pages.files(page).items():
        (folder / name).write_text(code, encoding="utf-8")
    return pages.lines(page)


@pytest.mark.slow
def test_the_page_is_followed_word_for_word(environment: Make, template: str, tmp_path: Path) -> None:
    folder, installed = tmp_path / "project", environment("", also=TOOLS)
    begin_project(folder, installed)
    commands = followed(folder)
    server = postgres_of_the_test()
    of_django, of_pytest = (installed.run(*words(one), cwd=folder, **server) for one in commands)

    assert "System check identified no issues" in of_django
    assert "5 passed" in of_pytest


def words(command: str) -> list[str]:
    """The words after the Python of the project."""
    program, *rest = command.split()
    return rest if program == "python" else ["-m", program, "-p", "no:cacheprovider", *rest]
