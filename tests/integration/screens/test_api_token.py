"""`manage.py harbor token`."""

from datetime import timedelta

import pytest
from django.core.management import CommandError
from django.db import IntegrityError
from django.utils import timezone

from harbor_refresh.executions.access import api_tokens
from harbor_refresh.executions.models import ApiToken
from tests.integration.command_output import data, failing, manage, said

pytestmark = pytest.mark.usefixtures("database")


def row() -> ApiToken:
    return ApiToken.objects.get()


def scopes() -> tuple[bool, bool, bool]:
    return row().may_read, row().may_report, row().may_manage


def test_it_prints_the_token_and_nothing_else() -> None:
    token = said("harbor", "token", "runner")
    assert api_tokens.recognise(token) == row()
    assert (row().name, row().created_by, row().expires_at) == ("runner", "manage.py", None)
    assert scopes() == (True, False, False)


def test_it_gives_the_scopes_that_are_asked_for_and_no_other() -> None:
    said("harbor", "token", "runner", "--may", "report", "--may", "manage")
    assert scopes() == (False, True, True)


def test_it_expires_after_so_many_days() -> None:
    said("harbor", "token", "runner", "--days", 30)
    expires_at = row().expires_at
    assert expires_at is not None
    assert abs(expires_at - timezone.now() - timedelta(days=30)) < timedelta(hours=1)


def test_its_json_has_all_that_was_made() -> None:
    made = data("harbor", "token", "runner", "--may", "report", "--may", "read", "--days", 1)
    token = made.pop("token")
    assert api_tokens.recognise(token) == row()
    expires_at = row().expires_at
    assert made == {
        "id": row().pk,
        "name": "runner",
        "may": ["read", "report"],
        "expires_at": expires_at and expires_at.isoformat(),
    }


def test_a_name_is_given_once() -> None:
    said("harbor", "token", "runner")
    assert (
        failing("harbor", "token", "runner")[1] == "There is a token named 'runner' already. Choose another name."
    )
    assert ApiToken.objects.count() == 1


def test_another_refusal_of_the_database_is_not_taken_for_a_name_that_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: "x" * 43)
    said("harbor", "token", "runner")
    with pytest.raises(IntegrityError, match="execution_api_token_digest_key"):
        said("harbor", "token", "another")
    assert row().name == "runner"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([""], "the name takes 1 to"),
        (["x" * 101], "the name takes 1 to"),
        (["a\x00b"], "the name takes 1 to"),
        (["runner", "--days", "0"], "--days takes a whole number from 1 to 3,650, and got 0"),
        (["runner", "--days", "3651"], "--days takes a whole number from 1 to 3,650, and got 3651"),
        (["runner", "--may", "everything"], "invalid choice: 'everything'"),
    ],
)
def test_misuse_makes_no_token(words: list[str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        said("harbor", "token", *words)
    assert not ApiToken.objects.exists()


def test_as_a_process_it_writes_the_token_alone_to_standard_output() -> None:
    done = manage("harbor", "token", "runner", "--may", "report")
    assert (done.returncode, done.stderr) == (0, "")
    assert api_tokens.recognise(done.stdout.rstrip("\n")) == row()
