"""Named points in the life of a change, where a fault test may end the process.

In production nobody listens and a point costs one look into an empty list.

| point       | where                                                                  |
| ----------- | ---------------------------------------------------------------------- |
| `reported`  | the report is committed, its executions are not marked yet             |
| `claimed`   | the members are claimed, nothing is published yet                      |
| `deciding`  | the refresh has written its rows and has not committed                 |
| `committed` | the refresh is committed, its claim is not completed yet               |
| `one`       | one execution is about to be refreshed in the way of the original      |
| `counted`   | its tasks have been counted in that way, its status is not written yet |
| `written`   | its status is written in that way, its end is not corrected yet        |
"""

from collections.abc import Callable, Sequence
from typing import Protocol

Visitor = Callable[[str, Sequence[int]], None]
visitors: list[Visitor] = []


class HasIds(Protocol):
    @property
    def ids(self) -> Sequence[int]: ...


def reach(point: str, whom: Sequence[int] | HasIds) -> None:
    """Whoever has ids is asked for them only if somebody listens: a claim has to read them first."""
    for visit in visitors:
        visit(point, whom if isinstance(whom, Sequence) else whom.ids)
