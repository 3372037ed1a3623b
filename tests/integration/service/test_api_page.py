"""docs/api.md: its tables are what the code says, and its examples run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.utils import timezone

from harbor_refresh.api import api
from harbor_refresh.api_description import ERRORS
from harbor_refresh.executions import pacing
from harbor_refresh.executions.api.idempotency import MAX_KEY
from harbor_refresh.executions.api.pages import MAX_ITEMS, PageIn
from harbor_refresh.executions.api.parsing import MAX_VALUES
from harbor_refresh.executions.api.schemas import MAX_REPORTS, MAX_TASKS
from harbor_refresh.executions.conf import DECLARED
from harbor_refresh.executions.models import ApiToken, Execution
from harbor_refresh.executions.queries.event_stream import SECONDS_OF_A_STREAM
from harbor_refresh.executions.queries.filters import MAX_ATTRIBUTES
from harbor_refresh.executions.text import MAX_DEPTH, MAX_JSON
from tests import pages
from tests.integration.command_output import said
from tests.integration.service.web import Web
from tests.programs import needs

PAGE = pages.read("docs/api.md")


def operations() -> Iterator[str]:
    for path, methods in api.get_openapi_schema()["paths"].items():
        for method, operation in methods.items():
            scope = operation["security"][-1]["token"][0]
            yield f"| `{method.upper()} {path}` | `{scope}` | {operation['summary']} |"


def test_the_page_has_each_operation_and_each_error() -> None:
    """Copy the rows that this expects into docs/api.md."""
    assert rows("Overview") == [*operations()]
    assert rows("Errors") == [f"| {status} | {meaning} |" for status, meaning in ERRORS.items()]


def test_the_page_has_each_limit() -> None:
    rate = DECLARED["requests_per_minute"]
    assert [row.split(" | ")[1] for row in rows("Limits")] == [
        "262,144 bytes",
        f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 1024**2} MiB",
        f"{MAX_VALUES:,}",
        f"{MAX_DEPTH}",
        f"{MAX_JSON:,} bytes",
        f"{MAX_TASKS:,}",
        f"{MAX_REPORTS:,}",
        f"{MAX_ITEMS:,}; {PageIn.model_fields['limit'].default} if `limit` is not given",
        f"{MAX_ATTRIBUTES}",
        f"{MAX_KEY} visible ASCII characters",
        f"{rate.default:,} (`{rate.name}`)",
        f"{pacing.STREAMS}",
        f"{SECONDS_OF_A_STREAM:g} s, then open another one",
    ]


def rows(title: str) -> list[str]:
    """The rows of the one table under a heading, without its head."""
    return re.findall(r"^\|.*\|$", pages.section(PAGE, title), re.MULTILINE)[2:]


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
