"""The processes that `make up` runs besides the servers, with the command line of each."""

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from harbor_refresh.local.ports import LOOPBACK

#: Flower's options.
FLOWER = "harbor_refresh/flower/flowerconfig.py"


@dataclass(frozen=True)
class Service:
    """A process to keep running: its arguments to Python, and the signal it gets if we are killed."""

    name: str
    arguments: tuple[str, ...]
    death_signal: signal.Signals = signal.SIGTERM
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def argv(self) -> list[str]:
        return [sys.executable, *self.arguments]


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
                *("--worker-class", "harbor_refresh.web_worker.WebWorker"),
                *("--graceful-timeout", "3", "--no-control-socket", "--access-logfile", "-"),
            ),
            environ={"REFRESH_FLOWER_URL": f"http://{LOOPBACK}:{flower_port}/"},
        ),
        # If we are killed, the worker is killed too, and its pool follows. The broker ends at the same moment, so
        # a gentler end would wait for the broker in vain. The worker's tasks are acknowledged late, so the next
        # start runs them again.
        *(
            Service(
                name,
                (*celery, "worker", "-E", "-n", f"{name}@%h", "--concurrency", "2", *words),
                death_signal=signal.SIGKILL,
            )
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
