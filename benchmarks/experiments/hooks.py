"""Single reports over HTTP: the status hook beside a bare Django view that does one UPDATE, on one web server.

One gunicorn process serves both, with the settings of production. The senders are threads of this process, each
with one connection that stays open. Passes of the two take turns, so that a machine that becomes slower slows
both. No worker runs, so the refresh is not measured; the marks of the hook are.
"""

import http.client
import json
import os
import secrets
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from statistics import median
from typing import Self

from django.db.models import CharField, Value
from django.db.models.functions import Cast, Concat

from benchmarks.options import with_defaults
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import Servers
from benchmarks.unfinished_executions import prepare
from benchmarks.web import serving
from harbor_refresh.executions.models import Task
from harbor_refresh.local.ports import choose_port
from harbor_refresh.tasks.queue import execution_queue

COLUMNS: Sequence[Column] = (
    ("view", "view"),
    ("processes", "senders"),
    ("requests", "requests"),
    ("seconds", "s"),
    ("requests_per_second", "requests/s"),
    ("share", "share of the bare view"),
    ("marked", "marked"),
    ("errors", "errors"),
)
BARE, HOOK = "bare UPDATE", "status hook"
#: Tasks that a pass reports, evenly spread over the table: enough for some seconds, whatever its size.
MOST_TASKS = 1_000
BEGUN = 1_700_000_000

#: The path and the body of a request to a task, the number of which makes each change the task.
Request = Callable[[int, int], tuple[str, bytes]]


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    options = with_defaults("hooks", options)
    with screen.stage(f"Making {options.executions:,} executions", 1) as made:
        every = [task for _, task in prepare(options.executions, options.tasks_per_execution)]
        Task.objects.update(job_id=Concat(Value("job"), Cast("id", CharField())))
        made(1)
    tasks = every[:: -(-len(every) // MOST_TASKS)]
    secret = secrets.token_urlsafe(24)
    seconds: dict[str, list[float]] = {BARE: [], HOOK: []}
    errors = dict.fromkeys(seconds, 0)
    numbers = count(1)
    marked_before = execution_queue().stats().backlog
    with (
        _web_server(servers, secret) as port,
        _Senders(port, secret, options.processes) as senders,
        screen.stage("Two views in turns", 2 * options.passes) as show,
    ):
        senders.send(tasks[:100], _bare, next(numbers))
        senders.send(tasks[:100], _report, next(numbers))
        for turn in range(options.passes):
            for place, (view, request) in enumerate(((BARE, _bare), (HOOK, _report))):
                begun = time.perf_counter()
                errors[view] += senders.send(tasks, request, next(numbers))
                seconds[view].append(time.perf_counter() - begun)
                show(2 * turn + place + 1)
    marked = execution_queue().stats().backlog - marked_before
    rows = [
        Row(
            "claim",
            1,
            options.executions,
            seconds=round(sum(seconds[view]), 3),
            extra={
                "view": view,
                "processes": options.processes,
                "requests": len(tasks) * options.passes,
                "requests_per_second": round(len(tasks) / median(seconds[view]), 1),
                "share": round(median(seconds[BARE]) / median(seconds[view]), 3),
                "marked": marked if view == HOOK else 0,
                "errors": errors[view],
            },
        )
        for view in (BARE, HOOK)
    ]
    for row in rows:
        screen.keep(row)
    return rows


def _bare(task: int, number: int) -> tuple[str, bytes]:
    return f"/bare/{task}", b"{}"


def _report(task: int, number: int) -> tuple[str, bytes]:
    job = f"job{task}"
    metadata = {
        "id": job,
        "status": "Running",
        "name": "REPLICATION",
        "kind": "Generic",
        "revision": BEGUN + number,
    }
    body = {"job_id": job, "status": "Running", "metadata": metadata}
    return f"/service/notifications/tasks/{task}", json.dumps(body).encode()


class _Senders:
    """Threads with a connection each; a context manager, which closes them."""

    def __init__(self, port: int, secret: str, threads: int) -> None:
        self._threads = threads
        self._connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(threads)]
        self._headers = {
            "Authorization": f"Harbor-Secret {secret}",
            "X-Forwarded-Proto": "https",
            "Host": "localhost",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()

    def send(self, tasks: Sequence[int], request: Request, number: int) -> int:
        """Send a request for each task; return how many were not answered by 200."""

        def send_share(place: int) -> int:
            return sum(self._send(place, *request(task, number)) for task in tasks[place :: self._threads])

        with ThreadPoolExecutor(self._threads) as pool:
            return sum(pool.map(send_share, range(self._threads)))

    def _send(self, place: int, path: str, body: bytes) -> int:
        connection = self._connections[place]
        connection.request("POST", path, body, self._headers)
        answer = connection.getresponse()
        answer.read()
        return int(answer.status != 200)


@contextmanager
def _web_server(servers: Servers, secret: str) -> Iterator[int]:
    port = choose_port()
    words = f"-m gunicorn benchmarks.hook_app:application -b 127.0.0.1:{port} -w 1"
    words += " -k gthread --threads 4 --keep-alive 60"
    environment = {
        "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
        "REFRESH_HARBOR_SECRET": secret,
        "ALLOWED_HOSTS": "localhost,127.0.0.1",
    }
    with serving(servers, port, words.split(), **environment):
        yield port
