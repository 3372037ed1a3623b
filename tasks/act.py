"""`tasks.act`: work on an action on many executions for a slice of time, and send itself again if any is left.

It is sent when an action is asked for. `tasks.recover_stale` sends it as well, if actions wait and no worker works
on one. One slice runs at a time, so the refreshes have the other processes of the workers.
"""

from celery import shared_task

from harbor_refresh.tasks.actions import bulk
from harbor_refresh.tasks.tick import Tick


@shared_task(name="tasks.act", base=Tick)
def act() -> dict[str, int | str]:
    action = bulk.work()
    bulk.wake()
    return {"action": action.pk, "state": action.state, "done": action.done} if action else {}
