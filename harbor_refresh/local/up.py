"""`make up`: start the servers and the processes, keep them running, and end them all.

1. Take the checkout's lock, listen to signals.
2. Start the servers that no variable names; migrate; make the admin account.
3. Start the services, wait until the web answers, show the addresses.
4. Until a signal, start processes that died again.
5. End everything in less than ten seconds.
"""

import os
import secrets
import signal
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import FrameType

from harbor_refresh.local import LocalError
from harbor_refresh.local.checkout import Checkout, held
from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.process import end, tail
from harbor_refresh.local.program import SETTINGS, followed
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.local.server import EmbeddedServer
from harbor_refresh.local.services import Service, services
from settings import env

USERNAME = "admin"
WEB_PORT, FLOWER_PORT, POSTGRES_PORT, REDIS_PORT = 8000, 5555, 5432, 6379
# The sum, and what the kills take on a busy machine, is less than the ten seconds that Ctrl-C may take.
SERVICES_HAVE_SECONDS = 5.4
SERVERS_HAVE_SECONDS = 2.4
WEB_HAS_SECONDS = 60.0
#: Between two looks for processes that died.
LOOK_SECONDS = 2.0


class StopRequested(Exception):
    """A signal asked us to end."""


def start_again(one: Service | EmbeddedServer) -> None:
    """Start a process that died, and say so."""
    if not one.running:
        say(f"error {one.name} ended and starts again. {one.log} ends:\n{tail(one.log, 12)}")
        try:
            one.start()
        except LocalError as exc:
            say(f"error {exc}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Up:
    """One run of `make up` in one checkout."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._servers: list[EmbeddedServer] = []
        self._services: list[Service] = []
        self._environ: dict[str, str] = {}
        self._is_stopping = False

    def run(self) -> None:
        """Return after a signal, when everything has ended; LocalError if it could not start."""
        self._checkout.prepare()
        with held(self._checkout.lock):
            self._checkout.variables.unlink(missing_ok=True)  # of one that was killed
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, self._stop)
            try:
                database_url, redis_url = self._database(), self._redis()
                ours = {"PYTHONUNBUFFERED": "1", "DJANGO_SETTINGS_MODULE": SETTINGS}
                self._environ = os.environ | ours | {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
                self.run_to_end("migrate", "manage.py", "migrate", "--noinput")
                login = self._make_admin_account()
                web, flower = self._port("The web", WEB_PORT), self._port("Flower", FLOWER_PORT)
                admin = f"http://{LOOPBACK}:{web}/admin/"
                self._checkout.announce(followed(self._environ))
                say("start web, workers, beat, Flower and the demo")
                for service in services(web, flower):
                    self._services.append(self._started(service))
                self._wait_for_web(admin)
                addresses = {
                    "Admin": admin,
                    "": f"user {USERNAME}, {login}",
                    "Flower": f"http://{LOOPBACK}:{flower}/",
                    "PostgreSQL": env.without_password(database_url),
                    "Redis": env.without_password(redis_url),
                    "Logs": f"{self._checkout.logs}/",
                    "Terminal": f"{Path(sys.executable).parent}/python manage.py doctor",
                }
                say("\nHarbor Refresh is up. In this directory, every command finds its servers by itself.\n")
                say("\n".join(f"{name:<12} {address}" for name, address in addresses.items()))
                say("\nCtrl-C ends everything; the data stay for the next time.")
                watched: list[Service | EmbeddedServer] = [*self._servers, *self._services]
                while True:
                    for one in watched:
                        start_again(one)
                    self._pause(LOOK_SECONDS)
            except StopRequested:
                pass
            finally:
                say("Ending everything ...")
                end(self._services, SERVICES_HAVE_SECONDS)
                end(self._servers, SERVERS_HAVE_SECONDS)
                self._checkout.variables.unlink(missing_ok=True)
            say("Everything has ended. `make up` finds its data again.")

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        """Note a signal. It raises nothing, because an exception in the middle of a start could lose a process."""
        self._is_stopping = True

    def _pause(self, seconds: float = 0) -> None:
        """Sleep; StopRequested after a signal."""
        until = time.monotonic() + seconds
        while not self._is_stopping and time.monotonic() < until:
            time.sleep(0.05)
        if self._is_stopping:
            raise StopRequested

    def _database(self) -> str:
        if given := env.secret("DATABASE_URL", ""):
            say("note  DATABASE_URL is set: it is used, and no PostgreSQL is started.")
            return given
        port = self._port("PostgreSQL", POSTGRES_PORT)
        return self._up(EmbeddedPostgres(self._checkout.postgres, port), "postgres")

    def _redis(self) -> str:
        if given := env.redis_url("REDIS_URL", "_REDIS_URL_HARBOR", "_REDIS_URL_CORE", default=""):
            say("note  REDIS_URL is set: it is used, and no Valkey is started.")
            return given
        return self._up(EmbeddedRedis(self._checkout.redis, self._port("Valkey", REDIS_PORT)), "redis")

    def _up(self, server: EmbeddedServer, log: str) -> str:
        self._pause()
        server.log = self._checkout.fresh_log(log)
        self._servers.append(server)
        say(f"start {server.name}")
        return server.start().url

    def _port(self, what: str, wished: int) -> int:
        """Return the wished port, or say which one was free."""
        port = choose_port(wished)
        if port != wished:
            say(f"note  {what} listens on port {port}, because {wished} was taken.")
        return port

    def _make_admin_account(self) -> str:
        """Make the account, and say how to log in; an account that is there already does not change."""
        password = secrets.token_urlsafe(12)
        words = ("createsuperuser", "--noinput", "--username", USERNAME, "--email", f"{USERNAME}@localhost")
        try:
            self.run_to_end("admin-account", "manage.py", *words, DJANGO_SUPERUSER_PASSWORD=password)
        except LocalError as exc:
            if "already taken" in str(exc):
                return "password forgotten? `make password`"
            raise
        say(f"note  user {USERNAME}, password {password}")  # at once, because a Ctrl-C would lose it
        return f"password {password}"

    def _started(self, service: Service) -> Service:
        service.log = self._checkout.fresh_log(service.name)
        service.cwd = self._checkout.root
        service.environ = {**self._environ, **service.environ}
        return service.start()

    def run_to_end(self, name: str, *arguments: str, **variables: str) -> None:
        """Run one program to its end; LocalError if it fails, StopRequested after a signal."""
        say(f"start {' '.join(arguments[:2])}")
        program = self._started(Service(name, arguments, variables))
        try:
            while program.running:
                self._pause(0.05)
        finally:
            program.kill()
        if program.exit_code != 0:
            words = " ".join(arguments)
            raise LocalError(f"{words} failed, so the start is given up. {program.log} ends:\n{tail(program.log)}")

    def _wait_for_web(self, url: str) -> None:
        """Wait until the web process answers, with any page."""
        deadline = time.monotonic() + WEB_HAS_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError), urllib.request.urlopen(url, timeout=1):  # noqa: S310 - our own address
                return
            self._pause(0.1)
        log = self._checkout.logs / "web.log"
        say(f"error The web does not answer yet. {log} ends:\n{tail(log)}")
