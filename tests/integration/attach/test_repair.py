"""`manage.py attach repair`: what is wrong becomes right, and nothing else is written."""

import random

import psycopg
import pytest
from django.db import connection

from harbor_refresh.attach import wrong_statuses
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import StatusChange
from tests import servers
from tests.harbor.samples import END, Stored, everything, execution, sql, stored, wrong
from tests.integration.command_output import data, failing, said

YEAR_1 = "0001-01-01 00:00:00"

pytestmark = pytest.mark.usefixtures("database")


def test_wrong_executions_are_put_right_and_the_others_stay() -> None:
    lost = execution("Running", None, "Success", "Success", revision=3)
    by_hand = execution("Error", END, "Running", "Success", revision=None)
    by_word = execution("Running", None, "Stopped", "Success")
    right = execution("Error", END, "Error", "Success", revision=8)
    without_tasks = execution("Success", END, revision=1)
    unknown_word = execution("Running", None, "Succeed")
    without_status = execution(None, None, "Pending", revision=None)
    assert data("attach", "repair") | {"first_wrong": []} == {
        "dry_run": False,
        "looked_at": 7,
        "unfinished": 3,
        "wrong": 4,
        "given_up": 0,
        "first_wrong": [],
        "repaired": 4,
        "held": 0,
        "failed": 0,
        "first_failed": {},
    }
    assert stored() == {
        lost: Stored("Success", END, 4),
        by_hand: Stored("Running", None, 1),
        by_word: Stored("Stopped", END, 1),
        right: Stored("Error", END, 8),
        without_tasks: Stored("Success", END, 1),
        unknown_word: Stored("Running", None, 0),
        without_status: Stored("Running", None, 1),
    }
    assert not wrong()
    history = StatusChange.objects.order_by("execution_id").values_list("execution_id", "to_status")
    assert list(history) == [
        (lost, "Success"),
        (by_hand, "Running"),
        (by_word, "Stopped"),
        (without_status, "Running"),
    ]


def test_what_harbors_sweep_has_given_up_is_left() -> None:
    """Tasks wait, and none is Running. Harbor would end it again each day."""
    given_up, running, young = (
        execution("Error", None, *words)
        for words in (("Pending", "Error"), ("Pending", "Running"), ("Pending", "Error"))
    )
    sql("UPDATE execution SET start_time = now() - interval '8 days' WHERE id <> %s", young)
    found = data("attach", "repair")
    assert (found["wrong"], found["given_up"], found["repaired"]) == (2, 1, 2)
    assert {pk: one.status for pk, one in stored().items()} == {
        given_up: "Error",
        running: "Running",
        young: "Running",
    }


def test_a_second_repair_finds_nothing_to_write() -> None:
    execution("Running", None, "Success")
    data("attach", "repair")
    before = everything()
    assert data("attach", "repair")["wrong"] == 0
    assert everything() == before


def test_a_dry_run_writes_nothing() -> None:
    pk = execution("Running", None, "Success", revision=3)
    before = everything()
    found = data("attach", "repair", "--dry-run")
    assert (found["wrong"], found["repaired"]) == (1, 0)
    assert found["first_wrong"] == [
        {
            "execution_id": pk,
            "vendor_type": "REPLICATION",
            "stored": "Running",
            "stored_end": None,
            "true": "Success",
            "true_end": END,
        }
    ]
    assert everything() == before
    assert "1 wrong, dry run: nothing written." in said("attach", "repair", "--dry-run")


def test_pages_go_on_where_a_stopped_repair_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped after its second page of three. What was committed stays; the next repair does the rest."""
    monkeypatch.setattr(wrong_statuses, "PAGE_OF_REPAIR", 2)
    ids = [execution("Running", None, "Success") for _ in range(6)]

    def stop_after(looked_at: int) -> None:
        if looked_at == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wrong_statuses.repair(progress=stop_after)
    assert list(wrong()) == ids[4:]
    assert wrong_statuses.repair().repaired == 2
    assert not wrong()


def test_a_row_that_cannot_be_refreshed_is_named_and_passed() -> None:
    """The trigger stands for whatever PostgreSQL may have against one row."""
    ids = [execution("Running", None, "Success") for _ in range(3)]
    sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'row % is odd', OLD.id; END $$"
    )
    sql(
        f"CREATE TRIGGER refuse BEFORE UPDATE ON execution FOR EACH ROW WHEN (OLD.id = {ids[1]})"
        " EXECUTE FUNCTION refuse()"
    )
    out, why = failing("attach", "repair")
    assert why == "1 execution could not be refreshed"
    assert f"row {ids[1]} is odd" in out
    assert list(wrong()) == [ids[1]]


def test_a_locked_row_is_not_waited_for() -> None:
    held, free = execution("Running", None, "Success"), execution("Running", None, "Success")
    with psycopg.connect(servers.postgres.url_for(str(connection.settings_dict["NAME"]))) as other:
        other.execute("SELECT FROM public.execution WHERE id = %s FOR UPDATE", [held])
        found = data("attach", "repair")
    assert (found["repaired"], found["held"]) == (1, 1)
    assert list(wrong()) == [held]
    assert stored()[free].status == "Success"


def test_the_search_agrees_with_the_refresh_about_every_execution() -> None:
    """Of any words and ends: what the search calls wrong is what a refresh changes."""
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")  # noqa: T201  # pytest shows it if the test fails
    chance = random.Random(seed)
    words = ["Pending", "Scheduled", "Running", "Error", "Stopped", "Success", "Succeed", ""]
    for _ in range(150):
        execution(
            chance.choice([*words, None]),
            chance.choice([None, END, YEAR_1]),
            *chance.choices(words, k=chance.randint(0, 3)),
            revision=chance.choice([None, 0, 5]),
        )
    found = wrong_statuses.repair(dry_run=True)
    assert found.wrong == len(wrong()) > 0
    assert refresh(list(stored())).changed == found.wrong
    assert wrong_statuses.repair(dry_run=True).wrong == len(wrong()) == 0


def test_without_our_tables_it_says_what_to_type() -> None:
    sql("DELETE FROM django_migrations WHERE app = 'harbor_executions'")
    assert failing("attach", "repair")[1].endswith("Type: manage.py migrate")


def test_where_no_harbor_is_attached_it_names_the_command_for_that(settings: pytest.FixtureRequest) -> None:
    settings.REFRESH_ATTACH = ""  # type: ignore[attr-defined]
    assert "`manage.py harbor repair drift --full` repairs here" in failing("attach", "repair")[1]
