"""Named points in the refresh of an execution and around it, where a fault test may end the process.

In production no handler is registered, so a point costs one look into an empty list.

| point       | where                                                                  |
| ----------- | ---------------------------------------------------------------------- |
| `reported`  | the report is committed, its executions are not marked yet             |
| `claimed`   | the members are claimed, nothing is published yet                      |
| `deciding`  | the refresh has written its rows and has not committed                 |
| `committed` | the refresh is committed, its claim is not completed yet               |
| `one`       | one execution is about to be refreshed as the original does it         |
| `counted`   | as the original does it: tasks are counted, the status not yet written |
| `written`   | as the original does it: status is written, the end not yet corrected  |
| `listed`    | the deliveries of changes are written and not committed                |
| `leased`    | deliveries are claimed and committed, none of them is sent             |
| `answered`  | receivers have answered, or handlers have run; no result is recorded   |
| `recorded`  | the results of deliveries are committed                                |
| `added`     | jobs are added and committed, and none of them is published            |
| `swept`     | a batch of executions is deleted, and the sweep goes on                |
| `imported`  | a page of Harbor's own marks is on the queue, the rest is not          |
| `exported`  | a page of the queue has become marks of Harbor, the rest has not       |
"""

from collections.abc import Callable, Sequence
from typing import Any

Handler = Callable[[str, Sequence[int]], None]
handlers: list[Handler] = []


def reach(point: str, executions: Any) -> None:
    """Call the handlers with the ids given, or those of a claim, which are parsed only for a handler."""
    for handle in handlers:
        handle(point, getattr(executions, "ids", executions))
