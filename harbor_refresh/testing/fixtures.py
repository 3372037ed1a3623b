"""Fixtures for pytest: `pytest_plugins = ["harbor_refresh.testing.fixtures"]` in the conftest.py of a project.

pytest loads this before Django is set up, so what needs Django is imported in the fixtures.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest


@pytest.fixture
def harbor_eager(db: None) -> Iterator[None]:
    """Each job runs at once in this test."""
    from harbor_refresh.testing.worker import eager

    with eager():
        yield


@pytest.fixture
def harbor_jobs(transactional_db: None) -> Iterator[None]:
    """A worker runs the jobs of this test, with a broker in the memory of its process."""
    from harbor_refresh.testing.worker import worker

    with worker():
        yield


@pytest.fixture
def fail_job() -> Iterator[Callable[..., None]]:
    """Make a job fail until the end of this test: `fail_job("shop.copy", times=2, with_=OSError("disk"))`."""
    from harbor_refresh.testing import failures

    with ExitStack() as until_the_end:

        def fail(name: str, **how: Any) -> None:
            until_the_end.enter_context(failures.fail_job(name, **how))

        yield fail
