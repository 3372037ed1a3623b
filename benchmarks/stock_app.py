"""The Celery app of workers as a project has them: `celery -A benchmarks.stock_app worker`.

It has our settings, tasks and queues, Celery's own consumer and kombu's own transport; the service's app replaces
both (harbor_refresh/consumer.py, tasks/broker/redis_transport.py). So plain tasks cost what Celery alone costs.
"""

from celery import Celery

from harbor_refresh.celery import app

__all__ = ["app"]

app.conf.worker_consumer = "celery.worker.consumer:Consumer"
app.amqp_cls = Celery.amqp_cls
