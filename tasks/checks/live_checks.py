"""Look whether the servers, the workers and beat of a project are there: what no check of its settings can tell.

The servers and beat are asked as for the dashboard (tasks/overview); the workers by Celery's remote control. A
worker that is busy in a pool without processes (solo) does not answer.

What if a worker starts or ends between two questions: it is told as it was, and the next look is right.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from celery import current_app
from django.db.models import Count

from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.celery_queues import DELIVERIES, TICKS, WORK
from harbor_refresh.tasks.checks.host_checks import jobs
from harbor_refresh.tasks.models.job import Job
from harbor_refresh.tasks.overview.findings import Level, findings
from harbor_refresh.tasks.overview.state import look
from harbor_refresh.tasks.pauses.pauses import paused

REPLY_SECONDS = 1.5
#: So many jobs are named that no worker knows.
MOST_NAMES = 3
#: What happens while no worker takes the queue, and the number of the message.
PURPOSES = {
    TICKS: ("E104", "nothing is claimed, recovered or reconciled"),
    WORK: ("E105", "no execution ends"),
    DELIVERIES: ("W104", "no notification is sent"),
}
#: The findings of the overview that concern how the project is run, by the ids under which they are told.
OF_THE_OVERVIEW = {
    "database_away": "E101",
    "not_migrated": "E101",
    "redis_away": "E102",
    "broker_away": "E103",
    "no_worker": "E108",
    "ticks_stopped": "E106",
    "beat_silent": "E107",
    "schedule_row_missing": "W107",
    "schedule_row_disabled": "W108",
}


@dataclass(frozen=True)
class Found:
    id: str
    what: str
    todo: str

    @property
    def is_error(self) -> bool:
        return self.id.startswith("harbor_refresh.E")


def live_checks() -> list[Found]:
    state = look()
    found = [
        Found(f"harbor_refresh.{OF_THE_OVERVIEW[one.code]}", f"{one.what} {one.meaning}", one.todo)
        for one in findings(state)
        if one.code in OF_THE_OVERVIEW and (one.level == Level.WRONG or OF_THE_OVERVIEW[one.code].startswith("W"))
    ]
    if "broker" not in state.absent:
        found += _workers("database" not in state.absent)
    return found


def waiting_without_worker(taken: Collection[str]) -> Iterator[tuple[str, str]]:
    """Find each queue in which jobs wait and that no worker takes; yield what is wrong, and what to do. The jobs
    are counted in the database, so the broker is not asked. `taken`: the queues that workers take. Paused queues
    are left out."""
    waiting = Job.objects.filter(published_at__isnull=False, task__status__in=(Status.PENDING, Status.SCHEDULED))
    groups = waiting.values_list("name", "options__queue", "options__routing_key").annotate(Count("pk")).order_by()
    counts: Counter[str] = Counter()
    for name, queue, key, count in groups:
        options = {"queue": queue, "routing_key": key}
        route = current_app.amqp.router.route({one: value for one, value in options.items() if value}, name)
        counts[route["queue"].name] += count
    for name in sorted(counts.keys() - set(taken) - paused().keys()):
        jobs_wait = "1 job waits: it does" if counts[name] == 1 else f"{counts[name]:,} jobs wait: they do"
        yield (
            f"No worker takes the queue {name}, in which {jobs_wait} not begin.",
            f"Start a worker with -Q {name}. If the name is a mistake, correct it where the jobs are started, and "
            "stop or delete the executions of these jobs.",
        )


def _workers(has_database: bool) -> Iterator[Found]:
    inspect = current_app.control.inspect(timeout=REPLY_SECONDS)
    queues: dict[str, Any] = inspect.active_queues() or {}
    stats: dict[str, Any] = inspect.stats() or {}
    taken = {one["name"]: worker for worker, several in queues.items() for one in several}
    for queue, (number, cost) in PURPOSES.items():
        if queue not in taken:
            yield Found(
                f"harbor_refresh.{number}",
                f"No worker takes the queue {queue}: {cost}.",
                f"Start a worker with -Q {','.join(PURPOSES)}.",
            )
    if has_database:
        yield from (Found("harbor_refresh.E110", *told) for told in waiting_without_worker(taken))
    for worker in sorted({taken[queue] for queue in (TICKS, WORK) if queue in taken}):
        if (stats.get(worker, {}).get("pool") or {}).get("max-tasks-per-child") == 1:
            yield Found(
                "harbor_refresh.W105",
                f"{worker} refreshes executions, and starts a process for each task.",
                "Start it with --max-tasks-per-child 1000000.",
            )
    yield from _unknown_jobs(inspect.registered() or {})


def _unknown_jobs(registered: dict[str, list[str]]) -> Iterator[Found]:
    """`registered`: the tasks that each worker knows; some options may follow a name in brackets."""
    known = {text.partition(" [")[0] for several in registered.values() for text in several}
    unknown = [name for name in jobs() if name not in known]
    if registered and unknown:
        more = f" and {len(unknown) - MOST_NAMES} more" if len(unknown) > MOST_NAMES else ""
        yield Found(
            "harbor_refresh.E109",
            f"No worker knows these jobs: {', '.join(unknown[:MOST_NAMES])}{more}. They end as Error.",
            "Add app.autodiscover_tasks() where the project makes its Celery app, or name their modules in the "
            "setting CELERY_IMPORTS. Then start the workers again.",
        )
