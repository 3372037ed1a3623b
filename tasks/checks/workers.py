"""Checks of beat and of the workers: that they live, follow the schedule, take every queue and know our tasks."""

from collections.abc import Iterator

from celery import current_app
from django.core.checks import CheckMessage, Error, Warning
from django.db.models import Count

from harbor_refresh.executions.conf.declarations import is_service
from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.text import age, ago, plural
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES, JOBS, ROUTES, TICKS, WORK
from harbor_refresh.tasks.checks.celery_options import jobs
from harbor_refresh.tasks.checks.facts import Facts, celery_command
from harbor_refresh.tasks.checks.registry import COMMANDS, PRESENT, Server, Shown, check
from harbor_refresh.tasks.conf.pacing import SLACK_SECONDS, longest_silence
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.pipeline.schedule import ROWS
from harbor_refresh.tasks.queue.node import host_of

#: Workers that are alive for so long would have taken the first sample, if beat was started with them.
FIRST_SAMPLE_SECONDS = 20
#: A busy queue of ticks leaves some samples out, so it takes several to tell that Celery's own beat is silent.
SILENT_SECONDS = 90
#: What no beat means.
NOT_DONE = (
    "New reports are still refreshed. Scheduled work does not run: recovery from crashes, reconcile, the sweep, "
    "and retries of notifications."
)
#: A death is a finding for this time. The overview shows it for longer (news/state.py).
FINDING_SECONDS = 600
#: A row that runs so much less often than the default does not do its work any more.
RARE = 20
#: So many jobs are named that no worker knows.
MOST_NAMES = 3
#: What happens while no worker takes the queue.
PURPOSES = {
    TICKS: "no tick runs, so nothing is claimed, recovered or reconciled",
    WORK: "no execution is refreshed",
    JOBS: "no job runs",
    DELIVERIES: "no notification is sent",
}
#: The worker of a project that refreshes. It has a name, because the project has a worker already.
REFRESHES = f"-n refresh@%h -Q {WORK},{TICKS},{DELIVERIES}"
BOTH = (Server.REDIS, Server.BROKER)


def start_for(queue: str) -> str:
    """Return the command that starts a worker for this queue of ours."""
    return f"{celery_command('worker')} {f'-Q {queue}' if is_service() else REFRESHES}"


@check("beat.rows", "each row of the schedule exists, is enabled and is correct", Server.DATABASE, shown=PRESENT)
def rows_of_beat(facts: Facts) -> Iterator[CheckMessage]:
    schedule = facts.state.schedule
    if schedule is None:
        return
    found = {one.name: one for one in schedule} | {one.task: one for one in schedule}
    for planned in ROWS:
        row = found.get(planned.task) or found.get(planned.name)
        if row is None:
            yield Error(
                f"Beat's schedule has no row “{planned.name}”.\nIts work is not done: {planned.description}",
                "Create it again: type manage.py migrate, or restart beat.",
            )
            continue
        todo = f"Correct it in the admin: Periodic tasks, {row.name}"
        if row.is_one_off:  # beat disables it when it has run
            yield Error(f"The row {row.name} runs once and not again (one-off).", todo)
        elif not row.is_enabled:
            yield Error(
                f"“{row.name}” is disabled in beat's schedule.\nIts work is not done: {planned.description}",
                "Enable it in the admin, under Periodic tasks.",
            )
        if row.task != planned.task:
            yield Error(f"The row {row.name} sends {row.task} and not {planned.task}.", todo)
        if row.begins_in and row.begins_in > 0:
            yield Warning(f"The row {row.name} begins only in {age(row.begins_in)}.", todo)
        if row.interval and row.interval > RARE * max(planned.seconds, 1):
            usual = f"every {planned.seconds:,.0f} s is usual"
            yield Warning(f"The row {row.name} runs every {row.interval:,.0f} s, and {usual}.", todo)


@check("beat.alive", "a beat sends ticks", Server.DATABASE, shown=PRESENT)
def beat_alive(facts: Facts) -> Iterator[CheckMessage]:
    state, silent = facts.state, facts.state.beat_silent
    command = celery_command("beat --pidfile=" if is_service() else "beat")
    if state.schedule is None:  # it is Celery's own: the first thing that workers do for it is a sample
        alive, limit = state.first_heartbeat or 0, FIRST_SAMPLE_SECONDS if silent is None else SILENT_SECONDS
        if "database" not in state.absent and min(alive, alive if silent is None else silent) > limit:
            since = "" if silent is None else f" for {age(silent)}"
            yield (Warning if silent is None else Error)(
                f"No worker has run anything that a beat sends{since}.\n{NOT_DONE}",
                f"If a beat runs, start a worker that takes the queue {TICKS}. If none runs, start one with: "
                f"{command}",
            )
        return
    shortest = min((row.interval for row in state.schedule if row.is_enabled and row.interval), default=None)
    if shortest is None or (silent is not None and silent <= 3 * shortest + SLACK_SECONDS):
        return
    what = "Beat has never sent anything." if silent is None else f"Beat has sent nothing for {age(silent)}."
    yield Error(f"{what}\n{NOT_DONE}", f"Start one with: {command}")


@check("workers.alive", "workers are alive", Server.REDIS, shown=PRESENT)
def workers_alive(facts: Facts) -> Iterator[CheckMessage]:
    if facts.state.nodes is None and not facts.glance:  # Redis answers, and was too slow for a look
        raise QueueUnavailable(facts.state.absent.get("redis"))
    if facts.state.nodes == ():
        silent = facts.state.last_heartbeat
        since = f"; the last heartbeat came {ago(silent)}" if silent is not None else ""
        options = "--concurrency 2" if is_service() else REFRESHES
        yield Error(
            f"No worker is alive{since}.\nReports are stored, but no status is refreshed and no job runs.",
            f"Start one with: {celery_command('worker')} {options}",
        )


@check("workers.ticks", "workers look for work", Server.REDIS, shown=PRESENT)
def ticks_come(facts: Facts) -> Iterator[CheckMessage]:
    state, since = facts.state, facts.state.last_tick
    if not state.nodes or facts.conf.in_process:
        return
    # before the first tick, it counts since when there are workers
    if ((state.first_heartbeat if since is None else since) or 0) > longest_silence(facts.conf.interval):
        when = "ever since Redis was emptied" if since is None else f"for {age(since)}"
        yield Error(
            f"No worker has looked for work {when}, and {plural(len(state.nodes), 'node is', 'nodes are')} alive."
            "\nExecutions wait: beat sends no ticks, or no worker takes the queue harbor_refresh.ticks.",
            f"Check that beat runs, and that a worker takes that queue: {start_for(TICKS)}",
        )


@check("workers.died", "no node died recently", Server.REDIS, shown=(Shown.DOCTOR, Shown.DASHBOARD))
def died_lately(facts: Facts) -> Iterator[CheckMessage]:
    state = facts.state
    dead = [node for node in state.dead or () if node.silent <= FINDING_SECONDS]
    if dead and state.nodes:
        yield Warning(
            f"{plural(len(dead), 'node')} died within the last ten minutes. "
            f"The last heartbeat of {dead[0].name} came {ago(dead[0].silent)}.\n"
            "Its claims and jobs go back on their queues, for workers that take these queues.",
            "If a worker has ended, start it again. If you did not kill it, and Redis was not down, read its "
            "log, and look for the kernel's out-of-memory killer: dmesg",
        )


@check("workers.answer", "workers answer, and send heartbeats", *BOTH, shown=COMMANDS)
def remote_control(facts: Facts) -> Iterator[CheckMessage]:
    nodes, names = facts.state.nodes, facts.workers.names
    if nodes and not names:
        hosts = sorted({host_of(node.name) for node in nodes})[:3]
        yield Error(
            f"Heartbeats come from {plural(len(nodes), 'node')}, but no worker answers Celery's remote control: "
            "the main process of each worker hangs, was killed, waits for the broker, or has just started.",
            f"Type this again in ten seconds. If it is still so, restart the workers on {', '.join(hosts)}",
        )
    elif names and not nodes and not facts.conf.in_process:
        yield Error(
            f"{', '.join(names[:3])}: the worker answers, but none of its processes sends a heartbeat. It uses "
            "another Redis or another REFRESH_KEY_PREFIX, or its pool has ended.",
            "Compare REDIS_URL and REFRESH_KEY_PREFIX of the worker with those of this command, then restart it.",
        )


@check("workers.queues", "each queue has a worker", *BOTH, shown=COMMANDS)
def queues(facts: Facts) -> Iterator[CheckMessage]:
    """A worker whose consumer was cancelled for a queue still answers a ping. A project has its own queues for its
    jobs, and may have no notifications."""
    if not facts.workers.names:
        return  # that is a problem of its own
    for name, cost in PURPOSES.items():
        if name in facts.workers.taken or (name == JOBS and not is_service()):
            continue
        waiting = ""  # the messages of some brokers are not counted
        if facts.state.messages is not None:
            count = facts.state.messages.get(name, 0)
            waiting = f", in which {plural(count, 'message')} wait{'s' if count == 1 else ''}" if count else ""
        is_harmless = name == DELIVERIES and not is_service()
        yield (Warning if is_harmless else Error)(
            f"No worker takes the queue {name}{waiting}: {cost}.",
            start_for(name),
        )


@check("workers.jobs", "each queue of jobs has a worker", Server.DATABASE, *BOTH, shown=COMMANDS)
def queues_of_jobs(facts: Facts) -> Iterator[CheckMessage]:
    if not facts.workers.names or facts.unapplied:
        return  # that is a problem of its own
    # counted in the database, so the broker is not asked
    waiting = Job.objects.filter(state__in=(JobState.WAITING, JobState.SENT)).order_by("queue")
    others = waiting.exclude(queue__in=facts.workers.taken | PURPOSES.keys())
    for name, count in others.values_list("queue").annotate(Count("pk")):
        jobs_wait = "1 job waits: it does" if count == 1 else f"{count:,} jobs wait: they do"
        yield Error(
            f"No worker takes the queue {name}, in which {jobs_wait} not begin.",
            f"Start one with: {celery_command('worker')} -n {name}@%h -Q {name}. If the name is a mistake, "
            "correct it where the jobs are started, and stop or delete the executions of these jobs.",
        )


@check("workers.tasks", "workers know every Celery task", *BOTH, shown=COMMANDS)
def task_names(facts: Facts) -> Iterator[CheckMessage]:
    """A worker that takes our queues and does not know our tasks drops their messages."""
    ours = ROUTES.keys() & current_app.tasks.keys()
    known = facts.workers.task_names
    for worker, names in known.items():
        takes = facts.workers.queues.get(worker, set()) & set(PURPOSES)
        missing = sorted(ours - names)
        if takes and missing:
            yield Error(
                f"{worker} takes {', '.join(sorted(takes))} but does not know {', '.join(missing[:3])}: it "
                "drops such messages. It belongs to another release or to another app.",
                f"Stop that worker, and start one of this release: {celery_command('worker')}",
            )
    unknown = [] if is_service() else [name for name in jobs() if name not in set().union(*known.values())]
    if known and unknown:
        more = f" and {len(unknown) - MOST_NAMES} more" if len(unknown) > MOST_NAMES else ""
        yield Error(
            f"No worker knows these jobs: {', '.join(unknown[:MOST_NAMES])}{more}. They end as Error.",
            "Start or restart the worker that should run them. If it does not know them then, add app."
            "autodiscover_tasks() where the project makes its Celery app, or name their modules in CELERY_IMPORTS",
        )
