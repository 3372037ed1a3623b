"""`manage.py harbor`: lists and shows, and acts on all that its options choose."""

import io
import json
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.management.command import age
from harbor_refresh.executions.management.output import Misused
from harbor_refresh.executions.models import AuditEntry, Execution
from harbor_refresh.executions.news.audit import Word
from harbor_refresh.executions.queries import error_groups
from harbor_refresh.tasks.operations import bulk
from harbor_refresh.tasks.operations.bulk import VERBS
from tests.integration.admin_client import text
from tests.integration.command_output import data, failing, manage, said
from tests.integration.operations.actions.sample_bulk import reported, statuses, with_jobs
from tests.integration.sample_executions import fails_with, made

pytestmark = pytest.mark.usefixtures("database", "queue")

BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)


def began(execution: Execution, at: datetime = BEGAN) -> Execution:
    Execution.objects.filter(pk=execution.pk).update(start_time=at, update_time=at)
    execution.refresh_from_db()
    return execution


class Terminal(io.StringIO):
    """A person who answers this."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda answer: monkeypatch.setattr("sys.stdin", Terminal(answer))


@pytest.fixture
def in_pages(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Pages of two executions, before each of which this is called."""

    def use(before: Callable[[], Any] = lambda: None) -> None:
        def act(ids: Sequence[int]) -> Any:
            before()
            return VERBS[Word.STOP].act(ids)

        monkeypatch.setattr(bulk, "VERBS", {Word.STOP: replace(VERBS[Word.STOP], act=act, page=2)})

    return use


# list and show


def test_list_shows_what_the_options_choose_the_newest_first() -> None:
    first = began(create(NewExecution("GC", 7, "SCHEDULE")))
    second = began(create(NewExecution("SCAN_ALL", tasks=[NewTask()])))
    reported([second], "Success")
    end = datetime(2026, 1, 31, 13, tzinfo=UTC)
    Execution.objects.filter(pk=second.pk).update(end_time=end)
    assert said("harbor", "list") == (
        "execution  status   vendor    vendor id  trigger   started              ended\n"
        f"{second.pk}          Success  SCAN_ALL  0          MANUAL    2026-01-31 12:00:00  2026-01-31 13:00:00\n"
        f"{first.pk}          Running  GC        7          SCHEDULE  2026-01-31 12:00:00"
    )
    assert "The newest 1 execution; there are more." in said("harbor", "list", "--limit", 1)
    assert said("harbor", "list", "--vendor", "NONE") == "No execution is chosen."


def test_an_execution_of_an_object_with_text_is_listed_and_shown_by_it() -> None:
    execution = began(create(NewExecution("GC", "disk/a")))
    began(create(NewExecution("GC", 7)))
    assert said("harbor", "list", "--vendor-id", "disk/a") == (
        "execution  status   vendor  vendor id  trigger  started              ended\n"
        f"{execution.pk}          Running  GC      disk/a     MANUAL   2026-01-31 12:00:00"
    )
    assert "vendor      GC disk/a" in said("harbor", "show", execution.pk)
    assert data("harbor", "list", "--vendor-id", "disk/a")["executions"][0]["vendor_key"] == "disk/a"
    assert data("harbor", "stop", "--vendor-id", "disk/a", "--dry-run")["count"] == 1
    with pytest.raises(Misused, match="vendor_id takes a whole number"):
        said("harbor", "list", "--vendor-id", "x" * 256)


def test_list_as_json_has_the_fields_of_the_api() -> None:
    execution = began(create(NewExecution("GC", 7, "SCHEDULE", {"a": {"b": "c"}})))
    assert data("harbor", "list", "--attribute", "a.b=c") == {
        "executions": [
            {
                "id": execution.pk,
                "vendor_type": "GC",
                "vendor_id": 7,
                "vendor_key": "7",
                "status": "Running",
                "status_message": "",
                "trigger": "SCHEDULE",
                "extra_attrs": {"a": {"b": "c"}},
                "start_time": "2026-01-31T12:00:00+00:00",
                "update_time": "2026-01-31T12:00:00+00:00",
                "end_time": None,
                "revision": 0,
            }
        ],
        "has_more": False,
    }


def test_the_options_choose_by_vendor_status_trigger_age_attribute_jobs_and_quarantine() -> None:
    now = datetime.now(UTC)
    executions = [
        began(create(NewExecution("SCAN_ALL", 3, tasks=[NewTask()])), now - timedelta(days=8)),
        began(create(NewExecution("GC", extra_attrs={"a": 1})), now - timedelta(hours=2)),
        began(create(NewExecution("SCAN_ALL", trigger="EVENT")), now),
    ]
    reported(executions[:1], "Success")
    quarantine([executions[1].pk], 5)
    executions += with_jobs(1, "WITH_JOBS")
    for options, chosen in {
        "--vendor GC": [1],
        "--vendor-id 3": [0],
        "--status Success": [0],
        "--status Success --status Running": [0, 1, 2, 3],
        "--trigger EVENT": [2],
        "--older-than 7d": [0],
        "--newer-than 2w --older-than 90m": [0, 1],
        "--attribute a=1": [1],
        "--attribute a=1 --attribute b=x": [],
        "--quarantined": [1],
        "--has-jobs": [3],
    }.items():
        found = [one["id"] for one in data("harbor", "list", *options.split())["executions"]]
        assert sorted(found) == [executions[index].pk for index in chosen], options


@pytest.mark.parametrize(
    ("text", "days"), [("1d", 1), ("36h", 1.5), ("8w", 56), ("1440m", 1), ("86400s", 1), ("36500d", 36_500)]
)
def test_an_age_is_a_number_and_a_unit(text: str, days: float) -> None:
    assert age(text) == timedelta(days=days)


@pytest.mark.parametrize("text", ["", "30", "0d", "1.5d", "36501d", "9999999999w", "٣d"])
def test_anything_else_is_misuse(text: str) -> None:
    with pytest.raises(CommandError, match="takes an age such as 12h, 30d or 8w") as misuse:
        call_command("harbor", "list", f"--older-than={text}")
    assert misuse.value.returncode in (1, 2)


def test_show_names_the_tasks_by_status_and_the_share_that_has_ended() -> None:
    execution, tasks = made(4, "GC")
    report([Report(tasks[0], "Success"), Report(tasks[1], "Running")])
    refresh([execution.pk])
    quarantine([execution.pk], 5, {execution.pk: "no more"})
    began(execution)
    assert said("harbor", "show", execution.pk) == (
        "\n"
        f"execution   {execution.pk}\n"
        "vendor      GC\n"
        "status      Running\n"
        "trigger     MANUAL\n"
        "attributes  {}\n"
        "started     2026-01-31 12:00:00\n"
        "tasks       4: 2 Pending, 1 Running, 1 Success\n"
        "progress    25%\n"
        "quarantine  no more"
    )
    shown = data("harbor", "show", execution.pk)
    assert {name: shown[name] for name in ("id", "counts", "tasks", "progress", "quarantine")} == {
        "id": execution.pk,
        "counts": {"Pending": 2, "Running": 1, "Success": 1},
        "tasks": 4,
        "progress": 0.25,
        "quarantine": "no more",
    }


def test_show_says_why_an_execution_failed_the_most_frequent_message_first() -> None:
    execution, tasks = made(6)
    messages = ["the registry answered 503", "timeout", "the registry answered 503", "a", "b", "c"]
    report([Report(task, "Error", 1, message) for task, message in zip(tasks, messages, strict=True)])
    refresh([execution.pk])
    assert re.findall(r"^\d errors? .*", said("harbor", "show", execution.pk), re.MULTILINE) == [
        f"2 errors    the registry answered 503 (task {tasks[2]})",
        f"1 error     a (task {tasks[3]})",
        f"1 error     b (task {tasks[4]})",
        f"1 error     c (task {tasks[5]})",
    ]
    assert data("harbor", "show", execution.pk)["errors"][0] == {
        "message": "the registry answered 503",
        "count": 2,
        "task_id": tasks[2],
    }


def test_show_and_the_panel_count_the_newest_errors_of_an_execution_and_say_so(
    monkeypatch: pytest.MonkeyPatch, admin: Client
) -> None:
    monkeypatch.setattr(error_groups, "OF_ONE", 2)
    execution, tasks = made(3)
    report([Report(task, "Error", 1, "old" if task == tasks[0] else "new") for task in tasks])
    refresh([execution.pk])
    shown = said("harbor", "show", execution.pk)
    assert re.findall(r"^\d errors? .*", shown, re.MULTILINE) == [f"2 errors    new (task {tasks[2]})"]
    assert shown.endswith("The errors of the newest 2 tasks that failed.")
    panel = admin.get(f"/admin/harbor_executions/execution/{execution.pk}/panel/").json()["parts"]["panel"]
    assert re.search("Errors by message .* new 2 .* The errors of the newest 2 tasks that failed.", text(panel))
    assert "old" not in panel


def test_show_names_an_unknown_execution() -> None:
    assert failing("harbor", "show", 7) == ("", "there is no execution 7.")


# stop, retry, delete


def test_stop_as_a_program_stops_what_is_chosen_and_exits_0() -> None:
    with_jobs(5), with_jobs(2, "GC")
    done = manage("harbor", "stop", "--vendor", "SCAN", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer == {
        "verb": "stop",
        "filter": {"vendor_type": "SCAN"},
        "is_complete": True,
        "total": 5,
        "changed": 5,
        "skipped": 0,
        "failed": 0,
        "error": "",
    }
    names = ("origin", "verb", "kind", "target", "count", "outcome", "detail")
    entry = ("terminal", "stop", "executions", "", 5, "done", "vendor type SCAN")
    assert list(AuditEntry.objects.values_list(*names)) == [entry]
    assert statuses() == {"Stopped": 5, "Running": 2}


def test_without_a_terminal_to_ask_on_nothing_is_changed_and_the_exit_code_is_2() -> None:
    with_jobs(1)
    refused = manage("harbor", "stop", "--all")
    assert refused.returncode == 2
    assert "there is no terminal to ask on; use --yes, or --dry-run to count" in refused.stderr
    assert not AuditEntry.objects.exists()


def test_a_dry_run_counts_and_changes_nothing() -> None:
    with_jobs(5)
    assert said("harbor", "stop", "--vendor", "SCAN", "--dry-run") == (
        "Dry run: 5 executions to stop; nothing was changed."
    )
    assert data("harbor", "delete", "--status", "Running", "--dry-run") == {
        "verb": "delete",
        "filter": {"statuses": ["Running"]},
        "count": 5,
        "is_complete": True,
    }
    assert not AuditEntry.objects.exists()


def test_a_person_is_asked_with_the_count_and_may_refuse(
    person: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with_jobs(1_234)
    person("\n")
    assert failing("harbor", "stop", "--all") == ("", "nothing was changed")
    assert capsys.readouterr().err == "Stop 1,234 executions? [y/N] "
    assert not AuditEntry.objects.exists()
    person("y\n")
    assert said("harbor", "stop", "--all") == "1,234 executions stopped, 0 left as they are, 0 failed."


def test_an_execution_that_is_created_while_a_person_thinks_is_not_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_jobs(2)

    class Thinking(Terminal):
        def readline(self, *_: Any) -> str:
            with_jobs(3, "LATER")
            return "yes\n"

    monkeypatch.setattr("sys.stdin", Thinking())
    assert data("harbor", "stop", "--all")["changed"] == 2
    assert statuses() == {"Stopped": 2, "Running": 3}


def test_retry_and_delete_act_through_the_same_use_cases() -> None:
    failed, ended = with_jobs(3), with_jobs(2, "GC")
    reported(failed, "Error")
    reported(ended, "Success")
    assert data("harbor", "retry", "--status", "Error", "--yes")["changed"] == 3
    assert statuses() == {"Running": 3, "Success": 2}
    deleted = data("harbor", "delete", "--all", "--yes")
    assert (deleted["changed"], deleted["skipped"]) == (2, 3)
    assert statuses() == {"Running": 3}
    _, failure = failing("harbor", "delete", failed[0].pk, "--yes")
    assert failure == "what was left has not ended, or a row of the project names it"


def test_nothing_chosen_is_no_failure_and_as_json_has_the_same_keys() -> None:
    assert said("harbor", "stop", "--vendor", "NONE") == "No execution is chosen; nothing was changed."
    none, one = (data("harbor", "stop", *chosen) for chosen in (["--vendor", "NONE"], [made()[0].pk]))
    assert (none.keys(), none["changed"], one["changed"]) == (one.keys(), 0, 1)


def test_executions_that_failed_make_the_command_fail() -> None:
    good, bad = made()[0], create(NewExecution("TEST"))
    fails_with("23514", bad)
    out, failure = failing("harbor", "stop", "--all", "--yes")
    assert out == "1 execution stopped, 0 left as they are, 1 failed.\n"
    assert failure == f"1 execution failed, the first of them: execution {bad.pk}: no more"
    assert Execution.objects.get(pk=good.pk).status == "Stopped"


def test_a_bar_on_a_terminal_counts_the_executions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], in_pages: Callable[..., None]
) -> None:
    with_jobs(5)
    in_pages()
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes stderr for a terminal
    assert data("harbor", "stop", "--all", "--yes")["changed"] == 5
    assert "5/5" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)


# interrupted


@pytest.mark.parametrize("kills", [False, True])
def test_an_interrupt_rolls_back_the_portion_and_the_same_command_does_the_rest(
    kills: bool, in_pages: Callable[..., None]
) -> None:
    ids = [one.pk for one in with_jobs(5)]
    portions = count()
    in_pages(lambda: next(portions) and signal.raise_signal(signal.SIGINT))
    command = ("harbor", "stop", *([*ids, "--kill-after", "5"] if kills else ["--status", "Running"]), "--yes")
    out, failure = failing(*command)
    assert out == "2 executions stopped, 0 left as they are, 0 failed.\n"
    assert failure == "it was interrupted before its end; to do the rest, type it again"
    assert statuses() == {"Stopped": 2, "Running": 3}
    in_pages()
    left = len(ids) - 3 if kills else 0
    assert said(*command) == f"3 executions stopped, {left} left as they are, 0 failed."
    assert statuses() == {"Stopped": 5}
    assert list(AuditEntry.objects.values_list("count", flat=True)) == [2, 3]


def test_the_stopped_executions_run_again_and_a_refresh_brings_each_to_what_its_tasks_say() -> None:
    stopped = with_jobs(3)
    said("harbor", "stop", stopped[0].pk, stopped[1].pk)
    assert statuses() == {"Stopped": 2, "Running": 1}
    assert data("harbor", "resume", "--all", "--yes")["changed"] == 2
    assert statuses() == {"Running": 3}
    report([Report(pk, "Success", 1) for pk in stopped[2].tasks.values_list("pk", flat=True)])
    assert data("harbor", "repair", "refresh", stopped[2].pk)["changed"] == 1
    assert statuses() == {"Running": 2, "Success": 1}
