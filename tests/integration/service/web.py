"""The service itself: gunicorn with the arguments of `make up`, on a free port."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL

import httpx

from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.process import kill_tree, spawn
from harbor_refresh.local.services import services
from tests import servers
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Web:
    """A running service, and a token that may do everything there."""

    url: str
    log: Path
    token: str = field(repr=False)


@contextmanager
def serving(database: str, log: Path, **environment: str) -> Iterator[str]:
    """Yield the URL of a service that works on this database and on the Redis of the run."""
    port = choose_port()
    url = f"http://{LOOPBACK}:{port}"
    environ = os.environ | {
        "DJANGO_SETTINGS_MODULE": "settings.test",
        "DATABASE_URL": servers.postgres.url_for(database),
        **environment,
    }
    process = spawn(services(port, 0)[0].argv, log=log, death_signal=SIGKILL, cwd=ROOT, env=environ)
    try:
        wait_for(lambda: process.poll() is not None or _answers(url), "the service to answer", log=log)
        assert process.poll() is None, log.read_text()
        yield url
    finally:
        kill_tree(process)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/v1/queue").status_code == 401
    except httpx.TransportError:
        return False
