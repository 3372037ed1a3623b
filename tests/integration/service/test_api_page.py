"""docs/api.md: its reference is that of the API's description, and its examples run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from executions.models import Execution
from harbor_refresh.api import api
from harbor_refresh.api_page import PARTS, renewed
from tests import pages
from tests.integration.command_output import failing, said
from tests.integration.service.web import Web

PAGE = pages.read("docs/api.md")
EXAMPLES = {language: pages.code(PAGE, language, start) for language, start in (("sh", "call()"), ("python", ""))}


def test_the_page_is_what_the_description_says() -> None:
    """If it is not: manage.py api_docs."""
    assert renewed(PAGE, api.get_openapi_schema()) == PAGE
    assert re.findall(r"<!-- made: (\w+) -->", PAGE) == ["overview", "errors", "limits", "details"]
    assert len(PARTS) == 4


def test_the_command_writes_the_page_and_checks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "api.md"
    page.write_text("before\n<!-- made: errors -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    monkeypatch.setattr("harbor_refresh.management.commands.api_docs.PAGE", page)
    assert failing("api_docs", "--check") == ("docs/api.md is out of date.\n", "Type: manage.py api_docs")
    assert "old" in page.read_text(encoding="utf-8")
    assert said("api_docs") == "docs/api.md was written."
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- made: errors -->\n\n| status | means |")
    assert text.endswith("|\n\n<!-- end -->\nafter\n")
    assert said("api_docs", "--check") == "docs/api.md is up to date."


@pytest.mark.parametrize(
    ("language", "program"), [("sh", ["sh", "-eu", "-c"]), ("python", [sys.executable, "-W", "error", "-c"])]
)
def test_an_example_runs(web: Web, tmp_path: Path, language: str, program: list[str]) -> None:
    assert shutil.which("curl"), "the example of the page needs curl"
    environ = {**os.environ, "HARBOR_REFRESH_URL": web.url, "HARBOR_REFRESH_TOKEN": web.token}
    done = subprocess.run(
        [*program, EXAMPLES[language]],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    newest = Execution.objects.latest("pk")
    assert list(newest.tasks.values_list("status", flat=True)) == ["Success", "Success"]
    assert '"progress":1.0' in done.stdout or done.stdout == "1.0\n"
