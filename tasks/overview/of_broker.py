"""How many messages wait with the broker, by queue: one pipeline of LLEN, or a declaration for each queue of
RabbitMQ.

Kombu keeps a list in Redis for each priority of a queue. Its own client waits five seconds for a broker that
hangs, which is too long for a page, so this one asks by itself.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from celery import current_app

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.broker import channels
from harbor_refresh.tasks.broker.celery_queues import QUEUES
from harbor_refresh.tasks.broker.connecting import is_amqp
from harbor_refresh.tasks.broker.redis_address import Address, BadAddress, from_celery, read_address
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue.connection import BRIEF_SECONDS, brief, connect, redis_errors_translated


def address() -> Address:
    """Return the address of the broker. Raises BadAddress if it is no Redis."""
    conf = current_app.conf
    return from_celery(str(conf.broker_write_url or ""), conf.broker_transport_options, conf.broker_use_ssl)


def is_the_same_server() -> bool:
    try:
        return address() == read_address(refresh_settings().redis_url)
    except BadAddress:
        return False


def is_rabbitmq() -> bool:
    return is_amqp(str(current_app.conf.broker_write_url or ""))


def messages(queues: Sequence[str] = QUEUES) -> dict[str, int]:
    """Count the messages that wait in these queues, without those that a worker has fetched. Raises
    QueueUnavailable."""
    if is_rabbitmq():
        with channels.glance(BRIEF_SECONDS) as channel:
            return {queue: channels.length(channel, queue) for queue in queues}
    try:
        address()
    except BadAddress:
        raise QueueUnavailable("the broker is no Redis and no RabbitMQ, so its messages are not counted") from None
    with redis_errors_translated(of_queue=is_the_same_server()):
        pipeline = _client().pipeline(transaction=False)
        for queue in queues:
            for key in _lists(queue):
                pipeline.llen(key)
        lengths = iter(pipeline.execute())
        return {queue: sum(next(lengths) for _ in _lists(queue)) for queue in queues}


@cache
def _client() -> Any:
    return brief() if is_the_same_server() else connect(address(), BRIEF_SECONDS, tries=1)


def _lists(queue: str) -> list[str]:
    """Return the keys of a queue, one for each priority, as kombu names them."""
    options: dict[str, Any] = current_app.conf.broker_transport_options or {}
    prefix, separator = options.get("global_keyprefix", ""), options.get("sep", "\x06\x16")
    steps = options.get("priority_steps", (0, 3, 6, 9))
    return [f"{prefix}{queue}{separator}{step}" if step else f"{prefix}{queue}" for step in steps]
