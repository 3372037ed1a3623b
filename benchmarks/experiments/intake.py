"""The HTTP API on one gunicorn with 2 processes: the server's time to list and to get, and bulk reports a second.

1. One after the other, so that no request waits for another: one execution, its tasks, its history; and lists with
   each filter, at the first page and at places anywhere in the table. The time is that of the server, without the
   wire (benchmarks/timed_wsgi.py).
2. Reports, 10,000 in a body, from several connections at once, until each task of 100,000 further executions was
   reported. No worker runs, so the refresh is not measured; the marks are.
"""

import json
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random

from benchmarks.listed_executions import prepare as prepare_listed
from benchmarks.options import with_defaults
from benchmarks.percentiles import percentile
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import Servers
from benchmarks.stale_executions import VENDORS, Size
from benchmarks.unfinished_executions import prepare as prepare_unfinished
from benchmarks.web import Answer, Connection, web
from harbor_refresh.executions.api import api_tokens
from harbor_refresh.tasks.queue import execution_queue

COLUMNS: Sequence[Column] = (
    ("what", "what"),
    ("asked", "requests"),
    ("reports_per_second", "reports/s"),
    ("p50_ms", "p50 ms"),
    ("p99_ms", "p99 ms"),
    ("max_ms", "max ms"),
    ("statements", "SQL statements"),
    ("items", "items a page"),
)
TOGETHER = 10_000

FILTERS = {
    "no filter": "",
    "500 items": "limit=500",
    "vendor_type": "vendor_type=REPLICATION",
    "vendor_id": "vendor_id=7",
    "vendor_type and vendor_id": f"vendor_type={VENDORS[7]}&vendor_id=7",
    "vendor_type that there is not": "vendor_type=NONE",
    "status, 95 in 100": "status=Success",
    "status, 5 in 100": "status=Running",
    "status, 1 in 1,000": "status=Error",
    "status, 1 in 100,000": "status=Stopped",
    "status that there is not": "status=Pending",
    "two statuses": "status=Error&status=Stopped",
    "trigger": "trigger=SCHEDULE",
    "started_after": "started_after=2999-01-01T00:00:00Z",
    "started_before": "started_before=2000-01-01T00:00:00Z",
    "attribute, 1 in 10,000": "attribute=repository.name=library/app-7",
    "attribute that there is not": "attribute=repository.none=x",
    "all of them": f"vendor_type={VENDORS[7]}&vendor_id=7&status=Success&trigger=MANUAL"
    "&started_after=2000-01-01T00:00:00Z&attribute=repository.name=library/app-7",
}


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    options = with_defaults("intake", options)
    token = api_tokens.make("bench", read=True, report=True)[1]
    with screen.stage("Making the executions", options.executions) as show:
        prepare_listed(Size(options.executions, options.tasks_per_execution), show)
    rows = []
    with web(servers) as port:
        for what, paths in _questions(options):
            rows.append(_read(what, paths, Connection(port, token), options))
            screen.keep(rows[-1])
        rows.append(_report(port, token, options, screen))
        screen.keep(rows[-1])
    return rows


def _questions(options: Namespace) -> Iterator[tuple[str, list[str]]]:
    """What is asked, and the path of each request."""
    random = Random(options.executions)  # noqa: S311 - not for secrets
    anywhere = [random.randint(1, options.executions) for _ in range(options.rounds)]
    yield "get", [f"/executions/{one}" for one in anywhere]
    yield "its tasks", [f"/executions/{one}/tasks" for one in anywhere]
    yield "its history", [f"/executions/{one}/history" for one in anywhere]
    for name, query in FILTERS.items():
        yield f"list, {name}, first page", [f"/executions?{query}"] * options.rounds
        yield f"list, {name}, anywhere", [f"/executions?{query}&cursor={one}" for one in anywhere]


def _read(what: str, paths: Sequence[str], connection: Connection, options: Namespace) -> Row:
    times, statements, items = [], 0, 0
    connection.get(paths[0])
    for path in paths:
        shown, answer = connection.get(path)
        times.append(answer.milliseconds)
        statements = max(statements, answer.statements)
        items += len(shown.get("items", ()))
    connection.close()
    figures = {name: percentile(times, share) for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))}
    extra = {
        "what": what,
        "asked": len(times),
        **{f"{name}_ms": value and round(value, 2) for name, value in figures.items()},
        "statements": statements,
        "items": round(items / len(times), 1),
    }
    return Row("claim+celery", 2, options.executions, seconds=round(sum(times) / 1000, 3), extra=extra)


def _report(port: int, token: str, options: Namespace, screen: Screen) -> Row:
    pairs = prepare_unfinished(min(options.executions, 100_000), options.tasks_per_execution)
    tasks = [task for _, task in pairs]
    bodies = [_body(tasks[start : start + TOGETHER]) for start in range(0, len(tasks), TOGETHER)]
    marked = execution_queue().stats().backlog
    connections = [Connection(port, token) for _ in range(options.processes)]

    def send(sender: int) -> list[Answer]:
        return [connections[sender].ask("POST", "/reports", body) for body in bodies[sender :: options.processes]]

    with screen.stage(f"{len(pairs):,} reports, {TOGETHER:,} in a body", 1) as show:
        began = time.monotonic()
        with ThreadPoolExecutor(options.processes) as senders:
            answers = [one for sent in senders.map(send, range(options.processes)) for one in sent]
        seconds = time.monotonic() - began
        show(1)
    times = [one.milliseconds for one in answers]
    applied = sum(int(json.loads(one.body)["applied"]) for one in answers)
    for one in connections:
        one.close()
    extra = {
        "what": f"reports, {TOGETHER:,} in a body",
        "asked": len(bodies),
        "reports": applied,
        "reports_per_second": round(applied / seconds, 1),
        **{f"{name}_ms": percentile(times, share) for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))},
        "marked": execution_queue().stats().backlog - marked,
    }
    return Row("claim+celery", 2, options.executions, seconds=round(seconds, 3), extra=extra)


def _body(tasks: Sequence[int]) -> bytes:
    reports = [{"task_id": task, "status": "Success", "revision": 1_769_860_800} for task in tasks]
    return json.dumps({"reports": reports}).encode()
