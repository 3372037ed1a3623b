"""`harbor repair drift --full` on Harbor's tables: each execution with a wrong status is marked, and no other."""

import random

import pytest
from redis import Redis

from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.tasks.pipeline.reconciliation import reconcile
from harbor_refresh.tasks.queue.keys import HARBORS_SET
from tests.harbor.samples import END, everything, execution, stored, wrong
from tests.integration.command_output import data, said

YEAR_1 = "0001-01-01 00:00:00"
REPAIR = ("harbor", "repair", "drift", "--full")

pytestmark = pytest.mark.usefixtures("database")


def test_wrong_executions_are_marked_and_a_dry_run_marks_none(redis: Redis) -> None:
    lost = execution("Running", None, "Success", "Success", revision=3)
    by_hand = execution("Error", END, "Running", "Success", revision=None)
    execution("Error", END, "Error", "Success", revision=8)
    execution("Success", END, revision=1)
    before = everything()
    assert data(*REPAIR, "--dry-run")["drifted"] == 2
    assert "2 drifted, 0 of them waiting already, dry run" in said(*REPAIR, "--dry-run")
    assert not redis.exists(HARBORS_SET)
    assert data(*REPAIR)["marked"] == 2
    assert redis.smembers(HARBORS_SET) == {f"{pk}:REPLICATION".encode() for pk in (lost, by_hand)}
    assert everything() == before
    refresh([lost, by_hand])
    assert data(*REPAIR)["drifted"] == 0


def test_the_search_agrees_with_the_refresh_about_every_execution(redis: Redis) -> None:
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
    found = reconcile(full=True, dry_run=True)
    assert found.drifted == len(wrong()) > 0
    assert refresh(list(stored())).changed == found.drifted
    assert reconcile(full=True, dry_run=True).drifted == len(wrong()) == 0
