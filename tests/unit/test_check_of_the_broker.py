"""The check of the broker: the older designs need a Redis."""

import pytest
from pytest_django import Settings

from harbor_refresh.tasks.checks.settings import check_settings


@pytest.mark.parametrize(
    ("broker", "strategy", "expected"),
    [
        ("redis://h/0", "claim", []),
        ("sentinel://h", "scan", []),
        ("amqp://h", "claim", []),
        ("amqp://h;amqp://i", "hash", ["harbor_tasks.E008"]),
        ("amqps://h", "scan", ["harbor_tasks.E008"]),
    ],
)
def test_an_older_design_is_refused_with_rabbitmq(
    broker: str, strategy: str, expected: list[str], settings: Settings
) -> None:
    settings.CELERY_BROKER_URL, settings.REFRESH_STRATEGY = broker, strategy
    assert [message.id for message in check_settings()] == expected
