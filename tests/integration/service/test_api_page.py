"""docs/howto/api.md: its command and its requests run. test_client_calls.py runs what it says of the client."""

import json
import os
import re
import shlex
import shutil
from datetime import timedelta
from typing import Any

import httpx2
from django.utils import timezone

from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import ApiToken
from tests import pages
from tests.integration.command_output import said
from tests.integration.service.web import Web
from tests.terminal import ran

PAGE = pages.read("docs/howto/api.md")


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


def test_the_requests_of_the_page_create_report_and_ask(web: Web) -> None:
    """The ids that the page has are those of its example."""
    assert shutil.which("curl"), "the examples of the page need curl"
    create, *others = pages.codes(pages.section(PAGE, "Create, report, ask"), "sh")
    made = typed(web, create)
    head = create.partition("api /executions")[0]
    ids = dict(zip(("17", "91", "92"), (made["id"], *made["task_ids"]), strict=True))
    there = re.sub(r"\b(17|91|92)\b", lambda found: str(ids[found[1]]), "".join(others))
    answer = typed(web, head + there)
    assert (answer["id"], answer["progress"], answer["counts"]) == (made["id"], 1.0, {"Error": 1, "Success": 1})
    refresh([made["id"]])  # no worker runs here
    assert typed(web, head + f"api /executions/{made['id']}")["status"] == "Error"


def typed(web: Web, commands: str) -> dict[str, Any]:
    """Type the commands, and read the last answer."""
    environ = {**os.environ, "HARBOR_REFRESH_URL": web.url, "HARBOR_REFRESH_TOKEN": web.token, "no_proxy": "*"}
    done = ran(["sh", "-eu", "-c", commands], env=environ)
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = {}
    text = done.stdout
    while text := text.lstrip():
        found, end = json.JSONDecoder().raw_decode(text)
        text = text[end:]
    return found
