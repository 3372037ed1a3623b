"""Events: what went wrong and healed, in bounded rows, told in sentences."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from harbor_refresh.executions.news import signals as of_executions
from harbor_refresh.tasks.models import Event
from harbor_refresh.tasks.models.state import Kind
from harbor_refresh.tasks.news import events, signals
from harbor_refresh.tasks.news.state import SeenNode
from harbor_refresh.tasks.pipeline.reconciliation import Reconciled

pytestmark = pytest.mark.usefixtures("database", "redis")


def rows() -> list[tuple[str, int]]:
    return sorted(Event.objects.values_list("kind", "count"))


def test_each_signal_of_trouble_or_healing_is_an_event() -> None:
    signals.recovered.send(sender=None, count=3)
    signals.runs_released.send(sender=None, count=2)
    signals.reconciled.send(sender=None, outcome=Reconciled(marked=4))
    of_executions.quarantined.send(sender=None, execution_ids=[1], reasons={1: "x"})
    of_executions.released_from_quarantine.send(sender=None, execution_ids=[1, 2])
    of_executions.deliveries_died.send(sender=None, deliveries=[])
    assert rows() == [
        ("drift", 4),
        ("jobs_recovered", 2),
        ("quarantined", 1),
        ("recovered", 3),
        ("released_from_quarantine", 2),
    ]


def test_a_flood_of_one_kind_is_one_row_a_minute() -> None:
    for number in range(300):
        of_executions.quarantined.send(sender=None, execution_ids=[number], reasons={number: "x"})
    found = rows()
    assert len(found) <= 2, "two, if the minute ends meanwhile"
    assert sum(count for _, count in found) == 300


def test_nothing_happened_is_no_event() -> None:
    signals.recovered.send(sender=None, count=0)
    assert rows() == []


def test_what_is_rolled_back_is_no_event() -> None:
    def leave() -> None:
        with transaction.atomic():
            of_executions.released_from_quarantine.send(sender=None, execution_ids=[1])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        leave()
    assert rows() == []
    with transaction.atomic():
        of_executions.released_from_quarantine.send(sender=None, execution_ids=[1])
        assert rows() == []
    assert rows() == [("released_from_quarantine", 1)]


def test_an_event_that_cannot_be_written_stops_nothing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE service_event RENAME TO gone")
    signals.recovered.send(sender=None, count=3)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM gone")
        assert cursor.fetchone() == (0,)


def test_deaths_stand_between_the_events_the_latest_first() -> None:
    events.note(Kind.DRIFT, 1)
    dead = [SeenNode("a", 50.0), SeenNode("b", 10.0)]
    told = [one.sentence for one in events.latest(3, dead)]
    assert told == ["1 status that differed was marked for a refresh by reconcile", "Node b died", "Node a died"]
    assert len(events.latest(2, dead)) == 2


def test_events_of_more_than_two_days_are_deleted_with_the_next() -> None:
    events.note(Kind.DRIFT, 1)
    Event.objects.update(minute=F("minute") - timedelta(hours=49))
    events.note(Kind.RECOVERED, 1)
    assert [kind for kind, _ in rows()] == ["recovered"]


def test_every_kind_has_a_sentence_for_one_and_for_many() -> None:
    assert {*events.SENTENCES, Kind.NODE_DIED} == set(Kind)
    with transaction.atomic():  # of one moment, so no minute ends between the two
        for number in (1, 1_999):
            events._write(Kind.RECOVERED, number)
    (told,) = events.latest(5)
    assert told.sentence == "2,000 executions were taken back from dead workers, for others to refresh"
    assert told.heals


def test_only_known_kinds_can_be_stored() -> None:
    with pytest.raises(IntegrityError, match="event_kind_known"):
        Event.objects.create(minute="2026-01-01T00:00Z", kind="other", count=1, last_at="2026-01-01T00:00Z")
