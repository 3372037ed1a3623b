"""Retries and resumptions: run failed, or stopped, jobs of an execution once more, each in a new revision."""

from collections.abc import Sequence
from functools import partial

from django.db import transaction

from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.database import among
from harbor_refresh.executions.errors import NoSuchExecution, NoSuchTask
from harbor_refresh.executions.lifecycle import gates, links
from harbor_refresh.executions.lifecycle.quarantines import release
from harbor_refresh.executions.lifecycle.reports import Report, Source, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import sender
from harbor_refresh.tasks.jobs.report_target import next_revision
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.jobs.starting.fairness import MOST_LINES, Turns
from harbor_refresh.tasks.jobs.starting.unique_keys import lock_and_release, retry_on_conflict
from harbor_refresh.tasks.models.job import Job, JobState, Need
from harbor_refresh.tasks.without_redis.agenda import at_once

#: What says when a job has its turn.
OF_A_TURN = ("queue", "priority", "name", "limit_key", "tenant")
#: What the task of a job says when the job runs once more, by the status with which it had ended.
MESSAGES = {Status.ERROR: "tried again", Status.STOPPED: "resumed"}


@at_once
def retry_failed(execution_id: int) -> int:
    """Retry the failed jobs of the execution and of its descendants, and return how many. Jobs that need
    them wait for their turn again; those that need a stopped job are left to `resume_stopped`. Each job may begin
    as often as a new one. A unique job is left out, with the jobs after it, while another job with its key is
    queued or running. The execution and its ancestors are Running when this returns. A stop of an open execution
    is lifted if one of these jobs is in it or below it (executions/lifecycle/gates.py).

    1. Lock the ancestors, the execution and its descendants, in id order. So the second of two retries sees what
       the first has left. A stop of any of them comes before this, and is lifted, or after it, and stops these
       jobs once more.
    2. Lock the tasks, and those of the jobs that hold the wanted keys, in id order; then the jobs. Decide under
       these locks.
    3. Write the tasks and the jobs, and refresh the execution, its descendants and its ancestors. Release them
       from quarantine before, because a quarantined execution is not refreshed. If a refresh fails, it is marked
       after the commit, as after any report.

    If the process dies before the commit, then nothing happened; after it, a worker sends the jobs.
    """
    refuse_if_attached(Operation.RUN_AGAIN)
    return retry_on_conflict(partial(_run_again, execution_id, Status.ERROR))


@at_once
def resume_stopped(execution_id: int) -> int:
    """Run the stopped jobs of the execution once more, as `retry_failed` does, and return how many. Jobs that need
    a failed job are left to `retry_failed`, and tasks without a job to their runners. An open execution that was
    stopped stays closed. Its stop and those of its descendants are lifted, also if no job was stopped: then it
    ends as its tasks have.

    If a job that was asked to stop has not noticed it yet, then its new run may begin before it ends, in another
    process. The old run is still asked to stop, and its reports are ignored, because they have an older revision.
    """
    refuse_if_attached(Operation.RUN_AGAIN)
    return retry_on_conflict(partial(_run_again, execution_id, Status.STOPPED))


@at_once
def run_job_again(task_id: int) -> int:
    """Run a failed or stopped job once more, and the jobs that need it. Returns how many jobs; 0 if the job has
    not failed and was not stopped, is not a job, needs one that has failed or was stopped, or is unique while
    another job holds its key."""
    refuse_if_attached(Operation.RUN_AGAIN)
    found = Task.objects.filter(pk=task_id).values_list("execution_id", "status").first()
    if found is None:
        raise NoSuchTask(task_id)
    execution_id, status = found
    ended_as = Status.ERROR if status == Status.ERROR else Status.STOPPED
    return retry_on_conflict(partial(_run_again, execution_id, ended_as, first=task_id))


def _run_again(execution_id: int, status: Status, first: int | None = None) -> int:
    above = links.lock_ancestors([execution_id])
    family = links.lock_family([execution_id])
    if not family:
        raise NoSuchExecution(execution_id)
    ids = [one.pk for one in family]
    again = _locked_for_another_run(ids, status, first)
    going_on = {job.task.execution_id for job in again}
    if status == Status.STOPPED and first is None:
        going_on.update(gate.execution_id for gate in gates.stopped(ids))
    if not going_on:
        return 0
    # one that needs another of them waits for that
    revisions = [next_revision(max(job.revision, job.task.status_revision)) for job in again]
    pairs = zip(again, revisions, strict=True)
    report((Report(job.task_id, Status.PENDING, of, MESSAGES[status]) for job, of in pairs), Source.RETRY)
    rows = [{name: getattr(one, name) for name in OF_A_TURN} for one in again]
    Turns().give(rows)  # they take turns as jobs that are started now do
    run("run_again", task_ids=[one.pk for one in again], revisions=revisions, turns=[row["turn"] for row in rows])
    # why they were stopped (terms.py)
    with_terms = Execution.objects.filter(pk__in=[one.pk for one in (*above, *family)], terms__isnull=False)
    with_terms.update(status_message="")
    gates.pass_stopped(going_on | links.ancestors(going_on))
    # ancestors that are Running stay so, and their rollup reads all their children
    stale = [*ids, *(one.pk for one in above if one.status != Status.RUNNING)]
    release(stale)
    for level in links.by_level(stale):
        refresh(level)
    keys = {(job.name, job.limit_key): job.pk for job in again if job.limit_key is not None}
    limited = [*keys.values()][:MOST_LINES]  # workers admit those of any others within a second
    transaction.on_commit(partial(sender.send_started, {job.queue for job in again}, sorted(going_on), limited))
    return len(again)


def _locked_for_another_run(execution_ids: list[int], status: Status, first: int | None) -> list[Job]:
    """Find the jobs twice: first to know what to lock, then again under the locks. Of those with one key the first
    runs again."""

    def found(only: Sequence[int] | None) -> list[int]:
        words = {"execution_ids": execution_ids, "status": status, "first": first, "among": only}
        return [pk for (pk,) in run("find_jobs_to_run_again", **words)]

    wanted = found(None)
    unique = Job.objects.filter(among(wanted), unique_key__isnull=False)
    keys = dict(unique.values_list("pk", "unique_key"))
    locked, taken = lock_and_release(keys.values(), wanted)
    first_of = {key: pk for pk, key in sorted(keys.items(), reverse=True) if key not in taken}
    free = [pk for pk in locked if pk not in keys or first_of.get(keys[pk]) == pk]
    of_its_task = ("task__execution", "task__status_revision")
    jobs = Job.objects.select_related("task").only("revision", *OF_A_TURN, *of_its_task)
    behind = Need.objects.filter(
        among(free, "needed"), is_met=True, job__state=JobState.WAITING, job__waits_for__gt=0
    )
    held = {*free, *behind.values_list("job", flat=True)}  # run_again.sql
    rows = list(jobs.select_for_update(no_key=True, of=("self",)).filter(among(held)).order_by("pk"))
    chosen = set(found(free))  # under these locks too: the end of any job that they need takes them
    return [one for one in rows if one.pk in chosen]
