"""One address before two servers, as a failover behind a service or a virtual IP has it."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress


class Proxy:
    """Passes each new connection on to the server of the moment. Connections that are open stay where they are."""

    def __init__(self, port: int) -> None:
        self.target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self._sockets: set[socket.socket] = set()
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):  # else the thread that accepts would wait on
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Close the connections that are open. New ones are passed on."""
        while self._sockets:
            one = self._sockets.pop()
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._sockets.add(client)
                try:
                    server = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    client.close()
                    continue
                self._sockets.add(server)
                threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()
                threading.Thread(target=self._pass_back, args=(server, client), daemon=True).start()

    def _pass_back(self, server: socket.socket, client: socket.socket) -> None:
        self._pass_on(server, client)

    def _pass_on(
        self, source: socket.socket, destination: socket.socket, may_pass: Callable[[], bool] = lambda: True
    ) -> None:
        with suppress(OSError):
            while (data := source.recv(65536)) and may_pass():
                destination.sendall(data)
        for one in (source, destination):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._sockets.discard(source)
        source.close()


class LosesAnswers(Proxy):
    """Closes a connection when the first of an answer arrives, `to_lose` times. By then the server has done what
    it was asked to do."""

    def __init__(self, port: int, to_lose: int = 0) -> None:
        self.to_lose = to_lose
        super().__init__(port)

    def _pass_back(self, server: socket.socket, client: socket.socket) -> None:
        self._pass_on(server, client, self._may_pass)

    def _may_pass(self) -> bool:
        is_lost = self.to_lose > 0
        self.to_lose -= is_lost
        return not is_lost


class HoldsAnswers(Proxy):
    """Passes no answer back while `flows` is not set. It comes late then."""

    def __init__(self, port: int) -> None:
        self.flows = threading.Event()
        self.flows.set()
        super().__init__(port)

    def _pass_back(self, server: socket.socket, client: socket.socket) -> None:
        self._pass_on(server, client, self.flows.wait)
