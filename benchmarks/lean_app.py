"""The Celery app of the leanest workers: those of stock_app, which send no events of tasks. Flower sees no task of
theirs, and they run plain tasks twice as fast."""

from benchmarks.stock_app import app

__all__ = ["app"]

app.conf.worker_send_task_events = False
