"""The verbs of the client, its shell, and the examples of its page, with the service as `make up` runs it."""

import ast
import json
import os
import shutil
import sys
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from harbor_refresh import client as module
from harbor_refresh.client import ApiError, Client, Report, TimedOut, Unavailable, Unusable, main
from harbor_refresh.local.ports import choose_port
from tests import pages
from tests.integration.sample_executions import made
from tests.integration.service.client.recorder import Recorder, Told
from tests.integration.service.client.rounds import after, numbered, state
from tests.integration.service.client.web import Web
from tests.integration.service.web import ROOT
from tests.terminal import ran

PAGE = pages.section(pages.read("docs/howto/api.md"), "The Python client")


@pytest.fixture
def client(web: Web) -> Iterator[Client]:
    with Client(web.url, web.token) as client:
        yield client


def test_the_life_of_an_execution(client: Client) -> None:
    created = client.create(
        "LIFE", vendor_id=7, trigger="EVENT", extra_attrs={"a": {}}, tasks=[{"job_id": "one"}, {}]
    )
    first, second = created["task_ids"]
    (third,) = client.add_tasks(created["id"], [{"job_id": "three"}])
    assert [one["job_id"] for one in client.tasks(created["id"])] == ["one", "", "three"]
    client.report(first, "Running", 1, "half of it")
    client.report_many([Report(second, "Success"), Report(third, "Error", message="no room")])
    client.flush()
    assert next(client.tasks(created["id"]))["status_message"] == "half of it"
    assert [one["id"] for one in client.tasks(created["id"], status=["Success", "Error"])] == [second, third]
    with pytest.raises(TimedOut, match="has not ended in time: its status is Running") as failure:
        client.wait(created["id"], timeout=0.0)
    assert failure.value.execution is not None
    assert failure.value.execution["counts"] == {"Running": 1, "Success": 1, "Error": 1}
    client.report(first, "Success", 1)
    client.flush()
    ended = client.wait(created["id"], 60)
    assert (ended["status"], ended["vendor_id"], ended["progress"]) == ("Error", 7, 1)
    with pytest.raises(ApiError, match=r"^404 .*there is no execution 99999999"):
        client.wait(99_999_999, 60)


def test_tasks_are_read_page_after_page(client: Client) -> None:
    execution, tasks = made(101)
    assert [one["id"] for one in client.tasks(execution.pk)] == tasks


@pytest.mark.parametrize("key", [UUID("8f14e45f-ceea-467f-9575-18f6a2d1b0a3"), "library/app b"])
def test_an_execution_is_created_for_an_object_whose_key_is_text(client: Client, key: UUID | str) -> None:
    created = client.create("KEYED", vendor_id=key)
    assert client.get(created["id"])["vendor_key"] == str(key)


def test_a_refusal_says_what_is_wrong(client: Client) -> None:
    with pytest.raises(ApiError) as failure:
        client.create("a:colon")
    assert (failure.value.status, failure.value.errors[0]["where"]) == (422, "body.vendor_type")
    with pytest.raises(ApiError, match="there is no execution 99999999"):
        client.get(99_999_999)


def test_an_execution_is_created_once_for_a_key(client: Client) -> None:
    keys = [client.create("KEYED", idempotency_key="run-7")["id"] for _ in range(2)]
    assert keys[0] == keys[1]
    assert client.create("KEYED")["id"] != keys[0]
    for key in ("", "x" * 201, "two words", "line\r\nX: y"):
        with pytest.raises(Unusable, match="Idempotency-Key"):
            client.create("KEYED", idempotency_key=key)


@pytest.mark.parametrize(
    "wrong",
    [
        {"extra_attrs": {"a": object()}},
        {"extra_attrs": {"a": float("nan")}},
        {"trigger": "\ud800"},
        {"idempotency_key": UUID(int=7)},
    ],
    ids=["an object", "no number", "half a character", "no text"],
)
def test_arguments_of_which_no_request_can_be_made_are_refused_at_once(
    client: Client, wrong: dict[str, Any]
) -> None:
    with pytest.raises(Unusable, match="no request can be made of this"):
        client.create("X", **wrong)


def test_a_long_message_does_not_keep_the_service_from_the_other_reports(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that does not cut: the service refuses the whole request, and then this one report."""
    execution, tasks = made(3)
    monkeypatch.setattr(module, "MAX_MESSAGE", 50_000)
    client.report_many(
        Report(task, "Success", message="x" * 20_000 if task == tasks[1] else None) for task in tasks
    )
    client.flush()
    assert client.counts == {"applied": 2, "unchanged": 0, "refused": 1}
    assert [one["status"] for one in client.tasks(execution.pk)] == ["Success", "Pending", "Success"]


def said(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    """What the shell prints; its exit code must be as expected."""
    try:
        found = main([str(word) for word in words])
    except SystemExit as exc:
        found = int(str(exc.code))
    out, err = capsys.readouterr()
    assert found == code, err
    return (out if code in (0, 3) or out else err).strip()


def test_the_shell_creates_reports_waits_and_shows(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    execution, first, second = said(capsys, "create", "SHELL", "--tasks", 2, "--attributes", '{"a":1}').split()
    assert said(capsys, "report", first, "Success") == "1 applied, 0 unchanged, 0 refused"
    assert said(capsys, "report", first, "Success") == "0 applied, 1 unchanged, 0 refused"
    assert said(capsys, "wait", execution, "--timeout", 0.1, code=3) == ""
    report = json.loads(said(capsys, "report", second, "Success", "--revision", 2, "--message", "m", "--json"))
    assert report == {"applied": 1, "unchanged": 0, "refused": 0}
    assert said(capsys, "wait", execution) == "Success"
    shown = json.loads(said(capsys, "show", execution, "--json"))
    assert (shown["status"], shown["extra_attrs"], shown["counts"]) == ("Success", {"a": 1}, {"Success": 2})
    assert 'counts: {"Success": 2}' in said(capsys, "show", execution).splitlines()
    hostile = said(capsys, "create", "\x1b[2J", "--trigger", "\x9b5n").split()[0]
    assert {r"vendor_type: \x1b[2J", r"trigger: \x9b5n"} <= {*said(capsys, "show", hostile).splitlines()}
    assert said(capsys, "show", 99_999_999, code=1) == "error: 404 Not found: there is no execution 99999999"


def test_the_shell_names_the_job_of_each_task(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    execution, *tasks = map(int, said(capsys, "create", "SHELL", "--job", "one", "--job", "two").split())
    assert [(one["id"], one["job_id"]) for one in client.tasks(execution)] == [
        *zip(tasks, ["one", "two"], strict=True)
    ]


@pytest.mark.parametrize("status", ["Error", "Stopped"])
def test_wait_exits_with_1_for_another_end(web: Web, capsys: pytest.CaptureFixture[str], status: str) -> None:
    execution, (task,) = made(1)
    said(capsys, "report", task, status)
    assert said(capsys, "wait", execution.pk, code=1) == status


def test_the_shell_reads_reports_from_its_standard_input(
    web: Web, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (first, second) = made(2)
    one, other = Report(first, "Success").as_line(), Report(second, "Error", 1).as_line()
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(one + b"\nnonsense\n" + other)))
    assert main(["report", "-"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("2 applied, 0 unchanged, 0 refused\n", "line 3: it is not a report as JSON\n")


def test_a_refused_report_is_a_failure_of_the_shell(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    _, (task,) = made(1)
    assert said(capsys, "report", 99_999_999, "Success", code=1) == "0 applied, 0 unchanged, 1 refused"
    assert said(capsys, "report", task, "Succeed", code=1) == "0 applied, 0 unchanged, 1 refused"


def test_a_file_of_reports_is_sent_again_after_an_outage_and_counts_once(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has more reports than the queue of the client has room for."""
    _, tasks = made(20)
    file = tmp_path / "reports.jsonl"
    file.write_bytes(b"".join(numbered(tasks, number).as_line() for number in range(10_500)))

    def send(url: str, code: int) -> str:
        with file.open() as lines:
            monkeypatch.setattr(sys, "stdin", lines)
            return said(capsys, "--url", url, "report", "-", "--timeout", 20 if code == 0 else 0.5, code=code)

    down = f"http://127.0.0.1:{choose_port()}"
    assert send(down, 3) == ""
    assert send(web.url, 0) == "10500 applied, 0 unchanged, 0 refused"
    assert send(web.url, 0) == "0 applied, 10500 unchanged, 0 refused"
    assert state(tasks) == after(tasks, 10_500)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fly"], "invalid choice"),
        (["report", "x", "Success"], "invalid task_id value: 'x'"),
        (["report", "7"], "report takes TASK_ID STATUS"),
        (["report", "-", "Success"], "report takes TASK_ID STATUS, or -"),
        (["show", "x"], "invalid int value: 'x'"),
        (["--url", "refresh.example", "show", "1"], "the url takes"),
        (["create", "X", "--key", "a\nb"], "an Idempotency-Key takes 1 to 200 visible ASCII characters"),
        (["create", "X", "--attributes", "NaN"], "error: no request can be made of this: ValueError"),
        (["create", "\udcff"], "error: no request can be made of this: UnicodeEncodeError"),
        (["--url", "http://999.9.9.9", "show", "1"], "error: no request can be made of this: InvalidURL"),
        (["--token", "hr_x", "show", "1"], "invalid choice"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_misuse_is_told_in_one_line(
    web: Web, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert told in said(capsys, *words, code=2).splitlines()[-1]


def test_the_token_may_come_from_a_file(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    execution, _ = made(0)
    file = tmp_path / "token"
    monkeypatch.setenv("HARBOR_REFRESH_TOKEN", "hr_wrong")
    assert said(capsys, "show", execution.pk, code=1).startswith("error: 401 ")
    monkeypatch.setenv("HARBOR_REFRESH_TOKEN_FILE", str(file))
    assert "No such file" in said(capsys, "show", execution.pk, code=1)
    file.write_text(f"{web.token}\n")
    assert f"id: {execution.pk}" in said(capsys, "show", execution.pk)


def test_a_service_that_gives_no_answer_in_time_is_3(server: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOR_REFRESH_TOKEN", "hr_a-token")
    server.always = Told(503, headers={"Retry-After": "300"})
    assert main(["--url", server.url, "create", "X"]) == 3


def environment(web: Web, **more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HARBOR_REFRESH_URL": web.url, "HARBOR_REFRESH_TOKEN": web.token, **more}


def run(*words: str | Path, cwd: Path, env: dict[str, str]) -> str:
    done = ran(words, folder=cwd, env=env)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_the_runner_of_the_page_runs(web: Web, tmp_path: Path) -> None:
    env = environment(web, PYTHONPATH=str(ROOT))
    out = run(sys.executable, "-c", pages.code(PAGE, "python"), cwd=tmp_path, env=env)
    assert out == "Success\n"


def test_the_shell_commands_of_the_page_run(web: Web, tmp_path: Path) -> None:
    env = environment(web, PYTHONPATH=str(ROOT))
    one_by_one, as_file = pages.codes(PAGE, "sh")
    lines = run("bash", "-e", "-c", one_by_one, cwd=tmp_path, env=env).splitlines()
    assert lines == [*["1 applied, 0 unchanged, 0 refused"] * 2, "Success"]
    assert run("bash", "-e", "-c", as_file, cwd=tmp_path, env=env) == "2 applied, 0 unchanged, 0 refused\n"
    assert [*tmp_path.iterdir()] == []


def test_the_file_works_alone(web: Web, tmp_path: Path) -> None:
    """It is copied to runners, which have neither Django nor this repository."""
    copy = tmp_path / "refresh_client.py"
    shutil.copy(ROOT / "harbor_refresh/client.py", copy)
    execution, _ = made(0)
    out = run(sys.executable, copy, "show", str(execution.pk), cwd=tmp_path, env=environment(web))
    assert f"id: {execution.pk}\n" in out


def test_it_imports_the_standard_library_and_httpx_alone() -> None:
    tree = ast.parse((ROOT / "harbor_refresh/client.py").read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.partition(".")[0] for name in names}
    assert roots - sys.stdlib_module_names == {"httpx2"}


def test_a_call_gives_up_when_its_patience_ends(web: Web) -> None:
    with Client(f"http://127.0.0.1:{choose_port()}", web.token, patience=0.0) as client:
        with pytest.raises(Unavailable, match="ConnectError"):
            client.get(1)
        with pytest.raises(TimedOut, match="its status is not known, because the service did not answer"):
            client.wait(1, timeout=0.2)
