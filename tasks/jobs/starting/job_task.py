"""JobTask: what a tracked job says of itself when it is started. How it runs is in tracked.py."""

from celery import Task

from harbor_refresh.tasks.jobs.starting.declarations import attempts_of


class JobTask(Task):  # type: ignore[type-arg]
    """`max_attempts` is how often it may begin in all, including after a crash of its worker and after each
    `retry`. By default as often as its `max_retries` need, and at least five times. `unique`: it is not started
    while a job with the same name and arguments is queued or running. `keep_result`: what it returns is kept with
    its end, for `execution.results()`."""

    abstract = True
    unique = False
    keep_result = False
    #: Whether arguments are checked against the function: what Celery's `typing` says, which counts no handle.
    checks_arguments = False

    @property
    def max_attempts(self) -> int:
        return attempts_of(self)
