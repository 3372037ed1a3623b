"""docs/howto/callbacks_and_webhooks.md: handlers and webhooks work as it says, and a request has the form that it
shows. Its callbacks are called in tests/integration/testing/test_jobs_page.py."""

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings
from standardwebhooks import Webhook

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import Subscription
from harbor_refresh.executions.news.deliveries.deliverer import keep_rows
from harbor_refresh.executions.news.deliveries.subscriptions import new_secret
from tests import pages
from tests.integration.executions.api.api_client import token
from tests.integration.executions.deliveries.changed_executions import end, ended, tell
from tests.integration.executions.deliveries.receiver import Receiver
from tests.integration.service.web_server import web_server
from tests.terminal import typed

pytestmark = pytest.mark.usefixtures("database")

PAGE = pages.read("docs/howto/callbacks_and_webhooks.md")


def test_the_handler_of_the_page_is_told_of_a_failure() -> None:
    """The page has a pager."""
    told: list[str] = []
    of_handlers = pages.code(PAGE, "python", "from harbor_refresh import Change")
    exec(of_handlers, {"__name__": "shop.alerts", "page": told.append})  # noqa: S102
    keep_rows()
    executions = ended(vendor_id=7)
    end(executions, "Error", 2, "disk full")
    tell()
    assert told == ["1 tasks of replication 7 failed: disk full"]


def shape(value: Any) -> Any:
    """The names in it, and of a list the shape of its first."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(value[0])] if isinstance(value, list) else None


def test_a_request_has_the_form_that_the_page_shows_and_is_verified_as_it_says(
    good: Receiver,
    subscribed: Callable[..., Subscription],
    deliver: Callable[[], None],
    settings: Settings,
) -> None:
    settings.REFRESH_PUBLIC_URL = "https://refresh.example.com/"
    subscription = subscribed(good)
    executions = ended(extra_attrs={"repository": "library/hello"})
    end(executions, "Error", 2, "no space left on device")
    deliver()
    head, _, shown = pages.code(PAGE, "http").partition("\n\n")
    got = good.received[1]
    assert head.splitlines()[0] == f"POST {got.path} HTTP/1.1"
    headers = {line.partition(":")[0].lower() for line in head.splitlines()[1:]}
    assert {name for name in got.headers if name.startswith(("content-type", "webhook-"))} == headers
    body = json.loads(got.body)
    expected = shape(json.loads(shown))
    expected["data"]["counts"] = {"Error": None}  # there is one task here, which failed
    assert shape(body) == expected

    names: dict[str, Any] = {}
    exec(pages.code(PAGE, "python", "import base64"), names)  # noqa: S102
    is_genuine = names["is_genuine"]
    assert is_genuine(subscription.secret, got.headers, got.body)
    assert not is_genuine(new_secret(), got.headers, got.body)
    assert not is_genuine(subscription.secret, got.headers, got.body + b" ")
    assert not is_genuine(subscription.secret, {**got.headers, "webhook-timestamp": "1793000000"}, got.body)


def test_the_command_of_the_page_rotates_a_secret_for_a_day(
    good: Receiver, subscribed: Callable[..., Subscription], tmp_path: Path
) -> None:
    subscription = subscribed(good)
    command = pages.code(PAGE, "sh")
    with web_server() as url:
        for place, here in (
            ("https://refresh.example.com", url),
            ("subscriptions/7/", f"subscriptions/{subscription.pk}/"),
        ):
            assert place in command
            command = command.replace(place, here)
        env = {"PATH": os.environ["PATH"], "TOKEN": token(Scope.MANAGE), "no_proxy": "*"}
        answer = json.loads(typed(command, tmp_path, env))
    assert Webhook(answer["secret"])
    assert answer["secret"] != subscription.secret
    lasts = datetime.fromisoformat(answer["old_secret_until"]) - timezone.now()
    assert timedelta(hours=23) < lasts <= timedelta(hours=24)
