"""The log of actions: an entry commits with its act, and says who did what."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.test import RequestFactory

from harbor_refresh.executions.lifecycle.housekeeping import HOUSEKEEPING
from harbor_refresh.executions.models import ApiToken, AuditEntry
from harbor_refresh.executions.news import audit
from harbor_refresh.executions.news.audit import Origin, Outcome, Person, Target, Word, note, noted, person_of
from tests.integration.database_state import rows

pytestmark = pytest.mark.usefixtures("database")

ANNA = Person("anna", Origin.ADMIN, "10.1.2.3")


def told() -> list[dict[str, Any]]:
    """The entries, without what each has: its id and its moment."""
    found = []
    for row in rows(AuditEntry).values():
        assert row.pop("at") is not None
        assert row.pop("pk") == row.pop("id")
        found.append(row)
    return found


def entry(**different: Any) -> dict[str, Any]:
    return {
        "by": "anna",
        "origin": "admin",
        "address": "10.1.2.3",
        "verb": "stop",
        "kind": "execution",
        "target": "7",
        "count": None,
        "outcome": "done",
        "detail": "",
        **different,
    }


def test_an_act_says_how_it_ended_what_it_made_or_that_there_was_nothing_to_do() -> None:
    with noted(ANNA, Word.CREATE, Target.SUBSCRIPTION) as noting:
        noting.target, noting.outcome, noting.detail = 9, Outcome.FAILED, "why"
    with noted(ANNA, Word.RETRY, Target.EXECUTION, 7) as noting:
        noting.skip = True
    assert told() == [entry(verb="create", kind="subscription", target="9", outcome="failed", detail="why")]


def test_what_cannot_be_stored_is_shortened_and_replaced() -> None:
    note(
        Person("\x00" + "n" * 999, Origin.TERMINAL, "a" * 999),
        Word.STOP,
        Target.EXECUTION,
        "t" * 999,
        detail="d" * 9999,
    )
    assert told() == [
        entry(
            by="?" + "n" * 149,
            origin="terminal",
            address="a" * 150,
            verb="stop",
            target="t" * 200,
            detail="d" * 1_000,
        )
    ]


@pytest.mark.parametrize("wrong", [{"origin": "x"}, {"outcome": "x"}, {"kind": ""}, {"verb": ""}, {"count": -1}])
def test_the_database_refuses_an_entry_that_says_nothing(wrong: dict[str, Any]) -> None:
    fields = entry() | wrong
    with pytest.raises(IntegrityError), transaction.atomic():
        AuditEntry.objects.create(**fields)


def test_a_request_is_of_its_token_or_of_its_user() -> None:
    request: Any = RequestFactory().post("/", REMOTE_ADDR="10.1.2.3", HTTP_X_FORWARDED_FOR="6.6.6.6")
    request.user = User(username="anna")
    assert person_of(request) == ANNA
    request.auth = ApiToken(pk=7, name="runners")
    assert person_of(request) == Person("runners (token 7)", Origin.API, "10.1.2.3")


def test_an_old_entry_is_forgotten() -> None:
    chores = {chore.name: chore for chore in HOUSEKEEPING}
    note(ANNA, Word.STOP, Target.EXECUTION, 7)
    note(ANNA, Word.STOP, Target.EXECUTION, 8)
    first = AuditEntry.objects.earliest("pk")
    AuditEntry.objects.filter(pk=first.pk).update(at=first.at - chores["log of actions"].age - timedelta(hours=1))
    with transaction.atomic():
        assert chores["log of actions"].page()[0] == 1
    assert [row["target"] for row in told()] == ["8"]


def test_the_log_keeps_the_newest_entries_however_many_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "KEPT", 3)
    for number in range(7):
        note(ANNA, Word.STOP, Target.EXECUTION, number)
    long_ago = AuditEntry.objects.earliest("pk").at - timedelta(days=1)
    with transaction.atomic():
        assert [audit.forget(long_ago, most=3) for _ in range(3)] == [3, 1, 0]
    assert [row["target"] for row in told()] == ["4", "5", "6"]
