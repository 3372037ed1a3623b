"""The progress of executions at the addresses of a host, for the users that it lets in."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.test import Client, override_settings
from django.urls import include, path, reverse
from django.utils import timezone
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries import host_views
from harbor_refresh.executions.queries.host_views import execution_urls
from harbor_refresh.executions.queries.progress import Progress
from tests.integration.sample_executions import delete, made

pytestmark = pytest.mark.usefixtures("database")


def may_see(request: HttpRequest, execution: Execution) -> bool:
    if request.headers.get("Shop") == "raises":
        raise PermissionDenied
    answers: dict[str, Any] = {"yes": True, "truthy": "yes", "none": None, "own": execution.vendor_id == 7}
    return answers.get(request.headers.get("Shop", ""), False)  # type: ignore[no-any-return]  # as a host's may be


async def may_see_later(request: HttpRequest, execution: Execution) -> bool:
    return False


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The host's own page, because that of this service names the address."""
    return HttpResponse("nothing there", status=404)


urlpatterns = [
    path("later/", include(execution_urls(may_see=may_see_later))),  # type: ignore[arg-type]  # a mistake of a host
    path("mirrors/", include(execution_urls(may_see=may_see))),
]


@pytest.fixture
def host(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Client:
    settings.ROOT_URLCONF, settings.MIDDLEWARE = __name__, []
    return Client(headers={"Shop": "yes"})


def expected(execution: Execution, **parts: Any) -> dict[str, Any]:
    begun = {"status": "Running", "tasks": 2, "done": 0, "progress": 0.0, "counts": {"Pending": 2}}
    return {"id": execution.pk, **begun, "seconds_left": None, "is_open": False, **parts}


def told(response: Any) -> Any:
    """The progress in an answer, or in its event."""
    assert response.status_code == 200
    return json.loads(response.content.rpartition(b"data: ")[2])


def test_the_progress_of_an_execution_is_json(host: Client) -> None:
    execution, (first, second) = made(2)
    assert reverse("execution_progress", args=[execution.pk]) == f"/mirrors/{execution.pk}/"
    answer = host.get(f"/mirrors/{execution.pk}/")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    assert answer.json() == expected(execution)

    report([Report(first, "Success", 1), Report(second, "Error", 1)])
    refresh([execution.pk])
    ended = {"status": "Error", "done": 2, "progress": 1.0, "counts": {"Success": 1, "Error": 1}}
    assert host.get(f"/mirrors/{execution.pk}/").json() == expected(execution, **ended)


def test_an_event_is_called_progress_until_the_end_and_says_when_to_ask_again(host: Client) -> None:
    execution, (task,) = made(1)
    assert reverse("execution_events", args=[execution.pk]) == f"/mirrors/{execution.pk}/events/"
    answer = host.get(f"/mirrors/{execution.pk}/events/")
    assert (answer["Content-Type"], answer["Cache-Control"]) == ("text/event-stream", "no-store")
    assert answer.content.startswith(b'retry: 1000\nevent: progress\ndata: {"id": ')
    assert answer.content.endswith(b"}\n\n")
    report([Report(task, "Success", 1)])
    refresh([execution.pk])
    assert host.get(f"/mirrors/{execution.pk}/events/").content.startswith(b"retry: 1000\nevent: end\ndata: {")


@pytest.mark.parametrize("page", ["", "events/"])
def test_an_execution_that_begins_later_by_the_clock_of_the_database_has_no_eta(page: str, host: Client) -> None:
    execution, (first, _) = made(2)
    report([Report(first, "Success", 1)])
    Execution.objects.filter(pk=execution.pk).update(start_time=timezone.now() + timedelta(hours=1))
    counts = {"Success": 1, "Pending": 1}
    assert told(host.get(f"/mirrors/{execution.pk}/{page}")) == expected(
        execution, done=1, progress=0.5, counts=counts
    )


def test_an_eta_of_nothing_is_0_seconds(host: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    execution, _ = made(2)
    none_left = Progress("Running", {"Pending": 2}, 2, 0, timedelta(0))
    monkeypatch.setattr(host_views, "progress", lambda pk: none_left)
    assert host.get(f"/mirrors/{execution.pk}/").json() == expected(execution, seconds_left=0)


@pytest.mark.parametrize("page", ["", "events/"])
@pytest.mark.parametrize(
    ("shop", "status"), [("", 404), ("none", 404), ("truthy", 404), ("own", 404), ("raises", 403)]
)
def test_who_is_not_let_in_learns_nothing(page: str, shop: str, status: int, host: Client) -> None:
    execution, _ = made(1)
    refused = host.get(f"/mirrors/{execution.pk}/{page}", headers={"Shop": shop})
    assert refused.status_code == status
    if status == 404:
        unknown = host.get(f"/mirrors/{execution.pk + 1}/{page}")
        assert (unknown.status_code, unknown.content) == (404, refused.content)


@pytest.mark.parametrize("page", ["", "events/"])
@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_coroutine_lets_no_one_in(page: str, host: Client) -> None:
    execution, _ = made(1)
    assert host.get(f"/later/{execution.pk}/{page}").status_code == 404


@pytest.mark.parametrize("page", ["", "events/"])
def test_a_host_lets_in_by_the_execution(page: str, host: Client) -> None:
    execution, _ = made(2)
    Execution.objects.filter(pk=execution.pk).update(vendor_id=7)
    response: Any = host.get(f"/mirrors/{execution.pk}/{page}", headers={"Shop": "own"})
    assert told(response) == expected(execution)


@pytest.mark.parametrize("number", [0, 10**18, 10**30])
def test_a_number_that_is_no_id_is_not_found(number: int, host: Client) -> None:
    assert host.get(f"/mirrors/{number}/").status_code == 404


@pytest.mark.parametrize("page", ["", "events/"])
def test_an_execution_that_is_deleted_meanwhile_is_not_found(page: str, host: Client) -> None:
    execution, (task,) = made(1)
    report([Report(task, "Success", 1)])
    refresh([execution.pk])

    def and_then_delete(request: HttpRequest, execution: Execution) -> bool:
        delete([execution.pk])
        return True

    class Urls:
        urlpatterns = (path("own/", include(execution_urls(may_see=and_then_delete))),)
        handler404 = staticmethod(handler404)

    with override_settings(ROOT_URLCONF=Urls):
        assert host.get(f"/own/{execution.pk}/{page}").status_code == 404


@pytest.mark.parametrize("guard", [None, True, "shop.view_mirror"])
def test_the_addresses_cannot_be_mounted_without_a_guard(guard: Any) -> None:
    with pytest.raises(TypeError, match="may_see="):
        execution_urls(may_see=guard)
    with pytest.raises(TypeError, match="may_see"):
        execution_urls()  # type: ignore[call-arg]


def shown_in_a_page(execution: Any, **more: str) -> str:
    text = "{% load harbor_refresh %}{% execution_progress execution events=events %}"
    return Template(text).render(Context({"execution": execution, "events": "", **more}))


def test_a_template_shows_the_progress_by_one_query_and_without_a_script(
    host: Client, django_assert_num_queries: Any
) -> None:
    execution, (first, _) = made(2)
    report([Report(first, "Success")])
    with django_assert_num_queries(1):
        page = shown_in_a_page(execution)
    assert '<progress max="1" value="0.5000"' in page
    assert f'aria-label="Progress of execution {execution.pk}"' in page
    words = " ".join(re.sub(r"<[^>]*>", "", page).split())
    assert words.startswith("Running: 1 of 2 tasks have ended")
    assert "<script" not in page
    assert shown_in_a_page(execution.pk) == page
    assert shown_in_a_page("99999999999999999999").strip() == shown_in_a_page(None).strip()


def test_a_template_with_the_address_of_events_has_the_script_once_they_are_named(host: Client) -> None:
    execution, _ = made(2)
    page = shown_in_a_page(execution, events='/mirrors/1/events/?"><b>')
    assert 'data-execution-events="/mirrors/1/events/?&quot;&gt;&lt;b&gt;"' in page
    assert '<script src="/static/executions/progress.js" type="module"></script>' in page


def test_a_template_says_that_an_execution_was_deleted(host: Client) -> None:
    assert "Execution 4711 was deleted." in shown_in_a_page(4711)


@pytest.mark.parametrize("nothing", [None, "", Execution()], ids=["None", "unresolved", "a row that is not saved"])
def test_a_template_shows_nothing_where_there_is_no_execution(host: Client, nothing: Any) -> None:
    assert shown_in_a_page(nothing, events="/mirrors/1/events/").strip() == ""
