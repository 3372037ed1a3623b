"""Let the test's own process use another Redis and another broker, as the workers do that it starts."""

from collections.abc import Iterator
from contextlib import contextmanager

from celery import current_app
from django.test import override_settings
from kombu import pools

from harbor_refresh.tasks.broker.connecting import broker_of_celery
from harbor_refresh.tasks.queue import brief_queue, execution_queue
from harbor_refresh.tasks.queue.connection import brief, patient, single

#: What each process makes once, for its settings.
MADE_ONCE = (patient, single, brief, execution_queue, brief_queue)

CHANGED = ("broker_read_url", "broker_write_url", "broker_transport_options", "broker_use_ssl")


@contextmanager
def uses(redis_url: str, broker_url: str) -> Iterator[dict[str, str]]:
    """Yield the environment of a worker that does the same."""
    conf = current_app.conf
    broker = broker_of_celery(broker_url, conf.broker_transport_options["visibility_timeout"])
    before = {name: conf[name] for name in CHANGED}
    try:
        with override_settings(REDIS_URL=redis_url):
            _forget()
            conf.update(
                broker_read_url=broker.url,
                broker_write_url=broker.url,
                broker_transport_options=broker.options,
                broker_use_ssl=broker.tls,
            )
            yield {"REDIS_URL": redis_url, "CELERY_BROKER_URL": broker_url}
    finally:
        conf.update(before)
        _forget()


def forget_connections_to_the_broker() -> None:
    """Let this process open new ones. A test before may have restarted the broker, or cut its connections."""
    pools.reset()
    current_app._after_fork()  # type: ignore[attr-defined]  # the app keeps the pools that it has used


def _forget() -> None:
    for one in MADE_ONCE:
        one.cache_clear()
    forget_connections_to_the_broker()
