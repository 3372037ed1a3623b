"""Jobs in the tests of a project, without Redis: eager mode, a worker in a thread of the process of the test, and
jobs that fail when a test says so.

For pytest there are fixtures (`pytest_plugins = ["harbor_refresh.testing.fixtures"]`); the same for any other
runner are these functions, each a context. See docs/howto/testing.md.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count
from typing import Any
from unittest.mock import patch

from celery import current_app, signals
from celery.contrib.testing.worker import start_worker
from django.db import connections

from harbor_refresh.tasks.jobs import TrackedJob
from harbor_refresh.tasks.without_redis import mode

__all__ = ["eager", "fail_job", "worker"]

#: Of Celery's settings, what applies while a worker runs.
SETTINGS: dict[str, Any] = {
    **dict.fromkeys(("broker_url", "broker_read_url", "broker_write_url"), "memory://"),
    "broker_use_ssl": False,
    "broker_transport_options": {"polling_interval": 0.01},
    "task_always_eager": False,
}
#: Seconds in which a job that runs at the end may end.
SHUTDOWN_SECONDS = 60.0


@contextmanager
def eager(*, propagates: bool = False) -> Iterator[None]:
    """Run each job, and each plain Celery task, at once in this process.

    Args:
        propagates: Whether the first error of a job is raised where the jobs were started, after all have run.
    """
    with patch.dict(_changes(current_app), task_always_eager=True, task_eager_propagates=propagates):
        yield


@contextmanager
def worker(*queues: str) -> Iterator[None]:
    """Run jobs in a worker, one after the other, in a thread of this process.

    The thread has its own database connection, so it sees only what is committed: use it in tests with real
    commits.

    Args:
        queues: The queues that it takes besides the default queue of the Celery app.
    """
    app: Any = current_app._get_current_object()  # type: ignore[attr-defined]
    signals.setup_logging.connect(_leave_the_log_alone, dispatch_uid=__name__)
    signals.task_postrun.connect(_close_connections, dispatch_uid=__name__)
    try:
        with patch.dict(_changes(app), SETTINGS):
            _forget_connections(app)
            running = start_worker(
                app,
                pool="solo",
                queues=sorted({app.conf.task_default_queue, *queues}),
                loglevel=logging.getLogger().level,
                perform_ping_check=False,
                shutdown_timeout=SHUTDOWN_SECONDS,
            )
            with mode.with_a_worker_in_this_process(), running:
                try:
                    yield
                finally:
                    app.control.shutdown()  # it ends at once, and not when it next looks whether it should
            app.control.purge()  # the memory outlives the worker
    finally:
        signals.task_postrun.disconnect(dispatch_uid=__name__)
        signals.setup_logging.disconnect(dispatch_uid=__name__)
        _forget_connections(app)


@contextmanager
def fail_job(name: str, *, times: int | None = None, with_: BaseException | None = None) -> Iterator[None]:
    """Make a job of this process fail, as if its code had raised: `autoretry_for` and `max_attempts` apply.

    Args:
        name: The name of the job, such as `"shop.tasks.copy"`.
        times: How many runs fail; None: all.
        with_: The error; a RuntimeError if it is not given.
    """
    task: Any = current_app.tasks.get(name)
    if not isinstance(task, TrackedJob):
        known = sorted(one for one, it in current_app.tasks.items() if isinstance(it, TrackedJob))
        raise LookupError(f"no job {name!r} is registered here; there are {', '.join(known) or 'none'}")
    # the function itself: `autoretry_for` has put a wrapper around it, which is to see the error
    place = "_orig_run" if hasattr(task, "_orig_run") else "run"
    code, runs = getattr(task, place), count(1)

    @wraps(code)
    def failing(*args: Any, **kwargs: Any) -> Any:
        if times is None or next(runs) <= times:
            raise RuntimeError(f"the test has {name} fail") if with_ is None else with_
        return code(*args, **kwargs)

    with patch.object(task, place, failing):
        yield


def _changes(app: Any) -> dict[str, Any]:
    """Return what Celery takes before all other settings. It reads them with the first one that is asked for."""
    app.conf.get("task_always_eager")
    return app.conf.changes  # type: ignore[no-any-return]


def _forget_connections(app: Any) -> None:
    """Have the app forget its connections and queues with other settings. They stay open, for a later test."""
    app._pool = None
    app.__dict__.pop("amqp", None)


def _leave_the_log_alone(**_: Any) -> None:
    """Be there: Celery configures no log that a receiver has configured."""


def _close_connections(**_: Any) -> None:
    """Close those of the worker's thread after each job, because the test deletes its database at its end."""
    connections.close_all()
