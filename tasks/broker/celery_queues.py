"""The four queues in the broker, and the channel that reaches every worker."""

from kombu import Exchange, Queue

#: Refresh subtasks. The claim bounds its length, because a backlog waits in the set and not here.
WORK = "harbor_refresh"
#: Tracked jobs, and messages without a queue of their own. Separate from the refreshes, which would wait behind
#: thousands of jobs; a worker takes from its queues in turns.
JOBS = "harbor_refresh.jobs"
#: Ticks, and the jobs of actions on many executions. Separate from the work, so that a long queue of work does not
#: hide that no worker takes ticks.
TICKS = "harbor_refresh.ticks"
#: Deliveries to webhooks, and the handlers of status changes, which may take long. Separate, so that workers
#: of their own can take them.
DELIVERIES = "harbor_refresh.deliveries"
#: All four, in the order of the path of a change.
QUEUES = (TICKS, WORK, JOBS, DELIVERIES)
#: Not a queue but a channel of Redis's PUBLISH: every worker that listens gets each message. All use one name,
#: because each stays in `_kombu.binding.*` for ever if its worker is killed. Nothing is acknowledged, because the
#: message of a dead worker would move to a list without readers. A kombu `Broadcast`, which the sender does not
#: declare, would fill that list, too.
CYCLES = Queue(
    "harbor_refresh.cycles",
    Exchange("harbor_refresh.cycles", type="fanout"),
    routing_key="harbor_refresh.cycles",
    no_ack=True,
)

#: The queue of each Celery task of this package, by its full name: a host project may have a module `tasks`, too,
#: whose Celery tasks are its own.
ROUTES = {
    "tasks.claim_batch": {"queue": TICKS},
    "tasks.recover_stale": {"queue": TICKS},
    "tasks.reconcile": {"queue": TICKS},
    "tasks.reap": {"queue": TICKS},
    "tasks.deliver": {"queue": DELIVERIES},
    "tasks.run_handlers": {"queue": DELIVERIES},
    "tasks.act_on_many": {"queue": TICKS},
    "tasks.sweep": {"queue": TICKS},
    "tasks.sample": {"queue": TICKS},
    "tasks.refresh_executions": {"queue": WORK},
    "tasks.run_cycle": {"queue": WORK},
}
