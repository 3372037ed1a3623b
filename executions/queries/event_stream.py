"""The progress of one execution as server-sent events: for the API, and for the screens of a host.

A stream takes a thread of its web process, so a process serves a few at a time.
"""

import json
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

from django.http import StreamingHttpResponse

from harbor_refresh.executions import pacing
from harbor_refresh.executions.errors import RefreshError, TooManyStreams
from harbor_refresh.executions.status import is_final

SECONDS_BETWEEN = 1.0
#: A stream ends by then, and the caller opens another one, so that no web process waits for it when it restarts.
SECONDS_OF_A_STREAM = 300.0

#: Returns what is told of an execution, with its `status`. Raises RefreshError if it was deleted.
Read = Callable[[], dict[str, Any]]


class _Streams:
    """The open streams of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def enter(self) -> None:
        with self._lock:
            if self._count >= pacing.STREAMS:
                raise TooManyStreams(self._count)
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1


_streams = _Streams()


def stream(read: Read) -> StreamingHttpResponse:
    """Answer with `progress` at once and whenever what is read changes, and with `end` when the execution has
    ended. Raises what `read` raises, and TooManyStreams."""
    first = read()
    _streams.enter()
    return StreamingHttpResponse(
        _Stream(read, first), content_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


class _Stream:
    """The events as text. Closing it makes room for another one, even if its first event was never read."""

    def __init__(self, read: Read, first: dict[str, Any]) -> None:
        self._events = _events(read, first)
        self._is_open = True

    def __iter__(self) -> Iterator[str]:
        return self._events

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._events.close()
            _streams.leave()


def _events(read: Read, shown: dict[str, Any]) -> Generator[str, None, None]:
    end = time.monotonic() + SECONDS_OF_A_STREAM
    yield _event(shown)
    while not is_final(shown["status"]) and time.monotonic() < end:
        time.sleep(SECONDS_BETWEEN)
        try:
            now = read()
        except RefreshError:  # it was deleted
            return
        if now != shown:
            shown = now
            yield _event(shown)
        else:
            # only a write shows that a client has gone: the first line is lost, the next fails
            yield ": still here\n\n"


def _event(shown: dict[str, Any]) -> str:
    name = "end" if is_final(shown["status"]) else "progress"
    return f"event: {name}\ndata: {json.dumps(shown)}\n\n"
