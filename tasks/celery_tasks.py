"""Every Celery task of ours but the jobs of a project, each with the call that does the work.

Beat sends most of them (pipeline/schedule.py). A wakeup sends `claim_batch`, too; a worker that starts, or notices
a silent node, sends `recover_stale`, and a commit with notifications `deliver`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from celery import Task, shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connections
from django.utils.module_loading import import_string

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle import gates
from harbor_refresh.executions.lifecycle.lease import LEASE
from harbor_refresh.executions.lifecycle.sweep import sweep as sweep_executions
from harbor_refresh.executions.news.deliveries.deliverer import LEASE_SECONDS, RUN_SECONDS, run_handler
from harbor_refresh.tasks.broker.celery_queues import CYCLES, ROUTES, WORK
from harbor_refresh.tasks.broker.channels import batch_producer, waiting
from harbor_refresh.tasks.conf.pacing import SWEEP_SECONDS
from harbor_refresh.tasks.jobs import terms
from harbor_refresh.tasks.jobs.report_target import fire_again
from harbor_refresh.tasks.jobs.running.handle import Handle
from harbor_refresh.tasks.jobs.running.reaper import reap as reap_jobs
from harbor_refresh.tasks.jobs.running.tracked import TrackedJob
from harbor_refresh.tasks.news import samples
from harbor_refresh.tasks.news.state import look
from harbor_refresh.tasks.operations import bulk, delivery_runs
from harbor_refresh.tasks.operations.pauses import is_refreshing_paused
from harbor_refresh.tasks.pipeline import reconciliation
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.recovery import recover
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.strategies import strategy
from harbor_refresh.tasks.strategies.exclusion import only_cycle_of_this_worker

if TYPE_CHECKING:
    from celery.result import AsyncResult

#: While so many messages wait for ticks, no other tick is sent; and while so many wait, none of those that come
#: seldom. Jobs of actions are among them (operations/bulk.py).
MAX_WAITING, MAX_WAITING_OF_RARE = 4 + bulk.MAX_OPEN, 8 + bulk.MAX_OPEN
EXPIRES_SECONDS = 24 * 3_600

#: A run of handlers ends before the lease of its claim does, so that a call that hangs takes one process, and not
#: another one with each lease. It begins its last call within RUN_SECONDS, so each has CALL_SECONDS at least. Then
#: Celery raises an exception in it, and later kills its process; the attempt counts. The pool gevent has only the
#: second limit, which ends the call; the pools threads and solo have none.
SOFT_SECONDS = int(LEASE_SECONDS) - 10
HARD_SECONDS = int(LEASE_SECONDS) - 5
CALL_SECONDS = SOFT_SECONDS - int(RUN_SECONDS)


class Actor(Task):  # type: ignore[type-arg]
    """Its options do not depend on the settings of the project, but for limits of time. A message is acknowledged
    when its task has ended, and goes back to the broker when its process dies. No result is stored."""

    abstract = True
    acks_late = True
    reject_on_worker_lost = True
    #: It would override the option above, and drop the message after a few deaths.
    retry_on_worker_lost = False
    ignore_result = True
    #: A queue of Redis is a list for each priority, of which `waiting` counts one.
    priority = 0
    rate_limit = ""


class Tick(Actor):
    """A scheduled task. It is not sent while `most_waiting` messages wait in its queue of the broker, so ticks do
    not pile up, however many beats run and however many workers are down. It expires late, because expiry compares
    the clocks of two machines, and a clock that is a minute off must not stop the schedule."""

    abstract = True
    most_waiting = MAX_WAITING

    def apply_async(self, *args: Any, **options: Any) -> "AsyncResult[Any] | None":  # type: ignore[override]
        if waiting(ROUTES[self.name]["queue"]) >= self.most_waiting:
            return None
        options.setdefault("expires", EXPIRES_SECONDS)
        result: AsyncResult[Any] = super().apply_async(*args, **options)
        return result

    def go_on(self, *args: Any, after: float = 0) -> None:
        """Send the rest of the running tick, however many ticks wait: it takes the place of the running one."""
        super().apply_async(args, countdown=after, expires=EXPIRES_SECONDS)


class LongTick(Tick):
    """A tick with a time limit of a day, because that of a project would interrupt a long pass, or a deadline that
    stops a million jobs, each time. Frequent ticks have none, because Celery keeps the timer of each until its
    limit."""

    abstract = True
    soft_time_limit = time_limit = EXPIRES_SECONDS


@shared_task(name="tasks.claim_batch", base=Tick)
def claim_batch() -> int:
    """The tick: claim waiting executions and fan them out over the workers. Any number of ticks may run at once,
    because claiming is atomic. pipeline/wakeup.py and the schedule send it. With an older design it sends the tick
    to every live worker."""
    if strategy().runs_cycles:
        execution_queue().tick_ran()
        if not is_refreshing_paused():
            broadcast()
        return 0
    return dispatch(publish, waiting(WORK))


def publish(claims: Sequence[Claim]) -> None:
    with batch_producer() as producer:
        for claim in claims:
            refresh_executions.apply_async(
                (claim.to_message(),),
                producer=producer,
                argsrepr=f"({claim})",  # type: ignore[call-arg]  # celery-types does not know it
                retry=False,
            )


@shared_task(name="tasks.refresh_executions", base=Actor)
def refresh_executions(claim: dict[str, Any]) -> dict[str, int]:
    """Refresh the executions of one claim and complete it. The first delivery takes the tokens over, so a second
    finds them gone and does nothing. If the first fails, the claim is recovered from the node that took it
    over."""
    outcome = refresh_claim(Claim.from_message(claim))
    return {"succeeded": outcome.succeeded, "failed": len(outcome.failed)}


@shared_task(name="tasks.run_cycle", base=Actor, acks_late=False)
def run_cycle() -> dict[str, int]:
    """Run a cycle of an older design, in which every node does its part. It is not acknowledged late, so it is
    never delivered again. A worker that still runs a cycle drops it."""
    design = strategy()
    with only_cycle_of_this_worker() as is_only:
        if not is_only or not design.runs_cycles:
            return {"dropped": 1}
        outcome = design.cycle()
    return {"succeeded": outcome.succeeded, "failed": len(outcome.failed)}


def broadcast() -> None:
    run_cycle.apply_async(queue=CYCLES, expires=EXPIRES_SECONDS, retry=False)


def subscribe(instance: Any, **_: Any) -> None:
    """Make the worker listen for cycles of an older design, whatever queues it was given with -Q."""
    if strategy().runs_cycles:
        instance.app.amqp.queues.select_add(CYCLES)


@shared_task(name="tasks.recover_stale", base=LongTick)
def recover_stale() -> int:
    """Release the claims of dead nodes, and look after all that should not wait for its own schedule, which needs
    PostgreSQL alone: a Redis that is down does not hold it up."""
    with ExitStack() as then:  # which calls the last one first, and each of them although another one fails
        # fire_again is called last, because the report target may be slow
        for work in (fire_again, delivery_runs.recover, terms.carry_out, gates.close_overdue):
            then.callback(_unless_down, work)
        return recover(idle=not waiting(WORK))


def _unless_down(work: Callable[[], object]) -> None:
    with suppress(DatabaseDown), absence_translated():
        work()


@shared_task(name="tasks.reconcile", base=LongTick, most_waiting=MAX_WAITING_OF_RARE)
def reconcile() -> dict[str, int]:
    outcome = reconciliation.reconcile(yielding=True)
    return {"looked_at": outcome.looked_at, "marked": outcome.marked}


@shared_task(name="tasks.reap", base=Tick, most_waiting=MAX_WAITING_OF_RARE)
def reap() -> dict[str, int]:
    """Fire reports again that the report target has not taken, and fail jobs that fell silent."""
    return asdict(reap_jobs())


@shared_task(name="tasks.sweep", base=LongTick, bind=True, most_waiting=MAX_WAITING_OF_RARE)
def sweep(self: Tick, step: str = "", position: Any = ()) -> dict[str, int]:
    """Delete old executions and other old rows. One pass runs at a time.

    It works for SWEEP_SECONDS; then it sends itself again, with the place where it stopped. If its worker was
    killed, the message comes again while the old lease is in force, and waits for its end.
    """
    outcome = sweep_executions(step, tuple(position), seconds=SWEEP_SECONDS)
    if outcome.stopped_at:
        self.go_on(*outcome.stopped_at)
    elif step and (outcome.held or outcome.lease_lost):
        self.go_on(step, position, after=LEASE.total_seconds())
    return {"executions": outcome.executions}


@shared_task(name="tasks.sample", base=Tick, most_waiting=1)
def sample() -> int:
    """Write down the state of the service, for the charts. It is not sent while another tick waits, so it never
    delays one."""
    state = look()
    if "database" in state.absent:
        return 0
    samples.record(state)
    return 1


@shared_task(name="tasks.deliver", base=Tick, most_waiting=delivery_runs.MAX_WAITING_RUNS)
def deliver() -> None:
    """Send webhooks what is due, all of them at once, and ask for handlers. If anything is left after RUN_SECONDS,
    it sends itself again."""
    delivery_runs.run()


@shared_task(name="tasks.run_handlers", base=Actor, soft_time_limit=SOFT_SECONDS, time_limit=HARD_SECONDS)
def run_handlers(subscription_id: int) -> None:
    """Call one handler for the status changes that are due for it, so that it delays neither webhooks nor other
    handlers. While deliveries are paused, it does nothing: a run of deliveries asks again later."""
    if not delivery_runs.is_paused() and run_handler(subscription_id, _limited):
        run_handlers.delay(subscription_id)


@contextmanager
def _limited() -> Iterator[None]:
    """Say what the limit is. A connection may be in the middle of a query and can make no other one, so all are
    closed."""
    try:
        yield
    except SoftTimeLimitExceeded as exc:
        connections.close_all()
        raise TimeoutError(f"the call took longer than {CALL_SECONDS} s") from exc


@shared_task(
    base=TrackedJob,
    name="tasks.act_on_many",
    keep_result=True,
    max_attempts=bulk.ATTEMPTS,
    max_retries=bulk.ATTEMPTS - 1,
    autoretry_for=(DatabaseDown,),
    retry_kwargs={"countdown": 5},
    retry_on_worker_lost=False,
    ignore_result=True,
)
def act_on_many(job: Handle, so_far: Any, verb: str, chosen: Any, ids: Any) -> Any:
    return bulk.act(job, so_far, verb, chosen, ids)


@shared_task(base=TrackedJob, name="harbor_refresh.task", keep_result=True)
def run_task(job: Handle, path: str, args: list[Any], kwargs: dict[str, Any], using: dict[str, Any]) -> Any:
    """Run the task of Django's framework at this path. `using`: the backend, queue and priority of its enqueue."""
    task = import_string(path)
    if not callable(getattr(task, "get_backend", None)):
        raise TypeError(f"{path} is no task: it has no @task")
    task = task.using(**using)
    return task.get_backend().run(job, task, args, kwargs)
