"""Delete executions, with their tasks and their history."""

from collections.abc import Iterable

from django.db import transaction

from executions.models import Execution, Quarantine, StatusChange, Task
from executions.news import tell_deleted_after_commit
from executions.status import FINAL_CODE


def delete(execution_ids: Iterable[int]) -> int:
    """Delete them, set by set; returns how many there were. Jobs of their tasks go with them (a constraint of the
    table of jobs): they are not begun any more, and, after the commit, asked to stop.

    Rows are locked as everywhere: executions before tasks, each in id order.

    A mark or a claim that is left of them is completed silently by the worker that meets it. A refresh that holds
    the row's lock ends first; one that comes later finds nothing.
    """
    ids = list(execution_ids)
    with transaction.atomic():
        locked = list(
            Execution.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk", flat=True)
        )
        tasks = Task.objects.select_for_update().filter(execution_id__in=locked).order_by("pk")
        for _ in tasks.values_list("pk").iterator():
            pass
        unfinished = Task.objects.filter(execution_id__in=locked, status_code__lt=FINAL_CODE).exclude(job_id="")
        tell_deleted_after_commit(locked, unfinished.values_list("job_id", flat=True))
        for model in (Task, StatusChange, Quarantine):
            model._default_manager.filter(execution_id__in=locked)._raw_delete(using="default")
        Execution.objects.filter(pk__in=locked)._raw_delete(using="default")
    return len(locked)
