"""fail_job: a chosen job fails, as often as a test says."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count
from typing import Any

from celery import current_app

from harbor_refresh.tasks.jobs import TrackedJob


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

    had_its_own = place in vars(task)
    setattr(task, place, failing)
    try:
        yield
    finally:
        if had_its_own:
            setattr(task, place, code)
        else:
            delattr(task, place)
