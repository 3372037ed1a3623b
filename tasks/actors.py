"""Import every Celery task, so that Celery knows its name."""

from harbor_refresh.tasks.act import act
from harbor_refresh.tasks.claim_batch import claim_batch
from harbor_refresh.tasks.deliver import deliver
from harbor_refresh.tasks.reap import reap
from harbor_refresh.tasks.reconcile import reconcile
from harbor_refresh.tasks.recover_stale import recover_stale
from harbor_refresh.tasks.refresh_executions import refresh_executions
from harbor_refresh.tasks.run_cycle import run_cycle
from harbor_refresh.tasks.run_handlers import run_handlers
from harbor_refresh.tasks.sample import sample
from harbor_refresh.tasks.sweep import sweep

__all__ = [
    "act",
    "claim_batch",
    "deliver",
    "reap",
    "reconcile",
    "recover_stale",
    "refresh_executions",
    "run_cycle",
    "run_handlers",
    "sample",
    "sweep",
]
