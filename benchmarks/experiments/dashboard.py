"""Open dashboards: what they cost the web and PostgreSQL, with 0, 1 and 50 pages.

One gunicorn with the arguments of `make up` (2 processes). Each page is a thread with a session of its own, which
asks as static/harbor_refresh/dashboard.js does: numbers every two seconds, charts every ten. The processor time is
that of gunicorn and its processes. Compare two sizes of the tables (`--executions`) to see that no statement grows
with them.
"""

import http.client
import os
import time
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from benchmarks import cpu
from benchmarks.errors import BenchError
from benchmarks.listed_executions import prepare
from benchmarks.meters import RedisMeter, SqlMeter
from benchmarks.options import with_defaults
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import Servers
from benchmarks.stale_executions import Size
from benchmarks.web import serving
from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.services import services

COLUMNS: Sequence[Column] = (
    ("pages", "pages"),
    ("executions", "executions"),
    ("requests_per_second", "requests/s"),
    ("web_core_percent", "web, % of a core"),
    ("statements_per_second", "SQL statements/s"),
    ("redis_per_second", "Redis commands/s"),
    ("kilobytes_per_second", "kB/s"),
    ("errors", "errors"),
)
PAGES = (0, 1, 50)
NUMBERS_SECONDS, CHARTS_SECONDS = 2.0, 10.0
WARM_UP_SECONDS = 4.0


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    options = with_defaults("dashboard", options)
    with screen.stage("Making the executions", options.executions) as show:
        prepare(Size(options.executions, options.tasks_per_execution), show)
    port = choose_port()
    words = services(port, 0)[0].arguments
    rows = []
    with serving(servers, port, words, LOG_LEVEL="ERROR", REFRESH_API_REQUESTS_PER_MINUTE="0") as pid:
        for pages in PAGES:
            with screen.stage(f"{pages} pages", pages):
                rows.append(_measure(servers, port, pid, pages, options))
            screen.keep(rows[-1])
    return rows


class _Page:
    """One open page: its requests, and the answers."""

    def __init__(self, port: int, number: int) -> None:
        name = f"bench-{number}"
        user = User.objects.filter(username=name).first()
        user = user or User.objects.create(username=name, is_staff=True, is_superuser=True)
        client = Client()
        client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        self._headers = {"Cookie": f"{name}={client.cookies[name].value}", "X-Forwarded-Proto": "https"}
        self._headers["Host"] = "localhost"
        self._http = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
        self._charts_at = 0.0
        self.asked = self.size = self.errors = 0

    def live(self, first: float, until: float) -> None:
        """Ask until that moment, beginning at another, so that pages do not ask in step."""
        due = first
        while due < until:
            time.sleep(max(0.0, due - time.monotonic()))
            self._ask("/admin/live")
            if due - self._charts_at >= CHARTS_SECONDS:
                self._charts_at = due
                self._ask("/admin/live/charts/hour")
            due += NUMBERS_SECONDS

    def close(self) -> None:
        self._http.close()

    def _ask(self, path: str) -> None:
        try:
            self._http.request("GET", path, headers=self._headers)
            answer = self._http.getresponse()
        except (ConnectionError, http.client.HTTPException):
            # gunicorn closes a connection that is idle for two seconds, and a browser makes another
            self._http.close()
            self._http.request("GET", path, headers=self._headers)
            answer = self._http.getresponse()
        self.size += len(answer.read())
        self.asked += 1
        self.errors += answer.status != 200


def _measure(servers: Servers, port: int, pid: int, pages: int, options: Namespace) -> Row:
    opened = [_Page(port, number) for number in range(pages)]
    _live(opened, WARM_UP_SECONDS)
    for page in opened:
        page.asked = page.size = page.errors = 0
    sql, redis = SqlMeter(), RedisMeter(servers.redis_url)
    sql.start()
    redis.start()
    before, began = cpu.used({"web": [pid]}), time.monotonic()
    _live(opened, options.seconds)
    seconds = time.monotonic() - began
    used = cpu.spent(before, cpu.used({"web": [pid]}))["web"]
    sql.stop()
    redis.stop()
    redis.close()
    for page in opened:
        page.close()
    asked = sum(page.asked for page in opened)
    if asked and all(page.errors == page.asked for page in opened):
        raise BenchError("The dashboard answered no request.")
    extra = {
        "pages": pages,
        "requests_per_second": round(asked / seconds, 1),
        "web_core_percent": round(100 * used / seconds, 2),
        "statements_per_second": round(sql.count / seconds, 1),
        "sql_counted": sql.counted,
        "redis_per_second": round(redis.commands / seconds, 1),
        "kilobytes_per_second": round(sum(page.size for page in opened) / seconds / 1000, 1),
        "errors": sum(page.errors for page in opened),
        "cores": os.cpu_count(),
    }
    return Row("claim+celery", 2, options.executions, seconds=round(seconds, 2), extra=extra)


def _live(opened: Sequence[_Page], seconds: float) -> None:
    if not opened:
        time.sleep(seconds)
        return
    begin = time.monotonic()
    with ThreadPoolExecutor(len(opened)) as pool:
        firsts = [begin + NUMBERS_SECONDS * number / len(opened) for number in range(len(opened))]
        for done in [pool.submit(page.live, at, begin + seconds) for page, at in zip(opened, firsts, strict=True)]:
            done.result()
