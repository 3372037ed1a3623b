"""`make up`: start the servers and the processes, keep them running, and end them all.

1. Take the checkout's lock, listen to signals.
2. Start the servers that no variable names; migrate; make the admin account.
3. Start the services, wait until the web answers, show the table.
4. Until a signal, start processes that died again, after growing pauses.
5. End everything in less than ten seconds, whichever step was the last.
"""

import os
import secrets
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Self

from harbor_refresh.local import startup
from harbor_refresh.local.checkout import Checkout
from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.lock import Announce, held
from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.process import spawn, tail
from harbor_refresh.local.program import followed
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.local.screen import Screen
from harbor_refresh.local.server import EmbeddedServer
from harbor_refresh.local.services import Service, services
from settings.env import without_password

if TYPE_CHECKING:
    import subprocess

USERNAME = "admin"
WEB_PORT, FLOWER_PORT, POSTGRES_PORT, REDIS_PORT = 8000, 5555, 5432, 6379
# The sum is less than the ten seconds that Ctrl-C may take.
CHILDREN_HAVE_SECONDS = 6.0
SERVERS_HAVE_SECONDS = 2.4
WEB_HAS_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 30.0
#: A process that has run for so long starts again without a longer pause.
WELL_AFTER_SECONDS = 60.0


class StopRequested(Exception):
    """A signal asked us to end."""


class Child:
    """A service as a process in its own process group."""

    def __init__(self, service: Service, *, cwd: Path, environ: Mapping[str, str], log: Path) -> None:
        self.name = service.name
        self.log = log
        self._service = service
        self._cwd = cwd
        self._environ = {**environ, **service.environ}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Its exit code (negative: the signal that ended it); None while it runs."""
        return self._process.poll() if self._process else None

    def start(self) -> Self:
        self.kill()  # processes of the group that an earlier start may have left
        service = self._service
        self._process = spawn(
            service.argv, log=self.log, death_signal=service.death_signal, cwd=self._cwd, env=self._environ
        )
        return self

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the process itself, which ends its children."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL the whole group, even if the process itself has ended and left other processes in it."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Restarts:
    """Starts a process again that died: after a second, and after longer pauses if it dies soon again."""

    def __init__(self, watched: Child | EmbeddedServer) -> None:
        self._watched = watched
        self._pause = 1.0
        self._started = time.monotonic()
        self._due: float | None = None

    def look(self, screen: Screen) -> None:
        now, one = time.monotonic(), self._watched
        if one.running:
            return
        if self._due is None:
            ran_well = now - self._started >= WELL_AFTER_SECONDS
            pause = 1.0 if ran_well else self._pause
            self._due, self._pause = now + pause, min(2 * pause, LONGEST_PAUSE_SECONDS)
            screen.error(
                f"{one.name} ended and starts again in {pause:.0f} s. {one.log} ends:\n{tail(one.log, 12)}"
            )
        elif now >= self._due:
            self._started, self._due = now, None
            try:
                one.start()
            except LocalError as exc:
                screen.error(str(exc))


def end_all(children: Sequence[Child], servers: Sequence[EmbeddedServer]) -> None:
    """End every process, the servers last.

    1. SIGTERM to the children, all at once, and wait for them.
    2. SIGKILL to all processes that are left in their groups.
    3. Stop the servers at the same time.
    """
    deadline = time.monotonic() + CHILDREN_HAVE_SECONDS
    for child in children:
        child.ask_to_stop()
    while any(child.running for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    for child in children:
        child.kill()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda server: server.stop(timeout=SERVERS_HAVE_SECONDS), servers))


class Up:
    """One run of `make up` in one checkout."""

    def __init__(self, checkout: Checkout, screen: Screen) -> None:
        self._checkout = checkout
        self._screen = screen
        self._servers: list[EmbeddedServer] = []
        self._children: list[Child] = []
        self._environ: dict[str, str] = {}
        self._is_stopping = False

    def run(self) -> None:
        """Return after a signal, when everything has ended; LocalError if it could not start."""
        self._checkout.prepare()
        with held(self._checkout.lock) as announce:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, self._stop)
            try:
                self._start(announce)
                restarts = [*map(Restarts, self._servers), *map(Restarts, self._children)]
                while not self._is_stopping:
                    for one in restarts:
                        one.look(self._screen)
                    self._checkout.bound_logs()
                    time.sleep(0.2)
            except StopRequested:
                pass
            finally:
                self._screen.say("Ending everything ...")
                end_all(self._children, self._servers)
            self._screen.say("Everything has ended. `make up` finds its data again.")

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        """Note a signal. It raises nothing, because an exception in the middle of a start could lose a process."""
        self._is_stopping = True

    def _start(self, announce: Announce) -> None:
        database_url, redis_url = self._database(), self._redis()
        self._environ = startup.environment(self._checkout, database_url, redis_url)
        with self._screen.step("Migrate the database"):
            self.run_to_end("migrate", "manage.py", "migrate", "--noinput")
        with self._screen.step("Make the admin account"):
            password = self._make_admin_account()
        web, flower = self._port("The web", WEB_PORT), self._port("Flower", FLOWER_PORT)
        admin = f"http://{LOOPBACK}:{web}/admin/"
        announce(admin, followed(self._environ))
        try:
            with self._screen.step("Start web, workers, beat, Flower and the demo"):
                for service in services(web, flower):
                    self._children.append(self._child(service))
                self._wait_for_web(admin)
        except (LocalError, StopRequested):
            if password:  # it is shown only here
                self._screen.note(f"The admin account is {USERNAME}, its password {password}")
            raise
        login = f"password {password}" if password else "password forgotten? `make password`"
        self._screen.addresses(
            [
                ("Admin", admin),
                ("", f"user {USERNAME}, {login}"),
                ("Flower", f"http://{LOOPBACK}:{flower}/"),
                ("PostgreSQL", without_password(database_url)),
                ("Redis", without_password(redis_url)),
                ("Logs", f"{self._checkout.logs}/"),
                ("Terminal", f"{Path(sys.executable).parent}/python manage.py doctor"),
                ("", "in this directory, every command finds these servers by itself"),
            ]
        )

    def _database(self) -> str:
        if given := startup.given_database():
            self._screen.note("DATABASE_URL is set: it is used, and no PostgreSQL is started.")
            return given
        return self._up(EmbeddedPostgres(self._checkout.postgres, POSTGRES_PORT), "postgres", POSTGRES_PORT)

    def _redis(self) -> str:
        if given := startup.given_redis():
            self._screen.note("REDIS_URL is set: it is used, and no Valkey is started.")
            return given
        return self._up(EmbeddedRedis(self._checkout.redis, REDIS_PORT), "redis", REDIS_PORT)

    def _up(self, server: EmbeddedServer, log: str, wished: int) -> str:
        server.log, server.give_up = self._checkout.fresh_log(log), lambda: self._is_stopping
        self._servers.append(server)
        try:
            with self._screen.step(f"Start {server.name}"):
                server.start()
        except LocalError:
            if self._is_stopping:
                raise StopRequested from None
            raise
        self._say_if_moved(server.name, server.port, wished)
        return server.url

    def _port(self, what: str, wished: int) -> int:
        port = choose_port(wished)
        self._say_if_moved(what, port, wished)
        return port

    def _say_if_moved(self, what: str, port: int, wished: int) -> None:
        if port != wished:
            self._screen.note(f"{what} listens on port {port}, because {wished} was taken.")

    def _make_admin_account(self) -> str | None:
        """Make the account and return its password; None if there is one already, which does not change."""
        password = secrets.token_urlsafe(12)
        words = ("createsuperuser", "--noinput", "--username", USERNAME, "--email", f"{USERNAME}@localhost")
        try:
            self.run_to_end("admin-account", "manage.py", *words, DJANGO_SUPERUSER_PASSWORD=password)
        except LocalError as exc:
            if "already taken" in str(exc):
                return None
            raise
        return password

    def _child(self, service: Service) -> Child:
        log = self._checkout.fresh_log(service.name)
        return Child(service, cwd=self._checkout.root, environ=self._environ, log=log).start()

    def run_to_end(self, name: str, *arguments: str, **variables: str) -> None:
        """Run one program to its end; LocalError if it fails, StopRequested after a signal."""
        child = self._child(Service(name, arguments, environ=variables))
        try:
            while child.running:
                if self._is_stopping:
                    raise StopRequested
                time.sleep(0.05)
        finally:
            child.kill()
        if child.exit_code != 0:
            words = " ".join(arguments)
            raise LocalError(f"{words} failed, so the start is given up. {child.log} ends:\n{tail(child.log)}")

    def _wait_for_web(self, url: str) -> None:
        """Wait until the web process answers, with any page."""
        deadline = time.monotonic() + WEB_HAS_SECONDS
        while time.monotonic() < deadline:
            if self._is_stopping:
                raise StopRequested
            try:
                with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - our own address
                    return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.1)
        log = self._checkout.logs / "web.log"
        self._screen.error(f"The web does not answer yet. {log} ends:\n{tail(log)}")
