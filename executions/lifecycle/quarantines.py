"""Quarantine executions that failed too often, and release them again."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now

from harbor_refresh.executions.models import Execution, Quarantine, Release, Task
from harbor_refresh.executions.news import counters, signals
from harbor_refresh.executions.news.after_commit import tell_touched_after_commit

LOST = "the process that refreshed it died or never ended"


def quarantine(execution_ids: Sequence[int], attempts: int, reasons: Mapping[int, str] | None = None) -> None:
    """Quarantine these executions after so many attempts. They have left the queue already. If the process dies
    before the commit, reconcile finds their drift, and they fail until they are quarantined again."""
    if not execution_ids:
        return
    for_each = dict.fromkeys(execution_ids, LOST) | dict(reasons or {})
    with transaction.atomic():
        locked = Execution.objects.select_for_update(no_key=True).filter(pk__in=execution_ids).order_by("pk")
        there = list(locked.values_list("pk", flat=True))
        Quarantine.objects.bulk_create(
            [Quarantine(execution_id=pk, reason=for_each[pk], attempts=attempts) for pk in there],
            update_conflicts=True,
            unique_fields=["execution"],
            update_fields=["reason", "attempts"],
        )
        counters.add({("quarantines", ""): len(there)})
    signals.quarantined.send(sender=quarantine, execution_ids=there, reasons=for_each)


def release(execution_ids: Iterable[int]) -> list[int]:
    """Release these executions and mark them for another try. Return those that were in quarantine.

    Their tasks may have changed long before the watermark. A row in execution_release makes the next pass of
    reconcile look at those changes, so that it finds the executions even if this mark is lost. The row commits
    together with the release, so a pass that did not see the release does not see the row either.
    """
    with transaction.atomic():
        rows = Quarantine.objects.filter(execution_id__in=list(execution_ids)).order_by("pk")
        return _release(rows.select_for_update())


def release_expired(after: timedelta) -> list[int]:
    """Release executions that have been in quarantine for longer than `after`: a failure may be temporary."""
    with transaction.atomic():
        rows = Quarantine.objects.filter(at__lt=Now() - after)
        return _release(rows.select_for_update(skip_locked=True))


def _release(rows: QuerySet[Quarantine]) -> list[int]:
    ids = list(rows.values_list("execution_id", flat=True))
    if ids:
        Quarantine.objects.filter(execution_id__in=ids).delete()
        tasks = Task.objects.filter(execution_id__in=ids).order_by().values("execution_id")
        changes = [one["last"] for one in tasks.annotate(last=Max("update_time")) if one["last"]]
        if changes:
            Release.objects.create(changed_at=min(changes))
        free = Execution.objects.filter(pk__in=ids).values_list("pk", "vendor_type")
        tell_touched_after_commit(free)
        signals.released_from_quarantine.send(sender=release, execution_ids=ids)
    return ids
