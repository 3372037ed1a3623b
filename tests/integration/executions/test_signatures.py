"""Which signatures are right. They are checked before anything else, so these tests need no database: the counts
of refused requests are kept."""

from collections.abc import Callable
from math import inf

import pytest
from pytest_django import Settings

from harbor_refresh.executions.news.counters import kept
from tests.integration.executions.hook_requests import NEXT, SECRET, SIGNING, answer, is_hidden, signed, wire

BODY = wire("j")
OTHER = "whsec_" + "C" * 40


@pytest.fixture(autouse=True)
def secrets(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REFRESH_SIGNING_SECRETS = f"{SIGNING},{NEXT}"
    monkeypatch.setattr(kept, "_due_at", inf)


def _with(**changed: str) -> Callable[[], dict[str, str]]:
    return lambda: {**signed(BODY), **{name.replace("_", "-"): value for name, value in changed.items()}}


WRONG: dict[str, tuple[Callable[[], dict[str, str]], str]] = {
    "older than five minutes": (lambda: signed(BODY, ago=302), "Message timestamp too old"),
    "from the future": (lambda: signed(BODY, ago=-360), "Message timestamp too new"),
    "signed with another secret": (lambda: signed(BODY, secret=OTHER), "No matching signature found"),
    "of another body": (lambda: signed(wire("j", "Success")), "No matching signature found"),
    "with another id": (_with(webhook_id="msg_2"), "No matching signature found"),
    "with another time": (_with(webhook_timestamp="1"), "Message timestamp too old"),
    "without an id": (_with(webhook_id=""), "webhook-id is missing or malformed"),
    "with an id that is too long": (_with(webhook_id="x" * 256), "webhook-id is missing or malformed"),
    "with a dot in its id": (lambda: signed(BODY, "a.1"), "webhook-id is missing or malformed"),
    "without a time": (_with(webhook_timestamp=""), "webhook-timestamp is missing or malformed"),
    "with a time that is no number": (_with(webhook_timestamp="nan"), "webhook-timestamp is missing or malformed"),
    "with a time beyond all time": (_with(webhook_timestamp="9" * 12), "Invalid Signature Headers"),
    "with an empty signature": (_with(webhook_signature=""), "webhook-signature is missing or malformed"),
    "with an unknown kind of signature": (_with(webhook_signature="v2,QUJD"), "webhook-signature is missing or"),
    "with a signature that is no base64": (_with(webhook_signature="v1,QUJDR"), "the body or the signature"),
    "with a thousand signatures": (_with(webhook_signature=" ".join(["v1,QUJD"] * 1000)), "webhook-signature is"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_message_is_refused_with_the_reason(name: str) -> None:
    headers, why = WRONG[name]
    code, reason = answer(BODY, headers=headers())
    assert (code, reason[: len(why)]) == (401, why)
    assert is_hidden(reason)


def test_a_body_that_is_no_text_cannot_be_signed() -> None:
    assert answer(b"\xff", headers=signed(b"{}")) == (401, "the body or the signature cannot be read")


def test_a_signature_is_checked_before_the_body_is_parsed() -> None:
    assert answer(b"[" * 100_000, headers=signed(b"x"))[0] == 401


def test_a_wrong_signature_is_not_made_good_by_a_secret(settings: Settings) -> None:
    settings.REFRESH_HARBOR_SECRET = SECRET
    headers = signed(BODY, secret=OTHER) | {"Authorization": f"Harbor-Secret {SECRET}"}
    assert answer(BODY, headers=headers)[0] == 401


def test_without_signing_secrets_a_signature_counts_for_nothing(settings: Settings) -> None:
    settings.REFRESH_SIGNING_SECRETS = ""
    assert answer(BODY, headers=signed(BODY))[0] == 401
