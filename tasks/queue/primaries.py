"""Find the primary behind Sentinel: ask the Sentinels each time a connection is made.

A Sentinel may be away, or not know yet of a failover. So the next one is asked if it does not answer, and it moves
to the end if the primary that it named does not serve. The connection to a Sentinel is closed at once, so a forked
process inherits none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError, RedisError
from redis.exceptions import ConnectionError as NoConnection
from redis.retry import Retry
from redis.utils import str_if_bytes

from harbor_refresh.tasks.broker.redis_address import Place

#: The server answers, and refuses this client.
NOT_ADMITTED = (AuthenticationError, AuthorizationError, NoPermissionError)


#: So many are asked for one connection, because each may hang. The others come first the next time.
MOST_ASKED = 3


class Sentinels:
    """`name`: what they call the primary. `options` are those of a connection to a Sentinel, with its timeouts."""

    def __init__(
        self,
        name: str,
        places: Sequence[Place],
        connection_class: type[redis.Connection],
        options: Mapping[str, Any],
    ) -> None:
        self._name = name
        self._places = list(places)
        self._connection_class = connection_class
        self._options = options

    def primary(self) -> Place:
        """Ask one Sentinel after the other. Raises a connection error if none knows, and the error of a Sentinel
        that refuses the login."""
        failures: list[str] = []
        for place in self._places[:MOST_ASKED]:
            try:
                return self._answer(place)
            except NOT_ADMITTED:
                raise
            except (RedisError, OSError) as exc:
                failures.append(f"{place}: {exc}")
                self.doubt(place)
        raise NoConnection(f"no Sentinel tells where the primary {self._name} is ({'; '.join(failures)})")

    def doubt(self, place: Place | None = None) -> None:
        """Ask this Sentinel last from now on; by default the one that was asked last."""
        first = place or self._places[0]
        self._places = [*(one for one in self._places if one != first), first]

    def _answer(self, place: Place) -> Place:
        """Return the primary that this Sentinel names. Raises a connection error if it names none."""
        retry = Retry(NoBackoff(), 0)
        connection = self._connection_class(host=place.host, port=place.port, retry=retry, **self._options)
        try:
            connection.send_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name)  # type: ignore[no-untyped-call]
            answer = connection.read_response()
        finally:
            connection.disconnect()  # type: ignore[no-untyped-call]
        if not answer:
            raise NoConnection("it knows no such primary")
        host, port = answer
        return Place(str_if_bytes(host), int(port))
