"""Free ports for the embedded servers."""

import socket
from collections.abc import Iterator

import pytest

from harbor_refresh.local.ports import LOOPBACK, choose_port, is_free


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen(1)
        yield listener.getsockname()[1]


def test_a_port_with_a_listener_is_not_free(taken_port: int) -> None:
    assert not is_free(taken_port)


def test_the_preferred_port_is_chosen_if_it_is_free() -> None:
    wished = choose_port()

    assert choose_port(wished) == wished


def test_if_the_port_is_taken_a_neighbouring_port_is_chosen(taken_port: int) -> None:
    assert taken_port < choose_port(taken_port) < taken_port + 20


def test_without_a_preference_the_port_is_below_the_range_of_outgoing_connections() -> None:
    assert choose_port() < 32_768
