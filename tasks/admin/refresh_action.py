"""The action `Refresh now`, and the messages that it shows."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest

from harbor_refresh.executions.access.audit import Kind, Outcome, Word
from harbor_refresh.executions.admin.audit import noted
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.lifecycle.rollup import Refreshed, refresh
from harbor_refresh.executions.models import Execution, Quarantine
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.id_list import id_list
from harbor_refresh.tasks.pipeline.marks import mark
from harbor_refresh.tasks.queue.members import member

MAX_REFRESHED = 100
MAX_LISTED = 5


def refresh_now(request: HttpRequest, chosen: Sequence[tuple[int, str]]) -> None:
    """Refresh these executions (id, vendor) in this request, each in a transaction of its own with its entries in
    the logs. If the database goes away, mark those that are left."""
    if len(chosen) > MAX_REFRESHED:
        messages.error(
            request,
            f"Nothing was refreshed: {MAX_REFRESHED:,} at once is the most. "
            "Choose all that match, and workers do it.",
        )
        return
    outcome, left = Refreshed(), dict(chosen)
    held: list[int] = []
    try:
        with absence_translated():
            held += Quarantine.objects.filter(pk__in=left).order_by("pk").values_list("pk", flat=True)
            for execution in Execution.objects.filter(pk__in=set(left) - set(held)).order_by("pk"):
                outcome += _refresh(request, execution)
                del left[execution.pk]
    except DatabaseAway as exc:
        _mark_instead(request, sorted(left.items()), exc)
    _tell(request, outcome, held)


def _refresh(request: HttpRequest, execution: Execution) -> Refreshed:
    with noted(request, Word.REFRESH, Kind.EXECUTION, execution) as entry:
        outcome = refresh([execution.pk])
        entry.skip = not (outcome.succeeded or outcome.failed)  # deleted or quarantined meanwhile
        entry.detail = outcome.failed.get(execution.pk, "")
        entry.outcome = Outcome.FAILED if entry.detail else Outcome.DONE if outcome.changed else Outcome.UNCHANGED
    return outcome


def _tell(request: HttpRequest, outcome: Refreshed, held: Sequence[int]) -> None:
    if outcome.succeeded:
        refreshed = plural(outcome.succeeded, "execution")
        messages.success(request, f"{refreshed} refreshed, {outcome.changed:,} changed.")
    if held:
        messages.warning(
            request,
            f"In quarantine, so left alone: {id_list(held, at_most=MAX_LISTED)}. "
            "Release them from quarantine to try them again.",
        )
    for pk, reason in list(outcome.failed.items())[:MAX_LISTED]:
        messages.error(request, f"Execution {pk} could not be refreshed: {reason}")
    if len(outcome.failed) > MAX_LISTED:
        messages.error(request, f"{len(outcome.failed) - MAX_LISTED:,} more could not be refreshed.")


def _mark_instead(request: HttpRequest, chosen: Sequence[tuple[int, str]], reason: DatabaseAway) -> None:
    if mark(member(pk, vendor) for pk, vendor in chosen):
        marked = plural(len(chosen), "execution")
        messages.warning(request, f"{reason}. {marked} marked instead: the workers refresh them when it is back.")
    else:
        messages.error(request, f"{reason}, and Redis is away too. Reconcile will find these executions.")
