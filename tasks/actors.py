"""Import every Celery task, so that Celery knows its name."""

from tasks.act import act
from tasks.claim_batch import claim_batch
from tasks.deliver import deliver
from tasks.reap import reap
from tasks.reconcile import reconcile
from tasks.recover_stale import recover_stale
from tasks.refresh_executions import refresh_executions
from tasks.run_cycle import run_cycle
from tasks.run_handlers import run_handlers
from tasks.sample import sample
from tasks.sweep import sweep

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
