"""What binds executions and tasks together: parents, gates, additions, keys of vendors, deleted tasks."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.execution import OF_EXECUTION, Execution, OwnRow


class Link(OwnRow):
    """A child execution counts as one task of its parent: the link's task, whose status follows that of the child
    (executions/lifecycle/links.py).

    A child is made after its parent, so its id is higher, and no execution is its own ancestor.
    """

    child = models.OneToOneField(Execution, primary_key=True, related_name="link_to_parent", **OF_EXECUTION)
    parent = models.ForeignKey(Execution, related_name="links", db_index=False, **OF_EXECUTION)
    #: No constraint: it is deleted with the parent.
    task_id = models.BigIntegerField("task", unique=True)
    #: Names the child within its parent; empty: it has no name.
    key = models.CharField(max_length=255, blank=True, default="")

    class Meta:
        db_table = "execution_link"
        default_permissions = ()
        indexes = (
            # the children of an execution (links.py), and the child of a key
            models.Index(fields=["parent", "key"], name="link_of_parent"),
        )
        constraints = (
            models.CheckConstraint(name="link_leads_to_a_later_execution", condition=Q(child__gt=F("parent"))),
        )


class Gate(OwnRow):
    """What keeps an open execution from ending: one more of its tasks, Running until the execution is closed
    (executions/lifecycle/gates.py)."""

    execution = models.OneToOneField(Execution, primary_key=True, related_name="gate", **OF_EXECUTION)
    #: Its task. No constraint: if that task is deleted alone, nothing keeps the execution open.
    task_id = models.BigIntegerField("task", unique=True)
    #: When its time limit ends it. NULL: it has ended.
    closes_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_gate"
        default_permissions = ()
        indexes = (
            # gates.close_overdue
            models.Index(fields=["closes_at"], name="gate_open", condition=Q(closes_at__isnull=False)),
        )


class Added(models.TextChoices):
    TASKS = "tasks"
    CHILD = "child"


class Addition(OwnRow):
    """Tasks, or a child, that were added to an execution under a key, so that the same addition is not made twice.
    Tasks and children have keys of their own."""

    id = models.BigAutoField(primary_key=True)
    execution = models.ForeignKey(Execution, related_name="additions", db_index=False, **OF_EXECUTION)
    kind = models.CharField(max_length=5, choices=Added)
    key = models.CharField(max_length=255)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "execution_addition"
        default_permissions = ()
        constraints = (
            # its index also serves the deletion of the execution
            models.UniqueConstraint(fields=["execution", "kind", "key"], name="addition_once_a_key"),
            models.CheckConstraint(name="addition_is_of_a_kind", condition=Q(kind__in=Added.values)),
            models.CheckConstraint(name="addition_has_its_key", condition=~Q(key="")),
        )


class VendorKey(OwnRow):
    """The object of an execution whose id is text, such as a UUID (executions/lifecycle/vendor_keys.py)."""

    execution = models.OneToOneField(Execution, primary_key=True, related_name="text_key", **OF_EXECUTION)
    key = models.CharField(max_length=255)

    class Meta:
        db_table = "execution_vendor_key"
        default_permissions = ()
        indexes = (
            # the executions of a key, the newest first: Filter.apply, and the search of the admin
            models.Index(fields=["key", "-execution"], name="vendor_key_newest"),
        )
        constraints = (models.CheckConstraint(name="vendor_key_is_text", condition=~Q(key="")),)


class DeletedTask(OwnRow):
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
