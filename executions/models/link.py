from django.db import models
from django.db.models import F, Q

from harbor_refresh.executions.attachment import is_attached
from harbor_refresh.executions.models.execution import Execution


class Link(models.Model):
    """A child execution counts as one task of its parent: the link's task, whose status follows that of the child
    (executions/links.py).

    A child is made after its parent, so its id is higher, and no execution is its own ancestor.
    """

    child = models.OneToOneField(
        Execution,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="link_to_parent",
        db_constraint=not is_attached(),
    )
    parent = models.ForeignKey(
        Execution,
        on_delete=models.CASCADE,
        related_name="links",
        db_index=False,
        db_constraint=not is_attached(),
    )
    #: No constraint: it is deleted with the parent.
    task_id = models.BigIntegerField("task", unique=True)
    #: Names the child within its parent; empty: it has no name.
    key = models.CharField(max_length=255, blank=True, default="")

    class Meta:
        db_table = "execution_link"
        # no screen shows these rows, so there is nothing to permit
        default_permissions = ()
        indexes = (
            # family.sql, and the child of a key
            models.Index(fields=["parent", "key"], name="link_of_parent"),
        )
        constraints = (
            models.CheckConstraint(name="link_leads_to_a_later_execution", condition=Q(child__gt=F("parent"))),
        )

    def __str__(self) -> str:
        return f"link of execution {self.child_id} to its parent {self.parent_id}"
