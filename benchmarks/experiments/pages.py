"""The pages of the admin: queries, milliseconds and sizes, with as many executions, tasks and jobs as wanted.

Each page is made in this process, as a web process makes it, without the way over the network. The first time is
not counted. A page that is not answered with 200 is an error, not a measurement.
"""

import gzip
import statistics
import time
from argparse import Namespace
from collections.abc import Sequence

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from benchmarks.errors import BenchError
from benchmarks.options import with_defaults
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import Servers
from benchmarks.shown_executions import prepare
from benchmarks.stale_executions import Size
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import Status

COLUMNS: Sequence[Column] = (
    ("page", "page"),
    ("queries", "queries"),
    ("median_ms", "median ms"),
    ("max_ms", "max ms"),
    ("kilobytes", "kB"),
    ("sent_kilobytes", "kB sent"),
)
EXECUTIONS = "/admin/harbor_executions/execution/"
TASKS = "/admin/harbor_executions/task/"
JOBS = "/admin/harbor_tasks/job/"
#: Beyond this share of the tasks there are no jobs: 1,000,000 of 5,000,000.
JOBS_OF_TASKS = 5


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    options = with_defaults("pages", options)
    size = Size(options.executions, options.tasks_per_execution)
    with screen.stage(f"Making {size.executions:,} executions", size.executions) as show:
        prepare(size, size.executions * size.tasks // JOBS_OF_TASKS, show)
    client = _signed_in()
    rows = []
    pages = _pages(size.executions)
    with (
        # the files of the pages are not collected here
        override_settings(STORAGES=settings.STORAGES | {"staticfiles": PLAIN}),
        screen.stage("Opening the pages", len(pages)) as show,
    ):
        for number, (name, address) in enumerate(pages, start=1):
            rows.append(_row(name, address, client, options))
            screen.keep(rows[-1])
            show(number)
    return rows


PLAIN = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}


def _signed_in() -> Client:
    user = User.objects.create(username="bench", is_staff=True, is_superuser=True)
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    return client


def _pages(executions: int) -> list[tuple[str, str]]:
    newest = Execution.objects.order_by("-pk")
    last = newest.values_list("pk", flat=True)[0]
    failed = newest.filter(status=Status.ERROR).values_list("pk", flat=True).first() or last
    going = newest.filter(status=Status.RUNNING).values_list("pk", flat=True).first() or last
    task = Task.objects.filter(execution_id=failed).order_by("pk").values_list("pk", flat=True)[0]
    old = f"{Execution.objects.order_by('pk')[0].start_time:%Y-%m-%d}"
    return [
        ("executions", EXECUTIONS),
        ("executions, the last page", f"{EXECUTIONS}?p={min(executions, 10_000) // 50}"),
        *((f"executions, {status}", f"{EXECUTIONS}?status__exact={status}") for status in Status.values),
        ("executions, a vendor", f"{EXECUTIONS}?vendor=RETENTION"),
        ("executions, a vendor that failed", f"{EXECUTIONS}?vendor=RETENTION&status__exact=Error"),
        ("executions, a vendor id", f"{EXECUTIONS}?vendor_id=7"),
        ("executions, a trigger", f"{EXECUTIONS}?trigger=SCHEDULE"),
        ("executions, a trigger that none has", f"{EXECUTIONS}?trigger=EVENT"),
        ("executions, the first day", f"{EXECUTIONS}?start_time_from_0={old}&start_time_to_0={old}"),
        ("executions, by start", f"{EXECUTIONS}?o=5"),
        ("executions, quarantined", f"{EXECUTIONS}?quarantined=yes"),
        ("executions, with jobs", f"{EXECUTIONS}?has_jobs=yes"),
        ("search, an id", f"{EXECUTIONS}?q={failed}"),
        ("search, an attribute", f"{EXECUTIONS}?q=repository.name%3Dlibrary/app-77"),
        ("search, an attribute that none has", f"{EXECUTIONS}?q=repository.name%3Dnone"),
        ("search, an attribute that all have", f"{EXECUTIONS}?q=kind%3Dimage"),
        ("an execution that failed", f"{EXECUTIONS}{failed}/change/"),
        ("an execution that runs", f"{EXECUTIONS}{going}/change/"),
        ("its panel", f"{EXECUTIONS}{going}/panel/"),
        ("its place", f"{EXECUTIONS}{going}/place/"),
        ("tasks", TASKS),
        *((f"tasks, {status}", f"{TASKS}?status__exact={status}") for status in Status.values),
        ("tasks of an execution", f"{TASKS}?execution__id__exact={failed}"),
        ("a task", f"{TASKS}{task}/change/"),
        ("errors", f"{TASKS}errors/?since="),
        ("jobs", JOBS),
        *((f"jobs, {status}", f"{JOBS}?status__exact={status}") for status in Status.values),
        ("jobs, a name", f"{JOBS}?name=job.kind_3"),
        ("history", "/admin/harbor_executions/statuschange/"),
        ("quarantine", "/admin/harbor_executions/quarantine/"),
        ("deliveries", "/admin/harbor_executions/delivery/"),
        ("subscriptions", "/admin/harbor_executions/subscription/"),
        ("actions on many", f"{EXECUTIONS}?vendor=BULK_ACTION"),
        ("log of actions", "/admin/harbor_executions/auditentry/"),
        ("periodic tasks", "/admin/django_celery_beat/periodictask/"),
        ("the first page", "/admin/"),
    ]


def _row(name: str, address: str, client: Client, options: Namespace) -> Row:
    with CaptureQueriesContext(connection) as captured:
        response = client.get(address, secure=True)
    taken = len(captured)  # the next request forgets them
    if response.status_code != 200:
        raise BenchError(f"{address} was answered with {response.status_code}")
    times = []
    for _ in range(options.rounds):
        began = time.perf_counter()
        client.get(address, secure=True)
        times.append((time.perf_counter() - began) * 1000)
    extra = {
        "page": name,
        "queries": taken,
        "median_ms": round(statistics.median(times), 1),
        "max_ms": round(max(times), 1),
        "kilobytes": round(len(response.content) / 1000, 1),
        "sent_kilobytes": round(len(gzip.compress(response.content, 6)) / 1000, 1),
        "rounds": options.rounds,
    }
    return Row(name, 1, options.executions, seconds=round(sum(times) / 1000, 3), extra=extra)
