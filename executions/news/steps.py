"""Named steps on the way from a report to a true status, for one follower: the tracer of the service.

| step              | what it covers                                        | facts             | notes           |
| ----------------- | ----------------------------------------------------- | ----------------- | --------------- |
| `report`          | reports are applied, and their executions marked      | `source`          | see below       |
| `mark`            | executions are put on the queue                       | `members`         |                 |
| `claim`           | a batch was claimed, and is published to the workers  | `batch`, `chunks` |                 |
| `refresh`         | a claim was taken over; it is refreshed and completed | `claim`, `mine`   | `outcome`       |
| `refresh_at_once` | a process refreshes after its commit, with no queue   | `execution_ids`   | `outcome`       |
| `write`           | rows are locked and written; it ends before commit    | `execution_ids`   | `changed`       |
| `complete`        | the successes of a refresh leave their claim          | `claim`           | `claim_expired` |

The notes of `report` are `executions`, `applied`, `unchanged` and `refused`. A report inside a transaction of its
caller ends before the commit, so its `mark` comes after it (`carried`).

In a process without a follower a step costs one comparison: it makes no query and no command, and imports nothing.
Facts and notes are values that the use case has at hand.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import partial
from typing import Any

#: Adds notes to the step: what is known only at its end.
Note = Callable[..., None]


#: Called at the begin of each step; leaves it with the step, or with its exception. It must not raise.
Follower = Callable[[str, Mapping[str, Any]], AbstractContextManager[Note]]


def _no_note(**_: Any) -> None:
    pass


_UNFOLLOWED: AbstractContextManager[Note] = nullcontext(_no_note)
_follower: Follower | None = None


def follow_with(follower: Follower | None) -> None:
    """Have this follower follow every step of this process; None: no follower any more."""
    global _follower  # noqa: PLW0603
    _follower = follower


def step(name: str, **facts: Any) -> AbstractContextManager[Note]:
    """Return the step as a context; its value takes notes."""
    return _UNFOLLOWED if _follower is None else _follower(name, facts)


def carried(work: Callable[[], None]) -> Callable[[], None]:
    """Return the work so that it belongs to the present step, although it runs after a commit, when that step may
    have ended."""
    return work if _follower is None else partial(copy_context().run, work)
