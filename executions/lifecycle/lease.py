"""Leases: the right to do one kind of work, for one process at a time.

A lease is a row with a holder and an end time, by the database's clock. It is no session lock: it works through a
pooler, and a frozen process or a vanished host holds it for LEASE at most.
"""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import Error, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from harbor_refresh.executions.errors import LeaseLost
from harbor_refresh.executions.models import Lease as LeaseRow

LEASE = timedelta(seconds=15)


@dataclass(frozen=True)
class Held:
    """The process, or the pass, that has the lease, and until when."""

    holder: str
    until: datetime


class Lease:
    """The lease of that name, for one pass of this process. If it stands still for longer than the lease, another
    process may take it; then `extend` raises LeaseLost."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.holder = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"

    @contextmanager
    def taken(self) -> Iterator[Held | None]:
        """Take the lease for the block, and release it after that. If another process has it, yield which."""
        held = self.take()
        try:
            yield held
        finally:
            if not held:
                self.release()

    def take(self) -> Held | None:
        """Take the lease and return None; if another process has it, return that. If its row is locked, its holder
        works now. A lease that ends later than possible was given by a clock that has gone back."""
        rows = LeaseRow.objects.filter(name=self.name)
        rows.bulk_create([LeaseRow(name=self.name)], ignore_conflicts=True)
        is_free = Q(held_until=None) | Q(held_until__lt=Now()) | Q(held_until__gt=Now() + 2 * LEASE)
        with transaction.atomic():
            if rows.filter(is_free).select_for_update(skip_locked=True, no_key=True).first():
                rows.update(holder=self.holder, held_until=Now() + LEASE)
                return None
        row = rows.get()
        return Held(row.holder or "another", row.held_until or timezone.now() + LEASE)

    @contextmanager
    def fenced(self) -> Iterator[None]:
        """Extend the lease and do the block in one transaction, so that it writes only while the lease is ours."""
        with transaction.atomic():
            self.extend()
            yield

    def extend(self) -> None:
        """Extend the lease, expired or not; raise LeaseLost if another process has taken it over. Called first in
        a transaction, it fences what that writes: the row stays locked until its end."""
        if not self._row().update(held_until=Now() + LEASE):
            raise LeaseLost

    def release(self) -> None:
        """Release the lease. If the database cannot be reached, it expires by itself."""
        with suppress(Error):
            self._row().update(holder=None, held_until=None)

    def _row(self) -> QuerySet[LeaseRow]:
        return LeaseRow.objects.filter(name=self.name, holder=self.holder)
