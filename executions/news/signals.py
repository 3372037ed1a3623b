"""Signals of what happens to executions, and the log line of each. No other module of this app writes a log.
A signal is sent with the parameters of the function that logs it, or with the names that `logged` lists, where
execution_ids may be sent instead of a count.

Operators grep for these lines and docs/reference/log.md lists them, so their words do not change.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from logging import ERROR, INFO, WARNING
from typing import Any

from django.dispatch import Signal

log = logging.getLogger("harbor_refresh")

#: The most lines for one signal; one more line counts the rest.
MAX_LINES = 5
#: The most ids that one line names beside its text (`extra`, which JSON lines show).
MAX_IDS = 20


def logged_by(write: Callable[..., None]) -> Signal:
    """Return a signal that this function logs."""
    signal = Signal()
    signal.connect(write, weak=False)
    return signal


def logged(level: int, text: str, *names: str) -> Signal:
    """Return a signal that writes the text with these of its values; `count`: the number of its ids."""

    @logged_by
    def signal(execution_ids: Sequence[int] = (), **values: Any) -> None:
        values.setdefault("count", len(execution_ids))
        shown = (", ".join(one) if isinstance(one, list | tuple) else one for one in map(values.get, names))
        log.log(level, text, *shown, extra={"execution_ids": execution_ids[:MAX_IDS]} if execution_ids else {})

    return signal


handler_nameless = logged(ERROR, "The handler %s is not called: another subscription has its name", "handler")
handler_missing = logged(
    WARNING, "Handler %s has no code in this worker, and is not called until its code is back", "handler"
)
#: A claim is released, and its attempt is not counted.
database_down = logged(WARNING, "The database is down, %d executions wait for it: %s", "count", "error")
released_from_quarantine = logged(INFO, "Released %d executions from quarantine for another try", "count")
closed_overdue = logged(
    WARNING, "Closed %d open executions at their time limit: their producers did not close them", "count"
)


@logged_by
def refreshed(outcome: Any, **_: Any) -> None:
    log.info(
        "Refresh outdate execution status done, %d succeed, %d failed", outcome.succeeded, len(outcome.failed)
    )
    for execution_id, reason in list(outcome.failed.items())[:MAX_LINES]:
        log.warning(
            "Execution %d could not be refreshed: %s", execution_id, reason, extra={"execution_id": execution_id}
        )


@logged_by
def quarantined(execution_ids: Sequence[int], reasons: Mapping[int, str], **_: Any) -> None:
    for execution_id in execution_ids:
        log.error(
            "Quarantined execution %d: %s. Release it with: manage.py harbor quarantine --release %d",
            execution_id,
            reasons[execution_id],
            execution_id,
            extra={"execution_id": execution_id},
        )


@logged_by
def refused(refusals: Sequence[Any], **_: Any) -> None:
    for refusal in refusals[:MAX_LINES]:
        log.warning(
            "Refused report %d of a batch: %s",
            refusal.position,
            refusal.reason,
            extra={"task_id": refusal.report.task_id},
        )
    if len(refusals) > MAX_LINES:
        log.warning("Refused %d more reports of that batch", len(refusals) - MAX_LINES)


@logged_by
def deliveries_died(deliveries: Sequence[Any], **_: Any) -> None:
    by_name = Counter(one.subscription.name for one in deliveries)
    for name, count in by_name.most_common(MAX_LINES):
        first = next(one for one in deliveries if one.subscription.name == name)
        log.error(
            "Gave up %d deliveries to %s, the first is revision %d of execution %d; they can be sent again",
            count,
            name,
            first.revision,
            first.execution_id,
            extra={"subscription": name, "execution_id": first.execution_id},
        )
    if len(by_name) > MAX_LINES:
        log.error("Gave up deliveries to %d more subscriptions", len(by_name) - MAX_LINES)


@logged_by
def handler_failed(handler: str, change: Any, error: str, **_: Any) -> None:
    log.warning(
        "Handler %s failed for %s, it is called again later: %s",
        handler,
        change.id,
        error,
        extra={"change": change.id, "execution_id": change.execution_id},
    )


@logged_by
def swept(outcome: Any, **_: Any) -> None:
    if outcome.held:
        log.info(
            "Sweep is running already, left alone: %s has the lease until %s",
            outcome.held.holder,
            outcome.held.until.isoformat(),
        )
    if outcome.lease_lost:
        log.warning("Sweep lost its lease to another sweep and ended: it had stood still for too long")
    if outcome.executions or outcome.forgotten:
        log.info(
            "Sweep deleted %d executions, %d tasks and %d old rows",
            outcome.executions,
            outcome.tasks,
            sum(outcome.forgotten.values()),
        )
    if outcome.passed:
        log.warning(
            "Sweep passed %d executions that the database does not let it delete, such as execution %s",
            outcome.passed,
            outcome.example,
        )
    for step, error in outcome.failed.items():
        log.error("Sweep left its step %r, which failed: %s", step, error, exc_info=error)
