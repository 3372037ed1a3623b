"""Look at Redis when a worker starts, and tell what is set up so that it loses or refuses work.

These are two of the doctor's checks. Nothing waits for them: the look is made in a thread, and a Redis that is
away is told by others.
"""

import logging
import threading
from typing import Any

from harbor_refresh.executions.errors import QueueUnavailable

CHECKS = ("redis.eviction", "redis.memory")

log = logging.getLogger("harbor_refresh")


def look_in_a_thread(**_: Any) -> None:
    threading.Thread(target=look, name="redis_at_start", daemon=True).start()


def look() -> None:
    from harbor_refresh.doctor import redis_servers  # the doctor imports much that no worker needs
    from harbor_refresh.doctor.facts import Facts

    facts = Facts()
    try:
        for check in redis_servers.CHECKS:
            if check.name in CHECKS:
                for problem in check.look(facts):
                    log.warning("Redis may lose or refuse work: %s %s", problem.what, problem.todo)
    except QueueUnavailable:
        return
