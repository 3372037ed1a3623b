"""Leases: the right to do one kind of work, for one process at a time.

A lease is a row with a holder and an end time, by the database's clock. It is no session lock: a frozen process
or a vanished host holds it for LEASE at most, and it works through a pooler that gives each transaction another
session.
"""

import os
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import Error

from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import Overtaken

LEASE = timedelta(seconds=15)


@dataclass(frozen=True)
class Held:
    """The process, or the pass, that has the lease, and until when."""

    holder: str
    until: datetime


class Lease:
    """The lease of that name, for one pass of this process.

    What if two processes take it at once: the row's lock lets one of them. What if the process dies: it
    expires. What if the process stands still and goes on: `extend` raises Overtaken if another process has
    taken the lease meanwhile. Called first in a transaction, it fences what that transaction writes.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.holder = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"

    def take(self) -> Held | None:
        """Take the lease and return None; if another process has it, return that."""
        run("make_lease", work=self.name)
        taken, holder, until = run("take_lease", work=self.name, holder=self.holder, lease=LEASE)[0]
        return None if taken else Held(holder, until)

    def extend(self) -> None:
        if not run("extend_lease", work=self.name, holder=self.holder, lease=LEASE):
            raise Overtaken

    def release(self) -> None:
        """Release the lease. If the database cannot be reached, it expires by itself."""
        with suppress(Error):
            run("release_lease", work=self.name, holder=self.holder)
