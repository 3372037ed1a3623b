"""docs/api.md: its reference is that of the API's description, and its examples run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from django.utils import timezone

from harbor_refresh.api import api
from harbor_refresh.api_page import PARTS, Command, renewed
from harbor_refresh.executions.models import ApiToken, Execution
from tests import pages
from tests.integration.command_output import failing, said
from tests.integration.service.web import Web
from tests.programs import needs

PAGE = pages.read("docs/api.md")


def test_the_page_is_what_the_description_says() -> None:
    """If it is not: python -m harbor_refresh.api_docs."""
    assert renewed(PAGE, api.get_openapi_schema()) == PAGE
    assert re.findall(r"<!-- made: (\w+) -->", PAGE) == ["overview", "errors", "limits", "details"]
    assert len(PARTS) == 4


def test_the_command_writes_the_page_and_checks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "api.md"
    page.write_text("before\n<!-- made: errors -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    monkeypatch.setattr("harbor_refresh.api_page.PAGE", page)
    assert failing(Command(), "--check") == (
        "docs/api.md is out of date.\n",
        "Type: python -m harbor_refresh.api_docs",
    )
    assert "old" in page.read_text(encoding="utf-8")
    assert said(Command()) == "docs/api.md was written."
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- made: errors -->\n\n| status | means |")
    assert text.endswith("|\n\n<!-- end -->\nafter\n")
    assert said(Command(), "--check") == "docs/api.md is up to date."


def test_the_command_of_the_page_makes_a_token_that_reads_and_reports_for_so_many_days(web: Web) -> None:
    line = pages.code(PAGE, "sh", "python manage.py")
    token = said(*shlex.split(line)[2:])
    made = ApiToken.objects.get(name="nightly-runner")
    assert made.expires_at
    assert 89 < (made.expires_at - timezone.now()) / timedelta(days=1) < 91
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{web.url}/api/v1", headers=headers, trust_env=False, timeout=60) as runner:
        created = runner.post("/executions", json={"vendor_type": "REPLICATION"})
        asked = [runner.get("/executions"), runner.post(f"/executions/{created.json()['id']}/stop")]
    assert [created.status_code, *(one.status_code for one in asked)] == [201, 200, 403]


def run(web: Web, folder: Path, *argv: str | Path, **more: str) -> str:
    environ = {**os.environ, "HARBOR_REFRESH_URL": web.url, "HARBOR_REFRESH_TOKEN": web.token, **more}
    done = subprocess.run(argv, env=environ, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    newest = Execution.objects.latest("pk")
    assert list(newest.tasks.values_list("status", flat=True)) == ["Success", "Success"]
    return done.stdout


def test_the_example_for_curl_runs(web: Web, tmp_path: Path) -> None:
    assert shutil.which("curl"), "the example of the page needs curl"
    assert '"progress":1.0' in run(web, tmp_path, "sh", "-eu", "-c", pages.code(PAGE, "sh", "call()"))


def test_the_example_for_python_runs(web: Web, tmp_path: Path) -> None:
    out = run(web, tmp_path, sys.executable, "-W", "error", "-c", pages.code(PAGE, "python"))
    assert out == "1.0\n"


@pytest.mark.slow
def test_the_example_for_go_is_compiled_and_runs(web: Web, tmp_path: Path) -> None:
    """With the standard library alone: nothing is fetched."""
    (tmp_path / "main.go").write_text(pages.code(PAGE, "go"), encoding="utf-8")
    alone = {"HOME": str(tmp_path), "GOPROXY": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local", "no_proxy": "*"}
    out = run(web, tmp_path, needs("go"), "run", "main.go", **alone)
    assert out == "2 applied, 0 refused\n"
