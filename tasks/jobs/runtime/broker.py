"""The messages of jobs in the broker: they are published, and may still wait there."""

from collections import defaultdict
from collections.abc import Sequence

from celery import current_app

from harbor_refresh.tasks.broker.lengths import waiting_in_all
from harbor_refresh.tasks.broker.pooled import batch_producer
from harbor_refresh.tasks.broker.rabbitmq import AWAY
from harbor_refresh.tasks.jobs import message_header
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.models.job import Job


def publish(messages: Sequence[Message]) -> Sequence[tuple[Message, str]]:
    """Publish in one batch. Returns the messages that cannot be made, with the reason: an error that does not come
    from the broker concerns the message."""
    impossible: list[tuple[Message, str]] = []
    with batch_producer() as producer:
        for message in messages:
            try:
                current_app.send_task(
                    message.name,
                    args=message.args,
                    kwargs=message.kwargs,
                    task_id=message.job,
                    headers=message_header.of(message),
                    producer=producer,
                    retry=False,
                    **message.options,
                )
            except (*producer.connection.connection_errors, *producer.connection.channel_errors, *AWAY):
                raise
            except Exception as exc:
                impossible.append((message, f"{type(exc).__name__}: {exc}"))
    return impossible


def may_wait(jobs: Sequence[Job]) -> set[int]:
    """Return those of the jobs whose message may wait in the broker, because their queue is not empty. So a job
    gets no second message while no worker serves its queue."""
    queues: dict[str, set[int]] = defaultdict(set)
    for job in jobs:
        route = current_app.amqp.router.route(dict(job.options), job.name)
        queues[route["queue"].name].add(job.pk)
    return {pk for queue, keys in queues.items() if waiting_in_all(queue) for pk in keys}
