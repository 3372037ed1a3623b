"""Signed reports: a message that was signed rightly is taken, and taken once."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from harbor_refresh.executions.access.signatures import receive
from harbor_refresh.executions.errors import Replayed
from harbor_refresh.executions.models import ReceivedMessage, Task
from tests.integration.concurrency import at_once
from tests.integration.executions.hook_requests import NEXT, SIGNING, answer, recorded, signed, wire

pytestmark = pytest.mark.usefixtures("database", "secrets")

BODY = wire("j")


@pytest.fixture
def secrets(settings: Settings) -> None:
    settings.REFRESH_SIGNING_SECRETS = f"{SIGNING},{NEXT}"


def test_a_message_that_either_live_secret_has_signed_is_taken() -> None:
    recorded("j")
    for secret, status in ((SIGNING, "Running"), (NEXT, "Success")):
        body = wire("j", status)
        assert answer(body, headers=signed(body, f"msg_{status}", secret=secret)) == (200, "")
        assert Task.objects.get().status == status


def test_one_of_several_signatures_is_enough() -> None:
    recorded("j")
    headers = signed(BODY, also="v1a,QUJD v1,QUJD ")
    assert answer(BODY, headers=headers) == (200, "")


def test_a_message_is_taken_within_five_minutes_of_its_signature() -> None:
    recorded("j")
    for ago in (240, -299, 0):
        assert answer(BODY, headers=signed(BODY, f"msg{ago}", ago=ago)) == (200, "")


def test_a_message_that_comes_again_is_refused() -> None:
    recorded("j")
    headers = signed(BODY)
    assert answer(BODY, headers=headers) == (200, "")
    assert answer(BODY, headers=headers) == (409, "A message with this id was received before.")
    assert answer(BODY, headers=signed(BODY, "msg_2")) == (200, "")


def test_a_message_that_failed_may_be_sent_again_with_its_id() -> None:
    headers = signed(BODY)
    assert answer(BODY, headers=headers)[0] == 404
    assert not ReceivedMessage.objects.exists()
    recorded("j")
    assert answer(BODY, headers=headers) == (200, "")


def test_of_one_message_that_comes_twice_at_once_one_is_taken() -> None:
    recorded("j")
    headers = signed(BODY)
    answers = at_once(*[lambda: answer(BODY, headers=headers)] * 6)
    assert sorted(code for code, _ in answers) == [200, 409, 409, 409, 409, 409]
    assert Task.objects.get().run_count == 1


def test_a_message_that_comes_again_is_no_error_of_the_database() -> None:
    """An error would end this transaction, and fill the log of PostgreSQL."""
    message = ReceivedMessage(id="msg", at=timezone.now())
    with transaction.atomic():
        receive(message)
        with pytest.raises(Replayed):
            receive(message)
        assert ReceivedMessage.objects.count() == 1


def test_each_message_forgets_two_old_ones_so_the_table_stays_small_without_a_sweep() -> None:
    recorded("j")
    long_ago = timezone.now() - timedelta(minutes=11)
    ReceivedMessage.objects.bulk_create(ReceivedMessage(id=f"old{number}", at=long_ago) for number in range(6))
    for number in range(4):
        assert answer(BODY, headers=signed(BODY, f"msg_{number}")) == (200, "")
    assert set(ReceivedMessage.objects.values_list("pk", flat=True)) == {f"msg_{number}" for number in range(4)}


def test_an_id_is_kept_as_long_as_its_message_would_be_accepted() -> None:
    """A message that is signed five minutes ahead is accepted for ten minutes."""
    recorded("j")
    assert answer(BODY, headers=signed(BODY, "early", ago=-290)) == (200, "")
    assert answer(BODY, headers=signed(BODY, "late", ago=200)) == (200, "")
    now = timezone.now()
    ages = {one.pk: (now - one.at).total_seconds() for one in ReceivedMessage.objects.all()}
    assert -291 < ages["early"] < -200
    assert -1 < ages["late"] < 90


def test_a_message_for_a_task_that_is_not_there_yet_is_taken_there_later_and_nowhere_else() -> None:
    """The signature does not cover the address."""
    execution, (other,) = recorded("")
    for body, code in ((wire("", task_id=7777), 404), (wire("j", task_id=7777), 404), (wire("j"), 400)):
        headers = signed(body)
        assert answer(body, 7777, headers)[0] == code
        refused, why = answer(body, other.pk, headers)
        assert (refused, "names its task in its body" in why) == (400, True)
        assert Task.objects.get().status == "Pending"
        assert not ReceivedMessage.objects.exists()
    body = wire("", task_id=7777)
    headers = signed(body)
    Task.objects.create(pk=7777, vendor_type="X", execution=execution)
    assert [answer(body, 7777, headers)[0] for _ in range(2)] == [200, 409]
    assert [one.status for one in Task.objects.order_by("pk")] == ["Pending", "Running"]
