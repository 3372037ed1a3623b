"""The service itself: gunicorn with the arguments of `make up`, on a free port, with the database of the test."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.process import spawn
from harbor_refresh.local.services import services
from tests import servers
from tests.pages import ROOT
from tests.waiting import wait_for

if TYPE_CHECKING:
    from subprocess import Popen


@dataclass(frozen=True)
class Web:
    """A running service, and a token that may do everything there."""

    url: str
    log: Path
    token: str = field(repr=False)


class WebProcess:
    """A service on this database and on the Redis of the run. It may be killed and started again at its port."""

    def __init__(self, database: str, log: Path, **environment: str) -> None:
        self.port = choose_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self.log = log
        self._process: Popen[bytes] | None = None
        self._env = os.environ | {
            "DJANGO_SETTINGS_MODULE": "settings.test",
            "DATABASE_URL": servers.postgres.url_for(database),
            **environment,
        }

    def start(self) -> None:
        (web,) = (one for one in services(self.port, 0) if one.name == "web")
        kill = signal.SIGKILL
        self._process = started = spawn(web.argv, log=self.log, death_signal=kill, cwd=ROOT, env=self._env)
        wait_for(lambda: started.poll() is not None or self._answers(), "the service to answer", log=self.log)
        assert started.poll() is None, self.log.read_text()

    def start_if_down(self) -> None:
        if not self._process:
            self.start()

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def _answers(self) -> bool:
        with suppress(httpx2.HTTPError):
            return httpx2.get(f"{self.url}/api/v1/nothing", trust_env=False).status_code == 404
        return False

    def kill(self) -> None:
        """Kill the master and its workers, as a machine that loses its power does."""
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(60)
            self._process = None


@contextmanager
def serving(database: str, log: Path, **environment: str) -> Iterator[str]:
    """Yield the URL of a service that works on this database."""
    process = WebProcess(database, log, **environment)
    try:
        process.start()
        yield process.url
    finally:
        process.kill()
