"""What a person sees in Flower: after the login of the admin, the executions of each subtask."""

import json
import re
import sys
import urllib.error
import urllib.request

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings
from redis import Redis

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.flower import login
from harbor_refresh.local.ports import choose_port
from harbor_refresh.local.services import FLOWER
from harbor_refresh.tasks.broker.celery_queues import TICKS, WORK
from tests.faults.cluster import Cluster
from tests.waiting import wait_for

ADMIN = "http://127.0.0.1:9"


class Browser:
    """A browser that follows no redirect: its answers are the status, the place that it leads to, and the text."""

    def __init__(self, address: str, **headers: str) -> None:
        self.address = address
        self.headers = headers

    def send(self, method: str, path: str) -> tuple[int, str, str]:
        request = urllib.request.Request(  # noqa: S310  # an address of this test
            f"{self.address}{path}", method=method, headers=self.headers
        )
        try:
            with _opener.open(request, timeout=300) as answer:
                return answer.status, "", answer.read().decode()
        except urllib.error.HTTPError as exc:
            return exc.code, exc.headers.get("Location", ""), exc.read().decode()

    def get(self, path: str) -> str:
        status, _, text = self.send("GET", path)
        assert status == 200, (status, text)
        return text


class _StaysHere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(_StaysHere)


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def started(cluster: Cluster, **variables: str) -> str:
    """Start a Flower; return its address."""
    port = choose_port()
    member = cluster.start(
        "flower",
        [
            *[sys.executable, "-m", "celery", "-A", "harbor_refresh", "flower"],
            *[f"--conf={FLOWER}", "--address=127.0.0.1", f"--port={port}"],
        ],
        REFRESH_PUBLIC_URL=ADMIN,
        **variables,
    )
    wait_for(lambda: "Connected to redis" in member.text(), "Flower to be there", log=member.log)
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def flower(cluster: Cluster, redis: Redis) -> str:
    """Its address."""
    address = started(cluster)
    wait_for(lambda: redis.pubsub_numpat() > 0, "Flower to listen to events")
    return address


def person(name: str, *permissions: str, **flags: bool) -> User:
    user = User.objects.create(username=name, **flags)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def browser_of(address: str, user: User) -> Browser:
    return Browser(address, Cookie=f"{settings.SESSION_COOKIE_NAME}={session_of(user)}")


def test_the_cookie_of_flower_is_as_secure_as_that_of_the_admin(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, object] = {}
    monkeypatch.setattr(login, "flower_settings", given)
    monkeypatch.setattr(login.Metrics, "get", login.Metrics.get)
    for name in ("set_default_headers", "get_current_user"):
        monkeypatch.setattr(login.BaseHandler, name, getattr(login.BaseHandler, name))
    settings.SESSION_COOKIE_SECURE = True
    login.adapt()
    assert given["xsrf_cookie_kwargs"] == {"secure": True, "samesite": "Lax"}


def test_the_staff_of_the_admin_sees_the_executions_of_a_subtask(
    cluster: Cluster, flower: str, redis: Redis
) -> None:
    staff = person("operator", "view_execution", is_staff=True)
    browser = browser_of(flower, staff)
    worker = cluster.worker(queues=[TICKS, WORK])
    execution = create(NewExecution("REPLICATION", tasks=[NewTask()]))
    report([Report(execution.tasks.get().pk, "Success", 1)])
    seen: dict[str, str] = {}

    def flower_knows_it() -> bool:
        tasks = json.loads(browser.get("/api/tasks?taskname=tasks.refresh_executions"))
        seen.update({task["args"]: task["state"] for task in tasks.values()})
        return bool(seen)

    wait_for(flower_knows_it, "the subtask to be in Flower", log=worker.log)
    assert list(seen) == [f"(execution {execution.pk} REPLICATION)"]
    listed = browser.get("/tasks")
    assert re.findall(r'data-column="(\w+)"', listed)[:3] == ["name", "args", "state"]

    with _opener.open(urllib.request.Request(f"{flower}/tasks", headers=browser.headers)) as page:  # noqa: S310
        assert page.headers["X-Frame-Options"] == "DENY"
        assert "SameSite=Lax" in page.headers["Set-Cookie"]

    # a browser without the login of the staff is led to the admin; no browser may change anything
    other = session_of(person("other", "view_execution"))
    for headers in ({}, {"Cookie": f"{settings.SESSION_COOKIE_NAME}={other}"}, {"Cookie": "sessionid=nonsense"}):
        stranger = Browser(flower, **headers)
        for path in ("/", "/tasks", "/broker", "/metrics", "/api/workers"):
            status, place, _ = stranger.send("GET", path)
            assert (status, place.partition("?")[0]) == (302, "/login"), path
        assert stranger.send("GET", "/login")[:2] == (302, f"{ADMIN}/admin/flower/")
        assert stranger.send("GET", "/healthcheck")[0] == 200
    assert browser.send("POST", "/api/task/revoke/1")[0] == 403
    # a redirect to the admin, which would lead this person back, would have no end
    may_not = browser_of(flower, person("the staff of a blog", "view_user", is_staff=True))
    for path in ("/", "/tasks", "/login", "/metrics", "/api/workers"):
        assert may_not.send("GET", path)[0] == 403, path
    assert "the permission to view executions" in may_not.send("GET", "/tasks")[2]
    staff.is_staff = False
    staff.save()
    wait_for(lambda: browser.send("GET", "/tasks")[0] == 302, "the login to end")


def test_a_flower_that_is_not_read_only_is_for_superusers_alone(cluster: Cluster) -> None:
    address = started(cluster, FLOWER_READ_ONLY="false")
    operator = browser_of(address, person("operator", "view_execution", "change_execution", is_staff=True))
    root = browser_of(address, person("root", is_staff=True, is_superuser=True))
    assert [one.send("GET", "/tasks")[0] for one in (operator, root)] == [403, 200]


def test_basic_auth_takes_the_place_of_the_admins_login(cluster: Cluster) -> None:
    address = started(cluster, FLOWER_BASIC_AUTH="op:secret")
    cookie = browser_of(address, person("operator", "view_execution", is_staff=True))
    found = {
        "right": Browser(address, Authorization="Basic b3A6c2VjcmV0").send("GET", "/tasks")[0],
        "wrong": Browser(address, Authorization="Basic b3A6d3Jvbmc=").send("GET", "/tasks")[0],
        "none": Browser(address).send("GET", "/metrics")[0],
        "of the admin": cookie.send("GET", "/tasks")[0],
    }
    assert found == {"right": 200, "wrong": 401, "none": 401, "of the admin": 401}
    assert Browser(address, Authorization="Basic b3A6c2VjcmV0").send("POST", "/api/task/revoke/1")[0] == 403
