"""Admission: decide whether the job of a received message runs here and now, and in which revision."""

import time
from dataclasses import replace

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import JobChanged
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks import pacing, signals
from harbor_refresh.tasks.jobs.lifecycle.task_state import TaskState, task_state_of
from harbor_refresh.tasks.jobs.records import own_database
from harbor_refresh.tasks.jobs.records.arguments import Arguments
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import Begun, ReceivedMessage, Run, Verdict
from harbor_refresh.tasks.models.job import Job

TRIES = 3


def begin(received: ReceivedMessage, node: str) -> Begun:
    """Begin the run, unless there is a reason against it.

    1. A message of another database changes nothing, because its job may have the id of one of ours.
    2. Redis gives the job to one process at a time, and records the run.
    3. Only then ask the database whether the job has ended. An end from before step 2 is in the database or in a
       record; after step 2 only this process can end the job. So a second copy of the message, a late message
       and a Redis that has lost data are harmless.
    4. If the database objects, undo the run.
    5. A copy of an older message runs in the current revision of the job, with the newest arguments. What the job
       asked for is read in Redis before the database, because it is forgotten there once the database has it.

    What if the process dies between the steps: its lease is not renewed, and recovery releases the job. What if it
    stands still so long that the job was given to another process: the time is measured, and it begins anew. What
    if the database is away: the run is undone, and DatabaseAway is raised.
    """
    if not own_database.is_ours(received.database):
        return refused(received, node)
    records, message = job_records(), received
    for _ in range(TRIES):
        since = time.monotonic()
        begun = records.begin(received, node)
        if begun.verdict != Verdict.GO:
            return begun
        try:
            state = task_state_of(received.task_id, received.job)
            begun = _with_newest_arguments(begun, state, message)
        except BaseException:  # the job's code was not called, so any error undoes the run
            records.undo(begun)
            raise
        if state is None or state.is_final:
            records.undo(begun, instead="")
            return replace(begun, verdict=Verdict.OVER)
        if _is_foreign(received, state):
            records.undo(begun)
            return refused(received, node)
        if state.is_running and state.revision >= begun.run.revision:
            # another run of the job has begun, and Redis has lost its record
            records.undo(begun, instead=state.record_on_unknown_node(records.memory().now).text)
            return replace(begun, verdict=Verdict.ALIVE)
        took_too_long = time.monotonic() - since > pacing.NODE_TTL_SECONDS / 2
        if state.revision <= begun.run.revision and not took_too_long:
            return _counted(begun, state)
        records.undo(begun)
        received = replace(received, revision=state.revision, runs=state.runs)
    raise JobChanged


def refused(received: ReceivedMessage, node: str) -> Begun:
    """Return the answer to a message of another database."""
    signals.message_refused.send(sender=begin, job=received.job)
    run = Run(received.job, received.task_id, node, received.revision, received.runs)
    return Begun(Verdict.FOREIGN, run, "")


def _counted(begun: Begun, state: TaskState) -> Begun:
    """Correct the number of runs: a Redis with older data may have counted fewer than the database."""
    records, run = job_records(), begun.run
    runs = max(run.runs - 1, state.runs + state.is_running)
    if runs >= state.may_begin:
        often = "once" if state.may_begin == 1 else f"{state.may_begin} times"
        why = f"it has begun {often}, which is as often as it may: see max_attempts"
        is_ended = records.settle(run, Status.ERROR, why) is not None
        return replace(begun, verdict=Verdict.EXHAUSTED if is_ended else Verdict.ALIVE, why=why)
    if runs == run.runs - 1:
        return begun
    for record in records.of([run.job]).values():
        records.replace([(record, replace(record, runs=runs + 1))])
    return replace(begun, run=replace(run, runs=runs + 1))


def _with_newest_arguments(begun: Begun, state: TaskState | None, message: ReceivedMessage) -> Begun:
    """Add the arguments of the run, unless those of the message are the newest (records/arguments.py). The result
    of the job before it has no revision of its own, so it is that of the later message."""
    if state is None:
        return begun
    of_message, in_database, requested = message.arguments_revision, state.arguments_revision, begun.requested
    if requested and requested.revision > max(of_message, in_database):
        return replace(begun, arguments=requested, are_unreported=True)
    if (of_message, message.revision) >= (in_database, state.revision):
        return replace(begun, are_unreported=of_message > in_database)
    with absence_translated():
        job = Job.objects.get(pk=state.task_id)
    return replace(begun, arguments=Arguments(list(job.arguments), job.kwargs, job.arguments_revision))


def _is_foreign(received: ReceivedMessage, state: TaskState) -> bool:
    return bool(received.database and state.database) and received.database != state.database
