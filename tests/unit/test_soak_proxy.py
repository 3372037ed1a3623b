"""The proxy of the soak: one address for servers that change."""

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.soak.proxy import HOST, Proxy


def server(answer: bytes) -> socket.socket:
    """It answers each line with the same word."""
    listening = socket.create_server((HOST, 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            while connection.recv(100):
                connection.sendall(answer)

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listening


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    proxy = Proxy("name")
    yield proxy
    proxy.end()


@pytest.fixture
def ports() -> Iterator[list[int]]:
    servers = [server(b"old"), server(b"new")]
    yield [one.getsockname()[1] for one in servers]
    for one in servers:
        one.close()


def connected(proxy: Proxy) -> socket.socket:
    return socket.create_connection((HOST, proxy.ports["name"]), timeout=10)


def asked(connection: socket.socket) -> bytes:
    connection.sendall(b"?")
    return connection.recv(100)


def test_new_connections_go_to_the_new_server_and_open_ones_stay(proxy: Proxy, ports: list[int]) -> None:
    proxy.lead("name", ports[0])
    with connected(proxy) as first:
        assert asked(first) == b"old"
        proxy.lead("name", ports[1])
        with connected(proxy) as second:
            assert (asked(first), asked(second)) == (b"old", b"new")


def test_held_data_arrives_when_it_is_released(proxy: Proxy, ports: list[int]) -> None:
    proxy.lead("name", ports[0])
    with connected(proxy) as connection:
        assert asked(connection) == b"old"
        proxy.hold("name")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            asked(connection)
        connection.settimeout(10)
        proxy.release("name")
        assert connection.recv(100) == b"old"


def test_a_cut_ends_open_connections_and_no_later_one(proxy: Proxy, ports: list[int]) -> None:
    proxy.lead("name", ports[0])
    with connected(proxy) as open_before:
        assert asked(open_before) == b"old"
        proxy.cut("name")
        assert open_before.recv(100) == b""
    with connected(proxy) as later:
        assert asked(later) == b"old"


def test_a_connection_to_a_server_that_is_away_is_closed(proxy: Proxy) -> None:
    with socket.create_server((HOST, 0)) as bound:
        nothing_listens_there = bound.getsockname()[1]
    proxy.lead("name", nothing_listens_there)
    with connected(proxy) as connection:
        assert connection.recv(100) == b""
