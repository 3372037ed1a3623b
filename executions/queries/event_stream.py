"""The progress of one execution as server-sent events: for the API, and for the screens of a host.

A stream takes a thread of its web process, so a process serves a few at a time.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
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


#: The room for streams in this process.
_room = threading.Semaphore(pacing.STREAMS)


def stream(read: Read) -> StreamingHttpResponse:
    """Answer with `progress` at once and whenever what is read changes, and with `end` when the execution has
    ended. Raises what `read` raises, and TooManyStreams."""
    first = read()
    if not _room.acquire(blocking=False):
        raise TooManyStreams(f"this process serves {pacing.STREAMS} event streams, and no more")
    events = _events(read, first)
    next(events)  # from here on a close makes room, even if no event was read
    return StreamingHttpResponse(events, content_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _events(read: Read, shown: dict[str, Any]) -> Iterator[str]:
    try:
        yield ""
        end = time.monotonic() + SECONDS_OF_A_STREAM
        yield _event(shown)
        while not is_final(shown["status"]) and time.monotonic() < end:
            time.sleep(SECONDS_BETWEEN)
            try:
                now = read()
            except RefreshError:  # it was deleted
                return
            # only a write shows that a client has gone: the first line is lost, the next fails
            yield _event(now) if now != shown else ": still here\n\n"
            shown = now
    finally:
        _room.release()


def _event(shown: dict[str, Any]) -> str:
    name = "end" if is_final(shown["status"]) else "progress"
    return f"event: {name}\ndata: {json.dumps(shown)}\n\n"
