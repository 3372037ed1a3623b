"""Delete executions, with their tasks, their jobs and their history."""

from collections.abc import Iterable
from functools import partial

from django.db import transaction

from executions.models import Execution, Job, Quarantine, StatusChange, Task
from executions.status import FINAL_CODE


def delete(execution_ids: Iterable[int]) -> int:
    """Delete them, set by set; returns how many there were. Their jobs are not begun any more, and, after the
    commit, asked to stop.

    Rows are locked as everywhere: executions before tasks, each in id order.

    A mark or a claim that is left of them is completed silently by whoever meets it. A refresh that holds
    the row's lock ends first; one that comes later finds nothing.
    """
    # the jobs have use cases of their own, which are built on these
    from executions.usecases.jobs.stopping import ask_to_stop

    ids = list(execution_ids)
    with transaction.atomic():
        locked = list(
            Execution.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk", flat=True)
        )
        tasks = Task.objects.select_for_update().filter(execution_id__in=locked).order_by("pk")
        for _ in tasks.values_list("pk").iterator():
            pass
        jobs = Job.objects.filter(task__execution_id__in=locked)
        unfinished = jobs.filter(task__status_code__lt=FINAL_CODE).values_list("task__job_id", flat=True)
        transaction.on_commit(partial(ask_to_stop, list(unfinished)))
        jobs._raw_delete(using="default")
        for model in (Task, StatusChange, Quarantine):
            model._default_manager.filter(execution_id__in=locked)._raw_delete(using="default")
        Execution.objects.filter(pk__in=locked)._raw_delete(using="default")
    return len(locked)
