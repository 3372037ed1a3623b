"""Messages that a dead worker had fetched are given back, also by workers of gevent.

With a Redis as the broker the workers that live do it when the visibility timeout is over. In kombu a timer of the
worker's event loop looks for such messages, and workers of gevent have no event loop. There kombu
looks only after a read that brings nothing, not even the end of its time. There is no such read while the worker
may take more messages, so where all workers are of that kind, the messages of a killed one would wait until one of
them has no room. A timer of Celery looks there.

What if the connection breaks: the next look goes by the new one. What if the worker dies while it looks: a message
counts as fetched until it is back in its queue.
"""

from typing import Any

from celery.signals import worker_ready

#: How often kombu looks, if the options of the broker do not say it.
KOMBU_SECONDS = 10


def connect() -> None:
    worker_ready.connect(_look_from_now_on, dispatch_uid="tasks.broker.given_back")


def _look_from_now_on(sender: Any, **_: Any) -> None:
    """The sender is the consumer of the worker, which keeps its timer when it connects again."""
    if sender.hub is None:
        seconds = sender.app.conf.broker_transport_options.get("unacked_restore_interval", KOMBU_SECONDS)
        sender.timer.call_repeatedly(seconds, _look, (sender,))


def _look(consumer: Any) -> None:
    """Nothing without a connection, and with a RabbitMQ, which sees by itself that a worker is gone."""
    transport = consumer.connection and consumer.connection.transport
    poller: Any = getattr(transport, "cycle", None)
    if hasattr(poller, "maybe_restore_messages"):
        poller.maybe_restore_messages()
