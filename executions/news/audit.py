"""The log of actions: what users, and programs with a token, did in the admin, over the API and in a terminal.

An entry is written in the transaction of its act, so a crash leaves both or neither, and an act that was refused
or rolled back has no entry. Reports and created executions are work and no actions. A verb for many executions has
one entry, when it is asked for: the execution that does it is the target, and the filter is the detail.
"""

import getpass
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest

from harbor_refresh.executions.database import delete_first
from harbor_refresh.executions.models import AuditEntry
from harbor_refresh.executions.models.operations import MAX_DETAIL, MAX_NAME, MAX_TARGET, Origin, Outcome
from harbor_refresh.executions.text import made_storable

__all__ = ["Origin", "Outcome"]

#: The most entries that are kept, about 300 MB with their indexes.
KEPT = 1_000_000


#: What was done.
Word = StrEnum(
    "Word",
    "STOP RETRY RESUME REFRESH DELETE FINISH SWEEP RELEASE RECOVER RECONCILE PAUSE CREATE CHANGE REVOKE ROTATE "
    "RESEND TEST RUN EXPORT",
)


#: The kind of the target. `target` is its id, or its name if it has no id; empty: all of them.
Target = StrEnum(
    "Target",
    "EXECUTION EXECUTIONS TASK QUARANTINE QUEUE LIMIT TOKEN SUBSCRIPTION DELIVERY SCHEDULE INTERVAL CRONTAB "
    "USER GROUP",
)


@dataclass(frozen=True)
class Person:
    """A person, or a program with a token. `address` is where the request came from."""

    name: str
    origin: Origin
    address: str = ""


def person_of(request: HttpRequest) -> Person:
    """Return the sender of a request: the token of the API, else the user of the admin.

    The address is that of the connection. A header such as X-Forwarded-For is what a client says of itself, so
    it is not used; behind a proxy the address is the proxy's.
    """
    address = request.META.get("REMOTE_ADDR") or ""
    token = getattr(request, "auth", None)
    if token is not None:
        return Person(f"{token.name} (token {token.pk})", Origin.API, address)
    user = getattr(request, "user", None)
    return Person(user.get_username() if user is not None else "", Origin.ADMIN, address)


def at_terminal() -> Person:
    """The user and the machine of this process."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may have no name
        name = ""
    return Person(name, Origin.TERMINAL, socket.gethostname())


def outcome_of(changed: int, failed: bool = False) -> Outcome:
    return Outcome.FAILED if failed else Outcome.DONE if changed else Outcome.UNCHANGED


def note(person: Person, verb: str, kind: str, target: str | int = "", **known: Any) -> AuditEntry:
    """Write an entry. Call it in the transaction of the act, or use `noted`."""
    with noted(person, verb, kind, target) as entry:
        for name, value in known.items():
            setattr(entry, name, value)
    return entry


def forget(before: Any, most: int = 1_000) -> int:
    """Delete the oldest entries, `most` of them: those from before this moment, and those beyond the newest
    KEPT, because a program with a token may write many. Return how many."""
    newest = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    for old, order in ((Q(at__lt=before), "at"), (Q(pk__lte=newest - KEPT), "pk")):
        if count := delete_first(AuditEntry.objects.filter(old).order_by(order), most):
            return count
    return 0


@contextmanager
def noted(person: Person, verb: str, kind: str, target: str | int = "") -> Iterator[AuditEntry]:
    """Do something, and write its entry in the same transaction: either both are committed, or neither is.

        with noted(person_of(request), Word.STOP, Target.EXECUTION, 7) as entry:
            entry.count = stop(7)

    The act may set each field of the entry; if it sets `skip`, no entry is written. What the act does on commit,
    such as asking a running job to stop, happens after the commit of both.
    """
    entry = AuditEntry(by=person.name, origin=person.origin, address=person.address, verb=verb, kind=kind)
    entry.target, entry.outcome, entry.detail = target, Outcome.DONE, ""
    with transaction.atomic():
        yield entry
        if not entry.skip:
            texts = {"by": MAX_NAME, "address": MAX_NAME, "target": MAX_TARGET, "detail": MAX_DETAIL}
            for name, most in texts.items():
                setattr(entry, name, made_storable(str(getattr(entry, name)))[:most])
            entry.save(force_insert=True)
