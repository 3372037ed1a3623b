"""Publishing: recorded jobs become messages, a page at a time, in one go to the broker."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from celery import current_app
from kombu.exceptions import OperationalError

from executions.errors import RefreshError
from executions.models import Job
from executions.usecases.jobs import Message, publish_recorded
from tasks.jobs import header
from tasks.queues import waiting_in_all

log = logging.getLogger("harbor_refresh")

#: What a broker that is away raises, besides what its connection names.
AWAY = (OperationalError, OSError)


def publish(messages: Sequence[Message]) -> Sequence[tuple[Message, str]]:
    """In one go to the broker. Whatever is raised that does not speak of the broker speaks of the message."""
    impossible: list[tuple[Message, str]] = []
    with current_app.producer_or_acquire() as producer, producer.batch():
        for message in messages:
            try:
                current_app.send_task(
                    message.name,
                    args=message.args,
                    kwargs=message.kwargs,
                    task_id=message.job,
                    headers=header.of(message),
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
    """Of these jobs, those whose message may wait in the broker: their queue is not empty. A job whose queue is
    not served for days is sent no more messages."""
    queues: dict[str, set[int]] = defaultdict(set)
    for job in jobs:
        route = current_app.amqp.router.route(dict(job.options), job.name)
        queues[route["queue"].name].add(job.pk)
    return {pk for queue, keys in queues.items() if waiting_in_all(queue) for pk in keys}


def publish_what_was_recorded(**which: Any) -> None:
    """After a commit, for a caller whose own work is done: a broker that is away is told, not raised. Recovery
    publishes what has no message, a few seconds later."""
    which = {name: value for name, value in which.items() if name in ("execution_id", "after")}
    try:
        publish_recorded(publish, **which)
    except RefreshError as exc:
        log.warning("Could not publish jobs, they will be a few seconds later: %s", exc)
    except Exception as exc:  # whatever the broker's client raises
        log.warning("Could not publish jobs, they will be a few seconds later: %s: %s", type(exc).__name__, exc)
