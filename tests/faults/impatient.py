"""Included by a worker that gives deliveries up after three attempts, and ends calls of handlers in seconds."""

from harbor_refresh.executions.news.deliveries import claims
from harbor_refresh.tasks.celery_tasks import run_handlers

claims.MAX_ATTEMPTS = 3
run_handlers.soft_time_limit, run_handlers.time_limit = 1, 2
