"""`make up`: start the servers and the processes, keep them running, and end them all.

1. Take the checkout's lock, listen to signals.
2. Start the servers that no variable names; migrate; make the admin account.
3. Start the services, wait until the web answers, show the table.
4. Until a signal, start processes that died again, with growing pauses.
5. End everything in less than ten seconds, whichever step was the last.
"""

import sys
from pathlib import Path

from harbor_refresh.local import logs, startup
from harbor_refresh.local.admin_account import USERNAME
from harbor_refresh.local.checkout import Checkout
from harbor_refresh.local.child import Child, Patience, Watched
from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.keeper import end_all, keep_running
from harbor_refresh.local.lock import UpLock, held
from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.process import tail
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.local.running import followed
from harbor_refresh.local.screen import Screen, without_password
from harbor_refresh.local.server import EmbeddedServer
from harbor_refresh.local.services import services
from harbor_refresh.local.startup import Steps, StopRequested
from harbor_refresh.local.stop_signals import StopSignals

WEB_PORT, FLOWER_PORT, POSTGRES_PORT, REDIS_PORT = 8000, 5555, 5432, 6379


class Supervisor:
    """One run of `make up` in one checkout."""

    def __init__(self, checkout: Checkout, screen: Screen) -> None:
        self._checkout = checkout
        self._screen = screen
        self._signals = StopSignals()
        self._servers: list[EmbeddedServer] = []
        self._children: list[Child] = []

    def run(self) -> None:
        """Return after a signal, when everything has ended; LocalError if it could not start."""
        self._checkout.prepare()
        with held(self._checkout.lock) as lock:
            self._signals.listen()
            try:
                self._start(lock)
                everything: list[Watched] = [*self._servers, *self._children]
                watch = [Patience(watched) for watched in everything]
                keep_running(watch, self._signals.asked, self._screen, self._checkout.logs)
            except StopRequested:
                pass
            finally:
                self._screen.say("Ending everything ...")
                end_all(self._children, self._servers, self._signals.hurry)
            self._screen.say("Everything has ended. `make up` finds its data again.")

    def _start(self, lock: UpLock) -> None:
        database_url, redis_url = self._database(), self._redis()
        environ = startup.environment(self._checkout, database_url, redis_url)
        steps = Steps(self._checkout, environ, self._signals.asked)
        with self._screen.step("Migrate the database"):
            steps.migrate()
        with self._screen.step("Make the admin account"):
            password = steps.make_admin_account()
        web, flower = self._port("The web", WEB_PORT), self._port("Flower", FLOWER_PORT)
        admin = f"http://{LOOPBACK}:{web}/admin/"
        lock.announce(admin=admin, database_url=database_url, variables=followed(environ))
        try:
            with self._screen.step("Start web, workers, beat, Flower and the demo"):
                self._start_services(web, flower, environ)
                self._wait_for_web(steps, admin)
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

    def _start_services(self, web: int, flower: int, environ: dict[str, str]) -> None:
        for service in services(web, flower):
            log = logs.fresh(self._checkout.logs / f"{service.name}.log")
            child = Child(service, cwd=self._checkout.root, environ=environ, log=log)
            self._children.append(child.start())

    def _wait_for_web(self, steps: Steps, url: str) -> None:
        if not steps.wait_for_web(url):
            log = self._checkout.logs / "web.log"
            self._screen.error(f"The web does not answer yet. {log} ends:\n{tail(log)}")

    def _database(self) -> str:
        if given := startup.given_database():
            self._screen.note("DATABASE_URL is set: it is used, and no PostgreSQL is started.")
            return given
        return self._up(
            EmbeddedPostgres(
                self._checkout.postgres,
                POSTGRES_PORT,
                log=logs.fresh(self._checkout.logs / "postgres.log"),
                give_up=self._signals.asked,
            )
        )

    def _redis(self) -> str:
        if given := startup.given_redis():
            self._screen.note("REDIS_URL is set: it is used, and no Valkey is started.")
            return given
        return self._up(
            EmbeddedRedis(
                self._checkout.redis,
                REDIS_PORT,
                log=logs.fresh(self._checkout.logs / "redis.log"),
                give_up=self._signals.asked,
            )
        )

    def _up(self, server: EmbeddedServer) -> str:
        self._servers.append(server)
        try:
            with self._screen.step(f"Start {server.name}"):
                server.start()
        except LocalError:
            if self._signals.asked():
                raise StopRequested from None
            raise
        self._say_if_moved(server.name, server.port, server.wished_port)
        return server.url

    def _port(self, what: str, wished: int) -> int:
        port = choose_port(wished)
        self._say_if_moved(what, port, wished)
        return port

    def _say_if_moved(self, what: str, port: int, wished: int | None) -> None:
        if port != wished:
            self._screen.note(f"{what} listens on port {port}, because {wished} was taken.")
