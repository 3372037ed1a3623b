"""The sender: when a job may run. A backlog waits in PostgreSQL, and the broker holds what workers will take soon.

| question           | the condition                                                                            |
| ------------------ | ---------------------------------------------------------------------------------------- |
| has its turn come? | it waits for no job that it needs                                                        |
| has its time come? | `not_before`, of a countdown or a retry                                                  |
| is its limit full? | fewer jobs of its key have a place, and its rate is kept (sql/schema/admit_function.sql) |
| is it the next?    | the lowest priority number, then executions in turns (sql/schema/turn_functions.sql)     |
| is there room?     | fewer jobs of its queue are sent than its workers take soon (sql/sending/pick.sql)       |
| is it paused?      | a queue that is paused is left out                                                       |
| was it lost?       | it was overtaken, or messages do not flow (sql/sending/resend.sql)                       |

Each message is sent after the commit that notes it, to the queue that its row names. In workers a thread of its
own publishes, so that a broker that hangs holds up no heartbeat and no end. If the process dies in between, or the
broker loses the message, the job is overdue, and is sent again. If a message comes twice, the second begins no
run.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from celery import current_app
from celery.app.routes import Router
from celery.exceptions import QueueNotFound, SoftTimeLimitExceeded
from kombu.exceptions import EncodeError

from harbor_refresh.executions.database import absence_translated, distinct
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import said_by
from harbor_refresh.tasks.broker.channels import batch_producer
from harbor_refresh.tasks.jobs.outcomes import REFUSED_BY_OLDER_CODE, Outcome, Run, header_of, take
from harbor_refresh.tasks.jobs.running import eager
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.pipeline.per_process import BatchThread, PerProcess
from harbor_refresh.tasks.without_redis import mode

log = logging.getLogger("harbor_refresh")

#: The broker holds so many jobs of a queue whose workers are not known.
FLOOR = 200
#: Of another one it holds what the workers do in 1.5 seconds, at most so many for each slot, or FLOOR.
EACH = 100
#: The most jobs of a queue that are sent at once, and by a process that starts some.
MOST, MOST_STARTED = 1_000, 200
#: If more are due at one moment, the rest is left to the next pass, in a second.
PAGES_OF_DUE = 10
#: After so many seconds a job that was sent is overdue, if it was overtaken, or if messages do not flow; and after
#: so many in any case.
PATIENCE_SECONDS, LONG_SECONDS = 5.0, 600.0
#: Another process picks for the queue, which takes a few milliseconds.
TURN_SECONDS = 0.02
LATE = "Could not send jobs, they will be a few seconds later: %s"
#: What makes a message impossible. Any other error is one of the broker, or of the process.
OF_A_MESSAGE = (EncodeError, TypeError, ValueError, KeyError)

Row = tuple[Any, ...]
Publish = Callable[[Sequence[Row]], object]


def admit(task_ids: Sequence[int] | None = None) -> set[str]:
    """Admit jobs with a limit: those of the keys of these tasks, or of all keys. Returns their queues."""
    with absence_translated():
        return {queue for (queue,) in run("sending/admit", task_ids=None if task_ids is None else list(task_ids))}


def send(
    queues: Iterable[str], *, limited: Sequence[int] = (), most: int = MOST, publish: Publish | None = None
) -> None:
    """Send the next jobs of these queues, as far as there is room. Before that, admit jobs with the keys of the
    tasks `limited`. They are published by `publish`, or else by the publisher's thread."""
    its_queues = {*queues, *(admit(limited) if limited else ())}
    for queue in its_queues:
        _send("sending/pick", publish, queue=queue, floor=FLOOR, each=EACH, most=most)


def _send(statement: str, publish: Publish | None = None, **values: Any) -> None:
    """Publish the jobs that this statement notes as sent. If another process picks for the queue at this moment,
    try again, because it may not see what has just been committed."""
    with absence_translated():
        rows = run(statement, **values)
        if rows and rows[0][0] is None:
            time.sleep(TURN_SECONDS)
            rows = [row for row in run(statement, **values) if row[0] is not None]
    if rows:
        (publish or publisher.get().put)(rows)


def send_due(queues: Collection[str]) -> None:
    """Send the jobs of these queues whose time has come, and those of all queues that their limits let run now."""
    for _ in range(PAGES_OF_DUE):
        with absence_translated():
            found = run("sending/due", queues=list(queues), most=MOST)
        if not found:
            break
        send({queue for (queue,) in found})
    send_admitted()


def send_admitted() -> None:
    """Send the jobs that their limits let run now, also those of other workers' queues, because these workers may
    look at the limits only a moment later. A queue that only another Celery app of the project may have is left to
    it."""
    app = current_app
    send([one for one in admit() if app.conf.task_create_missing_queues or one in app.amqp.queues])


def send_all(queues: Collection[str]) -> None:
    """Send the next jobs of these queues, and what is overdue: the pass of each worker, for its queues."""
    send(queues)
    registered = list(current_app.tasks.items())  # another thread may register a task
    limited = [name for name, task in registered if task.rate_limit]
    often: dict[str, Any] = {"patience": PATIENCE_SECONDS, "long": LONG_SECONDS, "limited": limited}
    with absence_translated():
        run("sending/unsend")
    for queue in queues:
        _send("sending/resend", queue=queue, most=EACH, **often)


def queues_with_jobs() -> list[str]:
    """Return the queues that have jobs to send, or sent ones."""
    sent = Job.objects.filter(state=JobState.SENT)
    with absence_translated():
        return sorted({*distinct(Job.in_line(admitted=True), "queue"), *distinct(sent, "queue")})


def send_started(queues: Collection[str], execution_ids: Sequence[int], limited: Sequence[int] = ()) -> None:
    """Send for a process that has started jobs of these executions, or runs them again. `limited`: one job of each
    key that has a limit. In eager mode this process runs them. If a server is down, log it: a worker sends in a
    few seconds."""
    if mode.is_eager():
        eager.run_started(execution_ids)
        return
    try:
        send(queues, limited=limited, most=MOST_STARTED, publish=_publish)
    except SoftTimeLimitExceeded:  # it is that of a job that starts others
        raise
    except Exception as exc:  # any error of the broker's client
        log.warning(LATE, said_by(exc))


def send_behind(queues: Iterable[str], ended: Sequence[Outcome] = (), **_: Any) -> None:
    """Send what these ends make room for, and the jobs whose turn has come by them. If the database is down, a
    worker sends in a few seconds."""
    if mode.is_eager():
        eager.put_next()
        return
    try:
        needed = [one.run.task_id for one in ended if one.is_needed]
        behind: dict[int, str] = {}
        if needed:
            with_a_turn = Job.objects.filter(needs__needed__in=needed, state=JobState.WAITING, waits_for=0)
            behind = dict(with_a_turn.values_list("pk", "queue"))
        limited = [*(one.run.task_id for one in ended), *behind]
        send({*queues, *behind.values()}, limited=limited)
    except Exception as exc:
        log.warning(LATE, said_by(exc))


def _publish_or_say_why_not(rows: Sequence[Row]) -> str:
    try:
        _publish(rows)
    except Exception as exc:  # any error of the broker's client: they are sent again when they are overdue
        return LATE % said_by(exc)
    return ""


#: One thread in each process of a worker, which publishes what its other threads have picked. Its database is only
#: asked about messages that cannot be made.
publisher = PerProcess(lambda: BatchThread("publisher", _publish_or_say_why_not))


def _publish(rows: Sequence[Row]) -> None:
    """Publish in one batch what Celery's `send_task` would send, without looking up for each message what is the
    same for all, which would take longer than the rest. A message that cannot be made ends its job."""
    impossible, declared = list[Outcome](), set[str]()
    app, amqp = current_app, current_app.amqp
    # each row names its queue. A copy, to which it adds missing ones: Celery 5.6 counts all as those of a worker
    router = Router((), amqp.Queues(dict(amqp.queues)), app=app)
    same = {"ignore_result": True, "reply_to": app.thread_oid, "create_sent_event": app.conf.task_send_sent_event}
    try:
        with batch_producer() as producer:
            for task_id, job, number, name, queue, given, retries, args, kwargs in rows:
                options = json.loads(given) | {"queue": queue}
                says = {"argsrepr": args, "kwargsrepr": kwargs, "retries": retries, "root_id": job, **same}
                try:
                    route = router.expand_destination(options)
                    says |= {limit: route.pop(limit, None) for limit in ("time_limit", "soft_time_limit")}
                    message = amqp.create_task_message(job, name, kwargs=REFUSED_BY_OLDER_CODE, **says)
                    route |= {"headers": header_of(task_id, number), "declare": [] if queue in declared else None}
                    amqp.send_task_message(producer, name, message, retry=False, **route)
                    declared.add(queue)
                except QueueNotFound as exc:  # a KeyError: another Celery app of the project has the queue
                    log.warning(LATE, said_by(exc))
                except OF_A_MESSAGE as exc:
                    why = f"its message cannot be made: {said_by(exc)}"
                    impossible.append(Outcome(Run(task_id, job, number), Status.ERROR, why))
    finally:
        take(impossible)
