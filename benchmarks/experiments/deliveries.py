"""Notifications: changes of many executions are delivered to three webhooks, of which one hangs.

The deliverers run in processes of their own, without Celery; `--nodes` says how many. Workers have one run at a
time. A run whose time is over waits for the receiver that hangs, and the next one begins, here in another thread.
First the executions are refreshed without and with subscriptions, which shows what the outbox costs a refresh.
"""

import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from benchmarks.errors import BenchError
from benchmarks.receivers import receivers
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen, Show
from benchmarks.servers import ROOT, Servers
from benchmarks.unfinished_executions import prepare
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Delivery, Execution, Subscription, Task
from harbor_refresh.executions.news.deliveries import subscriptions
from harbor_refresh.executions.news.deliveries.deliverer import write_deliveries
from harbor_refresh.local.process import kill_tree

COLUMNS: Sequence[Column] = (
    ("subscriptions", "subscriptions"),
    ("executions", "changes"),
    ("seconds_refreshing", "s to refresh"),
    ("refreshes_per_second", "refreshes/s"),
    ("seconds_listing", "s to list"),
    ("nodes", "deliverers"),
    ("delivered", "delivered"),
    ("seconds", "s to deliver"),
    ("deliveries_per_second", "deliveries/s"),
    ("to_the_hanging", "requests that hang"),
)
BATCH = 6_000
POLL_SECONDS = 0.2
#: The receivers are on this machine.
ALLOWED = {"REFRESH_DELIVER_NETWORKS": "127.0.0.1/32"}
DELIVERER = (
    "import django, threading; django.setup()\n"
    "from harbor_refresh.executions.news.deliveries.deliverer import deliver\n"
    "def run():\n"
    "    while deliver(go_on=threading.Thread(target=run).start): pass\n"
    "run()"
)


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    rows = []
    for wanted in (0, 3):
        with screen.stage(f"{options.executions:,} changes, {wanted} subscriptions", 1) as show:
            row = _measure(servers, options, wanted, show)
        screen.keep(row)
        rows.append(row)
    return rows


def _measure(servers: Servers, options: Namespace, wanted: int, show: Show) -> Row:
    pairs = prepare(options.executions, 1)
    ids = [execution for execution, _ in pairs]
    Task.objects.filter(execution_id__gte=ids[0], execution_id__lte=ids[-1]).update(
        status="Success", status_code=3, end_time="2026-01-01T00:00Z"
    )
    with receivers() as addresses:
        made = [
            Subscription.objects.create(name=f"receiver {number}", url=url, secret=subscriptions.new_secret())
            for number, url in enumerate(addresses[:wanted])
        ]
        began = time.monotonic()
        for start in range(0, len(ids), BATCH):
            refresh(ids[start : start + BATCH])
        refreshed = time.monotonic()
        write_deliveries()
        listed = time.monotonic()
        extra = {
            "subscriptions": wanted,
            "seconds_refreshing": round(refreshed - began, 3),
            "refreshes_per_second": round(len(ids) / (refreshed - began), 1),
            "seconds_listing": round(listed - refreshed, 3) if wanted else None,
        }
        row = Row("claim", options.nodes, len(ids), extra=extra)
        if wanted:
            _deliver(servers, options, made, row, show)
    if Execution.objects.filter(pk__in=ids, status="Success").count() != len(ids):
        raise BenchError("Not every execution was refreshed.")
    return row


def _deliver(servers: Servers, options: Namespace, made: list[Subscription], row: Row, show: Show) -> None:
    quick = Delivery.objects.filter(subscription__in=made[:2], state="pending")
    wanted = quick.count()
    command = [sys.executable, "-c", DELIVERER]
    environ = {**servers.environ, **ALLOWED}
    processes = [subprocess.Popen(command, cwd=ROOT, env=environ) for _ in range(options.nodes)]
    try:
        while not Delivery.objects.exclude(state="pending").exists():
            time.sleep(0.02)
        began = time.monotonic()
        deadline = began + options.budget
        while quick.exists() and time.monotonic() < deadline:
            if any(one.poll() is not None for one in processes):
                raise BenchError("A deliverer ended early.")
            time.sleep(POLL_SECONDS)
        row.seconds = round(time.monotonic() - began, 3)
    finally:
        for one in processes:
            kill_tree(one)
    show(1)
    left = quick.count()
    row.cut = left > 0
    row.extra |= {
        "delivered": wanted - left,
        "deliveries_per_second": round((wanted - left) / row.seconds, 1),
        "to_the_hanging": Delivery.objects.filter(subscription=made[2], attempts__gt=0).count(),
    }
