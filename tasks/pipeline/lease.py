"""The lease of reconcile: one pass at a time.

The lease is a holder and an end time in the watermark's row, by the database's clock. It is no session lock: a
frozen process or a vanished host holds it for LEASE at most, and it works through a connection pooler.
"""

import secrets
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import Error

from harbor_refresh.executions.errors import Overtaken
from harbor_refresh.executions.lease import Held
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.queue.node import this_node

LEASE = timedelta(seconds=30)


class Lease:
    """The right of one pass to reconcile. Each write of the pass checks it.

    What if two processes take it at once: the row's lock lets one of them. What if the process dies: it expires.
    What if the process stands still and goes on: if another pass has taken over the lease meanwhile, its next
    write changes nothing and raises Overtaken; if no pass has, it goes on.
    """

    def __init__(self) -> None:
        self.holder = f"{this_node.name}-{secrets.token_hex(2)}"

    def take(self) -> Held | None:
        """Take the lease and return None; if another pass has it, return that."""
        run("make_watermark")
        taken, holder, until = run("take_lease", holder=self.holder, lease=LEASE)[0]
        if not taken:
            return Held(holder, until)
        if holder is not None:
            signals.lease_taken_over.send(sender=Lease, holder=holder, until=until)
        return None

    def extend(self) -> None:
        self.write("extend_lease", lease=LEASE)

    def write(self, name: str, **values: Any) -> None:
        """Run a statement that writes and returns a row only while the lease is ours; raise Overtaken if it is
        not."""
        if not run(name, holder=self.holder, **values):
            raise Overtaken

    def release(self) -> None:
        """Release the lease. If the database cannot be reached, it expires by itself."""
        with suppress(Error):
            run("release_lease", holder=self.holder)
