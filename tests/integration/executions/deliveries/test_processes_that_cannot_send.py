"""A process without the packages of the extra `http`, or whose threads are greenlets, sends no webhook, and loses
none: what is due waits for another one."""

import sys
from collections.abc import Callable

import pytest

from harbor_refresh.executions.errors import ExtraMissing
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.news.deliveries import answers, deliverer, subscriptions
from tests.integration.admin_client import signed_in
from tests.integration.executions.deliveries.changed_executions import ended, states
from tests.integration.executions.deliveries.receiver import Receiver
from tests.terminal import ran

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    return lambda missing: monkeypatch.setattr(answers, "is_installed", lambda: not missing)


def test_its_deliveries_wait_for_a_process_that_can_send(
    good: Receiver,
    subscribed: Callable[..., Subscription],
    without: Callable[[bool], None],
) -> None:
    subscribed(good)
    asked: list[None] = []
    without(True)
    ended(2)
    deliverer.deliver(lambda: asked.append(None))
    assert good.received == []
    assert states() == {"pending": 2}
    assert set(Delivery.objects.values_list("attempts", flat=True)) == {0}
    assert asked, "handlers need none of the packages"
    without(False)
    deliverer.deliver()
    assert len(good.received) == 2


def test_it_refuses_a_new_webhook_and_says_what_to_install(
    good: Receiver, subscribed: Callable[..., Subscription], without: Callable[[bool], None]
) -> None:
    there = subscribed(good)
    without(True)
    with pytest.raises(ExtraMissing, match=r'pip install "harbor-refresh\[http\]"'):
        subscriptions.create("another", good.url)
    client = signed_in("add_subscription", "view_subscription")
    form = {"name": "another", "url": good.url, "payload": "standard", "enabled": "on"}
    page = client.post("/admin/harbor_executions/subscription/add/", form).content.decode()
    assert "pip install &quot;harbor-refresh[http]&quot;" in page
    assert Subscription.objects.count() == 1
    answer = subscriptions.test(there)
    assert (answer.status, answer.is_good) == (None, False)
    assert "harbor-refresh[http]" in answer.error
    assert good.received == []


PATCHES = {"gevent": "from gevent import monkey; monkey.patch_all()", "threads": ""}
PROGRAM = """
import django
django.setup()
from harbor_refresh.executions.news.deliveries import answers
print(answers.can_send())
"""


@pytest.mark.parametrize(("pool", "can_send"), [("gevent", "False"), ("threads", "True")])
def test_only_a_process_with_real_threads_sends_webhooks(pool: str, can_send: str) -> None:
    done = ran([sys.executable, "-W", "ignore", "-c", f"{PATCHES[pool]}\n{PROGRAM}"])
    assert done.stdout == f"{can_send}\n", done.stderr
