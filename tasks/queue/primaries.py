"""Find the primary that holds our keys: ask Sentinels, or the nodes of a Cluster, each time a connection is made.

All keys of the queue carry one hash tag, so one primary of a Cluster holds them all. A client that follows this
primary keeps every promise of `connection`: its tries, its time, and that `single` never repeats. The library's
own client of a Cluster retries by rules of its own.

A guide (a Sentinel, a node) may be away, or not know yet of a failover. So the next one is asked if it does not
answer, and it moves to the end if the primary that it named does not serve. A guide is asked over a connection of
its own that is closed at once: connections are made rarely, and a forked process inherits none.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError, RedisError
from redis.exceptions import ConnectionError as NoConnection
from redis.retry import Retry

from harbor_refresh.tasks.broker.redis_address import Place

#: The server answers, and refuses this client.
NOT_ADMITTED = (AuthenticationError, AuthorizationError, NoPermissionError)


class Guides(ABC):
    """`options` are those of a connection to a guide, with its timeouts."""

    def __init__(
        self, places: Sequence[Place], connection_class: type[redis.Connection], options: Mapping[str, Any]
    ) -> None:
        self._places = list(places)
        self._connection_class = connection_class
        self._options = options

    def primary(self) -> Place:
        """Ask one guide after the other. Raises a connection error if none knows, and the error of a guide that
        refuses the login."""
        failures: list[str] = []
        for place in tuple(self._places):
            try:
                return self._read(place, self._answer(place))
            except NOT_ADMITTED:
                raise
            except (RedisError, OSError) as exc:
                failures.append(f"{place}: {exc}")
                self.doubt(place)
        raise NoConnection(f"{self.unknown} ({'; '.join(failures)})")

    def doubt(self, place: Place | None = None) -> None:
        """Ask this guide last from now on; by default the one that was asked last."""
        first = place or self._places[0]
        self._places = [*(one for one in self._places if one != first), first]

    def _answer(self, place: Place) -> Any:
        retry = Retry(NoBackoff(), 0)
        connection = self._connection_class(host=place.host, port=place.port, retry=retry, **self._options)
        try:
            connection.send_command(*self.question)  # type: ignore[no-untyped-call]
            return connection.read_response()
        finally:
            connection.disconnect()  # type: ignore[no-untyped-call]

    unknown: str
    question: tuple[str, ...]

    @abstractmethod
    def _read(self, place: Place, answer: Any) -> Place:
        """Return the primary that this guide names. Raises a connection error if it names none."""


class Sentinels(Guides):
    def __init__(self, name: str, *args: Any) -> None:
        super().__init__(*args)
        self.unknown = f"no Sentinel tells where the primary {name} is"
        self.question = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)

    def _read(self, place: Place, answer: Any) -> Place:
        if not answer:
            raise NoConnection("it knows no such primary")
        return Place(_text(answer[0]), int(answer[1]))


class ClusterNodes(Guides):
    """Learns the other nodes from each answer, so the address need not name all. Forgets a node that neither the
    latest answer nor the address names, so that nodes that come and go with new addresses do not add up."""

    unknown = "no node of the Cluster tells which primary holds the keys"
    question = ("CLUSTER", "SLOTS")

    def __init__(self, key: str, *args: Any) -> None:
        super().__init__(*args)
        self._named = frozenset(self._places)
        self._slot = key_slot(key.encode())

    def _read(self, place: Place, answer: Any) -> Place:
        ranges = [
            (first, last, [Place(_text(node[0]) or place.host, int(node[1])) for node in nodes])
            for first, last, *nodes in answer
        ]
        told = dict.fromkeys(node for _, _, nodes in ranges for node in nodes)
        kept = [one for one in self._places if one == place or one in told or one in self._named]
        self._places = list(dict.fromkeys([*kept, *told]))
        for first, last, nodes in ranges:
            if first <= self._slot <= last:
                return nodes[0]
        raise NoConnection("no primary has their slot")


def _text(raw: Any) -> str:
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw or "")
    return "" if text == "?" else text
