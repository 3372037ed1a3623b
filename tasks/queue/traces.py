"""Trace contexts of reports, kept beside the queue until a refresh has included the reports.

A hash has the context of the latest sampled report of an execution, while traces are on (harbor_refresh/tracing).
It may be lost: then a trace ends at its report. So its client gives up soon and never tries again.

A context is kept before its execution is marked, and after the commit of its report. So every context that a
refresh reads before its statement belongs to a report that the statement sees. The refresh drops what it has read
when it has succeeded. If its process dies before, the second attempt is in the same trace.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from redis import Redis

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import Refresh, refresh_settings
from harbor_refresh.tasks.queue.connection import brief, redis_errors_translated
from harbor_refresh.tasks.queue.keys import Keys
from harbor_refresh.tasks.queue.sets import pages

#: With more members than this, it is asked first whether there is any context at all.
FEW = 100


class Traces:
    def __init__(self, conf: Refresh, client: Redis) -> None:
        self._redis = client
        self._key = Keys(conf.key_prefix).traces

    def keep(self, members: Sequence[str], context: str) -> None:
        """Keep the context beside these members, as far as there is room. The hash expires a while after it was
        begun, so contexts of executions that are never refreshed go."""
        with redis_errors_translated():
            room = pacing.MOST_TRACED - int(self._redis.hlen(self._key))
            kept: dict[Any, str] = dict.fromkeys(members[: max(0, room)], context)
            if not kept:
                return
            self._redis.hset(self._key, mapping=kept)
            if self._redis.pttl(self._key) < 0:
                self._redis.pexpire(self._key, pacing.TRACES_TTL_MS)

    def of(self, members: Sequence[str]) -> dict[str, str]:
        """Return the contexts of these members, the few that have one."""
        found: dict[str, str] = {}
        with redis_errors_translated():
            if len(members) > FEW and not self._redis.exists(self._key):
                return found
            for page in pages(members):
                values = cast("list[bytes | None]", self._redis.hmget(self._key, page))
                pairs = zip(page, values, strict=True)
                found |= {member: raw.decode(errors="replace") for member, raw in pairs if raw is not None}
        return found

    def drop(self, contexts: Mapping[str, str]) -> None:
        """Drop these contexts. That of a later report, which has taken the place of one of them, stays."""
        now = self.of(list(contexts))
        if same := [member for member, context in contexts.items() if now.get(member) == context]:
            with redis_errors_translated():
                self._redis.hdel(self._key, *same)


@cache
def traces() -> Traces:
    return Traces(refresh_settings(), brief())
