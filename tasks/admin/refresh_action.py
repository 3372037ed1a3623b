"""The action `Refresh now`, and the messages that it shows."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest

from executions.errors import DatabaseAway
from executions.models import Quarantine
from executions.rollup import refresh
from tasks.id_list import id_list
from tasks.pipeline.marks import mark
from tasks.queue.members import member

MAX_REFRESHED = 1_000
MAX_LISTED = 5


def refresh_now(request: HttpRequest, chosen: Sequence[tuple[int, str]]) -> None:
    """Refresh these executions (id, vendor) in this request; mark them if the database goes away."""
    if len(chosen) > MAX_REFRESHED:
        messages.error(
            request,
            f"Nothing was refreshed: {MAX_REFRESHED:,} at once is the most. "
            "`manage.py refresh_queue mark` marks any number for the workers.",
        )
        return
    ids = [pk for pk, _ in chosen]
    try:
        held = list(Quarantine.objects.filter(pk__in=ids).values_list("pk", flat=True))
        outcome = refresh(ids)
    except DatabaseAway as exc:
        _mark_instead(request, chosen, exc)
        return
    tried = len(ids) - len(held) - len(outcome.failed)
    if tried > 0:
        messages.success(request, f"{executions(tried)} refreshed, {outcome.changed:,} changed.")
    if held:
        messages.warning(
            request,
            f"In quarantine, so left alone: {id_list(held, at_most=MAX_LISTED)}. "
            "Release them there to try them again.",
        )
    for pk, reason in list(outcome.failed.items())[:MAX_LISTED]:
        messages.error(request, f"Execution {pk} could not be refreshed: {reason}")
    if len(outcome.failed) > MAX_LISTED:
        messages.error(request, f"{len(outcome.failed) - MAX_LISTED:,} more could not be refreshed.")


def _mark_instead(request: HttpRequest, chosen: Sequence[tuple[int, str]], reason: DatabaseAway) -> None:
    if mark(member(pk, vendor) for pk, vendor in chosen):
        messages.warning(
            request,
            f"{reason}. {executions(len(chosen))} marked instead: the workers refresh them when it is back.",
        )
    else:
        messages.error(request, f"{reason}, and Redis is away too. Reconcile will find these executions.")


def executions(count: int) -> str:
    return "1 execution" if count == 1 else f"{count:,} executions"
