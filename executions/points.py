"""Named points in the life of a change, where a fault test may end the process.

In production there is no visitor, so a point costs one look into an empty list.

| point       | where                                                                  |
| ----------- | ---------------------------------------------------------------------- |
| `reported`  | the report is committed, its executions are not marked yet             |
| `claimed`   | the members are claimed, nothing is published yet                      |
| `deciding`  | the refresh has written its rows and has not committed                 |
| `committed` | the refresh is committed, its claim is not completed yet               |
| `one`       | one execution is about to be refreshed as the original does it         |
| `counted`   | as the original does it: tasks are counted, the status not yet written |
| `written`   | as the original does it: status is written, the end not yet corrected  |
"""

from collections.abc import Callable, Sequence
from typing import Protocol

Visitor = Callable[[str, Sequence[int]], None]
visitors: list[Visitor] = []


class HasIds(Protocol):
    @property
    def ids(self) -> Sequence[int]: ...


def reach(point: str, whom: Sequence[int] | HasIds) -> None:
    """Call the visitors. `ids` are read only if there is a visitor, because a claim has to parse its ids first."""
    for visit in visitors:
        visit(point, whom if isinstance(whom, Sequence) else whom.ids)
