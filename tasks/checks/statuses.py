"""Checks of the work itself: drift, reconcile, pauses, quarantine, old claims, dead letters."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from django.core.checks import CheckMessage, Error, Warning
from django.db.models import Exists, OuterRef
from django.utils import timezone

from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.news.deliveries.deliverer import NO_CODE
from harbor_refresh.executions.text import age, plural
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES, WORK
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import COMMANDS, PRESENT, Server, check
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.pipeline.reconciliation import LONG_QUEUE, look_for_drift
from harbor_refresh.tasks.pipeline.schedule import interval_of
from harbor_refresh.tasks.queue import execution_queue

#: How long to look for drift. A longer search is `reconcile --dry-run`.
LOOK_SECONDS = 3.0
#: Claims that are looked at for old ones.
MOST_CLAIMS = 40_000


@check("status.drift", "each status follows from its tasks", Server.DATABASE, Server.REDIS)
def drift(facts: Facts) -> Iterator[CheckMessage]:
    """Find statuses that differ from their tasks and wait for no refresh. Reconcile marks a new one in its next
    pass; one that several passes have missed is an error."""
    found = look_for_drift(LOOK_SECONDS)
    lost = found.drifted - found.waiting
    if not lost or found.oldest is None:
        return
    since = timezone.now() - found.oldest
    which = ", ".join(str(one.execution_id) for one in found.examples[:3])
    differ = plural(lost, "status differs", "statuses differ")
    what = f"{differ} from what the tasks say, for executions that are not on the queue, such as {which}.\n"
    passes = timedelta(seconds=pacing.RECONCILE_GRACE_SECONDS + 3 * interval_of("tasks.reconcile"))
    if since > passes:
        yield Error(f"{what}Reconcile should have found them.", "manage.py harbor repair drift")
    else:
        yield Warning(
            f"{what}The next pass of reconcile marks them.",
            "Do nothing, or mark them at once: manage.py harbor repair drift",
        )


@check("status.claims", "no claim is too old", Server.REDIS)
def old_claims(facts: Facts) -> Iterator[CheckMessage]:
    """Claims that recovery should have released. A large `processing` is read in part only."""
    queue, limit = execution_queue(), 2 * pacing.STALE_SECONDS
    before = queue.stats().now - limit * 1_000_000
    if old := sum(token.stamp < before for token in islice(queue.tokens(), MOST_CLAIMS)):
        yield Error(
            f"Recovery has not released {plural(old, 'claim')}, although more than {limit:,.0f} s have passed.",
            "Look at beat, which should send tasks.recover_stale every few seconds. Recover now, on the Queue "
            "page of the admin, does it at once.",
        )


@check("status.reconcile", "reconcile runs", Server.DATABASE, shown=PRESENT)
def reconcile_runs(facts: Facts) -> Iterator[CheckMessage]:
    state, since = facts.state, facts.state.last_reconcile
    is_postponed = (state.backlog or 0) > LONG_QUEUE
    interval = next((row.interval for row in state.schedule or () if row.task == "tasks.reconcile"), None)
    if since is not None and since > 3 * (interval or 60) + pacing.SLACK_SECONDS and not is_postponed:
        yield Error(
            f"Reconcile has not completed a pass for {age(since)}.\nMarks that were lost stay lost until it does.",
            "Check beat and the workers, or run it now: manage.py harbor repair drift",
        )


@check("status.waiting", "no execution waits for long", Server.REDIS, shown=PRESENT)
def waiting(facts: Facts) -> Iterator[CheckMessage]:
    oldest, backlog = facts.state.oldest_waiting, facts.state.backlog
    if facts.state.nodes and oldest is not None and oldest > max(60.0, 2 * facts.conf.interval):
        yield Error(
            f"An execution has waited for {age(oldest)}, with {backlog:,} on the queue.\nStatuses are that "
            "late. There are too few workers, or they hang, or they wait for locks.",
            "Look at the log of the workers, and add workers. To see what an execution waits for: "
            "manage.py harbor why ID",
        )


@check("status.paused", "nothing is paused", Server.DATABASE, shown=PRESENT)
def nothing_paused(facts: Facts) -> Iterator[CheckMessage]:
    if facts.state.pause:
        yield Error(
            "A worker found PostgreSQL down a moment ago, so no worker claims for "
            f"{pacing.DATABASE_PAUSE_SECONDS:g} s.\nExecutions wait in Redis. The outage does not count as a "
            "failed attempt of any of them.",
            "Do nothing if this passes. If it stays, look at the database, and at its max_connections.",
        )
    for name in facts.state.paused or ():
        yield Warning(
            f"An operator has paused {'refreshing' if name == WORK else f'the queue {name}'}.\nNew work waits "
            "until it is unpaused. Nothing is lost.",
            f"manage.py harbor unpause {name}, or resume it on the queue page",
        )


@check("status.quarantine", "no execution is in quarantine", Server.DATABASE, shown=PRESENT)
def quarantined(facts: Facts) -> Iterator[CheckMessage]:
    if count := facts.state.quarantined:
        yield Error(
            f"{plural(count, 'execution')} could not be refreshed and {'is' if count == 1 else 'are'} in "
            "quarantine.\nTheir status may be out of date. Each is tried again automatically "
            f"{age(pacing.QUARANTINE_SECONDS)} after it was quarantined.",
            "Read the reason of each with: manage.py harbor quarantine. Repair the cause, then release them.",
        )


@check("status.deliveries", "no notification was given up", Server.DATABASE, shown=PRESENT)
def deliveries(facts: Facts) -> Iterator[CheckMessage]:
    if count := facts.state.dead_letters:
        yield Error(
            f"{plural(count, 'notification')} could not be delivered and {'was' if count == 1 else 'were'} given "
            "up.\nThe receivers do not know of these status changes.",
            "Read the reasons under Deliveries in the admin, then send them again.",
        )


@check("status.handlers", "workers have the code of each handler and callback", Server.DATABASE, shown=COMMANDS)
def handlers_without_code(facts: Facts) -> Iterator[CheckMessage]:
    """Those that were asked for in vain, and not since then in a worker that has the code."""
    if facts.unapplied:
        return  # that is a problem of its own
    vain = Delivery.objects.filter(subscription=OuterRef("pk"), state=State.PENDING, last_error=NO_CODE)
    asked = Subscription.objects.filter(Exists(vain), enabled=True).order_by("pk")
    if names := list(asked.values_list("handler", flat=True)):
        count = plural(len(names), "handler or callback", "handlers or callbacks")
        yield Warning(
            f"A worker does not have the code of {count}, such as {names[0]}.\nTheir calls wait for it, and are "
            "given up when they are too old.",
            f"Restart the workers that take the queue {DELIVERIES}. If the log of one then says again that the "
            "code is missing, have it import the module: name it in CELERY_IMPORTS",
        )


@check("status.webhooks", "no webhook waits after failures", Server.DATABASE, shown=PRESENT)
def webhooks(facts: Facts) -> Iterator[CheckMessage]:
    for name in facts.state.waiting_webhooks or ():
        yield Warning(
            f"Nothing is sent to the webhook {name} for a while, because requests to it failed.\nNotifications "
            "wait, and are given up when they are too old.",
            "Read the last error on its page, under Subscriptions in the admin, and send a test from there.",
        )
