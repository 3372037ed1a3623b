"""How many messages wait in a queue of the broker, without those that a worker has fetched.

`waiting` and `waiting_in_all` go over a connection of Celery's pool, as the messages do, and are for processes
that publish next. `tasks/overview/of_broker.py` is for pages.
"""

from collections.abc import Callable
from typing import Any

from harbor_refresh.tasks.broker import rabbitmq
from harbor_refresh.tasks.broker.pooled import pooled_channel


def waiting(queue: str) -> int:
    """Count the messages without a priority.

    With Redis this is one LLEN. Kombu's own way, a passive declaration of the queue, takes seven commands there.
    RabbitMQ has one list for all priorities, and one command.
    """
    return _length(queue, lambda channel: channel.client.llen(queue))


def waiting_in_all(queue: str) -> int:
    """Count the messages of every priority. In Redis each priority has its own list."""
    return _length(queue, lambda channel: channel._size(queue))


def _length(queue: str, of_redis: Callable[[Any], int]) -> int:
    with pooled_channel() as (driver, channel):
        return rabbitmq.length(channel, queue) if driver == rabbitmq.DRIVER else int(of_redis(channel))
