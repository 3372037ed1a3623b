"""A Redis that answers and refuses this program is not called away."""

from pathlib import Path

import pytest
from redis import Redis

from executions.errors import QueueRefused, QueueUnavailable
from executions.management.output import Failed, errors_in_one_line
from harbor_refresh.local.redis import EmbeddedRedis
from tasks.queue.connection import connect, redis_errors_translated


@pytest.fixture
def guarded(tmp_path: Path) -> str:
    with EmbeddedRedis(tmp_path / "redis") as server:
        with Redis.from_url(server.url) as operator:
            operator.acl_setuser("reader", enabled=True, passwords=["+a password"], commands=["+ping", "+hello"])
            operator.config_set("requirepass", "a secret of the test")
        yield server.url  # type: ignore[misc]
        server.kill()


@pytest.mark.parametrize("who", ["", ":wrong@", "reader:a%20password@"], ids=["no password", "wrong", "no right"])
def test_a_password_or_a_right_that_is_missing_is_a_refusal(guarded: str, who: str) -> None:
    client = connect(guarded.replace("redis://", f"redis://{who}"), 2, tries=1)
    with pytest.raises(QueueRefused), redis_errors_translated():
        client.set("a", 1)
    assert issubclass(QueueRefused, QueueUnavailable)
    refusal = pytest.raises(Failed, match="Redis answers, and refuses this program")
    with refusal as failed, errors_in_one_line(), redis_errors_translated():
        client.set("a", 1)
    assert "is away" not in str(failed.value)
