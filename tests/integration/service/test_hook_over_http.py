"""The status hook over real HTTP: reports that are repeated, late and out of order, and garbage."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
import pytest
import redis as redis_library
from hypothesis import given
from hypothesis import settings as of_hypothesis
from hypothesis import strategies as st
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Task
from tests.integration.executions.hook_requests import BEGUN, PATH, SECRET, SIGNING, as_bytes, wire
from tests.integration.redis_state import whole_redis
from tests.integration.service.web_server import web_server

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.fixture
def runner(settings: Settings) -> Iterator[httpx2.Client]:
    """A runner with one connection that stays open."""
    settings.REFRESH_HARBOR_SECRET = SECRET
    settings.REFRESH_SIGNING_SECRETS = SIGNING
    headers = {"Authorization": f"Harbor-Secret {SECRET}", "Content-Type": "application/json"}
    with web_server() as url, httpx2.Client(base_url=url, headers=headers, timeout=30) as client:
        yield client


Said = tuple[str, str, int, str | None]

#: The runs of three jobs, each with what it reports, in the order in which it happens. The end of a run says how.
endings = st.sampled_from([("Error", "broken"), ("Stopped", "asked to"), ("Success", "")])
one_run = st.tuples(
    st.sampled_from([(), ("Pending",), ("Running",), ("Pending", "Running"), ("Scheduled", "Running")]), endings
)
histories = st.lists(st.lists(one_run, min_size=1, max_size=3), min_size=1, max_size=3)


def said(histories: Sequence[Sequence[Any]]) -> list[Said]:
    found: list[Said] = []
    for number, runs in enumerate(histories):
        for revision, (before, (end, message)) in enumerate(runs):
            at = BEGUN + 60 * revision
            found += [(f"job {number}", status, at, None) for status in before]
            found.append((f"job {number}", end, at, message))
    return found


def reported(runner: httpx2.Client, jobs: int, reports: Sequence[Said]) -> tuple[Any, ...]:
    """The state after these reports: the tasks of a new execution, and its status."""
    execution = create(NewExecution("TEST", tasks=[NewTask(f"job {number}") for number in range(jobs)]))
    for job, status, revision, message in reports:
        body = wire(job, status, revision, **({} if message is None else {"status_message": message}))
        assert runner.post(f"{PATH}0", content=as_bytes(body)).status_code == 200
    refresh([execution.pk])
    execution.refresh_from_db()
    columns = ("job_id", "status", "status_code", "status_revision", "status_message", "start_time")
    tasks = list(Task.objects.order_by("pk").values_list(*columns))
    ends = [(one.end_time is None, one.start_time <= one.end_time) for one in Task.objects.all()]
    Execution.objects.all().delete()
    return tasks, ends, execution.status


@given(histories=histories, data=st.data())
@of_hypothesis(max_examples=20, derandomize=True, database=None)
def test_reports_repeated_late_and_in_any_order_give_the_state_of_the_ordered_run(
    runner: httpx2.Client, histories: list[Any], data: st.DataObject
) -> None:
    """`run_count` is left out: a run whose reports all come after those of a later run is not counted."""
    ordered = said(histories)
    repeated = data.draw(st.lists(st.sampled_from(ordered), max_size=4))
    mixed = data.draw(st.permutations([*ordered, *repeated]))
    assert reported(runner, len(histories), mixed) == reported(runner, len(histories), ordered)


def test_two_runs_of_one_job_in_every_order_there_is(runner: httpx2.Client) -> None:
    runs = [[(("Running",), ("Error", "broken")), (("Running",), ("Success", ""))]]
    ordered = said(runs)
    expected = reported(runner, 1, ordered)
    for order in itertools.permutations(ordered):
        assert reported(runner, 1, order) == expected, order


garbage = st.binary(max_size=300) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["job_id", "status", "metadata", "revision", "check_in"]), inner, max_size=4
        )
    ),
    max_leaves=6,
).map(as_bytes)


@given(
    body=garbage,
    path=st.sampled_from(["1", "0", "x", "9" * 30, "%00", "%ff", "1/", "-1"]),
    headers=st.dictionaries(
        st.sampled_from(["webhook-id", "webhook-timestamp", "webhook-signature", "Content-Type", "Authorization"]),
        st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30),
        max_size=3,
    ),
)
@of_hypothesis(max_examples=100, derandomize=True, database=None)
def test_no_request_makes_an_error_of_the_server(
    runner: httpx2.Client, body: bytes, path: str, headers: dict[str, str]
) -> None:
    answer = runner.post(PATH + path, content=body, headers=headers)
    assert answer.status_code in (400, 401, 404), (answer.status_code, answer.text)


def test_an_address_without_an_id_and_a_body_that_is_too_large(runner: httpx2.Client) -> None:
    create(NewExecution("TEST", tasks=[NewTask("j")]))
    assert runner.post(PATH.rstrip("/"), content=as_bytes(wire("j"))).status_code == 200
    assert runner.post(f"{PATH}1", content=b" " * 1_000_001).status_code == 413
    assert runner.post(f"{PATH}1", content=as_bytes(wire("j", "Success"))).status_code == 200


def test_a_report_marks_its_execution(runner: httpx2.Client, redis: redis_library.Redis) -> None:
    execution = create(NewExecution("TEST", tasks=[NewTask("j")]))
    runner.post(f"{PATH}0", content=as_bytes(wire("j")))
    assert whole_redis(redis)["queue:v2"] == {f"{execution.pk}:TEST"}
