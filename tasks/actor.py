"""The base of our Celery tasks. What they need of Celery's options is theirs, so that it does not depend on the
settings of the project that they run in:

1. A message is acknowledged when its task has ended, and goes back to the broker when its process dies.
2. No result is stored: nothing asks for it, and a tick comes every few seconds.
"""

from celery import Task


class Actor(Task):  # type: ignore[type-arg]
    abstract = True
    acks_late = True
    reject_on_worker_lost = True
    #: It would override the option above, and drop the message after a few deaths.
    retry_on_worker_lost = False
    ignore_result = True
