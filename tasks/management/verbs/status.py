"""Verbs that look at the service: status, why and check. They change nothing."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from harbor_refresh.executions.conf.startup import bad_settings
from harbor_refresh.executions.errors import NoSuchTask
from harbor_refresh.executions.lifecycle.links import child_of_task
from harbor_refresh.executions.management.command import Subcommand, argument, one_of, positive_integer
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.models import Gate, Task
from harbor_refresh.executions.status import FINAL, FINAL_CODE
from harbor_refresh.executions.text import age, ago, plural
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.output import problem_text
from harbor_refresh.tasks.checks.registry import Shown, problems, told
from harbor_refresh.tasks.jobs import queries
from harbor_refresh.tasks.models.job import Job
from harbor_refresh.tasks.news.state import ServiceState
from harbor_refresh.tasks.pipeline.diagnosis import diagnose
from harbor_refresh.tasks.strategies import strategy

#: What the counts of jobs mean.
MEANINGS = {
    "waiting": "their turn has not come, or the broker holds enough",
    "in_chains": "of these, wait for the job before them",
    "later": "of these, wait for their time",
    "limited": "of these, wait for their limit",
    "sent": "are with the broker, in any queue, or were fetched by a worker",
    "running": "run",
    "unreported": "have a report that the target of the hook has not taken",
}


def _status(options: dict[str, Any]) -> Answer:
    """Show what is known, even if a server is down. Then the command fails, because the rest is unknown."""
    if options["jobs"]:
        return _jobs()
    facts = Facts()
    found = problems(Shown.DASHBOARD, facts)
    state, design = facts.state, strategy()
    is_elsewhere = not design.marks_on_queue and "redis" not in state.absent
    backlog = design.backlog() if is_elsewhere else state.backlog
    data = {**asdict(state), "backlog": backlog, "findings": [told(one) for one in found]}
    parts = ((("", "count", ""), [*_counts(state, backlog)]), (("", "", ""), [*_times(state)]))
    shown: list[Any] = [table(columns, rows) for columns, rows in parts if rows]
    if state.in_process:
        shown.append("The interval is 0 or less: the reporting process refreshes, and the queue is not used.")
    if design.runs_cycles:
        shown.append(f"The strategy is {design.name}.")
    shown += [problem_text(one) for one in found] or ["Nothing is wrong here. `harbor check` also asks workers."]
    failure = "; ".join(reason for server, reason in state.absent.items() if server != "broker")
    return Answer(data, shown, failure)


def _counts(state: ServiceState, backlog: int | None) -> Iterator[tuple[str, Any, str]]:
    """Count what each server knows that answers."""
    if "redis" not in state.absent:
        yield "backlog", backlog, "executions wait to be claimed"
        yield "in flight", state.in_flight, "claimed and not finished"
        yield "failed before", state.failed_before, "of these two, failed at least once"
        nodes = sorted(node.name for node in state.nodes or ())
        yield "live nodes", len(nodes), ", ".join(nodes) or "no worker sends a heartbeat"
    if state.messages is not None:
        waiting = ", ".join(f"{name} {count:,}" for name, count in state.messages.items() if count)
        yield "queue messages", sum(state.messages.values()), waiting or "none waits in a harbor_refresh queue"
    if "database" not in state.absent:
        yield "quarantined", state.quarantined, "set aside: harbor quarantine"
        yield "running jobs", state.jobs_in_progress, "waiting ones: harbor status --jobs"
        yield "dead letters", state.dead_letters, "notifications that were given up"


def _times(state: ServiceState) -> Iterator[tuple[str, str, str]]:
    """Say how long ago the parts worked."""
    if "redis" not in state.absent:
        oldest = state.oldest_waiting
        waited = "unknown" if oldest is None else age(oldest) if oldest else "none waits"
        yield "oldest", waited, "on the queue"
        yield "last tick", ago(state.last_tick), "a worker looked for work"
    if "database" not in state.absent:
        yield "last reconcile", ago(state.last_reconcile), "the last complete pass began"
        yield "beat", ago(state.beat_silent), "sent a task"


def _jobs() -> Answer:
    counts, nodes = queries.overview()
    nodes.sort(key=lambda one: -one["running"])
    rows = [(what.replace("_", " "), count, MEANINGS[what]) for what, count in counts.items()]
    shown: list[Any] = [table(("", "jobs", ""), rows)]
    workers = []
    for one in nodes:
        name = f"{one['name']} (silent)" if one["is_suspected"] else one["name"]
        workers.append((name, one["running"], one["slots"], ", ".join(one["queues"])))
    if workers:
        shown += ["", table(("worker", "runs", "of", "queues"), workers)]
    return Answer({**counts, "nodes": nodes}, shown)


def _why(options: dict[str, Any]) -> Answer:
    if options["task"]:
        return _why_of_job(options["task"])
    found = diagnose(options["id"])
    row, where = found.comparison, found.where
    data = {
        "execution_id": row.execution_id,
        "vendor": row.vendor_type,
        "status": row.status,
        "true_status": row.true_status,
        "is_right": row.is_right,
        "is_locked": row.is_locked,
        "quarantine": row.reason,
        "on_the_queue": where and where.is_queued,
        "failures": where and where.failures,
        "claims": where
        and [{"node": one.node, "state": "waits" if one.is_waiting else "works"} for one in where.tokens],
        "findings": list(found.findings),
    }
    rows = [
        ("execution", f"{row.execution_id} {row.vendor_type}"),
        ("status", row.status),
        ("by its tasks", row.true_status or "it has no tasks"),
    ]
    unfinished = Task.objects.filter(execution_id=row.execution_id, status_code__lt=FINAL_CODE)
    unfinished = unfinished.exclude(status__in=FINAL)  # whose code Harbor's bulk stop has left
    one = unfinished.order_by("-status_code").values_list("pk", flat=True).first()  # one that runs, if any does
    if one:
        job = Job.objects.filter(pk=one).first()
        reason = queries.why(job) if job else _why_without_job(one)
        data |= {"task_id": one, "why": reason}
        rows.append((f"task {one}", reason))
    return Answer(data, [table(("", ""), rows), *found.findings])


def _why_without_job(task_id: int) -> str:
    if child := child_of_task(task_id):
        return f"it is execution {child}: type `harbor why {child}`"
    if Gate.objects.filter(task_id=task_id).exists():
        return "it keeps the execution open until `close()` or the time limit"
    return "it has no job: another program runs it, and reports it"


def _why_of_job(task_id: int) -> Answer:
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        raise NoSuchTask(task_id)
    job = Job.objects.filter(pk=task_id).first()
    reason = queries.why(job) if job else _why_without_job(task_id)
    data = {
        "task_id": task.pk,
        "execution_id": task.execution_id,
        "status": task.status,
        "job": job and {"name": job.name, "queue": job.queue, "state": job.state, "runs": job.run},
        "why": reason,
    }
    rows = [("task", f"{task.pk} of execution {task.execution_id}"), ("status", task.status)]
    if job:
        rows += [("job", job.name), ("queue", job.queue), ("state", job.state)]
    return Answer(data, [table(("", ""), [*rows, ("why", reason)])])


def _check(options: dict[str, Any]) -> Answer:
    found = [*bad_settings(), *problems(Shown.PROJECT, Facts())]
    errors = [one for one in found if one.is_serious()]
    data = {"problems": [told(one) for one in found]}
    shown: list[Any] = [*map(problem_text, found)] or ["Nothing is missing."]
    return Answer(data, shown, failure=f"{plural(len(errors), 'error')}." if errors else "")


STATUS = "show the queue, the live nodes, the jobs, the schedule, and what is wrong"
WHY = "say where an execution is, why it is not refreshed, and what to do; or why a job does not run"
CHECK = "check the settings, servers and workers for what keeps executions from ending"
JOBS = "count the unfinished jobs by state, and show the workers that run them"
TASK = "say why the job of this task does not run, or where it runs"
OF_WHY = one_of(
    argument("id", nargs="?", type=positive_integer, metavar="ID", help="the execution"),
    argument("--task", type=positive_integer, metavar="TASK", help=TASK),
    required=True,
)
VERBS = {
    "status": Subcommand(STATUS, _status, [argument("--jobs", action="store_true", help=JOBS)]),
    "why": Subcommand(WHY, _why, [OF_WHY]),
    "check": Subcommand(CHECK, _check),
}
