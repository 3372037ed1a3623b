"""The status hook: what a status change does to its task, and what each other request is answered."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import RequestFactory
from hypothesis import given
from hypothesis import settings as of_hypothesis
from hypothesis import strategies as st
from pytest_django import Settings

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.api.hook import MAX_BODY, status_hook
from harbor_refresh.executions.api.problems import DOWN
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.news.after_commit import Member
from harbor_refresh.executions.status import MAX_REVISION
from tests.integration.concurrency import statement_held_open
from tests.integration.database_state import rows
from tests.integration.executions.api.api_client import token
from tests.integration.executions.hook_requests import BEGUN, PATH, SECRET, answer, is_hidden, post, recorded, wire
from tests.integration.executions.reference_model import CODE, ReferenceTask, changes, reported
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database", "secret")


@pytest.fixture
def refusals() -> Iterator[list[str]]:
    told: list[str] = []

    def listen(refusals: Any, **_: Any) -> None:
        told.extend(one.reason for one in refusals)

    signals.refused.connect(listen)
    yield told
    signals.refused.disconnect(listen)


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def model_of(row: dict[str, Any]) -> ReferenceTask:
    return ReferenceTask.from_row(row)


# what a status change does


def test_a_status_change_of_the_wire_changes_its_task_and_tells_its_execution(changed: list[Member]) -> None:
    execution, (task, other) = recorded("j", "k")
    before = rows(Task)
    assert answer(wire("j"), task.pk) == (200, "")
    after = rows(Task)
    assert after[other.pk] == before[other.pk]
    now = after[task.pk]["update_time"]
    model = reported(model_of(before[task.pk]), "Running", BEGUN, None, now)
    assert after[task.pk] == before[task.pk] | vars(model) | {"start_time": moment(BEGUN)}
    assert changed == [(execution.pk, "REPLICATION")]
    assert answer(wire("j"), task.pk) == (200, ""), "a repeated report changes nothing"
    assert (rows(Task), changed) == (after, [(execution.pk, "REPLICATION")])


@pytest.mark.parametrize(
    ("revision", "is_its_start"),
    [(BEGUN, True), (1_000_000_000, True), (7, False), (99_999_999_999, False), (MAX_REVISION, False)],
)
def test_a_run_starts_at_its_revision_if_that_is_a_moment_of_the_past(revision: int, is_its_start: bool) -> None:
    recorded("j")
    assert answer(wire("j", revision=revision)) == (200, "")
    task = Task.objects.get()
    assert task.start_time == (moment(revision) if is_its_start else task.update_time)
    assert (task.status_revision, task.run_count) == (revision, 1)


def test_the_job_finds_its_task_whatever_the_address_says() -> None:
    _, (first, _) = recorded("j", "k")
    assert answer(wire("k"), first.pk) == (200, "")
    assert dict(Task.objects.values_list("job_id", "status")) == {"j": "Pending", "k": "Running"}


def test_of_two_tasks_of_one_job_the_one_in_the_address_is_taken_and_else_the_first() -> None:
    _, tasks = recorded("j", "j", "j")
    assert answer(wire("j", "Error"), tasks[1].pk) == (200, "")
    assert answer(wire("j", "Success")) == (200, "")
    statuses = Task.objects.order_by("pk").values_list("status", flat=True)
    assert list(statuses) == ["Success", "Error", "Pending"]


def test_the_address_finds_a_task_whose_job_id_is_not_stored_yet() -> None:
    _, (task, other) = recorded("", "k")
    assert answer(wire("j"), task.pk) == (200, "")
    assert answer(wire("j"), other.pk) == (404, "there is no task of job j"), "it belongs to another job"
    assert answer(wire("", "Success"), other.pk) == (200, ""), "without a job id the address counts"
    assert list(Task.objects.order_by("pk").values_list("status", flat=True)) == ["Running", "Success"]


def test_a_report_finds_its_task_by_the_index_although_its_plan_was_made_for_a_small_table() -> None:
    """A connection keeps its plan while the table grows."""
    recorded("first")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE task")
    for revision in range(1, 10):  # after five runs PostgreSQL may keep a plan for any values
        assert post(wire("first", revision=revision)).status_code == 200
    columns = [one.column for one in Task._meta.concrete_fields if not one.primary_key]
    values = ["'other ' || n" if one == "job_id" else one for one in columns]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO task ({', '.join(columns)}) "
            f"SELECT {', '.join(values)} FROM task, generate_series(1, 5000) AS n"
        )
        assert post(wire("other 4711")).status_code == 200
        cursor.execute("SELECT idx_scan > 0, seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'task'")
        assert cursor.fetchone() == (True, 1), "more was read than the row that the INSERT has copied"


def test_a_body_without_metadata_is_a_report_of_the_first_run() -> None:
    _, (task,) = recorded("j")
    assert answer({"job_id": "j", "status": "Running"}, task.pk) == (200, "")
    assert answer({"job_id": "j", "status": "Error", "metadata": None, "status_message": "no route"}) == (200, "")
    nothing = {"check_in": None, "metadata": {"revision": None, "upstream_job_id": None}}
    assert answer({"job_id": "j", "status": "Error", **nothing}) == (200, "")
    task.refresh_from_db()
    assert (task.status, task.status_revision, task.run_count, task.status_message) == ("Error", 0, 0, "no route")


one_change = st.tuples(
    st.integers(0, 1),
    st.sampled_from(sorted(CODE)),
    st.sampled_from([0, BEGUN, BEGUN + 60, BEGUN + 7_200]),
    st.none() | st.sampled_from(["", "a"]),
)


@given(said=st.lists(one_change, min_size=1, max_size=8))
@of_hypothesis(max_examples=40, derandomize=True, database=None)
def test_status_changes_in_any_order_give_the_rows_of_the_model(said: list[Any]) -> None:
    _, tasks = recorded("j", "k")
    for index, status, revision, message in said:
        pk, job = tasks[index].pk, "jk"[index]
        before = rows(Task)
        assert answer(wire(job, status, revision, status_message=message)) == (200, "")
        after = rows(Task)
        model = model_of(before[pk])
        if changes(model, status, revision):
            is_rerun = revision > model.status_revision
            model = reported(model, status, revision, message, after[pk]["update_time"])
            if is_rerun:
                model = ReferenceTask(**(vars(model) | {"start_time": moment(revision)}))
        assert after == before | {pk: before[pk] | vars(model)}
    Execution.objects.all().delete()


# tasks that are not there


def test_an_unknown_task_is_404_as_long_as_it_may_be_created() -> None:
    response = post(wire("j"), 7)
    assert (response.status_code, response.headers["Retry-After"]) == (404, "5")
    recorded("j")
    assert answer(wire("j"), 7) == (200, "")


@pytest.mark.parametrize("by", ["job", "address", "both", "firing"])
def test_a_deleted_task_is_410_so_that_no_sender_tries_for_ever(by: str) -> None:
    execution, (task, _) = recorded("j", "")
    recorded("other")
    assert delete([execution.pk]) == 1
    body = {
        "job": wire("j"),
        "address": wire("unknown"),
        "both": wire("j"),
        "firing": wire("f", metadata={"upstream_job_id": "j"}),
    }[by]
    status, reason = answer(body, 0 if by in ("job", "firing") else task.pk)
    assert (status, reason) == (410, f"the task of job {body['job_id']} was deleted")


def test_a_task_whose_id_is_beyond_all_ids_is_found_by_its_job() -> None:
    recorded("j")
    for task_id in ("9" * 19, "9" * 400):
        assert answer(wire("j"), task_id) == (200, "")
        assert answer(wire("k"), task_id)[0] == 404


# requests that cannot be used


REFUSED: dict[str, tuple[Any, str]] = {
    "an unknown status": (wire("j", "Succeed"), "unknown status 'Succeed'; takes Pending, Scheduled, Running"),
    "no status": ({"job_id": "j"}, "unknown status ''; takes"),
    "a list for a status": (wire("j") | {"status": ["Running"]}, "status: Input should be a valid string"),
    "a number for a job": (wire("j") | {"job_id": 7}, "job_id: Input should be a valid string"),
    "a job id that is too long": (wire("j" * 65), "job_id: String should have at most 64 characters"),
    "NUL in a job id": (wire("j\x00"), "job_id: String should match pattern"),
    "NUL in a message": (wire("j", status_message="a\x00b"), "status_message: String should match pattern"),
    "half a surrogate pair": (
        b'{"job_id": "j", "status": "Error", "status_message": "\\ud800"}',
        "the body: Invalid JSON",
    ),
    "NUL in a check-in": (wire("j", check_in="\x00"), "check_in: String should match pattern"),
    "a negative revision": (
        wire("j", revision=-1),
        "metadata.revision: Input should be greater than or equal to 0",
    ),
    "a revision too large": (
        wire("j", revision=MAX_REVISION + 1),
        "metadata.revision: Input should be less than or equal to",
    ),
    "true for a revision": (
        wire("j") | {"metadata": {"revision": True}},
        "metadata.revision: Input should be a valid integer",
    ),
    "a number of 5,000 digits": (b'{"metadata": {"revision": ' + b"9" * 5_000 + b"}}", "the body: Invalid JSON"),
    "a list for metadata": (wire("j") | {"metadata": []}, "metadata: Input should be an object"),
    "a list": ([wire("j")], "the body: Input should be an object"),
    "no JSON": (b"job_id=j&status=Running", "the body: Invalid JSON"),
    "no UTF-8": (b'{"job_id": "\xff"}', "the body: Invalid JSON"),
    "nesting beyond all measure": (b"[" * 100_000, "the body: Invalid JSON: recursion limit exceeded"),
}


def test_an_unusable_body_is_400_says_why_is_told_and_changes_nothing(refusals: list[str]) -> None:
    recorded("j")
    before = rows(Task)
    for name, (body, why) in REFUSED.items():
        status, reason = answer(body)
        assert (status, reason[: len(why)]) == (400, why), name
        assert refusals == [reason], name
        assert rows(Task) == before, name
        refusals.clear()


def test_an_address_that_is_no_id_is_400() -> None:
    for task_id in ("x", "-1", "1.5", "\u0663", "1/2", ""):
        assert answer(wire("j"), task_id) == (400, "the address takes the id of a task, a whole number")


def test_a_body_that_is_too_large_is_413() -> None:
    recorded("j")
    largest = wire("j", status_message="x")
    room = MAX_BODY - len(json.dumps(largest))
    assert answer(wire("j", status_message="x" * (room + 1))) == (200, "")
    assert answer(wire("j", status_message="x" * (room + 2))) == (413, "a body takes at most 1,000,000 bytes")
    assert len(Task.objects.get().status_message) == 10_000, "as long as one of the API"


def test_only_post_is_allowed() -> None:
    response = status_hook(RequestFactory().get(PATH), "1")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=70),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner, max_size=3),
    max_leaves=8,
)
texts = st.sampled_from(["j", "k", "", "Running", "Succeed", "\x00", "\ud800", "x" * 65]) | st.text(max_size=20)
numbers = st.sampled_from([0, -1, BEGUN, MAX_REVISION, MAX_REVISION + 1, 2**63, 10**400]) | st.integers()
near_the_wire = st.fixed_dictionaries(
    {},
    optional={
        "job_id": texts | json_values,
        "status": st.sampled_from(sorted(CODE)) | texts | json_values,
        "check_in": texts | json_values,
        "status_message": texts | json_values,
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "revision": numbers | json_values,
                "check_in_at": numbers | json_values,
                "upstream_job_id": texts | json_values,
                "id": json_values,
            },
        )
        | json_values,
    },
)
bodies = st.binary(max_size=200) | (near_the_wire | json_values).map(lambda value: json.dumps(value).encode())


@given(body=bodies, task_id=st.sampled_from(["0", "1", "2", "9" * 19, "x"]) | st.text(max_size=5))
@of_hypothesis(max_examples=250, derandomize=True, database=None)
def test_no_body_and_no_address_makes_an_error_of_the_server(body: bytes, task_id: str) -> None:
    if not Task.objects.filter(job_id="j").exists():
        recorded("j", "k", "")
    assert answer(body, task_id)[0] in (200, 400, 404, 410)


# who may report


NOT_THE_SECRET = (
    *("", "Harbor-Secret", "Harbor-Secret ", "Harbor-Secret wrong", f"Harbor-Secret {SECRET} ", SECRET),
    *(f"Harbor-Secret {SECRET}x", f"harbor-secret {SECRET}", f"Basic {SECRET}", f"Bearer {SECRET}"),
    *("Harbor-Secret \u00e9", "Bearer", "Bearer hr_" + "x" * 43),
)


def test_without_the_secret_a_report_is_401_and_changes_nothing() -> None:
    recorded("j")
    before = rows(Task)
    for header in NOT_THE_SECRET:
        status, reason = answer(wire("j"), headers={"Authorization": header} if header else {})
        assert status == 401, header
        assert is_hidden(reason)
        assert rows(Task) == before


def test_without_a_secret_in_the_settings_no_secret_is_right(settings: Settings) -> None:
    settings.REFRESH_HARBOR_SECRET = ""
    recorded("j")
    for sent in ("", "x", "None"):
        assert answer(wire("j"), headers={"Authorization": f"Harbor-Secret {sent}"})[0] == 401


def test_an_api_token_needs_the_scope_of_reports() -> None:
    recorded("j")
    expired = token(Scope.REPORT, name="expired", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    tokens = {token(Scope.REPORT): 200, token(Scope.READ, Scope.MANAGE): 403, expired: 401}
    for sent, expected in tokens.items():
        assert answer(wire("j"), headers={"Authorization": f"Bearer {sent}"})[0] == expected


# check-ins


def test_a_check_in_changes_nothing_whether_its_task_is_there_or_not(changed: list[Member]) -> None:
    recorded("j")
    before = rows(Task)
    for job in ("j", "k"):
        body = wire(job, "Success", check_in='{"total": 3}', metadata={"check_in_at": BEGUN + 9})
        assert answer(body) == (200, "")
    assert (rows(Task), changed) == (before, [])


# a database that does not answer


def test_a_row_that_stays_locked_is_503_and_the_report_may_be_sent_again() -> None:
    _, (task,) = recorded("j")
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    with statement_held_open("SELECT FROM task WHERE id = %s FOR UPDATE", [task.pk]):
        response = post(wire("j"))
        assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert answer(wire("j")) == (200, "")


def test_a_database_that_is_down_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded("j")
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    assert answer(wire("j")) == (503, DOWN)
    connection.close()
