"""eager: jobs run at once meanwhile, as with CELERY_TASK_ALWAYS_EAGER in the settings of a project."""

from collections.abc import Iterator
from contextlib import contextmanager

from celery import current_app


@contextmanager
def eager(*, propagates: bool = False) -> Iterator[None]:
    """Run each job, and each plain task of Celery, at once in this process. `propagates`: the first error of a job
    is raised where the job was started, when all is done."""
    conf = current_app.conf
    before = conf.task_always_eager, conf.task_eager_propagates
    conf.task_always_eager, conf.task_eager_propagates = True, propagates
    try:
        yield
    finally:
        conf.task_always_eager, conf.task_eager_propagates = before
