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
    """Have the first `times` runs of the job of this name raise `with_` in the place of its code; all runs, if no
    number is given. Later runs are those of the job itself.

    It fails as if its own code had raised: `autoretry_for` and `max_attempts` apply, and each try is a run. It
    reaches the jobs of this process, and not those of a worker in another one.
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
