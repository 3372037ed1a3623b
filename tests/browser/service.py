"""The service as `make up` runs it: web, a worker and beat as processes, on the database of these tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis as redis_library
from django.contrib.auth.models import Group, User
from django.test import Client

from harbor_refresh.management.roles import ROLES
from tests import servers
from tests.faults.cluster import SHORT, Cluster, Member
from tests.integration.service.web import WebProcess

JOBS = "tests.faults.jobs"
PASSWORD = "a password of these tests"
#: A node is dead after twenty seconds, because a browser keeps the machine busy: a worker that stands still for a
#: few would be taken for dead, and its jobs would run again. The broker delivers a message again after a minute,
#: so that recovery always gives back what a dead worker held.
QUICK = SHORT | {
    "HARBOR_REFRESH_TEST_NODE_TTL_SECONDS": "20",
    "REFRESH_VISIBILITY_TIMEOUT_SECONDS": "60",
    "REFRESH_DELIVER_NETWORKS": "127.0.0.1/32",
}


#: A test locks a row, or halts the worker in a transaction, while it looks at pages. PostgreSQL must not end that.
PATIENT = "?options=-c%20lock_timeout%3D10min%20-c%20idle_in_transaction_session_timeout%3D10min"


class Service:
    """The running processes, and users of each role."""

    def __init__(self, database: str, directory: Path) -> None:
        self.cluster = Cluster(database, directory)
        self._runs = directory / "jobs.log"
        self.cluster.env |= QUICK | {"JOBS_LOG": str(self._runs)}
        self.cluster.env["DATABASE_URL"] += PATIENT
        self._web = WebProcess(database, directory / "web.log", **QUICK)
        self.worker: Member | None = None
        self.cookies: dict[str, str] = {}

    @property
    def url(self) -> str:
        return self._web.url

    def start(self) -> None:
        self.cluster.beat({"Sample": 5})
        self.start_worker()
        self._web.start()

    def start_worker(self) -> Member:
        """Start a worker unless one runs. A test that kills it leaves a live one to the next."""
        if self.worker is None or self.worker.died():
            self.worker = self.cluster.worker("worker", concurrency=3, include=[JOBS])
        return self.worker

    def runs_of(self, job: str) -> int:
        """How often a worker has begun this job of tests/faults/jobs.py, in the words that it writes."""
        return self._runs.read_text().splitlines().count(job) if self._runs.exists() else 0

    def has_begun(self, job: str) -> bool:
        """Whether a worker has begun the job whose line begins so."""
        return self._runs.exists() and job in self._runs.read_text()

    def let_end(self, name: str, run: int) -> None:
        """Let this run of the job `held` of tests/faults/jobs.py end, counted from 1. Until then, it holds on."""
        self._runs.with_name(f"{name}.{run}").touch()

    def sign_in(self, role: str) -> str:
        """Return the session of a user of this role, without the form of the login."""
        if role not in self.cookies:
            client = Client()
            client.force_login(User.objects.get(username=role))
            self.cookies[role] = client.cookies["sessionid"].value
        return self.cookies[role]

    def end(self) -> None:
        self._web.kill()
        self.cluster.end()


def make_users() -> None:
    """A user of each role, and `root`, who may do everything."""
    for role in ROLES:
        user = User.objects.create_user(role, password=PASSWORD, is_staff=True)
        user.groups.add(Group.objects.get(name=role))
    User.objects.create_superuser("root", password=PASSWORD)


@contextmanager
def running(database: str, directory: Path) -> Iterator[Service]:
    """Yield the service on this database and on the Redis of the run, which is emptied before."""
    with redis_library.Redis.from_url(servers.redis.url) as redis:
        redis.flushall()
    make_users()
    service = Service(database, directory)
    try:
        service.start()
        yield service
    finally:
        service.end()
