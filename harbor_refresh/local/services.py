"""The processes that `make up` runs besides the servers, with the command line of each.

If `make up` is killed, each of them is killed too, and the pool of a worker follows. The broker ends at the same
moment, so a gentler end would wait for it in vain. Tasks are acknowledged late, so the next start runs them again.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from harbor_refresh.local.ports import LOOPBACK
from harbor_refresh.local.process import Child, spawn

#: Flower's options.
FLOWER = "harbor_refresh/flower/flowerconfig.py"


@dataclass
class Service(Child):
    """A process to keep running, by its arguments to Python and the variables that it alone has."""

    name: str
    arguments: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)
    cwd: Path = Path()

    @property
    def argv(self) -> list[str]:
        return [sys.executable, *self.arguments]

    def start(self) -> Self:
        self.kill()  # processes of the group that an earlier start may have left
        self._process = spawn(self.argv, log=self.log, cwd=self.cwd, env=self.environ)
        return self


def services(web_port: int, flower_port: int) -> list[Service]:
    """Web, two workers, one more for the example's jobs, beat, Flower, the demo and its mirrors, in that order."""
    celery = ("-m", "celery", "-A", "harbor_refresh")
    jobs = ("-Q", "examples", "--include", "examples.mirror")
    return [
        Service(
            "web",
            (
                *("-m", "gunicorn", "harbor_refresh.wsgi:application"),
                *("--bind", f"{LOOPBACK}:{web_port}", "--workers", "2", "--threads", "4"),
                *("--worker-class", "harbor_refresh.web.worker.WebWorker"),
                *("--graceful-timeout", "3", "--no-control-socket", "--access-logfile", "-"),
            ),
            environ={"REFRESH_FLOWER_URL": f"http://{LOOPBACK}:{flower_port}/"},
        ),
        *(
            Service(name, (*celery, "worker", "-E", "-n", f"{name}@%h", "--concurrency", "2", *words))
            for name, words in (("worker1", ()), ("worker2", ()), ("jobs", jobs))
        ),
        Service("beat", (*celery, "beat", "--pidfile=")),
        Service(
            "flower",
            (*celery, "flower", f"--conf={FLOWER}", f"--address={LOOPBACK}", f"--port={flower_port}"),
            environ={"REFRESH_PUBLIC_URL": f"http://{LOOPBACK}:{web_port}"},
        ),
        Service("demo", ("-m", "examples.simulation", "--demo")),
        Service("mirrors", ("-m", "examples.traffic")),
    ]
