"""An HTTP server of a test, in a thread of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """Serve until the block ends; then end the thread and close the port."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    with server:
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
