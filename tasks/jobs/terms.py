"""Terms: what `start` was told about an execution as a whole.

The row is written in the transaction that makes the execution, and deleted with it. An execution for which nothing
of this was asked has no row.

`once`: the unique constraint decides which of several starts with one key makes the execution. The others wait for
its commit and find the execution.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from harbor_refresh.executions.database import violates
from harbor_refresh.executions.errors import Contended, Refused
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.text import is_text, shown
from harbor_refresh.tasks.models.terms import Terms

MAX_ONCE = Terms._meta.get_field("once").max_length or 0


@dataclass(frozen=True)
class NewTerms:
    """`once`: the key of the execution among those of its vendor type; empty: it has none."""

    once: str = ""

    def __post_init__(self) -> None:
        if not is_text(self.once, MAX_ONCE):
            raise Refused(f"once takes text of at most {MAX_ONCE} characters, and got {shown(self.once)}")


def started(once: str, vendor_type: str) -> Execution | None:
    """Return the execution of this vendor type that was started under the key."""
    return Execution.objects.filter(terms__vendor_type=vendor_type, terms__once=once).first() if once else None


def create_with(new: NewTerms, make: Callable[[], Execution]) -> tuple[Execution, bool]:
    """Make an execution with these terms, in the caller's transaction. Return it, and whether it is new: if there
    is one with the same key, made by another transaction, return that one and make nothing."""
    if new == NewTerms():
        return make(), True
    try:
        with transaction.atomic():
            execution = make()
            Terms.objects.create(execution=execution, vendor_type=execution.vendor_type, once=new.once or None)
    except IntegrityError as exc:
        if not violates(exc, "terms_once"):
            raise
        if found := started(new.once, execution.vendor_type):
            return found, False
        raise Contended from exc  # it was deleted at this moment
    return execution, True
