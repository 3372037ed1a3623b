from django.db import models
from django.db.models import Q

from harbor_refresh.tasks.models.job import Job


class JobEnd(models.Model):
    """What is kept of the end of a run: the result, or why it was not kept, or the traceback of an error.

    A job has a row if its task asks for `keep_result`, or once it has failed. The row is of the run of `revision`,
    and counts while the task has that revision: an end that another run has followed is not shown any more.
    """

    # the constraint is in sql/jobs_go_with_their_tasks.sql: there it can say ON DELETE CASCADE
    job = models.OneToOneField(
        Job, on_delete=models.CASCADE, primary_key=True, related_name="kept_end", db_constraint=False
    )
    revision = models.BigIntegerField()
    result = models.JSONField(null=True)
    why_not = models.TextField(db_default="")
    traceback = models.TextField(db_default="")

    class Meta:
        db_table = "execution_job_end"
        default_permissions = ()
        constraints = (
            models.CheckConstraint(
                name="job_end_has_one_kind",
                condition=Q(why_not="", traceback="")
                | Q(result__isnull=True, traceback="")
                | Q(result__isnull=True, why_not=""),
            ),
        )

    def __str__(self) -> str:
        return f"the end of job {self.job_id} in revision {self.revision}"
