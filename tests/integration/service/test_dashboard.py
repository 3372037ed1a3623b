"""The dashboard: its page, the answers to open pages, who may see it, and what it costs."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from harbor_refresh.admin import latest as looking
from harbor_refresh.admin.latest import CHARTS, Overview, latest, take
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.tasks.admin import queue_page
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.models import Limit, Sample
from harbor_refresh.tasks.news import events
from harbor_refresh.tasks.news.state import OF_DATABASE, ServiceState
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from harbor_refresh.web import flights
from harbor_refresh.web.flights import Flight
from tests.integration.admin_client import signed_in
from tests.integration.query_counts import queries
from tests.started import start
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database", "queue")

PAGE, LIVE = "/admin/", "/admin/live"


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test begins with a process that has looked at nothing. A look is fresh until the test says otherwise,
    however long its requests take."""
    now = time.monotonic()
    monkeypatch.setattr(flights, "monotonic", lambda: now)
    monkeypatch.setattr(looking, "looks", looking.looks)
    forget()
    yield
    forget()


def forget() -> None:
    looks_with(take)


def looks_with(look: Callable[[], Overview]) -> None:
    looking.looks = Flight(look, looking.hanging, fresh=looking.FRESH_SECONDS)


def live(client: Client) -> Any:
    return client.get(LIVE)


def card(news: dict[str, Any], name: str) -> dict[str, str]:
    (found,) = [one for one in news["cards"] if one["id"] == name]
    return found


def test_the_root_of_the_site_leads_to_the_dashboard(admin: Client) -> None:
    answer = admin.get("/")
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    page = admin.get(PAGE).content.decode()
    assert "No worker is alive" in page
    assert "Start one with: celery -A harbor_refresh worker --concurrency 2" in page
    for chart in CHARTS:
        assert f'data-chart="{chart.id}"' in page


def test_the_page_takes_at_most_twelve_queries_whatever_there_is(admin: Client) -> None:
    admin.get(PAGE)
    held = [create(NewExecution("SCAN")).pk for _ in range(30)]
    quarantine(held, 5)
    forget()
    assert queries(admin, PAGE) <= 12


def test_an_open_page_is_told_what_has_changed(admin: Client, queue: ExecutionQueue) -> None:
    before = live(admin)
    assert (before.status_code, before["Content-Type"]) == (200, "application/json")
    assert card(before.json(), "backlog")["value"] == "0"
    queue.mark(["1:A", "2:B"])
    queue.heartbeat("host-1-a")
    forget()
    news = live(admin).json()
    assert (card(news, "backlog")["value"], card(news, "workers")["value"]) == ("2", "1")
    assert "host-1-a" in news["parts"]["nodes"]
    assert "No worker is alive" not in news["parts"]["findings"]


def test_a_screen_reader_is_told_the_number_of_findings_and_no_age(admin: Client) -> None:
    count = live(admin).json()["parts"]["count"]
    assert re.fullmatch(r"\d+ findings?", count)
    assert re.findall(r'role="status"[^>]*>([^<]*)<', admin.get(PAGE).content.decode()) == [count]


def test_a_limit_says_how_many_jobs_wait_for_it(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "limits" not in {one["id"] for one in live(admin).json()["cards"]}
    Limit.objects.create(name="registry.push", concurrency=2)
    start("PUSH", [[NewJob("registry.push", limit_key="docker.io")] for _ in range(5)])
    forget()
    shown = card(live(admin).json(), "limits")
    assert (shown["value"], shown["href"]) == ("3", "/admin/harbor_tasks/pause/")
    assert shown["note"] == "registry.push: 2 have a place, 3 wait"
    monkeypatch.setattr(queue_page, "MOST_COUNTED", 3)  # none is counted beyond
    assert card(live(admin).json(), "limits")["note"] == "registry.push: 2 have a place, 3+ wait"


def test_charts_show_what_was_sampled(admin: Client) -> None:
    live(admin)
    assert Sample.objects.count() == 1, "no worker has sampled, so the look did"
    for span in ("hour", "day"):
        answer = admin.get(f"/admin/live/charts/{span}")
        assert answer.json().keys() == {chart.id for chart in CHARTS}
    assert admin.get("/admin/live/charts/year").status_code == 404


def test_what_went_wrong_and_how_it_healed_is_told(admin: Client, redis: Any, queue: ExecutionQueue) -> None:
    redis.zadd(queue.keys.dead, {"host-7-x": queue.stats().now - 5_000_000})
    events.note(events.Kind.RECOVERED, 3)
    told = live(admin).json()["parts"]["events"]
    assert "Node host-7-x died" in told
    assert "3 executions were taken back from dead workers" in told


def test_a_name_of_a_node_cannot_put_markup_into_the_page(
    admin: Client, redis: Any, queue: ExecutionQueue
) -> None:
    redis.zadd(queue.keys.nodes, {"<script>alert(1)</script>": queue.stats().now})
    for text in (admin.get(PAGE).content.decode(), json.dumps(live(admin).json()["parts"])):
        assert "&lt;script&gt;alert(1)" in text
        assert "<script>alert(1)" not in text


# Who may see it


def test_staff_without_the_permission_see_the_page_without_numbers() -> None:
    client = signed_in()
    page = client.get(PAGE)
    assert page.status_code == 200
    assert "may not view executions" in page.content.decode()
    assert "data-card" not in page.content.decode()
    assert live(client).status_code == 403
    assert client.get("/admin/live/charts/hour").status_code == 403


def test_a_stranger_sees_nothing() -> None:
    assert Client().get(PAGE).status_code == 302
    assert live(Client()).status_code == 403
    forged = Client()
    forged.cookies[settings.SESSION_COOKIE_NAME] = "x" * 32
    assert live(forged).status_code == 403


def test_users_who_may_view_executions_see_it_until_that_is_withdrawn() -> None:
    client = signed_in("view_execution")
    assert "data-card" in client.get(PAGE).content.decode()
    assert live(client).status_code == 200
    assert queries(client, LIVE) <= 4, "of the session, the user and the permissions"
    User.objects.get().user_permissions.clear()
    assert live(client).status_code == 403


@pytest.mark.parametrize("path", [LIVE, "/admin/live/charts/hour"])
def test_an_open_page_can_only_read(admin: Client, path: str) -> None:
    assert admin.post(path).status_code == 405


# What it costs


def test_pages_that_ask_within_a_moment_share_one_look(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def counted() -> Overview:
        looks.append(1)
        return take()

    looks_with(counted)
    now = flights.monotonic()
    for _ in range(5):
        live(admin)
    assert looks == [1]
    monkeypatch.setattr(flights, "monotonic", lambda: now + looking.FRESH_SECONDS + 0.1)
    live(admin)
    assert looks == [1, 1]


# Servers that are down


@pytest.mark.parametrize("path", [LIVE, "/admin/live/charts/hour", "/admin/harbor_tasks/pause/live/"])
def test_an_open_page_says_that_the_database_is_down(
    admin: Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "PORT", "1")
        answer = admin.get(path)
    assert (answer.status_code, answer["X-Trouble"]) == (503, "PostgreSQL is unavailable")
    assert admin.get(path).status_code == 200


def test_the_page_opens_while_redis_is_down(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from harbor_refresh.tasks.conf import refresh_settings
    from harbor_refresh.tasks.news import state
    from tests.integration.redis_state import absent_redis

    client = absent_redis()
    down = ExecutionQueue(refresh_settings(), client, client)
    monkeypatch.setattr(state, "brief_queue", lambda: down)
    page = admin.get(PAGE)
    assert page.status_code == 200
    assert "Redis is down" in page.content.decode()
    news = live(admin).json()
    assert (card(news, "backlog")["value"], card(news, "backlog")["level"]) == ("?", "wrong")
    assert card(news, "quarantined")["value"] == "0"


def test_what_redis_has_said_is_shown_although_the_database_goes_down_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def down(span: str) -> None:
        raise DatabaseDown

    monkeypatch.setattr(looking.samples, "read", down)
    state = take().state
    assert (state.absent, state.backlog) == ({"database": "The database is down."}, 0)
    assert {getattr(state, name) for name in OF_DATABASE} == {None}


def test_a_look_that_hangs_is_waited_for_once_and_then_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    may_return = threading.Event()
    found = Overview(datetime.now(UTC), ServiceState(), [])

    def hang() -> Overview:
        assert may_return.wait(300)
        return found

    def is_down() -> bool:
        return [one.id for one in latest().findings] == ["database.reachable"]

    looks_with(hang)
    monkeypatch.setattr(flights, "SECONDS", 0.01)
    assert is_down()
    now = flights.monotonic()
    monkeypatch.setattr(flights, "monotonic", lambda: now + 600)
    monkeypatch.setattr(flights, "SECONDS", 600)
    assert is_down(), "it was asked so long ago"
    may_return.set()
    wait_for(lambda: latest() is found, "the look to come back")
