"""Free TCP ports on the loopback address."""

import random
import socket
from itertools import chain

LOOPBACK = "127.0.0.1"

# Below Linux's ephemeral range (32768 and up). In that range, a client that reconnects in a loop while its server
# is down could be given the server's own port, and then the server cannot bind it.
_RANGE = range(15_000, 32_000)
_NEIGHBOURS = 20


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now; connections that linger do not count."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True


def choose_port(wished: int | None = None) -> int:
    """The wished port if it is free, else the next free port above it; any free port if none is wished."""
    near = range(0) if wished is None else range(wished, min(wished + _NEIGHBOURS, 65_536))
    for port in chain(near, random.sample(_RANGE, k=200)):
        if is_free(port):
            return port
    raise OSError("no free TCP port was found on 127.0.0.1 in 200 tries")
