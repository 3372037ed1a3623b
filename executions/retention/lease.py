"""Leases: the right to do one kind of work, for one process at a time.

A lease is a row with a holder and an end time, by the database's clock. It is no session lock: a frozen process
or a vanished host holds it for LEASE at most, and it works through a pooler that gives each transaction another
session.
"""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import Error, transaction

from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import LeaseLost

LEASE = timedelta(seconds=15)


@dataclass(frozen=True)
class Held:
    """The process, or the pass, that has the lease, and until when."""

    holder: str
    until: datetime


class Lease:
    """The lease of that name, for one pass of this process.

    If two processes take it at once, the row's lock lets one of them. If the process dies, the lease expires. If
    it stands still for longer than the lease, another process may take it; then `extend` raises LeaseLost.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.holder = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        #: The lease that this one took over, because it had expired.
        self.expired: Held | None = None

    def take(self) -> Held | None:
        """Take the lease and return None; if another process has it, return that."""
        run("make_lease", work=self.name)
        taken, holder, until = run("take_lease", work=self.name, holder=self.holder, lease=LEASE)[0]
        known = Held(holder, until) if holder else None
        if not taken:
            return known
        self.expired = known
        return None

    @contextmanager
    def fenced(self) -> Iterator[None]:
        """Extend the lease and do the block in one transaction, so that it writes only while the lease is ours."""
        with transaction.atomic():
            self.extend()
            yield

    def extend(self) -> None:
        """Extend the lease, or raise LeaseLost. Called first in a transaction, it fences what that writes."""
        if not run("extend_lease", work=self.name, holder=self.holder, lease=LEASE):
            raise LeaseLost

    def release(self) -> None:
        """Release the lease. If the database cannot be reached, it expires by itself."""
        with suppress(Error):
            run("release_lease", work=self.name, holder=self.holder)
