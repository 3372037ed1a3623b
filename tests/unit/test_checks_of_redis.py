"""The checks at start of the addresses of Redis and the broker: each that cannot work is refused by its id."""

import pytest
from pytest_django import Settings

from harbor_refresh.executions.attached.attachment import HARBOR
from harbor_refresh.tasks.checks.settings import check_settings

CLUSTER = "redis+cluster://h1,h2"
PREFIX = "cache:execution:refresh:"
TAG = "{cache:execution:refresh:}"
SERVER = "redis://h/0"


def ids() -> list[str]:
    return [str(message.id) for message in check_settings()]


CASES: list[tuple[tuple[str, str, str, str], list[str]]] = [
    ((SERVER, SERVER, PREFIX, "claim"), []),
    (("redis+sentinel://h/m", "sentinel://h", PREFIX, "scan"), []),
    ((CLUSTER, SERVER, TAG, "claim"), []),
    ((CLUSTER, SERVER, PREFIX, "claim"), ["harbor_tasks.E005"]),
    ((CLUSTER, SERVER, TAG, "scan"), ["harbor_tasks.E006"]),
    ((CLUSTER, CLUSTER, TAG, "claim"), ["harbor_tasks.E007"]),
    ((SERVER, "rediss+cluster://h", PREFIX, "claim"), ["harbor_tasks.E007"]),
    ((CLUSTER, "amqp://h", TAG, "claim"), []),
    ((SERVER, "amqp://h;amqp://i", PREFIX, "hash"), ["harbor_tasks.E008"]),
    ((SERVER, "amqps://h", PREFIX, "scan"), ["harbor_tasks.E008"]),
]


@pytest.mark.parametrize(("given", "expected"), CASES)
def test_what_cannot_work_is_refused(given: tuple[str, ...], expected: list[str], settings: Settings) -> None:
    names = ("REDIS_URL", "CELERY_BROKER_URL", "REFRESH_KEY_PREFIX", "REFRESH_STRATEGY")
    for name, value in zip(names, given, strict=True):
        setattr(settings, name, value)
    assert ids() == expected


@pytest.mark.parametrize(("address", "expected"), [(SERVER, []), (CLUSTER, ["harbor_tasks.E009"])])
def test_attached_the_queue_cannot_be_on_a_cluster(address: str, expected: list[str], settings: Settings) -> None:
    """The queue is Harbor's set then, whose key has no hash tag."""
    settings.REFRESH_ATTACH = HARBOR
    settings.REDIS_URL, settings.REFRESH_KEY_PREFIX = address, TAG
    settings.CELERY_BROKER_URL = SERVER
    assert ids() == expected
