"""A Redis that answers and refuses this program is not called down."""

from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.executions.errors import QueueRefused, QueueRightMissing, QueueUnavailable
from harbor_refresh.executions.management.output import Failed, errors_in_one_line
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.queue.connection import connect


@pytest.fixture
def guarded(tmp_path: Path) -> str:
    with EmbeddedRedis(tmp_path / "redis") as server:
        with Redis.from_url(server.url) as operator:
            operator.acl_setuser("reader", enabled=True, passwords=["+a password"], commands=["+ping", "+hello"])
            operator.config_set("requirepass", "a secret of the test")
        yield server.url  # type: ignore[misc]
        server.kill()


LOOK = "`manage.py harbor check` says what to do."
REFUSALS: dict[str, tuple[str, type[QueueUnavailable], str]] = {
    "no password": ("", QueueRefused, LOOK),
    "a wrong password": (":wrong@", QueueRefused, LOOK),
    "no right": ("reader:a%20password@", QueueRightMissing, "the rights of redis.acl, in deploy/attach."),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_password_or_a_right_that_is_missing_is_a_refusal(guarded: str, why: str) -> None:
    who, kind, advice = REFUSALS[why]
    client = connect(guarded.replace("redis://", f"redis://{who}"), 2, tries=1)
    with pytest.raises(QueueRefused) as refused:
        client.set("a", 1)
    assert type(refused.value) is kind
    assert issubclass(kind, QueueUnavailable)
    with pytest.raises(Failed) as failed, errors_in_one_line():
        client.set("a", 1)
    assert str(failed.value).endswith(advice)
    assert "is down" not in str(failed.value)
