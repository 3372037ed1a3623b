"""Which nodes of a Cluster are asked for the primary, as they come, go and fail."""

from typing import Any

import pytest
import redis
from redis.crc import key_slot

from harbor_refresh.tasks.broker.redis_address import Place
from harbor_refresh.tasks.queue.primaries import ClusterNodes

KEY = "queue"
SLOTS = 16_384


class Nodes(ClusterNodes):
    """`answers`: what each node says; a node that is not in it is away."""

    def __init__(self, *named: str) -> None:
        super().__init__(KEY, [Place(host, 1) for host in named], redis.Connection, {})
        self.answers: dict[str, Any] = {}

    def _answer(self, place: Place) -> Any:
        try:
            return self.answers[place.host]
        except KeyError:
            raise redis.exceptions.ConnectionError("away") from None

    def known(self) -> list[str]:
        return [place.host for place in self._places]


def slots(*hosts: str) -> list[Any]:
    """One primary, which has all slots, and its replicas."""
    return [[0, SLOTS - 1, *([host.encode(), 1, b"id"] for host in hosts)]]


def test_a_node_that_neither_the_address_nor_the_latest_answer_names_is_forgotten() -> None:
    """Nodes get new addresses again and again, as pods do."""
    nodes = Nodes("a", "b")
    for number in range(100):
        primary, replica = f"p{number}", f"r{number}"
        nodes.answers = dict.fromkeys(["a", primary], slots(primary, replica))
        assert nodes.primary() == Place(primary, 1)
        assert nodes.known() == ["a", "b", primary, replica]


def test_the_node_that_was_asked_last_stays_first_so_that_it_is_doubted_if_its_primary_does_not_serve() -> None:
    """It is no longer of the Cluster, and no other node names it."""
    nodes = Nodes("a")
    nodes.answers = {"a": slots("old", "new")}
    nodes.primary()
    nodes.answers = {"old": slots("new")}
    assert nodes.primary() == Place("new", 1)
    assert nodes.known() == ["old", "new", "a"]
    nodes.doubt()
    assert nodes.known() == ["new", "a", "old"]
    nodes.answers = {"new": slots("new")}
    nodes.primary()
    assert nodes.known() == ["new", "a"]


def test_the_nodes_of_an_answer_that_does_not_name_the_primary_are_known() -> None:
    nodes = Nodes("a")
    slot = key_slot(KEY.encode())
    nodes.answers = {"a": [[slot + 1, SLOTS - 1, [b"b", 1, b"id"]]]}
    with pytest.raises(redis.exceptions.ConnectionError, match="no primary has their slot"):
        nodes.primary()
    assert nodes.known() == ["b", "a"]
