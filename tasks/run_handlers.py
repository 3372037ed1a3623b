"""`tasks.run_handlers`: call one handler for the status changes that are due for it.

The deliverer sends it. A handler has a task of its own, so a slow one delays neither webhooks nor other handlers.
"""

from celery import shared_task

from executions.deliveries.handler_runs import run_handler
from tasks.actor import Actor


@shared_task(name="tasks.run_handlers", base=Actor)
def run_handlers(subscription_id: int) -> None:
    if run_handler(subscription_id):
        run_handlers.delay(subscription_id)
