"""A server that stands still, with all its processes: it keeps its connections, and answers none."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from harbor_refresh.local.server import EmbeddedServer


@contextmanager
def standing_still(server: EmbeddedServer) -> Iterator[None]:
    assert server.pid
    first = psutil.Process(server.pid)
    first.suspend()  # before the others: it would replace a process that ends
    family = [first, *first.children(recursive=True)]
    try:
        for one in family[1:]:
            with suppress(psutil.NoSuchProcess):
                one.suspend()
        yield
    finally:
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.resume()
