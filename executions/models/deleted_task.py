from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class DeletedTask(models.Model):
    """A tombstone: this task existed and was deleted, so no report about it can ever be used.

    The key is the task's own id and not a reference, because that row is gone.
    """

    task_id = models.BigIntegerField(primary_key=True)
    job_id = models.CharField(max_length=64, blank=True, default="")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "execution_deleted_task"
        indexes = (
            # the status hook, which knows the job and not the task
            models.Index(fields=["job_id"], name="deleted_task_job", condition=~Q(job_id="")),
            # forgetting: the oldest first, in batches
            models.Index(fields=["at"], name="deleted_task_age"),
        )

    def __str__(self) -> str:
        return f"deleted task {self.task_id}"
