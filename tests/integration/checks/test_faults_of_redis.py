"""Faults of Redis, put there on purpose: the doctor names each."""

from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from pytest_django import Settings

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.local.ports import choose_port
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.checks.facts import Facts, RedisServer
from harbor_refresh.tasks.checks.registry import Server, examine
from harbor_refresh.tasks.conf import refresh_settings
from tests import servers
from tests.elsewhere import uses
from tests.integration.checks.conftest import with_redis
from tests.integration.checks.examined import CHECKS, E, W, found


def test_a_redis_that_is_down() -> None:
    facts = with_redis(f"redis://127.0.0.1:{choose_port()}/0")
    results = {one.check.id: one for one in examine(facts=facts, checks=CHECKS_OF_REDIS)}
    (problem,) = results["redis.reachable"].problems
    assert str(problem.msg).startswith("Redis is down, or does not answer in time. Redis: ConnectionError")
    others = {name: one.not_made for name, one in results.items() if not name.endswith(".reachable")}
    assert set(others.values()) == {Server.REDIS}


def test_a_redis_that_asks_for_a_password_is_not_called_down(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis", extra=["--masterauth", "other"]) as server:
        RedisServer(server.url).client.config_set("requirepass", "a secret of the test")
        told = [what for _, what in found("redis.reachable", with_redis(server.url))]
        wrong = server.url.replace("redis://", "redis://:no@")
        told += [what for _, what in found("redis.reachable", with_redis(wrong))]
        server.kill()
    assert [what.split(". ")[0] for what in told] == ["Redis answers and refuses this program"] * 2


def test_a_redis_that_evicts_keys(facts_of_redis: Facts) -> None:
    facts_of_redis.redis.client.config_set("maxmemory-policy", "allkeys-lru")
    assert found("redis.eviction", facts_of_redis) == [
        (
            E,
            "Redis evicts keys when its memory is full (maxmemory-policy allkeys-lru), and so loses messages and "
            "marks.",
        )
    ]


def test_harbors_redis_may_evict_keys_unless_it_is_the_broker_too(
    facts_of_redis: Facts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REFRESH_ATTACH = "harbor"
    facts_of_redis.redis.client.config_set("maxmemory-policy", "allkeys-lru")
    monkeypatch.setattr(current_app.conf, "broker_write_url", refresh_settings().redis_url)
    assert len(found("redis.eviction", facts_of_redis)) == 1
    for other in ("redis://127.0.0.1:1/0", "amqp://" + refresh_settings().redis_url.partition("://")[2]):
        monkeypatch.setattr(current_app.conf, "broker_write_url", other)
        assert found("redis.eviction", facts_of_redis) == []


def test_a_redis_that_keeps_nothing(facts_of_redis: Facts, redis_to_break: EmbeddedRedis) -> None:
    facts_of_redis.redis.client.config_set("appendonly", "no")
    facts_of_redis.redis.client.config_set("save", "")
    ((level, what),) = found("redis.persistence", facts_of_redis)
    assert (level, what.split(".")[0]) == (W, "Redis keeps nothing across a restart")
    facts_of_redis.redis.client.config_set("save", "3600 1")
    assert found("redis.persistence", with_redis(redis_to_break.url)) == []


def test_a_redis_that_is_a_replica(facts_of_redis: Facts) -> None:
    facts_of_redis.redis.client.replicaof("127.0.0.1", choose_port())
    assert found("redis.primary", facts_of_redis) == [(E, "Redis is a replica, which takes no writes.")]


def test_a_redis_that_is_too_old(facts_of_redis: Facts) -> None:
    facts_of_redis.redis.info = {"redis_version": "6.0.16"}
    assert found("redis.version", facts_of_redis) == [
        (E, "Redis is 6.0.16, but the oldest supported version is 6.2.")
    ]


def test_a_broker_that_is_down_is_named_as_the_broker(redis: Any) -> None:
    with uses(servers.redis.url, f"redis://127.0.0.1:{choose_port()}/0"):
        ((level, what),) = found("broker.reachable", Facts())
    assert (level, what.split(",")[0]) == (E, "The broker's Redis is down")


def test_a_server_that_is_the_redis_of_the_queue_and_the_broker_is_one_problem() -> None:
    port = choose_port()
    with uses(f"redis://127.0.0.1:{port}/0", f"redis://127.0.0.1:{port}/1"):
        facts = Facts()
        assert len(found("redis.reachable", facts)) == 1
        assert found("broker.reachable", facts) == []


@pytest.mark.usefixtures("database")
def test_an_address_of_redis_that_cannot_be_read_hides_no_other_server() -> None:
    facts = Facts()
    with uses("foo://x", servers.redis.url):
        assert facts.absence(Server.DATABASE) is None
        assert facts.absence(Server.BROKER) is None
        ((level, what),) = found("redis.reachable", facts)
    assert (level, what) == (E, "This could not be looked at. BadAddress: the scheme foo")


@pytest.mark.usefixtures("redis")
@pytest.mark.parametrize("url", ["memory://", "redis+socket:///no/such/socket"])
def test_a_broker_whose_address_is_not_one_of_ours_is_asked_as_celery_does(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current_app.conf, "broker_write_url", url)
    facts = Facts()
    told = [what.split(",")[0] for _, what in found("broker.reachable", facts)]
    assert told == ([] if url == "memory://" else ["The broker's Redis is down"])
    assert [found(one.id, facts) for one in CHECKS_OF_REDIS if one.id != "redis.persistence"] == [[]] * 4


def test_a_broker_of_another_kind_is_named_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_app.conf, "broker_write_url", "sqs://")
    monkeypatch.setattr(Facts, "absence", lambda *_: QueueUnavailable("sqs: no such host"))
    ((level, what),) = found("broker.reachable")
    assert (level, what.split(". ")[0]) == (E, "The broker sqs is down, or does not answer in time")


CHECKS_OF_REDIS = [one for one in CHECKS if one.id.startswith("redis.")]
