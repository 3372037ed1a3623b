"""Checks of the workers: that they live, take every queue, know our tasks, and run with these settings."""

from collections.abc import Iterator

from celery import current_app
from django.conf import settings
from django.db import connection

from harbor_refresh.doctor.check import Check, Problem, warning
from harbor_refresh.doctor.facts import Facts, Need
from harbor_refresh.doctor.overview import overview
from harbor_refresh.executions.declarations import is_service
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.broker.lengths import waiting_in_all
from harbor_refresh.tasks.celery_queues import DELIVERIES, JOBS, ROUTES, TICKS, WORK
from harbor_refresh.tasks.checks.live_checks import waiting_without_worker
from harbor_refresh.tasks.queue.node import host_of

#: What happens while no worker takes the queue.
PURPOSES = {
    TICKS: "no tick runs, so nothing is claimed, recovered or reconciled",
    WORK: "no execution is refreshed",
    JOBS: "no job runs",
    DELIVERIES: "no notification is sent",
}
#: Settings that must be the same in every process.
SHARED = (
    "CELERY_TASK_ACKS_LATE",
    "CELERY_TASK_REJECT_ON_WORKER_LOST",
    "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS",
    "REFRESH_STRATEGY",
    "REFRESH_VISIBILITY_TIMEOUT_SECONDS",
)
#: What Celery shows in the place of a secret.
HIDDEN = "********"


def remote_control(facts: Facts) -> Iterator[Problem]:
    """Compare the two signs of life: heartbeats of the processes, and answers of the workers' main processes."""
    nodes, names = facts.stats.nodes, facts.workers.names
    if nodes and not names:
        yield Problem(
            f"Heartbeats come from {plural(len(nodes), 'worker process', 'worker processes')}, and no worker "
            "answers "
            "Celery's remote control: the main process of each worker hangs, was killed, or waits for the broker.",
            f"Restart the workers on {', '.join(sorted({host_of(node) for node in nodes})[:3])}",
        )
    elif names and not nodes and not facts.conf.in_process:
        yield Problem(
            f"{', '.join(names[:3])}: the worker answers, and none of its processes sends a heartbeat. It uses "
            "another Redis or another REFRESH_KEY_PREFIX, or its pool has ended.",
            "Compare REDIS_URL and REFRESH_KEY_PREFIX of the worker with those of this command, then restart it.",
        )


def queues(facts: Facts) -> Iterator[Problem]:
    """Find queues that no worker takes. A worker whose consumer was cancelled for a queue still answers a ping."""
    if not facts.workers.names:
        return  # that is a problem of its own
    taken = set().union(*facts.workers.queues.values()) if facts.workers.queues else set()
    for name, cost in PURPOSES.items():
        if name not in taken:
            count = waiting_in_all(name)
            yield Problem(
                f"No worker takes the queue {name}, in which {plural(count, 'message')} "
                f"wait{'s' if count == 1 else ''}: {cost}.",
                f"{_start()} -Q {name}",
            )


def _start() -> str:
    return f"celery -A {'harbor_refresh' if is_service() else 'YOUR_PROJECT'} worker"


def waiting_jobs(facts: Facts) -> Iterator[Problem]:
    if not facts.workers.names:
        return  # that is a problem of its own
    for told in waiting_without_worker(set(PURPOSES).union(*facts.workers.queues.values())):
        yield Problem(*told)


def task_names(facts: Facts) -> Iterator[Problem]:
    """Find workers that take our queues and do not know our tasks: they drop the messages."""
    ours = ROUTES.keys() & current_app.tasks.keys()
    for worker, known in facts.workers.task_names.items():
        takes = facts.workers.queues.get(worker, set()) & set(PURPOSES)
        missing = sorted(ours - known)
        if takes and missing:
            yield Problem(
                f"{worker} takes {', '.join(sorted(takes))} and does not know {', '.join(missing[:3])}: it "
                "drops such messages. It is of another release, or of another app.",
                f"Stop that worker, and start one of this release: {_start()}",
            )


def same_settings(facts: Facts) -> Iterator[Problem]:
    """Compare the settings of each worker with ours. Celery's remote control tells them, without secrets."""
    for worker, theirs in facts.workers.settings.items():
        for name in SHARED:
            ours = getattr(settings, name, None)
            if name in theirs and theirs[name] not in (ours, HIDDEN):
                yield warning(
                    f"{worker} runs with {name} = {theirs[name]}, and this command with {ours}.",
                    "Give every process the same environment, and restart the worker.",
                )
        ours = connection.settings_dict["NAME"]
        database = theirs.get("DATABASES", {}).get("default", {}).get("NAME")
        if database not in (None, ours):
            yield Problem(
                f"{worker} works on the database {database}, and this command on {ours}.",
                "Correct DATABASE_URL of one of them, or give each system a broker of its own.",
            )


BOTH = (Need.REDIS, Need.BROKER)
CHECKS = (
    Check("workers.alive", "workers are alive and look for work", overview("no_worker", "ticks_stopped"), BOTH),
    Check("workers.died", "no worker process died lately", overview("worker_died"), BOTH),
    Check("workers.answer", "workers answer, and send heartbeats", remote_control, BOTH),
    Check("workers.queues", "each queue has a worker", queues, BOTH),
    Check("workers.jobs", "each queue of jobs has a worker", waiting_jobs, (Need.DATABASE, Need.BROKER)),
    Check("workers.tasks", "workers know every Celery task", task_names, BOTH),
    Check("workers.settings", "workers run with the same settings", same_settings, BOTH),
)
