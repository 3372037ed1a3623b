"""The web process as `make up` runs it, which a test may kill and start again at the same address."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from executions.api.access import Scope
from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.process import spawn
from harbor_refresh.local.services import services
from tests import servers
from tests.integration.executions.api.api_client import token
from tests.waiting import wait_for

if TYPE_CHECKING:
    from subprocess import Popen

ROOT = Path(__file__).resolve().parents[4]


class Web:
    """Gunicorn on the database of the test. Reporting refreshes at once, because no Celery worker runs."""

    def __init__(self, database: str, directory: Path) -> None:
        self.port = choose_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self.token = token(*Scope, name=f"tests of the client {self.port}")
        self.log = directory / "web.log"
        self._process: Popen[bytes] | None = None
        self._env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.test",
            "DATABASE_URL": servers.postgres.url_for(database),
            "REDIS_URL": servers.redis.url,
            "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": "0",
        }

    def start(self) -> None:
        (web,) = (one for one in services(self.port, 0) if one.name == "web")
        kill = signal.SIGKILL
        self._process = spawn(web.argv, log=self.log, death_signal=kill, cwd=ROOT, env=self._env)
        wait_for(self._answers, "the web process", log=self.log)

    def start_if_away(self) -> None:
        if not self._process:
            self.start()

    def _answers(self) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/api/v1/nothing", trust_env=False).status_code == 404
        return False

    def kill(self) -> None:
        """Kill the master and its workers, as a machine that loses its power does."""
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None
