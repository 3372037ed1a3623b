"""The page of the queue: what it shows, its verbs, its permissions, and what it shows with Redis down."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from harbor_refresh.executions.models import AuditEntry
from harbor_refresh.tasks.admin.queue_page import queue_tables
from harbor_refresh.tasks.broker.celery_queues import JOBS, TICKS, WORK
from harbor_refresh.tasks.operations.pauses import paused
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.admin_client import signed_in, told
from tests.integration.query_counts import queries
from tests.integration.redis_state import Redis, absent_redis

pytestmark = pytest.mark.usefixtures("database", "queue")

PAGE = "/admin/harbor_tasks/pause/"


def act(client: Client, verb: str, target: object = "", **more: str) -> Any:
    return client.post(PAGE, {"verb": verb, "target": target, "confirmed": "yes", **more})


def text_of(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_the_page_shows_the_nodes_and_what_waits(admin: Client, queue: ExecutionQueue) -> None:
    for node in ("idle", "alive"):
        queue.heartbeat(node)
    now, _ = queue._redis.time()
    queue._redis.zadd(queue.keys.dead, {"gone": (now - 60) * 1_000_000, "long gone": (now - 3_700) * 1_000_000})
    queue.mark(["7:SCAN", "8:SCAN"])
    queue.claim("alive", 2)
    queue.mark(["10:REPLICATION"])
    found = queue_tables(may_change=True)
    assert [number for _, number, _ in found["numbers"]] == [1, 2, 0, 2]
    nodes = [(name, heard) for name, _, heard in found["nodes"]["rows"]]
    assert nodes[:2] == [("alive", "just now"), ("idle", "just now")]
    assert [(name, heard[:2]) for name, heard in nodes[2:]] == [("gone", "1 ")]
    assert "silent" in found["nodes"]["rows"][2][1]
    assert [row[1] for row in found["waiting"]["rows"]] == ["REPLICATION"]


def test_the_page_takes_few_queries_however_much_there_is(admin: Client, queue: ExecutionQueue) -> None:
    before = queries(admin, PAGE)
    queue.mark(f"{number}:A" for number in range(1, 2_000))
    queue.claim("node", 1_000)
    assert queries(admin, PAGE) == before <= 12


def test_refreshing_is_paused_with_a_reason_after_a_question_and_resumed(admin: Client) -> None:
    asked = admin.get(PAGE, {"verb": "pause", "target": WORK})
    assert "Pause refreshing?" in text_of(asked)
    assert "Cancel Pause" in text_of(asked)
    assert "whatever restarts in between" in text_of(asked)
    assert not paused()
    answer = act(admin, "pause", WORK, reason="an <b>upgrade</b>")
    assert told(answer) == ["success: Refreshing is paused."]
    shown = admin.get(PAGE).content.decode()
    assert "an &lt;b&gt;upgrade&lt;/b&gt;" in shown
    assert "an <b>" not in shown
    assert told(act(admin, "resume", WORK))[-1] == "success: Refreshing is resumed."
    assert not paused()
    log = AuditEntry.objects.order_by("pk").values_list("by", "origin", "verb", "target")
    assert list(log) == [("operator", "admin", "pause", WORK), ("operator", "admin", "resume", WORK)]


def test_a_queue_of_jobs_is_paused_and_the_ticks_are_not(admin: Client) -> None:
    assert told(act(admin, "pause", JOBS))[0].endswith("is paused.")
    assert list(paused()) == [JOBS]
    assert told(act(admin, "pause", TICKS))[-1].startswith(f"error: {TICKS} cannot be paused")
    assert f"target={TICKS}" not in admin.get(PAGE).content.decode()


def test_recover_now_gives_back_what_dead_nodes_hold(admin: Client, queue: ExecutionQueue, redis: Redis) -> None:
    queue.mark(["7:SCAN"])
    queue.claim("gone", 1)
    redis.zrem(queue.keys.nodes, "gone")
    assert told(act(admin, "recover")) == ["success: 1 execution of dead nodes went back on the queue."]
    assert queue.stats().backlog == 1
    assert list(AuditEntry.objects.values_list("verb", "kind", "count")) == [("recover", "queue", 1)]


def test_a_page_without_any_work_says_that_there_is_none(admin: Client) -> None:
    assert text_of(admin.get(PAGE)).count("No data") == 2


# An open page


def live(client: Client) -> Any:
    return client.get(f"{PAGE}live/")


def test_an_open_page_is_told_what_has_changed(admin: Client, queue: ExecutionQueue) -> None:
    page = admin.get(PAGE).content.decode()
    assert f'data-live="{PAGE}live/" data-every="3000"' in page
    first = live(admin)
    assert all(f'data-part="{name}"' in page for name in first.json()["parts"])
    queue.mark(["10:REPLICATION"])
    news = live(admin)
    assert "REPLICATION" in news.json()["parts"]["waiting"]
    assert "REPLICATION" not in first.json()["parts"]["waiting"]


def test_a_viewers_open_page_gets_no_buttons_beside_an_operators(queue: ExecutionQueue) -> None:
    operator = signed_in("view_pause", "change_pause")
    User.objects.update(username="another")
    viewer = signed_in("view_pause")
    shown = [live(client).json()["parts"]["queues"] for client in (operator, viewer, operator)]
    assert ["?verb=" in part for part in shown] == [True, False, True]
    headers = [re.findall("<th scope=.col.>([^<]+)<", part)[4:] for part in shown]
    assert headers == [["Action"], [], ["Action"]]
    assert all(part.count("<td>") == 4 * (5 if "Action" in part else 4) for part in shown)


def test_without_the_permission_there_is_no_page_and_an_open_one_is_refused(queue: ExecutionQueue) -> None:
    other = signed_in("view_execution")
    assert [other.get(PAGE).status_code, live(other).status_code, live(Client()).status_code] == [403] * 3


@pytest.mark.parametrize("verb", ["pause", "resume", "recover"])
def test_a_viewer_looks_and_cannot_act(verb: str, queue: ExecutionQueue) -> None:
    viewer = signed_in("view_pause")
    page = viewer.get(PAGE)
    assert page.status_code == 200
    assert "?verb=" not in page.content.decode()
    assert viewer.get(PAGE, {"verb": verb, "target": JOBS}).status_code == 403
    assert act(viewer, verb, JOBS).status_code == 403
    assert not paused()
    assert not AuditEntry.objects.exists()


def test_with_redis_down_the_page_shows_what_the_database_knows(
    admin: Client, monkeypatch: pytest.MonkeyPatch, queue: ExecutionQueue
) -> None:
    act(admin, "pause", JOBS, reason="upgrade")
    client = absent_redis()
    down = ExecutionQueue(queue.conf, client, client)
    monkeypatch.setattr("harbor_refresh.tasks.admin.queue_page.execution_queue", lambda: down)
    shown = text_of(admin.get(PAGE))
    assert "Redis: " in shown
    assert "was paused by operator" in shown
