"""The Celery app of workers as a project has them: `celery -A benchmarks.stock_app worker`.

It has our settings, tasks and queues, and Celery's own consumer and kombu's own transport, which the service's app
replaces (harbor_refresh/consumer.py, redis_transport.py).
"""

from kombu.transport import TRANSPORT_ALIASES

from harbor_refresh.celery import app

__all__ = ["app"]

TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "kombu.transport.redis:Transport"))
app.conf.worker_consumer = "celery.worker.consumer:Consumer"
