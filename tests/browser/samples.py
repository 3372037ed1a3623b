"""One of everything that the admin shows, so that no page of it is empty."""

from dataclasses import dataclass

from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import (
    ApiToken,
    AuditEntry,
    Delivery,
    Execution,
    StatusChange,
    Subscription,
    Task,
)
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.news.audit import Origin, Person, Target, Word, note
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.models import Job, Limit
from tests.integration.executions.api.api_client import token
from tests.integration.operations.actions.sample_bulk import ELSEWHERE, with_jobs

LABELS = {"repository": {"name": "library/nginx"}, "tag": "1.27"}
BROKEN = "the registry answered 503: too many requests"


@dataclass(frozen=True)
class Samples:
    """The executions by what they show, and a row of each model."""

    running: Execution
    failed: Execution
    stopped: Execution
    rows: dict[type[Model], Model]


def make_samples() -> Samples:
    running = _execution("REPLICATION", ["Success"] * 5 + ["Running"] * 2 + ["Pending"] * 3)
    failed = _execution("IMAGE_SCAN", ["Success"] * 3 + ["Error"] * 4)
    stopped = _execution("RETENTION", ["Success", "Stopped"])
    _execution("GARBAGE_COLLECTION", ["Success"])
    (with_job,) = with_jobs(1, "PREHEAT", queue=ELSEWHERE)
    aside = _execution("SCAN_ALL", ["Running"])
    quarantine([aside.pk], 5, {aside.pk: "canceling statement due to lock timeout"})
    note(Person("operator", Origin.ADMIN, "127.0.0.1"), Word.RELEASE, Target.EXECUTION, failed.pk, count=1)
    subscription = Subscription.objects.create(
        name="The registry's portal", url="https://portal.example/hooks", secret="whsec_c2VjcmV0", enabled=False
    )
    token(Scope.READ, name="portal")
    rows = (
        failed,
        Task.objects.filter(execution=failed, status=Status.ERROR).first(),
        Job.objects.filter(task__execution=with_job).first(),
        Limit.objects.get_or_create(name="registry.copy", concurrency=10)[0],
        StatusChange.objects.filter(execution=failed).first(),
        AuditEntry.objects.first(),
        subscription,
        dead_letter(subscription, failed, failed.revision, failed.status),
        ApiToken.objects.first(),
        PeriodicTask.objects.first(),
        IntervalSchedule.objects.first(),
        CrontabSchedule.objects.first(),
        User.objects.get(username="viewer"),
        Group.objects.first(),
    )
    return Samples(running, failed, stopped, {type(row): row for row in rows if row is not None})


def _execution(vendor: str, statuses: list[str]) -> Execution:
    tasks = [NewTask(f"job-{number:03}") for number in range(len(statuses))]
    execution = create(NewExecution(vendor, vendor_id=7, trigger="MANUAL", extra_attrs=LABELS, tasks=tasks))
    ids = sorted(execution.tasks.values_list("pk", flat=True))
    report(
        Report(pk, status, 1, BROKEN if status == Status.ERROR else "")
        for pk, status in zip(ids, statuses, strict=True)
        if status != Status.PENDING
    )
    refresh([execution.pk])
    execution.refresh_from_db()
    return execution


def dead_letter(subscription: Subscription, execution: Execution, revision: int, to_status: str) -> Delivery:
    now = timezone.now()
    return Delivery.objects.create(
        subscription=subscription,
        execution_id=execution.pk,
        vendor_type=execution.vendor_type,
        revision=revision,
        from_status=Status.RUNNING,
        to_status=to_status,
        changed_at=now,
        state=State.DEAD,
        attempts=12,
        next_at=None,
        last_error="HTTP 503",
        ended_at=now,
    )
