"""The two formats of a log line: one event is one line, with its ids and without secrets."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from timeit import repeat
from types import SimpleNamespace
from typing import Any

import pytest
from celery._state import _task_stack
from celery.app.task import Context
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from pytest_django import Settings

from harbor_refresh.logs.context import RequestIds
from harbor_refresh.logs.formatters import LONGEST_MESSAGE, JSONLines, TextLines
from harbor_refresh.tasks.broker import redaction


@pytest.fixture(autouse=True)
def secrets_of_this_test() -> Iterator[None]:
    redaction._known.cache_clear()
    yield
    redaction._known.cache_clear()


def record(message: object, *args: object, **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("harbor_refresh", logging.WARNING, __file__, 1, message, args, None)
    vars(made).update(extra)
    return made


def as_json(one: logging.LogRecord) -> dict[str, Any]:
    text = JSONLines().format(one)
    assert len(text.splitlines()) == 1
    found: dict[str, Any] = json.loads(text)
    return found


def as_text(one: logging.LogRecord) -> str:
    return TextLines().format(one).split(" ", 2)[2]  # without the time


def failing() -> Any:
    try:
        raise ValueError("bad\nvalue")
    except ValueError as exc:
        return (type(exc), exc, exc.__traceback__)


@pytest.mark.parametrize("cut", range(-30, 1, 5))
def test_a_secret_at_the_place_of_a_cut_is_hidden(cut: int) -> None:
    address = "redis://:hidden-word@host/0"
    long = record("x" * (LONGEST_MESSAGE + cut) + address, task_id="x" * (200 + cut) + address)
    assert "hidden" not in JSONLines().format(long) + TextLines().format(long)


def test_json_has_the_message_and_the_line_that_the_documentation_lists() -> None:
    told = as_json(record("Quarantined execution %d: %s", 7, "cursed", execution_id=7))
    assert {name: told[name] for name in ("level", "logger", "message", "line", "execution_id")} == {
        "level": "WARNING",
        "logger": "harbor_refresh",
        "message": "Quarantined execution 7: cursed",
        "line": "Quarantined execution %d: %s",
        "execution_id": 7,
    }
    assert set(told) == {"time", "level", "logger", "message", "line", "execution_id", "host", "process"}
    assert told["time"].endswith("+00:00")


def test_text_is_the_line_that_operators_know_with_the_ids_behind_it() -> None:
    one = record("Released %d executions", 2, execution_ids=[7, 8])
    assert as_text(one) == "WARNING harbor_refresh: Released 2 executions [execution_ids=[7, 8]]"
    assert as_text(record("Released %d executions", 2)) == "WARNING harbor_refresh: Released 2 executions"


@pytest.mark.parametrize("message", ["two\nlines", "two\r\nlines", "a\x1b[2Jscreen", "a\u2028line", "nul\x00"])
def test_no_message_makes_a_second_line_or_moves_the_cursor(message: str) -> None:
    assert as_json(record(message))["message"] == message
    text = TextLines().format(record("%s", message))
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text


def test_a_traceback_stays_in_its_event() -> None:
    one = record("It failed")
    one.exc_info = failing()
    told = as_json(one)
    assert told["exception"].startswith("Traceback")
    assert "ValueError: bad" in told["exception"]
    assert "ValueError: bad" in TextLines().format(one)


def test_a_line_with_wrong_arguments_is_written_all_the_same() -> None:
    assert as_json(record("%d of %d", 1))["message"] == "%d of %d (TypeError in its arguments)"


def test_a_line_is_bounded() -> None:
    one = record("x" * 100_000, execution_ids=list(range(100_000)), job_id="j" * 100_000)
    assert len(JSONLines().format(one)) < 10_000


def test_only_ids_are_taken_from_what_is_given_with_a_line() -> None:
    """Celery hangs the arguments and the result of each task on its lines."""
    data = {"id": "m1", "name": "a.job", "args": "('a secret',)", "return_value": "another"}
    one = record("Task %(name)s[%(id)s] succeeded", data, data=data, password="third")
    one.name = "celery.app.trace"
    told = as_json(one)
    assert (told["celery_id"], told["celery_task"]) == ("m1", "a.job")
    assert not {"data", "args", "password", "return_value"} & set(told)


# ids


@contextmanager
def running(name: str, arguments: str) -> Iterator[None]:
    """Celery runs this task in this thread."""
    _task_stack.push(
        SimpleNamespace(name=name, request=Context(id="m1", argsrepr=arguments, called_directly=False))
    )
    try:
        yield
    finally:
        _task_stack.pop()


def test_the_lines_of_a_subtask_carry_its_message_and_its_executions() -> None:
    with running("tasks.refresh_executions", "(execution 7 SCAN)"):
        inside = as_json(record("x"))
    assert (inside["celery_task"], inside["celery_id"], inside["arguments"]) == (
        "tasks.refresh_executions",
        "m1",
        "(execution 7 SCAN)",
    )
    assert inside["node"].rsplit("-", 2)[1].isdecimal()
    assert not {"celery_task", "celery_id", "arguments", "node"} & set(as_json(record("x")))


def test_the_arguments_of_a_job_are_not_logged() -> None:
    with running("shop.charge", "('4111 1111',)"):
        told = JSONLines().format(record("x"))
    assert "4111" not in told


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-123", True), ("a" * 65, False), ("two\nlines", False), ('"quoted"', False), ("", False)],
)
def test_a_request_has_an_id_that_stands_on_its_lines_and_in_its_answer(given: str, kept: bool) -> None:
    seen: list[str] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(as_json(record("x"))["request"])
        return HttpResponse()

    request = RequestFactory().get("/", headers={"X-Request-ID": given} if given else {})
    answer = RequestIds(view)(request)
    assert answer["X-Request-ID"] == seen[0]
    assert (seen[0] == given) == kept
    assert "request" not in as_json(record("x"))


# secrets


def test_secrets_of_the_settings_are_masked_wherever_they_stand(settings: Settings) -> None:
    settings.REFRESH_HARBOR_SECRET = "harbors-own-secret"
    settings.REDIS_URL = "redis://:p%40ssword@h/0"
    settings.DATABASES["default"]["PASSWORD"] = "of-the-database"
    try:
        text = as_json(record("Tried %s, %s and %s", "harbors-own-secret", "p@ssword", "of-the-database"))[
            "message"
        ]
    finally:
        settings.DATABASES["default"]["PASSWORD"] = ""
    assert text == "Tried ***, *** and ***"


@pytest.mark.parametrize(
    "address",
    [
        "amqp://u:of-first@a/v; amqp://u:of-second@b/v",
        "amqp://u:of-first@a/my@vhost;amqp://u:of-second@b/my@vhost",
        "amqp://u:of-first@a/v?ssl_ca_certs=/etc/ssl/us@er;amqp://u:of-second@b/v",
        "amqp://us@er:of-first@a/v;AMQP://u:of-second@b/v",
    ],
)
def test_the_passwords_of_any_address_of_rabbitmq_are_masked(settings: Settings, address: str) -> None:
    settings.CELERY_BROKER_URL = address
    assert redaction.redacted("Tried of-first and of-second") == "Tried *** and ***"


def test_a_secret_is_masked_in_json_as_well(settings: Settings) -> None:
    settings.CELERY_BROKER_URL = 'amqp://u:pass%2F"word@a'
    assert redaction.redacted(r'{"a": "pass/\"word", "b": "pass\/\"word"}') == '{"a": "***", "b": "***"}'


def test_each_part_of_a_password_is_masked_that_was_not_quoted(settings: Settings) -> None:
    """Kombu takes the ; for the end of the address."""
    settings.CELERY_BROKER_URL = "amqp://user:hidden;secret@h"
    assert redaction.redacted("amqp://user:hidden: no such host; secret@h, hidden;secret") == (
        "amqp://user:***: no such host; ***@h, ***"
    )


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("amqp://user:hidden@h//: refused", "amqp://user:***@h//: refused"),
        ("redis://:hidden@h:1/0", "redis://:***@h:1/0"),
        ("postgresql://user:hid:den@h/n", "postgresql://user:***@h/n"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("{'Authorization': 'Harbor-Secret abc'}", "{'Authorization': 'Harbor-Secret ***'}"),
        ("a Bearer abcdef was refused", "a Bearer *** was refused"),
        ("password=hidden host=h", "password=*** host=h"),
        ("{'password': 'hidden, and hidden', 'a': 1}", "{'password': '***', 'a': 1}"),
        ("{'db_password': 'hidden', 'API_TOKEN': 'hidden'}", "{'db_password': '***', 'API_TOKEN': '***'}"),
        ("client_secret=hidden&AWS_SECRET_ACCESS_KEY=hidden", "client_secret=***&AWS_SECRET_ACCESS_KEY=***"),
        ("{'Cookie': 'csrftoken=hidden; sessionid=hidden', 'a': 1}", "{'Cookie': '***', 'a': 1}"),
        ("Set-Cookie: sessionid=hidden; Path=/", "Set-Cookie: ***"),
        ("'HTTP_COOKIE': 'a=hidden; b=hidden'", "'HTTP_COOKIE': '***'"),
        ("{'Cookie': 'a=\"x\"; sessionid=hidden'}", "{'Cookie': '***'}"),
        ('Set-Cookie: a="x"; sid=hidden', "Set-Cookie: ***"),
        ("Cookie:a=1; sessionid=hidden", "Cookie:***"),
        ("HTTP_COOKIE=csrftoken=hidden; sessionid=hidden", "HTTP_COOKIE=***"),
        ("password=b'hidden, too'", "password=b'***'"),
        ("{'password': \"it's hidden\"}", "{'password': \"***\"}"),
        ("GET /x?cookie=hidden&page=2 took 12 ms", "GET /x?cookie=***&page=2 took 12 ms"),
        ("GET /x?token=hidden&page=2", "GET /x?token=***&page=2"),
        ("hr_0123456789abcdefghij was revoked", "hr_*** was revoked"),
        ("whsec_MDEyMzQ1Njc4OWFiY2RlZg==", "whsec_***"),
        ("http://h/a@b and 12:30", "http://h/a@b and 12:30"),
        ("no secret, no token here", "no secret, no token here"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, masked: str) -> None:
    assert redaction.redacted(text) == masked
    one = record("x")
    one.exc_info = (ValueError, ValueError(text), None)
    assert masked in as_json(one)["exception"]


@pytest.mark.parametrize(
    "unit", ["a", "a.", "1", "/", ":", "@", " ", "'", "a:", "://", "a://b:", "cookie", "cookie:", "secret", "hr_"]
)
def test_a_long_text_is_masked_in_milliseconds_whatever_it_repeats(unit: str) -> None:
    """A pattern that takes the square of the length takes seconds."""
    text = (unit * 32_000)[:32_000]
    assert min(repeat(lambda: redaction.redacted(text), process_time, repeat=3, number=1)) < 0.5


def test_a_request_for_an_unknown_host_is_one_warning_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert Client().get("/admin/", headers={"Host": "evil.example"}).status_code == 400
    (record,) = [one for one in caplog.records if one.name.startswith("django")]
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert "evil.example" in record.getMessage()
