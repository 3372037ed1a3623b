"""`manage.py harbor token`."""

from datetime import timedelta

import pytest
from django.core.management import CommandError
from django.utils import timezone

from harbor_refresh.executions.api import api_tokens
from harbor_refresh.executions.models import ApiToken
from tests.integration.command_output import data, failing, said
from tests.integration.concurrency import in_background, transaction_held_open, wait_until
from tests.integration.database_state import waiting_for_locks

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


def test_its_json_has_all_that_was_made() -> None:
    made = data("harbor", "token", "runner", "--may", "report", "--may", "read", "--days", 1)
    token = made.pop("token")
    assert api_tokens.recognise(token) == row()
    expires_at = row().expires_at
    assert expires_at is not None
    assert abs(expires_at - timezone.now() - timedelta(days=1)) < timedelta(hours=1)
    assert scopes() == (True, True, False)
    assert made == {
        "id": row().pk,
        "name": "runner",
        "may": ["read", "report"],
        "expires_at": expires_at.isoformat(),
    }


def test_a_name_is_given_once() -> None:
    told = "There is a token named 'runner' already. Choose another name."
    with (
        transaction_held_open(lambda: said("harbor", "token", "runner")) as commit,
        in_background(lambda: failing("harbor", "token", "runner")[1]) as finish,
    ):
        wait_until(waiting_for_locks, "the second to wait for the first")
        commit()
        assert finish() == told
    assert failing("harbor", "token", "runner")[1] == told
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([""], "the name takes 1 to"),
        (["x" * 101], "the name takes 1 to"),
        (["a\x00b"], "the name takes 1 to"),
        (["runner", "--days", "0"], "got '0', takes a whole number from 1 to 3,650"),
        (["runner", "--days", "3651"], "got '3651', takes a whole number from 1 to 3,650"),
        (["runner", "--may", "everything"], "invalid choice: 'everything'"),
    ],
)
def test_misuse_makes_no_token(words: list[str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        said("harbor", "token", *words)
    assert not ApiToken.objects.exists()
